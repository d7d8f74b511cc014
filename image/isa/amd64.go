package isa

import (
	"debug/elf"
	"encoding/binary"
	"strings"

	"xol/place"
)

var amd64 = Record{
	Name:        "amd64",
	Machine:     elf.EM_X86_64,
	MinInsn:     1,
	ByteFields:  true,
	Padding:     amd64Padding,
	EndsFlow:    amd64EndsFlow,
	Relocations: amd64Relocations,
	Loader: Loader{
		Relative: uint32(elf.R_X86_64_RELATIVE),
		Slots:    [2]uint32{uint32(elf.R_X86_64_JMP_SLOT), uint32(elf.R_X86_64_GLOB_DAT)},
		Resolved: [2]uint32{uint32(elf.R_X86_64_IRELATIVE), uint32(elf.R_X86_64_IRELATIVE)},
	},
	Stubs: amd64Stubs,
	Kernel: Kernel{
		Symbols: []string{"entry_SYSCALL_64", "startup_64"},
		Areas: []Area{
			{Start: "__entry_text_start", Stop: "__entry_text_end", Kind: place.EntryText},
			{Start: "__entry_text_start", Stop: "__entry_text_end", Kind: place.Blacklist, Whole: true},
		},
		ExEntries:     []int{12},
		CallSize:      5,
		TrapSize:      2,
		JumpLabelSize: amd64JumpLabelSize,
		FtraceSite:    amd64FtraceSite,
		Alternatives: Alternatives{
			// From 6.3 on flags are apart; up to 5.12, and not in Debian's 5.10, entries
			// say how much padding there is [arch/x86/include/asm/alternative.h].
			Layouts:   []AltLayout{{Size: 14, Flags: 10, Lengths: 12, Traps: true}, {Size: 12, Lengths: 10}, {Size: 13, Lengths: 10}},
			Condition: amd64Condition,
			Calls: &PointerCalls{
				Through:  amd64CalledThrough,
				Direct:   amd64DirectCall,
				Inlined:  []InlinedFunction{{"nop_func", ""}, {"_paravirt_nop", ""}, {"_paravirt_ident_64", "\x48\x89\xf8"}}, // mov %rdi,%rax
				Section:  ".parainstructions",
				InTables: [2]int{5, 13},
			},
		},
		Thunks: []ThunkTable{{".return_sites", place.ReturnThunk}, {".retpoline_sites", place.BranchThunk}},
	},
}

// amd64Padding counts NOPs, INT3 and zero bytes.
func amd64Padding(code []byte, _ bool) uint64 {
	n := 0
	for {
		k := amd64PaddingInsn(code[n:])
		if k == 0 {
			return uint64(n)
		}
		n += k
	}
}

// amd64PaddingInsn returns the length of the NOP, INT3 or zero byte that code
// starts with; 0 where it starts with something else.
func amd64PaddingInsn(code []byte) int {
	for i, c := range code {
		switch c {
		case 0x66, 0x2e:
			continue
		case 0x90:
			return i + 1
		case 0xcc, 0:
			if i == 0 {
				return 1
			}
		case 0x0f:
			if n := i + amd64LongNop(code[i:]); n > i && n <= len(code) {
				return n
			}
		}
		return 0
	}
	return 0
}

// amd64LongNop returns the length of a NOP 0F 1F /0 with its operand, or 0.
func amd64LongNop(code []byte) int {
	if len(code) < 3 || code[1] != 0x1f {
		return 0
	}
	mod, rm := code[2]>>6, code[2]&7
	n := 3
	if mod != 3 && rm == 4 {
		n++
	}
	switch {
	case mod == 1:
		n++
	case mod == 2 || mod == 0 && rm == 5:
		n += 4
	}
	return n
}

func amd64EndsFlow(code []byte, _ bool) bool {
	n := len(code)
	switch code[n-1] {
	case 0xcc, 0x90, 0xc3, 0: // int3, nop, ret, the end of a long nop
		return true
	}
	return code[n-2] == 0xeb || code[n-5] == 0xe9 || code[n-2] == 0x0f && code[n-1] == 0x0b // jmp, jmp, ud2
}

// amd64Stubs finds, in each entry of a table, the jump through memory that it
// ends with: FF 25 and a displacement.
func amd64Stubs(code []byte, addr, size uint64, found func(addr, slot uint64)) {
	const jump = 6
	if size < jump || size > 32 {
		size = 16
	}
	for ; uint64(len(code)) >= size; code, addr = code[size:], addr+size {
		for i := 0; i+jump <= int(size); i++ {
			if code[i] == 0xff && code[i+1] == 0x25 {
				found(addr, addr+uint64(i)+jump+displacement(code[i+2:]))
				break
			}
		}
	}
}

// displacement returns 4 bytes widened with their sign.
func displacement(b []byte) uint64 { return uint64(int64(int32(binary.LittleEndian.Uint32(b)))) }

