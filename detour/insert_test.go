package detour_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"xol/arch"
	"xol/detour"
	"xol/internal/cputest"
	"xol/machine"
	"xol/relocate"
)

const (
	nearCounter = home + 0x100000
	farCounter  = home + 0x100_0000_0000
)

// Status flags of amd64.
const (
	carry    = 1 << 0
	parity   = 1 << 2
	adjust   = 1 << 4
	zero     = 1 << 6
	sign     = 1 << 7
	overflow = 1 << 11

	allStatus = carry | parity | adjust | zero | sign | overflow
)

type insertCase struct {
	name string
	detour.Insertion
}

// countCases are counters, near and far, for what may be known of the place.
func countCases() (cases []insertCase) {
	for _, c := range []insertCase{
		{"nothing is known", detour.Insertion{}},
		{"no red zone", detour.Insertion{NoRedZone: true}},
		{"kernel", detour.Insertion{Kernel: true}},
		{"all flags are dead", detour.Insertion{DeadFlags: allStatus}},
		{"all flags are dead, no red zone", detour.Insertion{DeadFlags: allStatus, NoRedZone: true}},
		{"only the carry flag is live", detour.Insertion{DeadFlags: allStatus &^ carry}},
		{"only the overflow flag is live", detour.Insertion{DeadFlags: allStatus &^ overflow}},
		{"the overflow flag is dead", detour.Insertion{DeadFlags: overflow}},
		{"the zero flag is dead", detour.Insertion{DeadFlags: zero}},
	} {
		for _, counter := range []uint64{nearCounter, farCounter} {
			c.Counter = counter
			cases = append(cases, c)
		}
	}
	return cases
}

func (c *insertCase) String() string { return fmt.Sprintf("%s, counter at %#x", c.name, c.Counter) }

// load makes the insertion and puts it into the engine's memory, a part for each
// instruction, so that runs may end before any of them, and one for a nop at the end.
func (r *runner) load(t *testing.T, in *detour.Insertion, data ...machine.Part) (code []byte) {
	t.Helper()
	least, most, err := r.isa.InsertSize(in)
	if err != nil {
		t.Fatal(err)
	}
	before := []byte{0xa5, 0xa5, 0xa5, 0xa5}
	code, err = r.isa.AppendInsertion(before, r.at, in)
	if err != nil || !bytes.HasPrefix(code, before) {
		t.Fatalf("% x, %v", code, err)
	}
	code = code[len(before):]
	if len(code) < least || len(code) > most {
		t.Errorf("%d bytes, planned %d to %d", len(code), least, most)
	}
	parts := append(data, machine.Part{Addr: r.at + uint64(len(code)), Code: nops(r.isa)})
	insts := sweep(t, r.isa, code, r.at)
	for i := range insts {
		parts = append(parts, machine.Part{Addr: insts[i].Addr, Code: insts[i].Bytes()})
	}
	if err := r.engine.Load(parts); err != nil {
		t.Fatal(err)
	}
	return code
}

// cpu returns a CPU as the last run left it.
func (r *runner) cpu() *cputest.CPU {
	c := cputest.New(r.file, r.isa.Name() == "ppc64", machine.Range{})
	c.Reset(r.end, r.seed)
	for _, w := range r.writes {
		if err := c.Write(w.Addr, binary.BigEndian.AppendUint64(nil, w.New)); err != nil {
			panic(err)
		}
	}
	return c
}

// sameRegisters compares general registers and flags with those at the start.
func (r *runner) sameRegisters(t *testing.T, state machine.State, dead uint64) {
	t.Helper()
	for i := range r.file.Registers {
		if i == r.file.PC {
			continue
		}
		have, want := r.file.Bytes(state, i), r.file.Bytes(r.start, i)
		if r.file.Registers[i].Kind == machine.Flags && r.isa.Name() == "amd64" {
			if (r.file.Word(state, i)^r.file.Word(r.start, i))&^dead == 0 {
				continue
			}
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is % x, was % x", r.file.Registers[i].Name, have, want)
		}
	}
}

// stackWrites reports writes that are neither the insertion's own nor below the red
// zone.
func (r *runner) stackWrites(t *testing.T, in *detour.Insertion, own func(addr uint64) bool) {
	t.Helper()
	zone := redZones[r.isa.Name()][in.Kernel]
	if in.NoRedZone {
		zone = 0
	}
	sp := r.file.Word(r.start, r.file.SP)
	_, most := r.isa.InsertStack(in)
	lo, hi := sp-uint64(most), sp-min(zone, uint64(most))
	for _, w := range r.writes {
		if !own(w.Addr) && w.Addr-lo >= hi-lo {
			t.Errorf("%#x is written, the stack pointer is %#x", w.Addr, sp)
		}
	}
}

