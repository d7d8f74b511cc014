package runtime

import (
	"bytes"
	"cmp"
	"slices"

	"xol/analyze"
	"xol/classify"
	"xol/image"
	"xol/machine"
	"xol/place"
)

// Module is a program in the machine's memory whose text may be probed.
type Module struct {
	Name     string
	owner    *target
	analysis *analyze.Analysis
	text     []image.Range
	memory   []image.Range
	fixups   map[uint64]uint64 // of the exception table
	entries  entries
	unloaded bool
	bias     uint64           // what addresses are above those in the file
	rules    classify.Profile // that decide where probes may be
	kernel   *kernelRules     // that decide as well; nil without Options.Profile

	judged    *analyze.Result // the function that was asked about last
	functions map[uint64]*function
}

// extent returns the addresses that the image's text lies between.
func (im *Module) extent() (lo, hi uint64) {
	lo = ^uint64(0)
	for i := range im.text {
		lo, hi = min(lo, im.text[i].Addr), max(hi, im.text[i].End())
	}
	return lo, hi
}

// moved returns ranges at bias above their addresses.
func moved(ranges []image.Range, bias uint64) []image.Range {
	ranges = slices.Clone(ranges)
	for i := range ranges {
		ranges[i].Addr += bias
	}
	return ranges
}

// readFixups returns where the faults of instructions in the exception table
// continue.
func readFixups(img *image.Image, bias uint64) (map[uint64]uint64, error) {
	landings, err := img.Landings()
	if err != nil {
		return nil, err
	}
	fixups := map[uint64]uint64{}
	for _, l := range landings {
		if l.Kind == place.LandExFixup {
			fixups[l.From+bias] = l.Addr + bias
		}
	}
	return fixups, nil
}

// function is a function whose text must not change unseen: it has sites, or is
// remembered as judged.
type function struct {
	machine.Range
	users int
	sites []*site // sorted by address
}

// entries are the patchable function entries of an image. Probes there need no
// breakpoint: the site becomes a call.
type entries struct {
	sites []uint64       // sorted
	texts []machine.Part // what they were made in memory, sorted
	stub  block          // what the sites call; its size is 0 where there is none yet
}

// maxEntry is at least the bytes of a site on any ISA.
const maxEntry = 8

func deleteFrom[T comparable](list []T, item T) []T {
	for i := range list {
		if list[i] == item {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// kernelRules judge an image's text as a version of the kernel does. Its functions
// are not those of the profile isa: they go on to the next symbol.
type kernelRules struct {
	analysis *analyze.Analysis
	judged   *analyze.Result // the function that was asked about last
}

// prepared returns the file's text of a judged function, with the entries that the
// runtime has prepared in memory.
func (im *Module) prepared(res *analyze.Result) []byte {
	code, texts := res.Code, im.entries.texts
	first, _ := slices.BinarySearchFunc(texts, res.Addr+im.bias, func(t machine.Part, addr uint64) int { return cmp.Compare(t.Addr, addr) })
	for _, t := range texts[first:] {
		from := t.Addr - im.bias - res.Addr
		if from >= uint64(len(code)) {
			break
		}
		code = bytes.Clone(code)
		copy(code[from:], t.Code)
	}
	return code
}

// touched returns the watched functions of an image that share bytes with a range.
func (im *Module) touched(changed machine.Range) (found []*function) {
	for _, fn := range im.functions {
		if fn.Lo < changed.Hi && changed.Lo < fn.Hi {
			found = append(found, fn)
		}
	}
	slices.SortFunc(found, func(a, b *function) int { return cmp.Compare(a.Lo, b.Lo) })
	return found
}
