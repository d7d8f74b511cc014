//go:build unicorn

package emulator

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"xol/arch/ppc64"
	"xol/decode"
	"xol/machine"
)

var ppc64Orders = []ppc64.ISA{{}, {LittleEndian: true}}

func ppc64Guest(t *testing.T, isa ppc64.ISA) *guest {
	g := newGuest(t, isa.Name(), ppc64.Registers())
	g.file.SetWord(g.start, ppc64.R0+4, dataAt)
	return g
}

// ppc64Code returns words in memory order.
func ppc64Code(isa ppc64.ISA, words ...uint32) (code []byte) {
	for _, w := range words {
		if isa.LittleEndian {
			code = binary.LittleEndian.AppendUint32(code, w)
		} else {
			code = binary.BigEndian.AppendUint32(code, w)
		}
	}
	return code
}

func TestRunPPC64(t *testing.T) {
	const (
		r3 = ppc64.R0 + 3
		vs = ppc64.VSR0
	)
	set := func(register int, value uint64) func(*guest) {
		return func(g *guest) { g.file.SetWord(g.start, register, value) }
	}
	loaded := map[bool]uint64{true: machine.Word(dataAt, seed)}
	var swapped [8]byte
	binary.LittleEndian.PutUint64(swapped[:], loaded[true])
	loaded[false] = binary.BigEndian.Uint64(swapped[:])
	for _, c := range []struct {
		name     string
		words    []uint32
		prepare  func(*guest)
		event    machine.EventKind
		pc       uint64 // after codeAt
		register int
		value    uint64
		writes   int
	}{
		{"arithmetic", []uint32{0x3860002a}, nil, machine.EventLeft, 4, r3, 42, 0},
		{"a load", []uint32{0xe8640000}, nil, machine.EventLeft, 4, r3, 1, 0},
		{"a store", []uint32{0xf8640000}, nil, machine.EventLeft, 4, r3, 0, 1},
		{"a branch to far away", []uint32{0x48000080}, nil, machine.EventLeft, 0x80, r3, 0, 0},
		{"a trap", []uint32{0x7fe00008}, nil, machine.EventException, 4, r3, 0, 0},
		{"a system call", []uint32{0x44000002}, nil, machine.EventSyscall, 4, r3, 0, 0},
		{"not an instruction", []uint32{0}, nil, machine.EventUndefined, 4, r3, 0, 0},
		{"a loop without end", []uint32{0x48000000}, nil, machine.EventBudget, 0, r3, 0, 0},
		{"a carry in", []uint32{0x7c630194}, set(ppc64.XER, 0x20000000), machine.EventLeft, 4, r3, 1, 0}, // addze r3,r3
		{"a carry out", []uint32{0x3063ffff}, set(r3, 1), machine.EventLeft, 4, ppc64.XER, 0x20040000, 0},
		{"XER as a value", []uint32{0x7c6102a6}, set(ppc64.XER, 0xe00c007f), machine.EventLeft, 4, r3, 0xe00c007f, 0},
		{"the condition register", []uint32{0x7c600026}, set(ppc64.CR, 0x12345678), machine.EventLeft, 4, r3, 0x12345678, 0},
		{"the target register", []uint32{0x4e800460}, set(ppc64.TAR, codeAt+0x123), machine.EventLeft, 0x120, r3, 0, 0},
		{"a move to the target register", []uint32{0x7c8fcba6}, nil, machine.EventLeft, 4, ppc64.TAR, dataAt, 0},
		{"rounding up", []uint32{0xfc21102a}, func(g *guest) { // fadd f1,f1,f2
			g.file.SetWord(g.start, ppc64.FPSCR, 2)
			g.file.SetWord(g.start, vs+1, 0x3ff0000000000000)
			g.file.SetWord(g.start, vs+2, 1)
		}, machine.EventLeft, 4, vs + 1, 0x3ff0000000000001, 0},
		{"pld", []uint32{0x04000000, 0xe4640000}, nil, machine.EventLeft, 8, r3, 1, 0},
		{"pstd between others", []uint32{0x38600007, 0x04000000, 0xf4640008, 0x38630001}, nil, machine.EventLeft, 16, r3, 8, 1},
		{"plxv", []uint32{0x04000000, 0xc8640000}, set(vs+3, 7), machine.EventLeft, 8, vs + 3, 1, 0},
		{"prefixed in a loop", []uint32{0x06000000, 0x38630064, 0x4200fff8}, set(ppc64.CTR, 3), machine.EventLeft, 12, r3, 300, 0},
		{"prefixed in a loop without end", []uint32{0x06000000, 0x38630064, 0x4bfffff8}, nil, machine.EventBudget, 0, r3, 500, 0},
		{"a VSX register", []uint32{0xf0010c97}, set(vs+33, 7), machine.EventLeft, 4, vs + 32, 7, 0}, // xxlor vs32,vs33,vs33
	} {
		for _, isa := range ppc64Orders {
			t.Run(isa.Name()+" "+c.name, func(t *testing.T) {
				g := ppc64Guest(t, isa)
				if c.prepare != nil {
					c.prepare(g)
				}
				want := c.value
				switch {
				case c.name == "plxv" && isa.LittleEndian: // the first doubleword is the upper half
					want = machine.Word(dataAt+8, seed)
				case c.value == 1 && c.name != "a carry in":
					want = loaded[isa.LittleEndian]
				}
				for round := range 3 {
					out, event, writes := g.run(t, hex.EncodeToString(ppc64Code(isa, c.words...)), 10)
					if event.Kind != c.event || len(writes) != c.writes {
						t.Errorf("round %d: %v, %d writes", round, event.Kind, len(writes))
					}
					if pc := g.file.Word(out, g.file.PC); pc != codeAt+c.pc {
						t.Errorf("round %d: pc %#x", round, pc)
					}
					if v := g.file.Word(out, c.register); v != want {
						t.Errorf("round %d: %s is %#x, want %#x", round, g.file.Registers[c.register].Name, v, want)
					}
				}
			})
		}
	}
}

