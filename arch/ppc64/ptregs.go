package ppc64

import "xol/detour"

// slotSize is the size of a field of the frame in bytes.
const slotSize = 8

// Offsets in struct pt_regs that the template names, in bytes.
const (
	ptRegsNIP  = 32 * slotSize
	ptRegsMSR  = 33 * slotSize
	ptRegsCTR  = 35 * slotSize
	ptRegsLink = 36 * slotSize
	ptRegsXER  = 37 * slotSize
	ptRegsCCR  = 38 * slotSize
	ptRegsTrap = 40 * slotSize
	ptRegsSize = 44 * slotSize
)

// ptRegs is struct pt_regs of Linux [arch/powerpc/include/uapi/asm/ptrace.h].
var ptRegs = detour.Frame{Size: ptRegsSize, Fields: []detour.Field{
	{Name: "gpr0", Offset: 0, Size: slotSize, Register: R0, Restored: true},
	{Name: "gpr1", Offset: 8, Size: slotSize, Register: R0 + 1},
	{Name: "gpr2", Offset: 16, Size: slotSize, Register: R0 + 2, Restored: true},
	{Name: "gpr3", Offset: 24, Size: slotSize, Register: R0 + 3, Restored: true},
	{Name: "gpr4", Offset: 32, Size: slotSize, Register: R0 + 4, Restored: true},
	{Name: "gpr5", Offset: 40, Size: slotSize, Register: R0 + 5, Restored: true},
	{Name: "gpr6", Offset: 48, Size: slotSize, Register: R0 + 6, Restored: true},
	{Name: "gpr7", Offset: 56, Size: slotSize, Register: R0 + 7, Restored: true},
	{Name: "gpr8", Offset: 64, Size: slotSize, Register: R0 + 8, Restored: true},
	{Name: "gpr9", Offset: 72, Size: slotSize, Register: R0 + 9, Restored: true},
	{Name: "gpr10", Offset: 80, Size: slotSize, Register: R0 + 10, Restored: true},
	{Name: "gpr11", Offset: 88, Size: slotSize, Register: R0 + 11, Restored: true},
	{Name: "gpr12", Offset: 96, Size: slotSize, Register: R0 + 12, Restored: true},
	{Name: "gpr13", Offset: 104, Size: slotSize, Register: R0 + 13, Restored: true},
	{Name: "gpr14", Offset: 112, Size: slotSize, Register: R0 + 14, Restored: true},
	{Name: "gpr15", Offset: 120, Size: slotSize, Register: R0 + 15, Restored: true},
	{Name: "gpr16", Offset: 128, Size: slotSize, Register: R0 + 16, Restored: true},
	{Name: "gpr17", Offset: 136, Size: slotSize, Register: R0 + 17, Restored: true},
	{Name: "gpr18", Offset: 144, Size: slotSize, Register: R0 + 18, Restored: true},
	{Name: "gpr19", Offset: 152, Size: slotSize, Register: R0 + 19, Restored: true},
	{Name: "gpr20", Offset: 160, Size: slotSize, Register: R0 + 20, Restored: true},
	{Name: "gpr21", Offset: 168, Size: slotSize, Register: R0 + 21, Restored: true},
	{Name: "gpr22", Offset: 176, Size: slotSize, Register: R0 + 22, Restored: true},
	{Name: "gpr23", Offset: 184, Size: slotSize, Register: R0 + 23, Restored: true},
	{Name: "gpr24", Offset: 192, Size: slotSize, Register: R0 + 24, Restored: true},
	{Name: "gpr25", Offset: 200, Size: slotSize, Register: R0 + 25, Restored: true},
	{Name: "gpr26", Offset: 208, Size: slotSize, Register: R0 + 26, Restored: true},
	{Name: "gpr27", Offset: 216, Size: slotSize, Register: R0 + 27, Restored: true},
	{Name: "gpr28", Offset: 224, Size: slotSize, Register: R0 + 28, Restored: true},
	{Name: "gpr29", Offset: 232, Size: slotSize, Register: R0 + 29, Restored: true},
	{Name: "gpr30", Offset: 240, Size: slotSize, Register: R0 + 30, Restored: true},
	{Name: "gpr31", Offset: 248, Size: slotSize, Register: R0 + 31, Restored: true},
	{Name: "nip", Offset: ptRegsNIP, Size: slotSize, Register: PC},
	{Name: "msr", Offset: ptRegsMSR, Size: slotSize, Register: detour.NoRegister},
	{Name: "orig_gpr3", Offset: 272, Size: slotSize, Register: detour.NoRegister},
	{Name: "ctr", Offset: ptRegsCTR, Size: slotSize, Register: CTR, Restored: true},
	{Name: "link", Offset: ptRegsLink, Size: slotSize, Register: LR, Restored: true},
	{Name: "xer", Offset: ptRegsXER, Size: slotSize, Register: XER, Restored: true},
	{Name: "ccr", Offset: ptRegsCCR, Size: slotSize, Register: CR, Restored: true},
	{Name: "softe", Offset: 312, Size: slotSize, Register: detour.NoRegister},
	{Name: "trap", Offset: ptRegsTrap, Size: slotSize, Register: detour.NoRegister},
	{Name: "dar", Offset: 328, Size: slotSize, Register: detour.NoRegister},
	{Name: "dsisr", Offset: 336, Size: slotSize, Register: detour.NoRegister},
	{Name: "result", Offset: 344, Size: slotSize, Register: detour.NoRegister},
}}

// PtRegs returns the layout of the frame; see detour.Builder.
func (ISA) PtRegs() *detour.Frame { return &ptRegs }
