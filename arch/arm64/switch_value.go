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
