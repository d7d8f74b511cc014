//go:build unicorn

package matrix

import (
	"errors"
	"strconv"
	"strings"

	"xol/classify"
	"xol/runtime"
)

var returnCases = []lifeCase{
	{name: "return probe: handlers and result", run: returnHandlers, options: trampoline},
	{name: "return probe: where a call returns to", run: returnAddress, options: trampoline},
	{name: "return probe: data of each call", run: returnData, options: trampoline, except: recursing},
	{name: "return probe: more calls than MaxActive", run: returnMaxActive, options: trampoline, except: recursing},
	{name: "return probe: calls that are left alone", run: returnSkipped, options: trampoline},
	{name: "return probe: two of a function", run: returnTwo, options: trampoline},
	{name: "return probe: unregistered during calls", run: returnUnregistered, options: trampoline, except: recursing},
	{name: "return probe: disabled during calls", run: returnDisabled, options: trampoline, except: recursing},
	{name: "return probe: with a probe of the entry", run: returnAndEntry, options: trampoline},
	{name: "return probe: a call in a handler is missed", run: returnMissed, options: trampoline},
	{name: "return probe: two CPUs in a function", run: returnCPUs, options: trampoline, except: recursing, cpus: 2},
	{name: "return probe: refused after the entry", run: returnRefused, options: trampoline},
	{name: "jprobe: a mirror function sees the arguments", run: jprobe},
	{name: "jprobe: one of a function", run: jprobeTwice},
	{name: "jprobe: missed in a handler", run: jprobeMissed},
	{name: "jprobe: the mirror function faults", run: jprobeFaults},
}

// trampoline has functions return to a breakpoint where entries are stepped.
func trampoline(l *lab, opt *runtime.Options) {
	opt.ClassicTrampoline = l.mode != Boosted && l.mode != Optimized
}

var recursing = not(Emulated, "no function that calls itself starts with a transfer of control")

// called returns a function whose first instruction the mode applies to, what it
// adds to its argument, and the states of a call.
func (l *lab) called() (name string, adds uint64, entry string) {
	if l.mode == Emulated {
		return "hop", 300, l.hit("hop", transfer)
	}
	return "leaf", 100, l.hit("leaf", plain)
}

// back returns the states of a return to the trampoline.
func (l *lab) back() string {
	if l.mode == Boosted || l.mode == Optimized {
		return "trampoline:active/jump trampoline:idle"
	}
	return l.hit("trampoline", transfer|first)
}

// pass names the trampoline in the states so far, and checks them.
func (l *lab) pass(want ...string) {
	areas := l.areas()
	for i, state := range l.log {
		where, status, _ := strings.Cut(state, ":")
		cpu := ""
		if n := strings.IndexByte(where, '/'); n >= 0 {
			cpu, where = where[:n+1], where[n+1:]
		}
		addr, err := strconv.ParseUint(where, 0, 64)
		for _, a := range areas {
			if err == nil && a.Holds(addr) {
				l.log[i] = cpu + "trampoline:" + status
			}
		}
	}
	l.states(want...)
}

// returnProbe registers a return probe of a function, has its instructions
// executed once and the optimizer do its work.
func (l *lab) returnProbe(function string, spec runtime.ReturnProbe) *runtime.Link {
	spec.Symbol = function
	p := l.attach(spec)
	if l.err == nil {
		l.names[p.Address()] = function
		l.ready(function, 0)
	}
	return p
}

func returnHandlers(l *lab) {
	name, adds, entry := l.called()
	var order string
	p := l.returnProbe(name, runtime.ReturnProbe{
		EntryHandler: func(c *runtime.ReturnContext) bool {
			order += "e"
			x, _ := c.Regs.Arg(0)
			c.Regs.SetArg(0, x+1)
			return false
		},
		Handler: func(c *runtime.ReturnContext) {
			order += "r"
			c.Regs.SetReturnValue(c.Regs.ReturnValue() * 2)
		},
	})
	order = ""
	for x := range uint64(3) {
		l.returns((x+1+adds)*2, name, x)
		l.pass(entry, l.back())
	}
	equal(l, "the handlers", order, "ererer")
	equal(l, "Returns", p.Hits(), 4)
	equal(l, "Nmissed", p.Nmissed(), 0)
	equal(l, "the entry is optimized", p.Optimized(), l.mode == Optimized)
	l.must(p.Close())
	l.returns(5+adds, name, 5)
	l.pass()
}

func returnAddress(l *lab) {
	name, adds, _ := l.called()
	after := l.at("indirect", "after").addr
	nested, seen := false, 0
	check := func(c *runtime.ReturnContext) {
		if nested {
			seen++
			equal(l, "To", c.To, after)
			equal(l, "Regs.ReturnAddress", c.Regs.ReturnAddress(), after)
		}
	}
	p := l.returnProbe(name, runtime.ReturnProbe{
		EntryHandler: func(c *runtime.ReturnContext) bool { check(c); return false },
		Handler:      check,
	})
	nested = true
	f := l.function(name)
	for x := range uint64(3) {
		l.returns(x+adds+1, "indirect", f.Entry, x)
	}
	equal(l, "Returns", p.Hits(), 4)
	equal(l, "handlers", seen, 6)
}

