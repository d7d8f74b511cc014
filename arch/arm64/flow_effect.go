package arm64

import "xol/decode"

// shape is a group of encodings with the same fields that compute a general
// register or transfer one [Arm ARM, C4.1].
type shape uint8

const (
	shapeOther shape = iota
	shapeAddImmediate
	shapeLogicalImmediate
	shapeMoveWide
	shapeBitfield
	shapeAddShifted
	shapeAddExtended
	shapeLogicalShifted
	shapeSelect
	shapeAuthenticate // pac*, aut*, xpac*: the pointer stays what it is
	shapePair
	shapeUnsignedOffset
	shapeSignedOffset // with writeback, too
	shapeRegisterOffset
)

// shapePattern says which words have a shape.
type shapePattern struct {
	mask, value uint32
	shape       shape
}

var resultShapes = [...]shapePattern{
	{0x1f800000, 0x11000000, shapeAddImmediate},
	{0x1f000000, 0x0a000000, shapeLogicalShifted},
	{0x1f200000, 0x0b000000, shapeAddShifted},
	{0x1f800000, 0x12800000, shapeMoveWide},
	{0x1f800000, 0x12000000, shapeLogicalImmediate},
	{0x1f800000, 0x13000000, shapeBitfield},
	{0x1fe00000, 0x0b200000, shapeAddExtended},
	{0x1fe00000, 0x1a800000, shapeSelect},
	{0xffff0000, 0xdac10000, shapeAuthenticate},
}

var transferShapes = [...]shapePattern{
	{0x3b000000, 0x39000000, shapeUnsignedOffset},
	{0x3a000000, 0x28000000, shapePair},
	{0x3b200000, 0x38000000, shapeSignedOffset},
	{0x3b200c00, 0x38200800, shapeRegisterOffset},
}

func shapeOf(w uint32) shape {
	patterns := resultShapes[:]
	if isLoadStore(w) {
		patterns = transferShapes[:]
	}
	for i := range patterns {
		if p := &patterns[i]; w&p.mask == p.value {
			return p.shape
		}
	}
	return shapeOther
}

// Fields of the shapes.
func is64(w uint32) bool    { return w>>31 != 0 }
func setsS(w uint32) bool   { return w>>29&1 != 0 } // of additions
func isSub(w uint32) bool   { return w>>30&1 != 0 }
func logicOp(w uint32) byte { return byte(w >> 29 & 3) }

// The operations of logicOp.
const (
	logicAnd  = 0
	logicOrr  = 1
	logicAnds = 3
)

// addImmediate returns what is added to Rn.
func addImmediate(w uint32) int64 {
	v := int64(w>>10&0xfff) << (w >> 22 & 1 * 12)
	if isSub(w) {
		return -v
	}
	return v
}

// bitfield is what sbfm and ubfm do: take the lowest bits of Rn, extend them
// and shift them left; or, with a negative shift, take a field further up.
type bitfield struct {
	bits   uint32
	left   int32
	signed bool
}

func bitfieldOf(w uint32) (f bitfield, ok bool) {
	r, s, size := w>>16&63, w>>10&63, registerBits(w)
	f = bitfield{bits: s + 1, left: int32(size - r), signed: logicOp(w) == 0}
	switch {
	case logicOp(w)&1 != 0: // bfm
		return f, false
	case r == 0:
		f.left = 0
	case s >= r:
		f.bits, f.left = s-r+1, -int32(r)
	}
	return f, true
}

// transfer is a load or store with a plain address: a base register with an
// offset or an index.
type transfer struct {
	store     bool
	vector    bool // of vector registers
	signed    bool // a load extends the sign, to so many
	bits      uint8
	width     uint8     // bytes of each register
	registers [2]uint32 // noRegister where there is none
	base      uint32
	writeback bool
	offset    int64  // from base
	moved     int64  // by how much writeback changes base
	index     uint32 // noRegister where there is none
	option    uint32 // how the index is extended
	shift     uint32 // and shifted
}

