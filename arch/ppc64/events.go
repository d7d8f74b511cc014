package ppc64

// Bits of the machine state register that programs run with: 64-bit mode, vector,
// VSX and floating point available; little-endian mode
// [Power ISA 3.1, Book III, 4.2.1].
const (
	msrSF  = 1 << 63
	msrVEC = 1 << 25
	msrVSX = 1 << 23
	msrFP  = 1 << 13
	msrLE  = 1 << 0
)

// MachineState returns the machine state register of a program that runs on a
// machine of this byte order. On hardware it also has the bits that a kernel sets
// for itself.
func (a ISA) MachineState() uint64 {
	const msr = msrSF | msrVEC | msrVSX | msrFP
	if a.LittleEndian {
		return msr | msrLE
	}
	return msr
}

// FrameConstant returns the machine state, the vector of a breakpoint, and that
// interrupts were not disabled. dar and dsisr are those of the last fault of data.
func (a ISA) FrameConstant(name string, _ bool) (value uint64, ok bool) {
	switch name {
	case "msr":
		return a.MachineState(), true
	case "trap":
		return programInterrupt, true
	case "softe":
		return 0, true
	}
	return 0, false
}

// FetchRegister returns the index in Registers of the register that probe
// events call name, detour.NoRegister for one that programs do not see; ok
// says whether there is such a name. The names are those of the frame that
// PtRegs describes, without the fields that hold no register
// [Linux, arch/powerpc/kernel/ptrace/ptrace.c, regs_query_register_offset].
func (ISA) FetchRegister(name string) (index int, ok bool) {
	if name == "orig_gpr3" || name == "result" {
		return 0, false
	}
	f, ok := ptRegs.Field(name)
	return f.Register, ok
}
