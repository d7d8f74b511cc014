package runtime

import (
	"slices"

	"xol/classify"
	"xol/machine"
)

var ruleInEntry = classify.Rule{ID: "runtime/entry-site", Errno: classify.EILSEQ,
	Reason: "the address is inside a patchable entry, after its first byte",
	Remedy: "probe the function"}

// entryAt returns the entry site that a probe at addr goes to: one at addr, or
// after it where the function starts there, and all that lies between are what
// functions start with.
func (r *texts) entryAt(im *Module, addr uint64) (site uint64, ok bool) {
	i, ok := slices.BinarySearch(im.entries.sites, addr)
	if ok || i == len(im.entries.sites) {
		return addr, ok
	}
	next := im.entries.sites[i]
	place, ok := r.entryOf(im, addr)
	return next, ok && next <= place+uint64(r.isa.EntryLead())
}

// placeEntry moves a probe of a function to its patchable entry, where it has
// one. A mirror function has to find the function's own registers: it runs after
// the entry.
func (r *texts) placeEntry(p *probe, im *Module, addr uint64) (moved uint64, entry bool) {
	site, ok := r.entryAt(im, addr)
	if !ok {
		return addr, false
	}
	if p.mirror {
		return site + r.entrySize(), false
	}
	return site, true
}

// insideEntry reports whether addr is in a site, but not first.
func (r *texts) insideEntry(im *Module, addr uint64) bool {
	i, found := slices.BinarySearch(im.entries.sites, addr)
	return !found && i > 0 && addr-im.entries.sites[i-1] < r.entrySize()
}

// prepareEntries makes what compilers left at the entries of an image's functions
// sites that do nothing, as kernels do before the text runs.
func (r *texts) prepareEntries(im *Module) error {
	sites, err := im.analysis.Image.EntrySites()
	if err != nil {
		return err
	}
	lead := uint64(r.isa.EntryLead())
	for _, addr := range sites {
		addr += im.bias
		text := make([]byte, lead+maxEntry)
		text = text[:r.readable(text, addr-lead)]
		ready, ok := r.isa.EntryText(text)
		if !ok {
			continue
		}
		if err := r.m.Write(addr-lead, ready); err != nil {
			return err
		}
		im.entries.texts = append(im.entries.texts, machine.Part{Addr: addr - lead, Code: ready})
		im.entries.sites = append(im.entries.sites, addr)
	}
	return nil
}
