//go:build unicorn

package emulator

import (
	"encoding/binary"
	"fmt"

	"xol/arch/ppc64"
	"xol/decode"
	"xol/internal/unicorn"
	"xol/machine"
)

// Bits of the machine state register: 64-bit mode, vector, floating point and
// VSX available; LE in little-endian mode.
const (
	msrSF  = 1 << 63
	msrVEC = 1 << 25
	msrVSX = 1 << 23
	msrFP  = 1 << 13
	msrLE  = 1 << 0
)

// The engine's numbers of exceptions on ppc64.
const (
	ppc64Illegal     = 96
	ppc64Unavailable = 95
	ppc64SystemCall  = 8
)

func ppc64Setup(f *machine.File, arch unicorn.Arch) setup {
	msr := uint64(msrSF | msrVEC | msrVSX | msrFP)
	if arch == unicorn.PPC64LE {
		msr |= msrLE
	}
	s := setup{
		arch:      arch,
		constants: []constant{{unicorn.PPCMSR, msr}},
		skip:      ppc64Skip,
		hidden:    true,
		event: func(trap uint32) machine.Event {
			switch trap {
			case ppc64Illegal, ppc64Unavailable:
				return machine.Event{Kind: machine.EventInvalid}
			case ppc64SystemCall:
				return machine.Event{Kind: machine.EventSyscall}
			}
			return machine.Event{Kind: machine.EventTrap, Number: uint64(trap)}
		},
	}
	ids := map[int]int32{
		ppc64.PC: unicorn.PPCPC, ppc64.LR: unicorn.PPCLR, ppc64.CTR: unicorn.PPCCTR, ppc64.CR: unicorn.PPCCR,
	}
	for i := range 32 {
		ids[ppc64.R0+i] = unicorn.PPCR0 + int32(i)
	}
	s.links = links(f, ids)
	return s
}

func ppc64Skip(inst *decode.Inst) string {
	switch word := ppc64.WordOf(inst); {
	case inst.Len == 8:
		return "prefixed instructions, which the engine does not know"
	case crashes(word):
		return "dcbz and stores of several registers, on which the engine crashes"
	case readsFPSCR(word):
		return "reads of FPSCR, which the engine does not keep"
	case inst.Has(decode.Privileged):
		return "privileged"
	case inst.Flow == decode.FlowSyscall:
		return "system calls"
	case ppc64.Volatile(inst):
		return "results that vary: clocks, random numbers, CPU identity"
	}
	return ""
}

// Instructions that the engine runs wrongly.
const (
	maskX     = 63<<26 | 0x3ff<<1
	insnDCBZ  = 31<<26 | 1014<<1 // dcbzl likewise
	insnSTSWX = 31<<26 | 661<<1
	insnSTSWI = 31<<26 | 725<<1
	opSTMW    = 47
	insnMCRFS = 63<<26 | 64<<1
)

// crashes reports whether the engine looks for the memory of an instruction at
// its physical address, and takes the virtual one for it.
func crashes(word uint32) bool {
	switch word & maskX {
	case insnDCBZ, insnSTSWX, insnSTSWI:
		return true
	}
	return word>>26 == opSTMW
}

// readsFPSCR reports whether an instruction reads FPSCR: mffs and its kin,
// mcrfs, and those that record in CR1. In the engine's library, what writes
// FPSCR was made for its 32-bit CPUs, and keeps it where a 64-bit one keeps
// something else: reads give 0. Rounding and status are among what writes, so
// that arithmetic is right.
func readsFPSCR(word uint32) bool {
	const quad = 4 // bits of the opcode of those whose last bit rounds to odd
	switch word >> 26 {
	case 59:
		return word&1 != 0
	case 63:
		return word&maskX == insnMFFS || word&maskX == insnMCRFS || word&1 != 0 && word>>1&31 != quad
	}
	return false
}

