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
	const load64 = 0x8b
	inst := &f.Insts[i]
	d := Detail(inst.Detail)
	switch {
	case inst.Flow != decode.FlowNone || inst.Has(decode.Invalid):
	case inst.PCRel.Kind == decode.PCRelAddress:
		return inst.Target, true
	case inst.PCRel.Kind == decode.PCRelMemory && d.Map() == MapOneByte && d.Opcode() == load64 && operandWidth(d) == 64:
		return mem.Pointer(inst.Target)
	}
	return 0, false
}
