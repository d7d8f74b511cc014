//go:build unicorn

package matrix

import (
	"xol/classify"
	"xol/machine"
	"xol/runtime"
)

var registrationCases = []lifeCase{
	{name: "register, hit, unregister", run: registerHitUnregister},
	{name: "register, hit, unregister, as in a kernel", run: registerHitUnregister, options: asKernel},
	{name: "register disabled", run: registerDisabled},
	{name: "disable and enable", run: disableEnable},
	{name: "symbol and offset", run: symbolAndOffset},
	{name: "refused: symbol and address, or neither", run: refusedPlaces},
	{name: "refused: unknown symbol", run: refusedSymbol},
	{name: "refused: not text", run: refusedNotText},
	{name: "refused: inside an instruction", run: refusedInside},
	{name: "refused: a breakpoint of somebody else", run: refusedBreakpoint},
	{name: "refused: blacklisted", run: refusedBlacklisted, options: blacklistLeaf},
	{name: "refused: memory of the runtime", run: refusedOwnArea},
	{name: "one spec attached twice", run: attachedTwice},
	{name: "refused: not registered", run: refusedUnregistered},
	{name: "array", run: registerArray},
	{name: "array with an error is taken back", run: registerArrayBack},
}

func registerHitUnregister(l *lab) {
	s := l.subject()
	text := l.text(s)
	p := l.register(s, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		equal(l, "the instruction pointer", c.Regs.IP(), s.addr)
		return false
	}})
	equal(l, "Enabled", p.Enabled(), true)
	equal(l, "a breakpoint", l.breaks(s), true)
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(first))
	l.settle()
	l.computes()
	l.states(l.one(plain), l.one(plain))
	equal(l, "Hits", p.Hits(), 3)
	equal(l, "Nmissed", p.Nmissed(), 0)
	l.unregister(p)
	equal(l, "the text", l.text(s), text)
	l.computes()
	l.states()
	equal(l, "Hits", p.Hits(), 3)
}

func asKernel(_ *lab, opt *runtime.Options) { opt.Kernel = true }

func registerDisabled(l *lab) {
	s := l.subject()
	text := l.text(s)
	p := l.register(s, runtime.Probe{Disabled: true})
	equal(l, "the text", l.text(s), text)
	l.computes()
	l.states()
	l.must(p.Enable())
	l.ready(s.function, 1, 2)
	l.computes()
	l.states(l.one(plain), l.one(plain))
}

func disableEnable(l *lab) {
	s := l.subject()
	text := l.text(s)
	p := l.register(s, runtime.Probe{})
	l.ready(s.function, 1, 2)
	for range 2 {
		l.must(p.Disable())
		equal(l, "Enabled", p.Enabled(), false)
		equal(l, "the text", l.text(s), text)
		l.computes()
		l.states()
		l.must(p.Enable())
		equal(l, "a breakpoint", l.breaks(s), true)
		l.settle()
		l.computes()
		l.states(l.one(plain), l.one(plain))
	}
	equal(l, "Hits", p.Hits(), 5)
}

func symbolAndOffset(l *lab) {
	s := l.subject()
	start, _, err := l.program.Symbol(s.function)
	l.must(err)
	for _, spec := range []runtime.Probe{
		{Symbol: s.function, Offset: s.addr - start},
		{Addr: s.addr},
	} {
		l.names[s.addr] = s.function
		p := l.attach(spec)
		equal(l, "Address", p.Address(), s.addr)
		l.ready(s.function, 1, 2)
		l.computes()
		l.states(l.one(plain), l.one(plain))
		l.unregister(p)
		equal(l, "Address", p.Address(), 0)
	}
	p := l.attach(runtime.Probe{Symbol: s.function})
	equal(l, "Address", p.Address(), start)
}

// refusal checks that a probe is refused, and nothing happens.
func (l *lab) refusal(what string, p runtime.Probe, rule string, errno classify.Errno) {
	s := l.subject()
	text := l.text(s)
	before := len(l.r.Links())
	l.refused(what, l.try(p), rule, errno)
	equal(l, "the number of probes", len(l.r.Links()), before)
	equal(l, "the text", l.text(s), text)
	l.computes()
	l.states()
}

func refusedPlaces(l *lab) {
	s := l.subject()
	l.refusal("symbol and address", runtime.Probe{Symbol: s.function, Addr: s.addr}, "runtime/place", classify.EINVAL)
	l.refusal("neither", runtime.Probe{}, "runtime/place", classify.EINVAL)
}

func refusedSymbol(l *lab) {
	l.refusal("an unknown symbol", runtime.Probe{Symbol: "nonesuch"}, "runtime/symbol", classify.ENOENT)
}

func refusedNotText(l *lab) {
	l.refusal("data", runtime.Probe{Addr: scratch}, "runtime/not-text", classify.EINVAL)
	l.refusal("no memory", runtime.Probe{Addr: nowhere}, "runtime/not-text", classify.EINVAL)
	l.refusal("an offset too far", runtime.Probe{Symbol: "straight", Offset: 1 << 20}, "runtime/not-text", classify.EINVAL)
}

