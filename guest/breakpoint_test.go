//go:build unicorn

package guest

import (
	"errors"
	"fmt"
	"testing"

	"xol/internal/skip"
	"xol/machine"
)

const (
	gateAddr = textAddr + PageSize
	gateSize = 64
)

// eachGate calls f with a CPU that calls gateAddr, a function that only returns
// and is a call of the host: handler stands for the host. Before textAddr's
// return 1 is added to its argument.
func eachGate(t *testing.T, f func(t *testing.T, c *CPU, arg int, handler *func() error)) {
	for _, i := range isas {
		for _, exact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s exact=%t", i.name, exact), func(t *testing.T) {
				m := open(t, Options{Exact: exact}, i.name)
				put(t, m, textAddr, i.add+i.ret)
				put(t, m, gateAddr, i.ret)
				put(t, m, gateAddr+gateSize, i.ret)
				var handler func() error
				err := m.OnCall(machine.Range{Lo: gateAddr, Hi: gateAddr + gateSize}, func(cpu int, addr uint64) error {
					if cpu != 0 || addr != gateAddr {
						t.Errorf("call of CPU %d at %#x", cpu, addr)
					}
					return handler()
				})
				if err != nil {
					t.Fatal(err)
				}
				f(t, m.CPUs[0], i.arg, &handler)
			})
		}
	}
}

// callGate returns the argument's register when the call of the gate has returned.
func callGate(c *CPU, arg int) (uint64, error) {
	_, err := c.CallAndRun(1000, machine.Function{Entry: gateAddr}, 10)
	return c.Reg(arg), err
}

func TestCallsOfTheHost(t *testing.T) {
	text := machine.Function{Entry: textAddr}
	for _, h := range []struct {
		name    string
		handler func(c *CPU, arg int) error
		want    uint64
	}{
		{"leaves all alone", func(*CPU, int) error { return nil }, 10},
		{"reads a register", func(c *CPU, arg int) error {
			if v := c.Reg(arg); v != 10 {
				return fmt.Errorf("argument %d", v)
			}
			return nil
		}, 10},
		{"sets a register", func(c *CPU, arg int) error { c.SetReg(arg, 20); return nil }, 20},
		{"reads all registers", func(c *CPU, _ int) error { c.Save(c.m.File.NewState()); return nil }, 10},
		{"sets all registers", func(c *CPU, arg int) error {
			state := c.m.File.NewState()
			c.Save(state)
			c.SetReg(arg, 30)
			c.Restore(state)
			return nil
		}, 10},
		{"runs code", func(c *CPU, arg int) error {
			state := c.m.File.NewState()
			c.Save(state)
			_, err := c.CallAndRun(1000, text, 40)
			if v := c.Reg(arg); v != 41 {
				err = errors.Join(err, fmt.Errorf("argument %d after the nested call", v))
			}
			c.Restore(state)
			return err
		}, 10},
		{"runs code that is stopped", func(c *CPU, _ int) error {
			state := c.m.File.NewState()
			c.Save(state)
			if err := c.Call(text, 40); err != nil {
				return err
			}
			ev, err := c.Run(0)
			if ev.Kind != machine.EventBudget {
				err = errors.Join(err, c.m.Unexpected(ev))
			}
			c.Restore(state)
			return err
		}, 10},
		{"runs code that faults", func(c *CPU, _ int) error {
			state := c.m.File.NewState()
			c.Save(state)
			if err := c.Call(machine.Function{Entry: nowhere}, 40); err != nil {
				return err
			}
			ev, err := c.Run(10)
			if ev.Kind != machine.EventFault {
				err = errors.Join(err, c.m.Unexpected(ev))
			}
			c.Restore(state)
			return err
		}, 10},
		{"changes the code of the gate", func(c *CPU, _ int) error {
			code := make([]byte, gateSize)
			return errors.Join(c.m.Read(code, gateAddr), c.m.Write(gateAddr, code))
		}, 10},
	} {
		t.Run(h.name, func(t *testing.T) {
			eachGate(t, func(t *testing.T, c *CPU, arg int, handler *func() error) {
				calls := 0
				*handler = func() error { calls++; return h.handler(c, arg) }
				for n := 1; n <= 3; n++ {
					if v, err := callGate(c, arg); err != nil || v != h.want || calls != n {
						t.Fatalf("argument %d after %d calls, %v; want %d after %d", v, calls, err, h.want, n)
					}
				}
			})
		})
	}
}

