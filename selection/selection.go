// Package selection finds the places in the files of a process that probes name, as
// people write them: malloc, libc:mem*, main.c:42, usdt:./server:*:request.
package selection

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"xol/analyze"
	"xol/image"
	"xol/notation"
)

// Module is a file that a process has mapped.
type Module struct {
	Path     string
	Analysis *analyze.Analysis
	Program  bool // the main program, not a library
	Process  int  // its number
}

// Place is where a probe stands.
type Place struct {
	Probe  int    // index of the probe that names it; -1 where All does
	Addr   uint64 // in the addresses of the file
	Return bool   // at the returns of the function that starts there
	// Symbol is the function that holds the place, Offset the place's from it in bytes.
	Symbol string
	Offset uint64
	// Through is the name by which an implementation of an IFUNC is called; empty for
	// all else.
	Through string
	// Marker is the static marker that stands there; nil where none was named.
	Marker *image.Marker
}

// Selection finds places. It is safe for concurrent use.
type Selection struct {
	mu     sync.Mutex
	probes []probe
	all    []all
	// own says, of each process, which probes name a place in the program itself.
	own   map[int][]bool
	asked []Module // each file once
	first int      // the process that was asked about first
}

// probe is a probe that is wanted.
type probe struct {
	notation.Probe
	found bool
	// mapped says that the file that it names was seen; always where it names none.
	mapped bool
	err    error // why its file has no such place, where it is not that a name is missing
}

// all is a file of which every instruction is wanted.
type all struct {
	file  string // empty for the program
	found bool
}

// New returns a selection of what the probes name and, with all, of every instruction
// that may be probed in the files of these names; an empty one is the program. It
// returns a *notation.Error for a probe that no process can have.
func New(probes []notation.Probe, everything []string) (*Selection, error) {
	s := &Selection{own: make(map[int][]bool)}
	for i := range probes {
		p := probe{Probe: probes[i]}
		if p.Kind == notation.Fentry || p.Kind == notation.Kprobe && p.Tool == notation.Bpftrace {
			return nil, &notation.Error{Text: p.Text, What: "it is a probe in the kernel, and these are put into programs"}
		}
		if p.File == "" {
			p.File = p.Module
		}
		p.mapped = p.File == ""
		s.probes = append(s.probes, p)
	}
	for _, file := range everything {
		s.all = append(s.all, all{file: file})
	}
	return s, nil
}

// In returns the places in a module that are wanted. It is asked once for each module
// of each program that a process runs, first for the program itself.
//
// A probe that names no file is looked for in the program, and where that has no such
// function, in all libraries, as debuggers do. What a file only imports does not
// count. The name of an IFUNC stands for the functions that its resolver may choose.
func (s *Selection) In(ctx context.Context, m *Module) ([]Place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 {
		s.first = m.Process
	}
	if !slices.ContainsFunc(s.asked, func(asked Module) bool { return asked.Path == m.Path }) {
		s.asked = append(s.asked, *m)
	}
	if m.Program || s.own[m.Process] == nil {
		s.own[m.Process] = make([]bool, len(s.probes))
	}
	own := s.own[m.Process]
	var places []Place
	for i := range s.probes {
		p := &s.probes[i]
		if own[i] || !p.wants(m) {
			continue
		}
		p.mapped = true
		found, err := p.in(m)
		if err != nil {
			p.fail(err)
			continue
		}
		p.found, own[i] = true, m.Program && p.File == ""
		for k := range found {
			found[k].Probe = i
		}
		places = append(places, found...)
	}
	for i := range s.all {
		a := &s.all[i]
		if a.file == "" && m.Program && m.Process == s.first || a.file != "" && names(a.file, m) {
			a.found = true
			found, err := everyInstruction(ctx, m.Analysis)
			if err != nil {
				return nil, err
			}
			places = append(places, found...)
		}
	}
	return places, nil
}

// wants reports whether the probe may be in the file.
func (p *probe) wants(m *Module) bool {
	switch {
	case p.File != "":
		return names(p.File, m)
	case strings.HasPrefix(p.Place, "0x") || strings.HasPrefix(p.Place, "file:"):
		return m.Program // a number means something in one file only
	}
	return true
}

// fail notes why the probe names nothing in a file. That a name is missing in one is
// no news: another may have it.
func (p *probe) fail(err error) {
	var missing *image.SymbolNotFoundError
	if !errors.As(err, &missing) && p.err == nil {
		p.err = err
	}
}

// shortName returns what people call a file.
func shortName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
