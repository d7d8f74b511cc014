//go:build unicorn

package matrix

import (
	"errors"
	"strings"

	"xol/machine"
	"xol/runtime"
)

const noMemory = "no instruction that is emulated accesses memory"

// memoryTransfer is the except of cases whose instruction accesses memory.
func memoryTransfer(target string, mode Mode) string {
	if mode == Emulated && target != "amd64" {
		return noMemory
	}
	return ""
}

var faultCases = []lifeCase{
	{name: "fault handled by the probe", run: faultHandled, except: memoryTransfer},
	{name: "fault handler repairs a register", run: faultRepaired, except: memoryTransfer},
	{name: "fault of several probes' instruction", run: faultOfSeveral, except: memoryTransfer},
	{name: "fault fixed by the exception table", run: faultFixed, except: not(Emulated, noTransfer)},
	{name: "fault surfaces, registers intact", run: faultSurfaces, except: memoryTransfer},
	{name: "fault of a copy of several instructions", run: faultPCRelative, except: not(Emulated, noTransfer)},
	{name: "fault after the probed instruction", run: faultAfter, except: not(Emulated, noTransfer)},
	{name: "fault at another instruction", run: faultElsewhere},
	{name: "fault in a handler's access", run: faultInHandler},
	{name: "fault in a handler's access, handled", run: faultInHandlerHandled},
	{name: "fault in a function that a handler calls", run: faultInCall},
	{name: "fault in a hit inside a handler", run: faultInNestedHit},
	{name: "fault in a fault handler", run: faultInFaultHandler},
	{name: "fault in a handler after", run: faultInPost},
}

// loading returns an instruction that loads from 8 bytes after its function's
// argument, and what the function returns where the word is that argument.
func (l *lab) loading() (s spot, word, want uint64) {
	if l.mode == Emulated {
		return l.at("through", "jump"), l.function("leaf").Entry, scratch + 100
	}
	return l.at("load", "load"), 41, 42
}

// one hit of the instruction of loading.
func (l *lab) oneLoad(k kind) string {
	s, _, _ := l.loading()
	if l.mode == Emulated {
		k |= transfer
	}
	return l.hit(s.function, k)
}

func faultHandled(l *lab) {
	s, word, want := l.loading()
	faults, handlers := 0, 0
	l.register(s, runtime.Probe{
		PreHandler: func(*runtime.Context) bool { handlers++; return false },
		FaultHandler: func(c *runtime.Context, f *runtime.Fault) bool {
			faults++
			equal(l, "the fault", *f, runtime.Fault{Addr: s.addr, Page: scratch, Access: machine.AccessRead})
			l.must(l.m.Protect(scratch, 1, machine.PermRead|machine.PermWrite))
			return true
		},
	})
	l.setWord(scratch+8, word)
	for i := range 3 {
		l.must(l.m.Protect(scratch, 1, 0))
		l.returns(want, s.function, scratch)
		k := plain
		if i == 0 {
			k = first
		}
		l.states(l.twice(s, l.oneLoad(k)))
		l.settle()
		l.returns(want, s.function, scratch)
		l.states(l.oneLoad(plain))
		equal(l, "faults", faults, i+1)
	}
	equal(l, "calls of the handler", handlers, 6)
}

// twice is a hit whose instruction is executed once more: where it is emulated,
// that is another state.
func (l *lab) twice(s spot, hit string) string {
	if l.mode != Emulated {
		return hit
	}
	again := s.function + ":ss/emulate "
	return strings.Replace(hit, again, again+again, 1)
}

func faultRepaired(l *lab) {
	s, word, want := l.loading()
	l.register(s, runtime.Probe{FaultHandler: func(c *runtime.Context, _ *runtime.Fault) bool {
		pointer, _ := c.Regs.Arg(0)
		equal(l, "the pointer", pointer, nowhere)
		return c.Regs.SetArg(0, scratch)
	}})
	l.setWord(scratch+8, word)
	l.ready(s.function, scratch)
	for range 2 {
		l.returns(want, s.function, nowhere)
		l.states(l.twice(s, l.oneLoad(plain)))
	}
}

