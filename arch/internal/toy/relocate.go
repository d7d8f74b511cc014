package toy

import (
	"encoding/binary"

	"xol/classify"
	"xol/decode"
	"xol/relocate"
)

var noteBranch = relocate.Note{ID: "toy/branch", Text: "the branch has a new distance"}

// mover moves instructions; there is no breakpoint that could end a slot.
var mover = relocate.Mover{Align: wordSize, LeaveLen: wordSize, Forms: forms4{}}

// Plan fills p; see relocate.Relocator. Branches are re-based, and have to
// reach.
func (ISA) Plan(p *relocate.Plan, insts []decode.Inst, opt relocate.Options) error {
	return relocate.Make(&mover, p, insts, opt)
}

// Encode writes the code of p; see relocate.Relocator.
func (ISA) Encode(dst []byte, p *relocate.Plan, to uint64) (int, error) {
	return relocate.Encode(&mover, dst, p, to)
}

// forms4 are moved forms, all of which have 4 bytes; see relocate.Forms.
type forms4 struct{}

func (forms4) Check(*relocate.Plan) error { return nil }

func (forms4) Choose(s *relocate.Step, _ *relocate.Plan) *classify.Rule {
	if s.Inst.Has(decode.HasTarget) {
		s.Action, s.Note = relocate.Rebased, &noteBranch
	}
	return nil
}

func (forms4) Jump(*relocate.Plan) (near, far int, err error) { return wordSize, wordSize, nil }

func (forms4) Emit(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	if !s.Inst.Has(decode.HasTarget) {
		return append(code, s.Inst.Bytes()...), nil
	}
	target := l.Moved(s.Inst.Target)
	word, ok := rebased(wordOf(s.Inst.Raw[:]), target-l.At(code))
	if !ok {
		return nil, l.OutOfReach(code, s, target)
	}
	return binary.LittleEndian.AppendUint32(code, word), nil
}

func (f forms4) Leave(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	return f.Back(code, s.Inst.Addr, l)
}

func (forms4) Back(code []byte, next uint64, l *relocate.Layout) ([]byte, error) {
	word, ok := rebased(opJump, next-l.At(code))
	if !ok {
		return nil, relocate.ErrRange
	}
	return binary.LittleEndian.AppendUint32(code, word), nil
}

// rebased returns a branch with another distance, in bytes; ok is false where
// that does not fit.
func rebased(word uint32, distance uint64) (moved uint32, ok bool) {
	bits := forms[word&0xff].target
	words := int64(distance) / wordSize
	keep := uint32(1)<<(32-bits) - 1
	return word&keep | uint32(words)<<(32-bits), words == words<<(64-bits)>>(64-bits)
}

// JumpLen returns the length in bytes of the jump that may take a breakpoint's
// place.
func (ISA) JumpLen() int { return wordSize }
