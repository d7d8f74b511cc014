package runtime

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"xol/classify"
	"xol/decode"
	"xol/machine"
)

// watchpoints decides which data the CPUs watch, and reports accesses.
type watchpoints struct {
	optimizer
	watches watches
}

func (r *watchpoints) checkWatch(p *watchpoint) error {
	if _, ok := r.m.(machine.Watcher); !ok {
		return refuse(p, p.Addr, &ruleNoWatch, nil)
	}
	bad := func(cpu int) bool { return cpu < 0 || cpu >= len(r.cpus) }
	if p.Kind == 0 || p.Kind > machine.WatchAccess || p.Len < 1 || slices.ContainsFunc(p.CPUs, bad) {
		return refuse(p, p.Addr, &ruleWatchKind, nil)
	}
	if rule := r.isa.CheckWatch(p.watch()); rule != nil {
		return refuse(p, p.Addr, rule, nil)
	}
	return nil
}

// cpusOf returns the CPUs that a probe is for.
func (r *watchpoints) cpusOf(p *watchpoint) []int {
	if len(p.CPUs) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(p.CPUs)))
	}
	all := make([]int, len(r.cpus))
	for i := range all {
		all[i] = i
	}
	return all
}

// takeSlots gives the probe a slot of each of its CPUs, or none.
func (r *watchpoints) takeSlots(p *watchpoint) error {
	w := &r.watches
	if w.slots == nil {
		w.slots = make([][]*watchpoint, len(r.cpus))
	}
	cpus := r.cpusOf(p)
	var victims []*watchpoint
	for _, cpu := range cpus {
		held := slices.DeleteFunc(slices.Clone(w.slots[cpu]), func(q *watchpoint) bool { return slices.Contains(victims, q) })
		if len(held) < r.isa.WatchUnit().Slots {
			continue
		}
		least := slices.MinFunc(held, func(a, b *watchpoint) int { return cmp.Compare(a.Priority, b.Priority) })
		if least.Priority >= p.Priority {
			return refuse(p, p.Addr, &ruleWatchSlots, nil)
		}
		victims = append(victims, least)
	}
	var errs []error
	for _, q := range victims {
		errs = append(errs, r.dropSlots(q))
	}
	for _, cpu := range cpus {
		w.slots[cpu] = append(w.slots[cpu], p)
	}
	p.active = true
	if w.active++; w.active == 1 {
		r.keepsCalls = true
		errs = append(errs, r.keepCalls())
	}
	if err := errors.Join(append(errs, r.program())...); err != nil {
		return refuse(p, p.Addr, &ruleNoWatch, errors.Join(err, r.dropSlots(p)))
	}
	for _, q := range victims {
		if q.Relinquished != nil {
			q.Relinquished(q.link)
		}
	}
	return nil
}

func (r *watchpoints) dropSlots(p *watchpoint) error {
	for cpu, held := range r.watches.slots {
		r.watches.slots[cpu] = deleteFrom(held, p)
	}
	p.active = false
	var errs []error
	if r.watches.active--; r.watches.active == 0 {
		r.keepsCalls = false
		for _, s := range r.byAddress() {
			errs = append(errs, r.considerOne(s))
		}
	}
	return errors.Join(errs...)
}

// keepCalls has no jump stand in the place of calls.
func (r *watchpoints) keepCalls() error {
	var errs []error
	for _, s := range r.byAddress() {
		if s.state.jumping() && !s.internal && r.movesCall(s) {
			errs = append(errs, r.toBreakpoint(s))
		}
	}
	return errors.Join(errs...)
}

// giveSlotsBack frees the probe's slots, for those that wait for one: the most
// demanding first.
func (r *watchpoints) giveSlotsBack(p *watchpoint) error {
	if !p.active {
		return nil
	}
	err := r.dropSlots(p)
	waiting := slices.DeleteFunc(slices.Clone(r.watches.probes), func(q *watchpoint) bool { return q.active || !q.enabled })
	slices.SortStableFunc(waiting, func(a, b *watchpoint) int { return cmp.Compare(b.Priority, a.Priority) })
	for _, q := range waiting {
		_ = r.takeSlots(q) // it waits on where there is none
	}
	return errors.Join(err, r.program())
}

// program shows the CPUs what to watch.
func (r *watchpoints) program() error {
	m := r.m.(machine.Watcher)
	for cpu, held := range r.watches.slots {
		list := make([]machine.Watch, len(held))
		for i, p := range held {
			list[i] = p.watch()
		}
		if err := m.Watch(cpu, list); err != nil {
			return err
		}
	}
	return nil
}

