package amd64

import "xol/decode"

// A value is what a register holds, as a sum: a constant and up to two terms.
// Values that are equal have the same form.
type value struct {
	k       uint64
	terms   [2]term // by node; those in use come first
	address bool    // k is the address of something
	at      int16   // step that k comes from, the one furthest away; 0 in nodes
}

// term is a multiple of a node; scale 0 means that there is none.
type term struct {
	scale uint64
	node  nodeID
}

// A node is something that is not a sum.
type node struct {
	op    nodeOp
	width uint8  // bits that are loaded, extended or shifted
	reg   byte   // nodeBefore, nodeMade, nodeAnd, nodeChoice: the register
	step  int16  // of the path: where the node was made; 0 where that makes no difference
	k     uint64 // nodeOffset: summand, nodeAnd: mask, nodeShift: count
	of    value  // nodeLoad: the address
	from  int16  // nodeLoad: the step that the number in the address comes from
}

type nodeID uint8

type nodeOp uint8

const (
	nodeMade   nodeOp = iota // by an instruction that is not looked into
	nodeBefore               // what a register holds at the path's start
	nodeResult               // of a function that is called
	nodeLoad                 // a number of bits from memory, extended with zeros
	nodeZero                 // the low bits, extended with zeros
	nodeSign                 // the low bits, extended with the sign
	nodeOffset               // sum with a number that is no address
	nodeAnd
	nodeShift  // to the right, of a number of bits
	nodeChoice // one of two values
)

const maxNodes = 96

// evaluation computes what registers hold on a path.
type evaluation struct {
	path
	nodes    [maxNodes]node
	count    int
	fuel     int    // definitions that may still be looked into
	deepest  int    // step that was looked at
	ways     int    // that were looked at
	base     nodeID // node that is known to be baseAddr; 0 for none
	baseAddr uint64
	flow     codeFlow
	full     bool // there were more nodes than there is place for
}

// maxFuel bounds the definitions that are looked into for one path.
const maxFuel = 400

// reset forgets all values.
func (e *evaluation) reset() {
	e.nodes[0] = node{}
	e.count, e.fuel, e.full, e.deepest = 1, maxFuel, false, 0
}

func constant(k uint64) value { return value{k: k} }

// leaf returns the value of the node n, which is entered unless there is one
// like it.
func (e *evaluation) leaf(n node) value {
	n.of.at = 0
	for i := 1; i < e.count; i++ {
		if e.nodes[i] == n {
			return value{terms: [2]term{{1, nodeID(i)}}}
		}
	}
	if e.count == maxNodes {
		e.full = true
		return value{terms: [2]term{{1, 0}}}
	}
	e.nodes[e.count] = n
	e.count++
	return value{terms: [2]term{{1, nodeID(e.count - 1)}}}
}

// made is the value of what an instruction at step s makes of a register.
func (e *evaluation) made(reg byte, s int) value {
	return e.leaf(node{op: nodeMade, reg: reg, step: int16(s)})
}

// isConstant returns a value that is a number.
func (v value) isConstant() (uint64, bool) { return v.k, v.terms[0].scale == 0 }

// single returns the node that a value is, and nothing else.
func (v value) single() (nodeID, bool) {
	return v.terms[0].node, v.k == 0 && v.terms[0].scale == 1 && v.terms[1].scale == 0
}

// scaled returns a multiple. A sum becomes a node of its own: it is an index.
func (e *evaluation) scaled(v value, m uint64) value {
	if _, known := v.isConstant(); !known && m != 1 {
		v = e.whole(v)
	}
	v.k *= m
	for i := range v.terms {
		v.terms[i].scale *= m
	}
	return v.normal()
}

// whole makes a sum a node of its own; a multiple stays one.
func (e *evaluation) whole(v value) value {
	if v.k == 0 && v.terms[1].scale == 0 {
		return v
	}
	return e.leaf(node{op: nodeOffset, of: v})
}

// plus returns the sum, unless it has too many terms.
func (v value) plus(w value) (value, bool) {
	v.k += w.k
	v.address, v.at = v.address || w.address, max(v.at, w.at)
	for _, t := range w.terms {
		var ok bool
		if v, ok = v.with(t); !ok {
			return value{}, false
		}
	}
	return v, true
}

// with returns the sum with one more term.
func (v value) with(t term) (value, bool) {
	if t.scale == 0 {
		return v, true
	}
	a, b := v.terms[0], v.terms[1]
	switch {
	case a.scale == 0:
		a = t
	case a.node == t.node:
		a.scale += t.scale
	case b.scale != 0 && b.node == t.node:
		b.scale += t.scale
	case b.scale != 0:
		return value{}, false
	case t.node < a.node:
		a, b = t, a
	default:
		b = t
	}
	v.terms = [2]term{a, b}
	return v.normal(), true
}

// negative returns the multiple by -1.
func (v value) negative() value {
	v.k = -v.k
	for i := range v.terms {
		v.terms[i].scale = -v.terms[i].scale
	}
	return v
}

// normal leaves out the terms that have become 0.
func (v value) normal() value {
	if v.terms[1].scale == 0 {
		v.terms[1] = term{}
	}
	if v.terms[0].scale == 0 {
		v.terms = [2]term{v.terms[1], {}}
	}
	return v
}

