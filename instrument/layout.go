package instrument

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"xol/arch"
	"xol/detour"
	"xol/machine"
	"xol/relocate"
)

// Layout is what has to be written into a process: plain values, in the order of
// addresses.
type Layout struct {
	Code     []machine.Range // to be mapped, for reading and executing
	Counters machine.Range   // to be mapped, for reading and writing; empty where nothing counts
	// Table is to be mapped likewise, for this process alone: the calls whose time is
	// taken. It is empty where none is.
	Table machine.Range
	// Histograms is where the first detour.Histogram is, among Counters.
	Histograms uint64
	Parts      []machine.Part // what is in Code
	Patches    []Patch        // of the program's text
	Copies     []*Copy
	Caves      []Cave
	// Fixed says that the code is for these addresses only: Rebase does not work.
	Fixed bool
}

// ErrFixed: a layout cannot be rebased.
var ErrFixed = errors.New("instrument: the code is for these addresses only")

// Rebase changes the code of a part to what it is where all addresses are higher by delta.
func (l *Layout) Rebase(isa arch.Prober, part *machine.Part, code []byte, delta uint64) error {
	first, _ := slices.BinarySearchFunc(l.Copies, part.Addr, func(c *Copy, addr uint64) int { return cmp.Compare(c.Addr, addr) })
	for _, c := range l.Copies[first:] {
		if c.Addr >= part.Addr+uint64(len(code)) {
			break
		}
		if !c.rebase(isa, code[c.Addr-part.Addr:][:c.Size], delta) {
			return ErrFixed
		}
	}
	return nil
}

// rebase changes the addresses that moved calls and system calls hold.
func (c *Copy) rebase(isa arch.Prober, code []byte, delta uint64) bool {
	for i := range c.Points {
		p := &c.Points[i]
		if !p.Returns {
			continue
		}
		end := c.Back
		if i+1 < len(c.Points) {
			end = c.Points[i+1].Offset
		}
		next := c.Orig + uint64(p.Orig) + uint64(p.Len)
		if !isa.Rebase(code[p.Body:end], next, next+delta) {
			return false
		}
	}
	return true
}

// Patch is a change of text: a jump or a breakpoint.
type Patch struct {
	Addr     uint64
	Len      uint8
	Old, New [maxJump]byte // Old is what the file has there
	// InCave says that it is in padding, to which only another patch leads.
	InCave bool
}

// maxJump is at least the bytes of a jump on any ISA.
const maxJump = 8

// ErrNoRoom: there is no free memory near enough to the text.
var ErrNoRoom = errors.New("instrument: no free memory within reach of the text")

// Memory tells the layout what addresses there are.
type Memory struct {
	// Free are addresses at which nothing is mapped, nor will be soon, in order.
	Free []machine.Range
	// Needed is what the moved code refers to: the module.
	Needed machine.Range
	// Timers is how many histograms are wanted: Want.Number of a timer is less.
	Timers int
	// Scale is detour.Timer.Scale.
	Scale uint64
}

const (
	pageSize  = 4096
	codeAlign = 16
	// stubChunk is how much memory is taken at a time for jumps to copies.
	stubChunk = 1 << 16
)

// Lay gives all plans of functions addresses, and returns what is to be written, and
// which of the plans could not be placed. It returns ErrNoRoom.
func (p *Planner) Lay(plans []*Plan, mem *Memory) (*Layout, error) {
	l := &layer{Planner: p, mem: mem, out: &Layout{}, traps: newByteSet(p.isa.Traps())}
	plans = slices.Clone(plans)
	slices.SortFunc(plans, func(a, b *Plan) int { return cmp.Compare(a.From(), b.From()) })
	code, runs := 0, 0
	for _, plan := range plans {
		code += (plan.Room() + codeAlign - 1) &^ (codeAlign - 1)
		runs += len(plan.Runs)
	}
	if len(plans) == 0 {
		return l.out, nil
	}
	if err := l.choose(plans, l.sizes(code, runs)); err != nil {
		return nil, err
	}
	for _, plan := range plans {
		if err := l.add(plan); err != nil {
			return nil, err
		}
	}
	l.finish()
	return l.out, nil
}

