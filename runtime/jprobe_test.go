//go:build unicorn

package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"xol/arch"
	"xol/classify"
	"xol/guest"
	"xol/runtime"
)

// TestJprobe has other functions of the program look at the arguments of three.
func TestJprobe(t *testing.T) {
	mirrors := map[string]string{"length": "number", "compare": "find", "crc32": "crc32_bitwise"}
	for _, isa := range arch.Names() {
		for _, level := range []string{"0", "2"} {
			t.Run(isa+" -O"+level, func(t *testing.T) {
				p := open(t, isa, level, guest.Options{}, runtime.Options{Pass: 500})
				var probes []*runtime.Link
				var seen []*runtime.Link
				for name, mirror := range mirrors {
					f, err := p.p.Function(mirror)
					if err != nil {
						t.Fatal(err)
					}
					j := attach(t, p, runtime.Jprobe{Symbol: name, Mirror: f})
					entry := attach(t, p, runtime.Probe{Symbol: mirror})
					probes, seen = append(probes, j), append(seen, entry)
					if err := try(p, runtime.Jprobe{Symbol: name, Mirror: f}); !errors.Is(err, classify.EEXIST) {
						t.Errorf("a second jprobe: %v", err)
					}
				}
				p.callAll(t, 1)
				for i, j := range probes {
					at := j.Address()
					if j.Hits() == 0 || seen[i].Nmissed() < j.Hits() {
						t.Errorf("%#x: %d hits; its mirror was entered %d times", at, j.Hits(), seen[i].Nmissed())
					}
					if err := j.Close(); err != nil {
						t.Error(err)
					}
				}
				p.callAll(t, 2)
			})
		}
	}
}

// many is what the function of that name in testdata/guest/returns returns.
func many(first uint64) (sum uint64) {
	for i, weight := range [...]uint64{1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31} {
		sum = sum*3 + (first+uint64(i))*weight
	}
	return sum
}

// setWord sets a variable of the program.
func (p *program) setWord(t *testing.T, name string, v uint64) {
	t.Helper()
	addr, _, err := p.p.Symbol(name)
	if err == nil {
		err = p.m.WriteWord(addr, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *program) word(t *testing.T, name string) uint64 {
	t.Helper()
	addr, _, err := p.p.Symbol(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.m.ReadWord(addr)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// endMirrors has mirror functions end at JprobeReturn, by a pointer to it; on
// the ISA with descriptors that is one.
func (p *program) endMirrors(t *testing.T) {
	t.Helper()
	end := p.JprobeReturn()
	if p.m.ISA.Name() == "ppc64" {
		const descriptor = bufferAddr + 0x800
		for i, v := range []uint64{end, 0, 0} {
			if err := p.m.WriteWord(descriptor+8*uint64(i), v); err != nil {
				t.Fatal(err)
			}
		}
		end = descriptor
	}
	p.setWord(t, "mirror_end", end)
}

// TestJprobeRestores has mirror functions spoil arguments in registers of every
// kind, and on the stack.
func TestJprobeRestores(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		var probes []*runtime.Link
		for _, name := range []string{"many", "scale"} {
			j := attach(t, p, runtime.Jprobe{Symbol: name, Mirror: p.function(t, "mirror_"+name)})
			probes = append(probes, j)
		}
		for _, ends := range []string{"by its own return", "at JprobeReturn"} {
			for first := uint64(1); first < 1000; first *= 7 {
				p.calls(t, many(first)^first, "calls_many", first)
				same(t, "what the mirror saw, and ended "+ends, p.word(t, "seen"), many(first))
				p.calls(t, first*4+3, "calls_scale", first)
				same(t, "what the mirror saw of other numbers", p.word(t, "seen"), (first+3)*2)
			}
			p.endMirrors(t)
		}
		for _, j := range probes {
			same(t, "optimized", j.Optimized(), false)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			same(t, "hits", j.Hits(), 8)
			same(t, "missed", j.Nmissed(), 0)
		}
		p.setWord(t, "seen", 0)
		p.calls(t, many(5)^5, "calls_many", 5)
		same(t, "what the mirror saw that is gone", p.word(t, "seen"), 0)
	})
}

func TestJprobeMissed(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		j := attach(t, p, runtime.Jprobe{Symbol: "many", Mirror: p.function(t, "mirror_many")})
		attach(t, p, runtime.Probe{Symbol: "bottom", PreHandler: func(c *runtime.Context) bool {
			v, err := c.Call(p.function(t, "calls_many"), 3)
			same(t, "the result of a call in a handler", v, many(3)^3)
			same(t, "its error", err, nil)
			return false
		}})

		for i := range uint64(3) {
			p.calls(t, 12, "bottom", 5)
			same(t, "missed", j.Nmissed(), i+1)
		}
		same(t, "hits", j.Hits(), 0)
		same(t, "what the mirror saw", p.word(t, "seen"), 0)
	})
}

