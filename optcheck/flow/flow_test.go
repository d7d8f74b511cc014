package flow

import (
	"fmt"
	"slices"
	"testing"

	"xol/decode"
)

// by returns code that jumps by a table of offsets to its own address at dataAt,
// whose index is r2; before comes first, and after follows the jump.
func by(before []op, after ...op) []op {
	return slices.Concat(before, []op{
		set(1, Address(dataAt)),
		load(3, 1, 2, 2, 0, 4, true),
		sum(3, 3, 1),
		jumpBy(3),
	}, after)
}

func ops(list ...op) []op { return list }

// meetings are n places where ways meet.
func meetings(n int) (list []op) {
	for i := range n {
		label := fmt.Sprintf("meeting %p %d", &list, i)
		list = append(list, other(label), at(label, nop()))
	}
	return list
}

// copies copy r2 to r7 and back, n times altogether, each after a place where ways meet.
func copies(n int) (list []op) {
	for i := range n {
		a, b := Reg(2), Reg(7)
		if i%2 == 1 {
			a, b = b, a
		}
		list = slices.Concat(list, meetings(1), ops(set(b, Copy(a))))
	}
	return list
}

// handed are n blocks that only indirect jumps lead to. Each saves r9 on the stack in
// a slot of its own, calls a function, and restores it.
func handed(n int) (list []op) {
	for i := range n {
		slot := uint64(8 * i)
		list = append(list, store(9, toySP, slot), call("f"), load(9, toySP, NoReg, 0, slot, 8, false), jumpBy(5))
	}
	return list
}

const (
	relative = "table 0x500000 width 4 signed base 0x500000"
	notTaken = Less | Equal // of a branch on greater
)

