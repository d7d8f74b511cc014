package ppc64

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"xol/internal/skip"
)

// A guest is a static program for qemu's user mode that runs pieces of code
// from given states. Each piece ends where it reaches a word of zeros, which is
// no instruction, or touches what is not there: the program's signal handler
// then writes out the registers and memory that the piece left, and returns
// into the next one with all registers set. It is assembled here, since no
// compiler for the ISA is needed for so little.
type guest struct {
	isa      ISA
	order    byteOrder
	segments []guestSegment
	states   []guestState
	runs     []guestRun
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// guestSegment is memory of the program that pieces of code are put into.
type guestSegment struct {
	addr uint64
	mem  []byte
}

// guestState is what registers and memory hold at first, in the program's byte
// order, and guestResult what they hold in the end.
type (
	guestState  []byte
	guestResult []byte
)

// guestRun is one execution: from which state, of the code at start, with r31
// and the data window at data.
type guestRun struct {
	state       int
	start, data uint64
}

// The parts of a state: registers as a signal frame has them, then memory.
// What the frame calls a trap number is TAR here, and its result is the number
// of the signal.
const (
	guestNIP     = 32 * 8
	guestMSR     = 33 * 8
	guestCTR     = 35 * 8
	guestLR      = 36 * 8
	guestXER     = 37 * 8
	guestCR      = 38 * 8
	guestTAR     = 40 * 8
	guestSignal  = 43 * 8
	guestFPR     = 48 * 8
	guestFPSCR   = guestFPR + 32*8
	guestVectors = guestFPR + 33*8
	guestVR      = guestVectors
	guestLow     = guestVR + 34*16 // the second doublewords of vs0 to vs31
	guestData    = guestLow + 32*8
	guestStack   = guestData + guestDataSize
	guestSize    = guestStack + guestStackSize

	guestDataSize  = 64
	guestStackSize = 1024
)

// Where the program keeps what, and what it keeps at its beginning.
const (
	guestBase      = 0x1000_0000
	guestText      = guestBase + 0x1000 // apart from what is stored to
	guestStates    = guestBase + 0x2000
	guestStackAt   = 0x2000_0000
	guestSignalsAt = 0x2100_0000
	guestSignals   = 1 << 16 // size of the signals' stack

	baseCurrent   = 0 // the run's entry in the table
	baseAltStack  = 16
	baseSigaction = 40
	guestRunSize  = 32 // bytes: state, start, data
)

// Numbers of system calls and signals.
const (
	sysWrite       = 4
	sysSigreturn   = 172
	sysSigaction   = 173
	sysSigaltstack = 185
	sysExitGroup   = 234

	sigILL  = 4
	sigTRAP = 5
	sigBUS  = 7
	sigSEGV = 11

	saSiginfo, saOnStack, saNoDefer = 4, 0x08000000, 0x40000000
)

// Instructions of the program, beside those of emit.go.
func dForm(opcode, rt, ra uint32, d int) uint32 {
	return opcode<<26 | rt<<21 | ra<<16 | uint32(d)&0xffff
}
func li(rt uint32, v int) uint32       { return dForm(14, rt, 0, v) }
func lis(rt uint32, v int) uint32      { return dForm(15, rt, 0, v) }
func addi(rt, ra uint32, v int) uint32 { return dForm(14, rt, ra, v) }
func ld(rt, ra uint32, d int) uint32   { return dForm(58, rt, ra, d) }
func std(rs, ra uint32, d int) uint32  { return dForm(62, rs, ra, d) }
func mr(ra, rs uint32) uint32          { return insnMR | rs<<21 | ra<<16 | rs<<11 }
func mtspr(spr, rs uint32) uint32      { return insnMTSPR | rs<<21 | sprField(spr) }
func mfspr(rt, spr uint32) uint32      { return insnMFSPR | rt<<21 | sprField(spr) }
func bdnz(words int) uint32            { return 0x42000000 | uint32(words*4)&0xfffc }
func beq(words int) uint32             { return 0x41820000 | uint32(words*4)&0xfffc }
func cmpdi(ra uint32, v int) uint32    { return dForm(11, 1, ra, v) }
func concat(parts ...[]uint32) (w []uint32) {
	for _, p := range parts {
		w = append(w, p...)
	}
	return w
}

const (
	insnSC  = 0x44000002
	insnBLR = 0x4e800020
)

// copyWords copies n doublewords from what r4 points to, to what r3 points to.
func copyWords(n int) []uint32 {
	return []uint32{li(5, n), mtspr(sprCTR, 5), ld(6, 4, 0), std(6, 3, 0), addi(4, 4, 8), addi(3, 3, 8), bdnz(-4)}
}

// write writes n bytes from what r4 points to.
func write(n int) []uint32 { return []uint32{li(0, sysWrite), li(3, 1), li(5, n), insnSC} }

// The registers that the handler keeps: what it returns to, the frame's
// general and vector registers, this program's base, the run and its state.
const (
	hReturn, hRegs, hVectors, hBase, hRun, hState, hData, hStack = 31, 30, 29, 28, 27, 26, 25, 24
)

// handler is the signal handler: r3 is the signal, r5 the context.
func handler() []uint32 {
	const (
		regsInContext = 232
		vectorPointer = guestVectors
		entrySize     = guestRunSize
		vectorWords   = (guestData - guestVectors) / 8
	)
	dump := concat(
		[]uint32{
			mfspr(hReturn, sprLR),
			addi(hRegs, 5, regsInContext),
			ld(hVectors, hRegs, vectorPointer),
			lis(hBase, guestBase>>16),
			lis(hStack, guestStackAt>>16),
			mfspr(4, sprTAR), std(4, hRegs, guestTAR), std(3, hRegs, guestSignal),
			ld(hRun, hBase, baseCurrent), ld(hData, hRun, 16),
			mr(4, hRegs)}, write(guestVectors),
		[]uint32{mr(4, hVectors)}, write(guestData-guestVectors),
		[]uint32{mr(4, hData)}, write(guestDataSize),
		[]uint32{mr(4, hStack)}, write(guestStackSize),
	)
	next := concat(
		[]uint32{mr(3, hRegs), mr(4, hState)}, copyWords(guestVectors/8),
		[]uint32{mr(3, hVectors)}, copyWords(vectorWords),
		[]uint32{mr(3, hData)}, copyWords(guestDataSize/8),
		[]uint32{mr(3, hStack)}, copyWords(guestStackSize/8),
		[]uint32{
			ld(4, hRun, 8), std(4, hRegs, guestNIP),
			std(hData, hRegs, 31*8),
			ld(4, hState, guestTAR), mtspr(sprTAR, 4),
			mtspr(sprLR, hReturn), insnBLR},
	)
	return concat(dump,
		[]uint32{
			addi(hRun, hRun, entrySize), std(hRun, hBase, baseCurrent),
			ld(hState, hRun, 0), ld(hData, hRun, 16),
			cmpdi(hState, 0), beq(1 + len(next))},
		next,
		[]uint32{li(0, sysExitGroup), li(3, 0), insnSC})
}

// start sets the handler up, and enters it for the first time.
func start() []uint32 {
	w := []uint32{
		lis(hBase, guestBase>>16),
		addi(3, hBase, baseAltStack), li(4, 0), li(0, sysSigaltstack), insnSC}
	for _, signal := range []int{sigILL, sigTRAP, sigBUS, sigSEGV} {
		w = append(w, li(3, signal), addi(4, hBase, baseSigaction), li(5, 0), li(6, 8), li(0, sysSigaction), insnSC)
	}
	return append(w, 0)
}

// words appends instructions in the program's byte order.
func (g *guest) words(b []byte, words []uint32) []byte {
	for _, w := range words {
		b = g.order.AppendUint32(b, w)
	}
	return b
}

// base returns the program's own segment. Its table of runs starts with one
// that only names memory to write out, for the first signal.
func (g *guest) base() []byte {
	entry, handle := start(), handler()
	mem := make([]byte, guestStates-guestBase)
	table := uint64(guestStates + len(g.states)*guestSize)
	handlerAt := uint64(guestText + 4*len(entry))
	for i, v := range []uint64{
		0:                   table,
		baseAltStack / 8:    guestSignalsAt,
		baseAltStack/8 + 2:  guestSignals,
		baseSigaction / 8:   handlerAt,
		baseSigaction/8 + 1: saSiginfo | saOnStack | saNoDefer,
		baseSigaction/8 + 3: 0,
	} {
		g.order.PutUint64(mem[8*i:], v)
	}
	copy(mem[guestText-guestBase:], g.words(g.words(nil, entry), handle))
	for _, s := range g.states {
		mem = append(mem, s...)
	}
	runs := append([]guestRun{{data: guestStackAt}}, g.runs...)
	for i, r := range runs {
		state := uint64(guestStates + r.state*guestSize)
		for _, v := range []uint64{state, r.start, r.data, uint64(i)} {
			mem = g.order.AppendUint64(mem, v)
		}
	}
	return append(mem, make([]byte, guestRunSize)...)
}

// elf returns the program as an ELF file of ABI version 2.
func (g *guest) elf() []byte {
	segments := append([]guestSegment{
		{guestBase, g.base()},
		{guestStackAt, make([]byte, guestStackSize)},
		{guestSignalsAt, make([]byte, guestSignals)},
	}, g.segments...)
	const headerSize, programSize, page = 64, 56, 0x10000
	data := byte(2)
	if g.isa.LittleEndian {
		data = 1
	}
	file := []byte{0x7f, 'E', 'L', 'F', 2, data, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	half := func(v ...uint16) {
		for _, x := range v {
			file = g.order.AppendUint16(file, x)
		}
	}
	quad := func(v ...uint64) {
		for _, x := range v {
			file = g.order.AppendUint64(file, x)
		}
	}
	half(2, 21) // ET_EXEC, EM_PPC64
	file = g.order.AppendUint32(file, 1)
	quad(guestText, headerSize, 0)
	file = g.order.AppendUint32(file, 2) // ABI version
	half(headerSize, programSize, uint16(len(segments)), 0, 0, 0)
	offset := uint64(page)
	for _, s := range segments {
		size := uint64(len(s.mem))
		file = g.order.AppendUint32(file, 1) // PT_LOAD
		file = g.order.AppendUint32(file, 7) // RWX
		quad(offset, s.addr, s.addr, size, size, page)
		offset += (size + page - 1) &^ (page - 1)
	}
	for _, s := range segments {
		file = append(file, make([]byte, -len(file)&(page-1))...)
		file = append(file, s.mem...)
	}
	return file
}

// run executes all runs and returns their results. It skips the test where the
// emulator is not installed.
func (g *guest) run(t *testing.T) []guestResult {
	t.Helper()
	qemu, err := exec.LookPath("qemu-" + g.isa.Name())
	if err != nil {
		skip.Missing(t, "qemu-user", "qemu-"+g.isa.Name())
	}
	program := filepath.Join(t.TempDir(), "guest")
	if err := os.WriteFile(program, g.elf(), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(qemu, "-cpu", "power10", program)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || len(out) != guestSize*(len(g.runs)+1) {
		t.Fatalf("%s: %v, %d bytes of %d written: %s", qemu, err, len(out), guestSize*(len(g.runs)+1), stderr.Bytes())
	}
	results := make([]guestResult, len(g.runs))
	for i := range results {
		results[i] = out[guestSize*(i+1):][:guestSize]
	}
	return results
}
