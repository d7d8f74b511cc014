package analyze

import (
	"bytes"
	"slices"
	"sort"

	"xol/arch"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/optcheck"
	"xol/place"
)

// bootText is what a kernel makes of its text while it boots. The zero value
// leaves all as it is.
//
// What is the same on every machine is settled: it replaces the file's text
// before that is decoded. Where the CPU decides, the file's text is judged and
// each other form of the function as well; where they differ, the verdict says
// that it depends.
type bootText struct {
	settled []textPatch
	// forms are further texts: the first holds the first other form of every
	// site that has one, the second the second, and so on.
	forms [][]textPatch
	marks place.Marks
}

// textPatch is code for an address. Lists are sorted, and do not overlap.
type textPatch struct {
	addr uint64
	code []byte
}

// Boot says what becomes of an instruction while the kernel boots.
type Boot uint8

// What becomes of an instruction.
const (
	BootKept    Boot = iota // it stays as the file has it
	BootPatched             // it was written while booting, on every machine alike
	BootCPU                 // the CPU, and what it needs, decides what stands there
)

var bootNames = [...]string{"", "patched", "cpu"}

// String returns the name that the command line's JSON uses.
func (b Boot) String() string {
	if int(b) < len(bootNames) {
		return bootNames[b]
	}
	return "invalid"
}

// readBootText finds out what a kernel or a module makes of its text.
func readBootText(img *image.Image, isa arch.ISA) (*bootText, error) {
	b := new(bootText)
	alts, err := img.Alternatives()
	if err != nil {
		return nil, err
	}
	b.settled, b.marks = make([]textPatch, 0, len(alts)), make(place.Marks, 0, len(alts))
	for from, to := 0, 0; from < len(alts); from = to {
		for to = from + 1; to < len(alts) && alts[to].Addr == alts[from].Addr; {
			to++
		}
		b.addSite(isa, alts, alts[from:to])
	}
	return b, nil
}

// addSite takes the alternatives of one address, in the order in which the
// kernel applies them; all are those of the file.
func (b *bootText) addSite(isa arch.ISA, all, alts []image.Alternative) {
	addr, size, file := alts[0].Addr, uint64(0), []byte(nil)
	for i := range alts {
		if alts[i].Size > size {
			size, file = alts[i].Size, alts[i].Old
		}
	}
	settled, kind := file, place.Kind(0)
	var others [][]byte
	for i := range alts {
		alt := &alts[i]
		switch {
		case alt.When == image.WhenNever:
		case alt.Unknown:
			kind |= place.BootUnknown
		case alt.When == image.WhenAlways:
			settled, others = replaced(isa, alt, alt.Code, addr, size), nil
		default:
			for _, code := range variants(isa, all, alt) {
				others = append(others, replaced(isa, alt, code, addr, size))
			}
		}
	}
	if !bytes.Equal(settled, file) {
		b.settled = append(b.settled, textPatch{addr, settled})
		kind |= place.BootKnown
	}
	n := 0
	for _, code := range others {
		if !bytes.Equal(code, settled) {
			n = b.addForm(n, textPatch{addr, code})
			kind |= place.BootOpen
		}
	}
	if kind != 0 {
		b.marks = append(b.marks, place.Mark{Addr: addr, Len: size, Kind: kind})
	}
}

// replaced returns what stands in size bytes at addr where code, that of alt or a
// variant of it, has been written over them.
func replaced(isa arch.ISA, alt *image.Alternative, code []byte, addr, size uint64) []byte {
	return isa.Alternative(code, alt.From, addr, int(size), alt.Traps)
}

