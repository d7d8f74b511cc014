package image

import (
	"debug/elf"

	"xol/place"
)

// site marks size bytes at addr, if that is in text.
func (m *marker) site(addr, size uint64, k place.Kind) {
	if m.im.textAt(addr) >= 0 {
		m.add(addr, size, k)
	}
}

// insnSize is the length of what a table entry points at: that of the
// instruction where all have the same, else as given for x86-64.
func (m *marker) insnSize(x86 uint64) uint64 {
	if m.im.machine == elf.EM_X86_64 {
		return x86
	}
	return 4
}

// exceptions reads __ex_table: where an access may fault and where the kernel
// goes on, each relative to itself, and on x86-64 and arm64 how
// [arch/*/include/asm/extable.h].
func (m *marker) exceptions(t *tableData) {
	size := 12
	if m.im.machine == elf.EM_PPC64 {
		size = 8
	}
	t.each(size, func(off int) {
		m.site(t.rel(off), 1, place.ExTable)
		m.site(t.rel(off+4), 1, place.ExFixup)
	})
}

// jumpLabels reads __jump_table: code, target and key, each relative to itself
// [include/linux/jump_label.h, HAVE_ARCH_JUMP_LABEL_RELATIVE].
func (m *marker) jumpLabels(t *tableData) {
	t.each(16, func(off int) {
		addr := t.rel(off)
		m.site(addr, m.jumpLabelSize(addr), place.JumpLabel)
		m.site(t.rel(off+4), 1, place.JumpTarget)
	})
}

// jumpLabelSize returns the length of the jump or NOP at a jump label: on
// x86-64 the short or the near form, whichever the assembler chose.
func (m *marker) jumpLabelSize(addr uint64) uint64 {
	if m.im.machine != elf.EM_X86_64 {
		return 4
	}
	var buf [5]byte
	code, err := m.im.Code(buf[:], addr, 1)
	if err == nil && (code[0] == 0xeb || code[0] == 0x66) {
		return 2
	}
	return 5
}

// staticCalls reads .static_call_sites: site and key, each relative to itself
// [include/linux/static_call_types.h]. A site is a call or jump of 5 bytes.
func (m *marker) staticCalls(t *tableData) {
	t.each(8, func(off int) { m.site(t.rel(off), m.insnSize(5), place.StaticCall) })
}

// bugs reads __bug_table: the trap's address and, if the kernel is built so,
// its file, each relative to itself, and line, then flags
// [include/asm-generic/bug.h, GENERIC_BUG_RELATIVE_POINTERS].
func (m *marker) bugs(t *tableData) {
	const verbose, terse = 12, 8
	size := verbose
	if !m.plausible(t, verbose) && m.plausible(t, terse) {
		size = terse
	}
	t.each(size, func(off int) { m.site(t.rel(off), m.insnSize(2), place.Bug) })
}

// plausible reports whether a table could have entries of that size, which
// start with an address in text.
func (m *marker) plausible(t *tableData, size int) bool {
	ok := len(t.data)%size == 0
	t.each(size, func(off int) { ok = ok && m.im.textAt(t.rel(off)) >= 0 })
	return ok
}

// blacklisted reads _kprobe_blacklist: addresses of functions, each of which
// is blacklisted to its end as kallsyms counts it [kernel/kprobes.c].
func (m *marker) blacklisted(t *tableData) {
	t.each(8, func(off int) {
		addr := m.im.codeOf(t.order.u64(t.data[off:]))
		f := functionAt(m.functions(), addr)
		if f != nil && f.Source != FromSymbol { // nothing tells where it ends
			m.add(addr, 1, place.Blacklist)
			return
		}
		m.blacklist(addr)
	})
}

// blacklist marks from addr as many bytes as the function that holds it has,
// and returns their number.
func (m *marker) blacklist(addr uint64) uint64 {
	f := functionAt(m.functions(), addr)
	if f == nil {
		return 0
	}
	m.add(addr, f.Size, place.Blacklist)
	return f.Size
}

