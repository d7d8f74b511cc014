//go:build unicorn

package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"xol/arch"
	"xol/guest"
	"xol/image"
	"xol/machine"
	"xol/runtime"
)

var (
	// make soak takes 10,000.
	sequences = flag.Int("sequences", 60, "how many sequences of calls TestSequences makes for each ISA")
	// One sequence of the test before, to look at what has failed.
	sequence = flag.Int("sequence", -1, "the only sequence that TestSequences makes")
)

// callsInSequence is how many calls of the API a sequence has.
const callsInSequence = 100

// TestSequences calls what the runtime has in random sequences, also where it makes no
// sense: nothing crashes or hangs, errors are typed, each instruction that is executed
// counts once, and the text is the original one when the last probe is gone.
func TestSequences(t *testing.T) {
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			t.Parallel()
			w := newSequenceWorld(t, isa)
			var sum sequenceTotals
			for n := range *sequences {
				if *sequence >= 0 && n != *sequence {
					continue
				}
				w.sequence(t, uint64(n), &sum)
				if t.Failed() {
					return
				}
			}
			t.Logf("%d sequences, %d calls, %d of them in handlers, %d refused, %d of the guest's calls returned and %d were given up, %d hits, %d panics",
				sum.sequences, sum.calls, sum.inHandlers, sum.refused, sum.returned, sum.givenUp, sum.hits, sum.panics)
		})
	}
}

type sequenceTotals struct {
	sequences, calls, inHandlers, refused, returned, givenUp, panics int
	hits                                                             uint64
}

// sequenceWorld is what all sequences of an ISA share: what an independent machine
// without probes does.
type sequenceWorld struct {
	isa        arch.Prober
	img        *image.Image
	elf        []byte
	references []*reference
	insts      []judged
	original   []byte // the text
	text       machine.Range
}

// reference is a call as it is executed without probes.
type reference struct {
	name   string
	f      machine.Function
	args   []uint64
	result uint64
	trace  []uint64
	times  map[uint64]uint64
}

func newSequenceWorld(t *testing.T, isa string) *sequenceWorld {
	t.Helper()
	p := openReturns(t, isa, guest.Options{Exact: true}, runtime.Options{})
	w := &sequenceWorld{isa: p.m.ISA, img: p.img, insts: instsIn(t, returnsPath(isa))}
	var err error
	if w.elf, err = os.ReadFile(returnsPath(isa)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		most uint64
	}{{"descend", 6}, {"even", 5}, {"odd", 4}, {"calls_head", 1}, {"calls_many", 1}, {"calls_scale", 1}, {"tail", 1}} {
		for arg := range c.most {
			w.references = append(w.references, p.reference(t, c.name, arg))
		}
	}
	for _, inst := range w.insts {
		if w.text.Hi == 0 {
			w.text.Lo = inst.addr
		}
		w.text.Lo, w.text.Hi = min(w.text.Lo, inst.addr), max(w.text.Hi, inst.addr+uint64(inst.size))
	}
	w.original = make([]byte, w.text.Hi-w.text.Lo)
	if err := p.m.ReadText(w.original, w.text.Lo); err != nil {
		t.Fatal(err)
	}
	return w
}

// reference executes a call step by step.
func (p *program) reference(t *testing.T, name string, args ...uint64) *reference {
	t.Helper()
	ref := &reference{name: name, f: p.function(t, name), args: args, times: map[uint64]uint64{}}
	c := p.m.CPUs[0]
	stack := c.Reg(p.m.File.SP)
	if err := c.Call(ref.f, args...); err != nil {
		t.Fatal(err)
	}
	for c.Running() {
		pc := c.PC()
		ref.trace = append(ref.trace, pc)
		ref.times[pc]++
		if _, err := c.Run(1); err != nil {
			t.Fatal(err)
		}
	}
	ref.result = c.Result()
	c.SetReg(p.m.File.SP, stack)
	return ref
}

// activity is a call of the guest that is going on.
type activity struct {
	*reference
	hits    map[*fixedProbe]uint64
	returns uint64
	// panicked says that a handler did: the fixed return probe may have missed the
	// return.
	panicked bool
}