// faultOfSeveral: the enabled probes are asked in order, up to one that handles
// the fault.
func faultOfSeveral(l *lab) {
	s, word, want := l.loading()
	var asked string
	probe := func(name string, handles bool) *runtime.Link {
		return l.register(s, runtime.Probe{FaultHandler: func(c *runtime.Context, _ *runtime.Fault) bool {
			asked += name
			return handles && c.Regs.SetArg(0, scratch)
		}})
	}
	probe("a", false)
	b := probe("b", true)
	probe("c", true)
	l.setWord(scratch+8, word)
	l.ready(s.function, scratch)
	l.returns(want, s.function, nowhere)
	l.checkTrail(&asked, "ab")
	l.states(l.twice(s, l.oneLoad(plain)))
	l.must(b.Disable())
	l.ready(s.function, scratch)
	l.returns(want, s.function, nowhere)
	l.checkTrail(&asked, "ac")
	l.states(l.twice(s, l.oneLoad(plain)))
}

func faultFixed(l *lab) {
	s := l.at("fixed", "load")
	var faults []bool
	p := runtime.Probe{FaultHandler: func(_ *runtime.Context, f *runtime.Fault) bool {
		faults = append(faults, *f == runtime.Fault{Addr: s.addr, Page: nowhere, Access: machine.AccessRead})
		return false
	}}
	l.register(s, p)
	const fixedUp = ^uint64(13)
	l.returns(fixedUp, "fixed", nowhere)
	l.states(l.hit("fixed", first))
	l.setWord(scratch+8, 41)
	l.returns(42, "fixed", scratch)
	l.states(l.hit("fixed", first))
	l.settle()
	again := plain
	if l.mode == Optimized {
		again = boosted // what may fault must stay where it is
	}
	for range 2 {
		l.returns(fixedUp, "fixed", nowhere)
		l.states(l.hit("fixed", again))
		l.returns(42, "fixed", scratch)
		l.states(l.hit("fixed", again))
	}
	equal(l, "faults", len(faults), 3)
	for _, ok := range faults {
		equal(l, "the fault is of the original instruction", ok, true)
	}
}

// faultOf calls a function that has to end in a fault.
func (l *lab) faultOf(want runtime.Fault, function string, args ...uint64) {
	f := l.function(function)
	if l.err != nil {
		return
	}
	_, err := l.r.Call(l.ctx, 0, f, args...)
	var fault *runtime.FaultError
	if !errors.As(err, &fault) {
		l.fail("%s: %v, want a fault", function, err)
		return
	}
	equal(l, "the fault", fault.Fault, want)
	equal(l, "the program counter", l.pc(), want.Addr)
	for i, v := range args {
		if got := l.argument(i); got != v {
			l.fail("argument %d is %#x after the fault, want %#x", i, got, v)
		}
	}
}

func faultSurfaces(l *lab) {
	s, word, want := l.loading()
	l.register(s, runtime.Probe{})
	l.setWord(scratch+8, word)
	fault := runtime.Fault{Addr: s.addr, Page: nowhere, Access: machine.AccessRead}
	l.faultOf(fault, s.function, nowhere)
	l.states(l.oneLoad(first))
	l.ready(s.function, scratch)
	for range 2 {
		l.faultOf(fault, s.function, nowhere)
		l.states(l.oneLoad(plain))
		l.returns(want, s.function, scratch)
		l.states(l.oneLoad(plain))
	}
}

// faultPCRelative: the copy may need instructions that the original does not,
// and registers for them.
func faultPCRelative(l *lab) {
	value, _, err := l.program.Symbol("value")
	l.must(err)
	s := l.at("variable", "load")
	const argument = 0x77
	args := []uint64{argument, value}
	l.register(s, runtime.Probe{})
	page := value &^ (4096 - 1)
	fault := runtime.Fault{Addr: s.addr, Page: page, Access: machine.AccessRead}
	for i := range 3 {
		l.must(l.m.Protect(page, 1, 0))
		l.faultOf(fault, "variable", args...)
		l.must(l.m.Protect(page, 1, machine.PermRead|machine.PermWrite))
		if i == 0 {
			l.states(l.hit("variable", first))
		} else {
			l.states(l.hit("variable", l.far()))
		}
		l.returns(42, "variable", args...)
		l.settle()
		l.log = nil
	}
}

