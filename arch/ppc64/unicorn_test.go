//go:build unicorn

package ppc64_test

import (
	"bytes"
	"fmt"
	"testing"

	"xol/arch/ppc64"
	"xol/decode"
	"xol/internal/emulator"
	"xol/machine"
	"xol/relocate"
)

// The same cases as in qemu, where Unicorn knows the instructions: here memory
// is wherever it is touched, so that states are any.
func TestMovedCodeInUnicorn(t *testing.T) {
	for _, isa := range []ppc64.ISA{{}, {LittleEndian: true}} {
		t.Run(isa.Name(), func(t *testing.T) {
			x := newExecutor(t, isa)
			for _, c := range ppc64.MoveCases(t, isa, original) {
				x.move(t, &c)
			}
			if x.pairs < 200 {
				t.Errorf("only %d pairs of forms were run", x.pairs)
			}
		})
	}
}

const (
	original  = 0x2a00_0000_1000
	nearby    = 0x2a00_0000_3000
	further   = 0x2a00_0040_3000
	beyond    = 0x1500_0000_3000
	states    = 24
	mostSteps = 100
)

// executor runs originals and moved forms.
type executor struct {
	isa         ppc64.ISA
	engine      machine.Engine
	file        *machine.File
	start       machine.State
	left, right machine.State
	pairs       int
}

