package analyze_test

import (
	"slices"
	"testing"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/optcheck"
)

// bootedKernels are the kernels whose running text is known, by the names of their
// files, and the boots of each that were looked at.
var bootedKernels = []struct {
	file  string
	boots []string
}{
	{"amd64-5.10.218", []string{"amd64-5.10.218"}},
	{"amd64-6.1.176", []string{"amd64-6.1.176", "amd64-6.1.176-nomitig"}},
	{"amd64", []string{"amd64"}},
	{"amd64-7.3.4", []string{"amd64-7.3.4", "amd64-7.3.4-nomitig"}},
	{"arm64-5.10.218", []string{"arm64-5.10.218"}},
	{"arm64-6.1.176", []string{"arm64-6.1.176"}},
	{"arm64", []string{"arm64"}},
	{"arm64-7.3.4", []string{"arm64-7.3.4"}},
	{"ppc64el-6.1.176", []string{"ppc64el-6.1.176"}},
	{"ppc64el", []string{"ppc64el"}},
	{"ppc64el-7.3rc7", []string{"ppc64el-7.3rc7"}},
}

// rooms are what kernels for ppc64 fill with stubs and detour buffers.
var rooms = []string{"optinsn_slot", "ftrace_tramp_text", "ftrace_ool_stub_text", "ftrace_ool_stub_text_end"}

// TestVerdictsHoldForTheRunningText compares the verdicts on every instruction of
// part of a kernel's file with those on the text of a machine that has booted it: where
// they differ, they say that they depend on the machine.
func TestVerdictsHoldForTheRunningText(t *testing.T) {
	for _, k := range bootedKernels {
		t.Run(k.file, func(t *testing.T) {
			img, err := image.OpenFile(refdata.Full(t, "kernels", k.file+".vmlinux.xz"), image.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			a, err := analyze.New(img, analyze.Options{Optimize: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, boot := range k.boots {
				t.Run(boot, func(t *testing.T) { checkBoot(t, a, readPatches(t, boot)) })
			}
		})
	}
}

// checkBoot compares the verdicts on every eighth function with those on its text
// after a boot.
func checkBoot(t *testing.T, a *analyze.Analysis, patches patches) {
	const each = 8
	var c bootComparison
	for i, f := range a.Functions() {
		if i%each != 0 || slices.Contains(rooms, f.Name) {
			continue
		}
		if r := a.Judge(f); r.Err == nil {
			c.compare(t, a, r, patches)
		}
	}
	if c.differ == 0 {
		t.Error("no verdict depends on the machine")
	}
	t.Logf("%d instructions, %d with a booted text, %d said to depend, %d of them do; %d wrong", c.insts, c.patched, c.depend, c.differ, c.wrong)
}

// bootComparison counts what was compared.
type bootComparison struct {
	insts, patched, depend, differ, wrong int
	scratch                               optcheck.Scratch
}

func (c *bootComparison) compare(t *testing.T, a *analyze.Analysis, r *analyze.Result, patches patches) {
	code := fileCode(t, a, r)
	patches.apply(code, r.Addr)
	ran := classify.Func{Name: r.Name, Addr: r.Addr, Code: code, Insts: decode.Sweep(a.ISA, nil, code, r.Addr), Marks: r.Marks}
	verdicts := a.Profile.Func(nil, &ran)
	jumps := a.Optimizer.Func(nil, &optcheck.Function{Func: &ran, Verdicts: verdicts}, &c.scratch)
	for i := range r.Insts {
		v, jump := &r.Verdicts[i], &r.Optimize[i]
		c.insts++
		if r.Boot(i) != analyze.BootKept {
			c.patched++
		}
		said := v.Depends || jump.Depends
		if said {
			c.depend++
		}
		what := ""
		j, start := decode.Find(ran.Insts, r.Insts[i].Addr)
		var w classify.Verdict
		if start {
			w = verdicts[j]
		} else {
			w = a.Profile.At(&ran, r.Insts[i].Addr)
		}
		if archtest.Errno(v) != archtest.Errno(&w) || v.Exec != w.Exec || v.MovedTo != w.MovedTo || v.Hazard != w.Hazard {
			what = "probe " + archtest.RuleID(w.Rule) + " " + w.Exec.String()
		} else if start && jump.Region != jumps[j].Region {
			what = "jump " + archtest.JumpText(&jumps[j])
		}
		if what == "" {
			continue
		}
		if said {
			c.differ++
		} else if c.wrong++; c.wrong < 40 {
			t.Errorf("%s+%#x: %s (%s), %s; in the running text %s", r.Name, r.Insts[i].Addr-r.Addr, archtest.RuleID(v.Rule), v.Exec, archtest.JumpText(jump), what)
		}
	}
}
