//go:build unicorn

package matrix

import (
	"errors"
	"slices"
	"strings"

	"xol/machine"
	"xol/runtime"
)

var nestedCases = []lifeCase{
	{name: "hit in a handler", run: hitInHandler},
	{name: "hit in a handler after", run: hitInPost},
	{name: "hit in a handler runs no handlers", run: hitRunsNone},
	{name: "hit in a hit, by an interrupt anywhere", run: hitInHit, exact: true},
	{name: "hit in a hit of the same probe", run: hitInSameHit, exact: true},
	{name: "hit in REENTER", run: hitInReenter, except: not(Emulated, "an emulated instruction takes no time, so that nothing can happen meanwhile")},
	{name: "the handler's registers are kept in a call", run: callKeepsRegisters},
	{name: "breakpoint of somebody else: notifiers", run: foreignNotified},
	{name: "breakpoint of somebody else: default", run: foreignDefault},
	{name: "two CPUs hit one probe", run: twoCPUs, cpus: 2},
}

// missed returns the states of a hit of a function's probe inside a hit of
// another function's that is in a state.
func (l *lab) missed(function, status string, k kind) string {
	format := "N:" + status + "/missed N:reenter N:reenter/step N:" + status
	switch {
	case k&first != 0:
	case l.mode == Boosted, k&boosted != 0:
		format = "N:" + status + "/missed N:" + status + "/boost"
	case l.mode == Optimized:
		format = "N:" + status + "/missed/jump"
	}
	return strings.ReplaceAll(format, "N", function)
}

// inside puts states into those of a hit: after the first of a status.
func inside(hit, status, states string) string {
	fields := strings.Fields(hit)
	for i, f := range fields {
		if _, is, _ := strings.Cut(f, ":"); is == status || is == status+"/jump" {
			return strings.Join(slices.Insert(fields, i+1, states), " ")
		}
	}
	return hit
}

// hitInHandler: the inner hit is missed, its instruction executed, and the outer
// one goes on.
func hitInHandler(l *lab) {
	s := l.subject()
	leaf := l.register(l.at("leaf", "subject"), runtime.Probe{})
	l.ready("leaf", 1)
	nest := true
	l.register(s, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		if nest {
			v, err := c.Call(l.function("leaf"), 5)
			l.must(err)
			equal(l, "the nested call's result", v, 105)
		}
		return false
	}})
	l.ready(s.function, 1, 2)
	for i := range uint64(3) {
		l.returns(subjectResult(1, 2), s.function, 1, 2)
		l.states(inside(l.one(plain), "active", l.missed("leaf", "active", plain)))
		equal(l, "Nmissed", leaf.Nmissed(), i+2)
		equal(l, "Hits of the inner probe", leaf.Hits(), 1)
	}
	nest = false
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.returns(105, "leaf", 5)
	l.states(l.one(plain), l.hit("leaf", plain))
}

func hitInPost(l *lab) {
	s := l.subject()
	leaf := l.register(l.at("leaf", "subject"), runtime.Probe{})
	l.ready("leaf", 1)
	l.register(s, runtime.Probe{PostHandler: func(c *runtime.Context) {
		v, err := c.Call(l.function("leaf"), 5)
		l.must(err)
		equal(l, "the nested call's result", v, 105)
	}})
	for i := range uint64(3) {
		l.returns(subjectResult(1, 2), s.function, 1, 2)
		l.states(inside(l.one(post), "ssdone", l.missed("leaf", "ssdone", plain)))
		equal(l, "Nmissed", leaf.Nmissed(), i+1)
	}
}

func hitRunsNone(l *lab) {
	s := l.subject()
	ran := 0
	inner := l.register(l.at("leaf", "subject"), runtime.Probe{
		PreHandler:  func(*runtime.Context) bool { ran++; return false },
		PostHandler: func(*runtime.Context) { ran++ },
	})
	l.register(s, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		v, err := c.Call(l.function("leaf"), 5)
		l.must(err)
		equal(l, "the nested call's result", v, 105)
		return false
	}})
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(inside(l.one(first), "active", l.missed("leaf", "active", first)))
	equal(l, "calls of the inner handlers", ran, 0)
	equal(l, "Nmissed", inner.Nmissed(), 1)
	l.returns(105, "leaf", 5)
	l.states(l.hit("leaf", post))
	equal(l, "calls of the inner handlers", ran, 2)
}

