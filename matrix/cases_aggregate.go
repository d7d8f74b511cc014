//go:build unicorn

package matrix

import "xol/runtime"

var aggregateCases = []lifeCase{
	{name: "several probes: order and own state", run: severalProbes},
	{name: "several probes: handlers after", run: severalPosts},
	{name: "several probes: redirection ends the chain", run: severalRedirect},
	{name: "several probes: one is unregistered by another", run: severalUnregister},
	{name: "several probes: the text is the last one's", run: severalLast},
}

// trail returns a handler that adds a name to a trail.
func trail(to *string, name string) func(*runtime.Context) bool {
	return func(*runtime.Context) bool {
		*to += name
		return false
	}
}

// checkTrail checks a trail, and empties it.
func (l *lab) checkTrail(trail *string, want string) {
	equal(l, "the order of handlers", *trail, want)
	*trail = ""
}

func severalProbes(l *lab) {
	s := l.subject()
	var ran string
	first := runtime.Probe{PreHandler: trail(&ran, "a")}
	a := l.register(s, first)
	b := l.register(s, runtime.Probe{PreHandler: trail(&ran, "b")})
	c := l.register(s, runtime.Probe{PreHandler: trail(&ran, "c"), Disabled: true})
	equal(l, "sites", l.r.Stats().Sites, 1)
	check := func(want string) {
		l.ready(s.function, 1, 2)
		ran = ""
		l.returns(subjectResult(1, 2), s.function, 1, 2)
		l.checkTrail(&ran, want)
		if want == "" {
			l.states()
		} else {
			l.states(l.one(plain))
		}
	}
	check("ab")
	l.must(c.Enable())
	check("abc")
	l.must(a.Disable())
	check("bc")
	l.must(b.Disable())
	l.must(c.Disable())
	equal(l, "a breakpoint", l.breaks(s), false)
	check("")
	l.must(b.Enable())
	check("b")
	l.must(a.Enable())
	check("ab")
	l.unregister(a)
	check("b")
	again := l.register(s, first)
	check("ba")
	equal(l, "Hits of a", a.Hits(), 6)
	equal(l, "Hits of a, again", again.Hits(), 2)
	equal(l, "Hits of b", b.Hits(), 14)
	equal(l, "Hits of c", c.Hits(), 4)
}

func severalPosts(l *lab) {
	s := l.subject()
	var ran string
	note := func(name string) func(*runtime.Context) { return func(*runtime.Context) { ran += name } }
	l.register(s, runtime.Probe{PreHandler: trail(&ran, "a"), PostHandler: note("A")})
	l.register(s, runtime.Probe{PreHandler: trail(&ran, "b")})
	c := l.register(s, runtime.Probe{PreHandler: trail(&ran, "c"), PostHandler: note("C")})
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.checkTrail(&ran, "abcAC")
	l.states(l.one(post))
	l.must(c.Disable())
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.checkTrail(&ran, "abA")
	l.states(l.one(post))
}

func severalRedirect(l *lab) {
	s := l.subject()
	after := l.afterSubject()
	name, _ := l.accumulator(0, 0)
	var ran string
	l.register(s, runtime.Probe{PreHandler: trail(&ran, "a"), PostHandler: func(*runtime.Context) { ran += "A" }})
	b := l.register(s, runtime.Probe{Redirects: true, PreHandler: func(c *runtime.Context) bool {
		ran += "b"
		c.Regs.Set(name, 500)
		c.Regs.SetIP(after.addr)
		return true
	}})
	c := l.register(s, runtime.Probe{PreHandler: trail(&ran, "c")})
	l.settle()
	l.returns((500+1)^3, s.function, 1, 2)
	l.checkTrail(&ran, "ab")
	l.states(l.redirected(s.function))
	equal(l, "Hits of the probe after", c.Hits(), 0)
	l.must(b.Disable())
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.checkTrail(&ran, "acA")
	l.states(l.one(post))
}

func severalUnregister(l *lab) {
	s := l.subject()
	var ran string
	var c *runtime.Link
	gone := false
	l.register(s, runtime.Probe{PreHandler: func(*runtime.Context) bool {
		ran += "a"
		if gone && c.Address() != 0 {
			l.unregister(c)
		}
		return false
	}})
	l.register(s, runtime.Probe{PreHandler: trail(&ran, "b")})
	c = l.register(s, runtime.Probe{PreHandler: trail(&ran, "c")})
	l.ready(s.function, 1, 2)
	l.checkTrail(&ran, "abc")
	gone = true
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.checkTrail(&ran, "ab")
	l.states(l.one(plain))
	l.settle()
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.checkTrail(&ran, "ab")
	l.states(l.one(plain))
}

func severalLast(l *lab) {
	s := l.subject()
	text := l.text(s)
	a := l.register(s, runtime.Probe{})
	l.ready(s.function, 1, 2)
	b := l.register(s, runtime.Probe{})
	l.ready(s.function, 1, 2)
	l.unregister(a)
	if l.text(s) == text {
		l.fail("the text is the original one while a probe is registered")
	}
	l.settle()
	l.computes()
	l.states(l.one(plain), l.one(plain))
	l.unregister(b)
	equal(l, "the text", l.text(s), text)
	l.computes()
	l.states()
}
