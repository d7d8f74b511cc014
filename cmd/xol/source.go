package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"xol/image"
)

// openImage opens the ELF file at path, which may be "-", with the symbols of a
// System.map unless that is nil. An error starts with the file's name.
func (a *app) openImage(path string, symbols []byte) (*image.Image, error) {
	opt := image.Options{Demangle: true, DebugDirs: []string{"/usr/lib/debug"}}
	if symbols != nil {
		opt.Symbols = bytes.NewReader(symbols)
	}
	img, err := a.openELF(path, opt)
	if err != nil {
		return nil, fileError(path, err)
	}
	if _, err := img.DebugFile(); err != nil {
		a.report(fileError(path, fmt.Errorf("no names and lines are taken from %w", err)))
	}
	return img, nil
}

func (a *app) openELF(path string, opt image.Options) (*image.Image, error) {
	switch {
	case path == "-":
		return openStream(a.in, opt)
	case isStream(path):
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return openStream(f, opt)
	}
	return image.OpenFile(path, opt)
}

// isStream reports whether a file can only be read from its start to its end,
// as FIFOs and what shells make of <(command).
func isStream(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// openStream opens an ELF file that has to be read to its end first. What is
// large goes into a temporary file, which has no name any more when it is open.
func openStream(r io.Reader, opt image.Options) (*image.Image, error) {
	var start bytes.Buffer
	n, err := io.CopyN(&start, r, maxInMemory)
	switch {
	case err == io.EOF:
		return image.Open(bytes.NewReader(start.Bytes()), n, opt)
	case err != nil:
		return nil, err
	}
	f, err := os.CreateTemp("", "xol-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	n, err = io.Copy(f, io.LimitReader(io.MultiReader(&start, r), maxStream+1))
	switch {
	case err != nil:
		return nil, err
	case n > maxStream:
		return nil, fmt.Errorf("more than %d GiB come from it; give a regular file", maxStream>>30)
	}
	return image.OpenFile(f.Name(), opt)
}

// How much is read of what has no size.
const (
	maxInMemory = 64 << 20  // bytes of an ELF file; the rest goes to a temporary file
	maxStream   = 4 << 30   // bytes of an ELF file
	maxText     = 256 << 20 // bytes of a list or a symbol map
)

// readSymbols returns what is in a System.map, nil where no file is named.
func (a *app) readSymbols(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	return a.readAll(path)
}

// readAll returns what is in a text file, or on standard input for "-".
func (a *app) readAll(path string) ([]byte, error) {
	r := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fileError(path, err)
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err == nil && len(data) > maxText {
		err = fmt.Errorf("it has more than %d MiB", maxText>>20)
	}
	if err != nil {
		return nil, fileError(path, err)
	}
	return data, nil
}

// fileError puts the file's name before err.
func fileError(path string, err error) error {
	if path == "-" {
		path = "standard input"
	}
	return fmt.Errorf("%s: %w", path, withoutPath(err))
}

// withoutPath takes the operation and the file name off an error of package
// os: our messages start with the name.
func withoutPath(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}