// fixedProbe is a probe that stays registered, so that what it has to count is known.
type fixedProbe struct {
	*held
	hits                        uint64 // of all activities
	lo, hi                      uint64 // hits of a counter: at least and at most
	missedAtLeast, missedAtMost uint64
}

// runner is a sequence that runs.
type runner struct {
	t       *testing.T
	w       *sequenceWorld
	random  *rand.Rand
	sum     *sequenceTotals
	log     []string
	depth   int // of handlers
	cancel  context.CancelFunc
	m       *guest.Machine
	r       *runtime.Runtime
	im      *runtime.Module
	closing bool // handlers may close the machine
	closed  bool
	uprobes bool

	going   [][]*activity // by CPU; an interrupt is the last
	fixed   []*fixedProbe
	returns *runtime.Link // of descend, fixed
	entry   uint64
	loose   []*held
	rets    []*again[runtime.ReturnProbe]
	jprobe  *again[runtime.Jprobe]
	watch   *again[runtime.WatchProbe]
}

// sequence makes one sequence.
func (w *sequenceWorld) sequence(t *testing.T, seed uint64, sum *sequenceTotals) {
	s := &runner{t: t, w: w, random: rand.New(rand.NewPCG(seed, 11)), sum: sum, cancel: func() {}}
	hang := time.AfterFunc(5*time.Minute, func() { panic(fmt.Sprintf("%s: sequence %d hangs", w.isa.Name(), seed)) })
	defer hang.Stop()
	defer func() {
		if s.m != nil {
			same(t, "closing", errors.Join(s.m.Close(), s.m.Close()), nil)
		}
		if t.Failed() {
			t.Logf("sequence %d:\n%s", seed, strings.Join(s.log[max(0, len(s.log)-60):], "\n"))
		}
	}()
	s.open()
	for range callsInSequence {
		if t.Failed() {
			return
		}
		s.call()
	}
	switch s.random.IntN(4) {
	case 0:
		s.useAfterClose()
	case 1:
		s.unload()
	default:
		s.end()
	}
	sum.sequences++
}

func (s *runner) note(format string, args ...any) {
	s.log = append(s.log, strings.Repeat("  ", s.depth)+fmt.Sprintf(format, args...))
}

func (s *runner) fail(format string, args ...any) {
	s.t.Helper()
	s.note("FAILED: "+format, args...)
	s.t.Errorf(format, args...)
}

// open opens the machine, and registers the probes that stay.
func (s *runner) open() {
	opt := runtime.Options{
		NoBoost: s.oneIn(4), NoOptimize: s.oneIn(4), ClassicTrampoline: s.oneIn(2), Uprobes: s.oneIn(6),
		Pass: []int{0, 1, 5, 30, 200}[s.random.IntN(5)],
	}
	if steps(s.w.isa.Name()) && s.oneIn(3) {
		opt.Stepping = runtime.StepTrap
	}
	s.uprobes = opt.Uprobes
	mopt := guest.Options{ISA: s.w.isa, CPUs: 1 + s.random.IntN(3), Turn: 1 + s.random.IntN(20), Seed: s.random.Uint64(), Exact: s.oneIn(2)}
	s.note("%+v %d CPUs, exact %t", opt, mopt.CPUs, mopt.Exact)
	var err error
	if s.m, err = guest.Open(mopt); err != nil {
		s.t.Fatal(err)
	}
	if _, err = s.m.Load(bytes.NewReader(s.w.elf)); err != nil {
		s.t.Fatal(err)
	}
	if err = s.m.Map(bufferAddr, guest.PageSize, machine.PermRead|machine.PermWrite); err != nil {
		s.t.Fatal(err)
	}
	if s.r, err = runtime.New(s.m, s.w.isa, opt); err != nil {
		s.t.Fatal(err)
	}
	if s.im, err = s.r.Load("returns", s.w.img); err != nil {
		s.t.Fatal(err)
	}
	s.going = make([][]*activity, mopt.CPUs)
	for range 1 + s.random.IntN(12) {
		s.addFixed()
	}
	spec := runtime.ReturnProbe{Symbol: "descend", MaxActive: 1000, Handler: func(c *runtime.ReturnContext) { s.top(c.CPU).returns++ }}
	s.returns = attach(s.t, s.r, spec)
	s.entry = s.returns.Address()
}

