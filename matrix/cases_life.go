//go:build unicorn

package matrix

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"xol/machine"
	"xol/runtime"
)

var otherCases = []lifeCase{
	{name: "switch of all probes", run: armedSwitch},
	{name: "unregister while another CPU is in the copy", run: unregisterInCopy, cpus: 2, exact: true,
		except: not(Emulated, "there is no copy")},
	{name: "register beside another CPU in the copy", run: registerBesideCopy, cpus: 2, exact: true,
		except: not(Emulated, "there is no copy")},
	{name: "unregister by an interrupt in the copy", run: unregisterByInterrupt, exact: true,
		except: not(Emulated, "there is no copy")},
	{name: "hit while another CPU is in the copy", run: hitBesideCopy, cpus: 2, exact: true,
		except: not(Emulated, "there is no copy")},
	{name: "slots are used again", run: slotsAgain},
	{name: "unload", run: unload},
	{name: "list", run: list},
	{name: "blacklist", run: blacklist, options: blacklistLeaf},
	{name: "counts of each probe", run: counts},
}

func armedSwitch(l *lab) {
	s := l.subject()
	leaf := l.at("leaf", "subject")
	text := l.text(s)
	p := l.register(s, runtime.Probe{})
	q := l.register(leaf, runtime.Probe{Disabled: true})
	l.ready(s.function, 1, 2)
	for range 2 {
		l.must(l.r.SetArmed(false))
		equal(l, "the text", l.text(s), text)
		equal(l, "Enabled", p.Enabled(), true)
		equal(l, "Enabled of the disabled probe", q.Enabled(), false)
		l.computes()
		l.returns(105, "leaf", 5)
		l.states()
		l.must(l.r.SetArmed(true))
		l.settle()
		l.computes()
		l.returns(105, "leaf", 5)
		l.states(l.one(plain), l.one(plain))
	}
	l.must(l.r.SetArmed(false))
	l.must(p.Disable())
	l.must(q.Enable())
	second := l.register(l.at("second", "subject"), runtime.Probe{})
	l.settle()
	equal(l, "a breakpoint", l.breaks(l.at("second", "subject")), false)
	l.computes()
	l.returns(105, "leaf", 5)
	l.returns(205, "second", 5)
	l.states()
	l.must(l.r.SetArmed(true))
	l.computes()
	l.returns(105, "leaf", 5)
	l.returns(205, "second", 5)
	l.states(l.hit("leaf", first), l.hit("second", first))
	equal(l, "Hits", second.Hits(), 1)
}

// inAreas reports whether an address is in memory of the runtime's own.
func inAreas(areas []machine.Range, addr uint64) bool {
	return slices.ContainsFunc(areas, func(a machine.Range) bool { return a.Holds(addr) })
}

// eachInCopy calls the subject's function on the first CPU, anew for each place
// in the runtime's memory that it comes to, up to there; then f; and then it
// lets the function finish.
func (l *lab) eachInCopy(f func(p *runtime.Link)) {
	s := l.subject()
	places := 0
	for n := 0; n < 1000 && l.err == nil; n++ {
		p := l.register(s, runtime.Probe{})
		l.ready(s.function, 1, 2)
		areas := l.areas()
		l.must(l.r.Start(0, l.function(s.function), 1, 2))
		for range n {
			l.must(l.r.Step(0, 1))
			if l.err != nil || !l.m.CPU(0).Running() {
				l.unregister(p)
				equal(l, "places in a copy", places > 0, true)
				l.log = nil
				return
			}
		}
		if inAreas(areas, l.pc()) {
			places++
			f(p)
		}
		l.must(l.r.Run(l.ctx, stepsAtMost))
		equal(l, "the result", l.r.Result(0), subjectResult(1, 2))
		if p.Address() != 0 {
			l.unregister(p)
		}
		l.settle()
		equal(l, "what is left", l.r.Stats(), runtime.Stats{})
	}
}

