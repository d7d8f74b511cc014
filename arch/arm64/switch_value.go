package arm64

import "xol/decode"

type valueKind uint8

const (
	valueUnknown  valueKind = iota
	valueConstant           // addr
	valuePointer            // a whole address that is not known
	valueElement            // the address of an element of what is at addr
	valueEntry              // a load of an element
	valueTarget             // base and an entry
)

// value is what is known of a register.
type value struct {
	kind   valueKind
	signed bool  // an entry's sign is extended
	bits   uint8 // to so many bits
	width  uint8 // bytes of an entry
	shift  uint8 // of an entry, to the left; of an element's index
	addr   uint64
	base   uint64
	index  use
	what   string // of what is unknown
}

// use is a register as instruction at reads it; the register is noRegister
// where several do.
type use struct {
	register uint32
	at       int
}

func unknown(what string) value { return value{what: what} }
func constant(v uint64) value   { return value{kind: valueConstant, addr: v} }

// offset and entire tell entries that are offsets from those that are addresses.
func (v *value) offset() bool { return v.kind == valueEntry && v.width < 8 }
func (v *value) entire() bool { return v.kind == valueEntry && v.width == 8 && v.shift == 0 }

// whole reports whether v is an address that nothing was computed from.
func (v *value) whole() bool {
	return v.kind == valueConstant || v.kind == valuePointer || v.entire()
}

func (w *window) at(k int) *decode.Inst { return &w.insts[k] }

// value returns what is known of register r in front of instruction k.
func (w *window) value(r uint32, k, depth int) value {
	switch {
	case r == zeroOrSP:
		return constant(0)
	case depth == 0:
		return unknown(whatTooFar)
	}
	return w.merged(cell{register: r}, k, func(d int) value { return w.made(d, r, depth-1) })
}

// merged puts together what the definitions of c in front of k make. Where the
// value is a fixed one, the sure ways show it.
func (w *window) merged(c cell, k int, made func(d int) value) value {
	if w.fixed {
		if v := w.mergedOver(c, k, true, made); v.kind == valueConstant {
			return v
		}
	}
	return w.mergedOver(c, k, false, made)
}

func (w *window) mergedOver(c cell, k int, sure bool, made func(d int) value) value {
	start, ok := w.definitions(c, k, sure)
	defer w.release(start)
	if !ok {
		return unknown(whatTooFar)
	}
	v, first := value{kind: valuePointer}, true
	for n := start; n < len(w.found) && v.kind != valueUnknown; n++ {
		other := value{kind: valuePointer}
		if d := int(w.found[n]); d != outside {
			other = made(d)
		}
		switch {
		case w.fixed && !w.holdsData(&other):
		case first:
			v, first = other, false
		default:
			v = merge(v, other)
		}
	}
	return v
}

// holdsData reports whether v is a constant that can be the address of a table
// or label, or of the page that holds one.
func (w *window) holdsData(v *value) bool {
	if v.kind != valueConstant || v.addr <= pageMask {
		return false
	}
	if v.addr&pageMask == 0 || w.memory == nil {
		return true
	}
	_, ok := w.memory.DataEnd(v.addr)
	return ok
}

// fixedValue returns the value of a register that compilers only give the
// address of a table of offsets, or of the label that these start from. Ways
// that give it something else are none: they lead through a call that never
// returns, or through another indirect jump that never goes there.
func (w *window) fixedValue(r uint32, k, depth int) value {
	before := w.fixed
	w.fixed = true
	v := w.value(r, k, depth)
	w.fixed = before
	return v
}

// merge returns what is known of a register that holds one of two values.
func merge(a, b value) value {
	same := a
	same.index = b.index
	switch {
	case a == b:
		return a
	case a.kind == valueUnknown:
		return a
	case b.kind == valueUnknown:
		return b
	case same == b:
		same.index = use{register: noRegister}
		return same
	case a.whole() && b.whole():
		return value{kind: valuePointer}
	}
	return unknown(whatSeveral)
}

