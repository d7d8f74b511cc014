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
	"time"

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

// file is a file that processes have mapped.
type file struct {
	module *Module // of the first process
	err    error
	asked  map[fileKey]*wanted // by the program that has mapped it
	wanted []*wanted           // each once
}

// wanted is what is wanted in a file, by some programs.
type wanted struct {
	file   *file
	placed []*Placed
	timers int // of them
	err    error
	// nothing says that all is refused. laid are the plans that have been made: processes
	// that have free memory there use them again.
	nothing bool
	laid    []*laid
}

// laid is what is wanted in a file with addresses.
type laid struct {
	number int
	bias   uint64 // of the process for which it was made
	memory []machine.Range
	fixed  bool // it is for that bias only
	copies []*instrument.Copy
	// places are those that are not settled.
	places     []plannedPlace
	histograms uint64
	// unmapped says that the text has gone from the last process that had it.
	unmapped bool
	tally
}

// plan opens the files that a process has mapped newly, and plans what is wanted in them.
func (s *Session) plan(m *mapped) (list []placement, err error) {
	free := freeMemory(m.All)
	program := programOf(m.All)
	for i := range m.New {
		l := &m.New[i]
		w := s.wantedIn(m.PID, l, program)
		if w == nil || w.err != nil || len(w.placed) == 0 {
			continue
		}
		bias, ok := biasOf(w.file.module.Image, l)
		if !ok {
			continue
		}
		at, layout, err := s.lay(w, bias, free)
		if err != nil {
			return nil, err
		}
		if at == nil {
			continue
		}
		if s.opt.DryRun {
			at.settle(s, nil)
			continue
		}
		delta := bias - at.bias
		free = without(free, at.memory, delta)
		s.placements = append(s.placements, at)
		at.unmapped = false
		list = append(list, placement{
			Number: len(s.placements) - 1, File: i, Layout: at.number, New: layout, Delta: delta, Semaphores: w.semaphores(bias),
		})
	}
	return list, nil
}

// lay finds addresses for what is wanted in a file: those of another process, if they are
// free, or new ones. It returns nil where there is nothing, or no room.
func (s *Session) lay(w *wanted, bias uint64, free []machine.Range) (*laid, *instrument.Layout, error) {
	for _, at := range w.laid {
		if at.fits(bias, free) {
			return at, nil, nil
		}
	}
	if w.nothing {
		return nil, nil, nil
	}
	planned, err := s.planWanted(w, bias)
	if err != nil {
		return nil, nil, err
	}
	if w.nothing = len(planned.plans) == 0; w.nothing {
		return nil, nil, nil
	}
	mem := instrument.Memory{Free: free, Needed: moduleRange(w.file.module.Image, bias), Timers: w.timers}
	if w.timers > 0 {
		mem.Scale = s.scale()
	}
	layout, err := planned.planner.Lay(planned.plans, &mem)
	if err != nil {
		fail(planned.places, err)
		return nil, nil, nil
	}
	at := &laid{
		number: len(s.layouts), bias: bias, memory: append(slices.Clone(layout.Code), layout.Counters, layout.Table),
		fixed: layout.Fixed, copies: layout.Copies, places: planned.places, histograms: layout.Histograms,
		tally: tally{Range: layout.Counters, live: map[int]counters{}, fixed: map[uint64][]instrument.Correction{}},
	}
	s.mutex.Lock()
	s.layouts = append(s.layouts, at)
	s.mutex.Unlock()
	w.laid = append(w.laid, at)
	return at, layout, nil
}

