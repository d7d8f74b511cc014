package isa

import (
	"debug/elf"
	"encoding/binary"

	"xol/place"
)

var arm64 = Record{
	Name:        "arm64",
	Machine:     elf.EM_AARCH64,
	MinInsn:     wordSize,
	Padding:     arm64Words.paddingLen,
	EndsFlow:    arm64Words.endsFlow,
	Relocations: arm64Relocations,
	Loader: Loader{
		Relative: uint32(elf.R_AARCH64_RELATIVE),
		Slots:    [2]uint32{uint32(elf.R_AARCH64_JUMP_SLOT), uint32(elf.R_AARCH64_GLOB_DAT)},
		Resolved: [2]uint32{uint32(elf.R_AARCH64_IRELATIVE), uint32(elf.R_AARCH64_IRELATIVE)},
	},
	Stubs: arm64Stubs,
	Kernel: Kernel{
		Symbols: []string{"el0t_64_sync", "primary_entry", "cpu_do_switch_mm"},
		Areas: []Area{
			{Start: "__entry_text_start", Stop: "__entry_text_end", Kind: place.Blacklist, Whole: true},
			{Start: "__irqentry_text_start", Stop: "__irqentry_text_end", Kind: place.Blacklist, Whole: true},
			{Start: "__hyp_text_start", Stop: "__hyp_text_end", Kind: place.Blacklist, Whole: true},
			{Start: "__hyp_idmap_text_start", Stop: "__hyp_idmap_text_end", Kind: place.Blacklist, Whole: true},
			{Start: "__idmap_text_start", Stop: "__idmap_text_end", Kind: place.Blacklist, Whole: true, Before: [2]int{6, 12}},
		},
		ExEntries:    []int{8, 12},
		CallSize:     wordSize,
		TrapSize:     wordSize,
		FtraceAdjust: arm64FtraceAdjust,
		FtraceSite:   arm64FtraceSite,
		FtraceWrites: arm64FtraceWrites,
		Alternatives: Alternatives{
			Layouts:   []AltLayout{{Size: 12, Lengths: 10}},
			Condition: arm64Condition,
			Nops:      "alt_cb_patch_nops",
		},
		Image: &Image{Name: "arm64 Image", Magic: "ARMd", MagicAt: 56},
	},
}

var arm64Words = words{
	little:  true,
	padding: []uint32{0, arm64Nop, 0xd4200000 /* brk #0 */},
	flowEnds: []maskedWord{
		{0xfffffc1f, 0xd65f0000}, {0xfffffbff, 0xd65f0bff}, // ret, retaa and retab
		{0xfffffc1f, 0xd61f0000}, {0xfc000000, 0x14000000}, // br, b
		{0xffe0001f, 0xd4200000}, // brk
	},
}

const (
	arm64Nop = 0xd503201f
	arm64BTI = 0xd503245f // bti c

	// What ftrace has at the entry of a function.
	arm64KeepLink = 0xaa1e03e9 // mov x9, x30
	arm64Call     = 0x94000000
	arm64CallMask = 0xfc000000
)

// arm64Stubs finds the pairs of adrp x16 and ldr x17, [x16, …] that stubs
// start with, or have after a bti c.
func arm64Stubs(code []byte, addr, _ uint64, found func(addr, slot uint64)) {
	const (
		adrp, adrpMask   = 0x90000010, 0x9f00001f
		ldr, ldrMask     = 0xf9400211, 0xffc003ff
		pageBits, ldrLog = 12, 3
	)
	for i := 0; i+8 <= len(code); i += wordSize {
		a, l := binary.LittleEndian.Uint32(code[i:]), binary.LittleEndian.Uint32(code[i+wordSize:])
		if a&adrpMask != adrp || l&ldrMask != ldr {
			continue
		}
		page := int64(int32(a<<8)>>13)<<2 | int64(a>>29&3)
		p := addr + uint64(i)
		slot := p&^(1<<pageBits-1) + uint64(page)<<pageBits + uint64(l>>10&0xfff)<<ldrLog
		if i >= wordSize && binary.LittleEndian.Uint32(code[i-wordSize:]) == arm64BTI {
			p -= wordSize
		}
		found(p, slot)
	}
}

