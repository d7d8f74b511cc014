//go:build unicorn

package runtime_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"xol/arch"
	"xol/guest"
	"xol/internal/isatest"
	"xol/internal/workload"
	"xol/patch"
	"xol/runtime"
)

var stride = flag.Int("stride", 25, "how many boundaries in a detour buffer the drills go on at a time")

// other is the CPU that executes what is patched.
const other = 1

// drill is a short call that a CPU makes again and again, while plans for the
// instructions in it are carried out.
type drill struct {
	*program
	c     *guest.CPU
	w     workload.Workload
	seed  uint64   // of its arguments
	trace []uint64 // the executed instructions
	sp    uint64
	check func(uint64) error

	second   *held  // beside the one that is tried
	original []byte // the text without probes
	skip     int    // how many boundaries to go on at a time
}

// longest is how many instructions a drill executes at most, by how its program
// was optimized.
var longest = map[string]int{"0": 60, "2": 20}

// newDrill takes that call of a function which executes most of it.
func newDrill(t *testing.T, isa arch.Prober, level, function string) *drill {
	t.Helper()
	d := &drill{program: openWith(t, isa, programPath(isa.Name(), level), guest.Options{CPUs: 2, Exact: true}, runtime.Options{})}
	d.c = d.m.CPUs[other]
	d.sp = d.c.Reg(d.m.File.SP)
	all := workload.All()
	d.w = all[slices.IndexFunc(all, func(w workload.Workload) bool { return w.Name == function })]
	best, most := uint64(0), 0
	for d.seed = range uint64(64) {
		d.record(t)
		seen := slices.Compact(slices.Sorted(slices.Values(d.trace)))
		if len(d.trace) <= longest[level] && len(seen) > most {
			best, most = d.seed, len(seen)
		}
	}
	if d.seed = best; most == 0 {
		t.Fatalf("no call of %s is short", function)
	}
	d.record(t)
	return d
}

