package amd64

import (
	"cmp"
	"slices"
	"sort"

	"xol/decode"
)

const (
	// flowWindow is how many instructions on each side of the jump are
	// searched for what sets a register far away.
	flowWindow = 2048
	// maxEdges is the number of branches among them that are kept.
	maxEdges = 1024
	// maxCopies is how many copies of a register are followed.
	maxCopies = 3
	// maxVisits is how many instructions are looked at for one jump.
	maxVisits = 1 << 13
)

// edge is a direct branch between two instructions.
type edge struct{ to, from int32 }

// codeFlow is the flow among the instructions around a jump. The zero value is that
// around none.
type codeFlow struct {
	insts  []decode.Inst  // of the window
	first  int            // index of its first one in the function
	edges  [maxEdges]edge // by to
	n      int            // of them
	visits int            // that are left
}

// start finds the branches around a jump, unless that has been done.
func (r *codeFlow) start(insts []decode.Inst, jump int) {
	if r.insts != nil {
		return
	}
	lo, hi := max(jump-flowWindow, 0), min(jump+flowWindow, len(insts))
	r.insts, r.first, r.visits = insts[lo:hi], lo, maxVisits
	n := 0
	first, end := r.insts[0].Addr, r.insts[len(r.insts)-1].Next()
	for i := range r.insts {
		inst := &r.insts[i]
		if !isBranch(inst) || inst.Target-first >= end-first || n == maxEdges {
			continue
		}
		if to, ok := decode.Find(r.insts, inst.Target); ok {
			r.edges[n] = edge{int32(to), int32(i)}
			n++
		}
	}
	r.n = n
	slices.SortFunc(r.edges[:n], func(a, b edge) int { return cmp.Compare(a.to, b.to) })
}

// into returns the branches to an instruction.
func (r *codeFlow) into(i int32) []edge {
	at := sort.Search(r.n, func(k int) bool { return r.edges[k].to >= i })
	end := at
	for end < r.n && r.edges[end].to == i {
		end++
	}
	return r.edges[at:end]
}

// visit is a walk backwards over all ways to an instruction.
type visit struct {
	*codeFlow
	seen [2 * flowWindow / 64]uint64
	work [maxEdges + 2]int32
	n    int
	// indirect is set when the indirect jumps have been on the list.
	indirect bool
}

// enter puts the instructions that may be executed before i on the list. Where
// there is none that is known, those are the indirect jumps.
func (v *visit) enter(i int32) {
	through := fallsInto(v.insts, int(i))
	if through {
		v.add(i - 1)
	}
	edges := v.into(i)
	for _, e := range edges {
		v.add(e.from)
	}
	if i == 0 || through || len(edges) > 0 || v.indirect {
		return
	}
	v.indirect = true
	for k := range v.insts {
		if v.insts[k].Flow == decode.FlowJumpIndirect {
			v.add(int32(k))
		}
	}
}

func (v *visit) add(i int32) {
	if v.seen[i/64]>>(i%64)&1 == 0 && v.n < len(v.work) {
		v.seen[i/64] |= 1 << (i % 64)
		v.work[v.n] = i
		v.n++
	}
}

// definition returns the next instruction that writes the register, on the ways
// that have been entered; -1 if there is none left, or visits are not.
func (v *visit) definition(reg byte) int32 {
	for v.n > 0 && v.visits > 0 {
		v.n--
		v.visits--
		at := v.work[v.n]
		if f := effectOf(&v.insts[at]); (f.full|f.part)>>reg&1 != 0 {
			return at
		}
		v.enter(at)
	}
	return -1
}

// constant returns the address that a register holds in front of instruction i,
// if every definition that reaches it says the same. Ways on which there is
// none are left out: the register is not used there. Only if there is none on
// any way are the indirect jumps ways, too.
func (r *codeFlow) constant(reg byte, i int32, copies int) (k uint64, found bool) {
	k, found, ok := r.agreed(&visit{codeFlow: r, indirect: true}, reg, i, copies)
	if !found && ok {
		k, found, ok = r.agreed(&visit{codeFlow: r}, reg, i, copies)
	}
	return k, found && ok
}

