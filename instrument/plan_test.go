package instrument

import (
	"context"
	"testing"

	"xol/analyze"
	"xol/classify"
	"xol/image"
)

// TestRefusals asks for what cannot be probed in one function: why is said for each, and
// what can be probed next to it is.
func TestRefusals(t *testing.T) {
	img, err := image.OpenFile("testdata/unreached.elf", image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	a, err := analyze.New(img, analyze.Options{Profile: classify.ISA, Optimize: true, AsFile: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlanner(a, testBias)
	if err != nil {
		t.Fatal(err)
	}
	start, err := img.Resolve("start")
	if err != nil {
		t.Fatal(err)
	}
	fn, ok := a.FunctionAt(start[0].Addr)
	if !ok {
		t.Fatal("no function")
	}
	places := []struct {
		name   string
		offset uint64
		rule   string
	}{
		{"its first instruction", 0, ""},
		{"in the middle of it", 2, "process/inside-instruction"},
		{"after a jump, where nothing leads to", 7, "process/not-known-as-code"},
		{"where the jump leads to", 11, ""},
	}
	var wants []Want
	for _, place := range places {
		wants = append(wants, Want{Addr: fn.Addr + place.offset})
	}
	var got *Function
	err = analyze.Each(context.Background(), a, []image.Function{fn}, func(r *analyze.Result) error {
		var err error
		got, err = p.Function(r, wants)
		return err
	}, func(err error) error { return err })
	if err != nil {
		t.Fatal(err)
	}
	rules := make([]string, len(wants))
	for _, r := range got.Refusals {
		rules[r.Want] = r.Rule.ID
	}
	for i, place := range places {
		if rules[i] != place.rule {
			t.Errorf("%s: refused by %q, want %q", place.name, rules[i], place.rule)
		}
	}
	if len(got.Places) != 2 {
		t.Errorf("%d places, want 2", len(got.Places))
	}
}
