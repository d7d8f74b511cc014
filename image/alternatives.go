package image

import (
	"cmp"
	"slices"
	"strings"

	"xol/image/isa"
)

// Alternative is text that a Linux kernel may write over some of its own while
// it boots, or over a module's when that is loaded.
type Alternative struct {
	Addr uint64 // of what is replaced
	Size uint64 // bytes, all of which are written
	Old  []byte // those that the file has there
	// Code replaces it; NOPs fill the rest. It is written for the address From:
	// what depends on its own address has to be re-based.
	Code []byte
	From uint64
	When When
	// Traps says that traps follow a jump that becomes short for its new address;
	// otherwise NOPs do.
	Traps bool
	// Unknown says that the kernel computes the replacement, which the file
	// does not have. Code is empty then.
	Unknown bool
}

// When says on which machines an alternative replaces the text.
type When = isa.When

// On which machines.
const (
	WhenCPU    = isa.WhenCPU    // on some, by their CPU, its firmware or boot options
	WhenAlways = isa.WhenAlways // on all that are no guests of Xen without hardware virtualization (PV)
	WhenNever  = isa.WhenNever  // on no such machine
)

func (im *program) readAlternatives() ([]Alternative, error) {
	if im.kind != KindKernel && im.kind != KindModule {
		return nil, nil
	}
	syms, err := im.symbols()
	if err != nil {
		return nil, err
	}
	r := alternativeReader{marker: im.newMarker(syms)}
	if err := r.paravirtCalls(); err != nil {
		return nil, err
	}
	for i := range linuxTables {
		t := &linuxTables[i]
		read := r.entries
		switch {
		case slices.Contains(fixupTables, t.section):
			read = r.featureFixups
		case t.section != altSection:
			continue
		}
		parts, err := r.locate(t)
		if err != nil {
			return nil, err
		}
		for i := range parts {
			read(&parts[i])
		}
	}
	if err := r.securityFixups(); err != nil {
		return nil, err
	}
	if err := r.ftraceEntries(); err != nil {
		return nil, err
	}
	if r.called > r.calls {
		return nil, nil
	}
	slices.SortStableFunc(r.list, func(a, b Alternative) int { return cmp.Compare(a.Addr, b.Addr) })
	return r.list, nil
}

// alternativeReader collects alternatives.
type alternativeReader struct {
	marker
	list []Alternative
	// Calls through pointers that are to become direct ones, and those that
	// are no such calls any more: the text is then a running kernel's.
	calls, called int
}

// add takes one alternative, if it lies in text and its replacement in the file.
func (r *alternativeReader) add(a Alternative, length uint64) {
	i := r.im.textAt(a.Addr)
	if i < 0 || a.Size == 0 || a.Size > r.im.text[i].End()-a.Addr || length > a.Size {
		return
	}
	var err error
	if a.Old, err = r.im.Code(nil, a.Addr, a.Size); err != nil {
		return
	}
	if length > 0 {
		code, err := r.im.Data(nil, a.From, length)
		if err != nil {
			return
		}
		a.Code = code
	}
	r.list = append(r.list, a)
}

// altLayout returns the layout of the entries of .altinstructions: that with
// which all of them make sense, the newest where several do; nil where none is
// known.
func (m *marker) altLayout(t *tableData) *isa.AltLayout {
	layouts := m.im.isa.Kernel.Alternatives.Layouts
	for i := range layouts {
		if l := &layouts[i]; len(layouts) == 1 || m.im.plausible(t, 1, l.Size) && plausibleLengths(t, l) {
			return l
		}
	}
	if len(layouts) == 0 {
		return nil
	}
	return &layouts[0]
}

func plausibleLengths(t *tableData, l *isa.AltLayout) bool {
	ok := true
	t.each(l.Size, func(off int) { ok = ok && t.data[off+l.Lengths] >= t.data[off+l.Lengths+1] })
	return ok
}

