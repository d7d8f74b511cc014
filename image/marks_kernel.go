package image

import (
	"xol/image/isa"
	"xol/place"
)

// site marks size bytes at addr, if that is in text.
func (m *marker) site(addr, size uint64, k place.Kind) {
	if addr-m.last.Addr >= m.last.Size {
		i := m.im.textAt(addr)
		if i < 0 {
			return
		}
		m.last = m.im.text[i]
	}
	m.add(addr, size, k)
}

// exceptions reads __ex_table: where an access may fault and where the kernel
// goes on, each relative to itself, and on x86-64 and arm64 how
// [arch/*/include/asm/extable.h].
func (m *marker) exceptions(t *tableData) {
	t.each(m.im.entrySize(t, 2, m.im.isa.Kernel.ExEntries...), func(off int) {
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

// jumpLabelSize returns the length of the jump or NOP at a jump label.
func (m *marker) jumpLabelSize(addr uint64) uint64 {
	k := &m.im.isa.Kernel
	if k.JumpLabelSize != nil {
		var buf [2]byte
		if code, err := m.im.Code(buf[:], addr, 2); err == nil {
			return k.JumpLabelSize(code[0], code[1])
		}
	}
	return k.CallSize
}

// staticCalls reads .static_call_sites: site and key, each relative to itself
// [include/linux/static_call_types.h]. A site is a call or jump.
func (m *marker) staticCalls(t *tableData) {
	t.each(8, func(off int) { m.site(t.rel(off), m.im.isa.Kernel.CallSize, place.StaticCall) })
}

// bugs reads __bug_table: the trap's address and, if the kernel is built so,
// its file, each relative to itself, and line, then flags
// [include/asm-generic/bug.h, GENERIC_BUG_RELATIVE_POINTERS]. Newer kernels have the
// format of a message after the address.
func (m *marker) bugs(t *tableData) {
	const verbose, formatted, terse = 12, 16, 8
	size := m.im.entrySize(t, 1, verbose, formatted, terse)
	t.each(size, func(off int) { m.site(t.rel(off), m.im.isa.Kernel.TrapSize, place.Bug) })
}

// entrySize returns the first of the sizes that the entries of a table could have,
// which start with so many relative addresses in text; the first of all where none
// could.
func (im *file) entrySize(t *tableData, words int, sizes ...int) int {
	for _, size := range sizes {
		if len(sizes) == 1 || im.plausible(t, words, size) {
			return size
		}
	}
	return sizes[0]
}

func (im *file) plausible(t *tableData, words, size int) bool {
	ok := len(t.data)%size == 0
	t.each(size, func(off int) {
		for i := range words {
			ok = ok && im.textAt(t.rel(off+4*i)) >= 0
		}
	})
	return ok
}

// blacklisted reads _kprobe_blacklist: addresses of functions, each of which
// is blacklisted to its end as kallsyms counts it [kernel/kprobes.c].
func (m *marker) blacklisted(t *tableData) {
	t.each(8, func(off int) {
		addr := m.im.CodeOf(t.order.u64(t.data[off:]))
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
	if l := m.altLayout(t); l != nil {
		t.each(l.Size, func(off int) { m.site(t.rel(off), uint64(t.data[off+l.Lengths]), place.Alternative) })
	}
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
	t.each(4, func(off int) { m.site(t.rel(off), m.im.isa.Kernel.TrapSize, place.CFITrap) })
}

// ftraceSites reads __mcount_loc or __patchable_function_entries: addresses of
// the calls or NOPs that ftrace patches, or of NOPs before them.
func (m *marker) ftraceSites(t *tableData) {
	t.each(8, func(off int) {
		addr := t.order.u64(t.data[off:])
		m.site(addr+m.ftraceAdjust(addr), m.im.isa.Kernel.CallSize, place.Ftrace)
	})
}

// ftraceAdjust returns how far after the recorded address the instruction is
// that ftrace patches.
func (m *marker) ftraceAdjust(addr uint64) uint64 {
	if m.im.isa.Kernel.FtraceAdjust == nil {
		return 0
	}
	return m.im.isa.Kernel.FtraceAdjust(kernelText{m}, addr)
}

// kernelText is the text of a kernel as its ISA's record asks for it.
type kernelText struct{ *marker }

func (t kernelText) Words(dst []uint32, addr uint64) int {
	const size = 4
	var buf [8 * size]byte
	for n := min(len(dst), len(buf)/size); n > 0; n-- {
		code, err := t.im.Code(buf[:], addr, uint64(size*n))
		if err != nil {
			continue
		}
		for i := range n {
			dst[i] = t.im.order.u32(code[size*i:])
		}
		return n
	}
	return 0
}

func (t kernelText) StartsSymbol(addr uint64) bool { return t.syms.startsAt(addr) }

func (t kernelText) HasSymbol(name string) bool {
	_, ok := t.syms.address(name)
	return ok
}

// commonAreas are those that the kernels of all ISAs have.
var commonAreas = []isa.Area{
	{Start: "__kprobes_text_start", Stop: "__kprobes_text_end", Kind: place.Blacklist},
	{Start: "__kprobes_text_start", Stop: "__kprobes_text_end", Kind: place.Blacklist, Whole: true},
	{Start: "__noinstr_text_start", Stop: "__noinstr_text_end", Kind: place.Blacklist, Whole: true},
}

// kernelAreas marks the areas of a kernel's text that its blacklist names, and
// all that is executable but not in what the kernel counts as its text.
func (m *marker) kernelAreas() {
	for _, areas := range [][]isa.Area{commonAreas, m.im.isa.Kernel.Areas} {
		for _, a := range areas {
			lo, hi, ok := m.area(a.Start, a.Stop)
			switch {
			case !ok || a.Before != [2]int{} && !m.im.before(a.Before):
			case a.Whole:
				m.blacklistArea(lo, hi)
			default:
				m.add(lo, hi-lo, a.Kind)
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
		if sectionKind(m.im.kind, r.Section)&place.InitText != 0 || m.im.ModuleOf(r.Addr) != "" {
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
