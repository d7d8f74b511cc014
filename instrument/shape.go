package instrument

import (
	"errors"

	"xol/classify"
	"xol/decode"
	"xol/detour"
	"xol/optcheck"
	"xol/relocate"
)

// plan chooses what moves: the regions of single wants, where each of them has one; else
// the whole function; else the regions that there are, and single instructions.
func (f *function) plan() error {
	if len(f.spots) == 0 {
		return nil
	}
	pieces, all := f.regions()
	if !all && f.movesWhole() {
		err := f.add(f.whole())
		if err == nil || !errors.Is(err, errNotMovable) {
			return err
		}
	}
	for _, p := range pieces {
		if err := f.add(p); err != nil && !errors.Is(err, errNotMovable) {
			return err
		}
	}
	return nil
}

var errNotMovable = errors.New("instrument: these instructions cannot be moved")

// piece is instructions that move together.
type piece struct {
	whole bool
	insts []int // ascending
	spots []spot
	ways  []Way // by address in the file; Step is an index of insts
}

// regions returns a piece for each region, or single instruction, that wants are in; all
// says whether each of them gets a jump.
func (f *function) regions() (pieces []piece, all bool) {
	all = true
	for at := 0; at < len(f.spots); {
		first := f.spots[at].inst
		p, ok := f.region(first)
		if !ok {
			p, all = f.single(first), false
		}
		last := p.insts[len(p.insts)-1]
		for at < len(f.spots) && f.spots[at].inst <= last {
			p.spots = append(p.spots, f.spots[at])
			at++
		}
		pieces = append(pieces, p)
	}
	return pieces, all
}

// region returns the region of a jump at instruction first, or at the one after it, where
// first is a landing pad, which stays.
func (f *function) region(first int) (p piece, ok bool) {
	at := first
	if f.r.Insts[first].Has(decode.LandingPad) {
		at++
		if at == len(f.r.Insts) || f.entryIn(f.r.Insts[at].Addr, 1) || f.leader(at) {
			return p, false
		}
		p.insts = append(p.insts, first)
	}
	way := Way{Addr: f.r.Insts[at].Addr, Jump: true}
	moved := uint64(f.r.Optimize[at].Moved)
	if !f.r.Optimize[at].OK() {
		if first > 0 || !f.useCave(&way) {
			return p, false
		}
		moved = uint64(len(way.short))
	}
	for i := at; i < len(f.r.Insts) && f.r.Insts[i].Addr < way.Addr+moved; i++ {
		p.insts = append(p.insts, i)
		way.inside(f.r.Insts[i].Addr)
	}
	p.ways = []Way{way}
	return p, true
}

// inside notes that an instruction that moves starts at addr.
func (w *Way) inside(addr uint64) {
	if off := addr - w.Addr; off > 0 && off < 8 {
		w.Inside |= 1 << off
	}
}

// single returns a breakpoint on one instruction.
func (f *function) single(i int) piece {
	return piece{insts: []int{i}, ways: []Way{{Addr: f.r.Insts[i].Addr}}}
}

// movesWhole reports whether all instructions of the function may move, and it is known
// well enough where they are.
func (f *function) movesWhole() bool {
	if f.r.Err != nil {
		return false
	}
	for i := range f.r.Insts {
		if f.reached(i) && (f.r.Insts[i].Has(decode.Invalid) || f.inSequence(i)) {
			return false
		}
	}
	return true
}

// whole returns all that execution may come to.
func (f *function) whole() piece {
	p := piece{whole: true, spots: f.spots}
	for i := range f.r.Insts {
		if f.reached(i) {
			p.insts = append(p.insts, i)
		}
	}
	covered := uint64(0)
	for step, i := range p.insts {
		addr := f.r.Insts[i].Addr
		if addr < covered || f.keepsPad(i) || f.isa.Immovable(&f.r.Insts[i]) != nil {
			continue
		}
		way := Way{Addr: addr, Step: step}
		if step > 0 && f.keepsPad(p.insts[step-1]) {
			way.Step--
		}
		if f.entryIn(addr, 1) || way.Step != step {
			way.Jump = f.hasRoomFor(addr, uint64(f.isa.JumpLen())) || way.Step == 0 && f.useCave(&way)
		}
		if way.Jump {
			size := f.isa.JumpLen()
			if way.Cave != 0 {
				size = len(way.short)
			}
			covered = addr + uint64(size)
			for _, j := range p.insts[step:] {
				way.inside(f.r.Insts[j].Addr)
			}
			way.Inside &= 1<<size - 1
		}
		p.ways = append(p.ways, way)
	}
	return p
}

// keepsPad reports whether instruction i is a landing pad that can stay: the way into
// the copy is the instruction after it, to which nothing else leads.
func (f *function) keepsPad(i int) bool {
	return f.r.Insts[i].Has(decode.LandingPad) && i+1 < len(f.r.Insts) && f.reached(i+1) &&
		!f.leader(i+1) && !f.entryIn(f.r.Insts[i+1].Addr, 1)
}

