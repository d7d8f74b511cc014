package ppc64

import (
	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// FormsPointer returns the address that instruction i of f leaves in a register
// from constants alone: that of addi after addis or with the TOC pointer, of
// pla, or the pointer at a fixed place, as in the TOC. What addis leaves is only
// a part of one. In ELFv1 it may be the address of a function's descriptor. mem
// may be a TOCMemory.
func (a ISA) FormsPointer(f *classify.Func, i int, mem flow.Memory) (addr uint64, ok bool) {
	inst := &f.Insts[i]
	if inst.Flow != decode.FlowNone || inst.Has(decode.Invalid) {
		return 0, false
	}
	r := targetOf(inst)
	if l, ok := transferOf(inst); ok && !l.update {
		if l.store || l.width != 8 {
			return 0, false
		}
	} else if OpOf(inst) != OpPCAddress && WordOf(inst)>>26 != opADDI || r == tocPointer {
		return 0, false
	}
	var t flow.Tracer
	t.Start(flowModel{a}, f, mem)
	return t.Constant(i, r)
}
