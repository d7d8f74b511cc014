package relocate

// Layout is where the parts of the code come to stand.
type Layout struct {
	Plan *Plan
	To   uint64 // address of the first byte
}

// At returns the address of the byte after code.
func (l *Layout) At(code []byte) uint64 { return l.To + uint64(len(code)) }

// Moved returns the new address of an original one: that of the moved
// instruction where target is the start of one in a region, else target
// itself.
func (l *Layout) Moved(target uint64) uint64 {
	if l.Plan.Inside(target) {
		if s, ok := l.Plan.step(target); ok {
			return l.To + uint64(s.Offset)
		}
	}
	return target
}

// NearForms reports whether the fields of instructions are to be used at all.
func (l *Layout) NearForms() bool { return l.Plan.Options.Reach != Far }

// OutOfReach returns the error that s, whose form would stand after code, does
// not reach target.
func (l *Layout) OutOfReach(code []byte, s *Step, target uint64) error {
	return &RangeError{Addr: s.Inst.Addr, Target: target, At: l.At(code)}
}

// Encode lays the code of p out at the address to and copies it into dst. The
// offsets of the steps are settled by repetition, since a form may depend on
// where it and others come to stand.
func Encode(m *Mover, dst []byte, p *Plan, to uint64) (int, error) {
	if len(p.Steps) == 0 {
		return 0, ErrEmpty
	}
	if to&uint64(p.Align-1) != 0 {
		return 0, ErrMisaligned
	}
	off := 0
	for i := range p.Steps {
		p.Steps[i].Offset = uint32(off)
		off += int(p.Steps[i].Min)
	}
	l := &p.layout
	*l = Layout{Plan: p, To: to}
	for range maxPasses {
		settled, err := lay(m, l)
		if err != nil {
			return 0, err
		}
		if !settled {
			continue
		}
		if len(p.code) > len(dst) {
			return 0, ErrTooSmall
		}
		return copy(dst, p.code), nil
	}
	return 0, ErrRange
}

// maxPasses bounds the repetition. Two passes are the rule, three happen where
// a target is at the edge of a form's reach.
const maxPasses = 8

// lay writes the whole code once and reports whether every step came to stand
// where the others took it to be.
func lay(m *Mover, l *Layout) (settled bool, err error) {
	code := l.Plan.code[:0]
	settled = true
	for i := range l.Plan.Steps {
		s := &l.Plan.Steps[i]
		if int(s.Offset) != len(code) {
			s.Offset = uint32(len(code))
			settled = false
		}
		if before := l.Plan.Options.Before; before != nil {
			if code, err = before.Insert(code, i, l.At(code)); err != nil {
				return false, err
			}
		}
		s.Body = uint32(len(code))
		if s.Left {
			code, err = m.Leave(code, s, l)
		} else {
			code, err = m.Emit(code, s, l)
		}
		if err != nil {
			return false, err
		}
	}
	switch l.Plan.Options.Back {
	case BackNone:
	case BackBreakpoint:
		code = append(code, m.Breakpoint...)
	default:
		code, err = m.Back(code, l.Plan.Next(), l)
	}
	l.Plan.code = code
	return settled, err
}
