package ppc64

import (
	"testing"

	"xol/decode"
	"xol/internal/archtest"
	"xol/relocate"
)

// MoveCase is a row of testdata/relocate-cases.txt for tests of other packages.
type MoveCase struct {
	Name    string
	Insts   []decode.Inst
	Options relocate.Options
	Line    uint64 // new address in a line of 64 bytes
	Refused bool   // far forms
	Same    bool   // a copy of the bytes would do
}

// MoveCases returns the rows of one byte order, decoded at an address.
func MoveCases(t testing.TB, isa ISA, at uint64) (cases []MoveCase) {
	for _, c := range moveCases(t) {
		cases = append(cases, MoveCase{c.name, archtest.Sweep(t, isa, c.code(isa), at), c.opt, c.to, c.refused != "", c.same})
	}
	return cases
}
