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
	opt := image.Options{Demangle: true}
	if symbols != nil {
		opt.Symbols = bytes.NewReader(symbols)
	}
	img, err := a.openELF(path, opt)
	if err != nil {
		return nil, fileError(path, err)
	}
	return img, nil
}

func (a *app) openELF(path string, opt image.Options) (*image.Image, error) {
	if path != "-" {
		return image.OpenFile(path, opt)
	}
	data, err := io.ReadAll(a.in)
	if err != nil {
		return nil, err
	}
	return image.Open(bytes.NewReader(data), int64(len(data)), opt)
}

// readSymbols returns what is in a System.map, nil where no file is named.
func (a *app) readSymbols(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	return a.readAll(path)
}

// readAll returns what is in a file, or on standard input for "-".
func (a *app) readAll(path string) ([]byte, error) {
	var data []byte
	var err error
	if path == "-" {
		data, err = io.ReadAll(a.in)
	} else {
		data, err = os.ReadFile(path)
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
