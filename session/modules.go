//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"xol/analyze"
	"xol/classify"
	"xol/image"
	"xol/instrument"
	"xol/machine"
	"xol/process"
)

// fileKey tells files apart.
type fileKey struct{ device, inode uint64 }

// file is a file that processes have mapped, with what is wanted in it.
type file struct {
	module *Module // of the first process
	placed []*Placed
	err    error
}

// loaded is a file in an address space.
type loaded struct {
	fileKey
	bias uint64
	text machine.Range // the mapping that it was found by
}

// update puts probes into files that a process has mapped newly, and forgets those that
// it has no longer.
func (e *engine) update(p *process.Process) error {
	s := e.spaces[p]
	if s == nil {
		return nil
	}
	maps, err := p.Maps()
	if err != nil {
		return err
	}
	s.forget(maps)
	for i := range maps {
		m := &maps[i]
		if m.Perm&machine.PermExec == 0 || m.Inode == 0 || s.knows(m) {
			continue
		}
		if err := e.load(p, s, m, maps); err != nil {
			return err
		}
		if maps, err = p.Maps(); err != nil {
			return err
		}
	}
	return nil
}

func (s *space) knows(m *process.Mapping) bool {
	return slices.ContainsFunc(s.loaded, func(l loaded) bool {
		return l.fileKey == fileKey{m.Device, m.Inode} && l.text.Lo <= m.Lo && m.Hi <= l.text.Hi
	})
}

// load puts probes into a file.
func (e *engine) load(p *process.Process, s *space, m *process.Mapping, maps []process.Mapping) error {
	f := e.session.open(p, m, s.program)
	s.loaded = append(s.loaded, loaded{fileKey: fileKey{m.Device, m.Inode}, text: m.Range})
	l := &s.loaded[len(s.loaded)-1]
	if f.err != nil || f.module == nil {
		return nil
	}
	bias, ok := biasOf(f.module.Image, m)
	if !ok {
		return nil
	}
	l.bias = bias
	if !s.program {
		s.program = true
	}
	if len(f.placed) == 0 {
		return nil
	}
	return e.session.put(e, p, s, f, bias, m, maps)
}

// biasOf returns what addresses in a mapping are above those in the file.
func biasOf(img *image.Image, m *process.Mapping) (uint64, bool) {
	for _, r := range img.Text() {
		off, ok := img.OffsetOf(r.Addr)
		if ok && off >= m.Offset && off-m.Offset < m.Hi-m.Lo {
			return m.Lo + (off - m.Offset) - r.Addr, true
		}
	}
	return 0, false
}

// open opens a mapped file, once, and asks what is wanted in it.
func (s *Session) open(p *process.Process, m *process.Mapping, library bool) *file {
	key := fileKey{m.Device, m.Inode}
	if f := s.files[key]; f != nil {
		return f
	}
	f := &file{}
	s.files[key] = f
	f.module, f.err = openModule(p, m)
	if f.err != nil {
		return f
	}
	f.module.Program, f.module.PID = !library, p.PID()
	f.module.Bias, _ = biasOf(f.module.Image, m)
	var probes []Probe
	if probes, f.err = s.opt.Select(f.module); f.err != nil {
		return f
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, probe := range probes {
		placed := &Placed{Module: f.module, Probe: probe, index: len(s.placed)}
		s.placed = append(s.placed, placed)
		f.placed = append(f.placed, placed)
	}
	return f
}

// at returns a probe by its index.
func (s *Session) at(i int) *Placed {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if i < 0 || i >= len(s.placed) {
		return nil
	}
	return s.placed[i]
}

// openModule opens a mapped file as the process sees it.
func openModule(p *process.Process, m *process.Mapping) (*Module, error) {
	paths := []string{
		fmt.Sprintf("/proc/%d/map_files/%x-%x", p.PID(), m.Lo, m.Hi),
		fmt.Sprintf("/proc/%d/root%s", p.PID(), m.Path),
	}
	var errs []error
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Ino != m.Inode {
			errs = append(errs, fmt.Errorf("%s is another file by now", m.Path))
			continue
		}
		img, err := image.OpenFile(path, image.Options{})
		if err != nil {
			return nil, err
		}
		a, err := analyze.New(img, analyze.Options{Profile: classify.ISA, Optimize: true, AsFile: true})
		if err != nil {
			return nil, err
		}
		return &Module{Path: m.Path, Image: img, Analysis: a}, nil
	}
	return nil, errors.Join(errs...)
}

// put plans the probes of a file and puts them into a process.
func (s *Session) put(e *engine, p *process.Process, sp *space, f *file, bias uint64, m *process.Mapping, maps []process.Mapping) error {
	planned, err := s.plan(f, bias)
	if err != nil || len(planned.plans) == 0 {
		return err
	}
	mem := instrument.Memory{Free: freeMemory(maps), Needed: moduleRange(f.module.Image, bias)}
	layout, err := planned.planner.Lay(planned.plans, &mem)
	if err != nil {
		s.failAll(f, err)
		return nil
	}
	if s.opt.DryRun {
		planned.settle(s, nil)
		return nil
	}
	text := func(dst []byte, addr uint64) error {
		_, err := f.module.Image.Code(dst[:0], addr-bias, uint64(len(dst)))
		return err
	}
	if err := sp.install(p, layout, text); err != nil {
		s.failAll(f, err)
		return nil
	}
	var counts *counters
	if layout.Counters.Hi > layout.Counters.Lo {
		counts = sp.counts[len(sp.counts)-1]
	}
	planned.settle(s, counts)
	return nil
}

