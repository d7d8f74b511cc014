package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, test := range []struct{ name, file, text, want string }{
		{"comment", "a.go", "package a\n\n// f is behind g.\nvar f int // Nobody reads it\n", `3: "behind" 4: "Nobody"`},
		{"over two lines", "a.go", "package a\n\n// f stands in\n// front of g.\nvar f int\n", `3: "in\n// front of"`},
		{"message", "a.go", "package a\n\nvar f = \"amid the call\"\n", `3: "amid"`},
		{"name", "a.go", "package a\n\nvar behind = \"behind\"\n", ""},
		{"part of a word", "a.go", "package a\n\n// amidships\nvar f int\n", ""},
		{"page", "a.md", "one\ntwo in front of three\n", `2: "in front of"`},
		{"C", "a.c", "/* behind */\n", `1: "behind"`},
		{"another kind of file", "a.txt", "behind\n", ""},
		{"test data", "testdata/a.md", "behind\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, test.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(test.text), 0o666); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			found, err := check(&out, dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				line = strings.TrimPrefix(line, path+":")
				said, _, _ := strings.Cut(line, ": say ")
				got = append(got, said)
			}
			if list := strings.Join(got, " "); list != test.want || found != len(got) {
				t.Errorf("%d: %s, want %s", found, list, test.want)
			}
		})
	}
}
