package runtime

import (
	"errors"

	"xol/arch"
	"xol/decode"
	"xol/detour"
	"xol/machine"
)

// target is what a runtime runs on: a machine and its ISA.
type target struct {
	m          machine.Machine
	isa        arch.Prober
	file       *machine.File
	convention *machine.Convention
	opt        Options
	fields     []*detour.Field // of the frame, by register
	scratch    []byte
	closed     bool // the machine has been
}

func newTarget(m machine.Machine, isa arch.Prober, opt Options) target {
	t := target{m: m, isa: isa, file: isa.Registers(), convention: isa.Convention(), opt: opt}
	t.fields = make([]*detour.Field, len(t.file.Registers))
	frame := isa.PtRegs()
	for i := range frame.Fields {
		if f := &frame.Fields[i]; f.Register != detour.NoRegister {
			t.fields[f.Register] = f
		}
	}
	return t
}

// field returns the field of the detour buffer's frame that holds a register;
// nil where the buffer leaves the register alone.
func (r *target) field(i int) *detour.Field {
	if i < len(r.fields) {
		return r.fields[i]
	}
	return nil
}

// buffer returns n bytes for the use of one caller.
func (r *target) buffer(n int) []byte {
	if cap(r.scratch) < n {
		r.scratch = make([]byte, 2*n)
	}
	return r.scratch[:n]
}

func (r *target) observe(t Transition) {
	if r.opt.Observe != nil {
		r.opt.Observe(t)
	}
}

// decodeAt decodes the instruction at addr.
func (r *target) decodeAt(inst *decode.Inst, addr uint64) error {
	var code [decode.MaxLen]byte
	for n := len(code); n > 0; n-- {
		if r.m.Read(code[:n], addr) == nil {
			return r.isa.Decode(inst, code[:n], addr)
		}
	}
	return errNoExecution
}

// trapsAt reports whether the instruction at addr traps on purpose.
func (r *target) trapsAt(addr uint64) bool {
	var inst decode.Inst
	code := r.buffer(decode.MaxLen)
	for n := len(code); n > 0; n-- {
		if r.m.Read(code[:n], addr) == nil {
			return r.isa.Decode(&inst, code[:n], addr) == nil && inst.Flow == decode.FlowTrap
		}
	}
	return false
}

// patchedAt reports whether CPUs execute something else at addr than the program has
// there.
func (r *target) patchedAt(addr uint64) bool {
	var own, executed [1]byte
	return r.m.Read(own[:], addr) == nil && r.m.ReadText(executed[:], addr) == nil && own != executed
}

// readable reads as much of dst as there is memory for from addr on, and returns
// how much that is.
func (r *target) readable(dst []byte, addr uint64) int {
	n := min(uint64(len(dst)), pageSize-addr%pageSize)
	if r.m.Read(dst[:n], addr) != nil {
		return 0
	}
	if n < uint64(len(dst)) && r.m.Read(dst[n:], addr+n) == nil {
		return len(dst)
	}
	return int(n)
}

// entrySize returns the bytes of a site.
func (r *target) entrySize() uint64 {
	if r.isa.Align() == 1 {
		return uint64(r.isa.JumpLen())
	}
	return uint64(r.isa.Align())
}

// interprets reports whether the ISA knows what inst does. It is tried where
// there is no memory, and registers that are no CPU's.
func (r *target) interprets(inst *decode.Inst) bool {
	regs := blankCPU{r.file, r.file.NewState()}
	regs.SetReg(r.file.PC, inst.Addr)
	done, err := r.isa.Interpret(inst, regs, blankCPU{})
	return done || err != nil
}

// blankCPU has registers, but no memory.
type blankCPU struct {
	file  *machine.File
	state machine.State
}

func (n blankCPU) Reg(i int) uint64 { return n.file.Word(n.state, i) }

func (n blankCPU) SetReg(i int, v uint64) { n.file.SetWord(n.state, i, v) }

func (blankCPU) Read([]byte, uint64) error { return errNoExecution }

func (blankCPU) Write(uint64, []byte) error { return errNoExecution }

func (blankCPU) ReadWord(uint64) (uint64, error) { return 0, errNoExecution }

func (blankCPU) WriteWord(uint64, uint64) error { return errNoExecution }

var errNoExecution = errors.New("runtime: the instruction cannot be executed")

// calls reports whether an instruction raises an event on purpose, after itself.
func calls(inst *decode.Inst) bool {
	return inst.Flow == decode.FlowSyscall || inst.Flow == decode.FlowTrap || inst.Flow == decode.FlowHalt
}

// noScratch stands for no scratch register: register 0 of a File never is one.
const noScratch = 0
