//go:build unicorn

package runtime_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"xol/arch"
	"xol/decode"
	"xol/guest"
	"xol/internal/skip"
	"xol/machine"
	"xol/runtime"
)

// eventCase is a function of testdata/events of which an instruction has an event, or
// several: each of them is answered by the host, and the program goes on.
type eventCase struct {
	function string
	args     [3]uint64
	room     uint64   // on the stack, in bytes, above the page below
	absent   []uint64 // pages that are not there, or not accessible, until they are asked for
	// events are those that the program has without probes, by ISA; missing says why
	// the others have no such instruction.
	events  map[string]string
	missing string
	// refused is the rule that keeps probes from the instruction, by ISA.
	refused map[string]string
}

// Memory of the programs.
const (
	eventData   = 0x6000_0000
	eventTarget = eventData + 0x1_1000 // of copies
	eventStack  = 0x6100_0000          // the page that stacks start in
	eventCode   = 0x6200_0000
	belowStack  = eventStack - guest.PageSize
	data        = eventData + 0x100 // what pointers point to
)

// all are events of every ISA.
func all(events string) map[string]string {
	return map[string]string{"amd64": events, "arm64": events, "ppc64": events, "ppc64le": events}
}

func on(isa, events string, more ...string) map[string]string {
	m := map[string]string{isa: events}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

func power(events string, more ...string) map[string]string {
	return on("ppc64", events, append(more, "ppc64le", events)...)
}

const (
	readFault  = "memory fault read"
	writeFault = "memory fault write"
	fetchFault = "memory fault fetch"
)

var eventCases = []eventCase{
	{function: "load", args: [3]uint64{data, 5}, absent: []uint64{eventData}, events: all(readFault)},
	{function: "store", args: [3]uint64{data, 5}, absent: []uint64{eventData}, events: all(writeFault)},
	{function: "update", args: [3]uint64{data, 5, 6}, absent: []uint64{eventData},
		events: on("amd64", readFault, "arm64", writeFault, "ppc64", writeFault, "ppc64le", writeFault)},
	{function: "second", args: [3]uint64{data, 5}, absent: []uint64{eventData}, events: all(readFault)},
	{function: "relative", args: [3]uint64{0, 5}, absent: []uint64{belowStack}, events: on("amd64", readFault, "arm64", readFault),
		missing: "without a prefix, which the engine does not know, no load is relative to its own address"},
	{function: "relativevector", args: [3]uint64{0, 5}, absent: []uint64{belowStack}, events: on("arm64", readFault),
		missing: "a load needs no other register, or is not relative to its own address"},
	{function: "copy", args: [3]uint64{data, 32}, absent: []uint64{eventData, eventTarget - guest.PageSize, eventTarget},
		events:  on("amd64", strings.Join([]string{readFault, writeFault, writeFault}, ", ")),
		missing: "no instruction repeats itself"},

	{function: "plain", args: [3]uint64{7, 5}, absent: []uint64{belowStack}, events: all("")},
	{function: "push", args: [3]uint64{7, 5}, absent: []uint64{belowStack}, events: all(writeFault)},
	{function: "pop", args: [3]uint64{data, 5}, absent: []uint64{eventData, belowStack}, events: all(readFault)},
	{function: "pop", args: [3]uint64{eventData, 5}, absent: []uint64{eventData, belowStack}, events: all(readFault)},
	{function: "return", args: [3]uint64{eventData, 5}, absent: []uint64{eventData}, events: on("amd64", readFault),
		missing: "returns do not access memory"},
	{function: "call", args: [3]uint64{7, 5}, absent: []uint64{belowStack},
		events: on("amd64", writeFault, "arm64", "", "ppc64", "", "ppc64le", "")},
	{function: "indirect", args: [3]uint64{7, 5, data}, absent: []uint64{eventData, belowStack},
		events:  power(readFault, "amd64", readFault+", "+writeFault),
		missing: "calls do not access memory"},
	{function: "throughstack", args: [3]uint64{7, 5, data}, absent: []uint64{eventData, belowStack},
		events: on("amd64", readFault+", "+writeFault), missing: "calls do not access memory"},

	{function: "throughstack", args: [3]uint64{7, 5, data}, room: 64, absent: []uint64{eventData, belowStack},
		events: on("amd64", readFault), missing: "calls do not access memory"},
	{function: "indirect", args: [3]uint64{7, 5, data}, room: 64, absent: []uint64{eventData, belowStack},
		events: power(readFault, "amd64", readFault), missing: "calls do not access memory"},
	{function: "call", args: [3]uint64{7, 5}, room: 64, absent: []uint64{belowStack}, events: all("")},

	{function: "jump", args: [3]uint64{eventCode, 5}, absent: []uint64{eventCode}, events: all(fetchFault)},
	{function: "crossing", args: [3]uint64{7, 5}, events: on("amd64", fetchFault),
		missing: "instructions are aligned, and so in one page"},

	{function: "system", args: [3]uint64{7, 5}, events: all("system call")},
	{function: "secondsystem", args: [3]uint64{7, 5}, events: on("amd64", "system call"),
		missing: "a jump takes the place of one instruction"},
	{function: "interrupt", args: [3]uint64{7, 5}, events: on("amd64", "exception"),
		missing: "there is one instruction that calls the system"},
	{function: "hypervisor", args: [3]uint64{7, 5}, events: on("arm64", "undefined instruction"),
		missing: "the hypervisor is called as the system, or by what programs must not execute"},
	{function: "divide", args: [3]uint64{1000, 0}, events: on("amd64", "exception", "arm64", "", "ppc64", "", "ppc64le", "")},
	{function: "dividememory", args: [3]uint64{1000, 5}, events: on("amd64", "exception"),
		missing: "divisions do not trap, and their operands are in registers"},
	{function: "undefined", args: [3]uint64{7, 5},
		events: power("refused instruction", "amd64", "undefined instruction", "arm64", "undefined instruction")},
	{function: "unknown", args: [3]uint64{7, 5}, events: on("amd64", "refused instruction"),
		missing: "the engine runs no such instruction wrongly: what it does not know is undefined to it"},
	{function: "halt", args: [3]uint64{7, 5}, events: on("amd64", "halt", "arm64", "halt"),
		missing: "only the hypervisor can stop the CPU"},
	{function: "breakpoint", args: [3]uint64{7, 5}, events: all("breakpoint"),
		refused: on("amd64", "amd64/int3", "arm64", "arm64/brk", "ppc64", "ppc64/move-trap", "ppc64le", "ppc64/move-trap")},
	{function: "trap", args: [3]uint64{7, 5}, events: power("breakpoint", "amd64", "breakpoint"),
		refused: on("amd64", "amd64/move-trap", "ppc64", "ppc64/move-trap", "ppc64le", "ppc64/move-trap"),
		missing: "there is one breakpoint instruction"},
}

// eventHost runs a function and answers what it asks.
type eventHost struct {
	*program
	isa    arch.Prober
	one    *eventCase
	text   map[uint64]decode.Inst // of the program without probes
	absent map[uint64]func() error
	record []seenEvent
	start  machine.State

	faultAddr uint64 // of the last fault
}

// seenEvent is an event as the host sees it.
type seenEvent struct {
	what  string
	state machine.State
}

func newEventHost(t *testing.T, isaName string, one *eventCase, opt runtime.Options) *eventHost {
	t.Helper()
	return newEventHostOn(t, isaName, one, guest.Options{}, opt)
}

func newEventHostOn(t *testing.T, isaName string, one *eventCase, mopt guest.Options, opt runtime.Options) *eventHost {
	t.Helper()
	h := &eventHost{one: one, text: map[uint64]decode.Inst{}}
	h.program = openFile(t, isaName, "testdata/events/"+isaName+".elf", mopt, opt)
	h.isa = h.m.ISA
	h.start = h.isa.Registers().NewState()
	h.m.CPU(0).Save(h.start)
	names := []string{one.function}
	if strings.Contains("call indirect throughstack", one.function) {
		names = append(names, "leaf")
	}
	for _, name := range names {
		addr, size, err := h.p.Symbol(name)
		if err != nil {
			t.Fatal(err)
		}
		code := make([]byte, size)
		if err := h.m.Read(code, addr); err != nil {
			t.Fatal(err)
		}
		for _, inst := range decode.Sweep(h.isa, nil, code, addr) {
			h.text[inst.Addr] = inst
		}
	}
	if err := h.m.Map(eventStack, guest.PageSize, machine.PermRead|machine.PermWrite); err != nil {
		t.Fatal(err)
	}
	return h
}

// event returns the instruction of a function that has the event.
func (h *eventHost) event(t *testing.T) uint64 {
	t.Helper()
	base, _, err := h.p.Symbol(h.one.function)
	if err != nil {
		t.Fatal(err)
	}
	offset, _, err := h.p.Symbol(h.one.function + ".event")
	if err != nil {
		t.Fatal(err)
	}
	return base + offset
}

// prepare has memory that is not there, or must not be accessed.
func (h *eventHost) prepare(t *testing.T) {
	t.Helper()
	h.absent = map[uint64]func() error{}
	const readWrite = machine.PermRead | machine.PermWrite
	for _, page := range h.one.absent {
		if err := h.m.Unmap(page, guest.PageSize); err != nil {
			t.Fatal(err)
		}
		h.absent[page] = func() error { return errors.Join(h.m.Map(page, guest.PageSize, readWrite), h.fill(page)) }
	}
	deny := func(symbol string, offset uint64, perm machine.Perm) {
		addr, _, err := h.p.Symbol(symbol)
		if err != nil {
			return
		}
		page := (addr + offset) &^ (guest.PageSize - 1)
		was := h.m.Perm(page)
		if err := h.m.Protect(page, guest.PageSize, perm); err != nil {
			t.Fatal(err)
		}
		h.absent[page] = func() error { return h.m.Protect(page, guest.PageSize, was) }
	}
	switch h.one.function {
	case "relative", "relativevector":
		deny("far", 0, 0)
		deny("literal", 0, 0)
	case "crossing":
		deny("crossing", 4, machine.PermRead)
	}
	if err := h.m.Write(eventStack, make([]byte, guest.PageSize)); err != nil {
		t.Fatal(err)
	}
	zero := make([]byte, 8)
	if addr, _, err := h.p.Symbol("zero"); err == nil {
		if err := h.m.Write(addr, zero); err != nil {
			t.Fatal(err)
		}
	}
}

// fill gives a page that has come contents: numbers, addresses, or code.
func (h *eventHost) fill(page uint64) error {
	word := uint64(41)
	if leaf, _, err := h.p.Symbol("leaf"); err == nil && strings.Contains("indirect throughstack", h.one.function) {
		word = leaf
	}
	if h.one.function == "return" {
		word = h.m.CPU(0).Reg(h.isa.Registers().Index("rcx"))
	}
	if page == eventCode {
		return errors.Join(h.m.Write(page, h.isa.ReturnInst()), h.m.Protect(page, guest.PageSize, machine.PermRead|machine.PermExec))
	}
	for _, at := range []uint64{page, page + 0x100, page + 0x108} {
		if err := h.m.WriteWord(at, word); err != nil {
			return err
		}
	}
	return nil
}

// run calls the function and answers all events. It returns the result.
func (h *eventHost) run(t *testing.T) (uint64, error) {
	t.Helper()
	h.prepare(t)
	h.record = nil
	file, k := h.isa.Registers(), h.isa.Convention()
	c := h.m.CPU(0)
	c.Restore(h.start)
	aligned := uint64(eventStack) + (16-k.Misalignment)%16
	c.SetReg(file.SP, aligned+k.Misalignment+k.RedZone+k.Frame+h.one.room)
	f, err := h.p.Function(h.one.function)
	if err != nil {
		return 0, err
	}
	result, err := h.Call(t.Context(), 0, f, h.one.args[:]...)
	for range 10 {
		if err == nil {
			break
		}
		if err := h.answer(err); err != nil {
			return 0, err
		}
		if err = h.Run(t.Context(), 10_000); err == nil {
			result = h.Result(0)
		}
	}
	return result, err
}

// answer does what the program has the host do.
func (h *eventHost) answer(err error) error {
	file, k := h.isa.Registers(), h.isa.Convention()
	c := h.m.CPU(0)
	state := file.NewState()
	c.Save(state)
	see := func(format string, args ...any) {
		h.record = append(h.record, seenEvent{fmt.Sprintf(format, args...), state})
	}
	var fault *runtime.FaultError
	if errors.As(err, &fault) {
		see("memory fault %v of %#x at %#x", fault.Access, fault.Page, fault.Addr)
		come := h.absent[fault.Page]
		if come == nil {
			return err
		}
		delete(h.absent, fault.Page)
		return come()
	}
	var stop *runtime.StopError
	if !errors.As(err, &stop) {
		return err
	}
	ev := stop.Event
	see("%v %d of %x at %#x", ev.Kind, ev.Number, ev.Inst.Bytes(), ev.Addr)
	goOn := func(by uint64) error {
		inst, ok := h.text[ev.Addr]
		if !ok {
			return err
		}
		c.SetReg(k.Result, c.Reg(k.Result)+by)
		c.SetReg(file.PC, inst.Next())
		return nil
	}
	switch ev.Kind {
	case machine.EventSyscall:
		c.SetReg(k.Result, 1000)
	case machine.EventException:
		if ev.Number != 0 {
			c.SetReg(k.Result, 2000)
			break
		}
		if zero, _, err := h.p.Symbol("zero"); err == nil && h.one.function == "dividememory" {
			return h.m.WriteWord(zero, 3)
		}
		c.SetReg(k.Args[1], 7)
	case machine.EventUndefined, machine.EventRefused:
		return goOn(5)
	case machine.EventBreakpoint:
		return goOn(9)
	case machine.EventHalt:
	default:
		return err
	}
	return nil
}

// kinds are the recorded events in words.
func (h *eventHost) kinds() string {
	var kinds []string
	for _, e := range h.record {
		kind, _, _ := strings.Cut(e.what, " of ")
		kinds = append(kinds, strings.TrimRight(kind, " 0123456789"))
	}
	return strings.Join(kinds, ", ")
}

// differences are the registers that differ.
func differences(file *machine.File, got, want machine.State) string {
	var list []string
	for i := range file.Registers {
		if g, w := file.Bytes(got, i), file.Bytes(want, i); !bytes.Equal(g, w) {
			list = append(list, fmt.Sprintf("%s %x, want %x", file.Registers[i].Name, g, w))
		}
	}
	return strings.Join(list, "; ")
}

// eventWay is a way to have instructions executed.
type eventWay struct {
	name  string
	opt   runtime.Options
	probe func() *held
	suits func(isa string) bool
}

func postProbe() *held { return hold(runtime.Probe{PostHandler: func(*runtime.Context) {}}) }

var eventWays = []eventWay{
	{name: "stepped", opt: runtime.Options{NoBoost: true, NoOptimize: true}},
	{name: "stepped, handler after", opt: runtime.Options{NoBoost: true, NoOptimize: true}, probe: postProbe},
	{name: "trapped", opt: runtime.Options{Stepping: runtime.StepTrap, NoBoost: true, NoOptimize: true}, suits: steps},
	{name: "trapped, handler after", opt: runtime.Options{Stepping: runtime.StepTrap, NoBoost: true, NoOptimize: true}, probe: postProbe, suits: steps},
	{name: "boosted", opt: runtime.Options{NoOptimize: true}},
	{name: "boosted or trapped", opt: runtime.Options{Stepping: runtime.StepTrap, NoOptimize: true}, suits: steps},
	{name: "optimized", opt: runtime.Options{}},
	{name: "counted", opt: runtime.Options{}, probe: func() *held { return hold(runtime.Probe{Counter: true}) }},
	{name: "uprobe", opt: runtime.Options{Uprobes: true}},
	{name: "uprobe, trapped", opt: runtime.Options{Uprobes: true, Stepping: runtime.StepTrap}, suits: steps},
}

// eventPlaces say which instructions of a function have probes.
var eventPlaces = []struct {
	name string
	at   func(addr, event uint64, inst *decode.Inst) bool
}{
	{"at the instruction", func(addr, event uint64, _ *decode.Inst) bool { return addr == event }},
	{"before it", func(_, event uint64, inst *decode.Inst) bool { return inst.Next() == event }},
	{"at every instruction", func(uint64, uint64, *decode.Inst) bool { return true }},
}

// TestEvents has every event that an instruction may have in every way to execute
// probed instructions: the host sees the events that it sees without probes, once
// each, and with the same registers. Where it answers them the program does what it
// does without probes, and each instruction is one hit.
func TestEvents(t *testing.T) {
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			t.Parallel()
			taken := map[string]int{}
			for i := range eventCases {
				one := &eventCases[i]
				t.Run(one.function, func(t *testing.T) {
					want, exists := one.events[isa]
					if !exists && one.missing == "" {
						t.Fatal("no event, and no reason")
					}
					if !exists {
						skip.Pointless(t, one.missing)
					}
					eventInEveryWay(t, isa, one, want, taken)
				})
			}
			for _, way := range []string{"stepped step", "stepped emulate", "boosted boost", "optimized jump", "uprobe step"} {
				if taken[way] == 0 {
					t.Errorf("never %s", way)
				}
			}
			t.Log(taken)
		})
	}
}