// made returns what instruction d leaves in register r, which it may change.
func (w *window) made(d int, r uint32, depth int) value {
	inst := w.at(d)
	word := WordOf(inst)
	rd, rn := fieldRd(inst), fieldRn(inst)
	switch {
	case inst.Has(decode.Invalid):
		return unknown(whatTooFar)
	case inst.Flow != decode.FlowNone: // what a call returns
		return value{kind: valuePointer}
	case OpOf(inst) == OpADR, OpOf(inst) == OpADRP:
		return constant(inst.Target)
	case OpOf(inst) == OpHint, OpOf(inst) == OpLandingPad:
		return w.value(r, d, depth)
	case isLoadStore(word):
		return w.loaded(d, r, depth)
	}
	switch shapeOf(word) {
	case shapeAddImmediate:
		if rn == zeroOrSP {
			break
		}
		return plus(w.value(rn, d, depth), addImmediate(word), is64(word))
	case shapeMoveWide:
		return w.wide(d, depth)
	case shapeLogicalImmediate:
		if logicOp(word) == logicOrr && rn == zeroOrSP {
			return constant(logicalImmediate(word))
		}
	case shapeLogicalShifted:
		if source, ok := moved(inst); ok {
			return narrow(w.value(source, d, depth), is64(word))
		}
		return w.guarded(d, depth)
	case shapeBitfield:
		return taken(w.value(rn, d, depth), word)
	case shapeAddShifted, shapeAddExtended:
		return w.sum(d, depth)
	case shapeSelect:
		return w.selected(d, depth)
	case shapeAuthenticate:
		return w.value(rd, d, depth)
	}
	if word>>25&7 == 7 { // from a vector register
		return value{kind: valuePointer}
	}
	return unknown(whatArithmetic)
}

// moved returns the register that inst copies: mov.
func moved(inst *decode.Inst) (source uint32, ok bool) {
	const mask, value = 0x7fe0ffe0, 0x2a0003e0
	return fieldRm(inst), WordOf(inst)&mask == value
}

// guarded returns the result of eor: a pointer that the C library keeps in
// memory, as in a jmp_buf, combined with a secret value.
func (w *window) guarded(d, depth int) value {
	const mask, eor = 0xff200000, 0xca000000
	inst := w.at(d)
	if WordOf(inst)&mask == eor {
		a, b := w.value(fieldRn(inst), d, depth), w.value(fieldRm(inst), d, depth)
		if a.kind == valuePointer && b.kind == valuePointer {
			return a
		}
	}
	return unknown(whatArithmetic)
}

// plus adds a constant.
func plus(v value, n int64, to64 bool) value {
	switch {
	case v.kind == valueConstant, v.kind == valueElement:
		v.addr += uint64(n)
	case n == 0:
	case v.kind == valueTarget:
		v.base += uint64(n)
	case v.kind != valueUnknown:
		return unknown(whatArithmetic)
	}
	return narrow(v, to64)
}

// narrow returns v as an instruction leaves it that writes 32 bits, unless
// to64.
func narrow(v value, to64 bool) value {
	switch {
	case to64, v.kind == valueUnknown:
		return v
	case v.kind == valueConstant:
		v.addr &= 1<<32 - 1
		return v
	case v.kind == valueEntry && v.width <= 4:
		v.bits = min(v.bits, 32)
		return v
	}
	return unknown(whatArithmetic)
}

// wide returns the result of movz, movn and movk.
func (w *window) wide(d, depth int) value {
	const keeps = 3 // opc of movk
	word := WordOf(w.at(d))
	if logicOp(word) != keeps {
		return constant(wideImmediate(word))
	}
	v := w.value(fieldRd(w.at(d)), d, depth)
	if v.kind != valueConstant {
		return unknown(whatArithmetic)
	}
	shift := word >> 21 & 3 * 16
	return constant(v.addr&^(0xffff<<shift) | uint64(word>>5&0xffff)<<shift)
}

