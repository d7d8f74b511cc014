package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/optcheck"
)

// errProfile: the options ask for the rules of uprobes without being uprobes, or
// the other way round.
var errProfile = errors.New("runtime: a profile of uprobes goes with Options.Uprobes, and one of kprobes without")

// checkProfile makes sure that there are the rules that the options name.
func (r *Runtime) checkProfile() error {
	name := r.opt.Profile
	if name == "" {
		return nil
	}
	if _, ok := r.isa.Profile(name, r.kernelOptions()); !ok {
		return fmt.Errorf("runtime: %w", &analyze.ProfileError{Name: name})
	}
	if strings.HasPrefix(name, "uprobe-") != r.opt.Uprobes {
		return errProfile
	}
	return nil
}

func (r *Runtime) kernelOptions() classify.KernelOptions {
	if r.opt.ProfileOptions != nil {
		return *r.opt.ProfileOptions
	}
	return classify.DebianOptions()
}

// kernelRules judge an image's text as a version of the kernel does. Its functions
// are not those of the profile isa: they go on to the next symbol.
type kernelRules struct {
	analysis *analyze.Analysis
	judged   *analyze.Result // the function that was asked about last
}

// loadRules finds the rules that decide where probes of an image may be.
func (r *Runtime) loadRules(im *Image, img *image.Image) (err error) {
	switch name := r.opt.Profile; {
	case r.opt.Uprobes && name == "":
		im.rules, _ = r.isa.Profile(classify.Uprobe612, classify.KernelOptions{})
	case r.opt.Uprobes:
		im.rules, _ = r.isa.Profile(name, r.kernelOptions())
	case name != "" && name != classify.ISA:
		opt := analyze.Options{Profile: name, Kernel: r.opt.ProfileOptions, Optimize: true, AsFile: true}
		im.kernel = new(kernelRules)
		im.kernel.analysis, err = analyze.New(img, opt)
	}
	return err
}

// kernelVerdict is what a kernel's rules say of an address.
type kernelVerdict struct {
	classify.Verdict
	optimize optcheck.Verdict
}

// askKernel returns what the kernel's rules say of addr, as it stands in memory.
func (r *Runtime) askKernel(im *Image, addr uint64) (v kernelVerdict, ok bool) {
	k, at := im.kernel, addr-im.bias
	if k.judged == nil || at-k.judged.Addr >= uint64(len(k.judged.Code)) {
		f, found := k.analysis.FunctionAt(at)
		if !found {
			return v, false
		}
		k.judged = k.analysis.Judge(f)
	}
	if k.judged.Err != nil {
		return v, false
	}
	if code := r.textOf(im, k.judged); !bytes.Equal(code, k.judged.Code) {
		k.judged = k.analysis.JudgeText(k.judged.Function, code)
		if k.judged.Err != nil {
			return v, false
		}
	}
	v.Verdict = k.analysis.Profile.At(&k.judged.Func, at)
	if i, start := decode.Find(k.judged.Insts, at); start && len(k.judged.Optimize) > 0 {
		v.optimize = k.judged.Optimize[i]
	}
	return v, true
}

// placeAsKernel returns where a kernel puts a probe of addr. It returns a
// *RegisterError where it refuses it.
func (r *Runtime) placeAsKernel(p *Probe, im *Image, addr uint64) (uint64, error) {
	if im.kernel == nil {
		return addr, nil
	}
	v, ok := r.askKernel(im, addr)
	switch {
	case !ok:
		return addr, refuse(p, addr, &ruleNotText, nil)
	case !v.OK():
		return addr, refuse(p, addr, v.Rule, nil)
	case v.MovedTo != 0:
		return v.MovedTo + im.bias, nil
	}
	return addr, nil
}

// limitAsKernel leaves out what a kernel would not do with a probe at a site.
func (r *Runtime) limitAsKernel(s *site) {
	if s.image.kernel == nil {
		return
	}
	v, ok := r.askKernel(s.image, s.addr)
	s.mayBoost = s.mayBoost && ok && v.Boosted
	if !ok || !v.optimize.OK() || v.optimize.Region == 0 {
		s.region = optcheck.Verdict{}
	}
}