// record executes the call without probes.
func (d *drill) record(t *testing.T) {
	t.Helper()
	d.trace = d.trace[:0]
	for d.start(t); d.c.Running(); {
		d.trace = append(d.trace, d.c.PC())
		if err := d.Step(other, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// start begins the call.
func (d *drill) start(t *testing.T) {
	t.Helper()
	d.c.SetReg(d.m.File.SP, d.sp)
	b := &workload.Buffer{Memory: d.m, Order: d.m.Order, Addr: bufferAddr + other*workload.Size}
	c, err := d.w.New(b, rand.New(rand.NewPCG(d.seed, 0)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.p.Function(c.Function)
	if err != nil {
		t.Fatal(err)
	}
	d.check = c.Check
	if err := d.Start(other, f, c.Args...); err != nil {
		t.Fatal(err)
	}
}

// step lets the CPU do n instructions, those of slots and detour buffers among
// them. It reports whether there were so many.
func (d *drill) step(n int) (more bool, err error) {
	for ; n > 0 && d.c.Running(); n-- {
		if err := d.Step(other, 1); err != nil {
			return false, err
		}
	}
	return d.c.Running(), nil
}

var errEndless = errors.New("the call does not return")

// finish lets the call return, and checks it.
func (d *drill) finish() error {
	const slice, slices = 100, 100
	for range slices {
		if !d.c.Running() {
			return d.check(d.Result(other))
		}
		if err := d.Step(other, slice); err != nil {
			return err
		}
	}
	return errEndless
}

func (d *drill) passes(n int) error {
	for range n {
		if err := d.Pass(); err != nil {
			return err
		}
	}
	return nil
}

func (d *drill) times(addr uint64) (n uint64) {
	for _, at := range d.trace {
		if at == addr {
			n++
		}
	}
	return n
}

// sites are the instructions of the drill, each once.
func (d *drill) sites() []uint64 { return slices.Compact(slices.Sorted(slices.Values(d.trace))) }

func (d *drill) text(t *testing.T, addr uint64, n int) []byte {
	t.Helper()
	code := make([]byte, n)
	if err := d.m.ReadText(code, addr); err != nil {
		t.Fatal(err)
	}
	return code
}

// states counts what was tried.
type states struct {
	sites, states int
	hit, passed   int // whether the CPU came to the probe afterwards
}

func (s states) String() string {
	return fmt.Sprintf("%d states at %d sites: in %d the probe was hit afterwards, in %d not", s.states, s.sites, s.hit, s.passed)
}

// count counts a state.
func (s *states) count(before, after uint64) {
	s.states++
	if after > before {
		s.hit++
	} else {
		s.passed++
	}
}

// switched are the operations that the optimizer does.
var switched = []struct {
	op       patch.Operation
	optimize bool
}{{patch.Optimize, true}, {patch.Unoptimize, false}}

// ready brings a site to where the operation begins, and begins it.
func (d *drill) ready(optimize bool) error {
	d.SetOptimization(!optimize)
	if err := d.Settle(); err != nil {
		return err
	}
	d.SetOptimization(optimize)
	return nil
}

// length returns how many passes an operation takes where nothing is in the way.
func (d *drill) length(t *testing.T, optimize bool) (passes int) {
	t.Helper()
	if err := d.ready(optimize); err != nil {
		t.Fatal(err)
	}
	for d.Stats().Pending > 0 {
		if err := d.Pass(); err != nil {
			t.Fatal(err)
		}
		passes++
	}
	return passes
}

// each calls f with every site of the drill that may become a jump, and a probe
// there.
func (d *drill) each(t *testing.T, f func(p *held) error) error {
	t.Helper()
	for _, addr := range d.sites() {
		p := hold(runtime.Probe{Addr: addr})
		if p.attach(d) != nil {
			continue
		}
		if err := errors.Join(d.ready(true), d.Settle()); err != nil {
			return err
		}
		var err error
		if p.Optimized() {
			err = f(p)
		}
		if err = errors.Join(err, p.Close(), d.Settle()); err != nil {
			return fmt.Errorf("%#x: %w", addr, err)
		}
	}
	return nil
}

// every carries out both operations at every site of the drill: up to every
// state, has the other CPU come to every instruction boundary, goes on to every
// later state, and lets the CPU finish.
func (d *drill) every(t *testing.T, count *states) error {
	return d.each(t, func(p *held) error {
		count.sites++
		for _, s := range switched {
			last := d.length(t, s.optimize)
			for from := range last + 1 {
				for to := from; to <= last; to++ {
					if err := d.boundaries(t, p, s.optimize, from, to, count); err != nil {
						return fmt.Errorf("%s, pass %d to %d, %w", s.op, from, to, err)
					}
				}
			}
		}
		return nil
	})
}

// boundaries tries every instruction boundary.
func (d *drill) boundaries(t *testing.T, p *held, optimize bool, from, to int, count *states) error {
	for i, more := 0, true; more; i++ {
		if err := d.ready(optimize); err != nil {
			return err
		}
		before := p.Hits()
		d.start(t)
		if err := d.passes(from); err != nil {
			return err
		}
		var err error
		if more, err = d.walk(&i); err != nil {
			return fmt.Errorf("to boundary %d: %w", i, err)
		}
		then := p.Hits()
		if err := errors.Join(d.passes(to-from), d.finish()); err != nil {
			return fmt.Errorf("boundary %d: %w", i, err)
		}
		hits := p.Hits()
		if want := d.times(p.Addr); hits-before != want || p.Nmissed() != 0 {
			return fmt.Errorf("boundary %d: %d hits and %d missed, want %d", i, hits-before, p.Nmissed(), want)
		}
		count.count(then, hits)
		if err := d.Settle(); err != nil {
			return err
		}
		if p.Optimized() != optimize {
			return fmt.Errorf("boundary %d: optimized in the end: %v", i, !optimize)
		}
	}
	return nil
}

// walk brings the CPU to boundary i, or to the next one after it that is of
// interest: of those in the long copies that detour buffers are, *stride leaves
// most out. It reports whether the call goes on there.
func (d *drill) walk(i *int) (more bool, err error) {
	const near = 3
	away := 0
	for n := 0; ; n++ {
		if !d.c.Running() {
			return false, nil
		}
		if _, inside := d.img.Symbolize(d.c.PC()); inside != 0 {
			away = 0
		} else {
			away++
		}
		if n >= *i && (away <= near || away%*stride == 0) {
			*i = n
			return true, nil
		}
		if err := d.Step(other, 1); err != nil {
			return false, err
		}
	}
}

var drills = []string{"compare", "days"}

func eachDrill(t *testing.T, f func(t *testing.T, d *drill)) {
	functions := drills
	if *stride > 1 {
		functions = drills[:1]
	}
	for _, name := range arch.Names() {
		for _, function := range functions {
			t.Run(name+" "+function, func(t *testing.T) {
				t.Parallel()
				isa, err := isatest.Named(name)
				if err != nil {
					t.Fatal(err)
				}
				f(t, newDrill(t, isa, "2", function))
			})
		}
	}
}

// TestEveryState has a second CPU stand at every instruction boundary, in slots
// and detour buffers as well, in every state of every plan.
func TestEveryState(t *testing.T) {
	eachDrill(t, func(t *testing.T, d *drill) {
		var count states
		if err := d.every(t, &count); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d instructions; %v", len(d.trace), count)
		if count.hit == 0 || count.passed == 0 {
			t.Error("not every kind of state was met")
		}
	})
}

// TestEveryArming puts a probe on every instruction, and takes it away, while
// the other CPU is anywhere.
func TestEveryArming(t *testing.T) {
	eachDrill(t, func(t *testing.T, d *drill) {
		var arm, disarm states
		for _, addr := range d.sites() {
			p := hold(runtime.Probe{Addr: addr})
			original := d.text(t, addr, 16)
			if p.attach(d) != nil {
				continue
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			arm.sites++
			disarm.sites++
			for i := range d.trace {
				if err := d.arm(t, p, i, &arm); err != nil {
					t.Fatalf("%#x, armed at boundary %d: %v", addr, i, err)
				}
			}
			for i, more := 0, true; more; i++ {
				var err error
				if more, err = d.disarm(t, p, i, &disarm); err != nil {
					t.Fatalf("%#x, disarmed at boundary %d: %v", addr, i, err)
				}
				if got := d.text(t, addr, len(original)); !bytes.Equal(got, original) {
					t.Fatalf("%#x: %x is left, not %x", addr, got, original)
				}
			}
		}
		t.Logf("arm: %v", arm)
		t.Logf("disarm: %d states at %d sites", disarm.states, disarm.sites)
	})
}

// arm registers the probe when the CPU has done i instructions.
func (d *drill) arm(t *testing.T, p *held, i int, count *states) error {
	d.start(t)
	if _, err := d.step(i); err != nil {
		return err
	}
	before := p.Hits()
	if err := p.attach(d); err != nil {
		return err
	}
	want := uint64(0)
	for _, at := range d.trace[i:] {
		if at == p.Addr {
			want++
		}
	}
	err := d.finish()
	hits := p.Hits()
	if err == nil && hits-before != want {
		err = fmt.Errorf("%d hits, want %d", hits-before, want)
	}
	count.count(before, hits)
	return errors.Join(err, p.Close(), d.Settle())
}

// disarm unregisters it then.
func (d *drill) disarm(t *testing.T, p *held, i int, count *states) (more bool, err error) {
	if err := p.attach(d); err != nil {
		return false, err
	}
	d.start(t)
	if more, err = d.step(i); err != nil {
		return more, err
	}
	before := p.Hits()
	if err := errors.Join(p.Close(), d.finish()); err != nil {
		return more, err
	}
	count.states++
	if hits := p.Hits(); hits != before {
		return more, fmt.Errorf("%d hits after it was unregistered", hits-before)
	}
	return more, d.Settle()
}

// spoiled is an ISA whose plans lack something.
type spoiled struct {
	arch.Prober
	op    patch.Operation
	order []int // the steps that are left, in their new order
}

func (s spoiled) PlanPatch(op patch.Operation, site *patch.Site) (*patch.Plan, error) {
	p, err := s.Prober.PlanPatch(op, site)
	if err != nil || op != s.op {
		return p, err
	}
	steps := p.Steps
	p.Steps = nil
	for _, i := range s.order {
		p.Steps = append(p.Steps, steps[i])
	}
	return p, nil
}

// Traps returns none: those inside a jump catch CPUs that plans ought to have waited for.
func (spoiled) Traps() []byte { return nil }

// TestBrokenPlansFail shows that TestEveryState notices what is wrong in a
// plan. The steps of Optimize are 0 redirect, 1 quiesce, 2 tail, 3 sync,
// 4 head, 5 sync; those of Unoptimize 0 breakpoint, 1 sync, 2 tail, 3 sync,
// 4 redirect, 5 quiesce.
func TestBrokenPlansFail(t *testing.T) {
	isa, err := isatest.Named("amd64")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		op    patch.Operation
		order []int
	}{
		{"the tail before the breakpoint", patch.Unoptimize, []int{2, 3, 0, 1, 4, 5}},
		{"back to the slot before the tail", patch.Unoptimize, []int{0, 1, 4, 2, 3, 5}},
		{"no tail", patch.Unoptimize, []int{0, 1, 4, 5}},
		{"the head before the tail", patch.Optimize, []int{0, 1, 4, 5, 2, 3}},
		{"no CPU waited for", patch.Optimize, []int{0, 2, 3, 4, 5}},
		{"waited for before hits are redirected", patch.Optimize, []int{1, 2, 0, 3, 4, 5}},
		{"no redirection", patch.Optimize, []int{1, 2, 3, 4, 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var count states
			err := newDrill(t, spoiled{isa, c.op, c.order}, "2", "compare").every(t, &count)
			if err == nil {
				t.Errorf("not noticed in %v", count)
			}
			t.Log(err)
		})
	}
}
