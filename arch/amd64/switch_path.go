package amd64

import "xol/decode"

const (
	// maxPath is the number of instructions that are looked at backwards from
	// an indirect jump.
	maxPath = 128
	// joinWindow is how many instructions on each side of the jump are
	// searched for branches onto the path to it. A compiler has no reason to
	// put one further away.
	joinWindow = 2048
	// maxScans is how often they are.
	maxScans = 40
	// maxPaddingRun is how many nops in front of an instruction may be padding.
	maxPaddingRun = 16
)

// path is a way to an indirect jump, backwards: step 0 is the jump, step 1 the
// instruction that was executed before it. It grows as it is looked at.
type path struct {
	insts  []decode.Inst
	index  [maxPath]int32 // into insts
	effect [maxPath]effect
	n      int
	closed bool // nothing is known of how execution comes to the last step
	scans  int  // that are left
}

func (p *path) start(insts []decode.Inst, jump int) {
	p.insts, p.n, p.closed, p.scans = insts, 0, false, maxScans
	p.push(jump)
}

func (p *path) push(i int) {
	p.index[p.n] = int32(i)
	p.effect[p.n] = effectOf(&p.insts[i])
	p.n++
}

// cut makes the path come to step s-1 from instruction i.
func (p *path) cut(s, i int) {
	p.n, p.closed = s, false
	p.push(i)
}

func (p *path) inst(s int) *decode.Inst { return &p.insts[p.index[s]] }

// reach makes the path long enough for step s, if it can be.
func (p *path) reach(s int) bool {
	for s >= p.n && !p.closed && p.n < maxPath {
		last := int(p.index[p.n-1])
		if fallsInto(p.insts, last) {
			p.push(last - 1)
			continue
		}
		from := p.joining(p.n - 1)
		if from < 0 {
			p.closed = true
			return false
		}
		p.push(from)
	}
	return s < p.n
}

// joining returns the index of the first instruction that branches to step s,
// -1 if there is none near the jump.
func (p *path) joining(s int) int {
	target := p.inst(s).Addr
	lo, hi := p.scan()
	for i := lo; i < hi; i++ {
		inst := &p.insts[i]
		if inst.Target == target && isBranch(inst) {
			return i
		}
	}
	return -1
}

// join is a branch to a step of the path.
type join struct{ step, from int }

// joinList is a number of joins, as far as there is place for them.
type joinList struct {
	list [maxWays]join
	n    int
}

// joins lists the branches to steps from from on and in front of end that the
// path does not go over. It answers false if there may be more.
func (p *path) joins(list *joinList, from, end int) bool {
	if p.scans == 0 {
		return false
	}
	lowest, highest := ^uint64(0), uint64(0)
	for s := from; s < end; s++ {
		addr := p.inst(s).Addr
		lowest, highest = min(lowest, addr), max(highest, addr)
	}
	lo, hi := p.scan()
	for i := lo; i < hi; i++ {
		inst := &p.insts[i]
		if inst.Target-lowest > highest-lowest || !isBranch(inst) {
			continue
		}
		for s := from; s < end && p.reach(s+1); s++ {
			if p.inst(s).Addr != inst.Target || int(p.index[s+1]) == i {
				continue
			}
			if list.n == len(list.list) {
				return false
			}
			list.list[list.n] = join{s, i}
			list.n++
		}
	}
	return true
}

// scan returns the range of instructions to be searched for branches, which is
// empty if that has been done too often.
func (p *path) scan() (lo, hi int) {
	if p.scans == 0 {
		return 0, 0
	}
	p.scans--
	jump := int(p.index[0])
	return max(jump-joinWindow, 0), min(jump+joinWindow, len(p.insts))
}

// taken reports whether the path goes over the branch at step s.
func (p *path) taken(s int) bool {
	return s > 0 && p.index[s]+1 != p.index[s-1]
}

// isBranch recognises direct branches, but calls.
func isBranch(inst *decode.Inst) bool {
	return (inst.Flow == decode.FlowJump || inst.Flow == decode.FlowJumpIf) && inst.Has(decode.HasTarget)
}

// fallsInto reports whether instruction i may be executed behind the one in
// front of it, which is not so if that is padding.
func fallsInto(insts []decode.Inst, i int) bool {
	for k := i - 1; k >= max(i-maxPaddingRun, 0); k-- {
		if !isPadding(&insts[k]) {
			return fallsThrough(&insts[k])
		}
	}
	return i > 0
}

// isPadding recognises nops, of one byte or with operands.
func isPadding(inst *decode.Inst) bool {
	d := DetailOf(inst)
	return isPlainNop(d) || d.Map() == Map0F && d.Opcode() == 0x1f
}

// fallsThrough reports whether the instruction behind may be executed next, or
// after a call has returned.
func fallsThrough(inst *decode.Inst) bool {
	switch inst.Flow {
	case decode.FlowNone, decode.FlowJumpIf, decode.FlowCall, decode.FlowCallIndirect, decode.FlowSyscall:
		return !inst.Has(decode.Invalid)
	}
	return inst.Has(decode.Conditional)
}
