package flow

// Memory is what a program's data holds before it runs. image.Image is one.
type Memory interface {
	// Data returns size bytes at addr, in dst's memory where that suffices.
	Data(dst []byte, addr, size uint64) ([]byte, error)
	// Pointer returns the address that the 8-byte word at addr holds when the
	// program runs, as far as it is an address in the file.
	Pointer(addr uint64) (target uint64, ok bool)
	// DataEnd returns the address after the section that holds addr.
	DataEnd(addr uint64) (end uint64, ok bool)
}

// JumpKind says what is known of where an indirect jump goes.
type JumpKind uint8

const (
	// JumpUnresolved: the target is computed in a way that is not understood.
	JumpUnresolved JumpKind = iota
	// JumpTable: the target comes from a table.
	JumpTable
	// JumpPointer: the target is a whole address that was in memory or in a
	// register before: a function pointer, a computed goto's label, a link
	// register. It can only be an address that is written down somewhere.
	JumpPointer
)

var jumpNames = [...]string{"unresolved", "table", "pointer"}

// String returns the kind in one word.
func (k JumpKind) String() string {
	if int(k) < len(jumpNames) {
		return jumpNames[k]
	}
	return "invalid"
}

// Bound says how the number of a table's entries is known.
type Bound uint8

const (
	// BoundNone: not at all; entries are taken while they make sense.
	BoundNone Bound = iota
	// BoundCompare: from comparisons on every way to the jump.
	BoundCompare
	// BoundMask: the index is masked, or its type is too small for more. The
	// table may be shorter.
	BoundMask
)

// Table describes a jump table in memory. A target is Base plus the entry,
// sign- or zero-extended from Width bytes and shifted left by Shift; where
// Width is 8 and Base 0, an entry is the address itself.
type Table struct {
	Addr   uint64 // of the first entry
	Base   uint64
	Count  int    // entries, with BoundMask at most; 0 where Bound is BoundNone
	Check  uint64 // address of the comparison or mask; 0 where there is none
	Width  uint8  // bytes of an entry: 1, 2, 4 or 8
	Shift  uint8
	Signed bool
	Bound  Bound
}

// Jump is what is known of an indirect jump.
type Jump struct {
	Kind  JumpKind
	Table Table  // where Kind is JumpTable
	What  string // where Kind is JumpUnresolved: one clause, constant
}

// Pointer and Unresolved return jumps of these kinds.
func Pointer() Jump               { return Jump{Kind: JumpPointer} }
func Unresolved(what string) Jump { return Jump{What: what} }

// How targets are computed that are not understood.
const (
	WhatNoJump     = "it is no indirect jump"
	WhatArithmetic = "its target is computed from a value in a way that no jump table needs"
	WhatIndex      = "its target is computed from an index into the code, without a table"
	WhatNumber     = "its target is computed from a number in memory that is not in a table at a known address"
	WhatExtension  = "its target is computed from a table's entry that is extended in two ways"
	WhatSeveral    = "its target is computed in several ways"
	WhatTables     = "its target comes from one of several tables"
	WhatConstant   = "its target is an address in the function that the code computes"
	WhatTooFar     = "its target is computed from a value that is set too far away"
)

// Jump says where the indirect jump of instruction i goes. It follows the ways
// to the jump backward and computes the value of its target from the last
// instructions that set it. It looks at no more than a bounded number of
// instructions; these need not all decode.
func (t *Tracer) Jump(i int) Jump {
	if i < 0 || i >= len(t.insts) {
		return Unresolved(WhatNoJump)
	}
	x, what := t.isa.Target(&t.insts[i])
	switch {
	case what != "":
		return Unresolved(what)
	case x.Op == OpWhole:
		return Pointer()
	}
	t.begin()
	v := t.resolve(t.eval(&x, i))
	return t.jumpTo(v, i)
}

