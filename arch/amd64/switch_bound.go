package amd64

import (
	"xol/decode"
	"xol/optcheck"
)

const (
	// maxCount is more than the entries of any table.
	maxCount = 1 << 16
	// maxMask is more than the mask of any index.
	maxMask = 1 << 12
)

// indexRange is what is known of a table's index.
type indexRange struct {
	bound optcheck.Bound
	first uint64 // index that the first entry is for; modulo 2^64
	count uint64
	step  int // of the comparison or mask; 0 for none
}

// bound returns the range of an index.
func (e *evaluation) bound(index nodeID) indexRange {
	for s := 1; e.reach(s); s++ {
		if e.inst(s).Flow != decode.FlowJumpIf {
			continue
		}
		if r, related := e.checked(s, index); r.bound != optcheck.BoundNone {
			return r
		} else if related {
			break
		}
	}
	return e.limit(index)
}

// limit returns the range of an index that comes from its mask or its type.
func (e *evaluation) limit(index nodeID) indexRange {
	n := &e.nodes[index]
	if mask := n.k & (^uint64(0) >> (64 - n.width)); n.op == nodeAnd && mask < maxMask {
		return indexRange{optcheck.BoundMask, 0, mask + 1, int(n.step)}
	}
	if e.bits(index) == 8 {
		return indexRange{bound: optcheck.BoundMask, count: 1 << 8}
	}
	return indexRange{}
}

// The conditions of a number that is less, in the low bits of the opcode. The
// lowest bit turns a condition around.
const (
	condBelow        = 0x2
	condEqual        = 0x4
	condBelowOrEqual = 0x6
	condParity       = 0xa
	condLess         = 0xc
	condLessOrEqual  = 0xe
)

// condition returns the condition under which the path goes over a branch.
func (e *evaluation) condition(s int) (cond byte, ok bool) {
	inst := e.inst(s)
	if branchKindOf(inst) != kindCond || inst.Target == inst.Next() {
		return 0, false
	}
	cond = DetailOf(inst).Opcode() & 15
	if !e.taken(s) {
		cond ^= 1
	}
	return cond, cond&^1 != condEqual && cond&^1 != condParity
}

// checked returns what the branch at step s says of the index, and whether it is
// related to it. What is known of the index further away is of no use then.
func (e *evaluation) checked(s int, index nodeID) (r indexRange, related bool) {
	cond, ok := e.condition(s)
	if !ok {
		return r, false
	}
	c := s + 1
	for ; e.reach(c) && keepsFlags(e.inst(c)); c++ {
	}
	if !e.reach(c) {
		return r, false
	}
	if r, ok = e.limited(c, cond, index); ok {
		return r, true
	}
	return indexRange{}, e.concerns(c, index)
}

// limited returns the range of the index if step c is a comparison with its
// limit, after which the condition holds.
func (e *evaluation) limited(c int, cond byte, index nodeID) (r indexRange, ok bool) {
	q, ok := e.compared(c)
	if !ok || q.limit >= maxCount {
		return r, false
	}
	count := q.limit
	switch cond {
	case condBelow, condLess:
	case condBelowOrEqual, condLessOrEqual:
		count++
	default:
		return r, false
	}
	q.value = e.whole(q.value)
	q.value.at = 0
	id, single := q.value.single()
	if !single || count == 0 || cond >= condLess && e.bits(id) >= q.width {
		return r, false // a signed comparison says nothing of a number that may be negative
	}
	r = indexRange{bound: optcheck.BoundCompare, count: count, step: c}
	return r, e.applies(&r, q, id, index)
}

// concerns reports whether a register that step c reads or writes holds the
// index, or differs from it by a number.
func (e *evaluation) concerns(c int, index nodeID) bool {
	d := DetailOf(e.inst(c))
	if d.Encoding() > EncREX2 || e.inst(c).Fields.ModRM == 0 {
		return false
	}
	of, _ := e.split(index)
	regs, n := [2]byte{d.register(), d.rmRegister()}, 2
	if d.Mod() != 3 {
		n = 1
	}
	for _, reg := range regs[:n] {
		for s := c - 1; s <= c; s++ {
			id, single := e.whole(e.register(reg, 64, s)).single()
			if v, _ := e.split(id); single && v == of {
				return true
			}
		}
	}
	return false
}

