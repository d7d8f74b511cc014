package instrument

import (
	"context"
	"testing"

	"xol/analyze"
	"xol/image"
)

// TestRefusals asks for what cannot be probed in one function: why is said for each, and
// what can be probed next to it is.
func TestRefusals(t *testing.T) {
	for file, places := range map[string][]struct {
		name   string
		offset uint64
		rule   string
	}{
		"unreached.elf": {
			{"its first instruction", 0, ""},
			{"in the middle of it", 2, "process/inside-instruction"},
			{"after a jump, where nothing leads to", 7, "process/not-known-as-code"},
			{"where the jump leads to", 11, ""},
		},
		"sequence.elf": {
			{"its first instruction", 0, ""},
			{"just before a restartable sequence", 0xb, ""},
			{"the first of the sequence", 0xc, "process/rseq"},
			{"in it", 0x10, "process/rseq"},
			{"that which commits", 0x12, "process/rseq"},
			{"after it", 0x16, ""},
			{"the signature", 0x19, "process/not-known-as-code"},
			{"where the kernel goes on", 0x20, ""},
		},
	} {
		t.Run(file, func(t *testing.T) {
			fn, f := planStart(t, file, func(start uint64) (wants []Want) {
				for _, place := range places {
					wants = append(wants, Want{Addr: start + place.offset})
				}
				return wants
			})
			rules := make([]string, len(places))
			for _, r := range f.Refusals {
				rules[r.Want] = r.Rule.ID
			}
			wanted := 0
			for i, place := range places {
				if rules[i] != place.rule {
					t.Errorf("%s: refused by %q, want %q", place.name, rules[i], place.rule)
				}
				if place.rule == "" {
					wanted++
				}
			}
			if len(f.Places) != wanted {
				t.Errorf("%d places, want %d", len(f.Places), wanted)
			}
			for _, p := range f.Plans {
				for _, step := range p.code.Steps {
					if off := step.Inst.Addr - testBias - fn.Addr; file == "sequence.elf" && off >= 0xc && off < 0x16 {
						t.Errorf("+%#x, of the sequence, moves", off)
					}
				}
			}
		})
	}
}

// planStart plans what is wanted in the function start of a file.
func planStart(t *testing.T, file string, wants func(start uint64) []Want) (fn image.Function, f *Function) {
	t.Helper()
	p := planner(t, "testdata/"+file, testBias)
	start, err := p.a.Image.Resolve("start")
	if err != nil {
		t.Fatal(err)
	}
	fn, ok := p.a.FunctionAt(start[0].Addr)
	if !ok {
		t.Fatal("no function")
	}
	err = analyze.Each(context.Background(), p.a, []image.Function{fn}, func(r *analyze.Result) error {
		var err error
		f, err = p.Function(r, wants(fn.Addr))
		return err
	}, func(err error) error { return err })
	if err != nil {
		t.Fatal(err)
	}
	return fn, f
}
