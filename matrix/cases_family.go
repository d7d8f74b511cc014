//go:build unicorn

package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"xol/classify"
	"xol/guest"
	"xol/machine"
	"xol/runtime"
)

// familyCases are those of the probes besides kprobes, jprobes and return probes.
var familyCases = []lifeCase{
	{name: "entry probe: the entry is a call", run: entryCall, options: entryProbes},
	{name: "entry probe: two, enabled and disabled", run: entryTwo, options: entryProbes},
	{name: "entry probe: a handler goes elsewhere", run: entryRedirect, options: entryProbes},
	{name: "entry probe: a return probe is entered by a call", run: entryReturn, options: entryProbes},
	{name: "entry probe: refused where others patch", run: entryRefused},

	{name: "watchpoint: a store by a probed instruction", run: watchStore, except: noAccess},
	{name: "watchpoint: a load by a probed instruction", run: watchLoad, except: noAccess},
	{name: "watchpoint: a call before the access", run: watchBeside},
	{name: "watchpoint: slots are taken and relinquished", run: watchSlots},
	{name: "watchpoint: refused where the ISA cannot", run: watchRefused},

	{name: "uprobe: in processes before and after they start", run: uprobeProcesses, except: user},
	{name: "uprobe: not in a process that is filtered out", run: uprobeFilter, except: user},
	{name: "uprobe: inherited by a child", run: uprobeFork, except: user},
	{name: "uprobe: a handler for the return", run: uprobeReturn, except: user},
	{name: "uprobe: a breakpoint of the program's own", run: uprobeSignal, except: user},
	{name: "uprobe: a NOP becomes a jump", run: uprobeNop, except: only(Optimized, "that is what optimized means for uprobes")},
}

var noAccess = not(Emulated, "the instruction is not interpreted")

// user says why a case of uprobes is not applicable.
func user(_ string, mode Mode) string {
	switch mode {
	case Boosted:
		return "uprobes are not boosted"
	case Optimized:
		return "uprobes are optimized in the place of NOPs only"
	}
	return ""
}

func entryProbes(_ *lab, opt *runtime.Options) { opt.EntryProbes = true }

// enter returns the states of a call of an entry site.
const enter = "entered:active/jump entered:idle"

func entryCall(l *lab) {
	s := l.at("entered", "site")
	before := l.text(s)
	var ip, to, arg uint64
	p := l.register(s, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
		ip, to = c.Regs.IP(), c.Regs.ReturnAddress()
		arg, _ = c.Regs.Arg(0)
		c.Regs.SetArg(0, arg+1)
		return false
	}})
	equal(l, "a breakpoint stands", l.breaks(s), false)
	equal(l, "the text is what it was", l.text(s) == before, false)
	l.returns(407, "entered", 6)
	l.states(enter)
	equal(l, "the instruction pointer", ip, s.addr)
	equal(l, "the return address", to, uint64(guest.ExitAddress))
	equal(l, "the argument", arg, 6)
	equal(l, "the list", l.list(), fmt.Sprintf("%016x  k  entered+0x%x    [FTRACE]\n", s.addr, s.addr-l.function("entered").Entry))
	l.unregister(p)
	equal(l, "the text is what it was", l.text(s), before)
	l.returns(406, "entered", 6)
	l.states()
}

func entryTwo(l *lab) {
	s := l.at("entered", "site")
	var order []int
	note := func(i int) func(*runtime.Context) bool {
		return func(*runtime.Context) bool { order = append(order, i); return false }
	}
	first := l.register(s, runtime.Probe{PreHandler: note(1)})
	second := l.register(s, runtime.Probe{PreHandler: note(2), PostHandler: func(c *runtime.Context) {
		order = append(order, 3)
		equal(l, "the pointer after the entry", c.Regs.IP() > s.addr, true)
	}})
	l.returns(400, "entered", 0)
	l.states("entered:active/jump entered:ssdone entered:idle")
	equal(l, "the order", slices.Equal(order, []int{1, 2, 3}), true)
	l.must(second.Disable())
	l.returns(400, "entered", 0)
	l.states(enter)
	l.must(first.Disable())
	l.returns(400, "entered", 0)
	l.states()
	l.must(first.Enable())
	l.returns(400, "entered", 0)
	l.states(enter)
	equal(l, "hits of the first", first.Hits(), 3)
	equal(l, "hits of the second", second.Hits(), 1)
}

