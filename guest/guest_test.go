//go:build unicorn

package guest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"xol/arch"
	"xol/arch/amd64"
	"xol/arch/arm64"
	"xol/arch/ppc64"
	"xol/internal/isatest"
	"xol/internal/skip"
	"xol/machine"
)

func open(t *testing.T, opt Options, isa string) *Machine {
	t.Helper()
	var err error
	if opt.ISA, err = isatest.Named(isa); err != nil {
		t.Fatal(err)
	}
	m, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

const (
	textAddr = 0xffff_8000_1000_0000
	nowhere  = 0xffff_8000_3000_0000
)

// isas holds what the tests write in each ISA's machine language; that of ppc64
// is words in big-endian order, whatever the guest's.
var isas = []struct {
	name      string
	arg       int    // register of the first argument
	add       string // adds 1 to it
	ret       string
	spin      string // jumps to itself
	load      string // loads a word at the first argument into another register
	undefined string
	syscall   string
	trap      string
	number    uint64 // of the trap
	after     uint64 // from the trap to where its handler finds the program counter
	refused   string // what the engine runs wrongly
	mnemonic  string // of it
}{
	{"amd64", amd64.RDI, "48ffc7", "c3", "ebfe", "488b07", "0f0b", "0f05", "cc", 0, 1, "c5f1efc0", "vpxor"},
	{"arm64", arm64.X0, "00040091", "c0035fd6", "00000014", "010040f9", "00000000", "010000d4", "800020d4", 4, 0, "051ed94e", "famax"},
	{"ppc64", ppc64.R0 + 3, "38630001", "4e800020", "48000000", "e8830000", "00000000", "44000002", "7fe00008", 0, 0, "7c001fec", "dcbz"},
	{"ppc64le", ppc64.R0 + 3, "38630001", "4e800020", "48000000", "e8830000", "00000000", "44000002", "7fe00008", 0, 0, "7c001fec", "dcbz"},
}

// put writes code to at, and maps two pages there before, if there are none.
func put(t *testing.T, m *Machine, at uint64, text string) {
	t.Helper()
	code, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	if m.ISA.Name() == "ppc64le" {
		for i := 0; i < len(code); i += 4 {
			slices.Reverse(code[i : i+4])
		}
	}
	if m.memory.pages[at&^pageMask] == nil {
		if err := m.Map(at, 2*PageSize, machine.PermRead|machine.PermExec); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Write(at, code); err != nil {
		t.Fatal(err)
	}
}

// start has a CPU call code at textAddr with one argument.
func start(t *testing.T, c *CPU, arg uint64) {
	t.Helper()
	if err := c.Call(machine.Function{Entry: textAddr}, arg); err != nil {
		t.Fatal(err)
	}
}

// wantEvent runs a CPU until it has the event.
func wantEvent(t *testing.T, c *CPU, want machine.Event) {
	t.Helper()
	got, err := c.Run(1000)
	if err != nil {
		t.Fatal(err)
	}
	got.Inst, got.Reason = want.Inst, want.Reason
	if got != want {
		t.Fatalf("event %+v, want %+v", got, want)
	}
}

// TestEvents has each event follow two instructions: their effect is there, and
// nothing after happens.
func TestEvents(t *testing.T) {
	for _, i := range isas {
		size := uint64(len(i.add)) / 2
		at := textAddr + 2*size
		for _, c := range []struct {
			name string
			code string
			want machine.Event
			pc   uint64
		}{
			{"return", i.ret, machine.Event{Kind: machine.EventReturned, Addr: ExitAddress}, ExitAddress},
			{"breakpoint", i.trap, machine.Event{Kind: machine.EventBreakpoint, Addr: at, Number: i.number}, at + i.after},
			{"undefined", i.undefined, machine.Event{Kind: machine.EventUndefined, Addr: at}, at},
			{"system call", i.syscall, machine.Event{Kind: machine.EventSyscall, Addr: at + uint64(len(i.syscall))/2}, at + uint64(len(i.syscall))/2},
			{"fault", i.load, machine.Event{Kind: machine.EventFault, Addr: at, Access: machine.AccessRead, Page: nowhere}, at},
			{"refused", i.refused, machine.Event{Kind: machine.EventRefused, Addr: at}, at},
			{"budget", i.spin, machine.Event{Kind: machine.EventBudget, Addr: at}, at},
		} {
			for _, exact := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s %t", i.name, c.name, exact), func(t *testing.T) {
					m := open(t, Options{Exact: exact}, i.name)
					put(t, m, textAddr, i.add+i.add+c.code+i.add)
					cpu := m.CPUs[0]
					for range 2 {
						start(t, cpu, nowhere)
						wantEvent(t, cpu, c.want)
						if got := cpu.Reg(i.arg); got != nowhere+2 || cpu.PC() != c.pc {
							t.Errorf("argument %#x, program counter %#x, want %#x, %#x", got, cpu.PC(), uint64(nowhere+2), c.pc)
						}
					}
				})
			}
		}
	}
}

