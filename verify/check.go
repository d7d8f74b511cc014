package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"xol/decode"
	"xol/machine"
	"xol/relocate"
)

// checker verifies one instruction at a time.
type checker struct {
	opt     *Options
	engines []machine.Engine
	file    *machine.File
	flags   int // index of the flags register

	plan        relocate.Plan
	code        [1024]byte
	start       machine.State
	left, right machine.State // after the original, after the moved form
	writes      []machine.Write
}

func newChecker(opt *Options, engines []machine.Engine) *checker {
	f := opt.Target.Registers()
	c := &checker{opt: opt, engines: engines, file: f, flags: -1}
	c.start, c.left, c.right = f.NewState(), f.NewState(), f.NewState()
	for i := range f.Registers {
		if f.Registers[i].Kind == machine.Flags {
			c.flags = i
		}
	}
	return c
}

// Where code is run: the original keeps the low bits of its address, so that
// its displacements mean what they did; the moved form is near, or so far that
// no displacement reaches.
const (
	home    = 0x2a00_0000_0000
	lowBits = 1<<30 - 1
	far     = 0x1500_0000_0000
	near    = 0x0012_3000
)

// steps bounds a run: a repeated instruction runs at most as often as Prepare
// lets it, a moved form is short.
const steps = 600

// check verifies one instruction and counts it.
func (c *checker) check(found *decode.Inst, t *tally) error {
	var inst decode.Inst
	addr := home + found.Addr&lowBits
	if err := c.opt.Target.Decode(&inst, found.Bytes(), addr); err != nil {
		return fmt.Errorf("%#x does not decode at %#x: %w", found.Addr, addr, err)
	}
	to := c.destination(&inst)
	n, err := c.move(&inst, to)
	var refused *relocate.RefusedError
	switch {
	case errors.As(err, &refused):
		t.skip(refusedClass(refused.Rule))
		return nil
	case err != nil:
		return fmt.Errorf("%x at %#x: %w", inst.Bytes(), inst.Addr, err)
	}
	moved := c.code[:n]
	reason := "no engine"
	for _, e := range c.engines {
		if reason = e.Skip(&inst); reason != "" {
			continue
		}
		if err := e.Load([]machine.Part{{Addr: inst.Addr, Code: inst.Bytes()}, {Addr: to, Code: moved}}); err != nil {
			return err
		}
		known, err := c.run(e, &inst, to, moved, t)
		if err != nil {
			return fmt.Errorf("%s: %x at %#x: %w", e.Name(), inst.Bytes(), inst.Addr, err)
		}
		if known {
			t.verify(class(&c.plan.Steps[0]))
			return nil
		}
		reason = "unknown to " + e.Name()
	}
	t.skip(reason)
	return nil
}

// destination returns an address for the moved form that depends on the
// instruction alone, with every alignment that code may have.
func (c *checker) destination(inst *decode.Inst) uint64 {
	align := uint64(c.opt.Target.Align())
	offset := machine.Mix(inst.Addr^c.opt.Seed) % 0x4000 &^ (align - 1)
	if c.opt.Reach == relocate.Far {
		return far + inst.Addr&lowBits&^0xfff + offset
	}
	return inst.Addr&^0xfff + near + offset
}

func (c *checker) move(inst *decode.Inst, to uint64) (int, error) {
	opt := relocate.Options{Reach: c.opt.Reach}
	if opt.Reach == relocate.Near {
		opt.Reach = relocate.Anywhere
	}
	if err := c.opt.Target.Plan(&c.plan, []decode.Inst{*inst}, opt); err != nil {
		return 0, err
	}
	return c.opt.Target.Encode(c.code[:], &c.plan, to)
}

// run compares the two forms in all states. It reports false where the engine
// does not know the instruction.
func (c *checker) run(e machine.Engine, inst *decode.Inst, to uint64, moved []byte, t *tally) (known bool, err error) {
	here, there := machine.Range{Lo: inst.Addr, Hi: inst.Next()}, machine.Range{Lo: to, Hi: to + uint64(len(moved))}
	for i := range c.opt.States {
		seed := machine.Mix(c.opt.Seed + uint64(i)*0x9e3779b97f4a7c15)
		randomState(c.file, c.start, seed)
		c.opt.Target.Prepare(inst, c.file, c.start)

		c.file.SetWord(c.start, c.file.PC, inst.Addr)
		event, writes, err := e.Run(c.left, c.start, seed, here, originalSteps(inst))
		if err != nil {
			return false, err
		}
		if event.Kind == machine.EventInvalid {
			return false, nil
		}
		c.writes = append(c.writes[:0], writes...)

		c.file.SetWord(c.start, c.file.PC, to)
		movedEvent, writes, err := e.Run(c.right, c.start, seed, there, steps)
		if err != nil {
			return false, err
		}
		t.states++
		if what := c.compare(inst, event, movedEvent, writes); what != nil {
			c.differ(inst, to, moved, what, t)
			return true, nil
		}
	}
	return true, nil
}

