package runtime

import (
	"xol/decode"
	"xol/machine"
)

// handled reports whether a task is in a hit of the site.
func (r *tasks) handled(s *site) bool {
	return r.anyActivity(func(a *activity) bool { return a.holds(s) })
}

// occupied reports whether a task is in a block, or in what a detour buffer
// calls.
func (r *tasks) occupied(p block) bool {
	return r.anyAt(func(pc uint64) bool { return p.holds(pc) || r.stubs.holds(pc) })
}

// quiet reports whether no task is in a range, nor on its way there from a copy
// of an instruction before it or in it.
func (r *tasks) quiet(lo machine.Range) bool {
	near := func(s *site) bool { return s != nil && s.addr+decode.MaxLen >= lo.Lo && s.addr < lo.Hi }
	if r.anyAt(func(pc uint64) bool { return lo.Holds(pc) || r.stubs.holds(pc) || near(r.slots.owner(pc)) }) {
		return false
	}
	return !r.anyActivity(func(a *activity) bool { return near(a.current.site) || near(a.outer.site) })
}
