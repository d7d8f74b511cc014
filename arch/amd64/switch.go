package amd64

import (
	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

// How targets are found that are not understood.
const (
	whatOther      = "it is no indirect jump"
	whatBranch66   = "its target is cut to 16 bits on some processors"
	whatComputed   = "its target is computed by other instructions than those of a switch"
	whatCode       = "its target is computed from the address of code and a number"
	whatTable      = "its target comes from a table whose address is not known"
	whatDifferent  = "its target is found in a different way from where else execution comes"
	whatManyWays   = "its target is found on too many ways"
	whatManyValues = "its target is computed from too many values"
)

// maxWays is the number of ways to one jump that are looked at.
const maxWays = 12

// IndirectJump says where the indirect jump f.Insts[i] goes. It follows the
// ways to the jump backwards and computes, from the last instructions that set
// them, the registers that it depends on.
//
// A table of addresses that no comparison bounds and whose first one is not in f
// is taken for one of function pointers.
func (ISA) IndirectJump(f *classify.Func, i int, mem optcheck.Memory) optcheck.Jump {
	if i < 0 || i >= len(f.Insts) {
		return unresolved(whatOther).Jump
	}
	inst := &f.Insts[i]
	d := DetailOf(inst)
	switch {
	case inst.Flow != decode.FlowJumpIndirect:
		return unresolved(whatOther).Jump
	case Branch66(inst):
		return unresolved(whatBranch66).Jump
	case !d.isGroup5(group5Jump) || readsPointer(inst):
		return optcheck.Jump{Kind: optcheck.JumpPointer}
	}
	var e evaluation
	e.start(f.Insts, i)
	j := e.explore(0).Jump
	if j.Kind == optcheck.JumpUnresolved && e.alwaysPointer() {
		return optcheck.Jump{Kind: optcheck.JumpPointer}
	}
	if j.Kind == optcheck.JumpTable && holdsFunctions(f, &j.Table, mem) {
		return optcheck.Jump{Kind: optcheck.JumpPointer}
	}
	return j
}

// holdsFunctions reports whether a table is one of function pointers.
func holdsFunctions(f *classify.Func, t *optcheck.Table, mem optcheck.Memory) bool {
	if mem == nil || t.Width != 8 || t.Base != 0 || t.Bound == optcheck.BoundCompare {
		return false
	}
	target, ok := mem.Pointer(t.Addr)
	return !ok || target-f.Addr >= uint64(len(f.Code))
}

// readsPointer recognises an operand in memory that is not in a table that an
// index register points into, and where no computed target would be kept.
func readsPointer(inst *decode.Inst) bool {
	d := DetailOf(inst)
	if d.Mod() == 3 {
		return false
	}
	m, ok := operandAddress(inst)
	return !ok || m.index == noRegister && m.base != RSP && m.base != RBP
}

// outcome is what is known of an indirect jump from one way to it, or several.
type outcome struct {
	optcheck.Jump
	// The steps from which on execution may come from elsewhere without a
	// change: of what is known without the next two, of the bound, and of the
	// table's address.
	decides, checks, sets int
}

func unresolved(what string) outcome {
	return outcome{Jump: optcheck.Jump{Kind: optcheck.JumpUnresolved, What: what}}
}

// explore looks at the path, and at those that join it at or behind step from
// and before what is known of it has been decided.
func (e *evaluation) explore(from int) outcome {
	e.reset()
	e.ways++
	o := e.judge()
	end := max(o.decides, o.checks, o.sets)
	if o.Kind == optcheck.JumpUnresolved || end <= from {
		return o
	}
	var joins joinList
	all := e.joins(&joins, from, end)
	if o.Kind == optcheck.JumpPointer && joins.n > 0 && e.alwaysPointer() {
		return o
	}
	if !all {
		o.merge(unresolved(whatManyWays), from)
	}
	for _, j := range joins.list[:joins.n] {
		if e.ways >= maxWays {
			o.merge(unresolved(whatManyWays), j.step)
			continue
		}
		next := int(e.index[j.step+1])
		e.cut(j.step+1, j.from)
		o.merge(e.explore(j.step+1), j.step)
		e.cut(j.step+1, next)
	}
	return o
}

// merge adds what is known from a path that joins at step s. What a pointer may
// lead to is known without it.
func (o *outcome) merge(p outcome, s int) {
	switch {
	case o.Kind == optcheck.JumpPointer && p.Kind != optcheck.JumpPointer:
		o.Jump = p.Jump
	case o.Kind != optcheck.JumpTable:
	case p.Kind == optcheck.JumpTable && !sameTable(&o.Table, &p.Table):
		*o = unresolved(whatDifferent)
	case s >= max(o.decides, o.checks):
	case p.Kind == optcheck.JumpTable:
		o.widen(&p.Table)
	case s >= o.decides:
		o.widen(&optcheck.Table{})
	case p.Kind == optcheck.JumpUnresolved:
		*o = unresolved(p.What)
	}
}

// widen takes the weaker bound.
func (o *outcome) widen(t *optcheck.Table) {
	none := t.Bound == optcheck.BoundNone
	if none || o.Table.Bound != optcheck.BoundNone && t.Count > o.Table.Count {
		o.Table.Bound, o.Table.Count, o.Table.Check = t.Bound, t.Count, t.Check
	}
	if none {
		o.checks = 0
	}
}

func sameTable(t, u *optcheck.Table) bool {
	return t.Addr == u.Addr && t.Base == u.Base && t.Width == u.Width && t.Signed == u.Signed
}

// judge says where the jump goes when execution comes to it on the path.
func (e *evaluation) judge() outcome {
	var target value
	if d := DetailOf(e.inst(0)); d.Mod() == 3 {
		target = e.register(d.rmRegister(), 64, 0)
	} else {
		target = e.load(64, e.address(0), 0)
	}
	if e.full {
		return unresolved(whatManyValues)
	}
	if o, ok := e.table(target); ok {
		return o
	}
	if step, ok := e.pointer(target); ok {
		return outcome{Jump: optcheck.Jump{Kind: optcheck.JumpPointer}, decides: step}
	}
	return unresolved(e.explain(target))
}

// pointer reports whether a value is a whole address as it was found, and at
// which step.
func (e *evaluation) pointer(v value) (step int, ok bool) {
	id, single := v.single()
	if _, known := v.isConstant(); known {
		return e.deepest, true
	}
	if n := &e.nodes[id]; single && (n.op == nodeResult || n.op == nodeLoad && n.width == 64) {
		return int(n.step), true
	}
	return 0, e.alwaysPointer()
}

// alwaysPointer reports whether the register that the jump reads is a whole
// address on all ways.
func (e *evaluation) alwaysPointer() bool {
	d := DetailOf(e.inst(0))
	if d.Mod() != 3 {
		return false
	}
	r := e.around()
	return r.pointer(d.rmRegister(), e.index[0]-int32(r.first), maxCopies)
}

// explain says what is not understood of a target.
func (e *evaluation) explain(v value) string {
	if e.full || e.fuel < 0 {
		return whatManyValues
	}
	for _, t := range v.terms {
		n := &e.nodes[t.node]
		if n.op == nodeSign {
			n = &e.nodes[n.of.terms[0].node]
		}
		if t.scale != 0 && n.op == nodeLoad && n.width < 64 {
			return whatTable
		}
	}
	if v.k != 0 {
		return whatCode
	}
	return whatComputed
}

// table recognises the sum of a base and an entry of a table.
func (e *evaluation) table(v value) (o outcome, ok bool) {
	for i, t := range v.terms {
		if t.scale != 1 {
			continue
		}
		rest := v
		rest.terms = [2]term{v.terms[1-i]}
		if o, ok = e.entry(t.node, rest); ok {
			return o, true
		}
	}
	return o, false
}

// entry recognises the entry of a table, with the rest of the sum.
func (e *evaluation) entry(id nodeID, rest value) (o outcome, ok bool) {
	n := e.nodes[id]
	signed := n.op == nodeSign
	if signed {
		if id, ok = n.of.single(); !ok || e.nodes[id].width != n.width {
			return o, false
		}
		n = e.nodes[id]
	}
	if n.op != nodeLoad {
		return o, false
	}
	e.findBase(&n)
	base, known := e.based(rest).isConstant()
	addr := e.based(n.of)
	index := addr.terms[0]
	stride := uint64(n.width / 8)
	switch {
	case !known || addr.terms[1].scale != 0 || addr.k == 0 || e.onStack(addr):
		return o, false
	case index.scale != stride && (n.width == 64 || !addr.address):
		return o, false
	}
	o = outcome{Jump: optcheck.Jump{Kind: optcheck.JumpTable}, decides: int(n.step)}
	o.sets = e.settled(&n, max(int(rest.at), int(n.from)))
	o.Table = optcheck.Table{Addr: addr.k, Base: base, Width: n.width / 8, Signed: signed && n.width < 64}
	switch index.scale {
	case 0:
		o.Table.Bound, o.Table.Count = optcheck.BoundMask, 1
	case stride:
		o.limit(e, e.bound(index.node))
	}
	return o, true
}

// limit enters the range of the index.
func (o *outcome) limit(e *evaluation, r indexRange) {
	if r.bound == optcheck.BoundNone {
		return
	}
	t := &o.Table
	t.Addr += r.first * uint64(t.Width)
	t.Bound, t.Count = r.bound, int(r.count)
	if r.step != 0 {
		t.Check, o.checks = e.inst(r.step).Addr, r.step
	}
}

// findBase finds the address of the table that the load n reads, if it is in a
// register that is set outside the path.
func (e *evaluation) findBase(n *node) {
	e.base = 0
	m, ok := operandAddress(e.inst(int(n.step)))
	if !ok || n.of.terms[1].scale == 0 {
		return
	}
	r := e.around()
	at := e.index[n.step] - int32(r.first)
	for _, reg := range []byte{m.base, m.index} {
		if reg == noRegister || reg == m.index && m.scale != 1 {
			continue
		}
		if id, single := e.register(reg, 64, int(n.step)).single(); single {
			if k, found := r.constant(reg, at, maxCopies); found {
				e.base, e.baseAddr = id, k
				return
			}
		}
	}
}

// settled returns the step from which on it is settled by which table the jump
// goes: that of the load n, if nothing joins between it and the step set that
// sets the addresses, or all that joins leaves the same one in the register.
func (e *evaluation) settled(n *node, set int) int {
	var joins joinList
	load := int(n.step)
	if set <= load || e.joins(&joins, load, set) && joins.n == 0 {
		return load
	}
	m, ok := operandAddress(e.inst(load))
	if !ok {
		return set
	}
	r := e.around()
	for _, reg := range [...]byte{m.base, m.index} {
		if reg != noRegister {
			if k, found := r.constant(reg, e.index[load]-int32(r.first), maxCopies); found && k == n.of.k {
				return load
			}
		}
	}
	return set
}

// around returns the flow around the jump.
func (e *evaluation) around() *codeFlow {
	e.flow.start(e.insts, int(e.index[0]))
	return &e.flow
}

// based replaces the node that findBase has found an address for.
func (e *evaluation) based(v value) value {
	for _, t := range v.terms {
		if t.scale != 0 && e.base != 0 && t.node == e.base {
			v.k, v.address = v.k+t.scale*e.baseAddr, true
			v, _ = v.with(term{-t.scale, t.node})
		}
	}
	return v
}