// sizes are those of what is mapped side by side, in bytes.
type sizes struct{ code, counters, table uint64 }

func (s sizes) all() uint64 { return s.code + s.counters + s.table }

// sizes returns how much room is needed. Histograms are after the counters.
func (l *layer) sizes(code, runs int) (s sizes) {
	s.code = pages(code)
	histograms := (runs*counterSize + histogramAlign - 1) &^ (histogramAlign - 1)
	s.counters = pages(histograms + l.mem.Timers*detour.HistogramSize)
	l.histograms = uint64(histograms)
	if l.mem.Timers > 0 {
		size, _ := new(detour.Timer).TableSize()
		s.table = pages(size)
	}
	return s
}

const histogramAlign = 64

func pages(n int) uint64 { return (uint64(n) + pageSize - 1) &^ (pageSize - 1) }

// layer lays one file's plans out.
type layer struct {
	*Planner
	mem      *Memory
	out      *Layout
	code     machine.Range // of the copies
	at       uint64        // in code: where the next copy goes
	counters uint64        // where the next counter is
	// histograms is where the first histogram is: until choose, from the first counter.
	histograms uint64
	stubs      []*chunk
	traps      byteSet // bytes that trap where an instruction starts
	taken      []machine.Range
	buffer     []byte
}

// reach is how far a displacement of 32 bits leads, less what code and its operands may
// be long.
const reach = 1<<31 - 1<<16

// choose finds room for copies and counters: where jumps from all of the text have a
// highest byte that traps, if possible.
func (l *layer) choose(plans []*Plan, s sizes) error {
	text := machine.Range{Lo: plans[0].From(), Hi: plans[len(plans)-1].To()}
	size := s.all()
	need := machine.Range{Lo: min(text.Lo, l.mem.Needed.Lo), Hi: max(text.Hi, l.mem.Needed.Hi)}
	near := machine.Range{Lo: below(need.Hi, reach), Hi: need.Lo + reach}
	for _, high := range l.traps.near {
		d := uint64(int64(int8(high)) << 24)
		window := machine.Range{Lo: max(near.Lo, text.Hi+d), Hi: min(near.Hi, text.Lo+d+1<<24)}
		if at, ok := l.find(window, size); ok {
			l.settle(at, s)
			return nil
		}
	}
	if at, ok := l.find(near, size); ok {
		l.settle(at, s)
		return nil
	}
	return ErrNoRoom
}

// below returns addr - n, or 0.
func below(addr, n uint64) uint64 { return addr - min(addr, n) }

func (l *layer) settle(at uint64, s sizes) {
	l.code = machine.Range{Lo: at, Hi: at + s.code}
	l.at, l.counters = at, l.code.Hi
	l.out.Code = append(l.out.Code, l.code)
	l.out.Counters = machine.Range{Lo: l.code.Hi, Hi: l.code.Hi + s.counters}
	l.histograms += l.out.Counters.Lo
	l.out.Histograms = l.histograms
	l.out.Table = machine.Range{Lo: l.out.Counters.Hi, Hi: l.out.Counters.Hi + s.table}
	l.taken = append(l.taken, machine.Range{Lo: at, Hi: at + s.all()})
}

// timer returns what the timer of a function works on.
func (l *layer) timer(number int) detour.Timer {
	return detour.Timer{
		Table: l.out.Table.Lo, Histogram: l.histograms + uint64(number)*detour.HistogramSize, Scale: l.mem.Scale,
	}
}

func magnitude(b byte) int {
	if v := int(int8(b)); v < 0 {
		return -v - 1
	}
	return int(b)
}

