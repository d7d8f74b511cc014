package ppc64

import (
	"xol/decode"
	"xol/optcheck/flow"
)

// maxCount is more than any compiler's table has.
const maxCount = 1 << 16

// maxMask is the widest mask in bits that says anything of a table.
const maxMask = 8

// origin is a number from which an index was made: the index is its low bits
// plus a constant.
type origin struct {
	// Where the number comes from: instruction at sets the location, or, where
	// at is negative, the location holds it in front of instruction ^at, where
	// paths meet.
	at int32
	location
	add  uint64
	bits uint8 // 64 where it is not masked
}

// maxOrigins is more than compilers need between a comparison and an index.
const maxOrigins = 8

// origins are what an index was made from, the index itself first.
type origins struct {
	list [maxOrigins]origin
	n    int
}

func (a *origins) add(x origin) bool {
	if a.n == len(a.list) {
		return false
	}
	a.list[a.n] = x
	a.n++
	return true
}

// originsOf goes back from behind instruction p over what the low bits of
// register r were made from: copies, extensions, masks and additions of
// constants.
func (t *tracer) originsOf(r, bits uint8, p int) (a origins) {
	x := origin{location: location{reg: r}, bits: bits}
	for ok := true; ok; {
		at, found := t.scan(x.location, p)
		x.at = int32(at)
		if !found {
			x.at = ^x.at
		}
		if !a.add(x) || !found {
			break
		}
		if x.location, ok = t.source(&x, at); !ok {
			break
		}
		if p = at; x.reg == noRegister {
			continue // behind the load: it may have changed its own base
		}
		if p, _, ok = t.before(at); !ok {
			x.at = ^int32(at)
			a.add(x)
		}
	}
	return a
}

// originsAt is originsOf from in front of instruction j.
func (t *tracer) originsAt(r, bits uint8, j int) (a origins) {
	if p, _, ok := t.before(j); ok {
		return t.originsOf(r, bits, p)
	}
	a.add(origin{at: ^int32(j), location: location{reg: r}, bits: bits})
	return a
}

// source returns from where instruction p takes what it puts into x, having
// corrected the other parts of x.
func (t *tracer) source(x *origin, p int) (from location, ok bool) {
	inst := &t.f.Insts[p]
	word := WordOf(inst)
	rs := location{reg: targetOf(inst)}
	if OpOf(inst) != OpOther || inst.Len != wordSize {
		return from, false
	}
	if x.reg == noRegister {
		s, stores := storeOf(inst)
		return rs, stores && s == x.slot
	}
	switch word >> 26 {
	case opADDI:
		x.add += signedField(word)
		return location{reg: fieldRA(word)}, x.bits >= 64 && fieldRA(word) != 0
	case opRLWINM, opRotate:
		r, ok := rotationOf(inst)
		if r.bits < 32 {
			x.bits = min(x.bits, r.bits)
			ok = ok && x.add == 0
		}
		return rs, ok && r.from == 0 && r.to == 0
	case opX:
		if extendedOp(word) == xoEXTSW || extendedOp(word) == xoOR && rs.reg == fieldRB(word) {
			return rs, true
		}
	}
	s, ok := loadedSlot(inst)
	return location{noRegister, s}, ok
}

// loadedSlot returns what a load reads, as it can be named behind the load.
func loadedSlot(inst *decode.Inst) (s slot, ok bool) {
	f, word := formatOf(inst), WordOf(inst)
	s.base = fieldRA(word)
	if l, ok := loadOf(inst); ok {
		s.width = l.width
		if l.indexed {
			s.index = fieldRB(word)
			return s, s.index != 0
		}
		s.disp = displacementOf(inst)
		return s, true
	}
	for i := range loads {
		if s.width = loads[i].width; f.name == loads[i].update {
			return s, true
		}
	}
	return s, false
}

// limit returns the greatest value of an index with the origins a that a
// number with the origins b and at most n allows.
func (a *origins) limit(b *origins, n uint64) (uint64, bool) {
	for i := range a.list[:a.n] {
		x := &a.list[i]
		for k := range b.list[:b.n] {
			y := &b.list[k]
			if x.at == y.at && x.location == y.location && (y.bits >= 64 || y.bits == x.bits) {
				return n - y.add + x.add, true
			}
		}
	}
	return 0, false
}

// bound fills in how many entries the table has that instruction i uses with
// the index x: by a mask, or by comparisons on every way to i.
func (t *tracer) bound(table *flow.Table, i int, x selector) {
	if x.check != 0 && x.bits <= maxMask {
		table.Bound, table.Count, table.Check = flow.BoundMask, 1<<x.bits, x.check
	}
	if x.reg == noRegister {
		return
	}
	last, taken, ok := t.before(i)
	if !ok {
		return
	}
	a := t.originsAt(x.reg, x.bits, int(x.user))
	n, check, found := t.limited(&a, last, taken, 0)
	if found && n < maxCount && (table.Count == 0 || int(n) < table.Count) {
		table.Bound, table.Count, table.Check = flow.BoundCompare, int(n)+1, check
	}
}

