//go:build unicorn

package runtime_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"xol/arch"
	"xol/classify"
	"xol/guest"
	"xol/machine"
	"xol/runtime"
)

// thread is a call that a host runs a little at a time.
type thread struct {
	number uint64
	f      machine.Function
	args   []uint64
	state  machine.State
	begun  bool
	done   bool
	result uint64
}

// scheduler is a host that has CPUs take turns with threads, at any instruction.
type scheduler struct {
	*program
	random  *rand.Rand
	most    int // instructions of a turn
	threads []*thread
	on      []*thread // by CPU
	fresh   machine.State
}

// Where threads have their stacks.
const (
	threadStacks = 0x6800_0000
	threadStack  = 64 << 10
	threadGap    = 128 << 10
)

func (p *program) scheduler(seed uint64, most int) *scheduler {
	s := &scheduler{
		program: p, random: rand.New(rand.NewPCG(seed, 0)), most: most,
		on: make([]*thread, len(p.m.CPUs)), fresh: p.m.File.NewState(),
	}
	p.m.CPUs[0].Save(s.fresh)
	return s
}

// add has a thread call a function.
func (s *scheduler) add(t testing.TB, function string, args ...uint64) *thread {
	t.Helper()
	one := &thread{number: 10 + uint64(len(s.threads)), f: s.function(t, function), args: args, state: s.m.File.NewState()}
	stack := threadStacks + uint64(len(s.threads))*threadGap
	if err := s.m.Map(stack, threadStack, machine.PermRead|machine.PermWrite); err != nil {
		t.Fatal(err)
	}
	copy(one.state, s.fresh)
	s.m.File.SetWord(one.state, s.m.File.SP, stack+threadStack)
	s.threads = append(s.threads, one)
	return one
}

// run has all threads return.
func (s *scheduler) run(t testing.TB) {
	t.Helper()
	for s.turn(t) {
		err := s.Run(t.Context(), 1+s.random.IntN(s.most))
		if err != nil && !errors.Is(err, runtime.ErrBudget) {
			t.Fatal(err)
		}
		for cpu, one := range s.on {
			if one != nil && !s.m.CPU(cpu).Running() {
				one.done, one.result = true, s.Result(cpu)
			}
		}
	}
}

// turn gives the CPUs threads to run. It reports whether there were any.
func (s *scheduler) turn(t testing.TB) (busy bool) {
	t.Helper()
	for cpu := range s.on {
		s.leave(cpu)
	}
	order := s.random.Perm(len(s.threads))
	for cpu := range s.on {
		for len(order) > 0 && s.threads[order[0]].done {
			order = order[1:]
		}
		if len(order) == 0 {
			break
		}
		s.enter(t, cpu, s.threads[order[0]])
		order, busy = order[1:], true
	}
	return busy
}

func (s *scheduler) leave(cpu int) {
	if one := s.on[cpu]; one != nil {
		s.m.CPUs[cpu].Save(one.state)
	}
	s.m.CPU(cpu).SetRunning(false)
	s.on[cpu] = nil
}

// enter has a CPU go on with a thread. Whether it is named or gets its registers first
// does not matter.
func (s *scheduler) enter(t testing.TB, cpu int, one *thread) {
	t.Helper()
	if s.random.IntN(2) == 0 {
		s.SetTask(cpu, one.number)
		s.m.CPUs[cpu].Restore(one.state)
	} else {
		s.m.CPUs[cpu].Restore(one.state)
		s.SetTask(cpu, one.number)
	}
	s.m.CPU(cpu).SetRunning(true)
	if s.on[cpu] = one; !one.begun {
		one.begun = true
		if err := s.Start(cpu, one.f, one.args...); err != nil {
			t.Fatal(err)
		}
	}
}

var taskModes = []mode{
	{name: "stepped", opt: runtime.Options{NoBoost: true, NoOptimize: true}},
	{name: "trapped", opt: runtime.Options{Stepping: runtime.StepTrap, NoBoost: true, NoOptimize: true}, suits: steps},
	{name: "boosted", opt: runtime.Options{NoOptimize: true}},
	{name: "optimized", opt: runtime.Options{Pass: 100}},
	{name: "uprobes", opt: runtime.Options{Uprobes: true}},
	{name: "uprobes, trapped", opt: runtime.Options{Uprobes: true, Stepping: runtime.StepTrap}, suits: steps},
}

