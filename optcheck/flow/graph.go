package flow

import (
	"math/bits"
	"slices"

	"xol/classify"
	"xol/decode"
)

// Limits of the search for one value.
const (
	maxSteps        = 1 << 17 // instructions looked at on the way back
	maxLookedAt     = 1 << 14 // those for the definitions of one register
	maxPointerSteps = 1 << 12 // those for the address of what is a whole pointer in any case
	maxAddedSteps   = 1 << 12 // those for what is added to the address of a table
	maxCopiedSteps  = 1 << 14 // those for what is copied beside the address of a table
	maxNesting      = 64      // values that depend on one another
	maxJoins        = 1 << 10 // places where ways meet
	maxCount        = 1 << 16 // entries of a table
	maxPadding      = 16      // nops between a call and where branches lead
	maxLoop         = 1 << 10 // instructions of a loop that only indirect jumps lead into
)

// none stands for an index that there is not, settled for a definition that has
// been looked at.
const (
	none    = -1
	settled = -2
)

// Tracer goes backward through one function after the other. The zero value is
// ready for Start; one is not safe for concurrent use.
type Tracer struct {
	isa   Model
	f     *classify.Func
	mem   Memory
	insts []decode.Inst
	facts Facts

	linked bool
	marks  []mark  // by instruction
	into   []int32 // by instruction: 1 + the last branch to it, 0 for none
	chain  []int32 // by branch: likewise, the one before with the same target
	// indirect is 1 + the last indirect jump, which chain goes on from as well.
	indirect int32
	around   extent // that was last asked for

	steps, depth int // left
	shallow      int // where it is not 0, nothing is looked for where ways meet
	joins        []join
	circle       int       // the first of joins that has come to depend on itself
	copied       []meeting // that the value of one is copied from
	seen         []uint64
	work, found  []position
	pairs        []pair           // of locations, that are taken to be equal
	equal        bool             // some of these are, wherever that was asked for
	meets        [maxMeets]origin // where ways meet that are gone back for a bound
}

// mark is what is known of an instruction: what it changes, when that has been
// asked for, and how execution comes to it.
type mark uint64

const (
	changesMask      = 1<<57 - 1
	markKnown   mark = 1 << 63 // the changes are
	markFalls   mark = 1 << 62 // execution comes from the one before
	markEntry   mark = 1 << 61 // functions call it
	markLabel   mark = 1 << 60 // indirect jumps lead there
	markLoop    mark = 1 << 59 // and only from further down in a loop, besides
)

// position is an instruction, and how far what is looked for is from its base
// register there.
type position struct {
	at   int32
	disp uint64
}

// Start makes f the function that is looked at, unless it is already. mem may be
// nil.
func (t *Tracer) Start(isa Model, f *classify.Func, mem Memory) {
	if t.f != f {
		t.isa, t.f, t.mem, t.insts, t.linked = isa, f, mem, f.Insts, false
	}
}

// End forgets the function, which may then change.
func (t *Tracer) End() { t.f, t.mem, t.insts = nil, nil, nil }

// begin starts the search for one value.
func (t *Tracer) begin() {
	if !t.linked {
		t.link()
	}
	t.steps, t.depth, t.shallow, t.circle = maxSteps, maxNesting, 0, noCircle
	t.joins = t.joins[:0]
}

// link finds the branches of the function, and where execution does not come
// from the instruction before: after a jump, also where padding follows that.
func (t *Tracer) link() {
	n := len(t.insts)
	t.linked, t.indirect = true, 0
	t.around = extent{}
	t.facts = t.isa.Facts(t.f, t.mem)
	t.marks, t.into, t.chain = resize(t.marks, n), resize(t.into, n), resize(t.chain, n)
	t.seen = resize(t.seen, n/64+1)
	t.marks[0] = markEntry
	for k := range t.insts {
		if t.insts[k].Flow != decode.FlowNone {
			t.branch(k)
		}
	}
	reached := false
	for k := range t.insts {
		inst := &t.insts[k]
		if inst.Has(decode.LandingPad) && k > 0 {
			t.landingPad(k)
		}
		if reached {
			t.marks[k] |= markFalls
		}
		reached = (reached || t.into[k] != 0 || k == 0 || !t.isa.IsPadding(inst)) && inst.Continues()
	}
	for k := range t.insts {
		if int(t.into[k]) > k && t.isLoop(k) {
			t.marks[k] |= markLoop
		}
	}
}

