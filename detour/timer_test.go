package detour_test

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"xol/detour"
	"xol/machine"
)

const (
	timerTable     = home
	timerHistogram = home + 0x1000
	otherHistogram = home + 0x2000
	timerSlotBits  = 3
	timerEntries   = 1<<timerSlotBits + detour.TimerWindow
)

// timerMemory is the memory that timers work on.
type timerMemory struct {
	Entries   [timerEntries]detour.TimerEntry
	Histogram detour.Histogram
}

// parts returns the memory as it is before a run. Data comes before code, so that a
// run may stay in it.
func (m *timerMemory) parts(t *testing.T) []machine.Part {
	t.Helper()
	var parts []machine.Part
	for _, data := range []struct {
		at uint64
		of any
	}{{timerTable, &m.Entries}, {timerHistogram, &m.Histogram}} {
		code, err := binary.Append(nil, binary.LittleEndian, data.of)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, machine.Part{Addr: data.at, Code: code})
	}
	return parts
}

// after returns the memory as the last run left it, which began with m.
func (m *timerMemory) after(t *testing.T, r *runner) timerMemory {
	t.Helper()
	var is timerMemory
	for _, p := range m.parts(t) {
		for _, w := range r.writes {
			if offset := w.Addr - p.Addr; offset < uint64(len(p.Code)) {
				binary.BigEndian.PutUint64(p.Code[offset:], w.New)
			}
		}
		of := any(&is.Entries)
		if p.Addr == timerHistogram {
			of = &is.Histogram
		}
		if _, err := binary.Decode(p.Code, binary.LittleEndian, of); err != nil {
			t.Fatal(err)
		}
	}
	return is
}

// timerCases are ways to insert a timer.
var timerCases = []struct {
	name string
	at   uint64
	in   detour.Insertion
}{
	{"nothing is known", home + 0x10000, detour.Insertion{}},
	{"out of reach", home + 1<<40, detour.Insertion{}},
	{"no red zone", home + 0x10000, detour.Insertion{NoRedZone: true}},
	{"kernel", home + 0x10000, detour.Insertion{Kernel: true}},
	{"all flags are dead", home + 0x10000, detour.Insertion{DeadFlags: allStatus}},
	{"the overflow flag is dead", home + 1<<40, detour.Insertion{DeadFlags: overflow}},
	{"in nanoseconds", home + 0x10000, detour.Insertion{Timer: detour.Timer{Scale: 1 << 31}}},
	{"in smaller units", home + 0x10000, detour.Insertion{Timer: detour.Timer{Scale: 1 << 34}}},
}

// timerRunner runs one timer after another.
type timerRunner struct {
	*runner
	in     detour.Insertion
	key    uint64
	window int // the first entry where the key may be
}

// testTimers runs timers in tables of all kinds.
func testTimers(t *testing.T, open opener) {
	for _, c := range timerCases {
		t.Run(c.name, func(t *testing.T) {
			r := &timerRunner{runner: newRunner(t, isaOf(t, "amd64"), open), in: c.in}
			r.at = c.at
			r.in.Timer.Table, r.in.Timer.Histogram, r.in.Timer.SlotBits = timerTable, timerHistogram, timerSlotBits
			r.randomize(1)
			r.key = r.file.Word(r.start, r.file.SP)
			now := r.findWindow(t)
			r.starts(t)
			r.stops(t, now)
		})
	}
}

// timed runs an insertion in memory, whole and up to each instruction, and returns what
// the memory is then.
func (r *timerRunner) timed(t *testing.T, action detour.Action, m timerMemory) timerMemory {
	t.Helper()
	in := r.in
	in.Action = action
	data := m.parts(t)
	code := r.load(t, &in, data...)
	run := func(end uint64) {
		r.file.SetWord(r.start, r.file.PC, r.at)
		if event := r.step(t, machine.Range{Lo: timerTable, Hi: end}); event.Kind != machine.EventLeft {
			t.Fatal(event)
		}
	}
	own := func(addr uint64) bool { return addr-timerTable < otherHistogram-timerTable }
	insts := sweep(t, r.isa, code, r.at)
	for i := range insts[1:] {
		run(insts[1+i].Addr)
		r.stackWrites(t, &in, own)
		executed := code[:r.file.Word(r.end, r.file.PC)-r.at]
		cpu, is := r.cpu(), m.after(t, r.runner)
		committed := r.isa.Committed(executed, cpu)
		if done := r.done(action, &m, &is); committed != done {
			t.Errorf("after %d bytes: committed %t, want %t", len(executed), committed, done)
		}
		if err := r.isa.Unwind(executed, cpu, cpu); err != nil {
			t.Fatal(err)
		}
		r.sameRegisters(t, cpu.State, in.DeadFlags)
		if !committed && is != m {
			r.again(t, &in, is)
			r.load(t, &in, data...)
		}
	}
	r.load(t, &in, data...)
	run(r.at + uint64(len(code)))
	if pc := r.file.Word(r.end, r.file.PC); pc != r.at+uint64(len(code)) {
		t.Fatalf("continues at %#x", pc)
	}
	r.sameRegisters(t, r.end, in.DeadFlags)
	r.stackWrites(t, &in, own)
	return m.after(t, r.runner)
}

// done reports whether a timer has done what it is for.
func (r *timerRunner) done(action detour.Action, was, is *timerMemory) bool {
	if action != detour.StartTimer {
		return was.Histogram != is.Histogram
	}
	return slices.ContainsFunc(is.Entries[:], func(e detour.TimerEntry) bool {
		return e.StackPointer == r.key && e.Histogram == timerHistogram && e.Start > 1<<16
	})
}