// moduleRange returns the addresses that a file's memory lies between in a process.
func moduleRange(img *image.Image, bias uint64) machine.Range {
	r := machine.Range{Lo: ^uint64(0)}
	for _, m := range img.Memory() {
		r.Lo, r.Hi = min(r.Lo, m.Addr+bias), max(r.Hi, m.End()+bias)
	}
	return r
}

// Addresses that a layout keeps away from: the lowest, what the heap and the stack may
// grow into, and what is not the program's.
const (
	lowest    = 1 << 16
	highest   = 1<<47 - 1<<12
	heapRoom  = 1 << 30
	stackRoom = 1 << 27
)

// freeMemory returns what a process has no memory at, nor is likely to want any.
func freeMemory(maps []process.Mapping) (free []machine.Range) {
	at := uint64(lowest)
	add := func(hi uint64) {
		if hi > at {
			free = append(free, machine.Range{Lo: at, Hi: hi})
		}
	}
	for i := range maps {
		m := &maps[i]
		lo, hi := m.Lo, m.Hi
		switch m.Path {
		case "[heap]":
			hi += heapRoom
		case "[stack]":
			lo -= stackRoom
		}
		if lo > highest {
			break
		}
		add(lo)
		at = max(at, hi)
	}
	add(highest)
	return free
}

// planned is what instrument has planned for a file.
type planned struct {
	planner *instrument.Planner
	file    *file
	plans   []*instrument.Plan
	places  []plannedPlace
}

type plannedPlace struct {
	placed *Placed
	place  instrument.Place
	plan   *instrument.Plan
}

// plan plans the probes of a file, function by function over all CPUs.
func (s *Session) plan(f *file, bias uint64) (*planned, error) {
	a := f.module.Analysis
	planner, err := instrument.NewPlanner(a, bias)
	if err != nil {
		return nil, err
	}
	out := &planned{planner: planner, file: f}
	wanted := map[uint64][]*Placed{} // by function
	var functions []image.Function
	for _, placed := range f.placed {
		fn, ok := a.FunctionAt(placed.Probe.Addr)
		if !ok {
			placed.Refused = &ruleNoFunction
			continue
		}
		if wanted[fn.Addr] == nil {
			functions = append(functions, fn)
		}
		wanted[fn.Addr] = append(wanted[fn.Addr], placed)
	}
	slices.SortFunc(functions, func(a, b image.Function) int { return cmp.Compare(a.Addr, b.Addr) })
	type result struct {
		addr uint64
		*instrument.Function
		err error
	}
	err = analyze.Each(context.Background(), a, functions, func(r *analyze.Result) result {
		fn, err := planner.Function(r, wantsOf(wanted[r.Addr]))
		return result{r.Addr, fn, err}
	}, func(r result) error {
		out.add(wanted[r.addr], r.Function, r.err)
		return nil
	})
	return out, err
}

func wantsOf(list []*Placed) []instrument.Want {
	wants := make([]instrument.Want, len(list))
	for i, p := range list {
		kind := instrument.Count
		if p.Probe.Action == Trace {
			kind = instrument.Gate
		}
		wants[i] = instrument.Want{Addr: p.Probe.Addr, Kind: kind, Returns: p.Probe.Return, Number: p.index}
	}
	return wants
}

// add adds what was planned for a function.
func (out *planned) add(list []*Placed, fn *instrument.Function, err error) {
	if err != nil {
		for _, p := range list {
			p.Err = err
		}
		return
	}
	for _, r := range fn.Refusals {
		list[r.Want].Refused = r.Rule
	}
	out.plans = append(out.plans, fn.Plans...)
	for _, place := range fn.Places {
		out.places = append(out.places, plannedPlace{list[place.Want], place, fn.Plans[place.Plan]})
	}
}

// settle notes where probes have come to be, and how they are counted.
func (out *planned) settle(s *Session, counts *counters) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, p := range out.places {
		c := p.plan.Copy()
		if c == nil {
			p.placed.Err = instrument.ErrNoRoom
			continue
		}
		p.placed.Way = Breakpoint
		if p.plan.Jumps() {
			p.placed.Way = Jump
		}
		if counts != nil && p.place.Run >= 0 {
			p.placed.place.counts = append(p.placed.place.counts, countRef{counts, c.Counter(p.place.Run), p.place.Step})
		}
	}
}

func (s *Session) failAll(f *file, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, p := range f.placed {
		if p.Refused == nil && p.Way == None {
			p.Err = err
		}
	}
}

// placement is where a probe is, in all processes.
type placement struct{ counts []countRef }

// countRef is where a probe is counted: by the counter of a run that its step is in.
type countRef struct {
	counters *counters
	addr     uint64
	step     int
}

var ruleNoFunction = classify.Rule{
	ID:     "process/no-function",
	Reason: "the address is in no function that the file tells of",
}

// reasonOf returns the word by which a Summary counts an error.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, instrument.ErrNoRoom):
		return "memory"
	case errors.Is(err, ErrText):
		return "text"
	}
	return "error"
}
