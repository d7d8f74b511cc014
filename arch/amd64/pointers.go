package amd64

import (
	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// FormsPointer returns the address that instruction i of f leaves in a register
// from constants alone: that of lea, or the pointer at a fixed place, as in the
// global offset table.
func (ISA) FormsPointer(f *classify.Func, i int, mem flow.Memory) (addr uint64, ok bool) {
	inst := &f.Insts[i]
	d := Detail(inst.Detail)
	switch {
	case inst.Flow != decode.FlowNone || inst.Has(decode.Invalid):
	case inst.PCRel.Kind == decode.PCRelAddress:
		return inst.Target, true
	case inst.PCRel.Kind == decode.PCRelMemory && OpOf(inst) == OpMoveLoad && operandWidth(d) == 64:
		return mem.Pointer(inst.Target)
	}
	return 0, false
}
