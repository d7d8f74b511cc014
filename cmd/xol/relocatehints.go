package main

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"xol/classify"
	"xol/relocate"
)

// refusal returns the rule against err, an error of Plan or Encode, with what
// would be right. What does not reach at this address is refused by the rule
// against its far form; where there is none, the rule is nil.
func (m *mover) refusal(err error, opt relocate.Options) (*classify.Rule, error) {
	var refused *relocate.RefusedError
	var outOfReach *relocate.RangeError
	switch {
	case errors.As(err, &refused):
		err = errors.New(refused.Rule.Reason)
	case errors.As(err, &outOfReach) && opt.Reach == relocate.Anywhere:
		far := opt
		far.Reach = relocate.Far
		if !errors.As(m.isa.Plan(new(relocate.Plan), m.insts, far), &refused) {
			return nil, err
		}
		opt = far
		err = fmt.Errorf("%w: %s; instead: %s", err, refused.Rule.Reason, refused.Rule.Remedy)
	default:
		return nil, err
	}
	if flag := m.flagAgainst(opt); flag != "" {
		err = fmt.Errorf("%w (%s)", err, flag)
	}
	return refused.Rule, err
}

// flagAgainst returns the flag that would have the instructions moved; empty
// where none would.
func (m *mover) flagAgainst(opt relocate.Options) string {
	for _, try := range []struct {
		flag   string
		change func(*relocate.Options)
	}{
		{"--scratch stack", func(o *relocate.Options) { o.Scratch = relocate.ScratchStack }},
		{"--dead REGISTERS", func(o *relocate.Options) { o.Registers = math.MaxUint32 }},
	} {
		with := opt
		try.change(&with)
		if m.isa.Plan(new(relocate.Plan), m.insts, with) == nil {
			return try.flag
		}
	}
	return ""
}

// clobbered returns the names of the registers that the moved code, code, may
// change though the original does not. A plan lists them for any address; where
// near forms are all that is needed, only theirs count.
func (m *mover) clobbered(code []byte, to uint64) []string {
	set := clobbersOf(&m.plan)
	if set == 0 {
		return nil
	}
	var near relocate.Plan
	opt := m.plan.Options
	opt.Reach = relocate.Near
	if m.isa.Plan(&near, m.insts, opt) == nil {
		same := make([]byte, len(m.code))
		if n, err := m.isa.Encode(same, &near, to); err == nil && string(same[:n]) == string(code) {
			set = clobbersOf(&near)
		}
	}
	var names []string
	for ; set != 0; set &= set - 1 {
		names = append(names, m.isa.Registers().Registers[bits.TrailingZeros64(set)].Name)
	}
	return names
}

func clobbersOf(p *relocate.Plan) (set uint64) {
	for i := range p.Steps {
		set |= p.Steps[i].Clobbers
	}
	return set
}
