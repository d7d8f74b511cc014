package arm64

import (
	"bytes"
	"debug/elf"
	"testing"

	"xol/classify"
	"xol/optcheck/flow"
)

// TestSwitchCases is the table of idioms, and of what must not be taken for
// one. The functions are in testdata/switch/cases.s.
func TestSwitchCases(t *testing.T) {
	const (
		none    = flow.BoundNone
		compare = flow.BoundCompare
		mask    = flow.BoundMask
	)
	table := func(symbol string, width uint8, count int, bound flow.Bound) switchCase {
		return switchCase{kind: flow.JumpTable, table: symbol, width: width, count: count, bound: bound}
	}
	unresolved := func(what string) switchCase { return switchCase{kind: flow.JumpUnresolved, what: what} }
	pointer := switchCase{kind: flow.JumpPointer}
	im := openCompiled(t, "cases.elf")
	symbols := dataSymbols(t, unpackCompiled(t, "cases.elf"))
	cases := map[string]switchCase{
		"compare_hi":        table("bytes", 1, 6, compare),
		"compare_cs":        table("bytes", 1, 6, compare),
		"compare_ls":        table("bytes", 1, 6, compare),
		"compare_signed":    table("bytes", 1, 0, none),
		"compare_register":  table("bytes", 1, 6, compare),
		"compare_unknown":   table("bytes", 1, 0, none),
		"compare_other":     table("bytes", 1, 0, none),
		"compare_copy":      table("bytes", 1, 6, compare),
		"compare_equal_too": table("bytes", 1, 5, compare),
		"compare_lost":      table("bytes", 1, 0, none),
		"changed_behind":    table("", 1, 6, compare), // it starts with the second byte
		"changed_by_call":   table("bytes", 1, 0, none),
		"kept_over_call":    table("bytes", 1, 6, compare),
		"two_bounds":        table("bytes", 1, 6, compare),
		"one_bound":         table("bytes", 1, 0, none),
		"loop_bound":        table("bytes", 1, 0, none),
		"masked":            table("bytes", 1, 4, mask),
		"masked_byte":       table("bytes", 1, 256, mask),
		"masked_compared":   table("bytes", 1, 6, compare),
		"masked_less":       table("bytes", 1, 0, none),
		"field":             table("bytes", 1, 4, mask),
		"spilled_index":     table("bytes", 1, 6, compare),
		"reloaded_index":    table("bytes", 1, 6, compare),
		"overwritten_index": table("bytes", 1, 0, none),

		"hoisted":                 table("bytes", 1, 6, compare),
		"spilled_table":           table("bytes", 1, 6, compare),
		"never_returns":           table("bytes", 1, 6, compare),
		"halves":                  table("halfwords", 2, 3, compare),
		"words_relative":          table("words", 4, 3, compare),
		"words_by_element":        table("words", 4, 3, compare),
		"words_premultiplied":     table("words", 4, 3, compare),
		"unsigned_shifted":        table("bytes", 1, 6, compare),
		"shifted_before":          table("bytes", 1, 6, compare),
		"addresses":               table("labels", 8, 3, compare),
		"addresses_authenticated": pointer, // its labels are those of addresses
		"functions":               pointer,

		"unknown_addresses": pointer,
		"argument":          pointer,
		"result":            pointer,
		"other_return":      pointer,
		"plt":               pointer,
		"veneer":            pointer,
		"choice":            pointer,
		"guarded":           pointer,
		"signed":            pointer,

		"into_code":      unresolved(flow.WhatArithmetic),
		"by_index":       unresolved(flow.WhatIndex),
		"product":        unresolved(flow.WhatArithmetic),
		"two_tables":     unresolved(flow.WhatNumber),
		"unknown_table":  unresolved(flow.WhatNumber),
		"extended_twice": unresolved(flow.WhatExtension),
	}
	eachFunction(t, im, func(f *classify.Func) {
		want, ok := cases[f.Name]
		if !ok {
			t.Errorf("%s: nothing is known", f.Name)
		}
		delete(cases, f.Name)
		jump := ISA{}.IndirectJump(new(flow.Tracer), f, indirectJump(f), im)
		got := switchCase{jump.Kind, jump.Table.Count, jump.Table.Bound, jump.Table.Width, "", jump.What}
		if jump.Kind == flow.JumpTable {
			got.table = symbols[jump.Table.Addr]
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", f.Name, got, want)
		}
	})
	for name := range cases {
		t.Errorf("no function %s", name)
	}
}

// dataSymbols returns the symbols of an ELF file that are not of functions, by
// address.
func dataSymbols(t *testing.T, file []byte) map[uint64]string {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	names := map[uint64]string{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_NOTYPE && elf.ST_BIND(s.Info) == elf.STB_GLOBAL {
			names[s.Value] = s.Name
		}
	}
	return names
}

// switchCase is what is to be known of a jump.
type switchCase struct {
	kind  flow.JumpKind
	count int
	bound flow.Bound
	width uint8
	table string // symbol
	what  string
}