// report calls the handlers of accesses with an instruction pointer, which they may
// change where it is the CPU's.
func (r *watchpoints) report(cpu int, hits []machine.Watched, ip uint64, movable bool) {
	held := slices.Clone(r.watches.slots[cpu])
	regs := r.m.CPU(cpu)
	busy := r.depth > 0
	for _, hit := range hits {
		p := held[hit.Index]
		if busy {
			p.missed++
			continue
		}
		if !p.active {
			continue
		}
		p.hits++
		if p.Handler == nil {
			continue
		}
		c := WatchContext{Link: p.link, CPU: cpu, Watched: hit, Regs: Regs{target: &r.target, returns: &r.tasks, number: cpu, cpu: regs, ip: ip, fixed: !movable}}
		p.Handler(&c)
		if c.Regs.moved {
			regs.SetReg(r.file.PC, c.Regs.ip)
		}
	}
}

// interpretWatched interprets an instruction for a CPU, and reports its accesses to
// data that the CPU watches. No instruction that is interpreted accesses memory where
// the ISA reports an access before it is made.
func (r *watchpoints) interpretWatched(cpu int, inst *decode.Inst) (done bool, err error) {
	regs := r.m.CPU(cpu)
	if r.watches.active == 0 || len(r.watches.slots[cpu]) == 0 || !r.armed {
		return r.isa.Interpret(inst, regs, program{r.m})
	}
	memory := recorded{program: program{r.m}}
	before := r.watchedValues(cpu)
	if done, err = r.isa.Interpret(inst, regs, &memory); !done || err != nil {
		return done, err
	}
	if hits := r.watchedBy(cpu, memory.accesses, before); len(hits) > 0 {
		r.report(cpu, hits, regs.Reg(r.file.PC), true)
	}
	return true, nil
}

// watchedBy returns what a CPU watches of accesses.
func (r *watchpoints) watchedBy(cpu int, accesses []access, before []uint64) (hits []machine.Watched) {
	after := r.watchedValues(cpu)
	for i, p := range r.watches.slots[cpu] {
		w := p.watch()
		hit := machine.Watched{Index: i, Old: before[i], New: after[i]}
		for _, a := range accesses {
			if w.Kind&a.kind == 0 || !w.Holds(a.addr, a.size) {
				continue
			}
			if hit.Kind == 0 {
				hit.Addr, hit.Size = a.addr, a.size
			}
			hit.Kind |= a.kind
		}
		if hit.Kind != 0 {
			hits = append(hits, hit)
		}
	}
	return hits
}

// watchedValues returns the data that a CPU watches as numbers; 0 for those that are
// longer than 8 bytes.
func (r *watchpoints) watchedValues(cpu int) []uint64 {
	values := make([]uint64, len(r.watches.slots[cpu]))
	for i, p := range r.watches.slots[cpu] {
		var b [wordSize]byte
		if p.Len > len(b) || r.m.Read(b[:p.Len], p.Addr) != nil {
			continue
		}
		if r.m.ByteOrder() == binary.ByteOrder(binary.BigEndian) {
			values[i] = binary.BigEndian.Uint64(b[:]) >> (8 * (len(b) - p.Len))
		} else {
			values[i] = binary.LittleEndian.Uint64(b[:])
		}
	}
	return values
}

// ownAccess reports whether an access that the CPU shows pc for is one of the
// runtime's own code: of a stub, or of a detour buffer outside the moved instructions.
func (r *watchpoints) ownAccess(pc uint64) bool {
	s := r.slots.owner(pc)
	if s == nil {
		return r.stubs.holds(pc) || r.slots.holding(pc) != nil
	}
	b := s.jump.at(pc)
	return b != nil && pc < b.moved
}

// originalIP returns the address in the program that stands for one in a copy or
// detour buffer: that of the instruction that is next.
func (r *watchpoints) originalIP(pc uint64) uint64 {
	s := r.slots.owner(pc)
	switch {
	case s == nil:
		return pc
	case !r.isa.WatchUnit().After:
	case s.step.holds(pc) && pc != s.step.addr, s.boosted.holds(pc) && pc != s.boosted.addr:
		return s.inst.Next()
	}
	return r.originalOf(s, pc)
}

