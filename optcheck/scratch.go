package optcheck

import (
	"slices"

	"xol/decode"
	"xol/place"
)

// Scratch is the working memory of an Optimizer, for one call at a time. The
// zero value is ready.
type Scratch struct {
	landings place.Landings
	who      []uint32 // for each byte: 1 + the index of the first landing there, or 0
	keep     []keeper // for each instruction
	layout   Layout
}

// keeper says that an instruction must stay where it is.
type keeper struct {
	culprit uint64
	rank    uint8 // 1 + the index in mustStay; 0: it need not
}

// resize returns a slice of n zero values, in s's memory where that suffices.
func resize[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// land fills s with who can land where in f.
func (s *Scratch) land(f *Function) {
	s.who = resize(s.who, len(f.Code)+int(min(f.Slack, decode.MaxLen)))
	s.landings = append(s.landings[:0], f.Landings...)
	for i, l := range s.landings {
		s.enter(l.Addr-f.Addr, i)
	}
	for i := range f.Insts {
		s.landFrom(f, i)
	}
}

// enter notes that landing i has the given offset. An entry of a jump table is
// told as such, where it is a pointer in data as well.
func (s *Scratch) enter(off uint64, i int) {
	if off >= uint64(len(s.who)) {
		return
	}
	who := s.who[off]
	if who == 0 || s.landings[who-1].Kind == place.LandPointer && s.landings[i].Kind == place.LandSwitch {
		s.who[off] = uint32(i) + 1
	}
}

// add adds a landing. A call's return is the least of the landings at an
// address: it is there for as long as the call is.
func (s *Scratch) add(f *Function, l place.Landing) {
	off := l.Addr - f.Addr
	if off >= uint64(len(s.who)) {
		return
	}
	if who := s.who[off]; who == 0 || s.landings[who-1].Kind == place.LandReturn && l.Kind != place.LandReturn {
		s.landings = append(s.landings, l)
		s.who[off] = uint32(len(s.landings))
	}
}

// landFrom adds the landings that instruction i itself makes in its function.
func (s *Scratch) landFrom(f *Function, i int) {
	inst := &f.Insts[i]
	if inst.Flow == decode.FlowNone {
		if i > 0 && inst.Has(decode.LandingPad) {
			s.add(f, place.Landing{Addr: inst.Addr, From: inst.Addr, Kind: place.LandIndirect})
		}
		return
	}
	if target, ok := inst.BranchTarget(); ok {
		s.add(f, place.Landing{Addr: target, From: inst.Addr, Kind: place.LandBranch})
	}
	if inst.Resumes() {
		s.add(f, place.Landing{Addr: inst.Next(), From: inst.Addr, Kind: place.LandReturn})
	}
}

// mustStay are the facts that keep instructions in place. The first that
// applies to an instruction decides.
var mustStay = [...]struct {
	kind   place.Kind
	reason Reason
}{
	{place.Data, KeepData},
	{place.Ftrace, KeepFtrace},
	{place.JumpLabel, KeepJumpLabel},
	{place.StaticCall, KeepStaticCall},
	{place.Alternative, KeepAlternative},
	{place.Bug, KeepBug},
	{place.CFITrap, KeepCFITrap},
	{place.ExTable, KeepException},
}

// MustStay are the facts that keep bytes where they are.
const MustStay = place.Data | place.Ftrace | place.JumpLabel | place.StaticCall | place.Alternative |
	place.Bug | place.CFITrap | place.ExTable

// keepMarked fills s with the instructions that must stay by the rules that the
// ISA has.
func (s *Scratch) keepMarked(f *Function, rules *Rules) {
	s.keep = resize(s.keep, len(f.Insts))
	for _, m := range f.Marks {
		if m.Kind&MustStay == 0 {
			continue
		}
		i, _ := decode.Find(f.Insts, m.Addr)
		if i < 0 {
			i = decode.From(f.Insts, m.Addr)
		}
		for ; i < len(f.Insts) && f.Insts[i].Addr < m.End(); i++ {
			s.keepFor(i, m, rules)
		}
	}
}

func (s *Scratch) keepFor(i int, m place.Mark, rules *Rules) {
	k := &s.keep[i]
	for j := range mustStay {
		rank := uint8(j + 1)
		if k.rank != 0 && k.rank <= rank {
			return
		}
		if m.Kind&mustStay[j].kind != 0 && rules[mustStay[j].reason].ID != "" {
			*k = keeper{m.Addr, rank}
			return
		}
	}
}

// firstGap returns the index of the first bytes that are no instruction, and
// that nothing calls data; -1 where there are none.
func (s *Scratch) firstGap(f *Function) int {
	for i := range f.Insts {
		if f.Insts[i].Has(decode.Invalid) && s.keep[i].rank == 0 {
			return i
		}
	}
	return -1
}
