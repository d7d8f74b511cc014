//go:build unicorn

package matrix

import (
	"slices"
	"strings"

	"xol/runtime"
)

const noJump = "nothing is optimized"

// oneInstruction is the except of cases with a neighbour inside a region.
func oneInstruction(target string, mode Mode) string {
	switch {
	case mode != Optimized:
		return noJump
	case target != "amd64":
		return "the jump replaces one instruction"
	}
	return ""
}

var optimizeCases = []lifeCase{
	{name: "optimize: a breakpoint first, a jump later", run: jumpLater, except: only(Optimized, noJump)},
	{name: "optimize: hits meanwhile", run: jumpMeanwhile, except: only(Optimized, noJump), options: shortPasses},
	{name: "optimize: not with a handler after", run: jumpPost, except: only(Optimized, noJump)},
	{name: "optimize: not while disabled", run: jumpDisabled, except: only(Optimized, noJump)},
	{name: "optimize: not with a probe inside the region", run: jumpNeighbour, except: oneInstruction},
	{name: "optimize: a second probe", run: jumpSecond, except: only(Optimized, noJump)},
	{name: "optimize: never what redirects", run: jumpRedirects, except: only(Optimized, noJump)},
	{name: "optimize: switched off and on", run: jumpSwitch, except: only(Optimized, noJump)},
	{name: "optimize: switched off on the way", run: jumpSwitchMeanwhile, except: only(Optimized, noJump)},
	{name: "optimize: no longer wanted on the way", run: jumpUnwanted, except: only(Optimized, noJump)},
	{name: "optimize: unregistered on the way", run: jumpUnregistered, except: only(Optimized, noJump)},
	{name: "optimize: not while a CPU is in the region", run: jumpQuiet, except: only(Optimized, noJump), exact: true},
	{name: "optimize: a counter and a handler in turn", run: jumpCounter, except: only(Optimized, noJump)},
}

func shortPasses(_ *lab, opt *runtime.Options) { opt.Pass = 60 }

func jumpLater(l *lab) {
	s := l.subject()
	text := l.text(s)
	p := l.register(s, runtime.Probe{})
	equal(l, "a breakpoint", l.breaks(s), true)
	equal(l, "Optimized", p.Optimized(), false)
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(first))
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(boosted))
	l.settle()
	equal(l, "a breakpoint", l.breaks(s), false)
	equal(l, "Optimized", p.Optimized(), true)
	equal(l, "optimized probes", l.r.Stats().Optimized, 1)
	l.computes()
	l.states(l.one(plain), l.one(plain))
	l.unregister(p)
	equal(l, "the text", l.text(s), text)
	l.settle()
	equal(l, "what is left", l.r.Stats(), runtime.Stats{})
	l.computes()
	l.states()
	equal(l, "Hits", p.Hits(), 4)
}

// jumpMeanwhile: a loop runs while the optimizer makes its passes.
func jumpMeanwhile(l *lab) {
	p := l.register(l.at("loop", "body"), runtime.Probe{})
	const n = 300
	l.returns(n*(n+1)/2, "loop", n)
	equal(l, "Hits", p.Hits(), n)
	equal(l, "Optimized", p.Optimized(), true)
	jumps := slices.Index(l.log, "loop:active/jump")
	if jumps <= 0 {
		l.fail("no hit came through a jump after others")
		return
	}
	before, after := l.log[:jumps], l.log[jumps:]
	l.log = after
	l.states(strings.Repeat(l.hit("loop", plain)+" ", len(after)/2))
	ways := [...]string{l.hit("loop", first), l.hit("loop", boosted), "loop:active loop:active/detour loop:idle"}
	for i := 0; len(before) > 0; {
		way := strings.Fields(ways[i])
		if len(way) <= len(before) && slices.Equal(before[:len(way)], way) {
			before = before[len(way):]
			continue
		}
		if i++; i == len(ways) {
			l.fail("a hit on the way goes through the states %s", strings.Join(before[:min(len(before), 4)], " "))
			return
		}
	}
}

// optimizedUntil checks that a probe is optimized until something happens, takes
// the breakpoint then, in the states given, and is optimized again once that is
// undone.
func (l *lab) optimizedUntil(p *runtime.Link, s spot, cause, undo func(), meanwhile string) {
	l.ready(s.function, 1, 2)
	for range 2 {
		equal(l, "Optimized", p.Optimized(), true)
		l.returns(subjectResult(1, 2), s.function, 1, 2)
		l.states(l.hit(s.function, plain))
		cause()
		l.settle()
		equal(l, "Optimized meanwhile", p.Optimized(), false)
		l.returns(subjectResult(1, 2), s.function, 1, 2)
		l.states(meanwhile)
		undo()
		l.settle()
	}
	equal(l, "Optimized", p.Optimized(), true)
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.hit(s.function, plain))
	equal(l, "Pending", l.r.Stats().Pending, 0)
}

