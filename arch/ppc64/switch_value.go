package ppc64

import (
	"slices"

	"xol/decode"
)

// valueKind says what is known of the number in a register.
type valueKind uint8

const (
	valueUnknown valueKind = iota // the result of arithmetic that is not followed
	valueFar                      // what far holds in front of instruction at, plus number: paths meet there
	valueNone                     // no path comes here but one that leaves the number as it was
	valueStep                     // what it was on such a path, plus something
	valueNumber                   // no address of a table, as a counter or the stack pointer
	valueWhole                    // it came whole from memory, a caller or a called function
	valueConst                    // number
	valueGuess                    // number, where it is an address of a table
	valueIndex                    // index << scale
	valueAddress                  // number + index<<scale
	valueEntry                    // what stands there
	valueTarget                   // base + that entry
)

// unscaled stands for a scale that is not known.
const unscaled = 0xff

// selector is the part of an address that varies: the low bits of a register in
// front of an instruction.
type selector struct {
	reg   uint8 // noRegister where it is not known
	bits  uint8 // 64 where it is not masked
	user  int32 // index in f.Insts
	check uint64
}

var noIndex = selector{reg: noRegister, bits: 64}

// value is what is known of a number.
type value struct {
	kind   valueKind
	cell   bool  // valueConst: it stood in memory
	scale  uint8 // bits by which the index is shifted
	width  uint8 // valueEntry, valueTarget: of the entry, in bytes
	shift  uint8 // of the entry, after the load
	signed bool
	number uint64
	base   uint64
	last   uint64 // valueTarget: the entry is from one of several tables, of which this is the last; else 0
	index  selector
	far    location // valueFar
	at     int32    // valueFar
}

func constant(n uint64) value { return value{kind: valueConst, number: n} }

// pointer reports whether v is an address that is written down somewhere.
func (v value) pointer() bool {
	return v.kind == valueWhole || v.kind == valueConst && v.cell || v.kind == valueEntry && v.width == 8 && v.shift == 0
}

// either returns what is known of a number that is a or b. Beside a target that
// comes from a table, an address that is written down elsewhere does not count.
func (t *tracer) either(a, b value) value {
	switch {
	case a.kind == valueNone:
		return b
	case b.kind == valueNone || a == b:
		return a
	case a.pointer() && b.pointer():
		return value{kind: valueWhole}
	case a.kind == valueTarget && b.pointer():
		return a
	case b.kind == valueTarget && a.pointer():
		return b
	case t.isNumber(a) && t.isNumber(b):
		return value{kind: valueNumber}
	case t.isNumber(a):
		return b.guess(a)
	case t.isNumber(b):
		return a.guess(b)
	}
	a.index, b.index = noIndex, noIndex
	switch {
	case a == b:
		return a
	case a.kind == valueTarget && b.kind == valueTarget:
		return a.span(b)
	}
	return value{}
}

// span returns what is known of a target that comes from one of two tables.
func (v value) span(o value) value {
	first, last := min(v.number, o.number), max(v.number, v.last, o.number, o.last)
	v.scale, v.number, v.last = unscaled, first, last
	o.scale, o.number, o.last = unscaled, first, last
	if v != o {
		return value{}
	}
	return v
}

// isNumber reports whether v is not the address of a table.
func (t *tracer) isNumber(v value) bool {
	switch v.kind {
	case valueNumber, valueStep, valueWhole, valueIndex:
		return true
	case valueConst:
		return !t.isData(v.number)
	}
	return false
}

// guess returns what is known of a number that is v or number n.
func (v value) guess(n value) value {
	switch {
	case n.kind == valueStep: // a pointer that runs through a table
	case v.kind == valueConst:
		return value{kind: valueGuess, number: v.number}
	case v.kind == valueGuess:
		return v
	}
	return value{}
}

// plus returns v + n, n being part of an instruction.
func (v value) plus(n uint64) value {
	switch {
	case n == 0:
	case v.kind == valueConst:
		return constant(v.number + n)
	case v.kind == valueAddress, v.kind == valueGuess, v.kind == valueFar:
		v.number += n
	case v.kind == valueTarget:
		v.base += n
	case v.kind == valueNone, v.kind == valueStep:
		return value{kind: valueStep}
	case v.kind == valueNumber, v.kind == valueWhole, v.kind == valueIndex:
		return value{kind: valueNumber}
	default:
		return value{}
	}
	return v
}

