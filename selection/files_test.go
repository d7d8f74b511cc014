package selection

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files are found as people name them: by what a library or program is called, by a path
// or by a pattern that only one path has.
func TestFindFile(t *testing.T) {
	dir := t.TempDir()
	program := []byte("\x7fELF, as far as is looked at")
	for name, data := range map[string][]byte{
		"lib/libone.so.1": program, "lib/libone.so.1.2.3": program, "lib/libone.so": []byte("INPUT(libone.so.1)"),
		"lib/ld-linux-x.so.2": program, "bin/tool": program, "bin/script": []byte("#!/bin/sh\n"), "bin/empty": nil,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	libraries, programs := libraryDirs, programDirs
	defer func() { libraryDirs, programDirs = libraries, programs }()
	libraryDirs, programDirs = []string{dir + "/l*b", dir + "/absent"}, []string{dir + "/bin"}
	for _, c := range []struct{ name, want, wrong string }{
		{"one", "lib/libone.so.1", ""}, // not the script for linkers, nor the longer name
		{"libone", "lib/libone.so.1", ""},
		{"libone.so.1", "lib/libone.so.1", ""},
		{"ld", "lib/ld-linux-x.so.2", ""},
		{"tool", "bin/tool", ""},
		{"script", "", "there is no program or library script in the usual folders"},
		{"empty", "", "there is no program or library empty"},
		{"absent", "", "there is no program or library absent"},
		{dir + "/bin/tool", "bin/tool", ""},
		{dir + "/bin/t*l", "bin/tool", ""},
		{dir + "/bin/gone", "bin/gone", ""}, // opening it says what is wrong
		{dir + "/bin/gone*", "bin/gone*", ""},
		{dir + "/lib/libone*", "", "it stands for several files: give one of them"},
	} {
		got, err := FindFile(c.name)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want %s", c.name, err, c.wrong)
			}
			continue
		}
		if rel, _ := filepath.Rel(dir, got); err != nil || rel != c.want {
			t.Errorf("%s: %q, %v; want %s", c.name, got, err, c.want)
		}
	}
}
