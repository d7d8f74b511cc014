package arm64

import "xol/decode"

// loaded returns what the load d leaves in register r.
func (w *window) loaded(d int, r uint32, depth int) value {
	inst := w.at(d)
	a, ok := transferOf(inst)
	switch {
	case inst.PCRel.Kind == decode.PCRelMemory:
		return inMemory(literalWidth(inst))
	case !ok: // exclusive, acquiring, atomic
		return inMemory(1 << (WordOf(inst) >> 30))
	case a.writeback && r == a.base && (a.store || r != a.registers[0] && r != a.registers[1]):
		return unknown(whatArithmetic)
	case a.index != noRegister:
		return w.indexed(d, &a, depth)
	}
	if a.base == zeroOrSP || a.base == frameRegister {
		return w.spilled(d, r, &a, depth)
	}
	v := w.value(a.base, d, depth)
	if v.kind == valueElement && a.registers[1] == noRegister {
		return w.entry(v.addr+uint64(a.offset), v.index, uint32(v.shift), &a)
	}
	return inMemory(a.width)
}

// literalWidth returns how many bytes the load of a literal reads.
func literalWidth(inst *decode.Inst) uint8 {
	if OpOf(inst) == OpLoadLiteral && WordOf(inst)>>30 == 1 {
		return 8
	}
	return 4
}

// inMemory returns a value of so many bytes from an unknown place.
func inMemory(width uint8) value {
	if width == 8 {
		return value{kind: valuePointer}
	}
	return unknown(whatNumber)
}

// indexed returns the load of an element by a register offset.
func (w *window) indexed(d int, a *transfer, depth int) value {
	address := w.fixedValue
	if a.width == 8 {
		address = w.tableOfAddresses
	}
	if v := address(a.base, d, depth); v.kind == valueConstant {
		return w.entry(v.addr, use{a.index, d}, a.shift, a)
	}
	if a.shift == 0 && a.option&extendWide == extendWide {
		if v := address(a.index, d, depth); v.kind == valueConstant {
			return w.entry(v.addr, use{a.base, d}, 0, a)
		}
	}
	return inMemory(a.width)
}

// tableOfAddresses returns the value of a register that may be the address of a
// table of addresses. It is not looked for far away: what is loaded is a whole
// pointer in any case.
func (w *window) tableOfAddresses(r uint32, k, depth int) value {
	spare := max(0, w.steps-maxLabelSteps)
	w.steps -= spare
	v := w.value(r, k, depth)
	w.steps += spare
	return v
}

// entry returns the load of an element of the table at addr; scale is the
// shift of the index. Where the index counts bytes, the register before it was
// multiplied is the index.
func (w *window) entry(addr uint64, u use, scale uint32, a *transfer) value {
	if missing := int(log2(a.width)) - int(scale); missing != 0 {
		u = w.multiplied(u, missing)
	}
	return value{
		kind: valueEntry, addr: addr, width: a.width, signed: a.signed, bits: a.bits, index: u,
	}
}

// multiplied returns the register that u is, shifted left by so many bits.
func (w *window) multiplied(u use, left int) use {
	notFound := use{register: noRegister}
	if u.register == noRegister || u.register == zeroOrSP {
		return notFound
	}
	k := u.at
	for range maxSegment {
		if k, _ = w.before(k); k == none {
			break
		}
		if changedBy(w.at(k))>>u.register&1 == 0 {
			continue
		}
		word := WordOf(w.at(k))
		if f, ok := bitfieldOf(word); ok && shapeOf(word) == shapeBitfield && int(f.left) == left {
			return use{fieldRn(w.at(k)), k}
		}
		break
	}
	return notFound
}

// spilled returns what the load d of a place on the stack leaves in r: the
// value that was stored there, where that is known.
func (w *window) spilled(d int, r uint32, a *transfer, depth int) value {
	if depth == 0 {
		return unknown(whatTooFar)
	}
	c, ok := a.place(r)
	if !ok {
		return inMemory(a.width)
	}
	v := w.merged(c, d, func(s int) value {
		source, ok := storedTo(w.at(s), c)
		if !ok {
			return inMemory(a.width)
		}
		v := w.value(source, s, depth-1)
		if a.width < 8 {
			v = narrow(v, false)
		}
		return v
	})
	if v.what == whatTooFar {
		return inMemory(a.width)
	}
	return v
}

// place returns the place on the stack that register r of a is loaded from.
func (a *transfer) place(r uint32) (cell, bool) {
	c := cell{register: a.base, width: a.width, offset: a.offset}
	if a.store || a.vector || a.writeback || a.index != noRegister || a.signed {
		return c, false
	}
	if r == a.registers[1] {
		c.offset += int64(a.width)
	}
	return c, true
}

// storedTo returns the register that inst stores to the place c.
func storedTo(inst *decode.Inst, c cell) (r uint32, ok bool) {
	a, ok := transferOf(inst)
	if !ok || !a.store || a.vector || a.writeback || a.index != noRegister || a.base != c.register || a.width < c.width {
		return 0, false
	}
	for n, r := range a.registers {
		if r != noRegister && a.offset+int64(n)*int64(a.width) == c.offset {
			return r, true
		}
	}
	return 0, false
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
