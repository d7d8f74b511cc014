//go:build unicorn

package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"xol/arch/ppc64"
	"xol/decode"
	"xol/internal/emulator"
	"xol/internal/isatest"
	"xol/internal/workload"
	"xol/machine"
	"xol/relocate"
)

var ppc64Names = []string{"ppc64", "ppc64le"}

// Prefixed instructions, which the engine does not know, and others.
const (
	paddi  = "06000000" + "38630064" // paddi r3,r3,100
	pldR3  = "04000000" + "e4830000" // pld r4,0(r3)
	pstdR3 = "04000000" + "f4830000" // pstd r4,0(r3)
	plxvR3 = "04000000" + "c8830000" // plxv vs4,0(r3)
	pnop   = "07000000" + "00000000"
	pmxv   = "0790f0ff" + "ec044018" // pmxvi8ger4 a0,vs4,vs8,...
	addi   = "38630001"              // addi r3,r3,1
	blr    = "4e800020"
	trap   = "7fe00008"
)

func eachPPC64(t *testing.T, opt Options, f func(t *testing.T, m *Machine)) {
	for _, isa := range ppc64Names {
		for _, exact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %t", isa, exact), func(t *testing.T) {
				opt.Exact = exact
				f(t, open(t, opt, isa))
			})
		}
	}
}

// TestPrefixed runs prefixed instructions between others, in a loop, where
// translated code is used again.
func TestPrefixed(t *testing.T) {
	eachPPC64(t, Options{}, func(t *testing.T, m *Machine) {
		put(t, m, textAddr, "39200005"+"7d2903a6"+ // li r9,5; mtctr r9
			paddi+addi+"4200fff4"+pnop+addi+blr) // bdnz back to paddi
		for range 2 {
			got, err := m.CPUs[0].CallAndRun(1000, machine.Function{Entry: textAddr}, 7)
			if err != nil || got != 7+5*101+1 {
				t.Errorf("%d, %v", got, err)
			}
		}
	})
}

func TestPrefixedMemory(t *testing.T) {
	eachPPC64(t, Options{}, func(t *testing.T, m *Machine) {
		const page = textAddr + 0x10000
		if err := m.Map(page, PageSize, machine.PermRead|machine.PermWrite); err != nil {
			t.Fatal(err)
		}
		for at, v := range []uint64{1, 2, 3} {
			if err := m.WriteWord(page+8*uint64(at), v); err != nil {
				t.Fatal(err)
			}
		}
		// pld r4,0(r3); addi r4,r4,4; pstd r4,8(r3); plxv vs4,8(r3); mfvsrd r3,vs4; blr
		put(t, m, textAddr, pldR3+"38840004"+"04000000"+"f4830008"+"04000000"+"c8830008"+"7c830066"+blr)
		c := m.CPUs[0]
		got, err := c.CallAndRun(1000, machine.Function{Entry: textAddr}, page)
		if err != nil {
			t.Fatal(err)
		}
		first, second := uint64(5), uint64(3) // as they stand in memory
		if m.ISA.Name() == "ppc64le" {
			first, second = second, first
		}
		stored, err := m.ReadWord(page + 8)
		if err != nil || stored != 5 || got != first {
			t.Errorf("%d returned, %d stored, %v; want %d and 5", got, stored, err, first)
		}
		if low, high := c.Wide(ppc64.VSR0 + 4); low != first || high != second {
			t.Errorf("vs4 is %d, %d, want %d, %d", low, high, first, second)
		}
	})
}