// unregisterInCopy: what the CPU executes stays until it has left, also where
// other probes need memory.
func unregisterInCopy(l *lab) {
	s := l.subject()
	l.eachInCopy(func(p *runtime.Link) {
		l.log = nil
		l.unregister(p)
		l.settle()
		equal(l, "copies that wait for their end", l.r.Stats().Pending > 0, true)
		code, later := make([]byte, 8-l.pc()%8), make([]byte, 8-l.pc()%8)
		l.must(l.m.ReadText(code, l.pc()))
		others, err := l.r.AttachAll(
			runtime.Probe{Addr: l.at("leaf", "subject").addr}, runtime.Probe{Addr: s.addr}, runtime.Probe{Addr: l.at("second", "subject").addr})
		l.must(err)
		l.settle()
		l.must(l.m.ReadText(later, l.pc()))
		equal(l, "the code before the CPU", fmt.Sprintf("%x", later), fmt.Sprintf("%x", code))
		v, err := l.r.Call(l.ctx, 1, l.function("leaf"), 5)
		l.must(err)
		equal(l, "leaf on the other CPU", v, 105)
		l.must(runtime.CloseAll(others...))
		l.settle()
		equal(l, "copies that wait for their end", l.r.Stats().Pending > 0, true)
		l.log = nil
	})
	l.computes()
	l.states()
}

// registerBesideCopy: another probe at the place, its state and the optimizer
// change while a CPU is in the copy.
func registerBesideCopy(l *lab) {
	s := l.subject()
	l.eachInCopy(func(p *runtime.Link) {
		q := l.attach(runtime.Probe{Addr: s.addr, PostHandler: func(*runtime.Context) {}})
		l.settle()
		v, err := l.r.Call(l.ctx, 1, l.function(s.function), 3, 4)
		l.must(err)
		equal(l, "the result on the other CPU", v, subjectResult(3, 4))
		l.must(p.Disable())
		l.unregister(q)
		l.settle()
		v, err = l.r.Call(l.ctx, 1, l.function(s.function), 3, 4)
		l.must(err)
		equal(l, "the result on the other CPU", v, subjectResult(3, 4))
		l.must(p.Enable())
		l.settle()
	})
	l.computes()
	l.states()
}

// unregisterByInterrupt: the copy that the interrupt came to stays until the
// program has left it.
func unregisterByInterrupt(l *lab) {
	s := l.subject()
	l.eachInCopy(func(p *runtime.Link) {
		code, later := make([]byte, 8-l.pc()%8), make([]byte, 8-l.pc()%8)
		at := l.pc()
		l.must(l.m.ReadText(code, at))
		var other *runtime.Link
		q := l.register(l.at("second", "subject"), runtime.Probe{PreHandler: func(*runtime.Context) bool {
			l.unregister(p)
			l.settle()
			other = l.register(s, runtime.Probe{})
			l.settle()
			return false
		}})
		// The probe of the interrupt is missed where the copy is a part of a hit;
		// what it would have done is done after it then.
		l.must(l.r.Interrupt(0, l.function("second"), 5))
		if q.Nmissed() > 0 {
			l.unregister(p)
			other = l.register(s, runtime.Probe{})
			l.settle()
		}
		l.must(l.m.ReadText(later, at))
		equal(l, "the code before the CPU", fmt.Sprintf("%x", later), fmt.Sprintf("%x", code))
		l.unregister(q)
		l.unregister(other)
		l.settle()
		equal(l, "copies that wait for their end", l.r.Stats().Pending > 0, true)
	})
	l.computes()
	l.states()
}

// hitBesideCopy: what a CPU does with a probe is its own matter.
func hitBesideCopy(l *lab) {
	s := l.subject()
	l.eachInCopy(func(p *runtime.Link) {
		l.log = nil
		hits := p.Hits()
		v, err := l.r.Call(l.ctx, 1, l.function(s.function), 3, 4)
		l.must(err)
		equal(l, "the result on the other CPU", v, subjectResult(3, 4))
		for i, state := range l.log {
			l.log[i] = strings.TrimPrefix(state, "1/")
		}
		l.states(l.one(plain))
		equal(l, "hits on the other CPU", p.Hits()-hits, 1)
		equal(l, "Nmissed", p.Nmissed(), 0)
	})
	l.computes()
	l.states()
}

// slotsAgain registers and unregisters again and again, at times in the hit: no
// more of the runtime's memory is used than by the first rounds.
func slotsAgain(l *lab) {
	s := l.subject()
	var p *runtime.Link
	inHit := false
	spec := runtime.Probe{PreHandler: func(*runtime.Context) bool {
		if inHit {
			l.unregister(p)
		}
		return false
	}}
	used := 0
	const kinds, rounds = 6, 60
	for i := range rounds {
		inHit = false
		p = l.register(s, spec)
		if i%2 == 0 {
			l.ready(s.function, 1, 2)
		}
		if inHit = i%3 == 0; inHit {
			l.returns(subjectResult(1, 2), s.function, 1, 2)
		} else {
			l.unregister(p)
		}
		l.settle()
		equal(l, "what is left", l.r.Stats(), runtime.Stats{})
		if i == kinds-1 {
			used = l.used()
		}
	}
	equal(l, "the used memory of the runtime", l.used(), used)
	l.log = nil
	inHit = false
	l.register(s, spec)
	l.ready(s.function, 1, 2)
	l.computes()
	l.states(l.one(plain), l.one(plain))
}

