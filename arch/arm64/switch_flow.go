package arm64

import (
	"math/bits"

	"xol/decode"
	"xol/optcheck"
)

// Bounds of the search for where an indirect jump goes.
const (
	maxWindow = 1 << 13 // instructions of the function that are looked at
	maxSteps  = 1 << 16 // steps back over one of them
	maxDepth  = 16      // registers that are followed into one another

	maxLabelSteps = 1 << 11 // steps back for the address of a table of addresses
)

// window is the part of a function around an indirect jump, with the branches
// inside it.
type window struct {
	insts    []decode.Inst
	from     []int32 // by instruction: the last branch to it
	next     []int32 // by branch: the one before with the same target
	indirect int32   // the last indirect jump, which next chains as well
	cutFront bool    // the function's start is not in the window
	cutBack  bool    // nor its end
	memory   optcheck.Memory
	fixed    bool // values are looked for that are constants
	steps    int  // left
	seen     []uint64
	todo     []int32
	found    []int32
}

// none stands for an index that there is not.
const none = -1

// outside is the definition of what a function is given by its caller.
const outside = -2

// newWindow returns the window around insts[i], and the index of that in it.
func newWindow(insts []decode.Inst, i int) (*window, int) {
	lo := max(0, i-maxWindow*3/4)
	hi := min(len(insts), lo+maxWindow)
	n := hi - lo
	w := &window{insts: insts[lo:hi], steps: maxSteps, indirect: none, seen: make([]uint64, (n+63)/64)}
	chains := make([]int32, 2*n)
	for k := range chains {
		chains[k] = none
	}
	w.from, w.next = chains[:n], chains[n:]
	w.link()
	w.cutFront, w.cutBack = lo > 0, hi < len(insts)
	return w, i - lo
}

// isJumpPad recognises bti j and bti jc, which indirect jumps go to.
func isJumpPad(inst *decode.Inst) bool {
	const mask, btiJ = 0xffffffbf, 0xd503249f
	return WordOf(inst)&mask == btiJ
}

// whole reports whether the window holds all of the function that instruction k
// is in. Text without symbols may hold several.
func (w *window) whole(k int) bool {
	if !w.cutFront && !w.cutBack {
		return true
	}
	from, to := w.function(k)
	return (from > 0 || !w.cutFront) && (to < len(w.insts) || !w.cutBack)
}

// link finds the branches.
func (w *window) link() {
	for k := range w.insts {
		inst := &w.insts[k]
		if inst.Flow == decode.FlowJumpIndirect {
			w.next[k], w.indirect = w.indirect, int32(k)
			continue
		}
		addr, direct := inst.BranchTarget()
		if !direct {
			continue
		}
		if to, ok := w.index(addr); ok && (to > 0 || inst.Flow != decode.FlowCall) {
			w.next[k], w.from[to] = w.from[to], int32(k)
		}
	}
}

// index returns the instruction that starts at addr.
func (w *window) index(addr uint64) (int, bool) {
	off := addr - w.insts[0].Addr
	if off%wordSize != 0 || off/wordSize >= uint64(len(w.insts)) {
		return 0, false
	}
	k := int(off / wordSize)
	return k, w.insts[k].Addr == addr
}

// leaves reports whether the indirect jump k is a tail call: the link register
// has been restored in front of it.
func (w *window) leaves(k int) bool {
	const nearby = 24
	for j := k - 1; j >= max(0, k-nearby) && w.insts[j].Continues(); j-- {
		inst := &w.insts[j]
		if inst.Flow == decode.FlowNone && mayChange(inst, linkRegister) && changedBy(inst)>>linkRegister&1 != 0 {
			return !signsLink(inst)
		}
	}
	return false
}

// signsLink recognises paciasp, pacibsp and their forms without sp: a function
// starts, rather than ends.
func signsLink(inst *decode.Inst) bool {
	const mask, paciaz = 0xffffff9f, 0xd503231f
	return WordOf(inst)&mask == paciaz
}

// isEntry reports whether a function starts with instruction k. There may be
// several in text without symbols.
func (w *window) isEntry(k int) bool {
	inst := &w.insts[k]
	entry := inst.Has(decode.LandingPad)
	if k == 0 || !entry && w.from[k] == none {
		return k == 0
	}
	entry = entry && !isJumpPad(inst) && !w.insts[k-1].Continues()
	for b := w.from[k]; b != none; b = w.next[b] {
		switch w.insts[b].Flow {
		case decode.FlowCall:
			return true
		case decode.FlowJumpIf: // what saves registers may stand behind a test
			entry = false
		}
	}
	return entry
}