// TestTasksSwitchedAnywhere has CPUs take turns with threads that run the same code, with
// a probe on every instruction and return probes on functions: each instruction is hit
// as often as it is executed, in the right task.
func TestTasksSwitchedAnywhere(t *testing.T) {
	const threads, words = 3, 12
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			t.Parallel()
			want := sortedAlone(t, isa, words)
			for i := range taskModes {
				mode := &taskModes[i]
				if mode.suits != nil && !mode.suits(isa) {
					continue
				}
				for _, cpus := range []int{1, 2} {
					t.Run(fmt.Sprintf("%s, %d CPUs", mode.name, cpus), func(t *testing.T) {
						p := open(t, isa, "2", guest.Options{CPUs: cpus, Exact: true, Turn: 20}, mode.opt)
						returns := p.returnProbe(t, runtime.ReturnProbe{Symbol: "quick_sort", MaxActive: 100})
						hits := map[uint64]map[uint64]uint64{} // by address and task
						for addr := range want {
							by := map[uint64]uint64{}
							probe := runtime.Probe{Addr: addr, PreHandler: func(c *runtime.Context) bool { by[c.Task()]++; return false }}
							if try(p, probe) == nil {
								hits[addr] = by
							}
						}
						if len(hits) < len(want)*9/10 {
							t.Fatalf("%d probes on %d instructions", len(hits), len(want))
						}
						turn := 40
						if mode.opt.Pass != 0 {
							turn = 400 // a detour buffer has many instructions
						}
						s := p.scheduler(1, turn)
						for i := range uint64(threads) {
							s.reverse(t, i, words)
							s.add(t, "sort_words", bufferAddr+i*8*words, words)
						}
						s.run(t)
						for i := range uint64(threads) {
							s.sorted(t, i, words)
							same(t, "calls that are going on", p.Depth(10+i), 0)
						}
						for addr, by := range hits {
							for i := range uint64(threads) {
								if by[10+i] != want[addr] || len(by) > threads {
									t.Fatalf("%#x: hits by task %v, executed %d times by each", addr, by, want[addr])
								}
							}
						}
						for _, probe := range p.Links() {
							same(t, "missed", probe.Nmissed(), 0)
						}
						same(t, "missed calls", returns.Nmissed(), 0)
						if got := returns.Hits(); got == 0 || got != threads*want[returns.Address()] {
							t.Errorf("%d returns", got)
						}
					})
				}
			}
		})
	}
}

// reverse and sorted are about the words of thread i.
func (p *program) reverse(t testing.TB, i, words uint64) {
	t.Helper()
	for n := range words {
		if err := p.m.WriteWord(bufferAddr+8*(i*words+n), words-n); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *program) sorted(t testing.TB, i, words uint64) {
	t.Helper()
	for n := range words {
		if v, err := p.m.ReadWord(bufferAddr + 8*(i*words+n)); err != nil || v != n+1 {
			t.Errorf("thread %d: word %d is %d", i, n, v)
		}
	}
}

// sortedAlone returns how often each instruction is executed without probes.
func sortedAlone(t *testing.T, isa string, words uint64) map[uint64]uint64 {
	p := open(t, isa, "2", guest.Options{Exact: true}, runtime.Options{})
	p.reverse(t, 0, words)
	c := p.m.CPUs[0]
	if err := c.Call(p.function(t, "sort_words"), bufferAddr, words); err != nil {
		t.Fatal(err)
	}
	times := map[uint64]uint64{}
	for c.Running() {
		times[c.PC()]++
		if _, err := c.Run(1); err != nil {
			t.Fatal(err)
		}
	}
	p.sorted(t, 0, words)
	return times
}

// TestUretprobeDepth has more calls going on in a task than Linux follows: of several
// functions together, and each once, however many return probes it has.
func TestUretprobeDepth(t *testing.T) {
	const most, depth = 64, 100
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			p := openReturns(t, isa, guest.Options{CPUs: 2, Exact: true}, runtime.Options{Uprobes: true})
			var probes []*runtime.Link
			for _, name := range []string{"odd", "even", "bottom", "even"} {
				probes = append(probes, p.returnProbe(t, runtime.ReturnProbe{Symbol: name, MaxActive: 1000}))
			}
			even := p.function(t, "even")
			// While one task is in all of its calls, another one has as many.
			if err := p.Start(1, even, depth); err != nil {
				t.Fatal(err)
			}
			p.stepTo(t, 1, 1, most)
			p.calls(t, depth/2*3+8, "even", depth)
			if err := p.Run(t.Context(), 1<<20); err != nil {
				t.Fatal(err)
			}
			same(t, "the other result", p.Result(1), depth/2*3+8)
			for i, want := range []struct{ returns, missed uint64 }{{32, 18}, {32, 19}, {0, 1}, {32, 19}} {
				same(t, "returns", probes[i].Hits(), 2*want.returns)
				same(t, "missed", probes[i].Nmissed(), 2*want.missed)
			}
			for task := range uint64(2) {
				same(t, "calls that are going on", p.Depth(task), 0)
			}
		})
	}
}

