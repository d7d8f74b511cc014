package image

import (
	"cmp"
	"slices"
)

// sequenceSize is the size in bytes of struct rseq_cs [include/uapi/linux/rseq.h]: version
// and flags of 4 bytes each, then the start, the length up to the instruction after the one
// that commits, and the address that the kernel goes on at where the sequence was interrupted.
const sequenceSize = 32

// RestartableSequences returns the code that the kernel abandons where it is interrupted
// (rseq(2)), by address, as the table __rseq_cs tells that librseq and tcmalloc make. What
// is damaged in the table is left out.
func (im *program) RestartableSequences() []Range {
	table := im.sectionNamed("__rseq_cs")
	if table == nil {
		return nil
	}
	var list []Range
	for at := table.addr; table.end()-at >= sequenceSize; at += sequenceSize {
		start, known := im.Pointer(at + 8)
		size, _ := im.word(at + 16)
		if i := im.textAt(start); known && i >= 0 && size > 0 && size <= im.text[i].End()-start {
			list = append(list, Range{Addr: start, Size: size, Section: im.text[i].Section})
		}
	}
	slices.SortFunc(list, func(a, b Range) int { return cmp.Compare(a.Addr, b.Addr) })
	return list
}