// semaphores returns those of the probes, each once, as a process has them.
func (w *wanted) semaphores(bias uint64) (list []uint64) {
	for _, p := range w.placed {
		if p.Probe.Semaphore != 0 && p.Refused == nil {
			list = append(list, p.Probe.Semaphore+bias)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// fits reports whether a process has free memory where the layout wants it.
func (l *laid) fits(bias uint64, free []machine.Range) bool {
	// Addresses of fewer bits are pushed by another instruction.
	const short = 1 << 31
	delta := bias - l.bias
	if delta != 0 && (l.fixed || bias < short || l.bias < short) {
		return false
	}
	for _, r := range l.memory {
		if !slices.ContainsFunc(free, func(f machine.Range) bool { return f.Lo <= r.Lo+delta && r.Hi+delta <= f.Hi }) {
			return r.Hi == r.Lo
		}
	}
	return true
}

// without takes memory that is delta higher from free memory.
func without(free, used []machine.Range, delta uint64) (left []machine.Range) {
	used = slices.Clone(used)
	for i := range used {
		used[i].Lo, used[i].Hi = used[i].Lo+delta, used[i].Hi+delta
	}
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

// installed learns what has become of a placement.
func (s *Session) installed(i *installed) error {
	at := s.placements[i.Number]
	if i.Err != nil {
		fail(at.places, i.Err)
	}
	if i.Counters >= 0 {
		f, err := s.engine.file(i.Counters)
		if err != nil {
			return err
		}
		c, err := openCounters(at.Hi-at.Lo, f)
		if err != nil {
			return err
		}
		s.mutex.Lock()
		at.live[i.Number] = c
		s.mutex.Unlock()
	}
	if i.Err == nil {
		at.settle(s, i.Other)
	}
	return nil
}

// gone learns that no process has a placement any more.
func (s *Session) gone(g *gonePlacement) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at := s.placements[g.Number]
	s.placements[g.Number] = nil
	at.unmapped = g.Unmapped && !slices.Contains(s.placements, at)
	return at.end(g.Number)
}

// stopped notes how long a process was stopped at most.
func (s *Session) stopped(longest time.Duration) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.longest = longest
	return nil
}

// corrected notes by what counts are wrong.
func (s *Session) corrected(c *corrected) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.layouts[c.Layout].correct(&c.Correction)
	return nil
}

// hit tells the caller of a hit.
func (s *Session) hit(h *gateHit, mem machine.Memory) error {
	p := s.at(h.Number)
	if p == nil || s.opt.Hit == nil {
		return nil
	}
	p.told.Add(1)
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

// keyOf returns what tells the file of a mapping from others.
func keyOf(m *process.Mapping) fileKey { return fileKey{m.Device, m.Inode} }

// programOf returns the program of a process, which stands below its libraries.
func programOf(maps []process.Mapping) fileKey {
	for i := range maps {
		if m := &maps[i]; m.Perm&machine.PermExec != 0 && m.Inode != 0 {
			return keyOf(m)
		}
	}
	return fileKey{}
}

// open opens a mapped file, once.
func (s *Session) open(pid int, m *process.Mapping, program fileKey) *file {
	f := s.files[keyOf(m)]
	if f != nil {
		return f
	}
	f = &file{asked: map[fileKey]*wanted{}}
	s.files[keyOf(m)] = f
	if f.module, f.err = openModule(pid, m); f.err == nil {
		f.module.Program, f.module.PID = keyOf(m) == program, pid
		f.module.Bias, _ = biasOf(f.module.Image, m)
	}
	return f
}

// wantedIn asks what a program wants in a file that it has mapped, once. It returns nil
// where the file cannot be read.
func (s *Session) wantedIn(pid int, m *process.Mapping, program fileKey) *wanted {
	f := s.open(pid, m, program)
	if f.err != nil {
		return nil
	}
	if w := f.asked[program]; w != nil {
		return w
	}
	module := *f.module
	module.Program, module.PID = keyOf(m) == program, pid
	module.Bias, _ = biasOf(module.Image, m)
	probes, err := s.opt.Select(&module)
	w := f.same(probes)
	if err != nil || w == nil {
		w = s.want(f, probes)
		w.err = err
		f.wanted = append(f.wanted, w)
	}
	f.asked[program] = w
	return w
}

// same returns what another program wants in the file, where that is the same.
func (f *file) same(probes []Probe) *wanted {
	for _, w := range f.wanted {
		if w.err == nil && slices.EqualFunc(probes, w.placed, func(a Probe, placed *Placed) bool {
			b := &placed.Probe
			return a.Addr == b.Addr && a.Return == b.Return && a.Action == b.Action && a.Semaphore == b.Semaphore && a.Symbol == b.Symbol && a.Offset == b.Offset
		}) {
			return w
		}
	}
	return nil
}

// want makes places for probes.
func (s *Session) want(f *file, probes []Probe) *wanted {
	w := &wanted{file: f}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, probe := range probes {
		placed := &Placed{Module: f.module, Probe: probe, index: len(s.placed), timer: w.timers}
		if probe.Action == Time {
			w.timers++
		}
		s.placed = append(s.placed, placed)
		w.placed = append(w.placed, placed)
	}
	return w
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
	plans   []*instrument.Plan
	places  []plannedPlace
}

type plannedPlace struct {
	placed *Placed
	place  instrument.Place
	plan   *instrument.Plan
}

// planWanted plans the probes of a file, function by function over all CPUs.
func (s *Session) planWanted(w *wanted, bias uint64) (*planned, error) {
	a := w.file.module.Analysis
	planner, err := instrument.NewPlanner(a, bias)
	if err != nil {
		return nil, err
	}
	out := &planned{planner: planner}
	byFunction := map[uint64][]placedIn{}
	var functions []image.Function
	add := func(fn image.Function, in placedIn) {
		if byFunction[fn.Addr] == nil {
			functions = append(functions, fn)
		}
		byFunction[fn.Addr] = append(byFunction[fn.Addr], in)
	}
	for _, placed := range w.placed {
		fn, ok := a.FunctionAt(placed.Probe.Addr)
		if !ok {
			placed.Refused = &ruleNoFunction
			continue
		}
		add(fn, placedIn{Placed: placed})
		if placed.Probe.Return || placed.Probe.Action == Time {
			for _, part := range planner.Parts(fn) {
				add(part, placedIn{placed, part.Addr})
			}
		}
	}
	slices.SortFunc(functions, func(a, b image.Function) int { return cmp.Compare(a.Addr, b.Addr) })
	type result struct {
		of []*Placed // of the wants
		*instrument.Function
		err error
	}
	err = analyze.Each(context.Background(), a, functions, func(r *analyze.Result) result {
		wants, of := wantsOf(byFunction[r.Addr])
		fn, err := planner.Function(r, wants)
		return result{of, fn, err}
	}, func(r result) error {
		out.add(r.of, r.Function, r.err)
		return nil
	})
	return out, err
}

// placedIn is a probe where it concerns a function.
type placedIn struct {
	*Placed
	part uint64 // where that starts, if it is a part of the one that is probed
}

// wantsOf returns what is wanted in a function, and which probes that is for.
func wantsOf(list []placedIn) (wants []instrument.Want, of []*Placed) {
	for _, p := range list {
		for _, w := range p.wants() {
			if p.part != 0 {
				if !w.Returns {
					continue
				}
				w.Addr, w.Of = p.part, w.Addr
			}
			wants, of = append(wants, w), append(of, p.Placed)
		}
	}
	return wants, of
}

func (p *Placed) wants() []instrument.Want {
	addr, returns := p.Probe.Addr, p.Probe.Return
	switch p.Probe.Action {
	case Count:
		return []instrument.Want{{Addr: addr, Kind: instrument.Count, Returns: returns}}
	case Trace:
		return []instrument.Want{{Addr: addr, Kind: instrument.Gate, Returns: returns, Number: p.index}}
	case Time:
		return []instrument.Want{
			{Addr: addr, Kind: instrument.Start, Number: p.timer},
			{Addr: addr, Kind: instrument.Stop, Returns: true, Number: p.timer},
		}
	}
	return nil
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

// settle notes where probes have come to be, and how they are counted; other are the
// copies that were left out. A probe that would miss some of its places has none.
func (l *laid) settle(s *Session, other []int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(l.places) == 0 {
		return // it is settled since another process has it
	}
	differs := map[*instrument.Copy]bool{}
	for _, i := range other {
		differs[l.copies[i]] = true
	}
	missing := map[*Placed]error{}
	for i := range l.places {
		p := &l.places[i]
		switch c := p.plan.Copy(); {
		case c == nil:
			missing[p.placed] = instrument.ErrNoRoom
		case differs[c]:
			missing[p.placed] = fmt.Errorf("%w at %#x", ErrText, c.Orig-l.bias)
		}
	}
	for i := range l.places {
		p := &l.places[i]
		if err := missing[p.placed]; err != nil {
			p.placed.Err = err
			continue
		}
		p.placed.Way, p.placed.Err, p.placed.laid = Breakpoint, nil, l
		if p.plan.Jumps() {
			p.placed.Way = Jump
		}
		if p.placed.Probe.Action == Time {
			p.placed.addTimer(l)
		}
		if p.place.Run >= 0 {
			p.placed.counts = append(p.placed.counts, countRef{l, p.plan.Copy().Counter(p.place.Run), p.place.Step})
		}
	}
	l.places, l.copies = nil, nil
}

// fail notes that probes are not there.
func fail(places []plannedPlace, err error) {
	for i := range places {
		if p := places[i].placed; p.Way == None {
			p.Err = err
		}
	}
}

// addTimer notes where the times of a probe are, once.
func (p *Placed) addTimer(l *laid) {
	ref := countRef{laid: l, addr: l.histograms + uint64(p.timer)*detour.HistogramSize}
	if !slices.Contains(p.timers, ref) {
		p.timers = append(p.timers, ref)
	}
}

// countRef is where a probe is counted: by the counter of a run that its step is in.
type countRef struct {
	laid *laid
	addr uint64 // in the layout
	step int
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
