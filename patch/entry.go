package patch

// Follow returns the plan that carries out first and then second, on the text
// that first leaves.
func Follow(first, second *Plan) *Plan {
	p := *first
	p.Operation = second.Operation
	p.Steps = append(p.Steps[:len(p.Steps):len(p.Steps)], second.Steps...)
	return &p
}

// EntryWord returns the plan of an ISA whose patchable entries are aligned words:
// the Breakpoint of t is the word that does nothing, and JumpTo the call.
func EntryWord(t Texts, op Operation, s *Site, together func(old, new []byte) bool) (*Plan, error) {
	as := Optimize
	switch op {
	case Disarm:
		as = Unoptimize
	case Arm:
	default:
		return nil, ErrOperation
	}
	p, err := Wordwise(t, as, s, together)
	if err == nil {
		p.Operation = op
	}
	return p, err
}