func refusedInside(l *lab) {
	rule := map[string]string{
		"amd64": "amd64/inside-instruction", "arm64": "arm64/misaligned", "ppc64": "ppc64/misaligned", "ppc64le": "ppc64/misaligned",
	}[l.target]
	l.refusal("the middle of an instruction", runtime.Probe{Addr: l.subject().addr + 1}, rule, classify.EINVAL)
}

func refusedBreakpoint(l *lab) {
	s := l.at("trap", "trap")
	rule := map[string]string{"amd64": "amd64/int3", "arm64": "arm64/brk", "ppc64": "ppc64/move-trap", "ppc64le": "ppc64/move-trap"}[l.target]
	l.refusal("a breakpoint", runtime.Probe{Addr: s.addr}, rule, classify.EINVAL)
}

func blacklistLeaf(l *lab, opt *runtime.Options) {
	addr, size, err := l.program.Symbol("leaf")
	l.must(err)
	opt.Blacklist = []machine.Range{{Lo: addr, Hi: addr + size}}
}

func refusedBlacklisted(l *lab) {
	l.refusal("a blacklisted function", runtime.Probe{Symbol: "leaf"}, "runtime/blacklist", classify.EINVAL)
	l.refusal("its second instruction", runtime.Probe{Addr: l.at("leaf", "after").addr}, "runtime/blacklist", classify.EINVAL)
	s := l.subject()
	l.register(s, runtime.Probe{})
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(first))
}

func refusedOwnArea(l *lab) {
	s := l.subject()
	straight := l.at("straight", "subject")
	l.register(straight, runtime.Probe{})
	l.register(s, runtime.Probe{Counter: true})
	l.ready(s.function, 1, 2)
	areas := l.areas()
	if len(areas) == 0 {
		l.fail("there are no slots")
	}
	for _, a := range areas {
		l.refused("a slot", l.try(runtime.Probe{Addr: a.Lo}), "runtime/own-area", classify.EINVAL)
		l.refused("the end of the slots", l.try(runtime.Probe{Addr: a.Hi - 4}), "runtime/own-area", classify.EINVAL)
		equal(l, "writable slots", l.m.Perm(a.Lo)&machine.PermWrite, 0)
	}
	l.computes()
	l.states(l.one(plain), l.one(plain))
}

// attachedTwice: a spec may be used again, also while it is attached, and each link
// counts for itself.
func attachedTwice(l *lab) {
	s := l.subject()
	var spec runtime.Probe
	p := l.register(s, spec)
	l.ready(s.function, 1, 2)
	q := l.register(s, spec)
	l.ready(s.function, 1, 2)
	l.computes()
	l.states(l.one(plain), l.one(plain))
	equal(l, "Hits", p.Hits(), 4)
	equal(l, "Hits of the second link", q.Hits(), 3)
	l.unregister(p)
	equal(l, "the second link is enabled", q.Enabled(), true)
	l.unregister(q)
	again := l.register(s, spec)
	l.ready(s.function, 1, 2)
	l.computes()
	l.states(l.one(plain), l.one(plain))
	equal(l, "Hits of the third link", again.Hits(), 3)
}

func refusedUnregistered(l *lab) {
	spec := runtime.Probe{Addr: l.subject().addr}
	p := new(runtime.Link)
	const rule = "runtime/not-registered"
	l.refused("to unregister it", p.Close(), rule, classify.EINVAL)
	l.refused("to enable it", p.Enable(), rule, classify.EINVAL)
	l.refused("to disable it", p.Disable(), rule, classify.EINVAL)
	p = l.attach(spec)
	l.unregister(p)
	l.refused("to unregister it again", p.Close(), rule, classify.EINVAL)
	l.computes()
	l.states()
}

func registerArray(l *lab) {
	s := l.subject()
	spots := []spot{s, l.at("leaf", "subject"), l.at("second", "subject")}
	specs := make([]runtime.Spec, len(spots))
	for i, s := range spots {
		specs[i] = runtime.Probe{Addr: s.addr}
		l.names[s.addr] = s.function
	}
	probes, err := l.r.AttachAll(specs...)
	l.must(err)
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.returns(105, "leaf", 5)
	l.returns(205, "second", 5)
	l.states(l.one(first), l.hit("leaf", first), l.hit("second", first))
	l.must(runtime.CloseAll(probes...))
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.returns(105, "leaf", 5)
	l.states()
}

func registerArrayBack(l *lab) {
	s := l.subject()
	text := l.text(s)
	probes, err := l.r.AttachAll(runtime.Probe{Addr: s.addr}, runtime.Probe{Addr: l.at("leaf", "subject").addr},
		runtime.Probe{Addr: scratch}, runtime.Probe{Addr: l.at("second", "subject").addr})
	l.refused("the third probe", err, "runtime/not-text", classify.EINVAL)
	equal(l, "links", len(probes), 0)
	equal(l, "probes that are left", len(l.r.Links()), 0)
	equal(l, "the text", l.text(s), text)
	l.computes()
	l.returns(105, "leaf", 5)
	l.returns(205, "second", 5)
	l.states()
}
