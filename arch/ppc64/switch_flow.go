package ppc64

import (
	"encoding/binary"
	"slices"

	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// Limits of one search.
const (
	maxTraced  = 1 << 18 // instructions of the function
	window     = 1 << 14 // instructions on either side of the jump, in a function with more
	maxSteps   = 1 << 17 // instructions looked at on the way back
	maxNesting = 64      // registers that depend on one another
	maxStarts  = 1 << 10 // places where paths meet, on the way to one register
	maxTracks  = 16      // registers that are copied to one
)

// tracer finds out what a register holds by going back from where it is used.
// Along the only path it does so at once; where paths meet, it stops until it
// turns out that more has to be known. So the search is for addresses of
// tables and not for where their indices come from.
type tracer struct {
	f     *classify.Func
	mem   flow.Memory
	order binary.ByteOrder
	steps int // left
	depth int
	at    int // index of the jump
	// Whether r31 points at the frame, and whether r2 is the TOC pointer
	// throughout.
	frame, hasTOC answer

	// The direct branches of f, as lists by target: sources has the last
	// branch to each instruction, siblings, for each branch, the one before it
	// to the same target. All numbers are one too high, so that 0 is none.
	sources, siblings []int32
	indirect          []int32 // the indirect jumps

	joins  []join
	circle int // the first of joins that has come to depend on itself
}

// answer is one that is looked for when it is needed.
type answer int8

const (
	unasked answer = iota
	no
	yes
)

// answerOf returns the answer that holds is.
func answerOf(holds bool) answer {
	if holds {
		return yes
	}
	return no
}

// join is what is known of a register or slot where paths meet.
type join struct {
	where location
	at    int32
	open  bool // still being found out; value is then valueNone
	value value
}

// noCircle stands for no index of joins.
const noCircle = 1 << 30

// location is a register or, where reg is noRegister, a slot.
type location struct {
	reg uint8
	slot
}

// slot is a part of the stack frame, or of any structure: width bytes at a
// register and a displacement. The zero value is none.
type slot struct {
	base  uint8
	index uint8 // another register that is added; 0 where there is none
	width uint8
	disp  uint64
}

// partial reports whether the function is so large that branches from far away
// are not seen.
func (t *tracer) partial() bool { return t.at > window || len(t.f.Insts)-t.at > window }

// link fills in the lists of branches.
func (t *tracer) link() bool {
	insts := t.f.Insts
	if t.sources != nil || len(insts) > maxTraced {
		return t.sources != nil
	}
	lists := make([]int32, 2*len(insts))
	t.sources, t.siblings = lists[:len(insts)], lists[len(insts):]
	for i := max(0, t.at-window); i < min(len(insts), t.at+window); i++ {
		inst := &insts[i]
		switch inst.Flow {
		case decode.FlowJump, decode.FlowJumpIf:
			if to := t.indexOf(inst.Target); to >= 0 {
				t.siblings[i] = t.sources[to]
				t.sources[to] = int32(i + 1)
			}
		case decode.FlowJumpIndirect:
			t.indirect = append(t.indirect, int32(i))
		}
	}
	return true
}

// indexOf returns the index of the instruction at addr, -1 where none starts
// there. Most functions have no prefixed instructions.
func (t *tracer) indexOf(addr uint64) int {
	off := addr - t.f.Addr
	if off >= uint64(len(t.f.Code)) {
		return -1
	}
	if i := int(off / wordSize); i < len(t.f.Insts) && t.f.Insts[i].Addr == addr {
		return i
	}
	if i, start := decode.Find(t.f.Insts, addr); start {
		return i
	}
	return -1
}

// before returns the instruction that was executed before instruction j, and
// whether it is a branch that was taken; ok is false where there may be several.
func (t *tracer) before(j int) (p int, taken, ok bool) {
	if t.steps--; t.steps < 0 || !t.link() {
		return 0, false, false
	}
	falls := j > 0 && t.f.Insts[j-1].Continues()
	last := t.sources[j]
	switch {
	case falls:
		return j - 1, false, last == 0
	case last != 0:
		p = int(last - 1)
		return p, true, t.siblings[p] == 0 && j != 0
	}
	return 0, false, false
}

// register returns what register r holds in front of instruction j.
func (t *tracer) register(r uint8, j int) value {
	if r == stackPointer {
		return value{kind: valueNumber}
	}
	v := t.find(location{reg: r}, j)
	if r == tocPointer && v.kind == valueFar && t.keepsTOC() {
		return t.toc()
	}
	return v
}

// stored returns what part s of the frame holds in front of instruction j.
func (t *tracer) stored(s slot, j int) value { return t.find(location{noRegister, s}, j) }

// find returns what w holds in front of instruction j: valueFar where the only
// path ends before it is set.
func (t *tracer) find(w location, j int) value {
	p, found := t.definition(w, j)
	if !found {
		return value{kind: valueFar, far: w, at: int32(p)}
	}
	return t.assigned(w, p)
}

// definition goes back from in front of instruction j to the one that sets w,
// as long as there is only one path. It returns where that ends otherwise.
func (t *tracer) definition(w location, j int) (p int, found bool) {
	p, _, ok := t.before(j)
	if !ok {
		return j, false
	}
	return t.scan(w, p)
}

// scan is definition from behind instruction p.
func (t *tracer) scan(w location, p int) (at int, found bool) {
	for !t.sets(p, w) {
		before, _, ok := t.before(p)
		if !ok {
			return p, false
		}
		p = before
	}
	return p, true
}

// sets reports whether instruction p changes w. Inside the frame, those stores
// do that name it by the same register; outside, every store and call may.
func (t *tracer) sets(p int, w location) bool {
	inst := &t.f.Insts[p]
	if w.reg != noRegister {
		return writes(inst, w.reg)
	}
	if writes(inst, w.base) || w.index != 0 && writes(inst, w.index) {
		return true
	}
	if w.index == 0 && t.inFrame(w.base) {
		s, ok := storeOf(inst)
		return ok && s.overlaps(w.slot)
	}
	return inst.Has(decode.Link) || inst.Flow == decode.FlowSyscall || formatOf(inst).isStore()
}

// storeOf returns where inst stores; ok is false where it does not, or not
// relative to one register.
func storeOf(inst *decode.Inst) (s slot, ok bool) {
	word := WordOf(inst)
	if op := word >> 26; inst.Len == wordSize && (op < 36 || op > 55) && op != opSTD {
		return s, false
	}
	f := formatOf(inst)
	if !f.isStore() || args[f.args[1]].kind != argDisp {
		return s, false
	}
	s = slot{base: fieldRA(word), disp: displacementOf(inst), width: 16}
	for i := range stores {
		if stores[i].name == f.name {
			s.width = stores[i].width
		}
	}
	return s, true
}

// stores are the widths in bytes of the common stores.
var stores = [...]struct {
	name  string
	width uint8
}{{"std", 8}, {"stw", 4}, {"sth", 2}, {"stb", 1}, {"stfd", 8}, {"stfs", 4}}

func (s slot) overlaps(o slot) bool {
	return s.base == o.base && (s.disp-o.disp < uint64(o.width) || o.disp-s.disp < uint64(s.width))
}

// assigned returns what instruction p, which sets w, puts there.
func (t *tracer) assigned(w location, p int) (v value) {
	if t.steps--; t.depth >= maxNesting || t.steps < 0 {
		return value{}
	}
	t.depth++
	inst := &t.f.Insts[p]
	switch {
	case w.reg == tocPointer && t.givesTOC(p):
		v = t.toc()
	case w.reg != noRegister:
		v = t.result(w.reg, p)
	default:
		v = value{kind: valueWhole} // saved by a caller, or stored piece by piece
		if s, ok := storeOf(inst); ok && s == w.slot && inst.Len == wordSize {
			v = t.register(targetOf(inst), p)
		}
	}
	t.depth--
	return v
}

// resolve returns v with what is known where paths meet.
func (t *tracer) resolve(v value) value {
	if v.kind != valueFar {
		return v
	}
	for i := range t.joins {
		j := &t.joins[i]
		if j.at == v.at && j.where == v.far {
			if j.open {
				t.circle = min(t.circle, i)
			}
			return j.value.plus(v.number)
		}
	}
	if t.depth >= maxNesting || t.steps < 0 || !t.link() {
		return value{}
	}
	n := len(t.joins)
	t.joins = append(t.joins, join{where: v.far, at: v.at, open: true, value: value{kind: valueNone}})
	t.depth++
	found := t.merged(v.far, int(v.at))
	t.depth--
	j := &t.joins[n]
	j.value, j.open = found, false
	switch {
	case t.circle < n: // found as a part of what is being found out
		j.at = -1
	case t.circle == n:
		t.circle = noCircle
	}
	return found.plus(v.number)
}

// merged returns what w holds in front of instruction j, to which several paths
// lead. Where only indirect jumps lead to a place, what the others bring there
// is taken for the same, unless there is nothing else.
func (t *tracer) merged(w location, j int) value {
	v := t.backwards(w, j, false)
	if v.kind == valueNone || t.isNumber(v) {
		if other := t.backwards(w, j, true); v.kind == valueNone || t.isAddress(other) {
			v = other
		}
	}
	return v
}

// backwards goes back from instruction j on all paths to where w is set.
func (t *tracer) backwards(w location, j int, indirect bool) value {
	x := search{t: t, value: value{kind: valueNone}}
	x.arrive(w, j)
	for n := 0; n < len(x.starts); n++ {
		from := x.starts[n]
		if from.at == 0 {
			x.value = t.either(x.value, t.argument(x.tracks[from.track].where))
		}
		t.eachBefore(int(from.at), indirect, func(p int) { x.follow(from.track, p) })
		if x.value.kind == valueUnknown || t.steps < 0 || len(x.starts) > maxStarts {
			return value{}
		}
	}
	return x.value
}

// argument returns what w holds when the function is entered.
func (t *tracer) argument(w location) value {
	if w.reg == tocPointer {
		return t.toc()
	}
	return value{kind: valueWhole}
}

// search goes back on all paths. Where a value is only copied, it goes on with
// the place that it comes from.
type search struct {
	t      *tracer
	tracks []track
	starts []joint
	value  value
}

// track is the search for what sets one location.
type track struct {
	where      location
	seen, done indexSet // starts of paths; instructions
}

// joint is an instruction in front of which paths meet.
type joint struct {
	track int
	at    int32
}

// arrive adds a start.
func (x *search) arrive(w location, j int) {
	i := 0
	for i < len(x.tracks) && x.tracks[i].where != w {
		i++
	}
	if i == len(x.tracks) {
		n := len(x.t.f.Insts)
		x.t.steps -= n / 64
		x.tracks = append(x.tracks, track{w, newIndexSet(n), newIndexSet(n)})
	}
	if x.tracks[i].seen.add(j) {
		x.starts = append(x.starts, joint{i, int32(j)})
	}
}

// follow goes on back from behind instruction p.
func (x *search) follow(i, p int) {
	t, w := x.t, x.tracks[i].where
	for x.tracks[i].done.add(p) {
		if t.sets(p, w) {
			x.take(t.assigned(w, p))
			return
		}
		before, _, ok := t.before(p)
		if !ok {
			x.arrive(w, p)
			return
		}
		p = before
	}
}

// take adds a value that the register may have.
func (x *search) take(v value) {
	if v.kind == valueFar && v.number == 0 && len(x.tracks) < maxTracks {
		x.arrive(v.far, int(v.at))
		return
	}
	x.value = x.t.either(x.value, x.t.resolve(v))
}

// indexSet is a set of indices of instructions.
type indexSet []uint64

func newIndexSet(n int) indexSet { return make(indexSet, n/64+1) }

// add reports whether i is new.
func (s indexSet) add(i int) bool {
	word, bit := &s[i/64], uint64(1)<<(i%64)
	added := *word&bit == 0
	*word |= bit
	return added
}

// eachBefore calls visit with every instruction that may have been executed
// before instruction j. Where only indirect jumps lead to j, those are all the
// indirect jumps there are, if they are asked for.
func (t *tracer) eachBefore(j int, indirect bool, visit func(p int)) {
	falls, last := j > 0 && t.f.Insts[j-1].Continues(), t.sources[j]
	if falls {
		visit(j - 1)
	}
	for ; last != 0; last = t.siblings[last-1] {
		visit(int(last - 1))
	}
	if indirect && !falls && t.sources[j] == 0 && j != 0 {
		for _, p := range t.indirect {
			visit(int(p))
		}
	}
}

// inFrame reports whether register r points at the stack frame.
func (t *tracer) inFrame(r uint8) bool {
	const (
		framePointer = 31
		prologue     = 64 // instructions
		setsFrame    = insnMR | stackPointer<<21 | framePointer<<16 | stackPointer<<11
	)
	if r != framePointer {
		return r == stackPointer
	}
	if t.frame == unasked {
		first := t.f.Insts[:min(len(t.f.Insts), prologue)]
		t.frame = answerOf(slices.ContainsFunc(first, func(inst decode.Inst) bool { return inst.Detail == setsFrame }))
	}
	return t.frame == yes
}

// What sets r2 at a global entry: addis r2,r12,… or lis r2,…, then addi r2,r2,….
const (
	addisTOC = opADDIS<<26 | tocPointer<<21 | 12<<16
	lisTOC   = opADDIS<<26 | tocPointer<<21
	addiTOC  = opADDI<<26 | tocPointer<<21 | tocPointer<<16
)
