package amd64_test

import (
	"cmp"
	"debug/elf"
	"io"
	"testing"

	"xol/decode"
	"xol/optcheck"
)

// TestIdioms looks at testdata/switch/idioms.s. Its symbols tell where tables
// and comparisons are.
func TestIdioms(t *testing.T) {
	const (
		whole    = 8
		relative = 4
	)
	table := func(width uint8, bound optcheck.Bound, count int) optcheck.Jump {
		signed := width == relative
		return optcheck.Jump{Kind: optcheck.JumpTable, Table: optcheck.Table{Width: width, Bound: bound, Count: count, Signed: signed}}
	}
	pointer := optcheck.Jump{Kind: optcheck.JumpPointer}
	unresolved := func(what string) optcheck.Jump { return optcheck.Jump{What: what} }
	want := map[string]optcheck.Jump{
		"absolute":    table(whole, optcheck.BoundCompare, 4),
		"loaded":      table(whole, optcheck.BoundCompare, 4),
		"go":          table(whole, optcheck.BoundCompare, 4),
		"pic":         table(relative, optcheck.BoundCompare, 4),
		"changed":     table(relative, optcheck.BoundMask, 256),
		"spilled":     table(relative, optcheck.BoundCompare, 4),
		"unoptimized": table(relative, optcheck.BoundCompare, 4),
		"hoisted":     table(relative, optcheck.BoundCompare, 4),
		"kept":        table(relative, optcheck.BoundCompare, 4),
		"entered":     table(relative, optcheck.BoundCompare, 4),
		"twice":       table(whole, optcheck.BoundCompare, 4),
		"unchecked":   table(whole, optcheck.BoundNone, 0),
		"overwritten": table(whole, optcheck.BoundNone, 0),
		"narrow":      table(whole, optcheck.BoundNone, 0),
		"extended":    table(whole, optcheck.BoundCompare, 4),
		"signed":      table(whole, optcheck.BoundNone, 0),
		"unsigned":    table(whole, optcheck.BoundCompare, 4),
		"biased":      table(whole, optcheck.BoundCompare, 4),
		"masked":      table(whole, optcheck.BoundMask, 4),
		"twolevel":    table(whole, optcheck.BoundMask, 256),
		"either":      table(relative, optcheck.BoundCompare, 4),
		"different":   unresolved("its target is found in a different way from where else execution comes"),
		"code":        unresolved("its target is computed from the address of code and a number"),
		"arithmetic":  unresolved("its target is computed by other instructions than those of a switch"),
		"unknown":     unresolved("its target comes from a table whose address is not known"),
		"parted":      unresolved("its target is found in a different way from where else execution comes"),
		"joined":      table(relative, optcheck.BoundMask, 4),
		"pointers":    pointer,
		"argument":    pointer,
		"method":      pointer,
		"stub":        pointer,
		"result":      pointer,
		"chosen":      pointer,
		"guarded":     pointer,
		"elements":    pointer,
		"functions":   table(whole, optcheck.BoundCompare, 4),
		"operations":  pointer,
		"narrowed":    unresolved("its target is cut to 16 bits on some processors"),
		"mixed":       unresolved("its target is computed by other instructions than those of a switch"),
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
		if w.Kind == optcheck.JumpTable {
			w.Table.Addr = addr[f.Name+"_table"]
			w.Table.Check = addr[f.Name+"_check"]
			if w.Table.Width == relative {
				w.Table.Base = cmp.Or(addr[f.Name+"_base"], w.Table.Addr)
			}
		}
		seen++
		eachJump(&f, im, func(_ *decode.Inst, j optcheck.Jump) {
			if j != w {
				t.Errorf("%s:\n%+v, not\n%+v", f.Name, j, w)
			}
		})
	}
	if seen != len(want) {
		t.Errorf("%d of %d functions", seen, len(want))
	}
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