// TestPrefixedEvents has prefixed instructions that do not come to their end:
// nothing has changed.
func TestPrefixedEvents(t *testing.T) {
	const alignment = 5 // the engine's number
	readOnly := uint64(textAddr + PageSize)
	for _, c := range []struct {
		name, code string
		arg        uint64
		want       machine.Event
	}{
		{"load", addi + pldR3 + blr, nowhere, machine.Event{Kind: machine.EventFault, Addr: textAddr + 4, Access: machine.AccessRead, Page: nowhere}},
		{"store", addi + pstdR3 + blr, readOnly, machine.Event{Kind: machine.EventFault, Addr: textAddr + 4, Access: machine.AccessWrite, Page: readOnly}},
		{"vector load", addi + plxvR3 + blr, nowhere, machine.Event{Kind: machine.EventFault, Addr: textAddr + 4, Access: machine.AccessRead, Page: nowhere}},
		{"the second page of a load", addi + pldR3 + blr, readOnly + PageSize - 5, machine.Event{Kind: machine.EventFault, Addr: textAddr + 4, Access: machine.AccessRead, Page: readOnly + PageSize}},
		{"64-byte boundary", strings.Repeat(addi, 15) + paddi + blr, 0, machine.Event{Kind: machine.EventException, Addr: textAddr + 60, Number: alignment}},
		{"accumulators", addi + pmxv + blr, 0, machine.Event{Kind: machine.EventRefused, Addr: textAddr + 4}},
		{"no suffix", addi + "06000000" + "06000000" + blr, 0, machine.Event{Kind: machine.EventUndefined, Addr: textAddr + 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachPPC64(t, Options{}, func(t *testing.T, m *Machine) {
				put(t, m, textAddr, c.code)
				cpu := m.CPUs[0]
				for range 2 {
					start(t, cpu, c.arg)
					before, after := m.File.NewState(), m.File.NewState()
					cpu.Save(before)
					wantEvent(t, cpu, c.want)
					cpu.Save(after)
					done := (c.want.Addr - textAddr) / 4 // instructions of adding
					m.File.SetWord(before, ppc64.PC, c.want.Addr)
					m.File.SetWord(before, ppc64.R0+3, c.arg+done)
					if !slices.Equal(before, after) {
						t.Error("registers have changed")
					}
				}
			})
		})
	}
}

func TestRefusedPrefixedHasItsName(t *testing.T) {
	eachPPC64(t, Options{}, func(t *testing.T, m *Machine) {
		put(t, m, textAddr, addi+pmxv+blr)
		_, err := m.CPUs[0].CallAndRun(1000, machine.Function{Entry: textAddr})
		var unexpected *UnexpectedError
		if !errors.As(err, &unexpected) || !strings.Contains(err.Error(), "pmxvi8ger4") && !strings.Contains(err.Error(), "pmdmxvi8ger4") {
			t.Error(err)
		}
	})
}

// TestPrefixedFaultIsRepeatable maps what was missing, and goes on.
func TestPrefixedFaultIsRepeatable(t *testing.T) {
	eachPPC64(t, Options{}, func(t *testing.T, m *Machine) {
		put(t, m, textAddr, pstdR3+pldR3+addi+blr)
		c := m.CPUs[0]
		start(t, c, nowhere)
		wantEvent(t, c, machine.Event{Kind: machine.EventFault, Addr: textAddr, Access: machine.AccessWrite, Page: nowhere})
		if err := m.Map(nowhere, PageSize, machine.PermRead|machine.PermWrite); err != nil {
			t.Fatal(err)
		}
		wantEvent(t, c, machine.Event{Kind: machine.EventReturned, Addr: ExitAddress})
		if got := c.Result(); got != nowhere+1 {
			t.Errorf("%#x returned", got)
		}
	})
}

// TestPrefixedBudget stops before every instruction.
func TestPrefixedBudget(t *testing.T) {
	for _, isa := range ppc64Names {
		m := open(t, Options{Exact: true}, isa)
		put(t, m, textAddr, paddi+addi+paddi+paddi+addi+blr)
		c := m.CPUs[0]
		start(t, c, 0)
		at, arg := uint64(textAddr), uint64(0)
		for _, size := range []uint64{8, 4, 8, 8, 4} {
			wantBudget(t, c, 1)
			at += size
			if arg++; size == 8 {
				arg += 99
			}
			if pc, got := c.PC(), c.Reg(ppc64.R0+3); pc != at || got != arg {
				t.Errorf("%s: %#x, %d, want %#x, %d", isa, pc, got, at, arg)
			}
		}
		start(t, c, 0)
		wantBudget(t, c, 4)
		if pc := c.PC(); pc != textAddr+28 {
			t.Errorf("%s: 4 instructions came to %#x", isa, pc)
		}
	}
}

