package flow

import "slices"

// location is a register or, where reg is NoReg, memory: width bytes at a
// register, another register and a displacement.
type location struct {
	reg         Reg
	base, index Reg
	shift       uint8 // of index
	width       uint8
	shared      bool // other functions and stores by way of other registers may change it
	disp        uint64
}

// meeting is a location before instruction at, where ways meet.
type meeting struct {
	where location
	at    int32
}

// join is what is known of a location where ways meet.
type join struct {
	meeting
	open  bool // still being found out; value is none then
	value value
}

// noCircle stands for no index of joins.
const noCircle = 1 << 30

// alters reports whether instruction p changes w. A displacement from the stack
// pointer follows where that only moves.
func (t *Tracer) alters(p int, w *location) bool {
	changes := t.changes(p)
	if w.reg != NoReg {
		return changes.has(w.reg)
	}
	if changes.has(w.index) {
		return true
	}
	if changes.has(w.base) {
		x := t.isa.Result(&t.insts[p], w.base)
		if x.Op != OpAdd || x.A != w.base || x.B != NoReg {
			return true
		}
		w.disp += x.K
	}
	return changes&MemoryWritten != 0 && t.storesTo(p, w)
}

// sets is alters, but where instruction p only copies the register that w is at a
// displacement from: then it makes w what that was before.
func (t *Tracer) sets(p int, w *location) bool {
	if !t.alters(p, w) {
		return false
	}
	changes := t.changes(p)
	if w.reg != NoReg || !changes.has(w.base) || changes.has(w.index) || changes&MemoryWritten != 0 {
		return true
	}
	x := t.isa.Result(&t.insts[p], w.base)
	if x.Op != OpAdd || x.Part > 0 || x.A == NoReg || x.B != NoReg || !w.shared && !t.facts.Frame.has(x.A) {
		return true
	}
	w.base, w.disp = x.A, w.disp+x.K
	return false
}

// storeBeside returns where instruction p stores, if w is at a displacement from
// the same register.
func (t *Tracer) storeBeside(p int, w *location) (s Store, ok bool) {
	s, ok = t.isa.Store(&t.insts[p])
	return s, ok && s.Base == w.base && w.index == NoReg
}

// storesTo reports whether instruction p, which changes memory, may change w.
func (t *Tracer) storesTo(p int, w *location) bool {
	s, ok := t.storeBeside(p, w)
	if !ok {
		return w.shared
	}
	return w.disp-s.Disp < uint64(s.Size) || s.Disp-w.disp < uint64(w.width)
}

// stored returns the register that instruction p stores to w.
func (t *Tracer) stored(p int, w *location) (r Reg, ok bool) {
	s, ok := t.storeBeside(p, w)
	if !ok || s.Width < w.width {
		return NoReg, false
	}
	for n, r := range s.Regs {
		if r != NoReg && s.Disp+uint64(n)*uint64(s.Width) == w.disp {
			return r, true
		}
	}
	return NoReg, false
}

// definition goes back from before instruction j to the one that changes w, as
// long as there is only one way. It returns where that ends otherwise.
func (t *Tracer) definition(w *location, j int) (p int, found bool) {
	for {
		p, _, ok := t.before(j)
		if !ok {
			return j, false
		}
		if t.sets(p, w) {
			return p, true
		}
		j = p
	}
}

// find returns what w holds before instruction j: kindFar where the only way
// ends before it is set.
func (t *Tracer) find(w location, j int) value {
	if w.reg == t.facts.Fixed && w.reg != NoReg {
		return constant(t.facts.Value)
	}
	p, found := t.definition(&w, j)
	if !found {
		return value{kind: kindFar, far: w, at: int32(p)}
	}
	return t.assigned(w, p)
}

// assigned returns what instruction p, which changes w, puts there.
func (t *Tracer) assigned(w location, p int) value {
	if t.depth == 0 || t.steps < 0 {
		return failed(WhatTooFar)
	}
	t.depth--
	v := value{kind: kindWhole} // saved by the caller, or stored in another way
	if w.reg != NoReg {
		x := t.isa.Result(&t.insts[p], w.reg)
		v = t.eval(&x, p)
	} else if r, ok := t.stored(p, &w); ok {
		v = t.operand(r, p)
	}
	t.depth++
	return v
}