// maxMeets is how many times paths may meet between a comparison and a jump.
const maxMeets = 3

// limited returns the greatest value that a number with the origins a can have
// behind instruction p, a branch that was taken or not, and the address of the
// comparison that says so.
func (t *tracer) limited(a *origins, p int, taken bool, meets int) (n, check uint64, found bool) {
	var known [8]condition
	for {
		inst := &t.f.Insts[p]
		if n, found = t.compared(inst, p, &known, a); found && n < maxCount {
			return n, inst.Addr, true
		}
		forget(&known, writesFields(inst))
		learn(&known, inst, taken)
		before, was, ok := t.before(p)
		if !ok {
			return t.limitedOnAll(a, p, meets)
		}
		p, taken = before, was
	}
}

// limitedOnAll is limited where paths meet in front of instruction j: the
// number must be limited on each of them.
func (t *tracer) limitedOnAll(a *origins, j, meets int) (most, check uint64, found bool) {
	i := 0
	for i < a.n && (a.list[i].at != ^int32(j) || a.list[i].reg == noRegister) {
		i++
	}
	if i == a.n || meets == maxMeets || j == 0 {
		return 0, 0, false
	}
	x, all := a.list[i], true
	t.eachBefore(j, false, func(p int) {
		if !all {
			return
		}
		b := t.originsOf(x.reg, x.bits, p)
		n, at, ok := t.limited(&b, p, p != j-1, meets+1)
		if n += x.add; ok && n < maxCount {
			if !found || n > most {
				most, check, found = n, at, true
			}
			return
		}
		all = false
	})
	return most, check, found && all
}

// condition is what the branches behind an instruction say of a field of the
// condition register.
type condition struct{ set, clear uint8 }

// Bits of a field of the condition register, by their number in it.
const (
	crLess = iota
	crGreater
	crEqual
)

// learn takes in what follows from a conditional branch that was taken or not.
func learn(known *[8]condition, inst *decode.Inst, taken bool) {
	if target, direct := inst.BranchTarget(); !inst.Has(decode.Conditional) || direct && target == inst.Next() {
		return
	}
	switch OpOf(inst) {
	case OpBranchCond, OpBranchLR, OpBranchCTR, OpBranchTAR:
	default:
		return
	}
	word := WordOf(inst)
	bo := boField(word)
	if bo&boIgnoreCR != 0 || bo&boIgnoreCTR == 0 && !taken {
		return
	}
	bi := fieldRA(word)
	bit, c := uint8(1)<<(bi&3), &known[bi>>2]
	if (bo&boTrue != 0) == taken {
		c.set |= bit
	} else {
		c.clear |= bit
	}
}

// forget drops what is known of the fields in the set.
func forget(known *[8]condition, fields uint8) {
	for i := range known {
		if fields>>i&1 != 0 {
			known[i] = condition{}
		}
	}
}

// compared returns the greatest index that is left where instruction p is a
// comparison of one with the origins a.
func (t *tracer) compared(inst *decode.Inst, p int, known *[8]condition, a *origins) (n uint64, found bool) {
	word := WordOf(inst)
	c := known[fieldBF(word)]
	switch op := word >> 26; {
	case inst.Len != wordSize:
		return 0, false
	case op == opTWI:
		c = passedTrap(boField(word))
		n = signedField(word)
	case op == opCMPLI:
		n = uint64(word & 0xffff)
	case op == opCMPI:
		n = signedField(word)
	case op == opX && (extendedOp(word) == xoCMP || extendedOp(word) == xoCMPL):
		if c == (condition{}) {
			return 0, false
		}
		v := t.resolve(t.register(fieldRB(word), p))
		if v.kind != valueConst {
			return 0, false
		}
		n = v.number
	default:
		return 0, false
	}
	switch {
	case c.set>>crLess&1 != 0, c.clear>>crGreater&1 != 0 && c.clear>>crEqual&1 != 0:
		n--
	case c.clear>>crGreater&1 == 0:
		return 0, false
	}
	b := t.originsAt(fieldRA(word), 64, p)
	return a.limit(&b, n)
}

// passedTrap returns what holds behind a trap with the conditions to that did
// not trap. The last two are the unsigned ones.
func passedTrap(to uint32) (c condition) {
	const greater, equal, unsignedGreater = 8, 4, 1
	if to&(greater|unsignedGreater) != 0 {
		c.clear |= 1 << crGreater
	}
	if to&equal != 0 {
		c.clear |= 1 << crEqual
	}
	return c
}
