//go:build unicorn

package runtime_test

import (
	"errors"
	"testing"

	"xol/classify"
	"xol/guest"
	"xol/machine"
	"xol/runtime"
)

// TestAfterClose uses a runtime and a machine that has been closed: all that can fail
// says so, and what was counted is still there.
func TestAfterClose(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		counter := attach(t, p, runtime.Probe{Addr: p.entryOf(t, "tail"), Counter: true})
		handled := attach(t, p, runtime.Probe{Addr: p.entryOf(t, "tail"), PreHandler: readArg})
		mirror := attach(t, p, runtime.Jprobe{Symbol: "head", Mirror: p.function(t, "bottom")})
		watch := attach(t, p, runtime.WatchProbe{Addr: bufferAddr, Len: 8, Kind: machine.WatchWrite})
		returns := p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend"})
		for range 3 {
			p.calls(t, 6, "tail", 2)
			p.calls(t, descending(1), "descend", 1)
			p.settled(t)
		}
		f := p.function(t, "tail")
		if err := errors.Join(p.m.Close(), p.m.Close()); err != nil {
			t.Fatal(err)
		}
		same(t, "hits", counter.Hits(), 3)
		same(t, "hits", handled.Hits(), 3)
		same(t, "returns", returns.Hits(), 6)
		same(t, "probes that are gone", counter.Gone() && handled.Gone() && !watch.Watching(), true)
		same(t, "running", p.m.CPU(0).Running(), false)
		same(t, "permissions", p.m.Perm(bufferAddr), 0)
		same(t, "CPUs", p.m.NumCPU(), 1)
		p.m.CPU(0).SetRunning(true)

		c := p.m.CPUs[0]
		state := p.m.File.NewState()
		c.Save(state)
		c.Restore(state)
		c.SaveCore(state)
		c.RestoreCore(state)
		errText := p.m.ReadText(make([]byte, 1), f.Entry)
		_, errCall := p.Call(t.Context(), 0, f, 1)
		_, errLoad := p.Load("again", p.img)
		_, errWord := p.m.ReadWord(bufferAddr)
		_, errRun := c.Run(10)
		_, errCallAndRun := c.CallAndRun(10, f)
		_, errCopy := p.m.Copy()
		_, errNew := runtime.New(p.m, p.m.ISA, runtime.Options{})
		_, _, errTurns := p.m.Run(10)
		_, errAll := p.AttachAll(runtime.Probe{Symbol: "tail"})
		for what, err := range map[string]error{
			"Call": errCall, "Run": p.Run(t.Context(), 10), "Start": p.Start(0, f), "Step": p.Step(0, 1),
			"Interrupt": p.Interrupt(0, f), "GiveUp": p.GiveUp(0), "Settle": p.Settle(),
			"SetArmed": p.SetArmed(false), "Load": errLoad, "Unload": p.Unload(p.image), "New": errNew,
			"Attach": try(p, runtime.Probe{Symbol: "tail"}), "AttachAll": errAll,
			"Enable": counter.Enable(), "Disable": counter.Disable(),
			"Close": counter.Close(), "Close again": counter.Close(), "CloseAll": runtime.CloseAll(handled),
			"RegisterReturn": try(p, runtime.ReturnProbe{Symbol: "tail"}), "DisableReturn": returns.Disable(),
			"UnregisterReturn": returns.Close(), "UnregisterReturn again": returns.Close(),
			"RegisterJprobe": try(p, runtime.Jprobe{Symbol: "tail"}), "UnregisterJprobe": mirror.Close(),
			"RegisterWatch": try(p, runtime.WatchProbe{}), "UnregisterWatch": watch.Close(),
			"EnableWatch": watch.Enable(), "DisableWatch": watch.Disable(),
			"Read": p.m.Read(make([]byte, 1), bufferAddr), "Write": p.m.Write(bufferAddr, []byte{1}), "ReadWord": errWord,
			"Patch": p.m.Patch(f.Entry, []byte{1}), "Guard": p.m.Guard(machine.Range{Lo: bufferAddr, Hi: bufferAddr + 1}, true), "ReadText": errText,
			"WriteWord": p.m.WriteWord(bufferAddr, 1), "Map": p.m.Map(0x1000, 1, machine.PermRead), "Unmap": p.m.Unmap(bufferAddr, 1),
			"Protect": p.m.Protect(bufferAddr, 1, machine.PermRead), "OnCall": p.m.OnCall(machine.Range{}, nil),
			"OnClose": p.m.OnClose(nil), "Watch": p.m.Watch(0, nil), "Copy": errCopy, "the machine's Run": errTurns,
			"the CPU's Run": errRun, "the CPU's Call": c.Call(f), "CallAndRun": errCallAndRun, "SingleStep": c.SingleStep(true),
			"the CPU's GiveUp": c.GiveUp(), "HookCode": c.HookCode([]uint64{f.Entry}, 0, nil),
		} {
			if !errors.Is(err, machine.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		refusedBy(t, "Attach", try(p, runtime.Probe{Symbol: "tail"}), "runtime/closed", classify.ENODEV)
		same(t, "what was unregistered", counter.Address()+handled.Address(), 0)
		p.SetOptimization(false)
		p.Stats()
		p.Links()
	})
}

