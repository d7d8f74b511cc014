package ppc64

import (
	"slices"

	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

// Limits of one search.
const (
	maxTraced  = 1 << 20 // instructions of the function
	maxSteps   = 1 << 13 // instructions looked at on the way back
	maxNesting = 32      // registers that depend on one another
	maxJoins   = 64      // places where paths meet, on the way to one register
)

// tracer finds out what a register holds by going back from where it is used.
type tracer struct {
	f     *classify.Func
	mem   optcheck.Memory
	steps int // left
	depth int

	// The direct branches of f, as lists by target: sources has the last
	// branch to each instruction, siblings, for each branch, the one before it
	// to the same target. All numbers are one too high, so that 0 is none.
	sources, siblings []int32
	indirect          []int32 // the indirect jumps

	known []known
	frame int8 // whether r31 points at the frame: 1, or -1 where it does not
}

// known is a result that has been found, or is being looked for.
type known struct {
	slot slot
	reg  uint8
	open bool
	at   int32
	value
}

// slot is a part of the stack frame, or of any structure: width bytes at a
// register and a displacement. The zero value is none.
type slot struct {
	reg   uint8
	disp  uint64
	width uint8
}

// link fills in the lists of branches.
func (t *tracer) link() bool {
	insts := t.f.Insts
	if t.sources != nil || len(insts) > maxTraced {
		return t.sources != nil
	}
	lists := make([]int32, 2*len(insts))
	t.sources, t.siblings = lists[:len(insts)], lists[len(insts):]
	for i := range insts {
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

// goesOn reports whether execution comes from inst to the next instruction,
// be it by way of a called function.
func goesOn(inst *decode.Inst) bool {
	switch inst.Flow {
	case decode.FlowNone, decode.FlowCall, decode.FlowCallIndirect, decode.FlowSyscall:
		return !inst.Has(decode.Invalid)
	}
	return inst.Has(decode.Conditional)
}

// before returns the instruction that was executed before instruction j, and
// whether it is a branch that was taken; ok is false where there may be several.
func (t *tracer) before(j int) (p int, taken, ok bool) {
	if t.steps--; t.steps < 0 || !t.link() {
		return 0, false, false
	}
	falls := j > 0 && goesOn(&t.f.Insts[j-1])
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
	return t.place(r, slot{}, j)
}

// slot returns what part s of the frame holds in front of instruction j.
func (t *tracer) slot(s slot, j int) value { return t.place(noRegister, s, j) }

// place is register or slot.
func (t *tracer) place(r uint8, s slot, j int) value {
	p, found := t.definition(r, s, j)
	switch {
	case t.steps < 0 || t.depth >= maxNesting:
		return value{}
	case found:
		return t.defined(r, s, p)
	}
	return t.merged(r, s, p)
}

// definition goes back from instruction j to the one that writes r or s, as
// long as there is only one way. It returns where that ends otherwise.
func (t *tracer) definition(r uint8, s slot, j int) (p int, found bool) {
	for {
		p, _, ok := t.before(j)
		if !ok {
			return j, false
		}
		if t.sets(p, r, s) {
			return p, true
		}
		j = p
	}
}

// sets reports whether instruction p writes r or s.
func (t *tracer) sets(p int, r uint8, s slot) bool {
	inst := &t.f.Insts[p]
	if r != noRegister {
		return writes(inst, r)
	}
	stored, ok := storeOf(inst)
	return ok && stored.overlaps(s) || writes(inst, s.reg)
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
	s = slot{fieldRA(word), displacementOf(inst), 16}
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
	return s.reg == o.reg && (s.disp-o.disp < uint64(o.width) || o.disp-s.disp < uint64(s.width))
}

// defined returns what instruction p puts into r or s, which it writes.
func (t *tracer) defined(r uint8, s slot, p int) value {
	for i := range t.known {
		k := &t.known[i]
		if k.at == int32(p) && k.reg == r && k.slot == s {
			if k.open { // it depends on itself
				return value{}
			}
			return k.value
		}
	}
	n := len(t.known)
	t.known = append(t.known, known{slot: s, reg: r, at: int32(p), open: true})
	t.depth++
	v := t.assigned(r, s, p)
	t.depth--
	t.known[n].value, t.known[n].open = v, false
	return v
}

// assigned is defined where nothing is known yet.
func (t *tracer) assigned(r uint8, s slot, p int) value {
	inst := &t.f.Insts[p]
	if r == noRegister {
		stored, ok := storeOf(inst)
		if ok && stored == s && inst.Len == wordSize {
			return t.register(targetOf(inst), p)
		}
		return value{kind: valueWhole} // saved by a caller, or stored piece by piece
	}
	if r == tocPointer && t.restoresTOC(inst, p) {
		return t.toc()
	}
	return t.result(r, p)
}

// merged returns what is known of r or s in front of instruction j, to which
// several paths lead, by going back on all of them.
func (t *tracer) merged(r uint8, s slot, j int) value {
	joins := []int32{int32(j)}
	v := value{kind: valueNone}
	for n := 0; n < len(joins); n++ {
		at := int(joins[n])
		if at == 0 {
			v = either(v, t.entry(r))
		}
		complete := t.eachBefore(at, func(p int) {
			if !t.sets(p, r, s) {
				var found bool
				if p, found = t.definition(r, s, p); !found {
					if !slices.Contains(joins, int32(p)) {
						joins = append(joins, int32(p))
					}
					return
				}
			}
			v = either(v, t.defined(r, s, p))
		})
		if !complete || v.kind == valueUnknown || t.steps < 0 || len(joins) > maxJoins {
			return t.sole(r)
		}
	}
	return v
}

// eachBefore calls visit with every instruction that may have been executed
// before instruction j. Where only indirect jumps lead to j, those are all the
// indirect jumps there are.
func (t *tracer) eachBefore(j int, visit func(p int)) bool {
	if !t.link() {
		return false
	}
	falls, last := j > 0 && goesOn(&t.f.Insts[j-1]), t.sources[j]
	if falls {
		visit(j - 1)
	}
	for ; last != 0; last = t.siblings[last-1] {
		visit(int(last - 1))
	}
	if !falls && t.sources[j] == 0 && j != 0 {
		for _, p := range t.indirect {
			visit(int(p))
		}
	}
	return true
}

// sole returns the constant that register r holds wherever the function itself
// has set it: compilers keep addresses so over a large function.
func (t *tracer) sole(r uint8) value {
	v := value{kind: valueNone}
	if r >= 32 || r <= stackPointer || t.depth >= maxNesting {
		return value{}
	}
	t.steps = max(t.steps, maxSteps/8)
	for p := range t.f.Insts {
		inst := &t.f.Insts[p]
		if inst.Flow != decode.FlowNone || inst.Has(decode.Invalid) || !writes(inst, r) || t.restores(inst) {
			continue
		}
		if v = either(v, t.defined(r, slot{}, p)); v.kind != valueConst {
			return value{}
		}
	}
	return v
}

// restores reports whether inst loads a register from the frame.
func (t *tracer) restores(inst *decode.Inst) bool {
	l, ok := loadOf(inst)
	return ok && !l.indexed && l.width == 8 && t.inFrame(fieldRA(WordOf(inst)))
}

// inFrame reports whether register r points at the stack frame.
func (t *tracer) inFrame(r uint8) bool {
	const framePointer = 31
	if r != framePointer || t.frame != 0 {
		return r == stackPointer || r == framePointer && t.frame > 0
	}
	t.frame = -1
	const prologue = 64
	for i := range t.f.Insts[:min(len(t.f.Insts), prologue)] {
		if word := t.f.Insts[i].Detail; word == insnMR|stackPointer<<21|framePointer<<16|stackPointer<<11 {
			t.frame = 1
			break
		}
	}
	return t.frame > 0
}

// tocPointer is the number of r2.
const tocPointer = 2

// entry returns what r holds when the function is entered.
func (t *tracer) entry(r uint8) value {
	if r == tocPointer {
		return t.toc()
	}
	return value{kind: valueWhole}
}

// restoresTOC reports whether instruction p gives r2 the TOC pointer: at the
// global entry, or behind a call.
func (t *tracer) restoresTOC(inst *decode.Inst, p int) bool {
	return p < 2 || t.restores(inst)
}

// TOCMemory is implemented by an optcheck.Memory that knows the TOC pointer,
// the value of r2, of functions that do not set it themselves: those of ELFv1,
// and those of ELFv2 with a local entry point only.
type TOCMemory interface {
	TOC() (addr uint64, ok bool)
}

// toc returns the TOC pointer. The global entry of an ELFv2 function computes
// it from its own address, or in a program that is not position-independent
// loads it as a constant [OpenPOWER ELFv2 ABI, 2.3.2.1].
func (t *tracer) toc() value {
	const (
		addisFromEntry = opADDIS<<26 | tocPointer<<21 | 12<<16
		lis            = opADDIS<<26 | tocPointer<<21
		addi           = opADDI<<26 | tocPointer<<21 | tocPointer<<16
	)
	if len(t.f.Insts) >= 2 {
		first, second := WordOf(&t.f.Insts[0]), WordOf(&t.f.Insts[1])
		n := signedField(first)<<16 + signedField(second)
		if second&^0xffff == addi {
			switch first &^ 0xffff {
			case addisFromEntry:
				return constant(t.f.Insts[0].Addr + n)
			case lis:
				return constant(n)
			}
		}
	}
	if m, ok := t.mem.(TOCMemory); ok {
		if addr, ok := m.TOC(); ok {
			return constant(addr)
		}
	}
	return value{}
}
