package flow

// kind says what is known of a number.
type kind uint8

const (
	kindFailed   kind = iota // one of several that cannot all be followed
	kindFar                  // what far holds before instruction at, plus number: ways meet there
	kindNone                 // no way comes here but one that leaves the number as it was
	kindStep                 // what it was on such a way, plus something
	kindNumber               // no address of a table, as a counter
	kindWhole                // a whole address from memory, a caller or a called function
	kindConstant             // number
	kindGuess                // number, or something that is no address of a table
	kindIndex                // index << scale
	kindElement              // number + index<<scale
	kindEntry                // what stands there, << shift
	kindTarget               // base + that entry
)

// unscaled stands for a scale that is not known.
const unscaled = 0xff

// unmasked is the mask of a number of which nothing is known.
const unmasked = 1<<64 - 1

// use is the part of an address that varies: some bits of a register before an
// instruction. The register is NoReg where it is not known.
type use struct {
	reg   Reg
	at    int32
	mask  uint64
	check uint64 // address of the instruction that masks it
}

var noUse = use{reg: NoReg, mask: unmasked}

// value is what is known of a number.
type value struct {
	kind   kind
	cell   bool  // of a constant: it stood in memory
	formed bool  // of a constant or guess: an instruction forms it as an address
	whole  bool  // of a guess: what else it may be are whole addresses
	signed bool  // of an entry: its sign is extended
	width  uint8 // of an entry, in bytes
	bits   uint8 // to so many bits it is extended
	shift  uint8
	scale  uint8
	at     int32
	number uint64
	base   uint64
	last   uint64 // of the last of several tables that number is the first of; 0 for one
	index  use
	outer  use // of a target: where the entry was added to base
	far    location
	what   string // why it is no more
}

func constant(n uint64) value      { return value{kind: kindConstant, number: n} }
func number(what string) value     { return value{kind: kindNumber, what: what} }
func failed(what string) value     { return value{what: what} }
func varying(u use, s uint8) value { return value{kind: kindIndex, index: u, scale: s} }

// isPointer reports whether v is an address that is written down somewhere.
func (t *Tracer) isPointer(v *value) bool {
	switch v.kind {
	case kindWhole:
		return true
	case kindConstant:
		return v.cell || !t.isa.Pieces() || !t.inFunction(v.number)
	case kindEntry:
		return v.width == 8 && v.shift == 0
	case kindGuess:
		return v.whole
	}
	return false
}

// isData reports whether n may be the address of a table.
func (t *Tracer) isData(n uint64) bool {
	if !isAddress(n) || t.mem == nil {
		return isAddress(n)
	}
	_, ok := t.mem.DataEnd(n)
	return ok
}

// isAddress tells addresses from small numbers.
func isAddress(n uint64) bool {
	const page = 1 << 12
	return n+page >= 2*page
}

// isTable reports whether the constant or guess v may be the address of a table.
func (t *Tracer) isTable(v *value) bool { return v.formed || t.isData(v.number) }

// isNumber reports whether v is not the address of a table.
func (t *Tracer) isNumber(v *value) bool {
	switch v.kind {
	case kindNumber, kindStep, kindIndex:
		return true
	case kindWhole:
		return v.what == "" // else it is one of several constants
	case kindConstant:
		return !t.isTable(v)
	}
	return false
}

// merge returns what is known of a number that is a or b. Beside a target that
// comes from a table, an address that is written down elsewhere does not count.
func (t *Tracer) merge(a, b value) value {
	switch {
	case a.kind == kindNone:
		return b
	case b.kind == kindNone || a == b:
		return a
	case t.isGuess(&a) && t.isNumber(&b):
		return a.guess(t.isPointer(&a), t.isPointer(&b), b.kind == kindStep)
	case t.isGuess(&b) && t.isNumber(&a):
		return b.guess(t.isPointer(&b), t.isPointer(&a), a.kind == kindStep)
	case a.kind == kindTarget && t.isPointer(&b):
		return a
	case b.kind == kindTarget && t.isPointer(&a):
		return b
	case t.isGuess(&a) && t.isGuess(&b) && a.number == b.number:
		return a.guess(t.isPointer(&a), t.isPointer(&b), false)
	case t.isNumber(&a) && t.isNumber(&b) && !(t.isPointer(&a) && t.isPointer(&b)):
		return number(worse(a.what, b.what))
	}
	pointers := t.isPointer(&a) && t.isPointer(&b)
	a.index = t.eitherUse(&a, &b)
	b.index, a.outer, b.outer = a.index, noUse, noUse
	switch {
	case a.kind == kindFar || b.kind == kindFar:
		return number(WhatArithmetic)
	case a == b:
		return a
	case pointers:
		return value{kind: kindWhole, what: WhatSeveral}
	case a.kind == kindTarget:
		return a.span(b)
	}
	return failed(WhatSeveral)
}

// eitherUse returns the use of the index of a or of b, which is known where both are
// masked.
func (t *Tracer) eitherUse(a, b *value) use {
	if a.kind < kindElement || a.kind != b.kind || a.number != b.number {
		return noUse
	}
	u, v := t.maskOf(&a.index), t.maskOf(&b.index)
	if u.mask < v.mask {
		return v
	}
	return u
}

// worse returns which of two reasons is told.
func worse(a, b string) string {
	if b == WhatNumber {
		return b
	}
	return a
}

// isGuess reports whether v may be the address of a table, and is known.
func (t *Tracer) isGuess(v *value) bool {
	return v.kind == kindGuess || v.kind == kindConstant && t.isTable(v)
}

// guess returns what is known of a number that is v, or something that is no
// address of a table. One that steps is a pointer that runs through a table.
func (v value) guess(pointer, other, steps bool) value {
	if steps {
		return failed(WhatSeveral)
	}
	return value{kind: kindGuess, number: v.number, formed: v.formed, whole: pointer && other}
}

