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

// checker verifies one run of instructions at a time.
type checker struct {
	opt     *Options
	form    relocate.Form
	engines []machine.Engine
	file    *machine.File
	flags   int // index of the flags register

	insts       []decode.Inst // as they stand where they are run
	plan        relocate.Plan
	code        [4096]byte
	start       machine.State
	left, right machine.State // after the original, after the moved form
	writes      []machine.Write
}

func newChecker(opt *Options, form relocate.Form, engines []machine.Engine) *checker {
	f := opt.Target.Registers()
	c := &checker{opt: opt, form: form, engines: engines, file: f, flags: -1}
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

// Bounds of a run: a repeated instruction runs at most as often as Prepare lets
// it; a moved form is some times as long as the original.
const (
	steps      = 600
	movedSteps = 32 * steps
)

// check verifies one run of instructions and counts it.
func (c *checker) check(found []decode.Inst, t *tally) error {
	if err := c.settle(found); err != nil {
		return err
	}
	from, to := c.insts[0].Addr, c.destination()
	n, err := c.move(to)
	var refused *relocate.RefusedError
	switch {
	case errors.As(err, &refused):
		t.skip(refusedClass(refused.Rule))
		return nil
	case err != nil:
		return fmt.Errorf("%x at %#x: %w", c.bytes(), from, err)
	}
	moved := c.code[:n]
	reason := "no engine"
	for _, e := range c.engines {
		if reason = c.skip(e); reason != "" {
			continue
		}
		if err := e.Load([]machine.Part{{Addr: from, Code: c.bytes()}, {Addr: to, Code: moved}}); err != nil {
			return err
		}
		result, states, err := c.run(e, to, moved, t)
		if err != nil {
			return fmt.Errorf("%s: %x at %#x: %w", e.Name(), c.bytes(), from, err)
		}
		switch result {
		case compared:
			t.verify(c.class())
			t.states += states.run
			t.endless += states.endless
			return nil
		case notCompared:
			reason = "exceptions or loops in every state"
		case unknown:
			reason = "unknown to " + e.Name()
		}
	}
	t.skip(reason)
	return nil
}

// settle decodes the instructions where they are to run.
func (c *checker) settle(found []decode.Inst) error {
	c.insts = c.insts[:0]
	addr := home + found[0].Addr&lowBits
	for i := range found {
		var inst decode.Inst
		if err := c.opt.Target.Decode(&inst, found[i].Bytes(), addr); err != nil {
			return fmt.Errorf("%#x does not decode at %#x: %w", found[i].Addr, addr, err)
		}
		c.insts = append(c.insts, inst)
		addr = inst.Next()
	}
	return nil
}

// next returns the address after the instructions.
func (c *checker) next() uint64 { return c.insts[len(c.insts)-1].Next() }

// bytes returns the instructions' bytes.
func (c *checker) bytes() []byte {
	var code []byte
	for i := range c.insts {
		code = append(code, c.insts[i].Bytes()...)
	}
	return code
}

// skip says why the engine does not run one of the instructions.
func (c *checker) skip(e machine.Engine) string {
	for i := range c.insts {
		if reason := e.Skip(&c.insts[i]); reason != "" {
			return reason
		}
	}
	return ""
}

// destination returns an address for the moved form that depends on the
// instructions alone, with every alignment that code may have.
func (c *checker) destination() uint64 {
	from := c.insts[0].Addr
	align := uint64(c.opt.Target.Align())
	offset := machine.Mix(from^c.opt.Seed) % 0x4000 &^ (align - 1)
	if c.opt.Reach == relocate.Far {
		return far + from&lowBits&^0xfff + offset
	}
	return from&^0xfff + near + offset
}

// move encodes the moved form for the address to. What a near place is out of
// reach of may take the same registers as a far one.
func (c *checker) move(to uint64) (int, error) {
	if c.opt.Reach == relocate.Near {
		n, err := c.encode(relocate.Options{Form: c.form}, to)
		if !errors.Is(err, relocate.ErrRange) {
			return n, err
		}
		return c.encode(relocate.Options{Form: c.form, Registers: c.deadRegisters()}, to)
	}
	return c.encode(relocate.Options{Form: c.form, Reach: c.opt.Reach, Registers: c.deadRegisters()}, to)
}

func (c *checker) encode(opt relocate.Options, to uint64) (int, error) {
	if err := c.opt.Target.Plan(&c.plan, c.insts, opt); err != nil {
		return 0, err
	}
	return c.opt.Target.Encode(c.code[:], &c.plan, to)
}

// deadRegisters returns registers that none of the instructions uses.
func (c *checker) deadRegisters() uint32 {
	dead := ^uint32(0)
	for i := range c.insts {
		dead &= c.opt.Target.DeadRegisters(&c.insts[i])
	}
	return dead
}

// result is what came of running both forms.
type result uint8

const (
	unknown     result = iota // the engine does not know an instruction
	notCompared               // neither came to its end from any state
	compared
)

// stateCounts says what became of the states of one instruction: both forms
// were run from it, or the original came to no end.
type stateCounts struct{ run, endless int }

// run compares the two forms in all states, or up to one in which they differ.
func (c *checker) run(e machine.Engine, to uint64, moved []byte, t *tally) (result, stateCounts, error) {
	var states stateCounts
	from := c.insts[0].Addr
	here, there := machine.Range{Lo: from, Hi: c.next()}, machine.Range{Lo: to, Hi: to + uint64(len(moved))}
	done := notCompared
	for i := range c.opt.States {
		seed := machine.Mix(c.opt.Seed + uint64(i)*0x9e3779b97f4a7c15)
		RandomState(c.file, c.start, seed)
		for j := range c.insts {
			c.opt.Target.Prepare(&c.insts[j], c.file, c.start)
		}

		c.file.SetWord(c.start, c.file.PC, from)
		event, writes, err := e.Run(c.left, c.start, seed, here, c.originalSteps())
		if err != nil {
			return unknown, states, err
		}
		switch {
		case event.Kind == machine.EventUndefined:
			return unknown, states, nil
		case event.Kind != machine.EventBudget:
		case c.originalSteps() > 1:
			states.endless++
			continue
		default:
			event.Kind = machine.EventLeft
		}
		c.writes = append(c.writes[:0], writes...)

		c.file.SetWord(c.start, c.file.PC, to)
		movedEvent, writes, err := e.Run(c.right, c.start, seed, there, movedSteps)
		if err != nil {
			return unknown, states, err
		}
		states.run++
		what, complete := c.compare(event, movedEvent, to-from, writes)
		if what != nil {
			c.differ(to, moved, what, t)
			return compared, states, nil
		}
		if complete {
			done = compared
		}
	}
	return done, states, nil
}

// originalSteps is 1 for a lone instruction that may jump to itself, so that it
// is left after one round, and the bound of steps where it may repeat itself.
func (c *checker) originalSteps() int {
	if c.form == relocate.Region || c.insts[0].Flow == decode.FlowNone {
		return steps
	}
	return 1
}

// compare returns what differs after the two forms, nil where nothing does, and
// whether all there is was compared: after an exception inside an expanded form
// its registers are not those of the original yet, so that only the kind of
// event counts then. distance is how far the moved form is.
func (c *checker) compare(left, right machine.Event, distance uint64, writes []machine.Write) (what []string, complete bool) {
	if left.Kind == machine.EventBudget {
		return nil, false // a loop, of which only the moved form may have come to the end
	}
	if left.Kind != right.Kind || left.Kind == machine.EventException && left.Number != right.Number {
		return []string{fmt.Sprintf("end: %v %d %#x, moved %v %d %#x", left.Kind, left.Number, left.Page, right.Kind, right.Number, right.Page)}, true
	}
	switch left.Kind {
	case machine.EventLeft:
	case machine.EventException, machine.EventFault:
		if c.form == relocate.Region || c.plan.Steps[0].Action == relocate.Expanded {
			return nil, false
		}
		c.file.SetWord(c.right, c.file.PC, c.file.Word(c.right, c.file.PC)-distance)
	default:
		return nil, false
	}
	return append(c.compareRegisters(), c.compareWrites(writes)...), true
}

func (c *checker) compareRegisters() (what []string) {
	undefined, clobbered := uint64(0), uint64(0)
	for i := range c.insts {
		undefined |= c.opt.Target.UndefinedFlags(&c.insts[i])
		clobbered |= c.plan.Steps[i].Clobbers
	}
	for i := range c.file.Registers {
		a, b := c.file.Bytes(c.left, i), c.file.Bytes(c.right, i)
		switch {
		case slices.Equal(a, b), i < 64 && clobbered>>i&1 != 0:
		case i == c.flags && (c.file.Word(c.left, i)^c.file.Word(c.right, i))&^undefined == 0:
		default:
			what = append(what, fmt.Sprintf("%s: %s, moved %s", c.file.Registers[i].Name, number(a), number(b)))
		}
	}
	return what
}

// scratch returns the parts of the stack that moved code may use: below the red
// zone, where the stack pointer is at first and where it is in the end.
// Instructions of a region move it meanwhile.
func (c *checker) scratch() (r [2]machine.Range) {
	for i, s := range [...]machine.State{c.start, c.left} {
		lo, hi := c.opt.Target.StackScratch(c.file.Word(s, c.file.SP))
		r[i] = machine.Range{Lo: lo &^ 7, Hi: hi} // writes are whole words
	}
	if c.form == relocate.Region {
		const deepest = 4096 // below either end, between the two
		r[0] = machine.Range{Lo: min(r[0].Lo, r[1].Lo) - deepest, Hi: max(r[0].Hi, r[1].Hi)}
	}
	return r
}

// compareWrites compares what the two forms left in memory, but for the part
// of the stack that moved code may use.
func (c *checker) compareWrites(moved []machine.Write) (what []string) {
	scratch, original := c.scratch(), c.writes
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

func appendWrite(what []string, scratch [2]machine.Range, addr, original, moved uint64) []string {
	if original == moved || scratch[0].Holds(addr) || scratch[1].Holds(addr) {
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

func (c *checker) differ(to uint64, moved []byte, what []string, t *tally) {
	t.differences++
	if len(t.examples) == maxExamples {
		return
	}
	t.examples = append(t.examples, Difference{
		Inst: c.insts[0], Rest: slices.Clone(c.insts[1:]), To: to,
		Moved: slices.Clone(moved), State: slices.Clone(c.start), What: what,
	})
}

// class names what was done to an instruction: the note of its form, or else
// the action.
func (c *checker) class() string {
	s := &c.plan.Steps[0]
	if c.form == relocate.Region {
		return "regions"
	}
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
