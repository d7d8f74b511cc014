// Package arch is the registry of the supported ISAs: a name, or the machine
// and byte order of an ELF header, gives one ISA value. README.md says how to
// add an instruction or an ISA.
package arch

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"xol/arch/amd64"
	"xol/arch/arm64"
	"xol/arch/ppc64"
	"xol/classify"
	"xol/decode"
	"xol/detour"
	"xol/machine"
	"xol/optcheck"
	"xol/optcheck/flow"
	"xol/patch"
	"xol/relocate"
	"xol/usdt"
)

// ISA is what static analysis asks of an instruction set architecture: enough to
// decode a file and to print and judge its instructions. A new ISA starts with
// this. What else there may be is asked for by Relocation, Execution, Probing, Tracing and
// Markers. Values are immutable and safe for concurrent use.
type ISA interface {
	// Name returns "amd64", "arm64", "ppc64" (big-endian) or "ppc64le".
	optcheck.Architecture
	// Aliases returns what compilers, kernels and distributions call the ISA, in
	// lower case.
	Aliases() []string
	// Machine returns what the header of an ELF file calls it.
	Machine() elf.Machine
	// Text returns the instruction in GNU assembler syntax. lookup names
	// addresses; nil leaves them as numbers.
	Text(inst *decode.Inst, lookup decode.SymLookup) string
	// Profiles returns the names of the ISA's profiles.
	Profiles() []string
	// Profile returns the ISA's rules under one of these names, or under that
	// of a version between two of them, for which the older one answers. The
	// options matter only to kernel profiles.
	Profile(name string, opt classify.KernelOptions) (classify.Profile, bool)
	// Optimizer returns the rules of the same profile for turning breakpoints
	// into jumps.
	Optimizer(profile string, opt classify.KernelOptions) (optcheck.Optimizer, bool)
	// FormsPointer returns the address that instruction i of f leaves in a
	// register from constants alone, or that it loads from a fixed place.
	FormsPointer(f *classify.Func, i int, mem flow.Memory) (addr uint64, ok bool)
	// Alternative returns what a Linux kernel writes over size bytes at to while
	// it boots, where code replaces them that is written for the address from:
	// code re-based, and NOPs. Older kernels put NOPs after a jump of x86 that
	// becomes short as well, newer ones traps.
	Alternative(code []byte, from, to uint64, size int, traps bool) []byte
}

// Relocator is an ISA whose instructions can be moved, one by one and into
// detour buffers.
type Relocator interface {
	ISA
	relocate.Relocator
	detour.Builder
	// Registers returns the register file that user code sees.
	Registers() *machine.File
	// DeadRegisters returns general registers that inst does not use, by
	// number, for far forms that need one and cannot save it; 0 on an ISA that
	// has no such forms.
	DeadRegisters(inst *decode.Inst) uint32
}

// Executor is an ISA whose code can be run by an engine and its instructions
// compared.
type Executor interface {
	Relocator
	// UndefinedFlags returns the bits of the flags register that the
	// architecture leaves undefined after inst.
	UndefinedFlags(inst *decode.Inst) uint64
	// Prepare changes a random state of the register file f so that inst makes
	// sense in it: few repetitions, a quotient that fits.
	Prepare(inst *decode.Inst, f *machine.File, s machine.State)
	// StackScratch returns the addresses below the stack pointer sp that moved
	// code may overwrite: beyond the red zone.
	StackScratch(sp uint64) (lo, hi uint64)
	// Convention returns how C functions are called. It must not be changed.
	Convention() *machine.Convention
	// Interpret does what inst does where that is a transfer of control or, on
	// some ISAs, to make or load from an address relative to its own. It sets the
	// program counter as well, which is inst.Addr before. For an instruction that
	// it does not know, done is false; err says that memory cannot be accessed.
	// Nothing has changed in either case.
	Interpret(inst *decode.Inst, r machine.Registers, m machine.Memory) (done bool, err error)
	// WatchUnit returns what the debug facility of the ISA's CPUs can do.
	WatchUnit() machine.WatchUnit
	// CheckWatch returns the rule that forbids w; nil where the facility can
	// watch it.
	CheckWatch(w machine.Watch) *classify.Rule
}

