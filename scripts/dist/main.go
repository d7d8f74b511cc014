// Dist builds xol for each platform, without the engine and without a C library, and
// packs it with its pages and completions.
//
//	go run ./scripts/dist -version v1.2.3 [-targets linux/amd64,…] [-out dist]
//
// The same sources give the same archives, byte for byte: all in them has the time of
// the commit, and SHA256SUMS has their sums.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const everywhere = "linux/amd64,linux/arm64,linux/ppc64le,darwin/amd64,darwin/arm64,windows/amd64"

func main() {
	version := flag.String("version", "", "what xol version says (default what git tells)")
	targets := flag.String("targets", everywhere, "the `OS/ARCH,…` to build for")
	out := flag.String("out", "dist", "the `FOLDER` of the archives")
	flag.Parse()
	if err := run(*version, strings.Split(*targets, ","), *out); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// file is a file of an archive.
type file struct {
	name string
	mode int64
	data []byte
}

func run(version string, targets []string, out string) error {
	if version == "" {
		v, err := output("scripts/version")
		if err != nil {
			return err
		}
		version = v
	}
	common, err := commonFiles(version)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, target := range targets {
		goos, goarch, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("%q is no target (want OS/ARCH)", target)
		}
		name := fmt.Sprintf("xol-%s-%s-%s", strings.TrimPrefix(version, "v"), goos, goarch)
		program, err := build(version, goos, goarch)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		files := append([]file{{exe(goos), 0o755, program}}, common...)
		packed, ext, err := pack(goos, name, files, commitTime())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name+ext), packed, 0o644); err != nil {
			return err
		}
		fmt.Println(filepath.Join(out, name+ext))
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(packed), name+ext)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func exe(goos string) string {
	if goos == "windows" {
		return "xol.exe"
	}
	return "xol"
}

// build returns a program for a platform.
func build(version, goos, goarch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "xol-dist-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "xol")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", program, "./cmd/xol")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(program)
}

// commonFiles are those of every platform: texts, pages for man, completions.
func commonFiles(version string) (files []file, err error) {
	for _, name := range []string{"README.md", "LICENSE", "CHANGELOG.md"} {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, data})
	}
	pages, err := filepath.Glob("docs/man/*.1")
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"man/" + filepath.Base(page), 0o644, data})
	}
	program, err := build(version, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	host := filepath.Join(os.TempDir(), fmt.Sprintf("xol-dist-%d", os.Getpid()))
	if err := os.WriteFile(host, program, 0o755); err != nil {
		return nil, err
	}
	defer os.Remove(host)
	for _, shell := range []struct{ name, file string }{{"bash", "xol.bash"}, {"zsh", "_xol"}, {"fish", "xol.fish"}, {"powershell", "xol.ps1"}} {
		script, err := exec.Command(host, "completion", shell.name).Output()
		if err != nil {
			return nil, fmt.Errorf("completion %s: %w", shell.name, err)
		}
		files = append(files, file{"completions/" + shell.file, 0o644, script})
	}
	return files, nil
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	return strings.TrimSpace(string(out)), err
}

// commitTime is when the sources were committed, the start of 1980 where that is not
// known: zip has nothing older.
func commitTime() time.Time {
	if s, err := output("git", "log", "-1", "--format=%cI"); err == nil {
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t.UTC()
		}
	}
	return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
}

// pack makes an archive as people on that system expect it.
func pack(goos, name string, files []file, when time.Time) (packed []byte, ext string, err error) {
	var b bytes.Buffer
	if goos == "windows" {
		err = packZip(&b, name, files, when)
		return b.Bytes(), ".zip", err
	}
	err = packTar(&b, name, files, when)
	return b.Bytes(), ".tar.gz", err
}

func packZip(w io.Writer, dir string, files []file, when time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: path.Join(dir, f.name), Method: zip.Deflate, Modified: when}
		h.SetMode(os.FileMode(f.mode))
		entry, err := z.CreateHeader(h)
		if err == nil {
			_, err = entry.Write(f.data)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}

func packTar(w io.Writer, dir string, files []file, when time.Time) error {
	gz, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(gz)
	for _, f := range files {
		h := &tar.Header{Name: path.Join(dir, f.name), Mode: f.mode, Size: int64(len(f.data)), ModTime: when, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return gz.Close()
}
