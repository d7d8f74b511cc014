package relocate

import (
	"slices"

	"xol/classify"
	"xol/decode"
)

// Mover is how the instructions of one ISA are moved. Make and Encode work by it.
type Mover struct {
	Align      int    // of code, in bytes: a power of 2
	Breakpoint []byte // the instruction that ends a slot with BackBreakpoint
	LeaveLen   int    // of what Leave appends, in bytes
	Forms
}

// Forms are the moved forms of one ISA.
type Forms interface {
	// Check returns why the steps of p, which are all Kept as yet, cannot be
	// moved together; nil where they can.
	Check(p *Plan) error
	// Choose gives s, a step of p that is Kept as yet, its form, with all that
	// Step tells of it, or returns the rule that it has none.
	Choose(s *Step, p *Plan) *classify.Rule
	// Jump returns the sizes in bytes of the near and of the far jump that end
	// p; or why there is no such jump.
	Jump(p *Plan) (near, far int, err error)
	// Emit appends to code the form of s, which stands at l.At(code).
	Emit(code []byte, s *Step, l *Layout) ([]byte, error)
	// Leave appends the near jump to the original of s; see Step.Left.
	Leave(code []byte, s *Step, l *Layout) ([]byte, error)
	// Back appends the jump to the original address next.
	Back(code []byte, next uint64, l *Layout) ([]byte, error)
}

// Make fills p with a plan for instructions that follow one another; see
// Relocator. Plan of each ISA is made of it.
func Make(m *Mover, p *Plan, insts []decode.Inst, opt Options) error {
	if err := p.start(insts, &opt); err != nil {
		return err
	}
	p.Align = m.Align
	if err := m.Check(p); err != nil {
		return err
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if rule := m.Choose(s, p); rule != nil {
			if opt.Form != Function {
				return Refuse(rule, s.Inst.Addr)
			}
			s.leave(m)
		}
		p.Min += int(s.Min)
		p.Max += int(s.Max)
		if opt.Before != nil {
			least, most := opt.Before.InsertSize(i)
			p.Min += least
			p.Max += most
		}
	}
	return p.addBack(m)
}

// leave makes s a jump to its instruction.
func (s *Step) leave(m *Mover) {
	s.keep()
	s.Left = true
	s.Action, s.Min, s.Max = Expanded, uint8(m.LeaveLen), uint8(m.LeaveLen)
}

// start empties the plan and fills it with steps for insts, all Kept, after
// checking that they may be planned together.
func (p *Plan) start(insts []decode.Inst, opt *Options) error {
	if len(insts) == 0 {
		return ErrEmpty
	}
	if opt.Form == Slot && len(insts) > 1 {
		return ErrNotContiguous
	}
	p.Steps, p.Options = slices.Grow(p.Steps[:0], len(insts)), *opt
	p.Min, p.Max, p.Detail = 0, 0, 0
	for i := range insts {
		inst := &insts[i]
		if inst.Len == 0 || inst.Has(decode.Invalid) {
			return decode.ErrInvalid
		}
		if i > 0 && insts[i-1].Next() != inst.Addr && (opt.Form != Function || inst.Addr < insts[i-1].Next()) {
			return ErrNotContiguous
		}
		p.Steps = p.Steps[:i+1]
		p.Steps[i].Inst = *inst
		p.Steps[i].keep()
	}
	return nil
}

// keep makes s Kept.
func (s *Step) keep() {
	s.Action, s.Note, s.Min, s.Max, s.Offset, s.Body, s.Left = Kept, nil, s.Inst.Len, s.Inst.Len, 0, 0, false
	s.Clobbers, s.Form, s.Scratch = 0, 0, Scratch{Reg: NoRegister}
}

// addBack adds the way back to the bounds.
func (p *Plan) addBack(m *Mover) error {
	switch p.Options.Back {
	case BackNone:
		return nil
	case BackBreakpoint:
		n := len(m.Breakpoint)
		p.Min += n
		p.Max += n
		return nil
	}
	near, far, err := m.Jump(p)
	if err != nil {
		return err
	}
	switch p.Options.Reach {
	case Near:
		far = near
	case Far:
		near = far
	}
	p.Min += near
	p.Max += far
	return nil
}
