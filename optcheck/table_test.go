package optcheck_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"xol/optcheck"
	"xol/optcheck/flow"
	"xol/place"
)

const (
	codeAt  = 0x1000
	tableAt = 0x8000
)

// switchCode is a jump by a register, then instructions at the offsets 2, 4, 5
// and 10, which it may go to.
const switchCode = "ffe0 31c0 90 b807000000 c3"

// otherAt is the start of another function's text, which goes on to otherEnd.
const (
	otherAt  = 0x2000
	otherEnd = 0x2010
)

func survey(t *testing.T, table flow.Table, mem flow.Memory, order binary.ByteOrder) *optcheck.Findings {
	t.Helper()
	a := &tabled{isaNamed(t, "amd64"), order, flow.Jump{Kind: flow.JumpTable, Table: table}}
	f := function(a.ISA, bytesOf(t, switchCode), codeAt)
	starts := new(optcheck.Addresses)
	starts.AddRange(codeAt, f.End())
	starts.AddRange(otherAt, otherEnd)
	starts.Add(codeAt)
	starts.Add(otherAt)
	p := optcheck.Program{Arch: a, Memory: mem, Starts: starts}
	found := new(optcheck.Findings)
	p.Survey(f.Func, found)
	return found
}

// targets returns the addresses in ls, all of which are to be entries of the
// table that the jump at codeAt uses.
func targets(t *testing.T, ls place.Landings) (addrs []uint64) {
	t.Helper()
	for _, l := range ls {
		if l.Kind != place.LandSwitch || l.From != codeAt {
			t.Errorf("landing %+v", l)
		}
		addrs = append(addrs, l.Addr)
	}
	return addrs
}

func TestTableEntries(t *testing.T) {
	for _, c := range []struct {
		name  string
		table flow.Table
		data  []byte
	}{
		{"bytes", flow.Table{Width: 1, Base: codeAt}, []byte{2, 4, 10}},
		{"bytes in words", flow.Table{Width: 1, Base: codeAt + 2, Shift: 1}, []byte{0, 1, 4}},
		{"signed bytes", flow.Table{Width: 1, Base: codeAt + 5, Signed: true}, []byte{0xfd, 0xff, 5}},
		{"2 bytes", flow.Table{Width: 2, Base: codeAt}, []byte{2, 0, 4, 0, 10, 0}},
		{"2 signed bytes in words", flow.Table{Width: 2, Base: codeAt + 4, Shift: 1, Signed: true}, []byte{0xff, 0xff, 0, 0, 3, 0}},
		{"4 bytes", flow.Table{Width: 4, Base: codeAt}, []byte{2, 0, 0, 0, 4, 0, 0, 0, 10, 0, 0, 0}},
		{"4 signed bytes", flow.Table{Width: 4, Base: codeAt + 10, Signed: true}, []byte{0xf8, 0xff, 0xff, 0xff, 0xfa, 0xff, 0xff, 0xff, 0, 0, 0, 0}},
		{"8 bytes", flow.Table{Width: 8, Base: codeAt}, []byte{7: 0, 0: 2, 8: 4, 16: 10, 23: 0}},
	} {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			t.Run(fmt.Sprintf("%s/%v", c.name, order), func(t *testing.T) {
				data := slices.Clone(c.data)
				if order == binary.ByteOrder(binary.BigEndian) {
					for entry := range slices.Chunk(data, int(c.table.Width)) {
						slices.Reverse(entry)
					}
				}
				table := c.table
				table.Addr, table.Count, table.Bound = tableAt, 3, flow.BoundCompare
				found := survey(t, table, &memory{addr: tableAt, data: data}, order)
				want := []uint64{codeAt + 2, codeAt + 4, codeAt + 10}
				if got := targets(t, found.Landings); !slices.Equal(got, want) || found.Tables != 1 || len(found.Unresolved) != 0 {
					t.Errorf("got %#x, %+v, want %#x", got, found.Unresolved, want)
				}
			})
		}
	}
}

