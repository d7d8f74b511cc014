//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"

	"xol/analyze"
	"xol/arch"
	"xol/classify"
	"xol/detour"
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
	timers int // of them
	err    error
}

// plan opens the files that a process has mapped newly, and plans what is wanted in them.
func (s *Session) plan(m *mapped) (layouts []*instrument.Layout, err error) {
	s.pending = nil
	taken := freeMemory(m.All)
	for i := range m.New {
		l := &m.New[i]
		f := s.open(m.PID, l, m.First && i == 0)
		if f.err != nil || len(f.placed) == 0 {
			continue
		}
		bias, ok := biasOf(f.module.Image, l)
		if !ok {
			continue
		}
		planned, err := s.planFile(f, bias)
		if err != nil {
			return nil, err
		}
		mem := instrument.Memory{Free: taken, Needed: moduleRange(f.module.Image, bias), Timers: f.timers}
		if f.timers > 0 {
			mem.Scale = s.scale()
		}
		layout, err := planned.planner.Lay(planned.plans, &mem)
		if err != nil {
			planned.fail(err)
			continue
		}
		planned.layout = layout
		if s.opt.DryRun {
			planned.settle(s, nil)
			continue
		}
		taken = without(taken, layout)
		s.pending, layouts = append(s.pending, planned), append(layouts, layout)
	}
	return layouts, nil
}

// without takes what a layout maps from free memory.
func without(free []machine.Range, l *instrument.Layout) (left []machine.Range) {
	used := append(slices.Clone(l.Code), l.Counters, l.Table)
	slices.SortFunc(used, func(a, b machine.Range) int { return cmp.Compare(a.Lo, b.Lo) })
	for _, f := range free {
		for _, u := range used {
			if u.Lo < f.Hi && f.Lo < u.Hi {
				if u.Lo > f.Lo {
					left = append(left, machine.Range{Lo: f.Lo, Hi: u.Lo})
				}
				f.Lo = u.Hi
			}
		}
		if f.Lo < f.Hi {
			left = append(left, f)
		}
	}
	return left
}

// installed learns what has become of a layout.
func (s *Session) installed(i *installed) error {
	planned := s.pending[i.Index]
	if i.Err != nil {
		planned.fail(i.Err)
		return nil
	}
	var c *counters
	if i.Counters >= 0 {
		f, err := s.engine.file(i.Counters)
		if err != nil {
			return err
		}
		if c, err = openCounters(planned.layout.Counters, f); err != nil {
			return err
		}
		s.mutex.Lock()
		s.counters = append(s.counters, c)
		s.mutex.Unlock()
	}
	planned.settle(s, c)
	return nil
}

// corrected notes by what counts are wrong.
func (s *Session) corrected(fix instrument.Correction) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, c := range slices.Backward(s.counters) {
		if c.Holds(fix.Counter) {
			c.correct(fix)
			break
		}
	}
	return nil
}

// hit tells the caller of a hit.
func (s *Session) hit(h *gateHit, mem machine.Memory) error {
	p := s.at(h.Number)
	if p == nil || s.opt.Hit == nil {
		return nil
	}
	p.place.told.Add(1)
	s.opt.Hit(&Hit{
		Placed: p, Registers: registers{p.Module.registers, h.Registers}, Memory: mem, Time: h.Time, PID: h.PID, TID: h.TID,
	})
	return nil
}

// registers are those of a thread that has stopped.
type registers struct {
	file  *machine.File
	state machine.State
}

func (r registers) Reg(i int) uint64 { return r.file.Word(r.state, i) }

func (registers) SetReg(int, uint64) {}

