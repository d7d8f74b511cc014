package ppc64

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