func eventInEveryWay(t *testing.T, isa string, one *eventCase, want string, taken map[string]int) {
	plain := newEventHost(t, isa, one, runtime.Options{})
	result, err := plain.run(t)
	if err != nil {
		t.Fatalf("without probes: %v", err)
	}
	if got := plain.kinds(); got != want {
		t.Fatalf("events without probes: %q, want %q", got, want)
	}
	end := plain.isa.Registers().NewState()
	plain.m.CPU(0).Save(end)
	for i := range eventWays {
		way := &eventWays[i]
		if way.suits != nil && !way.suits(isa) {
			t.Logf("not %s: the machine has no single-step exception", way.name)
			continue
		}
		for _, where := range eventPlaces {
			t.Run(way.name+" "+where.name, func(t *testing.T) {
				opt := way.opt
				opt.Observe = func(tr runtime.Transition) {
					if tr.Method != runtime.MethodNone {
						taken[way.name+" "+tr.Method.String()]++
					} else if tr.Jump && !tr.Missed {
						taken[way.name+" jump"]++
					}
				}
				h := newEventHost(t, isa, one, opt)
				h.probed(t, way, where.at, func(round int, r uint64) {
					if r != result {
						t.Errorf("round %d: result %#x, want %#x", round, r, result)
					}
					h.sameEvents(t, round, plain.record)
					state := h.isa.Registers().NewState()
					h.m.CPU(0).Save(state)
					if d := differences(h.isa.Registers(), state, end); d != "" {
						t.Errorf("round %d: in the end %s", round, d)
					}
				})
			})
		}
	}
}