// TestJumps is the table of the engine's branches.
func TestJumps(t *testing.T) {
	unresolved := func(what string) string { return "unresolved: " + what }
	const pointer = "pointer: "
	own, foreign := uint64(codeAt+4), uint64(codeAt+0x1000)
	labels := toyMemory{pointers: map[uint64]uint64{dataAt: own, dataAt + 8: foreign}}
	functions := toyMemory{pointers: map[uint64]uint64{dataAt: foreign, dataAt + 8: foreign}}
	const toCode = 1<<32 + codeAt - dataAt
	tables := toyMemory{words: []uint32{toCode, toCode + 4, toCode, 1}}
	whole := func(before ...op) []op {
		return append(before, set(1, Address(dataAt)), load(3, 1, 2, 3, 0, 8, false), jumpBy(3))
	}
	for _, c := range []struct {
		name   string
		code   []op
		mem    Memory
		pieces bool
		tail   int
		want   string
	}{
		// Forms of tables.
		{name: "relative to the table", code: by(nil), want: relative},
		{name: "relative to code", want: "table 0x500000 width 1 base 0x400010 shift 2", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 1, false), set(4, Address(codeAt+16)),
			set(3, Expr{Op: OpAdd, A: 4, B: 3, Shift: 2}), jumpBy(3))},
		{name: "base added as a number", want: "table 0x500000 width 4 signed base 0x400010", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), set(3, Add(3, codeAt+16)), jumpBy(3))},
		{name: "small number added to an entry", want: "table 0x500000 width 4 signed base 0x500008", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), set(3, Add(3, 8)), sum(3, 3, 1), jumpBy(3))},
		{name: "number added to a target", want: "table 0x500000 width 4 signed base 0x500010", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), set(3, Add(3, 16)), jumpBy(3))},
		{name: "shifted entry", want: "table 0x500000 width 2 base 0x500000 shift 2", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 1, 0, 2, false), set(3, Expr{Op: OpField, A: 3, B: NoReg, Bits: 64, Shift: 2}), sum(3, 3, 1), jumpBy(3))},
		{name: "sign extended after the load", want: relative, code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, false), set(3, Field(3, 32, true)), sum(3, 3, 1), jumpBy(3))},
		{name: "extended in two ways", want: unresolved(WhatExtension), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 1, true), set(3, Field(3, 16, false)), sum(3, 3, 1), jumpBy(3))},
		{name: "extended to 32 bits only", want: unresolved(WhatExtension), code: ops(
			set(1, Address(dataAt)), set(3, Expr{Op: OpLoad, A: 1, B: 2, Width: 1, Signed: true, Bits: 32}), sum(3, 3, 1), jumpBy(3))},
		{name: "extended after a shift", want: unresolved(WhatExtension), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, false), set(3, Expr{Op: OpField, A: 3, B: NoReg, Bits: 64, Shift: 2}),
			set(3, Field(3, 32, true)), sum(3, 3, 1), jumpBy(3))},
		{name: "all but one of the bits of an entry", want: unresolved(WhatIndex), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, false), set(3, Field(3, 31, false)), sum(3, 3, 1), jumpBy(3))},
		{name: "bits of an entry", want: unresolved(WhatIndex), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, false), set(3, Field(3, 8, false)), sum(3, 3, 1), jumpBy(3))},
		{name: "address of the element first", want: relative, code: ops(
			set(1, Address(dataAt)), set(4, Expr{Op: OpAdd, A: 1, B: 2, Shift: 2}), load(3, 4, NoReg, 0, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "scaled index first", want: relative + ", mask 4 at 1", code: ops(
			set(1, Address(dataAt)), set(2, Expr{Op: OpField, A: 2, B: NoReg, Bits: 2, Shift: 2}), load(3, 2, 1, 0, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "wide field, shifted again", want: relative, code: ops(
			set(1, Address(dataAt)), set(2, Expr{Op: OpField, A: 2, B: NoReg, Bits: 62, Shift: 1}), set(4, Expr{Op: OpAdd, A: 1, B: 2, Shift: 1}),
			load(3, 4, NoReg, 0, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "scaled index of 32 bits, shifted again", want: relative, code: ops(
			set(1, Address(dataAt)), set(2, Expr{Op: OpField, A: 2, B: NoReg, Bits: 64, Shift: 1}),
			set(3, Expr{Op: OpLoad, A: 1, B: 2, Shift: 1, Width: 4, Signed: true, IndexBits: 32}), sum(3, 3, 1), jumpBy(3))},
		{name: "displaced table", want: relative, code: ops(
			set(1, Address(dataAt)), set(4, Expr{Op: OpAdd, A: 1, B: 2, Shift: 2, K: ^uint64(7)}), load(3, 4, NoReg, 0, 8, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "table as a number", want: "table 0x500000 width 8", code: ops(load(3, NoReg, 2, 3, dataAt, 8, false), jumpBy(3))},
		{name: "negative number as a table", want: "table 0xfffffffffffffff8 width 8", code: ops(load(3, NoReg, 2, 3, ^uint64(7), 8, false), jumpBy(3))},
		{name: "number and index in one register", want: "table 0x500000 width 1 base 0x400000", code: ops(
			load(3, 2, NoReg, 0, dataAt, 1, false), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "sum of indices, two bytes", want: "table 0x500000 width 2 signed base 0x500000", code: ops(
			set(1, Address(dataAt)), sum(4, 1, 2), sum(4, 5, 4), load(3, 4, NoReg, 0, 0, 2, true), sum(3, 3, 1), jumpBy(3))},
		{name: "sum of indices", want: relative, code: ops(
			set(1, Address(dataAt)), sum(4, 1, 2), sum(4, 5, 4), load(3, 4, NoReg, 0, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "wrong scale of offsets", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 3, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "wrong scale of addresses", want: pointer, code: ops(set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 8, false), jumpBy(3))},
		{name: "index that is extended in two ways", want: relative, code: ops(
			set(1, Address(dataAt)), set(5, Address(dataAt+0x100)), set(2, Expr{Op: OpLoad, A: 5, B: 2, Shift: 1, Width: 2, Signed: true}), set(2, Field(2, 32, false)),
			set(2, Field(2, 16, false)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "index of another table, compared", want: "table 0x500100 width 4 signed base 0x500100, compare 6 at 2", code: ops(
			set(1, Address(dataAt)), load(2, 1, 2, 0, 0, 1, false), cmpBits(2, 32, 5), branch(Greater, "out"), set(2, Expr{Op: OpField, A: 2, B: NoReg, Bits: 8, Shift: 2}),
			set(1, Address(dataAt+0x100)), load(3, 1, 2, 0, 0, 4, true), sum(3, 3, 1), jumpBy(3), at("out", ret()))},
		{name: "index of another table, shifted twice", want: "table 0x500100 width 4 signed base 0x500100, mask 256 at 1", code: ops(
			set(1, Address(dataAt)), load(2, 1, 2, 0, 0, 1, false), set(2, Expr{Op: OpField, A: 2, B: NoReg, Bits: 64, Shift: 1}), set(2, Expr{Op: OpField, A: 2, B: NoReg, Bits: 64, Shift: 1}),
			set(1, Address(dataAt+0x100)), load(3, 1, 2, 0, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "index of another table", want: "table 0x500100 width 8, mask 256 at 1", code: ops(
			set(1, Address(dataAt)), load(2, 1, 2, 0, 0, 1, false), load(3, NoReg, 2, 3, dataAt+0x100, 8, false), jumpBy(3))},
		{name: "one entry", want: "table 0x500010 width 4 signed base 0x400000, mask 1 at 1", code: ops(
			set(1, Address(dataAt+16)), load(3, 1, NoReg, 0, 0, 4, true), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "entry alone", want: "table 0x500000 width 4", code: ops(set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, false), jumpBy(3))},
		{name: "entry alone where code stands high", pieces: true, want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, false), jumpBy(3))},
		{name: "index of another table of bytes", want: "table 0x500100 width 1 base 0x400000, mask 256 at 1", code: ops(
			set(1, Address(dataAt)), load(2, 1, 2, 0, 0, 1, false), set(1, Address(dataAt+0x100)), load(3, 1, 2, 0, 0, 1, false), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "whole addresses, loaded with a sign", want: "table 0x500000 width 8", code: ops(set(1, Address(dataAt)), load(3, 1, 2, 3, 0, 8, true), jumpBy(3))},
		{name: "labels", mem: labels, want: "table 0x500000 width 8", code: whole()},
		{name: "function pointers", mem: functions, want: pointer, code: whole()},
		{name: "first label elsewhere", mem: toyMemory{pointers: map[uint64]uint64{dataAt: foreign, dataAt + 8: own}},
			want: "table 0x500000 width 8, compare 2 at 0", code: append(whole(cmp(2, 1), branch(Greater, "out")), at("out", ret()))},
		{name: "bounded function pointers", mem: functions, want: pointer, code: append(whole(cmp(2, 1), branch(Greater, "out")), at("out", ret()))},
		{name: "bounded, not readable", mem: toyMemory{}, want: "table 0x500000 width 8, compare 2 at 0",
			code: append(whole(cmp(2, 1), branch(Greater, "out")), at("out", ret()))},

		// What is no table.
		{name: "not a jump", code: ops(jumpBy(3), nop()), want: pointer},
		{name: "own reason", code: ops(op{flow: decode.FlowJumpIndirect, what: "why"}), want: unresolved("why")},
		{name: "whole by itself", code: ops(op{flow: decode.FlowJumpIndirect, x: Expr{Op: OpWhole}}), want: pointer},
		{name: "argument", code: ops(jumpBy(3)), want: pointer},
		{name: "result", code: ops(call("f"), jumpBy(0)), want: pointer},
		{name: "lost in a call", code: ops(call("f"), jumpBy(1)), want: pointer},
		{name: "from memory", code: ops(load(3, 2, NoReg, 0, 8, 8, false), jumpBy(3)), want: pointer},
		{name: "number from memory", code: ops(load(3, 2, NoReg, 0, 8, 4, false), sum(3, 3, 4), jumpBy(3)), want: unresolved(WhatNumber)},
		{name: "arithmetic", code: ops(set(3, Expr{}), jumpBy(3)), want: unresolved(WhatArithmetic)},
		{name: "tail call by arithmetic", code: ops(set(3, Expr{}), jumpBy(3)), tail: 1, want: pointer},
		{name: "tail call by a number from memory", tail: 1, code: ops(load(3, 2, NoReg, 0, 8, 4, false), jumpBy(3)), want: unresolved(WhatNumber)},
		{name: "number added to a pointer", code: ops(set(3, Add(3, 8)), jumpBy(3)), want: unresolved(WhatArithmetic)},
		{name: "index into the code", code: ops(set(1, Address(codeAt)), set(3, Expr{Op: OpAdd, A: 1, B: 2, Shift: 2}), jumpBy(3)), want: unresolved(WhatIndex)},
		{name: "constant", code: ops(set(3, Address(codeAt+4)), jumpBy(3)), want: pointer},
		{name: "constant in pieces", pieces: true, code: ops(set(3, Address(codeAt+4)), jumpBy(3)), want: unresolved(WhatConstant)},
		{name: "right after the function, in pieces", pieces: true, code: ops(set(3, Address(codeAt+8)), jumpBy(3)), want: pointer},
		{name: "other function in pieces", pieces: true, code: ops(set(3, Address(codeAt+0x1000)), jumpBy(3)), want: pointer},
		{name: "table of contents", pieces: true, mem: labels, code: ops(load(3, toyTOC, NoReg, 0, 0, 8, false), jumpBy(3)), want: pointer},
		{name: "table at the table of contents", pieces: true, want: relative, code: ops(
			other("x"), nop(), at("x", load(3, toyTOC, 2, 2, 0, 4, true)), sum(3, 3, toyTOC), jumpBy(3))},
		{name: "address from the table of contents", pieces: true, mem: toyMemory{pointers: map[uint64]uint64{dataAt + 16: dataAt}}, want: relative, code: ops(
			load(1, toyTOC, NoReg, 0, 16, 8, false), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "nothing in the table of contents", pieces: true, mem: toyMemory{}, want: unresolved(WhatNumber), code: ops(
			load(1, toyTOC, NoReg, 0, 16, 8, false), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "no table of contents", mem: labels, code: ops(load(3, toyTOC, NoReg, 0, 0, 8, false), jumpBy(3)), want: pointer},
		{name: "either of two pointers", code: ops(set(1, Address(codeAt+0x1000)), set(3, Expr{Op: OpEither, A: 1, B: 2}), jumpBy(3)), want: pointer},
		{name: "either of two tables", code: ops(set(1, Address(dataAt)), set(4, Address(dataAt+64)), set(5, Expr{Op: OpEither, A: 1, B: 4}),
			load(3, 5, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3)), want: unresolved(WhatNumber)},
		{name: "disguised pointer", code: ops(load(3, 2, NoReg, 0, 0, 8, false), set(3, Expr{Op: OpGuard, A: 3, B: 4}), jumpBy(3)), want: pointer},
		{name: "disguised number", code: ops(set(4, Const(1)), set(3, Expr{Op: OpGuard, A: 3, B: 4}), jumpBy(3)), want: unresolved(WhatArithmetic)},

		// Constants.
		{name: "put together", want: relative, code: ops(
			set(1, Const(0x50)), set(1, Expr{Op: OpInsert, A: 1, B: NoReg, From: 0, Bits: 16, K: 0x50}),
			set(1, Expr{Op: OpField, A: 1, B: NoReg, Bits: 64, Shift: 16}), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "put together after a shift, and an index", want: unresolved(WhatIndex), code: ops(
			set(1, Const(0x50)), set(1, Expr{Op: OpField, A: 1, B: NoReg, Bits: 64, Shift: 16}), set(1, Expr{Op: OpInsert, A: 1, B: NoReg, Bits: 16, K: 0x50}), sum(3, 3, 1), jumpBy(3))},
		{name: "put together, the lowest bit replaced", want: relative, code: ops(
			set(1, Const(dataAt|1)), set(1, Expr{Op: OpInsert, A: 1, B: NoReg, Bits: 16}), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "table overwritten together with the first register", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), op{reg: 1, x: Copy(4), changes: 1<<0 | 1<<1}, load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "from the middle", want: relative, code: ops(
			set(1, Const(dataAt<<4|3)), set(1, Expr{Op: OpField, A: 1, B: NoReg, From: 4, Bits: 60}), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "masked constant", want: relative, code: ops(
			set(1, Const(dataAt|3)), set(1, Expr{Op: OpMask, A: 1, B: NoReg, K: ^uint64(3)}), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "sum of constants", want: relative, code: ops(
			set(4, Const(0x1000)), set(1, Const(dataAt-0x1000)), sum(1, 1, 4), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "number that is no table", mem: labels, want: unresolved(WhatNumber), code: ops(
			set(1, Const(0x9000_0000)), load(3, 1, 2, 0, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "part of a register", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), set(1, Expr{Op: OpField, A: 4, B: NoReg, Bits: 8, Part: 8}), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},

		// Ways.
		{name: "hoisted over a loop", want: relative, code: ops(
			set(1, Address(dataAt)), at("loop", nop()), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3), jump("loop"))},
		{name: "same table on two ways", want: relative, code: ops(
			set(1, Address(dataAt)), other("x"), set(1, Address(dataAt)), at("x", nop()), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "two tables", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), other("x"), set(1, Address(dataAt+64)), at("x", nop()), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "a number on the other way", want: relative, code: ops(
			set(1, Address(dataAt)), other("x"), set(1, Expr{}), at("x", nop()), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "a pointer that runs", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), at("loop", nop()), set(1, Add(1, 4)), other("loop"), load(3, 1, 2, 2, 0, 4, true), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "sum that runs", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), at("loop", nop()), sum(1, 1, 5), other("loop"), load(3, 1, 2, 2, 0, 4, true), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "call that never returns", want: relative, code: ops(
			set(9, Address(dataAt)), other("x"), set(9, Address(dataAt+64)), call("f"), at("x", nop()), load(3, 9, 2, 2, 0, 4, true), sum(3, 3, 9), jumpBy(3))},
		{name: "call that never returns, and padding", want: relative, code: ops(
			set(9, Address(dataAt)), other("x"), set(9, Address(dataAt+64)), call("f"), nop(), nop(), at("x", nop()), load(3, 9, 2, 2, 0, 4, true), sum(3, 3, 9), jumpBy(3))},
		{name: "call that never returns, padding, and where indirect jumps lead", want: relative, code: ops(
			set(9, Address(dataAt)), at("x", nop()), load(3, 9, 2, 2, 0, 4, true), sum(3, 3, 9), at("asked", jumpBy(3)),
			at("y", set(9, Address(dataAt+64))), call("f"), nop(), set(8, Expr{}), jump("x"), other("y"))},
		{name: "call that returns to the next instruction", want: unresolved(WhatNumber), code: ops(
			set(9, Address(dataAt)), at("x", nop()), load(3, 9, 2, 2, 0, 4, true), sum(3, 3, 9), at("asked", jumpBy(3)),
			at("y", set(9, Address(dataAt+64))), call("f"), set(8, Expr{}), jump("x"), other("y"))},
		{name: "sum in a loop, and a table", want: unresolved(WhatIndex), code: ops(nop(), at("x", sum(3, 3, 1)), set(1, Address(dataAt)), other("x"), jumpBy(3))},
		{name: "landing pad at the start", want: pointer, code: ops(at("entry", nop()), jumpBy(3))},
		{name: "branch to the start", want: unresolved(WhatArithmetic), code: ops(at("x", jumpBy(3)), sum(3, 3, 1), other("x"))},
		{name: "table that is formed in a later function", want: pointer, code: ops(ret(), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3), at("asked", jumpBy(3)),
			at("entry", set(1, Address(dataAt))), jumpBy(5))},
		{name: "moved where only an indirect jump leads, before ways meet", want: relative, code: ops(set(1, Address(dataAt-8)), jumpBy(9), set(4, Add(1, 8)), other("x"), at("x", nop()),
			load(3, 4, 2, 2, 0, 4, true), sum(3, 3, 4), jumpBy(3))},
		{name: "argument that is copied, or a whole word of a table", want: pointer, code: ops(set(3, Copy(3)), other("x"), load(3, NoReg, 2, 3, dataAt, 8, false), at("x", jumpBy(3)))},
		{name: "handed round by blocks that only indirect jumps lead to", want: relative, code: slices.Concat(
			ops(set(9, Address(dataAt)), jumpBy(5)), handed(12), ops(load(3, 9, 2, 2, 0, 4, true), sum(3, 3, 9), jumpBy(3)))},
		{name: "label handed round by blocks that only indirect jumps lead to", pieces: true, mem: toyMemory{pointers: map[uint64]uint64{dataAt + 512: own}},
			want: pointer, code: slices.Concat(ops(load(9, toyTOC, NoReg, 0, 512, 8, false), jumpBy(5)), handed(12), ops(jumpBy(9)))},
		{name: "handed round, or another table", want: unresolved(WhatNumber), code: ops(set(9, Address(dataAt)), jumpBy(5), store(9, toySP, 8), call("f"),
			load(9, toySP, NoReg, 0, 8, 8, false), jump("x"), at("y", set(9, Address(dataAt+64))), at("x", load(3, 9, 2, 2, 0, 4, true)), sum(3, 3, 9), jumpBy(3))},
		{name: "entry after a test and a jump", want: relative, code: ops(set(1, Address(dataAt)), other("entry"), ret(), jump("entry"), jump("f"),
			at("entry", nop()), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "the next function starts with an indirect jump", want: relative, code: ops(set(1, Address(dataAt)), jumpBy(5), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1),
			at("asked", jumpBy(3)), at("entry", jumpBy(6)))},
		{name: "handed round, and another table", want: unresolved(WhatNumber), code: slices.Concat(
			ops(set(9, Address(dataAt)), jumpBy(5), set(9, Address(dataAt+64)), jumpBy(5)), handed(12), ops(load(3, 9, 2, 2, 0, 4, true), sum(3, 3, 9), jumpBy(3)))},
		{name: "only indirect jumps lead there", want: relative, code: ops(
			set(1, Address(dataAt)), jumpBy(5), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "but no tail calls", tail: 1, want: unresolved(WhatArithmetic), code: ops(
			set(1, Address(dataAt)), jumpBy(5), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "nor jumps of another function", want: unresolved(WhatArithmetic), code: ops(
			set(1, Address(dataAt)), jumpBy(5), at("entry", nop()), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "function that is called", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), call("f"), set(1, Address(dataAt)), at("f", nop()), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "call of the next instruction", want: relative, code: ops(
			set(9, Address(dataAt)), call("next"), at("next", nop()), load(3, 9, 2, 2, 0, 4, true), sum(3, 3, 9), jumpBy(3))},
		{name: "entry after a test", want: relative, code: ops(
			set(1, Address(dataAt)), other("entry"), ret(), at("entry", nop()), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "entry that is fallen into", want: relative, code: ops(
			set(1, Address(dataAt)), at("entry", nop()), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "padding after a jump", want: unresolved(WhatNumber), code: ops(
			other("x"), set(1, Address(dataAt)), ret(), nop(), nop(), at("x", nop()), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "target or pointer", want: relative, code: ops(
			set(1, Address(dataAt)), load(3, 4, NoReg, 0, 0, 8, false), other("x"), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), at("x", jumpBy(3)))},
		{name: "pointer or target", want: relative, code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), other("x"), load(3, 4, NoReg, 0, 0, 8, false), at("x", jumpBy(3)))},
		{name: "target or number", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), other("x"), set(3, Expr{}), at("x", jumpBy(3)))},
		{name: "one table by two indices", want: relative, code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), other("x"),
			load(3, 1, 4, 2, 0, 4, true), sum(3, 3, 1), at("x", jumpBy(3)))},
		{name: "one table by two bytes", want: "table 0x500000 width 8, mask 256 at 4", code: ops(
			load(2, 8, NoReg, 0, 0, 1, false), set(2, Field(2, 4, false)), load(3, NoReg, 2, 3, dataAt, 8, false), other("x"),
			load(4, 8, NoReg, 0, 0, 1, false), load(3, NoReg, 4, 3, dataAt, 8, false), at("x", jumpBy(3)))},
		{name: "one table by two bytes, the other way around", want: "table 0x500000 width 8, mask 256 at 0", code: ops(
			load(2, 8, NoReg, 0, 0, 1, false), load(3, NoReg, 2, 3, dataAt, 8, false), other("x"),
			load(4, 8, NoReg, 0, 0, 1, false), set(4, Field(4, 4, false)), load(3, NoReg, 4, 3, dataAt, 8, false), at("x", jumpBy(3)))},
		{name: "a byte less one", want: "table 0x500000 width 8, mask 255 at 0", code: ops(
			load(4, 8, NoReg, 0, 0, 1, false), set(4, Add(4, ^uint64(0))), load(3, NoReg, 4, 3, dataAt, 8, false), jumpBy(3))},
		{name: "one table by a byte and an argument", want: "table 0x500000 width 8", code: ops(
			load(2, 8, NoReg, 0, 0, 1, false), load(3, NoReg, 2, 3, dataAt, 8, false), other("x"), load(3, NoReg, 4, 3, dataAt, 8, false), at("x", jumpBy(3)))},
		{name: "one table by a byte and one less", want: "table 0x500000 width 8", code: ops(
			load(2, 8, NoReg, 0, 0, 1, false), load(3, NoReg, 2, 3, dataAt, 8, false), other("x"),
			load(4, 8, NoReg, 0, 0, 1, false), set(4, Add(4, ^uint64(0))), load(3, NoReg, 4, 3, dataAt, 8, false), at("x", jumpBy(3)))},
		{name: "pointers that differ", want: pointer, code: ops(
			set(3, Address(codeAt+0x1000)), other("x"), set(3, Address(codeAt+0x2000)), at("x", jumpBy(3)))},
		{name: "pointer or number", want: unresolved(WhatSeveral), code: ops(
			set(3, Address(codeAt+0x1000)), other("x"), set(3, Expr{}), at("x", jumpBy(3)))},
		{name: "parts of one table", mem: tables, want: relative, code: ops(
			set(4, Address(dataAt)), set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), other("x"),
			set(1, Address(dataAt+8)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), at("x", jumpBy(3)))},
		{name: "two tables that overlap", mem: tables, want: unresolved(WhatTables), code: ops(
			set(4, Address(dataAt)), set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), other("x"),
			set(1, Address(dataAt+3)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), at("x", jumpBy(3)))},
		{name: "two tables of offsets", mem: tables, want: unresolved(WhatTables), code: ops(
			set(4, Address(dataAt)), set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), other("x"),
			set(1, Address(dataAt+12)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), at("x", jumpBy(3)))},
		{name: "entry of two loads", want: relative, code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), other("x"), load(3, 1, 2, 2, 0, 4, true), at("x", nop()), sum(3, 3, 1), jumpBy(3))},

		// Two values of one register, by an instruction that chooses.
		{name: "chosen number, then table", want: relative, code: ops(
			set(1, Address(dataAt)), set(9, Expr{Op: OpEither, A: NoReg, B: 1}), load(3, 9, 2, 2, 0, 4, true), sum(3, 3, 9), jumpBy(3))},
		{name: "chosen twice", want: relative, code: ops(
			set(1, Address(dataAt)), set(9, Expr{Op: OpEither, A: 1, B: NoReg}), set(9, Expr{Op: OpEither, A: 9, B: 1}), load(3, 9, 2, 2, 0, 4, true), sum(3, 3, 9), jumpBy(3))},
		{name: "chosen pointers", want: pointer, code: ops(set(3, Expr{Op: OpEither, A: 4, B: 5}), jumpBy(3))},
		{name: "chosen numbers", want: unresolved(WhatArithmetic), code: ops(
			set(4, Expr{}), set(5, Add(5, 1)), set(3, Expr{Op: OpEither, A: 4, B: 5}), jumpBy(3))},
		{name: "chosen among two pointers and a constant", want: pointer, code: ops(
			set(1, Address(codeAt+0x1000)), set(4, Expr{Op: OpEither, A: 1, B: 5}), set(3, Expr{Op: OpEither, A: 4, B: 6}), jumpBy(3))},
		{name: "chosen target", want: relative, code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), set(3, Expr{Op: OpEither, A: 4, B: 3}), jumpBy(3))},
		{name: "chosen target first", want: relative, code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), set(3, Expr{Op: OpEither, A: 3, B: 4}), jumpBy(3))},
		{name: "chosen where ways meet", want: relative, code: ops(
			set(1, Address(dataAt)), set(9, Address(dataAt)), at("loop", nop()), set(8, Expr{Op: OpEither, A: 9, B: 1}), load(3, 8, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3), jump("loop"))},
		{name: "tables of two widths", mem: tables, want: unresolved(WhatSeveral), code: ops(
			set(4, Address(dataAt)), set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), other("x"),
			set(1, Address(dataAt+8)), load(3, 1, 2, 1, 0, 2, true), sum(3, 3, 4), at("x", jumpBy(3)))},
		{name: "tables without a memory", want: unresolved(WhatTables), code: ops(
			set(4, Address(dataAt)), set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), other("x"),
			set(1, Address(dataAt+8)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), at("x", jumpBy(3)))},
		{name: "tables that cannot be read", mem: toyMemory{}, want: unresolved(WhatTables), code: ops(
			set(4, Address(dataAt)), set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), other("x"),
			set(1, Address(dataAt+8)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), at("x", jumpBy(3)))},
		{name: "sum with several", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), other("x"), set(3, Expr{}), at("x", nop()), sum(3, 5, 3), jumpBy(3))},
		{name: "several and a sum", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), other("x"), set(3, Expr{}), at("x", nop()), sum(3, 3, 5), jumpBy(3))},
		{name: "shifted by nothing", want: relative, code: ops(
			set(1, Address(dataAt)), set(1, Expr{Op: OpField, A: 1, B: NoReg, Bits: 64}), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "extended twice, and added with an extension", want: unresolved(WhatExtension), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 1, true), set(3, Field(3, 16, false)),
			set(3, Expr{Op: OpAdd, A: 1, B: 3, Bits: 32, Shift: 2}), jumpBy(3))},
		{name: "sign of a constant", want: relative, code: ops(
			set(1, Const(0xff_0000_0000|dataAt)), set(1, Field(1, 32, true)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "a signed field further up", want: unresolved(WhatArithmetic), code: ops(
			set(3, Expr{Op: OpField, A: 3, B: NoReg, From: 4, Bits: 8, Signed: true}), jumpBy(3))},
		{name: "entry that is an index of code", want: "table 0x500000 width 1 base 0x400010", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 1, false), other("x"), load(3, 1, 2, 0, 0, 1, false), at("x", nop()),
			set(4, Address(codeAt+16)), other("y"), at("y", nop()), sum(3, 4, 3), jumpBy(3))},
		{name: "index of memory that changes", want: unresolved(WhatNumber), code: ops(
			load(3, 8, 9, 0, 0, 4, true), set(9, Expr{}), sum(3, 3, 4), jumpBy(3))},

		{name: "scaled before ways meet", want: relative, code: ops(
			set(1, Address(dataAt)), set(2, Expr{Op: OpField, A: 2, B: NoReg, Bits: 64, Shift: 2}), other("x"), nop(),
			at("x", load(3, 1, 2, 0, 0, 4, true)), sum(3, 3, 1), jumpBy(3))},
		{name: "two numbers", want: unresolved(WhatNumber), code: ops(
			set(3, Expr{}), other("x"), load(3, 8, NoReg, 0, 0, 4, false), at("x", jumpBy(3)))},
		{name: "two numbers, the other way around", want: unresolved(WhatNumber), code: ops(
			load(3, 8, NoReg, 0, 0, 4, false), other("x"), set(3, Expr{}), at("x", jumpBy(3)))},

		// The stack.
		{name: "spilled", want: relative, code: ops(
			set(1, Address(dataAt)), store(1, toySP, 8), call("f"), load(1, toySP, NoReg, 0, 8, 8, false), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "spilled, the stack moves", want: relative, code: ops(
			set(1, Address(dataAt)), store(1, toySP, 8), set(toySP, Add(toySP, ^uint64(15))), load(1, toySP, NoReg, 0, 24, 8, false),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "the stack is another", want: unresolved(WhatNumber), code: ops(ret(), set(toySP, Copy(7)), load(1, toySP, NoReg, 0, 8, 8, false),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "spilled, the stack is another", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), store(1, toySP, 8), set(toySP, Copy(7)), load(1, toySP, NoReg, 0, 8, 8, false),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "overwritten", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), store(1, toySP, 8), store(4, toySP, 4), load(1, toySP, NoReg, 0, 8, 8, false),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "beside it", want: relative, code: ops(
			set(1, Address(dataAt)), store(1, toySP, 8), store(4, toySP, 16), store(4, toySP, 0), storeAway(), load(1, toySP, NoReg, 0, 8, 8, false),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "spilled before a loop", want: relative, code: ops(
			set(1, Address(dataAt)), store(1, toySP, 8), at("loop", set(1, Expr{})), other("loop"), load(1, toySP, NoReg, 0, 8, 8, false),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "half of a slot", want: unresolved(WhatArithmetic), code: ops(
			store(1, toySP, 8), load(3, toySP, NoReg, 0, 8, 4, false), jumpBy(3))},

		// What decides between a table and something else.
		{name: "overwritten from its middle", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), store(1, toySP, 8), store(4, toySP, 12), load(1, toySP, NoReg, 0, 8, 8, false),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "spilled in half", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), op{store: Store{Base: toySP, Disp: 8, Size: 4, Width: 4, Regs: [2]Reg{1, NoReg}}, changes: MemoryWritten},
			load(1, toySP, NoReg, 0, 8, 8, false), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "second of a pair that is spilled", want: relative, code: ops(
			set(1, Address(dataAt)), op{store: Store{Base: toySP, Size: 16, Width: 8, Regs: [2]Reg{4, 1}}, changes: MemoryWritten},
			load(1, toySP, NoReg, 0, 8, 8, false), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "first of a pair that is spilled", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), op{store: Store{Base: toySP, Size: 16, Width: 8, Regs: [2]Reg{4, 1}}, changes: MemoryWritten},
			load(1, toySP, NoReg, 0, 0, 8, false), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "put together in the middle", want: relative, code: ops(
			set(1, Const(0x5f_0000)), set(1, Expr{Op: OpInsert, A: 1, B: NoReg, From: 16, Bits: 8, K: 0x50_0000}),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "a number in disguise, first", code: ops(set(4, Const(1)), set(3, Expr{Op: OpGuard, A: 4, B: 5}), jumpBy(3)), want: unresolved(WhatArithmetic)},
		{name: "formed, and moved by a number", mem: labels, want: "table 0x90000010 width 1 base 0x400000", code: ops(
			set(4, Const(0x10)), set(1, Address(0x9000_0000)), sum(1, 1, 4), load(3, 1, 2, 0, 0, 1, false), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "a number, moved by what is formed", mem: labels, want: "table 0x90000010 width 1 base 0x400000", code: ops(
			set(4, Const(0x10)), set(1, Address(0x9000_0000)), sum(1, 4, 1), load(3, 1, 2, 0, 0, 1, false), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "two numbers that are no table together", mem: labels, want: unresolved(WhatNumber), code: ops(
			set(4, Const(0x10)), set(1, Const(0x9000_0000)), sum(1, 4, 1), load(3, 1, 2, 0, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "a number that is in the data", mem: labels, want: relative, code: ops(
			set(1, Const(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "a masked number on the other way", want: relative, code: ops(
			set(1, Address(dataAt)), other("x"), set(1, Expr{Op: OpMask, A: 7, B: NoReg, K: 15}), at("x", nop()),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "what memory holds on the other way", want: relative, code: ops(
			set(1, Address(dataAt)), other("x"), load(1, 7, NoReg, 0, 0, 8, false), at("x", nop()),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "negative constant of 32 bits", want: "table 0xfffffffffffffff8 width 8", code: ops(
			set(1, Const(0xffff_fff8)), set(1, Field(1, 32, true)), load(3, 1, 2, 3, 0, 8, false), jumpBy(3))},
		{name: "constant of 32 bits", want: "table 0xfffffff8 width 8", code: ops(
			set(1, Const(0xffff_ffff_fff8)), set(1, Field(1, 32, false)), load(3, 1, 2, 3, 0, 8, false), jumpBy(3))},
		{name: "sign extended, and once more from more bits", want: "table 0x500000 width 2 signed base 0x500000", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 1, 0, 2, true), set(3, Field(3, 32, true)), sum(3, 3, 1), jumpBy(3))},
		{name: "extended with zeros, then by the sign of more bits", want: "table 0x500000 width 2 base 0x500000", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 1, 0, 2, false), set(3, Field(3, 32, true)), sum(3, 3, 1), jumpBy(3))},
		{name: "parts of one table, but without a sign", mem: tables, want: unresolved(WhatTables), code: ops(
			set(4, Address(dataAt)), set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, false), sum(3, 3, 4), other("x"),
			set(1, Address(dataAt+8)), load(3, 1, 2, 2, 0, 4, false), sum(3, 3, 4), at("x", jumpBy(3)))},
		{name: "function pointers by an index, shifted", mem: functions, want: "table 0x500000 width 8 shift 1", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 3, 0, 8, false), set(3, Expr{Op: OpField, A: 3, B: NoReg, Bits: 64, Shift: 1}), jumpBy(3))},
		{name: "a word that is shifted is no pointer", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), other("x"),
			set(5, Address(dataAt+64)), load(3, 5, 2, 3, 0, 8, false), set(3, Expr{Op: OpField, A: 3, B: NoReg, Bits: 64, Shift: 1}), at("x", jumpBy(3)))},
		{name: "a target, or a function pointer of a table", want: relative, code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), other("x"),
			set(5, Address(dataAt+64)), load(3, 5, 2, 3, 0, 8, false), at("x", jumpBy(3)))},
		{name: "a table or a number, moved", want: relative, code: ops(
			set(1, Address(dataAt-8)), other("x"), set(1, Expr{}), at("x", set(1, Add(1, 8))), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "hoisted over a loop, moved in it", want: relative, code: ops(
			set(1, Address(dataAt-8)), at("loop", nop()), set(4, Add(1, 8)), load(3, 4, 2, 2, 0, 4, true), sum(3, 3, 4), jumpBy(3), jump("loop"))},
		{name: "sign extended to 32 bits, then to 64", want: "table 0x500000 width 1 signed base 0x500000", code: ops(
			set(1, Address(dataAt)), set(3, Expr{Op: OpLoad, A: 1, B: 2, Width: 1, Signed: true, Bits: 32}), set(3, Field(3, 32, true)), sum(3, 3, 1), jumpBy(3))},
		{name: "sign extended to 32 bits, then with zeros", want: unresolved(WhatExtension), code: ops(
			set(1, Address(dataAt)), set(3, Expr{Op: OpLoad, A: 1, B: 2, Width: 1, Signed: true, Bits: 32}), set(3, Field(3, 32, false)), sum(3, 3, 1), jumpBy(3))},
		{name: "bounded table in the text that goes on", mem: textMemory{toyMemory{words: []uint32{0, 0}}},
			want: "table 0x400000 width 4 signed base 0x400000, compare 1 at 2", code: ops(nop(), set(1, Address(codeAt)), cmp(2, 0),
				branch(Greater, "out"), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3), at("out", ret()))},
		{name: "bounded table in the text that ends, and others jump", mem: textMemory{toyMemory{words: []uint32{0}}},
			want: "table 0x400000 width 4 signed base 0x400000, compare 1 at 2", code: ops(jumpBy(9), set(1, Address(codeAt)), cmp(2, 0),
				branch(Greater, "out"), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3), at("out", ret()))},
		{name: "bounded table in data that goes on, and others jump", mem: tables, want: relative + ", compare 1 at 2", code: ops(
			jumpBy(9), set(1, Address(dataAt)), cmp(2, 0), branch(Greater, "out"), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3), at("out", ret()))},
		{name: "parts of one table, with a bound", mem: tables, want: relative, code: ops(
			cmp(2, 1), branch(Greater, "out"), set(4, Address(dataAt)), set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), other("x"),
			set(1, Address(dataAt+8)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 4), at("x", jumpBy(3)), at("out", ret()))},
		{name: "a number added to function pointers", mem: functions, want: "table 0x500000 width 8 base 0x8", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 3, 0, 8, false), set(3, Add(3, 8)), jumpBy(3))},
		{name: "entry of 4 bytes where functions are", mem: functions, want: "table 0x500000 width 4", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, false), jumpBy(3))},
		{name: "masked table in the text that goes on", mem: textMemory{toyMemory{words: []uint32{0, 0, 0}}},
			want: "table 0x400000 width 4 signed base 0x400000, mask 2 at 2", code: ops(jumpBy(9), set(1, Address(codeAt)),
				set(2, Expr{Op: OpMask, A: 2, B: NoReg, K: 1}), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "a target, or a table's address or a number", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), other("x"),
			set(5, Address(dataAt+64)), set(6, Expr{}), set(3, Expr{Op: OpEither, A: 5, B: 6}), at("x", jumpBy(3)))},
		{name: "a number at a constant address, where there is a table of contents", pieces: true, want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), load(3, 1, NoReg, 0, 0, 4, true), set(4, Address(codeAt+0x1000)), sum(3, 3, 4), jumpBy(3))},
		{name: "sum of indices, whole addresses", want: pointer, code: ops(
			set(1, Address(dataAt)), sum(4, 1, 2), sum(4, 5, 4), load(3, 4, NoReg, 0, 0, 8, false), jumpBy(3))},
		{name: "wrong scale of addresses, where there is a table of contents", pieces: true, mem: labels, want: pointer, code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 8, false), jumpBy(3))},
		{name: "address at a constant address, but no table of contents", mem: toyMemory{pointers: map[uint64]uint64{dataAt + 16: dataAt}}, want: unresolved(WhatNumber), code: ops(
			set(9, Address(dataAt+16)), load(1, 9, NoReg, 0, 0, 8, false), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "a scaled index and nothing", want: unresolved(WhatNumber), code: ops(
			set(1, Const(0)), set(4, Expr{Op: OpAdd, A: 1, B: 2, Shift: 2}), load(3, 4, NoReg, 0, 0, 4, true), set(5, Address(codeAt)), sum(3, 3, 5), jumpBy(3))},
		{name: "a masked index and a number that is no table", mem: labels, want: unresolved(WhatNumber), code: ops(
			set(2, Expr{Op: OpMask, A: 2, B: NoReg, K: 3}), set(1, Const(0x9000_0000)), load(3, 1, 2, 0, 0, 1, false), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "a target, or an offset of a table", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), other("x"),
			set(5, Address(dataAt+64)), load(3, 5, 2, 2, 0, 4, false), at("x", jumpBy(3)))},

		// What is added, and to what.
		{name: "displaced table, the index first", want: "table 0x500000 width 1 base 0x400000, compare 6 at 1", code: ops(
			set(1, Address(dataAt-8)), cmp(2, 5), branch(Greater, "out"), load(3, 2, 1, 0, 8, 1, false), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3), at("out", ret()))},
		{name: "number added to an index of two bytes", want: "table 0x500008 width 2 signed base 0x500000", code: ops(
			set(2, Expr{Op: OpField, A: 2, B: NoReg, Bits: 64, Shift: 1}), set(2, Add(2, 8)), set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 2, true), sum(3, 3, 1), jumpBy(3))},
		{name: "number added to a scaled index", want: "table 0x500008 width 4 signed base 0x500000", code: ops(
			set(2, Expr{Op: OpField, A: 2, B: NoReg, Bits: 64, Shift: 2}), set(2, Add(2, 8)), set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "extended to 32 bits only, and a number added", want: unresolved(WhatExtension), code: ops(
			set(1, Address(dataAt)), set(3, Expr{Op: OpLoad, A: 1, B: 2, Width: 1, Signed: true, Bits: 32}), set(3, Add(3, codeAt)), jumpBy(3))},
		{name: "index of some bits by the load", want: relative + ", mask 256 at 1", code: ops(
			set(1, Address(dataAt)), set(3, Expr{Op: OpLoad, A: 1, B: 2, Shift: 2, Width: 4, Signed: true, IndexBits: 8}), sum(3, 3, 1), jumpBy(3))},
		{name: "entry far up in a table whose address comes over a loop", want: "table 0x508000 width 4, mask 1 at 3", code: ops(
			set(1, Address(dataAt)), at("loop", nop()), set(2, Const(0x2000)), load(3, 1, 2, 2, 0, 4, false), jumpBy(3), jump("loop"))},
		{name: "index that is the same on all ways", want: "table 0x500000 width 1 base 0x400000", code: ops(
			set(2, Const(2)), at("loop", nop()), set(1, Address(dataAt)), load(3, 2, 1, 0, 0, 1, false), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3), jump("loop"))},
		{name: "index that is an address on all ways", want: relative, code: ops(
			set(5, Address(dataAt+64)), at("loop", nop()), set(1, Address(dataAt)), load(3, 1, 5, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3), jump("loop"))},
		{name: "number, and a table that comes over a loop", want: "table 0x500008 width 1 base 0x400000, mask 1 at 3", code: ops(
			set(4, Address(dataAt)), at("loop", nop()), set(1, Const(8)), load(3, 1, 4, 0, 0, 1, false), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3), jump("loop"))},
		{name: "index, and a table that comes over a loop", want: "table 0x500000 width 1 base 0x400000", code: ops(
			set(9, Address(dataAt)), at("loop", nop()), load(3, 2, 9, 0, 0, 1, false), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3), jump("loop"))},
		{name: "entry first, and a table that comes over a loop", want: relative, code: ops(
			set(1, Address(dataAt)), at("loop", nop()), load(3, 1, 2, 2, 0, 4, true), sum(3, 1, 3), jumpBy(3), jump("loop"))},
		{name: "entry that comes over a loop, and its table", want: relative, code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), at("loop", nop()), set(4, Address(dataAt)), sum(5, 4, 3), jumpBy(5), jump("loop"))},
		{name: "number of 32 bits at a computed place", want: unresolved(WhatNumber), code: ops(
			load(3, 7, 8, 2, 0, 4, true), set(1, Address(dataAt)), sum(3, 3, 1), jumpBy(3))},
		{name: "index that stays put where memory is read", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), store(1, toySP, 8), load(1, toySP, 2, 0, 8, 8, false), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "small number, where data starts at 0", mem: everywhere{}, want: unresolved(WhatNumber), code: ops(
			set(1, Const(8)), load(3, 1, 2, 0, 0, 1, true), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "load at a small number", mem: labels, want: unresolved(WhatNumber), code: ops(
			set(1, Const(8)), load(3, 1, NoReg, 0, 0, 4, true), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "inserted into what is not known", want: unresolved(WhatNumber), code: ops(
			set(1, Expr{Op: OpInsert, A: 7, B: NoReg, Bits: 16, K: 0x5000}), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},

		// Extensions.
		{name: "shifted twice", want: "table 0x500000 width 2 base 0x500000 shift 2", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 1, 0, 2, false), set(3, Expr{Op: OpField, A: 3, B: NoReg, Bits: 64, Shift: 1}),
			set(3, Expr{Op: OpField, A: 3, B: NoReg, Bits: 64, Shift: 1}), sum(3, 3, 1), jumpBy(3))},
		{name: "signed entry, shifted", want: "table 0x500000 width 4 signed base 0x500000 shift 2", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), set(3, Expr{Op: OpField, A: 3, B: NoReg, Bits: 64, Shift: 2}), sum(3, 3, 1), jumpBy(3))},
		{name: "sign extended to 32 bits, then shifted", want: unresolved(WhatExtension), code: ops(
			set(1, Address(dataAt)), set(3, Expr{Op: OpLoad, A: 1, B: 2, Width: 1, Signed: true, Bits: 32}), set(3, Expr{Op: OpField, A: 3, B: NoReg, Bits: 64, Shift: 2, Signed: true}), sum(3, 3, 1), jumpBy(3))},
		{name: "sign extended to 32 bits, then shifted without a sign", want: unresolved(WhatExtension), code: ops(
			set(1, Address(dataAt)), set(3, Expr{Op: OpLoad, A: 1, B: 2, Width: 1, Signed: true, Bits: 32}), set(3, Expr{Op: OpField, A: 3, B: NoReg, Bits: 64, Shift: 2}), sum(3, 3, 1), jumpBy(3))},
		{name: "zero extended to 32 bits, then shifted", want: "table 0x500000 width 1 base 0x500000 shift 2", code: ops(
			set(1, Address(dataAt)), set(3, Expr{Op: OpLoad, A: 1, B: 2, Width: 1, Bits: 32}), set(3, Expr{Op: OpField, A: 3, B: NoReg, Bits: 64, Shift: 2}), sum(3, 3, 1), jumpBy(3))},
		{name: "extended with zeros twice", want: "table 0x500000 width 2 base 0x500000", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 1, 0, 2, false), set(3, Field(3, 32, false)), sum(3, 3, 1), jumpBy(3))},
		{name: "extended with an offset added", want: unresolved(WhatExtension), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 1, true), set(3, Expr{Op: OpAdd, A: 1, B: 3, Bits: 32, Shift: 2}), jumpBy(3))},
		{name: "sign extended with an offset added", want: "table 0x500000 width 1 signed base 0x500000 shift 2", code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 1, true), set(3, Expr{Op: OpAdd, A: 1, B: 3, Bits: 32, Signed: true, Shift: 2}), jumpBy(3))},
		{name: "entry that comes over a loop, extended twice there", want: unresolved(WhatExtension), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 1, true), set(3, Field(3, 16, false)), at("loop", nop()), set(4, Address(dataAt)),
			set(5, Expr{Op: OpAdd, A: 4, B: 3, Bits: 32, Shift: 2}), jumpBy(5), jump("loop"))},
		{name: "extended entry of a table that comes over a loop", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), at("loop", nop()), set(3, Expr{Op: OpLoad, A: 1, B: 2, Width: 1, Signed: true, Bits: 32}), set(3, Field(3, 32, true)),
			sum(3, 3, 1), jumpBy(3), jump("loop"))},

		// Which values are the same.
		{name: "table or number, jumped to", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), set(5, Expr{}), chosen(3, 1, 5), set(3, Add(3, 8)), jumpBy(3))},
		{name: "tables of two widths of two bytes", mem: tables, want: unresolved(WhatTables), code: ops(
			set(4, Address(dataAt)), set(1, Address(dataAt)), load(3, 1, 2, 1, 0, 2, true), sum(3, 3, 4), other("x"),
			set(1, Address(dataAt+6)), load(3, 1, 2, 1, 0, 2, true), sum(3, 3, 4), at("x", jumpBy(3)))},
		{name: "label that may be moved", mem: unsure{labels}, want: pointer, code: whole()},
		{name: "entry of a table, or a place in it", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), sum(4, 1, 5), chosen(4, 4, 1), load(3, 4, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "place in a table, or the table", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), sum(4, 1, 5), chosen(4, 1, 4), load(3, 4, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "whole word of a table, or a number", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 3, 0, 8, false), set(5, Expr{}), chosen(3, 3, 5), jumpBy(3))},
		{name: "number, or whole word of a table", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 3, 0, 8, false), set(5, Expr{}), chosen(3, 5, 3), jumpBy(3))},
		{name: "offset of a table, or a pointer", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), chosen(3, 3, 4), jumpBy(3))},
		{name: "pointer, or offset of a table", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), chosen(3, 4, 3), jumpBy(3))},
		{name: "offset of a table, or an address", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), chosen(3, 3, 1), jumpBy(3))},
		{name: "address, or offset of a table", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), chosen(3, 1, 3), jumpBy(3))},
		{name: "one place of a table in two ways", want: unresolved(WhatSeveral), code: ops(
			set(4, Address(dataAt)), sum(3, 3, 4), other("x"), sum(3, 3, 4), at("x", jumpBy(3)))},
		{name: "extended on one way", want: relative + ", compare 6 at 1", code: ops(
			set(1, Address(dataAt)), cmp(2, 5), branch(Greater, "out"), load(3, 1, 2, 2, 0, 4, true), other("x"), set(3, Field(3, 32, true)), at("x", sum(3, 3, 1)),
			jumpBy(3), at("out", ret()))},
		{name: "number that steps, or another", want: unresolved(WhatArithmetic), code: ops(
			jumpBy(3), set(4, Expr{}), set(5, Add(5, 1)), chosen(3, 4, 5), jumpBy(3))},
		{name: "pointer that runs by two instructions", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), at("loop", nop()), set(1, Add(1, 4)), chosen(1, 1, 1), set(1, Add(1, 4)), other("loop"),
			load(3, 1, 2, 2, 0, 4, true), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "sum that runs, the other way around", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), at("loop", nop()), sum(1, 5, 1), other("loop"), load(3, 1, 2, 2, 0, 4, true), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "sum of what is chosen, and a table", want: unresolved(WhatIndex), code: ops(
			set(9, Copy(7)), set(1, Address(dataAt)), chosen(9, 9, NoReg), chosen(9, 9, 1), sum(3, 3, 9), jumpBy(3))},
		{name: "sum of a table, and what is chosen", want: unresolved(WhatIndex), code: ops(
			set(9, Copy(7)), set(1, Address(dataAt)), chosen(9, NoReg, 9), chosen(9, 1, 9), sum(3, 9, 3), jumpBy(3))},
		{name: "chosen table that comes over a loop, or the same", want: "table 0x500000 width 4 signed", code: ops(
			set(1, Address(dataAt)), sum(9, 5, 4), at("loop", nop()), chosen(8, 9, 1), load(3, 8, 2, 2, 0, 4, true), jumpBy(3), jump("loop"))},

		// Ways that are not gone.
		{name: "a number where branches lead, beside indirect jumps", want: unresolved(WhatNumber), code: ops(
			other("x"), other("x"), set(1, Address(dataAt)), jumpBy(5), at("x", load(3, 1, 2, 2, 0, 4, true)), sum(3, 3, 1), jumpBy(3))},
		{name: "jumps of a later function", want: unresolved(WhatArithmetic), code: ops(
			ret(), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), at("asked", jumpBy(3)), at("entry", set(1, Address(dataAt))), jumpBy(5))},
		{name: "later jumps of the function", want: relative, code: ops(
			ret(), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), at("asked", jumpBy(3)), set(1, Address(dataAt)), jumpBy(5))},
		{name: "table or number over a call", want: unresolved(WhatSeveral), code: ops(
			set(9, Address(dataAt)), other("x"), set(9, Expr{}), call("f"), at("x", jumpBy(9)))},
		{name: "target or number over a call", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), load(9, 1, 2, 2, 0, 4, true), sum(9, 9, 1), other("x"), set(9, Expr{}), call("f"), at("x", jumpBy(9)))},
		{name: "tail call by several values", tail: 3, want: pointer, code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), chosen(3, 1, 3), jumpBy(3))},
		{name: "sum that comes to depend on itself", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), at("loop", nop()), sum(4, 3, 4), other("loop"), load(3, 4, NoReg, 0, 8, 4, true), sum(3, 3, 1), jumpBy(3))},

		// Memory.
		{name: "spilled, the stack is aligned", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), store(1, toySP, 8), set(toySP, Expr{Op: OpMask, A: toySP, B: NoReg, K: ^uint64(15)}), load(1, toySP, NoReg, 0, 24, 8, false),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "spilled, the stack grows by a register", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), store(1, toySP, 8), set(toySP, Expr{Op: OpAdd, A: toySP, B: 7, K: ^uint64(15)}), load(1, toySP, NoReg, 0, 24, 8, false),
			load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "spilled by the instruction that moves the stack", want: relative, code: ops(
			set(1, Address(dataAt)), op{reg: toySP, x: Add(toySP, ^uint64(15)), changes: 1<<toySP | MemoryWritten,
				store: Store{Base: toySP, Disp: ^uint64(15), Size: 8, Width: 8, Regs: [2]Reg{1, NoReg}}},
			load(1, toySP, NoReg, 0, 0, 8, false), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "overwritten by the instruction that moves the stack", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), store(1, toySP, ^uint64(15)), op{reg: toySP, x: Add(toySP, ^uint64(15)), changes: 1<<toySP | MemoryWritten,
				store: Store{Base: toySP, Disp: ^uint64(15), Size: 8, Width: 8, Regs: [2]Reg{4, NoReg}}},
			load(1, toySP, NoReg, 0, 0, 8, false), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "spilled, the stack is at an address", want: unresolved(WhatNumber), code: ops(
			set(toySP, Address(dataAt)), at("loop", nop()), load(1, toySP, NoReg, 0, 8, 8, false), load(3, 1, 2, 2, 0, 4, true), set(4, Address(codeAt)), sum(3, 3, 4),
			jumpBy(3), jump("loop"))},
		{name: "what is stored beside a register", want: pointer, code: ops(
			storePair(1, NoReg, toySP, 8), load(3, toySP, NoReg, 0, 16, 8, false), set(3, Expr{Op: OpGuard, A: 3, B: 4}), jumpBy(3))},
		{name: "spilled in half, and added", want: unresolved(WhatArithmetic), code: ops(
			op{store: Store{Base: toySP, Disp: 8, Size: 4, Width: 4, Regs: [2]Reg{1, NoReg}}, changes: MemoryWritten},
			load(1, toySP, NoReg, 0, 8, 8, false), sum(3, 3, 1), jumpBy(3))},
		{name: "pointer at a constant address, not in the file", pieces: true, mem: toyMemory{}, want: unresolved(WhatArithmetic), code: ops(
			load(1, toyTOC, NoReg, 0, 16, 8, false), sum(3, 3, 1), jumpBy(3))},
		{name: "pointer at a constant address, without a memory", pieces: true, want: unresolved(WhatArithmetic), code: ops(
			load(1, toyTOC, NoReg, 0, 16, 8, false), sum(3, 3, 1), jumpBy(3))},
		{name: "whole word of a table where code stands high, or a number", pieces: true, mem: labels, want: unresolved(WhatArithmetic), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 8, false), other("x"), set(3, Expr{}), at("x", jumpBy(3)))},
		{name: "function pointers where code stands high", pieces: true, mem: functions, want: pointer, code: whole()},

		// What is known where few ways lead.
		{name: "nothing, and a number there", want: unresolved(WhatArithmetic), code: ops(
			jumpBy(3), at("pad", load(3, 4, 2, 2, 0, 4, true)), sum(3, 3, 4), jumpBy(3))},
		{name: "nothing, and a number added", want: unresolved(WhatArithmetic), code: ops(
			jump("away"), set(4, Add(1, 8)), at("pad", load(3, 4, 2, 2, 0, 4, true)), sum(3, 3, 4), jumpBy(3))},
		{name: "nothing, copied in all its bits", want: unresolved(WhatArithmetic), code: ops(
			jumpBy(3), set(1, Field(1, 64, false)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "nothing, and a choice", want: pointer, code: ops(
			jumpBy(3), chosen(4, 1, 5), set(1, Address(dataAt)), chosen(3, 4, 6), jumpBy(3))},
		{name: "nothing of a table, and a number as its index", want: unresolved(WhatNumber), code: ops(
			set(2, Const(0x2000)), jumpBy(3), load(3, 1, 2, 2, 0, 4, false), jumpBy(3))},
		{name: "nothing of a table, and an address as its index", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), jumpBy(3), set(2, Copy(1)), load(3, 8, 2, 2, 0, 4, true), jumpBy(3))},
		{name: "nothing, added to an entry, or a pointer", pieces: true, want: unresolved(WhatSeveral), code: ops(
			jumpBy(3), load(3, 1, 2, 2, 0, 8, false), other("x"), set(1, Address(dataAt)), load(3, 1, 2, 1, 0, 2, true), sum(3, 3, 4), other("x"), jumpBy(3), at("x", jumpBy(3)))},
		{name: "nothing, added to the stack, in a tail call", tail: 3, want: unresolved(WhatArithmetic), code: ops(
			jumpBy(3), sum(3, toySP, 4), nop(), jumpBy(3))},
		{name: "an entry and nothing, in a tail call", tail: 5, want: pointer, code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), jumpBy(5), nop(), sum(3, 4, 3), jumpBy(3))},
		{name: "displaced table, the index first, after an indirect jump", want: "table 0x500000 width 1", code: ops(
			set(1, Address(dataAt-8)), jumpBy(3), load(3, 2, 1, 0, 8, 1, false), jumpBy(3))},
		{name: "table after an indirect jump, another function follows", want: unresolved(WhatIndex), code: ops(
			set(1, Address(dataAt)), jumpBy(3), sum(3, 3, 1), at("asked", jumpBy(3)), at("entry", nop()), jumpBy(5))},
		{name: "table after an indirect jump, or a number", mem: tables, want: unresolved(WhatIndex), code: ops(
			jumpBy(3), set(4, Address(dataAt)), other("x"), set(4, Const(0x1000)), jumpBy(4), sum(3, 3, 4), at("x", jumpBy(3)))},
		{name: "table by an indirect jump back", want: "table 0x500000 width 4 signed", code: ops(
			other("x"), ret(), load(2, 9, NoReg, 0, 0, 1, false), at("x", nop()), load(3, 1, 2, 2, 0, 4, true), set(1, Address(dataAt)), jumpBy(3))},
		{name: "sum that comes to depend on itself after an indirect jump", want: unresolved(WhatNumber), code: ops(
			call("f"), set(1, Address(dataAt)), jumpBy(3), sum(4, 3, 4), load(3, 4, NoReg, 0, 8, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "loop that nothing enters", want: unresolved(WhatNumber), code: ops(
			nop(), at("body", nop()), load(3, 1, 2, 2, 0, 4, true), set(1, Address(dataAt)), jumpBy(3), at("in", other("body")), jump("in"))},
		{name: "several over two branches", want: unresolved(WhatSeveral), code: ops(
			set(4, Address(dataAt)), other("x"), sum(3, 3, 4), other("x"), ret(), at("x", jumpBy(3)))},
		{name: "index over a loop, the table first", want: "table 0x500000 width 1", code: ops(
			set(2, Const(2)), at("loop", nop()), set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 1, false), jumpBy(3), jump("loop"))},
		{name: "index over a loop, the index first", want: "table 0x500000 width 1", code: ops(
			set(2, Const(2)), at("loop", nop()), set(1, Address(dataAt)), load(3, 2, 1, 0, 0, 1, false), jumpBy(3), jump("loop"))},
		{name: "index over a loop, a table or a number", want: "table 0x500000 width 1", code: ops(
			set(2, Const(2)), at("loop", nop()), set(1, Address(dataAt)), set(5, Expr{}), chosen(1, 1, 5), load(3, 1, 2, 0, 0, 1, false), jumpBy(3), jump("loop"))},

		// Sums.
		{name: "place in a table, indexed again", mem: labels, want: "table 0x400000 width 1", code: ops(
			set(4, Address(codeAt)), sum(1, 1, 4), load(3, 1, 2, 0, 0, 1, false), jumpBy(3))},
		{name: "entry added to a place in its table", want: unresolved(WhatArithmetic), code: ops(
			set(4, Const(0x1000)), sum(1, 1, 4), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "entry of the round before, or an argument", want: unresolved(WhatIndex), code: ops(
			at("in", nop()), set(1, Address(dataAt)), sum(3, 3, 1), jumpBy(3), load(3, 1, 2, 2, 0, 4, true), jump("in"))},
		{name: "index into data", mem: labels, want: unresolved(WhatIndex), code: ops(set(1, Const(dataAt)), sum(3, 3, 1), jumpBy(3))},
		{name: "number that is no table, or another", mem: labels, want: unresolved(WhatArithmetic), code: ops(
			set(1, Const(0x9000_0000)), other("x"), set(1, Expr{}), at("x", jumpBy(1)))},
		{name: "number, or a whole word at a computed place", want: unresolved(WhatArithmetic), code: ops(
			set(3, Expr{}), other("x"), load(3, 1, 2, 2, 0, 8, false), at("x", jumpBy(3)))},
		{name: "whole word of a table, or with a number added", want: unresolved(WhatArithmetic), code: ops(
			set(1, Address(dataAt)), load(3, 1, 2, 3, 0, 8, false), other("x"), sum(3, 4, 3), at("x", nop()), jumpBy(3))},
		{name: "argument, or an entry with a number added", want: unresolved(WhatArithmetic), code: ops(
			set(1, Address(dataAt)), other("x"), load(3, 1, 2, 2, 0, 4, false), sum(3, 3, 4), at("x", jumpBy(3)))},
		{name: "argument that runs", want: unresolved(WhatArithmetic), code: ops(nop(), at("x", sum(3, 3, 1)), other("x"), jumpBy(3))},
		{name: "a number with a pointer that runs", want: unresolved(WhatSeveral), code: ops(
			set(1, Address(dataAt)), at("loop", nop()), set(1, Add(1, 4)), other("loop"), sum(3, 3, 1), jumpBy(3))},
		{name: "chosen number or argument, and another", want: unresolved(WhatArithmetic), code: ops(
			set(1, Const(0)), chosen(9, 1, 9), sum(3, 9, 3), jumpBy(3))},
		{name: "chosen twice, and added", want: unresolved(WhatArithmetic), code: ops(
			set(1, Address(dataAt)), chosen(9, NoReg, 9), jumpBy(3), chosen(9, 1, 9), sum(3, 9, 3), jumpBy(3))},
		{name: "low bits of a table's address added", want: unresolved(WhatNumber), code: ops(
			set(1, Address(dataAt)), set(1, Expr{Op: OpAdd, A: 8, B: 1, Bits: 8}), load(3, 1, 2, 2, 0, 4, false), jumpBy(3))},
		{name: "word at a small number that seems to hold an address", mem: toyMemory{pointers: map[uint64]uint64{8: dataAt}}, want: unresolved(WhatNumber), code: ops(
			set(9, Const(8)), load(1, 9, NoReg, 0, 0, 8, false), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &toyModel{ops: c.code, pieces: c.pieces, tail: c.tail}
			if got := m.jump(c.mem); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestBounds is the table of what bounds the index, r2.
func TestBounds(t *testing.T) {
	const none = ""
	mask := func(r, a Reg, k uint64) op { return set(r, Expr{Op: OpMask, A: a, B: NoReg, K: k}) }
	copyOf := func(r, a Reg) op { return set(r, Copy(a)) }
	shared := func(r Reg) op { return load(r, 8, NoReg, 0, 16, 4, false) }
	for _, c := range []struct {
		name string
		code []op
		mem  Memory
		want string // after the table
	}{
		{name: "nothing", code: by(nil), want: none},
		{name: "at most", code: by(ops(cmp(2, 5), branch(Greater, "out"))), want: ", compare 6 at 0"},
		{name: "less", code: by(ops(cmp(2, 5), branch(Greater|Equal, "out"))), want: ", compare 5 at 0"},
		{name: "equal", code: by(ops(cmp(2, 5), branch(Less|Greater, "out"))), want: ", compare 6 at 0"},
		{name: "taken", code: by(ops(cmp(2, 5), branch(notTaken, "in"), ret(), at("in", nop()))), want: ", compare 6 at 0"},
		{name: "two branches", code: by(ops(cmp(2, 5), branch(Equal, "out"), branch(Greater, "out"))), want: ", compare 5 at 0"},
		{name: "greater", code: by(ops(cmp(2, 5), branch(notTaken, "out"))), want: none},
		{name: "not equal", code: by(ops(cmp(2, 9), branch(Greater, "out"), cmp(2, 5), branch(Equal, "out"))), want: ", compare 10 at 0"},
		{name: "greater is nearer", code: by(ops(cmp(2, 9), branch(Greater, "out"), cmp(2, 5), branch(Less, "out"))), want: ", compare 10 at 0"},
		{name: "greater is nearer, and something between", code: by(ops(cmp(2, 9), branch(Greater, "out"), set(8, Expr{}), cmp(2, 5), branch(Less, "out"))), want: none},
		{name: "greater is nearer, and a store between", code: by(ops(cmp(2, 9), branch(Greater, "out"), storeAway(), cmp(2, 5), branch(Less, "out"))), want: none},
		{name: "greater is nearer, and ways meet between", code: by(ops(cmp(2, 9), branch(Greater, "out"), other("x"), at("x", cmp(2, 5)), branch(Less, "out"))), want: none},
		{name: "greater is nearer, of what is masked", code: by(ops(mask(2, 2, 15), set(8, Expr{}), cmp(2, 5), branch(Less, "out"))), want: ", mask 16 at 0"},
		{name: "greater is nearer, and something between the other and its branch", code: by(ops(cmp(2, 9), set(8, Expr{}), branch(Greater, "out"), cmp(2, 5), branch(Less, "out"))), want: none},
		{name: "greater is nearer, of another, and something between", code: by(ops(cmp(2, 9), branch(Greater, "out"), set(8, Expr{}), cmp(7, 5), branch(Less, "out"))), want: ", compare 10 at 0"},
		{name: "no number in a register, and something between", code: by(ops(cmp(2, 9), branch(Greater, "out"), set(8, Expr{}), cmpReg(2, 7), branch(Greater, "out"))), want: none},
		{name: "huge is nearer, and something between", code: by(ops(cmp(2, 5), branch(Greater, "out"), set(8, Expr{}), cmp(2, 1<<20), branch(Greater, "out"))), want: ", compare 6 at 0"},
		{name: "not equal is nearer, and something between", code: by(ops(cmp(2, 9), branch(Greater, "out"), set(8, Expr{}), cmp(2, 5), branch(Equal, "out"))), want: ", compare 10 at 0"},
		{name: "a number that is compared with the index", code: by(ops(cmp(2, 9), set(7, Const(4)), branch(Greater, "out"), cmpReg(7, 2), branch(Greater, "out"))), want: none},
		{name: "compared again after the load, without a branch", want: ", compare 10 at 0", code: ops(cmp(2, 9), branch(Greater, "out"),
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), cmp(2, 9), sum(3, 3, 1), jumpBy(3))},
		{name: "masked, and compared with more entries than there may be", code: by(ops(mask(2, 2, 15), cmp(2, maxCount), branch(Greater, "out"))), want: ", mask 16 at 0"},
		{name: "as many bits as an index may have", code: by(ops(mask(2, 2, maxMask-1))), want: ", mask 4096 at 0"},
		{name: "one bit further up", code: by(ops(mask(2, 2, maxMask))), want: none},
		{name: "the sign of a byte alone", code: by(ops(mask(2, 2, 128), cmpBits(2, 8, 5), signedBranch(Greater, "out"))), want: ", mask 129 at 0"},
		{name: "compared with a number of 32 bits", code: by(ops(cmpBits(2, 32, 1<<31|5), branch(Greater, "out"))), want: none},
		{name: "compared, of which fewer bits are the index", want: ", mask 512 at 4", code: by(ops(mask(6, 7, 511), cmp(6, 5), branch(Greater, "out"),
			set(2, Expr{Op: OpAdd, A: 7, B: NoReg, Part: 8}), mask(2, 2, 511)))},
		{name: "spilled", code: by(ops(store(2, toySP, 8), load(2, toySP, NoReg, 0, 8, 8, false))), want: none},
		{name: "jumped from right after another jump", code: by(ops(cmp(2, 5), branch(Greater, "out"), jump("in"), jumpBy(3), cmp(2, 3), branch(Greater, "out"), at("in", nop()))), want: ", compare 6 at 0"},
		{name: "jumped from before what changes the index", code: by(ops(cmp(2, 5), branch(Greater, "out"), jump("in"), set(2, Expr{}), ret(), at("x", cmp(2, 3)), branch(Greater, "out"), at("in", nop()))), want: ", compare 6 at 0"},
		{name: "jumped back to after ways meet as often as they may", want: ", compare 6 at 6", code: slices.Concat(ops(jump("later"), at("in", nop())), by(nil),
			ops(at("later", cmp(2, 5)), branch(Greater, "out")), meetings(maxMeets), ops(jump("in")))},
		{name: "ways meet as often as they may", code: by(slices.Concat(ops(cmp(2, 3), branch(Greater, "out")), meetings(maxMeets))), want: ", compare 4 at 0"},
		{name: "compared before the second of two branches", code: by(ops(other("in"), cmp(2, 5), branch(Greater, "out"), other("in"), ret(), at("in", nop()))), want: none},
		{name: "entry after a test and a jump", code: by(ops(cmp(2, 5), branch(Greater, "out"), other("entry"), other("q"), jump("entry"), at("q", ret()), at("entry", nop()))), want: ", compare 6 at 0"},
		{name: "ways meet once more", code: by(slices.Concat(ops(cmp(2, 3), branch(Greater, "out")), meetings(maxMeets+1))), want: none},
		{name: "counted in a loop that bytes come to as well", want: none, code: by(ops(cmp(2, 3), branch(Greater, "out"), at("in", other("body"))),
			load(2, 8, NoReg, 0, 0, 1, false), at("body", set(2, Add(2, 1))), jump("in"))},
		{name: "with a sign", code: by(ops(cmp(2, 5), signedBranch(Greater, "out"))), want: none},
		{name: "with a sign, of a byte", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), cmp(2, 5), signedBranch(Greater, "out"))), want: ", compare 6 at 1"},
		{name: "two kinds of branches", code: by(ops(cmp(2, 5), signedBranch(Less, "out"), branch(Greater, "out"))), want: ", compare 6 at 0"},
		{name: "to the next instruction", code: by(ops(cmp(2, 5), branch(Greater, "next"), at("next", nop()))), want: none},
		{name: "flags of another comparison", code: by(ops(cmp(2, 5), cmpReg(7, 8), branch(Greater, "out"))), want: none},
		{name: "flags lost", code: by(ops(cmp(2, 5), op{changes: Flags}, branch(Greater, "out"))), want: none},
		{name: "branch on something else", code: by(ops(cmp(2, 5), other("out"))), want: none},
		{name: "huge", code: by(ops(cmp(2, 1<<20), branch(Greater, "out"))), want: none},
		{name: "as many entries as there may be", code: by(ops(cmp(2, maxCount-1), branch(Greater, "out"))), want: ", compare 65536 at 0"},
		{name: "one more", code: by(ops(cmp(2, maxCount), branch(Greater, "out"))), want: none},
		{name: "one more by a sum", code: by(ops(cmp(7, maxCount-1), branch(Greater, "out"), set(2, Add(7, 1)))), want: none},
		{name: "a byte compared with a sign", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), op{compare: Comparison{
			X: Field(2, 8, false), Width: 8, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags}, signedBranch(Greater, "out"))), want: ", mask 256 at 0"},
		{name: "7 bits compared with a sign, as a byte", code: by(ops(mask(2, 2, 127), op{compare: Comparison{
			X: Field(2, 8, false), Width: 8, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags}, signedBranch(Greater, "out"))), want: ", compare 6 at 1"},
		{name: "less than nothing", code: by(ops(cmp(2, 0), branch(Greater|Equal, "out"))), want: none},
		{name: "another register", code: by(ops(cmp(7, 5), branch(Greater, "out"))), want: none},
		{name: "a number in a register", code: by(ops(set(7, Const(5)), cmpReg(2, 7), branch(Greater, "out"))), want: ", compare 6 at 1"},
		{name: "no number in a register", code: by(ops(cmp(2, 9), branch(Greater, "out"), cmpReg(2, 7), branch(Greater, "out"))), want: ", compare 10 at 0"},
		{name: "compared as a number", code: by(ops(cmp(2, 9), branch(Greater, "out"), cmpReg(7, 2), branch(Greater, "out"))), want: ", compare 10 at 0"},
		{name: "trap", code: by(ops(trapUnless(notTaken, 2, 5))), want: ", compare 6 at 0"},
		{name: "after the load", code: ops(set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), cmp(2, 5), branch(Greater, "out"), sum(3, 3, 1), jumpBy(3)), want: ", compare 6 at 2"},
		{name: "ways meet after the load", code: ops(set(1, Address(dataAt)), cmp(2, 5), branch(Greater, "out"), load(3, 1, 2, 2, 0, 4, true), other("x"), at("x", nop()), sum(3, 3, 1), jumpBy(3)), want: ", compare 6 at 1"},

		// What the index is made from.
		{name: "copy", code: by(ops(copyOf(7, 2), cmp(7, 5), branch(Greater, "out"))), want: ", compare 6 at 1"},
		{name: "copied after", code: by(ops(cmp(7, 5), branch(Greater, "out"), copyOf(2, 7))), want: ", compare 6 at 0"},
		{name: "changed after", code: by(ops(cmp(2, 5), branch(Greater, "out"), set(2, Expr{}))), want: none},
		{name: "extended after", code: by(ops(cmp(2, 5), branch(Greater, "out"), set(2, Field(2, 32, true)))), want: ", compare 6 at 0"},
		{name: "sign extended from a byte", code: by(ops(cmp(2, 5), branch(Greater, "out"), set(2, Field(2, 8, true)))), want: ", compare 6 at 0"},
		{name: "a field further up", code: by(ops(cmp(2, 5), branch(Greater, "out"), set(2, Expr{Op: OpField, A: 2, B: NoReg, From: 3, Bits: 3}))), want: ", mask 8 at 2"},
		{name: "reduced after", code: by(ops(cmp(2, 5), branch(Greater, "out"), set(2, Add(2, ^uint64(1))))), want: ", compare 4 at 0"},
		{name: "reduced before", code: by(ops(copyOf(7, 2), set(7, Add(7, ^uint64(1))), cmp(7, 3), branch(Greater, "out"))), want: ", compare 6 at 2"},
		{name: "reduced before, with another base", want: " from 2, compare 4 at 2", code: ops(copyOf(7, 2), set(7, Add(7, ^uint64(1))), cmp(7, 3), branch(Greater, "out"),
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "sum of two", code: by(ops(cmp(2, 5), branch(Greater, "out"), sum(2, 2, 7))), want: none},
		{name: "mask", code: by(ops(mask(2, 2, 3))), want: ", mask 4 at 0"},
		{name: "wide mask", code: by(ops(mask(2, 2, 0xffff))), want: none},
		{name: "mask and number", code: by(ops(mask(2, 7, 7), set(2, Add(2, ^uint64(1))))), want: ", mask 6 at 0"},
		{name: "comparison of what is masked", code: by(ops(mask(7, 2, 15), cmp(7, 5), branch(Greater, "out"), mask(2, 2, 15))), want: ", compare 6 at 1"},
		{name: "comparison of fewer bits", code: by(ops(mask(7, 2, 15), cmp(7, 5), branch(Greater, "out"))), want: none},
		{name: "comparison of more bits", code: by(ops(cmp(2, 5), branch(Greater, "out"), mask(2, 2, 15))), want: ", compare 6 at 0"},
		{name: "comparison of the low bits", code: by(ops(cmpBits(2, 8, 5), branch(Greater, "out"))), want: none},
		{name: "comparison of all bits there are", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), cmpBits(2, 8, 5), branch(Greater, "out"))), want: ", compare 6 at 1"},
		{name: "all bits there are, on two ways", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), other("x"), load(2, 9, NoReg, 0, 0, 1, false),
			at("x", nop()), cmpBits(2, 8, 5), branch(Greater, "out"))), want: ", compare 6 at 4"},
		{name: "more bits on one of two ways", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), other("x"), load(2, 9, NoReg, 0, 0, 4, false),
			at("x", nop()), cmpBits(2, 8, 5), branch(Greater, "out"))), want: none},
		{name: "part of a register", code: by(ops(set(2, Expr{Op: OpField, A: 7, B: NoReg, Bits: 8, Part: 8}), set(2, Field(2, 8, false)), cmpBits(7, 8, 5), branch(Greater, "out"))), want: ", compare 6 at 2"},
		{name: "more than the part", code: by(ops(cmp(7, 5), branch(Greater, "out"), set(2, Expr{Op: OpField, A: 7, B: NoReg, Bits: 8, Part: 8}))), want: none},
		{name: "loaded twice", code: by(ops(shared(7), cmp(7, 5), branch(Greater, "out"), shared(2))), want: ", compare 6 at 1"},
		{name: "stored between", code: by(ops(shared(7), cmp(7, 5), branch(Greater, "out"), storeAway(), shared(2))), want: none},
		{name: "spilled index", code: by(ops(store(2, toySP, 8), cmp(2, 5), branch(Greater, "out"), load(2, toySP, NoReg, 0, 8, 8, false))), want: ", compare 6 at 1"},

		// Ways.
		{name: "on both ways", code: by(ops(other("x"), cmp(2, 3), branch(Greater, "out"), jump("in"), at("x", cmp(2, 5)), branch(Greater, "out"), at("in", nop()))), want: ", compare 6 at 4"},
		{name: "on both ways, the greater by a branch", code: by(ops(other("x"), cmp(2, 5), branch(Greater, "out"), jump("in"), at("x", cmp(2, 3)), branch(Greater, "out"), at("in", nop()))), want: ", compare 6 at 1"},
		{name: "ways meet at the load", code: ops(set(1, Address(dataAt)), cmp(2, 5), branch(Greater, "out"), other("in"), nop(), at("in", load(3, 1, 2, 2, 0, 4, true)),
			other("x"), at("x", nop()), sum(3, 3, 1), jumpBy(3)), want: ", compare 6 at 1"},
		{name: "on one way", code: by(ops(other("in"), cmp(2, 3), branch(Greater, "out"), at("in", nop()))), want: none},
		{name: "not on the way that falls in", code: by(ops(cmp(2, 3), branch(notTaken, "in"), nop(), at("in", nop()))), want: none},
		{name: "before ways meet", code: by(ops(cmp(2, 3), branch(Greater, "out"), other("in"), nop(), at("in", nop()))), want: ", compare 4 at 0"},
		{name: "mask on one way", code: by(ops(cmp(2, 3), branch(notTaken, "in"), mask(2, 2, 7), at("in", nop()))), want: ", mask 8 at 2"},
		{name: "in a loop", code: by(ops(cmp(2, 3), branch(Greater, "out"), at("in", nop()), other("in"))), want: ", compare 4 at 0"},
		{name: "in a loop that counts", code: by(ops(cmp(2, 3), branch(Greater, "out"), at("in", set(2, Add(2, 1))), other("in"))), want: none},
		{name: "counted on several ways", code: by(ops(cmp(7, 9), branch(Greater, "out"), other("in"), nop(), at("in", set(2, Add(7, ^uint64(0)))))), want: none},
		{name: "pad", code: by(ops(cmp(2, 3), branch(Greater, "out"), at("pad", nop()))), want: none},
		{name: "only indirect jumps lead there", code: by(ops(cmp(2, 3), branch(Greater, "out"), jumpBy(9), nop())), want: none},
		{name: "copy before ways meet", code: by(ops(copyOf(7, 2), at("loop", other("x")), nop(), at("x", cmp(7, 5)), branch(Greater, "loop"))), want: ", compare 6 at 3"},
		{name: "copy on one way", code: by(ops(copyOf(7, 2), other("x"), set(7, Expr{}), at("x", cmp(7, 5)), branch(Greater, "out"))), want: none},
		{name: "copy where only an indirect jump leads", code: by(ops(jumpBy(9), at("x", copyOf(7, 2)), at("loop", cmp(7, 5)), branch(Greater, "out")), at("y", jump("loop"))), want: ", compare 6 at 2"},
		{name: "equal where only an indirect jump leads", code: by(ops(jumpBy(9), nop(), cmp(7, 5), branch(Greater, "out"))), want: none},
		{name: "other numbers where calls lead", code: by(ops(copyOf(7, 2), call("f"), other("f"), at("f", cmp(7, 5)), branch(Greater, "out"))), want: none},
		{name: "too often", code: by(ops(cmp(2, 3), branch(Greater, "out"), other("a"), at("a", nop()), other("b"), at("b", nop()), other("c"), at("c", nop()),
			other("d"), at("d", nop()), other("e"), at("e", nop()))), want: none},

		{name: "loaded twice by an index", code: by(ops(load(7, 8, 9, 0, 0, 4, false), cmp(7, 5), branch(Greater, "out"), load(2, 8, 9, 0, 0, 4, false))), want: ", compare 6 at 1"},
		{name: "the index of the load changes", code: by(ops(load(7, 8, 9, 0, 0, 4, false), cmp(7, 5), branch(Greater, "out"), set(9, Expr{}), load(2, 8, 9, 0, 0, 4, false))), want: none},
		{name: "signed byte", code: by(ops(load(2, 8, NoReg, 0, 0, 1, true))), want: none},
		{name: "masked and reduced where ways meet", code: by(ops(cmp(7, 5), branch(Greater, "out"), other("x"), nop(), at("x", nop()), set(2, Field(7, 4, false)), set(2, Add(2, ^uint64(0))))), want: ", mask 15 at 5"},
		{name: "loop first, then the way with a bound", code: by(ops(cmp(2, 3), branch(Greater, "out"), jump("in"), at("loop", nop()), at("in", other("loop")))), want: ", compare 4 at 0"},
		{name: "equal on one branch only", code: by(ops(copyOf(7, 2), other("x"), set(7, Expr{}), jump("y"), at("x", nop()), at("y", cmp(7, 5)), branch(Greater, "out"))), want: none},
		{name: "equal on no branch", code: by(ops(copyOf(7, 2), other("x"), nop(), jump("y"), at("x", set(7, Expr{})), ret(), at("y", cmp(7, 5)), branch(Greater, "out"))), want: ", compare 6 at 6"},

		{name: "a signed field further up", code: by(ops(set(2, Expr{Op: OpField, A: 2, B: NoReg, From: 3, Bits: 3, Signed: true}))), want: none},
		{name: "entry after a test", code: by(ops(cmp(2, 5), branch(notTaken, "entry"), ret(), at("entry", nop()))), want: ", compare 6 at 0"},
		{name: "entry after a jump", code: by(ops(cmp(2, 5), branch(Greater, "out"), jump("entry"), ret(), at("entry", nop()))), want: none},
		{name: "loaded twice by two indices", code: by(ops(load(7, 8, 9, 0, 0, 4, false), cmp(7, 5), branch(Greater, "out"), load(2, 8, 10, 0, 0, 4, false))), want: none},
		{name: "loaded twice from two places", code: by(ops(load(7, 8, NoReg, 0, 16, 4, false), cmp(7, 5), branch(Greater, "out"), load(2, 8, NoReg, 0, 24, 4, false))), want: none},
		{name: "loaded twice by two registers", code: by(ops(load(7, 8, NoReg, 0, 16, 4, false), cmp(7, 5), branch(Greater, "out"), load(2, 9, NoReg, 0, 16, 4, false))), want: none},
		{name: "compared, and reduced after a copy", code: by(ops(copyOf(7, 2), cmp(7, 5), branch(Greater, "out"), set(2, Add(2, ^uint64(0))))), want: ", compare 5 at 1"},
		{name: "the other way has a greater bound by a mask", code: by(ops(other("x"), cmp(2, 3), branch(Greater, "out"), jump("in"), at("x", mask(2, 2, 7)), at("in", nop()))), want: ", mask 8 at 4"},
		{name: "the other way has a smaller bound by a mask", code: by(ops(other("x"), cmp(2, 9), branch(Greater, "out"), jump("in"), at("x", mask(2, 2, 3)), at("in", nop()))), want: ", compare 10 at 1"},
		{name: "bound of a call's way", code: by(ops(cmp(2, 5), branch(Greater, "out"), call("f"), at("f", nop()))), want: none},

		{name: "copy, and then a pad", code: by(ops(copyOf(7, 2), at("pad", cmp(7, 5)), branch(Greater, "out"))), want: none},
		{name: "reduced, and masked after", code: by(ops(cmp(7, 5), branch(Greater, "out"), set(2, Add(7, 3)), mask(2, 2, 7))), want: ", mask 8 at 3"},
		{name: "loaded twice with a sign", code: by(ops(load(7, 8, NoReg, 0, 16, 4, true), cmp(7, 5), branch(Greater, "out"), load(2, 8, NoReg, 0, 16, 4, true))), want: ", compare 6 at 1"},
		{name: "a byte, and the low bits of another", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), cmpBits(7, 8, 5), branch(Greater, "out"))), want: ", mask 256 at 0"},
		{name: "the largest number", code: by(ops(cmp(2, ^uint64(0)), branch(Greater, "out"))), want: none},
		{name: "sum of two, one of which is compared", code: by(ops(cmp(7, 5), branch(Greater, "out"), sum(2, 7, 8))), want: none},
		{name: "the smaller of two masks", code: by(ops(mask(7, 7, 3), mask(2, 7, 15))), want: ", mask 4 at 0"},

		// What the number is made from, and which it is.
		{name: "copied, and then masked", code: by(ops(cmp(7, 5), branch(Greater, "out"), copyOf(2, 7), mask(2, 2, 15))), want: ", compare 6 at 0"},
		{name: "reduced by one, and masked after", code: by(ops(set(2, Add(7, ^uint64(0))), mask(2, 2, 7))), want: ", mask 8 at 1"},
		{name: "doubled, and compared after", code: by(ops(set(7, Expr{Op: OpField, A: 2, B: NoReg, Bits: 64, Shift: 1}), cmp(7, 5), branch(Greater, "out"))), want: none},
		{name: "a byte, its sign extended, and compared with a sign", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), set(7, Field(2, 8, true)), cmp(7, 5), signedBranch(Greater, "out"))), want: ", mask 256 at 0"},
		{name: "the sign of 32 bits extended, and compared", code: by(ops(set(7, Field(2, 32, true)), cmp(7, 5), branch(Greater, "out"))), want: ", compare 6 at 1"},
		{name: "masked twice, the first time to more bits", code: by(ops(other("x"), at("x", mask(7, 7, 15)), mask(2, 7, 3))), want: ", mask 4 at 2"},
		{name: "a wide field further up", code: by(ops(set(2, Expr{Op: OpField, A: 2, B: NoReg, From: 4, Bits: 16}))), want: none},
		{name: "a field further up, compared", code: by(ops(set(2, Expr{Op: OpField, A: 2, B: NoReg, From: 3, Bits: 3}), cmp(2, 5), branch(Greater, "out"))), want: ", compare 6 at 1"},
		{name: "a scaled field further up, compared", code: ops(set(2, Expr{Op: OpField, A: 2, B: NoReg, From: 3, Bits: 3, Shift: 2}), cmp(2, 5), branch(Greater, "out"),
			set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 4, true), sum(3, 3, 1), jumpBy(3)), want: ", mask 8 at 0"},
		{name: "scaled, and cut with a sign", code: ops(cmp(2, 60), branch(Greater, "out"), set(2, Expr{Op: OpField, A: 2, B: NoReg, Bits: 64, Shift: 2}), set(2, Field(2, 8, true)),
			set(1, Address(dataAt)), load(3, 1, 2, 0, 0, 4, true), sum(3, 3, 1), jumpBy(3)), want: none},
		{name: "the sign of a byte", code: by(ops(set(2, Field(2, 8, true)))), want: none},
		{name: "reduced, the index of 32 bits", code: ops(copyOf(7, 2), cmp(7, 5), branch(Greater, "out"), set(2, Add(2, ^uint64(0))), set(1, Address(dataAt)),
			set(3, Expr{Op: OpLoad, A: 1, B: 2, Shift: 2, Width: 4, Signed: true, IndexBits: 32}), sum(3, 3, 1), jumpBy(3)), want: ", compare 5 at 1"},
		{name: "a masked number, less one, with a sign", code: by(ops(mask(7, 8, 15), set(2, Add(7, ^uint64(0))), cmp(2, 5), signedBranch(Greater, "out"))), want: ", mask 15 at 0"},
		{name: "reduced, compared, and masked", code: ops(set(7, Add(2, ^uint64(1))), cmp(7, 3), branch(Greater, "out"), mask(2, 2, 3),
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3)), want: ", mask 4 at 3"},
		{name: "masked and reduced, the number compared", code: by(ops(cmp(7, 5), branch(Greater, "out"), set(2, Field(7, 4, false)), set(2, Add(2, ^uint64(0))))), want: ", mask 15 at 2"},
		{name: "always negative", code: by(ops(cmp(7, 3), branch(Greater, "out"), set(2, Add(7, ^uint64(4))))), want: none},
		{name: "far up", code: by(ops(cmp(7, 3), branch(Greater, "out"), set(2, Add(7, 1<<20)))), want: none},
		{name: "made from many", code: by(slices.Concat(ops(cmp(9, 5), branch(Greater, "out"), copyOf(2, 9)), slices.Repeat(ops(copyOf(7, 2), copyOf(2, 7)), 8))), want: none},
		{name: "made from few", code: by(slices.Concat(ops(cmp(9, 5), branch(Greater, "out"), copyOf(2, 9)), slices.Repeat(ops(copyOf(7, 2), copyOf(2, 7)), 4))), want: ", compare 6 at 0"},
		{name: "a register is stored, and what is beside it loaded", code: by(ops(cmp(7, 5), branch(Greater, "out"), storePair(7, NoReg, toySP, 8), load(2, toySP, NoReg, 0, 16, 8, false))), want: none},
		{name: "loaded twice by the first register, stored between", code: by(ops(load(7, 0, NoReg, 0, 16, 4, false), cmp(7, 5), branch(Greater, "out"), storeAway(), load(2, 0, NoReg, 0, 16, 4, false))), want: none},
		{name: "loaded twice by an index, stored between", code: by(ops(set(9, Expr{}), load(7, 8, 9, 0, 0, 4, false), cmp(7, 5), branch(Greater, "out"), store(1, 8, 64), load(2, 8, 9, 0, 0, 4, false))), want: none},
		{name: "loaded twice, stored by another register", code: by(ops(shared(7), cmp(7, 5), branch(Greater, "out"), store(2, toySP, 8), shared(2))), want: none},

		// Which comparisons count.
		{name: "huge is nearer", code: by(ops(cmp(2, 5), branch(Greater, "out"), cmp(2, 1<<20), branch(Greater, "out"))), want: ", compare 6 at 0"},
		{name: "with a sign is nearer", code: by(ops(cmp(2, 9), branch(Greater, "out"), cmp(2, 5), signedBranch(Greater, "out"))), want: ", compare 10 at 0"},
		{name: "greater is nearer, of another", code: by(ops(cmp(2, 9), branch(Greater, "out"), cmp(7, 5), branch(Less, "out"))), want: ", compare 10 at 0"},
		{name: "at most is nearer, of another", code: by(ops(cmp(2, 5), branch(Greater, "out"), cmp(7, 3), branch(Greater, "out"))), want: ", compare 6 at 0"},
		{name: "compared again, without a branch", code: by(ops(cmp(2, 5), branch(Greater, "out"), cmp(2, 3))), want: ", compare 6 at 0"},
		{name: "compared after other instructions, the first register", code: by(ops(cmp(0, 5), branch(Greater, "out"), nop(), copyOf(2, 0))), want: ", compare 6 at 0"},
		{name: "comparison of what is not followed, the first register", code: by(ops(copyOf(2, 0), op{compare: Comparison{
			X: Expr{Op: OpLoad, A: 8, B: NoReg, Width: 1, Signed: true}, Width: 64, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags}, branch(Greater, "out"))), want: none},
		{name: "a branch on something else is taken", code: by(ops(cmp(2, 5), other("in"), ret(), at("in", nop()))), want: none},
		{name: "number in a register, with more added", code: by(ops(set(7, Const(4)), op{compare: Comparison{
			X: Copy(2), Width: 64, B: 7, K: 1, Passed: AnyRelation}, changes: Flags}, branch(Greater, "out"))), want: ", compare 6 at 1"},

		// Bits that are all there are.
		{name: "masked to more on one of two ways", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), other("x"), mask(2, 9, 1023),
			at("x", nop()), cmpBits(2, 8, 5), branch(Greater, "out"))), want: ", mask 1024 at 2"},
		{name: "all bits there are, and fewer of them are the index", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), other("x"), load(2, 9, NoReg, 0, 0, 1, false),
			at("x", nop()), cmpBits(2, 8, 5), branch(Greater, "out"), mask(2, 2, 15))), want: ", compare 6 at 4"},
		{name: "all bits there are, of another", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), other("x"), load(2, 9, NoReg, 0, 0, 1, false),
			at("x", nop()), cmpBits(7, 8, 5), branch(Greater, "out"))), want: ", mask 256 at 2"},
		{name: "all bits there are, loaded anew on another way", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), other("x"), load(2, 9, NoReg, 0, 0, 1, false),
			at("x", nop()), cmpBits(2, 8, 5), branch(Greater, "out"), other("y"), load(2, 8, NoReg, 0, 0, 1, false), other("z"), load(2, 9, NoReg, 0, 0, 1, false),
			at("z", nop()), nop(), at("y", nop()))), want: ", mask 256 at 9"},
		{name: "all bits there are, less some before the comparison", code: ops(load(2, 8, NoReg, 0, 0, 1, false), other("x"), load(2, 9, NoReg, 0, 0, 1, false),
			at("x", nop()), set(7, Field(2, 8, false)), set(7, Add(7, ^uint64(1))), cmp(7, 3), branch(Greater, "out"), mask(2, 2, 15),
			set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3)), want: ", mask 16 at 8"},

		// Where ways meet.
		{name: "nothing but the first on both ways", code: by(ops(other("x"), cmp(2, 0), branch(Greater, "out"), jump("in"), at("x", cmp(2, 0)), branch(Greater, "out"), at("in", nop()))), want: ", compare 1 at 4"},
		{name: "nothing but the first, in a loop", code: by(ops(cmp(2, 0), branch(Greater, "out"), at("in", nop()), other("in"))), want: ", compare 1 at 0"},
		{name: "nothing but the first, loop first", code: by(ops(cmp(2, 0), branch(Greater, "out"), jump("in"), at("loop", nop()), at("in", other("loop")))), want: ", compare 1 at 0"},
		{name: "in a loop that changes another", code: by(ops(cmp(2, 3), branch(Greater, "out"), jump("in"), at("loop", copyOf(2, 7)), at("in", other("loop")))), want: none},
		{name: "in a loop that counts after the jump", code: by(ops(cmp(2, 3), branch(Greater, "out"), at("in", other("body"))), at("body", set(2, Add(2, 1))), jump("in")), want: none},
		{name: "in a loop that masks after the jump", code: by(ops(cmp(2, 3), branch(Greater, "out"), at("in", other("body"))), at("body", mask(2, 2, 1)), jump("in")), want: ", compare 4 at 0"},
		{name: "in a loop with ways after the jump", code: by(ops(cmp(2, 3), branch(Greater, "out"), at("in", other("body"))), at("body", other("y")), nop(), at("y", jump("in"))), want: ", compare 4 at 0"},
		{name: "in a loop that nothing enters", code: by(ops(ret(), at("loop", nop()), other("loop"), other("loop"))), want: none},
		{name: "masked, and reduced after ways meet", code: by(ops(set(2, Field(7, 4, false)), other("x"), at("x", nop()), set(2, Add(2, ^uint64(0))))), want: ", mask 15 at 0"},
		{name: "masked after ways meet, compared before", code: by(ops(cmp(7, 5), branch(Greater, "out"), other("x"), at("x", nop()), set(2, Field(7, 4, false)))), want: ", compare 6 at 0"},
		{name: "set after ways meet", code: by(ops(other("x"), at("x", nop()), set(2, Expr{}))), want: none},
		{name: "masked before a loop that an indirect jump closes", code: ops(load(2, 9, NoReg, 0, 0, 1, false), set(1, Address(dataAt)), at("loop", nop()), chosen(8, 9, 1),
			load(3, 8, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3), jump("loop")), want: ", mask 256 at 0"},
		{name: "one more on one way", code: by(ops(other("x"), set(2, Add(7, 1)), jump("y"), at("x", copyOf(2, 7)), at("y", cmp(7, 5)), branch(Greater, "out"))), want: none},
		{name: "fewer bits on one way, less some before the comparison", code: by(ops(other("x"), mask(2, 7, 15), jump("y"), at("x", copyOf(2, 7)), at("y", nop()), set(7, Add(7, ^uint64(1))), cmp(7, 3), branch(Greater, "out"))), want: none},
		{name: "equal before ways meet often", code: by(slices.Concat(ops(copyOf(7, 2)), meetings(maxPairs), ops(cmp(7, 5), branch(Greater, "out")))), want: ", compare 6 at 33"},
		{name: "equal before ways meet too often", code: by(slices.Concat(ops(copyOf(7, 2)), meetings(maxPairs+1), ops(cmp(7, 5), branch(Greater, "out")))), want: none},
		{name: "equal before ways meet in loops", want: ", compare 6 at 9", code: by(ops(copyOf(7, 2), at("a", nop()), at("b", nop()), at("c", nop()), at("d", nop()),
			at("e", nop()), other("f"), other("a"), other("b"), at("f", cmp(7, 5)), branch(Greater, "out"), other("c"), other("d"), other("e")))},
		{name: "equal in a loop that only indirect jumps lead into", want: none, code: ops(set(1, Address(dataAt)), jumpBy(9),
			at("loop", nop()), other("loop"), cmp(7, 5), branch(Greater, "out"), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
		{name: "equal in two loops that only indirect jumps lead into", want: none, code: by(ops(jumpBy(9),
			at("loop", nop()), other("loop"), other("loop"), cmp(7, 5), branch(Greater, "out")))},
		{name: "equal before a loop", code: by(ops(copyOf(7, 2), at("loop", cmp(7, 5)), branch(Greater, "out")), jump("loop"), set(7, Expr{})), want: ", compare 6 at 1"},
		{name: "equal on two branches, but not between", code: by(ops(copyOf(7, 2), other("y"), other("x"), set(2, Expr{}), at("x", nop()), at("y", nop()), cmp(7, 5), branch(Greater, "out"))), want: none},
		{name: "equal on one of two ways, and on the other after all", want: none, code: by(ops(copyOf(7, 2), other("x"), set(7, Expr{}), set(2, Expr{}),
			at("x", nop()), cmp(7, 5), branch(Greater, "out")))},

		// The same cell of memory.
		{name: "one cell by a register and its copy", want: ", compare 6 at 2", code: by(ops(copyOf(9, 8), storeAway(),
			op{compare: Comparison{X: Expr{Op: OpLoad, A: 8, B: NoReg, Width: 4}, Width: 32, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags},
			branch(Greater, "out"), load(2, 9, NoReg, 0, 0, 4, false)))},
		{name: "one cell by a register that is copied between", want: ", compare 6 at 0", code: by(ops(
			op{compare: Comparison{X: Expr{Op: OpLoad, A: 8, B: NoReg, Width: 4, K: 16}, Width: 32, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags},
			set(9, Add(8, 8)), branch(Greater, "out"), load(2, 9, NoReg, 0, 8, 4, false)))},
		{name: "one cell by a register that is copied between, ways meet before", want: ", compare 6 at 2", code: by(ops(other("x"), at("x", nop()),
			op{compare: Comparison{X: Expr{Op: OpLoad, A: 8, B: NoReg, Width: 4, K: 16}, Width: 32, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags},
			set(9, Add(8, 8)), branch(Greater, "out"), load(2, 9, NoReg, 0, 8, 4, false)))},
		{name: "one cell by a register and its copy, ways meet before", want: ", compare 6 at 3", code: by(ops(copyOf(9, 8), other("x"), at("x", nop()),
			op{compare: Comparison{X: Expr{Op: OpLoad, A: 8, B: NoReg, Width: 4}, Width: 32, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags},
			branch(Greater, "out"), load(2, 9, NoReg, 0, 0, 4, false)))},
		{name: "cell by a register that is a copy on one way", want: none, code: by(ops(other("x"), copyOf(9, 8), at("x", nop()),
			op{compare: Comparison{X: Expr{Op: OpLoad, A: 8, B: NoReg, Width: 4}, Width: 32, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags},
			branch(Greater, "out"), load(2, 9, NoReg, 0, 0, 4, false)))},
		{name: "cells by two registers", want: none, code: by(ops(set(9, Expr{}), storeAway(),
			op{compare: Comparison{X: Expr{Op: OpLoad, A: 8, B: NoReg, Width: 4}, Width: 32, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags},
			branch(Greater, "out"), load(2, 9, NoReg, 0, 0, 4, false)))},
		{name: "cells by a register and what it was", want: none, code: by(ops(copyOf(9, 8), set(8, Expr{}), storeAway(),
			op{compare: Comparison{X: Expr{Op: OpLoad, A: 8, B: NoReg, Width: 4}, Width: 32, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags},
			branch(Greater, "out"), load(2, 9, NoReg, 0, 0, 4, false)))},
		{name: "two cells by a register and its copy", want: none, code: by(ops(copyOf(9, 8), storeAway(),
			op{compare: Comparison{X: Expr{Op: OpLoad, A: 8, B: NoReg, Width: 4}, Width: 32, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags},
			branch(Greater, "out"), load(2, 9, NoReg, 0, 4, 4, false)))},
		{name: "cell by a part of a register that is copied between", want: none, code: by(ops(
			op{compare: Comparison{X: Expr{Op: OpLoad, A: 8, B: NoReg, Width: 4}, Width: 32, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags},
			set(9, Expr{Op: OpAdd, A: 8, B: NoReg, Part: 16}), branch(Greater, "out"), load(2, 9, NoReg, 0, 0, 4, false)))},
		{name: "cell by a constant and a number, between which a register is set", want: none, code: by(ops(
			op{compare: Comparison{X: Expr{Op: OpLoad, A: 8, B: NoReg, Width: 4}, Width: 32, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags},
			set(8, Const(64)), branch(Greater, "out"), load(2, 8, NoReg, 0, 0, 4, false)))},

		// Signs.
		{name: "sign extended from a byte, then compared", want: ", compare 6 at 2", code: by(ops(load(2, 8, NoReg, 0, 0, 2, false), set(2, Field(2, 16, true)),
			cmpBits(2, 32, 5), branch(Greater, "out"), set(2, Field(2, 32, false))))},
		{name: "sign extended from a byte, compared as a byte before", want: none, code: by(ops(cmpBits(2, 8, 5), branch(Greater, "out"), set(2, Field(2, 8, true))))},
		{name: "compared with its sign, used without", want: none, code: by(ops(set(7, Field(2, 8, true)), cmp(7, 5), branch(Greater, "out")))},
		{name: "compared with its sign, used with that of more bits", want: none, code: by(ops(set(7, Field(2, 8, true)), cmp(7, 5), branch(Greater, "out"), set(2, Field(2, 16, true))))},
		{name: "compared with its sign, used with that", want: ", compare 6 at 1", code: by(ops(set(7, Field(2, 8, true)), cmp(7, 5), branch(Greater, "out"), set(2, Field(2, 8, true))))},
		{name: "the sign of what is masked", want: none, code: by(ops(mask(2, 2, 255), set(2, Field(2, 8, true))))},
		{name: "masked after its sign is extended", want: ", mask 8 at 3", code: by(ops(cmp(2, 5), branch(Greater, "out"), set(2, Field(2, 8, true)), mask(2, 2, 7)))},
		{name: "the sign of a sign", want: none, code: by(ops(cmp(2, 5), branch(Greater, "out"), set(2, Field(2, 8, true)), set(2, Field(2, 16, true))))},
		{name: "equal but for a sign", want: none, code: by(ops(copyOf(7, 2), other("x"), set(7, Field(2, 8, true)), at("x", cmp(7, 5)), branch(Greater, "out")))},

		// All that sets the index has few bits.
		{name: "bytes in loops", want: ", mask 256 at 4", code: by(slices.Concat(ops(load(2, 8, NoReg, 0, 0, 1, false), at("a", nop()), at("b", nop()), other("a"),
			load(2, 9, NoReg, 0, 0, 1, false), other("b")), meetings(maxMeets)))},
		{name: "a byte handed round", want: ", mask 256 at 0", code: by(slices.Concat(ops(load(2, 8, NoReg, 0, 0, 1, false), at("a", nop())), meetings(maxMeets),
			ops(copyOf(7, 2), other("a"), copyOf(2, 7), other("a"))))},
		{name: "a byte and an argument", want: none, code: by(slices.Concat(ops(other("x"), load(2, 8, NoReg, 0, 0, 1, false), at("x", nop())), meetings(maxMeets)))},
		{name: "a byte and a number", want: none, code: by(slices.Concat(ops(load(2, 8, NoReg, 0, 0, 1, false), other("x"), load(2, 8, NoReg, 0, 0, 4, false), at("x", nop())), meetings(maxMeets)))},
		{name: "a byte that is counted", want: none, code: by(slices.Concat(ops(load(2, 8, NoReg, 0, 0, 1, false), at("a", nop())), meetings(maxMeets), ops(set(2, Add(2, 1)), other("a"))))},
		{name: "a byte that is moved to and fro", want: ", mask 256 at 0", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), other("x"), at("x", copyOf(9, 2)), copyOf(2, 9), jumpBy(9)))},
		{name: "a byte, and where indirect jumps lead", want: none, code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), at("pad", nop())))},
		{name: "a byte, or what an indirect jump brings from the function's start", want: none, code: by(ops(jumpBy(9), other("x"), load(2, 8, NoReg, 0, 0, 1, false), at("x", nop())))},
		{name: "masked, or copied where nothing leads", want: none, code: by(ops(mask(2, 7, 15), jump("y"), copyOf(2, 7), at("y", nop())))},
		{name: "all bits there are, over an indirect jump", want: ", compare 6 at 2", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), jumpBy(9), cmpBits(2, 8, 5), branch(Greater, "out")))},
		{name: "a byte that is copied as often as ways may meet", want: ", mask 256 at 0", code: by(slices.Concat(ops(load(2, 8, NoReg, 0, 0, 1, false)), copies(maxMeets)))},
		{name: "a byte that is copied twice more", want: none, code: by(slices.Concat(ops(load(2, 8, NoReg, 0, 0, 1, false)), copies(maxMeets+2)))},
		{name: "a byte in a loop of one branch that only indirect jumps lead to", want: ", compare 6 at 3", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), jumpBy(9),
			at("s", other("s")), cmpBits(2, 8, 5), branch(Greater, "out")))},
		{name: "bits that are all but for one less than nothing", code: by(ops(cmp(7, 8), branch(Greater, "out"), set(2, Add(7, ^uint64(0))), other("x"), load(2, 9, NoReg, 0, 0, 1, false),
			at("x", nop()), cmpBits(2, 8, 5), branch(Greater, "out"))), want: ", mask 256 at 4"},
		{name: "few bits, compared with the sign of fewer", want: ", mask 1024 at 2", code: by(ops(mask(2, 9, 1023), other("x"), mask(2, 8, 1023), at("x", nop()),
			set(7, Field(2, 8, true)), cmp(7, 5), branch(Greater, "out")))},
		{name: "a sign on one way, compared without", want: none, code: by(ops(copyOf(2, 7), other("x"), set(2, Field(7, 8, true)), at("x", cmp(7, 5)), branch(Greater, "out")))},
		{name: "a byte over an indirect jump", want: ", mask 256 at 0", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), jumpBy(9)))},
		{name: "a byte over an indirect jump, a number over another", want: none, code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), jumpBy(9), load(2, 8, NoReg, 0, 0, 4, false), jumpBy(9)))},
		{name: "a byte in a loop that only indirect jumps lead into", want: ", compare 6 at 3", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), at("x", nop()), nop(),
			cmpBits(2, 8, 5), branch(Greater, "out"), other("in"), jumpBy(9), at("loop", nop()), other("x"), load(2, 8, NoReg, 0, 1, 1, false), set(8, Add(8, 1)), other("loop"), jump("x"), at("in", nop())))},
		{name: "equal where only a branch leads", code: by(ops(copyOf(7, 2), jump("y"), at("x", set(7, Expr{})), ret(), at("y", cmp(7, 5)), branch(Greater, "out"))), want: ", compare 6 at 4"},
		{name: "equal over the second of two branches", code: by(ops(other("x"), copyOf(7, 2), other("x"), ret(), at("x", cmp(7, 5)), branch(Greater, "out"))), want: none},
		{name: "equal over one of two branches", code: by(ops(copyOf(7, 2), other("x"), other("x"), ret(), at("x", cmp(7, 5)), branch(Greater, "out"))), want: ", compare 6 at 4"},

		{name: "two numbers, one of which is compared", code: by(ops(set(7, Const(1)), set(2, Const(3)), cmp(7, 5), branch(Greater, "out"), at("in", nop()), other("in"))), want: none},
		{name: "bits that are not all of what may be negative", code: by(ops(cmp(7, 8), branch(Greater, "out"), set(2, Add(7, ^uint64(4))), other("x"), load(2, 9, NoReg, 0, 0, 1, false),
			at("x", nop()), cmpBits(2, 8, 5), branch(Greater, "out"))), want: ", mask 256 at 4"},
		{name: "loaded what another register stores at its displacement", code: by(ops(cmp(7, 5), branch(Greater, "out"), store(7, toySP, 16), shared(2))), want: none},
		{name: "compared with what memory holds, by the index", code: by(ops(copyOf(2, 0), op{compare: Comparison{
			X: Expr{Op: OpLoad, A: 1, B: 2, Width: 4, Shift: 2}, Width: 64, B: NoReg, K: 5, Passed: AnyRelation}, changes: Flags}, branch(Greater, "out"))), want: none},
		{name: "made from an entry and a number", code: by(ops(set(5, Address(dataAt+64)), load(2, 5, 7, 2, 0, 4, true), sum(2, 2, 8), cmp(2, 5), branch(Greater, "out"))), want: ", compare 6 at 3"},
		{name: "all bits there are, of what was in the register before", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), other("x"), load(2, 9, NoReg, 0, 0, 1, false),
			at("x", copyOf(9, 2)), set(2, Expr{}), cmpBits(2, 8, 5), branch(Greater, "out"), copyOf(2, 9))), want: ", mask 256 at 2"},
		{name: "all bits there are by a comparison on one way", code: by(ops(cmp(2, 5), branch(Greater, "out"), other("x"), load(2, 9, NoReg, 0, 0, 1, false),
			at("x", nop()), cmpBits(2, 8, 3), branch(Greater, "out"))), want: ", compare 4 at 5"},
		{name: "all bits there are, and more added", code: by(ops(load(2, 8, NoReg, 0, 0, 1, false), other("x"), load(2, 9, NoReg, 0, 0, 1, false),
			at("x", nop()), cmpBits(2, 8, 5), branch(Greater, "out"), set(2, Add(2, 1)))), want: ", compare 7 at 4"},
		{name: "equal on one way, the function starts with the other", code: by(ops(jump("y"), copyOf(2, 7), at("y", nop()), cmp(7, 3), branch(Greater, "out"))), want: none},
		{name: "equal where a branch leads from what nothing leads to", code: by(ops(copyOf(7, 2), other("x"), set(7, Expr{}), ret(), jump("y"), at("x", nop()),
			at("y", cmp(7, 5)), branch(Greater, "out"))), want: ", compare 6 at 6"},
		{name: "reduced before, with another base, in a loop", want: " from 2, compare 4 at 2", code: ops(copyOf(7, 2), set(7, Add(7, ^uint64(1))), cmp(7, 3), branch(Greater, "out"),
			at("in", nop()), other("in"), set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3))},
		{name: "reduced before, with another base, in a loop that masks", want: " of code, compare 6 at 2", code: ops(copyOf(7, 2), set(7, Add(7, ^uint64(1))), cmp(7, 3), branch(Greater, "out"),
			at("in", other("body")), set(1, Address(dataAt)), load(3, 1, 2, 2, 0, 4, true), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3), at("body", mask(2, 2, 1)), jump("in"))},

		// Tables among the instructions.
		{name: "goes on, and others jump as well", mem: toyMemory{words: []uint32{0, 0}}, want: " in the text",
			code: ops(jumpBy(9), set(1, Address(codeAt)), cmp(2, 0), branch(Greater, "out"), load(3, 1, 2, 2, 0, 4, true), sum(3, 3, 1), jumpBy(3))},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &toyModel{ops: append(c.code, at("out", ret()))}
			want := relative + c.want
			switch c.want {
			case " from 2, compare 4 at 2":
				want = "table 0x500008 width 4 signed base 0x400000, compare 4 at 2"
			case " of code, compare 6 at 2":
				want = "table 0x500000 width 4 signed base 0x400000, compare 6 at 2"
			case " in the text":
				want = "table 0x400000 width 4 signed base 0x400000"
				c.mem = textMemory{c.mem}
			}
			if got := m.jump(c.mem); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// textMemory has the data in the text.