func entryRedirect(l *lab) {
	elsewhere := l.function("leaf").Entry
	l.register(l.at("entered", "site"), runtime.Probe{Redirects: true, PreHandler: func(c *runtime.Context) bool {
		c.Regs.SetIP(elsewhere)
		return true
	}})
	l.returns(101, "entered", 1)
	l.states("entered:active/jump entered:active/redirect entered:idle")
}

func entryReturn(l *lab) {
	s := l.at("entered", "site")
	var seen []uint64
	p := l.attach(runtime.ReturnProbe{Symbol: "entered", Handler: func(c *runtime.ReturnContext) {
		seen = append(seen, c.Regs.ReturnValue(), c.To)
		c.Regs.SetReturnValue(5)
	}})

	equal(l, "a breakpoint stands", l.breaks(s), false)
	l.returns(5, "entered", 1)
	if !slices.Equal(seen, []uint64{401, guest.ExitAddress}) {
		l.fail("the handler saw %#x", seen)
	}
	l.must(p.Close())
	l.returns(401, "entered", 1)
}

func entryRefused(l *lab) {
	l.refused("a probe of a site that is not the runtime's", l.try(runtime.Probe{Addr: l.at("entered", "site").addr}),
		"isa/ftrace-site", classify.EINVAL)
}

// watch registers a watchpoint of a word and returns what its handler sees.
func (l *lab) watch(addr uint64, kind machine.WatchKind) (*runtime.Link, *[]runtime.WatchContext) {
	seen := new([]runtime.WatchContext)
	w := l.attach(runtime.WatchProbe{Addr: addr, Len: 8, Kind: kind, Handler: func(c *runtime.WatchContext) { *seen = append(*seen, *c) }})
	return w, seen
}

// where returns the instruction pointer that a handler of an access by the
// instruction at s sees.
func (l *lab) where(s spot) uint64 {
	if !l.isa.WatchUnit().After {
		return s.addr
	}
	const length = 4 // of amd64's load and store
	return s.addr + length
}

func watchStore(l *lab) {
	s := l.at("store", "store")
	l.register(s, runtime.Probe{})
	l.ready("store", scratch, 1)
	w, seen := l.watch(scratch+8, machine.WatchWrite)
	l.returns(77, "store", scratch, 77)
	l.states(l.hit("store", plain))
	l.accessed(*seen, s, 1, 77, machine.WatchWrite)
	equal(l, "the memory", l.word(scratch+8), 77)
	l.must(w.Close())
	l.returns(78, "store", scratch, 78)
	equal(l, "hits", w.Hits(), 1)
}

func watchLoad(l *lab) {
	s := l.at("load", "load")
	l.register(s, runtime.Probe{})
	l.setWord(scratch+8, 30)
	l.ready("load", scratch)
	_, seen := l.watch(scratch+8, machine.WatchAccess)
	l.returns(31, "load", scratch)
	l.states(l.hit("load", plain))
	l.accessed(*seen, s, 30, 30, machine.WatchRead)
}

// accessed checks what the handler of a watchpoint saw: one access.
func (l *lab) accessed(seen []runtime.WatchContext, s spot, old, now uint64, kind machine.WatchKind) {
	if len(seen) != 1 {
		l.fail("%d accesses were seen, want 1", len(seen))
		return
	}
	c := &seen[0]
	equal(l, "the old value", c.Old, old)
	equal(l, "the new value", c.New, now)
	equal(l, "the kind", c.Kind, kind)
	equal(l, "the address", c.Addr, scratch+8)
	equal(l, "the instruction pointer", c.Regs.IP(), l.where(s))
}

// watchBeside has the subject hit, and then memory accessed beside what is
// watched and at it.
func watchBeside(l *lab) {
	l.register(l.subject(), runtime.Probe{})
	l.ready(l.subject().function, 1, 2)
	_, seen := l.watch(scratch+8, machine.WatchWrite)
	l.computes()
	l.returns(5, "store", scratch+8, 5)
	l.returns(5, "store", scratch-8, 5)
	l.returns(1, "load", scratch)
	equal(l, "accesses", len(*seen), 0)
	l.returns(6, "store", scratch, 6)
	l.accessed(*seen, l.at("store", "store"), 0, 6, machine.WatchWrite)
}