// isLoop reports whether the only way to instruction k comes from itself. Indirect
// jumps lead there as well, else nothing would.
func (t *Tracer) isLoop(k int) bool {
	j, _, ok := t.onlyWay(k)
	for range maxLoop {
		if !ok || j == k {
			break
		}
		j, _, ok = t.onlyWay(j)
	}
	return ok && j == k
}

// branch enters the branch k.
func (t *Tracer) branch(k int) {
	inst := &t.insts[k]
	if inst.Flow == decode.FlowJumpIndirect {
		t.chain[k], t.indirect = t.indirect, int32(k)+1
		return
	}
	addr, direct := inst.BranchTarget()
	if !direct {
		return
	}
	to := t.indexOf(addr)
	switch {
	case to < 0:
	case inst.Flow != decode.FlowCall:
		t.chain[k], t.into[to] = t.into[to], int32(k)+1
	case addr != inst.Next():
		t.marks[to] |= markEntry
	}
}

// landingPad marks instruction k, which is one. What saves registers may stand
// after a test, so that a conditional branch leads to no function.
func (t *Tracer) landingPad(k int) {
	inst := &t.insts[k]
	if t.isa.IsLabel(inst) {
		t.marks[k] |= markLabel
		return
	}
	if !t.isa.IsEntry(inst) || t.insts[k-1].Continues() {
		return
	}
	for b := t.into[k]; b != 0; b = t.chain[b-1] {
		if t.insts[b-1].Flow == decode.FlowJumpIf {
			return
		}
	}
	t.marks[k] |= markEntry
}

// indexOf returns the index of the instruction at addr, none where none starts
// there.
func (t *Tracer) indexOf(addr uint64) int {
	off := addr - t.f.Addr
	if off >= uint64(len(t.f.Code)) {
		return none
	}
	// Instructions of one length are found at once.
	if i := int(off / 4); i < len(t.insts) && t.insts[i].Addr == addr {
		return i
	}
	if i, start := decode.Find(t.insts, addr); start {
		return i
	}
	return none
}

func (t *Tracer) inFunction(addr uint64) bool { return addr-t.f.Addr < uint64(len(t.f.Code)) }

// changes returns what instruction p changes.
func (t *Tracer) changes(p int) Set {
	m := t.marks[p]
	if m&markKnown == 0 {
		m |= markKnown | mark(t.isa.Changes(&t.insts[p]))
		t.marks[p] = m
	}
	return Set(m & changesMask)
}

// before returns the only instruction that execution comes from to j, and
// whether that is by a taken branch; ok is false where there may be several.
func (t *Tracer) before(j int) (p int, taken, ok bool) {
	t.steps--
	if t.steps < 0 {
		return 0, false, false
	}
	return t.onlyWay(j)
}

// onlyWay is before without a limit.
func (t *Tracer) onlyWay(j int) (p int, taken, ok bool) {
	m, branch := t.marks[j], t.into[j]
	switch {
	case m&(markEntry|markLabel|markLoop) != 0:
		return 0, false, false
	case m&markFalls != 0:
		return j - 1, false, branch == 0
	case branch != 0:
		p = int(branch - 1)
		return p, true, t.chain[p] == 0
	}
	return 0, false, false
}

// ways says which ways are gone back.
type ways uint8

const (
	// sureWays are the ways over direct branches, but not over a call that may never
	// return.
	sureWays ways = iota
	directWays
	// allWays lead over indirect jumps too, where there is no other.
	allWays
)

