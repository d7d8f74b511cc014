//go:build unicorn

package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"xol/arch"
	"xol/decode"
	"xol/detour"
	"xol/internal/emulator"
	"xol/machine"
	"xol/patch"
	"xol/relocate"
	"xol/verify"
)

// Where the checker puts what it runs. The callback does nothing.
const (
	home       = 0x2a00_0040_1000
	slotAt     = home + 0x8000
	bufferAt   = home + 0x10000
	callbackAt = home + 0x11000
)

// checker executes a plan's site as other CPUs may meet it. They may come to
// the first instruction in every state; they are at a later one in every state
// that follows, until a Quiesce of the region; and until a Sync they may see
// any of the bytes written since the one before. Every single step that such a
// CPU may do has to do what it does in the original text.
type checker struct {
	isa    arch.Prober
	file   *machine.File
	engine machine.Engine

	insts    []decode.Inst
	original []byte
	dead     uint64 // bytes at its end
	callback []byte
	slot     []byte
	buffer   []byte
	plan     detour.Plan

	// The original: from the state at the start of each instruction the one
	// after it, and from the first the one after the region.
	starts map[uint64]machine.State
	ends   map[uint64]outcome
	whole  outcome
	seed   uint64
}

// outcome is what a step comes to.
type outcome struct {
	state  machine.State
	event  machine.EventKind
	writes []machine.Write
}

func newChecker(t *testing.T, c checkCase) *checker {
	t.Helper()
	isa := isaOf(t, c.isa)
	k := &checker{isa: isa, file: isa.Registers(), original: unhex(t, c.original), callback: unhex(t, returns[c.isa])}
	k.dead = c.dead
	k.insts = decode.Sweep(isa, nil, k.original[:len(k.original)-int(c.dead)], home)
	e, err := emulator.Open(c.isa, k.file)
	if err != nil {
		t.Fatal(err)
	}
	k.engine = e
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(k.makeSlot(), k.makeBuffer(), k.runOriginal()); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *checker) end() uint64 { return home + uint64(len(k.original)) }

func (k *checker) makeSlot() error {
	var p relocate.Plan
	if err := k.isa.Plan(&p, k.insts[:1], relocate.Options{}); err != nil {
		return err
	}
	k.slot = make([]byte, p.Max)
	n, err := k.isa.Encode(k.slot, &p, slotAt)
	k.slot = k.slot[:n]
	return err
}

func (k *checker) makeBuffer() error {
	if err := k.isa.PlanDetour(&k.plan, k.insts, detour.Options{Callback: callbackAt, Dead: k.dead}); err != nil {
		return err
	}
	k.buffer = make([]byte, k.plan.Max)
	n, err := k.isa.EncodeDetour(k.buffer, &k.plan, bufferAt)
	k.buffer = k.buffer[:n]
	return err
}

func (k *checker) site() *patch.Site {
	return &patch.Site{Addr: home, Original: k.original, Kernel: true,
		Detour: machine.Range{Lo: bufferAt, Hi: bufferAt + uint64(len(k.buffer))}}
}

// run executes from start, from pc on, until it leaves stay.
func (k *checker) run(start machine.State, pc uint64, stay machine.Range, steps int) (outcome, error) {
	in, out := slices.Clone(start), k.file.NewState()
	k.file.SetWord(in, k.file.PC, pc)
	event, writes, err := k.engine.Run(out, in, k.seed, stay, steps)
	return outcome{out, event.Kind, slices.Clone(writes)}, err
}

func (k *checker) pc(o outcome) uint64 { return k.file.Word(o.state, k.file.PC) }

