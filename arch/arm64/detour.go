package arm64

import (
	"xol/decode"
	"xol/detour"
	"xol/relocate"
)

// Instructions of the template [Arm ARM, C6.2]. Offsets of stp and ldp are in
// units of 8 bytes from bit 15, those of str and ldr from bit 10.
const (
	insnSTP    = 0xa9000000
	insnLDP    = 0xa9400000
	insnSTR    = 0xf9000000
	insnLDR    = 0xf9400000
	insnSUB    = 0xd1000000 // immediate, 64 bits
	insnORR    = 0xaa000000 // registers, 64 bits
	insnBL     = 0x94000000
	insnBLR    = 0xd63f0000
	insnMRS    = 0xd5300000
	insnMSR    = 0xd5100000
	branchBits = 26

	sysNZCV      = 0x5a10 << 5
	sysDAIF      = 0x5a11 << 5
	sysCurrentEL = 0x4212 << 5
	sysSPSel     = 0x4210 << 5
)

// template writes the parts of detour buffers.
type template struct{ ISA }

// PlanDetour fills p; see detour.Builder. The stack pointer must be a multiple
// of 16, as the procedure call standard has it wherever memory is accessed by
// it. Where the callback is not within 128 MiB, the call goes through x16. Of
// pstate, user mode sees the condition flags; in kernel mode the interrupt
// masks, the exception level and the choice of the stack pointer are there, too.
func (a ISA) PlanDetour(p *detour.Plan, insts []decode.Inst, opt detour.Options) error {
	return detour.Start(template{a}, p, insts, opt)
}

// EncodeDetour writes a buffer; see detour.Builder.
func (a ISA) EncodeDetour(dst []byte, p *detour.Plan, at uint64) (int, error) {
	return detour.Encode(template{a}, dst, p, at)
}

// JumpTo returns the jump to a buffer; see detour.Builder.
func (a ISA) JumpTo(at, to uint64) ([]byte, error) { return template{a}.AppendJump(nil, at, to) }

// Jump describes b.
func (template) Jump() detour.Jump {
	const reach = 1 << (branchBits + 1)
	return detour.Jump{Len: wordSize, Align: wordSize, Back: -reach, Forward: reach - wordSize}
}

// AppendJump appends a jump; see detour.Template.
func (t template) AppendJump(code []byte, at, target uint64) ([]byte, error) {
	if err := t.Jump().Check(at, target); err != nil {
		return nil, err
	}
	return put(code, insnB|branchField(at, target)), nil
}

// branchField returns the displacement of b and bl.
func branchField(at, target uint64) uint32 { return uint32((target-at)>>2) & (1<<branchBits - 1) }

// Stack counts the frame.
func (template) Stack(*detour.Options) int { return ptRegsSize }

// CallSize returns the sizes of bl, and of the load of a register and blr.
func (template) CallSize(opt *detour.Options) (least, most int) {
	return wordSize, halves(opt.Callback)*wordSize + wordSize
}

// Save stores the registers, and then what needs some to be computed.
func (t template) Save(code []byte, p *detour.Plan) []byte {
	code = put(code, insnSUB|ptRegsSize<<10|zeroOrSP<<5|zeroOrSP)
	for r := uint32(0); r < linkRegister; r += 2 {
		code = pair(code, insnSTP, r, r+1, r*slotSize)
	}
	code = put(code, insnADD|ptRegsSize<<10|zeroOrSP<<5) // x0 = sp as it was
	code = pair(code, insnSTP, linkRegister, 0, ptRegsX30)
	code = number(code, 0, p.From())
	code = put(code, insnMRS|sysNZCV|1)
	if p.Options.Kernel {
		for _, register := range [...]uint32{sysDAIF, sysCurrentEL, sysSPSel} {
			code = put(code, insnMRS|register|2)
			code = put(code, insnORR|2<<16|1<<5|1)
		}
	}
	code = pair(code, insnSTP, 0, 1, ptRegsPC)
	code = number(code, 0, p.Options.Probe)
	return put(code, insnADD|zeroOrSP<<5|1) // x1 = sp
}

// Call appends bl, or the far call where that does not reach.
func (t template) Call(code []byte, p *detour.Plan, at uint64) []byte {
	to := p.Options.Callback
	if t.Jump().Check(at, to) == nil {
		return put(code, insnBL|branchField(at, to))
	}
	return put(number(code, ip0, to), insnBLR|ip0<<5)
}

// Restore loads the flags first, since no load changes them.
func (template) Restore(code []byte, p *detour.Plan) []byte {
	code = put(code, insnLDR|ptRegsPState/slotSize<<10|zeroOrSP<<5) // x0
	code = put(code, insnMSR|sysNZCV)
	code = put(code, insnLDR|ptRegsX30/slotSize<<10|zeroOrSP<<5|linkRegister)
	for r := uint32(0); r < linkRegister; r += 2 {
		code = pair(code, insnLDP, r, r+1, r*slotSize)
	}
	return put(code, insnADD|ptRegsSize<<10|zeroOrSP<<5|zeroOrSP)
}

// pair appends stp or ldp at an offset from the stack pointer in bytes.
func pair(code []byte, insn, first, second, offset uint32) []byte {
	return put(code, insn|offset/slotSize<<15|second<<10|zeroOrSP<<5|first)
}

// number appends the load of a register with a value that does not depend on
// where the code stands.
func number(code []byte, reg uint32, v uint64) []byte {
	far := relocate.Layout{Plan: &relocate.Plan{Options: relocate.Options{Reach: relocate.Far}}}
	return emitter{}.constant(code, reg, v, &far)
}