// definitions returns the instructions that the value of m may come from: the last
// on each way that changes it; none as an index stands for the function's caller.
// They are put at the end of t.found. ok is false where it takes too long to find
// them.
func (t *Tracer) definitions(m meeting, over ways) (start int, ok bool) {
	w, j := m.where, int(m.at)
	start = len(t.found)
	least := t.steps - maxLookedAt
	clear(t.seen)
	t.work = t.work[:0]
	indirect := over == allWays
	if t.enter(j, w.disp, over, &indirect) {
		t.work = append(t.work, position{int32(j - 1), w.disp})
	}
	for {
		if len(t.work) == 0 && indirect && len(t.found) == start { // a loop that no other way leads into
			indirect = false
			t.enterIndirect(j, m.where.disp)
		}
		if len(t.work) == 0 {
			return start, true
		}
		at := t.work[len(t.work)-1]
		t.work = t.work[:len(t.work)-1]
		p := int(at.at)
		w.disp = at.disp
		for t.visit(p) {
			if t.alters(p, &w) {
				t.found = append(t.found, position{int32(p), w.disp})
				break
			}
			if !t.enter(p, w.disp, over, &indirect) {
				break
			}
			p--
		}
		if t.steps < max(least, 0) {
			return start, false
		}
	}
}

// visit marks instruction p as seen and reports whether it was not.
func (t *Tracer) visit(p int) bool {
	word, bit := &t.seen[p/64], bits.RotateLeft64(1, p)
	if *word&bit != 0 || t.steps < 0 {
		return false
	}
	*word |= bit
	t.steps--
	return true
}

// enter puts the branches that lead to j on the list of what is to be looked
// at, and reports whether execution also comes from the instruction before.
func (t *Tracer) enter(j int, disp uint64, over ways, indirect *bool) (falls bool) {
	m, branch := t.marks[j], t.into[j]
	first := branch
	for ; branch != 0; branch = t.chain[branch-1] {
		t.work = append(t.work, position{branch - 1, disp})
	}
	switch {
	case m&markEntry != 0:
		t.found = append(t.found, position{none, disp})
		return false
	case m&markFalls != 0:
		return over != sureWays || !t.afterCall(j, first != 0)
	case first == 0 && *indirect:
		*indirect = false
		t.enterIndirect(j, disp)
	}
	return false
}

// afterCall reports whether a call that may never return comes right before
// instruction j: branches lead there as well, or padding stands between, which is not
// put where it would be executed for nothing.
func (t *Tracer) afterCall(j int, branches bool) bool {
	k := j - 1
	for range maxPadding {
		if k == 0 || t.into[k] != 0 || !t.isa.IsPadding(&t.insts[k]) {
			break
		}
		k--
	}
	return t.insts[k].IsCall() && (branches || k < j-1)
}

// enterIndirect puts the indirect jumps on the list that stay in the function
// that holds instruction j.
func (t *Tracer) enterIndirect(j int, disp uint64) {
	if !t.around.holds(j) {
		t.around = t.extentOf(j)
	}
	// The chain goes from high to low.
	for b := t.around.indirect; t.around.holds(int(b - 1)); b = t.chain[b-1] {
		if !t.isa.IsTailCall(t.insts, int(b-1)) {
			t.work = append(t.work, position{b - 1, disp})
		}
	}
}

// extent is where a function is: there may be several in text without symbols.
type extent struct {
	from, to int
	indirect int32 // 1 + its last indirect jump, or that of a function before it
}

func (e *extent) holds(j int) bool { return e.from <= j && j < e.to }

// extentOf returns the extent of the function that holds instruction j.
func (t *Tracer) extentOf(j int) extent {
	e := extent{j, j + 1, t.indirect}
	for t.marks[e.from]&markEntry == 0 { // the first instruction is one
		e.from--
	}
	for e.to < len(t.insts) && t.marks[e.to]&markEntry == 0 {
		e.to++
	}
	for int(e.indirect-1) >= e.to {
		e.indirect = t.chain[e.indirect-1]
	}
	return e
}

// resize returns a slice of n zero values, in s's memory where that suffices.
func resize[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
