package arm64

import (
	"xol/decode"
	"xol/optcheck"
)

// Bounds of the search for a table's bound.
const (
	maxSegment = 64      // steps back over instructions with one predecessor
	maxPath    = 512     // steps back over all ways to the jump
	maxSplits  = 4       // places where ways meet, one behind the other
	maxCount   = 1 << 16 // entries
	maxMasked  = 1 << 7  // entries that a mask may tell of; a byte's range says little
)

// limit is how many entries a table has, and how that is known.
type limit struct {
	count int
	check uint64
	bound optcheck.Bound
}

// limit returns how many values the index u may have, from comparisons on all
// ways that lead there.
func (w *window) limit(u use) limit {
	if u.register == zeroOrSP || !w.whole(u.at) {
		return limit{}
	}
	b := bounder{window: w, steps: maxPath}
	v := bounded{origin: origin{cell{register: u.register}, u.at, all}, cond: condNone}
	return b.limit(v, maxSplits)
}

// bounder looks for bounds.
type bounder struct {
	*window
	steps int
}

// bounded is a value on its way back: in front of instruction k it is in cell,
// or the bits of it in mask are.
type bounded struct {
	origin
	best limit // what is known from masks
	cond uint32
}

// Conditions under which a value is known not to be above another. condNone
// stands for all others.
const (
	condEQ   = 0
	condCC   = 3
	condLS   = 9
	condNone = 14
)

// limit goes back from v.k to comparisons that bound v.
func (b *bounder) limit(v bounded, splits int) limit {
	for ; b.steps > 0; b.steps-- {
		p, taken := b.before(v.k)
		if p == none {
			return b.limitOfAll(v, splits)
		}
		if l, done := b.back(&v, p, taken); done {
			return l
		}
	}
	return v.best
}

// limitOfAll returns the greatest limit of the ways that meet in front of v.k.
func (b *bounder) limitOfAll(v bounded, splits int) (greatest limit) {
	k := v.k
	if splits == 0 || b.from[k] == none || isJumpPad(b.at(k)) {
		return v.best
	}
	way := func(p int, taken bool) bool {
		next := v
		l, done := b.back(&next, p, taken)
		if !done {
			l = b.limit(next, splits-1)
		}
		if l.count > greatest.count {
			greatest = l
		}
		return l.count != 0
	}
	if k > 0 && b.insts[k-1].Continues() && !way(k-1, false) {
		return v.best
	}
	for p := b.from[k]; p != none; p = b.next[p] {
		if b.insts[p].Flow == decode.FlowCall || !way(int(p), true) {
			return v.best
		}
	}
	return greatest
}

// back takes v back over instruction p.
func (b *bounder) back(v *bounded, p int, taken bool) (l limit, done bool) {
	inst := b.at(p)
	if OpOf(inst) == OpBCond && v.cond == condNone {
		v.cond = underCondition(WordOf(inst), taken)
	}
	changed := v.changes(inst)
	if setsFlags(inst) {
		if !changed && v.cond != condNone {
			if n := b.compared(p, v); n != 0 {
				return limit{n, inst.Addr, optcheck.BoundCompare}, true
			}
		}
		v.cond = condNone
	}
	v.k = p
	if !changed {
		return limit{}, false
	}
	s, ok := stepOver(inst, v.cell)
	if s.max < maxMasked && (v.best.count == 0 || int(s.max) < v.best.count) {
		v.best = limit{int(s.max) + 1, inst.Addr, optcheck.BoundMask}
	}
	v.cell = s.cell
	v.mask &= s.mask
	return v.best, !ok
}

// underCondition returns the condition that holds behind a b.cond.
func underCondition(w uint32, taken bool) uint32 {
	cond := w & 15
	if !taken {
		cond ^= 1
	}
	switch cond {
	case condEQ, condCC, condLS:
		return cond
	}
	return condNone
}

