//go:build unicorn

package matrix

import "xol/runtime"

var handlerCases = []lifeCase{
	{name: "handler reads registers", run: readRegisters},
	{name: "handler writes a register", run: writeRegister},
	{name: "handler writes an argument", run: writeArgument},
	{name: "handler writes a return value", run: writeReturnValue},
	{name: "handler redirects", run: redirect},
	{name: "handler redirects without saying so", run: redirectInSilence},
	{name: "handler after the instruction", run: postHandler},
	{name: "handler reads and writes memory", run: handlerMemory},
	{name: "handler registers a probe", run: registerInHandler},
	{name: "handler unregisters its probe", run: unregisterInHandler},
	{name: "handler unregisters its probe, the slot is wanted", run: unregisterAndSettle},
	{name: "handler after unregisters its probe", run: unregisterInPost},
	{name: "handler disables its probe", run: disableInHandler},
	{name: "counter in the guest", run: counter},
	{name: "counter with a handler", run: counterWithHandler},
}

func readRegisters(l *lab) {
	s := l.subject()
	name, _ := l.accumulator(0, 0)
	read := func(c *runtime.Context) bool {
		_, want := l.accumulator(11, 22)
		acc, ok := c.Regs.Get(name)
		equal(l, name, acc, want)
		equal(l, "Get", ok, true)
		a, _ := c.Regs.Arg(0)
		b, _ := c.Regs.Arg(1)
		equal(l, "argument 0", a, 11)
		equal(l, "argument 1", b, 22)
		equal(l, "the instruction pointer", c.Regs.IP(), s.addr)
		pc := l.isa.Registers().Registers[l.isa.Registers().PC].Name
		ip, _ := c.Regs.Get(pc)
		equal(l, pc, ip, s.addr)
		equal(l, "the stack pointer is aligned", c.Regs.SP()%8, 0)
		_, none := c.Regs.Get("nonesuch")
		equal(l, "Get of no register", none, false)
		_, none = c.Regs.Arg(99)
		equal(l, "Arg of no register", none, false)
		return false
	}
	l.register(s, runtime.Probe{PreHandler: read})
	var from []uint64
	l.register(l.at("inner", "entry"), runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		from = append(from, c.Regs.ReturnAddress())
		return false
	}})
	l.ready(s.function, 11, 22)
	l.ready("outer", 4)
	for range 2 {
		l.returns(subjectResult(11, 22), s.function, 11, 22)
		l.states(l.one(plain))
		l.returns(9, "outer", 4)
		l.states(l.hit("inner", plain))
	}
	for _, addr := range from {
		equal(l, "the return address", addr, l.at("outer", "after").addr)
	}
	equal(l, "the number of return addresses", len(from), 3)
}

func writeRegister(l *lab) {
	s := l.subject()
	name, _ := l.accumulator(0, 0)
	l.register(s, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		equal(l, "Set", c.Regs.Set(name, 1000), true)
		equal(l, "Set of no register", c.Regs.Set("nonesuch", 1), false)
		return false
	}})
	l.ready(s.function, 1, 2)
	want := uint64(1005+1) ^ 3
	if l.mode == Emulated {
		want = (1000 + 1) ^ 3
	}
	for range 2 {
		l.returns(want, s.function, 1, 2)
		l.states(l.one(plain))
	}
}

func writeArgument(l *lab) {
	s := l.subject()
	l.register(s, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		equal(l, "SetArg", c.Regs.SetArg(0, 1000), true)
		equal(l, "SetArg of no register", c.Regs.SetArg(-1, 1), false)
		return false
	}})
	l.ready(s.function, 1, 2)
	for range 2 {
		l.returns((1+2+5+1000)^3, s.function, 1, 2)
		l.states(l.one(plain))
	}
}

func writeReturnValue(l *lab) {
	l.register(l.at("inner", "return"), runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		equal(l, "the return value", c.Regs.ReturnValue(), 8)
		c.Regs.SetReturnValue(50)
		return false
	}})
	l.ready("outer", 4)
	for range 2 {
		l.returns(51, "outer", 4)
		l.states(l.hit("inner", transfer))
	}
}

// redirected are the states of a hit whose handler redirects.
func (l *lab) redirected(function string) string {
	return function + ":active " + function + ":active/redirect " + function + ":idle"
}

func redirect(l *lab) {
	s := l.subject()
	after := l.afterSubject()
	name, _ := l.accumulator(0, 0)
	ran := 0
	p := l.register(s, runtime.Probe{
		Redirects: true,
		PreHandler: func(c *runtime.Context) bool {
			c.Regs.Set(name, 500)
			c.Regs.SetIP(after.addr)
			return true
		},
		PostHandler: func(*runtime.Context) { ran++ },
	})
	l.returns((500+1)^3, s.function, 1, 2)
	l.states(l.redirected(s.function))
	l.settle()
	equal(l, "Optimized", p.Optimized(), false)
	l.returns((500+1)^3, s.function, 1, 2)
	l.states(l.redirected(s.function))
	equal(l, "calls of the handler after", ran, 0)
	equal(l, "Hits", p.Hits(), 2)
}

// redirectInSilence: an instruction pointer that changes has an effect only
// where the handler says so, and none at all once the probe is optimized.
func redirectInSilence(l *lab) {
	s := l.subject()
	after := l.afterSubject()
	says := false
	l.register(s, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		c.Regs.SetIP(after.addr)
		return says
	}})
	l.ready(s.function, 1, 2)
	l.computes()
	l.states(l.one(plain), l.one(plain))
	says = true
	if l.mode == Optimized {
		l.computes()
		l.states(l.one(plain), l.one(plain))
		return
	}
	want := uint64(1+2+1) ^ 3
	if l.mode == Emulated {
		want = subjectResult(1, 2) // the subject is a jump to there
	}
	l.returns(want, s.function, 1, 2)
	l.states(l.redirected(s.function))
}

