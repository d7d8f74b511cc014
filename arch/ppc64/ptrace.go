package ppc64

import (
	"encoding/binary"

	"xol/machine"
)

// Words of struct pt_regs [Linux, arch/powerpc/include/uapi/asm/ptrace.h].
const (
	ptNIP  = 32
	ptCTR  = 35
	ptLink = 36
	ptXER  = 37
	ptCCR  = 38
	ptTrap = 40
	// ELF_NGREG [Linux, arch/powerpc/include/uapi/asm/elf.h]
	ptWords = 48
)

// trapBrkpt is the code of the SIGTRAP of trap [Linux, arch/powerpc/kernel/traps.c,
// program_check_exception].
const trapBrkpt = 1

// summaryOverflow is CR0.SO, which tells that a system call has failed.
const summaryOverflow = 1 << 28

// Traced returns how Linux shows a thread to the process that traces it.
func (a ISA) Traced() *machine.Traced {
	word := func(w uint32) []byte {
		if a.LittleEndian {
			return binary.LittleEndian.AppendUint32(nil, w)
		}
		return binary.BigEndian.AppendUint32(nil, w)
	}
	t := &machine.Traced{
		Words:   ptWords,
		Restart: ptTrap, // its kind tells whether there is anything to restart
		Syscall: word(0x44000002),
		Number:  0,
		Args:    [6]int{3, 4, 5, 6, 7, 8},
		Result:  3,
		Failed:  ptCCR, FailedBit: summaryOverflow,

		Breakpoint: a.Breakpoint(false), Mask: []byte{0xff, 0xff, 0xff, 0xff}, Code: trapBrkpt,
	}
	for i := range 32 {
		t.Word = append(t.Word, machine.Whole(i))
	}
	for _, w := range []int{ptNIP, ptLink, ptCTR, ptCCR, ptXER} { // in the order of PC, LR, CTR, CR, XER
		t.Word = append(t.Word, machine.Whole(w))
	}
	return t
}