// hitInHit has an interrupt, whose function is probed as well, come before
// each instruction that a call of the subject's function executes.
func hitInHit(l *lab) {
	s := l.subject()
	outer := l.register(s, runtime.Probe{})
	inner := l.register(l.at("interrupt", "subject"), runtime.Probe{})
	l.ready(s.function, 1, 2)
	l.ready("interrupt", scratch)
	l.setWord(scratch+8, 0)
	hits := inner.Hits()
	const boundaries = 200
	boundary := 0
	for ; boundary < boundaries && l.err == nil; boundary++ {
		if !l.interruptAt(boundary, "interrupt", plain, scratch) {
			break
		}
	}
	if boundary == boundaries || boundary < 4 {
		l.fail("%d boundaries between instructions", boundary)
	}
	equal(l, "the interrupts that were counted", l.word(scratch+8), uint64(boundary))
	equal(l, "hits and missed ones of the interrupt's probe", inner.Hits()-hits+inner.Nmissed(), uint64(boundary))
	equal(l, "Nmissed of the outer probe", outer.Nmissed(), 0)
	stepped := l.mode == SteppedBreakpoint || l.mode == SteppedTrap
	equal(l, "interrupts inside a hit", inner.Nmissed() > 0, stepped)
}

// hitInSameHit is hitInHit, and the interrupt calls the function that it
// interrupts.
func hitInSameHit(l *lab) {
	s := l.subject()
	k := plain
	if l.mode == Emulated {
		k = transfer
	}
	p := l.register(s, runtime.Probe{})
	l.ready(s.function, 1, 2)
	boundary := uint64(0)
	for l.err == nil && l.interruptAt(int(boundary), s.function, k, 3, 4) {
		boundary++
	}
	equal(l, "hits and missed ones", p.Hits()+p.Nmissed(), 2+2*boundary)
	stepped := l.mode == SteppedBreakpoint || l.mode == SteppedTrap
	equal(l, "hits inside a hit", p.Nmissed() > 0, stepped)
}

// interruptAt calls the subject's function, has another function of kind k, whose
// probe is ready, interrupt it when some instructions have run, and lets it
// finish. It reports whether it was still running.
func (l *lab) interruptAt(boundary int, function string, k kind, args ...uint64) bool {
	s := l.subject()
	l.must(l.r.Start(0, l.function(s.function), 1, 2))
	for range boundary {
		l.must(l.r.Step(0, 1))
		if l.err != nil || !l.m.CPU(0).Running() {
			l.log = nil
			return false
		}
	}
	before := l.log
	l.log = nil
	l.must(l.r.Interrupt(0, l.function(function), args...))
	during := l.log
	l.log = before
	l.must(l.r.Run(l.ctx, stepsAtMost))
	equal(l, "an interrupted call's result", l.r.Result(0), subjectResult(1, 2))
	if len(before) > 0 && strings.Contains(before[len(before)-1], "ss") {
		l.states(l.one(plain))
		l.log = during
		l.states(l.missed(function, "ss", k))
		return true
	}
	l.states(l.one(plain))
	l.log = during
	l.states(l.hit(function, k))
	return true
}

// hitInReenter: a handler calls a probed function, whose instruction faults, and
// what handles the fault calls another probed one.
func hitInReenter(l *lab) {
	s := l.subject()
	second := l.at("second", "subject")
	l.register(second, runtime.Probe{})
	l.register(l.at("load", "load"), runtime.Probe{FaultHandler: func(c *runtime.Context, _ *runtime.Fault) bool {
		_, err := c.Call(l.function("second"), 1)
		var reenter *runtime.ReenterError
		if !errors.As(err, &reenter) {
			l.fail("a call in REENTER: %v, want a *runtime.ReenterError", err)
		}
		return false
	}})
	l.register(s, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		_, _ = c.Call(l.function("load"), nowhere)
		return false
	}})
	_, err := l.r.Call(l.ctx, 0, l.function(s.function), 1, 2)
	var reenter *runtime.ReenterError
	if !errors.As(err, &reenter) {
		l.fail("the run: %v, want a *runtime.ReenterError", err)
		return
	}
	equal(l, "the probe that was hit", reenter.Addr, second.addr)
	l.states(s.function+":active", "load:active/missed load:reenter load:reenter/step")
	if err := l.r.Run(l.ctx, 1); err == nil {
		_, err = l.r.Call(l.ctx, 0, l.function("leaf"), 1)
		equal(l, "the run goes on", err == nil, false)
	}
}

