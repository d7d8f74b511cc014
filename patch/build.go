package patch

import (
	"bytes"

	"xol/machine"
	"xol/relocate"
)

// Texts are what an ISA puts in the place of the original.
type Texts interface {
	Breakpoint(kernel bool) []byte
	// JumpTo returns the jump from one address to another, or why there is
	// none.
	JumpTo(at, detour uint64) ([]byte, error)
}

// textsOf returns what the operation on s needs: the jump where it is one of
// the two texts. It checks that the original is long enough.
func textsOf(t Texts, op Operation, s *Site) (breakpoint, jump []byte, err error) {
	if op > Unoptimize {
		return nil, nil, ErrOperation
	}
	breakpoint = t.Breakpoint(s.Kernel)
	if op == Optimize || op == Unoptimize {
		if jump, err = t.JumpTo(s.Addr, s.Detour.Lo); err != nil {
			return nil, nil, err
		}
	}
	if len(s.Original) < max(len(breakpoint), len(jump)) {
		return nil, nil, ErrShort
	}
	return breakpoint, jump, nil
}

// over returns the original with its first bytes replaced.
func over(original, head []byte) []byte {
	text := bytes.Clone(original)
	copy(text, head)
	return text
}

// Bytewise returns the plan where the breakpoint is a single byte and jump and
// instructions are longer, so that the jump comes in two parts: after the
// breakpoint its tail, then its first byte. CPUs that would read the tail as
// instructions are waited for first, and none comes there any more: hits are
// redirected to the detour buffer before, and back to the slot when the tail is
// the original again.
func Bytewise(t Texts, op Operation, s *Site) (*Plan, error) {
	breakpoint, jump, err := textsOf(t, op, s)
	if err != nil {
		return nil, err
	}
	p := &Plan{Operation: op, Addr: s.Addr}
	end := s.Addr + uint64(len(s.Original))
	switch op {
	case Arm:
		p.Old = bytes.Clone(s.Original)
		p.write(0, breakpoint)
	case Disarm:
		p.Old = over(s.Original, breakpoint)
		p.write(0, s.Original[:len(breakpoint)])
	case Optimize:
		p.Old = over(s.Original, breakpoint)
		p.redirect(HitDetour)
		p.quiesce(machine.Range{Lo: s.Addr + 1, Hi: end})
		p.write(1, jump[1:])
		p.write(0, jump[:1])
	case Unoptimize:
		p.Old, p.Hits = over(s.Original, jump), HitDetour
		p.write(0, breakpoint)
		p.write(1, s.Original[1:len(jump)])
		p.redirect(HitSlot)
		p.quiesce(s.Detour)
	}
	return p, nil
}

// Wordwise returns the plan where breakpoint, jump and what they replace are
// aligned words that are stored at once. Of a longer instruction the first word
// is replaced, and nothing but the instruction itself leads to the others.
// together says that CPUs may execute the two words while one becomes the other.
func Wordwise(t Texts, op Operation, s *Site, together func(old, new []byte) bool) (*Plan, error) {
	breakpoint, jump, err := textsOf(t, op, s)
	if err != nil {
		return nil, err
	}
	word := len(breakpoint)
	if s.Addr%uint64(word) != 0 {
		return nil, relocate.ErrMisaligned
	}
	from, to := s.Original[:word], breakpoint
	switch op {
	case Disarm:
		from, to = to, from
	case Optimize:
		from, to = breakpoint, jump
	case Unoptimize:
		from, to = jump, breakpoint
	}
	p := &Plan{Operation: op, Addr: s.Addr, Old: over(s.Original, from)}
	p.write(0, to)
	p.Steps[0].Alone = !together(from, to)
	if op == Unoptimize {
		p.quiesce(s.Detour)
	}
	return p, nil
}

// write appends a write at an offset in the site, and the synchronization that
// goes with it.
func (p *Plan) write(offset int, text []byte) {
	p.Steps = append(p.Steps,
		Step{Kind: Write, Addr: p.Addr + uint64(offset), New: bytes.Clone(text)}, Step{Kind: Sync})
}

func (p *Plan) redirect(h Hits) { p.Steps = append(p.Steps, Step{Kind: Redirect, Hits: h}) }

func (p *Plan) quiesce(r machine.Range) { p.Steps = append(p.Steps, Step{Kind: Quiesce, Range: r}) }
