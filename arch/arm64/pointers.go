package arm64

import (
	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// FormsPointer returns the address that instruction i of f leaves in a register
// from constants alone: that of adr, of add after adrp, or the pointer at a
// fixed place, as in the global offset table. What adrp itself leaves is only a
// part of one.
func (ISA) FormsPointer(f *classify.Func, i int, mem flow.Memory) (addr uint64, ok bool) {
	inst := &f.Insts[i]
	switch {
	case inst.Flow != decode.FlowNone || inst.Has(decode.Invalid):
		return 0, false
	case OpOf(inst) == OpADR:
		return inst.Target, true
	case inst.PCRel.Kind == decode.PCRelMemory && literalWidth(inst) == 8:
		return mem.Pointer(inst.Target)
	}
	var t flow.Tracer
	t.Start(flowModel{}, f, mem)
	word := WordOf(inst)
	if shapeOf(word) == shapeAddImmediate && is64(word) && fieldRn(inst) != zeroOrSP {
		return t.Constant(i, flow.Reg(fieldRd(inst)))
	}
	a, ok := transferOf(inst)
	if !ok || a.store || a.vector || a.writeback || a.width != 8 || a.index != noRegister || a.base == zeroOrSP {
		return 0, false
	}
	address := flow.Add(flow.Reg(a.base), uint64(a.offset))
	if at, ok := t.ConstantOf(&address, i); ok {
		return mem.Pointer(at)
	}
	return 0, false
}
