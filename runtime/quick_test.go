//go:build unicorn

package runtime_test

import (
	"context"
	"fmt"
	"testing"

	"xol/arch"
	"xol/guest"
	"xol/machine"
	"xol/runtime"
)

// eachQuick calls f where hits are handled while the engine runs: where the copy
// leads back, and where a detour buffer calls out.
func eachQuick(t *testing.T, f func(t *testing.T, p *program, sort machine.Function)) {
	for _, isa := range arch.Names() {
		for _, optimized := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s optimized=%t", isa, optimized), func(t *testing.T) {
				p := open(t, isa, "2", guest.Options{}, runtime.Options{NoOptimize: !optimized})
				sort, err := p.p.Function("sort_words")
				if err != nil {
					t.Fatal(err)
				}
				f(t, p, sort)
			})
		}
	}
}

// start registers probe at the comparison that sort makes, and has the first hit
// prepare the others.
func (p *program) start(t *testing.T, sort machine.Function, spec runtime.Probe) *runtime.Link {
	t.Helper()
	spec.Symbol = probed
	probe := attach(t, p, spec)
	if err := p.sortWords(t.Context(), sort); err != nil {
		t.Fatal(err)
	}
	if err := p.Settle(); err != nil {
		t.Fatal(err)
	}
	return probe
}

// sortedWords is how many words sortWords sorts.
const sortedWords = 100

// sortWords sorts words in reverse order.
func (p *program) sortWords(ctx context.Context, sort machine.Function) error {
	if err := p.reverseWords(); err != nil {
		return err
	}
	if _, err := p.Call(ctx, 0, sort, bufferAddr, sortedWords); err != nil {
		return err
	}
	return p.checkWords()
}

func (p *program) reverseWords() error {
	for i := range uint64(sortedWords) {
		if err := p.m.WriteWord(bufferAddr+8*i, sortedWords-1-i); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) checkWords() error {
	for i := range uint64(sortedWords) {
		if v, err := p.m.ReadWord(bufferAddr + 8*i); err != nil || v != i {
			return fmt.Errorf("word %d is %d: %v", i, v, err)
		}
	}
	return nil
}

func TestHandlerCallsInRun(t *testing.T) {
	const textAddr = bufferAddr + 4096
	eachQuick(t, func(t *testing.T, p *program, sort machine.Function) {
		length, err := p.p.Function("length")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.m.Write(textAddr, []byte("hello\x00")); err != nil {
			t.Fatal(err)
		}
		calls := 0
		p.start(t, sort, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
			a, _ := c.Regs.Arg(0)
			if n, err := c.Call(length, textAddr); err != nil || n != 5 {
				t.Fatalf("length returned %d, %v", n, err)
			}
			if b, _ := c.Regs.Arg(0); a != b {
				t.Fatalf("the first argument was %#x, is %#x", a, b)
			}
			calls++
			return false
		}})
		calls = 0
		if err := p.sortWords(t.Context(), sort); err != nil || calls == 0 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}

func TestHandlerSetsRegistersInRun(t *testing.T) {
	eachQuick(t, func(t *testing.T, p *program, sort machine.Function) {
		swap := false
		p.start(t, sort, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
			if swap {
				a, _ := c.Regs.Arg(0)
				b, _ := c.Regs.Arg(1)
				c.Regs.SetArg(0, b)
				c.Regs.SetArg(1, a)
			}
			return false
		}})
		swap = true // larger words first
		err := p.sortWords(t.Context(), sort)
		if first, _ := p.m.ReadWord(bufferAddr); err == nil || first != 99 {
			t.Errorf("the first word is %d, %v", first, err)
		}
	})
}

func TestHandlerRegistersProbeInRun(t *testing.T) {
	eachQuick(t, func(t *testing.T, p *program, sort machine.Function) {
		other, self := hold(runtime.Probe{}), hold(runtime.Probe{})
		hits := 0
		self.PreHandler = func(c *runtime.Context) bool {
			switch hits++; hits {
			case 10:
				other.Symbol = "quick_sort"
				if err := other.attach(p); err != nil {
					t.Fatal(err)
				}
			case 20:
				if err := self.Close(); err != nil {
					t.Fatal(err)
				}
			}
			return false
		}
		self.Symbol = probed
		if err := self.attach(p); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := p.sortWords(t.Context(), sort); err != nil {
				t.Fatal(err)
			}
			if err := p.Settle(); err != nil {
				t.Fatal(err)
			}
		}
		if hits != 20 || other.Hits() == 0 {
			t.Errorf("%d hits, %d of the probe that was registered meanwhile", hits, other.Hits())
		}
		if n := p.Stats(); n.Probes != 1 {
			t.Errorf("%+v", n)
		}
	})
}

func TestHandlerPanicsInRun(t *testing.T) {
	eachQuick(t, func(t *testing.T, p *program, sort machine.Function) {
		armed := false
		p.start(t, sort, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
			if armed {
				panic("handler")
			}
			return false
		}})
		armed = true
		defer func() {
			if r := recover(); r != "handler" {
				t.Errorf("recovered %v", r)
			}
		}()
		err := p.sortWords(t.Context(), sort)
		t.Errorf("no panic: %v", err)
	})
}