// arm64Condition reads a capability of the CPU, whose highest bit says that the
// replacement is a function that computes it. Up to 6.1, functions had a number
// for a capability of their own, and no length
// [arch/arm64/include/asm/alternative.h].
func arm64Condition(_ *AltLayout, capability, _ uint16, length uint8) AltCondition {
	const callback = 1 << 15
	return AltCondition{Computed: capability&callback != 0 || length == 0}
}

// arm64FtraceAdjust finds the site in the words at a recorded address: of two
// words at a function's entry, after bti or not, which two words may come before
// for DYNAMIC_FTRACE_WITH_CALL_OPS. Compilers leave NOPs, whose number only the
// text tells. In a running kernel the first one keeps the return address and the
// second may be a call; those before the function have become the address of a
// record.
func arm64FtraceAdjust(t Text, addr uint64) uint64 {
	var words [5]uint32
	if t.Words(words[:], addr) < 2 {
		return 0
	}
	atEntry := (t.StartsSymbol(addr) || t.StartsSymbol(addr-wordSize)) && !t.StartsSymbol(addr+2*wordSize)
	return arm64FtraceOffset(&words, atEntry)
}

// arm64FtraceSite finds the NOP or call after what keeps the return address, at the
// start of a function or after its landing pad [arch/arm64/kernel/ftrace.c].
func arm64FtraceSite(code []byte, _ bool) (off uint64, ok bool) {
	at := func(i uint64) uint32 {
		if i+wordSize > uint64(len(code)) {
			return 0
		}
		return binary.LittleEndian.Uint32(code[i:])
	}
	if at(0) == arm64BTI {
		off = wordSize
	}
	site := at(off + wordSize)
	return off + wordSize, at(off) == arm64KeepLink && (site == arm64Nop || site&arm64CallMask == arm64Call)
}

// arm64FtraceOffset finds the site in words that stand at a recorded address.
// atEntry says that none of them come before the function.
func arm64FtraceOffset(words *[5]uint32, atEntry bool) uint64 {
	entry := func(i int) bool {
		return (words[i] == arm64Nop || words[i] == arm64KeepLink) && (words[i+1] == arm64Nop || words[i+1]&arm64CallMask == arm64Call)
	}
	plain := entry(0)
	switch {
	case plain && (words[0] == arm64KeepLink || atEntry):
		return 4
	case words[2] == arm64BTI && entry(3):
		return 16
	case words[2] != arm64BTI && entry(2):
		return 12
	case plain:
		return 4
	}
	return 0 // -pg: the call itself
}

// arm64FtraceWrites finds the NOP before the site, which becomes what keeps the return
// address, and those before the function, which become the address of a record.
func arm64FtraceWrites(t Text, addr, adjust uint64, found func(Written)) {
	const record = 2 // words
	nops := func(addr uint64, n int) bool {
		var words [record]uint32
		return t.Words(words[:n], addr) == n && words[0] == arm64Nop && words[n-1] == arm64Nop
	}
	if adjust >= wordSize && nops(addr+adjust-wordSize, 1) {
		keep := binary.LittleEndian.AppendUint32(nil, arm64KeepLink)
		found(Written{addr + adjust - wordSize, wordSize, keep})
	}
	if adjust > record*wordSize && nops(addr, record) {
		found(Written{addr, record * wordSize, nil})
	}
}

// armField returns a field that takes bits of an instruction, which is
// little-endian in any file.
func armField(low uint8, bits func(v uint32) uint32, mask uint32) *Field {
	return &Field{Size: wordSize, Low: low, Put: func(b []byte, v uint64, _ binary.ByteOrder) {
		insert(b, bits(uint32(v)), mask, binary.LittleEndian)
	}}
}

// The fields of instructions that relocations fill.
var (
	armBranch26 = armField(0, func(v uint32) uint32 { return v >> 2 }, 0x03ffffff)                     // b, bl
	armBranch19 = armField(0, func(v uint32) uint32 { return v >> 2 << 5 }, 0x00ffffe0)                // b.cond, cbz, ldr literal
	armBranch14 = armField(0, func(v uint32) uint32 { return v >> 2 << 5 }, 0x0007ffe0)                // tbz
	armAddr21   = armField(0, func(v uint32) uint32 { return v>>2<<5&0x00ffffe0 | v<<29 }, 0x60ffffe0) // adr, adrp
	armImm12    = armField(12, func(v uint32) uint32 { return v << 10 }, 0x003ffc00)                   // add, ldr, str; counted in units of the access
	armImm16    = armField(0, func(v uint32) uint32 { return v << 5 }, 0x001fffe0)                     // movz, movk
)

