package detour_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"xol/arch"
	"xol/decode"
	"xol/detour"
	"xol/internal/isatest"
	"xol/machine"
	"xol/relocate"
	"xol/verify"
)

// What the callback check wants.
const (
	probeArgument = 0x1122334455667788
	tocValue      = 0x0123456789abcdef
)

// Where the callbacks are in testdata/callback-*.bin.
const (
	callbackCheck  = 0
	callbackChange = 0x100
)

// opener opens an engine for an ISA.
type opener func(isa arch.Prober) (machine.Engine, error)

func isaOf(t testing.TB, name string) arch.Prober {
	t.Helper()
	isa, err := isatest.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return isa
}

func callbacks(t testing.TB, isa arch.Prober) []byte {
	t.Helper()
	code, err := os.ReadFile("testdata/callback-" + isa.Name() + ".bin")
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func modeName(kernel bool) string {
	if kernel {
		return "kernel"
	}
	return "user"
}

func sweep(t testing.TB, isa arch.Prober, code []byte, addr uint64) []decode.Inst {
	t.Helper()
	insts := decode.Sweep(isa, nil, code, addr)
	for i := range insts {
		if insts[i].Has(decode.Invalid) {
			t.Fatalf("% x is no instruction", insts[i].Bytes())
		}
	}
	return insts
}

// target has package verify take detour buffers for moved regions. The callback
// stands after the buffer.
type target struct {
	arch.Prober
	opt      detour.Options
	callback []byte
	change   func(code []byte, parts detour.Parts) // of the finished buffer; nil for none

	insts []decode.Inst
	plan  detour.Plan
}

const callbackOffset = 2048

func (t *target) Plan(p *relocate.Plan, insts []decode.Inst, opt relocate.Options) error {
	t.insts = insts
	return t.Prober.Plan(p, insts, opt)
}

func (t *target) Encode(dst []byte, _ *relocate.Plan, to uint64) (int, error) {
	t.opt.Callback = to + callbackOffset
	if err := t.PlanDetour(&t.plan, t.insts, t.opt); err != nil {
		return 0, err
	}
	n, err := t.EncodeDetour(dst[:callbackOffset], &t.plan, to)
	if err != nil {
		return 0, err
	}
	if n < t.plan.Min || n > t.plan.Max || n != t.plan.Parts.End {
		return 0, fmt.Errorf("%d bytes, planned %d to %d, parts %+v", n, t.plan.Min, t.plan.Max, t.plan.Parts)
	}
	if t.change != nil {
		t.change(dst[:n], t.plan.Parts)
	}
	clear(dst[n:callbackOffset])
	return callbackOffset + copy(dst[callbackOffset:], t.callback), nil
}

// Prepare also makes the stack pointer one that the template can use.
func (t *target) Prepare(inst *decode.Inst, f *machine.File, s machine.State) {
	t.Prober.Prepare(inst, f, s)
	alignStack(t.Prober, f, s)
}

// StackScratch is all below the red zone that the buffer and its callback use.
func (t *target) StackScratch(sp uint64) (lo, hi uint64) {
	const callbackStack = 256
	return sp - uint64(t.plan.Stack) - callbackStack, sp - redZones[t.Name()][t.opt.Kernel]
}

func newTarget(t testing.TB, isa arch.Prober, kernel bool) *target {
	return &target{Prober: isa, callback: callbacks(t, isa), opt: detour.Options{
		Kernel: kernel, Probe: probeArgument, TOC: tocValue,
	}}
}

const verifyStates = 40

func verifyRegions(t testing.TB, tg *target, open opener, runs ...[]decode.Inst) *verify.Report {
	t.Helper()
	r, err := verify.Regions(context.Background(), runs, verify.Options{
		Target: tg, Reach: relocate.Near, States: verifyStates, Seed: 11,
		Engines: func() ([]machine.Engine, error) {
			e, err := open(tg.Prober)
			return []machine.Engine{e}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// testBuffers runs the ISA's regions in place and in detour buffers.
func testBuffers(t *testing.T, name string, open opener) {
	isa := isaOf(t, name)
	for _, kernel := range []bool{false, true} {
		for _, c := range regionsOf(isa) {
			if c.user && kernel {
				continue
			}
			t.Run(name+" "+modeName(kernel)+" "+c.name, func(t *testing.T) {
				tg := newTarget(t, isa, kernel)
				tg.opt.Dead = c.dead
				r := verifyRegions(t, tg, open, sweep(t, isa, c.code(t, isa), home))
				if r.Executed != 1 {
					t.Errorf("not run: %v", r.Skipped)
				}
				for _, d := range r.Examples {
					t.Errorf("%s, by % x", strings.Join(d.What, "; "), d.Moved[:tg.plan.Parts.End])
				}
			})
		}
	}
}

// home is where the probed instructions stand.
const home = 0x2a00_0040_1000

// runner runs detour buffers from single states.
type runner struct {
	isa       arch.Prober
	file      *machine.File
	engine    machine.Engine
	start     machine.State
	end       machine.State
	plan      detour.Plan
	at        uint64 // of the buffer
	callback  uint64
	callbacks []byte
	seed      uint64
	writes    []machine.Write
}

func newRunner(t *testing.T, isa arch.Prober, open opener) *runner {
	t.Helper()
	e, err := open(isa)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	f := isa.Registers()
	return &runner{isa: isa, file: f, engine: e, start: f.NewState(), end: f.NewState(),
		at: home + 0x10000, callback: home + 0x11000, callbacks: callbacks(t, isa)}
}

// randomize sets the registers to any values.
func (r *runner) randomize(seed uint64) {
	r.seed = seed
	verify.RandomState(r.file, r.start, seed)
	alignStack(r.isa, r.file, r.start)
}

// alignStack aligns the stack pointer where the ABI has it aligned everywhere.
func alignStack(isa arch.Prober, f *machine.File, s machine.State) {
	if isa.Name() != "amd64" {
		f.SetWord(s, f.SP, f.Word(s, f.SP)&^15)
	}
}

// run executes the buffer for the region and returns how that ended.
func (r *runner) run(t *testing.T, region []byte, opt detour.Options, entry uint64) machine.Event {
	t.Helper()
	opt.Callback = r.callback + entry
	if err := r.isa.PlanDetour(&r.plan, sweep(t, r.isa, region, home), opt); err != nil {
		t.Fatal(err)
	}
	code := make([]byte, r.plan.Max)
	n, err := r.isa.EncodeDetour(code, &r.plan, r.at)
	if err != nil {
		t.Fatal(err)
	}
	jump, err := r.isa.JumpTo(home, r.at)
	if err != nil {
		t.Fatal(err)
	}
	parts := []machine.Part{{Addr: home, Code: jump}, {Addr: r.at, Code: code[:n]}, {Addr: r.callback, Code: r.callbacks}}
	if err := r.engine.Load(parts); err != nil {
		t.Fatal(err)
	}
	r.file.SetWord(r.start, r.file.PC, home)
	r.step(t, machine.Range{Lo: home, Hi: home + uint64(len(jump))})
	if pc := r.file.Word(r.end, r.file.PC); pc != r.at {
		t.Fatalf("the jump goes to %#x, not to %#x", pc, r.at)
	}
	r.file.SetWord(r.start, r.file.PC, r.at)
	return r.step(t, machine.Range{Lo: r.at, Hi: r.callback + uint64(len(r.callbacks))})
}

func (r *runner) step(t *testing.T, stay machine.Range) machine.Event {
	t.Helper()
	event, writes, err := r.engine.Run(r.end, r.start, r.seed, stay, 4000)
	if err != nil {
		t.Fatal(err)
	}
	r.writes = writes
	return event
}

// memory returns the word at addr after the last run.
func (r *runner) memory(addr uint64) uint64 {
	for _, w := range r.writes {
		if w.Addr == addr {
			return r.inOrder(w.New)
		}
	}
	return r.inOrder(swapped(machine.Word(addr, r.seed)))
}
