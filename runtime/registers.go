package runtime

import "xol/machine"

// realReturner knows which calls return to the trampoline.
type realReturner interface {
	// realReturnOn returns where a call really returns to that was made on a CPU.
	realReturnOn(cpu int, sp, addr uint64) uint64
}

// Regs are the registers of a hit, as struct pt_regs of Linux has them. They
// are read and written in the CPU or, once the probe is optimized, in the frame
// that the detour buffer saved.
type Regs struct {
	*target
	returns realReturner
	number  int // of the CPU
	cpu     machine.CPU
	frame   uint64 // address; 0: in the CPU
	ip      uint64
	moved   bool // the instruction pointer was set
	fixed   bool // it cannot be
}

// Get returns a register by its name: rax, x0, r3, nip. The instruction pointer
// is the probed address.
func (g *Regs) Get(name string) (value uint64, ok bool) {
	i := g.file.Index(name)
	if i < 0 {
		return 0, false
	}
	return g.get(i), true
}

// Set sets a register by its name. It reports false, and does nothing, where there is
// none, and where it cannot be set: the stack pointer in an optimized probe, which the
// detour buffer does not restore, and the instruction pointer where SetIP has no effect.
func (g *Regs) Set(name string, value uint64) bool {
	i := g.file.Index(name)
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
func (g *Regs) SP() uint64 { return g.get(g.file.SP) }

// Arg returns integer argument n, from 0, of a function at whose entry the probe
// is, as far as it is in a register; the others are on the stack.
func (g *Regs) Arg(n int) (value uint64, ok bool) {
	if n < 0 || n >= len(g.convention.Args) {
		return 0, false
	}
	return g.get(g.convention.Args[n]), true
}

// SetArg sets it, and reports whether it can be set.
func (g *Regs) SetArg(n int, value uint64) bool {
	if n < 0 || n >= len(g.convention.Args) {
		return false
	}
	return g.set(g.convention.Args[n], value)
}

// ReturnValue returns the register of the result.
func (g *Regs) ReturnValue() uint64 { return g.get(g.convention.Result) }

// SetReturnValue sets it.
func (g *Regs) SetReturnValue(v uint64) { g.set(g.convention.Result, v) }

// ReturnAddress returns where a function at whose entry the probe is returns
// to; 0 where the stack cannot be read.
func (g *Regs) ReturnAddress() uint64 {
	sp := g.SP()
	return g.returns.realReturnOn(g.number, sp, g.returnAddress(sp))
}

func (g *Regs) get(i int) uint64 {
	if i == g.file.PC {
		return g.ip
	}
	if g.frame == 0 {
		return g.cpu.Reg(i)
	}
	f := g.field(i)
	if f == nil {
		return g.cpu.Reg(i)
	}
	v, _ := g.m.ReadWord(g.frame + uint64(f.Offset))
	return v
}

// set reports whether the register can be set.
func (g *Regs) set(i int, v uint64) bool {
	if i == g.file.PC {
		g.SetIP(v)
		return !g.fixed
	}
	f := g.field(i)
	if g.frame == 0 || f == nil {
		g.cpu.SetReg(i, v)
		return true
	}
	return f.Restored && g.m.WriteWord(g.frame+uint64(f.Offset), v) == nil
}

// returnAddress returns what stands where the return address does, when the
// stack pointer is sp: the trampoline, perhaps.
func (g *Regs) returnAddress(sp uint64) uint64 {
	if link := g.convention.Link; link >= 0 {
		return g.get(link)
	}
	v, _ := g.m.ReadWord(sp)
	return v
}

func (g *Regs) setReturnAddress(sp, addr uint64) {
	if link := g.convention.Link; link >= 0 {
		g.set(link, addr)
		return
	}
	_ = g.m.WriteWord(sp, addr)
}