func jumpPost(l *lab) {
	s := l.subject()
	p := l.register(s, runtime.Probe{})
	var b *runtime.Link
	attach := func() { b = l.register(s, runtime.Probe{PostHandler: func(*runtime.Context) {}}) }
	l.optimizedUntil(p, s, attach, func() { l.unregister(b) }, l.one(post))
}

func jumpDisabled(l *lab) {
	s := l.subject()
	p := l.register(s, runtime.Probe{})
	l.optimizedUntil(p, s, func() { l.must(p.Disable()) }, func() { l.must(p.Enable()) }, "")
}

func jumpNeighbour(l *lab) {
	s, after := l.subject(), l.afterSubject()
	p := l.register(s, runtime.Probe{})
	l.ready(s.function, 1, 2)
	equal(l, "Optimized", p.Optimized(), true)
	b := l.register(after, runtime.Probe{})
	equal(l, "the neighbour's breakpoint", l.breaks(after), true)
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(boosted), l.one(first))
	l.settle()
	equal(l, "Optimized meanwhile", p.Optimized(), false)
	equal(l, "the neighbour's Optimized", b.Optimized(), true)
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(boosted), l.one(plain))
	l.must(b.Disable())
	l.settle()
	equal(l, "Optimized beside a disabled neighbour", p.Optimized(), true)
	l.must(b.Enable())
	l.settle()
	equal(l, "Optimized beside an enabled one", p.Optimized(), false)
	l.unregister(b)
	l.settle()
	equal(l, "Optimized", p.Optimized(), true)
	l.computes()
	l.states(l.one(plain), l.one(plain))
}

// jumpSecond: with a second probe the breakpoint is back at once; the jump that
// the optimizer makes then is for both.
func jumpSecond(l *lab) {
	s := l.subject()
	var ran string
	a := l.register(s, runtime.Probe{PreHandler: trail(&ran, "a")})
	l.ready(s.function, 1, 2)
	for range 2 {
		ran = ""
		b := l.register(s, runtime.Probe{PreHandler: trail(&ran, "b")})
		equal(l, "Optimized", a.Optimized(), false)
		equal(l, "a breakpoint", l.breaks(s), true)
		l.returns(subjectResult(1, 2), s.function, 1, 2)
		l.states(l.one(boosted))
		l.settle()
		equal(l, "Optimized both", a.Optimized() && b.Optimized(), true)
		l.returns(subjectResult(1, 2), s.function, 1, 2)
		l.states(l.one(plain))
		l.unregister(b)
		equal(l, "a breakpoint", l.breaks(s), true)
		l.settle()
		l.returns(subjectResult(1, 2), s.function, 1, 2)
		l.states(l.one(plain))
		l.checkTrail(&ran, "ababa")
	}
}

func jumpRedirects(l *lab) {
	s := l.subject()
	spec := runtime.Probe{Redirects: true}
	p := l.register(s, spec)
	l.ready(s.function, 1, 2)
	equal(l, "Optimized", p.Optimized(), false)
	l.computes()
	l.states(l.one(boosted), l.one(boosted))
	l.unregister(p)
	q := l.register(s, runtime.Probe{})
	l.optimizedUntil(q, s, func() { p = l.register(s, spec) }, func() { l.unregister(p) }, l.one(boosted))
}

func jumpSwitch(l *lab) {
	s := l.subject()
	p := l.register(s, runtime.Probe{})
	l.optimizedUntil(p, s, func() { l.r.SetOptimization(false) }, func() { l.r.SetOptimization(true) }, l.one(boosted))
	l.r.SetOptimization(false)
	l.settle()
	equal(l, "a breakpoint", l.breaks(s), true)
	q := l.register(l.at("leaf", "subject"), runtime.Probe{})
	l.ready("leaf", 1)
	equal(l, "Optimized while it is off", q.Optimized(), false)
	l.r.SetOptimization(true)
	l.settle()
	equal(l, "Optimized", p.Optimized() && q.Optimized(), true)
	l.returns(105, "leaf", 5)
	l.states(l.hit("leaf", plain))
}

// jumpSwitchMeanwhile has the switch turned while the jump is being written.
func jumpSwitchMeanwhile(l *lab) {
	s := l.subject()
	p := l.register(s, runtime.Probe{})
	l.ready(s.function, 1, 2)
	for range 3 {
		l.r.SetOptimization(false)
		l.r.SetOptimization(true)
		l.returns(subjectResult(1, 2), s.function, 1, 2)
		l.wellFormed()
	}
	l.settle()
	equal(l, "Optimized", p.Optimized(), true)
	l.r.SetOptimization(false)
	l.unregister(p)
	l.settle()
	equal(l, "what is left", l.r.Stats(), runtime.Stats{})
	l.computes()
	l.states()
}