// faultAfter: the next instruction faults, which may have been moved with the
// probed one. It is not the probe's.
func faultAfter(l *lab) {
	asked := 0
	p := l.register(l.at("late", "subject"), runtime.Probe{
		FaultHandler: func(*runtime.Context, *runtime.Fault) bool { asked++; return false },
	})
	l.setWord(scratch+8, 41)
	l.ready("late", scratch, 5)
	load := l.at("late", "load").addr
	for range 2 {
		_, err := l.r.Call(l.ctx, 0, l.function("late"), nowhere, 5)
		var fault *runtime.FaultError
		if !errors.As(err, &fault) {
			l.fail("late: %v, want a fault", err)
			return
		}
		equal(l, "the fault", fault.Fault, runtime.Fault{Addr: load, Page: nowhere, Access: machine.AccessRead})
		equal(l, "the program counter", l.pc(), load)
		equal(l, "argument 0", l.argument(0), nowhere)
		equal(l, "argument 1", l.argument(1), 6)
		l.states(l.hit("late", plain))
		inside := l.target == "amd64" && l.mode == Optimized
		equal(l, "a jump over the instruction of the fault", p.Optimized(), l.mode == Optimized && !inside)
		l.ready("late", scratch, 5)
		l.returns(47, "late", scratch, 5)
		l.states(l.hit("late", plain))
	}
	equal(l, "calls of the fault handler", asked, 0)
}

// faultElsewhere: faults of instructions that are not probed are not the
// probes'.
func faultElsewhere(l *lab) {
	s := l.subject()
	asked := 0
	l.register(s, runtime.Probe{FaultHandler: func(*runtime.Context, *runtime.Fault) bool { asked++; return false }})
	l.ready(s.function, 1, 2)
	l.faultOf(runtime.Fault{Addr: l.at("load", "load").addr, Page: nowhere, Access: machine.AccessRead}, "load", nowhere)
	l.faultOf(runtime.Fault{Addr: l.at("store", "store").addr, Page: nowhere, Access: machine.AccessWrite}, "store", nowhere, 1)
	l.states()
	l.computes()
	l.states(l.one(plain), l.one(plain))
	equal(l, "calls of the fault handler", asked, 0)
}

// faultInHandler: only the probe whose handler it is is asked.
func faultInHandler(l *lab) {
	s := l.subject()
	var asked string
	ask := func(name string) func(*runtime.Context, *runtime.Fault) bool {
		return func(_ *runtime.Context, f *runtime.Fault) bool {
			asked += name
			equal(l, "the fault", *f, runtime.Fault{Addr: s.addr, Page: nowhere, Access: machine.AccessRead, InHandler: true})
			return false
		}
	}
	read := func(c *runtime.Context) bool {
		var fault *runtime.FaultError
		if err := c.Read(make([]byte, 4), nowhere); !errors.As(err, &fault) || !fault.InHandler {
			l.fail("Read: %v, want a fault", err)
		}
		return false
	}
	l.register(s, runtime.Probe{FaultHandler: ask("a")})
	l.register(s, runtime.Probe{PreHandler: read, FaultHandler: ask("b")})
	l.register(s, runtime.Probe{PreHandler: read})
	l.ready(s.function, 1, 2)
	l.computes()
	l.states(l.one(plain), l.one(plain))
	equal(l, "the asked", asked, "bbb")
}

func faultInHandlerHandled(l *lab) {
	s := l.subject()
	faults := 0
	l.register(s, runtime.Probe{
		PreHandler: func(c *runtime.Context) bool {
			l.must(c.Write(scratch+16, []byte{7}))
			return false
		},
		FaultHandler: func(c *runtime.Context, f *runtime.Fault) bool {
			faults++
			equal(l, "the access", f.Access, machine.AccessWrite)
			l.must(l.m.Protect(scratch, 1, machine.PermRead|machine.PermWrite))
			return true
		},
	})
	l.ready(s.function, 1, 2)
	equal(l, "faults", faults, 0)
	l.must(l.m.Protect(scratch, 1, machine.PermRead))
	l.computes()
	l.states(l.one(plain), l.one(plain))
	equal(l, "faults", faults, 1)
	var b [1]byte
	l.must(l.m.Read(b[:], scratch+16))
	equal(l, "the byte", b[0], 7)
}

