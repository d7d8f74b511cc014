//go:build unicorn

package runtime_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"xol/arch"
	"xol/classify"
	"xol/guest"
	"xol/image"
	"xol/machine"
	"xol/runtime"
)

// openReturns returns a runtime with the program in testdata/guest/returns.
func openReturns(t testing.TB, isa string, mopt guest.Options, opt runtime.Options) *program {
	t.Helper()
	return openFile(t, isa, returnsPath(isa), mopt, opt)
}

func returnsPath(isa string) string { return "../testdata/guest/returns/" + isa }

// eachReturns calls f with that program on every ISA, with every trampoline.
func eachReturns(t *testing.T, f func(t *testing.T, p *program)) {
	for _, isa := range arch.Names() {
		for _, mode := range trampolines {
			if isa == "arm64" && mode.opt.Stepping == runtime.StepTrap {
				continue
			}
			t.Run(isa+" "+mode.name, func(t *testing.T) { f(t, openReturns(t, isa, guest.Options{}, mode.opt)) })
		}
	}
}

// function returns a function of the program.
func (p *program) function(t testing.TB, name string) machine.Function {
	t.Helper()
	f, err := p.p.Function(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// calls checks what a function returns.
func (p *program) calls(t testing.TB, want uint64, name string, args ...uint64) {
	t.Helper()
	got, err := p.Call(t.Context(), 0, p.function(t, name), args...)
	if err != nil {
		t.Fatalf("%s%v: %v", name, args, err)
	}
	if got != want {
		t.Errorf("%s%v is %#x, want %#x", name, args, got, want)
	}
}

// returnProbe registers a return probe.
func (p *program) returnProbe(t testing.TB, spec runtime.ReturnProbe) *runtime.Link {
	t.Helper()
	return attach(t, p, spec)
}

// same checks what ought to be equal.
func same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// settle has the optimizer do what there is to do.
func (p *program) settled(t testing.TB) {
	t.Helper()
	if err := p.Settle(); err != nil {
		t.Fatal(err)
	}
}

func TestReturnHandlers(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		var caller, trampoline uint64
		var rp *runtime.Link
		spec := runtime.ReturnProbe{Symbol: "tail", DataSize: 16}
		spec.EntryHandler = func(c *runtime.ReturnContext) bool {
			x, _ := c.Regs.Arg(0)
			same(t, "what is kept at the entry", [16]byte(c.Data), [16]byte{})
			c.Data[3] = byte(x)
			caller = c.To
			same(t, "the return address at the entry", c.Regs.ReturnAddress(), caller)
			return x == 4
		}
		spec.Handler = func(c *runtime.ReturnContext) {
			same(t, "where it returns to", c.To, caller)
			same(t, "the instruction pointer", c.Regs.IP(), caller)
			same(t, "the return address", c.Regs.ReturnAddress(), caller)
			same(t, "the return probe", c.Link, rp)
			same(t, "what is kept", uint64(c.Data[3])*3, c.Regs.ReturnValue())
			c.Regs.SetReturnValue(c.Regs.ReturnValue() + 100)
		}
		rp = p.returnProbe(t, spec)
		// What the probe after sees is what the function will return to.
		try(p, runtime.Probe{Addr: rp.Address(), PreHandler: func(c *runtime.Context) bool {
			same(t, "the return address for a probe after", c.Regs.ReturnAddress(), caller)
			if link := p.m.ISA.Convention().Link; link >= 0 {
				trampoline = c.Regs.Reg(link)
			} else {
				trampoline, _ = p.m.ReadWord(c.Regs.SP())
			}
			return false
		}})
		for range 3 {
			p.calls(t, 2*3+100, "tail", 2)
			if trampoline == caller {
				t.Errorf("no trampoline: %#x", caller)
			}
			p.calls(t, 4*3, "tail", 4)
			same(t, "the return address of a call that is left alone", trampoline, caller)
			p.calls(t, (6+1)*3+100+5, "calls_head", 6)
			p.settled(t)
		}
		same(t, "returns", rp.Hits(), 6)
		same(t, "missed", rp.Nmissed(), 0)
		same(t, "calls that are going on", p.Depth(0), 0)
	})
}

