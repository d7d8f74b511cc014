package analyze_test

import (
	"bytes"
	"testing"

	"xol/analyze"
	"xol/decode"
	"xol/internal/refdata"
	"xol/optcheck"
)

// optimizingKernels are the kernels that turn breakpoints into jumps, and the
// lists that were recorded on them. The one without mitigations ran other text
// than its runtime patches tell: the list gives it.
var optimizingKernels = []struct {
	kernel, list string
	patched      bool
}{
	{"amd64", "amd64", true},
	{"amd64", "amd64-nomitig", false},
	{"ppc64el", "ppc64el", true},
	{"amd64-5.10.218", "amd64-5.10.218", true},
	{"amd64-6.1.176", "amd64-6.1.176", true},
	{"amd64-6.1.176", "amd64-6.1.176-nomitig", false},
	{"amd64-7.3.4", "amd64-7.3.4", true},
	{"amd64-7.3.4", "amd64-7.3.4-nomitig", false},
	{"ppc64el-6.1.176", "ppc64el-6.1.176", true},
	{"ppc64el-7.3rc7", "ppc64el-7.3rc7", true},
}

// TestKernelFileGivesTheJumpsOfTheRunningKernel compares what the running
// kernel did with probes with what its file says, its text patched as booting
// patched it.
func TestKernelFileGivesTheJumpsOfTheRunningKernel(t *testing.T) {
	for _, k := range optimizingKernels {
		t.Run(k.list, func(t *testing.T) {
			t.Parallel()
			funcs, a := recordedKernel(t, k.kernel, k.list)
			var booted patches
			if k.patched {
				booted = readPatches(t, k.kernel)
			}
			compareJumps(t, a, funcs, booted)
		})
	}
}

func compareJumps(t *testing.T, a *analyze.Analysis, funcs []refdata.KernelFunc, booted patches) {
	t.Helper()
	var s optcheck.Scratch
	rows, jumps := 0, 0
	for i := range funcs {
		kf := &funcs[i]
		r, ok := judgeRecorded(t, a, kf)
		if !ok {
			continue
		}
		if booted != nil {
			r.Code = fileCode(t, a, r)
			booted.apply(r.Code, r.Addr)
		} else {
			copy(r.Code, kf.Text)
		}
		if !bytes.Equal(r.Code, kf.Text) {
			t.Errorf("%s: the patched text is not what ran", kf.Sym)
		}
		r.Insts = decode.Sweep(a.ISA, r.Insts[:0], r.Code, r.Addr)
		r.Verdicts = a.Profile.Func(r.Verdicts[:0], &r.Func)
		verdicts := a.Optimizer.Func(nil, &optcheck.Function{Func: &r.Func, Verdicts: r.Verdicts}, &s)
		for j := range kf.Rows {
			row := &kf.Rows[j]
			n, start := decode.Find(r.Insts, r.Addr+row.Off)
			if !start || !row.KnowsJump() {
				continue
			}
			v := &verdicts[n]
			rows++
			if v.OK() {
				jumps++
			}
			if !row.AgreesOnJump(int(v.Region)) {
				t.Errorf("%s+%#x: %+v, the kernel %+v", kf.Sym, row.Off, v, row)
			}
		}
	}
	t.Logf("%d functions, %d rows, %d jumps", len(funcs), rows, jumps)
}
