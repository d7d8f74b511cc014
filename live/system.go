// Package live reads a Linux system that runs: its kernel, by what the kernel shows of
// itself below /proc, /sys and /boot, and its processes. What a system does not have
// or does not show is said, with what is lost by it.
package live

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"xol/kernel"
)

// System is a Linux system that runs, by the folder that its /proc, /sys, /boot and
// /lib are in: "/" or that of a captured or constructed one. The zero value is the
// system of the caller.
type System struct{ Root string }

// Gap is something that a system does not have or does not show.
type Gap struct {
	Source string `json:"source"` // the path, as the system has it
	Why    string `json:"why"`
	Lost   string `json:"lost"` // what is not known for want of it, or from where it is taken instead
}

func (g Gap) String() string { return fmt.Sprintf("%s: %s; %s", g.Source, g.Why, g.Lost) }

// path returns where a file of the system is.
func (s System) path(name string) string {
	if s.Root == "" {
		return name
	}
	return filepath.Join(s.Root, name)
}

// maxFile bounds what is read of one file, in bytes. The symbols of a kernel with all
// its modules take some 20 MiB.
const maxFile = 1 << 30

// read returns what is in a text file.
func (s System) read(name string) ([]byte, error) {
	f, err := os.Open(s.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = errTooLarge
	}
	return text, err
}

var (
	errTooLarge = errors.New("it is too large for what it should be")
	errEmpty    = errors.New("it is empty")
)

// line returns what is in a file of one line.
func (s System) line(name string) (string, error) {
	text, err := s.read(name)
	return strings.TrimSpace(string(text)), err
}

// Release returns what the kernel that runs says of its version; the zero value where
// it does not.
func (s System) Release() kernel.Identity {
	if banner, err := s.line(procVersion); err == nil {
		if id := kernel.FromBanner(banner); id.Release != "" {
			return id
		}
	}
	release, _ := s.line(osRelease)
	return kernel.FromRelease(release)
}

// first returns the first of the files that can be read; else its error is that of
// the first.
func (s System) first(names ...string) (text []byte, name string, err error) {
	for _, name := range names {
		text, e := s.read(name)
		if e == nil {
			return text, name, nil
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) && !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}
	return nil, names[0], err
}

// why says in a few words why a file is not there or cannot be read.
func why(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "not there"
	}
	return err.Error()
}