// faultInCall: a fault in a function that a handler calls is first the probe's,
// then the exception table's, then the handler's.
func faultInCall(l *lab) {
	s := l.subject()
	load := l.at("load", "load")
	handle, asked, others := false, 0, 0
	l.setWord(scratch+8, 41)
	l.register(s, runtime.Probe{FaultHandler: func(*runtime.Context, *runtime.Fault) bool { others++; return false }})
	l.register(s, runtime.Probe{
		PreHandler: func(c *runtime.Context) bool {
			v, err := c.Call(l.function("fixed"), nowhere)
			equal(l, "a call that is fixed up", v, ^uint64(13))
			l.must(err)
			v, err = c.Call(l.function("load"), scratch)
			var fault *runtime.FaultError
			switch {
			case handle:
				l.must(err)
				equal(l, "a call whose fault is handled", v, 42)
			case !errors.As(err, &fault):
				l.fail("Call: %v, want a fault", err)
			default:
				equal(l, "the fault", fault.Fault, runtime.Fault{Addr: load.addr, Page: scratch, Access: machine.AccessRead, InHandler: true})
			}
			return false
		},
		FaultHandler: func(c *runtime.Context, f *runtime.Fault) bool {
			asked++
			equal(l, "the fault is in a handler", f.InHandler, true)
			if handle && f.Page == scratch {
				l.must(l.m.Protect(scratch, 1, machine.PermRead|machine.PermWrite))
				return true
			}
			return false
		},
	})
	l.must(l.m.Protect(scratch, 1, 0))
	l.ready(s.function, 1, 2)
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(plain))
	equal(l, "calls of the fault handler", asked, 4)
	handle = true
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(plain))
	equal(l, "calls of the fault handler", asked, 6)
	equal(l, "calls of the other probe's", others, 0)
}

func faultInPost(l *lab) {
	s := l.subject()
	asked := 0
	l.register(s, runtime.Probe{
		PostHandler: func(c *runtime.Context) {
			if err := c.Read(make([]byte, 1), nowhere); err == nil {
				l.fail("Read: no fault")
			}
		},
		FaultHandler: func(_ *runtime.Context, f *runtime.Fault) bool {
			asked++
			equal(l, "the fault is in a handler", f.InHandler, true)
			return false
		},
	})
	l.computes()
	l.states(l.one(post), l.one(post))
	equal(l, "calls of the fault handler", asked, 2)
}

// faultInNestedHit: the probes of the instruction are asked first, then that of
// the handler; the outer hit goes on in any case.
func faultInNestedHit(l *lab) {
	s := l.subject()
	var asked, repairs string
	ask := func(name string) func(*runtime.Context, *runtime.Fault) bool {
		return func(c *runtime.Context, f *runtime.Fault) bool {
			asked += name
			equal(l, "the fault is in a handler", f.InHandler, true)
			return repairs == name && c.Regs.SetArg(0, scratch)
		}
	}
	l.setWord(scratch+8, 41)
	l.register(l.at("load", "load"), runtime.Probe{FaultHandler: ask("i")})
	l.register(s, runtime.Probe{FaultHandler: ask("o"), PreHandler: func(c *runtime.Context) bool {
		v, err := c.Call(l.function("load"), nowhere)
		var fault *runtime.FaultError
		if repairs == "" && !errors.As(err, &fault) {
			l.fail("Call: %v, want a fault", err)
		}
		if repairs != "" && (err != nil || v != 42) {
			l.fail("Call: %d, %v, want 42", v, err)
		}
		return false
	}})
	for _, test := range [...]struct {
		repairs, asked string
		outer, inner   kind
	}{
		{"", "io", first, first},
		{"o", "io", l.again(), first},
		{"i", "i", l.again(), l.again()},
	} {
		repairs = test.repairs
		l.returns(subjectResult(1, 2), s.function, 1, 2)
		l.checkTrail(&asked, test.asked)
		l.states(inside(l.one(test.outer), "active", l.missed("load", "active", test.inner)))
	}
}

// faultInFaultHandler: what a fault handler causes is not shown to it.
func faultInFaultHandler(l *lab) {
	s := l.subject()
	asked := 0
	l.register(s, runtime.Probe{
		PreHandler: func(c *runtime.Context) bool {
			_, err := c.Call(l.function("store"), nowhere, 1)
			var fault *runtime.FaultError
			if !errors.As(err, &fault) || fault.Addr != l.at("store", "store").addr {
				l.fail("Call: %v, want a fault of store", err)
			}
			return false
		},
		FaultHandler: func(c *runtime.Context, _ *runtime.Fault) bool {
			asked++
			_, err := c.Call(l.function("load"), nowhere)
			var fault *runtime.FaultError
			if !errors.As(err, &fault) || fault.Addr != l.at("load", "load").addr {
				l.fail("Call in a fault handler: %v, want a fault of load", err)
			}
			return false
		},
	})
	l.ready(s.function, 1, 2)
	l.computes()
	l.states(l.one(plain), l.one(plain))
	equal(l, "calls of the fault handler", asked, 3)
}
