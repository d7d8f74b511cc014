package main

import (
	"bytes"
	"context"
	"debug/elf"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// walked is a file that may be ELF, or an error that stands for one.
type walked struct {
	path  string
	named bool // the user named it: it is no folder
	err   error
}

// walk calls visit with every regular file in the trees of roots, in the order of
// their names, and with what cannot be read. Links are not followed, other than a
// root itself, and file systems that are no storage, such as /proc, are left out.
func walk(ctx context.Context, roots []string, visit func(walked)) {
	for _, root := range roots {
		info, err := os.Stat(root)
		switch {
		case err != nil:
			visit(walked{path: root, named: true, err: err})
		case !info.IsDir():
			visit(walked{path: root, named: true})
		default:
			walkTree(ctx, root, visit)
		}
	}
}

func walkTree(ctx context.Context, root string, visit func(walked)) {
	start := root
	if !strings.HasSuffix(start, string(filepath.Separator)) {
		start += string(filepath.Separator) // a link to a folder is followed
	}
	// What the function returns ends the walk: that is for Ctrl-C only.
	_ = filepath.WalkDir(start, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return fs.SkipAll
		}
		if path == start {
			path = root
		}
		switch {
		case err != nil:
			visit(walked{path: path, err: err})
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir():
			if isPseudo(path) {
				return fs.SkipDir
			}
		case d.Type().IsRegular():
			visit(walked{path: path})
		}
		return nil
	})
}

// openRegular opens a file for reading, without waiting for anything: what has become
// a FIFO or a link since it was listed is not opened or not read.
func openRegular(w walked) (f *os.File, info fs.FileInfo, err error) {
	flags := os.O_RDONLY | openAtOnce
	if !w.named {
		flags |= openNoLink
	}
	if f, err = os.OpenFile(w.path, flags, 0); err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// kernelMagic is what the boot header of an x86 kernel has at kernelMagicAt
// [Documentation/arch/x86/boot.rst].
const (
	kernelMagic   = "HdrS"
	kernelMagicAt = 0x202
)

// namesELF reports whether there is an ELF file at a path.
func namesELF(path string) bool {
	f, _, err := openRegular(walked{path: path, named: true})
	if err != nil {
		return false
	}
	defer f.Close()
	return looksELF(path, f)
}

// looksELF reports whether a file is ELF by its first bytes, or a kernel or module that
// holds one: those are packed, and so are many files that hold none.
func looksELF(path string, f io.ReaderAt) bool {
	var head [kernelMagicAt + len(kernelMagic)]byte
	n, _ := f.ReadAt(head[:], 0) // it may be shorter
	if bytes.HasPrefix(head[:n], []byte(elf.ELFMAG)) {
		return true
	}
	if n == len(head) && string(head[kernelMagicAt:]) == kernelMagic {
		return true
	}
	name := filepath.Base(path)
	return strings.HasPrefix(name, "vmlinu") || strings.Contains(name, ".ko.")
}