// find returns page-aligned room in a window.
func (l *layer) find(window machine.Range, size uint64) (uint64, bool) {
	for _, free := range l.mem.Free {
		at := (max(free.Lo, window.Lo) + pageSize - 1) &^ (pageSize - 1)
		end := min(free.Hi, window.Hi)
		for at < end && size <= end-at {
			i := slices.IndexFunc(l.taken, func(t machine.Range) bool { return t.Lo < at+size && at < t.Hi })
			if i < 0 {
				return at, true
			}
			at = l.taken[i].Hi
		}
	}
	return 0, false
}

// add gives a plan its address. What is out of its reach leaves it out.
func (l *layer) add(plan *Plan) error {
	room := plan.Room()
	if cap(l.buffer) < room {
		l.buffer = make([]byte, 2*room)
	}
	env := Env{Counters: l.counters, Timer: l.timer}
	n, c, err := plan.Encode(l.buffer[:room], l.at, &env)
	if errors.Is(err, relocate.ErrRange) {
		return nil
	}
	if err != nil {
		return err
	}
	plan.copy = c
	l.out.Parts = append(l.out.Parts, machine.Part{Addr: l.at, Code: slices.Clone(l.buffer[:n])})
	l.out.Copies = append(l.out.Copies, c)
	l.at = (l.at + uint64(n) + codeAlign - 1) &^ (codeAlign - 1)
	l.counters += counterSize * uint64(len(plan.Runs))
	for i := range plan.Ways {
		if err := l.way(plan, c, &plan.Ways[i]); err != nil {
			return err
		}
	}
	return nil
}

// way adds the patches of a way into a copy.
func (l *layer) way(plan *Plan, c *Copy, w *Way) error {
	target := c.Addr + uint64(c.Points[w.Step].Offset)
	if w.Jump {
		if l.jumpIn(w, target) {
			return nil
		}
		w.Jump, w.Cave = false, 0
	}
	trap := l.isa.Breakpoint(false)
	if err := l.patch(w.Addr, trap); err != nil {
		return err
	}
	for k := range l.isa.JumpLen() {
		if w.Inside>>k&1 != 0 && plan.Whole {
			if err := l.patch(w.Addr+uint64(k), trap); err != nil {
				return err
			}
		}
	}
	return nil
}

// jumpIn adds the patches of a way that is a jump; it returns false where that cannot be.
func (l *layer) jumpIn(w *Way, target uint64) bool {
	if w.Cave != 0 {
		return l.cave(w, target)
	}
	jump, ok := l.jump(w, target)
	return ok && l.patch(w.Addr, jump) == nil // else it would not end in the section
}

// cave adds the patches of a way by a cave, unless another jump reaches into that.
func (l *layer) cave(w *Way, target uint64) bool {
	if n := len(l.out.Patches); n > 0 {
		if last := &l.out.Patches[n-1]; last.Addr+uint64(last.Len) > w.Cave {
			return false
		}
	}
	jump, err := l.isa.JumpTo(w.Cave, target)
	if err != nil || !l.trapsInside(w, w.short) || l.patch(w.Cave, jump) != nil {
		return false
	}
	l.out.Patches[len(l.out.Patches)-1].InCave = true
	if l.patch(w.Addr, w.short) != nil {
		l.out.Patches = l.out.Patches[:len(l.out.Patches)-1]
		return false
	}
	l.out.Caves = append(l.out.Caves, Cave{w.Cave, w.Addr})
	return true
}

// patch adds a patch.
func (l *layer) patch(addr uint64, code []byte) error {
	p := Patch{Addr: addr, Len: uint8(len(code))}
	copy(p.New[:], code)
	if _, err := l.a.Image.Code(p.Old[:0], addr-l.bias, uint64(len(code))); err != nil {
		return err
	}
	l.out.Patches = append(l.out.Patches, p)
	return nil
}

