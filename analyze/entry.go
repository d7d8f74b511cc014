package analyze

import (
	"xol/classify"
	"xol/image"
	"xol/place"
)

// entryRange is how far into a function on ppc64 Linux looks for the site of
// ftrace that stands for its entry [arch/powerpc/kernel/kprobes.c,
// kprobe_lookup_name].
const entryRange = 16

// localEntries is the version of the ABI in which functions have two entries.
const localEntries = 2

// Entry returns where a probe stands that is put on a judged function by its
// name. On ppc64 with two entries that is the local one, which all calls come
// by: the global one only sets the TOC pointer up for calls from elsewhere. A
// kernel takes the site of ftrace, where it has one for kprobes to use.
func (a *Analysis) Entry(r *Result) uint64 {
	f := &r.Function
	if a.Image.ABI() != localEntries {
		return f.Addr
	}
	if a.Extent == image.ExtentNext {
		for _, m := range r.Marks.Starting(f.Addr, min(f.Addr+entryRange+1, f.End())) {
			if m.Kind&place.Ftrace == 0 {
				continue
			}
			if v := a.Profile.At(&r.Func, m.Addr); v.Exec == classify.ExecFtrace {
				return m.Addr
			}
		}
	}
	return f.Addr + f.LocalEntry
}

// MissesCalls reports whether a probe at addr of a function on ppc64 is missed
// by calls that come by the local entry: from within the kernel, the module or
// the file.
func (r *Result) MissesCalls(addr uint64) bool {
	f := &r.Function
	return f.Addr <= addr && addr < f.Addr+f.LocalEntry
}