// testInsertedCounters runs counters from random states, as a whole and up to each of
// their instructions, from where Unwind has to find the state before.
func testInsertedCounters(t *testing.T, name string, open opener) {
	const states = 12
	for _, c := range countCases() {
		t.Run(name+" "+c.String(), func(t *testing.T) {
			r := newRunner(t, isaOf(t, name), open)
			code := r.load(t, &c.Insertion)
			for seed := range uint64(states) {
				r.randomize(seed)
				r.file.SetWord(r.start, r.file.PC, r.at)
				if event := r.step(t, machine.Range{Lo: r.at, Hi: r.at + uint64(len(code))}); event.Kind != machine.EventLeft {
					t.Fatal(event)
				}
				if pc := r.file.Word(r.end, r.file.PC); pc != r.at+uint64(len(code)) {
					t.Fatalf("continues at %#x", pc)
				}
				was := r.inOrder(swapped(machine.Word(c.Counter, seed)))
				if is := r.memory(c.Counter); is != was+1 {
					t.Errorf("%#x has become %#x", was, is)
				}
				r.sameRegisters(t, r.end, c.DeadFlags)
				r.stackWrites(t, &c.Insertion, func(addr uint64) bool { return addr == c.Counter })
				r.unwindEverywhere(t, &c.Insertion, code, func() bool { return r.memory(c.Counter) == was+1 })
			}
		})
	}
}

// unwindEverywhere runs up to each instruction of code, and unwinds. done reports
// whether the last run has done what the insertion is for.
func (r *runner) unwindEverywhere(t *testing.T, in *detour.Insertion, code []byte, done func() bool) {
	t.Helper()
	boundaries := sweep(t, r.isa, code, r.at)
	for i := range boundaries {
		if i == 0 {
			continue
		}
		r.file.SetWord(r.start, r.file.PC, r.at)
		if event := r.step(t, machine.Range{Lo: r.at, Hi: boundaries[i].Addr}); event.Kind != machine.EventLeft {
			t.Fatal(event)
		}
		executed := code[:r.file.Word(r.end, r.file.PC)-r.at]
		cpu := r.cpu()
		if have, want := r.isa.Committed(executed, cpu), done(); have != want {
			t.Errorf("after % x: committed %t, want %t", executed, have, want)
		}
		if err := r.isa.Unwind(executed, cpu, cpu); err != nil {
			t.Fatal(err)
		}
		r.sameRegisters(t, cpu.State, in.DeadFlags)
	}
}