// operand returns what register r holds before instruction p.
func (t *Tracer) operand(r Reg, p int) value {
	if r == NoReg {
		return constant(0)
	}
	return t.find(location{reg: r}, p)
}

// eval returns the value of x before instruction p.
func (t *Tracer) eval(x *Expr, p int) value {
	if x.Part > 0 {
		return number(WhatArithmetic)
	}
	switch x.Op {
	case OpNone:
		return value{kind: kindNone}
	case OpWhole:
		return value{kind: kindWhole}
	case OpAddress:
		return value{kind: kindConstant, number: x.K, formed: true}
	case OpAdd:
		return t.sum(x, p)
	case OpField:
		return t.field(x, p)
	case OpMask:
		v := t.operand(x.A, p)
		if v.kind == kindConstant {
			return constant(v.number & x.K)
		}
		return varying(use{x.A, int32(p), x.K, t.insts[p].Addr}, 0)
	case OpInsert:
		if v := t.operand(x.A, p); v.kind == kindConstant {
			return constant(v.number&^((1<<x.Bits-1)<<x.From) | x.K)
		}
	case OpLoad:
		return t.load(x, p)
	case OpEither:
		return t.merge(t.resolve(t.operand(x.A, p)), t.resolve(t.operand(x.B, p)))
	case OpGuard:
		a, b := t.resolve(t.operand(x.A, p)), t.resolve(t.operand(x.B, p))
		if a.kind == kindWhole && b.kind == kindWhole {
			return a
		}
	}
	return number(WhatArithmetic)
}

// field is eval for OpField.
func (t *Tracer) field(x *Expr, p int) value {
	v, check := t.operand(x.A, p), t.insts[p].Addr
	u := use{x.A, int32(p), unmasked, 0}
	if x.From == 0 {
		return v.extended(x.Bits, x.Signed, x.Shift, u, check)
	}
	if v.kind == kindConstant {
		return constant(extend(v.number>>x.From, x.Bits, x.Signed) << x.Shift)
	}
	if x.Signed {
		return number(WhatArithmetic)
	}
	return varying(use{NoReg, 0, unmasked >> (64 - x.Bits), check}, x.Shift)
}

// sum is eval for OpAdd, and the address of OpLoad. First, both operands are
// only looked at along the way that is the only one: mostly that tells which
// one is the address of a table, and it does not matter where the other, the
// index, comes from; but for one that is added to an entry.
func (t *Tracer) sum(x *Expr, p int) value {
	ua, ub := use{x.A, int32(p), unmasked, 0}, use{x.B, int32(p), unmasked, 0}
	if x.B == NoReg {
		return t.displaced(x, t.operand(x.A, p), ua)
	}
	bits := x.Bits
	if x.Op == OpLoad {
		bits = x.IndexBits
	}
	plain := x.Shift == 0 && bits&63 == 0
	t.shallow++
	a, b := t.operand(x.A, p), t.operand(x.B, p)
	t.shallow--
	moved := t.displaced(x, a, ua)
	aBase, bBase := t.isGuess(&moved), plain && t.isGuess(&b)
	if t.shallow == 0 {
		deep := x.Op == OpAdd
		if !isPart(&a) && (!bBase || deep) {
			a = t.deep(x.A, p, bBase)
			moved = t.displaced(x, a, ua)
			aBase = t.isGuess(&moved)
		}
		if !isPart(&b) && (!aBase && plain || deep) {
			b = t.deep(x.B, p, aBase && plain)
			bBase = plain && t.isGuess(&b)
		}
	}
	if bBase {
		b = b.plus(x.K)
	} else {
		a = moved
	}
	if x.Op == OpLoad {
		a, b = a.indexing(), b.indexing()
	}
	if !plain {
		b = b.sure().extended((bits-1)&63+1, x.Signed && x.Op == OpAdd, x.Shift, ub, t.insts[p].Addr)
	}
	return t.combine(a, b, ua, ub)
}