// accessed handles an EventWatch.
func (r *watchpoints) accessed(cpu int, ev machine.Event) error {
	if !r.armed || r.ownAccess(ev.Addr) {
		return nil
	}
	ip := r.originalIP(ev.Addr)
	r.report(cpu, slices.Clone(r.m.(machine.Watcher).Watched(cpu)), ip, ip == ev.Addr)
	return nil
}

// originalOf returns the address of the instruction that the code at pc, in a
// copy or detour buffer of s, stands for.
func (r *watchpoints) originalOf(s *site, pc uint64) uint64 {
	b := s.jump.at(pc)
	if b == nil || pc < b.moved {
		return s.addr
	}
	addr := s.addr
	for _, step := range b.steps {
		if pc >= b.moved+uint64(step.moved) {
			addr = s.addr + uint64(step.original)
		}
	}
	return addr
}

// watchpoint is a WatchProbe that is attached.
type watchpoint struct {
	WatchProbe
	link            *Link
	closed          bool
	enabled, active bool
	hits, missed    uint64
}

func (p *watchpoint) watch() machine.Watch {
	return machine.Watch{Addr: p.Addr, Len: p.Len, Kind: p.Kind}
}

// watches are the watchpoints of a runtime.
type watches struct {
	probes []*watchpoint   // in the order of registration
	slots  [][]*watchpoint // of the CPUs; those in use
	active int             // probes with slots
}

var (
	ruleNoWatch = classify.Rule{ID: "runtime/no-watch", Errno: classify.EOPNOTSUPP,
		Reason: "the machine does not report accesses to data"}
	ruleWatchKind = classify.Rule{ID: "runtime/watch-kind", Errno: classify.EINVAL,
		Reason: "a watchpoint is for reads, writes or both, of at least a byte, on CPUs that there are"}
	ruleWatchSlots = classify.Rule{ID: "runtime/watch-slots", Errno: classify.ENOSPC,
		Reason: "all slots for watchpoints of a CPU are taken by others at least as demanding",
		Remedy: "close one, or give this one a higher Priority"}
)

// access is one that an interpreted instruction makes.
type access struct {
	addr uint64
	size int
	kind machine.WatchKind
}

// recorded is memory as the program may use it, with what it accesses.
type recorded struct {
	program
	accesses []access
}

func (m *recorded) note(addr uint64, size int, kind machine.WatchKind, err error) error {
	m.accesses = append(m.accesses, access{addr, size, kind})
	return err
}

func (m *recorded) Read(dst []byte, addr uint64) error {
	return m.note(addr, len(dst), machine.WatchRead, m.program.Read(dst, addr))
}

func (m *recorded) Write(addr uint64, src []byte) error {
	return m.note(addr, len(src), machine.WatchWrite, m.program.Write(addr, src))
}

func (m *recorded) ReadWord(addr uint64) (uint64, error) {
	v, err := m.program.ReadWord(addr)
	return v, m.note(addr, wordSize, machine.WatchRead, err)
}

func (m *recorded) WriteWord(addr, value uint64) error {
	return m.note(addr, wordSize, machine.WatchWrite, m.program.WriteWord(addr, value))
}

// WatchProbe is a watchpoint: its handler runs when data are accessed.
//
// What can be watched is what the debug facility of the ISA can watch, and how
// many watchpoints a CPU has. The facility itself is the machine's: one that runs
// on an engine without debug registers has to do by other means what they would.
// What handlers and the runtime itself access is not watched; what a probed
// instruction accesses is, also where the runtime does it. Meanwhile calls are neither
// boosted nor optimized: what they become would access the stack otherwise.
type WatchProbe struct {
	Addr uint64
	Len  int // bytes: 1 to 8, or what the ISA can
	Kind machine.WatchKind
	// CPUs are those that watch; all where it is empty.
	CPUs []int
	// Priority decides who keeps a slot where there are not enough: a more
	// demanding probe takes that of a less demanding one, whose Relinquished is
	// called. It gets one again when one is free.
	Priority     int
	Relinquished func(l *Link)
	Handler      func(c *WatchContext)
	// Disabled attaches the probe without arming it.
	Disabled bool
}

// WatchContext is what the handler of a WatchProbe is called with. The
// instruction pointer is the one that the ISA shows: after the access on amd64,
// of the instruction that has not been executed yet elsewhere.
type WatchContext struct {
	Link *Link
	CPU  int
	Regs Regs
	machine.Watched
}

func (p WatchProbe) place() string {
	return fmt.Sprintf("%v of %d bytes at %#x", p.Kind, p.Len, p.Addr)
}