// traced returns an address that calls execute.
func (s *runner) traced() uint64 {
	ref := s.w.references[s.random.IntN(len(s.w.references))]
	return ref.trace[s.random.IntN(len(ref.trace))]
}

func (s *runner) addFixed() {
	f := &fixedProbe{held: hold(runtime.Probe{Addr: s.traced(), Counter: s.oneIn(4)})}
	if !f.Counter {
		f.PreHandler = func(c *runtime.Context) bool {
			f.hits++
			s.top(c.CPU).hits[f]++
			return false
		}
	}
	if s.oneIn(8) {
		f.PostHandler, f.Counter = func(*runtime.Context) {}, false
		if f.PreHandler == nil {
			return
		}
	}
	var refused *runtime.RegisterError
	switch err := f.attach(s.r); {
	case err == nil:
		s.note("fixed %#x counter %t", f.Addr, f.Counter)
		s.fixed = append(s.fixed, f)
	case !errors.As(err, &refused):
		s.t.Fatal(err)
	}
}

func (s *runner) oneIn(n int) bool { return s.random.IntN(n) == 0 }

// top returns what a CPU is executing.
func (s *runner) top(cpu int) *activity {
	list := s.going[cpu]
	if len(list) == 0 {
		s.fail("a hit on CPU %d, which has nothing to do", cpu)
		return &activity{reference: s.w.references[0], hits: map[*fixedProbe]uint64{}}
	}
	return list[len(list)-1]
}

// expected says which errors a call may return.
func (s *runner) expected(what string, err error, also ...error) bool {
	s.note("%s: %v", what, err)
	s.sum.calls++
	if s.depth > 0 {
		s.sum.inHandlers++
	}
	if err == nil {
		return true
	}
	s.sum.refused++
	var refused *runtime.RegisterError
	if s.closed {
		if !errors.Is(err, machine.ErrClosed) && !errors.Is(err, runtime.ErrNoCPU) && !errors.As(err, &refused) {
			s.fail("%s after closing: %v", what, err)
		}
		return false
	}
	for _, a := range also {
		if errors.Is(err, a) {
			return false
		}
	}
	if !errors.As(err, &refused) {
		s.fail("%s: %v", what, err)
	}
	return false
}

// call makes one call that is not in a handler.
func (s *runner) call() {
	cpu := s.random.IntN(len(s.going))
	switch s.random.IntN(20) {
	case 0, 1, 2, 3:
		s.run()
	case 4, 5:
		s.start(cpu, s.pick())
	case 6, 7:
		s.callGuest(cpu, s.pick())
	case 8:
		s.step(cpu)
	case 9:
		s.interrupt(cpu, s.pick())
	case 10:
		s.giveUp(cpu)
	case 11:
		bad := []int{-1, len(s.going), 1 << 30}[s.random.IntN(3)]
		_, err := s.r.Call(s.t.Context(), bad, s.pick().f)
		if err = errors.Join(err, s.r.Start(bad, s.pick().f), s.r.GiveUp(bad), s.r.Step(bad, 1), s.r.Interrupt(bad, s.pick().f)); err == nil {
			s.fail("CPU %d is there", bad)
		}
		s.expected("bad CPU", err, runtime.ErrNoCPU)
	default:
		s.change()
	}
}

func (s *runner) pick() *reference { return s.w.references[s.random.IntN(len(s.w.references))] }

