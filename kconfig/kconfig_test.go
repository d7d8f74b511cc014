package kconfig

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"
)

const debian = `#
# Automatically generated file; DO NOT EDIT.
# Linux/x86 6.1.176 Kernel Configuration
#
CONFIG_CC_VERSION_TEXT="gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0"
CONFIG_HZ=250
CONFIG_PREEMPTION=y
# CONFIG_X86_KERNEL_IBT is not set
CONFIG_KPROBES=y
CONFIG_RETPOLINE=y
CONFIG_IKCONFIG=m
`

func pack(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRead(t *testing.T) {
	for _, form := range []struct {
		name string
		data []byte
	}{
		{"plain", []byte(debian)},
		{"gzip", pack(t, debian)},
		{"lines of DOS", []byte(strings.ReplaceAll(debian, "\n", "\r\n"))},
	} {
		t.Run(form.name, func(t *testing.T) {
			c, err := Read(bytes.NewReader(form.data))
			if err != nil {
				t.Fatal(err)
			}
			if c.Release != "6.1.176" {
				t.Errorf("release %q", c.Release)
			}
			for name, want := range map[string]string{
				"PREEMPTION": "y", "X86_KERNEL_IBT": "n", "IKCONFIG": "m", "HZ": "250",
				"CC_VERSION_TEXT": "gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0", "CFI_CLANG": "n",
			} {
				if got := c.Value(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestEnabled(t *testing.T) {
	c, err := Read(strings.NewReader(debian))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		names []string
		want  bool
	}{
		{"built in", []string{"KPROBES"}, true},
		{"a module", []string{"IKCONFIG"}, true},
		{"not set", []string{"X86_KERNEL_IBT"}, false},
		{"not in the file", []string{"CFI_CLANG"}, false},
		{"a number", []string{"HZ"}, false},
		{"by an older name", []string{"MITIGATION_RETPOLINE", "RETPOLINE"}, true},
		{"none", nil, false},
	} {
		if got := c.Enabled(tc.names...); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	if new(Config).Enabled("KPROBES") {
		t.Error("the zero value has an option")
	}
}

func TestReadRefuses(t *testing.T) {
	var line *LineError
	for _, tc := range []struct {
		name, data string
		line       int // 0: another error
	}{
		{"empty", "", 0},
		{"comments only", "# a\n#b\n", 0},
		{"another kind of file", "CONFIG_A=y\nhello\n", 2},
		{"an ELF file", "\x7fELF\x02\x01\x01\x00", 1},
		{"gzip cut off", string(pack(t, debian)[:40]), 0},
		{"gzip header only", "\x1f\x8b", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tc.data))
			if err == nil {
				t.Fatal("accepted")
			}
			if got := errors.As(err, &line); got != (tc.line > 0) || got && line.Line != tc.line {
				t.Errorf("%v", err)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(debian))
	f.Add(pack(f, debian))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := Read(bytes.NewReader(data)); (c == nil) == (err == nil) {
			t.Errorf("%v, error %v", c, err)
		}
	})
}