// TestOtherRuntimeAfterClose attaches what was attached to a closed runtime to another one.
func TestOtherRuntimeAfterClose(t *testing.T) {
	first := openReturns(t, "arm64", guest.Options{}, runtime.Options{})
	second := openReturns(t, "arm64", guest.Options{}, runtime.Options{})
	spec := runtime.Probe{Symbol: "tail"}
	p := attach(t, first, spec)
	if err := first.m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); !errors.Is(err, machine.ErrClosed) {
		t.Fatal(err)
	}
	p = attach(t, second, spec)
	second.calls(t, 6, "tail", 2)
	same(t, "hits", p.Hits(), 1)
}

// TestClosingInHandlers closes the machine in each kind of handler, also inside a call of
// the guest: the run ends with that.
func TestClosingInHandlers(t *testing.T) {
	type closer func(c *runtime.Context)
	closes := false
	kinds := map[string]func(p *program, f closer) error{
		"before": func(p *program, f closer) error {
			return try(p, runtime.Probe{Addr: p.entryOf(t, "bottom"), PreHandler: func(c *runtime.Context) bool { f(c); return false }})
		},
		"redirecting": func(p *program, f closer) error {
			return try(p, runtime.Probe{Symbol: "bottom", Redirects: true, PreHandler: func(c *runtime.Context) bool { f(c); c.Regs.SetIP(1); return closes }})
		},
		"after": func(p *program, f closer) error {
			return try(p, runtime.Probe{Symbol: "bottom", PostHandler: func(c *runtime.Context) { f(c) }})
		},
		"return": func(p *program, f closer) error {
			return try(p, runtime.ReturnProbe{Symbol: "bottom", Handler: func(c *runtime.ReturnContext) { f(c.Context) }})
		},
		"entry": func(p *program, f closer) error {
			return try(p, runtime.ReturnProbe{Symbol: "bottom", EntryHandler: func(c *runtime.ReturnContext) bool { f(c.Context); return false }})
		},
		"fault, in a call": func(p *program, f closer) error {
			return try(p, runtime.Probe{Symbol: "bottom", PreHandler: func(c *runtime.Context) bool {
				c.Call(machine.Function{Entry: 0x10})
				return false
			}, FaultHandler: func(c *runtime.Context, _ *runtime.Fault) bool { f(c); return false }})
		},
	}
	for name, register := range kinds {
		t.Run(name, func(t *testing.T) {
			eachReturns(t, func(t *testing.T, p *program) {
				f, closed := p.function(t, "descend"), false
				closes = false
				end := func(c *runtime.Context) {
					if !closes {
						return
					}
					closed = true
					same(t, "closing", errors.Join(p.m.Close(), p.m.Close()), nil)
					if _, err := c.Call(f, 1); !errors.Is(err, machine.ErrClosed) {
						t.Errorf("a call after closing: %v", err)
					}
					if err := c.Read(make([]byte, 1), bufferAddr); err == nil {
						t.Error("memory is read after closing")
					}
					c.Regs.SetReg(0, c.Regs.Reg(0))
				}
				if err := register(p, end); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					p.calls(t, descending(2), "descend", 2)
					p.settled(t)
				}
				closes = true
				if _, err := p.Call(t.Context(), 0, f, 2); !errors.Is(err, machine.ErrClosed) {
					t.Errorf("Call returned %v", err)
				}
				same(t, "closed", closed, true)
				if err := p.Run(t.Context(), 10); !errors.Is(err, machine.ErrClosed) {
					t.Errorf("Run returned %v", err)
				}
			})
		})
	}
}

// TestClosingWhileTracing closes the machine where it shows a transfer.
func TestClosingWhileTracing(t *testing.T) {
	var p *program
	p = openReturns(t, "amd64", guest.Options{Exact: true, Trace: func(int, uint64, uint64) {
		if p != nil {
			p.m.Close()
		}
	}}, runtime.Options{})
	if _, err := p.Call(t.Context(), 0, p.function(t, "descend"), 3); !errors.Is(err, machine.ErrClosed) {
		t.Errorf("Call returned %v", err)
	}
}
