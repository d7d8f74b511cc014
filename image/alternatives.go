package image

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"xol/place"
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
	// Unknown says that the kernel computes the replacement, which the file
	// does not have. Code is empty then.
	Unknown bool
}

// When says on which machines an alternative replaces the text.
type When uint8

// On which machines.
const (
	WhenCPU    When = iota // on some, by their CPU, its firmware or boot options
	WhenAlways             // on all that are no guests of Xen without hardware virtualization (PV)
	WhenNever              // on no such machine
)

// Alternatives returns what the tables of a kernel or a module tell of text
// that is replaced, by address. Of several that stand at one address, a later
// one in the list is written over an earlier one. Text that was taken from a
// running kernel has none left, as far as its indirect calls tell. The caller
// must not change the list.
func (im *Image) Alternatives() ([]Alternative, error) { return im.replaced() }

func (im *Image) readAlternatives() ([]Alternative, error) {
	if im.kind != KindKernel && im.kind != KindModule {
		return nil, nil
	}
	syms, err := im.symbols()
	if err != nil {
		return nil, err
	}
	r := alternativeReader{marker: marker{im: im, syms: syms}}
	r.relas = sync.OnceValues(r.dynamicRelocations)
	if err := r.paravirtCalls(); err != nil {
		return nil, err
	}
	for i := range linuxTables {
		t := &linuxTables[i]
		if !slices.Contains(alternativeTables, t.section) {
			continue
		}
		parts, err := r.locate(t)
		if err != nil {
			return nil, err
		}
		for i := range parts {
			r.read(&parts[i])
		}
	}
	if err := r.securityFixups(); err != nil {
		return nil, err
	}
	if r.called > r.calls {
		return nil, nil
	}
	slices.SortStableFunc(r.list, func(a, b Alternative) int { return cmp.Compare(a.Addr, b.Addr) })
	return r.list, nil
}

// alternativeTables are the sections of the tables that say where a replacement
// stands.
var alternativeTables = []string{".altinstructions", "__ftr_fixup", "__mmu_ftr_fixup", "__fw_ftr_fixup"}

// alternativeReader collects alternatives.
type alternativeReader struct {
	marker
	list []Alternative
	// Calls through pointers that are to become direct ones, and those that
	// are no such calls any more: the text is then a running kernel's.
	calls, called int
}