// register returns what the low bits of a register hold in front of step s.
func (e *evaluation) register(reg byte, width uint8, s int) value {
	if reg > R15 {
		return e.made(reg, s)
	}
	for d := s + 1; e.reach(d); d++ {
		e.deepest = max(e.deepest, d)
		f := &e.effect[d]
		if (f.full|f.part)>>reg&1 == 0 {
			continue
		}
		if e.fuel--; e.fuel < 0 || f.full>>reg&1 == 0 && width != 8 {
			return e.made(reg, d)
		}
		return e.defined(reg, width, d)
	}
	return e.leaf(node{op: nodeBefore, reg: reg})
}

// memoryOperand is the address of a ModRM operand.
type memoryOperand struct {
	base, index byte // noRegister for none
	scale       uint64
	disp        uint64 // with a RIP-relative operand, the address
}

// operandAddress returns the parts of the address, unless there is more to it.
func operandAddress(inst *decode.Inst) (m memoryOperand, ok bool) {
	d := DetailOf(inst)
	m = memoryOperand{base: noRegister, index: noRegister}
	switch {
	case inst.Fields.ModRM == 0 || d.Mod() == 3 || d.Prefixes()&(PrefixFS|PrefixGS) != 0:
		return m, false
	case inst.PCRel.Kind != decode.PCRelNone:
		m.disp = inst.Target
		return m, true
	case d.addressIs32():
		return m, false
	}
	m.disp = uint64(int64(displacement(inst)))
	if d.RM() != RSP {
		m.base = d.rmRegister()
		return m, true
	}
	sib := inst.Raw[inst.Fields.ModRM+1]
	if hasIndex(inst) {
		m.index, m.scale = d.X4()<<4|d.X()<<3|sib>>3&7, 1<<(sib>>6)
	}
	if sib&7 != RBP || d.Mod() != 0 {
		m.base = d.B4()<<4 | d.B()<<3 | sib&7
	}
	return m, true
}

// address returns the address of the ModRM operand of step s.
func (e *evaluation) address(s int) value {
	m, ok := operandAddress(e.inst(s))
	if !ok {
		return e.made(noRegister, s)
	}
	v := constant(m.disp)
	if v.address = e.inst(s).PCRel.Kind != decode.PCRelNone; v.address {
		v.at = int16(s)
	}
	if m.index != noRegister {
		index := e.register(m.index, 64, s)
		if _, known := index.isConstant(); known && m.scale > 1 {
			index = e.made(m.index, s) // it is something else on other ways
		}
		v, _ = v.plus(e.scaled(index, m.scale))
	}
	if m.base != noRegister {
		if v, ok = v.plus(e.register(m.base, 64, s)); !ok {
			return e.made(noRegister, s)
		}
	}
	return v
}

// load returns the bits at an address, which step s reads.
func (e *evaluation) load(width uint8, addr value, s int) value {
	if v, ok := e.stored(width, addr, s); ok {
		return v
	}
	n := node{op: nodeLoad, width: width, step: int16(s), of: addr, from: addr.at}
	n.of.at = 0
	for i := 1; i < e.count; i++ {
		known := &e.nodes[i]
		if known.op == nodeLoad && known.width == width && known.of == n.of && e.unchanged(addr, int(known.step), s) {
			return value{terms: [2]term{{1, nodeID(i)}}}
		}
	}
	return e.leaf(n)
}

// maxSpill is how many steps back a stored value is looked for.
const maxSpill = 64

// stored returns what was stored at an address of the stack in front of step s.
func (e *evaluation) stored(width uint8, addr value, s int) (v value, ok bool) {
	if !e.onStack(addr) {
		return v, false
	}
	for d := s + 1; d <= s+maxSpill && e.reach(d); d++ {
		if !e.effect[d].memory {
			continue
		}
		inst := e.inst(d)
		if inst.Flow != decode.FlowNone {
			return v, false
		}
		det := DetailOf(inst)
		if writesOf(det)&wSP != 0 {
			continue // pushes onto the stack, where there was nothing
		}
		at := e.address(d)
		if at == addr && isStore(det) && operandWidth(det) >= width {
			return e.register(det.register(), width, d), true
		}
		if e.overlap(addr, at) {
			return v, false
		}
	}
	return v, false
}

// isStore recognises mov to memory, but of ah and its like.
func isStore(d Detail) bool {
	return d.Map() == MapOneByte && d.Opcode()&^1 == 0x88 && d.Encoding() <= EncREX2 &&
		(d.Opcode() == 0x89 || !d.highByte())
}

// onStack reports whether an address is that of the stack or frame pointer, which
// may be aligned, and a number.
func (e *evaluation) onStack(addr value) bool {
	n := &e.nodes[addr.terms[0].node]
	return addr.terms[0].scale == 1 && addr.terms[1].scale == 0 &&
		(n.op == nodeBefore || n.op == nodeAnd) && (n.reg == RSP || n.reg == RBP)
}

// maxStore is the largest number of bytes that an instruction stores.
const maxStore = 64

// overlap reports whether a store at an address may change what is on the
// stack. Of other memory it is assumed that it is not the stack.
func (e *evaluation) overlap(stack, store value) bool {
	return e.onStack(store) && (stack.terms != store.terms || stack.k-store.k+8 < maxStore+8)
}

// unchanged reports whether memory at an address is not written between two
// steps.
func (e *evaluation) unchanged(addr value, s, t int) bool {
	stack := e.onStack(addr)
	for d := min(s, t) + 1; d < max(s, t); d++ {
		switch {
		case !e.effect[d].memory, writesOf(DetailOf(e.inst(d)))&wSP != 0 && stack:
		case !stack, e.inst(d).Flow != decode.FlowNone, e.overlap(addr, e.address(d)):
			return false
		}
	}
	return true
}
