package runtime

import (
	"slices"

	"xol/decode"
	"xol/optcheck"
	"xol/patch"
)

// site is a probed instruction: one probe, or an aggregate of several.
type site struct {
	addr  uint64
	inst  decode.Inst
	image *Module
	judgement
	probes   []*probe // in the order of registration; never changed in place, where handlers may run
	original []byte   // the text of the region; of the instruction where there is none
	step     block    // the copy with a breakpoint after it
	boosted  block    // the copy with a jump back
	boosting boost
	state    siteState
	internal bool // the runtime's own
	expanded bool // the copy accesses memory after other instructions
	entry    bool // a patchable entry, which becomes a call
	calls    bool // the instruction may be interpreted, and makes a call: its copies access memory otherwise
	scratch  int  // register through which the copy addresses memory, or noScratch
	function *function
	origin   *origin        // of the site, and of those that have taken its place
	lost     *RegisterError // why the site is lost; nil where it is not

	jump jumpState
}

// origin tells sites apart that come one after the other at the same place.
type origin struct{ _ byte }

// boost is the tristate of the paper.
type boost int8

const (
	boostNever   boost = -1
	boostUnknown boost = 0 // until the first hit
	boostReady   boost = 1
)

// jumpState is where a site is on its way from breakpoint to jump and back.
type jumpState struct {
	detour buffer
	old    []buffer // that CPUs may still be in
	hits   patch.Hits
	plan   *patch.Plan
	next   int // step of the plan
	queued bool
	listed bool // among the sites with plans, though its plan may be gone
	failed bool // there can be no buffer
}

// buffer is a detour buffer.
type buffer struct {
	block
	entry uint64 // where the jump leads: the block's address, or a few bytes after it
	moved uint64 // address of the moved instructions
	steps []movedStep
}

// at returns the buffer that holds addr; nil where none does.
func (j *jumpState) at(addr uint64) *buffer {
	if j.detour.holds(addr) {
		return &j.detour
	}
	for i := range j.old {
		if j.old[i].holds(addr) {
			return &j.old[i]
		}
	}
	return nil
}

// block is a part of the areas for copies; its size is 0 where there is none.
type block struct {
	addr uint64
	size uint32
	end  uint32 // bytes to the breakpoint after a copy
}

func (p block) holds(addr uint64) bool { return addr-p.addr < uint64(p.size) }

// stop is the address of the breakpoint after a copy.
func (p block) stop() uint64 { return p.addr + uint64(p.end) }

// crosses reports whether the first n bytes of a site are in two pages. The text of a
// program, unlike a kernel's, may be there in parts: a jump in the place of such
// bytes would fault otherwise than they do.
func (s *site) crosses(n int) bool { return s.addr/pageSize != (s.addr+uint64(n)-1)/pageSize }

// enabled reports whether any of the probes wants to be hit.
func (s *site) enabled() bool {
	return s.state != siteGone && slices.ContainsFunc(s.probes, func(p *probe) bool { return p.enabled })
}

// needsBreakpoint reports whether a probe keeps its site from becoming a jump.
func (p *probe) needsBreakpoint() bool { return p.PostHandler != nil || p.Redirects }

// hasPost reports whether an enabled probe has a handler after the instruction.
func (s *site) hasPost() bool {
	return slices.ContainsFunc(s.probes, func(p *probe) bool { return p.enabled && p.PostHandler != nil })
}

func (s *site) redirects() bool {
	return slices.ContainsFunc(s.probes, func(p *probe) bool { return p.enabled && p.Redirects })
}

// onlyCounts reports whether all a probe wants is to be counted.
func (p *probe) onlyCounts() bool { return p.Counter && p.PreHandler == nil && p.PostHandler == nil }

// counter returns the only enabled probe, if all it wants is to be counted in
// the guest.
func (s *site) counter() *probe {
	var only *probe
	for _, p := range s.probes {
		if !p.enabled {
			continue
		}
		if only != nil || !p.onlyCounts() {
			return nil
		}
		only = p
	}
	return only
}

func (p *probe) optimized() bool {
	return p.site != nil && p.site.state == siteOptimized && p.enabled
}

func (p *probe) called() bool {
	return p.site != nil && p.site.entry && p.site.state.armed() && p.enabled
}

func (p *probe) boosted() bool { return p.site != nil && p.site.boosting == boostReady }

// movedStep is an instruction of a region, or what is after them, in bytes from the
// start of the moved instructions and of the original ones.
type movedStep struct{ moved, original uint16 }

// judgement is what all rules together say of a site.
type judgement struct {
	region optcheck.Verdict
	boost  bool // the copy may jump back
}