func transferOf(inst *decode.Inst) (a transfer, ok bool) {
	w := WordOf(inst)
	s := shapeOf(w)
	if s < shapePair {
		return a, false
	}
	a = transfer{
		vector:    w>>26&1 != 0,
		registers: [2]uint32{fieldRd(inst), noRegister},
		base:      fieldRn(inst),
		index:     noRegister,
	}
	if s == shapePair {
		a.pair(inst)
		return a, true
	}
	a.single(w)
	scale := uint32(a.width)
	switch s {
	case shapeUnsignedOffset:
		a.offset = int64(w >> 10 & 0xfff * scale)
	case shapeSignedOffset:
		a.writeback, a.moved = w>>10&1 != 0, int64(int32(w<<11)>>23)
		if w>>10&3 != 1 { // not post-indexed
			a.offset = a.moved
		}
	case shapeRegisterOffset:
		a.index, a.option = fieldRm(inst), w>>13&7
		if w>>12&1 != 0 {
			a.shift = log2(a.width)
		}
	}
	return a, true
}

// pair fills in the fields of ldp, stp and their kin. The registers of stgp
// count for none: it stores a tag as well.
func (a *transfer) pair(inst *decode.Inst) {
	w := WordOf(inst)
	opc, mode := w>>30, w>>23&3
	a.store = w>>22&1 == 0
	a.registers[1] = fieldRa(inst)
	a.bits, a.width, a.signed = 64, 4<<(opc>>1), opc == 1
	switch {
	case a.vector:
		a.width, a.signed = 4<<opc, false
	case a.store && opc == 1: // stgp
		a.width, a.registers = 16, [2]uint32{noRegister, noRegister}
	}
	a.writeback, a.moved = mode&1 != 0, int64(int32(w<<10)>>25)*int64(a.width)
	if mode != 1 {
		a.offset = a.moved
	}
}

// single fills in size and direction of the other shapes.
func (a *transfer) single(w uint32) {
	size, opc := w>>30, w>>22&3
	a.width = 1 << size
	a.store = opc == 0
	a.bits = 64
	switch {
	case a.vector:
		a.width = 1 << (size | opc&2<<1)
		a.store = opc&1 == 0
	case opc == 3:
		a.signed, a.bits = true, 32
	case opc == 2 && size == 3: // prfm
		a.registers[0] = noRegister
	case opc == 2:
		a.signed = true
	}
}

func log2(width uint8) (n uint32) {
	for width > 1 {
		width >>= 1
		n++
	}
	return n
}

// callClobbers are the general registers that a called function may change
// [AAPCS64, 6.1.1].
const callClobbers = 1<<19 - 1 | 1<<linkRegister

// changedBy returns a set of general registers that holds all that inst may
// change, by number; bit 31 is the stack pointer. It is closer than resultsOf,
// to which every field is a general register.
func changedBy(inst *decode.Inst) uint32 {
	w := WordOf(inst)
	switch {
	case inst.Has(decode.Invalid):
		return all >> 32
	case inst.Flow == decode.FlowCall, inst.Flow == decode.FlowCallIndirect:
		return callClobbers
	case inst.Flow == decode.FlowSyscall:
		return resultsOf(inst)
	case inst.Flow != decode.FlowNone:
		return 0
	case OpOf(inst) == OpHint, OpOf(inst) == OpLandingPad:
		return changedByHint(w)
	}
	switch w >> 25 & 15 {
	case 7, 15:
		return changedByVector(inst)
	case 4, 6, 12, 14:
		return changedByTransfer(inst)
	case 5, 13:
		if w&0x1fe00000 == 0x1a400000 { // ccmp, ccmn
			return 0
		}
		return 1 << fieldRd(inst) &^ changesZero(w)
	case 8, 9, 10, 11:
		return resultsOf(inst) &^ changesZero(w)
	}
	return resultsOf(inst)
}

// changesZero returns the bit of register 31 where that, as the result, is not
// the stack pointer.
func changesZero(w uint32) uint32 {
	switch shapeOf(w) {
	case shapeAddImmediate, shapeAddExtended:
		if !setsS(w) {
			return 0
		}
	case shapeLogicalImmediate:
		if logicOp(w) != logicAnds {
			return 0
		}
	}
	return 1 << zeroOrSP
}