func returnData(l *lab) {
	var sum uint64
	l.returnProbe("recurse", runtime.ReturnProbe{
		DataSize: 1,
		EntryHandler: func(c *runtime.ReturnContext) bool {
			equal(l, "data at the entry", c.Data[0], 0)
			n, _ := c.Regs.Arg(0)
			c.Data[0] = byte(n)
			return false
		},
		Handler: func(c *runtime.ReturnContext) {
			n := uint64(c.Data[0])
			equal(l, "the result of a call", c.Regs.ReturnValue(), n*(n+1)/2)
			sum += n
		},
	})
	l.returns(10, "recurse", 4)
	equal(l, "data", sum, 10)
	l.pass(strings.Repeat(l.hit("recurse", plain)+" ", 5), strings.Repeat(l.back()+" ", 5))
}

func returnMaxActive(l *lab) {
	p := l.returnProbe("recurse", runtime.ReturnProbe{MaxActive: 3})
	for i := range uint64(2) {
		l.returns(45, "recurse", 9)
		equal(l, "Returns", p.Hits(), 1+3*(i+1))
		equal(l, "Nmissed", p.Nmissed(), 7*(i+1))
		l.pass(strings.Repeat(l.hit("recurse", plain)+" ", 10), strings.Repeat(l.back()+" ", 3))
	}
}

func returnSkipped(l *lab) {
	name, adds, entry := l.called()
	p := l.returnProbe(name, runtime.ReturnProbe{MaxActive: 1, EntryHandler: func(c *runtime.ReturnContext) bool {
		x, _ := c.Regs.Arg(0)
		return x%2 == 1
	}})
	for x := range uint64(6) {
		l.returns(x+adds, name, x)
		if x%2 == 1 {
			l.pass(entry)
		} else {
			l.pass(entry, l.back())
		}
	}
	equal(l, "Returns", p.Hits(), 4)
	equal(l, "Nmissed", p.Nmissed(), 0)
}

// returnTwo: the one that was registered last is the first to handle a return,
// and the trampoline is passed once.
func returnTwo(l *lab) {
	name, adds, entry := l.called()
	var order string
	var probes []*runtime.Link
	for _, id := range []string{"a", "b"} {
		probes = append(probes, l.returnProbe(name, runtime.ReturnProbe{
			EntryHandler: func(*runtime.ReturnContext) bool { order += id; return false },
			Handler:      func(*runtime.ReturnContext) { order += strings.ToUpper(id) },
		}))
	}
	order = ""
	l.returns(7+adds, name, 7)
	l.pass(entry, l.back())
	equal(l, "the handlers", order, "abBA")
	l.must(probes[0].Close())
	l.ready(name, 7)
	order = ""
	l.returns(7+adds, name, 7)
	l.pass(entry, l.back())
	equal(l, "the handlers of one", order, "bB")
}

// returnUnregistered: calls that are going on return through the trampoline, and
// no handler runs.
func returnUnregistered(l *lab) {
	returns := 0
	var p *runtime.Link
	p = l.returnProbe("recurse", runtime.ReturnProbe{
		EntryHandler: func(c *runtime.ReturnContext) bool {
			if n, _ := c.Regs.Arg(0); n == 2 {
				l.must(p.Close())
			}
			return false
		},
		Handler: func(*runtime.ReturnContext) { returns++ },
	})
	l.returns(10, "recurse", 4)
	l.pass(strings.Repeat(l.hit("recurse", plain)+" ", 3), strings.Repeat(l.back()+" ", 2))
	equal(l, "returns that were handled", returns, 1)
	equal(l, "calls that are going on", l.r.Depth(0), 0)
	l.returns(10, "recurse", 4)
	l.pass()
}

// returnDisabled: calls that are going on are handled.
func returnDisabled(l *lab) {
	var p *runtime.Link
	p = l.returnProbe("recurse", runtime.ReturnProbe{EntryHandler: func(c *runtime.ReturnContext) bool {
		if n, _ := c.Regs.Arg(0); n == 2 {
			l.must(p.Disable())
		}
		return false
	}})
	l.returns(10, "recurse", 4)
	l.pass(strings.Repeat(l.hit("recurse", plain)+" ", 3), strings.Repeat(l.back()+" ", 3))
	equal(l, "Returns", p.Hits(), 4)
	l.returns(10, "recurse", 4)
	l.pass()
	l.must(p.Enable())
	l.ready("recurse", 1)
	l.returns(1, "recurse", 1)
	l.pass(strings.Repeat(l.hit("recurse", plain)+" ", 2), strings.Repeat(l.back()+" ", 2))
}