// runOriginal fills starts, ends and whole.
func (k *checker) runOriginal() error {
	start := k.file.NewState()
	verify.RandomState(k.file, start, k.seed)
	if sp := k.file.SP; k.isa.Align() > 1 {
		k.file.SetWord(start, sp, k.file.Word(start, sp)&^15)
	}
	for i := range k.insts {
		k.isa.Prepare(&k.insts[i], k.file, start)
	}
	if err := k.engine.Load([]machine.Part{{Addr: home, Code: k.original}}); err != nil {
		return err
	}
	region := machine.Range{Lo: home, Hi: k.end()}
	k.starts, k.ends = map[uint64]machine.State{}, map[uint64]outcome{}
	state, addr := start, uint64(home)
	for region.Holds(addr) && k.ends[addr].state == nil {
		o, err := k.run(state, addr, region, 1)
		if err != nil {
			return err
		}
		k.starts[addr], k.ends[addr] = state, o
		state, addr = o.state, k.pc(o)
	}
	var err error
	k.whole, err = k.run(start, home, region, 100)
	return err
}

// differ says what is not as in the original; nil where all is. Below the
// stack pointer buffers and slots may write.
func (k *checker) differ(got, want outcome) error {
	if got.event == machine.EventBudget {
		got.event = machine.EventLeft
	}
	if want.event == machine.EventBudget {
		want.event = machine.EventLeft
	}
	if got.event != want.event {
		return fmt.Errorf("ends: %v, not %v", got.event, want.event)
	}
	for i := range k.file.Registers {
		if a, b := k.file.Bytes(got.state, i), k.file.Bytes(want.state, i); !bytes.Equal(a, b) {
			return fmt.Errorf("%s is %x, not %x", k.file.Registers[i].Name, a, b)
		}
	}
	if a, b := k.kept(got.writes), k.kept(want.writes); !slices.Equal(a, b) {
		return fmt.Errorf("writes %x, not %x", a, b)
	}
	return nil
}

// kept returns the writes that are not to the stack below the red zone.
func (k *checker) kept(writes []machine.Write) []machine.Write {
	const deep = 4096
	_, hi := k.isa.StackScratch(k.file.Word(k.starts[home], k.file.SP))
	return slices.DeleteFunc(slices.Clone(writes), func(w machine.Write) bool { return w.Addr >= hi-deep && w.Addr < hi })
}

// moment is what a CPU may meet at a point of the plan.
type moment struct {
	views  [][]byte // what it may see of the text
	hits   patch.Hits
	inside bool // it may stand at a later instruction of the region
	buffer bool // the detour buffer is there
}

// moments are those before the first step and after each. A CPU can stand
// inside where one can have come there before.
func (k *checker) moments(p *patch.Plan) (out []moment) {
	states := p.States()
	views, inside, buffer := [][]byte{states[0].Text}, true, true
	if bytes.HasPrefix(states[0].Text, k.jump()) {
		inside = false
	}
	for i := range states {
		if i > 0 {
			switch s := &p.Steps[i-1]; s.Kind {
			case patch.Write:
				views = k.mixed(views, s)
			case patch.Sync:
				views = [][]byte{states[i].Text}
			case patch.Quiesce:
				inside = inside && s.Range.Lo > home+1
				buffer = buffer && s.Range.Lo != bufferAt
			}
		}
		m := moment{views: views, hits: states[i].Hits, inside: inside, buffer: buffer}
		inside = inside || k.entered(m)
		m.inside = inside
		out = append(out, m)
	}
	return out
}

func (k *checker) jump() []byte {
	jump, err := k.isa.JumpTo(home, bufferAt)
	if err != nil {
		return nil
	}
	return jump
}

// entered reports whether a CPU gets inside the region from its first
// instruction.
func (k *checker) entered(m moment) bool {
	breakpoint := k.isa.Breakpoint(true)
	for _, view := range m.views {
		switch {
		case bytes.HasPrefix(view, breakpoint):
			if m.hits == patch.HitSlot {
				return true
			}
		case bytes.HasPrefix(view, k.original[:k.insts[0].Len]):
			return true
		}
	}
	return false
}

// mixed returns the views with every part of a write seen or not: words where
// instructions are words, else bytes.
func (k *checker) mixed(views [][]byte, s *patch.Step) [][]byte {
	unit := k.isa.Align()
	for at := 0; at < len(s.New); at += unit {
		for _, view := range views {
			seen := bytes.Clone(view)
			copy(seen[int(s.Addr-home)+at:], s.New[at:at+unit])
			views = append(views, seen)
		}
	}
	return views
}

