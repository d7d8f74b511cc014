//go:build unicorn

package runtime_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"xol/analyze"
	"xol/arch"
	"xol/classify"
	"xol/guest"
	"xol/image"
	"xol/internal/workload"
	"xol/machine"
	"xol/optcheck"
	"xol/runtime"
)

// make soak takes 100.
var seeds = flag.Int("seeds", 1, "how many schedules TestEverywhere runs for each program, number of CPUs and mode")

// mode is a way to have probed instructions executed.
type mode struct {
	name string
	opt  runtime.Options
	// probes returns what is put on an instruction.
	probes func(r *rand.Rand) []*held
	// apart leaves out instructions that a jump before them covers.
	apart bool
	// settled has the optimizer finish before the program starts.
	settled bool
	// churn changes probes while the program runs.
	churn bool
	// suits reports whether an ISA has the mode; nil for all.
	suits func(isa string) bool
}

func one(*rand.Rand) []*held { return []*held{hold(runtime.Probe{})} }

func counted(*rand.Rand) []*held {
	return []*held{hold(runtime.Probe{Counter: true})}
}

func steps(isa string) bool { return isa != "arm64" }

// overlap reports whether jumps are longer than most instructions.
func overlap(isa string) bool { return isa == "amd64" }

var modes = []mode{
	{name: "stepped", opt: runtime.Options{NoBoost: true, NoOptimize: true}, probes: one},
	{name: "trapped", opt: runtime.Options{Stepping: runtime.StepTrap, NoBoost: true, NoOptimize: true}, probes: one, suits: steps},
	{name: "boosted", opt: runtime.Options{NoOptimize: true}, probes: one},
	{name: "optimized", probes: one, settled: true},
	{name: "optimized apart", probes: one, settled: true, apart: true, suits: overlap},
	{name: "optimized meanwhile", opt: runtime.Options{Pass: 200}, probes: one},
	{name: "counted", opt: runtime.Options{Pass: 1000}, probes: counted, apart: true},
	{name: "mixed", opt: runtime.Options{Pass: 100}, probes: mixture, churn: true},
	{name: "mixed, trapped", opt: runtime.Options{Stepping: runtime.StepTrap, Pass: 100}, probes: mixture, churn: true, suits: steps},
}

// mixture returns up to three probes of any kind.
func mixture(r *rand.Rand) []*held {
	probes := make([]*held, []int{0, 1, 1, 1, 1, 1, 2, 3}[r.IntN(8)])
	for i := range probes {
		p := hold(runtime.Probe{})
		switch r.IntN(12) {
		case 0:
			p.PostHandler = func(*runtime.Context) {}
		case 1:
			p.Disabled = true
		case 2, 3:
			p.Counter = true
		case 4:
			p.Redirects = true
		case 5:
			p.PreHandler = func(c *runtime.Context) bool { c.Regs.SetIP(0); return false }
		}
		probes[i] = p
	}
	return probes
}

// TestEverywhere puts probes on every instruction that may have one, lets
// several CPUs run all functions, and holds each probe's hits against how often
// its instruction is executed where there are no probes.
func TestEverywhere(t *testing.T) {
	for _, isa := range arch.Names() {
		for _, level := range []string{"0", "2"} {
			t.Run(isa+" -O"+level, func(t *testing.T) {
				t.Parallel()
				sum := totals{insts: instsOf(t, isa, level)}
				for seed := range uint64(*seeds) {
					for _, cpus := range []int{2, 4} {
						name := fmt.Sprintf("seed %d, %d CPUs", seed, cpus)
						t.Run(name, func(t *testing.T) { inEveryMode(t, isa, level, seed, cpus, &sum) })
					}
				}
				t.Logf("%d runs, %d probes, %d of them jumps when all was settled, %d hits, %d instructions executed without probes",
					sum.runs, sum.probes, sum.jumps, sum.hits, sum.executed)
			})
		}
	}
}

type totals struct {
	insts               []judged
	runs, probes, jumps int
	hits, executed      uint64
}