// Prober is an ISA on which probes can be put into running code.
type Prober interface {
	Executor
	patch.Patcher
	detour.EntryBuilder
	detour.Unwinder
	detour.Inserter
	usdt.Syntax
	// FetchRegister returns the index in Registers of the register that probe
	// events call name, detour.NoRegister for one that is not modelled; ok says
	// whether there is such a name.
	FetchRegister(name string) (index int, ok bool)
	// FrameConstant returns what the frame of every hit has in the field that
	// probe events call name and that is no register: those of the exception. ok
	// is false where that differs from hit to hit and is not modelled. kernel
	// says whether the program is one.
	FrameConstant(name string, kernel bool) (value uint64, ok bool)
	// ReturnInst returns the bytes of the instruction that returns from a
	// function.
	ReturnInst() []byte
	// TrampolinePrefix returns what stands before the return instruction that
	// functions with return probes return to.
	TrampolinePrefix() []byte
	// TrampolineEntry returns what functions return to, offset bytes after the start of
	// the prefix: it leads there, and a return to any byte after its first one traps,
	// among breakpoints. There is none where the return instruction is as good.
	TrampolineEntry() (code []byte, offset uint64)
	// OnlyLandingPad reports whether inst does nothing but to be where indirect
	// branches may land: the probe of a function goes after it.
	OnlyLandingPad(inst *decode.Inst) bool
	// IsPadding reports whether inst does nothing and is put between functions and
	// blocks.
	IsPadding(inst *decode.Inst) bool
	// AfterSyscall sets registers to what they are after a system call whose instruction
	// is before next.
	AfterSyscall(r machine.Registers, next uint64)
	// Cave returns where a jump may stand for an instruction at at that is too short for
	// one: in padding, which ends at end, where the instruction is or only a landing pad
	// before it; and the short jump that leads there. All of the padding is NOPs, and
	// one of them starts at the cave, so that whoever comes to it goes on to end. ok is
	// false where there is no such place.
	Cave(padding []byte, end, at uint64) (cave uint64, jump []byte, ok bool)
	// Rebase has the moved form of a call or system call hold the address to where it
	// holds from: that of the instruction after the original, which has moved with all
	// else. It returns false where it does not find that address in one piece, or the
	// other has no room there.
	Rebase(code []byte, from, to uint64) bool
	// FixStep repairs what inst, executed under the single-step exception, did
	// otherwise than without.
	FixStep(inst *decode.Inst, r machine.Registers, m machine.Memory) error
	// FixEvent repairs what inst, which called the system or raised another event
	// after itself, put into registers of the address of its copy. It is called
	// with the original.
	FixEvent(inst *decode.Inst, r machine.Registers)
}

// Traceable is an ISA whose processes can be traced where Linux runs on it.
type Traceable interface {
	Executor
	// Traced returns how Linux shows a thread to the process that traces it.
	Traced() *machine.Traced
}

// Relocation returns isa as one whose instructions can be moved, or a
// *MissingError.
func Relocation(isa ISA) (Relocator, error) { return as[Relocator](isa, "move its instructions") }

// Execution returns isa as one whose code can be run, or a *MissingError.
func Execution(isa ISA) (Executor, error) { return as[Executor](isa, "run its code") }

// Probing returns isa as one whose running code can be probed, or a
// *MissingError.
func Probing(isa ISA) (Prober, error) { return as[Prober](isa, "put probes into running code") }

// Tracing returns isa as one whose processes can be traced, or a *MissingError.
func Tracing(isa ISA) (Traceable, error) { return as[Traceable](isa, "trace its processes") }

// Markers returns isa as one whose static markers can be read, or a
// *MissingError.
func Markers(isa ISA) (usdt.Syntax, error) {
	return as[usdt.Syntax](isa, "read the operands of static markers")
}

func as[T any](isa ISA, use string) (T, error) {
	v, ok := isa.(T)
	if !ok {
		return v, &MissingError{ISA: isa.Name(), Use: use}
	}
	return v, nil
}

// MissingError says that an ISA is known well enough for some uses, but not for
// this one.
type MissingError struct {
	ISA string
	Use string // what cannot be done, as after "cannot"
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("xol can analyze %s code but cannot %s", e.ISA, e.Use)
}

// Set is a list of ISAs. The first that fits counts.
type Set []ISA

// supported has a line for each ISA and byte order.
var supported = Set{
	amd64.ISA{},
	arm64.ISA{},
	ppc64.ISA{},
	ppc64.ISA{LittleEndian: true},
}

// Supported returns all ISAs that xol supports.
func Supported() Set { return slices.Clone(supported) }

// Names returns the names of the ISAs.
func (s Set) Names() []string {
	names := make([]string, len(s))
	for i, isa := range s {
		names[i] = isa.Name()
	}
	return names
}

// ByName returns the ISA of that name, or of another name that it is known by
// (x86_64, aarch64, powerpc64le, ppc64el …) in letters of any case, or an
// *UnknownError.
func (s Set) ByName(name string) (ISA, error) {
	asked := strings.ToLower(name)
	for _, isa := range s {
		if isa.Name() == asked || slices.Contains(isa.Aliases(), asked) {
			return isa, nil
		}
	}
	return nil, &UnknownError{Name: name, Known: s.Names()}
}

// ByMachine returns the ISA for the header of a 64-bit ELF file, or an
// *UnknownError.
func (s Set) ByMachine(m elf.Machine, order binary.ByteOrder) (ISA, error) {
	for _, isa := range s {
		if isa.Machine() == m && isa.ByteOrder() == order {
			return isa, nil
		}
	}
	endian := "big-endian"
	if order == binary.ByteOrder(binary.LittleEndian) {
		endian = "little-endian"
	}
	return nil, &UnknownError{Name: fmt.Sprintf("%v (%s)", m, endian), Known: s.Names()}
}

// UnknownError says that an architecture is not supported.
type UnknownError struct {
	Name  string
	Known []string // the names of those that are
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("architecture %s is not supported (supported: %s)", e.Name, strings.Join(e.Known, ", "))
}

// Names returns the names of all supported ISAs.
func Names() []string { return supported.Names() }

// ByName returns the supported ISA of that name, as Set.ByName does.
func ByName(name string) (ISA, error) { return supported.ByName(name) }

// ByMachine returns the supported ISA for the header of a 64-bit ELF file, as
// Set.ByMachine does.
func ByMachine(m elf.Machine, order binary.ByteOrder) (ISA, error) {
	return supported.ByMachine(m, order)
}
