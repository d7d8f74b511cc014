package runtime

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/machine"
)

// texts are the programs in the machine's memory, with the sites in them.
type texts struct {
	target
	images []*Module
	sites  map[uint64]*site
	gone   []*site // whose text has been unloaded
}

// A probe is judged by what stands in memory, as kernels decode the text that runs,
// and not by the file: both may have changed it, the host and the program itself.
// When they do it under a probe, all that was made of the old text is made anew.

var (
	ruleTextEntry = classify.Rule{ID: "runtime/text-entry", Errno: classify.EILSEQ,
		Reason: "what the compiler left at the function's entry has been changed in memory",
		Remedy: "attach the probe anew: it becomes a breakpoint"}
)

var errNoFunction = errors.New("runtime: the address is in no function")

// imageAt returns the image whose text holds addr; nil where none does.
func (r *texts) imageAt(addr uint64) *Module {
	for _, im := range r.images {
		for i := range im.text {
			if t := &im.text[i]; addr-t.Addr < t.Size {
				return im
			}
		}
	}
	return nil
}

// watchText has changes of a function's text told, as often as it is called.
func (r *texts) watchText(im *Module, f *image.Function) (*function, error) {
	fn := im.functions[f.Addr]
	if fn == nil {
		fn = &function{Range: machine.Range{Lo: f.Addr + im.bias, Hi: f.End() + im.bias}}
		if err := r.m.Guard(fn.Range, true); err != nil {
			return nil, err
		}
		im.functions[f.Addr] = fn
	}
	fn.users++
	return fn, nil
}

func (r *texts) unwatchText(im *Module, fn *function) error {
	if fn.users--; fn.users > 0 {
		return nil
	}
	delete(im.functions, fn.Lo-im.bias)
	return r.m.Guard(fn.Range, false)
}

// judge returns the judged function that holds addr, as it stands in memory.
func (r *texts) judge(im *Module, addr uint64) (*analyze.Result, bool) {
	if j := im.judged; j != nil && addr-im.bias-j.Addr < uint64(len(j.Code)) {
		return j, j.Err == nil
	}
	f, ok := im.analysis.FunctionAt(addr - im.bias)
	if !ok || r.forgetJudged(im) != nil {
		return nil, false
	}
	if _, err := r.watchText(im, &f); err != nil {
		return nil, false
	}
	im.judged = im.analysis.Judge(f)
	if im.judged.Err == nil {
		if code := r.textOf(im, im.judged); !bytes.Equal(code, im.prepared(im.judged)) {
			im.judged = im.analysis.JudgeText(f, code)
		}
	}
	return im.judged, im.judged.Err == nil
}

// textOf returns the text of a judged function in memory; where there is none, as the
// file has it.
func (r *texts) textOf(im *Module, res *analyze.Result) []byte {
	code := bytes.Clone(res.Code)
	addr := res.Addr + im.bias
	if r.m.Read(code, addr) == nil {
		return code
	}
	for done := uint64(0); done < uint64(len(code)); {
		n := min(uint64(len(code))-done, pageSize-(addr+done)%pageSize)
		if r.m.Read(code[done:done+n], addr+done) != nil {
			copy(code[done:done+n], res.Code[done:])
		}
		done += n
	}
	return code
}

// forgetJudged has the next question about a function asked anew.
func (r *texts) forgetJudged(im *Module) error {
	if im.judged == nil {
		return nil
	}
	fn := im.functions[im.judged.Function.Addr]
	im.judged = nil
	return r.unwatchText(im, fn)
}

// put makes s the site at its address.
func (r *texts) put(s *site) error {
	f, ok := s.image.analysis.FunctionAt(s.addr - s.image.bias)
	if !ok {
		return errNoFunction
	}
	fn, err := r.watchText(s.image, &f)
	if err != nil {
		return err
	}
	s.function = fn
	i, _ := slices.BinarySearchFunc(fn.sites, s, compareSites)
	fn.sites = slices.Insert(fn.sites, i, s)
	r.sites[s.addr] = s
	return nil
}

// displace takes a site from its address.
func (r *texts) displace(s *site) error {
	delete(r.sites, s.addr)
	if s.function == nil {
		return nil
	}
	s.function.sites = deleteFrom(s.function.sites, s)
	return r.unwatchText(s.image, s.function)
}

// covering returns the sites whose region has addr inside, but not first.
func (r *texts) covering(addr uint64) []*site {
	const longest = 2 * decode.MaxLen
	var found []*site
	for back := uint64(1); back < longest && back <= addr; back++ {
		if s := r.sites[addr-back]; s != nil && back < uint64(s.region.Region) {
			found = append(found, s)
		}
	}
	return found
}

// byAddress returns the sites that are not the runtime's own, sorted: what
// happens to all of them happens in the same order in every run.
func (r *texts) byAddress() []*site {
	sites := make([]*site, 0, len(r.sites))
	for _, s := range r.sites {
		if !s.internal {
			sites = append(sites, s)
		}
	}
	slices.SortFunc(sites, compareSites)
	return sites
}

// fixup returns where a fault of the instruction at addr continues.
func (r *texts) fixup(addr uint64) (uint64, bool) {
	if im := r.imageAt(addr); im != nil {
		to, ok := im.fixups[addr]
		return to, ok
	}
	return 0, false
}

// entryOf returns the address of the first instruction of the function that
// starts at addr that may be replaced: the landing pad, and what leads from the
// global entry point to the local one, stay.
func (r *texts) entryOf(im *Module, addr uint64) (uint64, bool) {
	res, ok := r.judge(im, addr)
	if !ok {
		return 0, false
	}
	addr -= im.bias
	entry := res.Function.Addr
	local := entry + res.Function.LocalEntry
	i, start := decode.Find(res.Insts, local)
	if !start {
		return 0, false
	}
	place := local
	if r.isa.OnlyLandingPad(&res.Insts[i]) && i+1 < len(res.Insts) {
		place = res.Insts[i+1].Addr
	}
	return place + im.bias, addr == entry || addr == local || addr == place
}

func compareSites(a, b *site) int { return cmp.Compare(a.addr, b.addr) }