// descending is what descend(n) returns.
func descending(n uint64) uint64 { return n + 7 }

// TestMaxActiveRecursion has more calls going on than there may be.
func TestMaxActiveRecursion(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		const depth = 50
		for _, test := range []struct{ most, want uint64 }{{0, 10}, {1, 1}, {7, 7}, {depth, depth}, {depth + 1, depth + 1}, {1000, depth + 1}} {
			returned := uint64(0)
			rp := p.returnProbe(t, runtime.ReturnProbe{
				Symbol: "descend", MaxActive: int(test.most),
				Handler: func(*runtime.ReturnContext) { returned++ },
			})
			for i := range uint64(3) {
				p.calls(t, descending(depth), "descend", depth)
				same(t, "returns", returned, (i+1)*test.want)
				same(t, "Returns", rp.Hits(), (i+1)*test.want)
				same(t, "missed", rp.Nmissed(), (i+1)*(depth+1-test.want))
				p.settled(t)
			}
			if err := rp.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// deepStack gives the first CPU a stack of some bytes.
func (p *program) deepStack(t *testing.T, size uint64) {
	t.Helper()
	const base = 0x7000_0000
	if err := p.m.Map(base, size, machine.PermRead|machine.PermWrite); err != nil {
		t.Fatal(err)
	}
	p.m.CPUs[0].SetReg(p.m.File.SP, base+size)
}

// TestManyActive has 10,000 calls going on at a time, of one function and of two
// that call each other.
func TestManyActive(t *testing.T) {
	const depth = 10_000
	eachReturns(t, func(t *testing.T, p *program) {
		p.deepStack(t, 4<<20)
		var probes []*runtime.Link
		for _, name := range []string{"descend", "odd", "even"} {
			probes = append(probes, p.returnProbe(t, runtime.ReturnProbe{Symbol: name, MaxActive: depth, DataSize: 8}))
		}
		deepest := 0
		attach(t, p, runtime.Probe{Symbol: "bottom", PreHandler: func(*runtime.Context) bool {
			deepest = p.Depth(0)
			return false
		}})
		for range 2 {
			p.calls(t, descending(depth), "descend", depth)
			same(t, "calls going on in one function", deepest, depth)
			p.calls(t, depth/2*3+8, "even", depth)
			same(t, "calls going on in two functions", deepest, depth+1)
			p.settled(t)
		}
		for i, want := range []struct{ returns, missed uint64 }{{2 * depth, 2}, {depth, 0}, {depth + 2, 0}} {
			same(t, "returns", probes[i].Hits(), want.returns)
			same(t, "missed", probes[i].Nmissed(), want.missed)
		}
		same(t, "calls that are going on", p.Depth(0), 0)
	})
}

// TestMaxActiveCPUs has four CPUs in one function, and counts in another way how
// many calls find no instance left.
func TestMaxActiveCPUs(t *testing.T) {
	const most, rounds, depth = 5, 30, 3
	for _, isa := range arch.Names() {
		for _, mode := range trampolines[:3] {
			for seed := range uint64(3) {
				t.Run(fmt.Sprintf("%s %s seed %d", isa, mode.name, seed), func(t *testing.T) {
					p := openReturns(t, isa, guest.Options{CPUs: 4, Turn: 11, Seed: seed}, mode.opt)
					var active, calls, returns, missed uint64
					attach(t, p, runtime.Probe{Addr: p.entryOf(t, "descend"), PreHandler: func(*runtime.Context) bool {
						calls++
						if active == most {
							missed++
						}
						return false
					}})

					rp := p.returnProbe(t, runtime.ReturnProbe{
						Symbol: "descend", MaxActive: most,
						EntryHandler: func(*runtime.ReturnContext) bool { active++; return false },
						Handler:      func(*runtime.ReturnContext) { active--; returns++ },
					})
					f := p.function(t, "descend")
					started := make([]int, len(p.m.CPUs))
					for busy := true; busy; {
						busy = false
						for cpu := range started {
							if p.m.CPU(cpu).Running() {
								busy = true
								continue
							}
							if started[cpu] > 0 {
								same(t, "the result", p.Result(cpu), descending(depth))
							}
							if started[cpu] == rounds {
								continue
							}
							started[cpu]++
							busy = true
							if err := p.Start(cpu, f, depth); err != nil {
								t.Fatal(err)
							}
						}
						if err := p.Run(t.Context(), 200); err != nil && !errors.Is(err, runtime.ErrBudget) {
							t.Fatal(err)
						}
					}
					same(t, "calls", calls, 4*rounds*(depth+1))
					same(t, "Nmissed", rp.Nmissed(), missed)
					same(t, "Returns", rp.Hits(), calls-missed)
					same(t, "handled returns", returns, calls-missed)
					if missed == 0 || returns == 0 {
						t.Errorf("%d missed, %d returns", missed, returns)
					}
				})
			}
		}
	}
}

// entryOf returns where the probe of a function's entry is put.
func (p *program) entryOf(t *testing.T, function string) uint64 {
	t.Helper()
	rp := p.returnProbe(t, runtime.ReturnProbe{Symbol: function})
	addr := rp.Address()
	if err := rp.Close(); err != nil {
		t.Fatal(err)
	}
	return addr
}

// TestSeveralReturnProbes takes the middle one of three return probes of a
// function away while the function runs.
func TestSeveralReturnProbes(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		var order string
		var probes []*again[runtime.ReturnProbe]
		for _, name := range []string{"a", "b", "c"} {
			probe := &again[runtime.ReturnProbe]{spec: runtime.ReturnProbe{
				Symbol: "descend",
				EntryHandler: func(c *runtime.ReturnContext) bool {
					n, _ := c.Regs.Arg(0)
					return name == "c" && n == 1
				},
				Handler: func(c *runtime.ReturnContext) {
					same(t, "the return address", c.To, c.Regs.ReturnAddress())
					order += name
				},
			}}
			same(t, "attaching", probe.attach(p), nil)
			probes = append(probes, probe)
		}
		unregister := false
		attach(t, p, runtime.Probe{Symbol: "bottom", PreHandler: func(*runtime.Context) bool {
			if unregister {
				same(t, "the error", probes[1].Close(), nil)
			}
			return false
		}})
		check := func(want string) {
			t.Helper()
			order = ""
			p.calls(t, descending(2), "descend", 2)
			same(t, "the handlers", order, want)
			same(t, "calls that are going on", p.Depth(0), 0)
		}
		check("cbabacba")
		p.settled(t)
		check("cbabacba")
		unregister = true
		check("caaca")
		same(t, "returns", probes[1].Hits(), 6)
		unregister = false
		check("caaca")
		same(t, "attaching again", probes[1].attach(p), nil)
		check("bcababca")
	})
}