func TestJprobeMirrorFaults(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		mirror := p.function(t, "mirror_faults")
		attach(t, p, runtime.Jprobe{Symbol: "many", Mirror: mirror})
		_, err := p.Call(t.Context(), 0, p.function(t, "calls_many"), 3)
		var fault *runtime.FaultError
		if !errors.As(err, &fault) || !fault.InHandler || fault.Page != 0 || fault.Addr-mirror.Entry > 64 {
			t.Errorf("%v, want a fault of the mirror at %#x", err, mirror.Entry)
		}
		if _, err := p.Call(t.Context(), 0, p.function(t, "bottom"), 3); !errors.As(err, &fault) {
			t.Errorf("the run goes on: %v", err)
		}
	})
}

// TestJprobePatchableEntry has mirror functions of functions whose entries are
// patchable: they run after the entry, which a probe may have besides.
func TestJprobePatchableEntry(t *testing.T) {
	for _, file := range []string{"amd64-fentry", "amd64-patchable", "arm64-patchable", "ppc64-patchable", "ppc64le-patchable", "ppc64le-profile"} {
		t.Run(file, func(t *testing.T) {
			isa, _, _ := strings.Cut(file, "-")
			p := openFile(t, isa, "../testdata/guest/entry/"+file, guest.Options{}, runtime.Options{EntryProbes: true})
			spec := runtime.Jprobe{Symbol: "length", Mirror: p.function(t, "number")}
			j := attach(t, p, spec)
			entry := attach(t, p, runtime.Probe{Symbol: "length"})
			if err := try(p, spec); !errors.Is(err, classify.EEXIST) {
				t.Errorf("a second jprobe: %v", err)
			}
			var list strings.Builder
			if err := p.List(&list); err != nil || !strings.Contains(list.String(), "  j  length") {
				t.Errorf("the list is %q: %v", list.String(), err)
			}
			p.callAll(t, 1)
			if j.Hits() == 0 || j.Hits() != entry.Hits() {
				t.Errorf("%d hits, %d of the entry", j.Hits(), entry.Hits())
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			if err := attach(t, p, spec).Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestContextEndsMirror has the context end before a mirror function: that runs
// no further, and the function all the same.
func TestContextEndsMirror(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		ctx, cancel := context.WithCancel(t.Context())
		attach(t, p, runtime.Probe{Addr: p.entryOf(t, "many"), PreHandler: func(*runtime.Context) bool { cancel(); return false }})
		attach(t, p, runtime.Jprobe{Symbol: "many", Mirror: p.function(t, "mirror_many")})
		if err := errors.Join(p.Start(0, p.function(t, "calls_many"), 5), p.Run(ctx, 1<<16)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := p.Run(t.Context(), 1<<16); err != nil {
			t.Fatal(err)
		}
		same(t, "the result", p.Result(0), many(5)^5)
		same(t, "what the mirror saw", p.word(t, "seen"), 0)
		p.calls(t, many(6)^6, "calls_many", 6)
		same(t, "what the mirror saw", p.word(t, "seen"), many(6))
	})
}
