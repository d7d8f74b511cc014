package amd64

import "xol/decode"

// commonKind says what kprobes of a version make of the common instructions,
// those with at most a REX prefix and an opcode of one byte, or of two bytes, that
// the kernel decodes rightly. Most instructions are, and need no second look at
// their bytes.
type commonKind uint8

const (
	commonNot    commonKind = iota // look at the bytes
	commonMoves                    // runs in a slot, and passes the boost test
	commonStays                    // runs in a slot, and does not
	commonBranch                   // a direct branch or call, emulated
	commonReg                      // runs in a slot; the boost test asks for ModRM.reg
)

// sortCommon fills in the kinds of opcodes.
func (d *kernelDecoder) sortCommon() {
	for op := range 256 {
		switch kprobeActions[op] {
		case '.':
			if op == 0xF4 { // hlt has a hazard
				continue
			}
			d.common[MapOneByte][op] = boostKind(kprobeBoosts[op])
		case 'J', 'U', 'C':
			d.common[MapOneByte][op] = commonBranch
		}
		switch {
		case op&0xF0 == 0x80:
			d.common[Map0F][op] = commonBranch
		case kernelCommon0F[op] == '+':
			d.common[Map0F][op] = boostKind(kprobeBoosts0F[op])
		}
	}
}

// boostKind returns the kind of an opcode that runs in a slot, by what the boost
// test says of it.
func boostKind(letter byte) commonKind {
	switch letter {
	case '+':
		return commonMoves
	case '-':
		return commonStays
	}
	return commonReg
}

// kernelCommon0F says which opcodes of two bytes every version decodes rightly,
// without prefixes, and runs in a slot rightly: cmov, setcc, movzx, imul and
// other integer instructions, and the NOPs.
const kernelCommon0F = "" +
	"----------------" + // 00
	"---------------+" + // 10
	"----------------" + // 20
	"----------------" + // 30
	"++++++++++++++++" + // 40
	"----------------" + // 50
	"----------------" + // 60
	"----------------" + // 70
	"----------------" + // 80
	"++++++++++++++++" + // 90
	"---+++-----+++-+" + // A0
	"++-+--++---+++++" + // B0
	"++------++++++++" + // C0
	"----------------" + // D0
	"----------------" + // E0
	"----------------" //   F0

// kindOf returns what d makes of inst, of which it looks at the opcode and at
// ModRM.reg only.
func (d *kernelDecoder) kindOf(inst *decode.Inst) commonKind {
	detail := DetailOf(inst)
	if !isCommon(inst, detail) {
		return commonNot
	}
	kind := d.common[detail.Map()&Map0F][detail.Opcode()]
	switch {
	case kind == commonBranch:
		return kind
	case inst.PCRel.Kind == decode.PCRelBranch: // xbegin
		return commonNot
	case kind != commonReg:
		return kind
	}
	if d.knows.boostsReg(detail.Opcode(), detail.Reg()) {
		return commonMoves
	}
	return commonStays
}

// isCommon reports whether inst, with d its Detail, has an opcode of one byte, or
// of two, and at most a REX prefix.
func isCommon(inst *decode.Inst, d Detail) bool {
	const others = 15<<encodingAt | 14<<mapAt | 0x7ff<<prefixesAt | 15<<countAt
	return d&others == 0 && uint8(d>>rexAt&1)+uint8(d.Map()) == inst.Fields.Opcode && !inst.Has(decode.Invalid)
}

// copyReaches reports whether the operand of inst, if it is relative to the
// instruction pointer, can be reached from a slot, as the kernel counts.
func copyReaches(inst *decode.Inst) bool {
	return inst.PCRel.Kind == decode.PCRelNone || reachesSlots(inst.Target-uint64(inst.Len))
}