func TestRefusalNamesTheInstruction(t *testing.T) {
	for _, i := range isas {
		m := open(t, Options{}, i.name)
		put(t, m, textAddr, i.add+i.refused+i.ret)
		_, err := m.CPUs[0].CallAndRun(1000, machine.Function{Entry: textAddr})
		var unexpected *UnexpectedError
		if !errors.As(err, &unexpected) || unexpected.Event.Reason == "" || !strings.Contains(err.Error(), i.mnemonic) {
			t.Errorf("%s: %v", i.name, err)
		}
	}
}

// TestRefusedInstructionIsReplaced patches what was refused, and back.
func TestRefusedInstructionIsReplaced(t *testing.T) {
	for _, i := range isas {
		m := open(t, Options{}, i.name)
		at := textAddr + uint64(len(i.add))/2
		for range 3 {
			put(t, m, textAddr, i.add+i.refused+i.ret)
			start(t, m.CPUs[0], 5)
			wantEvent(t, m.CPUs[0], machine.Event{Kind: machine.EventRefused, Addr: at})
			put(t, m, textAddr, i.add+i.add+i.ret+i.ret)
			start(t, m.CPUs[0], 5)
			wantEvent(t, m.CPUs[0], machine.Event{Kind: machine.EventReturned, Addr: ExitAddress})
			if got := m.CPUs[0].Reg(i.arg); got != 7 {
				t.Errorf("%s: %d, want 7", i.name, got)
			}
		}
	}
}

// TestPatchReachesEveryCPU changes a loop that all CPUs are in.
func TestPatchReachesEveryCPU(t *testing.T) {
	for _, i := range isas {
		for _, exact := range []bool{false, true} {
			m := open(t, Options{CPUs: 3, Exact: exact, Seed: 3}, i.name)
			put(t, m, textAddr, i.spin+i.add+i.ret)
			for _, c := range m.CPUs {
				start(t, c, uint64(c.Index))
			}
			if cpu, ev, err := m.Run(1000); cpu >= 0 || err != nil {
				t.Fatalf("%s: %v, %v", i.name, ev, err)
			}
			put(t, m, textAddr, i.add[:len(i.spin)])
			put(t, m, textAddr, i.add)
			for range m.CPUs {
				cpu, ev, err := m.Run(1000)
				if err != nil || cpu < 0 || ev.Kind != machine.EventReturned {
					t.Fatalf("%s: %+v, %v", i.name, ev, err)
				}
			}
			if cpu, _, err := m.Run(1000); cpu >= 0 || err != nil {
				t.Errorf("%s: CPU %d still runs (%v)", i.name, cpu, err)
			}
		}
	}
}

// TestExactBudget stops before every instruction of a straight line.
func TestExactBudget(t *testing.T) {
	for _, i := range isas {
		m := open(t, Options{Exact: true}, i.name)
		put(t, m, textAddr, strings.Repeat(i.add, 20)+i.ret)
		c := m.CPUs[0]
		start(t, c, 0)
		done := uint64(0)
		for step := 1; done+uint64(step) <= 20; step++ {
			if ev, err := c.Run(step); err != nil || ev.Kind != machine.EventBudget {
				t.Fatalf("%s: %+v, %v", i.name, ev, err)
			}
			done += uint64(step)
			if got, pc := c.Reg(i.arg), c.PC(); got != done || pc != textAddr+done*uint64(len(i.add))/2 {
				t.Errorf("%s: %d instructions had an effect, want %d; program counter %#x", i.name, got, done, pc)
			}
		}
	}
}

