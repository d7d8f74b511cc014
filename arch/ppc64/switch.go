package ppc64

import (
	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

// What an unresolved jump's target is computed from.
const (
	notIndirect    = "it is no indirect jump"
	fromEntryAlone = "its target is computed from a table's entry in a way that is not understood"
	fromConstant   = "its target is an address in the function that the code computes"
	fromArithmetic = "its target is computed from values that are not known"
	fromTables     = "its target comes from one of several tables"
	fromTooMuch    = "its target is computed in a function too large to search"
)

// IndirectJump says where the indirect jump f.Insts[i] goes: it follows the
// register back to where its value comes from. mem may be nil, and may be a
// TOCMemory. Tables without a comparison that is sure to come before the jump
// have no bound.
func (a ISA) IndirectJump(f *classify.Func, i int, mem optcheck.Memory) optcheck.Jump {
	if i < 0 || i >= len(f.Insts) {
		return unresolved(notIndirect)
	}
	from := uint8(noRegister)
	switch OpOf(&f.Insts[i]) {
	case OpBranchLR:
		from = LR
	case OpBranchCTR:
		from = CTR
	case OpBranchTAR:
		from = TAR
	}
	if from == noRegister || f.Insts[i].Has(decode.Invalid) {
		return unresolved(notIndirect)
	}
	if len(f.Insts) > maxTraced {
		return unresolved(fromTooMuch)
	}
	t := tracer{f: f, mem: mem, order: a.ByteOrder(), steps: maxSteps, circle: noCircle}
	return t.jump(i, t.resolve(t.register(from, i)))
}

func unresolved(what string) optcheck.Jump {
	return optcheck.Jump{Kind: optcheck.JumpUnresolved, What: what}
}

// jump returns the jump that instruction i makes to v.
func (t *tracer) jump(i int, v value) optcheck.Jump {
	switch v.kind {
	case valueWhole:
		return optcheck.Jump{Kind: optcheck.JumpPointer}
	case valueConst:
		if v.cell || v.number-t.f.Addr >= uint64(len(t.f.Code)) {
			return optcheck.Jump{Kind: optcheck.JumpPointer} // the start of another function
		}
		return unresolved(fromConstant)
	case valueGuess:
		if v.cell && v.number-t.f.Addr >= uint64(len(t.f.Code)) {
			return optcheck.Jump{Kind: optcheck.JumpPointer}
		}
		return unresolved(fromArithmetic)
	case valueEntry:
		if v.width != 8 || v.shift != 0 {
			return unresolved(fromEntryAlone)
		}
		if t.mem != nil && !t.ownLabel(v.number) {
			return optcheck.Jump{Kind: optcheck.JumpPointer} // one of several functions
		}
	case valueTarget:
		if (v.last != 0 || v.zero) && !t.oneTable(v) {
			return unresolved(fromTables)
		}
	default:
		return unresolved(fromArithmetic)
	}
	return optcheck.Jump{Kind: optcheck.JumpTable, Table: t.table(i, v)}
}

// ownLabel reports whether the pointer at addr leads into the function.
func (t *tracer) ownLabel(addr uint64) bool {
	p, ok := t.mem.Pointer(addr)
	return ok && p-t.f.Addr < uint64(len(t.f.Code))
}

// oneTable reports whether the tables that v may come from are parts of one:
// every entry from the first table to the last one's start leads to an
// instruction of the function.
func (t *tracer) oneTable(v value) bool {
	size := max(v.last, v.number) - v.number + uint64(v.width)
	if t.mem == nil || size > maxCount || v.width != 4 || size%4 != 0 {
		return false
	}
	data, err := t.mem.Data(nil, v.number, size)
	if err != nil {
		return false
	}
	for ; len(data) >= 4; data = data[4:] {
		entry := uint64(t.order.Uint32(data))
		if v.signed {
			entry = uint64(int64(int32(entry)))
		}
		if t.indexOf(v.base+entry<<v.shift) < 0 {
			return false
		}
		v.zero = v.zero && entry != 0
	}
	return !v.zero
}

// table describes the table that instruction i jumps by to v.
func (t *tracer) table(i int, v value) optcheck.Table {
	table := optcheck.Table{Addr: v.number, Base: v.base, Width: v.width, Shift: v.shift, Signed: v.signed}
	if v.scale != unscaled {
		t.bound(&table, i, v.index)
	}
	return table
}