// check executes all that CPUs may do while the plan is carried out, and counts
// the steps that it has compared.
func (k *checker) check(p *patch.Plan) (steps int, err error) {
	for i, m := range k.moments(p) {
		for _, view := range m.views {
			n, err := k.checkView(m, view)
			steps += n
			if err != nil {
				return steps, fmt.Errorf("after %d steps, text %x, %w", i, view, err)
			}
		}
	}
	return steps, nil
}

func (k *checker) checkView(m moment, text []byte) (steps int, err error) {
	parts := []machine.Part{{Addr: home, Code: text}, {Addr: slotAt, Code: k.slot}, {Addr: callbackAt, Code: k.callback}}
	if m.buffer {
		parts = append(parts, machine.Part{Addr: bufferAt, Code: k.buffer})
	}
	if err := k.engine.Load(parts); err != nil {
		return 0, err
	}
	for addr := range k.starts {
		if addr != home && !m.inside {
			continue
		}
		if err := k.checkStep(m, addr); err != nil {
			return steps, fmt.Errorf("at +%d: %w", addr-home, err)
		}
		steps++
	}
	return steps, nil
}

// checkStep lets a CPU that stands at addr do one instruction, with all that
// follows from a breakpoint or a jump.
func (k *checker) checkStep(m moment, addr uint64) error {
	start := k.starts[addr]
	o, err := k.run(start, addr, machine.Range{Lo: home, Hi: k.end()}, 1)
	if err != nil {
		return err
	}
	slot := machine.Range{Lo: slotAt, Hi: slotAt + uint64(len(k.slot))}
	buffer := machine.Range{Lo: bufferAt, Hi: callbackAt + uint64(len(k.callback))}
	want := k.ends[addr]
	switch {
	case o.event == machine.EventException && addr == home && m.hits == patch.HitSlot:
		o, err = k.run(start, slotAt, slot, 100)
	case o.event == machine.EventException && addr == home:
		want = k.whole
		o, err = k.run(start, bufferAt+uint64(k.plan.Parts.Moved), buffer, 1000)
	case k.pc(o) == bufferAt:
		want = k.whole
		o, err = k.run(start, bufferAt, buffer, 1000)
	}
	if err != nil {
		return err
	}
	return k.differ(o, want)
}

// returns are callbacks that return.
var returns = map[string]string{
	"amd64": "c3", "arm64": "c0035fd6", "ppc64": "4e800020", "ppc64le": "2000804e",
}

type checkCase struct {
	name, isa, original string
	dead                uint64 // bytes at the end that nothing executes
}

var checkCases = []checkCase{
	{"a prologue", "amd64", "55 4889e5 4154", 0},
	{"five instructions", "amd64", "f9 f5 ffc0 f8", 0}, // stc; cmc; inc %eax; clc
	{"a long instruction after a short one", "amd64", "f8 48b88877665544332211", 0},
	{"one long instruction", "amd64", "48b88877665544332211", 0},
	{"a branch over a part", "amd64", "7503 48ffc0 48ffc1", 0},
	{"flags into registers", "amd64", "4811c8 4819d3", 0},
	{"dead bytes after a return", "amd64", "31c0 c3 0f0b", 2},
	{"a register", "arm64", "20040091", 0},
	{"flags", "arm64", "200002ba", 0},
	{"a branch", "arm64", "00020054", 0},
	{"a register", "ppc64", "38630001", 0},
	{"a carry", "ppc64", "7c642914", 0},
	{"a branch", "ppc64", "41820040", 0},
	{"a register", "ppc64le", "01006338", 0},
	{"a carry", "ppc64le", "1429647c", 0},
}

var operations = []patch.Operation{patch.Arm, patch.Optimize, patch.Unoptimize, patch.Disarm}

