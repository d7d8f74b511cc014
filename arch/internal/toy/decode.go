package toy

import (
	"encoding/binary"

	"xol/decode"
)

// Decode decodes one instruction; see decode.Decoder.
func (ISA) Decode(inst *decode.Inst, code []byte, addr uint64) error {
	*inst = decode.Inst{Addr: addr}
	if len(code) < wordSize {
		return decode.ErrTruncated
	}
	op := code[0]
	if op == 0 || op >= opCount || op == opReturn && wordOf(code)>>8 != 0 {
		return decode.ErrInvalid
	}
	f := &forms[op]
	inst.Len, inst.Op, inst.Flow, inst.Props = wordSize, uint16(op), f.flow, f.props
	copy(inst.Raw[:], code[:wordSize])
	if f.target > 0 {
		inst.Props |= decode.HasTarget
		inst.Target = addr + uint64(int64(int32(wordOf(code)))>>(32-f.target))*wordSize
		inst.PCRel = decode.PCRel{Kind: decode.PCRelBranch, Width: 8 * wordSize}
	}
	return nil
}

func wordOf(code []byte) uint32 { return binary.LittleEndian.Uint32(code) }

// registerOf and immediateOf return the operands of an instruction that has
// such ones.
func registerOf(inst *decode.Inst) uint8   { return inst.Raw[1] }
func immediateOf(inst *decode.Inst) uint16 { return binary.LittleEndian.Uint16(inst.Raw[2:]) }
