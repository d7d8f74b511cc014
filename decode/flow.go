package decode

import "sort"

// Whether execution goes on after an instruction with the next one has three
// answers, by how it comes there:
//
//	                      FallsThrough  Resumes  Continues
//	plain instruction     yes           no       yes
//	conditional branch    yes           no       yes
//	jump, return          no            no       no
//	call                  no            yes      yes
//	system call, halt     no            yes      yes
//	trap                  no            yes      no
//	bytes of no inst.     no            no       no
//
// A conditional return, call or trap falls through and continues, besides what
// its kind does.

// FallsThrough reports whether execution may go from i straight to the next
// instruction, without having been elsewhere.
func (i *Inst) FallsThrough() bool {
	return !i.Has(Invalid) && (i.Flow == FlowNone || i.Has(Conditional))
}

// Resumes reports whether execution may come to the next instruction after it
// has been elsewhere because of i: in a function, or in the handler of an
// exception or interrupt. A handler may also skip a trap.
func (i *Inst) Resumes() bool {
	switch i.Flow {
	case FlowCall, FlowCallIndirect, FlowSyscall, FlowTrap, FlowHalt:
		return true
	}
	return false
}

// Continues reports whether the next instruction is part of what i begins: it
// is executed at once, or when a function, the system or an interrupt returns.
// A trap that is not conditional is where compilers end a path, though a handler
// may skip it.
func (i *Inst) Continues() bool {
	return i.FallsThrough() || i.Flow != FlowTrap && i.Resumes()
}

// IsBranch reports whether i itself may make execution go on elsewhere: jumps,
// calls and returns, but neither system calls nor traps.
func (i *Inst) IsBranch() bool { return FlowJump <= i.Flow && i.Flow <= FlowCallIndirect }

// IsCall reports whether i saves the address of the next instruction and goes
// elsewhere.
func (i *Inst) IsCall() bool { return i.Flow == FlowCall || i.Flow == FlowCallIndirect }

// From returns the index of the first instruction at or after addr, in
// instructions sorted by address; their number where there is none.
func From(insts []Inst, addr uint64) int {
	return sort.Search(len(insts), func(i int) bool { return insts[i].Addr >= addr })
}

// Paths returns the straight paths that n instructions from index first on are
// part of, as a range of indices [from, to): execution goes from each to the next
// unless a branch is taken.
func Paths(insts []Inst, first, n int) (from, to int) {
	from, to = first, first+n
	for from > 0 && insts[from-1].FallsThrough() {
		from--
	}
	for to < len(insts) && insts[to-1].FallsThrough() {
		to++
	}
	return from, to
}
