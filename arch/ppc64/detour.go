package ppc64

import (
	"xol/decode"
	"xol/detour"
	"xol/relocate"
)

// Instructions of the template [Power ISA 3.1, Book I and Book III].
const (
	insnMFCR  = 31<<26 | 19<<1
	insnMTCRF = 31<<26 | 144<<1 | 0xff<<12 // all fields
	insnMFMSR = 31<<26 | 83<<1
	insnBCTRL = 19<<26 | boAlways<<boShift | 528<<1 | linkBit

	branchBits = 26
)

// Numbers of general registers that the template uses.
const (
	tocRegister = 2
	firstArg    = 3
	secondArg   = 4
	entryReg    = 12 // holds the address of a function at its global entry
)

// Sizes in bytes of what lies around the frame.
const (
	kernelRedZone = 288 // in both ABIs [Linux, arch/powerpc/include/asm/ptrace.h]
	callerArea    = 112 // header and parameters of ELFv1, which are more than those of ELFv2
)

// programInterrupt is the vector of a trap, as pt_regs has it.
const programInterrupt = 0x700

// template writes the parts of detour buffers.
type template struct{ ISA }

// PlanDetour fills p; see detour.Builder. The callback is called through CTR
// with its address in r12. msr is 0 in user mode, which cannot read it; trap is
// that of a breakpoint, and what is not said here is 0.
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
	const reach = 1 << (branchBits - 1)
	return detour.Jump{Len: wordSize, Align: wordSize, Back: -reach, Forward: reach - wordSize}
}

// AppendJump appends a jump; see detour.Template.
func (t template) AppendJump(code []byte, at, target uint64) ([]byte, error) {
	if err := t.Jump().Check(at, target); err != nil {
		return nil, err
	}
	return t.emitter().put(code, insnB|uint32(target-at)&(1<<branchBits-1)), nil
}

func (t template) emitter() emitter { return emitter{t.LittleEndian} }

// Stack counts the red zone, the frame and what the callback may use above its
// own.
func (template) Stack(opt *detour.Options) int {
	const fixed = callerArea + ptRegsSize
	switch {
	case opt.Kernel:
		return kernelRedZone + fixed
	case opt.Move.NoRedZone:
		return fixed
	}
	return redZone + fixed
}

// CallSize returns the size of the call, which is the same everywhere.
func (template) CallSize(opt *detour.Options) (least, most int) {
	size := constantSize(opt.Callback) + 2*wordSize
	if opt.TOC != 0 {
		size += constantSize(opt.TOC)
	}
	return size, size
}

// special are the registers that go to the frame by way of a general one.
var special = [...]struct{ spr, offset uint32 }{
	{sprCTR, ptRegsCTR}, {sprLR, ptRegsLink}, {sprXER, ptRegsXER},
}

// Save makes a stack frame and stores the registers there.
func (t template) Save(code []byte, p *detour.Plan) []byte {
	e, size := t.emitter(), uint32(t.Stack(&p.Options))
	const r0 = 0
	code = e.inFrame(code, insnSTDU, stackPointer, -size&0xffff)
	for r := uint8(0); r < 32; r++ {
		if r != stackPointer {
			code = e.field(code, insnSTD, r, uint32(r)*slotSize)
		}
	}
	code = e.field(e.inFrame(code, insnADDI, r0, size), insnSTD, r0, stackPointer*slotSize)
	for _, s := range special {
		code = e.moveSPR(code, insnMFSPR, relocate.Scratch{Reg: r0}, s.spr)
		code = e.field(code, insnSTD, r0, s.offset)
	}
	code = e.field(e.put(code, insnMFCR), insnSTD, r0, ptRegsCCR)
	code = e.field(e.constant(code, firstArg, p.From()), insnSTD, firstArg, ptRegsNIP)
	code = e.field(e.constant(code, r0, programInterrupt), insnSTD, r0, ptRegsTrap)
	code = e.constant(code, r0, 0)
	for i := range ptRegs.Fields {
		if f := &ptRegs.Fields[i]; f.Register == detour.NoRegister && f.Offset != ptRegsTrap {
			code = e.field(code, insnSTD, r0, uint32(f.Offset))
		}
	}
	if p.Options.Kernel {
		code = e.field(e.put(code, insnMFMSR), insnSTD, r0, ptRegsMSR)
	}
	if p.Options.Probe != p.From() {
		code = e.constant(code, firstArg, p.Options.Probe)
	}
	return e.inFrame(code, insnADDI, secondArg, callerArea)
}

// field appends a load or store of r at an offset in pt_regs.
func (e emitter) field(code []byte, insn uint32, r uint8, offset uint32) []byte {
	return e.inFrame(code, insn, r, callerArea+offset)
}

// Call appends the call; the values do not depend on where it stands.
func (t template) Call(code []byte, p *detour.Plan, _ uint64) []byte {
	e := t.emitter()
	if p.Options.TOC != 0 {
		code = e.constant(code, tocRegister, p.Options.TOC)
	}
	code = e.set(code, relocate.Scratch{Reg: entryReg}, sprCTR, p.Options.Callback)
	return e.put(code, insnBCTRL)
}

// Restore loads the special registers first, which need a general one.
func (t template) Restore(code []byte, p *detour.Plan) []byte {
	e := t.emitter()
	const r0 = 0
	for _, s := range special {
		code = e.field(code, insnLD, r0, s.offset)
		code = e.moveSPR(code, insnMTSPR, relocate.Scratch{Reg: r0}, s.spr)
	}
	code = e.put(e.field(code, insnLD, r0, ptRegsCCR), insnMTCRF)
	for r := uint8(0); r < 32; r++ {
		if r != stackPointer {
			code = e.field(code, insnLD, r, uint32(r)*slotSize)
		}
	}
	return e.inFrame(code, insnADDI, stackPointer, uint32(t.Stack(&p.Options)))
}
