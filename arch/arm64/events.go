package arm64

// FrameConstant returns false: all fields that have a name are registers.
func (ISA) FrameConstant(string, bool) (value uint64, ok bool) { return 0, false }

// FetchRegister returns the index in Registers of the register that probe
// events call name; ok says whether there is such a name. The names are those
// of the frame that PtRegs describes, and "lr" for x30
// [Linux, arch/arm64/kernel/ptrace.c, regs_query_register_offset]. Of pstate,
// only the condition flags are known.
func (ISA) FetchRegister(name string) (index int, ok bool) {
	if name == "lr" {
		return X0 + linkRegister, true
	}
	f, ok := ptRegs.Field(name)
	return f.Register, ok
}
