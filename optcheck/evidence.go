package optcheck

import (
	"slices"

	"xol/decode"
	"xol/place"
)

// New returns the Optimizer of the profile isa: it allows what the evidence in
// the file allows. It takes the function's text for instructions that follow
// one another, and its callees for such that return after the call or never.
func New(a Architecture) Optimizer { return &evidence{a, a.RegionRules()} }

type evidence struct {
	arch  Architecture
	rules *Rules
}

func (*evidence) WholeProgram() bool { return true }

// Func appends the verdicts; see Optimizer.
func (e *evidence) Func(dst []Verdict, f *Function, s *Scratch) []Verdict {
	base := len(dst)
	dst = slices.Grow(dst, len(f.Insts))[:base+len(f.Insts)]
	s.land(f)
	s.keepMarked(f, e.rules)
	c := checker{evidence: e, f: f, s: s, need: uint64(e.arch.JumpLen()), gap: s.firstGap(f)}
	for i := range f.Insts {
		v := &dst[base+i]
		*v = Verdict{}
		if f.Verdicts[i].OK() {
			c.check(v, i)
		}
	}
	return dst
}

// checker checks the instructions of one function in order.
type checker struct {
	*evidence
	f     *Function
	s     *Scratch
	need  uint64 // bytes of the jump
	gap   int
	armed int // index of the first armed probe after the instruction
}

func (c *checker) refuse(v *Verdict, r Reason, culprit uint64) {
	*v = Refuse(&c.rules[r], culprit)
}

// check judges the region that starts with instruction i. What is wrong with
// an instruction comes first, by address, then what is wrong with the function.
func (c *checker) check(v *Verdict, i int) {
	insts := c.f.Insts
	start := insts[i].Addr
	if insts[i].Has(decode.LandingPad) {
		c.refuse(v, KeepLandingPad, start)
		return
	}
	var region, moved uint64
	j, dead := i, false
	for region < c.need {
		if j == len(insts) {
			if !dead || c.f.Slack < c.need-region {
				c.refuse(v, BeyondFunction, c.f.End())
				return
			}
			region = c.need
			break
		}
		inst := &insts[j]
		if !c.member(v, j, j == i, dead) {
			return
		}
		region += uint64(inst.Len)
		if !dead {
			moved = region
			dead = !inst.FallsThrough()
		}
		j++
	}
	if !c.nothingLands(v, start, region) || !c.alone(v, start, region) {
		return
	}
	if !c.understood(v, j-i) {
		return
	}
	*v = Verdict{Region: uint8(region), Moved: uint8(moved)}
}

// member judges instruction j as a part of a region. Dead ones are overwritten
// but never executed.
func (c *checker) member(v *Verdict, j int, first, dead bool) bool {
	inst := &c.f.Insts[j]
	if k := c.s.keep[j]; k.rank != 0 {
		c.refuse(v, mustStay[k.rank-1].reason, k.culprit)
		return false
	}
	if dead {
		return true
	}
	if inst.Has(decode.Invalid) {
		c.refuse(v, Undecodable, inst.Addr)
		return false
	}
	if rule := c.arch.Immovable(inst); rule != nil {
		*v = Refuse(rule, inst.Addr)
		if first {
			v.Culprit = 0
		}
		return false
	}
	return true
}

// nothingLands checks that nothing lands strictly inside the region. Where
// instructions are aligned, execution never comes to what lies between.
func (c *checker) nothingLands(v *Verdict, start, region uint64) bool {
	off := start - c.f.Addr
	align := uint64(c.arch.Align())
	for at := off + align; at < off+region; at += align {
		if who := c.s.who[at]; who != 0 {
			l := &c.s.landings[who-1]
			culprit := l.From
			if culprit == 0 {
				culprit = l.Addr
			}
			c.refuse(v, landed[l.Kind], culprit)
			return false
		}
	}
	return true
}

// alone checks that no other probe is armed inside the region. The checker is
// asked for ascending addresses.
func (c *checker) alone(v *Verdict, start, region uint64) bool {
	armed := c.f.Armed
	for c.armed < len(armed) && armed[c.armed] <= start {
		c.armed++
	}
	if c.armed < len(armed) && armed[c.armed] < start+region {
		c.refuse(v, KeepProbe, armed[c.armed])
		return false
	}
	return true
}

// understood checks what is known of the function as a whole. A jump to an
// unknown place still goes to an instruction, so that it cannot land inside a
// region of one. After bytes that are no instruction it is not known where
// instructions start, nor where their branches go.
func (c *checker) understood(v *Verdict, insts int) bool {
	if insts > 1 && len(c.f.Unresolved) > 0 {
		c.refuse(v, UnresolvedJump, c.f.Unresolved[0].Addr)
		return false
	}
	if insts > 1 && c.f.Unread {
		c.refuse(v, UnreadTables, 0)
		return false
	}
	if c.gap >= 0 && c.arch.Align() == 1 {
		c.refuse(v, Undecodable, c.f.Insts[c.gap].Addr)
		return false
	}
	return true
}

// Landings appends to dst who can land in f, in the order of addresses, with
// the landings that f's own instructions make. One is given for each address.
func Landings(dst place.Landings, f *Function, s *Scratch) place.Landings {
	s.land(f)
	for _, who := range s.who {
		if who != 0 {
			dst = append(dst, s.landings[who-1])
		}
	}
	return dst
}
