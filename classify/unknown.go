package classify

// Gaps is what is not known of a kernel that is to be judged.
type Gaps struct {
	Functions bool // where functions start and end
	Sites     bool // the blacklist, and the tables of sites that the kernel patches
}

// What cannot be judged for want of knowledge. No kernel answers so, and a
// probe may well be possible.
var unknownRules = [...]Rule{
	{"linux/unknown-functions", 0,
		"the file has no names, so it is not known where functions start and end, what the kernel's blacklist forbids, and which sites it patches",
		"give the kernel's System.map or /proc/kallsyms (--symbols)"},
	{"linux/unknown-blacklist", 0,
		"the file names functions but no data, so it is not known what the kernel's blacklist forbids and which sites it patches",
		"give the kernel's System.map or /proc/kallsyms (--symbols)"},
}

// Undecided reports whether v neither allows the probe nor refuses it, since
// too little is known.
func (v *Verdict) Undecided() bool {
	return v.Rule == &unknownRules[0] || v.Rule == &unknownRules[1]
}

// WithGaps judges by own as far as that is possible with what is known. A
// refusal stays that something known decides; align is that of instructions,
// which tells where they start where it is more than 1.
func WithGaps(own Profile, gaps Gaps, align int) Profile {
	switch {
	case gaps.Functions:
		return &gapProfile{own, &unknownRules[0], align > 1}
	case gaps.Sites:
		return &gapProfile{own, &unknownRules[1], true}
	}
	return own
}

type gapProfile struct {
	Profile
	rule *Rule
	// bounds: it is known where instructions start, so that refusals for what
	// they are hold.
	bounds bool
}

func (p *gapProfile) Func(dst []Verdict, f *Func) []Verdict {
	base := len(dst)
	dst = p.Profile.Func(dst, f)
	for i := base; i < len(dst); i++ {
		p.hold(&dst[i])
	}
	return dst
}

func (p *gapProfile) At(f *Func, addr uint64) Verdict {
	v := p.Profile.At(f, addr)
	p.hold(&v)
	return v
}

// hold takes back what v says unless it is certain.
func (p *gapProfile) hold(v *Verdict) {
	if !v.OK() && (p.bounds || bySite(v.Rule)) {
		return
	}
	*v = Verdict{Rule: p.rule}
}

// bySite reports whether a rule speaks of a place, not of the instruction
// there.
func bySite(r *Rule) bool {
	for i := range ownedRules {
		if r == &ownedRules[i].rule {
			return true
		}
	}
	return r == &ftraceRefused || rank(r) < len(kernelRules)
}
