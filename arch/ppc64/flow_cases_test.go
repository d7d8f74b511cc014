package ppc64

import (
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

const (
	noBound = flow.BoundNone
	compare = flow.BoundCompare
	mask    = flow.BoundMask
)

// tableCases are the functions of testdata/switch/cases.s that jump by a table.
var tableCases = []struct {
	name  string
	bound flow.Bound
	count int
}{
	{"compare", compare, 4},
	{"compare_ge", compare, 4},
	{"compare_signed", compare, 4},
	{"compare_register", compare, 4},
	{"compare_twice", compare, 4},
	{"return_if", compare, 4},
	{"branch_to_switch", compare, 4},
	{"trap", compare, 4},
	{"trap_ge", compare, 4},
	{"masked", mask, 4},
	{"field", mask, 4},
	{"masked_and_compared", compare, 4},
	{"unmasked", noBound, 0},
	{"subtracted", compare, 4},
	{"subtracted_later", compare, 4},
	{"changed", noBound, 0},
	{"other_register", noBound, 0},
	{"other_condition", noBound, 0},
	{"recorded_condition", noBound, 0},
	{"lower_bound", noBound, 0},
	{"counted", noBound, 0},
	{"kept_over_call", compare, 4},
	{"lost_in_call", noBound, 0},
	{"loaded_twice", compare, 4},
	{"stored_between", mask, 256},
	{"updated", compare, 4},
	{"spilled_index", compare, 4},
	{"two_checks", compare, 4},
	{"one_check", noBound, 0},
	{"behind_check", noBound, 0},
	{"hoisted", compare, 4},
	{"spilled_address", compare, 4},
	{"shared", noBound, 0},
	{"built_constant", compare, 4},
	{"extended_index", compare, 4},
	{"top_bits", mask, 4},
	{"offset_table", noBound, 0},
	{"sum_of_indices", noBound, 0},
	{"table_or_pointer", noBound, 0},
	{"two_levels", mask, 256},
	{"two_levels_compared", compare, 4},
	{"below_too", compare, 4},
	{"used_before", noBound, 0},
	{"loaded_zero_extended", compare, 4},
	{"through_tar", compare, 4},
	{"pc_relative", compare, 4},
}

// otherCases are those that do not.
var otherCases = []struct{ name, what string }{
	{"argument", ""},
	{"descriptor", ""},
	{"result", ""},
	{"conditional", ""},
	{"either_pointer", ""},
	{"selected", ""},
	{"handed_round", ""},
	{"wrapped", flow.WhatArithmetic},
	{"sum", flow.WhatArithmetic},
	{"running", flow.WhatSeveral},
	{"one_of_two", flow.WhatSeveral},
	{"counter", flow.WhatArithmetic},
	{"entry_alone", flow.WhatNumber},
	{"own_address", flow.WhatConstant},
}

// lastIndirect returns the index of the last indirect jump of f.
func lastIndirect(f *classify.Func) int {
	i := len(f.Insts) - 1
	for i >= 0 && f.Insts[i].Flow != decode.FlowJumpIndirect {
		i--
	}
	return i
}

// lastJump returns what IndirectJump says of the last indirect jump of a case.
func (x *fixture) lastJump(t *testing.T, name string) flow.Jump {
	t.Helper()
	f := x.functions[name]
	if f == nil {
		t.Fatal("there is no such function")
	}
	return x.isa().IndirectJump(new(flow.Tracer), f, lastIndirect(f), x)
}

func TestIndirectJump(t *testing.T) {
	for _, order := range []string{"le", "be"} {
		x, symbols := newFixture(t, "cases-"+order)
		for _, c := range tableCases {
			t.Run(order+"/"+c.name, func(t *testing.T) {
				addr := symbols[c.name+".table"]
				want := flow.Jump{Kind: flow.JumpTable, Table: flow.Table{
					Addr: addr, Base: addr, Count: c.count, Check: symbols[c.name+".check"], Width: 4, Signed: true, Bound: c.bound,
				}}
				got := x.lastJump(t, c.name)
				if c.count == 256 { // by the load of the index, a byte
					want.Table.Check = got.Table.Check
				}
				if got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			})
		}
		for _, c := range otherCases {
			t.Run(order+"/"+c.name, func(t *testing.T) {
				want := flow.Jump{Kind: flow.JumpPointer}
				if c.what != "" {
					want = flow.Unresolved(c.what)
				}
				if got := x.lastJump(t, c.name); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			})
		}
	}
}

// Without memory, addresses that the code itself computes are enough.
func TestIndirectJumpWithoutMemory(t *testing.T) {
	const moved = 0x10000000 // what is no address there is small
	x, symbols := newFixture(t, "cases-le")
	at := func(name string) flow.Jump {
		f := *x.functions[name]
		f.Addr += moved
		f.Insts = decode.Sweep(x.isa(), nil, f.Code, f.Addr)
		return x.isa().IndirectJump(new(flow.Tracer), &f, lastIndirect(&f), nil)
	}
	if got := at("compare"); got.Kind != flow.JumpTable || got.Table.Addr != symbols["compare.table"]+moved {
		t.Errorf("compare: %+v", got)
	}
	if got := at("shared"); got != flow.Unresolved(flow.WhatTables) {
		t.Errorf("shared: %+v", got)
	}
	if got := at("descriptor"); got.Kind != flow.JumpPointer {
		t.Errorf("descriptor: %+v", got)
	}
}

func TestIndirectJumpOfOthers(t *testing.T) {
	x, _ := newFixture(t, "cases-le")
	f := x.functions["compare"]
	for _, i := range []int{-1, 0, 3, len(f.Insts)} {
		if got := x.isa().IndirectJump(new(flow.Tracer), f, i, x); got != flow.Unresolved(flow.WhatNoJump) {
			t.Errorf("instruction %d: %+v", i, got)
		}
	}
}

// The TOC pointer comes from the global entry, and else from memory.
func TestTOC(t *testing.T) {
	for _, x := range fixtures(t) {
		if x.name != "le-gcc-O2" && x.name != "be-gcc-O2" {
			continue
		}
		f := x.functions["from_zero"]
		i := lastIndirect(f)
		table := x.isa().IndirectJump(new(flow.Tracer), f, i, x)
		if table.Kind != flow.JumpTable {
			t.Fatalf("%s: %+v", x.name, table)
		}
		want := table
		if x.name == "be-gcc-O2" { // without a TOC, an address in it is not known
			want = flow.Unresolved(flow.WhatNumber)
		}
		if got := x.isa().IndirectJump(new(flow.Tracer), f, i, struct{ flow.Memory }{x}); got != want {
			t.Errorf("%s: %+v without TOC, want %+v", x.name, got, want)
		}
	}
}
