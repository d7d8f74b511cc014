package optcheck_test

import (
	"reflect"
	"testing"

	"xol/optcheck"
	"xol/place"
)

func TestBlocks(t *testing.T) {
	land := func(kind place.LandingKind, offsets ...uint64) (ls place.Landings) {
		for _, off := range offsets {
			ls = append(ls, place.Landing{Addr: codeAt + off, From: codeAt, Kind: kind})
		}
		return ls
	}
	for _, c := range []struct {
		name, isa, code string
		landings        place.Landings
		unresolved      bool // the jump at the start
		want            []optcheck.Block
	}{
		{name: "nothing", isa: "amd64"},
		{name: "one block", isa: "amd64", code: "90 90 c3",
			want: []optcheck.Block{{From: 0, To: 3, Exits: optcheck.ExitReturn}}},
		{name: "end without a return", isa: "amd64", code: "90 90",
			want: []optcheck.Block{{From: 0, To: 2, Exits: optcheck.ExitFall}}},
		// test %edi,%edi; jz 6; xor %eax,%eax; ret
		{name: "branch over an instruction", isa: "amd64", code: "85ff 7402 31c0 c3",
			want: []optcheck.Block{{0, 2, []int{1, 2}, 0}, {2, 3, []int{2}, 0}, {3, 4, nil, optcheck.ExitReturn}}},
		// dec %ecx; jnz 0; ret
		{name: "loop", isa: "amd64", code: "ffc9 75fc c3",
			want: []optcheck.Block{{0, 2, []int{0, 1}, 0}, {2, 3, nil, optcheck.ExitReturn}}},
		// jz 2: both ways lead to the same block
		{name: "branch to the next", isa: "amd64", code: "7400 c3",
			want: []optcheck.Block{{0, 1, []int{1}, 0}, {1, 2, nil, optcheck.ExitReturn}}},
		// jmp 0x12 beyond the end
		{name: "tail call", isa: "amd64", code: "90 eb10",
			want: []optcheck.Block{{From: 0, To: 2, Exits: optcheck.ExitTail}}},
		// jz into the middle of mov $7,%eax
		{name: "branch into an instruction", isa: "amd64", code: "7401 b807000000 c3",
			want: []optcheck.Block{{0, 1, []int{1}, optcheck.ExitTail}, {1, 3, nil, optcheck.ExitReturn}}},
		// call 0x100; nop; ret
		{name: "call", isa: "amd64", code: "e8fb000000 90 c3",
			want: []optcheck.Block{{From: 0, To: 3, Exits: optcheck.ExitReturn}}},
		// call 0x100; the nop after it is landed on, too
		{name: "call before a landing", isa: "amd64", code: "e8fb000000 90 c3", landings: land(place.LandPointer, 5),
			want: []optcheck.Block{{0, 1, []int{1}, 0}, {1, 3, nil, optcheck.ExitReturn}}},
		{name: "call that never returns", isa: "amd64", code: "90 e8fb000000",
			want: []optcheck.Block{{From: 0, To: 2}}},
		{name: "halt", isa: "amd64", code: "f4 90 c3",
			want: []optcheck.Block{{0, 1, []int{1}, optcheck.ExitStop}, {1, 3, nil, optcheck.ExitReturn}}},
		{name: "system call", isa: "amd64", code: "0f05 90 c3",
			want: []optcheck.Block{{From: 0, To: 3, Exits: optcheck.ExitReturn}}},
		{name: "trap", isa: "amd64", code: "90 0f0b 90 c3",
			want: []optcheck.Block{{From: 0, To: 2, Exits: optcheck.ExitStop}, {From: 2, To: 4, Exits: optcheck.ExitReturn}}},
		{name: "no instruction", isa: "amd64", code: "90 06 90 c3",
			want: []optcheck.Block{{From: 0, To: 2, Exits: optcheck.ExitStop}, {From: 2, To: 4, Exits: optcheck.ExitReturn}}},
		{name: "pointer in data", isa: "amd64", code: "90 90 c3", landings: land(place.LandPointer, 1),
			want: []optcheck.Block{{0, 1, []int{1}, 0}, {1, 3, nil, optcheck.ExitReturn}}},
		// jmp *%rax; then four blocks
		{name: "jump table", isa: "amd64", code: switchCode, landings: land(place.LandSwitch, 2, 4, 5),
			want: []optcheck.Block{{0, 1, []int{1, 2, 3}, 0}, {1, 2, []int{2}, 0}, {2, 3, []int{3}, 0}, {3, 5, nil, optcheck.ExitReturn}}},
		{name: "jump table that leaves", isa: "amd64", code: switchCode, landings: land(place.LandSwitch, 2, 0x1000),
			want: []optcheck.Block{{0, 1, []int{1}, optcheck.ExitTail}, {1, 5, nil, optcheck.ExitReturn}}},
		{name: "jump to a pointer", isa: "amd64", code: "ffe0",
			want: []optcheck.Block{{From: 0, To: 1, Exits: optcheck.ExitPointer}}},
		{name: "unresolved jump", isa: "amd64", code: "ffe0 90 c3", unresolved: true,
			want: []optcheck.Block{{From: 0, To: 1, Exits: optcheck.ExitUnresolved}, {From: 1, To: 3, Exits: optcheck.ExitReturn}}},
		// cbz x0, 8; nop; ret
		{name: "arm64", isa: "arm64", code: "400000b4 1f2003d5 c0035fd6",
			want: []optcheck.Block{{0, 1, []int{1, 2}, 0}, {1, 2, []int{2}, 0}, {2, 3, nil, optcheck.ExitReturn}}},
		// beq 8; nop; beqlr; blr
		{name: "conditional return", isa: "ppc64", code: "41820008 60000000 4d820020 4e800020",
			want: []optcheck.Block{{0, 1, []int{1, 2}, 0}, {1, 2, []int{2}, 0}, {2, 3, []int{3}, optcheck.ExitReturn}, {3, 4, nil, optcheck.ExitReturn}}},
		// trap on a condition; blr
		{name: "conditional trap", isa: "ppc64", code: "0c830007 4e800020",
			want: []optcheck.Block{{0, 1, []int{1}, optcheck.ExitStop}, {1, 2, nil, optcheck.ExitReturn}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := function(isaNamed(t, c.isa), bytesOf(t, c.code), codeAt)
			f.Landings = c.landings
			if c.unresolved {
				f.Unresolved = []optcheck.Unresolved{{Addr: codeAt, What: "why"}}
			}
			var s optcheck.Scratch
			if got := optcheck.Blocks(f, &s); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
