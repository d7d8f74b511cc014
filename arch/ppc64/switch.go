package ppc64

import (
	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
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
func (a ISA) IndirectJump(_ *flow.Tracer, f *classify.Func, i int, mem flow.Memory) flow.Jump {
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
	t := tracer{f: f, mem: mem, order: a.ByteOrder(), steps: maxSteps, circle: noCircle, at: i}
	return t.jump(i, t.resolve(t.register(from, i)))
}

func unresolved(what string) flow.Jump {
	return flow.Jump{Kind: flow.JumpUnresolved, What: what}
}

// jump returns the jump that instruction i makes to v.
func (t *tracer) jump(i int, v value) flow.Jump {
	switch v.kind {
	case valueWhole:
		return flow.Jump{Kind: flow.JumpPointer}
	case valueConst:
		if v.cell || v.number-t.f.Addr >= uint64(len(t.f.Code)) {
			return flow.Jump{Kind: flow.JumpPointer} // the start of another function
		}
		return unresolved(fromConstant)
	case valueEntry:
		if v.width != 8 || v.shift != 0 {
			return unresolved(fromEntryAlone)
		}
		if t.mem != nil && !t.ownLabel(v.number) {
			return flow.Jump{Kind: flow.JumpPointer} // one of several functions
		}
	case valueTarget:
		if v.last != 0 && !t.oneTable(v) {
			return unresolved(fromTables)
		}
	default:
		return unresolved(fromArithmetic)
	}
	return flow.Jump{Kind: flow.JumpTable, Table: t.table(i, v)}
}

// ownLabel reports whether the pointer at addr leads into the function.
func (t *tracer) ownLabel(addr uint64) bool {
	p, ok := t.mem.Pointer(addr)
	return ok && p-t.f.Addr < uint64(len(t.f.Code))
}

// oneTable reports whether the tables that v may come from are parts of one:
// whether all entries from the first table to the last one's start lead into
// the function.
func (t *tracer) oneTable(v value) bool {
	return t.leadInside(v, v.number, v.last+uint64(v.width))
}

// leadInside reports whether all entries from start to end, as those of v, lead
// to instructions of the function.
func (t *tracer) leadInside(v value, start, end uint64) bool {
	if t.mem == nil || end-start > maxCount {
		return false
	}
	if v.kind == valueEntry {
		return t.ownLabel(start)
	}
	data, err := t.mem.Data(nil, start, end-start)
	if err != nil || v.width != 4 || len(data) < 4 {
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
	}
	return true
}

// table describes the table that instruction i jumps by to v.
//
// Where the function has other indirect jumps, one of them may lead behind a
// comparison, which then is one of another switch and says too little. It is
// not trusted where the table may go on. Nor is any comparison where a branch
// from far away might come in behind it.
func (t *tracer) table(i int, v value) flow.Table {
	table := flow.Table{Addr: v.number, Base: v.base, Width: v.width, Shift: v.shift, Signed: v.signed}
	if v.scale == unscaled || t.partial() {
		return table
	}
	bounded := table
	t.bound(&bounded, i, v.index)
	end := v.number + uint64(bounded.Count)*uint64(v.width)
	if bounded.Bound == flow.BoundCompare && len(t.indirect) > 1 && t.leadInside(v, end, end+uint64(v.width)) {
		return table
	}
	return bounded
}