// TestReturnProbeAtAnyTime registers, unregisters, disables and enables a return
// probe before every instruction that a run executes.
func TestReturnProbeAtAnyTime(t *testing.T) {
	const depth = 1
	type probe = again[runtime.ReturnProbe]
	attach := func(p *program, rp *probe) error { return rp.attach(p) }
	detach := func(_ *program, rp *probe) error { return rp.Close() }
	changes := []struct {
		name           string
		before, during func(p *program, rp *probe) error
		after          func(p *program, rp *probe) error
		handlesActive  bool
	}{
		{"close", attach, detach, nil, false},
		{"attach", nil, attach, detach, false},
		{"disable", attach, func(_ *program, rp *probe) error { return rp.Disable() }, detach, true},
		{"attach again", attach, func(p *program, rp *probe) error { return errors.Join(rp.Close(), rp.attach(p)) }, detach, false},
		{"switch off and on", attach, func(p *program, _ *probe) error { return errors.Join(p.SetArmed(false), p.SetArmed(true)) }, detach, true},
	}
	for _, isa := range arch.Names() {
		for _, mode := range trampolines {
			if isa == "arm64" && mode.opt.Stepping == runtime.StepTrap {
				continue
			}
			for _, change := range changes {
				t.Run(isa+" "+mode.name+" "+change.name, func(t *testing.T) {
					p := openReturns(t, isa, guest.Options{Exact: true}, mode.opt)
					f := p.function(t, "descend")
					var calls, returns int
					rp := &probe{spec: runtime.ReturnProbe{
						Symbol:       "descend",
						EntryHandler: func(*runtime.ReturnContext) bool { calls++; return false },
						Handler:      func(*runtime.ReturnContext) { returns++ },
					}}
					do := func(f func(p *program, rp *probe) error) {
						t.Helper()
						if f == nil {
							return
						}
						if err := errors.Join(f(p, rp), p.Settle()); err != nil {
							t.Fatal(err)
						}
					}
					stride := 1
					if !mode.opt.NoOptimize && *seeds == 1 {
						stride = 3 // a detour buffer has many instructions
					}
					boundary := 0
					for running := true; running; boundary += stride {
						do(change.before)
						calls, returns = 0, 0
						if err := p.Start(0, f, depth); err != nil {
							t.Fatal(err)
						}
						for i := 0; i < boundary && p.m.CPU(0).Running(); i++ {
							if err := p.Step(0, 1); err != nil {
								t.Fatal(err)
							}
						}
						running = p.m.CPU(0).Running()
						do(change.during)
						if err := p.Run(t.Context(), 1<<16); err != nil {
							t.Fatalf("after %d instructions: %v", boundary, err)
						}
						same(t, "the result", p.Result(0), descending(depth))
						if p.Depth(0) != 0 || returns > calls || change.handlesActive && returns != calls {
							t.Fatalf("after %d instructions: %d calls, %d returns, %d going on", boundary, calls, returns, p.Depth(0))
						}
						do(change.after)
					}
					if boundary < 20 {
						t.Errorf("%d instructions", boundary)
					}
				})
			}
		}
	}
}