func watchSlots(l *lab) {
	var all []*runtime.Link
	for i := range l.isa.WatchUnit().Slots {
		w, _ := l.watch(scratch+uint64(8*i), machine.WatchWrite)
		all = append(all, w)
	}
	more := runtime.WatchProbe{Addr: scratch + 0x100, Len: 8, Kind: machine.WatchWrite}
	l.refused("one more", l.try(more), "runtime/watch-slots", classify.ENOSPC)
	more.Priority = 1
	demanding := l.attach(more)
	equal(l, "the first is watching", all[0].Watching(), false)
	l.must(demanding.Close())
	equal(l, "the first is watching", all[0].Watching(), true)
	l.returns(9, "store", scratch-8, 9)
	equal(l, "hits", all[0].Hits(), 1)
}

func watchRefused(l *lab) {
	rules := map[string]string{"amd64": "amd64/watch-length", "arm64": "arm64/watch-doubleword",
		"ppc64": "ppc64/watch-length", "ppc64le": "ppc64/watch-length"}
	err := l.try(runtime.WatchProbe{Addr: scratch, Len: 513, Kind: machine.WatchWrite})
	l.refused("513 bytes", err, rules[l.target], classify.EINVAL)
}

// users are processes that map the file of the lab.
type users struct {
	runtime.Uprobes
	l      *lab
	file   *runtime.Executable
	opened []io.Closer
}

// users returns a system without processes.
func (l *lab) users() *users {
	f, err := runtime.NewExecutable("program", l.img)
	l.must(err)
	return &users{l: l, file: f}
}

func (u *users) close() {
	for _, c := range u.opened {
		u.l.must(c.Close())
	}
}

// process is one of them, in place of the lab's own machine.
func (u *users) process() *lab {
	l := *u.l
	l.log, l.names, l.err = nil, map[uint64]string{}, nil
	var err error
	if l.m, err = guest.Open(guest.Options{ISA: l.isa, Exact: true}); err != nil {
		u.l.must(err)
		return nil
	}
	u.opened = append(u.opened, l.m)
	file, err := programs.ReadFile("testdata/" + l.target + ".elf")
	u.l.must(err)
	l.program, err = l.m.Load(bytes.NewReader(file))
	u.l.must(err)
	return &l
}

// start makes it a process that maps the file.
func (u *users) start() (*lab, *runtime.Process) {
	l := u.process()
	if l == nil {
		return nil, nil
	}
	opt := l.mode.options()
	opt.Uprobes, opt.OptimizeNops, opt.Observe = true, l.mode == Optimized, l.observe
	r, err := runtime.New(l.m, l.isa, opt)
	u.l.must(err)
	p, err := u.Start(r)
	u.l.must(err)
	l.r = p.Runtime
	u.l.must(p.Map(u.file, 0))
	s := l.subject()
	l.names[s.addr] = s.function
	return l, p
}

// probe registers a probe of the subject.
func (u *users) probe(p runtime.Uprobe) *runtime.Link {
	return u.probeAt(u.l.subject().addr, p)
}

func (u *users) probeAt(addr uint64, p runtime.Uprobe) *runtime.Link {
	off, ok := u.file.Image.OffsetOf(addr)
	equal(u.l, "the text is in the file", ok, true)
	p.Executable, p.Offset = u.file, off
	if u.l.err != nil {
		return nil
	}
	link, err := u.Attach(p)
	u.l.must(err)
	return link
}

// in does something in a process, and keeps what is wrong.
func (u *users) in(l *lab, f func(l *lab)) {
	if u.l.err == nil {
		f(l)
		u.l.err = l.err
	}
}

// hits checks that the process hits the subject, once for each call.
func (u *users) hits(l *lab) {
	u.in(l, func(l *lab) {
		l.computes()
		l.states(l.one(plain), l.one(plain))
	})
}

// misses checks that it does not.
func (u *users) misses(l *lab) {
	u.in(l, func(l *lab) {
		l.computes()
		l.states()
	})
}