// variants returns the code of alt, as the file has it and with each of the
// alternatives in it.
func variants(isa arch.ISA, all []image.Alternative, alt *image.Alternative) [][]byte {
	list := [][]byte{alt.Code}
	end := alt.From + uint64(len(alt.Code))
	i := sort.Search(len(all), func(i int) bool { return all[i].Addr >= alt.From })
	for ; i < len(all) && all[i].Addr < end; i++ {
		if inner := &all[i]; !inner.Unknown && inner.Addr+inner.Size <= end {
			code := bytes.Clone(alt.Code)
			copy(code[inner.Addr-alt.From:], replaced(isa, inner, inner.Code, inner.Addr, inner.Size))
			list = append(list, code)
		}
	}
	return list
}

// addForm adds p to the first form from n on in which it overlaps nothing, and
// returns the one after that.
func (b *bootText) addForm(n int, p textPatch) int {
	for ; n < len(b.forms); n++ {
		form := b.forms[n]
		if form[len(form)-1].end() <= p.addr {
			b.forms[n] = append(form, p)
			return n + 1
		}
	}
	b.forms = append(b.forms, []textPatch{p})
	return n + 1
}

func (p *textPatch) end() uint64 { return p.addr + uint64(len(p.code)) }

// write writes patches over code, which stands at addr, and reports whether
// there are any for it.
func write(patches []textPatch, code []byte, addr uint64) (written bool) {
	i := sort.Search(len(patches), func(i int) bool { return patches[i].end() > addr })
	end := addr + uint64(len(code))
	for ; i < len(patches) && patches[i].addr < end; i++ {
		p := &patches[i]
		if p.addr >= addr {
			copy(code[p.addr-addr:], p.code)
		} else {
			copy(code, p.code[addr-p.addr:])
		}
		written = true
	}
	return written
}

// bootKinds are the marks that bootText makes.
const bootKinds = place.BootKnown | place.BootOpen | place.BootUnknown | place.ReturnThunk | place.BranchThunk

// Boot says what becomes of instruction i of a judged function.
func (r *Result) Boot(i int) Boot {
	inst, b := &r.Insts[i], BootKept
	for _, m := range r.booted {
		if m.Addr >= inst.Next() {
			break
		}
		switch {
		case m.End() <= inst.Addr:
		case m.Kind&^place.BootKnown&bootKinds != 0:
			return BootCPU
		default:
			b = BootPatched
		}
	}
	return b
}

// noteBoot keeps the marks of r that Boot asks.
func (r *Result) noteBoot() {
	r.booted = r.booted[:0]
	for _, m := range r.Marks {
		if m.Kind&bootKinds != 0 {
			r.booted = append(r.booted, m)
		}
	}
}

// judgeForms judges the other forms that r may have, and marks the verdicts that
// are not the same in all of them.
func (a *Analysis) judgeForms(r *Result) {
	for _, m := range r.booted {
		if m.Kind&place.BootUnknown != 0 {
			r.dependOn(&m)
		}
	}
	if !slices.ContainsFunc(r.booted, func(m place.Mark) bool { return m.Kind&place.BootOpen != 0 }) {
		return
	}
	for k := range a.boot.forms {
		if r.form == nil {
			r.form = new(Result)
		}
		if a.judgeForm(r.form, r, k) {
			r.compare(r.form)
		}
	}
}

// dependOn marks the verdicts on the instructions of m, and on the jumps that would
// replace some of them or that they keep from being possible.
func (r *Result) dependOn(m *place.Mark) {
	const longestRegion = 2 * decode.MaxLen // more than any has bytes
	for i := decode.From(r.Insts, m.Addr-min(m.Addr, longestRegion)); i < len(r.Insts) && r.Insts[i].Addr < m.End(); i++ {
		addr := r.Insts[i].Addr
		if addr >= m.Addr {
			r.Verdicts[i].Depends = true
		}
		if i < len(r.Optimize) {
			v := &r.Optimize[i]
			blocks := v.Culprit >= m.Addr && v.Culprit < m.End() || addr >= m.Addr && v.Rule != nil
			v.Depends = v.Depends || blocks || addr+uint64(v.Region) > m.Addr && v.OK()
		}
	}
}