func TestEveryMomentInUnicorn(t *testing.T) {
	for _, c := range checkCases {
		t.Run(c.isa+" "+c.name, func(t *testing.T) {
			k := newChecker(t, c)
			states := 0
			for seed := range uint64(8) {
				k.seed = seed
				if err := k.runOriginal(); err != nil {
					t.Fatal(err)
				}
				for _, op := range operations {
					p, err := k.isa.PlanPatch(op, k.site())
					if err != nil {
						t.Fatal(err)
					}
					steps, err := k.check(p)
					if err != nil || steps < len(p.Steps) {
						t.Errorf("%s, seed %d: %d steps, %v", op, seed, steps, err)
					}
					states += steps
				}
			}
			t.Logf("%d states: moments of a plan, what a CPU sees of the text, where it stands", states)
		})
	}
}

// without returns the plan with some of its steps left out.
func without(p *patch.Plan, steps ...int) {
	kept := p.Steps[:0]
	for i, s := range p.Steps {
		if !slices.Contains(steps, i) {
			kept = append(kept, s)
		}
	}
	p.Steps = kept
}

// reorder puts a plan's steps in another order.
func reorder(p *patch.Plan, order ...int) {
	steps := slices.Clone(p.Steps)
	p.Steps = p.Steps[:0]
	for _, i := range order {
		p.Steps = append(p.Steps, steps[i])
	}
}

// TestBrokenPlansAreCaught gives the checker plans that lack something. The
// steps of Optimize are 0 redirect, 1 quiesce, 2 tail, 3 sync, 4 head, 5 sync;
// those of Unoptimize 0 breakpoint, 1 sync, 2 tail, 3 sync, 4 redirect,
// 5 quiesce.
func TestBrokenPlansAreCaught(t *testing.T) {
	for _, c := range []struct {
		name  string
		op    patch.Operation
		spoil func(p *patch.Plan, original []byte)
	}{
		{"the tail before the breakpoint stands", patch.Optimize, func(p *patch.Plan, original []byte) { p.Old = original }},
		{"no redirection", patch.Optimize, func(p *patch.Plan, _ []byte) { without(p, 0) }},
		{"no CPU waited for", patch.Optimize, func(p *patch.Plan, _ []byte) { without(p, 1) }},
		{"waited for before hits are redirected", patch.Optimize, func(p *patch.Plan, _ []byte) { reorder(p, 1, 0, 2, 3, 4, 5) }},
		{"no synchronization between tail and head", patch.Optimize, func(p *patch.Plan, _ []byte) { without(p, 3) }},
		{"the head first", patch.Optimize, func(p *patch.Plan, _ []byte) { reorder(p, 0, 1, 4, 5, 2, 3) }},
		{"all at once", patch.Optimize, func(p *patch.Plan, _ []byte) { reorder(p, 0, 1, 2, 4, 3, 5) }},
		{"another address", patch.Optimize, func(p *patch.Plan, _ []byte) { p.Steps[2].New[0]++ }},
		{"the tail under the jump", patch.Unoptimize, func(p *patch.Plan, _ []byte) { reorder(p, 2, 3, 0, 1, 4, 5) }},
		{"no synchronization before the tail", patch.Unoptimize, func(p *patch.Plan, _ []byte) { without(p, 1) }},
		{"back to the slot before the tail", patch.Unoptimize, func(p *patch.Plan, _ []byte) { reorder(p, 0, 1, 4, 2, 3, 5) }},
		{"back to the slot before the tail is seen", patch.Unoptimize, func(p *patch.Plan, _ []byte) { reorder(p, 0, 1, 2, 4, 3, 5) }},
		{"the buffer freed before hits are redirected", patch.Unoptimize, func(p *patch.Plan, _ []byte) { reorder(p, 0, 1, 2, 3, 5, 4) }},
		{"the original back without its tail", patch.Disarm, func(p *patch.Plan, _ []byte) { p.Old[1] ^= 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newChecker(t, checkCases[0])
			p, err := k.isa.PlanPatch(c.op, k.site())
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(p, k.original)
			if _, err := k.check(p); err == nil {
				t.Error("not caught")
			} else {
				t.Log(err)
			}
		})
	}
}
