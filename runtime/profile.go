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

// kernelAnswer is what a kernel's rules say of a probe at an address.
type kernelAnswer struct {
	rule  *classify.Rule // that refuses it; nil where none does
	addr  uint64         // where it goes: after a landing pad, for one
	boost bool           // the kernel boosts the copy of the instruction there
	jump  bool           // and makes the breakpoint a jump
}

// checkProfile makes sure that there are the rules that the options name.
func (r *texts) checkProfile() error {
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

func (r *texts) kernelOptions() classify.KernelOptions {
	f := r.opt.KernelFacts
	f.Arch = r.isa.Name()
	if f.Version == 0 {
		_, f.Version, _ = classify.ParseProfile(r.opt.Profile)
	}
	return f.Options()
}

// loadRules finds the rules that decide where probes of an image may be.
func (r *texts) loadRules(im *Module, img *image.Image) (err error) {
	switch name := r.opt.Profile; {
	case r.opt.Uprobes && name == "":
		im.rules, _ = r.isa.Profile(classify.Uprobe612, classify.KernelOptions{})
	case r.opt.Uprobes:
		im.rules, _ = r.isa.Profile(name, r.kernelOptions())
	case name != "" && name != classify.ISA:
		opt := analyze.Options{Profile: name, Kernel: r.opt.KernelFacts, Optimize: true, AsFile: true}
		im.kernel = new(kernelRules)
		im.kernel.analysis, err = analyze.New(img, opt)
	}
	return err
}

// askKernel returns what the kernel's rules say of addr, as it stands in memory; all is
// allowed where there are none.
func (r *texts) askKernel(im *Module, addr uint64) kernelAnswer {
	if im.kernel == nil {
		return kernelAnswer{addr: addr, boost: true, jump: true}
	}
	k := im.kernel
	res := r.judgeAsKernel(im, addr-im.bias)
	if res == nil {
		return kernelAnswer{addr: addr, rule: &ruleNotText}
	}
	v := k.analysis.Profile.At(&res.Func, addr-im.bias)
	if !v.OK() {
		return kernelAnswer{addr: addr, rule: v.Rule}
	}
	at := addr - im.bias
	if v.MovedTo != 0 {
		at = v.MovedTo
		v = k.analysis.Profile.At(&res.Func, at)
	}
	answer := kernelAnswer{addr: at + im.bias, boost: v.Boosted}
	if i, start := decode.Find(res.Insts, at); start && len(res.Optimize) > 0 {
		answer.jump = res.Optimize[i].OK() && res.Optimize[i].Region != 0
	}
	return answer
}

// judgeAsKernel returns the judged function of the kernel's that holds an address of the
// file, as it stands in memory; nil where there is none.
func (r *texts) judgeAsKernel(im *Module, at uint64) *analyze.Result {
	k := im.kernel
	if k.judged == nil || at-k.judged.Addr >= uint64(len(k.judged.Code)) {
		f, found := k.analysis.FunctionAt(at)
		if !found {
			return nil
		}
		k.judged = k.analysis.Judge(f)
	}
	if k.judged.Err == nil {
		if code := r.textOf(im, k.judged); !bytes.Equal(code, k.judged.Code) {
			k.judged = k.analysis.JudgeText(k.judged.Function, code)
		}
	}
	if k.judged.Err != nil {
		return nil
	}
	return k.judged
}

// judgeSite asks the rules about an instruction, those of the kernel too, whose answer
// is known where it is about the same address. It returns the rule that refuses a probe
// there, if one does, and the verdict that the image's own rules give.
func (r *texts) judgeSite(im *Module, addr uint64, known *kernelAnswer) (j judgement, v classify.Verdict, refused *classify.Rule) {
	res, ok := r.judge(im, addr)
	if !ok {
		return j, v, &ruleNotText
	}
	if v = im.rules.At(&res.Func, addr-im.bias); !v.OK() {
		return j, v, v.Rule
	}
	if i, start := decode.Find(res.Insts, addr-im.bias); start {
		j = judgement{region: res.Optimize[i], boost: res.Verdicts[i].Boost}
		if r.opt.Uprobes {
			r.restrict(&j, &res.Insts[i])
		}
	}
	var answer kernelAnswer
	if known != nil && known.addr == addr {
		answer = *known
	} else {
		answer = r.askKernel(im, addr)
	}
	if answer.rule != nil {
		return j, v, answer.rule
	}
	here := answer.addr == addr
	j.boost = j.boost && here && answer.boost
	if !here || !answer.jump {
		j.region = optcheck.Verdict{}
	}
	return j, v, nil
}

// restrict makes a judgement what uprobes know: no boost, no jump but in the place of a
// NOP.
func (r *texts) restrict(j *judgement, inst *decode.Inst) {
	j.boost = false
	if !r.opt.OptimizeNops || !bytes.Equal(inst.Bytes(), r.isa.EntryNop()) {
		j.region.Region = 0
	}
}