// judgeForm fills form with r in its form k, and reports whether r has one.
func (a *Analysis) judgeForm(form, r *Result, k int) bool {
	form.Code = append(form.Code[:0], r.Code...)
	if !write(a.boot.forms[k], form.Code, r.Addr) {
		return false
	}
	form.Function, form.Name, form.Addr, form.Marks = r.Function, r.Name, r.Addr, r.Marks
	a.decodeForm(form, r, a.boot.forms[k])
	form.Verdicts = a.Profile.Func(form.Verdicts[:0], &form.Func)
	form.Optimize = form.Optimize[:0]
	if a.Optimizer != nil && !a.Optimizer.WholeProgram() {
		form.Optimize = a.Optimizer.Func(form.Optimize, a.optimizable(form, nil), &r.scratch)
	}
	return true
}

// decodeForm decodes the text of form, which differs from that of r by patches:
// what they leave alone is not decoded again.
func (a *Analysis) decodeForm(form, r *Result, patches []textPatch) {
	form.Insts = form.Insts[:0]
	kept := 0 // of r.Insts
	i := sort.Search(len(patches), func(i int) bool { return patches[i].end() > r.Addr })
	for ; i < len(patches) && patches[i].addr < r.End(); i++ {
		p := &patches[i]
		from, to := decode.From(r.Insts, p.addr), decode.From(r.Insts, p.end())
		if from == len(r.Insts) || r.Insts[from].Addr != p.addr || r.Insts[to-1].Next() != p.end() {
			form.Insts = decode.Sweep(a.ISA, form.Insts[:0], form.Code, r.Addr)
			return
		}
		form.Insts = append(form.Insts, r.Insts[kept:from]...)
		form.Insts = decode.Sweep(a.ISA, form.Insts, form.Code[p.addr-r.Addr:p.end()-r.Addr], p.addr)
		kept = to
	}
	form.Insts = append(form.Insts, r.Insts[kept:]...)
}

// compare marks the verdicts of r that are not those of form. What is no
// instruction of form is inside one.
func (r *Result) compare(form *Result) {
	for i := range r.Insts {
		j, start := decode.Find(form.Insts, r.Insts[i].Addr)
		if !start {
			r.Verdicts[i].Depends = true
			continue
		}
		if !sameProbe(&r.Verdicts[i], &form.Verdicts[j]) {
			r.Verdicts[i].Depends = true
		}
		if len(form.Optimize) > 0 && !sameJump(&r.Optimize[i], &form.Optimize[j]) {
			r.Optimize[i].Depends = true
		}
	}
}

// sameProbe reports whether two verdicts on an address say the same: but for
// what emulates the instruction, which is no question of whether it may be
// probed.
func sameProbe(a, b *classify.Verdict) bool {
	var left, right classify.Errno
	if !a.OK() {
		left = a.Rule.Errno
	}
	if !b.OK() {
		right = b.Rule.Errno
	}
	return a.OK() == b.OK() && left == right && a.Exec == b.Exec && a.MovedTo == b.MovedTo && a.Hazard == b.Hazard
}

func sameJump(a, b *optcheck.Verdict) bool { return a.Region == b.Region && a.Rule == b.Rule }

// Forms returns r in the other forms that a CPU may give it.
func (a *Analysis) Forms(r *Result) []*Result {
	var forms []*Result
	for k := range a.boot.forms {
		if form := new(Result); a.judgeForm(form, r, k) {
			forms = append(forms, form)
		}
	}
	return forms
}

// At judges any address of a judged function, also inside an instruction.
func (a *Analysis) At(r *Result, addr uint64) classify.Verdict {
	v := a.Profile.At(&r.Func, addr)
	if i, start := decode.Find(r.Insts, addr); start {
		v.Depends = r.Verdicts[i].Depends
		return v
	}
	for _, form := range a.Forms(r) {
		if other := a.Profile.At(&form.Func, addr); !sameProbe(&v, &other) {
			v.Depends = true
		}
	}
	return v
}
