package amd64

import "xol/patch"

// breakpoint is int3.
const breakpoint = 0xcc

// Breakpoint returns int3, which may take the place of any first byte while
// other CPUs execute: they see the one or the other [Linux relies on it,
// arch/x86/kernel/alternative.c, text_poke_bp_batch].
func (ISA) Breakpoint(bool) []byte { return []byte{breakpoint} }

// PlanPatch returns how an operation is done; see patch.Patcher. The jump is
// longer than what CPUs are sure to read at once, so that a breakpoint stands
// while its tail is written.
func (a ISA) PlanPatch(op patch.Operation, s *patch.Site) (*patch.Plan, error) {
	return patch.Bytewise(a, op, s)
}
