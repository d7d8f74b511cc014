package analyze

import (
	"bytes"
	"slices"

	"xol/arch"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/kconfig"
	"xol/kernel"
	"xol/optcheck"
	"xol/registration"
)

// Identify returns what a kernel or module says of itself: the zero value for other
// files.
func Identify(img *image.Image) kernel.Identity {
	if magic := img.Vermagic(); magic != "" {
		return kernel.FromVermagic(magic)
	}
	return kernel.FromBanner(img.Banner())
}

// detect completes what is known of the kernel with what its file tells.
func detect(img *image.Image, isa arch.ISA, known kernel.Facts) (kernel.Facts, error) {
	known.Arch = isa.Name()
	if known.Release == "" && known.Version == 0 {
		known.Identity = Identify(img)
	}
	if known.Config == nil {
		if err := readEmbedded(img, &known); err != nil {
			return known, err
		}
	}
	// What names a kernel has tells how it was built, where they are all of a kernel
	// that has kprobes.
	if img.Kind() == image.KindKernel && known.HasSymbol == nil && img.SymbolCount("register_kprobe") > 0 {
		known.HasSymbol = func(name string) bool { return img.SymbolCount(name) > 0 }
	}
	return known, known.Check()
}

// readEmbedded takes the configuration that a kernel carries.
func readEmbedded(img *image.Image, known *kernel.Facts) error {
	packed, ok := img.EmbeddedConfig()
	if !ok {
		return nil
	}
	config, err := kconfig.Read(bytes.NewReader(packed))
	if err != nil {
		return &image.FormatError{What: "cannot read the configuration in the kernel", Err: err}
	}
	known.Config = config
	return nil
}

// DefaultProfile returns the name of the profile for a file whose kernel is known:
// that of the kernel's version.
func DefaultProfile(k image.Kind, v classify.Version) string {
	switch {
	case k != image.KindKernel && k != image.KindModule:
		return classify.ISA
	case v == 0:
		return classify.Linux612
	}
	return classify.ProfileName(classify.Kprobes, v)
}

// mechanismOf returns whose rules judge a file of that kind by a profile, whose name
// may be empty for the default.
func mechanismOf(profile string, k image.Kind) classify.Mechanism {
	if profile == "" {
		profile = DefaultProfile(k, 0)
	}
	m, _, _ := classify.ParseProfile(profile)
	return m
}

// orOldest returns the name of a profile, or of the oldest one of its kind where it is
// older than all of which the answers are known.
func orOldest(isa arch.ISA, name string) string {
	if _, ok := isa.Profile(name, classify.KernelOptions{}); ok {
		return name
	}
	m, _, _ := classify.ParseProfile(name)
	for _, known := range isa.Profiles() { // by version
		if is, _, _ := classify.ParseProfile(known); is == m {
			return known
		}
	}
	return name
}

// kernelOptions returns what the kernel's profiles have to know, symbols included.
func kernelOptions(img *image.Image, f *kernel.Facts) classify.KernelOptions {
	o := f.Options()
	o.Module = img.Kind() == image.KindModule
	o.Symbol = img.SymbolAddress
	return o
}

// Assumed returns the options that the profile's rules may ask about and that are
// neither found nor given: they are taken to be Debian's. None where the profile is
// no kernel's.
func (a *Analysis) Assumed(via registration.Via) []kernel.Setting {
	if m, _, _ := classify.ParseProfile(a.Profile.Name()); m != classify.Kprobes {
		return nil
	}
	return a.Kernel.Assumed(via)
}

// DependsOn returns those of the assumed options that the answer to q depends on, a
// probe at addr in the judged function r: with another value it would be another.
func (a *Analysis) DependsOn(r *Result, addr uint64, via registration.Via, q *Request) []kernel.Setting {
	want, wantJump := a.verdictsOf(r, addr)
	return slices.DeleteFunc(a.Assumed(via), func(s kernel.Setting) bool {
		b := a.with(s)
		got, gotJump := b.verdictsOf(r, addr)
		return got == want && gotJump == wantJump && a.Registration(r, via, q) == b.Registration(r, via, q)
	})
}

// with returns the analysis with the opposite of a setting.
func (a *Analysis) with(s kernel.Setting) *Analysis {
	facts := a.Kernel.Flipped(s)
	opt := kernelOptions(a.Image, &facts)
	b := &Analysis{Image: a.Image, ISA: a.ISA, Kernel: facts, Missing: a.Missing, marks: a.marks, boot: a.boot, armed: a.armed}
	b.interfaces = facts.Registration()
	b.Profile, _ = a.ISA.Profile(a.Profile.Name(), opt)
	b.Profile = classify.WithGaps(b.Profile, gaps(a.Missing), a.ISA.Align())
	if a.Optimizer != nil {
		b.Optimizer, _ = a.ISA.Optimizer(a.Profile.Name(), opt)
	}
	return b
}

// verdictsOf judges a probe at addr in a function that has been read.
func (a *Analysis) verdictsOf(r *Result, addr uint64) (v classify.Verdict, jump optcheck.Verdict) {
	v = a.Profile.At(&r.Func, addr)
	if a.Optimizer == nil || !v.OK() {
		return v, jump
	}
	again := Result{Func: r.Func, Verdicts: a.Profile.Func(nil, &r.Func)}
	all := a.Optimizer.Func(nil, a.optimizable(&again, nil), &again.scratch)
	if i, start := decode.Find(r.Insts, max(addr, v.MovedTo)); start && i < len(all) {
		jump = all[i]
	}
	return v, jump
}
