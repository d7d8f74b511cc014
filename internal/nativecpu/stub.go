//go:build linux && amd64

package nativecpu

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// Where the child's own parts are: below every address that a random state
// points to.
const (
	stubAddr    = 0x20000
	controlAddr = 0x30000 // a page shared with the parent: the system calls to make
	pageSize    = 4096
	pageMask    = pageSize - 1
)

// A system call in the control page: number, six arguments, result. The list
// ends with endOfCalls.
const (
	callSize   = 8 * 8
	maxCalls   = pageSize/callSize - 1
	endOfCalls = ^uint64(0)
)

// stubCode makes the system calls listed at rbx, then stops. Its second entry
// identifies the CPU.
var stubCode = []byte{
	0x48, 0x8b, 0x03, // mov (%rbx),%rax
	0x48, 0x83, 0xf8, 0xff, // cmp $-1,%rax
	0x74, 0x24, // je done
	0x48, 0x8b, 0x7b, 0x08, // mov 8(%rbx),%rdi
	0x48, 0x8b, 0x73, 0x10, // mov 16(%rbx),%rsi
	0x48, 0x8b, 0x53, 0x18, // mov 24(%rbx),%rdx
	0x4c, 0x8b, 0x53, 0x20, // mov 32(%rbx),%r10
	0x4c, 0x8b, 0x43, 0x28, // mov 40(%rbx),%r8
	0x4c, 0x8b, 0x4b, 0x30, // mov 48(%rbx),%r9
	0x0f, 0x05, // syscall
	0x48, 0x89, 0x43, 0x38, // mov %rax,56(%rbx)
	0x48, 0x83, 0xc3, 0x40, // add $64,%rbx
	0xeb, 0xd3, // jmp to the start
	0xcc,       // done: int3
	0x0f, 0xa2, // cpuid
	0xcc, // int3
}

const (
	callsEntry = stubAddr + headersSize
	cpuidEntry = callsEntry + 46

	headersSize = 64 + 56
)

// executable returns an ELF file whose only segment is the stub.
func executable() []byte {
	var b bytes.Buffer
	size := uint64(headersSize + len(stubCode))
	binary.Write(&b, binary.LittleEndian, elf.Header64{
		Ident:     [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:      uint16(elf.ET_EXEC),
		Machine:   uint16(elf.EM_X86_64),
		Version:   uint32(elf.EV_CURRENT),
		Entry:     callsEntry,
		Phoff:     64,
		Ehsize:    64,
		Phentsize: 56,
		Phnum:     1,
		Shentsize: 64,
	})
	binary.Write(&b, binary.LittleEndian, elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X),
		Vaddr: stubAddr, Paddr: stubAddr, Filesz: size, Memsz: size, Align: pageSize,
	})
	b.Write(stubCode)
	return b.Bytes()
}
