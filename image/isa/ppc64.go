package isa

import (
	"debug/elf"
	"encoding/binary"

	"xol/place"
)

var ppc64 = Record{
	Name:        "ppc64",
	Machine:     elf.EM_PPC64,
	MinInsn:     wordSize,
	Padding:     ppc64Words.paddingLen,
	EndsFlow:    ppc64Words.endsFlow,
	Relocations: ppc64Relocations,
	Loader: Loader{
		Relative: uint32(elf.R_PPC64_RELATIVE),
		Slots:    [2]uint32{uint32(elf.R_PPC64_JMP_SLOT), uint32(elf.R_PPC64_GLOB_DAT)},
		Resolved: [2]uint32{uint32(elf.R_PPC64_IRELATIVE), uint32(elf.R_PPC64_JMP_IREL)},
	},
	EntryTags:  []elf.DynTag{elf.DT_PPC64_GLINK},
	ABI:        ppc64ABI,
	LocalEntry: ppc64LocalEntry,
	// 64-bit ELFv2 ABI, 3.3 and 3.4.2; in a kernel module the table may be
	// missing [arch/powerpc/kernel/module_64.c, my_r2].
	TOC: &TOC{
		Symbol: ".TOC.", Bias: 0x8000, Align: 0x100,
		Linked: []string{".got", ".toc"}, Object: []string{".toc", ".got", ".stubs"},
	},
	Kernel: Kernel{
		Symbols:      []string{"start_here_multiplatform", "__start_interrupts"},
		Areas:        []Area{{Start: "_stext", Stop: "__head_end", Kind: place.Blacklist}},
		ExEntries:    []int{8},
		CallSize:     wordSize,
		TrapSize:     wordSize,
		FtraceAdjust: ppc64FtraceAdjust,
		// What kernels write for the CPU's flaws: flushes and barriers
		// [arch/powerpc/lib/feature-fixups.c, code-patching.h].
		Fixups: &Fixups{
			Tables: []string{
				"__stf_entry_barrier_fixup", "__stf_exit_barrier_fixup", "__uaccess_flush_fixup", "__entry_flush_fixup",
				"__scv_entry_flush_fixup", "__rfi_flush_fixup", "__spec_barrier_fixup",
			},
			SymbolPrefix: "patch__",
			Nop:          ppc64Nop,
		},
		Wrapper: &Wrapper{Name: "zImage", Machines: []elf.Machine{elf.EM_PPC, elf.EM_PPC64}, Section: ".kernel:vmlinux.strip"}, // arch/powerpc/boot/wrapper
	},
}

const ppc64Nop = 0x60000000

var ppc64Words = words{
	padding: []uint32{0, ppc64Nop, 0x60210000, 0x60420000 /* nops that end a group */, 0x7fe00008 /* trap */},
	flowEnds: []maskedWord{
		{0xffffffff, 0x4e800020}, {0xffffffff, 0x4e800420}, // blr, bctr
		{0xfc000001, 0x48000000}, {0xffe00000, 0x0fe00000}, // b, trap
	},
}

// ppc64ABI returns 1 or 2, for ELFv1 and ELFv2 [64-bit ELFv2 ABI, e_flags].
func ppc64ABI(flags uint32, big, descriptors bool) int {
	const mask = 3
	switch v := int(flags & mask); {
	case v != 0:
		return v
	case big || descriptors:
		return 1
	}
	return 2
}

// ppc64LocalEntry follows the 64-bit ELFv2 ABI, 3.4.1, st_other.
func ppc64LocalEntry(other byte) uint64 { return 1 << (other >> 5) >> 2 << 2 }

// ppc64FtraceAdjust finds the site in the words at and before a recorded
// address.
func ppc64FtraceAdjust(t Text, addr uint64) uint64 {
	var before [1]uint32
	var words [5]uint32
	if t.Words(words[:], addr) < 2 || t.HasSymbol("ftrace_ool_stub_text") {
		return 0 // out of line, it is of one NOP
	}
	t.Words(before[:], addr-wordSize)
	return ppc64FtraceOffset(before[0], &words)
}