// TestUnregisterReturnInHandler has the handlers of a return probe take it away.
func TestUnregisterReturnInHandler(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		for _, where := range []string{"entry", "return"} {
			for _, anew := range []bool{false, true} {
				rp := &again[runtime.ReturnProbe]{}
				returns, calls := 0, 0
				remove := func(at string) {
					if at != where || calls != 2 {
						return
					}
					same(t, "unregistering", rp.Close(), nil)
					if anew {
						same(t, "attaching", rp.attach(p), nil)
					}
				}
				rp.spec = runtime.ReturnProbe{
					Symbol: "descend", MaxActive: 1,
					EntryHandler: func(*runtime.ReturnContext) bool { calls++; remove("entry"); return false },
					Handler:      func(*runtime.ReturnContext) { returns++; remove("return") },
				}
				same(t, "attaching", rp.attach(p), nil)
				for range 3 {
					p.calls(t, descending(0), "descend", 0)
					p.settled(t)
				}
				want := map[string]map[bool][2]int{
					"entry":  {false: {2, 1}, true: {3, 2}},
					"return": {false: {2, 2}, true: {3, 3}},
				}[where][anew]
				same(t, "calls and returns, removed at the "+where, [2]int{calls, returns}, want)
				if anew {
					p.calls(t, descending(3), "descend", 3)
					same(t, "instances", calls-want[0], 1)
					same(t, "the error", rp.Close(), nil)
				}
				same(t, "attached", rp.Address(), 0)
			}
		}
	})
}