// exited learns of the end of a process.
func (s *Session) exited(pid int, status syscall.WaitStatus) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if pid == s.pid {
		s.status = &status
	}
	return nil
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
func (s *Session) open(pid int, m *process.Mapping, program bool) *file {
	key := fileKey{m.Device, m.Inode}
	if f := s.files[key]; f != nil {
		return f
	}
	f := &file{}
	s.files[key] = f
	f.module, f.err = openModule(pid, m)
	if f.err != nil {
		return f
	}
	f.module.Program, f.module.PID = program, pid
	f.module.Bias, _ = biasOf(f.module.Image, m)
	var probes []Probe
	if probes, f.err = s.opt.Select(f.module); f.err != nil {
		return f
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, probe := range probes {
		placed := &Placed{Module: f.module, Probe: probe, index: len(s.placed), timer: f.timers}
		if probe.Action == Time {
			f.timers++
		}
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

// debugDirs are where the names are that were stripped off files.
var debugDirs = []string{"/usr/lib/debug"}

// openModule opens a mapped file as the process sees it.
func openModule(pid int, m *process.Mapping) (*Module, error) {
	paths := []string{
		fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.Lo, m.Hi),
		fmt.Sprintf("/proc/%d/root%s", pid, m.Path),
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
		img, err := image.OpenFile(path, image.Options{Demangle: true, DebugDirs: debugDirs})
		if err != nil {
			return nil, err
		}
		a, err := analyze.New(img, analyze.Options{Profile: classify.ISA, Optimize: true, AsFile: true})
		if err != nil {
			return nil, err
		}
		isa, err := arch.Probing(a.ISA)
		if err != nil {
			return nil, err
		}
		return &Module{Path: m.Path, Image: img, Analysis: a, registers: isa.Registers()}, nil
	}
	return nil, errors.Join(errs...)
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
	layout  *instrument.Layout
}

type plannedPlace struct {
	placed *Placed
	place  instrument.Place
	plan   *instrument.Plan
}

// planFile plans the probes of a file, function by function over all CPUs.
func (s *Session) planFile(f *file, bias uint64) (*planned, error) {
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
		of []*Placed // of the wants
		*instrument.Function
		err error
	}
	err = analyze.Each(context.Background(), a, functions, func(r *analyze.Result) result {
		wants, of := wantsOf(wanted[r.Addr])
		fn, err := planner.Function(r, wants)
		return result{of, fn, err}
	}, func(r result) error {
		out.add(r.of, r.Function, r.err)
		return nil
	})
	return out, err
}

// wantsOf returns what is wanted in a function, and which probes that is for.
func wantsOf(list []*Placed) (wants []instrument.Want, of []*Placed) {
	want := func(p *Placed, w instrument.Want) {
		w.Addr = p.Probe.Addr
		wants, of = append(wants, w), append(of, p)
	}
	for _, p := range list {
		switch p.Probe.Action {
		case Count:
			want(p, instrument.Want{Kind: instrument.Count, Returns: p.Probe.Return})
		case Trace:
			want(p, instrument.Want{Kind: instrument.Gate, Returns: p.Probe.Return, Number: p.index})
		case Time:
			want(p, instrument.Want{Kind: instrument.Start, Number: p.timer})
			want(p, instrument.Want{Kind: instrument.Stop, Returns: true, Number: p.timer})
		}
	}
	return wants, of
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
		if counts != nil && p.placed.Probe.Action == Time {
			p.placed.place.addTimer(counts, out.layout.Histograms+uint64(p.placed.timer)*detour.HistogramSize)
		}
		if counts != nil && p.place.Run >= 0 {
			p.placed.place.counts = append(p.placed.place.counts, countRef{counts, c.Counter(p.place.Run), p.place.Step})
		}
	}
}

// fail notes that probes are not there.
func (out *planned) fail(err error) {
	for _, p := range out.places {
		if p.placed.Way == None {
			p.placed.Err = err
		}
	}
}

// placement is where a probe is, in all processes.
type placement struct {
	counts []countRef
	timers []countRef    // of histograms
	told   atomic.Uint64 // hits that Options.Hit was told of
}

// addTimer notes the histogram at an address, once.
func (p *placement) addTimer(c *counters, addr uint64) {
	ref := countRef{counters: c, addr: addr}
	if !slices.Contains(p.timers, ref) {
		p.timers = append(p.timers, ref)
	}
}

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