// entries reads .altinstructions: where the original and its replacement stand,
// each relative to itself, a condition, and the lengths of both
// [arch/*/include/asm/alternative.h].
func (r *alternativeReader) entries(t *tableData) {
	l, alternatives := r.altLayout(t), &r.im.isa.Kernel.Alternatives
	if l == nil {
		return
	}
	nops, _ := r.syms.address(alternatives.Nops)
	r.list = slices.Grow(r.list, len(t.data)/l.Size)
	t.each(l.Size, func(off int) {
		entry := t.data[off : off+l.Size]
		a := Alternative{Addr: t.rel(off), From: t.rel(off + 4), Size: uint64(entry[l.Lengths]), Traps: l.Traps}
		length, flags := entry[l.Lengths+1], uint16(0)
		if l.Flags > 0 {
			flags = t.order.u16(entry[l.Flags:])
		}
		c := alternatives.Condition(l, t.order.u16(entry[8:]), flags, length)
		a.When = c.When
		switch {
		case c.Call:
			a.Code = r.directCall(&a)
			length = 0
		case c.Computed:
			length, a.Unknown = 0, nops == 0 || a.From != nops
		}
		r.add(a, uint64(length))
	})
}

// directCall returns what replaces an indirect call through a pointer of a table
// such as pv_ops: a call of what the file has in the pointer, nothing where that
// is a function that does nothing [arch/x86/kernel/alternative.c,
// alt_replace_call; up to 6.6 arch/x86/kernel/paravirt.c, paravirt_patch]. It is
// written for the address a.Addr.
func (r *alternativeReader) directCall(a *Alternative) []byte {
	calls := r.im.isa.Kernel.Alternatives.Calls
	slot, size, ok := r.calledThrough(a.Addr)
	if !ok {
		r.called++
		a.Unknown = true
		return nil
	}
	r.calls++
	a.From, a.Size = a.Addr, max(a.Size, size)
	var buf [8]byte
	pointer, err := r.im.Data(buf[:0], slot, uint64(len(buf)))
	if err != nil {
		a.Unknown = true
		return nil
	}
	target := r.im.order.u64(pointer)
	for _, f := range calls.Inlined {
		if addr, ok := r.syms.address(f.Name); ok && target == addr {
			return []byte(f.Code)
		}
	}
	return calls.Direct(a.Addr, target)
}

// calledThrough returns the address of the pointer that the call at addr goes
// through, and the call's length.
func (r *alternativeReader) calledThrough(addr uint64) (slot, size uint64, ok bool) {
	var buf [7]byte
	code, err := r.im.Code(buf[:], addr, uint64(len(buf)))
	if err != nil {
		return 0, 0, false
	}
	return r.im.isa.Kernel.Alternatives.Calls.Through(code, addr)
}

// paravirtCalls reads .parainstructions, which x86 kernels had up to 6.6: the
// addresses of indirect calls that become direct ones, with a type and a length
// [arch/x86/include/asm/paravirt_types.h]. Up to 5.12, some became instructions
// that the tables do not have [arch/x86/kernel/paravirt_patch.c].
func (r *alternativeReader) paravirtCalls() error {
	calls := r.im.isa.Kernel.Alternatives.Calls
	if calls == nil {
		return nil
	}
	s := r.im.sectionNamed(calls.Section)
	if s == nil || !s.inMemory() || !s.inFile() {
		return nil
	}
	data, err := r.im.contents(s)
	if err != nil {
		return err
	}
	inTables := !r.im.before(calls.InTables)
	t := tableData{r.im.order, s.addr, data}
	const entry, used = 16, 10 // bytes; the last entry need not be whole
	for off := 0; off+used <= len(data); off += entry {
		a := Alternative{Addr: t.order.u64(data[off:]), Size: uint64(data[off+9]), When: WhenAlways}
		a.Code = r.directCall(&a)
		r.add(a, 0)
		if !inTables {
			r.add(Alternative{Addr: a.Addr, Size: a.Size, Unknown: true}, 0)
		}
	}
	return nil
}

