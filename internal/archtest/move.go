package archtest

import (
	"bytes"
	"errors"
	"testing"

	"xol/decode"
	"xol/relocate"
)

// moveErrors are those that a Relocator answers.
var moveErrors = []error{
	relocate.ErrRefused, relocate.ErrEmpty, relocate.ErrNotContiguous, relocate.ErrTooSmall,
	relocate.ErrRange, relocate.ErrMisaligned, decode.ErrInvalid,
}

// Move plans and encodes. Sizes have to be within their bounds; an error has to
// be one of those that are documented, and leaves the buffer alone.
func Move(t testing.TB, r relocate.Relocator, insts []decode.Inst, opt relocate.Options, to uint64) (*relocate.Plan, []byte, error) {
	t.Helper()
	p, code := new(relocate.Plan), make([]byte, 8192)
	err := r.Plan(p, insts, opt)
	n := 0
	if err == nil {
		n, err = r.Encode(code, p, to)
	}
	if err != nil {
		checkMoveError(t, err, code)
		return p, nil, err
	}
	CheckBounds(t, p, n)
	return p, code[:n], nil
}

func checkMoveError(t testing.TB, err error, code []byte) {
	t.Helper()
	if len(bytes.Trim(code, "\x00")) != 0 {
		t.Errorf("%v, and the buffer was changed", err)
	}
	for _, known := range moveErrors {
		if errors.Is(err, known) {
			return
		}
	}
	t.Errorf("unknown error %v", err)
}

// CheckBounds compares the sizes of n bytes that were encoded with what was
// planned. The last step's size is known where no way back follows it.
func CheckBounds(t testing.TB, p *relocate.Plan, n int) {
	t.Helper()
	if n < p.Min || n > p.Max {
		t.Errorf("%x: %d bytes, planned %d to %d", p.Steps[0].Inst.Bytes(), n, p.Min, p.Max)
	}
	for i := range p.Steps {
		s, end := &p.Steps[i], n
		if i+1 < len(p.Steps) {
			end = int(p.Steps[i+1].Offset)
		} else if p.Options.Back != relocate.BackNone {
			break
		}
		if size := end - int(s.Offset); size < int(s.Min) || size > int(s.Max) {
			t.Errorf("%x: step of %d bytes, planned %d to %d", s.Inst.Bytes(), size, s.Min, s.Max)
		}
	}
}

// CheckImmovable compares Immovable with what Plan says of inst alone in a
// region, and the rules where both give one. p is overwritten.
func CheckImmovable(t testing.TB, isa ISA, p *relocate.Plan, inst *decode.Inst) (movable bool) {
	t.Helper()
	rule := isa.Immovable(inst)
	err := isa.Plan(p, []decode.Inst{*inst}, relocate.Options{Form: relocate.Region})
	var refused *relocate.RefusedError
	if (rule == nil) != (err == nil) || errors.As(err, &refused) && rule != refused.Rule {
		t.Errorf("% x at %#x: rule %q, plan %v", inst.Bytes(), inst.Addr, RuleID(rule), err)
	}
	return rule == nil
}
