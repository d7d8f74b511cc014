package arm64

import (
	"xol/classify"
	"xol/optcheck"
)

// What is said of a jump whose target is not understood.
const (
	whatNoJump     = "it is no jump to the address in a register"
	whatArithmetic = "its target is computed from a value in a way that no jump table needs"
	whatIndex      = "its target is computed from an index into the code, without a table"
	whatNumber     = "its target is computed from a number in memory that is not in a table at a known address"
	whatExtension  = "its target is computed from a table's entry that is extended in two ways"
	whatSeveral    = "its target is computed in several ways"
	whatTooFar     = "its target is computed from a value that is set too far away"
)

// IndirectJump says where the indirect jump f.Insts[i] goes: what value its
// register has, found by looking back from it over all ways that lead there.
// The tables known are those of GCC, LLVM and Go: entries of 1, 2 or 4 bytes,
// relative to a label or to the table, and addresses. A table of addresses
// whose first one is not in f is one of function pointers; and a tail call goes
// to a function, however its address is computed.
func (ISA) IndirectJump(f *classify.Func, i int, mem optcheck.Memory) optcheck.Jump {
	if i < 0 || i >= len(f.Insts) {
		return optcheck.Jump{What: whatNoJump}
	}
	inst := &f.Insts[i]
	switch OpOf(inst) {
	case OpBR, OpBRAuth, OpRET:
	default:
		return optcheck.Jump{What: whatNoJump}
	}
	w, k := newWindow(f.Insts, i)
	w.memory = mem
	v := w.value(fieldRn(inst), k, maxDepth)
	switch v.kind {
	case valueConstant, valuePointer:
		return optcheck.Jump{Kind: optcheck.JumpPointer}
	case valueEntry, valueTarget:
		if v.entire() && !labels(v.addr, f, mem) {
			return optcheck.Jump{Kind: optcheck.JumpPointer}
		}
		return optcheck.Jump{Kind: optcheck.JumpTable, Table: w.table(&v)}
	case valueElement:
		return optcheck.Jump{What: whatIndex}
	}
	if (v.what == whatArithmetic || v.what == whatSeveral) && w.leaves(k) {
		return optcheck.Jump{Kind: optcheck.JumpPointer}
	}
	return optcheck.Jump{What: v.what}
}

// labels reports whether addresses at addr can be those of labels of f, and not
// of functions that f calls in the end.
func labels(addr uint64, f *classify.Func, mem optcheck.Memory) bool {
	if mem == nil {
		return true
	}
	first, ok := mem.Pointer(addr)
	return ok && first-f.Addr < uint64(len(f.Code))
}

// table describes the table that v comes from.
func (w *window) table(v *value) optcheck.Table {
	t := optcheck.Table{
		Addr: v.addr, Base: v.base, Width: v.width, Shift: v.shift,
		Signed: v.signed && v.width < 8,
	}
	if v.index.register != noRegister {
		l := w.limit(v.index)
		t.Count, t.Check, t.Bound = l.count, l.check, l.bound
	}
	return t
}