// compared returns how many values v may have behind the comparison p under
// the condition v.cond; 0 where that does not compare v with a constant.
func (b *bounder) compared(p int, v *bounded) int {
	inst := b.at(p)
	w := WordOf(inst)
	if !isSub(w) || !setsS(w) {
		return 0
	}
	n := uint64(0)
	switch shapeOf(w) {
	case shapeAddImmediate:
		n = uint64(-addImmediate(w))
	case shapeAddShifted:
		right := b.value(fieldRm(inst), p, maxDepth)
		if right.kind != valueConstant || w>>10&63 != 0 {
			return 0
		}
		n = right.addr
	default:
		return 0
	}
	if n >= maxCount || !b.same(fieldRn(inst), v, p) {
		return 0
	}
	if v.cond == condCC {
		return int(n)
	}
	return int(n) + 1
}

// same reports whether register r holds, in front of instruction k, what v is,
// or something at least as great.
func (b *bounder) same(r uint32, v *bounded, k int) bool {
	if r == zeroOrSP {
		return false
	}
	if v.width == 0 && v.register == r {
		return true
	}
	greater := b.originOf(origin{cell{register: r}, k, all})
	own := b.originOf(origin{v.cell, k, v.mask})
	return greater.cell == own.cell && greater.k == own.k && own.mask&^greater.mask == 0
}

// origin is where a value comes from: cell in front of instruction k, and which
// of its bits.
type origin struct {
	cell
	k    int
	mask uint64
}

// originOf follows o back through copies, over instructions with one
// predecessor. Indices are taken to be 32 bits wide.
func (b *bounder) originOf(o origin) origin {
	o.mask &= 1<<32 - 1
	for range maxSegment {
		p, _ := b.before(o.k)
		if p == none {
			break
		}
		if inst := b.at(p); o.changes(inst) {
			s, ok := stepOver(inst, o.cell)
			if !ok {
				break
			}
			o.cell = s.cell
			o.mask &= s.mask
		}
		o.k = p
	}
	return o
}

// step is how a value comes from one that was in cell: some of its bits. Max is
// the greatest number that it may be.
type step struct {
	cell
	mask uint64
	max  uint64
}

// stepOver returns what the value of c behind inst, which changes c, is in
// front of it; false where it is no copy, nor a part of one that is at most as
// great.
func stepOver(inst *decode.Inst, c cell) (s step, ok bool) {
	s = step{cell: c, mask: all, max: all}
	if c.width != 0 {
		source, ok := storedTo(inst, c)
		if !ok || source == zeroOrSP {
			return s, false
		}
		s.cell = cell{register: source}
		s.mask = all >> (64 - 8*c.width)
		return s, true
	}
	w := WordOf(inst)
	if inst.Flow != decode.FlowNone || inst.Has(decode.Invalid) {
		return s, false
	}
	if isLoadStore(w) {
		return stepOverLoad(inst, c, s)
	}
	s.register = fieldRn(inst)
	switch shapeOf(w) {
	case shapeLogicalShifted:
		s.register, ok = moved(inst)
	case shapeAddImmediate:
		ok = addImmediate(w) == 0
	case shapeLogicalImmediate:
		if op := logicOp(w); op == logicAnd || op == logicAnds {
			s.mask = logicalImmediate(w)
			s.max, ok = s.mask, true
		}
	case shapeBitfield:
		return stepOverBitfield(w, s)
	}
	return s, ok && s.register != zeroOrSP
}

// stepOverLoad is for places on the stack.
func stepOverLoad(inst *decode.Inst, c cell, s step) (step, bool) {
	a, ok := transferOf(inst)
	if !ok || a.store || a.vector || c.register != a.registers[0] && c.register != a.registers[1] {
		return s, false
	}
	if a.base != zeroOrSP && a.base != frameRegister {
		return s, false
	}
	s.mask = all >> (64 - 8*a.width)
	s.cell, ok = a.place(c.register)
	s.shared = true // a variable may be read twice
	return s, ok
}

// stepOverBitfield is for extensions, and for fields further up as far as
// their size goes.
func stepOverBitfield(w uint32, s step) (step, bool) {
	f, ok := bitfieldOf(w)
	switch {
	case !ok:
		return s, false
	case f.signed:
		return s, f.bits == 32 && f.left == 0
	case f.left > 0:
		return s, false
	}
	s.max = 1<<f.bits - 1
	s.mask = s.max
	return s, f.left == 0
}
