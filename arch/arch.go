// Package arch is the registry of the supported ISAs: a name, or the machine
// and byte order of an ELF header, gives one ISA value.
package arch

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"

	"xol/arch/amd64"
	"xol/arch/arm64"
	"xol/arch/ppc64"
	"xol/classify"
	"xol/decode"
	"xol/detour"
	"xol/machine"
	"xol/optcheck"
	"xol/patch"
	"xol/relocate"
	"xol/usdt"
)

// ISA is all that the other packages ask of an instruction set architecture.
// Values are immutable and safe for concurrent use.
type ISA interface {
	// Name returns "amd64", "arm64", "ppc64" (big-endian) or "ppc64le".
	optcheck.Architecture
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

	relocate.Relocator
	detour.Builder
	detour.EntryBuilder
	detour.Unwinder
	patch.Patcher
	usdt.Syntax
	// Registers returns the register file that user code sees.
	Registers() *machine.File
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
	// FetchRegister returns the index in Registers of the register that probe
	// events call name, detour.NoRegister for one that is not modelled; ok says
	// whether there is such a name.
	FetchRegister(name string) (index int, ok bool)
	// FrameConstant returns what the frame of every hit has in the field that
	// probe events call name and that is no register: those of the exception. ok
	// is false where that differs from hit to hit and is not modelled. kernel
	// says whether the program is one.
	FrameConstant(name string, kernel bool) (value uint64, ok bool)
	// Interpret does what inst does where that is a transfer of control or, on
	// some ISAs, to make or load from an address relative to its own. It sets the
	// program counter as well, which is inst.Addr before. For an instruction that
	// it does not know, done is false; err says that memory cannot be accessed.
	// Nothing has changed in either case.
	Interpret(inst *decode.Inst, r machine.Registers, m machine.Memory) (done bool, err error)
	// ReturnInst returns the bytes of the instruction that returns from a
	// function.
	ReturnInst() []byte
	// TrampolinePrefix returns what stands in front of the return instruction
	// that functions with return probes return to.
	TrampolinePrefix() []byte
	// TrampolineEntry returns what functions return to, offset bytes after the start of
	// the prefix: it leads there, and a return to any byte after its first one traps,
	// among breakpoints. There is none where the return instruction is as good.
	TrampolineEntry() (code []byte, offset uint64)
	// OnlyLandingPad reports whether inst does nothing but to be where indirect
	// branches may land: the probe of a function goes behind it.
	OnlyLandingPad(inst *decode.Inst) bool
	// FixStep repairs what inst, executed under the single-step exception, did
	// otherwise than without.
	FixStep(inst *decode.Inst, r machine.Registers, m machine.Memory) error
	// FixEvent repairs what inst, which called the system or raised another event
	// after itself, put into registers of the address of its copy. It is called
	// with the original.
	FixEvent(inst *decode.Inst, r machine.Registers)
	// FormsPointer returns the address that instruction i of f leaves in a
	// register from constants alone, or that it loads from a fixed place.
	FormsPointer(f *classify.Func, i int, mem optcheck.Memory) (addr uint64, ok bool)
	// Alternative returns what a Linux kernel writes over size bytes at to while
	// it boots, where code replaces them that is written for the address from:
	// code re-based, and NOPs.
	Alternative(code []byte, from, to uint64, size int) []byte
	// WatchUnit returns what the debug facility of the ISA's CPUs can do.
	WatchUnit() machine.WatchUnit
	// CheckWatch returns the rule that forbids w; nil where the facility can
	// watch it.
	CheckWatch(w machine.Watch) *classify.Rule
	// DeadRegisters returns general registers that inst does not use, by
	// number, for far forms that need one and cannot save it; 0 on an ISA that
	// has no such forms.
	DeadRegisters(inst *decode.Inst) uint32
}

var isas = [...]ISA{
	amd64.ISA{},
	arm64.ISA{},
	ppc64.ISA{},
	ppc64.ISA{LittleEndian: true},
}

// Names returns the names of all ISAs.
func Names() []string {
	names := make([]string, len(isas))
	for i, isa := range isas {
		names[i] = isa.Name()
	}
	return names
}

// UnknownError says that an architecture is not supported.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("architecture %s is not supported (supported: %s)", e.Name, strings.Join(Names(), ", "))
}

// aliases are what compilers, kernels and distributions call the ISAs.
var aliases = map[string]string{
	"x86_64": "amd64", "x86-64": "amd64", "x64": "amd64",
	"aarch64":   "arm64",
	"powerpc64": "ppc64", "ppc64be": "ppc64",
	"ppc64el": "ppc64le", "powerpc64le": "ppc64le", "powerpc64el": "ppc64le",
}

// ByName returns the ISA of that name, or of another name that it is known by
// (x86_64, aarch64, powerpc64le, ppc64el …) in letters of any case, or an
// *UnknownError.
func ByName(name string) (ISA, error) {
	asked := strings.ToLower(name)
	if alias, ok := aliases[asked]; ok {
		asked = alias
	}
	for _, isa := range isas {
		if isa.Name() == asked {
			return isa, nil
		}
	}
	return nil, &UnknownError{name}
}

// ByMachine returns the ISA for the header of a 64-bit ELF file, or an
// *UnknownError.
func ByMachine(m elf.Machine, order binary.ByteOrder) (ISA, error) {
	little := order == binary.ByteOrder(binary.LittleEndian)
	switch {
	case m == elf.EM_X86_64 && little:
		return amd64.ISA{}, nil
	case m == elf.EM_AARCH64 && little:
		return arm64.ISA{}, nil
	case m == elf.EM_PPC64:
		return ppc64.ISA{LittleEndian: little}, nil
	}
	endian := "big-endian"
	if little {
		endian = "little-endian"
	}
	return nil, &UnknownError{fmt.Sprintf("%v (%s)", m, endian)}
}