func callKeepsRegisters(l *lab) {
	s := l.subject()
	l.register(s, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		before := l.registers(c)
		v, err := c.Call(l.function("recurse"), 10)
		l.must(err)
		equal(l, "the call's result", v, 55)
		if !slices.Equal(l.registers(c), before) {
			l.fail("a call changes registers: %#x, was %#x", l.registers(c), before)
		}
		return false
	}})
	l.ready(s.function, 1, 2)
	l.computes()
	l.states(l.one(plain), l.one(plain))
}

// registers returns what a handler sees in all registers that it sees.
func (l *lab) registers(c *runtime.Context) (values []uint64) {
	for _, r := range l.isa.Registers().Registers {
		if r.Size <= 8 {
			v, _ := c.Regs.Get(r.Name)
			values = append(values, v)
		}
	}
	return values
}

// foreignNotified: notifiers are asked in order, up to the one that has an
// answer.
func foreignNotified(l *lab) {
	s := l.subject()
	l.register(s, runtime.Probe{})
	l.ready(s.function, 1, 2)
	trap, after := l.at("trap", "trap"), l.at("trap", "after")
	var asked string
	notify := func(name string, handles bool) {
		l.r.Notify(func(cpu int, regs machine.CPU, ev machine.Event) bool {
			asked += name
			equal(l, "the breakpoint", ev.Addr, trap.addr)
			equal(l, "the CPU", cpu, 0)
			if handles {
				regs.SetReg(l.isa.Registers().PC, after.addr)
			}
			return handles
		})
	}
	notify("a", false)
	notify("b", true)
	notify("c", true)
	l.returns(3, "trap")
	l.states()
	l.register(after, runtime.Probe{})
	l.returns(3, "trap")
	l.states(l.hit("trap", first))
	equal(l, "the notifiers", asked, "abab")
	l.computes()
	l.states(l.one(plain), l.one(plain))
}

func foreignDefault(l *lab) {
	s := l.subject()
	l.register(s, runtime.Probe{})
	l.ready(s.function, 1, 2)
	_, err := l.r.Call(l.ctx, 0, l.function("trap"))
	var stop *runtime.StopError
	if !errors.As(err, &stop) {
		l.fail("trap: %v, want a *runtime.StopError", err)
		return
	}
	equal(l, "the event", stop.Event.Kind, machine.EventBreakpoint)
	equal(l, "its address", stop.Event.Addr, l.at("trap", "trap").addr)
	l.states()
	l.computes()
	l.states(l.one(plain), l.one(plain))
}

// twoCPUs has two CPUs in one loop, whose body is probed.
func twoCPUs(l *lab) {
	s, k := l.at("loop", "body"), plain
	if l.mode == Emulated {
		s, k = l.at("loop", "branch"), transfer
	}
	p := l.register(s, runtime.Probe{})
	l.ready("loop", 1)
	counts := [...]uint64{40, 60}
	for cpu, n := range counts {
		l.must(l.r.Start(cpu, l.function("loop"), n))
	}
	l.must(l.r.Run(l.ctx, stepsAtMost))
	for cpu, n := range counts {
		equal(l, "the sum", l.r.Result(cpu), n*(n+1)/2)
	}
	equal(l, "Hits", p.Hits(), 1+counts[0]+counts[1])
	equal(l, "Nmissed", p.Nmissed(), 0)
	both := l.log
	for cpu, n := range counts {
		l.log = slices.DeleteFunc(slices.Clone(both), func(state string) bool { return strings.HasPrefix(state, "1/") != (cpu == 1) })
		for i := range l.log {
			l.log[i] = strings.TrimPrefix(l.log[i], "1/")
		}
		l.states(strings.Repeat(l.hit("loop", k)+" ", int(n)))
	}
}