// originalSteps is 1 for an instruction that may jump to itself, so that it is
// left after one round, and the bound of steps where it may repeat itself.
func originalSteps(inst *decode.Inst) int {
	if inst.Flow == decode.FlowNone {
		return steps
	}
	return 1
}

// compare returns what differs after the two forms, nil where nothing does.
// After an exception inside the moved form its registers are not those of the
// original yet, so that only the kind of event counts then.
func (c *checker) compare(inst *decode.Inst, left, right machine.Event, writes []machine.Write) (what []string) {
	if left.Kind == machine.EventSteps && originalSteps(inst) == 1 {
		left.Kind = machine.EventLeft
	}
	if left.Kind != right.Kind || left.Kind == machine.EventTrap && left.Number != right.Number {
		return []string{fmt.Sprintf("end: %v %d %#x, moved %v %d %#x", left.Kind, left.Number, left.Addr, right.Kind, right.Number, right.Addr)}
	}
	if left.Kind != machine.EventLeft {
		return nil
	}
	for i := range c.file.Registers {
		a, b := c.file.Bytes(c.left, i), c.file.Bytes(c.right, i)
		if i == c.flags {
			undefined := c.opt.Target.UndefinedFlags(inst)
			if (c.file.Word(c.left, i)^c.file.Word(c.right, i))&^undefined == 0 {
				continue
			}
		}
		if !slices.Equal(a, b) {
			what = append(what, fmt.Sprintf("%s: %s, moved %s", c.file.Registers[i].Name, number(a), number(b)))
		}
	}
	return append(what, c.compareWrites(writes)...)
}

// compareWrites compares what the two forms left in memory, but for the part
// of the stack that moved code may use.
func (c *checker) compareWrites(moved []machine.Write) (what []string) {
	var scratch machine.Range
	scratch.Lo, scratch.Hi = c.opt.Target.StackScratch(c.file.Word(c.start, c.file.SP))
	original := c.writes
	for len(original) > 0 || len(moved) > 0 {
		switch {
		case len(moved) == 0 || len(original) > 0 && original[0].Addr < moved[0].Addr:
			what = appendWrite(what, scratch, original[0].Addr, original[0].New, original[0].Old)
			original = original[1:]
		case len(original) == 0 || moved[0].Addr < original[0].Addr:
			what = appendWrite(what, scratch, moved[0].Addr, moved[0].Old, moved[0].New)
			moved = moved[1:]
		default:
			what = appendWrite(what, scratch, moved[0].Addr, original[0].New, moved[0].New)
			original, moved = original[1:], moved[1:]
		}
	}
	return what
}

func appendWrite(what []string, scratch machine.Range, addr, original, moved uint64) []string {
	if original == moved || scratch.Holds(addr) {
		return what
	}
	return append(what, fmt.Sprintf("[%#x]: %#016x, moved %#016x", addr, original, moved))
}

// number formats a little-endian value.
func number(value []byte) string {
	if len(value) <= 8 {
		var word [8]byte
		copy(word[:], value)
		return fmt.Sprintf("%#x", binary.LittleEndian.Uint64(word[:]))
	}
	reversed := slices.Clone(value)
	slices.Reverse(reversed)
	return fmt.Sprintf("%#x", reversed)
}

func (c *checker) differ(inst *decode.Inst, to uint64, moved []byte, what []string, t *tally) {
	t.differences++
	if len(t.examples) == MaxExamples {
		return
	}
	t.examples = append(t.examples, Difference{
		Inst: *inst, To: to, Moved: slices.Clone(moved), State: slices.Clone(c.start), What: what,
	})
}

// class names what was done to an instruction: the note of its form, or else
// the action and flow.
func class(s *relocate.Step) string {
	if s.Note != nil {
		return s.Action.String() + ": " + s.Note.ID
	}
	return s.Action.String()
}

func (t *tally) verify(class string) {
	t.executed++
	if t.verified == nil {
		t.verified = make(map[string]int)
	}
	t.verified[class]++
}

func (t *tally) skip(class string) {
	if t.skipped == nil {
		t.skipped = make(map[string]int)
	}
	t.skipped[class]++
}