type textMemory struct{ Memory }

func (m textMemory) Data(dst []byte, addr, size uint64) ([]byte, error) {
	return m.Memory.Data(dst, addr+dataAt-codeAt, size)
}

// TestConstants asks for constants.
func TestConstants(t *testing.T) {
	m := &toyModel{ops: ops(set(1, Address(dataAt)), nop(), set(2, Add(1, 8)), set(3, Expr{}))}
	var tracer Tracer
	tracer.Start(m, m.function(), nil)
	if addr, ok := tracer.Constant(2, 2); !ok || addr != dataAt+8 {
		t.Errorf("%#x, %v", addr, ok)
	}
	if addr, ok := tracer.Constant(3, 3); ok {
		t.Errorf("%#x of what is no constant", addr)
	}
}

// TestStart has one tracer look at several functions.
func TestStart(t *testing.T) {
	first := &toyModel{ops: by(ops(at("x", nop()), other("x")))}
	second := &toyModel{ops: ops(nop(), jumpBy(3))}
	f, g := first.function(), second.function()
	var tracer Tracer
	for range 3 {
		tracer.Start(first, f, nil)
		if j := tracer.Jump(len(f.Insts) - 1); describe(&j) != relative {
			t.Errorf("first: %+v", j)
		}
		tracer.End()
		tracer.Start(second, g, nil)
		if j := tracer.Jump(1); j != Pointer() {
			t.Errorf("second: %+v", j)
		}
		tracer.End()
	}
	tracer.Start(first, f, nil)
	for _, i := range []int{-1, len(f.Insts)} {
		if j := tracer.Jump(i); j != Unresolved(WhatNoJump) {
			t.Errorf("instruction %d: %+v", i, j)
		}
	}
}

