package image

import "debug/elf"

// tocBias is how far behind the start of its section the TOC pointer points,
// so that signed displacements reach all of it [64-bit ELFv2 ABI, 3.3].
const tocBias = 0x8000

// TOC returns the TOC pointer of a ppc64 program: what r2 holds in its
// functions.
func (im *Image) TOC() (addr uint64, ok bool) {
	if im.machine != elf.EM_PPC64 {
		return 0, false
	}
	for _, name := range [...]string{".got", ".toc"} {
		if s := im.sectionNamed(name); s != nil && s.alloc() {
			return s.addr + tocBias, true
		}
	}
	return 0, false
}