// stub is guest code that loads and stores the registers that the engine does
// not show to the host: VSX registers, XER with its carries and TAR. FPSCR is
// only loaded.
type stub struct {
	regs        *unicorn.Registers // pc, base and MSR
	load, store machine.Range
	code        []byte
	order       byteOrder
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// Where the stub and its data are, and how the data are laid out, in bytes.
const (
	stubCode   = 0x7f00_0000_0000
	stubData   = stubCode + 0x1000
	stubXER    = 64 * 16
	stubFPSCR  = stubXER + 8
	stubTAR    = stubFPSCR + 8
	stubBase   = 3 // register numbers that the stub uses
	stubIndex  = 4
	stubValue  = 5
	sprXER     = 1
	sprTAR     = 815
	insnMTSPR  = 31<<26 | 467<<1
	insnMFSPR  = 31<<26 | 339<<1
	insnMTFSF  = 63<<26 | 0xff<<17 | 711<<1 // from f0
	insnMFFS   = 63<<26 | 583<<1
	insnLXVD2X = 31<<26 | 844<<1
	insnSTXVD  = 31<<26 | 972<<1
)

// inStub reports whether a page belongs to the stub, whose translation is kept.
func inStub(page uint64) bool { return page == stubCode || page == stubData }

func newStub(e *Emulator) *stub {
	s := &stub{
		regs:  unicorn.NewRegisters([]int32{unicorn.PPCPC, unicorn.PPCR0 + stubBase, unicorn.PPCMSR}),
		order: binary.BigEndian,
	}
	if e.arch == unicorn.PPC64LE {
		s.order = binary.LittleEndian
	}
	s.emitLoad()
	s.load = machine.Range{Lo: stubCode, Hi: stubCode + uint64(len(s.code))}
	s.emitStore()
	s.store = machine.Range{Lo: s.load.Hi, Hi: stubCode + uint64(len(s.code))}
	return s
}

func (s *stub) emit(words ...uint32) {
	for _, w := range words {
		s.code = s.order.AppendUint32(s.code, w)
	}
}

func displaced(opcode, reg, offset uint32) uint32 {
	return opcode<<26 | reg<<21 | stubBase<<16 | offset
}

func special(insn, spr uint32) uint32 {
	return insn | stubValue<<21 | (spr&31)<<16 | (spr>>5)<<11
}

func (s *stub) emitVector(insn uint32) {
	for n := range uint32(64) {
		s.emit(14<<26|stubIndex<<21|n*16, insn|(n&31)<<21|stubBase<<16|stubIndex<<11|n>>5)
	}
}

func (s *stub) emitLoad() {
	s.emit(displaced(50, 0, stubFPSCR), insnMTFSF)
	s.emit(displaced(58, stubValue, stubXER), special(insnMTSPR, sprXER))
	s.emit(displaced(58, stubValue, stubTAR), special(insnMTSPR, sprTAR))
	s.emitVector(insnLXVD2X)
}

func (s *stub) emitStore() {
	s.emitVector(insnSTXVD)
	s.emit(special(insnMFSPR, sprXER), displaced(62, stubValue, stubXER))
	s.emit(special(insnMFSPR, sprTAR), displaced(62, stubValue, stubTAR))
}

// enter sets the hidden registers from in.
func (s *stub) enter(e *Emulator, in machine.State) error {
	if err := e.mem.put(machine.Part{Addr: stubCode, Code: s.code}); err != nil {
		return err
	}
	p := e.mem.page(stubData, true)
	if p == nil {
		return errArena
	}
	s.copy(e, in, e.mem.contents(p.frame), false)
	return s.run(e, s.load)
}

// leave reads the hidden registers into out.
func (s *stub) leave(e *Emulator, out machine.State) error {
	if err := s.run(e, s.store); err != nil {
		return err
	}
	p := e.mem.page(stubData, true)
	s.copy(e, out, e.mem.contents(p.frame), true)
	copy(e.mem.contents(p.frame), e.mem.before(p.frame))
	return nil
}

// copy moves the hidden registers between a state and the stub's data.
func (s *stub) copy(e *Emulator, st machine.State, data []byte, read bool) {
	word := func(value []byte, offset int) {
		if read {
			binary.LittleEndian.PutUint64(value, s.order.Uint64(data[offset:]))
		} else {
			s.order.PutUint64(data[offset:], binary.LittleEndian.Uint64(value))
		}
	}
	for n := range 64 {
		value := e.file.Bytes(st, ppc64.VSR0+n)
		word(value, n*16)
		word(value[8:], n*16+8)
	}
	word(e.file.Bytes(st, ppc64.XER), stubXER)
	word(e.file.Bytes(st, ppc64.TAR), stubTAR)
	if !read {
		// The rounding mode is all that the engine can do: enabled exceptions
		// would be raised in a 32-bit CPU.
		const roundingMode = 3
		s.order.PutUint64(data[stubFPSCR:], e.file.Word(st, ppc64.FPSCR)&roundingMode)
	}
}

func (s *stub) run(e *Emulator, r machine.Range) error {
	*s.regs.Word(0), *s.regs.Word(1), *s.regs.Word(2) = r.Lo, stubData, e.constants[0].value
	stop, number, err := e.engine.Run(s.regs, e.pc, r.Lo, r.Hi, int(r.Hi-r.Lo)/4, 1)
	if stop != unicorn.StopNone || err != nil {
		return fmt.Errorf("emulator: stub stopped (%d, %d): %w", stop, number, err)
	}
	return nil
}
