//go:build unicorn

package emulator

import (
	"encoding/hex"
	"testing"

	"xol/arch/amd64"
	"xol/arch/arm64"
	"xol/decode"
	"xol/machine"
)

const (
	codeAt = 0x2a00_0000_1000
	dataAt = 0x1230_0000_0000
	seed   = 7
)

// guest is an emulator with what a test needs to start it.
type guest struct {
	*Emulator
	file  *machine.File
	start machine.State
}

func newGuest(t *testing.T, name string, file *machine.File) *guest {
	t.Helper()
	e, err := Open(name, file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	s := file.NewState()
	file.SetWord(s, file.PC, codeAt)
	file.SetWord(s, file.SP, 0x0e00_0000_0000)
	return &guest{e, file, s}
}

// run executes hexadecimal code that stands at codeAt.
func (g *guest) run(t *testing.T, text string, steps int) (machine.State, machine.Event, []machine.Write) {
	t.Helper()
	code, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Load([]machine.Part{{Addr: codeAt, Code: code}}); err != nil {
		t.Fatal(err)
	}
	out := g.file.NewState()
	event, writes, err := g.Run(out, g.start, seed, machine.Range{Lo: codeAt, Hi: codeAt + uint64(len(code))}, steps)
	if err != nil {
		t.Fatal(err)
	}
	return out, event, writes
}

func amd64Guest(t *testing.T) *guest {
	g := newGuest(t, "amd64", amd64.Registers())
	g.file.SetWord(g.start, amd64.RBX, dataAt)
	g.file.SetWord(g.start, amd64.RFLAGS, 0x202)
	g.file.SetWord(g.start, amd64.MXCSR, 0x1f80)
	return g
}

func arm64Guest(t *testing.T) *guest {
	g := newGuest(t, "arm64", arm64.Registers())
	g.file.SetWord(g.start, arm64.X0+1, dataAt)
	return g
}

func TestRun(t *testing.T) {
	guests := map[string]func(*testing.T) *guest{"amd64": amd64Guest, "arm64": arm64Guest}
	word := machine.Word(dataAt, seed)
	for _, c := range []struct {
		name, isa, code string
		event           machine.EventKind
		pc              uint64 // after codeAt
		register        int
		value           uint64
		writes          int
	}{
		{"arithmetic", "amd64", "4883c02a", machine.EventLeft, 4, amd64.RAX, 42, 0},
		{"arithmetic", "arm64", "00a80091", machine.EventLeft, 4, arm64.X0, 42, 0},
		{"a load from memory that appears", "amd64", "488b03", machine.EventLeft, 3, amd64.RAX, word, 0},
		{"a load from memory that appears", "arm64", "200040f9", machine.EventLeft, 4, arm64.X0, word, 0},
		{"a store", "amd64", "48c70311223344", machine.EventLeft, 7, amd64.RAX, 0, 1},
		{"a store", "arm64", "200000f9", machine.EventLeft, 4, arm64.X0, 0, 1},
		{"a jump to far away", "amd64", "eb7e", machine.EventLeft, 0x80, amd64.RAX, 0, 0},
		{"a jump to far away", "arm64", "20000014", machine.EventLeft, 0x80, arm64.X0, 0, 0},
		{"a breakpoint", "amd64", "cc", machine.EventException, 1, amd64.RAX, 0, 0},
		{"a breakpoint", "arm64", "800020d4", machine.EventException, 0, arm64.X0, 0, 0},
		{"a system call", "arm64", "010000d4", machine.EventSyscall, 4, arm64.X0, 0, 0},
		{"not an instruction", "amd64", "0f0b", machine.EventUndefined, 0, amd64.RAX, 0, 0},
		{"not an instruction", "arm64", "00000000", machine.EventUndefined, 0, arm64.X0, 0, 0},
		{"a loop without end", "amd64", "ebfe", machine.EventBudget, 0, amd64.RAX, 0, 0},
		{"a loop without end", "arm64", "00000014", machine.EventBudget, 0, arm64.X0, 0, 0},
	} {
		t.Run(c.isa+" "+c.name, func(t *testing.T) {
			g := guests[c.isa](t)
			for round := range 3 {
				out, event, writes := g.run(t, c.code, 10)
				if event.Kind != c.event || len(writes) != c.writes {
					t.Errorf("round %d: %v, %d writes", round, event.Kind, len(writes))
				}
				if pc := g.file.Word(out, g.file.PC); pc != codeAt+c.pc {
					t.Errorf("round %d: pc %#x", round, pc)
				}
				if v := g.file.Word(out, c.register); v != c.value {
					t.Errorf("round %d: %s is %#x, want %#x", round, g.file.Registers[c.register].Name, v, c.value)
				}
			}
		})
	}
}

// TestNewCodeAtAnOldAddress loads other code where code has run, also across a
// page's end, where the engine keeps what it translated in two places.
func TestNewCodeAtAnOldAddress(t *testing.T) {
	g := amd64Guest(t)
	for _, at := range []uint64{codeAt, codeAt + 0xffe} {
		for _, want := range []uint64{1, 2, 3} {
			code := []byte{0x90, 0x48, 0x83, 0xc0, byte(want)}
			if err := g.Load([]machine.Part{{Addr: at, Code: code}}); err != nil {
				t.Fatal(err)
			}
			g.file.SetWord(g.start, g.file.PC, at)
			out := g.file.NewState()
			if _, _, err := g.Run(out, g.start, seed, machine.Range{Lo: at, Hi: at + 5}, 10); err != nil {
				t.Fatal(err)
			}
			if got := g.file.Word(out, amd64.RAX); got != want {
				t.Errorf("at %#x: rax is %d, want %d", at, got, want)
			}
		}
	}
}

func TestContentsDependOnTheSeed(t *testing.T) {
	g := amd64Guest(t)
	code := []byte{0x48, 0x8b, 0x03} // mov (%rbx),%rax
	if err := g.Load([]machine.Part{{Addr: codeAt, Code: code}}); err != nil {
		t.Fatal(err)
	}
	out := g.file.NewState()
	for _, seed := range []uint64{1, 2, 1, 3} {
		if _, _, err := g.Run(out, g.start, seed, machine.Range{Lo: codeAt, Hi: codeAt + 3}, 10); err != nil {
			t.Fatal(err)
		}
		if got, want := g.file.Word(out, amd64.RAX), machine.Word(dataAt, seed); got != want {
			t.Errorf("seed %d: %#x, want %#x", seed, got, want)
		}
	}
}

// TestSecondFaultIsNoDoubleFault divides by zero twice: the engine takes the
// second time for a double fault.
func TestSecondFaultIsNoDoubleFault(t *testing.T) {
	g := amd64Guest(t)
	_, first, _ := g.run(t, "48f7f1", 10)
	_, second, _ := g.run(t, "48f7f1", 10)
	if first != second || first.Kind != machine.EventException {
		t.Errorf("first %+v, then %+v", first, second)
	}
}

func TestWhatTheEngineRunsWronglyIsRefused(t *testing.T) {
	g := amd64Guest(t)
	for name, text := range map[string]string{
		"VEX":                      "c5f1efc1",       // vpxor %xmm1,%xmm1,%xmm0
		"EVEX":                     "62f17d48efc1",   // vpxord %zmm1,%zmm0,%zmm0
		"RIP-relative shld by imm": "0fa40511111111", // the immediate follows
		"popf":                     "9d",
		"rdtsc":                    "0f31",
		"a privileged one":         "f4",
	} {
		code, err := hex.DecodeString(text + "05")
		if err != nil {
			t.Fatal(err)
		}
		inst := decodeAMD64(t, code)
		if g.Skip(inst) == "" {
			t.Errorf("%s is not refused", name)
		}
	}
	if reason := g.Skip(decodeAMD64(t, []byte{0x48, 0x01, 0xd8})); reason != "" {
		t.Errorf("add is refused: %s", reason)
	}
}

func decodeAMD64(t *testing.T, code []byte) *decode.Inst {
	t.Helper()
	inst := new(decode.Inst)
	if err := (amd64.ISA{}).Decode(inst, code, codeAt); err != nil {
		t.Fatalf("%x: %v", code, err)
	}
	return inst
}
