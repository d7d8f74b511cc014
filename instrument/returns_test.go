package instrument

import (
	"fmt"
	"slices"
	"testing"

	"xol/image"
)

// TestReturns asks for the returns of functions whose calls end in several ways.
func TestReturns(t *testing.T) {
	p := planner(t, "testdata/returns.elf", 0)
	for _, c := range []struct {
		function string
		places   []string // where calls end, of the function and its parts
		rule     string
	}{
		{"twice", []string{"twice+4", "twice+7"}, ""},
		{"parted", []string{"parted+6", "parted.cold+2"}, ""},
		{"tail", []string{"tail+4", "tail+6"}, ""},
		{"back", []string{"back+4"}, ""},
		{"aside", []string{"aside+2"}, ""},
		{"both", nil, "process/unseen-return"},
		{"on_condition", nil, "process/unseen-return"},
		{"guarded", []string{"guarded+4"}, ""},
		{"by_pointer", []string{"by_pointer+0"}, ""},
		{"runs_on", nil, "process/unseen-return"},
		{"dies", nil, "process/no-return"},
		{"stops", nil, "process/no-return"},
	} {
		t.Run(c.function, func(t *testing.T) {
			fn := p.named(t, c.function)
			places := p.stops(t, fn, 0, c.rule)
			for _, part := range p.Parts(fn) {
				places = append(places, p.stops(t, part, fn.Addr, c.rule)...)
			}
			if !slices.Equal(places, c.places) {
				t.Errorf("calls end at %v, want %v", places, c.places)
			}
		})
	}
}

// named returns a function by its name.
func (p *Planner) named(t *testing.T, name string) image.Function {
	t.Helper()
	i := slices.IndexFunc(p.a.Functions(), func(fn image.Function) bool { return fn.Name == name })
	if i < 0 {
		t.Fatalf("no function %s", name)
	}
	return p.a.Functions()[i]
}

// stops has the time of a function's calls be taken, and returns where that ends in it, or
// in a part of the function that starts at of. Where a rule is wanted, it takes no time.
func (p *Planner) stops(t *testing.T, fn image.Function, of uint64, rule string) (places []string) {
	t.Helper()
	wants := []Want{{Addr: fn.Addr, Of: of, Kind: Stop, Returns: true, Number: 1}}
	if of == 0 {
		wants = append(wants, Want{Addr: fn.Addr, Kind: Start, Number: 1})
	}
	f, err := p.Function(p.a.Judge(fn), wants)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, r := range f.Refusals {
		got += r.Rule.ID
	}
	if got != rule || rule != "" && len(f.Places) > 0 {
		t.Errorf("%s: refused by %q, want %q; %d places", fn.Name, got, rule, len(f.Places))
	}
	for _, place := range f.Places {
		if wants[place.Want].Kind == Stop {
			addr := f.Plans[place.Plan].code.Steps[place.Step].Inst.Addr
			places = append(places, fmt.Sprintf("%s+%d", fn.Name, addr-fn.Addr))
		}
	}
	return places
}