// TestReturnTasks has tasks that end during calls, and one that goes on on another
// CPU.
func TestReturnTasks(t *testing.T) {
	for _, isa := range arch.Names() {
		for _, mode := range trampolines[:3] {
			t.Run(isa+" "+mode.name, func(t *testing.T) {
				p := openReturns(t, isa, guest.Options{CPUs: 2, Exact: true}, mode.opt)
				c, file := p.m.CPUs[0], p.m.File
				fresh := file.NewState()
				c.Save(fresh)
				rp := p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend", MaxActive: 4, DataSize: 8})
				f := p.function(t, "descend")
				inCall := func(cpu int, task uint64) {
					t.Helper()
					p.SetTask(cpu, task)
					if err := p.Start(cpu, f, 3); err != nil {
						t.Fatal(err)
					}
					p.stepTo(t, cpu, task, 4)
				}
				for task := uint64(100); task < 103; task++ {
					inCall(0, task)
					p.TaskExit(task)
					same(t, "calls of a task that has ended", p.Depth(task), 0)
					c.Restore(fresh)
					c.SetRunning(false)
				}
				inCall(0, 200)
				// Another task takes its CPU, and runs at the same addresses.
				saved := file.NewState()
				c.Save(saved)
				stack := saveStack(t, p)
				p.SetTask(0, 201)
				c.Restore(fresh)
				p.calls(t, descending(2), "descend", 2)
				same(t, "missed while another task has all", rp.Nmissed(), 3)
				same(t, "its calls", p.Depth(200), 4)
				// The first one goes on on the other CPU.
				if err := p.m.Write(file.Word(fresh, file.SP)-uint64(len(stack)), stack); err != nil {
					t.Fatal(err)
				}
				other := p.m.CPUs[1]
				other.Restore(saved)
				other.SetRunning(true)
				p.SetTask(1, 200)
				if err := p.Run(t.Context(), 1<<16); err != nil {
					t.Fatal(err)
				}
				same(t, "the result", other.Result(), descending(3))
				same(t, "returns", rp.Hits(), 4)
				same(t, "calls that are going on", p.Depth(200), 0)
			})
		}
	}
}

// stepTo runs a CPU until a number of calls are going on in its task.
func (p *program) stepTo(t *testing.T, cpu int, task uint64, depth int) {
	t.Helper()
	for range 1 << 12 {
		if p.Depth(task) == depth {
			return
		}
		if err := p.Step(cpu, 1); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("%d calls are going on, want %d", p.Depth(task), depth)
}

// saveStack returns the end of the first CPU's stack.
func saveStack(t *testing.T, p *program) []byte {
	t.Helper()
	top := uint64(0x7e00_0000_0000)
	stack := make([]byte, 64<<10)
	if err := p.m.Read(stack, top-uint64(len(stack))); err != nil {
		t.Fatal(err)
	}
	return stack
}

// TestReturnLongjmp has functions left by it again and again, at the same stack
// pointer.
func TestReturnLongjmp(t *testing.T) {
	const rounds, depth = 100, 3
	eachReturns(t, func(t *testing.T, p *program) {
		leap := p.returnProbe(t, runtime.ReturnProbe{Symbol: "leap", MaxActive: depth + 1})
		tail := p.returnProbe(t, runtime.ReturnProbe{Symbol: "tail", MaxActive: 1})
		both := p.returnProbe(t, runtime.ReturnProbe{Symbol: "leap", MaxActive: depth + 1})
		outer := p.returnProbe(t, runtime.ReturnProbe{Symbol: "leaps"})
		for i := range uint64(2) {
			p.calls(t, rounds*(rounds-1)/2*3, "leaps", rounds, depth)
			same(t, "returns of what never does", leap.Hits()+both.Hits(), 0)
			same(t, "missed", leap.Nmissed()+tail.Nmissed()+both.Nmissed(), 0)
			same(t, "returns", tail.Hits(), (i+1)*rounds)
			same(t, "returns of the outer function", outer.Hits(), i+1)
			same(t, "calls that are going on", p.Depth(0), 0)
			p.settled(t)
		}
	})
}

// TestReturnTailCall has a function end in a jump to another one.
func TestReturnTailCall(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		var order []string
		for _, name := range []string{"head", "tail"} {
			p.returnProbe(t, runtime.ReturnProbe{Symbol: name, MaxActive: 1, Handler: func(c *runtime.ReturnContext) {
				order = append(order, fmt.Sprint(name, c.Regs.ReturnValue()))
				same(t, "the return address", c.To, c.Regs.ReturnAddress())
			}})
		}
		for range 3 {
			order = nil
			p.calls(t, 3*3+5, "calls_head", 2)
			same(t, "the handlers", fmt.Sprint(order), "[tail9 head9]")
			p.settled(t)
		}
	})
}