// changedByHint knows the hints that sign and strip addresses, and chkfeat.
func changedByHint(w uint32) uint32 {
	switch w >> 5 & 0x7f {
	case 8, 10, 12, 14: // pacia1716 and its kin
		return 1 << ip1
	case 7, 24, 25, 26, 27, 28, 29, 30, 31: // xpaclri, paciasp and its kin
		return 1 << linkRegister
	case 40:
		return 1 << ip0
	}
	return 0
}

// changedByVector knows the vector instructions with a general result.
func changedByVector(inst *decode.Inst) uint32 {
	w := WordOf(inst)
	opcode := w >> 16 & 7
	switch {
	case w&0x5f20fc00 == 0x1e200000: // fcvt*, fmov
		if opcode == 2 || opcode == 3 || opcode == 7 {
			return 0
		}
	case w&0x5f200000 == 0x1e000000: // fcvtz* to fixed point
		if opcode == 2 || opcode == 3 {
			return 0
		}
	case w&0xbfe0ec00 == 0x0e002c00: // smov, umov
	default:
		return 0
	}
	return 1 << fieldRd(inst)
}

func changedByTransfer(inst *decode.Inst) (set uint32) {
	w := WordOf(inst)
	switch {
	case inst.PCRel.Kind == decode.PCRelMemory:
		if OpOf(inst) == OpLoadLiteral || OpOf(inst) == OpLoadLiteralSigned {
			return 1 << fieldRd(inst) &^ (1 << zeroOrSP)
		}
		return 0
	case w&0xbe000000 == 0x0c000000: // ld1, st1 and their kin
		return w >> 23 & 1 << fieldRn(inst)
	}
	a, ok := transferOf(inst)
	if !ok {
		return resultsOf(inst) &^ (1 << zeroOrSP)
	}
	if !a.store && !a.vector {
		for _, r := range a.registers {
			if r != noRegister {
				set |= 1 << r
			}
		}
		set &^= 1 << zeroOrSP
	}
	if a.writeback {
		set |= 1 << a.base
	}
	return set
}

// setsFlags reports whether inst may change the condition flags.
func setsFlags(inst *decode.Inst) bool {
	w := WordOf(inst)
	switch {
	case inst.Has(decode.Invalid):
		return true
	case inst.Flow == decode.FlowJump, inst.Flow == decode.FlowJumpIf:
		return false
	case inst.Flow != decode.FlowNone:
		return true
	}
	switch OpOf(inst) {
	case OpOther, OpLoadExclusive, OpStoreExclusive:
	case OpState, OpSystemRegister, OpSystem, OpPrivileged, OpMOPSPrologue, OpMOPSMain, OpMOPSEpilogue:
		return true
	default:
		return false
	}
	switch w >> 25 & 15 {
	case 8, 9, 10, 11:
		s := shapeOf(w)
		return s == shapeAddImmediate && setsS(w) || s == shapeLogicalImmediate && logicOp(w) == logicAnds
	case 5:
		if shapeOf(w) == shapeLogicalShifted {
			return logicOp(w) == logicAnds
		}
		return setsS(w)
	case 13:
		return w>>24&15 != 11 && setsS(w) // not the multiplications
	case 7, 15:
		return w&0xff20fc00 == 0x1e202000 || w&0xff200c00 == 0x1e200400 // fcmp, fccmp
	case 4, 6, 12, 14:
		return setsFlagsByTransfer(w)
	}
	return true
}

// setsFlagsByTransfer leaves out the transfers that are known not to: some of the
// newer ones do (rcwcas).
func setsFlagsByTransfer(w uint32) bool {
	const (
		exclusive = 0x08000000
		atomic    = 0x38200000
		structure = 0x0c000000 // ld1 and its kin
	)
	return shapeOf(w) == shapeOther && w&0x3f000000 != exclusive && w&0x3b200c00 != atomic && w&0x3e000000 != structure
}
