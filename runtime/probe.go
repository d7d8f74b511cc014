package runtime

import (
	"errors"

	"xol/detour"
	"xol/machine"
)

// Probe is a kprobe: where it is and what it does. The zero value of the others is fine.
type Probe struct {
	// Symbol or Addr says where: one of the two. Offset bytes are added.
	Symbol string
	Offset uint64
	Addr   uint64

	// PreHandler runs before the instruction. If it changes the instruction
	// pointer and returns true, the instruction is not executed, no
	// PostHandler runs, and execution goes on there.
	PreHandler func(c *Context) (redirected bool)
	// PostHandler runs behind the instruction, and keeps it from being boosted
	// or optimized.
	PostHandler func(c *Context)
	// FaultHandler is called with a fault of the probed instruction while it
	// is executed out of line, and with one that a handler of this probe
	// causes. If it returns true the fault counts as handled: the instruction
	// is executed again.
	FaultHandler func(c *Context, f *Fault) (handled bool)
	// Redirects says that the PreHandler may change the instruction pointer:
	// such a probe is never optimized, since a change has no effect there.
	Redirects bool
	// Counter has hits counted in the guest's memory (see Link.Hits). Once it
	// is optimized and has no handlers, hits never leave the guest.
	Counter bool
	// Disabled attaches the probe without arming it.
	Disabled bool
}

func (p Probe) attach(r *Runtime, l *Link) (attached, error) {
	in := &probe{Probe: p, link: l}
	return in, r.register(in)
}

// probe is a Probe that is attached, or that another kind of probe has at a function's
// entry.
type probe struct {
	Probe
	link    *Link
	home    *Runtime
	site    *site
	returns bool   // the entry of a return probe
	mirror  bool   // the entry of a jprobe
	counter uint64 // address of the count
	hits    uint64
	missed  uint64
	enabled bool
	gone    bool
}

func (p *probe) setEnabled(on bool) error { return p.home.setEnabled(p, on) }
func (p *probe) close() error             { return p.home.unregister(p) }
func (p *probe) isEnabled() bool          { return p.enabled }
func (p *probe) missCount() uint64        { return p.missed }
func (p *probe) atEntry() *probe          { return p }

func (p *probe) hitCount() uint64 {
	if p.counter == 0 {
		return p.hits
	}
	v, _ := p.home.m.ReadWord(p.counter)
	return p.hits + v
}

// Context is what a handler is called with. It is valid during the call.
type Context struct {
	Link *Link // of the probe
	CPU  int
	Regs Regs

	probe  *probe
	r      *Runtime
	jumped bool // the hit came through a jump
	called bool // a return probe has the call return to the trampoline
	asked  bool // the FaultHandler is running: its own faults are no one's
}

// Call calls a function of the guest on the handler's CPU and returns its
// result. Probes that are hit meanwhile count as missed. The registers are kept.
// It returns a *FaultError, or a *StopError for what else ends it.
func (c *Context) Call(f machine.Function, args ...uint64) (uint64, error) {
	return c.r.callNested(c.CPU, f, args)
}

// Read copies the guest's memory at addr into dst. Where there is none the
// probe's FaultHandler is asked; if it does not handle that, Read returns a
// *FaultError.
func (c *Context) Read(dst []byte, addr uint64) error {
	return c.access(func() error { return program{c.r.m}.Read(dst, addr) })
}

// Write copies src to the guest's memory at addr; see Read.
func (c *Context) Write(addr uint64, src []byte) error {
	return c.access(func() error { return program{c.r.m}.Write(addr, src) })
}

