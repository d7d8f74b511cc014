//go:build unicorn

package runtime_test

import (
	"cmp"
	"errors"
	"testing"

	"xol/arch"
	"xol/decode"
	"xol/guest"
	"xol/machine"
	"xol/runtime"
)

// stackWays are the ways in which the runtime's own code uses the stack. The
// functions use it at most to return.
var stackWays = []struct {
	name     string
	function string // whose event is the only place of a probe; "plain" where it is empty
	result   uint64
	opt      runtime.Options
	probe    func() *held
	returns  bool // a return probe instead
	// shown says that the host sees where the stack goes in the middle of the code: there is no
	// way back from it.
	shown bool
}{
	{name: "optimized", result: plainResult},
	{name: "optimized in a kernel", result: plainResult, opt: runtime.Options{Kernel: true}},
	{name: "counted in a kernel", result: plainResult, opt: runtime.Options{Kernel: true},
		probe: func() *held { return hold(runtime.Probe{Counter: true}) }},
	{name: "counted", result: plainResult, probe: func() *held { return hold(runtime.Probe{Counter: true}) }},
	{name: "returning", result: plainResult, returns: true},
	{name: "entered", function: "entered", result: 7 + 5, shown: true, opt: runtime.Options{EntryProbes: true}},
}

const plainResult = (7 + 5 + 5) ^ 7

// deepest is more than what detour buffers use of the stack, in bytes.
const deepest = 1024

// TestStackOfDetourBuffers has the stack end, or have a hole, at every place in what
// detour buffers and the trampoline of return probes save: a program that does not
// use the stack does not notice.
func TestStackOfDetourBuffers(t *testing.T) {
	eachStackWay(t, false, func(t *testing.T, h *eventHost, check func()) {
		const both = 2 * guest.PageSize
		for depth := uint64(0); depth < deepest; depth += 8 * 7 {
			for _, hole := range []uint64{belowStack, eventStack} {
				h.startAt(t, eventStack+depth&^15)
				if err := h.m.Protect(hole, guest.PageSize, 0); err != nil {
					t.Fatal(err)
				}
				h.goOn(t)
				check()
				if err := h.m.Protect(belowStack, both, machine.PermRead|machine.PermWrite); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestStackGoesInsideDetourBuffers takes the stack away before every instruction of
// detour buffers, and puts it back where it is asked for.
func TestStackGoesInsideDetourBuffers(t *testing.T) {
	eachStackWay(t, true, func(t *testing.T, h *eventHost, check func()) {
		for steps, running := 1, true; running; steps++ {
			h.startAt(t, eventStack+160)
			for range steps {
				if running = h.m.CPU(0).Running(); running {
					if err := h.Step(0, 1); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := h.m.Protect(belowStack, 2*guest.PageSize, 0); err != nil {
				t.Fatal(err)
			}
			h.goOn(t)
			check()
			if err := h.m.Protect(belowStack, 2*guest.PageSize, machine.PermRead|machine.PermWrite); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// eachStackWay calls f with a program in every way. After each call check holds what the
// host has seen against what it sees without probes: a return may find no stack.
func eachStackWay(t *testing.T, inside bool, f func(t *testing.T, h *eventHost, check func())) {
	for _, isa := range arch.Names() {
		for i := range stackWays {
			way := &stackWays[i]
			t.Run(isa+" "+way.name, func(t *testing.T) {
				one := &eventCase{function: cmp.Or(way.function, "plain"), args: [3]uint64{7, 5}}
				opt := way.opt
				opt.Pass = 1 << 40
				h := newEventHostOn(t, isa, one, guest.Options{Exact: true}, opt)
				if err := h.m.Map(belowStack, guest.PageSize, machine.PermRead|machine.PermWrite); err != nil {
					t.Fatal(err)
				}
				var probes []*held
				var ret *runtime.Link
				if way.returns {
					ret = h.returnProbe(t, runtime.ReturnProbe{Symbol: one.function, Handler: func(*runtime.ReturnContext) {}})
				}
				for addr := range h.text {
					if way.returns || way.function != "" && addr != h.event(t) {
						continue
					}
					p := hold(runtime.Probe{})
					if way.probe != nil {
						p = way.probe()
					}
					p.Addr = addr
					if err := errors.Join(p.attach(h), h.Settle()); err != nil {
						t.Fatal(err)
					}
					probes = append(probes, p)
				}
				calls := uint64(0)
				f(t, h, func() {
					calls++
					same(t, "the result", h.Result(0), way.result)
					if inside && way.shown {
						return
					}
					if len(h.record) > 1 || len(h.record) == 1 && h.text[h.faultAddr].Flow != decode.FlowReturn {
						t.Errorf("call %d: %d events, the last %s", calls, len(h.record), h.record[len(h.record)-1].what)
					}
					if err := h.Settle(); err != nil {
						t.Fatal(err)
					}
				})
				for _, p := range probes {
					if n := p.Hits(); n != calls || p.Nmissed() != 0 {
						t.Errorf("%#x: %d hits and %d missed in %d calls", p.Addr, n, p.Nmissed(), calls)
					}
				}
				if ret != nil && ret.Hits() != calls {
					t.Errorf("%d returns of %d calls", ret.Hits(), calls)
				}
				t.Logf("%d calls", calls)
			})
		}
	}
}

// startAt has the CPU call the function with a stack pointer.
func (h *eventHost) startAt(t *testing.T, sp uint64) {
	t.Helper()
	file, k := h.isa.Registers(), h.isa.Convention()
	c := h.m.CPU(0)
	c.Restore(h.start)
	c.SetReg(file.SP, sp+2*k.Misalignment+k.RedZone+k.Frame)
	f, err := h.p.Function(h.one.function)
	if err == nil {
		err = h.Start(0, f, h.one.args[:]...)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.record = nil
}

// goOn lets the function return. What it asks for of the stack it gets.
func (h *eventHost) goOn(t *testing.T) {
	t.Helper()
	for range 10 {
		err := h.Run(t.Context(), 10_000)
		var fault *runtime.FaultError
		if !errors.As(err, &fault) {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		h.faultAddr = fault.Addr
		h.absent = map[uint64]func() error{fault.Page: func() error {
			return h.m.Protect(fault.Page, guest.PageSize, machine.PermRead|machine.PermWrite)
		}}
		if err := h.answer(err); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("too many faults")
}