// sameEvents compares what the host has seen with what it sees without probes.
func (h *eventHost) sameEvents(t *testing.T, round int, want []seenEvent) {
	t.Helper()
	for i, e := range h.record {
		if i == len(want) {
			t.Errorf("round %d: %s besides", round, e.what)
			return
		}
		if e.what != want[i].what {
			t.Errorf("round %d: %s, want %s", round, e.what, want[i].what)
		}
		if d := differences(h.isa.Registers(), e.state, want[i].state); d != "" {
			t.Errorf("round %d: %s: %s", round, e.what, d)
		}
	}
	if len(h.record) < len(want) {
		t.Errorf("round %d: %d events, want %d", round, len(h.record), len(want))
	}
}

const eventRounds = 3

// probed runs the function several times with probes, and checks that each instruction
// is a hit.
func (h *eventHost) probed(t *testing.T, way *eventWay, at func(addr, event uint64, inst *decode.Inst) bool, check func(round int, result uint64)) {
	t.Helper()
	event := h.event(t)
	probes := map[uint64]*held{}
	calls := map[uint64]int{}
	after := map[uint64]int{}
	for addr, inst := range h.text {
		if !at(addr, event, &inst) {
			continue
		}
		p := hold(runtime.Probe{})
		if way.probe != nil {
			p = way.probe()
		}
		p.Addr = addr
		if !p.Counter {
			p.PreHandler = func(*runtime.Context) bool { calls[addr]++; return false }
		}
		if p.PostHandler != nil {
			p.PostHandler = func(*runtime.Context) { after[addr]++ }
		}
		err := p.attach(h)
		var refused *runtime.RegisterError
		if errors.As(err, &refused) {
			if rule := h.one.refused[h.isa.Name()]; addr == event && refused.Rule.ID != rule && !way.opt.Uprobes {
				t.Errorf("the probe of the instruction with the event: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		probes[addr] = p
	}
	for round := range eventRounds {
		if err := h.Settle(); err != nil {
			t.Fatal(err)
		}
		result, err := h.run(t)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		check(round, result)
	}
	for _, addr := range slices.Sorted(maps.Keys(probes)) {
		p := probes[addr]
		if n := p.Hits(); n != eventRounds || p.Nmissed() != 0 {
			t.Errorf("%#x: %d hits and %d missed in %d calls", addr, n, p.Nmissed(), eventRounds)
		}
		if !p.Counter && calls[addr] != eventRounds {
			t.Errorf("%#x: the handler was called %d times in %d calls", addr, calls[addr], eventRounds)
		}
		if p.PostHandler != nil && after[addr] != eventRounds {
			t.Errorf("%#x: the handler after was called %d times in %d calls", addr, after[addr], eventRounds)
		}
	}
}
