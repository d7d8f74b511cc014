// Package kconfig reads the options that a Linux kernel was built with, from a
// file as /boot/config-… and .config are, plain or packed by gzip.
package kconfig

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Prefix starts the names of options as the kernel's sources write them.
const Prefix = "CONFIG_"

// Off is the value of an option that a kernel was built without.
const Off = "n"

// maxSize bounds what is unpacked, in bytes; real files have 0.3 MB.
const maxSize = 16 << 20

// Config holds all options of one kernel. The zero value has none on.
type Config struct {
	// Release is the version of the sources as the file's first lines have it,
	// such as "6.1.176"; empty where they have none.
	Release string

	values map[string]string
}

// Value returns the value of an option, whose name goes without "CONFIG_": "y",
// "m", a number, or a string without its quotes. It is Off for an option that
// the file has not: what an option depends on being off removes it.
func (c *Config) Value(name string) string {
	if v, ok := c.values[name]; ok {
		return v
	}
	return Off
}

// Enabled reports whether any of the options is built in or a module. Options
// are renamed from version to version.
func (c *Config) Enabled(names ...string) bool {
	for _, name := range names {
		if v := c.Value(name); v == "y" || v == "m" {
			return true
		}
	}
	return false
}

// ErrNone says that data holds no options.
var ErrNone = errors.New("it is no kernel configuration: it sets no option")

// LineError says which line is not one of a configuration.
type LineError struct {
	Line int // from 1
	Text string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("line %d is not one of a kernel configuration (CONFIG_NAME=value): %.40q", e.Line, e.Text)
}

var gzipMagic = []byte{0x1f, 0x8b}

// Read reads a configuration, which may be packed by gzip. It returns a
// *LineError, ErrNone, or what the reader or gzip finds wrong.
func Read(r io.Reader) (*Config, error) {
	b := bufio.NewReader(r)
	var text io.Reader = b
	if magic, _ := b.Peek(len(gzipMagic)); bytes.Equal(magic, gzipMagic) {
		unpacked, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		text = unpacked
	}
	return parse(io.LimitReader(text, maxSize))
}

var (
	header = regexp.MustCompile(`^# Linux/\S+ (\S+) .*Configuration`)
	unset  = regexp.MustCompile(`^# CONFIG_(\w+) is not set$`)
	option = regexp.MustCompile(`^CONFIG_(\w+)=(.*)$`)
)

func parse(r io.Reader) (*Config, error) {
	c := &Config{values: make(map[string]string)}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxSize)
	for n := 1; lines.Scan(); n++ {
		if !c.line(strings.TrimSpace(lines.Text())) {
			return nil, &LineError{n, lines.Text()}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(c.values) == 0 {
		return nil, ErrNone
	}
	return c, nil
}

// line takes one line in, and reports whether it is one of a configuration.
func (c *Config) line(s string) bool {
	if m := option.FindStringSubmatch(s); m != nil {
		c.values[m[1]] = strings.Trim(m[2], `"`)
		return true
	}
	if m := unset.FindStringSubmatch(s); m != nil {
		c.values[m[1]] = Off
		return true
	}
	if m := header.FindStringSubmatch(s); m != nil && c.Release == "" {
		c.Release = m[1]
	}
	return s == "" || s[0] == '#'
}
