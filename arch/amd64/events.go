package amd64

import "xol/detour"

// fetchRegisters are the names of registers in probe events: those that Linux
// gives to the fields of struct pt_regs [Linux, arch/x86/kernel/ptrace.c,
// regs_query_register_offset].
var fetchRegisters = map[string]int{
	"ax": RAX, "bx": RBX, "cx": RCX, "dx": RDX, "si": RSI, "di": RDI, "bp": RBP, "sp": RSP,
	"r8": R8, "r9": R9, "r10": R10, "r11": R11, "r12": R12, "r13": R13, "r14": R14, "r15": R15,
	"ip": RIP, "flags": RFLAGS,
	"orig_ax": detour.NoRegister, "cs": detour.NoRegister, "ss": detour.NoRegister,
}

// Selectors of the flat segments of Linux
// [arch/x86/include/asm/segment.h, __KERNEL_CS and its neighbours].
const (
	kernelCS, kernelSS = 0x10, 0x18
	userCS, userSS     = 0x33, 0x2b
)

// FrameConstant returns the selectors, and for the number of the system call what
// says that the frame is none's [Linux, arch/x86/entry/entry_64.S, idtentry].
func (ISA) FrameConstant(name string, kernel bool) (value uint64, ok bool) {
	switch {
	case name == "orig_ax":
		return 1<<64 - 1, true
	case name == "cs" && kernel:
		return kernelCS, true
	case name == "cs":
		return userCS, true
	case name == "ss" && kernel:
		return kernelSS, true
	case name == "ss":
		return userSS, true
	}
	return 0, false
}

// FetchRegister returns the index in Registers of the register that probe
// events call name: "ax" for RAX. It is detour.NoRegister for a field of the
// frame that stands for no register; ok says whether there is such a name.
func (ISA) FetchRegister(name string) (index int, ok bool) {
	index, ok = fetchRegisters[name]
	return index, ok
}
