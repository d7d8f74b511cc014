package toy

import (
	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

// JumpLen returns the length in bytes of the jump that may take a breakpoint's
// place.
func (ISA) JumpLen() int { return wordSize }

// Optimizer returns the rules for turning breakpoints into jumps.
func (a ISA) Optimizer(profile string, _ classify.KernelOptions) (optcheck.Optimizer, bool) {
	_, _, ok := known.Find(profile)
	return optcheck.New(a), ok
}

// RegionRules returns the rules for breakpoints that become jumps.
func (ISA) RegionRules() *optcheck.Rules { return &regionRules }

// Immovable returns the rule that keeps inst from being moved.
func (ISA) Immovable(inst *decode.Inst) *classify.Rule {
	if inst.Len == 0 || inst.Has(decode.Invalid) {
		return &regionRules[optcheck.Undecodable]
	}
	return nil
}

// IndirectJump is never asked: there are no indirect jumps.
func (ISA) IndirectJump(*classify.Func, int, optcheck.Memory) optcheck.Jump { return optcheck.Jump{} }

// TablesInText reports that there are no jump tables in text.
func (ISA) TablesInText() bool { return false }

// FormsAddress finds none: an immediate is too short.
func (ISA) FormsAddress(*decode.Inst) (addr uint64, ok bool) { return 0, false }

// FormsPointer finds none.
func (ISA) FormsPointer(*classify.Func, int, optcheck.Memory) (addr uint64, ok bool) { return 0, false }

// Alternative returns code as it is: no kernel replaces text.
func (ISA) Alternative(code []byte, _, _ uint64, _ int) []byte { return code }
