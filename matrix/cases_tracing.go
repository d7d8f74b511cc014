//go:build unicorn

package matrix

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"xol/image"
	"xol/rpn"
	"xol/runtime"
	"xol/tracer"
)

// tracingCases are those of handlers that are data: RPN programs, lines of
// kprobe_events, and the arguments of static markers.
var tracingCases = []lifeCase{
	{name: "RPN program as a handler", run: programHandler},
	{name: "RPN program: a fault ends it", run: programFault},
	{name: "event: defined, enabled, recorded, removed", run: eventLine},
	{name: "static marker: its arguments, and who listens", run: markerProbe},
}

func (l *lab) assemble(text string) *rpn.Program {
	p, err := rpn.Assemble(text, &rpn.Target{
		File: l.isa.Registers(), Convention: l.isa.Convention(), Order: l.isa.ByteOrder(),
	})
	l.must(err)
	return p
}

func programHandler(l *lab) {
	p := l.assemble("global sum\narg 0\narg 1\nmul\naddto sum\nexit\n")
	if l.err != nil {
		return
	}
	globals := p.NewGlobals()
	s := l.subject()
	l.register(s, runtime.Probe{PreHandler: tracer.ProgramHandler(p, globals, nil, nil)})
	l.ready(s.function, 3, 5)
	l.returns(subjectResult(11, 22), s.function, 11, 22)
	l.states(l.one(plain))
	sum, _ := globals.Get("sum")
	equal(l, "the sum", sum, 3*5+11*22)
}

func programFault(l *lab) {
	p := l.assemble(fmt.Sprintf("push %d\nload8\ndrop\nexit\n", nowhere))
	if l.err != nil {
		return
	}
	var ended []rpn.Status
	s := l.subject()
	l.register(s, runtime.Probe{PreHandler: tracer.ProgramHandler(p, nil, nil, func(r rpn.Result, err error) {
		l.must(err)
		ended = append(ended, r.Status)
	})})
	l.ready(s.function, 1, 2)
	l.returns(subjectResult(11, 22), s.function, 11, 22)
	l.states(l.one(plain))
	equal(l, "every run ended by a fault", slices.Equal(ended, []rpn.Status{rpn.Faulted, rpn.Faulted}), true)
}

// firstArgument names the register of argument 0 as fetch arguments do.
var firstArgument = map[string]string{"amd64": "%di", "arm64": "%x0", "ppc64": "%gpr3", "ppc64le": "%gpr3"}

func eventLine(l *lab) {
	var lines []string
	t, err := tracer.New(l.r, l.isa, l.img, tracer.Options{Line: func(line string) {
		lines = append(lines, line[strings.LastIndex(line, " ")+1:])
	}})
	l.must(err)
	if l.err != nil {
		return
	}
	s := l.subject()
	l.names[s.addr] = s.function
	l.must(t.Write(fmt.Sprintf("p:cases/subject %#x first=%s:u64", s.addr, firstArgument[l.target])))
	l.returns(subjectResult(1, 2), s.function, 1, 2)
	l.states()
	l.must(t.Enable("cases/subject", true))
	l.ready(s.function, 3, 4)
	l.returns(subjectResult(11, 22), s.function, 11, 22)
	l.states(l.one(plain))
	equal(l, "the lines", strings.Join(lines, " "), "first=3 first=11")
	equal(l, "an enabled event is busy", errors.Is(t.Write("-:cases/subject"), tracer.ErrBusy), true)
	l.must(t.Enable("cases/subject", false))
	l.must(t.Write("-:cases/subject"))
	l.returns(subjectResult(5, 6), s.function, 5, 6)
	l.states()
	equal(l, "a breakpoint stands", l.breaks(s), false)
}

// markerArguments are the first two arguments as notes have them.
var markerArguments = map[string]string{
	"amd64": "8@%rdi -4@%esi", "arm64": "8@x0 -4@w1", "ppc64": "8@%r3 -4@%r4", "ppc64le": "8@%r3 -4@%r4",
}

func markerProbe(l *lab) {
	t, err := tracer.New(l.r, l.isa, l.img, tracer.Options{})
	l.must(err)
	if l.err != nil {
		return
	}
	s := l.subject()
	l.names[s.addr] = s.function
	var got []tracer.ArgValue
	marker := image.Marker{Provider: "cases", Name: "subject", Location: s.addr, Semaphore: scratch, Args: markerArguments[l.target]}
	p, err := t.Mark(marker, func(_ *runtime.Context, values []tracer.ArgValue) { got = slices.Clone(values) })
	l.must(err)
	if l.err != nil {
		return
	}
	equal(l, "somebody listens", l.word(scratch) != 0, true)
	l.ready(s.function, 3, 4)
	l.returns(subjectResult(11, 22), s.function, 11, 22)
	l.states(l.one(plain))
	equal(l, "the arguments", slices.Equal(got, []tracer.ArgValue{{Value: 11}, {Value: 22}}), true)
	l.must(p.Close())
	equal(l, "somebody listens", l.word(scratch) != 0, false)
	l.returns(subjectResult(5, 6), s.function, 5, 6)
	l.states()
}
