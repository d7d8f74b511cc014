package ppc64

import (
	"xol/decode"
	"xol/optcheck"
)

// maxCount is more than any compiler's table has.
const maxCount = 1 << 16

// maxMask is the widest mask in bits that counts as a bound. Wider ones are
// those of a type, whose other values the program may know not to occur.
const maxMask = 7

// origin is a number from which an index was made: the index is its low bits
// plus a constant.
type origin struct {
	// Where the number comes from: instruction at sets register reg or loads
	// slot; or, where at is negative, ^at is where paths meet.
	at   int32
	reg  uint8
	slot slot

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

// originsOf goes back from the low bits of register r in front of instruction j
// over copies, extensions, masks and additions of constants.
func (t *tracer) originsOf(r uint8, bits uint8, j int) (a origins) {
	x := origin{bits: bits}
	for r != noRegister {
		p, found := t.definition(location{reg: r}, j)
		x.at, x.reg, x.slot = int32(p), r, slot{}
		if !found {
			x.at = ^x.at
		}
		if !a.add(x) || !found {
			break
		}
		r, j = t.source(&x, p), p
		if r == noRegister && x.slot.width != 0 {
			if p, found = t.definition(location{noRegister, x.slot}, p); !found {
				x.at, x.reg = ^int32(p), noRegister
				a.add(x)
				break
			}
			stored, _ := storeOf(&t.f.Insts[p])
			x.at, x.reg = int32(p), noRegister
			if !a.add(x) || stored != x.slot {
				break
			}
			r, j = targetOf(&t.f.Insts[p]), p
		}
	}
	return a
}

// source returns the register that instruction p makes x from, having corrected
// x, or sets x.slot where p loads it. Otherwise it returns noRegister.
func (t *tracer) source(x *origin, p int) uint8 {
	inst := &t.f.Insts[p]
	word := WordOf(inst)
	if OpOf(inst) != OpOther || inst.Len != wordSize {
		return noRegister
	}
	switch word >> 26 {
	case opADDI:
		if x.bits < 64 || fieldRA(word) == 0 {
			return noRegister
		}
		x.add += signedField(word)
		return fieldRA(word)
	case opRLWINM, opRotate:
		if r, ok := rotationOf(inst); ok && r.from == 0 && r.to == 0 {
			if r.bits < 32 {
				if x.add != 0 {
					return noRegister
				}
				x.bits = min(x.bits, r.bits)
			}
			return targetOf(inst)
		}
	case opX:
		switch extendedOp(word) {
		case xoEXTSW:
			return targetOf(inst)
		case xoOR:
			if targetOf(inst) == fieldRB(word) {
				return targetOf(inst)
			}
		}
	}
	if l, ok := loadOf(inst); ok && !l.indexed && t.inFrame(fieldRA(word)) {
		x.slot = slot{fieldRA(word), displacementOf(inst), l.width}
	}
	return noRegister
}

// limit returns the greatest value of an index with the origins a that a
// number with the origins b and at most n allows.
func (a *origins) limit(b *origins, n uint64) (uint64, bool) {
	for i := range a.list[:a.n] {
		x := &a.list[i]
		for k := range b.list[:b.n] {
			y := &b.list[k]
			if x.at == y.at && x.reg == y.reg && x.slot == y.slot && (y.bits >= 64 || y.bits == x.bits) {
				return n - y.add + x.add, true
			}
		}
	}
	return 0, false
}

// bound fills in how many entries the table has that instruction i uses with
// the index x: by a mask, or by a comparison on the only way to i.
func (t *tracer) bound(table *optcheck.Table, i int, x selector) {
	if x.check != 0 && x.bits <= maxMask {
		table.Bound, table.Count, table.Check = optcheck.BoundMask, 1<<x.bits, x.check
	}
	if x.reg == noRegister {
		return
	}
	a := t.originsOf(x.reg, x.bits, int(x.user))
	var known [8]condition
	for j := i; ; {
		p, taken, ok := t.before(j)
		if !ok {
			return
		}
		inst := &t.f.Insts[p]
		n, found := t.compared(inst, p, &known, &a)
		if found && n < maxCount && (table.Count == 0 || int(n) < table.Count) {
			table.Bound, table.Count, table.Check = optcheck.BoundCompare, int(n)+1, inst.Addr
			return
		}
		forget(&known, writesFields(inst))
		learn(&known, inst, taken)
		j = p
	}
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
	if !inst.Has(decode.Conditional) {
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
	b := t.originsOf(fieldRA(word), 64, p)
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
