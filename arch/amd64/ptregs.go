package amd64

import "xol/detour"

// Offsets in struct pt_regs that the template names, in bytes.
const (
	ptRegsCS   = 17 * wordSize
	ptRegsSP   = 19 * wordSize
	ptRegsSS   = 20 * wordSize
	ptRegsSize = 21 * wordSize
)

// ptRegsOrder is the order of the registers that pop restores.
var ptRegsOrder = [...]byte{R15, R14, R13, R12, RBP, RBX, R11, R10, R9, R8, RAX, RCX, RDX, RSI, RDI}

// ptRegs is struct pt_regs of Linux [arch/x86/include/uapi/asm/ptrace.h].
var ptRegs = detour.Frame{Size: ptRegsSize, Fields: []detour.Field{
	{Name: "r15", Offset: 0, Size: wordSize, Register: R15, Restored: true},
	{Name: "r14", Offset: 8, Size: wordSize, Register: R14, Restored: true},
	{Name: "r13", Offset: 16, Size: wordSize, Register: R13, Restored: true},
	{Name: "r12", Offset: 24, Size: wordSize, Register: R12, Restored: true},
	{Name: "rbp", Offset: 32, Size: wordSize, Register: RBP, Restored: true},
	{Name: "rbx", Offset: 40, Size: wordSize, Register: RBX, Restored: true},
	{Name: "r11", Offset: 48, Size: wordSize, Register: R11, Restored: true},
	{Name: "r10", Offset: 56, Size: wordSize, Register: R10, Restored: true},
	{Name: "r9", Offset: 64, Size: wordSize, Register: R9, Restored: true},
	{Name: "r8", Offset: 72, Size: wordSize, Register: R8, Restored: true},
	{Name: "rax", Offset: 80, Size: wordSize, Register: RAX, Restored: true},
	{Name: "rcx", Offset: 88, Size: wordSize, Register: RCX, Restored: true},
	{Name: "rdx", Offset: 96, Size: wordSize, Register: RDX, Restored: true},
	{Name: "rsi", Offset: 104, Size: wordSize, Register: RSI, Restored: true},
	{Name: "rdi", Offset: 112, Size: wordSize, Register: RDI, Restored: true},
	{Name: "orig_rax", Offset: 120, Size: wordSize, Register: detour.NoRegister},
	{Name: "rip", Offset: 128, Size: wordSize, Register: RIP},
	{Name: "cs", Offset: ptRegsCS, Size: wordSize, Register: detour.NoRegister},
	{Name: "eflags", Offset: 144, Size: wordSize, Register: RFLAGS, Restored: true},
	{Name: "rsp", Offset: ptRegsSP, Size: wordSize, Register: RSP},
	{Name: "ss", Offset: ptRegsSS, Size: wordSize, Register: detour.NoRegister},
}}

// PtRegs returns the layout of the frame; see detour.Builder.
func (ISA) PtRegs() *detour.Frame { return &ptRegs }