func TestTableOfAddresses(t *testing.T) {
	mem := &memory{pointers: map[uint64]uint64{tableAt: codeAt + 5, tableAt + 8: codeAt, tableAt + 16: otherAt + 1}}
	found := survey(t, flow.Table{Addr: tableAt, Width: 8, Count: 3, Bound: flow.BoundCompare}, mem, binary.LittleEndian)
	want := []uint64{codeAt + 5, codeAt, otherAt + 1}
	if got := targets(t, found.Landings); !slices.Equal(got, want) {
		t.Errorf("got %#x, want %#x", got, want)
	}
}

func TestBadTables(t *testing.T) {
	const outside, unreadable, empty = "holds what is no address", "cannot be read", "no address of the function"
	bytes := func(b ...byte) flow.Memory { return &memory{addr: tableAt, data: b} }
	for _, c := range []struct {
		name  string
		table flow.Table
		mem   flow.Memory
		what  string
	}{
		{"no memory", flow.Table{Addr: tableAt, Width: 1, Count: 1}, nil, unreadable},
		{"not mapped", flow.Table{Addr: 0x70000000, Width: 1, Count: 1}, bytes(2), unreadable},
		{"not mapped, of unknown length", flow.Table{Addr: 0x70000000, Width: 4}, bytes(2), empty},
		{"end of the address space", flow.Table{Addr: ^uint64(0) - 2, Width: 4, Count: 5}, bytes(2), unreadable},
		{"goes on after the data", flow.Table{Addr: tableAt, Base: codeAt, Width: 1, Count: 3}, bytes(2, 4), unreadable},
		{"ends in an entry", flow.Table{Addr: tableAt, Base: codeAt, Width: 2, Count: 2}, bytes(2, 0, 4), unreadable},
		{"starts in the last entry", flow.Table{Addr: tableAt + 3, Base: codeAt, Width: 4, Count: 1}, bytes(2, 0, 0, 0), unreadable},
		{"huge", flow.Table{Addr: tableAt, Base: codeAt, Width: 1, Count: 1 << 62}, bytes(2, 4), unreadable},
		{"entry in the middle of an instruction", flow.Table{Addr: tableAt, Base: codeAt, Width: 1, Count: 2}, bytes(2, 6), outside},
		{"entry in no text", flow.Table{Addr: tableAt, Base: codeAt, Width: 1, Count: 2}, bytes(2, 200), outside},
		{"entry before the text", flow.Table{Addr: tableAt, Base: codeAt, Width: 1, Count: 1, Signed: true}, bytes(0xff), outside},
		{"no entry in text", flow.Table{Addr: tableAt, Base: codeAt, Width: 1}, bytes(200), empty},
		{"no entry in the function", flow.Table{Addr: tableAt, Base: otherAt, Width: 1}, bytes(1, 2), empty},
		{"entries without a width", flow.Table{Addr: tableAt, Base: codeAt, Count: 1}, bytes(2), unreadable},
		{"entries of 3 bytes", flow.Table{Addr: tableAt, Base: codeAt, Width: 3, Count: 1}, bytes(2, 0, 0), unreadable},
		{"entries of 255 bytes", flow.Table{Addr: tableAt, Base: codeAt, Width: 255, Count: 1}, bytes(make([]byte, 600)...), unreadable},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := survey(t, c.table, c.mem, binary.LittleEndian)
			if len(found.Landings) != 0 || found.Tables != 0 {
				t.Errorf("landings %+v, %d tables", found.Landings, found.Tables)
			}
			if len(found.Unresolved) != 1 || found.Unresolved[0].Addr != codeAt || !strings.Contains(found.Unresolved[0].What, c.what) {
				t.Errorf("unresolved %+v, want %q", found.Unresolved, c.what)
			}
		})
	}
}