// TestReturnErrorEndsTask has one task return twice from a function: another one goes on
// when it is gone.
func TestReturnErrorEndsTask(t *testing.T) {
	const words = 12
	for _, isa := range arch.Names() {
		for _, mode := range trampolines[:3] {
			t.Run(isa+" "+mode.name, func(t *testing.T) {
				p := open(t, isa, "2", guest.Options{Exact: true}, mode.opt)
				p.returnProbe(t, runtime.ReturnProbe{Symbol: "save_context"})
				sorts := p.returnProbe(t, runtime.ReturnProbe{Symbol: "quick_sort", MaxActive: 100})
				s := p.scheduler(1, 40)
				p.reverse(t, 0, words)
				s.add(t, "sort_words", bufferAddr, words)
				twice := s.add(t, "unwind", 3, 5)
				var err error
				for s.turn(t) {
					if err = s.Run(t.Context(), 40); !errors.Is(err, runtime.ErrBudget) {
						break
					}
				}
				var returned *runtime.ReturnError
				if !errors.As(err, &returned) || returned.Signal() != runtime.SIGILL || s.on[0] != twice {
					t.Fatalf("%v, want a *runtime.ReturnError", err)
				}
				p.TaskExit(twice.number)
				twice.done = true
				s.run(t)
				p.sorted(t, 0, words)
				if sorts.Hits() == 0 || p.Depth(s.threads[0].number) != 0 {
					t.Errorf("%d returns, %d calls going on", sorts.Hits(), p.Depth(s.threads[0].number))
				}
			})
		}
	}
}

// TestReturnSignalStack calls functions between any two instructions, on a stack above
// that of the function they interrupt and on one below.
func TestReturnSignalStack(t *testing.T) {
	const size = 64 << 10
	eachReturns(t, func(t *testing.T, p *program) {
		c, file := p.m.CPUs[0], p.m.File
		probes := map[string]*runtime.Link{}
		for _, name := range []string{"descend", "bottom", "head", "tail"} {
			probes[name] = p.returnProbe(t, runtime.ReturnProbe{Symbol: name})
		}
		for i, base := range []uint64{stackTop, 0x6800_0000} { // one goes on where the CPU's ends
			if err := p.m.Map(base, size, machine.PermRead|machine.PermWrite); err != nil {
				t.Fatal(err)
			}
			before := map[string]uint64{}
			for name, rp := range probes {
				before[name] = rp.Hits() + rp.Nmissed()
			}
			if err := p.Start(0, p.function(t, "descend"), 3); err != nil {
				t.Fatal(err)
			}
			state, signals := file.NewState(), uint64(0)
			for ; c.Running(); signals++ {
				c.Save(state)
				c.SetReg(file.SP, base+size)
				if err := p.Interrupt(0, p.function(t, "calls_head"), 6); err != nil {
					t.Fatal(err)
				}
				c.Restore(state)
				if err := p.Step(0, 1); err != nil {
					t.Fatal(err)
				}
			}
			same(t, "the result", p.Result(0), descending(3))
			same(t, "calls that are going on", p.Depth(0), 0)
			for name, want := range map[string]uint64{"descend": 4, "bottom": 1, "head": signals, "tail": signals} {
				if rp := probes[name]; rp.Hits()+rp.Nmissed()-before[name] != want || rp.Hits() == 0 {
					t.Errorf("stack %d: %s: %d returns and %d missed, want %d together", i, name, rp.Hits(), rp.Nmissed(), want)
				}
			}
		}
		same(t, "missed", probes["descend"].Nmissed()+probes["bottom"].Nmissed(), 0)
	})
}

// stackTop is where the stack of a machine's first CPU ends.
const stackTop = 0x7e00_0000_0000