// agreed returns the address that all definitions on the ways of v agree upon;
// ok is false if they do not.
func (r *codeFlow) agreed(v *visit, reg byte, i int32, copies int) (k uint64, found, ok bool) {
	v.enter(i)
	for at := v.definition(reg); at >= 0; at = v.definition(reg) {
		inst := &r.insts[at]
		if inst.Flow == decode.FlowCall || inst.Flow == decode.FlowCallIndirect {
			continue
		}
		this, known := r.assigned(at, copies)
		if !known && operandWidth(DetailOf(inst)) < 64 {
			continue // no address: execution comes some other way
		}
		if !known || found && this != k {
			return 0, false, false
		}
		k, found = this, true
	}
	return k, found, v.visits > 0
}

// pointer reports whether every definition that reaches instruction i makes the
// register a whole address as it was found: in memory, in another register or
// in an instruction. Where it is not known how execution comes to some place,
// that is taken for the start of a function, and the register for an argument.
func (r *codeFlow) pointer(reg byte, i int32, copies int) bool {
	v := visit{codeFlow: r, indirect: true}
	v.enter(i)
	for at := v.definition(reg); at >= 0; at = v.definition(reg) {
		inst := &r.insts[at]
		d := DetailOf(inst)
		op := opcodeOf{d.Map(), d.Opcode(), -1}
		switch {
		case d.Encoding() > EncREX2:
			return false
		case inst.Flow == decode.FlowCall || inst.Flow == decode.FlowCallIndirect:
			continue
		case op.opMap == Map0F && op.opcode>>4 == 4 && d.W() != 0: // cmov
			v.enter(at)
		case op.opMap != MapOneByte:
			return false
		case isPopRegister(d), setsConstant(inst):
			continue
		case d.W() == 0 || op.opcode != 0x89 && op.opcode != 0x8b:
			return false
		}
		if source := moveSource(d); d.Mod() == 3 && (copies == 0 || !r.pointer(source, at, copies-1)) {
			return false
		}
	}
	return v.visits > 0
}

// moveSource returns the register that mov or cmov reads.
func moveSource(d Detail) byte {
	if d.Map() == MapOneByte && d.Opcode() == 0x89 {
		return d.register()
	}
	return d.rmRegister()
}

func isPopRegister(d Detail) bool { return d.Map() == MapOneByte && d.Opcode()&^7 == 0x58 }

// setsConstant recognises instructions that put an address of their own into a
// register.
func setsConstant(inst *decode.Inst) bool {
	return isLea(inst) && inst.PCRel.Kind == decode.PCRelAddress ||
		inst.Fields.ImmLen >= 4 && (isMovImmediate(inst) || opcodeOf{MapOneByte, 0xc7, 0}.matches(DetailOf(inst)))
}

// assigned returns the address that an instruction puts into its register.
func (r *codeFlow) assigned(i int32, copies int) (uint64, bool) {
	inst := &r.insts[i]
	d := DetailOf(inst)
	op := d.Opcode()
	switch {
	case d.Encoding() > EncREX2 || d.Map() != MapOneByte:
		return 0, false
	case setsConstant(inst) && inst.Fields.ImmLen != 0:
		return immediate(inst), true
	case setsConstant(inst):
		return inst.Target, true
	case d.W() == 0 || copies == 0 || op != 0x89 && op != 0x8b:
		return 0, false
	case d.Mod() != 3:
		return r.spilled(inst, copies-1)
	}
	return r.constant(moveSource(d), i, copies-1)
}

// spilled returns the address in a place of the stack frame, if all that is
// stored there in the window is the same.
func (r *codeFlow) spilled(load *decode.Inst, copies int) (k uint64, found bool) {
	place, ok := operandAddress(load)
	if !ok || place.base != RSP && place.base != RBP || place.index != noRegister {
		return 0, false
	}
	for i := range r.insts {
		inst := &r.insts[i]
		d := DetailOf(inst)
		if !isStore(d) || d.W() == 0 {
			continue
		}
		if at, ok := operandAddress(inst); !ok || at != place {
			continue
		}
		this, ok := r.constant(d.register(), int32(i), copies)
		if !ok || found && this != k {
			return 0, false
		}
		k, found = this, true
	}
	return k, found
}

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
			return insts[k].Continues()
		}
	}
	return i > 0
}

// isPadding recognises nops, of one byte or with operands.
func isPadding(inst *decode.Inst) bool {
	d := DetailOf(inst)
	return isPlainNop(d) || d.Map() == Map0F && d.Opcode() == 0x1f
}