func uprobeProcesses(l *lab) {
	u := l.users()
	defer u.close()
	first, _ := u.start()
	p := u.probe(runtime.Uprobe{})
	second, _ := u.start()
	u.hits(first)
	u.hits(second)
	equal(l, "hits", p.Hits(), 4)
	l.must(p.Close())
	u.misses(first)
	u.misses(second)
}

func uprobeFilter(l *lab) {
	u := l.users()
	defer u.close()
	first, wanted := u.start()
	second, _ := u.start()
	p := u.probe(runtime.Uprobe{Filter: func(p *runtime.Process) bool { return p == wanted }})
	third, _ := u.start()
	u.hits(first)
	u.misses(second)
	u.misses(third)
	equal(l, "hits", p.Hits(), 2)
}

func uprobeFork(l *lab) {
	u := l.users()
	defer u.close()
	parent, process := u.start()
	p := u.probe(runtime.Uprobe{})
	u.hits(parent)
	if l.err != nil {
		return
	}
	m, err := parent.m.Copy()
	l.must(err)
	if err != nil {
		return
	}
	u.opened = append(u.opened, m)
	child := *parent
	heir, err := process.Fork(m)
	l.must(err)
	if err != nil {
		return
	}
	child.m, child.r = m, heir.Runtime
	child.program, err = program(m, l.target)
	l.must(err)
	u.in(&child, func(c *lab) { c.computes() })
	equal(l, "hits", p.Hits(), 4)
	l.must(p.Close())
	u.in(&child, func(c *lab) { c.computes() })
	equal(l, "hits when it is gone", p.Hits(), 4)
}

// program returns what is in the memory of a machine already.
func program(m *guest.Machine, target string) (*guest.Program, error) {
	file, err := programs.ReadFile("testdata/" + target + ".elf")
	if err != nil {
		return nil, err
	}
	return m.Loaded(bytes.NewReader(file), 0)
}

func uprobeReturn(l *lab) {
	u := l.users()
	defer u.close()
	first, _ := u.start()
	name, adds, _ := first.called()
	var seen []uint64
	p := u.probeAt(l.function(name).Entry, runtime.Uprobe{
		ReturnHandler: func(c *runtime.UreturnContext) { seen = append(seen, c.Regs.ReturnValue()) },
	})
	u.in(first, func(c *lab) { c.returns(7+adds, name, 7) })
	if !slices.Equal(seen, []uint64{7 + adds}) {
		l.fail("the handler saw %d", seen)
	}
	equal(l, "hits", p.Hits(), 1)
	l.must(p.Close())
	u.in(first, func(c *lab) { c.returns(8+adds, name, 8) })
	equal(l, "returns seen", len(seen), 1)
}

func uprobeSignal(l *lab) {
	u := l.users()
	defer u.close()
	first, _ := u.start()
	u.probe(runtime.Uprobe{})
	if l.err != nil {
		return
	}
	_, err := first.r.Call(l.ctx, 0, l.function("trap"))
	var stop *runtime.StopError
	if !errors.As(err, &stop) {
		l.fail("the program's own breakpoint: %v", err)
		return
	}
	signal, ok := stop.Signal()
	equal(l, "the signal", signal, runtime.SIGTRAP)
	equal(l, "there is a signal", ok, true)
	equal(l, "the place", stop.Event.Addr, l.at("trap", "trap").addr)
}

func uprobeNop(l *lab) {
	u := l.users()
	defer u.close()
	first, process := u.start()
	s := l.at("nopped", "nop")
	p := u.probeAt(s.addr, runtime.Uprobe{})
	u.in(first, func(c *lab) {
		c.names[s.addr] = s.function
		c.settle()
		equal(c, "a breakpoint stands", c.breaks(s), false)
		c.returns(501, "nopped", 1)
		c.states("nopped:active/jump nopped:idle")
	})
	equal(l, "hits", p.Hits(), 1)
	if l.err == nil {
		equal(l, "the probe is optimized", process.Links()[0].Optimized(), true)
	}
	l.must(p.Close())
	u.in(first, func(c *lab) { c.returns(502, "nopped", 2) })
}
