package amd64_test

import (
	"cmp"
	"debug/elf"
	"io"
	"testing"

	"xol/arch/amd64"
	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// TestIdioms looks at testdata/switch/idioms.s. Its symbols tell where tables
// and comparisons are.
func TestIdioms(t *testing.T) {
	const (
		whole    = 8
		relative = 4
	)
	table := func(width uint8, bound flow.Bound, count int) flow.Jump {
		signed := width == relative
		return flow.Jump{Kind: flow.JumpTable, Table: flow.Table{Width: width, Bound: bound, Count: count, Signed: signed}}
	}
	pointer := flow.Jump{Kind: flow.JumpPointer}
	unresolved := func(what string) flow.Jump { return flow.Jump{What: what} }
	want := map[string]flow.Jump{
		"absolute":    table(whole, flow.BoundCompare, 4),
		"loaded":      table(whole, flow.BoundCompare, 4),
		"go":          table(whole, flow.BoundCompare, 4),
		"pic":         table(relative, flow.BoundCompare, 4),
		"changed":     table(relative, flow.BoundMask, 256),
		"spilled":     table(relative, flow.BoundCompare, 4),
		"unoptimized": table(relative, flow.BoundCompare, 4),
		"hoisted":     table(relative, flow.BoundCompare, 4),
		"kept":        table(relative, flow.BoundCompare, 4),
		"entered":     table(relative, flow.BoundCompare, 4),
		"twice":       table(whole, flow.BoundCompare, 4),
		"unchecked":   table(whole, flow.BoundNone, 0),
		"overwritten": table(whole, flow.BoundNone, 0),
		"narrow":      table(whole, flow.BoundNone, 0),
		"extended":    table(whole, flow.BoundCompare, 4),
		"signed":      table(whole, flow.BoundNone, 0),
		"unsigned":    table(whole, flow.BoundCompare, 4),
		"biased":      table(whole, flow.BoundCompare, 4),
		"masked":      table(whole, flow.BoundMask, 4),
		"spawned":     table(relative, flow.BoundCompare, 4),
		"rules":       table(relative, flow.BoundCompare, 4),
		"cell":        table(whole, flow.BoundCompare, 4),
		"renamed":     table(whole, flow.BoundCompare, 4),
		"short":       table(relative, flow.BoundCompare, 4),
		"bytes":       table(whole, flow.BoundMask, 256),
		"scanned":     table(whole, flow.BoundCompare, 4),
		"looped":      table(relative, flow.BoundCompare, 4),
		"unrelated":   table(whole, flow.BoundNone, 0),
		"twolevel":    table(whole, flow.BoundMask, 256),
		"either":      table(relative, flow.BoundCompare, 4),
		"different":   unresolved(flow.WhatIndex),
		"code":        unresolved(flow.WhatIndex),
		"arithmetic":  unresolved(flow.WhatArithmetic),
		"unknown":     unresolved(flow.WhatNumber),
		"parted":      unresolved(flow.WhatNumber),
		"joined":      table(relative, flow.BoundMask, 4),
		"pointers":    pointer,
		"argument":    pointer,
		"method":      pointer,
		"stub":        pointer,
		"result":      pointer,
		"chosen":      pointer,
		"guarded":     pointer,
		"elements":    pointer,
		"functions":   pointer,
		"operations":  pointer,
		"narrowed":    unresolved("its target is cut to 16 bits on some processors"),
		"mixed":       unresolved(flow.WhatArithmetic),
	}
	file := switchFile(t, "idioms")
	im, addr := openSwitch(t, file), symbolsOf(t, file)
	seen := 0
	for _, f := range functionsOf(t, im) {
		w, ok := want[f.Name]
		if !ok {
			t.Errorf("no row for %s", f.Name)
			continue
		}
		if w.Kind == flow.JumpTable {
			w.Table.Addr = addr[f.Name+"_table"]
			w.Table.Check = cmp.Or(addr[f.Name+"_check"], loaded(&f))
			if w.Table.Width == relative {
				w.Table.Base = cmp.Or(addr[f.Name+"_base"], w.Table.Addr)
			}
		}
		seen++
		var last flow.Jump
		eachJump(&f, im, func(_ *decode.Inst, j flow.Jump) { last = j })
		if last != w {
			t.Errorf("%s:\n%+v, not\n%+v", f.Name, last, w)
		}
	}
	if seen != len(want) {
		t.Errorf("%d of %d functions", seen, len(want))
	}
}

// loaded returns the address of the instruction that loads a byte.
func loaded(f *classify.Func) uint64 {
	for i := range f.Insts {
		if d := amd64.DetailOf(&f.Insts[i]); d.Map() == amd64.Map0F && d.Opcode() == 0xb6 {
			return f.Insts[i].Addr
		}
	}
	return 0
}

func symbolsOf(t *testing.T, file io.ReaderAt) map[string]uint64 {
	f, err := elf.NewFile(file)
	if err != nil {
		t.Fatal(err)
	}
	list, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	addr := map[string]uint64{}
	for _, s := range list {
		addr[s.Name] = s.Value
	}
	return addr
}