// jump returns the jump from a way to its target, by a stub where the bytes of a direct
// one would not trap at the instructions inside.
func (l *layer) jump(w *Way, target uint64) ([]byte, bool) {
	jump, err := l.isa.JumpTo(w.Addr, target)
	if err == nil && l.trapsInside(w, jump) {
		return jump, true
	}
	at, ok := l.stub(w)
	if !ok {
		return nil, false
	}
	onward, err := l.isa.JumpTo(at, target)
	if err != nil {
		return nil, false
	}
	l.out.Parts = append(l.out.Parts, machine.Part{Addr: at, Code: onward})
	jump, err = l.isa.JumpTo(w.Addr, at)
	return jump, err == nil
}

// trapsInside reports whether a jump traps at all instructions inside.
func (l *layer) trapsInside(w *Way, jump []byte) bool {
	for k := range jump {
		if w.Inside>>k&1 != 0 && !l.traps.has[jump[k]] {
			return false
		}
	}
	return true
}

// finish sorts what has been laid out.
func (l *layer) finish() {
	for _, s := range l.stubs {
		l.out.Code = append(l.out.Code, s.mapped()...)
	}
	slices.SortFunc(l.out.Code, func(a, b machine.Range) int { return cmp.Compare(a.Lo, b.Lo) })
	slices.SortFunc(l.out.Parts, func(a, b machine.Part) int { return cmp.Compare(a.Addr, b.Addr) })
	slices.SortFunc(l.out.Patches, func(a, b Patch) int { return cmp.Compare(a.Addr, b.Addr) })
	l.out.Parts = joined(l.out.Parts, l.out.Code)
	for i := range l.out.Parts {
		part := &l.out.Parts[i]
		l.out.Fixed = l.out.Fixed || l.out.Rebase(l.isa, part, part.Code, 0) != nil
	}
}

// joined joins the parts of each range of code to one.
func joined(parts []machine.Part, ranges []machine.Range) []machine.Part {
	list := make([]machine.Part, 0, len(ranges))
	for _, r := range ranges {
		n := 0
		for n < len(parts) && r.Holds(parts[n].Addr) {
			n++
		}
		if n == 0 {
			continue
		}
		first, last := &parts[0], &parts[n-1]
		part := machine.Part{Addr: first.Addr, Code: make([]byte, last.Addr+uint64(len(last.Code))-first.Addr)}
		for i := range parts[:n] {
			copy(part.Code[parts[i].Addr-first.Addr:], parts[i].Code)
		}
		list, parts = append(list, part), parts[n:]
	}
	return list
}

// chunk is memory for stubs, jumps that stand where the jump to them traps.
type chunk struct {
	machine.Range
	used  [stubChunk / 64]uint64 // a bit for each byte
	pages uint16                 // a bit for each page that has stubs
}

// stub finds room for a jump, such that the jump of w to it traps at all instructions
// inside. The displacement's bytes come lowest first, from the second byte of the jump.
func (l *layer) stub(w *Way) (uint64, bool) {
	s := search{origin: w.Addr + uint64(l.isa.JumpLen()), size: uint64(l.isa.JumpLen())}
	for k := range s.allowed {
		s.allowed[k] = &everyByte
		if w.Inside>>(k+1)&1 != 0 {
			s.allowed[k] = &l.traps
		}
	}
	for _, c := range slices.Backward(l.stubs) { // the last one is the nearest, and has room
		if at, ok := s.in(c); ok {
			return at, true
		}
	}
	for _, high := range s.allowed[3].near {
		for _, next := range s.allowed[2].list {
			d := binary.LittleEndian.Uint32([]byte{0, 0, next, high})
			lo := s.origin + uint64(int64(int32(d)))
			at, ok := l.find(machine.Range{Lo: lo, Hi: lo + stubChunk + pageSize}, stubChunk)
			if !ok {
				continue
			}
			c := &chunk{Range: machine.Range{Lo: at, Hi: at + stubChunk}}
			found, ok := s.in(c)
			if !ok || !l.within(c) {
				continue
			}
			l.stubs = append(l.stubs, c)
			l.taken = append(l.taken, c.Range)
			return found, true
		}
	}
	return 0, false
}