var errHandler = errors.New("no")

func TestCallOfTheHostFails(t *testing.T) {
	eachGate(t, func(t *testing.T, c *CPU, arg int, handler *func() error) {
		*handler = func() error { return errHandler }
		if _, err := callGate(c, arg); !errors.Is(err, errHandler) {
			t.Errorf("error %v", err)
		}
		*handler = func() error { return nil }
		if _, err := callGate(c, arg); err != nil {
			t.Errorf("after an error: %v", err)
		}
	})
}

func TestCallOfTheHostPanics(t *testing.T) {
	eachGate(t, func(t *testing.T, c *CPU, arg int, handler *func() error) {
		*handler = func() error { panic(errHandler) }
		func() {
			defer func() {
				if p := recover(); p != errHandler {
					t.Errorf("panic %v", p)
				}
			}()
			_, _ = callGate(c, arg)
		}()
		*handler = func() error { return nil }
		if _, err := callGate(c, arg); err != nil {
			t.Errorf("after a panic: %v", err)
		}
	})
}

// TestGateStopsOnce has a CPU stopped before the gate: the call is made when it
// goes on.
func TestGateStopsOnce(t *testing.T) {
	eachGate(t, func(t *testing.T, c *CPU, arg int, handler *func() error) {
		calls := 0
		*handler = func() error { calls++; return nil }
		if err := c.Call(machine.Function{Entry: gateAddr}, 10); err != nil {
			t.Fatal(err)
		}
		wantCalls := func(budget, want int, kind machine.EventKind) {
			t.Helper()
			if ev, err := c.Run(budget); err != nil || ev.Kind != kind || calls != want {
				t.Fatalf("%v, %v after %d calls, want %v after %d", ev.Kind, err, calls, kind, want)
			}
		}
		wantCalls(0, 0, machine.EventBudget)
		wantCalls(0, 0, machine.EventBudget)
		wantCalls(100, 1, machine.EventReturned)
	})
}

// TestGateOfWatchedStack has the gate's return read the stack in a page of watched
// data: the call is made once.
func TestGateOfWatchedStack(t *testing.T) {
	eachGate(t, func(t *testing.T, c *CPU, arg int, handler *func() error) {
		calls := 0
		*handler = func() error { calls++; return nil }
		sp := c.Reg(c.m.File.SP)
		if err := c.m.Watch(0, []machine.Watch{{Addr: sp - 0x800, Len: 8, Kind: machine.WatchAccess}}); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 3; n++ {
			if v, err := callGate(c, arg); err != nil || v != 10 || calls != n {
				t.Fatalf("argument %d after %d calls, %v; want 10 after %d", v, calls, err, n)
			}
		}
	})
}

// TestHandlersMayRunCodeForLong runs code in handlers until the engine has no room
// for more: it must not make any there and then.
func TestHandlersMayRunCodeForLong(t *testing.T) {
	skip.Long(t, "an engine's room for code is used up")
	const calls, runs = 50, 6000
	eachGate(t, func(t *testing.T, c *CPU, arg int, handler *func() error) {
		if c.m.opt.Exact {
			skip.Pointless(t, "what is counted does not matter")
		}
		state := c.m.File.NewState()
		*handler = func() error {
			c.SaveCore(state)
			for range runs {
				if _, err := c.CallAndRun(1000, machine.Function{Entry: textAddr}, 10); err != nil {
					return err
				}
			}
			c.RestoreCore(state)
			return nil
		}
		for range calls {
			if v, err := callGate(c, arg); err != nil || v != 10 {
				t.Fatalf("argument %d, %v", v, err)
			}
		}
	})
}
