package main

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xol/analyze"
	"xol/events"
	"xol/image"
	"xol/notation"
	"xol/registration"
)

// viaFlag is the flag --via, unset unless it is given: the notation of a probe may
// say by which interface it is registered.
type viaFlag struct {
	via registration.Via
	set bool
}

// Set, String and Type implement pflag.Value.
func (f *viaFlag) Set(s string) error {
	via, ok := registration.Parse(s)
	if !ok {
		return fmt.Errorf("want %s", strings.Join(registration.Names(), ", "))
	}
	f.via, f.set = via, true
	return nil
}

func (f *viaFlag) String() string { return "" }
func (f *viaFlag) Type() string   { return strings.Join(registration.Names(), "|") }

func (f *viaFlag) addTo(cmd *cobra.Command, set *pflag.FlagSet) {
	set.Var(f, "via", "by which interface a kprobe is registered (default as PLACE is written, else register)")
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions(registration.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// of returns the interface for a probe: the one that was given, else the one that the
// tool uses in whose notation it is.
func (f *viaFlag) of(p *notation.Probe) registration.Via {
	switch {
	case f.set:
		return f.via
	case p.Kind == notation.Fentry:
		return registration.BPF
	case p.Tool == notation.Tracefs || p.Tool == notation.Perf: // perf probe writes to kprobe_events
		return registration.KprobeEvents
	case p.Tool == notation.Bpftrace:
		return registration.Perf
	}
	return registration.Register
}

// fileOf returns the file that a probe is in: the one given, or the one that the
// probe names.
func fileOf(given string, p *notation.Probe) (string, error) {
	switch {
	case given != "":
		return given, nil
	case p.File == "":
		return "", fmt.Errorf("%q names no file: give the file before it", p.Text)
	}
	return findFile(p.File)
}

// places returns where a probe may stand in a file, at least one place. The error is
// that of package image, or says what the file is not.
func places(img *image.Image, p *notation.Probe) ([]image.Place, error) {
	switch {
	case p.Kind == notation.Marker:
		return markerPlaces(img, p)
	case p.Module != "" && img.Kind() == image.KindKernel:
		return nil, fmt.Errorf("%s is a module, whose symbols the kernel's file has not: give the file %s.ko", p.Module, p.Module)
	}
	found, err := img.Resolve(p.Place)
	if err != nil || p.Source == "" {
		return found, err
	}
	inSource := slices.DeleteFunc(found, func(at image.Place) bool {
		file, _, _ := img.Line(at.Addr)
		return file != p.Source && !strings.HasSuffix(file, "/"+p.Source)
	})
	if len(inSource) == 0 {
		return nil, fmt.Errorf("%s is not in %s, or the file has no source lines", p.Place, p.Source)
	}
	return inSource, nil
}

// markerPlaces returns where the static markers stand that a probe names.
func markerPlaces(img *image.Image, p *notation.Probe) (found []image.Place, err error) {
	markers, err := img.Markers()
	if err != nil {
		return nil, err
	}
	for _, m := range markers {
		if events.Match(p.Name, m.Name) && (p.Provider == "" || events.Match(p.Provider, m.Provider)) {
			name, base := img.Symbolize(m.Location)
			found = append(found, image.Place{Addr: m.Location, Symbol: name, Offset: m.Location - base})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the file has no static marker %s (xol analyze --markers lists them)", strings.TrimPrefix(p.Provider+":"+p.Name, ":"))
	}
	return found, nil
}

// request returns what the kernel is asked for by a probe at a place that it may mean.
func request(p *notation.Probe, at *image.Place) analyze.Request {
	q := analyze.Request{Addr: at.Addr, Module: p.Module, Return: p.Return}
	if !isAddress(p.Place) {
		q.Symbol, q.Offset = image.SplitOffset(p.Place)
		if strings.ContainsRune(q.Symbol, ':') { // a source line, which tools turn into this
			q.Symbol, q.Offset = at.Symbol, at.Offset
		}
	}
	return q
}

func isAddress(place string) bool {
	return strings.HasPrefix(place, "0x") || strings.HasPrefix(place, "file:")
}

// libraryDirs are where libraries are that are named without a folder, besides those
// of the machine's architecture.
var libraryDirs = []string{"/lib/*-linux-*", "/usr/lib/*-linux-*", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"}

// programDirs are where programs are.
var programDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// findFile returns the path of a program or library as tracers name it: "libc" for
// libc.so.6, "bash" for what the shell would start.
func findFile(name string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return onlyMatch(name)
	}
	patterns := []string{name, name + ".so", name + ".so.*", "lib" + name + ".so.*"}
	var found []string
	for _, dir := range slices.Concat(libraryDirs, programDirs) {
		for _, pattern := range patterns {
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
		return "", fileError(path, errSeveralFiles)
	}
	return paths[0], nil
}