// sum returns a + b, where a guess has to be right.
func (t *tracer) sum(a, b value) value {
	if a.kind == valueFar && !t.isAddress(b) {
		a = t.resolve(a)
	}
	if b.kind == valueFar && !t.isAddress(a) {
		b = t.resolve(b)
	}
	a, b = a.sure(), b.sure()
	if b.kind == valueConst {
		a, b = b, a
	}
	if a.kind != valueConst {
		return t.twoParts(a, b)
	}
	switch b.kind {
	case valueConst, valueTarget:
		return b.plus(a.number)
	case valueEntry:
		b.kind, b.base = valueTarget, a.number
		return b
	case valueAddress:
		b.number += a.number
		return b
	}
	switch {
	case !t.isData(a.number):
		return b.plus(a.number)
	case b.kind == valueIndex:
		b.kind, b.number = valueAddress, a.number
		return b
	}
	return value{kind: valueAddress, number: a.number, scale: unscaled, index: noIndex}
}

// isAddress reports whether v is what an index is added to.
func (t *tracer) isAddress(v value) bool {
	switch v.kind {
	case valueConst, valueGuess:
		return t.isData(v.number)
	}
	return v.kind == valueAddress
}

// sure returns v without doubt.
func (v value) sure() value {
	if v.kind == valueGuess {
		return constant(v.number)
	}
	return v
}

// twoParts is sum where neither is constant: an index that is itself a sum, or
// something else.
func (t *tracer) twoParts(a, b value) value {
	if b.kind == valueAddress {
		a, b = b, a
	}
	switch {
	case a.kind == valueAddress && b.kind < valueAddress:
		a.index, a.scale = noIndex, unscaled
		return a
	case a.steps() && (b.steps() || t.isNumber(b)), b.steps() && t.isNumber(a):
		return value{kind: valueStep}
	case t.isNumber(a) && t.isNumber(b):
		return value{kind: valueNumber}
	}
	return value{}
}

// steps reports whether v is what it was, or that plus something.
func (v value) steps() bool { return v.kind == valueNone || v.kind == valueStep }

// isData reports whether n may be the address of a table.
func (t *tracer) isData(n uint64) bool {
	if t.mem == nil {
		return n >= pageSize
	}
	_, ok := t.mem.DataEnd(n)
	return ok
}

// or returns v | n, where it is constant.
func (v value) or(n uint64) value {
	switch {
	case n == 0:
		return v
	case v.kind == valueConst:
		return constant(v.number | n)
	}
	return value{kind: valueNumber}
}

// tocPointer is the number of r2.
const tocPointer = 2

// atEntry reports whether inst sets r2 as at a global entry.
func atEntry(inst *decode.Inst) bool {
	switch inst.Detail &^ 0xffff {
	case addisTOC, lisTOC, addiTOC:
		return true
	}
	return false
}

// givesTOC reports whether instruction p, which writes r2, gives it the TOC
// pointer: at a global entry, or behind a call.
func (t *tracer) givesTOC(p int) bool {
	inst := &t.f.Insts[p]
	l, ok := loadOf(inst)
	return atEntry(inst) || ok && !l.indexed && fieldRA(WordOf(inst)) == stackPointer
}

// keepsTOC reports whether r2 is the TOC pointer wherever paths meet: whether
// it is only set at entries and loaded, be it for a call. Code that addresses
// by the program counter may use r2 for anything.
func (t *tracer) keepsTOC() bool {
	if t.hasTOC == unasked {
		t.hasTOC = answerOf(!slices.ContainsFunc(t.f.Insts, usesTOC))
	}
	return t.hasTOC == yes
}

// usesTOC reports whether inst makes r2 something else than the TOC pointer.
func usesTOC(inst decode.Inst) bool {
	if inst.Flow != decode.FlowNone || inst.Has(decode.Invalid) || !writes(&inst, tocPointer) || atEntry(&inst) {
		return false
	}
	_, ok := loadOf(&inst)
	return !ok
}

// TOCMemory is implemented by an flow.Memory that knows the TOC pointer,
// the value of r2, of functions that do not set it themselves: those of ELFv1,
// and those of ELFv2 with a local entry point only.
type TOCMemory interface {
	TOC() (addr uint64, ok bool)
}

// toc returns the TOC pointer. The global entry of an ELFv2 function computes
// it from its own address, or in a program that is not position-independent
// loads it as a constant [OpenPOWER ELFv2 ABI, 2.3.2.1].
func (t *tracer) toc() value {
	if len(t.f.Insts) >= 2 {
		first, second := &t.f.Insts[0], &t.f.Insts[1]
		n := signedField(WordOf(first))<<16 + signedField(WordOf(second))
		if second.Detail&^0xffff == addiTOC {
			switch first.Detail &^ 0xffff {
			case addisTOC:
				return constant(first.Addr + n)
			case lisTOC:
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
