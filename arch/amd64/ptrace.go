package amd64

import "xol/machine"

// Words of struct user_regs_struct [Linux, arch/x86/include/asm/user_64.h].
const (
	userRBX     = 5
	userR11     = 6
	userR10     = 7
	userR9      = 8
	userR8      = 9
	userRAX     = 10
	userRCX     = 11
	userRDX     = 12
	userRSI     = 13
	userRDI     = 14
	userOrigRAX = 15
	userRIP     = 16
	userEFlags  = 18
	userRSP     = 19
	userFSBase  = 21
	userGSBase  = 22
	userWords   = 27
)

// siKernel is the code of the SIGTRAP of int3 [Linux, arch/x86/kernel/traps.c,
// do_int3_user]: it is sent without an address.
const siKernel = 0x80

// Traced returns how Linux shows a thread to the process that traces it.
func (ISA) Traced() *machine.Traced {
	t := &machine.Traced{
		Words:   userWords,
		Word:    make([]machine.TracedWord, GSBase+1),
		Restart: userOrigRAX, NoRestart: ^uint64(0),
		Syscall: []byte{0x0f, 0x05},
		Number:  userRAX,
		Args:    [6]int{userRDI, userRSI, userRDX, userR10, userR8, userR9},
		Result:  userRAX,
		Failed:  -1,

		Breakpoint: []byte{0xcc}, Mask: []byte{0xff}, Past: 1, Code: siKernel,
		Alike: []byte{0xcd, 0x03}, // int $3
	}
	for i, word := range map[int]int{
		RAX: userRAX, RCX: userRCX, RDX: userRDX, RBX: userRBX, RSP: userRSP, RBP: 4, RSI: userRSI, RDI: userRDI,
		R8: userR8, R9: userR9, R10: userR10, R11: userR11, R12: 3, R13: 2, R14: 1, R15: 0,
		RIP: userRIP, RFLAGS: userEFlags, FSBase: userFSBase, GSBase: userGSBase,
	} {
		t.Word[i] = machine.Whole(word)
	}
	return t
}
