package ppc64

import (
	"errors"

	"xol/decode"
	"xol/machine"
)

// Power10 executes instructions of Power ISA 3.1 for machines of an earlier one:
// all prefixed ones but pmxv…, which work on accumulators, and those that set a
// register by a condition or reverse its bytes. It is used by one goroutine at a
// time.
type Power10 struct {
	isa     ISA
	regs    machine.WideRegisters
	operand [32]byte // of a load or store, in the order of memory
}

// NewPower10 returns an executor for one byte order.
func NewPower10(isa ISA) *Power10 { return &Power10{isa: isa} }

// ErrBoundary says that a prefixed instruction crosses a 64-byte boundary, for
// which there is an alignment interrupt [Power ISA 3.1, Book I, 1.6].
var ErrBoundary = errors.New("ppc64: a prefixed instruction crosses a 64-byte boundary")

// Knows reports whether Execute can execute inst.
func (p *Power10) Knows(inst *decode.Inst) bool {
	if inst.Len != prefixedSize {
		return computationOf(inst) != nil
	}
	switch prefixType(inst) {
	case prefix8LS, prefixMLS:
		return true
	case prefix8RR:
		return permuteOf(inst) != nil
	}
	return OpOf(inst) == OpPrefixedNop
}

// Execute does what inst does, which must be Known: in 64-bit mode, with the
// floating-point and vector facilities available. On an error, which is
// ErrBoundary or of the memory, nothing has changed; a Write of memory must
// change all of its bytes or none.
func (p *Power10) Execute(inst *decode.Inst, r machine.WideRegisters, m machine.Memory) error {
	if crossesBoundary(inst.Addr, inst.Detail) {
		return ErrBoundary
	}
	p.regs = r
	defer func() { p.regs = nil }()
	if err := p.dispatch(inst, m); err != nil {
		return err
	}
	r.SetReg(PC, inst.Next())
	return nil
}

// Types of prefixes.
const (
	prefix8LS = iota // the suffix is a load or store of its own
	prefix8RR        // the suffix is an instruction on registers of its own
	prefixMLS        // the suffix is that of an unprefixed load, store or addi
)

func prefixType(inst *decode.Inst) uint32 { return PrefixOf(inst) >> 24 & 3 }

func (p *Power10) dispatch(inst *decode.Inst, m machine.Memory) error {
	if f := computationOf(inst); f != nil {
		compute(p.regs, WordOf(inst), f)
		return nil
	}
	opcode := WordOf(inst) >> 26
	switch prefixType(inst) {
	case prefix8LS:
		return p.access(&accesses8LS[opcode], inst, m)
	case prefixMLS:
		if opcode == opADDI {
			p.regs.SetReg(R0+int(targetOf(inst)), p.address(inst))
			return nil
		}
		return p.access(&accessesMLS[opcode], inst, m)
	case prefix8RR:
		permuteOf(inst)(p.regs, inst.Detail)
	}
	return nil
}

// address returns the sum of the displacement and the program counter, a base
// register or nothing.
func (p *Power10) address(inst *decode.Inst) uint64 {
	if inst.PCRel.Kind != decode.PCRelNone {
		return inst.Target
	}
	base := uint64(0)
	if ra := WordOf(inst) >> 16 & 31; ra != 0 {
		base = p.regs.Reg(R0 + int(ra))
	}
	return base + displacement34(inst.Detail)
}

// access is a load or store: one of the functions moves the operand to or from
// registers, the first of which has the number base more than the field RT.
type access struct {
	size  int // of the operand, bytes
	base  int
	load  func(p *Power10, size, reg int)
	store func(p *Power10, size, reg int)
}

func (p *Power10) access(a *access, inst *decode.Inst, m machine.Memory) error {
	addr, operand, reg := p.address(inst), p.operand[:a.size], a.base+int(targetOf(inst))
	if a.store != nil {
		a.store(p, a.size, reg)
		return m.Write(addr, operand)
	}
	if err := m.Read(operand, addr); err != nil {
		return err
	}
	a.load(p, a.size, reg)
	return nil
}

// vr0 is the first vector register.
const vr0 = VSR0 + 32

// accesses8LS and accessesMLS are indexed by the primary opcode of the suffix.
var accesses8LS = [64]access{
	41: {4, R0, loadSigned, nil},      // plwa
	42: {8, vr0, loadDouble, nil},     // plxsd
	43: {4, vr0, loadSingle, nil},     // plxssp
	46: {8, vr0, nil, storeDouble},    // pstxsd
	47: {4, vr0, nil, storeSingle},    // pstxssp
	50: {16, VSR0, loadVector, nil},   // plxv
	51: {16, vr0, loadVector, nil},    // plxv
	54: {16, VSR0, nil, storeVector},  // pstxv
	55: {16, vr0, nil, storeVector},   // pstxv
	56: {16, R0, loadPair, nil},       // plq
	57: {8, R0, loadZero, nil},        // pld
	58: {32, VSR0, loadVectors, nil},  // plxvp
	60: {16, R0, nil, storePair},      // pstq
	61: {8, R0, nil, storeGeneral},    // pstd
	62: {32, VSR0, nil, storeVectors}, // pstxvp
}

var accessesMLS = [64]access{
	32: {4, R0, loadZero, nil},      // plwz
	34: {1, R0, loadZero, nil},      // plbz
	36: {4, R0, nil, storeGeneral},  // pstw
	38: {1, R0, nil, storeGeneral},  // pstb
	40: {2, R0, loadZero, nil},      // plhz
	42: {2, R0, loadSigned, nil},    // plha
	44: {2, R0, nil, storeGeneral},  // psth
	48: {4, VSR0, loadSingle, nil},  // plfs
	50: {8, VSR0, loadDouble, nil},  // plfd
	52: {4, VSR0, nil, storeSingle}, // pstfs
	54: {8, VSR0, nil, storeDouble}, // pstfd
}

