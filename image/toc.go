package image

// TOC returns the TOC pointer of a ppc64 program: what r2 holds in its
// functions.
func (im *Image) TOC() (addr uint64, ok bool) {
	toc := im.isa.TOC
	if toc == nil {
		return 0, false
	}
	for _, name := range toc.Linked {
		if s := im.sectionNamed(name); s != nil && s.alloc() {
			return s.addr + toc.Bias, true
		}
	}
	return 0, false
}