// again runs an insertion that was interrupted, in the memory that it has left then.
func (r *timerRunner) again(t *testing.T, in *detour.Insertion, m timerMemory) {
	t.Helper()
	code := r.load(t, in, m.parts(t)...)
	r.file.SetWord(r.start, r.file.PC, r.at)
	if event := r.step(t, machine.Range{Lo: timerTable, Hi: r.at + uint64(len(code))}); event.Kind != machine.EventLeft {
		t.Fatal(event)
	}
	is := m.after(t, r.runner)
	if !r.done(in.Action, &m, &is) {
		t.Errorf("not done the second time: %+v, %+v", m, is)
	}
	if in.Action == detour.StartTimer && r.own(&is) != r.own(&m) {
		t.Errorf("%d entries of the call, and then %d\n%+v\n%+v", r.own(&m), r.own(&is), m, is)
	}
}

// own returns how many entries the call has.
func (r *timerRunner) own(m *timerMemory) (n int) {
	for i := range m.Entries {
		if m.Entries[i].StackPointer == r.key {
			n++
		}
	}
	return n
}

// findWindow starts a timer in an empty table: it is in the first entry of the window.
// It returns the time.
func (r *timerRunner) findWindow(t *testing.T) (now uint64) {
	t.Helper()
	m := r.timed(t, detour.StartTimer, timerMemory{})
	r.window = slices.IndexFunc(m.Entries[:], func(e detour.TimerEntry) bool { return e.StackPointer == r.key })
	if r.window < 0 || r.window > timerEntries-detour.TimerWindow || r.own(&m) != 1 {
		t.Fatalf("entry %d: %+v", r.window, m.Entries)
	}
	return m.Entries[r.window].Start
}

// full returns a table of other calls.
func (r *timerRunner) full() (m timerMemory) {
	for i := range m.Entries {
		m.Entries[i] = detour.TimerEntry{StackPointer: r.key + 1 + uint64(i), Start: uint64(i), Histogram: otherHistogram}
	}
	return m
}

// starts checks which entry a start takes: that of the same stack pointer, or the first
// that is free, whichever comes first, or else the last one.
func (r *timerRunner) starts(t *testing.T) {
	t.Helper()
	const last = detour.TimerWindow - 1
	for _, c := range []struct {
		free, own int // of the window; -1 for none
		want      int
	}{{-1, -1, last}, {0, -1, 0}, {3, -1, 3}, {last, -1, last}, {-1, 0, 0}, {-1, last, last}, {2, 5, 2}, {5, 2, 2}} {
		m := r.full()
		if c.free >= 0 {
			m.Entries[r.window+c.free] = detour.TimerEntry{Start: 5, Histogram: 6}
		}
		if c.own >= 0 {
			m.Entries[r.window+c.own].StackPointer = r.key
		}
		is := r.timed(t, detour.StartTimer, m)
		e := is.Entries[r.window+c.want]
		if e.StackPointer != r.key || e.Histogram != timerHistogram || e.Start < 1<<16 {
			t.Errorf("%+v: %+v", c, e)
		}
		is.Entries[r.window+c.want] = m.Entries[r.window+c.want]
		if is != m {
			t.Errorf("%+v: other entries have changed: %+v, %+v", c, m, is)
		}
	}
}

// stops checks what a stop counts.
func (r *timerRunner) stops(t *testing.T, now uint64) {
	t.Helper()
	const last = detour.TimerWindow - 1
	unit := func(ticks uint64) int { // as of the scale
		if scale := r.in.Timer.Scale; scale != 0 {
			high, low := bits.Mul64(ticks, scale)
			ticks = high<<32 | low>>32
		}
		return max(bits.Len64(ticks)-1, 0)
	}
	most := bits.Len64(now) - 3                              // so that no time is negative
	long := func(bit int) uint64 { return now - 3<<(bit-1) } // so long ago
	for _, c := range []struct {
		name      string
		own       int // of the window; -1 for none
		start     uint64
		histogram uint64
		want      int // bucket
	}{
		{"a time", 0, long(34), timerHistogram, unit(3 << 33)},
		{"a long time, in the last entry", last, long(most), timerHistogram, unit(3 << (most - 1))},
		{"a time that lies ahead", 3, now + 1<<60, timerHistogram, 0},
		{"no entry", -1, 0, 0, detour.HistogramMissed},
		{"an entry of another function", 5, now, otherHistogram, detour.HistogramMissed},
	} {
		for _, action := range []detour.Action{detour.StopTimer, detour.StopTimerAtJump} {
			m, want := r.full(), c.want
			if want == detour.HistogramMissed && action == detour.StopTimerAtJump {
				want = detour.HistogramJumps
			}
			for i := range m.Histogram.Buckets {
				m.Histogram.Buckets[i] = uint64(i)
			}
			if c.own >= 0 {
				m.Entries[r.window+c.own] = detour.TimerEntry{StackPointer: r.key, Start: c.start, Histogram: c.histogram}
			}
			is := r.timed(t, action, m)
			expected := m
			if c.own >= 0 {
				expected.Entries[r.window+c.own].StackPointer = 0
			}
			switch want {
			case detour.HistogramMissed:
				expected.Histogram.Missed++
			case detour.HistogramJumps:
				expected.Histogram.Jumps++
			default:
				expected.Histogram.Buckets[want]++
			}
			if is != expected {
				t.Errorf("%s: want %d, %s", c.name, want, difference(&is, &expected))
			}
		}
	}
}

func difference(is, want *timerMemory) string {
	for i := range is.Histogram.Buckets {
		if is.Histogram.Buckets[i] != want.Histogram.Buckets[i] {
			return fmt.Sprintf("bucket %d: %d", i, is.Histogram.Buckets[i])
		}
	}
	return fmt.Sprintf("%+v, want %+v", is, want)
}