// function returns the part [from, to) of the window that is in the same
// function as instruction k.
func (w *window) function(k int) (from, to int) {
	from, to = k, k+1
	for from > 0 && !w.isEntry(from) {
		from--
	}
	for to < len(w.insts) && !w.isEntry(to) {
		to++
	}
	return from, to
}

// pushIndirect adds to what is left to do the indirect jumps of the function
// that holds instruction k, but for its tail calls.
func (w *window) pushIndirect(k int) {
	if w.indirect == none {
		return
	}
	from, to := w.function(k)
	for j := w.indirect; j != none; j = w.next[j] {
		if from <= int(j) && int(j) < to && !w.leaves(int(j)) {
			w.todo = append(w.todo, j)
		}
	}
}

// before returns the only instruction that execution comes from to k, and
// whether that is by a taken branch; none where there are several, or where it
// is not known.
func (w *window) before(k int) (p int, taken bool) {
	falls := k > 0 && w.insts[k-1].Continues()
	branch := int(w.from[k])
	switch {
	case isJumpPad(&w.insts[k]):
		return none, false
	case falls && branch == none:
		return k - 1, false
	case falls, branch == none, w.next[branch] != none, w.insts[branch].Flow == decode.FlowCall:
		return none, false
	}
	return branch, true
}

// cell is a register, or, with a width in bytes, a place on the stack.
type cell struct {
	register uint32 // of a place: its base, sp or x29
	width    uint8
	shared   bool // a place that others may have the address of
	offset   int64
}

// frameRegister is x29.
const frameRegister = 29

// changes reports whether inst may change the cell c, or what it is relative
// to. A function that is called, and a store by way of another register, may
// change a shared place on the stack; not one where the compiler keeps what it
// has no register for.
func (c *cell) changes(inst *decode.Inst) bool {
	if mayChange(inst, c.register) && changedBy(inst)>>c.register&1 != 0 {
		return true
	}
	if c.width == 0 {
		return false
	}
	switch {
	case inst.Flow == decode.FlowCall, inst.Flow == decode.FlowCallIndirect, inst.Flow == decode.FlowSyscall:
		return c.shared
	case !isLoadStore(WordOf(inst)) || inst.PCRel.Kind == decode.PCRelMemory:
		return false
	}
	a, ok := transferOf(inst)
	switch {
	case !ok:
		return c.shared
	case !a.store:
		return false
	case a.base != c.register || a.index != noRegister:
		return c.shared
	}
	end := a.offset + int64(a.width)
	if a.registers[1] != noRegister {
		end += int64(a.width)
	}
	return a.offset < c.offset+int64(c.width) && c.offset < end
}

// definitions returns the instructions that the value of c in front of k may
// come from: the last on each way there that may change it, or outside. Ways
// that are not sure lead over indirect jumps, and over calls that may never
// return, since branches lead behind them too. It answers false where too much
// code would have to be looked at. The list is w.found[start:] until release is
// called.
func (w *window) definitions(c cell, k int, sure bool) (start int, ok bool) {
	start = len(w.found)
	clear(w.seen)
	w.todo = append(w.todo[:0], int32(k))
	pushed := false
	for len(w.todo) > 0 {
		k := int(w.todo[len(w.todo)-1])
		w.todo = w.todo[:len(w.todo)-1]
		for w.visit(k) {
			if k == 0 && w.cutFront {
				return start, false
			}
			if w.isEntry(k) {
				w.found = append(w.found, outside)
				break
			}
			for b := w.from[k]; b != none; b = w.next[b] {
				w.todo = append(w.todo, b)
			}
			if !w.insts[k-1].Continues() {
				if !pushed && !sure {
					w.pushIndirect(k)
					pushed = true
				}
				break
			}
			if sure && w.from[k] != none && w.insts[k-1].Has(decode.Link) {
				break
			}
			k--
			if c.changes(&w.insts[k]) {
				w.found = append(w.found, int32(k))
				break
			}
		}
		if w.steps <= 0 {
			return start, false
		}
	}
	return start, len(w.found) > start
}

// release forgets what definitions returned.
func (w *window) release(start int) { w.found = w.found[:start] }

// visit marks instruction k as seen and reports whether it was not.
func (w *window) visit(k int) bool {
	word, bit := &w.seen[k/64], bits.RotateLeft64(1, k)
	if *word&bit != 0 || w.steps <= 0 {
		return false
	}
	*word |= bit
	w.steps--
	return true
}
