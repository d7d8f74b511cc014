package compare_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xol/analyze"
	"xol/compare"
	"xol/image"
	"xol/internal/refdata"
	"xol/internal/skip"
)

//go:generate sh -c "cd testdata && ./generate.sh"

func open(t testing.TB, path string, opt analyze.Options) *analyze.Analysis {
	t.Helper()
	img, err := image.OpenFile(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	opt.Optimize = true
	an, err := analyze.New(img, opt)
	if err != nil {
		t.Fatal(err)
	}
	return an
}

func fixture(name string) string { return filepath.Join("testdata", name+".elf") }

// outcome is a comparison in words: a line for each function that is not the same, in
// order.
type outcome struct {
	lines  []string
	totals compare.Totals
}

func outcomeOf(t testing.TB, a, b *analyze.Analysis) (o outcome) {
	t.Helper()
	c, err := compare.New(a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = compare.Gather(t.Context(), c, func(part *outcome, f *compare.Function) {
		part.totals.Add(f)
		checkPairs(t, f)
		if f.Status != compare.Same {
			part.lines = append(part.lines, describe(f))
		}
	}, func(part *outcome) error {
		o.lines = append(o.lines, part.lines...)
		o.totals.Merge(&part.totals)
		*part = outcome{}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	o.totals.Rank()
	return o
}

func describe(f *compare.Function) string {
	line := f.Status.String() + " " + f.Name()
	if f.B != nil && f.B.Function.Name != f.Name() {
		line += " " + f.B.Function.Name
	}
	n := f.Insts
	line += fmt.Sprintf(" %d %d %d %d", n.Same, n.Altered, n.Added, n.Removed)
	for _, c := range f.Changes {
		line += fmt.Sprintf(" %v:%v%s>%v%s", c.Question, c.Before.Yes, c.Before.ID, c.After.Yes, c.After.ID)
	}
	return line
}

// checkPairs looks whether each instruction is in one pair, in order.
func checkPairs(t testing.TB, f *compare.Function) {
	a, b := 0, 0
	for _, p := range f.Pairs {
		if p.A >= 0 && p.A != a || p.B >= 0 && p.B != b || p.A < 0 && p.B < 0 || p.Same && (p.A < 0 || p.B < 0) {
			t.Errorf("%s: pair %v comes after %d and %d instructions", f.Name(), p, a, b)
		}
		if p.A >= 0 {
			a++
		}
		if p.B >= 0 {
			b++
		}
	}
	if f.A != nil && a != len(f.A.Insts) || f.B != nil && b != len(f.B.Insts) {
		t.Errorf("%s: %d and %d instructions are in pairs", f.Name(), a, b)
	}
}

// What the sources of the fixtures say. The numbers are of instructions: the same,
// altered, added, removed.
var builds = map[string][]string{
	"amd64": {
		"removed gone 0 0 0 2",
		"moved moved 6 0 0 0",
		"changed changed 4 1 1 1",
		"changed answers 5 0 1 0 jump:true>falseamd64/region-jump-target jump:falseamd64/region-beyond-function>true",
		"moved helper.constprop.0 helper.constprop.1 2 0 0 0",
		"moved split.isra.0 split 2 0 0 0",
		"moved split.isra.0.cold split.cold 1 0 0 0",
		"moved near1 1 0 0 0",
		"moved twin 1 0 0 0",
		"moved near3 1 0 0 0",
		"moved twin 3 0 0 0",
		"added fresh 0 0 3 0",
		"added near2 0 0 1 0",
		"added twin 0 0 2 0",
	},
	"arm64": {
		"removed gone 0 0 0 2",
		"moved moved 5 0 0 0",
		"changed changed 3 1 1 1",
		"changed answers 3 0 1 1 probe:true>falsearm64/exclusive boost:true>false jump:true>falsearm64/exclusive",
		"moved helper.constprop.0 helper.constprop.1 2 0 0 0",
		"moved split.isra.0 split 2 0 0 0",
		"moved split.isra.0.cold split.cold 1 0 0 0",
		"moved near1 1 0 0 0",
		"moved twin 1 0 0 0",
		"moved near3 1 0 0 0",
		"moved twin 3 0 0 0",
		"added fresh 0 0 3 0",
		"added near2 0 0 1 0",
		"added twin 0 0 2 0",
	},
	"ppc64le": {
		"removed gone 0 0 0 2",
		"moved moved 5 0 0 0",
		"changed changed 4 1 1 1",
		"changed answers 3 0 1 1 probe:true>falseppc64/reservation boost:true>false jump:true>falseppc64/reservation",
		"moved helper.constprop.0 helper.constprop.1 2 0 0 0",
		"moved split.isra.0 split 2 0 0 0",
		"moved split.isra.0.cold split.cold 1 0 0 0",
		"moved near1 1 0 0 0",
		"moved twin 1 0 0 0",
		"moved near3 1 0 0 0",
		"moved twin 3 0 0 0",
		"added fresh 0 0 3 0",
		"added near2 0 0 1 0",
		"added twin 0 0 2 0",
	},
}

func TestBuilds(t *testing.T) {
	builds := builds
	builds["ppc64"] = builds["ppc64le"]
	for isa, want := range builds {
		t.Run(isa, func(t *testing.T) {
			got := outcomeOf(t, open(t, fixture(isa+"-before"), analyze.Options{}), open(t, fixture(isa+"-after"), analyze.Options{}))
			if !slices.Equal(got.lines, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got.lines, "\n"), strings.Join(want, "\n"))
			}
			if got.totals.Same() || got.totals.SameAnswers() {
				t.Error("they are said to be the same")
			}
		})
	}
}

// TestStripped compares the same builds without names. Where a function starts is
// told by .eh_frame.
func TestStripped(t *testing.T) {
	a, b := open(t, fixture("amd64-before-stripped"), analyze.Options{}), open(t, fixture("amd64-after-stripped"), analyze.Options{})
	got := outcomeOf(t, a, b)
	for i, want := range builds["amd64"] {
		// The status is the first word; the counts come after the names.
		status := strings.Fields(want)[0]
		counts := want[strings.Index(want, " "+digitsOf(want)):]
		if i >= len(got.lines) || !strings.HasPrefix(got.lines[i], status) || !strings.HasSuffix(got.lines[i], counts) {
			t.Errorf("line %d of\n%s\nwant %q", i, strings.Join(got.lines, "\n"), want)
		}
	}
}

func digitsOf(line string) string {
	for word := range strings.FieldsSeq(line) {
		if strings.Trim(word, "0123456789") == "" {
			return word
		}
	}
	return ""
}

func TestSame(t *testing.T) {
	for _, isa := range []string{"amd64", "arm64", "ppc64", "ppc64le"} {
		a := open(t, fixture(isa+"-before"), analyze.Options{})
		if got := outcomeOf(t, a, a); len(got.lines) > 0 || !got.totals.Same() {
			t.Errorf("%s: a file is not the same as itself: %q", isa, got.lines)
		}
	}
}

// TestProfiles compares one file by two profiles. The first byte of a ret cannot be
// taken for anything else, but hlt, ud2 and others are refused by uprobes only.
func TestProfiles(t *testing.T) {
	path := fixture("arm64-before")
	got := outcomeOf(t, open(t, path, analyze.Options{Profile: "isa"}), open(t, path, analyze.Options{Profile: "uprobe-linux-6.12"}))
	if got.totals.Functions[compare.Same] == 0 || got.totals.Answers[compare.Jump].Lost == 0 || got.totals.Insts.Altered != 0 {
		t.Errorf("functions %v, answers %v", got.totals.Functions, got.totals.Answers)
	}
	n := 0
	for _, s := range got.totals.Shifts {
		if s.Question == compare.Jump {
			n += s.Count
		}
	}
	jumps := got.totals.Answers[compare.Jump]
	if n != jumps.Gained+jumps.Lost+jumps.Other {
		t.Errorf("%d shifts of %v", n, jumps)
	}
}

func TestOtherArchitecture(t *testing.T) {
	_, err := compare.New(open(t, fixture("arm64-before"), analyze.Options{}), open(t, fixture("amd64-before"), analyze.Options{}), nil)
	var arch *compare.ArchError
	if !errors.As(err, &arch) || arch.A != "arm64" || arch.B != "amd64" {
		t.Errorf("error %v", err)
	}
}

func TestKeep(t *testing.T) {
	a := open(t, fixture("amd64-before"), analyze.Options{})
	c, err := compare.New(a, a, func(f *image.Function) bool { return f.Name == "moved" })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	err = compare.Gather(t.Context(), c, func(list *[]string, f *compare.Function) { *list = append(*list, f.Name()) }, func(list *[]string) error {
		names = append(names, *list...)
		return nil
	})
	if err != nil || !slices.Equal(names, []string{"moved"}) || c.Size() == 0 {
		t.Errorf("%v of %d bytes, error %v", names, c.Size(), err)
	}
}

func TestCanceled(t *testing.T) {
	a := open(t, fixture("amd64-before"), analyze.Options{})
	c, err := compare.New(a, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := compare.Gather(ctx, c, func(*int, *compare.Function) {}, func(*int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestKernels compares two kernels of more than 100,000 functions in little time.
func TestKernels(t *testing.T) {
	skip.Long(t, "two kernels compared")
	var an [2]*analyze.Analysis
	for i, name := range []string{"amd64.vmlinux.xz", "amd64-7.3.4.vmlinux.xz"} {
		path, err := refdata.Beside("kernels", name)
		if err != nil {
			skip.Missing(t, "../shared", err)
		}
		an[i] = open(t, path, analyze.Options{})
	}
	start := time.Now()
	got := outcomeOf(t, an[0], an[1])
	took := time.Since(start)
	if n := got.totals.Functions; n[compare.Moved] < 40_000 || n[compare.Removed] > 10_000 {
		t.Errorf("functions %v", n)
	}
	if got.totals.Insts.Same < 2_000_000 {
		t.Errorf("instructions %+v", got.totals.Insts)
	}
	if took > time.Minute {
		t.Errorf("it took %v", took)
	}
	t.Logf("%v, %v", took, got.totals.Functions)
}