func (r *alternativeReader) read(t *tableData) {
	switch r.im.machine {
	case elf.EM_X86_64:
		r.x86(t)
	case elf.EM_AARCH64:
		r.arm64(t)
	case elf.EM_PPC64:
		r.featureFixups(t)
	}
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

// The layouts of x86's .altinstructions: where the original and its replacement
// stand, each relative to itself, the condition, and the lengths of both
// [arch/x86/include/asm/alternative.h]. Up to 5.12 the number of bytes of
// padding follows; from 6.3 on flags are apart.
const (
	altSize5 = 13
	altSize6 = 12
	altSize  = 14
)

// Conditions of x86's alternatives [arch/x86/include/asm/cpufeatures.h].
const (
	featureAlways = 3*32 + 21
	featureXenPV  = 8*32 + 16

	altNot  = 1 << 0 // where the CPU lacks the feature
	altCall = 1 << 1 // call what a pointer points to, instead of through it

	altNot6 = 1 << 15 // altNot in a layout without flags
)

// x86AltSize returns the size of the entries: that with which all of them make
// sense, the newest where several do.
func (m *marker) x86AltSize(t *tableData) int {
	for _, size := range [...]int{altSize, altSize6, altSize5} {
		if m.plausible(t, size) && plausibleLengths(t, size) {
			return size
		}
	}
	return altSize
}

func plausibleLengths(t *tableData, size int) bool {
	ok := true
	t.each(size, func(off int) {
		at := x86AltLengths(size)
		ok = ok && t.data[off+at] >= t.data[off+at+1]
	})
	return ok
}

// x86AltLengths returns where in an entry the lengths stand: after the
// condition, which has 4 bytes in the newest layout and else 2.
func x86AltLengths(size int) int {
	if size == altSize {
		return 12
	}
	return 10
}

func (r *alternativeReader) x86(t *tableData) {
	size := r.x86AltSize(t)
	lengths := x86AltLengths(size)
	t.each(size, func(off int) {
		feature, flags := t.order.u16(t.data[off+8:]), uint16(0)
		if size == altSize {
			flags = t.order.u16(t.data[off+10:])
		} else if feature&altNot6 != 0 {
			feature, flags = feature&^altNot6, altNot
		}
		a := Alternative{Addr: t.rel(off), From: t.rel(off + 4), Size: uint64(t.data[off+lengths]),
			When: x86When(feature, flags&altNot != 0)}
		length := uint64(t.data[off+lengths+1])
		if flags&altCall != 0 {
			a.Code = r.directCall(&a)
			length = 0
		}
		r.add(a, length)
	})
}

func x86When(feature uint16, not bool) When {
	switch {
	case feature != featureAlways && feature != featureXenPV:
		return WhenCPU
	case (feature == featureAlways) != not:
		return WhenAlways
	}
	return WhenNever
}

// directCall returns what replaces an indirect call through a pointer of a table
// such as pv_ops: a call of what the file has in the pointer, nothing where that
// is a function that does nothing [arch/x86/kernel/alternative.c,
// alt_replace_call; up to 6.6 arch/x86/kernel/paravirt.c, paravirt_patch]. It is
// written for the address a.Addr.
func (r *alternativeReader) directCall(a *Alternative) []byte {
	const direct = 0xe8
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
	for _, f := range paravirtFunctions {
		if addr, ok := r.syms.address(f.name); ok && target == addr {
			return []byte(f.code)
		}
	}
	return binary.LittleEndian.AppendUint32([]byte{direct}, uint32(target-(a.Addr+5)))
}

// paravirtFunctions are not called, but replaced by what they do.
var paravirtFunctions = []struct{ name, code string }{
	{"nop_func", ""}, {"_paravirt_nop", ""}, {"_paravirt_ident_64", "\x48\x89\xf8"}, // mov %rdi,%rax
}

// calledThrough returns the address of the pointer that the call at addr goes
// through, relative to the instruction pointer or not, and the call's length.
func (r *alternativeReader) calledThrough(addr uint64) (slot, size uint64, ok bool) {
	const relative, absolute = "\xff\x15", "\xff\x14\x25"
	var buf [7]byte
	code, err := r.im.Code(buf[:], addr, uint64(len(buf)))
	if err != nil {
		return 0, 0, false
	}
	switch {
	case string(code[:2]) == relative:
		return addr + 6 + r.im.order.i32(code[2:]), 6, true
	case string(code[:3]) == absolute:
		return r.im.order.i32(code[3:]), 7, true
	}
	return 0, 0, false
}

// paravirtCalls reads .parainstructions, which x86 kernels had up to 6.6: the
// addresses of indirect calls that become direct ones, with a type and a length,
// 16 bytes an entry [arch/x86/include/asm/paravirt_types.h]. Up to 5.11, some
// became instructions that the tables do not have.
func (r *alternativeReader) paravirtCalls() error {
	s := r.im.sectionNamed(".parainstructions")
	if r.im.machine != elf.EM_X86_64 || s == nil || !s.inMemory() || !s.inFile() {
		return nil
	}
	data, err := r.im.contents(s)
	if err != nil {
		return err
	}
	inTables := true
	if alts := r.im.sectionNamed(".altinstructions"); alts != nil {
		data, err := r.im.contents(alts)
		if err != nil {
			return err
		}
		inTables = r.x86AltSize(&tableData{r.im.order, alts.addr, data}) != altSize5
	}
	t := tableData{r.im.order, s.addr, data}
	t.each(16, func(off int) {
		a := Alternative{Addr: t.order.u64(data[off:]), Size: uint64(data[off+9]), When: WhenAlways}
		a.Code = r.directCall(&a)
		r.add(a, 0)
		if !inTables {
			r.add(Alternative{Addr: a.Addr, Size: a.Size, Unknown: true}, 0)
		}
	})
	return nil
}

// arm64Nops is the function that replaces text by NOPs.
const arm64Nops = "alt_cb_patch_nops"

// arm64 reads .altinstructions: original and replacement, each relative to
// itself, a capability of the CPU, whose highest bit says that the replacement
// is a function that computes it, and the lengths of both
// [arch/arm64/include/asm/alternative.h]. Up to 6.1, functions had a number for
// a capability of their own, and no length.
func (r *alternativeReader) arm64(t *tableData) {
	const callback = 1 << 15
	nops, _ := r.syms.address(arm64Nops)
	t.each(12, func(off int) {
		a := Alternative{Addr: t.rel(off), From: t.rel(off + 4), Size: uint64(t.data[off+10])}
		length := uint64(t.data[off+11])
		if t.order.u16(t.data[off+8:])&callback != 0 || length == 0 {
			length, a.Unknown = 0, nops == 0 || a.From != nops
		}
		r.add(a, length)
	})
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

// What ppc64 kernels write for the CPU's flaws: tables of NOPs for flushes and
// barriers, relative to the entry, and symbols of single instructions, relative
// to the symbol [arch/powerpc/lib/feature-fixups.c, code-patching.h].
var flushTables = []string{
	"__stf_entry_barrier_fixup", "__stf_exit_barrier_fixup", "__uaccess_flush_fixup", "__entry_flush_fixup",
	"__scv_entry_flush_fixup", "__rfi_flush_fixup", "__spec_barrier_fixup",
}

const patchSitePrefix = "patch__"

// securityFixups takes the sites of these. What the kernel writes there is not
// in the file.
func (r *alternativeReader) securityFixups() error {
	if r.im.machine != elf.EM_PPC64 {
		return nil
	}
	for i := range r.im.sections {
		s := &r.im.sections[i]
		if !slices.Contains(flushTables, s.name) || !s.inMemory() || !s.inFile() {
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
		if !strings.HasPrefix(r.syms.name(s), patchSitePrefix) {
			continue
		}
		if rel, err := r.im.Data(nil, s.addr, 4); err == nil {
			r.unknownSite(s.addr + r.im.order.i32(rel))
		}
	}
	return nil
}

// unknownSite takes the instruction at addr and the NOPs after it.
func (r *alternativeReader) unknownSite(addr uint64) {
	const nop, most = 0x60000000, 64
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

// thunkLen is the length of an x86 jump or call to a thunk.
const thunkLen = 5

// thunks marks x86's jumps to return thunks, and branches to thunks that branch
// indirectly: .return_sites and .retpoline_sites list them, relative to
// themselves [arch/x86/kernel/alternative.c].
func (m *marker) thunks() error {
	if m.im.machine != elf.EM_X86_64 {
		return nil
	}
	for i := range m.im.sections {
		s := &m.im.sections[i]
		kind := place.Kind(0)
		switch s.name {
		case ".return_sites":
			kind = place.ReturnThunk
		case ".retpoline_sites":
			kind = place.BranchThunk
		}
		if kind == 0 || !s.inMemory() || !s.inFile() {
			continue
		}
		data, err := m.im.contents(s)
		if err != nil {
			return err
		}
		t := tableData{m.im.order, s.addr, data}
		m.marks = slices.Grow(m.marks, len(data)/4)
		t.each(4, func(off int) { m.site(t.rel(off), thunkLen, kind) })
	}
	return nil
}