// isPart reports whether v is known well enough as a part of a sum. What seems to be
// an index counts, though it may be made from an entry whose table is far away.
func isPart(v *value) bool { return v.kind >= kindConstant }

// deep returns what register r holds before instruction p, on all ways there.
// What is added to a base is not looked for far away.
func (t *Tracer) deep(r Reg, p int, added bool) value {
	spare := 0
	if added {
		spare = t.spare(maxAddedSteps)
	}
	v := t.resolve(t.operand(r, p))
	t.steps = max(t.steps, 0) + spare
	return v
}

// spare leaves no more than n steps, and returns the others.
func (t *Tracer) spare(n int) int {
	spare := max(0, t.steps-n)
	t.steps -= spare
	return spare
}

// displaced returns a, which u is the use of, with the displacement of x.
func (t *Tracer) displaced(x *Expr, a value, u use) value {
	if t.isData(x.K) {
		return t.combine(constant(x.K), a, noUse, u)
	}
	return a.plus(x.K)
}

// load is eval for OpLoad. What is whole is so wherever it comes from: the
// address of a table of such is not looked for far away.
func (t *Tracer) load(x *Expr, p int) value {
	if x.B == NoReg && t.facts.Frame.has(x.A) {
		if x.Width < 8 {
			return number(WhatArithmetic)
		}
		return t.find(location{reg: NoReg, base: x.A, index: NoReg, width: x.Width, disp: x.K}, p)
	}
	spare := 0
	if x.Width == 8 {
		spare = t.spare(maxPointerSteps)
	}
	v := t.sum(x, p)
	t.steps = max(t.steps, 0) + spare
	return t.loaded(v, x, p)
}

// loaded returns what x loads from the address v before instruction p.
func (t *Tracer) loaded(v value, x *Expr, p int) value {
	switch {
	case v.kind == kindTarget: // one table holds the indices of another
		v = value{kind: kindElement, number: v.base, scale: v.shift, index: v.outer}
	case v.kind == kindConstant && t.isTable(&v) && !t.isa.Pieces(): // compilers make tables of one entry
		v = value{kind: kindElement, number: v.number, scale: unscaled, index: use{reg: NoReg, check: t.insts[p].Addr}}
	}
	if v.scale == 0 && x.Width > 1 {
		v.scale, v.index = unscaled, noUse // the index was scaled out of sight
	}
	switch {
	case v.kind == kindElement && (x.Width == 1<<v.scale || v.scale == unscaled && x.Width < 8):
		bits := x.Bits
		if bits == 0 {
			bits = 64
		}
		return value{kind: kindEntry, number: v.number, width: x.Width, signed: x.Signed, bits: bits, index: v.index, outer: noUse, scale: v.scale}
	case x.Width < 8:
		return number(WhatNumber)
	case v.kind == kindConstant && t.isa.Pieces() && t.mem != nil:
		if p, ok := t.mem.Pointer(v.number); ok {
			return value{kind: kindConstant, cell: true, number: p}
		}
	}
	return value{kind: kindWhole}
}

// resolve returns v with what is known where ways meet.
func (t *Tracer) resolve(v value) value {
	if v.kind != kindFar || t.shallow > 0 {
		return v
	}
	if i := t.joinOf(&v); i >= 0 {
		if t.joins[i].open {
			t.circle = min(t.circle, i)
		}
		return t.joins[i].value.plus(v.number)
	}
	n := len(t.joins)
	if t.depth == 0 || t.steps < 0 || n == maxJoins {
		return failed(WhatTooFar)
	}
	t.joins = append(t.joins, join{meeting: meeting{v.far, v.at}, open: true, value: value{kind: kindNone}})
	t.depth--
	found := t.merged(v.far, int(v.at))
	t.depth++
	j := &t.joins[n]
	j.value, j.open = found, false
	if t.circle < n { // found as a part of what is being found out
		j.at = none
	} else {
		t.circle = noCircle
	}
	return found.plus(v.number)
}

