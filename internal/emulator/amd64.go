//go:build unicorn

package emulator

import (
	"xol/arch/amd64"
	"xol/decode"
	"xol/internal/unicorn"
	"xol/machine"
)

// What the processor is set to: CR0 with protection and native x87 errors, CR4
// with SSE, XSAVE and the FS and GS base instructions.
const (
	cr0 = 1<<0 | 1<<1 | 1<<4 | 1<<5
	cr4 = 1<<9 | 1<<10 | 1<<16 | 1<<18
)

func amd64Model(f *machine.File) Model {
	s := Model{
		Arch: unicorn.AMD64,
		Constants: []Constant{
			{unicorn.X86CR0, cr0}, {unicorn.X86CR4, cr4},
			{unicorn.X86FIP, 0}, {unicorn.X86FCS, 0}, {unicorn.X86FDP, 0}, {unicorn.X86FDS, 0}, {unicorn.X86FOP, 0},
		},
		Defect: amd64Defect,
		skip:   amd64Skip,
		event:  amd64Event,
		pends:  amd64Pends,
		blank:  0xcc, // int3
	}
	ids := map[int]int32{
		amd64.RAX: unicorn.X86RAX, amd64.RCX: unicorn.X86RCX, amd64.RDX: unicorn.X86RDX, amd64.RBX: unicorn.X86RBX,
		amd64.RSP: unicorn.X86RSP, amd64.RBP: unicorn.X86RBP, amd64.RSI: unicorn.X86RSI, amd64.RDI: unicorn.X86RDI,
		amd64.RIP: unicorn.X86RIP, amd64.RFLAGS: unicorn.X86EFLAGS, amd64.FSBase: unicorn.X86FSBase,
		amd64.GSBase: unicorn.X86GSBase, amd64.MXCSR: unicorn.X86MXCSR, amd64.FCW: unicorn.X86FPCW,
		amd64.FSW: unicorn.X86FPSW, amd64.FTW: unicorn.X86FPTag,
	}
	for i := range 8 {
		ids[amd64.R8+i] = unicorn.X86R8 + int32(i)
		ids[amd64.ST0+i] = unicorn.X86ST0 + int32(i)
	}
	for i := range 16 {
		ids[amd64.ZMM0+i] = unicorn.X86XMM0 + int32(i)
	}
	s.Links = links(f, ids)
	return s
}

// pageFault is the number of a page fault, and contributory are those of the
// exceptions that make a double fault of another one [SDM vol. 3, 6.15].
const (
	pageFault    = 14
	contributory = 1<<0 | 1<<10 | 1<<11 | 1<<12 | 1<<13
)

func amd64Event(trap uint32) machine.Event {
	return machine.Event{Kind: machine.EventException, Number: uint64(trap)}
}

// amd64Pends reports whether the engine takes a later exception for one during
// this one.
func amd64Pends(trap uint32) bool { return contributory>>trap&1 != 0 || trap == pageFault }

// amd64Defect names the classes that the engine runs wrongly: it takes VEX-128
// for the SSE form, and cannot abort a transaction.
func amd64Defect(inst *decode.Inst) string {
	d := amd64.DetailOf(inst)
	switch d.Encoding() {
	case amd64.EncVEX2, amd64.EncVEX3, amd64.EncEVEX, amd64.EncXOP, amd64.EncREX2:
		return "VEX, EVEX, XOP and REX2 without a CPU that has them"
	}
	switch {
	case amd64.OpOf(inst) == amd64.OpXBegin:
		return "xbegin, whose abort status the engine makes up"
	case inst.PCRel.Kind != decode.PCRelNone && d.Map() == amd64.Map0F && (d.Opcode() == 0xa4 || d.Opcode() == 0xac):
		return "shld and shrd by an immediate, whose RIP-relative operand the engine misplaces by a byte"
	case d.Map() == amd64.Map0F && d.Opcode() == 0xaa:
		return "rsm, which the engine executes outside system-management mode"
	case isDoublyPrefixedSSE(d):
		return "SSE with two mandatory prefixes, of which the engine takes the wrong one"
	case amd64.OpOf(inst) == amd64.OpReturn && inst.Fields.ImmLen != 0 && inst.Raw[inst.Fields.Imm+1]&0x80 != 0:
		return "ret over 32 KiB or more, which the engine takes for a negative number"
	case hidesSegment(inst):
		return "a segment without a base after FS or GS, which the engine takes to replace it"
	case isExtendedMMX(d):
		return "MMX with a register bit that has no effect, but for the engine"
	}
	return ""
}

// amd64Skip names the classes that do not make sense in a random state, and in
// memory without protection, devices and modes.
func amd64Skip(inst *decode.Inst) string {
	switch {
	case inst.Has(decode.Privileged):
		return "privileged"
	case inst.Flow == decode.FlowSyscall:
		return "system calls"
	case amd64.LoadsSystemFlags(inst):
		return "popf with random flags"
	case amd64.Volatile(inst):
		return "results that vary: clocks, random numbers, CPU identity"
	case amd64.Segmented(inst):
		return "far transfers and segment registers"
	}
	return ""
}

// isDoublyPrefixedSSE recognises SSE instructions with 66 and F2 or F3, of which
// the latter counts.
func isDoublyPrefixedSSE(d amd64.Detail) bool {
	both := d.Prefixes()&amd64.Prefix66 != 0 && d.Prefixes()&(amd64.PrefixF2|amd64.PrefixF3) != 0
	op := d.Opcode()
	sse := op>>3 == 0x10>>3 || op>>3 == 0x28>>3 || op >= 0x50 && op < 0x80 || op >= 0xc2 && op <= 0xc6 || op >= 0xd0
	return both && sse && d.Encoding() == amd64.EncLegacy && d.Map() == amd64.Map0F
}

// hidesSegment recognises prefixes for FS or GS and, after them, for another
// segment, which has no effect in 64-bit mode.
func hidesSegment(inst *decode.Inst) (hides bool) {
	d := amd64.DetailOf(inst)
	if d.Prefixes()&(amd64.PrefixFS|amd64.PrefixGS) == 0 {
		return false
	}
	for _, b := range inst.Raw[:d.PrefixCount()] {
		switch b {
		case 0x26, 0x2e, 0x36, 0x3e:
			hides = true
		case 0x64, 0x65:
			hides = false
		}
	}
	return hides
}

// isExtendedMMX recognises the MMX instructions of SSSE3 with REX.R or REX.B,
// for which the engine looks beyond the eighth register.
func isExtendedMMX(d amd64.Detail) bool {
	mmx := d.Prefixes()&amd64.Prefix66 == 0 && (d.Map() == amd64.Map0F38 && d.Opcode() < 0x20 || d.Map() == amd64.Map0F3A && d.Opcode() == 0x0f)
	return mmx && d.R()|d.B() != 0
}