// alternatives reads .altinstructions; see Image.Alternatives.
func (m *marker) alternatives(t *tableData) {
	size, length := 12, 10
	if m.im.machine == elf.EM_X86_64 {
		size = m.x86AltSize(t)
		length = x86AltLengths(size)
	}
	t.each(size, func(off int) { m.site(t.rel(off), uint64(t.data[off+length]), place.Alternative) })
}

// featureFixups reads __ftr_fixup and its like: mask and value of the CPU's
// features, then the start and end of the original and of the replacement,
// relative to the entry [arch/powerpc/include/asm/feature-fixups.h].
func (m *marker) featureFixups(t *tableData) {
	t.each(48, func(off int) {
		entry := t.addr + uint64(off)
		start, end := t.order.u64(t.data[off+16:]), t.order.u64(t.data[off+24:])
		if end-start < maxFixup {
			m.site(entry+start, end-start, place.Alternative)
		}
	})
}

// maxFixup is more than any feature section has bytes.
const maxFixup = 1 << 16

// wordFixups reads tables of single instructions, relative to the entry.
func (m *marker) wordFixups(t *tableData) {
	t.each(8, func(off int) {
		m.site(t.addr+uint64(off)+t.order.u64(t.data[off:]), 4, place.Alternative)
	})
}

// cfiTraps reads .kcfi_traps: addresses of traps, relative to themselves
// [include/linux/cfi.h].
func (m *marker) cfiTraps(t *tableData) {
	t.each(4, func(off int) { m.site(t.rel(off), m.insnSize(2), place.CFITrap) })
}

// ftraceSites reads __mcount_loc or __patchable_function_entries: addresses of
// the calls or NOPs that ftrace patches, or of NOPs before them.
func (m *marker) ftraceSites(t *tableData) {
	t.each(8, func(off int) {
		addr := t.order.u64(t.data[off:])
		m.site(addr+m.ftraceAdjust(addr), m.insnSize(5), place.Ftrace)
	})
}

// ftraceAdjust returns how far after the recorded address the instruction is
// that ftrace patches [arch/{arm64,powerpc}/kernel/**/ftrace.c,
// ftrace_call_adjust]. Where compilers leave NOPs instead of a call that
// depends on their number, which only the text tells. In a running kernel the
// first NOP keeps the return address and the second may be a call; NOPs before
// the function have become the address of a record.
func (m *marker) ftraceAdjust(addr uint64) uint64 {
	if m.im.machine == elf.EM_X86_64 {
		return 0
	}
	var buf [20]byte
	n := 5
	code, err := m.im.Code(buf[:], addr, uint64(4*n))
	for err != nil && n > 2 {
		n--
		code, err = m.im.Code(buf[:], addr, uint64(4*n))
	}
	if err != nil {
		return 0
	}
	var words [5]uint32
	for i := range n {
		words[i] = m.im.order.u32(code[4*i:])
	}
	if m.im.machine == elf.EM_AARCH64 {
		atEntry := (m.syms.startsAt(addr) || m.syms.startsAt(addr-4)) && !m.syms.startsAt(addr+8)
		return arm64FtraceAdjust(&words, atEntry)
	}
	if _, outOfLine := m.syms.address("ftrace_ool_stub_text"); outOfLine {
		return 0 // of one NOP
	}
	before := uint32(0)
	if code, err := m.im.Code(buf[:4], addr-4, 4); err == nil {
		before = m.im.order.u32(code)
	}
	return ppc64FtraceAdjust(before, &words)
}

// arm64FtraceAdjust finds the site in the words at a recorded address: of two
// words at a function's entry, after bti or not, which two words may come before
// for DYNAMIC_FTRACE_WITH_CALL_OPS; atEntry says that none do.
func arm64FtraceAdjust(words *[5]uint32, atEntry bool) uint64 {
	const (
		nop      = 0xd503201f
		bti      = 0xd503245f // bti c
		keepLink = 0xaa1e03e9 // mov x9, x30
		call     = 0x94000000
		callMask = 0xfc000000
	)
	entry := func(i int) bool {
		return (words[i] == nop || words[i] == keepLink) && (words[i+1] == nop || words[i+1]&callMask == call)
	}
	plain := entry(0)
	switch {
	case plain && (words[0] == keepLink || atEntry):
		return 4
	case words[2] == bti && entry(3):
		return 16
	case words[2] != bti && entry(2):
		return 12
	case plain:
		return 4
	}
	return 0 // -pg: the call itself
}

