package toy

import (
	"xol/classify"
	"xol/optcheck/flow"
)

// IndirectJump says that nothing is known: no instruction is an indirect jump.
func (ISA) IndirectJump(*flow.Tracer, *classify.Func, int, flow.Memory) flow.Jump {
	return flow.Jump{What: flow.WhatNoJump}
}
