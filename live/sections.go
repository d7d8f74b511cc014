package live

import (
	"cmp"
	"slices"
	"strings"

	"xol/image"
)

// bounds are where a kernel's link has put its parts, by the symbols that its linker
// script defines [include/asm-generic/sections.h].
type bounds map[string]uint64

var boundNames = []string{
	"_text", "_stext", "_etext", "__end_rodata", "_edata", "__init_begin", "_sinittext", "_einittext", "__init_end", "_end",
}

func boundsOf(syms []image.MapSymbol) bounds {
	b := make(bounds, len(boundNames))
	for i := range syms {
		if s := &syms[i]; s.Module == "" && strings.HasPrefix(s.Name, "_") && slices.Contains(boundNames, s.Name) {
			b[s.Name] = s.Addr
		}
	}
	return b
}

// largestKernel is more than any kernel takes in memory, in bytes
// [arch/x86/include/asm/page_64_types.h, KERNEL_IMAGE_SIZE].
const largestKernel = 1 << 30

// kernelSections divides a running kernel as its link did. What lies between
// __init_begin and __init_end has been freed.
func kernelSections(syms []image.MapSymbol, b bounds) []image.MemorySection {
	text, ok := b["_stext"]
	if !ok {
		text = b["_text"]
	}
	if text == 0 || b["_etext"] <= text {
		return nil
	}
	init := span{b["__init_begin"], b["__init_end"]}
	initText := span{b["_sinittext"], b["_einittext"]}
	exitText := exitText(syms, span{initText.hi, init.hi})
	end := max(b["_end"], b["_etext"])
	cuts := []uint64{text, end, init.lo, init.hi, initText.lo, initText.hi, exitText.lo, exitText.hi}
	for _, addr := range b {
		cuts = append(cuts, addr)
	}
	slices.Sort(cuts)
	first := text
	if start := b["_text"]; start != 0 {
		first = min(first, start)
	}
	if end-first > largestKernel {
		return nil
	}
	var sections []image.MemorySection
	for i, lo := range cuts[:len(cuts)-1] {
		hi := cuts[i+1]
		if lo == hi || lo < first || lo >= end {
			continue
		}
		s := image.MemorySection{Name: ".data", Addr: lo, Size: hi - lo}
		switch {
		case lo < text:
			s.Name, s.Exec = ".head.text", true
		case lo < b["_etext"]:
			s.Name, s.Exec = ".text", true
		case initText.holds(lo):
			s.Name, s.Exec, s.Unread = ".init.text", true, true
		case exitText.holds(lo):
			s.Name, s.Exec, s.Unread = ".exit.text", true, true
		case init.holds(lo):
			s.Name, s.Unread = ".init.data", true
		case lo < b["__end_rodata"]:
			s.Name = ".rodata"
		case lo >= init.hi && lo >= b["_edata"]:
			s.Name, s.Unread = ".bss", true
		}
		if n := len(sections); n > 0 && sections[n-1].Name == s.Name && sections[n-1].Addr+sections[n-1].Size == lo {
			sections[n-1].Size += s.Size
			continue
		}
		sections = append(sections, s)
	}
	return sections
}

// span is the range of addresses [lo, hi).
type span struct{ lo, hi uint64 }

func (s span) holds(addr uint64) bool { return s.lo <= addr && addr < s.hi }

// exitText returns where the functions of a kernel are that follow its init text in
// what is freed.
func exitText(syms []image.MapSymbol, within span) span {
	var found span
	for i := range syms {
		s := &syms[i]
		switch {
		case s.Module != "" || !within.holds(s.Addr) || s.Type|0x20 != 't':
		case found.lo == 0 || s.Addr < found.lo:
			found.lo = s.Addr
			fallthrough
		default:
			found.hi = max(found.hi, s.Addr+1)
		}
	}
	if found.hi == 0 {
		return span{}
	}
	// The last of them goes on to the next symbol.
	next := within.hi
	for i := range syms {
		if s := &syms[i]; s.Module == "" && s.Addr >= found.hi && s.Addr < next {
			next = s.Addr
		}
	}
	found.hi = next
	return found
}

// page is the smallest page of a kernel, in bytes.
const page = 4096

// farthest is how many bytes a section of a module has at most, where it is not known
// where it ends.
const farthest = 1 << 20

// moduleTables are the sections of modules that are read besides text and data: they
// stay when the module has been loaded.
var moduleTables = []string{"__jump_table", "__bug_table", "__ex_table", ".static_call_sites"}

// loadedSection is a section of a module where it has been loaded.
type loadedSection struct {
	name string
	addr uint64
}

// moduleSections divides a module, by where its sections start and its symbols. The
// lists are those sections that are wanted besides.
func moduleSections(module string, loaded []loadedSection, syms []image.MapSymbol, lists []string) []image.MemorySection {
	loaded = slices.DeleteFunc(loaded, func(s loadedSection) bool { return s.addr == 0 || freed(s.name) })
	slices.SortFunc(loaded, func(a, b loadedSection) int { return cmp.Compare(a.addr, b.addr) })
	ends := make([]uint64, len(loaded))
	for i := range loaded {
		ends[i] = (loaded[i].addr + page) &^ (page - 1)
		if i+1 < len(loaded) && loaded[i+1].addr-loaded[i].addr < farthest {
			ends[i] = loaded[i+1].addr
		}
	}
	var sections []image.MemorySection
	for i := range loaded {
		s := &loaded[i]
		own := image.MemorySection{Name: s.name, Module: module, Addr: s.addr}
		switch last := lastFunction(syms, span{s.addr, ends[i]}); {
		case last != 0:
			own.Name, own.Exec = ".text", true
			if i+1 == len(loaded) || ends[i] != loaded[i+1].addr { // the last function may go on
				ends[i] = max(ends[i], (last+page)&^(page-1))
			}
		case !slices.Contains(moduleTables, s.name) && !slices.Contains(lists, s.name) && !holdsData(s.name):
			continue
		}
		own.Size = ends[i] - s.addr
		if n := len(sections); n > 0 && own.Exec && sections[n-1].Exec && sections[n-1].Addr+sections[n-1].Size == own.Addr {
			sections[n-1].Size += own.Size
			continue
		}
		sections = append(sections, own)
	}
	return sections
}

// freed reports whether the kernel frees a section of a module when that has been
// loaded [kernel/module/main.c, module_init_section].
func freed(name string) bool { return strings.HasPrefix(name, ".init") }

func holdsData(name string) bool {
	return strings.HasPrefix(name, ".rodata") || strings.HasPrefix(name, ".data")
}

// lastFunction returns the address of the last function in a range; 0 where there is
// none.
func lastFunction(syms []image.MapSymbol, in span) (last uint64) {
	for i := range syms {
		if s := &syms[i]; s.Type|0x20 == 't' && in.holds(s.Addr) {
			last = max(last, s.Addr)
		}
	}
	return last
}