// ppc64FtraceOffset finds the second of two NOPs, or the call of
// -mprofile-kernel that is recorded itself, after what keeps the return
// address.
func ppc64FtraceOffset(before uint32, words *[5]uint32) uint64 {
	const (
		mflr     = 0x7c0802a6 // mflr r0
		save     = 0xf8010010 // std r0,16(r1)
		call     = 0x48000001
		callMask = 0xfc000003
	)
	if before == mflr || before == save {
		return 0
	}
	if words[0] == ppc64Nop && words[1] == ppc64Nop || words[0] == mflr && (words[1] == ppc64Nop || words[1]&callMask == call) {
		return 4
	}
	return 0
}

// The fields of instructions that relocations fill.
var (
	ppcHalf     = &Field{Size: 2, Put: put16} // the lower half of an instruction
	ppcHalfDS   = &Field{Size: 2, Put: ppcPutDS}
	ppcBranch24 = &Field{Size: wordSize, Branch: true, Put: ppcInsert(0x03fffffc)} // b, bl
	ppcBranch14 = &Field{Size: wordSize, Branch: true, Put: ppcInsert(0x0000fffc)} // bc
	ppcPrefix34 = &Field{Size: 2 * wordSize, Put: ppcPutPrefixed}
)

// ppcPutDS fills a lower half whose last 2 bits belong to the opcode.
func ppcPutDS(b []byte, v uint64, order binary.ByteOrder) {
	order.PutUint16(b, order.Uint16(b)&3|uint16(v)&^3)
}

func ppcInsert(mask uint32) func(b []byte, v uint64, order binary.ByteOrder) {
	return func(b []byte, v uint64, order binary.ByteOrder) { insert(b, uint32(v), mask, order) }
}

// ppcPutPrefixed fills both words of a prefixed instruction.
func ppcPutPrefixed(b []byte, v uint64, order binary.ByteOrder) {
	insert(b, uint32(v>>16), 0x0003ffff, order)
	insert(b[wordSize:], uint32(v), 0xffff, order)
}

