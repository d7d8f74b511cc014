package arm64

import "xol/machine"

// trapBrkpt is the code of the SIGTRAP of brk [Linux, arch/arm64/kernel/debug-monitors.c].
const trapBrkpt = 1

// Traced returns how Linux shows a thread to the process that traces it: struct
// user_pt_regs [Linux, arch/arm64/include/uapi/asm/ptrace.h]. The flags are the upper
// bits of its pstate. What a system call restarts with is in the registers already
// [arch/arm64/kernel/signal.c, arch_do_signal_or_restart].
func (a ISA) Traced() *machine.Traced {
	const pstate = 33
	t := &machine.Traced{
		Words:   34,
		Restart: -1,
		Syscall: []byte{0x01, 0x00, 0x00, 0xd4}, // svc #0
		Number:  8,
		Args:    [6]int{0, 1, 2, 3, 4, 5},
		Failed:  -1,

		Breakpoint: a.Breakpoint(false), Mask: []byte{0x1f, 0x00, 0xe0, 0xff}, // but for its operand
		Code: trapBrkpt,
	}
	for i := range PC + 1 {
		t.Word = append(t.Word, machine.Whole(i))
	}
	t.Word = append(t.Word, machine.TracedWord{Word: pstate, Mask: conditionFlags})
	return t
}