// A table whose length is not known ends where entries lead nowhere, and with
// the last one that leads into the function.
func TestTableWithoutABound(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want []uint64
	}{
		{"end of the data", []byte{2, 4}, []uint64{codeAt + 2, codeAt + 4}},
		{"what is no address", []byte{2, 4, 200, 5}, []uint64{codeAt + 2, codeAt + 4}},
		{"the middle of an instruction", []byte{2, 6, 5}, []uint64{codeAt + 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := flow.Table{Addr: tableAt, Base: codeAt, Width: 1}
			found := survey(t, table, &memory{addr: tableAt, data: c.data}, binary.LittleEndian)
			if got := targets(t, found.Landings); !slices.Equal(got, c.want) {
				t.Errorf("got %#x, want %#x", got, c.want)
			}
		})
	}
	t.Run("another function's entries", func(t *testing.T) {
		mem := &memory{pointers: map[uint64]uint64{
			tableAt: codeAt + 2, tableAt + 8: otherAt + 3, tableAt + 16: codeAt + 4, tableAt + 24: otherAt + 5,
		}}
		found := survey(t, flow.Table{Addr: tableAt, Width: 8}, mem, binary.LittleEndian)
		want := []uint64{codeAt + 2, otherAt + 3, codeAt + 4}
		if got := targets(t, found.Landings); !slices.Equal(got, want) {
			t.Errorf("got %#x, want %#x", got, want)
		}
	})
}

// A mask says how far a table may go, not that it goes that far.
func TestMaskedTable(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want []uint64
	}{
		{"whole", []byte{2, 4, 5, 10, 2}, []uint64{codeAt + 2, codeAt + 4, codeAt + 5, codeAt + 10}},
		{"shorter", []byte{2, 4, 200, 5}, []uint64{codeAt + 2, codeAt + 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := flow.Table{Addr: tableAt, Base: codeAt, Width: 1, Count: 4, Bound: flow.BoundMask}
			found := survey(t, table, &memory{addr: tableAt, data: c.data}, binary.LittleEndian)
			if got := targets(t, found.Landings); !slices.Equal(got, c.want) {
				t.Errorf("got %#x, want %#x", got, c.want)
			}
		})
	}
}

// A long table is read in pieces.
func TestLongTable(t *testing.T) {
	data := make([]byte, 2*1000)
	for i := range 1000 {
		binary.LittleEndian.PutUint16(data[2*i:], []uint16{2, 4, 5, 10}[i%4])
	}
	table := flow.Table{Addr: tableAt, Base: codeAt, Width: 2, Count: 1000}
	found := survey(t, table, &memory{addr: tableAt, data: data}, binary.LittleEndian)
	got := targets(t, found.Landings)
	if len(got) != 1000 {
		t.Fatalf("%d entries", len(got))
	}
	for i, addr := range got {
		if want := codeAt + []uint64{2, 4, 5, 10}[i%4]; addr != want {
			t.Fatalf("entry %d: got %#x, want %#x", i, addr, want)
		}
	}
}

func TestOtherIndirectJumps(t *testing.T) {
	for _, c := range []struct {
		jump       flow.Jump
		pointers   int
		unresolved []optcheck.Unresolved
	}{
		{flow.Jump{Kind: flow.JumpPointer}, 1, nil},
		{flow.Jump{Kind: flow.JumpUnresolved, What: "why"}, 0, []optcheck.Unresolved{{Addr: codeAt, What: "why"}}},
	} {
		a := &tabled{isaNamed(t, "amd64"), binary.LittleEndian, c.jump}
		p := optcheck.Program{Arch: a, Starts: new(optcheck.Addresses)}
		var found optcheck.Findings
		p.Survey(function(a.ISA, bytesOf(t, switchCode), codeAt).Func, &found)
		if found.Pointers != c.pointers || !slices.Equal(found.Unresolved, c.unresolved) || len(found.Landings) != 0 {
			t.Errorf("%v: %+v", c.jump.Kind, found)
		}
	}
}