// change changes probes. Handlers do it, too.
func (s *runner) change() {
	switch n := s.random.IntN(24); n {
	case 0, 1, 2, 3:
		p := s.looseProbe()
		if s.expected(fmt.Sprintf("Register %#x", p.Addr), p.attach(s.r)) {
			s.loose = append(s.loose, p)
		}
	case 4, 5, 6, 7, 8:
		if p := s.anyLoose(); p != nil {
			s.expected(fmt.Sprintf("Unregister %#x", p.Addr), p.Close())
		}
	case 9, 10:
		if p := s.anyLoose(); p != nil {
			s.expected(fmt.Sprintf("Enable %#x", p.Addr), p.Enable())
		}
	case 11, 12:
		if p := s.anyLoose(); p != nil {
			s.expected(fmt.Sprintf("Disable %#x", p.Addr), p.Disable())
		}
	case 13:
		if p := s.anyLoose(); p != nil {
			other := hold(p.Probe)
			if s.expected(fmt.Sprintf("Attach %#x again", p.Addr), other.attach(s.r)) {
				s.loose = append(s.loose, other)
			}
		}
	case 14:
		all := []*held{s.looseProbe(), s.looseProbe(), s.looseProbe()}
		if s.oneIn(3) {
			all[s.random.IntN(3)] = nil
		}
		if s.expected("RegisterAll", attachAll(s.r, all)) {
			s.loose = append(s.loose, all...)
			break
		}
		for _, p := range all {
			if p != nil && p.Address() != 0 {
				s.fail("a probe of %#x is left", p.Addr)
			}
		}
	case 15, 16:
		s.changeReturn()
	case 17:
		s.changeJprobe()
	case 18:
		s.changeWatch()
	case 19:
		s.noProbe()
	case 20:
		s.expected("Settle", s.r.Settle())
	case 21:
		on := s.oneIn(2)
		s.note("SetOptimization %t", on)
		s.r.SetOptimization(on)
	case 22:
		s.expected("SetArmed", errors.Join(s.r.SetArmed(false), s.r.SetArmed(true)))
	case 23:
		s.r.Links()
		s.r.Stats()
		var list bytes.Buffer
		s.expected("List", errors.Join(s.r.List(&list), s.r.ListBlacklist(&list)))
	}
}

// noProbe tries things with nothing.
func (s *runner) noProbe() {
	var none *runtime.Link
	if s.oneIn(2) {
		none = new(runtime.Link)
	}
	for _, err := range []error{try(s.r, nil), try(s.r, &runtime.Probe{Symbol: "tail"}), none.Enable(), none.Disable(), none.Close()} {
		if err == nil {
			s.fail("nothing is accepted as a probe")
		}
		s.expected("nothing", err)
	}
}

func (s *runner) changeReturn() {
	if len(s.rets) == 0 || s.oneIn(3) {
		p := runtime.ReturnProbe{
			Symbol: []string{"descend", "even", "odd", "tail", "bottom", "head", "many", "nothing"}[s.random.IntN(8)], DataSize: []int{0, 8, 4096, 5000}[s.random.IntN(4)],
			Handler: func(c *runtime.ReturnContext) { s.act(c.Context) }, MaxActive: s.random.IntN(4),
		}
		if s.oneIn(2) {
			p.EntryHandler = func(c *runtime.ReturnContext) bool { s.act(c.Context); return s.oneIn(4) }
		}
		ret := &again[runtime.ReturnProbe]{spec: p}
		if s.expected("Attach a return probe of "+p.Symbol, ret.attach(s.r)) {
			s.rets = append(s.rets, ret)
		}
		return
	}
	p := s.rets[s.random.IntN(len(s.rets))]
	switch s.random.IntN(4) {
	case 0:
		s.expected("Close a return probe of "+p.spec.Symbol, p.Close())
	case 1:
		s.expected("Disable a return probe of "+p.spec.Symbol, p.Disable())
	case 2:
		s.expected("Enable a return probe of "+p.spec.Symbol, p.Enable())
	case 3:
		other := &again[runtime.ReturnProbe]{spec: p.spec}
		if s.expected("Attach a return probe again", other.attach(s.r)) {
			s.rets = append(s.rets, other)
		}
	}
}

func (s *runner) changeJprobe() {
	if s.jprobe == nil {
		f, err := s.function("mirror_many")
		if err != nil {
			return // after closing
		}
		s.jprobe = &again[runtime.Jprobe]{spec: runtime.Jprobe{Symbol: "many", Mirror: f}}
	}
	if s.jprobe.Address() == 0 && s.oneIn(2) {
		s.expected("Attach a jprobe", s.jprobe.attach(s.r))
	} else {
		s.expected("UnregisterJprobe", s.jprobe.Close())
	}
}