// number returns the number that stands in some bytes of the operand.
func (p *Power10) number(at, size int) (v uint64) {
	for i := range size {
		v = v<<8 | uint64(p.operand[p.place(at, size, i)])
	}
	return v
}

func (p *Power10) setNumber(at, size int, v uint64) {
	for i := range size {
		p.operand[p.place(at, size, i)] = byte(v >> (8 * (size - 1 - i)))
	}
}

// place returns where in the operand the i-th byte of a number is, from the most
// significant one.
func (p *Power10) place(at, size, i int) int {
	if p.isa.LittleEndian {
		i = size - 1 - i
	}
	return at + i
}

func loadZero(p *Power10, size, reg int) { p.regs.SetReg(reg, p.number(0, size)) }

func loadSigned(p *Power10, size, reg int) {
	unused := 64 - 8*size
	p.regs.SetReg(reg, uint64(int64(p.number(0, size)<<unused)>>unused))
}

func storeGeneral(p *Power10, size, reg int) { p.setNumber(0, size, p.regs.Reg(reg)) }

// Unlike that of lq and stq, the order of a pair's registers is that of memory
// in both byte orders.
func loadPair(p *Power10, _, reg int) {
	p.regs.SetReg(reg, p.number(0, 8))
	p.regs.SetReg(reg+1, p.number(8, 8))
}

func storePair(p *Power10, _, reg int) {
	p.setNumber(0, 8, p.regs.Reg(reg))
	p.setNumber(8, 8, p.regs.Reg(reg+1))
}

// Scalars are in the first doubleword of a VSX register; loads clear the second.
func loadDouble(p *Power10, _, reg int) { p.regs.SetWide(reg, p.number(0, 8), 0) }

func loadSingle(p *Power10, _, reg int) { p.regs.SetWide(reg, toDouble(uint32(p.number(0, 4))), 0) }

func storeDouble(p *Power10, _, reg int) { p.setNumber(0, 8, p.regs.Reg(reg)) }

func storeSingle(p *Power10, _, reg int) { p.setNumber(0, 4, uint64(toSingle(p.regs.Reg(reg)))) }

// halves returns where the two doublewords of a vector are in 16 bytes: it is a
// number of that size.
func (p *Power10) halves(at int) (first, second int) {
	if p.isa.LittleEndian {
		return at + 8, at
	}
	return at, at + 8
}

func loadVector(p *Power10, _, reg int) { p.loadVectorAt(0, reg) }

func storeVector(p *Power10, _, reg int) { p.storeVectorAt(0, reg) }

func (p *Power10) loadVectorAt(at, reg int) {
	first, second := p.halves(at)
	p.regs.SetWide(reg, p.number(first, 8), p.number(second, 8))
}

func (p *Power10) storeVectorAt(at, reg int) {
	first, second := p.halves(at)
	low, high := p.regs.Wide(reg)
	p.setNumber(first, 8, low)
	p.setNumber(second, 8, high)
}

func loadVectors(p *Power10, _, reg int) {
	for i := range 2 {
		p.loadVectorAt(p.place(0, 2, i)*16, vectorPair(reg)+i)
	}
}

func storeVectors(p *Power10, _, reg int) {
	for i := range 2 {
		p.storeVectorAt(p.place(0, 2, i)*16, vectorPair(reg)+i)
	}
}

// vectorPair returns the first register of a pair, whose number is even: the last
// bit of its field stands for 32.
func vectorPair(reg int) int {
	n := reg - VSR0
	return VSR0 + n&^1 + n&1*32
}

// Fields of floating-point numbers: the biases of the exponents differ by bias.
const (
	bias         = 1023 - 127
	fractionBits = 52
	dropped      = fractionBits - 23 // bits of the fraction that a single has not
	signDouble   = 1 << 63
)

// toDouble converts bit by bit, so that signaling NaNs stay what they are [Power
// ISA 3.1, Book I, 4.6.2].
func toDouble(single uint32) uint64 {
	sign := uint64(single) << 32 & signDouble
	exponent, fraction := uint64(single>>23&0xff), uint64(single)<<dropped&(1<<fractionBits-1)
	switch {
	case exponent == 0xff:
		exponent = 0x7ff
	case exponent > 0:
		exponent += bias
	case fraction > 0: // denormalized
		for exponent = bias + 1; fraction>>fractionBits == 0; exponent-- {
			fraction <<= 1
		}
		fraction &= 1<<fractionBits - 1
	}
	return sign | exponent<<fractionBits | fraction
}

// toSingle converts bit by bit [Power ISA 3.1, Book I, 4.6.3]. What is too small
// for a single, for which the result is undefined, becomes 0.
func toSingle(double uint64) uint32 {
	const (
		smallest = bias - 22 // exponent of the smallest denormalized single
		implicit = 1 << fractionBits
	)
	sign := uint32(double >> 32 & (1 << 31))
	exponent, fraction := double>>fractionBits&0x7ff, double&(1<<fractionBits-1)
	switch {
	case exponent > bias:
		return sign | uint32(double>>32&(1<<30)) | uint32(double>>dropped&(1<<30-1))
	case exponent >= smallest:
		return sign | uint32((implicit|fraction)>>(bias+1+dropped-exponent))
	}
	return sign
}
