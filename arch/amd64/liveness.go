package amd64

import (
	"cmp"
	"sort"

	"xol/decode"
	"xol/detour"
)

// DeadFlags returns the status flags that are dead before an instruction; see
// detour.Inserter. It follows direct jumps and both ways of conditional ones, for a
// bounded number of instructions.
func (ISA) DeadFlags(insts []decode.Inst, i int, opt detour.LivenessOptions) uint64 {
	if i < 0 || i >= len(insts) {
		return 0
	}
	if opt.ABI && opt.Entry {
		return statusFlags
	}
	l := liveness{insts: insts, abi: opt.ABI, ways: [maxWays]way{{i, statusFlags}}, known: 1}
	for at := 0; at < l.known; at++ {
		l.follow(l.ways[at])
	}
	return statusFlags &^ l.live
}

// SavesFlags reports whether one of the instructions pushes the flags.
func (ISA) SavesFlags(insts []decode.Inst) bool {
	for i := range insts {
		if OpOf(&insts[i]) == OpPushFlags {
			return true
		}
	}
	return false
}

// Bounds of the search.
const (
	maxWays  = 16
	maxInsts = 96
)

// way is an instruction to which flags come that no instruction has set since the start.
type way struct {
	at    int
	flags uint64
}

// liveness is a search for the instructions that read flags.
type liveness struct {
	insts []decode.Inst
	abi   bool
	live  uint64
	done  int // instructions
	ways  [maxWays]way
	known int // ways
}

// follow goes one way until all flags have been set, or are live.
func (l *liveness) follow(w way) {
	for w.flags &^= l.live; w.flags != 0; w.flags &^= l.live {
		if w.at < 0 || w.at >= len(l.insts) || l.done == maxInsts {
			l.live |= w.flags
			return
		}
		l.done++
		inst := &l.insts[w.at]
		read, set := flagUseOf(inst).uses()
		l.live |= w.flags & read
		w.flags &^= read | set
		next := l.after(w.at)
		switch {
		case inst.Flow == decode.FlowNone:
		case inst.Flow == decode.FlowJump:
			l.add(way{l.find(inst.Target), w.flags})
			return
		case inst.Flow == decode.FlowJumpIf && OpOf(inst) != OpXBegin:
			l.add(way{l.find(inst.Target), w.flags})
		case l.abi && (OpOf(inst) == OpReturn || inst.IsCall()):
			return
		default:
			next = -1
		}
		w.at = next
	}
}

// after returns the index of the instruction that execution goes on at; -1 where that
// is not known.
func (l *liveness) after(i int) int {
	if i+1 < len(l.insts) && l.insts[i+1].Addr == l.insts[i].Next() {
		return i + 1
	}
	return -1
}

// find returns the index of the instruction at an address, -1 where there is none.
func (l *liveness) find(addr uint64) int {
	i, found := sort.Find(len(l.insts), func(i int) int { return cmp.Compare(addr, l.insts[i].Addr) })
	if !found {
		return -1
	}
	return i
}

// add adds a way, unless it is known with all of its flags. What is too much is live.
func (l *liveness) add(w way) {
	for i := range l.ways[:l.known] {
		if l.ways[i].at == w.at && w.flags&^l.ways[i].flags == 0 {
			return
		}
	}
	if w.flags == 0 {
		return
	}
	if l.known == maxWays {
		l.live |= w.flags
		return
	}
	l.ways[l.known] = w
	l.known++
}