// applies reports whether a comparison of the node id tells about the index,
// and shifts the range where they differ by a number. Where 32 bits are compared
// and 64 used, the others are taken to be 0: a compiler knows that they are.
func (e *evaluation) applies(r *indexRange, q comparison, id, index nodeID) bool {
	n := &e.nodes[index]
	switch {
	case id == index:
		return q.width >= 32 || e.bits(index) <= q.width
	case (n.op == nodeZero || n.op == nodeSign) && n.of == q.value:
		return q.width >= n.width
	}
	of, k := e.split(index)
	compared, less := e.split(id)
	if of != compared || q.width < 32 {
		return false
	}
	if k -= less; int64(k) >= 0 {
		r.first = k
		return true
	}
	r.count += k // the index is not negative
	return r.count-1 < maxCount
}

// split takes the number apart that is added to a node.
func (e *evaluation) split(id nodeID) (v value, k uint64) {
	if n := &e.nodes[id]; n.op == nodeOffset {
		return n.of, n.k
	}
	return value{terms: [2]term{{1, id}}}, 0
}

// comparison is that of a value, as an unsigned number, with a limit.
type comparison struct {
	value value
	limit uint64
	width uint8
}

// The opcodes of sub and cmp, without the bits that choose operands.
const (
	opcodeSub = 0x28
	opcodeCmp = 0x38
	aluCmp    = 7
)

// compared returns what step s compares.
func (e *evaluation) compared(s int) (q comparison, ok bool) {
	inst := e.inst(s)
	d := DetailOf(inst)
	if d.Map() != MapOneByte || d.Encoding() > EncREX2 || inst.Flow != decode.FlowNone {
		return q, false
	}
	o := operation{inst: inst, d: d, step: s, width: comparedWidth(d), want: 64}
	other := value{}
	switch op := d.Opcode(); {
	case op&^3 == 0x80 && (d.Reg() == aluSub || d.Reg() == aluCmp):
		q.value, other = e.operandE(&o), constant(immediate(inst))
	case op&^7 != opcodeSub && op&^7 != opcodeCmp:
		return q, false
	case op&4 != 0:
		q.value, other = e.read(&o, RAX), constant(immediate(inst))
	case op&2 != 0:
		q.value, other = e.read(&o, d.register()), e.operandE(&o)
	default:
		q.value, other = e.operandE(&o), e.read(&o, d.register())
	}
	k, known := other.isConstant()
	q.width, q.limit = o.width, k
	if q.width < 64 {
		q.limit &= 1<<q.width - 1
	}
	return q, known && (o.width > 8 || !usesHighByte(d))
}

// comparedWidth is operandWidth of instructions that write nothing.
func comparedWidth(d Detail) uint8 {
	if d.Opcode()&1 == 0 {
		return 8
	}
	return max(operandWidth(d), 16)
}

// usesHighByte reports whether an arithmetic instruction on bytes names ah or
// its like.
func usesHighByte(d Detail) bool {
	if d.HasREX() || d.Encoding() != EncLegacy || d.Opcode()&4 != 0 && d.Opcode() < 0x40 {
		return false
	}
	return d.Mod() == 3 && d.RM() >= 4 || d.Opcode() < 0x40 && d.Reg() >= 4
}

// flagKeepers are frequent instructions that leave the flags alone.
var flagKeepers = [...]opcodeRange{
	{MapOneByte, 0x50, 0x5f}, {MapOneByte, 0x63, 0x63}, {MapOneByte, 0x68, 0x68}, {MapOneByte, 0x6a, 0x6a},
	{MapOneByte, 0x70, 0x7f}, {MapOneByte, 0x88, 0x8b}, {MapOneByte, 0x8d, 0x8d}, {MapOneByte, 0x90, 0x99},
	{MapOneByte, 0xb0, 0xbf}, {MapOneByte, 0xc6, 0xc7}, {MapOneByte, 0xe9, 0xe9}, {MapOneByte, 0xeb, 0xeb},
	{Map0F, 0x10, 0x1f}, {Map0F, 0x28, 0x29}, {Map0F, 0x40, 0x4f}, {Map0F, 0x6e, 0x6f}, {Map0F, 0x7e, 0x9f},
	{Map0F, 0xb6, 0xb7}, {Map0F, 0xbe, 0xbf}, {Map0F, 0xc8, 0xcf}, {Map0F, 0xd6, 0xd6},
}

func keepsFlags(inst *decode.Inst) bool {
	d := DetailOf(inst)
	return d.Encoding() <= EncREX2 && d.in(flagKeepers[:])
}
