package arm64

import "xol/detour"

// slotSize is the size of a field of the frame in bytes.
const slotSize = 8

// Offsets in struct user_pt_regs that the template names, in bytes.
const (
	ptRegsX30    = 30 * slotSize
	ptRegsPC     = 32 * slotSize
	ptRegsPState = 33 * slotSize
	ptRegsSize   = 34 * slotSize
)

// ptRegs is struct user_pt_regs of Linux [arch/arm64/include/uapi/asm/ptrace.h],
// which struct pt_regs begins with.
var ptRegs = detour.Frame{Size: ptRegsSize, Fields: []detour.Field{
	{Name: "x0", Offset: 0, Size: slotSize, Register: X0, Restored: true},
	{Name: "x1", Offset: 8, Size: slotSize, Register: X0 + 1, Restored: true},
	{Name: "x2", Offset: 16, Size: slotSize, Register: X0 + 2, Restored: true},
	{Name: "x3", Offset: 24, Size: slotSize, Register: X0 + 3, Restored: true},
	{Name: "x4", Offset: 32, Size: slotSize, Register: X0 + 4, Restored: true},
	{Name: "x5", Offset: 40, Size: slotSize, Register: X0 + 5, Restored: true},
	{Name: "x6", Offset: 48, Size: slotSize, Register: X0 + 6, Restored: true},
	{Name: "x7", Offset: 56, Size: slotSize, Register: X0 + 7, Restored: true},
	{Name: "x8", Offset: 64, Size: slotSize, Register: X0 + 8, Restored: true},
	{Name: "x9", Offset: 72, Size: slotSize, Register: X0 + 9, Restored: true},
	{Name: "x10", Offset: 80, Size: slotSize, Register: X0 + 10, Restored: true},
	{Name: "x11", Offset: 88, Size: slotSize, Register: X0 + 11, Restored: true},
	{Name: "x12", Offset: 96, Size: slotSize, Register: X0 + 12, Restored: true},
	{Name: "x13", Offset: 104, Size: slotSize, Register: X0 + 13, Restored: true},
	{Name: "x14", Offset: 112, Size: slotSize, Register: X0 + 14, Restored: true},
	{Name: "x15", Offset: 120, Size: slotSize, Register: X0 + 15, Restored: true},
	{Name: "x16", Offset: 128, Size: slotSize, Register: X0 + 16, Restored: true},
	{Name: "x17", Offset: 136, Size: slotSize, Register: X0 + 17, Restored: true},
	{Name: "x18", Offset: 144, Size: slotSize, Register: X0 + 18, Restored: true},
	{Name: "x19", Offset: 152, Size: slotSize, Register: X0 + 19, Restored: true},
	{Name: "x20", Offset: 160, Size: slotSize, Register: X0 + 20, Restored: true},
	{Name: "x21", Offset: 168, Size: slotSize, Register: X0 + 21, Restored: true},
	{Name: "x22", Offset: 176, Size: slotSize, Register: X0 + 22, Restored: true},
	{Name: "x23", Offset: 184, Size: slotSize, Register: X0 + 23, Restored: true},
	{Name: "x24", Offset: 192, Size: slotSize, Register: X0 + 24, Restored: true},
	{Name: "x25", Offset: 200, Size: slotSize, Register: X0 + 25, Restored: true},
	{Name: "x26", Offset: 208, Size: slotSize, Register: X0 + 26, Restored: true},
	{Name: "x27", Offset: 216, Size: slotSize, Register: X0 + 27, Restored: true},
	{Name: "x28", Offset: 224, Size: slotSize, Register: X0 + 28, Restored: true},
	{Name: "x29", Offset: 232, Size: slotSize, Register: X0 + 29, Restored: true},
	{Name: "x30", Offset: ptRegsX30, Size: slotSize, Register: X0 + 30, Restored: true},
	{Name: "sp", Offset: 248, Size: slotSize, Register: SP},
	{Name: "pc", Offset: ptRegsPC, Size: slotSize, Register: PC},
	{Name: "pstate", Offset: ptRegsPState, Size: slotSize, Register: NZCV, Restored: true},
}}

// PtRegs returns the layout of the frame; see detour.Builder. Of pstate, the
// condition flags are restored.
func (ISA) PtRegs() *detour.Frame { return &ptRegs }