func (t *Tracer) jumpTo(v value, i int) Jump {
	switch v.kind {
	case kindTarget, kindEntry:
		return t.tableJump(v, i)
	case kindNone, kindWhole:
		return Pointer()
	case kindGuess:
		if v.whole {
			return Pointer()
		}
		v.what = WhatSeveral
	case kindConstant:
		if t.isPointer(&v) {
			return Pointer()
		}
		v.what = WhatConstant
	case kindElement:
		if v.what != WhatNumber {
			v.what = WhatIndex
		}
	case kindNumber, kindFailed:
		if v.what != WhatNumber && t.isa.IsTailCall(t.insts, i) {
			return Pointer()
		}
	}
	if v.what == "" {
		v.what = WhatArithmetic
	}
	return Unresolved(v.what)
}

func (t *Tracer) tableJump(v value, i int) Jump {
	if v.last != 0 && ((v.last-v.number)%uint64(v.width) != 0 || !t.leadInside(&v, v.number, v.last+uint64(v.width))) {
		return Unresolved(WhatTables)
	}
	table := Table{
		Addr: v.number, Base: v.base, Width: v.width, Shift: v.shift,
		Signed: v.signed && v.width < 8,
	}
	if v.kind == kindEntry && v.width < 8 && t.isa.Pieces() {
		return Unresolved(WhatNumber) // code does not stand so low
	}
	t.bound(&table, i, &v)
	t.distrust(&table, &v)
	if v.kind == kindEntry && v.width == 8 && v.shift == 0 && !t.labels(&table) {
		return Pointer()
	}
	return Jump{Kind: JumpTable, Table: table}
}

// distrust takes the bound back that a comparison tells, if the table is among
// the instructions and goes on. Where there are other indirect jumps, one of them
// may lead to after the comparison, which then is one of another switch and says
// too little.
func (t *Tracer) distrust(table *Table, v *value) {
	end := table.Addr + uint64(table.Count)*uint64(table.Width)
	if table.Bound == BoundCompare && t.inFunction(table.Addr) && t.chain[t.indirect-1] != 0 && t.leadInside(v, end, end+uint64(v.width)) {
		table.Addr, table.Count, table.Check, table.Bound = v.number, 0, 0, BoundNone
	}
}

// labels reports whether a table of whole addresses is one of labels of the
// function, and not of function pointers: whether the first leads there, or,
// where a comparison tells how many there are, not all lead elsewhere.
func (t *Tracer) labels(table *Table) bool {
	if t.mem == nil {
		return true
	}
	if table.Bound != BoundCompare {
		p, ok := t.mem.Pointer(table.Addr)
		return ok && t.inFunction(p)
	}
	for k := range uint64(table.Count) {
		if p, ok := t.mem.Pointer(table.Addr + 8*k); !ok || t.inFunction(p) {
			return true
		}
	}
	return false
}

// leadInside reports whether all entries from start to end, as those of v, lead
// to instructions of the function. Then they are of one table.
func (t *Tracer) leadInside(v *value, start, end uint64) bool {
	if t.mem == nil || end-start > maxCount || v.width != 4 {
		return false
	}
	data, err := t.mem.Data(nil, start, end-start)
	if err != nil {
		return false
	}
	for ; len(data) >= 4; data = data[4:] {
		entry := uint64(t.isa.ByteOrder().Uint32(data))
		if v.signed {
			entry = uint64(int64(int32(entry)))
		}
		if t.indexOf(v.base+entry<<v.shift) < 0 {
			return false
		}
	}
	return true
}

// Constant returns the address that instruction i leaves in register r, where
// it is a constant or, in programs that have a table of contents, the pointer
// at a constant address.
func (t *Tracer) Constant(i int, r Reg) (addr uint64, ok bool) {
	x := t.isa.Result(&t.insts[i], r)
	return t.ConstantOf(&x, i)
}

// ConstantOf returns the address that x is before instruction i, where it is a
// constant.
func (t *Tracer) ConstantOf(x *Expr, i int) (addr uint64, ok bool) {
	t.begin()
	v := t.resolve(t.eval(x, i))
	return v.number, v.kind == kindConstant
}
