//go:build unicorn

package emulator

import (
	"xol/arch/arm64"
	"xol/decode"
	"xol/internal/unicorn"
	"xol/machine"
)

// fpAndSIMD is CPACR_EL1 with floating point and SIMD not trapped.
const fpAndSIMD = 3 << 20

// The engine's numbers of exceptions on arm64.
const (
	arm64Undefined = 1
	arm64SVC       = 2
	arm64SMC       = 13
)

func arm64Model(f *machine.File) Model {
	s := Model{
		Arch:      unicorn.ARM64,
		Constants: []Constant{{unicorn.ARM64CPACR, fpAndSIMD}},
		Defect:    arm64Defect,
		Lethal:    func(word uint32) bool { return arm64DefectOf(word) != "" },
		skip:      arm64Skip,
		event: func(trap uint32) machine.Event {
			switch trap {
			case arm64Undefined:
				return machine.Event{Kind: machine.EventUndefined}
			case arm64SVC, arm64SMC:
				return machine.Event{Kind: machine.EventSyscall}
			}
			return machine.Event{Kind: machine.EventException, Number: uint64(trap)}
		},
	}
	ids := map[int]int32{
		arm64.X0 + 29: unicorn.ARM64FP, arm64.X0 + 30: unicorn.ARM64LR,
		arm64.SP: unicorn.ARM64SP, arm64.PC: unicorn.ARM64PC, arm64.NZCV: unicorn.ARM64NZCV,
		arm64.FPCR: unicorn.ARM64FPCR, arm64.FPSR: unicorn.ARM64FPSR, arm64.TPIDR: unicorn.ARM64TPIDR,
	}
	for i := range 29 {
		ids[arm64.X0+i] = unicorn.ARM64X0 + int32(i)
	}
	for i := range 32 {
		ids[arm64.V0+i] = unicorn.ARM64V0 + int32(i)
	}
	s.Links = links(f, ids)
	return s
}

// arm64Defects are instructions that the engine takes for something else and
// crashes on: bits of the word and their value.
var arm64Defects = [...]struct {
	mask, value uint32
	reason      string
}{
	{0x9fe0fc00, 0x0ec01c00, "famax, famin and fscale, on which the engine crashes"},
	{0xbfe0fc00, 0x2ec03c00, "famax, famin and fscale, on which the engine crashes"},
}

func arm64Defect(inst *decode.Inst) string { return arm64DefectOf(arm64.WordOf(inst)) }

func arm64DefectOf(word uint32) string {
	for _, d := range arm64Defects {
		if word&d.mask == d.value {
			return d.reason
		}
	}
	return ""
}

func arm64Skip(inst *decode.Inst) string {
	switch {
	case inst.Has(decode.Privileged):
		return "privileged"
	case inst.Flow == decode.FlowSyscall:
		return "system calls"
	case arm64.Volatile(inst):
		return "results that vary: clocks, random numbers, CPU identity"
	}
	return ""
}
