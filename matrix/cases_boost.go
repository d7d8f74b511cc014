//go:build unicorn

package matrix

import "xol/runtime"

const noBoost = "nothing is boosted"

var boostCases = []lifeCase{
	{name: "boost: prepared by the first hit", run: boostPrepared, except: only(Boosted, noBoost)},
	{name: "boost: switched off", run: boostOff, options: withoutBoost, except: only(Boosted, noBoost)},
	{name: "boost: not with a handler after", run: boostPost, except: only(Boosted, noBoost)},
	{name: "boost: never where a fault could not be precise", run: boostNever, except: onlyFar},
	{name: "boost: nothing is left of a copy", run: boostStats, except: only(Boosted, noBoost)},
}

func boostPrepared(l *lab) {
	s := l.subject()
	p := l.register(s, runtime.Probe{})
	equal(l, "Boosted before the first hit", p.Boosted(), false)
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states(l.one(first))
	equal(l, "Boosted after the first hit", p.Boosted(), true)
	l.computes()
	l.states(l.one(plain), l.one(plain))
	l.must(p.Disable())
	l.must(p.Enable())
	l.computes()
	l.states(l.one(plain), l.one(plain))
	equal(l, "the optimizer's work", l.r.Stats().Optimized, 0)
}

func withoutBoost(_ *lab, opt *runtime.Options) { opt.NoBoost = true }

// boostOff: the option keeps all copies from being boosted.
func boostOff(l *lab) {
	s := l.subject()
	p := l.register(s, runtime.Probe{})
	for range 3 {
		l.returns(subjectResult(1, 2), s.function, 1, 2)
		l.states(l.one(first))
		equal(l, "Boosted", p.Boosted(), false)
	}
}

// onlyFar is the except of cases with a copy of several instructions.
func onlyFar(target string, mode Mode) string {
	switch {
	case mode != Boosted && mode != Optimized:
		return noBoost
	case target != "arm64":
		return "no copy accesses memory after other instructions"
	}
	return ""
}

func boostNever(l *lab) {
	p := l.register(l.at("pcrel", "load"), runtime.Probe{})
	for range 3 {
		l.returns(constant, "pcrel")
		l.states(l.hit("pcrel", first))
		l.settle()
		equal(l, "Boosted", p.Boosted(), false)
		equal(l, "Optimized", p.Optimized(), false)
	}
}

func boostPost(l *lab) {
	s := l.subject()
	a := l.register(s, runtime.Probe{})
	l.ready(s.function, 1, 2)
	equal(l, "Boosted", a.Boosted(), true)
	b := l.register(s, runtime.Probe{PostHandler: func(*runtime.Context) {}})
	l.computes()
	l.states(l.one(post), l.one(post))
	l.must(b.Disable())
	l.computes()
	l.states(l.one(plain), l.one(plain))
	l.must(b.Enable())
	l.computes()
	l.states(l.one(post), l.one(post))
	l.unregister(b)
	l.computes()
	l.states(l.one(plain), l.one(plain))
}

func boostStats(l *lab) {
	s := l.subject()
	p := l.register(s, runtime.Probe{})
	l.ready(s.function, 1, 2)
	equal(l, "boosted probes", l.r.Stats().Boosted, 1)
	l.unregister(p)
	l.settle()
	equal(l, "what is left", l.r.Stats(), runtime.Stats{})
	l.computes()
	l.states()
}