// TestEffort has functions that are too much to look at, and ends all the same.
func TestEffort(t *testing.T) {
	const many = 1 << 15
	far := slices.Concat(ops(set(1, Address(dataAt)), at("x", nop())), slices.Repeat(ops(nop()), many), ops(other("x"), at("y", nop()), other("y"),
		load(3, 1, 2, 2, 0, 4, true), set(4, Address(codeAt)), sum(3, 3, 4), jumpBy(3)))
	if got, want := (&toyModel{ops: far}).jump(nil), "unresolved: "+WhatNumber; got != want {
		t.Errorf("far away: %s, want %s", got, want)
	}
	// What is far away does not matter beside the address of a table.
	beside := slices.Concat(ops(at("y", nop())), slices.Repeat(ops(nop()), many), ops(other("y"), set(9, Copy(8)), other("x"),
		set(9, Address(dataAt)), at("x", nop()), load(3, 9, 2, 2, 0, 4, true), sum(3, 3, 9), jumpBy(3)))
	if got := (&toyModel{ops: beside}).jump(nil); got != relative {
		t.Errorf("beside a table: %s", got)
	}
	// One of two tables is too far away.
	table := ops(load(3, 9, 2, 2, 0, 4, true), sum(3, 3, 9), jumpBy(3))
	oneFar := slices.Concat(ops(set(9, Address(dataAt+64)), other("far"), set(9, Address(dataAt)), at("x", nop())), table,
		ops(at("far", nop())), slices.Repeat(ops(nop()), many), ops(jump("x")))
	if got, want := (&toyModel{ops: oneFar}).jump(nil), "unresolved: "+WhatTooFar; got != want {
		t.Errorf("one far away: %s, want %s", got, want)
	}
	// What is far away may be before a call that never returns.
	call := slices.Concat(ops(set(9, Address(dataAt)), other("x")), slices.Repeat(ops(nop()), many), ops(call("f"), at("x", nop())), table)
	if got, want := (&toyModel{ops: call}).jump(nil), relative; got != want {
		t.Errorf("far away before a call: %s, want %s", got, want)
	}
	// But for one that is shifted: it is an entry.
	shifted := slices.Concat(ops(set(9, Address(dataAt)), at("y", nop())), slices.Repeat(ops(nop()), maxAddedSteps), ops(other("y"),
		load(3, 9, 2, 1, 0, 2, false), set(4, Address(codeAt)), set(3, Expr{Op: OpAdd, A: 4, B: 3, Shift: 2}), jumpBy(3)))
	if got, want := (&toyModel{ops: shifted}).jump(nil), "table 0x500000 width 2 base 0x400000 shift 2"; got != want {
		t.Errorf("far away, shifted: %s, want %s", got, want)
	}
	// Registers that depend on one another where ways meet.
	for _, c := range []struct {
		n    int
		op   Op
		want string
	}{
		{100, OpAdd, "pointer: "}, // copies are looked at together
		{maxNesting / 2, OpGuard, "pointer: "},
		{maxNesting/2 + 1, OpGuard, "unresolved: " + WhatArithmetic},
	} {
		var joined []op
		for i := range c.n {
			x := Expr{Op: c.op, A: Reg(1 + (i+1)%2), B: NoReg}
			if c.op == OpGuard {
				x.B = x.A
			}
			joined = slices.Concat(joined, meetings(1), ops(set(Reg(1+i%2), x)))
		}
		if got := (&toyModel{ops: append(joined, jumpBy(Reg(1+(c.n-1)%2)))}).jump(nil); got != c.want {
			t.Errorf("%d joined by %d: %s, want %s", c.n, c.op, got, c.want)
		}
	}
	var deep []op
	for i := range 100 {
		deep = append(deep, set(Reg(1+i%2), Copy(Reg(1+(i+1)%2))))
	}
	if got, want := (&toyModel{ops: append(deep, jumpBy(2))}).jump(nil), "unresolved: "+WhatTooFar; got != want {
		t.Errorf("nested: %s, want %s", got, want)
	}
}

// TestIndexOf finds instructions of any length.
func TestIndexOf(t *testing.T) {
	f := (&toyModel{ops: ops(nop(), nop(), nop(), nop())}).function()
	addr := uint64(codeAt)
	for i, n := range []uint8{4, 1, 7, 8} {
		f.Insts[i].Addr, f.Insts[i].Len = addr, n
		addr += uint64(n)
	}
	f.Code = make([]byte, addr-codeAt)
	tracer := Tracer{f: f, insts: f.Insts}
	for off, want := range map[uint64]int{0: 0, 4: 1, 5: 2, 12: 3, 3: none, 6: none, 13: none, 14: none, 16: none, 19: none, 20: none, 1 << 40: none} {
		if got := tracer.indexOf(codeAt + off); got != want {
			t.Errorf("offset %d: %d, want %d", off, got, want)
		}
	}
}

// TestJumpKinds names the kinds.
func TestJumpKinds(t *testing.T) {
	for kind, want := range map[JumpKind]string{JumpUnresolved: "unresolved", JumpTable: "table", JumpPointer: "pointer", 3: "invalid", 9: "invalid"} {
		if kind.String() != want {
			t.Errorf("%d: %s", kind, kind)
		}
	}
}