func (s *runner) function(name string) (machine.Function, error) {
	p, err := s.m.Loaded(bytes.NewReader(s.w.elf), 0)
	if err != nil {
		return machine.Function{}, err
	}
	return p.Function(name)
}

func (s *runner) changeWatch() {
	if s.watch == nil {
		s.watch = &again[runtime.WatchProbe]{spec: runtime.WatchProbe{Addr: bufferAddr, Len: 8, Kind: machine.WatchWrite, Handler: func(*runtime.WatchContext) {}}}
	}
	var err error
	switch s.random.IntN(4) {
	case 0:
		err = s.watch.attach(s.r)
	case 1:
		err = s.watch.Close()
	case 2:
		err = s.watch.Disable()
	case 3:
		err = s.watch.Enable()
	}
	s.expected("watch", err)
}

// looseProbe returns a probe that may come and go.
func (s *runner) looseProbe() *held {
	p := hold(runtime.Probe{Addr: s.traced(), Disabled: s.oneIn(8), Redirects: s.oneIn(8), Counter: s.oneIn(4)})
	if s.oneIn(8) && !s.uprobes { // those are put inside instructions, as in Linux
		p.Addr += uint64(s.random.IntN(8)) // inside an instruction, which is refused
	}
	if s.oneIn(2) {
		p.PreHandler = func(c *runtime.Context) bool { s.act(c); return false }
	}
	if s.oneIn(5) {
		p.PostHandler = func(c *runtime.Context) { s.act(c) }
	}
	if s.oneIn(3) {
		p.FaultHandler = func(c *runtime.Context, _ *runtime.Fault) bool { s.act(c); return false }
	}
	return p
}

func (s *runner) anyLoose() *held {
	if len(s.loose) == 0 {
		return nil
	}
	return s.loose[s.random.IntN(len(s.loose))]
}

