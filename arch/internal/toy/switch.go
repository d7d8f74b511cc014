package toy

import (
	"xol/classify"
	"xol/optcheck"
)

// IndirectJump is never asked: there are no indirect jumps.
func (ISA) IndirectJump(*classify.Func, int, optcheck.Memory) optcheck.Jump { return optcheck.Jump{} }
