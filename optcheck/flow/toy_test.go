package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"xol/classify"
	"xol/decode"
)

// op is an instruction of the toy ISA: what it does, as data.
type op struct {
	label   string
	flow    decode.Flow
	props   decode.Props
	to      string // label of a branch's target
	reg     Reg
	x       Expr // what it leaves in reg; of an indirect jump, where it goes
	changes Set
	store   Store
	compare Comparison
	holds   Relation // of a branch that is taken
	signed  bool
	what    string // of an indirect jump
	padding bool
}

// The registers of the toy that are not general.
const (
	toySP   Reg = 30
	toyTOC  Reg = 29 // fixed where the toy has a table of contents
	codeAt      = 0x40_0000
	dataAt      = 0x50_0000
	dataEnd     = 0x50_1000
)

func set(r Reg, x Expr) op { return op{reg: r, x: x, changes: 1 << r} }
func load(r, a, b Reg, shift uint8, k uint64, width uint8, signed bool) op {
	return set(r, Expr{Op: OpLoad, A: a, B: b, Shift: shift, K: k, Width: width, Signed: signed})
}
func chosen(r, a, b Reg) op { return set(r, Expr{Op: OpEither, A: a, B: b}) }
func sum(r, a, b Reg) op    { return set(r, Expr{Op: OpAdd, A: a, B: b}) }
func store(r Reg, base Reg, disp uint64) op {
	return op{store: Store{Base: base, Disp: disp, Size: 8, Width: 8, Regs: [2]Reg{r, NoReg}}, changes: MemoryWritten}
}

// storePair stores two registers, NoReg standing for what is no register.
func storePair(r, s Reg, base Reg, disp uint64) op {
	return op{store: Store{Base: base, Disp: disp, Size: 16, Width: 8, Regs: [2]Reg{r, s}}, changes: MemoryWritten}
}

// storeAway stores by way of an address that is not known.
func storeAway() op { return op{changes: MemoryWritten} }
func cmp(r Reg, k uint64) op {
	return op{compare: Comparison{X: Copy(r), Width: 64, B: NoReg, K: k, Passed: AnyRelation}, changes: Flags}
}
func cmpReg(r, b Reg) op {
	c := cmp(r, 0)
	c.compare.B = b
	return c
}
func cmpBits(r Reg, bits uint8, k uint64) op {
	c := cmp(r, k)
	c.compare.X, c.compare.Width = Field(r, bits, false), bits
	return c
}

// trapUnless traps on other relations of r to k.
func trapUnless(holds Relation, r Reg, k uint64) op {
	c := cmp(r, k)
	c.compare.Passed = holds
	return c
}
func branch(holds Relation, to string) op {
	return op{flow: decode.FlowJumpIf, props: decode.Conditional | decode.HasTarget, to: to, holds: holds}
}
func signedBranch(holds Relation, to string) op {
	b := branch(holds, to)
	b.signed = true
	return b
}

// other is a branch on something that is not followed.
func other(to string) op { return branch(0, to) }
func jump(to string) op {
	return op{flow: decode.FlowJump, props: decode.HasTarget, to: to}
}
func call(to string) op {
	return op{flow: decode.FlowCall, props: decode.HasTarget | decode.Link, to: to, changes: 0xff | MemoryWritten}
}
func jumpBy(r Reg) op { return op{flow: decode.FlowJumpIndirect, x: Copy(r)} }
func ret() op         { return op{flow: decode.FlowReturn} }
func nop() op         { return op{padding: true} }
func at(label string, o op) op {
	o.label = label
	return o
}

// toyModel tells of the instructions of one program.
type toyModel struct {
	ops    []op
	pieces bool // and it has a table of contents
	tail   int  // index of a jump that leaves
}

func (m *toyModel) of(inst *decode.Inst) *op { return &m.ops[inst.Detail] }

func (m *toyModel) ByteOrder() binary.ByteOrder            { return binary.LittleEndian }
func (m *toyModel) Changes(inst *decode.Inst) Set          { return m.of(inst).changes }
func (m *toyModel) IsPadding(inst *decode.Inst) bool       { return m.of(inst).padding }
func (m *toyModel) IsTailCall(_ []decode.Inst, i int) bool { return i == m.tail && i > 0 }
func (m *toyModel) Pieces() bool                           { return m.pieces }
func (m *toyModel) IsEntry(inst *decode.Inst) bool         { return m.of(inst).label == "entry" }
func (m *toyModel) IsLabel(inst *decode.Inst) bool         { return m.of(inst).label == "pad" }

func (m *toyModel) Target(inst *decode.Inst) (Expr, string) { return m.of(inst).x, m.of(inst).what }