func newExecutor(t *testing.T, isa ppc64.ISA) *executor {
	f := ppc64.Registers()
	e, err := emulator.Open(isa.Name(), f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &executor{isa: isa, engine: e, file: f, start: f.NewState(), left: f.NewState(), right: f.NewState()}
}

// move runs one case, moved to each of the places.
func (x *executor) move(t *testing.T, c *ppc64.MoveCase) {
	t.Helper()
	var code []byte
	for i := range c.Insts {
		if x.engine.Skip(&c.Insts[i]) != "" {
			return
		}
		code = append(code, c.Insts[i].Bytes()...)
	}
	if !c.Same {
		if x.differ(t, c, code, nearby+c.Line, nil) == "" {
			t.Errorf("%s: a mere copy does the same, so that nothing is tested", c.Name)
		}
	}
	for _, place := range []struct {
		to    uint64
		reach relocate.Reach
	}{{nearby, relocate.Anywhere}, {further, relocate.Anywhere}, {beyond, relocate.Anywhere}, {beyond, relocate.Far}} {
		if c.Refused && place.to == beyond {
			continue
		}
		opt, to := c.Options, place.to+c.Line
		opt.Reach = place.reach
		var p relocate.Plan
		var dst [512]byte
		if err := x.isa.Plan(&p, c.Insts, opt); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		n, err := x.isa.Encode(dst[:], &p, to)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		x.pairs++
		if what := x.differ(t, c, dst[:n], to, &p); what != "" {
			t.Errorf("%s, moved to %#x as %x: %s", c.Name, to, dst[:n], what)
		}
	}
}

// differ runs the original and moved code from random states, and says what
// differs.
func (x *executor) differ(t *testing.T, c *ppc64.MoveCase, moved []byte, to uint64, p *relocate.Plan) string {
	t.Helper()
	var code []byte
	for i := range c.Insts {
		code = append(code, c.Insts[i].Bytes()...)
	}
	if err := x.engine.Load([]machine.Part{{Addr: original, Code: code}, {Addr: to, Code: moved}}); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(states) {
		x.randomize(seed)
		steps := mostSteps
		if c.Options.Form == relocate.Slot && c.Insts[0].Flow != decode.FlowNone {
			steps = 1 // it may lead to itself
		}
		event, writes := x.run(t, x.left, seed, original, len(code), steps)
		if event.Kind == machine.EventBudget && steps == 1 {
			event.Kind = machine.EventLeft
		}
		const leastStack = 4096 // what lies below does not wrap around
		if event.Kind == machine.EventBudget || x.file.Word(x.left, x.file.SP) < leastStack {
			continue
		}
		writes = append([]machine.Write(nil), writes...)
		movedEvent, movedWrites := x.run(t, x.right, seed, to, len(moved), 40*mostSteps)
		if event != movedEvent {
			return fmt.Sprintf("seed %d: %v, moved %v", seed, event, movedEvent)
		}
		if event.Kind != machine.EventLeft {
			continue
		}
		if what := x.registers(p, to, len(moved), c); what != "" {
			return fmt.Sprintf("seed %d: %s", seed, what)
		}
		if a, b := x.outside(writes, c), x.outside(movedWrites, c); a != b {
			return fmt.Sprintf("seed %d: memory %s, moved %s", seed, a, b)
		}
	}
	return ""
}

func (x *executor) run(t *testing.T, out machine.State, seed, at uint64, size, steps int) (machine.Event, []machine.Write) {
	t.Helper()
	x.file.SetWord(x.start, x.file.PC, at)
	event, writes, err := x.engine.Run(out, x.start, seed, machine.Range{Lo: at, Hi: at + uint64(size)}, steps)
	if err != nil {
		t.Fatal(err)
	}
	if event.Kind == machine.EventUndefined {
		t.Fatalf("the engine does not know an instruction at %#x", at)
	}
	return event, writes
}

func (x *executor) randomize(seed uint64) {
	r := seed
	next := func() uint64 {
		r += 0x9e3779b97f4a7c15
		return machine.Mix(r)
	}
	for i := range x.file.Registers {
		reg := &x.file.Registers[i]
		switch {
		case reg.Kind == machine.Flags || reg.Kind == machine.Control:
			x.file.SetWord(x.start, i, next()&reg.Free)
		case reg.Kind == machine.StackPointer:
			x.file.SetWord(x.start, i, 0x0e00_0000_0000+next()%0x10000&^7)
		case i == ppc64.CTR:
			x.file.SetWord(x.start, i, []uint64{0, 1, 2, 3, 50}[next()%5])
		default:
			x.file.SetWord(x.start, i, machine.Interesting(next()))
		}
	}
}

// registers says which register differs, other than those that the plan gives
// up. Where nothing leads back, the end of the code stands for the next address.
func (x *executor) registers(p *relocate.Plan, to uint64, size int, c *ppc64.MoveCase) string {
	clobbers := uint64(0)
	if p != nil {
		for i := range p.Steps {
			clobbers |= p.Steps[i].Clobbers
		}
	}
	if x.file.Word(x.right, x.file.PC) == to+uint64(size) {
		x.file.SetWord(x.right, x.file.PC, c.Insts[len(c.Insts)-1].Next())
	}
	for i := range x.file.Registers {
		if i < 64 && clobbers>>i&1 != 0 {
			continue
		}
		if a, b := x.file.Bytes(x.left, i), x.file.Bytes(x.right, i); !bytes.Equal(a, b) {
			return fmt.Sprintf("%s: %#x, moved %#x", x.file.Registers[i].Name, x.file.Word(x.left, i), x.file.Word(x.right, i))
		}
	}
	return ""
}

// outside formats writes, but for those to the part of the stack that moved
// code may use, above and below the stack pointers before and after.
func (x *executor) outside(writes []machine.Write, c *ppc64.MoveCase) string {
	const redZone, deepest = 512, 256
	lo, _ := x.isa.StackScratch(min(x.file.Word(x.start, x.file.SP), x.file.Word(x.left, x.file.SP)))
	_, hi := x.isa.StackScratch(max(x.file.Word(x.start, x.file.SP), x.file.Word(x.left, x.file.SP)))
	if c.Options.NoRedZone {
		lo, hi = lo+redZone, hi+redZone
	}
	if c.Options.Form == relocate.Region {
		lo -= deepest // the stack pointer moves meanwhile
	}
	var b bytes.Buffer
	for _, w := range writes {
		if w.Addr < lo&^7 || w.Addr >= hi {
			fmt.Fprintf(&b, "[%#x]=%x ", w.Addr, w.New)
		}
	}
	return b.String()
}