func wantBudget(t *testing.T, c *CPU, n int) {
	t.Helper()
	if ran, ev, err := c.run(n); err != nil || ev.Kind != machine.EventBudget || ran != n {
		t.Fatalf("%d ran of %d: %+v, %v", ran, n, ev, err)
	}
}

// TestPrefixedSteps follows prefixed and other instructions by the trace
// exception, also where the host gets at vector registers in between.
func TestPrefixedSteps(t *testing.T) {
	eachPPC64(t, Options{}, func(t *testing.T, m *Machine) {
		put(t, m, textAddr, addi+paddi+plxvR3+addi+blr)
		if err := m.Map(nowhere, PageSize, machine.PermRead); err != nil {
			t.Fatal(err)
		}
		c := m.CPUs[0]
		start(t, c, nowhere)
		if err := c.SingleStep(true); err != nil {
			t.Fatal(err)
		}
		at := uint64(textAddr)
		for _, size := range []uint64{4, 8, 8, 4} {
			at += size
			wantEvent(t, c, machine.Event{Kind: machine.EventStep, Addr: at})
			c.SetWide(ppc64.VSR0+9, at, 1)
		}
		if low, high := c.Wide(ppc64.VSR0 + 9); low != at || high != 1 {
			t.Errorf("vs9 is %#x, %#x", low, high)
		}
		if err := c.SingleStep(false); err != nil {
			t.Fatal(err)
		}
		wantEvent(t, c, machine.Event{Kind: machine.EventReturned, Addr: ExitAddress})
	})
}

// TestPrefixedTrace has prefixed instructions before and after branches: what
// goes on after them is no transfer.
func TestPrefixedTrace(t *testing.T) {
	for _, isa := range ppc64Names {
		var got [][2]uint64
		m := open(t, Options{Exact: true, Trace: func(_ int, from, to uint64) {
			got = append(got, [2]uint64{from - textAddr, to - textAddr})
		}}, isa)
		// 0: paddi; 8: b 16; 12: addi; 16: paddi; 24: paddi; 32: blr
		put(t, m, textAddr, paddi+"48000008"+addi+paddi+paddi+blr)
		for range 2 {
			got = nil
			if _, err := m.CPUs[0].CallAndRun(100, machine.Function{Entry: textAddr}, 7); err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 || got[0][1] != 0 || !slices.Equal(got[1:], [][2]uint64{{8, 16}}) {
				t.Errorf("%s: %d", isa, got)
			}
		}
	}
}

// TestPrefixedIsReplaced patches prefixed instructions, and the second word alone.
func TestPrefixedIsReplaced(t *testing.T) {
	eachPPC64(t, Options{CPUs: 2}, func(t *testing.T, m *Machine) {
		for _, step := range []struct {
			at   uint64
			code string
			want uint64
		}{
			{0, paddi + addi + blr, 101},
			{4, "38630032", 51}, // paddi r3,r3,50
			{0, addi + addi, 3},
			{0, paddi, 101},
			{0, trap, 0},
			{0, "06000000", 101},
		} {
			put(t, m, textAddr+step.at, step.code)
			for _, c := range m.CPUs {
				start(t, c, 0)
				if step.want == 0 {
					wantEvent(t, c, machine.Event{Kind: machine.EventBreakpoint, Addr: textAddr})
					continue
				}
				wantEvent(t, c, machine.Event{Kind: machine.EventReturned, Addr: ExitAddress})
				if got := c.Result(); got != step.want {
					t.Errorf("after %s: %d, want %d", step.code, got, step.want)
				}
			}
		}
	})
}