func postHandler(l *lab) {
	s := l.subject()
	name, _ := l.accumulator(0, 0)
	var order string
	p := l.register(s, runtime.Probe{
		PreHandler: func(c *runtime.Context) bool {
			order += "pre "
			return false
		},
		PostHandler: func(c *runtime.Context) {
			order += "post "
			acc, _ := c.Regs.Get(name)
			equal(l, name+" after", acc, 1+2+5)
			equal(l, "the instruction pointer after", c.Regs.IP(), l.afterSubject().addr)
			c.Regs.Set(name, 70)
		},
	})
	for range 2 {
		l.returns((70+1)^3, s.function, 1, 2)
		l.states(l.one(post))
		l.settle()
	}
	equal(l, "order", order, "pre post pre post ")
	equal(l, "Optimized", p.Optimized(), false)
}

func handlerMemory(l *lab) {
	s := l.subject()
	l.register(s, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		var b [8]byte
		l.must(c.Read(b[:], scratch))
		b[0]++
		l.must(c.Write(scratch, b[:]))
		return false
	}})
	l.ready(s.function, 1, 2)
	l.computes()
	l.states(l.one(plain), l.one(plain))
	var b [1]byte
	l.must(l.m.Read(b[:], scratch))
	equal(l, "the byte", b[0], 3)
}

func registerInHandler(l *lab) {
	s := l.subject()
	var inner *runtime.Link
	l.register(s, runtime.Probe{PreHandler: func(*runtime.Context) bool {
		if inner == nil {
			inner = l.register(l.at("leaf", "subject"), runtime.Probe{})
		}
		return false
	}})
	l.returns(105, "leaf", 5)
	l.states()
	l.computes()
	l.returns(105, "leaf", 5)
	l.states(l.one(first), l.one(l.again()), l.hit("leaf", first))
}

// again is the kind of a hit after another one, where the optimizer did not
// come.
func (l *lab) again() kind {
	if l.mode == Optimized {
		return boosted
	}
	return plain
}

// unregisterInHandler: the hit goes on, and is the last one.
func unregisterInHandler(l *lab) {
	s := l.subject()
	text := l.text(s)
	var p *runtime.Link
	off := false
	p = l.register(s, runtime.Probe{
		PreHandler: func(*runtime.Context) bool {
			if off {
				l.unregister(p)
			}
			return false
		},
	})
	l.ready(s.function, 1, 2)
	off = true
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(plain))
	l.computes()
	l.states()
	equal(l, "the text", l.text(s), text)
	l.settle()
	equal(l, "Pending", l.r.Stats().Pending, 0)
}

// unregisterAndSettle: what the hit is going to execute must stay.
func unregisterAndSettle(l *lab) {
	s := l.subject()
	var p *runtime.Link
	var others []*runtime.Link
	p = l.register(s, runtime.Probe{PreHandler: func(*runtime.Context) bool {
		l.unregister(p)
		l.settle()
		others = append(others, l.register(l.at("second", "subject"), runtime.Probe{}), l.register(l.at("leaf", "subject"), runtime.Probe{}))
		l.settle()
		return false
	}})
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(first))
	l.must(runtime.CloseAll(others...))
	l.computes()
	l.states()
	l.settle()
	equal(l, "what is left", l.r.Stats(), runtime.Stats{})
}

func unregisterInPost(l *lab) {
	s := l.subject()
	var p *runtime.Link
	p = l.register(s, runtime.Probe{PostHandler: func(*runtime.Context) { l.unregister(p) }})
	l.computes()
	l.states(l.one(post))
	l.settle()
	equal(l, "Pending", l.r.Stats().Pending, 0)
}

func disableInHandler(l *lab) {
	s := l.subject()
	var p *runtime.Link
	p = l.register(s, runtime.Probe{PreHandler: func(*runtime.Context) bool {
		l.must(p.Disable())
		return false
	}})
	l.computes()
	l.states(l.one(first))
	equal(l, "Enabled", p.Enabled(), false)
	equal(l, "Hits", p.Hits(), 1)
	l.must(p.Enable())
	l.settle()
	l.computes()
	l.states(l.one(plain))
}

// counter: once it is optimized nothing leaves the guest.
func counter(l *lab) {
	s := l.subject()
	p := l.register(s, runtime.Probe{Counter: true})
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(first))
	l.settle()
	l.computes()
	if l.mode == Optimized {
		l.states()
	} else {
		l.states(l.one(plain), l.one(plain))
	}
	equal(l, "Hits", p.Hits(), 3)
	l.must(p.Disable())
	l.computes()
	equal(l, "Hits", p.Hits(), 3)
	l.unregister(p)
	equal(l, "Hits", p.Hits(), 3)
}

func counterWithHandler(l *lab) {
	s := l.subject()
	ran := uint64(0)
	p := l.register(s, runtime.Probe{Counter: true, PreHandler: func(*runtime.Context) bool { ran++; return false }})
	l.ready(s.function, 1, 2)
	l.computes()
	l.states(l.one(plain), l.one(plain))
	equal(l, "Hits", p.Hits(), 3)
	equal(l, "calls", ran, 3)
}