// span returns what is known of the target v or o, each of which comes from a table.
func (v value) span(o value) value {
	first, last := min(v.number, o.number), max(v.number, v.last, o.number, o.last)
	v.scale, v.number, v.last = unscaled, first, last
	o.scale, o.number, o.last = unscaled, first, last
	if v != o {
		return failed(WhatSeveral)
	}
	return v
}

// plus returns v + n, n being part of an instruction.
func (v value) plus(n uint64) value {
	switch {
	case n == 0:
	case v.kind == kindConstant:
		v.number, v.cell = v.number+n, false
	case v.kind == kindElement, v.kind == kindGuess, v.kind == kindFar:
		v.number += n
		v.whole = false
	case v.kind == kindTarget:
		v.base += n
	case v.kind == kindEntry && v.bits != 64:
		return failed(WhatExtension)
	case v.kind == kindEntry:
		v.kind, v.base = kindTarget, n
	case v.scale > 0: // a scaled index
		v.kind, v.number = kindElement, n
	case v.kind == kindNone, v.kind == kindStep:
		return value{kind: kindStep}
	case v.kind != kindFailed:
		return number(worse(WhatArithmetic, v.what))
	}
	return v
}

// combine returns a + b; ua and ub are where they are read.
func (t *Tracer) combine(a, b value, ua, ub use) value {
	a, b = a.sure(), b.sure()
	if b.kind == kindConstant {
		a, b, ub = b, a, ua
	}
	if a.kind != kindConstant {
		return t.combineVarying(a, b)
	}
	switch b.kind {
	case kindConstant:
		b.formed = a.formed || b.formed
		return b.plus(a.number)
	case kindTarget, kindElement:
		return b.plus(a.number)
	case kindEntry:
		if b.outer.reg == NoReg {
			b.outer = ub
		}
		return b.plus(a.number)
	case kindFailed:
		if b.what == WhatExtension {
			return b
		}
	case kindIndex:
		if t.isTable(&a) {
			b = b.readAt(ub)
			b.kind, b.number = kindElement, a.number
			return b
		}
	}
	if !t.isTable(&a) {
		return b.plus(a.number)
	}
	return value{kind: kindElement, number: a.number, index: ub, what: b.what}
}

// combineVarying is combine where neither is constant: an index that is itself
// a sum, or something else.
func (t *Tracer) combineVarying(a, b value) value {
	if b.kind == kindElement {
		a, b = b, a
	}
	switch {
	case a.kind == kindFailed:
		return a
	case b.kind == kindFailed:
		return b
	case a.kind == kindElement && b.kind < kindElement:
		a.index, a.scale = noUse, unscaled
		return a
	case a.steps() && (b.steps() || t.isNumber(&b)), b.steps() && t.isNumber(&a):
		return value{kind: kindStep}
	case t.isNumber(&a) && t.isNumber(&b):
		return number(worse(worse(a.what, b.what), WhatArithmetic))
	}
	return failed(worse(WhatArithmetic, worse(a.what, b.what)))
}

// steps reports whether v is what it was, or that plus something.
func (v *value) steps() bool { return v.kind == kindNone || v.kind == kindStep }

// sure returns v without doubt.
func (v value) sure() value {
	if v.kind == kindGuess {
		v.kind, v.whole = kindConstant, false
	}
	return v
}

// extended returns v after the extension of its lowest bits, shifted left; u is
// where it is read, and check the address of the instruction.
func (v value) extended(bits uint8, signed bool, shift uint8, u use, check uint64) value {
	if bits == 64 && shift == 0 {
		return v
	}
	switch v.kind {
	case kindFailed:
		if v.what == WhatExtension {
			return v
		}
	case kindConstant:
		return constant(extend(v.number, bits, signed) << shift)
	case kindEntry:
		if bits >= 8*v.width {
			return v.widened(bits, signed).shifted(shift, u)
		}
	case kindIndex:
		if bits >= 32 {
			v = v.readAt(u)
			v.scale += shift
			return v
		}
	}
	if bits < 32 && !signed {
		u.mask, u.check = 1<<bits-1, check
	}
	w := varying(u, shift)
	w.what = v.what
	return w
}

// indexing returns v as a part of an address that something is loaded from: an entry
// that is extended in two ways is as good an index as any number.
func (v value) indexing() value {
	if v.kind == kindFailed && v.what == WhatExtension {
		return number(WhatArithmetic)
	}
	return v
}

// widened returns the entry v after the extension of its lowest bits to 64.
func (v value) widened(bits uint8, signed bool) value {
	switch own := 8 * v.width; {
	case bits == 64 && v.bits == 64:
	case v.shift != 0:
		return failed(WhatExtension)
	case bits == own:
		v.signed = signed
	case v.signed && (!signed || v.bits < bits):
		return failed(WhatExtension)
	}
	v.bits = 64
	return v
}

// readAt returns the index v, which is read at u, where that is no multiple of it.
func (v value) readAt(u use) value {
	if v.scale == 0 {
		v.index.reg, v.index.at = u.reg, u.at
	}
	return v
}

// shifted returns the entry v, shifted to the left; u is where it is read before that.
func (v value) shifted(n uint8, u use) value {
	if n > 0 && v.kind == kindEntry && v.shift == 0 {
		v.outer = u
	}
	v.shift += n
	return v
}

// extend returns the lowest bits of n, extended to 64.
func extend(n uint64, bits uint8, signed bool) uint64 {
	unused := 64 - bits
	if signed {
		return uint64(int64(n<<unused) >> unused)
	}
	return n << unused >> unused
}
