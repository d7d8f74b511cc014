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
