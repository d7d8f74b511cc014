//go:build unicorn

package runtime_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"xol/arch"
	"xol/classify"
	"xol/guest"
	"xol/machine"
	"xol/runtime"
)

// rewriting is an ISA's program that writes its own text.
type rewriting struct {
	sum     string    // argument 0 and four numbers: 1, 2, 4, 8
	numbers [4]uint64 // offsets of what holds them
	store   string    // argument 1 to argument 0, in the size of what holds a number
	load    string    // 32 bits from argument 0
	itself  string    // argument 1 to argument 0, which is in the third instruction; 5 and its number, 2
	third   uint64    // its offset
	shift   uint      // of a number in the word that holds it; the word of 0 is
	zero    uint32
}

var rewritings = map[string]rewriting{
	"amd64": {
		sum: "8d470183c00283c00483c008c3", numbers: [4]uint64{2, 5, 8, 11}, store: "408837c3", load: "8b07c3",
		itself: "4088370fb6c0b005040231c90fb6c0c3", third: 9,
	},
	"arm64": {
		sum: "11000400110008001100100011002000d65f03c0", numbers: [4]uint64{0, 4, 8, 12}, store: "b9000001d65f03c0",
		load: "b9400000d65f03c0", itself: "b9000001528000a011000800d65f03c0", third: 8,
		shift: 10, zero: 0x11000000,
	},
	"ppc64": {
		sum: "386300013863000238630004386300084e800020", numbers: [4]uint64{0, 4, 8, 12}, store: "908300004e800020",
		load: "806300004e800020", itself: "9083000038600005386300024e800020", third: 8,
		zero: 0x38630000,
	},
}

func rewritingOf(isa string) rewriting {
	if isa == "ppc64le" {
		isa = "ppc64"
	}
	return rewritings[isa]
}

// word is what is stored where a number is held, as an argument.
func (w *rewriting) word(n uint64) uint64 { return uint64(w.zero) | n<<w.shift }

// bytes is the same in memory.
func (w *rewriting) bytes(isa arch.Prober, n uint64) []byte {
	switch isa.Name() {
	case "amd64":
		return []byte{byte(n)}
	case "ppc64":
		return binary.BigEndian.AppendUint32(nil, uint32(w.word(n)))
	}
	return binary.LittleEndian.AppendUint32(nil, uint32(w.word(n)))
}

// ways are those of executing a probed instruction.
var ways = []struct {
	name string
	opt  runtime.Options
	post bool
}{
	{"stepped", runtime.Options{NoBoost: true, NoOptimize: true}, false},
	{"stepped, with post handlers", runtime.Options{}, true},
	{"trapped", runtime.Options{Stepping: runtime.StepTrap, NoBoost: true, NoOptimize: true}, false},
	{"boosted", runtime.Options{NoOptimize: true}, false},
	{"optimized", runtime.Options{}, false},
}

// eachRewriting calls f with a program of every ISA that writes its text, for every way
// of executing probed instructions.
func eachRewriting(t *testing.T, machine guest.Options, f func(t *testing.T, p *snippets, w rewriting, probe func() *held)) {
	for _, isa := range arch.Names() {
		for _, way := range ways {
			if way.opt.Stepping == runtime.StepTrap && !steps(isa) {
				continue
			}
			t.Run(isa+" "+way.name, func(t *testing.T) {
				w := rewritingOf(isa)
				p := openSnippets(t, isa, []snippet{{"sum", w.sum}, {"store", w.store}, {"load", w.load}, {"itself", w.itself}}, machine, way.opt)
				f(t, p, w, func() *held {
					probe := hold(runtime.Probe{})
					if way.post {
						probe.PostHandler = func(*runtime.Context) {}
					}
					return probe
				})
			})
		}
	}
}

