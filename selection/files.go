package selection

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"xol/events"
)

// libraryDirs are where libraries are that are named without a folder, besides those
// of the machine's architecture.
var libraryDirs = []string{"/lib/*-linux-*", "/usr/lib/*-linux-*", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"}

// programDirs are where programs are.
var programDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// libraryNames returns patterns for the names that a library's file may have where
// people call it name: "libc" or "c" for libc.so.6, "ld" for ld-linux-x86-64.so.2.
func libraryNames(name string) []string {
	return []string{
		name, name + ".[0-9]*", name + ".so", name + ".so.*", "lib" + name + ".so", "lib" + name + ".so.*",
		name + "-[0-9]*.so", "lib" + name + "-[0-9]*.so", name + "-linux*.so.[0-9]",
	}
}

// FindFile returns the path of a program or library on this machine as tracers name
// it: "libc" for libc.so.6, "bash" for what the shell would start.
func FindFile(name string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return onlyMatch(name)
	}
	var found []string
	for _, dir := range slices.Concat(libraryDirs, programDirs) {
		for _, pattern := range libraryNames(name) {
			paths, _ := filepath.Glob(filepath.Join(dir, pattern))
			found = append(found, slices.DeleteFunc(paths, isOther)...)
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("there is no program or library %s in the usual folders: give its path", name)
	}
	return slices.MinFunc(found, func(a, b string) int { return cmp.Compare(len(filepath.Base(a)), len(filepath.Base(b))) }), nil
}

// isOther reports whether a file is none of ELF: linkers find scripts under names of
// libraries.
func isOther(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	magic := make([]byte, len(elf.ELFMAG))
	_, err = io.ReadFull(f, magic)
	return err != nil || string(magic) != elf.ELFMAG
}

var errSeveralFiles = errors.New("it stands for several files: give one of them")

// onlyMatch returns the one file that a path with patterns stands for, or the path
// itself.
func onlyMatch(path string) (string, error) {
	if !strings.ContainsAny(path, "*?[") {
		return path, nil
	}
	paths, err := filepath.Glob(path)
	switch {
	case err != nil || len(paths) == 0:
		return path, nil // opening it says what is wrong
	case len(paths) > 1:
		return "", fmt.Errorf("%s: %w", path, errSeveralFiles)
	}
	return paths[0], nil
}

// names reports whether people mean the file of m by name: its path, one that leads to
// the same file, a pattern for either, or what they call a library or the program.
func names(name string, m *Module) bool {
	path := strings.TrimSuffix(m.Path, " (deleted)")
	base := filepath.Base(path)
	if strings.ContainsRune(name, '/') {
		return filepath.Clean(name) == path || events.Match(name, path) || sameFile(name, path)
	}
	if slices.ContainsFunc(libraryNames(name), func(pattern string) bool { return events.Match(pattern, base) }) {
		return true
	}
	return m.Program && (isVersionOf(name, base) || isProgram(name, path))
}

// isVersionOf reports whether a file is a version of a program: python3.11 of python3,
// and of python.
func isVersionOf(name, base string) bool {
	version, ok := strings.CutPrefix(base, name)
	return ok && strings.Trim(version, ".-0123456789") == ""
}

// isProgram reports whether the shell would start the file by that name.
func isProgram(name, path string) bool {
	found, err := exec.LookPath(name)
	return err == nil && sameFile(found, path)
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