func (m *toyModel) Result(inst *decode.Inst, r Reg) Expr {
	switch o := m.of(inst); {
	case o.flow == decode.FlowCall && r == 0:
		return Expr{Op: OpWhole}
	case o.flow == decode.FlowCall:
		return Expr{Op: OpNone}
	default:
		return o.x
	}
}

func (m *toyModel) Store(inst *decode.Inst) (Store, bool) {
	s := m.of(inst).store
	return s, s.Size != 0
}

func (m *toyModel) Compare(inst *decode.Inst) (Comparison, bool) {
	c := m.of(inst).compare
	return c, c.Width != 0
}

func (m *toyModel) Condition(inst *decode.Inst, taken bool) (Condition, bool) {
	o := m.of(inst)
	c := Condition{Holds: o.holds, Signed: o.signed}
	if !taken {
		c.Holds ^= AnyRelation
	}
	return c, o.holds != 0
}

func (m *toyModel) Facts(*classify.Func, Memory) Facts {
	f := Facts{Frame: 1 << toySP, Fixed: NoReg}
	if m.pieces {
		f.Fixed, f.Value = toyTOC, dataAt
	}
	return f
}

// function returns the code as a function whose instructions are 4 bytes long.
func (m *toyModel) function() *classify.Func {
	labels := map[string]uint64{}
	for i, o := range m.ops {
		labels[o.label] = codeAt + 4*uint64(i)
	}
	f := &classify.Func{Addr: codeAt, Code: make([]byte, 4*len(m.ops))}
	for i, o := range m.ops {
		target, ok := labels[o.to]
		if o.to != "" && !ok {
			target = codeAt + 1<<20
		}
		f.Insts = append(f.Insts, decode.Inst{
			Addr: codeAt + 4*uint64(i), Len: 4, Detail: uint64(i), Flow: o.flow, Props: o.props, Target: target,
		})
		if o.label == "pad" || o.label == "entry" {
			f.Insts[i].Props |= decode.LandingPad
		}
	}
	return f
}

// jump returns what is found of the indirect jump with the label "asked", else of
// the last one, in words.
func (m *toyModel) jump(mem Memory) string {
	f := m.function()
	i := slices.IndexFunc(m.ops, func(o op) bool { return o.label == "asked" })
	if i < 0 {
		i = len(m.ops) - 1
	}
	for i >= 0 && m.ops[i].flow != decode.FlowJumpIndirect {
		i--
	}
	var t Tracer
	t.Start(m, f, mem)
	j := t.Jump(i)
	again := t.Jump(i)
	if again != j {
		return fmt.Sprintf("%+v, and then %+v", j, again)
	}
	return describe(&j)
}

// describe returns a jump in words: bounds have the index of their instruction.
func describe(j *Jump) string {
	if j.Kind != JumpTable {
		return j.Kind.String() + ": " + j.What
	}
	t := &j.Table
	text := fmt.Sprintf("table %#x width %d", t.Addr, t.Width)
	if t.Signed {
		text += " signed"
	}
	if t.Base != 0 {
		text += fmt.Sprintf(" base %#x", t.Base)
	}
	if t.Shift != 0 {
		text += fmt.Sprintf(" shift %d", t.Shift)
	}
	switch names := [...]string{"", "compare", "mask"}; t.Bound {
	case BoundNone:
		if t.Count != 0 || t.Check != 0 {
			return fmt.Sprintf("%s, %d entries without a bound", text, t.Count)
		}
		return text
	default:
		return fmt.Sprintf("%s, %s %d at %d", text, names[t.Bound], t.Count, (t.Check-codeAt)/4)
	}
}

// toyMemory is data from dataAt on; its words of 4 bytes are offsets, those of 8
// addresses.
type toyMemory struct {
	words    []uint32          // at dataAt
	pointers map[uint64]uint64 // by address
}

func (m toyMemory) DataEnd(addr uint64) (uint64, bool) {
	return dataEnd, addr-dataAt < dataEnd-dataAt || addr-codeAt < 1<<16
}

func (m toyMemory) Pointer(addr uint64) (uint64, bool) {
	p, ok := m.pointers[addr]
	return p, ok
}

func (m toyMemory) Data(_ []byte, addr, size uint64) ([]byte, error) {
	var raw []byte
	for _, w := range m.words {
		raw = binary.LittleEndian.AppendUint32(raw, w)
	}
	if addr-dataAt > uint64(len(raw)) || addr-dataAt+size > uint64(len(raw)) {
		return nil, errors.New("no data")
	}
	return slices.Clone(raw[addr-dataAt:][:size]), nil
}

// everywhere is data at all addresses.
type everywhere struct{ toyMemory }

func (everywhere) DataEnd(uint64) (uint64, bool) { return 1 << 63, true }

// unsure holds pointers that only stand there in the file.
type unsure struct{ toyMemory }

func (m unsure) Pointer(addr uint64) (uint64, bool) { return m.pointers[addr], false }