func inEveryMode(t *testing.T, isa, level string, seed uint64, cpus int, sum *totals) {
	want := executed(t, isa, level, seed, cpus)
	for _, n := range want.times {
		sum.executed += n
	}
	for i := range modes {
		mode := &modes[i]
		if mode.suits != nil && !mode.suits(isa) {
			continue
		}
		t.Run(mode.name, func(t *testing.T) {
			e := newEverywhere(t, isa, level, mode, seed, cpus, sum.insts)
			if mode.settled {
				sum.jumps += e.settle(t)
			}
			e.run(t)
			sum.hits += e.compare(t, want)
			sum.probes += len(e.fixed)
			sum.runs++
		})
	}
}

// everywhere is a program full of probes.
type everywhere struct {
	*program
	mode    *mode
	random  *rand.Rand
	workers []*worker
	fixed   []*watched // those that stay as they are
	loose   []*watched // those that come and go
	places  map[uint64]*optcheck.Verdict

	interrupts uint64
	changing   bool
}

// watched is a probe, and how often its handlers were called.
type watched struct {
	*held
	pre, post *uint64
}

func newEverywhere(t *testing.T, isa, level string, mode *mode, seed uint64, cpus int, insts []judged) *everywhere {
	t.Helper()
	p := open(t, isa, level, guest.Options{CPUs: cpus, Seed: seed}, mode.opt)
	e := &everywhere{program: p, mode: mode, random: rand.New(rand.NewPCG(seed, 1)), workers: p.workers(seed)}
	e.places = make(map[uint64]*optcheck.Verdict, len(insts))
	free := uint64(0)
	for i := range insts {
		addr, v := insts[i].addr, &insts[i].Verdict
		e.places[addr] = v
		if mode.apart && (addr < free || e.random.IntN(4) == 0) {
			continue
		}
		for _, pr := range mode.probes(e.random) {
			pr.Addr = addr
			if e.register(t, pr) {
				free = addr + uint64(v.Region)
			}
		}
	}
	return e
}

// judged is where an instruction is, and whether there may be a jump.
type judged struct {
	addr uint64
	size uint8
	optcheck.Verdict
}

// instsOf returns the instructions of a program's functions.
func instsOf(t testing.TB, isa, level string) []judged {
	t.Helper()
	return instsIn(t, programPath(isa, level))
}