func returnAndEntry(l *lab) {
	name, adds, entry := l.called()
	p := l.returnProbe(name, runtime.ReturnProbe{})
	hits := 0
	l.register(spot{name, p.Address()}, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		hits++
		equal(l, "the return address is the runtime's own", l.r.RealReturnAddress(0, c.Regs.SP(), c.Regs.ReturnAddress()), c.Regs.ReturnAddress())
		return false
	}})
	l.ready(name, 1)
	for x := range uint64(2) {
		l.returns(x+adds, name, x)
		l.pass(entry, l.back())
	}
	equal(l, "hits of the entry", hits, 3)
	equal(l, "Returns", p.Hits(), 4)
}

// callInside has a probe in the function second call a function with 1, which adds to
// it.
func (l *lab) callInside(name string, adds uint64) {
	l.register(l.at("second", "subject"), runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		v, err := c.Call(l.function(name), 1)
		l.must(err)
		equal(l, "the nested call's result", v, 1+adds)
		return false
	}})
}

func returnMissed(l *lab) {
	name, adds, _ := l.called()
	p := l.returnProbe(name, runtime.ReturnProbe{})
	l.callInside(name, adds)
	l.returns(203, "second", 3)
	equal(l, "Nmissed", p.Nmissed(), 1)
	equal(l, "Returns", p.Hits(), 1)
	equal(l, "calls that are going on", l.r.Depth(0), 0)
}

func returnCPUs(l *lab) {
	p := l.returnProbe("recurse", runtime.ReturnProbe{MaxActive: 100})
	depths := [...]uint64{20, 30}
	for cpu, n := range depths {
		l.must(l.r.Start(cpu, l.function("recurse"), n))
	}
	l.must(l.r.Run(l.ctx, stepsAtMost))
	for cpu, n := range depths {
		equal(l, "the sum", l.r.Result(cpu), n*(n+1)/2)
		equal(l, "calls that are going on", l.r.Depth(uint64(cpu)), 0)
	}
	equal(l, "Returns", p.Hits(), 1+21+31)
	equal(l, "Nmissed", p.Nmissed(), 0)
	both := l.log
	for cpu, n := range depths {
		l.log = nil
		for _, state := range both {
			if own, found := strings.CutPrefix(state, "1/"); found == (cpu == 1) {
				l.log = append(l.log, own)
			}
		}
		l.pass(strings.Repeat(l.hit("recurse", plain)+" ", int(n+1)), strings.Repeat(l.back()+" ", int(n+1)))
	}
}

func returnRefused(l *lab) {
	s := l.afterSubject()
	err := l.try(runtime.ReturnProbe{Addr: s.addr})
	l.refused("a return probe inside a function", err, "runtime/not-entry", classify.EINVAL)
	l.computes()
	l.pass()
}

// jprobe: the mirror function's own probe is hit inside the hit, and what it does
// to registers has no effect.
func jprobe(l *lab) {
	name, adds, entry := l.called()
	if l.mode == Optimized {
		entry = l.hit(name, boosted)
	}
	mirror := l.register(l.at("second", "subject"), runtime.Probe{})
	l.ready("second", 1)
	p := l.attach(runtime.Jprobe{Symbol: name, Mirror: l.function("second")})
	if l.err != nil {
		return
	}
	l.names[p.Address()] = name
	l.ready(name, 1)
	for i := range uint64(3) {
		l.returns(i+adds, name, i)
		l.states(inside(entry, "active", l.missed("second", "active", plain)))
		equal(l, "Hits", p.Hits(), i+2)
		equal(l, "Nmissed of the mirror's probe", mirror.Nmissed(), i+2)
	}
	equal(l, "optimized", p.Optimized(), false)
	l.must(p.Close())
	l.returns(1+adds, name, 1)
	l.states()
}

func jprobeTwice(l *lab) {
	name, adds, _ := l.called()
	p := l.attach(runtime.Jprobe{Symbol: name, Mirror: l.function("second")})
	err := l.try(runtime.Jprobe{Symbol: name, Mirror: l.function("inner")})
	l.refused("a second jprobe", err, "runtime/jprobe", classify.EEXIST)
	l.returns(1+adds, name, 1)
	equal(l, "Hits", p.Hits(), 1)
}

func jprobeMissed(l *lab) {
	name, adds, _ := l.called()
	p := l.attach(runtime.Jprobe{Symbol: name, Mirror: l.function("store")})
	l.callInside(name, adds)
	l.returns(203, "second", 3)
	equal(l, "Hits", p.Hits(), 0)
	equal(l, "Nmissed", p.Nmissed(), 1)
}

func jprobeFaults(l *lab) {
	name, _, _ := l.called()
	l.attach(runtime.Jprobe{Symbol: name, Mirror: l.function("load")})
	if l.err != nil {
		return
	}
	_, err := l.r.Call(l.ctx, 0, l.function(name), nowhere)
	var fault *runtime.FaultError
	if !errors.As(err, &fault) {
		l.fail("%v, want a *runtime.FaultError", err)
		return
	}
	equal(l, "the fault is in a handler", fault.InHandler, true)
	equal(l, "its address", fault.Addr, l.at("load", "load").addr)
	equal(l, "its page", fault.Page, nowhere)
}