// TestLongBlocks runs more instructions in a line than a block of the engine
// holds, across pages.
func TestLongBlocks(t *testing.T) {
	for _, i := range isas {
		n := int(PageSize+1000) / (len(i.add) / 2)
		for _, exact := range []bool{false, true} {
			m := open(t, Options{Exact: exact}, i.name)
			put(t, m, textAddr, strings.Repeat(i.add, n)+i.ret)
			for range 2 {
				if _, err := m.CPUs[0].CallAndRun(n+10, machine.Function{Entry: textAddr}, 1); err != nil {
					t.Fatalf("%s: %v", i.name, err)
				}
				if got := m.CPUs[0].Reg(i.arg); got != uint64(n)+1 {
					t.Errorf("%s: %d, want %d", i.name, got, n+1)
				}
			}
		}
	}
}

// TestFaultsAreRepeatable runs into the same exception again and again, and goes
// on elsewhere in between.
func TestFaultsAreRepeatable(t *testing.T) {
	for _, i := range isas {
		m := open(t, Options{}, i.name)
		put(t, m, textAddr, i.load+i.ret)
		c := m.CPUs[0]
		for n := range 5 {
			start(t, c, nowhere+8)
			wantEvent(t, c, machine.Event{Kind: machine.EventFault, Addr: textAddr, Access: machine.AccessRead, Page: nowhere})
			if n%2 == 0 {
				c.SetPC(textAddr + uint64(len(i.load))/2)
			} else {
				c.SetReg(i.arg, textAddr)
			}
			wantEvent(t, c, machine.Event{Kind: machine.EventReturned, Addr: ExitAddress})
		}
	}
}

func TestPermissions(t *testing.T) {
	for _, i := range isas {
		m := open(t, Options{}, i.name)
		put(t, m, textAddr, i.load+i.ret)
		c := m.CPUs[0]
		for _, step := range []struct {
			perm   machine.Perm
			arg    uint64
			access machine.Access
			fault  bool
		}{
			{machine.PermRead | machine.PermExec, textAddr, 0, false},
			{machine.PermExec, textAddr, machine.AccessRead, true},
			{machine.PermRead | machine.PermWrite, textAddr, machine.AccessFetch, true},
			{machine.PermRead | machine.PermWrite | machine.PermExec, textAddr, 0, false},
			{0, textAddr, machine.AccessFetch, true},
		} {
			if err := m.Protect(textAddr, PageSize, step.perm); err != nil {
				t.Fatal(err)
			}
			start(t, c, step.arg)
			want := machine.Event{Kind: machine.EventReturned, Addr: ExitAddress}
			if step.fault {
				want = machine.Event{Kind: machine.EventFault, Addr: textAddr, Access: step.access, Page: textAddr}
			}
			wantEvent(t, c, want)
		}
		if err := m.Unmap(textAddr, 2*PageSize); err != nil {
			t.Fatal(err)
		}
		start(t, c, textAddr)
		wantEvent(t, c, machine.Event{Kind: machine.EventFault, Addr: textAddr, Access: machine.AccessFetch, Page: textAddr})
		put(t, m, textAddr, i.ret)
		start(t, c, 0)
		wantEvent(t, c, machine.Event{Kind: machine.EventReturned, Addr: ExitAddress})
	}
}

// TestOneRegister sets one register, runs something, and finds it again.
func TestOneRegister(t *testing.T) {
	for _, i := range isas {
		m := open(t, Options{}, i.name)
		put(t, m, textAddr, i.trap)
		c, state := m.CPUs[0], m.File.NewState()
		for n, r := range m.File.Registers {
			if r.Kind != machine.General && r.Kind != machine.Vector {
				continue
			}
			want := machine.Mix(uint64(n))
			if r.Size < 8 {
				want &= 1<<(8*r.Size) - 1
			}
			start(t, c, 0)
			c.SetReg(n, want)
			wantEvent(t, c, machine.Event{Kind: machine.EventBreakpoint, Addr: textAddr, Number: i.number})
			c.Save(state)
			if got := m.File.Word(state, n); got != want {
				t.Errorf("%s: %s is %#x, want %#x", i.name, r.Name, got, want)
			}
		}
	}
}