// walkStack returns the return addresses of the functions that a CPU is in, at
// the entry of one, and how many of them are not in the image.
func (p *program) walkStack(t *testing.T, c *runtime.Context, report func(at, addr uint64) uint64) (addrs []uint64) {
	t.Helper()
	word := func(addr uint64) uint64 {
		v, err := p.m.ReadWord(addr)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	reg := func(name string) uint64 { v, _ := c.Regs.Get(name); return v }
	next := func(at, addr uint64) bool {
		addr = report(at, addr)
		addrs = append(addrs, addr)
		return addr != guest.ExitAddress && len(addrs) < 100
	}
	switch p.m.ISA.Name() {
	case "amd64":
		more := next(c.Regs.SP(), word(c.Regs.SP()))
		for frame := reg("rbp"); more; frame = word(frame) {
			more = next(frame+8, word(frame+8))
		}
	case "arm64":
		more := next(c.Regs.SP(), reg("x30"))
		for frame := reg("x29"); more; frame = word(frame) {
			more = next(frame+8, word(frame+8))
		}
	default:
		more := next(c.Regs.SP(), reg("lr"))
		for frame := word(c.Regs.SP()); more; frame = word(frame) {
			more = next(frame, word(frame+16))
		}
	}
	return addrs
}

// TestReturnStackWalk has walks of the stack report the addresses that they
// report where there are no return probes.
func TestReturnStackWalk(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		var walked []uint64
		raw := 0
		attach(t, p, runtime.Probe{Symbol: "bottom", PreHandler: func(c *runtime.Context) bool {
			raw = 0
			walked = p.walkStack(t, c, func(at, addr uint64) uint64 {
				real := p.RealReturnAddress(0, at, addr)
				if real != addr {
					raw++
				}
				return real
			})
			return false
		}})

		for _, probed := range [][]string{{"descend"}, {"descend", "bottom", "descend", "bottom"}} {
			for i := range 3 {
				p.calls(t, descending(6), "descend", 6)
				want := walked
				var probes []*runtime.Link
				for _, name := range probed {
					probes = append(probes, p.returnProbe(t, runtime.ReturnProbe{Symbol: name, MaxActive: 5 + i}))
				}
				p.settled(t)
				p.calls(t, descending(6), "descend", 6)
				if len(want) != 8 || !slices.Equal(walked, want) {
					t.Errorf("with probes of %v the stack is %#x, was %#x", probed, walked, want)
				}
				if raw == 0 {
					t.Errorf("with probes of %v no trampoline is on the stack", probed)
				}
				for _, rp := range probes {
					same(t, "the error", rp.Close(), nil)
				}
			}
		}
	})
}

// TestReturnTwice has a return probe on a function that returns twice.
func TestReturnTwice(t *testing.T) {
	for _, isa := range arch.Names() {
		for _, mode := range trampolines[:3] {
			t.Run(isa+" "+mode.name, func(t *testing.T) {
				p := open(t, isa, "2", guest.Options{}, mode.opt)
				functions, err := p.img.Functions(image.ExtentSymbol)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range functions {
					if strings.HasSuffix(f.Name, "save_context") || f.Name == "unwind" {
						p.returnProbe(t, runtime.ReturnProbe{Addr: f.Addr})
					}
				}
				_, err = p.Call(t.Context(), 0, p.function(t, "unwind"), 3, 5)
				var twice *runtime.ReturnError
				if !errors.As(err, &twice) || twice.CPU != 0 {
					t.Errorf("%v, want a *runtime.ReturnError", err)
				}
			})
		}
	}
}

