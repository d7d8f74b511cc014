package classify

import (
	"xol/decode"
	"xol/place"
)

// The checks that Linux makes on every architecture before the architecture's
// own ones [kernel/kprobes.c, check_kprobe_address_safe]. The first that
// applies decides.
var kernelRules = [...]struct {
	kind place.Kind
	rule Rule
}{
	{place.OutsideText, Rule{"linux/outside-text", EINVAL,
		"this lies outside the bounds of the kernel's text, so the kernel does not take it for code of its own", ""}},
	{place.EntryText, Rule{"linux/entry-text", EINVAL,
		"this is entry code, which runs before the kernel can handle a breakpoint",
		"probe the C function that the entry code calls"}},
	{place.Blacklist, Rule{"linux/blacklist", EINVAL,
		"the kernel itself forbids probes here: this code runs while a probe is being handled",
		"probe a caller, or a function that this one calls, outside the blacklist"}},
	{place.InitText, Rule{"linux/init-text", EINVAL,
		"this is init text, which the kernel frees at the end of booting",
		"set the probe on the kernel's command line (kprobe_event=) if it is to be hit while booting"}},
	{place.JumpLabel, Rule{"linux/jump-label", EINVAL,
		"this is a jump-label site, which the kernel patches while it runs",
		"probe the instruction after the site"}},
	{place.StaticCall, Rule{"linux/static-call", EINVAL,
		"this is a static-call site, which the kernel patches while it runs",
		"probe the instruction after the site, or the function that is called"}},
	{place.Bug, Rule{"linux/bug", EINVAL,
		"this is the trapping instruction of a BUG() or WARN(), which the kernel recognises by its address",
		"probe the instruction before it"}},
	{place.CFIPreamble, Rule{"linux/cfi-preamble", EINVAL,
		"this is the preamble that a control-flow check reads before a function",
		"probe the function itself"}},
}

// OutsideText is the rule by which Linux refuses probes on what is not its text, such as
// data.
func OutsideText() *Rule { return &kernelRules[0].rule }

// moduleInit replaces init-text for the text of a module.
var moduleInit = Rule{"linux/module-init-text", ENOENT,
	"this is a module's init text, which the kernel frees when the module is loaded",
	"register the probe before the module is loaded, with symbol and offset"}

// ftraceRefused applies where kprobes cannot use ftrace.
var ftraceRefused = Rule{"linux/ftrace-site", EINVAL,
	"this is an ftrace site, which the kernel patches while it runs, and kprobes cannot use ftrace on this architecture",
	"probe the instruction after it, or use a function-entry event (fprobe)"}

const (
	kernelKinds = place.OutsideText | place.Blacklist | place.EntryText | place.InitText | place.JumpLabel |
		place.StaticCall | place.Bug | place.CFIPreamble | place.Ftrace

	// These speak of one address, the others of every byte of their range.
	exactKinds = place.Bug | place.Ftrace
)

// withKernelChecks puts the checks that Linux makes on every architecture before
// an ISA's own rules.
func withKernelChecks(own Profile, opt KernelOptions) Profile {
	return &kernelProfile{own, opt}
}

type kernelProfile struct {
	Profile
	opt KernelOptions
}

func (p *kernelProfile) Func(dst []Verdict, f *Func) []Verdict {
	base := len(dst)
	dst = p.Profile.Func(dst, f)
	verdicts := dst[base:]
	if len(verdicts) == 0 {
		return dst
	}
	to := verdicts[0].MovedTo // only a probe at the entry is ever moved
	for _, m := range f.Marks {
		if m.Kind&kernelKinds != 0 {
			p.applyRange(verdicts, f.Insts, m)
		}
	}
	settlePlaces(verdicts, f.Insts)
	if i, start := decode.Find(f.Insts, to); start {
		verdicts[0] = moved(verdicts[i], to)
	}
	return dst
}

func (p *kernelProfile) At(f *Func, addr uint64) Verdict {
	v := p.Profile.At(f, addr)
	if to := v.MovedTo; to != 0 && to != addr {
		return moved(p.At(f, to), to)
	}
	for _, m := range f.Marks {
		if m.Addr <= addr && addr < m.End() {
			kind := m.Kind
			if addr != m.Addr {
				kind &^= exactKinds
			}
			p.apply(&v, &m, kind, firstRule(kind))
		}
	}
	return settledAt(p, f, v)
}

// applyRange applies what m says to the instructions that start in its range.
func (p *kernelProfile) applyRange(verdicts []Verdict, insts []decode.Inst, m place.Mark) {
	i := decode.From(insts, m.Addr)
	if i < len(insts) && insts[i].Addr == m.Addr {
		p.apply(&verdicts[i], &m, m.Kind, firstRule(m.Kind))
		i++
	}
	inside := m.Kind &^ exactKinds
	if inside&kernelKinds == 0 {
		return
	}
	for rule, end := firstRule(inside), m.End(); i < len(insts) && insts[i].Addr < end; i++ {
		p.apply(&verdicts[i], &m, inside, rule)
	}
}

// firstRule returns the index in kernelRules of the first one about any of the kinds,
// or their number.
func firstRule(kinds place.Kind) int {
	for i := range kernelRules {
		if kinds&kernelRules[i].kind != 0 {
			return i
		}
	}
	return len(kernelRules)
}

// apply changes the verdict on an address in m's range, of which kind says what holds
// there. first is the first of kernelRules that applies.
func (p *kernelProfile) apply(v *Verdict, m *place.Mark, kind place.Kind, first int) {
	r := rank(v.Rule)
	if first < r {
		k := &kernelRules[first]
		*v = Verdict{Rule: &k.rule, Culprit: m.Addr}
		if p.opt.Module && k.kind == place.InitText {
			v.Rule = &moduleInit
		}
		if k.kind&(place.JumpLabel|place.StaticCall) != 0 {
			v.Instead = m.End()
		}
		return
	}
	if kind&place.Ftrace == 0 || r < len(kernelRules) {
		return
	}
	if p.opt.FtraceProbes {
		*v = Verdict{Exec: ExecFtrace}
	} else {
		*v = Verdict{Rule: &ftraceRefused, Culprit: m.Addr, Instead: m.End()}
	}
}

// rank returns the place of r in kernelRules, or its length.
func rank(r *Rule) int {
	if r == nil {
		return len(kernelRules)
	}
	for i := range kernelRules {
		k := &kernelRules[i]
		if r == &k.rule || r == &moduleInit && k.kind == place.InitText {
			return i
		}
	}
	return len(kernelRules)
}

// moved returns v, the verdict on the address to, as that of a probe asked for
// elsewhere.
func moved(v Verdict, to uint64) Verdict {
	v.MovedTo = to
	return v
}
