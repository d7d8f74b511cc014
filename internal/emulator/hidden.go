//go:build unicorn

package emulator

import (
	"encoding/binary"
	"fmt"

	"xol/arch/ppc64"
	"xol/internal/unicorn"
	"xol/machine"
)

// Hidden is guest code that loads and stores the registers that the engine does
// not show to the host: VSX registers, XER with its carries and TAR. FPSCR is
// only loaded. A page with Code at HiddenCode, and one for data at HiddenData,
// must be mapped while it runs. It changes r3, r4 and r5, and f0.
type Hidden struct {
	// Code loads the registers and, after a trap, stores them and traps again.
	Code []byte

	regs        *unicorn.Registers // pc, base and MSR
	file        *machine.File
	msr         uint64
	load, store machine.Range // without the traps
	order       byteOrder
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// Where the code and its data are.
const (
	HiddenCode = 0x7f00_0000_0000
	HiddenData = HiddenCode + unicorn.PageSize
)

// How the data are laid out, in bytes, and what the code is made of.
const (
	hiddenXER   = 64 * 16
	hiddenFPSCR = hiddenXER + 8
	hiddenTAR   = hiddenFPSCR + 8

	hiddenBase  = 3 // register numbers
	hiddenIndex = 4
	hiddenValue = 5

	sprXER     = 1
	sprTAR     = 815
	insnMTSPR  = 31<<26 | 467<<1
	insnMFSPR  = 31<<26 | 339<<1
	insnMTFSF  = 63<<26 | 0xff<<17 | 711<<1 // from f0
	insnLXVD2X = 31<<26 | 844<<1
	insnSTXVD  = 31<<26 | 972<<1
	insnTrap   = 31<<26 | 31<<21 | 4<<1
)

// isHidden reports whether a page is the host's own.
func isHidden(page uint64) bool { return page == HiddenCode || page == HiddenData }

// NewHidden returns what reaches the hidden registers; nil where there are none.
func (m *Model) NewHidden(f *machine.File) *Hidden {
	if m.Arch != unicorn.PPC64 && m.Arch != unicorn.PPC64LE {
		return nil
	}
	h := &Hidden{
		regs:  unicorn.NewRegisters([]int32{unicorn.PPCPC, unicorn.PPCR0 + hiddenBase, unicorn.PPCMSR}),
		file:  f,
		msr:   m.Constants[0].Value,
		order: binary.BigEndian,
	}
	if m.Arch == unicorn.PPC64LE {
		h.order = binary.LittleEndian
	}
	h.emitLoad()
	h.load = machine.Range{Lo: HiddenCode, Hi: h.end()}
	h.emit(insnTrap)
	h.store.Lo = h.end()
	h.emitStore()
	h.store.Hi = h.end()
	h.emit(insnTrap)
	return h
}

// Free frees what NewHidden allotted.
func (h *Hidden) Free() { h.regs.Free() }

func (h *Hidden) end() uint64 { return HiddenCode + uint64(len(h.Code)) }

func (h *Hidden) emit(words ...uint32) {
	for _, w := range words {
		h.Code = h.order.AppendUint32(h.Code, w)
	}
}

func displaced(opcode, reg, offset uint32) uint32 {
	return opcode<<26 | reg<<21 | hiddenBase<<16 | offset
}

func special(insn, spr uint32) uint32 {
	return insn | hiddenValue<<21 | (spr&31)<<16 | (spr>>5)<<11
}

func (h *Hidden) emitVector(insn uint32) {
	for n := range uint32(64) {
		h.emit(14<<26|hiddenIndex<<21|n*16, insn|(n&31)<<21|hiddenBase<<16|hiddenIndex<<11|n>>5)
	}
}

func (h *Hidden) emitLoad() {
	h.emit(displaced(50, 0, hiddenFPSCR), insnMTFSF)
	h.emit(displaced(58, hiddenValue, hiddenXER), special(insnMTSPR, sprXER))
	h.emit(displaced(58, hiddenValue, hiddenTAR), special(insnMTSPR, sprTAR))
	h.emitVector(insnLXVD2X)
}

func (h *Hidden) emitStore() {
	h.emitVector(insnSTXVD)
	h.emit(special(insnMFSPR, sprXER), displaced(62, hiddenValue, hiddenXER))
	h.emit(special(insnMFSPR, sprTAR), displaced(62, hiddenValue, hiddenTAR))
}

// enter sets the hidden registers from in.
func (e *Emulator) enter(in machine.State) error {
	if err := e.mem.put(machine.Part{Addr: HiddenCode, Code: e.hidden.Code}); err != nil {
		return err
	}
	p := e.mem.page(HiddenData, true)
	if p == nil {
		return errArena
	}
	e.hidden.toData(e.mem.contents(p.frame), in)
	return e.runHidden(e.hidden.load)
}

// leave reads the hidden registers into out.
func (e *Emulator) leave(out machine.State) error {
	if err := e.runHidden(e.hidden.store); err != nil {
		return err
	}
	p := e.mem.page(HiddenData, true)
	e.hidden.fromData(out, e.mem.contents(p.frame))
	copy(e.mem.contents(p.frame), e.mem.before(p.frame))
	return nil
}

func (e *Emulator) runHidden(r machine.Range) error {
	h := e.hidden
	h.prepare(r)
	stop, number, err := e.engine.Run(h.regs, e.pc, r.Lo, r.Hi, int(r.Hi-r.Lo)/4, 1)
	if stop != unicorn.StopNone || err != nil {
		return fmt.Errorf("emulator: hidden registers: stop %d, exception %d: %w", stop, number, err)
	}
	return nil
}

func (h *Hidden) prepare(r machine.Range) {
	*h.regs.Word(0), *h.regs.Word(1), *h.regs.Word(2) = r.Lo, HiddenData, h.msr
}

// Load sets the hidden registers of a watched engine from st. data is the page
// at HiddenData.
func (h *Hidden) Load(e *unicorn.Engine, data []byte, st machine.State) error {
	h.toData(data, st)
	return h.goUnwatched(e, h.load)
}

// Store reads the hidden registers of a watched engine into st.
func (h *Hidden) Store(e *unicorn.Engine, data []byte, st machine.State) error {
	if err := h.goUnwatched(e, h.store); err != nil {
		return err
	}
	h.fromData(st, data)
	return nil
}

func (h *Hidden) goUnwatched(e *unicorn.Engine, r machine.Range) error {
	h.prepare(r)
	stop, number, err := e.GoUnwatched(h.regs, r.Lo)
	if stop != unicorn.StopTrap || err != nil {
		return fmt.Errorf("emulator: hidden registers: stop %d, exception %d: %w", stop, number, err)
	}
	return nil
}

// each calls f with every hidden word of a state, and its place in the data.
func (h *Hidden) each(st machine.State, f func(value []byte, offset int)) {
	for n := range 64 {
		value := h.file.Bytes(st, ppc64.VSR0+n)
		f(value, n*16)
		f(value[8:], n*16+8)
	}
	f(h.file.Bytes(st, ppc64.XER), hiddenXER)
	f(h.file.Bytes(st, ppc64.TAR), hiddenTAR)
}

func (h *Hidden) toData(data []byte, st machine.State) {
	h.each(st, func(value []byte, offset int) {
		h.order.PutUint64(data[offset:], binary.LittleEndian.Uint64(value))
	})
	// The rounding mode is all that the engine can do: enabled exceptions
	// would be raised in a 32-bit CPU.
	const roundingMode = 3
	h.order.PutUint64(data[hiddenFPSCR:], h.file.Word(st, ppc64.FPSCR)&roundingMode)
}

func (h *Hidden) fromData(st machine.State, data []byte) {
	h.each(st, func(value []byte, offset int) {
		binary.LittleEndian.PutUint64(value, h.order.Uint64(data[offset:]))
	})
}
