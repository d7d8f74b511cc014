package analyze_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
)

// fixtures are small ELF files, one of a kind and ISA each.
func fixture(t *testing.T, name string, opt analyze.Options) *analyze.Analysis {
	t.Helper()
	img, err := image.OpenFile(filepath.Join("..", "image", "testdata", "elf", name), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	a, err := analyze.New(img, opt)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var targets = []string{"amd64", "arm64", "ppc64", "ppc64le"}

// judged is what is compared of a result: copies, since a Result is valid only
// during the call.
type judged struct {
	name     string
	insts    []decode.Inst
	verdicts []classify.Verdict
}

func judgeAll(t *testing.T, a *analyze.Analysis) (all []judged) {
	t.Helper()
	err := analyze.Each(context.Background(), a, a.Functions(), func(r *analyze.Result) judged {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
		return judged{r.Name, append([]decode.Inst(nil), r.Insts...), append([]classify.Verdict(nil), r.Verdicts...)}
	}, func(j judged) error {
		all = append(all, j)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEachIsInOrderWhateverTheWorkers(t *testing.T) {
	for _, target := range targets {
		for _, file := range []string{"functions." + target, "module." + target + ".ko", "kernel." + target} {
			t.Run(file, func(t *testing.T) {
				one := judgeAll(t, fixture(t, file, analyze.Options{Workers: 1}))
				a := fixture(t, file, analyze.Options{Workers: 5})
				if many := judgeAll(t, a); !reflect.DeepEqual(one, many) {
					t.Error("five workers give other results than one")
				}
				for i, f := range a.Functions() {
					if one[i].name != f.Name {
						t.Fatalf("result %d is %s, want %s", i, one[i].name, f.Name)
					}
					if r := a.Judge(f); !reflect.DeepEqual(one[i].verdicts, append([]classify.Verdict(nil), r.Verdicts...)) {
						t.Errorf("%s: Judge gives other verdicts than Each", f.Name)
					}
				}
			})
		}
	}
}

func TestEveryInstructionHasAVerdict(t *testing.T) {
	for _, target := range targets {
		for _, profile := range []string{classify.ISA, classify.Linux612, classify.Uprobe612} {
			for _, j := range judgeAll(t, fixture(t, "functions."+target, analyze.Options{Profile: profile})) {
				if len(j.insts) != len(j.verdicts) {
					t.Fatalf("%s %s %s: %d instructions, %d verdicts", target, profile, j.name, len(j.insts), len(j.verdicts))
				}
				for i := range j.verdicts {
					if v := &j.verdicts[i]; v.OK() == (v.Exec == classify.ExecNone) {
						t.Errorf("%s %s %s %#x: %+v", target, profile, j.name, j.insts[i].Addr, v)
					}
				}
			}
		}
	}
}

func TestEachEndsEarly(t *testing.T) {
	a := fixture(t, "functions.amd64", analyze.Options{Workers: 3})
	nothing := func(*analyze.Result) int { return 0 }

	stop := errors.New("stop")
	calls := 0
	err := analyze.Each(context.Background(), a, a.Functions(), nothing, func(int) error {
		calls++
		return stop
	})
	if err != stop || calls != 1 {
		t.Errorf("emit's error: got %v after %d calls", err, calls)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := analyze.Each(ctx, a, a.Functions(), nothing, func(int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestCallWithARelocationIsNoCallToItself(t *testing.T) {
	for _, target := range targets {
		t.Run(target, func(t *testing.T) {
			external := 0
			for _, j := range judgeAll(t, fixture(t, "relocs."+target+".o", analyze.Options{})) {
				for i := range j.insts {
					inst := &j.insts[i]
					if !inst.Has(decode.External) || inst.Flow != decode.FlowCall {
						continue
					}
					external++
					if inst.Target >= inst.Addr && inst.Target <= inst.Next() {
						t.Errorf("%s: the call at %#x goes to %#x", j.name, inst.Addr, inst.Target)
					}
				}
			}
			if external == 0 {
				t.Error("no call to an undefined symbol in the fixture")
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	for file, want := range map[string]string{
		"functions.amd64": classify.ISA, "module.amd64.ko": classify.Linux612, "kernel.amd64": classify.Linux612,
	} {
		if got := fixture(t, file, analyze.Options{}).Profile.Name(); got != want {
			t.Errorf("%s: profile %s, want %s", file, got, want)
		}
	}
}

func TestUnknownProfile(t *testing.T) {
	img, err := image.OpenFile(filepath.Join("..", "image", "testdata", "elf", "functions.amd64"), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	var unknown *analyze.ProfileError
	if _, err := analyze.New(img, analyze.Options{Profile: "linux-2.4"}); !errors.As(err, &unknown) || unknown.Name != "linux-2.4" {
		t.Errorf("got %v", err)
	}
}

func TestFunctionAt(t *testing.T) {
	a := fixture(t, "functions.amd64", analyze.Options{})
	for _, f := range a.Functions() {
		for _, addr := range []uint64{f.Addr, f.Addr + f.Size - 1} {
			if got, ok := a.FunctionAt(addr); !ok || got.Name != f.Name {
				t.Errorf("%#x: got %s, %t, want %s", addr, got.Name, ok, f.Name)
			}
		}
	}
	if f, ok := a.FunctionAt(1); ok {
		t.Errorf("address 1 is in %s", f.Name)
	}
}

func TestSummaryCountsEveryInstructionOnce(t *testing.T) {
	a := fixture(t, "kernel.amd64", analyze.Options{})
	var total analyze.Summary
	for _, f := range a.Functions() {
		s := analyze.Summarize(a.Judge(f))
		total.Merge(&s)
	}
	total.Rank()
	reasons := 0
	for i, r := range total.Reasons {
		reasons += r.Count
		if i > 0 && r.Count > total.Reasons[i-1].Count {
			t.Error("reasons are not sorted by count")
		}
	}
	if total.Insts == 0 || total.Probeable+total.Refused != total.Insts ||
		total.Slot+total.Emulated+total.Ftrace != total.Probeable || reasons != total.Refused {
		t.Errorf("%+v", total)
	}
}