// hasRoomFor reports whether a jump of n bytes overwrites nothing that execution may come to
// from elsewhere, and nothing but instructions and padding.
func (f *function) hasRoomFor(addr, n uint64) bool {
	end := addr + n
	if n == uint64(f.isa.Align()) {
		return true
	}
	if f.entryIn(addr+1, n-1) || f.staysIn(addr, end) || end > f.r.End()+f.reach().Slack {
		return false
	}
	for _, m := range f.r.Marks {
		if m.Addr < end && m.End() > addr && m.Kind&optcheck.MustStay != 0 {
			return false
		}
	}
	return true
}

// staysIn reports whether an instruction that cannot be moved starts in [lo, hi).
func (f *function) staysIn(lo, hi uint64) bool {
	for i := decode.From(f.r.Insts, lo); i < len(f.r.Insts) && f.r.Insts[i].Addr < hi; i++ {
		if f.reached(i) && f.isa.Immovable(&f.r.Insts[i]) != nil {
			return true
		}
	}
	return false
}

// refuseSpots refuses what is wanted in a piece.
func (f *function) refuseSpots(spots []spot, rule *classify.Rule) {
	for _, s := range spots {
		f.refuse(s.want, rule)
	}
}

// add makes a plan of a piece. Where it cannot be moved, it returns errNotMovable for a
// function, and refuses the wants of a smaller one.
func (f *function) add(p piece) error {
	plan := &Plan{Whole: p.whole, isa: f.isa, isGo: f.isGo}
	insts := make([]decode.Inst, len(p.insts))
	for step, i := range p.insts {
		insts[step] = moved(f.r.Insts[i], f.bias)
	}
	places, refused := f.insert(plan, &p)
	if len(places) == 0 {
		f.refuseSpots(refused, &ruleFullStack)
		return nil
	}
	opt := relocate.Options{Form: relocate.Function, Reach: relocate.Near, Before: inserter{p: plan}, NoRedZone: f.isGo}
	if last := &insts[len(insts)-1]; last.IsCall() || !last.Continues() {
		opt.Back = relocate.BackNone // what is called returns to the original
	}
	if err := f.isa.Plan(&plan.code, insts, opt); err != nil {
		var refused *relocate.RefusedError
		if !errors.As(err, &refused) {
			return err
		}
		if !p.whole {
			f.refuseSpots(p.spots, refused.Rule)
		}
		return errNotMovable
	}
	plan.Ways = p.ways
	for i := range plan.Ways {
		plan.Ways[i].Addr += f.bias
		if plan.Ways[i].Cave != 0 {
			plan.Ways[i].Cave += f.bias
		}
	}
	f.out.Plans = append(f.out.Plans, plan)
	f.out.Places = append(f.out.Places, places...)
	f.refuseSpots(refused, &ruleFullStack)
	return nil
}

// moved returns an instruction as it is in memory.
func moved(inst decode.Inst, bias uint64) decode.Inst {
	inst.Addr += bias
	if inst.Has(decode.HasTarget) {
		inst.Target += bias
	}
	return inst
}

// insert lays out what runs before the steps, and the runs that counters count. It returns
// the spots for which there may be no room on the stack.
func (f *function) insert(plan *Plan, p *piece) (places []Place, refused []spot) {
	at := 0
	for step, i := range p.insts {
		if len(plan.Runs) > 0 && at < len(p.spots) { // else nothing more is counted
			if last := &plan.Runs[len(plan.Runs)-1]; last.Last == step-1 && f.continues(p.insts[step-1], i) {
				last.Last = step
			}
		}
		for ; at < len(p.spots) && p.spots[at].inst == i; at++ {
			if place, ok := f.insertAt(plan, step, &p.spots[at]); ok {
				places = append(places, place)
			} else {
				refused = append(refused, p.spots[at])
			}
		}
	}
	return places, refused
}

func (f *function) insertAt(plan *Plan, step int, s *spot) (place Place, ok bool) {
	place = Place{Want: s.want, Plan: len(f.out.Plans), Step: step, Run: -1}
	it := Item{Step: step, Kind: s.kind, Number: s.number, AtJump: s.atJump}
	if s.kind == Count {
		n := len(plan.Runs)
		if n > 0 && plan.Runs[n-1].Last >= step {
			place.Run = n - 1
			return place, true
		}
		place.Run, it.Number = n, n
	}
	it.dead = f.deadFlags(s.inst)
	if f.full && plan.stack(&it) > 0 {
		return place, false
	}
	if s.kind == Count {
		plan.Runs = append(plan.Runs, Run{step, step})
	}
	plan.Items = append(plan.Items, it)
	return place, true
}

// deadFlags returns the flags that code before an instruction need not keep. Go keeps to
// its calling conventions, by which calls do not pass any.
func (f *function) deadFlags(i int) uint64 {
	return f.isa.DeadFlags(f.r.Insts, i, detour.LivenessOptions{ABI: f.abi, Entry: f.abi && f.r.Insts[i].Addr == f.r.Addr})
}

// continues reports whether instruction j is always executed after instruction i, and
// by no other way.
func (f *function) continues(i, j int) bool {
	inst := &f.r.Insts[i]
	return j == i+1 && inst.Flow == decode.FlowNone && inst.FallsThrough() && !f.leader(j) && !f.entryIn(f.r.Insts[j].Addr, 1)
}