func instsIn(t testing.TB, path string) (insts []judged) {
	t.Helper()
	img, err := image.OpenFile(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	a, err := analyze.New(img, analyze.Options{Profile: classify.ISA, Optimize: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, function := range a.Functions() {
		res := a.Judge(function)
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		for i := range res.Insts {
			insts = append(insts, judged{res.Insts[i].Addr, res.Insts[i].Len, res.Optimize[i]})
		}
	}
	return insts
}

// register reports whether the instruction may be probed.
func (e *everywhere) register(t *testing.T, p *held) bool {
	t.Helper()
	w := &watched{held: p}
	if pre := p.PreHandler; pre != nil || e.random.IntN(4) == 0 && !p.Counter {
		w.pre = new(uint64)
		p.PreHandler = func(c *runtime.Context) bool { *w.pre++; return pre != nil && pre(c) }
	}
	if p.PostHandler != nil {
		w.post = new(uint64)
		p.PostHandler = func(*runtime.Context) { *w.post++ }
	}
	if pre := p.PreHandler; e.mode.churn && pre != nil {
		p.PreHandler = func(c *runtime.Context) bool {
			if e.random.IntN(1000) == 0 {
				e.change(t)
			}
			return pre(c)
		}
	}
	err := p.attach(e)
	var refused *runtime.RegisterError
	if errors.As(err, &refused) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if e.mode.churn && (p.Disabled || e.random.IntN(8) == 0) {
		e.loose = append(e.loose, w)
	} else {
		e.fixed = append(e.fixed, w)
	}
	return true
}

// settle lets the optimizer finish, and checks that jumps stand where nothing is
// in the way.
func (e *everywhere) settle(t *testing.T) (jumps int) {
	t.Helper()
	if err := e.Settle(); err != nil {
		t.Fatal(err)
	}
	probed := map[uint64]bool{}
	for _, w := range e.fixed {
		probed[w.Addr] = true
	}
	for _, w := range e.fixed {
		v := e.places[w.Addr]
		last := w.Addr + uint64(v.Region) - 1
		want := v.OK() && w.Addr/guest.PageSize == last/guest.PageSize
		for at := w.Addr + 1; at < w.Addr+uint64(v.Region); at++ {
			want = want && !probed[at]
		}
		if w.Optimized() != want {
			t.Errorf("%#x: optimized: %v, want %v", w.Addr, w.Optimized(), want)
		}
		if want {
			jumps++
		}
	}
	return jumps
}

// run has the CPUs do their work, a slice at a time.
func (e *everywhere) run(t *testing.T) {
	t.Helper()
	for e.refill(t) {
		if e.mode.churn {
			e.change(t)
			e.interrupt(t)
		}
		if err := e.Run(t.Context(), 1+e.random.IntN(8000)); err != nil && !errors.Is(err, runtime.ErrBudget) {
			t.Fatal(err)
		}
	}
}

// refill gives CPUs that have returned something to do. It reports whether any
// CPU runs.
func (e *everywhere) refill(t *testing.T) (busy bool) {
	t.Helper()
	for _, w := range e.workers {
		if e.m.CPU(w.cpu).Running() {
			busy = true
			continue
		}
		f, args, ok := w.next(t, e.Result(w.cpu))
		if !ok {
			continue
		}
		if err := e.Start(w.cpu, f, args...); err != nil {
			t.Fatal(err)
		}
		busy = true
	}
	return busy
}

// interrupt calls a function in the middle of what a CPU does.
func (e *everywhere) interrupt(t *testing.T) {
	t.Helper()
	cpu := e.random.IntN(len(e.workers))
	if !e.m.CPU(cpu).Running() {
		return
	}
	f, err := e.p.Function(interruptFunction)
	if err == nil {
		err = e.Interrupt(cpu, f, interruptArgs...)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.interrupts++
}

// What interrupts call: the days of February 2000.
const interruptFunction = "days"

var interruptArgs = []uint64{2000, 2}

// change does something to some of the loose probes. Handlers do it as well.
func (e *everywhere) change(t *testing.T) {
	t.Helper()
	if e.changing || len(e.loose) == 0 {
		return
	}
	e.changing = true
	defer func() { e.changing = false }()
	var err error
	for range e.random.IntN(20) {
		w := e.loose[e.random.IntN(len(e.loose))]
		registered := w.Address() != 0
		switch n := e.random.IntN(4); {
		case !registered:
			err = errors.Join(err, w.attach(e))
		case n < 2:
			err = errors.Join(err, w.Close())
		case w.Enabled():
			err = errors.Join(err, w.Disable())
		default:
			err = errors.Join(err, w.Enable())
		}
	}
	switch e.random.IntN(100) {
	case 0:
		e.SetOptimization(false)
	case 1, 2, 3:
		e.SetOptimization(true)
	case 4:
		err = errors.Join(err, e.SetArmed(false), e.SetArmed(true))
	case 5:
		err = errors.Join(err, e.Settle())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// compare holds hits against executions, and returns their number.
func (e *everywhere) compare(t *testing.T, want execution) (hits uint64) {
	t.Helper()
	for _, w := range e.fixed {
		n := w.Hits()
		hits += n
		if want.undetermined[w.Addr] {
			continue
		}
		times := want.times[w.Addr]
		if inside := want.interrupt[w.Addr]; inside != 0 {
			// In the midst of a hit an interrupt's hits are missed.
			if all := times + inside*e.interrupts; n+w.Nmissed() != all || n < times {
				t.Errorf("%#x: %d hits and %d missed, but executed %d times", w.Addr, n, w.Nmissed(), all)
			}
			continue
		}
		if n != times || w.Nmissed() != 0 {
			t.Errorf("%#x: %d hits and %d missed, but executed %d times", w.Addr, n, w.Nmissed(), times)
		}
		for _, calls := range []*uint64{w.pre, w.post} {
			if calls != nil && *calls != times {
				t.Errorf("%#x: a handler called %d times, but executed %d times", w.Addr, *calls, times)
			}
		}
	}
	return hits
}

// callsPerCPU is how many calls of the workloads each CPU makes.
const callsPerCPU = 4

// worker is what one CPU does: calls, one after the other.
type worker struct {
	cpu    int
	p      *program
	buffer workload.Buffer
	random *rand.Rand
	queue  []workload.Workload
	name   string
	check  func(result uint64) error
}

// workers deals workloads to the CPUs. What each of them does depends on the
// seed only.
func (p *program) workers(seed uint64) []*worker {
	deal := rand.New(rand.NewPCG(seed, 0))
	all := workload.All()
	order := deal.Perm(len(all))
	var workers []*worker
	for cpu := range p.m.CPUs {
		w := &worker{cpu: cpu, p: p, random: rand.New(rand.NewPCG(seed, uint64(cpu)+2))}
		w.buffer = workload.Buffer{Memory: p.m, Order: p.m.Order, Addr: bufferAddr + uint64(cpu)*workload.Size}
		for i := range callsPerCPU {
			w.queue = append(w.queue, all[order[(cpu*callsPerCPU+i)%len(order)]])
		}
		w.queue = append(w.queue, p.sharing(cpu))
		deal.Shuffle(len(w.queue), func(i, j int) { w.queue[i], w.queue[j] = w.queue[j], w.queue[i] })
		workers = append(workers, w)
	}
	return workers
}

// next checks the call that has returned, and prepares the next one; ok is
// false where there is none.
func (w *worker) next(t *testing.T, result uint64) (f machine.Function, args []uint64, ok bool) {
	t.Helper()
	if w.check != nil {
		if err := w.check(result); err != nil {
			t.Errorf("CPU %d: %s: %v", w.cpu, w.name, err)
		}
		w.check = nil
	}
	if len(w.queue) == 0 {
		return f, nil, false
	}
	c, err := w.queue[0].New(&w.buffer, w.random)
	if err != nil {
		t.Fatal(err)
	}
	if f, err = w.p.p.Function(c.Function); err != nil {
		t.Fatal(err)
	}
	w.name, w.check, w.queue = w.queue[0].Name, c.Check, w.queue[1:]
	return f, c.Args, true
}

// What CPUs do to the same memory: it is after their buffers.
const shares = 20

var sharingFunctions = []string{"add_many", "add_locked"}

// sharing returns a workload of atomic instructions, which every CPU has once.
func (p *program) sharing(cpu int) workload.Workload {
	name := sharingFunctions[cpu%len(sharingFunctions)]
	lock := uint64(bufferAddr) + uint64(len(p.m.CPUs))*workload.Size
	args := map[string][]uint64{"add_many": {lock + 8, shares}, "add_locked": {lock, lock + 16, shares}}[name]
	return workload.Workload{Name: name, New: func(*workload.Buffer, *rand.Rand) (workload.Call, error) {
		return workload.Call{Function: name, Args: args, Check: func(result uint64) error {
			if result != shares {
				return fmt.Errorf("returned %d, want %d", result, shares)
			}
			return nil
		}}, nil
	}}
}

// execution is what happens where there are no probes.
type execution struct {
	times     map[uint64]uint64 // that an instruction was executed
	interrupt map[uint64]uint64 // in one interrupt
	// undetermined are instructions that are executed as often as the order of
	// the CPUs has it: they wait for a lock, or try again.
	undetermined map[uint64]bool
}

// executed counts the instructions of a schedule by stepping through it.
func executed(t *testing.T, isa, level string, seed uint64, cpus int) execution {
	t.Helper()
	p := open(t, isa, level, guest.Options{CPUs: cpus, Exact: true}, runtime.Options{NoOptimize: true})
	x := execution{times: map[uint64]uint64{}, undetermined: map[uint64]bool{}}
	for _, w := range p.workers(seed) {
		c := p.m.CPUs[w.cpu]
		for {
			f, args, ok := w.next(t, c.Result())
			if !ok {
				break
			}
			if err := c.Call(f, args...); err != nil {
				t.Fatal(err)
			}
			x.step(t, p, c)
		}
	}
	x.interrupt = interrupted(t, p)
	for _, name := range sharingFunctions {
		addr, size := p.text(t, name)
		for at := addr + 1; at < addr+size; at++ {
			x.undetermined[at] = true
		}
	}
	return x
}

// interrupted counts the instructions of one interrupt.
func interrupted(t *testing.T, p *program) map[uint64]uint64 {
	t.Helper()
	f, err := p.p.Function(interruptFunction)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.m.CPUs[0].Call(f, interruptArgs...); err != nil {
		t.Fatal(err)
	}
	x := execution{times: map[uint64]uint64{}}
	x.step(t, p, p.m.CPUs[0])
	return x.times
}

// text returns where the instructions of a function are.
func (p *program) text(t *testing.T, name string) (addr, size uint64) {
	t.Helper()
	_, size, err := p.p.Symbol(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.p.Function(name)
	if err != nil {
		t.Fatal(err)
	}
	return f.Entry, size
}

// step counts until the called function returns. An iteration of a repeated
// string instruction is a step, but not an instruction.
func (x *execution) step(t *testing.T, p *program, c *guest.CPU) {
	t.Helper()
	last := uint64(0)
	for {
		pc := c.PC()
		if pc != last || !p.repeated(t, pc) {
			x.times[pc]++
		}
		last = pc
		ev, err := c.Run(1)
		if err != nil {
			t.Fatal(err)
		}
		switch ev.Kind {
		case machine.EventBudget:
		case machine.EventReturned:
			return
		default:
			t.Fatal(p.m.Unexpected(ev))
		}
	}
}

// repeated reports whether a repeated string instruction of amd64 is at addr.
func (p *program) repeated(t *testing.T, addr uint64) bool {
	t.Helper()
	var code [3]byte
	if err := p.m.ReadText(code[:], addr); err != nil {
		t.Fatal(err)
	}
	rep, op := code[0]&^1 == 0xf2, code[1]
	if op&0xf0 == 0x40 { // REX
		op = code[2]
	}
	return p.m.ISA.Name() == "amd64" && rep && op >= 0xa4 && op <= 0xaf
}

// TestSchedulesAreRepeatable runs a schedule twice, and compares all that happens
// to CPUs.
func TestSchedulesAreRepeatable(t *testing.T) {
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			t.Parallel()
			insts := instsOf(t, isa, "2")
			first, second := transitions(t, isa, insts), transitions(t, isa, insts)
			if len(first) == 0 || !slices.Equal(first, second) {
				t.Errorf("%d transitions, then %d, or others", len(first), len(second))
			}
		})
	}
}

// transitions returns what happens in a schedule in which probes change, and
// both switches are used in its midst.
func transitions(t *testing.T, isa string, insts []judged) (all []runtime.Transition) {
	t.Helper()
	mixed := modes[slices.IndexFunc(modes, func(m mode) bool { return m.churn })]
	mixed.opt.Observe = func(tr runtime.Transition) { all = append(all, tr) }
	e := newEverywhere(t, isa, "2", &mixed, 1, 2, insts)
	for round := 0; e.refill(t); round++ {
		e.change(t)
		if err := e.Run(t.Context(), 3000); err != nil && !errors.Is(err, runtime.ErrBudget) {
			t.Fatal(err)
		}
		if round%16 != 0 {
			continue
		}
		e.SetOptimization(round%32 != 0)
		if err := errors.Join(e.SetArmed(false), e.SetArmed(true)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