// TestSetTaskInHandler has a handler name the task, as a probe of the program's own switch
// does: the hit goes on, and calls return in the task that made them.
func TestSetTaskInHandler(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		rp := p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend", MaxActive: 100})
		depths := map[uint64]int{}
		probe := attach(t, p, runtime.Probe{Symbol: "bottom", PreHandler: func(c *runtime.Context) bool {
			depths[c.Task()] = p.Depth(c.Task())
			p.SetTask(c.CPU, 50)
			depths[c.Task()] = p.Depth(c.Task())
			p.SetTask(c.CPU, 0)
			return false
		}})

		for i := range uint64(3) {
			p.calls(t, descending(5), "descend", 5)
			p.settled(t)
			same(t, "hits", probe.Hits(), i+1)
			same(t, "calls of the task", depths[0], 6)
			same(t, "calls of the other", depths[50], 0)
			same(t, "returns", rp.Hits(), 6*(i+1))
		}
		same(t, "missed", probe.Nmissed()+rp.Nmissed(), 0)
	})
}

// TestReservedAddresses keeps the runtime's areas out of what the host will give the
// program.
func TestReservedAddresses(t *testing.T) {
	for _, isa := range arch.Names() {
		reserved := machine.Range{Lo: 0, Hi: 0x1040_0000}
		p := openReturns(t, isa, guest.Options{}, runtime.Options{Reserved: []machine.Range{reserved}})
		p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend"})
		attach(t, p, runtime.Probe{Symbol: "tail"})
		p.calls(t, 6, "tail", 2)
		var list strings.Builder
		if err := p.ListBlacklist(&list); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(list.String()), "\n") {
			var lo, hi uint64
			var name string
			if _, err := fmt.Sscanf(line, "0x%x-0x%x %s", &lo, &hi, &name); err != nil || lo < reserved.Hi {
				t.Errorf("%s: %s is reserved: %v", isa, line, err)
			}
		}
	}
}

// TestTasksShareMemory switches tasks inside of loops of exclusive accesses: what one has
// stored meanwhile makes the store of another one fail.
func TestTasksShareMemory(t *testing.T) {
	const threads, times = 3, 40
	for _, isa := range arch.Names() {
		insts := instsOf(t, isa, "2")
		for i := range taskModes {
			mode := &taskModes[i]
			if mode.suits != nil && !mode.suits(isa) {
				continue
			}
			for _, probing := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s probes=%t", isa, mode.name, probing), func(t *testing.T) {
					p := open(t, isa, "2", guest.Options{Exact: true}, mode.opt)
					for _, inst := range insts {
						if name, _ := p.img.Symbolize(inst.addr); probing && strings.HasPrefix(name, "add_") {
							_ = try(p, runtime.Probe{Addr: inst.addr})
						}
					}
					turn := 9
					if probing {
						turn = 400 // else hardly a loop is ever left
					}
					s := p.scheduler(2, turn)
					for range threads {
						s.add(t, "add_many", bufferAddr, times)
						s.add(t, "add_locked", bufferAddr+8, bufferAddr+16, times)
					}
					s.run(t)
					for _, at := range []uint64{bufferAddr, bufferAddr + 16} {
						if sum, err := p.m.ReadWord(at); err != nil || sum != threads*times {
							t.Errorf("the sum at %#x is %d, want %d", at, sum, threads*times)
						}
					}
				})
			}
		}
	}
}

// TestTasksWatched has tasks write to watched data and be switched in between: each write
// is reported once, in the task that made it.
func TestTasksWatched(t *testing.T) {
	const threads, words = 2, 8
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			count := func(together bool) (hits [threads]map[uint64]int) {
				p := open(t, isa, "2", guest.Options{Exact: true}, runtime.Options{})
				for i := range uint64(threads) {
					hits[i] = map[uint64]int{}
					w := runtime.WatchProbe{Addr: bufferAddr + i*8*words, Len: 8, Kind: machine.WatchWrite}
					w.Handler = func(c *runtime.WatchContext) { hits[i][c.New]++ }
					p.reverse(t, i, words)
					if err := try(p, w); errors.Is(err, classify.ENOSPC) {
						continue // one watchpoint is all that the ISA has
					} else if err != nil {
						t.Fatal(err)
					}
				}
				s := p.scheduler(3, 3)
				for i := range uint64(threads) {
					s.add(t, "sort_words", bufferAddr+i*8*words, words)
					if !together {
						s.run(t)
					}
				}
				s.run(t)
				return hits
			}
			alone, together := count(false), count(true)
			if len(alone[0]) == 0 || !reflect.DeepEqual(alone, together) {
				t.Errorf("writes are reported %v times, without switches %v", together, alone)
			}
		})
	}
}
