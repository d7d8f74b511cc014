//go:build unicorn

package matrix

import (
	"strings"

	"xol/decode"
	"xol/runtime"
)

const noTransfer = "the instruction does not transfer control"

var instructionCases = []lifeCase{
	{name: "loop", run: probeLoop, except: not(Emulated, noTransfer)},
	{name: "recursive function", run: probeRecursion, except: not(Emulated, noTransfer)},
	{name: "load relative to the program counter", run: probePCRelative, except: not(Emulated, noTransfer)},
	{name: "store", run: probeStore, except: not(Emulated, noTransfer)},
	{name: "flags read", run: probeFlags, except: not(Emulated, noTransfer)},
	{name: "branch at the end of a loop", run: probeLoopBranch},
	{name: "branch taken and not taken", run: probeBranch},
	{name: "call", run: probeCall},
	{name: "call through a pointer", run: probeCallPointer},
	{name: "return", run: probeReturn},
	{name: "every instruction of every class", run: probeClasses, exact: true},
}

func probeLoop(l *lab) {
	p := l.register(l.at("loop", "body"), runtime.Probe{})
	l.ready("loop", 1)
	l.returns(55, "loop", 10)
	l.states(strings.Repeat(l.hit("loop", plain)+" ", 10))
	equal(l, "Hits", p.Hits(), 11)
	equal(l, "Nmissed", p.Nmissed(), 0)
}

func probeRecursion(l *lab) {
	p := l.register(l.at("recurse", "subject"), runtime.Probe{})
	l.ready("recurse", 0)
	l.returns(21, "recurse", 6)
	l.states(strings.Repeat(l.hit("recurse", plain)+" ", 7))
	equal(l, "Hits", p.Hits(), 8)
	equal(l, "Nmissed", p.Nmissed(), 0)
}

const constant = 0x1122334455667788

func probePCRelative(l *lab) {
	l.register(l.at("pcrel", "load"), runtime.Probe{})
	l.returns(constant, "pcrel")
	l.states(l.hit("pcrel", first))
	l.settle()
	l.returns(constant, "pcrel")
	l.states(l.hit("pcrel", l.far()))
}

// far is the kind of a hit, not the first, of a load relative to the program
// counter. That of arm64 does not reach back from the copy, which then has
// several instructions, and is neither boosted nor moved: a fault of it could not
// be precise.
func (l *lab) far() kind {
	if l.target == "arm64" {
		return first
	}
	return plain
}

func probeStore(l *lab) {
	l.register(l.at("store", "store"), runtime.Probe{})
	l.ready("store", scratch, 1)
	l.returns(77, "store", scratch, 77)
	equal(l, "the word", l.word(scratch+8), 77)
	l.states(l.hit("store", plain))
}

// probeFlags: the flags that the instruction reads are those of the program.
func probeFlags(l *lab) {
	arguments := [...][2]uint64{{1, 2}, {2, 1}, {5, 5}, {1 << 63, 1}}
	var want [len(arguments)]uint64
	for i, a := range arguments {
		want[i] = l.call("flags", a[0], a[1])
	}
	if want[0] == want[1] || want[1] == want[2] {
		l.fail("the flags do not vary: %#x", want)
	}
	l.register(l.at("flags", "subject"), runtime.Probe{})
	l.ready("flags", 0, 0)
	for i, a := range arguments {
		l.returns(want[i], "flags", a[0], a[1])
		l.states(l.hit("flags", plain))
	}
}

func probeLoopBranch(l *lab) {
	l.register(l.at("loop", "branch"), runtime.Probe{})
	l.ready("loop", 1)
	l.returns(10, "loop", 4)
	l.states(strings.Repeat(l.hit("loop", transfer)+" ", 4))
}

func probeBranch(l *lab) {
	l.register(l.at("branchy", "branch"), runtime.Probe{})
	l.ready("branchy", 1)
	for range 2 {
		l.returns(9, "branchy", 1)
		l.states(l.hit("branchy", transfer))
		l.returns(7, "branchy", 0)
		l.states(l.hit("branchy", transfer))
	}
}