// jumpUnwanted has something forbid the jump while it is being written. On amd64
// a CPU that handles a hit keeps the optimizer from finishing; elsewhere the jump
// is one instruction, written at once.
func jumpUnwanted(l *lab) {
	s := l.at("loop", "body")
	var b *runtime.Link
	hits, optimizeAt := 0, 0
	var cause func()
	p := l.register(s, runtime.Probe{PreHandler: func(*runtime.Context) bool {
		hits++
		switch hits - optimizeAt {
		case 0:
			l.settle()
		case 1:
			cause()
		}
		return false
	}})
	for _, forbid := range [...]struct{ cause, undo func() }{
		{func() { l.r.SetOptimization(false) }, func() { l.r.SetOptimization(true) }},
		{func() { b = l.register(s, runtime.Probe{PostHandler: func(*runtime.Context) {}}) }, func() { l.unregister(b) }},
		{func() { l.must(p.Disable()) }, func() { l.must(p.Enable()) }},
	} {
		l.log = nil
		cause, optimizeAt = forbid.cause, hits+3
		l.returns(55, "loop", 10)
		equal(l, "a hit through a jump", slices.Contains(l.log, "loop:active/jump"), l.target != "amd64")
		l.settle()
		equal(l, "Optimized", p.Optimized(), false)
		optimizeAt = 0
		forbid.undo()
		l.settle()
		equal(l, "Optimized again", p.Optimized(), true)
		l.log = nil
		l.returns(55, "loop", 10)
		l.states(strings.Repeat(l.hit("loop", plain)+" ", 10))
		l.must(p.Disable())
		l.settle()
		l.must(p.Enable())
	}
}

// jumpUnregistered has the probe taken away at each of the optimizer's steps.
func jumpUnregistered(l *lab) {
	s := l.at("loop", "body")
	text := l.text(s)
	for n := 1; n < 60 && l.err == nil; n++ {
		hits := 0
		var p *runtime.Link
		p = l.register(s, runtime.Probe{PreHandler: func(*runtime.Context) bool {
			if hits++; hits == n {
				l.must(l.r.Settle())
			}
			if hits == n+2 {
				l.unregister(p)
			}
			return false
		}})
		l.returns(70*71/2, "loop", 70)
		equal(l, "hits", hits, min(n+2, 70))
		equal(l, "the text", l.text(s), text)
		l.settle()
		equal(l, "what is left", l.r.Stats(), runtime.Stats{})
		l.log = nil
	}
}

// jumpQuiet has a probe registered while a CPU stands before each instruction
// of the function: it must not find itself in the middle of a jump.
func jumpQuiet(l *lab) {
	s := l.subject()
	start, size, err := l.program.Symbol(s.function)
	l.must(err)
	waited := 0
	for n := 0; l.err == nil; n++ {
		l.must(l.r.Start(0, l.function(s.function), 1, 2))
		for range n {
			l.must(l.r.Step(0, 1))
		}
		if !l.m.CPU(0).Running() {
			break
		}
		if pc := l.pc(); pc-start >= size {
			l.fail("the CPU is at %#x", pc)
		}
		p := l.register(s, runtime.Probe{})
		l.settle()
		within := l.pc() > s.addr && l.pc() < s.addr+l.jumpLength()
		if within {
			waited++
		}
		equal(l, "Optimized", p.Optimized(), !within)
		l.must(l.r.Run(l.ctx, stepsAtMost))
		equal(l, "the result", l.r.Result(0), subjectResult(1, 2))
		l.settle()
		equal(l, "Optimized", p.Optimized(), true)
		l.unregister(p)
		l.settle()
		l.wellFormed()
	}
	if (waited > 0) != (l.target == "amd64") {
		l.fail("the optimizer waited %d times", waited)
	}
	l.log = nil
	l.computes()
	l.states()
}

// jumpLength is the number of bytes that the jump of an optimized probe has.
func (l *lab) jumpLength() uint64 {
	if l.target == "amd64" {
		return 5
	}
	return 4
}

// jumpCounter: the buffer calls the guest's counter or the handlers, whichever
// the probes need.
func jumpCounter(l *lab) {
	s := l.subject()
	p := l.register(s, runtime.Probe{Counter: true})
	l.ready(s.function, 1, 2)
	l.computes()
	l.states()
	ran := uint64(0)
	q := l.register(s, runtime.Probe{PreHandler: func(*runtime.Context) bool { ran++; return false }})
	l.settle()
	l.computes()
	l.states(l.one(plain), l.one(plain))
	l.unregister(q)
	l.settle()
	l.computes()
	l.states()
	equal(l, "Hits", p.Hits(), 7)
	equal(l, "calls of the handler", ran, 2)
}