// used returns how much of the runtime's memory has ever been written to.
func (l *lab) used() (n int) {
	for _, a := range l.areas() {
		memory := make([]byte, a.Hi-a.Lo)
		l.must(l.m.Read(memory, a.Lo))
		n += len(bytes.TrimRight(memory, "\x00"))
	}
	return n
}

func unload(l *lab) {
	s := l.subject()
	p := l.register(s, runtime.Probe{})
	q := l.register(l.at("leaf", "subject"), runtime.Probe{Disabled: true})
	l.ready(s.function, 1, 2)
	l.must(l.r.Unload(l.image))
	if l.r.Unload(l.image) == nil {
		l.fail("an image is unloaded twice")
	}
	equal(l, "Gone", p.Gone() && q.Gone(), true)
	equal(l, "Enabled", p.Enabled(), false)
	equal(l, "Optimized", p.Optimized(), false)
	for line := range strings.Lines(l.list()) {
		equal(l, fmt.Sprintf("%q ends in [GONE]", line), strings.HasSuffix(line, "    [GONE]\n"), true)
	}
	equal(l, "lines", strings.Count(l.list(), "\n"), 2)
	l.refused("to enable it", p.Enable(), "runtime/gone", 22)
	l.refused("to disable it", q.Disable(), "runtime/gone", 22)
	l.settle()
	equal(l, "Pending", l.r.Stats().Pending, 0)
	l.unregister(p)
	l.unregister(q)
	equal(l, "the list", l.list(), "")
	l.refused("to attach one there", l.try(runtime.Probe{Addr: s.addr}), "runtime/not-text", 22)
	l.states()
}

func list(l *lab) {
	s := l.subject()
	start, _, err := l.program.Symbol(s.function)
	l.must(err)
	line := func(flags string) string {
		return fmt.Sprintf("%016x  k  %s+0x%x    %s\n", s.addr, s.function, s.addr-start, flags)
	}
	jump := ""
	if l.mode == Optimized {
		jump = "[OPTIMIZED]"
	}
	equal(l, "the list", l.list(), "")
	p := l.register(s, runtime.Probe{})
	equal(l, "the list", l.list(), line(""))
	l.ready(s.function, 1, 2)
	equal(l, "the list", l.list(), line(jump))
	q := l.register(s, runtime.Probe{Disabled: true})
	l.settle()
	equal(l, "the list", l.list(), line(jump)+line("[DISABLED]"))
	l.must(p.Disable())
	equal(l, "the list", l.list(), line("[DISABLED]")+line("[DISABLED]"))
	l.unregister(q)
	equal(l, "the list", l.list(), line("[DISABLED]"))
	l.must(p.Enable())
	l.ready(s.function, 1, 2)
	l.computes()
	l.states(l.one(plain), l.one(plain))
}

func blacklist(l *lab) {
	addr, size, err := l.program.Symbol("leaf")
	l.must(err)
	var b strings.Builder
	l.must(l.r.ListBlacklist(&b))
	equal(l, "the blacklist", b.String(), fmt.Sprintf("0x%016x-0x%016x\tleaf\n", addr, addr+size))
	s := l.subject()
	l.register(s, runtime.Probe{})
	l.register(l.at("straight", "subject"), runtime.Probe{})
	b.Reset()
	l.must(l.r.ListBlacklist(&b))
	equal(l, "the runtime's slots in the blacklist", strings.Contains(b.String(), "\t[slots]\n"), true)
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(first))
}

func counts(l *lab) {
	s := l.subject()
	a := l.register(s, runtime.Probe{})
	b := l.register(s, runtime.Probe{Counter: true})
	c := l.register(s, runtime.Probe{Disabled: true})
	l.ready(s.function, 1, 2)
	l.computes()
	l.must(a.Disable())
	l.settle()
	l.computes()
	equal(l, "Hits", a.Hits(), 3)
	equal(l, "Hits of the counter", b.Hits(), 5)
	equal(l, "Hits of the disabled one", c.Hits(), 0)
	if l.mode == Optimized {
		l.states(l.one(plain), l.one(plain))
	} else {
		l.states(strings.Repeat(l.one(plain)+" ", 4))
	}
	l.must(runtime.CloseAll([]*runtime.Link{a, b, c}...))
	equal(l, "Hits of the counter", b.Hits(), 5)
}