// TestPPC64KeepsEveryRegister runs a nop: all registers come back as they were
// set, those among them that only guest code reaches.
func TestPPC64KeepsEveryRegister(t *testing.T) {
	for _, isa := range ppc64Orders {
		g := ppc64Guest(t, isa)
		for i := range g.start {
			g.start[i] = byte(machine.Mix(uint64(i)))
		}
		for i := range g.file.Registers {
			if r := &g.file.Registers[i]; r.Kind == machine.Flags || r.Kind == machine.Control {
				g.file.SetWord(g.start, i, g.file.Word(g.start, i)&r.Free)
			}
		}
		g.file.SetWord(g.start, g.file.PC, codeAt)
		out, event, writes := g.run(t, hex.EncodeToString(ppc64Code(isa, 0x60000000)), 10)
		g.file.SetWord(out, g.file.PC, codeAt)
		for i := range g.file.Registers {
			if a, b := g.file.Bytes(g.start, i), g.file.Bytes(out, i); string(a) != string(b) {
				t.Errorf("%s: %s was %x, is %x", isa.Name(), g.file.Registers[i].Name, a, b)
			}
		}
		if event.Kind != machine.EventLeft || len(writes) != 0 {
			t.Errorf("%s: %v, %d writes", isa.Name(), event.Kind, len(writes))
		}
	}
}

func TestWhatTheEngineCannotRunOnPPC64IsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		words []uint32
		want  bool
	}{
		{"dcbz", []uint32{0x7c0037ec}, true},
		{"dcbzl", []uint32{0x7c2037ec}, true},
		{"stmw", []uint32{0xbfa40000}, true},
		{"stswi", []uint32{0x7ca485aa}, true},
		{"stswx", []uint32{0x7ca4352a}, true},
		{"lmw", []uint32{0xbba40000}, false},
		{"dcbt", []uint32{0x7c00322c}, false},
		{"prefixed", []uint32{0x06000001, 0x38640010}, false},
		{"prefixed on accumulators", []uint32{0x0790f0ff, 0xec044018}, true},
		{"mffs", []uint32{0xfc20048e}, true},
		{"mffsl", []uint32{0xfc38048e}, true},
		{"mcrfs", []uint32{0xfc000080}, true},
		{"fadd.", []uint32{0xfc21102b}, true},
		{"fadds.", []uint32{0xec21102b}, true},
		{"fadd", []uint32{0xfc21102a}, false},
		{"xsaddqpo", []uint32{0xfc221809}, false},
		{"mtfsf", []uint32{0xfdfe0d8e}, false},
		{"mftb", []uint32{0x7c6c42a6}, true},
		{"mfspr of an identity", []uint32{0x7c7f42a6}, true},
		{"mflr", []uint32{0x7c6802a6}, false},
		{"mfmsr", []uint32{0x7c6000a6}, true},
		{"sc", []uint32{0x44000002}, true},
		{"addi", []uint32{0x38630001}, false},
	} {
		for _, isa := range ppc64Orders {
			g := ppc64Guest(t, isa)
			var inst decode.Inst
			if err := isa.Decode(&inst, ppc64Code(isa, c.words...), codeAt); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if reason := g.Skip(&inst); (reason != "") != c.want {
				t.Errorf("%s, %s: %q", isa.Name(), c.name, reason)
			}
		}
	}
}

// TestPrefixedAcrossABoundaryIsRefused: no CPU executes what a moved form would.
func TestPrefixedAcrossABoundaryIsRefused(t *testing.T) {
	for _, isa := range ppc64Orders {
		g := ppc64Guest(t, isa)
		for at := uint64(codeAt); at < codeAt+64; at += 4 {
			var inst decode.Inst
			if err := isa.Decode(&inst, ppc64Code(isa, 0x06000001, 0x38640010), at); err != nil {
				t.Fatal(err)
			}
			if reason := g.Skip(&inst); (reason != "") != (at == codeAt+60) {
				t.Errorf("%s, %#x: %q", isa.Name(), at, reason)
			}
		}
	}
}