// act does something in a handler.
func (s *runner) act(c *runtime.Context) {
	if s.depth > 2 || s.oneIn(3) {
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	other := s.random.IntN(len(s.going))
	switch n := s.random.IntN(24); n {
	case 0, 1, 2:
		s.nested(c, s.pick())
	case 3:
		_, err := s.r.Call(s.t.Context(), c.CPU, s.pick().f)
		s.inside("Call", err)
	case 4:
		s.inside("Run", s.r.Run(s.t.Context(), 100))
	case 5:
		s.inside("Step", s.r.Step(other, 1))
	case 6:
		s.inside("Interrupt", s.r.Interrupt(other, s.pick().f))
	case 7:
		s.inside("GiveUp", s.r.GiveUp(c.CPU))
	case 8:
		s.inside("Start", s.r.Start(c.CPU, s.pick().f))
	case 9:
		if other != c.CPU {
			s.giveUp(other)
		}
	case 10:
		if other != c.CPU {
			s.start(other, s.pick())
		}
	case 11, 12:
		s.note("the context ends")
		s.cancel()
	case 13:
		s.note("panic")
		s.sum.panics++
		s.top(c.CPU).panicked = true
		panic(errRandom)
	case 14:
		err := c.Read(make([]byte, 8), 0x10)
		var fault *runtime.FaultError
		if !errors.As(err, &fault) && !s.closed {
			s.fail("reading nowhere: %v", err)
		}
	case 15:
		for _, name := range []string{"nothing", s.m.File.Registers[s.m.File.SP].Name} {
			if v, ok := c.Regs.Get(name); ok {
				c.Regs.Set(name, v)
			}
		}
	case 16:
		if s.closing && !s.closed {
			s.closed = true
			s.note("Close: %v", s.m.Close())
			if err := s.m.Close(); err != nil {
				s.fail("closing again: %v", err)
			}
		}
	default:
		s.change()
	}
}

var errRandom = errors.New("a handler panics")

// inside checks what has no place in a handler.
func (s *runner) inside(what string, err error) {
	if err == nil {
		s.fail("%s in a handler is accepted", what)
	}
	s.expected(what+" in a handler", err, runtime.ErrInHandler)
}

// nested has a handler call a function: probes miss it, and counters count it.
func (s *runner) nested(c *runtime.Context, ref *reference) {
	got, err := c.Call(ref.f, ref.args...)
	if s.expected("Context.Call "+ref.name, err, context.Canceled, context.DeadlineExceeded) && got != ref.result {
		s.fail("%s%v in a handler is %#x, want %#x", ref.name, ref.args, got, ref.result)
	}
	s.inAll(ref, err == nil, true)
}

// inAll adds to what probes must have counted or missed in all a call that was
// executed, or part of it.
func (s *runner) inAll(ref *reference, whole, missed bool) {
	for _, f := range s.fixed {
		n := ref.times[f.Addr]
		low := n
		if !whole {
			low = 0
		}
		switch {
		case f.Counter:
			f.lo, f.hi = f.lo+low, f.hi+n
		case missed:
			f.missedAtLeast, f.missedAtMost = f.missedAtLeast+low, f.missedAtMost+n
		}
	}
}

// guarded runs the guest, and reports whether a handler panicked.
func (s *runner) guarded(f func()) (panicked bool) {
	depth := s.depth
	defer func() {
		switch p := recover(); {
		case p == nil:
		case p == any(errRandom):
			s.depth, panicked = depth, true
		default:
			panic(p)
		}
	}()
	f()
	return false
}

// context returns one that ends of itself at times.
func (s *runner) context() context.Context {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.cancel = cancel
	if s.oneIn(3) {
		return &countdown{ctx, s.random.IntN(30)}
	}
	return ctx
}

func (s *runner) run() {
	budget := s.random.IntN(1 << s.random.IntN(12))
	ctx := s.context()
	defer s.cancel()
	panicked := s.guarded(func() {
		err := s.r.Run(ctx, budget)
		s.expected(fmt.Sprintf("Run %d", budget), err, runtime.ErrBudget, context.Canceled, context.DeadlineExceeded)
	})
	if panicked {
		s.note("Run panics")
	}
	s.reapAll()
}

func (s *runner) step(cpu int) {
	if !s.m.CPU(cpu).Running() {
		return
	}
	n := 1 + s.random.IntN(20)
	if s.guarded(func() { s.expected(fmt.Sprintf("Step %d of CPU %d", n, cpu), s.r.Step(cpu, n)) }) {
		s.note("Step panics")
	}
	s.reapAll()
}

func (s *runner) start(cpu int, ref *reference) {
	s.reap(cpu)
	if s.expected(fmt.Sprintf("Start %s%v on CPU %d", ref.name, ref.args, cpu), s.r.Start(cpu, ref.f, ref.args...)) {
		s.endGivenUp(cpu)
		same(s.t, "calls of a CPU that was started anew", s.r.Depth(uint64(cpu)), 0)
		s.begin(cpu, ref)
	}
}

func (s *runner) begin(cpu int, ref *reference) {
	s.going[cpu] = append(s.going[cpu], &activity{reference: ref, hits: map[*fixedProbe]uint64{}})
}

func (s *runner) callGuest(cpu int, ref *reference) {
	s.reap(cpu)
	s.endGivenUp(cpu)
	s.begin(cpu, ref)
	ctx := s.context()
	if s.oneIn(2) {
		ctx = s.t.Context()
	}
	defer s.cancel()
	panicked := s.guarded(func() {
		got, err := s.r.Call(ctx, cpu, ref.f, ref.args...)
		ok := s.expected(fmt.Sprintf("Call %s%v on CPU %d", ref.name, ref.args, cpu), err, context.Canceled, context.DeadlineExceeded)
		if ok && got != ref.result {
			s.fail("%s%v is %#x, want %#x", ref.name, ref.args, got, ref.result)
		}
		if !ok && !s.closed {
			same(s.t, "the CPU of a call that was given up is running", s.m.CPU(cpu).Running(), false)
			s.endGivenUp(cpu)
		}
	})
	if panicked {
		s.note("Call panics")
	}
	s.reapAll()
}

func (s *runner) giveUp(cpu int) {
	s.reap(cpu)
	if s.expected(fmt.Sprintf("GiveUp CPU %d", cpu), s.r.GiveUp(cpu)) {
		same(s.t, "a CPU that was given up is running", s.m.CPU(cpu).Running(), false)
		s.endGivenUp(cpu)
		same(s.t, "calls of a CPU that was given up", s.r.Depth(uint64(cpu)), 0)
	}
}

func (s *runner) interrupt(cpu int, ref *reference) {
	s.reap(cpu)
	s.begin(cpu, ref)
	var err error
	panicked := s.guarded(func() {
		err = s.r.Interrupt(cpu, ref.f, ref.args...)
		s.expected(fmt.Sprintf("Interrupt of CPU %d by %s%v", cpu, ref.name, ref.args), err)
	})
	a := s.top(cpu)
	s.going[cpu] = s.going[cpu][:len(s.going[cpu])-1]
	if s.closed {
		return
	}
	whole := !panicked && err == nil
	missed := len(a.hits) == 0
	s.inAll(ref, whole, missed)
	switch {
	case missed:
	case whole:
		s.checkWhole(a)
	default:
		s.checkPart(a)
	}
	s.reapAll()
}

// reapAll looks at all calls that have returned.
func (s *runner) reapAll() {
	for cpu := range s.going {
		s.reap(cpu)
	}
}

// reap looks at the call of a CPU, if it has returned.
func (s *runner) reap(cpu int) {
	list := s.going[cpu]
	if s.closed || len(list) == 0 || s.m.CPU(cpu).Running() {
		return
	}
	a := list[0]
	s.going[cpu] = list[:0]
	s.sum.returned++
	if got := s.r.Result(cpu); got != a.result {
		s.fail("%s%v is %#x on CPU %d, want %#x", a.name, a.args, got, cpu, a.result)
	}
	s.checkWhole(a)
	if want := a.times[s.entry]; a.returns > want || a.returns < want && !a.panicked {
		s.fail("%d returns of descend in %s%v, want %d", a.returns, a.name, a.args, want)
	}
	s.inAll(a.reference, true, false)
}

// endGivenUp looks at the call of a CPU that has been given up.
func (s *runner) endGivenUp(cpu int) {
	list := s.going[cpu]
	if len(list) == 0 {
		return
	}
	a := list[0]
	s.going[cpu] = list[:0]
	if s.closed {
		return
	}
	s.sum.givenUp++
	s.checkPart(a)
	s.inAll(a.reference, false, false)
}

// checkWhole holds the hits of a call that has returned against the trace.
func (s *runner) checkWhole(a *activity) {
	for _, f := range s.fixed {
		if want := a.times[f.Addr]; !f.Counter && a.hits[f] != want {
			s.fail("%d hits at %#x in %s%v, want %d", a.hits[f], f.Addr, a.name, a.args, want)
		}
	}
}

// checkPart makes sure that the hits of a call that was given up are those of a part of
// the trace from its start.
func (s *runner) checkPart(a *activity) {
	first, last := 0, len(a.trace)
	for _, f := range s.fixed {
		if f.Counter {
			continue
		}
		lo, hi, seen := 0, len(a.trace), uint64(0)
		for i, at := range a.trace {
			if at != f.Addr {
				continue
			}
			if seen++; seen == a.hits[f] {
				lo = i + 1
			} else if seen == a.hits[f]+1 {
				hi = i
			}
		}
		if a.hits[f] > seen {
			s.fail("%d hits at %#x in part of %s%v, which has %d", a.hits[f], f.Addr, a.name, a.args, seen)
		}
		first, last = max(first, lo), min(last, hi)
	}
	if first > last {
		s.fail("no part of %s%v has the hits of the probes: at least %d instructions, at most %d", a.name, a.args, first, last)
	}
	if a.returns > a.times[s.entry] {
		s.fail("%d returns in %s%v", a.returns, a.name, a.args)
	}
}

// finish has all calls return, or gives them up.
func (s *runner) finish() {
	s.cancel = func() {}
	for cpu := range s.going {
		if s.oneIn(2) {
			s.giveUp(cpu)
		}
	}
	for range 1000 {
		running := false
		for cpu := range s.going {
			running = running || s.m.CPU(cpu).Running()
		}
		if !running {
			break
		}
		s.run()
	}
	for cpu := range s.going {
		s.giveUp(cpu)
		same(s.t, "calls that are going on", s.r.Depth(uint64(cpu)), 0)
	}
}

// end takes all probes away, and looks at what is left.
func (s *runner) end() {
	s.finish()
	for _, p := range s.loose {
		if p.Address() != 0 {
			s.expected("Unregister", p.Close())
		}
	}
	for _, p := range s.rets {
		if p.Address() != 0 {
			s.expected("UnregisterReturn", p.Close())
		}
	}
	if s.jprobe != nil && s.jprobe.Address() != 0 {
		s.expected("UnregisterJprobe", s.jprobe.Close())
	}
	s.totals()
	for _, f := range s.fixed {
		s.expected("Unregister", f.Close())
	}
	s.expected("UnregisterReturn", s.returns.Close())
	s.expected("Settle", s.r.Settle())
	st := s.r.Stats()
	same(s.t, "what waits for CPUs that are nowhere", st.Probes+st.Sites+st.Pending, 0)
	s.untouched()
}

// totals holds what the probes say against what was executed.
func (s *runner) totals() {
	for _, f := range s.fixed {
		hits, missed := f.Hits(), f.Nmissed()
		s.sum.hits += hits
		switch {
		case f.Counter && (hits < f.lo || hits > f.hi || missed != 0):
			s.fail("counter at %#x: %d hits and %d missed, want %d to %d", f.Addr, hits, missed, f.lo, f.hi)
		case !f.Counter && hits != f.hits:
			s.fail("%#x: %d hits, but its handler was called %d times", f.Addr, hits, f.hits)
		case !f.Counter && (missed < f.missedAtLeast || missed > f.missedAtMost):
			s.fail("%#x: missed %d, want %d to %d", f.Addr, missed, f.missedAtLeast, f.missedAtMost)
		}
	}
}

// untouched checks that the text is the original one, and that it runs.
func (s *runner) untouched() {
	text := make([]byte, len(s.w.original))
	for what, read := range map[string]func([]byte, uint64) error{"executed": s.m.ReadText, "read": s.m.Read} {
		if err := read(text, s.w.text.Lo); err != nil || !bytes.Equal(text, s.w.original) {
			s.fail("the text that is %s is not the original one: %v", what, err)
		}
	}
	ref := s.pick()
	got, err := s.r.Call(s.t.Context(), 0, ref.f, ref.args...)
	if err != nil || got != ref.result {
		s.fail("%s%v without probes is %#x, want %#x: %v", ref.name, ref.args, got, ref.result, err)
	}
}

// unload unloads the text with all probes in it.
func (s *runner) unload() {
	s.finish()
	s.totals()
	s.expected("Unload", s.r.Unload(s.im))
	if err := s.r.Unload(s.im); err == nil {
		s.fail("unloaded twice")
	}
	for _, f := range s.fixed {
		same(s.t, "a probe of unloaded text is gone", f.Gone(), true)
		s.expected("Unregister", f.Close())
	}
	for range 10 {
		s.change()
	}
}

// useAfterClose closes the machine, in a handler perhaps, and goes on.
func (s *runner) useAfterClose() {
	s.closing = true
	for range 5 {
		s.call()
	}
	if !s.closed {
		s.closed = true
		s.expected("Close", s.m.Close())
	}
	hits := uint64(0)
	for _, f := range s.fixed {
		hits += f.Hits()
	}
	s.sum.hits += hits
	for range 30 {
		s.call()
	}
	for _, f := range s.fixed {
		if err := f.Close(); !errors.Is(err, machine.ErrClosed) || f.Address() != 0 {
			s.fail("Unregister after closing: %v", err)
		}
		hits -= f.Hits()
	}
	same(s.t, "hits that were lost by closing", hits, 0)
}