// featureFixups reads __ftr_fixup and its like; see marker.featureFixups.
func (r *alternativeReader) featureFixups(t *tableData) {
	t.each(48, func(off int) {
		entry := t.addr + uint64(off)
		at := func(i int) uint64 { return t.order.u64(t.data[off+16+8*i:]) }
		start, end, from, to := at(0), at(1), at(2), at(3)
		if end-start < maxFixup && to-from < maxFixup {
			r.add(Alternative{Addr: entry + start, Size: end - start, From: entry + from}, to-from)
		}
	})
}

// securityFixups takes the sites of which only the kernel knows what it writes
// there.
func (r *alternativeReader) securityFixups() error {
	fixups := r.im.isa.Kernel.Fixups
	if fixups == nil {
		return nil
	}
	for i := range r.im.sections {
		s := &r.im.sections[i]
		if !slices.Contains(fixups.Tables, s.name) || !s.inMemory() || !s.inFile() {
			continue
		}
		data, err := r.im.contents(s)
		if err != nil {
			return err
		}
		t := tableData{r.im.order, s.addr, data}
		t.each(8, func(off int) { r.unknownSite(t.addr + uint64(off) + t.order.u64(t.data[off:])) })
	}
	for _, i := range r.syms.sorted {
		s := &r.syms.syms[i]
		if !strings.HasPrefix(r.syms.name(s), fixups.SymbolPrefix) {
			continue
		}
		if rel, err := r.im.Data(nil, s.addr, 4); err == nil {
			r.unknownSite(s.addr + r.im.order.i32(rel))
		}
	}
	return nil
}

// ftraceEntries takes what the kernel writes around the sites of ftrace.
func (r *alternativeReader) ftraceEntries() error {
	writes := r.im.isa.Kernel.FtraceWrites
	if writes == nil {
		return nil
	}
	take := func(w isa.Written) {
		r.add(Alternative{Addr: w.Addr, Size: w.Size, Code: w.Code, From: w.Addr, When: WhenAlways, Unknown: w.Code == nil}, 0)
	}
	for i := range linuxTables {
		t := &linuxTables[i]
		if t.section != mcountSection && t.section != patchableSection {
			continue
		}
		parts, err := r.locate(t)
		if err != nil {
			return err
		}
		for i := range parts {
			t := &parts[i]
			r.list = slices.Grow(r.list, len(t.data)/8)
			t.each(8, func(off int) {
				addr := t.order.u64(t.data[off:])
				writes(kernelText{&r.marker}, addr, r.ftraceAdjust(addr), take)
			})
		}
	}
	return nil
}

// unknownSite takes the instruction at addr and the NOPs after it.
func (r *alternativeReader) unknownSite(addr uint64) {
	const most = 64
	nop := r.im.isa.Kernel.Fixups.Nop
	size := uint64(4)
	for size < most {
		var buf [4]byte
		code, err := r.im.Code(buf[:], addr+size, 4)
		if err != nil || r.im.order.u32(code) != nop {
			break
		}
		size += 4
	}
	r.add(Alternative{Addr: addr, Size: size, Unknown: true}, 0)
}

// thunks marks jumps to return thunks, and branches to thunks that branch
// indirectly [arch/x86/kernel/alternative.c].
func (m *marker) thunks() error {
	kernel := &m.im.isa.Kernel
	for i := range m.im.sections {
		s := &m.im.sections[i]
		table := slices.IndexFunc(kernel.Thunks, func(t isa.ThunkTable) bool { return t.Section == s.name })
		if table < 0 || !s.inMemory() || !s.inFile() {
			continue
		}
		data, err := m.im.contents(s)
		if err != nil {
			return err
		}
		t := tableData{m.im.order, s.addr, data}
		t.each(4, func(off int) { m.site(t.rel(off), kernel.CallSize, kernel.Thunks[table].Kind) })
	}
	return nil
}
