package image

import (
	"debug/elf"
	"slices"
)

// Kind says what a file is to Linux.
type Kind uint8

// The kinds of files.
const (
	KindProgram Kind = iota // an executable or shared object
	KindObject              // relocatable, not linked
	KindModule              // a kernel module
	KindKernel              // vmlinux
)

var kindNames = [...]string{"program", "object", "module", "kernel"}

// String returns the kind in one word.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Kind returns what the file is to Linux.
func (im *file) Kind() Kind { return im.kind }

// The names of sections that only modules and only kernels have.
var (
	moduleSections = []string{".modinfo", ".gnu.linkonce.this_module"}
	kernelSections = []string{"__ksymtab", "__param", "__ex_table"}
)

func (im *file) findKind() Kind {
	has := func(name string) bool { return im.sectionNamed(name) != nil }
	switch {
	case im.raw || im.memory != nil:
		return KindKernel
	case im.typ == elf.ET_REL && slices.ContainsFunc(moduleSections, has):
		return KindModule
	case im.typ == elf.ET_REL:
		return KindObject
	case slices.ContainsFunc(kernelSections, has) && has(".init.text"):
		return KindKernel
	case im.headless && slices.ContainsFunc(im.sections, func(s section) bool { return s.exec() && int64(s.addr) < 0 }):
		return KindKernel // it is in the kernel's half of the addresses
	}
	return KindProgram
}