// ppc64FtraceAdjust finds the site in the words at and before a recorded
// address: the second of two NOPs, or the call of -mprofile-kernel that is
// recorded itself, after what keeps the return address.
func ppc64FtraceAdjust(before uint32, words *[5]uint32) uint64 {
	const (
		nop      = 0x60000000
		mflr     = 0x7c0802a6 // mflr r0
		save     = 0xf8010010 // std r0,16(r1)
		call     = 0x48000001
		callMask = 0xfc000003
	)
	if before == mflr || before == save {
		return 0
	}
	if words[0] == nop && words[1] == nop || words[0] == mflr && (words[1] == nop || words[1]&callMask == call) {
		return 4
	}
	return 0
}

// textArea is a range of a kernel's text between two symbols.
type textArea struct {
	start, stop string
	kind        place.Kind
	// whole: the blacklist takes the functions that start in the range, each
	// to its end [kernel/kprobes.c, kprobe_add_area_blacklist]; otherwise the
	// range itself.
	whole bool
}

var commonAreas = []textArea{
	{"__kprobes_text_start", "__kprobes_text_end", place.Blacklist, false},
	{"__kprobes_text_start", "__kprobes_text_end", place.Blacklist, true},
	{"__noinstr_text_start", "__noinstr_text_end", place.Blacklist, true},
}

// What architectures blacklist [arch_populate_kprobe_blacklist,
// arch_within_kprobe_blacklist].
var machineAreas = map[elf.Machine][]textArea{
	elf.EM_X86_64: {
		{"__entry_text_start", "__entry_text_end", place.EntryText, false},
		{"__entry_text_start", "__entry_text_end", place.Blacklist, true},
	},
	elf.EM_AARCH64: {
		{"__entry_text_start", "__entry_text_end", place.Blacklist, true},
		{"__irqentry_text_start", "__irqentry_text_end", place.Blacklist, true},
		{"__hyp_text_start", "__hyp_text_end", place.Blacklist, true},
		{"__hyp_idmap_text_start", "__hyp_idmap_text_end", place.Blacklist, true},
	},
	elf.EM_PPC64: {
		{"_stext", "__head_end", place.Blacklist, false},
	},
}

// kernelAreas marks the areas of a kernel's text that its blacklist names, and
// all that is executable but not in what the kernel counts as its text.
func (m *marker) kernelAreas() {
	for _, areas := range [][]textArea{commonAreas, machineAreas[m.im.machine]} {
		for _, a := range areas {
			lo, hi, ok := m.area(a.start, a.stop)
			switch {
			case !ok:
			case a.whole:
				m.blacklistArea(lo, hi)
			default:
				m.add(lo, hi-lo, a.kind)
			}
		}
	}
	m.outside()
}

func (m *marker) blacklistArea(lo, hi uint64) {
	for lo < hi {
		n := m.blacklist(lo)
		if n == 0 {
			return
		}
		lo += n
	}
}

// outside marks text that is neither between _stext and _etext nor freed
// after booting: the kernel says of its addresses that they are not text
// [kernel/extable.c, core_kernel_text].
func (m *marker) outside() {
	lo, hi, ok := m.area("_stext", "_etext")
	if !ok {
		return
	}
	for i := range m.im.text {
		r := &m.im.text[i]
		if sectionKind(m.im.kind, r.Section)&place.InitText != 0 {
			continue
		}
		if r.Addr < lo {
			m.add(r.Addr, min(lo, r.End())-r.Addr, place.OutsideText)
		}
		if r.End() > hi {
			from := max(hi, r.Addr)
			m.add(from, r.End()-from, place.OutsideText)
		}
	}
}