func (c *Context) access(try func() error) error {
	if c.r.closed {
		return machine.ErrClosed
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
func (c *Context) Memory() machine.Memory { return program{c.r.m} }

// Fault is an access to memory that is not there, or must not be accessed so.
type Fault struct {
	Addr      uint64 // of the instruction, in its original place; for an access of a handler that of its probe
	Page      uint64 // the page that was accessed
	Access    machine.Access
	InHandler bool // a handler's access, or that of a function it calls
}

// Regs are the registers of a hit, as struct pt_regs of Linux has them. They
// are read and written in the CPU or, once the probe is optimized, in the frame
// that the detour buffer saved.
type Regs struct {
	r      *Runtime
	number int // of the CPU
	cpu    machine.CPU
	frame  uint64 // address; 0: in the CPU
	ip     uint64
	moved  bool // the instruction pointer was set
	fixed  bool // it cannot be
}

// Get returns a register by its name: rax, x0, r3, nip. The instruction pointer
// is the probed address.
func (g *Regs) Get(name string) (value uint64, ok bool) {
	i := g.r.file.Index(name)
	if i < 0 {
		return 0, false
	}
	return g.get(i), true
}

// Set sets a register by its name. It reports false, and does nothing, where there is
// none, and where it cannot be set: the stack pointer in an optimized probe, which the
// detour buffer does not restore, and the instruction pointer where SetIP has no effect.
func (g *Regs) Set(name string, value uint64) bool {
	i := g.r.file.Index(name)
	return i >= 0 && g.set(i, value)
}

// Reg returns a register by its index in the ISA's File, and SetReg sets it: Regs
// are machine.Registers.
func (g *Regs) Reg(i int) uint64 { return g.get(i) }

// SetReg sets a register by its index, where it can be set (see Set).
func (g *Regs) SetReg(i int, v uint64) { g.set(i, v) }

// IP returns the instruction pointer: the probed address, whatever the ISA's
// breakpoint exception leaves there, or what SetIP set.
func (g *Regs) IP() uint64 { return g.ip }

// SetIP sets it. It has an effect only where a PreHandler returns true, or in a
// PostHandler, and none in an optimized probe and in the handlers of faults and return
// probes.
func (g *Regs) SetIP(addr uint64) {
	if !g.fixed {
		g.ip, g.moved = addr, true
	}
}

// SP returns the stack pointer.
func (g *Regs) SP() uint64 { return g.get(g.r.file.SP) }

// Arg returns integer argument n, from 0, of a function at whose entry the probe
// is, as far as it is in a register; the others are on the stack.
func (g *Regs) Arg(n int) (value uint64, ok bool) {
	if n < 0 || n >= len(g.r.convention.Args) {
		return 0, false
	}
	return g.get(g.r.convention.Args[n]), true
}

// SetArg sets it, and reports whether it can be set.
func (g *Regs) SetArg(n int, value uint64) bool {
	if n < 0 || n >= len(g.r.convention.Args) {
		return false
	}
	return g.set(g.r.convention.Args[n], value)
}

// ReturnValue returns the register of the result.
func (g *Regs) ReturnValue() uint64 { return g.get(g.r.convention.Result) }

// SetReturnValue sets it.
func (g *Regs) SetReturnValue(v uint64) { g.set(g.r.convention.Result, v) }

// ReturnAddress returns where a function at whose entry the probe is returns
// to; 0 where the stack cannot be read.
func (g *Regs) ReturnAddress() uint64 {
	sp := g.SP()
	return g.r.realReturn(g.r.cpus[g.number].task, sp, g.returnAddress(sp))
}

func (g *Regs) get(i int) uint64 {
	if i == g.r.file.PC {
		return g.ip
	}
	if g.frame == 0 {
		return g.cpu.Reg(i)
	}
	f := g.r.field(i)
	if f == nil {
		return g.cpu.Reg(i)
	}
	v, _ := g.r.m.ReadWord(g.frame + uint64(f.Offset))
	return v
}

// set reports whether the register can be set.
func (g *Regs) set(i int, v uint64) bool {
	if i == g.r.file.PC {
		g.SetIP(v)
		return !g.fixed
	}
	f := g.r.field(i)
	if g.frame == 0 || f == nil {
		g.cpu.SetReg(i, v)
		return true
	}
	return f.Restored && g.r.m.WriteWord(g.frame+uint64(f.Offset), v) == nil
}

// field returns the field of the detour buffer's frame that holds a register;
// nil where the buffer leaves the register alone.
func (r *Runtime) field(i int) *detour.Field {
	if i < len(r.fields) {
		return r.fields[i]
	}
	return nil
}
