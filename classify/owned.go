package classify

import (
	"xol/decode"
	"xol/place"
)

// Text that someone else rewrites while it runs, or that is never executed. The
// first that applies decides.
var ownedRules = [...]struct {
	kind place.Kind
	rule Rule
}{
	{place.Data, Rule{"isa/data", 0,
		"these bytes are data in the text: nothing executes them",
		"probe the code that reads them"}},
	{place.JumpLabel, Rule{"isa/jump-label", 0,
		"this is a jump-label site, which the kernel rewrites while it runs and would overwrite the breakpoint",
		"probe the instruction after the site"}},
	{place.StaticCall, Rule{"isa/static-call", 0,
		"this is a static-call site, which the kernel rewrites while it runs and would overwrite the breakpoint",
		"probe the instruction after the site, or the function that is called"}},
	{place.Ftrace, Rule{"isa/ftrace-site", 0,
		"this is an ftrace site, which the kernel rewrites while it runs and would overwrite the breakpoint",
		"probe the instruction after the site"}},
}

const ownedKinds = place.Data | place.JumpLabel | place.StaticCall | place.Ftrace

// withOwnedText refuses, before an ISA's own rules are asked, probes on text
// that belongs to someone else. It completes the profile isa.
func withOwnedText(own Profile) Profile { return &ownedProfile{own} }

type ownedProfile struct{ Profile }

func (p *ownedProfile) Func(dst []Verdict, f *Func) []Verdict {
	base := len(dst)
	dst = p.Profile.Func(dst, f)
	for _, m := range f.Marks {
		if m.Kind&ownedKinds == 0 {
			continue
		}
		for i := decode.From(f.Insts, m.Addr); i < len(f.Insts) && f.Insts[i].Addr < m.End(); i++ {
			dst[base+i] = ownedVerdict(m)
		}
	}
	settlePlaces(dst[base:], f.Insts)
	return dst
}

func (p *ownedProfile) At(f *Func, addr uint64) Verdict {
	v := p.Profile.At(f, addr)
	for _, m := range f.Marks {
		if m.Kind&ownedKinds != 0 && m.Addr <= addr && addr < m.End() {
			v = ownedVerdict(m)
		}
	}
	return settledAt(p, f, v)
}

func ownedVerdict(m place.Mark) (v Verdict) {
	for i := range ownedRules {
		if o := &ownedRules[i]; m.Kind&o.kind != 0 {
			v = Verdict{Rule: &o.rule, Culprit: m.Addr}
			if o.kind != place.Data {
				v.Instead = m.End()
			}
			break
		}
	}
	return v
}
