package detour

import (
	"xol/machine"
	"xol/patch"
	"xol/relocate"
)

// EntryBuilder makes what probes at patchable function entries need: sites
// where the compiler left a call or NOPs for others to patch. A site without
// probes does nothing; with probes it is a call of a stub that all sites share.
type EntryBuilder interface {
	// EntryNop returns the bytes of a site that does nothing.
	EntryNop() []byte
	// EntryLead returns how many bytes before the site belong to it: an
	// instruction that keeps the function's return address where the call
	// overwrites it.
	EntryLead() int
	// EntryText returns what the lead and the site become before anything runs
	// there: a site that does nothing. ok is false where text, which starts at
	// the lead, is no such site. The result is as long as what it replaces.
	EntryText(text []byte) (ready []byte, ok bool)
	// PlanEntry returns how a site that does nothing becomes a call (patch.Arm),
	// or the other way round (patch.Disarm). Site.Original is the text that does
	// nothing, Site.Detour where the stub is. It answers as PlanPatch does.
	PlanEntry(op patch.Operation, s *patch.Site) (*patch.Plan, error)
	// EntryStub returns the stub for the address at. It saves the registers as a
	// detour buffer does, as they are when the function starts, calls
	// callback(site, regs), restores them and goes on where the callback has left
	// the frame's instruction pointer, which is the site before. The return
	// address that the callback leaves is the function's.
	EntryStub(at, callback uint64, kernel bool) []byte
	// LeaveEntry has a CPU with the registers r, at the start of a stub, be where it
	// was called, and returns the address after the site. Nothing has changed
	// where there is an error: the stack cannot be read.
	LeaveEntry(r machine.Registers, m machine.Memory) (next uint64, err error)
}

// EntryPlan returns the plan of a stub for the ISAs' templates.
func EntryPlan(callback uint64, kernel bool) *Plan {
	p := &Plan{Options: Options{Kernel: kernel, Callback: callback}}
	p.Options.Move.NoRedZone, p.Options.Move.Kernel = true, kernel
	p.Relocation.Steps = make([]relocate.Step, 1)
	return p
}
