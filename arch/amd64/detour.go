package amd64

import (
	"encoding/binary"
	"math"

	"xol/decode"
	"xol/detour"
)

// template writes the parts of detour buffers.
type template struct{ ISA }

// PlanDetour fills p; see detour.Builder. The callback is called with the
// direction flag clear; AC is left as it is. r16 to r31 of APX are among what is
// not saved. Where the callback is not within 2 GiB, the call is an indirect
// one, through rax, so that indirect branch tracking wants an endbr64 there.
// orig_rax is -1, as of an interrupt.
func (a ISA) PlanDetour(p *detour.Plan, insts []decode.Inst, opt detour.Options) error {
	return detour.Start(template{a}, p, insts, opt)
}

// EncodeDetour writes a buffer; see detour.Builder.
func (a ISA) EncodeDetour(dst []byte, p *detour.Plan, at uint64) (int, error) {
	return detour.Encode(template{a}, dst, p, at)
}

// JumpTo returns the jump to a buffer; see detour.Builder.
func (a ISA) JumpTo(at, to uint64) ([]byte, error) { return template{a}.AppendJump(nil, at, to) }

// Jump describes jmp with a displacement of 32 bits.
func (template) Jump() detour.Jump {
	return detour.Jump{Len: jumpNear, Align: 1, Back: math.MinInt32 + jumpNear, Forward: math.MaxInt32 + jumpNear}
}

// AppendJump appends a jump; see detour.Template.
func (t template) AppendJump(code []byte, at, target uint64) ([]byte, error) {
	if err := t.Jump().Check(at, target); err != nil {
		return nil, err
	}
	return binary.LittleEndian.AppendUint32(append(code, 0xe9), uint32(target-at-jumpNear)), nil
}

// stackAlign is the alignment of the stack pointer at a call [System V ABI,
// AMD64 supplement, 3.2.2].
const stackAlign = 16

// Stack counts the frame, the return address and what aligning may take.
func (template) Stack(opt *detour.Options) int {
	return int(redZoneOf(&opt.Move)) + ptRegsSize + stackAlign - 1 + wordSize
}

// Sizes of the call in bytes.
const (
	callNear = 5
	callFar  = movabsSize + 2
)

// CallSize returns the sizes of the near and of the far call.
func (template) CallSize(*detour.Options) (least, most int) { return callNear, callFar }

// Save pushes the frame from its end. What mov from a segment register and the
// stack pointer's old value need a register for comes when that is saved.
func (template) Save(code []byte, p *detour.Plan) []byte {
	zone, ip := redZoneOf(&p.Options.Move), p.From()
	if p.Options.TrapIP {
		ip++
	}
	code = appendAdjustStack(code, -zone)
	code = append(code, 0x6a, 0, 0x6a, 0, 0x9c, 0x6a, 0) // push $0 for ss and sp, pushf, push $0 for cs
	code = append(appendPush(code, ip), 0x6a, 0xff)      // push $-1
	for i := len(ptRegsOrder) - 1; i >= 0; i-- {
		code = appendOnStack(code, 0x50, ptRegsOrder[i]) // push
	}
	code = appendStackOperand(append(code, 0x48, 0x8d), RAX, ptRegsSize+zone) // lea
	code = appendStackOperand(append(code, 0x48, movStore), RAX, ptRegsSP)
	code = appendStackOperand(append(code, 0x8c, 0xc8, 0x48, movStore), RAX, ptRegsCS) // mov %cs,%eax
	code = appendStackOperand(append(code, 0x8c, 0xd0, 0x48, movStore), RAX, ptRegsSS) // mov %ss,%eax
	code = append(code, 0xfc, 0x48, 0x89, 0xe3, 0x48, 0x89, 0xe6)                      // cld; mov %rsp,%rbx; mov %rsp,%rsi
	code = append(code, 0x48, 0x83, 0xe4, 0x100-stackAlign)                            // and $-16,%rsp
	return appendMovabs(code, RDI, p.Options.Probe)
}

// Call appends the near call, or the far one where that does not reach.
func (template) Call(code []byte, p *detour.Plan, at uint64) []byte {
	to := p.Options.Callback
	if disp := to - (at + callNear); fitsSigned(disp) {
		return binary.LittleEndian.AppendUint32(append(code, 0xe8), uint32(disp))
	}
	return append(appendMovabs(code, RAX, to), 0xff, 0xd0) // call *%rax
}

// Restore pops the frame, which the callback has kept in rbx. At every moment
// the stack pointer is below what is still to be popped.
func (template) Restore(code []byte, p *detour.Plan) []byte {
	code = append(code, 0x48, 0x89, 0xdc) // mov %rbx,%rsp
	for _, r := range ptRegsOrder {
		code = appendOnStack(code, 0x58, r) // pop
	}
	code = appendAdjustStack(code, 3*wordSize) // orig_rax, rip, cs
	code = append(code, 0x9d)                  // popf
	return appendAdjustStack(code, 2*wordSize+redZoneOf(&p.Options.Move))
}

// appendOnStack appends push or pop of a register.
func appendOnStack(code []byte, opcode, reg byte) []byte {
	if reg >= R8 {
		code = append(code, 0x41)
	}
	return append(code, opcode|reg&7)
}