// selected returns the result of csel; those that change the second operand are
// not for addresses.
func (w *window) selected(d, depth int) value {
	inst := w.at(d)
	if WordOf(inst)&0x40000c00 != 0 {
		return unknown(whatArithmetic)
	}
	v := merge(w.value(fieldRn(inst), d, depth), w.value(fieldRm(inst), d, depth))
	return narrow(v, is64(WordOf(inst)))
}

// taken returns what sbfm or ubfm makes of v.
func taken(v value, word uint32) value {
	f, ok := bitfieldOf(word)
	switch {
	case v.kind == valueUnknown:
		return v
	case v.kind != valueEntry || !ok || f.left < 0:
		return unknown(whatArithmetic)
	}
	switch shiftOnly := f.bits+uint32(f.left) == registerBits(word); {
	case !shiftOnly:
		v = extended(v, f.bits, f.signed)
	case is64(word):
		v = extended(v, 64, false)
	}
	if v.kind == valueEntry {
		v.shift += uint8(f.left)
		v.bits = uint8(registerBits(word))
	}
	return v
}

// extended returns the entry v after the extension of its lowest bits to 64.
func extended(v value, bits uint32, signed bool) value {
	switch own := 8 * uint32(v.width); {
	case bits == 64 && (v.bits == 64 || !v.signed):
	case bits < own || v.shift != 0 && bits != 64:
		return unknown(whatExtension)
	case bits == own:
		v.signed = signed
	case v.signed && (!signed || uint32(v.bits) < bits):
		return unknown(whatExtension)
	}
	v.bits = 64
	return v
}

// sum returns the result of add with two registers.
func (w *window) sum(d, depth int) value {
	inst := w.at(d)
	word := WordOf(inst)
	stack := shapeOf(word) == shapeAddExtended && fieldRn(inst) == zeroOrSP
	if isSub(word) || !is64(word) || stack {
		return unknown(whatArithmetic)
	}
	bits, signed, shift := uint32(64), false, word>>10&63
	if shapeOf(word) == shapeAddExtended {
		bits, signed, shift = 8<<(word>>13&3), word>>15&1 != 0, word>>10&7
	} else if word>>22&3 != 0 { // not lsl
		return unknown(whatArithmetic)
	}
	a := w.value(fieldRn(inst), d, depth)
	b := w.value(fieldRm(inst), d, depth)
	switch {
	case b.offset() && a.kind != valueConstant:
		a = w.fixedValue(fieldRn(inst), d, depth)
	case a.offset() && b.kind != valueConstant:
		b = w.fixedValue(fieldRm(inst), d, depth)
	}
	if a.kind == valueConstant && b.kind != valueConstant {
		return based(a.addr, b, use{fieldRm(inst), d}, bits, signed, shift)
	}
	if b.kind == valueConstant {
		if a.kind == valueConstant && bits == 64 {
			return constant(a.addr + b.addr<<shift)
		}
		if a.kind != valueConstant && bits == 64 {
			return based(b.addr<<shift, a, use{fieldRn(inst), d}, 64, false, 0)
		}
	}
	return unknown(whatArithmetic)
}

// based returns base plus v, which is extended from so many bits and shifted;
// u is where v is read.
func based(base uint64, v value, u use, bits uint32, signed bool, shift uint32) value {
	switch v.kind {
	case valueEntry:
		if v = extended(v, bits, signed); v.kind == valueEntry {
			v.kind, v.base = valueTarget, base
			v.shift += uint8(shift)
		}
		return v
	case valueUnknown:
		if v.what == whatNumber {
			return v
		}
	case valueTarget, valueElement:
		if bits == 64 && shift == 0 {
			if v.kind == valueTarget {
				v.base += base
			} else {
				v.addr += base
			}
			return v
		}
	}
	return value{kind: valueElement, addr: base, index: u, shift: uint8(shift)}
}