// amd64JumpLabelSize tells the short from the near form, of which the
// assembler chose one. Kernels up to 5.12 write the NOP that is best for a CPU: of
// the near form that may be four prefixes and the short one's last byte.
func amd64JumpLabelSize(first, second byte) uint64 {
	if first == 0xeb || first == 0x66 && second == 0x90 {
		return 2
	}
	return 5
}

// amd64FtraceSite finds the NOP of 5 bytes that ftrace leaves, or its call, at the start
// of a function or after its landing pad [arch/x86/kernel/ftrace.c].
func amd64FtraceSite(code []byte, _ bool) (off uint64, ok bool) {
	const (
		endbr64 = "\xf3\x0f\x1e\xfa"
		nop     = "\x0f\x1f\x44\x00\x00"
		k8Nop   = "\x66\x66\x66\x66\x90" // up to 5.12, on CPUs for which it is better
		call    = "\xe8"
	)
	after, padded := strings.CutPrefix(string(code), endbr64)
	if padded {
		off = uint64(len(endbr64))
	}
	return off, strings.HasPrefix(after, nop) || strings.HasPrefix(after, k8Nop) || strings.HasPrefix(after, call)
}

// amd64Condition reads what a feature of the CPU means, and whether it has to be
// missing [arch/x86/include/asm/cpufeatures.h, alternative.h].
func amd64Condition(layout *AltLayout, feature, flags uint16, _ uint8) AltCondition {
	const (
		always = 3*32 + 21
		xenPV  = 8*32 + 16

		not     = 1 << 0
		call    = 1 << 1
		notWord = 1 << 15 // not, of the feature in a layout without flags
	)
	if layout.Flags == 0 && feature&notWord != 0 {
		feature, flags = feature&^notWord, not
	}
	c := AltCondition{Call: flags&call != 0}
	switch {
	case feature != always && feature != xenPV:
		c.When = WhenCPU
	case (feature == always) != (flags&not != 0):
		c.When = WhenAlways
	default:
		c.When = WhenNever
	}
	return c
}

// amd64CalledThrough reads a call through memory, relative to the instruction
// pointer or not.
func amd64CalledThrough(code []byte, addr uint64) (slot, size uint64, ok bool) {
	const relative, absolute = "\xff\x15", "\xff\x14\x25"
	switch {
	case string(code[:2]) == relative:
		return addr + 6 + displacement(code[2:]), 6, true
	case string(code[:3]) == absolute:
		return displacement(code[3:]), 7, true
	}
	return 0, 0, false
}

func amd64DirectCall(addr, target uint64) []byte {
	const call, size = 0xe8, 5
	return binary.LittleEndian.AppendUint32([]byte{call}, uint32(target-(addr+size)))
}

// What is missing among the relocations of an ISA fills its field with something
// that only the linker knows: offsets of thread-local storage, most of all.

// amd64Relocations follows the System V ABI, AMD64 supplement, 4.4.1.
var amd64Relocations = map[uint32]Howto{
	uint32(elf.R_X86_64_NONE):          {Value: Nothing},
	uint32(elf.R_X86_64_64):            {Value: AbsoluteS, Field: Data64},
	uint32(elf.R_X86_64_PC64):          {Value: RelativeS, Field: Data64},
	uint32(elf.R_X86_64_32):            {Value: AbsoluteS, Field: Data32},
	uint32(elf.R_X86_64_32S):           {Value: AbsoluteS, Field: Data32},
	uint32(elf.R_X86_64_PC32):          {Value: RelativeS, Field: Data32},
	uint32(elf.R_X86_64_PLT32):         {Value: RelativeS, Field: Data32},
	uint32(elf.R_X86_64_16):            {Value: AbsoluteS, Field: Data16},
	uint32(elf.R_X86_64_PC16):          {Value: RelativeS, Field: Data16},
	uint32(elf.R_X86_64_8):             {Value: AbsoluteS, Field: Data8},
	uint32(elf.R_X86_64_PC8):           {Value: RelativeS, Field: Data8},
	uint32(elf.R_X86_64_GOTPCREL):      {Value: RelativeG, Field: Data32},
	uint32(elf.R_X86_64_GOTPCRELX):     {Value: RelativeG, Field: Data32},
	uint32(elf.R_X86_64_REX_GOTPCRELX): {Value: RelativeG, Field: Data32},
	uint32(elf.R_X86_64_GOTPCREL64):    {Value: RelativeG, Field: Data64},
	uint32(elf.R_X86_64_SIZE32):        {Value: SizeS, Field: Data32},
	uint32(elf.R_X86_64_SIZE64):        {Value: SizeS, Field: Data64},
	uint32(elf.R_X86_64_DTPOFF64):      {Value: Opaque, Field: Data64},
	uint32(elf.R_X86_64_TPOFF64):       {Value: Opaque, Field: Data64},
}