// within reports whether jumps lead from a chunk to all copies.
func (l *layer) within(c *chunk) bool {
	return max(c.Hi, l.code.Hi)-min(c.Lo, l.code.Lo) < reach
}

// byteSet is bytes that a displacement may have at a place.
type byteSet struct {
	list []byte
	near []byte // those that stand for the smallest numbers first
	has  [256]bool
}

func newByteSet(list []byte) (s byteSet) {
	s.list, s.near = list, slices.Clone(list)
	slices.SortFunc(s.near, func(a, b byte) int { return cmp.Compare(magnitude(a), magnitude(b)) })
	for _, b := range list {
		s.has[b] = true
	}
	return s
}

var everyByte = func() byteSet {
	list := make([]byte, 256)
	for i := range list {
		list[i] = byte(i)
	}
	return newByteSet(list)
}()

// search looks for the address of a stub.
type search struct {
	origin  uint64      // what displacements count from
	size    uint64      // bytes of a stub
	allowed [4]*byteSet // values of the displacement's bytes
}

// in takes a place in a chunk: on a page that has stubs already, if there is one.
func (s *search) in(c *chunk) (uint64, bool) {
	first := int64(c.Lo-s.origin) >> 16
	for _, fresh := range []bool{false, true} {
		for upper := first; upper <= first+1; upper++ {
			if upper != int64(int16(upper)) || !s.allowed[2].has[byte(upper)] || !s.allowed[3].has[byte(upper>>8)] {
				continue
			}
			if at, ok := s.among(c, s.origin+uint64(upper<<16), fresh); ok {
				return at, true
			}
		}
	}
	return 0, false
}

// among takes a place in a chunk, among those whose displacements have the same upper
// half.
func (s *search) among(c *chunk, from uint64, fresh bool) (uint64, bool) {
	for _, d1 := range s.allowed[1].list {
		base := from + uint64(d1)<<8
		if base+255 < c.Lo || base >= c.Hi {
			continue
		}
		lo, hi := max(base, c.Lo), min(base+255+s.size, c.Hi)
		if !fresh && !(c.usedPage(lo) && c.usedPage(hi-1)) {
			continue
		}
		for _, d0 := range s.allowed[0].list {
			if at := base + uint64(d0); at >= lo && at+s.size <= hi && c.take(at, s.size) {
				return at, true
			}
		}
	}
	return 0, false
}

// usedPage reports whether the page of an address has stubs.
func (c *chunk) usedPage(at uint64) bool { return c.pages>>((at-c.Lo)/pageSize)&1 != 0 }

// take takes n bytes, if they are free.
func (c *chunk) take(at, n uint64) bool {
	off := at - c.Lo
	first, last, shift := off/64, (off+n-1)/64, off%64
	low := (uint64(1)<<n - 1) << shift
	high := (uint64(1)<<n - 1) >> (64 - shift) // what does not fit in there
	if c.used[first]&low != 0 || first != last && c.used[last]&high != 0 {
		return false
	}
	c.used[first] |= low
	if first != last {
		c.used[last] |= high
	}
	c.pages |= 1<<(off/pageSize) | 1<<((off+n-1)/pageSize)
	return true
}

// mapped returns the pages that have stubs.
func (c *chunk) mapped() (list []machine.Range) {
	for at := c.Lo; at < c.Hi; at += pageSize {
		if !c.usedPage(at) {
			continue
		}
		if n := len(list); n > 0 && list[n-1].Hi == at {
			list[n-1].Hi += pageSize
		} else {
			list = append(list, machine.Range{Lo: at, Hi: at + pageSize})
		}
	}
	return list
}