func TestInsertionErrors(t *testing.T) {
	timer := detour.Timer{Table: nearCounter, Histogram: nearCounter + 0x10000}
	for _, name := range arch.Names() {
		noTimer := detour.ErrNoTimer
		if name == "amd64" {
			noTimer = nil
		}
		for _, c := range []struct {
			in   detour.Insertion
			want error
		}{
			{detour.Insertion{Counter: nearCounter}, nil},
			{detour.Insertion{Action: detour.StopTimerAtJump + 1}, detour.ErrInsertion},
			{detour.Insertion{Action: detour.StartTimer, Timer: timer}, noTimer},
			{detour.Insertion{Action: detour.StopTimer, Timer: timer}, noTimer},
			{detour.Insertion{Action: detour.StopTimerAtJump, Timer: timer}, noTimer},
		} {
			isa := isaOf(t, name)
			_, _, sizeErr := isa.InsertSize(&c.in)
			code, err := isa.AppendInsertion([]byte{1}, home, &c.in)
			if !errors.Is(err, c.want) || !errors.Is(sizeErr, c.want) || c.want != nil && len(code) != 1 {
				t.Errorf("%s, action %d: %v, %v, % x", name, c.in.Action, sizeErr, err, code)
			}
		}
	}
	for _, name := range []string{"arm64", "ppc64", "ppc64le"} {
		if _, err := isaOf(t, name).AppendInsertion(nil, home+2, &detour.Insertion{}); !errors.Is(err, relocate.ErrMisaligned) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInsertStack holds the stack that insertions use against the sum of what lies
// there.
func TestInsertStack(t *testing.T) {
	timer := detour.Timer{Scale: 1}
	for _, c := range []struct {
		isa         string
		in          detour.Insertion
		least, most int
	}{
		{"amd64", detour.Insertion{}, 128 + 8, 128 + 16},
		{"amd64", detour.Insertion{NoRedZone: true}, 8, 16},
		{"amd64", detour.Insertion{Kernel: true}, 8, 16},
		{"amd64", detour.Insertion{DeadFlags: allStatus}, 0, 128 + 8},
		{"amd64", detour.Insertion{DeadFlags: allStatus &^ carry, NoRedZone: true}, 0, 8},
		{"amd64", detour.Insertion{Action: detour.StartTimer, Timer: timer}, 128 + 40, 128 + 40},
		{"amd64", detour.Insertion{Action: detour.StopTimer, Timer: timer, DeadFlags: allStatus, Kernel: true}, 32, 32},
		{"amd64", detour.Insertion{Action: detour.StopTimerAtJump + 1}, 0, 0},
		{"arm64", detour.Insertion{}, 32, 32},
		{"arm64", detour.Insertion{Action: detour.StartTimer}, 0, 0},
		{"ppc64", detour.Insertion{}, 512 + 64, 512 + 64},
		{"ppc64le", detour.Insertion{NoRedZone: true}, 64, 64},
		{"ppc64le", detour.Insertion{Action: detour.StopTimer}, 0, 0},
	} {
		if least, most := isaOf(t, c.isa).InsertStack(&c.in); least != c.least || most != c.most {
			t.Errorf("%s %+v: %d to %d", c.isa, c.in, least, most)
		}
	}
}

// TestInsertSizeWithoutTimer plans before the timer is known.
func TestInsertSizeWithoutTimer(t *testing.T) {
	isa := isaOf(t, "amd64")
	for _, action := range []detour.Action{detour.StartTimer, detour.StopTimer, detour.StopTimerAtJump} {
		least, most, err := isa.InsertSize(&detour.Insertion{Action: action})
		if err != nil {
			t.Fatal(err)
		}
		for _, scale := range []uint64{0, 1, 1<<32 - 1, 1 << 32, 1<<64 - 1} {
			for _, at := range []uint64{nearCounter, farCounter} {
				timer := detour.Timer{Table: at, Histogram: at + 1<<20, Scale: scale, SlotBits: 20}
				code, err := isa.AppendInsertion(nil, home, &detour.Insertion{Action: action, Timer: timer})
				if err != nil || len(code) < least || len(code) > most {
					t.Errorf("action %d, %+v: %d bytes, planned %d to %d, %v", action, timer, len(code), least, most, err)
				}
			}
		}
	}
}

// listings are insertions whose bytes objdump has read.
var listings = []struct {
	name, isa string
	in        detour.Insertion
}{
	{"count", "amd64", detour.Insertion{Counter: templateAt + 0x1000}},
	{"count-dead", "amd64", detour.Insertion{Counter: templateAt + 0x1000, DeadFlags: allStatus}},
	{"count-far", "amd64", detour.Insertion{Counter: 0x7fff_1234_5678}},
	{"start", "amd64", detour.Insertion{Action: detour.StartTimer, Timer: listedTimer}},
	{"stop", "amd64", detour.Insertion{Action: detour.StopTimer, Timer: listedTimer}},
	{"count", "arm64", detour.Insertion{Counter: 0x7fff_1234_5678}},
	{"count", "ppc64", detour.Insertion{Counter: 0x7fff_1234_5678}},
	{"count", "ppc64le", detour.Insertion{Counter: 0x7fff_1234_5678}},
}

var listedTimer = detour.Timer{Table: 0x7fff_1234_0000, Histogram: templateAt + 0x2000, Scale: 1 << 31}

// TestInsertions compares insertions with what objdump read in them.
func TestInsertions(t *testing.T) {
	for _, c := range listings {
		t.Run(c.isa+" "+c.name, func(t *testing.T) {
			isa := isaOf(t, c.isa)
			code, err := isa.AppendInsertion(nil, templateAt, &c.in)
			if err != nil {
				t.Fatal(err)
			}
			compareListing(t, isa, fmt.Sprintf("insert-%s-%s.txt", c.isa, c.name), code)
		})
	}
}

// TestTableSize checks the bounds of the number of entries.
func TestTableSize(t *testing.T) {
	for _, c := range []struct {
		bits uint8
		size int
		want error
	}{
		{0, (4096 + 8) * 32, nil}, {3, (8 + 8) * 32, nil}, {24, (1<<24 + 8) * 32, nil},
		{2, 0, detour.ErrInsertion}, {25, 0, detour.ErrInsertion},
	} {
		timer := detour.Timer{SlotBits: c.bits}
		if size, err := timer.TableSize(); size != c.size || !errors.Is(err, c.want) {
			t.Errorf("%d bits: %d, %v", c.bits, size, err)
		}
	}
	if size := binary.Size(detour.Histogram{}); size != detour.HistogramSize {
		t.Errorf("a histogram has %d bytes", size)
	}
	if size := binary.Size(detour.TimerEntry{}); size != detour.TimerEntrySize {
		t.Errorf("an entry has %d bytes", size)
	}
}

// FuzzCommitted has Committed and Unwind read any bytes.
func FuzzCommitted(f *testing.F) {
	for _, name := range arch.Names() {
		for _, c := range countCases() {
			code, err := isaOf(f, name).AppendInsertion(nil, home, &c.Insertion)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(code)
		}
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		for _, name := range arch.Names() {
			isa := isaOf(t, name)
			cpu := cputest.New(isa.Registers(), name == "ppc64", machine.Range{})
			isa.Committed(code, cpu)
			before := bytes.Clone(cpu.State)
			if isa.Unwind(code, cpu, cpu) != nil && !bytes.Equal(cpu.State, before) {
				t.Errorf("%s: registers have changed with an error", name)
			}
		}
	})
}