// arm64Relocations follows ELF for the Arm 64-bit Architecture, 5.7.
var arm64Relocations = map[uint32]Howto{
	uint32(elf.R_AARCH64_NONE):                {Value: Nothing},
	uint32(elf.R_AARCH64_NULL):                {Value: Nothing},
	uint32(elf.R_AARCH64_ABS64):               {Value: AbsoluteS, Field: Data64},
	uint32(elf.R_AARCH64_ABS32):               {Value: AbsoluteS, Field: Data32},
	uint32(elf.R_AARCH64_ABS16):               {Value: AbsoluteS, Field: Data16},
	uint32(elf.R_AARCH64_PREL64):              {Value: RelativeS, Field: Data64},
	uint32(elf.R_AARCH64_PREL32):              {Value: RelativeS, Field: Data32},
	uint32(elf.R_AARCH64_PREL16):              {Value: RelativeS, Field: Data16},
	uint32(elf.R_AARCH64_CALL26):              {Value: RelativeS, Field: armBranch26},
	uint32(elf.R_AARCH64_JUMP26):              {Value: RelativeS, Field: armBranch26},
	uint32(elf.R_AARCH64_CONDBR19):            {Value: RelativeS, Field: armBranch19},
	uint32(elf.R_AARCH64_TSTBR14):             {Value: RelativeS, Field: armBranch14},
	uint32(elf.R_AARCH64_LD_PREL_LO19):        {Value: RelativeS, Field: armBranch19},
	uint32(elf.R_AARCH64_ADR_PREL_LO21):       {Value: RelativeS, Field: armAddr21},
	uint32(elf.R_AARCH64_ADR_PREL_PG_HI21):    {Value: PageS, Field: armAddr21, Shift: 12},
	uint32(elf.R_AARCH64_ADR_PREL_PG_HI21_NC): {Value: PageS, Field: armAddr21, Shift: 12},
	uint32(elf.R_AARCH64_ADD_ABS_LO12_NC):     {Value: AbsoluteS, Field: armImm12},
	uint32(elf.R_AARCH64_LDST8_ABS_LO12_NC):   {Value: AbsoluteS, Field: armImm12},
	uint32(elf.R_AARCH64_LDST16_ABS_LO12_NC):  {Value: AbsoluteS, Field: armImm12, Shift: 1},
	uint32(elf.R_AARCH64_LDST32_ABS_LO12_NC):  {Value: AbsoluteS, Field: armImm12, Shift: 2},
	uint32(elf.R_AARCH64_LDST64_ABS_LO12_NC):  {Value: AbsoluteS, Field: armImm12, Shift: 3},
	uint32(elf.R_AARCH64_LDST128_ABS_LO12_NC): {Value: AbsoluteS, Field: armImm12, Shift: 4},
	uint32(elf.R_AARCH64_MOVW_UABS_G0):        {Value: AbsoluteS, Field: armImm16},
	uint32(elf.R_AARCH64_MOVW_UABS_G0_NC):     {Value: AbsoluteS, Field: armImm16},
	uint32(elf.R_AARCH64_MOVW_UABS_G1):        {Value: AbsoluteS, Field: armImm16, Shift: 16},
	uint32(elf.R_AARCH64_MOVW_UABS_G1_NC):     {Value: AbsoluteS, Field: armImm16, Shift: 16},
	uint32(elf.R_AARCH64_MOVW_UABS_G2):        {Value: AbsoluteS, Field: armImm16, Shift: 32},
	uint32(elf.R_AARCH64_MOVW_UABS_G2_NC):     {Value: AbsoluteS, Field: armImm16, Shift: 32},
	uint32(elf.R_AARCH64_MOVW_UABS_G3):        {Value: AbsoluteS, Field: armImm16, Shift: 48},
	uint32(elf.R_AARCH64_GOT_LD_PREL19):       {Value: RelativeG, Field: armBranch19},
	uint32(elf.R_AARCH64_ADR_GOT_PAGE):        {Value: PageG, Field: armAddr21, Shift: 12},
	uint32(elf.R_AARCH64_LD64_GOT_LO12_NC):    {Value: AbsoluteG, Field: armImm12, Shift: 3},
	uint32(elf.R_AARCH64_TLSDESC_CALL):        {Value: Nothing},
	uint32(elf.R_AARCH64_TLS_TPREL64):         {Value: Opaque, Field: Data64},
}
