package runtime

import (
	"errors"

	"xol/machine"
)

// host is what a handler asks of the runtime.
type host interface {
	callNested(cpu int, f machine.Function, args []uint64) (uint64, error)
	// askHandler calls the FaultHandler of the context's probe.
	askHandler(c *Context, f *Fault) (handled bool)
	taskOf(cpu int) (number uint64)
	usable() error // or machine.ErrClosed
}

// Context is what a handler is called with. It is valid during the call.
type Context struct {
	Link *Link // of the probe
	CPU  int
	Regs Regs

	probe  *probe
	host   host
	memory program
	jumped bool // the hit came through a jump
	called bool // a return probe has the call return to the trampoline
	asked  bool // the FaultHandler is running: its own faults are no one's
}

// Call calls a function of the guest on the handler's CPU and returns its
// result. Probes that are hit meanwhile count as missed. The registers are kept.
// It returns a *FaultError, or a *StopError for what else ends it.
func (c *Context) Call(f machine.Function, args ...uint64) (uint64, error) {
	return c.host.callNested(c.CPU, f, args)
}

// Read copies the guest's memory at addr into dst. Where there is none the
// probe's FaultHandler is asked; if it does not handle that, Read returns a
// *FaultError.
func (c *Context) Read(dst []byte, addr uint64) error {
	return c.access(func() error { return c.memory.Read(dst, addr) })
}

// Write copies src to the guest's memory at addr; see Read.
func (c *Context) Write(addr uint64, src []byte) error {
	return c.access(func() error { return c.memory.Write(addr, src) })
}

func (c *Context) access(try func() error) error {
	if err := c.host.usable(); err != nil {
		return err
	}
	err := try()
	var denied *accessError
	if !errors.As(err, &denied) {
		return err
	}
	f := Fault{Addr: c.Regs.ip, Page: denied.page, Access: denied.access, InHandler: true}
	if c.handle(&f) && try() == nil {
		return nil
	}
	return &FaultError{CPU: c.CPU, Fault: f}
}

// Memory returns the guest's memory as the program may use it. Its errors do not
// go to the FaultHandler.
func (c *Context) Memory() machine.Memory { return c.memory }

// Task returns the number of the task that was hit (see Runtime.SetTask).
func (c *Context) Task() uint64 { return c.host.taskOf(c.CPU) }

// inDetour reports whether the hit came through a jump. Probes that allow none were
// not there then.
func (c *Context) inDetour(s *site) bool { return c.jumped && !s.entry }

// handle calls the probe's fault handler, where it has one. Faults that it causes
// itself are no handler's.
func (c *Context) handle(f *Fault) bool {
	if c.probe.FaultHandler == nil || c.asked {
		return false
	}
	c.asked = true
	defer func() { c.asked = false }()
	return c.host.askHandler(c, f)
}