func TestReturnProbeRefused(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		f := p.function(t, "descend")
		refused := func(what string, err error, rule string, errno classify.Errno) {
			t.Helper()
			var refusal *runtime.RegisterError
			if !errors.As(err, &refusal) || refusal.Rule.ID != rule || !errors.Is(err, errno) {
				t.Errorf("%s: %v, want %v (%s)", what, err, errno, rule)
			}
		}
		rp := p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend"})
		entry := rp.Address()
		refused("after the entry", try(p, runtime.ReturnProbe{Addr: entry + 8}), "runtime/not-entry", classify.EINVAL)
		refused("with an offset", try(p, runtime.ReturnProbe{Symbol: "descend", Offset: 24}), "runtime/not-entry", classify.EINVAL)
		refused("no function", try(p, runtime.ReturnProbe{Symbol: "nothing"}), "runtime/symbol", classify.ENOENT)
		refused("the stack", try(p, runtime.ReturnProbe{Addr: bufferAddr}), "runtime/not-text", classify.EINVAL)
		refused("the mirror's function", try(p, runtime.Jprobe{Addr: entry + 8, Mirror: f}), "runtime/not-entry", classify.EINVAL)
		same(t, "probes", p.Stats().Probes, 1)
		same(t, "unregistering", rp.Close(), nil)
		same(t, "probes", p.Stats().Probes+p.Stats().Sites, 0)
		refused("unregistering again", rp.Close(), "runtime/not-registered", classify.EINVAL)
		refused("disabling", rp.Disable(), "runtime/not-registered", classify.EINVAL)
		// The entry may be named in several ways.
		for _, addr := range []uint64{f.Entry, entry} {
			rp := p.returnProbe(t, runtime.ReturnProbe{Addr: addr})
			same(t, "the entry", rp.Address(), entry)
			p.calls(t, descending(3), "descend", 3)
			same(t, "returns", rp.Hits(), 4)
			same(t, "the error", rp.Close(), nil)
		}
	})
}

func TestReturnProbeDisabled(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		rp := p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend", Disabled: true})
		check := func(what string, want uint64) {
			t.Helper()
			p.calls(t, descending(1), "descend", 1)
			same(t, "returns, "+what, rp.Hits(), want)
			p.settled(t)
		}
		check("disabled", 0)
		same(t, "the error", rp.Enable(), nil)
		check("enabled", 2)
		check("enabled", 4)
		same(t, "the error", rp.Disable(), nil)
		check("disabled again", 4)
	})
}

// TestReturnUnload has the image go away while functions of it run.
func TestReturnUnload(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		rp := p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend"})
		p.calls(t, descending(3), "descend", 3)
		p.settled(t)
		var list strings.Builder
		same(t, "the error", p.List(&list), nil)
		if want := fmt.Sprintf("%016x  r  descend", rp.Address()); !strings.HasPrefix(list.String(), want) {
			t.Errorf("the list is %q, want %q", list.String(), want)
		}
		if err := p.Start(0, p.function(t, "descend"), 2000); err != nil {
			t.Fatal(err)
		}
		p.stepTo(t, 0, 0, 10)
		same(t, "the error", rp.Disable(), nil)
		p.settled(t)
		same(t, "the error", p.Unload(p.image), nil)
		if err := p.Run(t.Context(), 1<<24); err != nil {
			t.Fatal(err)
		}
		same(t, "the result", p.Result(0), descending(2000))
		same(t, "calls that are going on", p.Depth(0), 0)
		same(t, "gone", rp.Gone(), true)
		same(t, "the error", rp.Close(), nil)
	})
}

// TestReturnProbeEntries looks at where the entry's probe is put: after what only
// makes the entry a target of indirect branches, and before what signs the
// return address; on ppc64 at the local entry point.
func TestReturnProbeEntries(t *testing.T) {
	for _, test := range []struct {
		isa, function string
		offset        uint64
	}{
		{"amd64", "descend", 4}, // after endbr64
		{"arm64", "descend", 0}, // at paciasp
		{"arm64", "tail", 4},    // after bti
		{"ppc64", "descend", 0},
		{"ppc64le", "descend", 8},
		{"ppc64le", "leap", 8},
	} {
		p := openReturns(t, test.isa, guest.Options{}, runtime.Options{})
		if got, want := p.entryOf(t, test.function), p.function(t, test.function).Entry+test.offset; got != want {
			t.Errorf("%s: %s: %#x, want %#x", test.isa, test.function, got, want)
		}
	}
}
