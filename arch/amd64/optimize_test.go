package amd64

import (
	"fmt"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/internal/refdata"
	"xol/optcheck"
)

func TestKprobeOptimization(t *testing.T) {
	for sample, full := range kernelLists {
		t.Run(full, func(t *testing.T) { checkOptimization(t, sample) })
		t.Run("all of "+full, func(t *testing.T) { checkOptimization(t, fullList(t, "kernel-verdicts", full)) })
	}
}

// checkOptimization compares with what the kernel did with each probe.
func checkOptimization(t *testing.T, path string) {
	funcs, err := refdata.KernelVerdicts(path)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := ISA{}.Profile(classify.Linux612, classify.DebianOptions())
	o, _ := ISA{}.Optimizer(classify.Linux612, classify.DebianOptions())
	var s optcheck.Scratch
	count := map[bool]int{}
	for i := range funcs {
		kf := &funcs[i]
		f := kf.Func(ISA{}, siteLen)
		verdicts := o.Func(nil, &optcheck.Function{Func: f, Verdicts: p.Func(nil, f)}, &s)
		for j := range kf.Rows {
			row := &kf.Rows[j]
			n, start := decode.Find(f.Insts, f.Addr+row.Off)
			if !start {
				continue
			}
			v := &verdicts[n]
			if !row.AgreesOnJump(int(v.Region)) || (v.Rule != nil) != (row.Errno == 0 && !v.OK()) {
				t.Errorf("%s+%#x: got %s, want %+v", kf.Sym, row.Off, verdictText(v), row)
			}
			if row.Optimize != nil {
				count[*row.Optimize]++
			}
		}
	}
	t.Logf("%d functions, %d optimized, %d not", len(funcs), count[true], count[false])
}

func verdictText(v *optcheck.Verdict) string {
	if v.Rule == nil {
		return fmt.Sprintf("%d bytes, %d moved", v.Region, v.Moved)
	}
	return fmt.Sprintf("%s by %#x", v.Rule.ID, v.Culprit)
}