// starts are the offsets of the instructions of sum, from which a boundary follows.
func (p *snippets) starts(name string) (offsets []uint64) {
	p.t.Helper()
	for i := range uint64(64) {
		if try(p, runtime.Probe{Symbol: name, Offset: i, Disabled: true}) == nil {
			offsets = append(offsets, i)
		}
	}
	for _, probe := range p.Links() {
		if err := probe.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
	if len(offsets) < 4 {
		p.t.Fatalf("instructions of %s: %x", name, offsets)
	}
	return offsets
}

// TestProgramWritesProbedText has the program, another CPU, the host and a handler write
// numbers in a probed function, whichever instruction the probe is on: the result is what
// it is without a probe, the program reads what it wrote, hits are counted, and when the
// probe is gone the text is the program's.
func TestProgramWritesProbedText(t *testing.T) {
	eachRewriting(t, guest.Options{CPUs: 2}, func(t *testing.T, p *snippets, w rewriting, newProbe func() *held) {
		want := func(numbers [4]uint64) (v uint64) {
			for _, n := range numbers {
				v += n
			}
			return v
		}
		numbers := [4]uint64{1, 2, 4, 8}
		writers := []func(at, n uint64){
			func(at, n uint64) { p.call(0, "store", at, w.word(n)) },
			func(at, n uint64) { p.call(1, "store", at, w.word(n)) },
			func(at, n uint64) {
				if err := p.Memory().Write(at, w.bytes(p.isa, n)); err != nil {
					t.Fatal(err)
				}
			},
			func(at, n uint64) {
				handler := hold(runtime.Probe{Symbol: "load", PreHandler: func(c *runtime.Context) bool {
					if err := c.Write(at, w.bytes(p.isa, n)); err != nil {
						t.Error(err)
					}
					return false
				}})
				if err := handler.attach(p); err != nil {
					t.Fatal(err)
				}
				p.call(0, "load", at)
				if err := handler.Close(); err != nil {
					t.Fatal(err)
				}
			},
		}
		round := uint64(16)
		for _, offset := range p.starts("sum") {
			probe := newProbe()
			probe.Symbol, probe.Offset = "sum", offset
			if err := probe.attach(p); err != nil {
				t.Fatal(err)
			}
			calls := uint64(0)
			check := func(what string) {
				t.Helper()
				p.settle()
				for cpu := range 2 {
					same(t, fmt.Sprintf("probe at +%d, %s, CPU %d", offset, what, cpu), p.call(cpu, "sum", 100), 100+want(numbers))
					calls++
				}
				same(t, "hits", probe.Hits(), calls)
				same(t, "missed", probe.Nmissed(), 0)
			}
			check("first")
			check("again")
			optimized := probe.Optimized()
			if offset == 0 {
				same(t, "a jump", optimized, strings.HasSuffix(t.Name(), "optimized"))
			}
			for i, at := range w.numbers {
				at += p.at["sum"]
				for j, write := range writers {
					round = round%90 + 20
					numbers[i] = round
					write(at, round)
					check(fmt.Sprintf("number %d by writer %d", i, j))
					got := make([]byte, len(w.bytes(p.isa, 0)))
					if err := p.Memory().Read(got, at); err != nil {
						t.Fatal(err)
					}
					same(t, "what is in memory", string(got), string(w.bytes(p.isa, round)))
					if got, all := p.call(0, "load", at), w.word(round); p.isa.Align() > 1 {
						same(t, "what the program reads", got, all)
					} else {
						same(t, "what the program reads", got&0xff, all)
					}
					numbers[i] = 1 << i
					write(at, numbers[i])
					check("the file's number")
					same(t, "a jump again", probe.Optimized(), optimized)
				}
			}
			if err := probe.Close(); err != nil {
				t.Fatal(err)
			}
			same(t, "without the probe", p.call(0, "sum", 100), 100+want(numbers))
			p.textIsOwn()
		}
	})
}

// textIsOwn checks that the CPUs execute what is in memory.
func (p *snippets) textIsOwn() {
	p.t.Helper()
	text, executed := make([]byte, 0x400), make([]byte, 0x400)
	if err := errors.Join(p.m.Read(text, snippetText), p.m.ReadText(executed, snippetText)); err != nil {
		p.t.Fatal(err)
	}
	if !bytes.Equal(text, executed) {
		p.t.Errorf("text is not as in memory:\n% x\n% x", executed[:32], text[:32])
	}
}

// TestCodeWritesWhatFollows has a probed function change what it executes next but one.
func TestCodeWritesWhatFollows(t *testing.T) {
	eachRewriting(t, guest.Options{}, func(t *testing.T, p *snippets, w rewriting, newProbe func() *held) {
		at := p.at["itself"] + w.third
		for _, offset := range p.starts("itself") {
			probe := newProbe()
			probe.Symbol, probe.Offset = "itself", offset
			if err := probe.attach(p); err != nil {
				t.Fatal(err)
			}
			for n := range uint64(6) {
				p.settle()
				same(t, fmt.Sprintf("probe at +%d", offset), p.call(0, "itself", at, w.word(n+10)), n+15)
			}
			same(t, "hits", probe.Hits(), 6)
			if err := probe.Close(); err != nil {
				t.Fatal(err)
			}
			p.textIsOwn()
		}
	})
}

// TestTextChangesMeanwhile has the host change all numbers of a function when a CPU is
// anywhere in it: what it has not executed yet is new, what it has is old.
func TestTextChangesMeanwhile(t *testing.T) {
	eachRewriting(t, guest.Options{Exact: true}, func(t *testing.T, p *snippets, w rewriting, newProbe func() *held) {
		allowed := map[uint64]bool{}
		for k := range 5 {
			v := uint64(0)
			for i, n := range [4]uint64{1, 2, 4, 8} {
				if i >= k {
					n += 16
				}
				v += n
			}
			allowed[v] = true
		}
		for _, offset := range p.starts("sum") {
			seen, optimized := map[uint64]bool{}, false
			for steps, running := 0, true; running; steps++ {
				for i, n := range [4]uint64{1, 2, 4, 8} {
					if err := p.Memory().Write(p.at["sum"]+w.numbers[i], w.bytes(p.isa, n)); err != nil {
						t.Fatal(err)
					}
				}
				probe := newProbe()
				probe.Symbol, probe.Offset = "sum", offset
				if err := probe.attach(p); err != nil {
					t.Fatal(err)
				}
				p.settle()
				same(t, "before", p.call(0, "sum", 0), 15)
				if err := p.Start(0, machine.Function{Entry: p.at["sum"]}, 0); err != nil {
					t.Fatal(err)
				}
				for range steps {
					if err := p.Step(0, 1); err != nil {
						t.Fatal(err)
					}
				}
				running = p.m.CPU(0).Running()
				optimized = probe.Optimized()
				for i, n := range [4]uint64{1, 2, 4, 8} {
					if err := p.Memory().Write(p.at["sum"]+w.numbers[i], w.bytes(p.isa, n+16)); err != nil {
						t.Fatal(err)
					}
				}
				if err := p.Run(t.Context(), 10_000); err != nil {
					t.Fatalf("probe at +%d, changed after %d steps: %v", offset, steps, err)
				}
				got := p.Result(0) & 0xffff_ffff
				if seen[got] = true; !allowed[got] {
					t.Errorf("probe at +%d, changed after %d steps: %d", offset, steps, got)
				}
				same(t, "hits", probe.Hits(), 2)
				same(t, "afterwards", p.call(0, "sum", 0), 15+4*16)
				if err := probe.Close(); err != nil {
					t.Fatal(err)
				}
				p.textIsOwn()
			}
			same(t, "different results", len(seen), len(allowed))
			if optimized && p.isa.Align() > 1 {
				break // buffers take many steps, and all jumps replace one instruction
			}
		}
	})
}

// TestTextChangesBeforeInstruction changes the text when an instruction has been hit, and
// before it is executed: it is executed as it stands then, and so is what follows.
func TestTextChangesBeforeInstruction(t *testing.T) {
	eachRewriting(t, guest.Options{Exact: true}, func(t *testing.T, p *snippets, w rewriting, newProbe func() *held) {
		numbers := [4]uint64{1, 2, 4, 8}
		write := func(more uint64) {
			for i, n := range numbers {
				if err := p.Memory().Write(p.at["sum"]+w.numbers[i], w.bytes(p.isa, n+more)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for at, offset := range p.starts("sum") {
			want := uint64(0)
			for i, n := range numbers {
				if want += n; i >= at {
					want += 16
				}
			}
			probe := newProbe()
			probe.Symbol, probe.Offset = "sum", offset
			if err := probe.attach(p); err != nil {
				t.Fatal(err)
			}
			p.settle()
			for _, optimized := range []bool{false, probe.Optimized()} {
				before := probe.Hits()
				if err := p.Start(0, machine.Function{Entry: p.at["sum"]}, 0); err != nil {
					t.Fatal(err)
				}
				for probe.Hits() == before && p.m.CPU(0).Running() {
					if err := p.Step(0, 1); err != nil {
						t.Fatal(err)
					}
				}
				write(16)
				if err := p.Run(t.Context(), 10_000); err != nil {
					t.Fatal(err)
				}
				what := fmt.Sprintf("probe at +%d, optimized: %t", offset, optimized)
				same(t, what, p.Result(0)&0xffff_ffff, want)
				same(t, what+": hits", probe.Hits(), before+1)
				write(0)
				same(t, what+": afterwards", p.call(0, "sum", 0), 15)
				p.settle()
			}
			if err := probe.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestBoundariesInMemory changes text before there are probes: where they may be is what
// memory says.
func TestBoundariesInMemory(t *testing.T) {
	for _, c := range []struct {
		isa, file, memory string
		good, bad         uint64
		rule              string
		want              uint64
	}{
		// lea eax,[rdi+1]; add eax,2 … becomes mov eax,0x83; nop …
		{"amd64", "8d470183c00283c004c3", "b883000000906690c390", 5, 3, "boundary", 0x83},
		// nop; nop; nop; nop; ret: the second becomes undefined
		{"arm64", "d503201fd503201fd503201fd65f03c0", "d65f03c000000000d503201fd65f03c0", 0, 4, "undefined", 7},
		// li r3,1; nop; blr becomes paddi r3,0,5; blr
		{"ppc64", "386000014e80002060000000", "06000000386000054e800020", 0, 4, "boundary", 5},
		{"ppc64le", "386000014e80002060000000", "06000000386000054e800020", 0, 4, "boundary", 5},
	} {
		t.Run(c.isa, func(t *testing.T) {
			p := openSnippets(t, c.isa, []snippet{{"f", c.file}}, guest.Options{}, runtime.Options{})
			before := hold(runtime.Probe{Symbol: "f", Offset: c.bad})
			if err := errors.Join(before.attach(p), before.Close()); err != nil {
				t.Fatal(err)
			}
			if err := p.m.Write(p.at["f"], p.textOf(c.memory)); err != nil {
				t.Fatal(err)
			}
			inside := hold(runtime.Probe{Symbol: "f", Offset: c.bad})
			var refused *runtime.RegisterError
			if err := inside.attach(p); !errors.As(err, &refused) {
				t.Fatalf("the probe at +%d: %v", c.bad, err)
			}
			t.Log(refused)
			if !errors.Is(refused, classify.EILSEQ) && !errors.Is(refused, classify.EINVAL) {
				t.Error(refused)
			}
			right := hold(runtime.Probe{Symbol: "f", Offset: c.good})
			if err := right.attach(p); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				p.settle()
				same(t, "the result", p.call(0, "f", 7), c.want)
			}
			same(t, "hits", right.Hits(), 3)
		})
	}
}

// TestProbesAreLostAndComeBack has the program write what no probe may be on, and a right
// instruction again.
func TestProbesAreLostAndComeBack(t *testing.T) {
	junk := map[string]uint64{"amd64": 0x06, "arm64": 0, "ppc64": 0, "ppc64le": 0}
	eachRewriting(t, guest.Options{}, func(t *testing.T, p *snippets, w rewriting, newProbe func() *held) {
		offset := p.starts("sum")[1]
		probe := newProbe()
		probe.Symbol, probe.Offset = "sum", offset
		if err := probe.attach(p); err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 4)
		if err := p.m.Read(first, p.at["sum"]+offset); err != nil {
			t.Fatal(err)
		}
		old := uint64(binary.LittleEndian.Uint32(first))
		if p.isa.Name() == "ppc64" {
			old = uint64(binary.BigEndian.Uint32(first))
		}
		for round := range uint64(3) {
			p.settle()
			same(t, "the result", p.call(0, "sum", 0), 15)
			same(t, "hits", probe.Hits(), round+1)
			same(t, "lost", probe.Lost(), nil)

			p.call(0, "store", p.at["sum"]+offset, junk[p.isa.Name()])
			var lost *runtime.RegisterError
			if !errors.As(probe.Lost(), &lost) || lost.Addr != p.at["sum"]+offset {
				t.Fatalf("lost: %v", probe.Lost())
			}
			p.textIsOwn()
			_, err := p.Call(t.Context(), 0, machine.Function{Entry: p.at["sum"]}, 0)
			var stop *runtime.StopError
			if !errors.As(err, &stop) || stop.Event.Kind != machine.EventUndefined || stop.Event.Addr != p.at["sum"]+offset {
				t.Fatalf("error %v", err)
			}
			p.m.CPU(0).SetRunning(false)
			another := hold(runtime.Probe{Symbol: "sum", Offset: offset})
			if err := another.attach(p); !errors.As(err, &lost) {
				t.Fatalf("another probe: %v", err)
			}
			p.call(0, "store", p.at["sum"]+offset, old)
		}
		p.call(0, "store", p.at["sum"]+offset, junk[p.isa.Name()])
		if err := probe.Close(); err != nil {
			t.Fatal(err)
		}
		p.textIsOwn()
		same(t, "what is left", p.Stats().Sites, 0)
	})
}

// TestHandlerWritesItsOwnInstruction has a handler change the number in the instruction
// that its probe is on: it is executed as it is then.
func TestHandlerWritesItsOwnInstruction(t *testing.T) {
	eachRewriting(t, guest.Options{}, func(t *testing.T, p *snippets, w rewriting, newProbe func() *held) {
		offset := p.starts("sum")[1]
		n := uint64(2)
		posts := 0
		probe := newProbe()
		probe.Symbol, probe.Offset = "sum", offset
		probe.PreHandler = func(c *runtime.Context) bool {
			if err := c.Write(p.at["sum"]+w.numbers[1], w.bytes(p.isa, n)); err != nil {
				t.Error(err)
			}
			return false
		}
		if probe.PostHandler != nil {
			probe.PostHandler = func(*runtime.Context) { posts++ }
		}
		if err := probe.attach(p); err != nil {
			t.Fatal(err)
		}
		p.settle()
		same(t, "as in the file", p.call(0, "sum", 0), 15)
		for n = 20; n < 26; n++ {
			p.settle()
			same(t, "the result", p.call(0, "sum", 0), 15-2+n)
		}
		same(t, "hits", probe.Hits(), 7)
		if probe.PostHandler != nil {
			same(t, "post handlers", posts, 7)
		}
		if err := probe.Close(); err != nil {
			t.Fatal(err)
		}
		p.textIsOwn()
	})
}

// TestHandlerUnmakesItsOwnInstruction has a handler write what is no instruction in the
// place of its probe's.
func TestHandlerUnmakesItsOwnInstruction(t *testing.T) {
	eachRewriting(t, guest.Options{}, func(t *testing.T, p *snippets, w rewriting, newProbe func() *held) {
		offset := p.starts("sum")[1]
		junk := []byte{0x06}
		if p.isa.Align() > 1 {
			junk = make([]byte, 4)
		}
		probe := newProbe()
		probe.Symbol, probe.Offset = "sum", offset
		probe.PreHandler = func(c *runtime.Context) bool {
			if err := c.Write(p.at["sum"]+offset, junk); err != nil {
				t.Error(err)
			}
			return false
		}
		if err := probe.attach(p); err != nil {
			t.Fatal(err)
		}
		_, err := p.Call(t.Context(), 0, machine.Function{Entry: p.at["sum"]}, 0)
		var stop *runtime.StopError
		if !errors.As(err, &stop) || stop.Event.Kind != machine.EventUndefined || stop.Event.Addr != p.at["sum"]+offset {
			t.Fatalf("error %v", err)
		}
		same(t, "hits", probe.Hits(), 1)
		if probe.Lost() == nil {
			t.Error("the probe is not lost")
		}
		p.textIsOwn()
	})
}

// TestEntriesChange has the host put other code in the place of patchable entries that
// are probed: the probes are lost, and the code is executed.
func TestEntriesChange(t *testing.T) {
	zeroes := crc32.ChecksumIEEE(make([]byte, 4))
	eachEntryProgram(t, func(t *testing.T, isa, path string) {
		p := openFile(t, isa, path, guest.Options{}, runtime.Options{EntryProbes: true})
		probe := hold(runtime.Probe{Symbol: "crc32_bitwise"})
		if err := probe.attach(p); err != nil {
			t.Fatal(err)
		}
		if !probe.Called() {
			t.Fatal("the function has no patchable entry")
		}
		call := func() uint64 {
			v, err := p.Call(t.Context(), 0, p.function(t, "crc32_bitwise"), bufferAddr, 4)
			if err != nil {
				t.Fatal(err)
			}
			return v & 0xffff_ffff
		}
		same(t, "the result", call(), uint64(zeroes))
		trap := p.m.ISA.Breakpoint(false)
		was := make([]byte, len(trap))
		if err := errors.Join(p.m.Read(was, probe.Address()), p.m.Write(probe.Address(), trap)); err != nil {
			t.Fatal(err)
		}
		var lost *runtime.RegisterError
		if !errors.As(probe.Lost(), &lost) || lost.Rule.ID != "runtime/text-entry" {
			t.Fatalf("lost: %v", probe.Lost())
		}
		executed := make([]byte, len(trap))
		if err := p.m.ReadText(executed, probe.Address()); err != nil || !bytes.Equal(executed, trap) {
			t.Fatalf("% x is executed, %v", executed, err)
		}
		if err := p.m.Write(probe.Address(), was); err != nil {
			t.Fatal(err)
		}
		same(t, "the result", call(), uint64(zeroes))
		if err := probe.Close(); err != nil {
			t.Fatal(err)
		}
		if err := probe.attach(p); err != nil {
			t.Fatal(err)
		}
		same(t, "the result", call(), uint64(zeroes))
		same(t, "hits", probe.Hits(), 2)
	})
}