// TestRegisters sets all registers, runs something, and finds them again.
func TestRegisters(t *testing.T) {
	for _, i := range isas {
		m := open(t, Options{}, i.name)
		put(t, m, textAddr, i.add+i.trap)
		c, f := m.CPUs[0], m.File
		start(t, c, 0)
		want := f.NewState()
		c.Save(want)
		linked := map[int]bool{}
		for _, l := range m.model.Links {
			linked[l.Index] = true
		}
		for n, r := range f.Registers {
			switch {
			case (r.Kind == machine.General || r.Kind == machine.Vector) && (linked[n] || c.hidden != nil):
				value := f.Bytes(want, n)
				for b := range value[:min(16, len(value))] {
					value[b] = byte(machine.Mix(uint64(n*64 + b)))
				}
			case r.Kind == machine.Flags:
				f.SetWord(want, n, f.Word(want, n)|r.Free&0x50000044)
			}
		}
		c.Restore(want)
		f.SetWord(want, f.PC, textAddr+uint64(len(i.add))/2+i.after)
		f.SetWord(want, i.arg, f.Word(want, i.arg)+1)
		if i.name == "amd64" { // what adding leaves
			f.SetWord(want, amd64.RFLAGS, 0)
		}
		wantEvent(t, c, machine.Event{Kind: machine.EventBreakpoint, Addr: textAddr + uint64(len(i.add))/2, Number: i.number})
		got := f.NewState()
		c.Save(got)
		if i.name == "amd64" {
			f.SetWord(got, amd64.RFLAGS, 0)
		}
		for n := range f.Registers {
			if g, w := f.Bytes(got, n), f.Bytes(want, n); string(g) != string(w) {
				t.Errorf("%s: %s is %x, want %x", i.name, f.Registers[n].Name, g, w)
			}
		}
	}
}

// TestTurns has CPUs add to a sum, atomically and under a lock: nothing is lost,
// the order depends on the seed only, and differs with it.
func TestTurns(t *testing.T) {
	eachProgram(t, func(t *testing.T, isa, level string) {
		seen := map[string]bool{}
		for _, seed := range []uint64{1, 1, 2, 3} {
			order := addTogether(t, isa, level, seed)
			if known := seen[order]; known != (seed == 1 && len(seen) == 1) {
				t.Errorf("seed %d: the order was seen before: %t", seed, known)
			}
			seen[order] = true
		}
	})
}