// ppc64Relocations follows the 64-bit ELFv2 ABI, 3.5.3, which for these agrees with
// ELFv1.
var ppc64Relocations = map[uint32]Howto{
	uint32(elf.R_PPC64_NONE):              {Value: Nothing},
	uint32(elf.R_PPC64_ADDR64):            {Value: AbsoluteS, Field: Data64},
	uint32(elf.R_PPC64_UADDR64):           {Value: AbsoluteS, Field: Data64},
	uint32(elf.R_PPC64_ADDR32):            {Value: AbsoluteS, Field: Data32},
	uint32(elf.R_PPC64_UADDR32):           {Value: AbsoluteS, Field: Data32},
	uint32(elf.R_PPC64_REL64):             {Value: RelativeS, Field: Data64},
	uint32(elf.R_PPC64_REL32):             {Value: RelativeS, Field: Data32},
	uint32(elf.R_PPC64_REL24):             {Value: RelativeS, Field: ppcBranch24},
	uint32(elf.R_PPC64_REL24_NOTOC):       {Value: RelativeS, Field: ppcBranch24},
	uint32(elf.R_PPC64_REL14):             {Value: RelativeS, Field: ppcBranch14},
	uint32(elf.R_PPC64_REL14_BRTAKEN):     {Value: RelativeS, Field: ppcBranch14},
	uint32(elf.R_PPC64_REL14_BRNTAKEN):    {Value: RelativeS, Field: ppcBranch14},
	uint32(elf.R_PPC64_ADDR24):            {Value: AbsoluteS, Field: ppcBranch24},
	uint32(elf.R_PPC64_ADDR14):            {Value: AbsoluteS, Field: ppcBranch14},
	uint32(elf.R_PPC64_ADDR16):            {Value: AbsoluteS, Field: ppcHalf},
	uint32(elf.R_PPC64_ADDR16_LO):         {Value: AbsoluteS, Field: ppcHalf},
	uint32(elf.R_PPC64_ADDR16_HI):         {Value: AbsoluteS, Field: ppcHalf, Shift: 16},
	uint32(elf.R_PPC64_ADDR16_HA):         {Value: AbsoluteS, Field: ppcHalf, Shift: 16, Round: true},
	uint32(elf.R_PPC64_ADDR16_HIGHER):     {Value: AbsoluteS, Field: ppcHalf, Shift: 32},
	uint32(elf.R_PPC64_ADDR16_HIGHEST):    {Value: AbsoluteS, Field: ppcHalf, Shift: 48},
	uint32(elf.R_PPC64_ADDR16_DS):         {Value: AbsoluteS, Field: ppcHalfDS},
	uint32(elf.R_PPC64_ADDR16_LO_DS):      {Value: AbsoluteS, Field: ppcHalfDS},
	uint32(elf.R_PPC64_TOC):               {Value: TOCBase, Field: Data64},
	uint32(elf.R_PPC64_TOC16):             {Value: TOCRelativeS, Field: ppcHalf},
	uint32(elf.R_PPC64_TOC16_LO):          {Value: TOCRelativeS, Field: ppcHalf},
	uint32(elf.R_PPC64_TOC16_HI):          {Value: TOCRelativeS, Field: ppcHalf, Shift: 16},
	uint32(elf.R_PPC64_TOC16_HA):          {Value: TOCRelativeS, Field: ppcHalf, Shift: 16, Round: true},
	uint32(elf.R_PPC64_TOC16_DS):          {Value: TOCRelativeS, Field: ppcHalfDS},
	uint32(elf.R_PPC64_TOC16_LO_DS):       {Value: TOCRelativeS, Field: ppcHalfDS},
	uint32(elf.R_PPC64_GOT16_DS):          {Value: TOCRelativeG, Field: ppcHalfDS},
	uint32(elf.R_PPC64_GOT16_LO_DS):       {Value: TOCRelativeG, Field: ppcHalfDS},
	uint32(elf.R_PPC64_GOT16_HA):          {Value: TOCRelativeG, Field: ppcHalf, Shift: 16, Round: true},
	uint32(elf.R_PPC64_REL16):             {Value: RelativeS, Field: ppcHalf},
	uint32(elf.R_PPC64_REL16_LO):          {Value: RelativeS, Field: ppcHalf},
	uint32(elf.R_PPC64_REL16_HI):          {Value: RelativeS, Field: ppcHalf, Shift: 16},
	uint32(elf.R_PPC64_REL16_HA):          {Value: RelativeS, Field: ppcHalf, Shift: 16, Round: true},
	uint32(elf.R_PPC64_D34):               {Value: AbsoluteS, Field: ppcPrefix34},
	uint32(elf.R_PPC64_PCREL34):           {Value: RelativeS, Field: ppcPrefix34},
	uint32(elf.R_PPC64_GOT_PCREL34):       {Value: RelativeG, Field: ppcPrefix34},
	uint32(elf.R_PPC64_ENTRY):             {Value: Nothing},
	uint32(elf.R_PPC64_TOCSAVE):           {Value: Nothing},
	uint32(elf.R_PPC64_PCREL_OPT):         {Value: Nothing},
	uint32(elf.R_PPC64_TLS):               {Value: Nothing},
	uint32(elf.R_PPC64_TLSGD):             {Value: Nothing},
	uint32(elf.R_PPC64_TLSLD):             {Value: Nothing},
	uint32(elf.R_PPC64_DTPREL64):          {Value: Opaque, Field: Data64},
	uint32(elf.R_PPC64_TPREL64):           {Value: Opaque, Field: Data64},
	uint32(elf.R_PPC64_TPREL16_HA):        {Value: Opaque, Field: ppcHalf},
	uint32(elf.R_PPC64_TPREL16_LO):        {Value: Opaque, Field: ppcHalf},
	uint32(elf.R_PPC64_GOT_TPREL16_HA):    {Value: Opaque, Field: ppcHalf},
	uint32(elf.R_PPC64_GOT_TLSGD16_HA):    {Value: Opaque, Field: ppcHalf},
	uint32(elf.R_PPC64_GOT_TLSGD16_LO):    {Value: Opaque, Field: ppcHalf},
	uint32(elf.R_PPC64_GOT_TLSLD16_HA):    {Value: Opaque, Field: ppcHalf},
	uint32(elf.R_PPC64_GOT_TLSLD16_LO):    {Value: Opaque, Field: ppcHalf},
	uint32(elf.R_PPC64_GOT_TPREL16_LO_DS): {Value: Opaque, Field: ppcHalf},
}