func probeCall(l *lab) {
	l.register(l.at("outer", "call"), runtime.Probe{})
	var from uint64
	l.register(l.at("inner", "entry"), runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		from = c.Regs.ReturnAddress()
		return false
	}})
	l.ready("outer", 1)
	l.returns(15, "outer", 7)
	l.states(l.hit("outer", transfer), l.hit("inner", plain))
	equal(l, "the return address", from, l.at("outer", "after").addr)
}

func probeCallPointer(l *lab) {
	l.register(l.at("indirect", "call"), runtime.Probe{})
	leaf := l.function("leaf").Entry
	near := plain
	if l.target == "amd64" && l.mode == Optimized {
		near = boosted // a jump would reach beyond where the call returns to
	}
	l.ready("indirect", leaf, 1)
	l.returns(108, "indirect", leaf, 7)
	l.states(l.hit("indirect", transfer|near))
}

func probeReturn(l *lab) {
	l.register(l.at("inner", "return"), runtime.Probe{})
	l.ready("outer", 1)
	l.returns(15, "outer", 7)
	l.states(l.hit("inner", transfer))
}

// probeClasses probes all instructions at once: each is hit as often as it is
// executed, and the function does what it did.
func probeClasses(l *lab) {
	const arguments = 3
	var want, stored [arguments]uint64
	executed := map[uint64]uint64{}
	for n := range want {
		want[n] = l.trace("classes", executed, scratch, uint64(n))
		stored[n] = l.word(scratch + 8)
	}
	probes := l.probeAll("classes")
	if len(probes) < 30 {
		l.fail("there are %d probes", len(probes))
	}
	const rounds = 3
	for range rounds {
		for n := range want {
			l.returns(want[n], "classes", scratch, uint64(n))
			equal(l, "the stored word", l.word(scratch+8), stored[n])
		}
		l.settle()
	}
	for addr, p := range probes {
		if got, want := p.Hits(), rounds*executed[addr]; got != want {
			l.fail("%d hits of %#x, want %d", got, addr, want)
		}
	}
	l.wellFormed()
}

// probeAll puts a probe on every instruction of a function that may have one.
func (l *lab) probeAll(function string) map[uint64]*runtime.Link {
	start, size, err := l.program.Symbol(function)
	l.must(err)
	code := make([]byte, size)
	l.must(l.m.ReadText(code, start))
	probes := map[uint64]*runtime.Link{}
	for _, inst := range decode.Sweep(l.isa, nil, code, start) {
		if p, err := l.r.Attach(runtime.Probe{Addr: inst.Addr}); err == nil {
			probes[inst.Addr] = p
			l.names[inst.Addr] = function
		}
	}
	return probes
}

// trace calls a function of the program without probes and counts how often
// each instruction is executed.
func (l *lab) trace(function string, executed map[uint64]uint64, args ...uint64) uint64 {
	c := l.m.CPUs[0]
	stack := c.Reg(l.isa.Registers().SP)
	l.must(c.Call(l.function(function), args...))
	for range stepsAtMost {
		if l.err != nil || !c.Running() {
			break
		}
		pc := c.PC()
		_, err := c.Run(1)
		l.must(err)
		if c.PC() != pc { // else it is one of several repetitions
			executed[pc]++
		}
	}
	c.SetReg(l.isa.Registers().SP, stack)
	return c.Result()
}

// wellFormed checks that all states since they were looked at last are those of
// whole hits, one after the other, in ways that fit the mode.
func (l *lab) wellFormed() {
	log := l.log
	l.log = nil
	for len(log) > 0 && l.err == nil {
		n := l.wholeHit(log)
		if n == 0 {
			l.fail("a hit goes through the states %s", strings.Join(log[:min(len(log), 6)], " "))
			return
		}
		log = log[n:]
	}
}

// wholeHit returns how many states belong to the first hit; 0 where they are not
// those of one.
func (l *lab) wholeHit(log []string) int {
	name, _, _ := strings.Cut(log[0], ":")
	for _, k := range [...]kind{first, first | transfer, boosted, plain} {
		want := strings.Fields(l.hit(name, k))
		if len(want) <= len(log) && strings.Join(want, " ") == strings.Join(log[:len(want)], " ") {
			return len(want)
		}
	}
	return 0
}