// joinOf returns the index of the join that the value v is from, none where it has
// not been looked at.
func (t *Tracer) joinOf(v *value) int {
	for i := range t.joins {
		if j := &t.joins[i]; j.at == v.at && j.where == v.far {
			return i
		}
	}
	return none
}

// merged returns what w holds before instruction j, to which several ways lead.
// Where only indirect jumps lead to a place, what the others bring there is
// taken for the same, unless there is nothing else; so is what comes from a
// call that may never return, where else there were two addresses of tables.
func (t *Tracer) merged(w location, j int) value {
	v := t.over(w, j, directWays)
	switch {
	case v.kind == kindNone || t.isNumber(&v):
		if o := t.over(w, j, allWays); o.kind != kindFailed && !t.isNumber(&o) {
			v = o
		}
	case v.what == WhatSeveral, v.what == WhatTooFar:
		if o := t.over(w, j, sureWays); t.isGuess(&o) {
			v = o
		}
	}
	return v
}

// over returns what the definitions of w before j make of it. Where one of them
// only copies what another location holds where ways meet, the definitions of that
// count as well: what registers and the stack hand round is looked at once.
func (t *Tracer) over(w location, j int, over ways) value {
	start := len(t.copied)
	t.copied = append(t.copied, meeting{w, int32(j)})
	v := value{kind: kindNone}
	spare := 0
	for n := start; n < len(t.copied) && v.kind != kindFailed; n++ {
		if t.isGuess(&v) {
			spare += t.spare(maxCopiedSteps)
		}
		at, ok := t.definitions(t.copied[n], over)
		if ok && len(t.found) == at && n > start {
			at, ok = t.definitions(t.copied[n], allWays)
		}
		v = t.defined(v, t.copied[n].where, at, start)
		switch t.found = t.found[:at]; {
		case ok:
		case n == start:
			v = failed(WhatTooFar)
		default:
			v = t.merge(v, number(WhatTooFar))
		}
	}
	t.copied = t.copied[:start]
	t.steps = max(t.steps, 0) + spare
	return v
}

// defined returns what v and the definitions of w from at on make of each other:
// first the constants, beside which nothing is looked for far away.
func (t *Tracer) defined(v value, w location, at, copies int) value {
	end := len(t.found)
	for n := at; n < end; n++ {
		if o := t.constantAt(&w, t.found[n]); o.kind == kindConstant {
			v = t.merge(v, o)
			t.found[n].at = settled
		}
	}
	for n := at; n < end && v.kind != kindFailed; n++ {
		if d := t.found[n]; d.at != settled {
			v = t.merge(v, t.definedBy(w, d, t.isGuess(&v), copies))
		}
	}
	return v
}

// constantAt returns what definition d makes of w, if that is a constant.
func (t *Tracer) constantAt(w *location, d position) (v value) {
	if d.at < 0 || w.reg == NoReg {
		return v
	}
	x := t.isa.Result(&t.insts[d.at], w.reg)
	if x.Op == OpAddress || x.Op == OpAdd && x.B == NoReg {
		t.shallow++
		v = t.eval(&x, int(d.at))
		t.shallow--
	}
	return v
}

// definedBy returns what definition d makes of w; beside a constant, what is far
// away is none. A copy is none as well, and what it is a copy of is put on the list.
func (t *Tracer) definedBy(w location, d position, beside bool, copies int) value {
	if d.at == none {
		return value{kind: kindWhole} // the caller's
	}
	spare := 0
	if beside {
		spare = t.spare(maxAddedSteps)
	}
	w.disp = d.disp
	v := t.assigned(w, int(d.at))
	if v.kind == kindFar && v.number == 0 && t.joinOf(&v) < 0 {
		if m := (meeting{v.far, v.at}); !slices.Contains(t.copied[copies:], m) {
			t.copied = append(t.copied, m)
		}
		v = value{kind: kindNone}
	}
	v = t.resolve(v)
	t.steps = max(t.steps, 0) + spare
	if v.what == WhatTooFar {
		v = number(WhatTooFar)
	}
	return v
}
