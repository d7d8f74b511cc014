package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"xol/arch"
	"xol/classify"
	"xol/image"
	"xol/kernel"
	"xol/live"
	"xol/notation"
	"xol/selection"
)

// process is a process that is asked about, with those of its files that are open.
type process struct {
	*live.Process
	app     *app
	facts   kernel.Facts
	uprobes string // profile
	files   map[*live.MappedFile]*subject
}

// processFile is a file that a process has mapped, with what is found in its memory.
type processFile struct {
	of   *process
	file *live.MappedFile

	mutex       sync.Mutex
	breakpoints map[uint64]bool
}

// openProcess opens the process of --pid, and says what it does not show.
func (a *app) openProcess(f *systemFlags, facts kernel.Facts) (*process, error) {
	system := live.System{Root: f.root}
	p, err := system.OpenProcess(f.pid)
	if err != nil {
		return nil, err
	}
	for _, g := range p.Gaps {
		a.report(errors.New(g.String()))
	}
	return &process{p, a, facts, classify.ProfileName(classify.Uprobes, system.Release().Version), make(map[*live.MappedFile]*subject)}, nil
}

func (p *process) close() error {
	errs := []error{p.Close()}
	for _, s := range p.files {
		errs = append(errs, s.img.Close())
	}
	return errors.Join(errs...)
}

// open opens one of the files; closing the process closes it.
func (p *process) open(f *live.MappedFile) (*subject, error) {
	if s := p.files[f]; s != nil {
		return s, nil
	}
	img, err := p.app.openImage(f.Path, nil)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", p.PID, err)
	}
	own := &processFile{of: p, file: f, breakpoints: make(map[uint64]bool)}
	s := &subject{img: img, path: f.Name, facts: p.facts, close: func() error { return nil }}
	s.running = &running{bias: f.Bias, placed: true, gaps: p.Gaps, process: own}
	if isa, err := arch.ByMachine(img.Machine(), img.ByteOrder()); err == nil {
		s.text = own.textOf(isa)
		if _, ok := isa.Profile(p.uprobes, classify.KernelOptions{}); ok {
			s.running.uprobes = p.uprobes
		}
	}
	p.files[f] = s
	return s, nil
}

// profile returns the one that judges uprobes in an open file.
func (p *process) profile(path string) string {
	for f, s := range p.files {
		if f.Name == path {
			return s.uprobes()
		}
	}
	return classify.Uprobe612
}

// textOf returns what asks memory for text.
func (f *processFile) textOf(isa arch.ISA) func(code []byte, addr uint64) []byte {
	var trap []byte
	if prober, err := arch.Probing(isa); err == nil {
		trap = prober.Breakpoint(false)
	}
	return func(code []byte, addr uint64) []byte {
		now, breakpoints := f.of.Text(f.file, code, addr, trap)
		f.mutex.Lock()
		defer f.mutex.Unlock()
		for _, at := range breakpoints {
			f.breakpoints[at] = true
		}
		return now
	}
}

// breakpointIn reports whether there is a breakpoint in a range of the file's text.
func (f *processFile) breakpointIn(lo, hi uint64) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for at := lo; at < hi; at++ {
		if f.breakpoints[at] {
			return true
		}
	}
	return false
}

// find returns the file that a probe is in, and the probe in that file's terms.
func (p *process) find(probe notation.Probe) (*subject, notation.Probe, error) {
	name := probe.File
	if name == "" {
		name = probe.Module
	}
	probe.File, probe.Module = "", ""
	switch {
	case name != "":
		found := p.Find(name)
		if len(found) == 0 {
			return nil, probe, fmt.Errorf("process %d (%s) has not mapped %s to execute; it has %s", p.PID, p.Name, name, p.names())
		}
		s, err := p.open(found[0])
		if err != nil {
			return nil, probe, err
		}
		return s, s.inImage(probe), nil
	case strings.HasPrefix(probe.Place, "0x"):
		return p.findAddress(probe)
	case probe.Kind == notation.Marker || strings.HasPrefix(probe.Place, "file:"):
		s, err := p.open(&p.Files[0])
		return s, probe, err
	}
	return p.findSymbol(probe)
}

// findAddress finds the file that an address of the process is in.
func (p *process) findAddress(probe notation.Probe) (*subject, notation.Probe, error) {
	addr, err := strconv.ParseUint(probe.Place[2:], 16, 64)
	if err != nil {
		return nil, probe, fmt.Errorf("%s: the address is no hexadecimal number of 64 bits", probe.Place)
	}
	f, what := p.FileAt(addr)
	switch {
	case f != nil:
		s, err := p.open(f)
		if err != nil {
			return nil, probe, err
		}
		return s, s.inImage(probe), nil
	case what != "":
		return nil, probe, fmt.Errorf("%#x of process %d is in %s, which is no text of an ELF file", addr, p.PID, what)
	}
	return nil, probe, fmt.Errorf("%#x of process %d is in no text of an ELF file that it has mapped", addr, p.PID)
}

// findSymbol looks a place up in all files, the program first.
func (p *process) findSymbol(probe notation.Probe) (found *subject, _ notation.Probe, err error) {
	var first error
	var others []string
	for i := range p.Files {
		s, err := p.open(&p.Files[i])
		if err == nil {
			_, err = selection.Places(s.img, &probe)
		}
		switch {
		case err == nil && found == nil:
			found = s
		case err == nil:
			others = append(others, s.path)
		case first == nil:
			first = err
		}
	}
	if found == nil {
		var unknown *image.SymbolNotFoundError
		if errors.As(first, &unknown) {
			first = fmt.Errorf("no file of process %d (%s) has the symbol %q: %s", p.PID, p.Name, unknown.Name, p.names())
		}
		return nil, probe, first
	}
	if len(others) > 0 {
		p.app.report(fmt.Errorf("%s is in %s, and also in %s; NAME:%s says which", probe.Place, found.path, strings.Join(others, ", "), probe.Place))
	}
	return found, probe, nil
}

// names lists the files.
func (p *process) names() string {
	const most = 8
	var names []string
	for i := range p.Files[:min(len(p.Files), most)] {
		names = append(names, p.Files[i].Name)
	}
	if n := len(p.Files) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}
