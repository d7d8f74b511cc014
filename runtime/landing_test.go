//go:build unicorn

package runtime_test

import (
	"fmt"
	"testing"

	"xol/arch"
	"xol/guest"
	"xol/internal/isatest"
	"xol/machine"
	"xol/runtime"
)

// TestJumpsOfOneInstruction says where there is nothing to land in: on ISAs whose jump is
// a word, which takes the place of one instruction.
func TestJumpsOfOneInstruction(t *testing.T) {
	for _, name := range arch.Names() {
		isa, err := isatest.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		same(t, name+": other instructions start inside a jump", isa.JumpLen() > isa.Align(), name == "amd64")
		same(t, name+": traps", isa.Traps() != nil, name == "amd64")
	}
}

// adders are instructions that add to eax, or none, by their lengths: lengths from 2 on
// add a number of their own.
var adders = [...]string{1: "90", 2: "0401", 3: "83c002", 4: "6683c004", 5: "0508000000"}

// composed returns functions that start with every sequence of instructions that a jump
// may replace, each with the offsets of those that start inside it, and of what follows.
func composed() (list []composition) {
	var grow func(c composition, end uint64)
	grow = func(c composition, end uint64) {
		if end >= 5 {
			c.code += "89d1" + "c3"
			c.offsets = append(c.offsets[:len(c.offsets):len(c.offsets)], end)
			list = append(list, c)
			return
		}
		for n := uint64(1); n < uint64(len(adders)); n++ {
			next := c
			next.code += adders[n]
			next.adds = append(c.adds[:len(c.adds):len(c.adds)], [...]uint64{1: 0, 2: 1, 3: 2, 4: 4, 5: 8}[n])
			next.offsets = append(c.offsets[:len(c.offsets):len(c.offsets)], end)
			grow(next, end+n)
		}
	}
	grow(composition{}, 0)
	return list
}

type composition struct {
	code    string
	adds    []uint64 // what each instruction adds
	offsets []uint64 // of instructions, and of what follows them
}

// TestLandingsInsideJumps has a program jump to a symbol and a constant, and a callee add
// to its return address, so that they land at each instruction that a jump has replaced:
// it goes on as without the probe.
func TestLandingsInsideJumps(t *testing.T) {
	list := composed()
	t.Logf("%d functions", len(list))
	functions := []snippet{
		{"jump", "31c0ffe6"},   // xor eax,eax; jmp rsi
		{"skip", "48013424c3"}, // add [rsp],rsi; ret
	}
	for i, c := range list {
		functions = append(functions, snippet{fmt.Sprintf("f%d", i), c.code})
		// xor eax,eax; call skip; and the same instructions
		at := uint32(len(functions)) * 0x100
		rel := uint32(0x100) - (at + 7)
		functions = append(functions, snippet{fmt.Sprintf("g%d", i), fmt.Sprintf("31c0e8%02x%02x%02x%02x", byte(rel), byte(rel>>8), byte(rel>>16), byte(rel>>24)) + c.code})
	}
	for _, stepping := range []runtime.Stepping{runtime.StepBreakpoint, runtime.StepTrap} {
		t.Run(stepping.String(), func(t *testing.T) {
			p := openSnippets(t, "amd64", functions, guest.Options{}, runtime.Options{Stepping: stepping})
			for i, c := range list {
				for prefix, ahead := range map[string]uint64{"f": 0, "g": 7} {
					name := fmt.Sprintf("%s%d", prefix, i)
					land := func(k int) (got, want uint64) {
						for _, n := range c.adds[k:] {
							want += n
						}
						if ahead > 0 {
							return p.call(0, name, 0, c.offsets[k]), want
						}
						return p.call(0, "jump", 0, p.at[name]+c.offsets[k]), want
					}
					probe := attach(t, p, runtime.Probe{Symbol: name, Offset: ahead})

					for _, optimized := range []bool{false, true} {
						same(t, name+": a jump", probe.Optimized(), optimized)
						hits := probe.Hits()
						for k := range c.offsets {
							got, want := land(k)
							same(t, fmt.Sprintf("%s (%s), landing at +%d, optimized=%t", name, c.code, c.offsets[k], optimized), got, want)
						}
						same(t, "hits", probe.Hits(), hits+1)
						p.settle()
					}
					if err := probe.Close(); err != nil {
						t.Fatal(err)
					}
					p.settle()
				}
			}
			p.textIsOwn()
		})
	}
}

// cramped is a machine that has no memory far from its program.
type cramped struct{ *guest.Machine }

func (c cramped) Map(addr, size uint64, perm machine.Perm) error {
	if addr > snippetText+0x4000_00 && addr < 1<<40 {
		return guest.ErrMapped
	}
	return c.Machine.Map(addr, size, perm)
}

// TestNoRoomForTraps has no memory where buffers would have to be for a jump that traps
// inside: the breakpoint stays, and landings are none.
func TestNoRoomForTraps(t *testing.T) {
	p := openSnippets(t, "amd64", []snippet{
		{"far", "6683c00483c002c3"}, {"near", "0501000000c3"}, {"jump", "31c0ffe6"},
	}, guest.Options{}, runtime.Options{})
	r, err := runtime.New(cramped{p.m}, p.isa, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.Runtime = r
	if _, err := p.Load("snippets", p.img); err != nil {
		t.Fatal(err)
	}
	for name, optimized := range map[string]bool{"far": false, "near": true} {
		probe := attach(t, p, runtime.Probe{Symbol: name})

		p.settle()
		same(t, name+": a jump", probe.Optimized(), optimized)
	}
	same(t, "the result of a landing", p.call(0, "jump", 0, p.at["far"]+4), 2)
}