// TestPower10Programs calls every function of programs that were compiled for a CPU
// with prefixed instructions.
func TestPower10Programs(t *testing.T) {
	for _, isa := range ppc64Names {
		for _, exact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %t", isa, exact), func(t *testing.T) {
				m, p := load(t, Options{Exact: exact}, isa, "2-power10")
				executed := map[uint64]int{}
				m.CPUs[0].own.executor = &recorder{m.CPUs[0].own.executor, executed}
				b := &workload.Buffer{Memory: m, Order: m.Order, Addr: bufferAddr}
				r := rand.New(rand.NewPCG(1, 2))
				for _, w := range workload.All() {
					for range 5 {
						if err := callOnce(m.CPUs[0], p, w, b, r); err != nil {
							t.Fatalf("%s: %v", w.Name, err)
						}
					}
				}
				if len(executed) < 20 {
					t.Errorf("only %d instructions were executed that the engine does not know", len(executed))
				}
			})
		}
	}
}

// recorder counts what is executed, by address.
type recorder struct {
	emulator.Executor
	executed map[uint64]int
}

func (r *recorder) Execute(inst *decode.Inst, regs machine.WideRegisters, m machine.Memory) error {
	r.executed[inst.Addr]++
	return r.Executor.Execute(inst, regs, m)
}

func TestWhatTheEngineDoesNotKnowHasAName(t *testing.T) {
	eachPPC64(t, Options{}, func(t *testing.T, m *Machine) {
		put(t, m, textAddr, addi+"18850000"+blr) // lxvp vs4,0(r5)
		_, err := m.CPUs[0].CallAndRun(1000, machine.Function{Entry: textAddr})
		var unexpected *UnexpectedError
		if !errors.As(err, &unexpected) || unexpected.Event.Addr != textAddr+4 || !strings.Contains(err.Error(), "lxvp") {
			t.Error(err)
		}
	})
}

// TestPrefixedSlots executes the copy of a prefixed instruction at every place in
// a line of 64 bytes, with a jump back after it.
func TestPrefixedSlots(t *testing.T) {
	const slot = textAddr + PageSize
	eachPPC64(t, Options{}, func(t *testing.T, m *Machine) {
		// pla r4,100; add r3,r3,r4; blr
		put(t, m, textAddr, "06100000"+"38800064"+"7c632214"+blr)
		var code [8]byte
		if err := m.Read(code[:], textAddr); err != nil {
			t.Fatal(err)
		}
		var inst decode.Inst
		if err := m.ISA.Decode(&inst, code[:], textAddr); err != nil {
			t.Fatal(err)
		}
		var plan relocate.Plan
		if err := m.ISA.Plan(&plan, []decode.Inst{inst}, relocate.Options{Form: relocate.Slot}); err != nil {
			t.Fatal(err)
		}
		c := m.CPUs[0]
		for at := uint64(slot); at <= slot+64; at += 4 {
			moved := make([]byte, plan.Max)
			n, err := m.ISA.Encode(moved, &plan, at)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Write(at, moved[:n]); err != nil {
				t.Fatal(err)
			}
			start(t, c, 1)
			c.SetPC(at)
			wantEvent(t, c, machine.Event{Kind: machine.EventReturned, Addr: ExitAddress})
			if got := c.Result(); got != textAddr+101 {
				t.Errorf("at %#x: %#x, want %#x", at, got, uint64(textAddr+101))
			}
		}
	})
}

// BenchmarkPrefixed times a loop with one prefixed instruction.
func BenchmarkPrefixed(b *testing.B) {
	isa, err := isatest.Named("ppc64le")
	if err != nil {
		b.Fatal(err)
	}
	m, err := Open(Options{ISA: isa})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	if err := m.Map(textAddr, PageSize, machine.PermRead|machine.PermExec); err != nil {
		b.Fatal(err)
	}
	for at, word := range []uint32{0x7c6903a6, 0x06000000, 0x38840064, 0x4200fff8, 0x4e800020} { // mtctr r3; paddi r4,r4,100; bdnz; blr
		if err := m.Write(textAddr+4*uint64(at), binary.LittleEndian.AppendUint32(nil, word)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := m.CPUs[0].CallAndRun(4*b.N+100, machine.Function{Entry: textAddr}, uint64(b.N)); err != nil {
		b.Fatal(err)
	}
}