// addTogether returns in which order CPUs came to an end, and where the others
// were.
func addTogether(t *testing.T, isa, level string, seed uint64) (order string) {
	m, p := load(t, Options{CPUs: 3, Exact: true, Seed: seed, Turn: 7}, isa, level)
	const times = 50
	for _, c := range m.CPUs {
		name, args := "add_many", []uint64{bufferAddr, times}
		if c.Index > 0 {
			name, args = "add_locked", []uint64{bufferAddr + 8, bufferAddr + 16, times}
		}
		f, err := p.Function(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Call(f, args...); err != nil {
			t.Fatal(err)
		}
	}
	for range m.CPUs {
		cpu, ev, err := m.Run(1_000_000)
		if err != nil || cpu < 0 || ev.Kind != machine.EventReturned || m.CPU(cpu).Result() != times {
			t.Fatalf("%+v, %v", ev, err)
		}
		for _, other := range m.CPUs {
			order += fmt.Sprintf("%d %x ", cpu, other.PC())
		}
	}
	for i, want := range []uint64{times, 0, 2 * times} {
		if got, err := m.ReadWord(bufferAddr + uint64(8*i)); err != nil || got != want {
			t.Errorf("word %d: %d, want %d (%v)", i, got, want, err)
		}
	}
	return order
}

// TestSingleStep follows a function by the ISA's own exception and by budgets of
// one: both see the same instructions.
func TestSingleStep(t *testing.T) {
	for _, i := range isas {
		m := open(t, Options{Exact: true}, i.name)
		put(t, m, textAddr, i.add+i.add+i.ret)
		c := m.CPUs[0]
		size := uint64(len(i.add)) / 2
		start(t, c, 0)
		if err := c.SingleStep(true); err != nil {
			if !errors.Is(err, ErrNoStep) || i.name != "arm64" {
				t.Errorf("%s: %v", i.name, err)
			}
			continue
		}
		for n := uint64(1); n <= 2; n++ {
			wantEvent(t, c, machine.Event{Kind: machine.EventStep, Addr: textAddr + n*size})
			if got := c.Reg(i.arg); got != n {
				t.Errorf("%s: %d, want %d", i.name, got, n)
			}
		}
		if err := c.SingleStep(false); err != nil {
			t.Fatal(err)
		}
		wantEvent(t, c, machine.Event{Kind: machine.EventReturned, Addr: ExitAddress})
		if got := c.Reg(i.arg); got != 2 {
			t.Errorf("%s: %d, want 2", i.name, got)
		}
	}
}

// TestTrace calls code that calls, branches and returns: every transfer is
// reported, and nothing that only goes on to the next instruction.
func TestTrace(t *testing.T) {
	for _, c := range []struct {
		isa, code string
		want      [][2]uint64 // after textAddr
	}{
		// call 7; ret; nop; 7: inc rdi; jmp 13; nop; 13: je (not taken); ret
		{"amd64", "e802000000" + "c3" + "90" + "48ffc7" + "eb01" + "90" + "7401" + "c3", [][2]uint64{{0, 7}, {10, 13}, {15, 5}}},
		// mov x9,x30; bl 16; mov x30,x9; ret; 16: add x0,x0,#1; b 28; nop; 28: cbz x0 (not taken); ret
		{"arm64", "e9031eaa" + "03000094" + "fe0309aa" + "c0035fd6" + "00040091" + "02000014" + "1f2003d5" + "400000b4" + "c0035fd6", [][2]uint64{{4, 16}, {20, 28}, {32, 8}}},
		// mflr r9; bl 16; mtlr r9; blr; 16: addi r3,r3,1; b 28; nop; 28: bdz (not taken); blr
		{"ppc64", "7d2802a6" + "4800000d" + "7d2803a6" + "4e800020" + "38630001" + "48000008" + "60000000" + "42400008" + "4e800020", [][2]uint64{{4, 16}, {20, 28}, {32, 8}}},
		{"ppc64le", "7d2802a6" + "4800000d" + "7d2803a6" + "4e800020" + "38630001" + "48000008" + "60000000" + "42400008" + "4e800020", [][2]uint64{{4, 16}, {20, 28}, {32, 8}}},
	} {
		var got [][2]uint64
		m := open(t, Options{Exact: true, Trace: func(_ int, from, to uint64) {
			got = append(got, [2]uint64{from - textAddr, to - textAddr})
		}}, c.isa)
		put(t, m, textAddr, c.code)
		for range 2 {
			got = nil
			if _, err := m.CPUs[0].CallAndRun(100, machine.Function{Entry: textAddr}, 7); err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 || got[0][1] != 0 || !slices.Equal(got[1:], c.want) {
				t.Errorf("%s: %d, want %d", c.isa, got, c.want)
			}
		}
	}
}

func TestTraceNeedsExact(t *testing.T) {
	isa, err := isatest.Named("amd64")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{ISA: isa, Trace: func(int, uint64, uint64) {}}); !errors.Is(err, errTrace) {
		t.Error(err)
	}
}

// TestCloseFreesEverything opens and closes machines: neither memory maps nor
// resident pages become more.
func TestCloseFreesEverything(t *testing.T) {
	cycle := func(n int) {
		for k := range n {
			isa, err := isatest.Named(arch.Names()[k%len(arch.Names())])
			if err != nil {
				t.Fatal(err)
			}
			m, err := Open(Options{ISA: isa, CPUs: 2})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	cycle(40)
	maps, resident := usage(t)
	cycle(120)
	if m, r := usage(t); m > maps+8 || r > resident+2048 {
		t.Errorf("%d maps and %d resident pages, before: %d and %d", m, r, maps, resident)
	}
}

// usage returns how many maps and resident pages the process has.
func usage(t *testing.T) (maps, resident int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		skip.Missing(t, "/proc", err)
	}
	var size int
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		skip.Missing(t, "/proc", err)
	}
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n"), resident
}

// TestRepeatedExceptionsOnAMD64 divides by zero and loads a segment that there
// is not: no exception is taken for part of another one.
func TestRepeatedExceptionsOnAMD64(t *testing.T) {
	const protection = 13
	m := open(t, Options{}, "amd64")
	put(t, m, textAddr, "48f7f7"+"8edf") // div rdi; mov ds,edi
	c := m.CPUs[0]
	for range 6 {
		start(t, c, 0)
		wantEvent(t, c, machine.Event{Kind: machine.EventException, Addr: textAddr, Number: amd64DivideError})
		c.SetReg(amd64.RDI, 0x1238)
		c.SetPC(textAddr + 3)
		wantEvent(t, c, machine.Event{Kind: machine.EventException, Addr: textAddr + 3, Number: protection})
	}
}
