package amd64

import (
	"encoding/binary"

	"xol/decode"
)

//go:generate go run gen.go

// Decode decodes one instruction of 64-bit mode; see decode.Decoder.
//
// Bytes are an instruction where the manuals of Intel, AMD or VIA define them
// as one, up to the extensions of 2024: APX and User MSR are in, AVX10.2 is not.
// What raises #UD on every processor by its encoding alone is none, but for
// UD0, UD1 and UD2, which are there to do so. Where manuals differ or say
// nothing:
//
//   - A near branch with an operand-size prefix (66 E8, 66 E9, 66 0F 8x, …) is
//     as long, and goes where, Intel says: the prefix has no effect. AMD
//     truncates the new RIP to 16 bits. Branch66 tells such branches.
//   - UD0 (0F FF) has a ModRM byte, as on Intel's current processors.
//   - 0F 0D with a register, a NOP for Intel, is an instruction, and so are the
//     reserved NOPs 0F 18 to 0F 1F and the x87 aliases that all processors
//     execute, but not after REX2.
//   - LOCK MOV CR0 is AMD's way to CR8.
//   - Bits that extend a register number where the register has no such
//     extension are ignored in ModRM.rm and #UD in ModRM.reg and vvvv, as
//     processors do with opmask registers; EVEX.B4 and X4 are ignored where
//     no general register needs them.
//
// Detail says what inst.Detail holds, Op what inst.Op does.
func (ISA) Decode(inst *decode.Inst, code []byte, addr uint64) error {
	if len(code) < fetchLen {
		return decodeShort(inst, code, addr)
	}
	w := (*fetch)(code)

	// The usual: at most a REX prefix, and the one-byte map or 0F. What
	// follows is set in the branches, so that a processor that foresees
	// them need not wait for what it reads.
	var d Detail
	op, m, end, size := w[0], w[1], uint64(1), uint(0)
	a := legacyEntries[op]
	if a&attrREX != 0 {
		d = rexDetails[op&15]
		op, m, end, size = m, w[2], 2, uint(op)&8
		a = legacyEntries[op]
	}
	if op == 0x0f {
		op = m
		end++
		m = w[end]
		a = legacyEntries[map0F+uint(op)]
		d |= Detail(Map0F) << mapAt
	}
	d |= Detail(op)
	if a&attrValid == 0 {
		if a&attrGroup != 0 {
			a = a.group(m)
		}
		if a&attrValid == 0 {
			if a&attrEscape != 0 {
				d, end, a = w.prefixed()
			} else {
				end, a = w.match(d, end-1, a.place(), d.legacyKey())
			}
			if a == 0 {
				return fail(inst, addr, end)
			}
			end++
			m = w[end&15]
			if a&attrNoMem != 0 {
				m |= 0xc0
			}
			size = d.immSize()
		}
	}

	// ModRM, SIB and displacement: without a branch for those that are absent.
	hasModRM := uint64(int32(a<<(31-attrModRMAt)) >> 31)
	d |= Detail(m) << modRMAt & Detail(hasModRM)
	l := layout(operands[m].layout & hasModRM)
	scale := operands[m].scale&hasModRM | 1<<opcodeAt
	if l&layoutBase != 0 && w[(end+1)&15]&7 == 5 {
		l += 3<<dispAt | 4<<dispLenAt | 4<<lengthAt
		scale |= 1 << dispAt
	}
	immAt := end + uint64(l)>>lengthAt&15
	l = l&(1<<immOffsetAt-1) + layout((end-1)*scale)

	immLen := uint64(a>>(size&31)) & 15
	end = immAt + immLen
	if end > maxLen || a.leaOf(m) {
		return fail(inst, addr, end)
	}
	inst.Len = uint8(end)
	opFacts[a>>attrPrivAt].store(inst)
	mask := &lengthMasks[end&15]
	binary.LittleEndian.PutUint64(inst.Raw[:8], binary.LittleEndian.Uint64(w[:8])&mask[0])
	binary.LittleEndian.PutUint64(inst.Raw[8:], binary.LittleEndian.Uint64(w[8:16])&mask[1])
	inst.Addr = addr
	inst.Detail = uint64(d)

	l |= layout(immAt&-((immLen+15)>>4)) << immOffsetAt
	l |= layout(1<<kindAt|immAt<<offsetAt|immLen<<(widthAt+3)) & -layout(a>>attrBranchAt&1)
	l |= l >> 1 & layout(a>>attrLeaAt) & 1 // not memory but its address
	relative := (uint64(l&3) + 3) >> 2
	inst.Target = (addr + end + w.displacement(l)) & -relative
	l.store(inst)
	inst.Fields.ImmLen = uint8(immLen)
	inst.Props |= decode.Props(relative)
	if a&attrRare != 0 {
		rare(inst, a)
	}
	return nil
}

// rare completes the instructions that are unlike all others.
func rare(inst *decode.Inst, a attr) {
	f := &inst.Fields
	switch {
	case a&attrMoffs != 0:
		f.Disp, f.DispLen = f.Imm, f.ImmLen
		f.Imm, f.ImmLen = 0, 0
	case a&attrSuffix != 0:
		f.Opcode = f.Imm
		f.Imm, f.ImmLen = 0, 0
	case a&attrAddress != 0:
		inst.Target = binary.LittleEndian.Uint64(inst.Raw[f.Imm&7:])
	}
	if a&attrAddr32 != 0 && inst.PCRel.Kind > decode.PCRelBranch {
		inst.Target &= 1<<32 - 1
	}
}

// fail overwrites inst and tells the error where need bytes say that there is no
// instruction.
func fail(inst *decode.Inst, addr, need uint64) error {
	*inst = decode.Inst{Addr: addr}
	if need > maxLen {
		return decode.ErrTooLong
	}
	return decode.ErrInvalid
}

// decodeShort decodes code that is shorter than what Decode reads at once.
func decodeShort(inst *decode.Inst, code []byte, addr uint64) error {
	var w fetch
	copy(w[:], code)
	err := ISA{}.Decode(inst, w[:], addr)
	need := uint64(inst.Len)
	if err != nil {
		var a attr
		if _, need, a = w.prefixed(); a != 0 || need > maxLen {
			need = maxLen // of an instruction that is too long
		}
	}
	if need > uint64(len(code)) {
		err = decode.ErrTruncated
	}
	if err != nil {
		*inst = decode.Inst{Addr: addr}
	}
	return err
}

const (
	// maxLen is the length in bytes of the longest instruction.
	maxLen = 15

	// fetchLen is how many bytes are read at once. Offsets into them are
	// masked with 15, which spares the checks of bounds, and up to four
	// bytes are read there; what wraps is longer than maxLen and refused.
	fetchLen = 20
)

// A fetch is the bytes that an instruction starts with, and more.
type fetch [fetchLen]byte

// displacement returns the PC-relative field of l, extended; something where
// there is none.
func (w *fetch) displacement(l layout) uint64 {
	at := l >> offsetAt & 15
	unused := -(l >> widthAt) & 31 // bits of 32
	return uint64(int32(binary.LittleEndian.Uint32(w[at:at+4])) << unused >> unused)
}

// A layout is the bytes of decode.Inst from PCRel.Kind to Fields.Imm in one
// word: so they are computed together and stored at once.
type layout uint64

// The places in layout.
const (
	kindAt      = 0
	offsetAt    = 8
	widthAt     = 16
	opcodeAt    = 24
	modRMPlace  = 32
	dispAt      = 40
	dispLenAt   = 48
	immOffsetAt = 56

	// In an operand, the highest bits hold the length of ModRM, SIB and
	// displacement, and whether a base of 5 in SIB means 4 bytes more.
	lengthAt   = 56
	layoutBase = 1 << 63
)

// store sets the fields of inst that l holds. The compiler makes one store.
func (l layout) store(inst *decode.Inst) {
	inst.PCRel.Kind = decode.PCRelKind(l >> kindAt)
	inst.PCRel.Offset = uint8(l >> offsetAt)
	inst.PCRel.Width = uint8(l >> widthAt)
	inst.Fields.Opcode = uint8(l >> opcodeAt)
	inst.Fields.Operands = uint8(l >> modRMPlace)
	inst.Fields.Disp = uint8(l >> dispAt)
	inst.Fields.DispLen = uint8(l >> dispLenAt)
	inst.Fields.Imm = uint8(l >> immOffsetAt)
}

// An operand says what a ModRM byte is followed by: the layout for an opcode at
// 0, and what the place of the opcode adds to.
type operand struct{ layout, scale uint64 }

// Offsets of opcode maps in legacyEntries. After map0F, each map has a table
// for each mandatory prefix.
const (
	map0F   = 1 * 256
	map0F38 = 5 * 256
	map0F3A = 9 * 256
)

// attr says what follows an opcode and what the instruction is.
type attr uint32

// The bits of attr. Where attrValid is not set, the low bits are the place of
// a group or of forms.
const (
	attrLens     attr = 0xfff   // length of the immediate for operands of 32, 16 and 64 bits
	attrBranchAt      = 12      // the immediate is a displacement of the branch target
	attrMoffs    attr = 1 << 13 // the immediate is an absolute address
	attrModRMAt       = 14
	attrNoMem    attr = 1 << 15 // ModRM.mod is ignored
	attrLeaAt         = 16
	attrValid    attr = 1 << 17
	attrGroup    attr = 1 << 18 // by bits 3-7 of ModRM
	attrEscape   attr = 1 << 19 // no opcode, but a byte before one
	attrREX      attr = 1 << 20
	attrPrivAt        = 25 // decode.Privileged
	attrOpAt          = 26 // Op, to the highest bit

	// attrLens where the size of operands does not matter.
	lens1 attr = 0x111
	lens4 attr = 0x444
	lens8 attr = 0x888

	// In what prefixed returns the highest bits have other meanings.
	attrAddr32  = attrGroup  // 67: RIP-relative means EIP-relative
	attrSuffix  = attrEscape // 3DNow!: the immediate is the opcode
	attrAddress = attrREX    // JMPABS: the immediate is the branch target

	attrRare = attrMoffs | attrSuffix | attrAddress | attrAddr32
)

// leaOf reports whether an instruction that takes the address of its operand
// has a register there, which is no group's matter because LEA is so frequent.
func (a attr) leaOf(modRM byte) bool { return a>>attrLeaAt&attr((modRM>>7)&(modRM>>6))&1 != 0 }

// place returns the place of an entry's group or forms.
func (a attr) place() uint64 { return uint64(a & 0xffff) }

// group returns the entry of a group for a ModRM byte.
func (a attr) group(modRM byte) attr {
	return groups[(a.place()+uint64(modRM>>3))%uint64(len(groups))]
}

// The places in Detail.
const (
	modRMAt     = 8
	encodingAt  = 16
	mapAt       = 20
	prefixesAt  = 24
	addr32At    = 25 // Prefix67
	lockAt      = 28 // PrefixLock
	wAt         = 35
	rAt         = 36
	xAt         = 37
	bAt         = 38
	r4At        = 39
	x4At        = 40
	b4At        = 41
	vvvvAt      = 42
	v4At        = 46
	vectorLenAt = 47
	ppAt        = 49
	evexBAt     = 51
	evexZAt     = 52
	evexAAAAt   = 53
	countAt     = 56
	rexAt       = 60
)

// rexDetails are the Details of the REX bytes.
var rexDetails = [16]Detail{
	bitREX, bitREX | bitB, bitREX | bitX, bitREX | bitX | bitB,
	bitREX | bitR, bitREX | bitR | bitB, bitREX | bitR | bitX, bitREX | bitR | bitX | bitB,
	bitREX | bitW, bitREX | bitW | bitB, bitREX | bitW | bitX, bitREX | bitW | bitX | bitB,
	bitREX | bitW | bitR, bitREX | bitW | bitR | bitB, bitREX | bitW | bitR | bitX, bitREX | bitW | bitR | bitX | bitB,
}

const (
	bitREX = 1 << rexAt
	bitW   = 1 << wAt
	bitR   = 1 << rAt
	bitX   = 1 << xAt
	bitB   = 1 << bAt
)

// immSize returns where attrLens has the length of the immediate.
func (d Detail) immSize() uint {
	if d.W() != 0 {
		return 8
	}
	return uint(d>>prefixesAt) & 1 << 2
}

// byteClass says whether a byte is a prefix: the bit of Prefixes, or classREX.
type byteClass uint16

const (
	classPrefixes byteClass = 0x7ff
	classREX      byteClass = 1 << 11
)

var byteClasses = [256]byteClass{
	0x66: byteClass(Prefix66), 0x67: byteClass(Prefix67), 0xf0: byteClass(PrefixLock),
	0xf2: byteClass(PrefixF2), 0xf3: byteClass(PrefixF3),
	0x2e: byteClass(PrefixCS), 0x36: byteClass(PrefixSS), 0x3e: byteClass(PrefixDS),
	0x26: byteClass(PrefixES), 0x64: byteClass(PrefixFS), 0x65: byteClass(PrefixGS),
	0x40: classREX, 0x41: classREX, 0x42: classREX, 0x43: classREX,
	0x44: classREX, 0x45: classREX, 0x46: classREX, 0x47: classREX,
	0x48: classREX, 0x49: classREX, 0x4a: classREX, 0x4b: classREX,
	0x4c: classREX, 0x4d: classREX, 0x4e: classREX, 0x4f: classREX,
}

// mandatoryPP is pp by the lowest bits of Prefixes: for 66, F2 and F3.
var mandatoryPP = [16]uint8{Prefix66: 1, PrefixF2: 3, PrefixF3: 2}

// prefixed reads all there can be up to the opcode. It returns what it read,
// the place of the opcode and its attributes; or, where there is no
// instruction, the number of bytes that tell so and 0.
func (w *fetch) prefixed() (Detail, uint64, attr) {
	// Again the usual: one mandatory prefix, at most a REX prefix, and 0F.
	first := byteClasses[w[0]]
	if pp := mandatoryPP[first&15]; pp != 0 {
		d := Detail(first)<<prefixesAt | 1<<countAt | Detail(Map0F)<<mapAt
		pos := uint64(1)
		if b := w[1]; b>>4 == 4 {
			d |= rexDetails[b&15]
			pos = 2
		}
		op := w[pos+1]
		a := legacyEntries[map0F+uint64(pp)<<8+uint64(op)]
		if w[pos] == 0x0f && a&attrValid != 0 {
			return d | Detail(op), pos + 1, a
		}
	}

	var d, rexByte Detail
	pos, pp := uint64(0), uint64(0) // the mandatory prefix as pp counts it
	b := w[0]
	for {
		c := byteClasses[b]
		if c&classPrefixes != 0 {
			d = (d | Detail(c)<<prefixesAt) + 1<<countAt
			rexByte = 0
			// F2 and F3 win over 66, and the last of them.
			if p := uint64(mandatoryPP[c&15]); p > 1 || pp == 0 {
				pp = p
			}
		} else if c != 0 {
			rexByte = rexDetails[b&15]
		} else {
			break
		}
		pos++
		if pos == maxLen {
			return d, maxLen + 1, 0
		}
		b = w[pos&15]
	}
	d |= rexByte

	index := uint64(b)
	switch {
	case b == 0x0f:
		pos++
		b = w[pos&15]
		d |= Detail(Map0F) << mapAt
		index = map0F + pp<<8 + uint64(b)
		switch b {
		case 0x0f:
			return w.suffixed(d, pos)
		case 0x38:
			pos++
			b = w[pos&15]
			d += Detail(Map0F38-Map0F) << mapAt
			index = map0F38 + pp<<8 + uint64(b)
		case 0x3a:
			pos++
			b = w[pos&15]
			d += Detail(Map0F3A-Map0F) << mapAt
			index = map0F3A + pp<<8 + uint64(b)
		}
	case b == 0xc4, b == 0xc5, b == 0x62, b == 0x8f && w[(pos+1)&15]&31 >= 8:
		return w.vector(d, pos, b)
	case b == 0xd5:
		return w.rex2(d, pos, pp)
	}
	return w.legacy(d|Detail(b), pos, legacyEntries[index])
}

// legacy returns what there is to an opcode at pos with the entry a.
func (w *fetch) legacy(d Detail, pos uint64, a attr) (Detail, uint64, attr) {
	if a&attrGroup != 0 {
		a = a.group(w[(pos+1)&15])
		if a == 0 {
			return d, pos + 2, 0
		}
	}
	if a&attrValid == 0 {
		pos, a = w.match(d, pos, a.place(), d.legacyKey())
		if a == 0 {
			return d, pos, 0
		}
	}
	if a.leaOf(w[(pos+1)&15]) {
		return d, pos + 2, 0
	}
	if d.Prefixes()&PrefixLock != 0 {
		at, ok := uint64(0), attr(0)
		if m := d.Map(); m <= Map0F {
			at, ok = w.match(d, pos, vectorForms(lockMap+uint64(m), 0, d.Opcode()), d.legacyKey())
		}
		if ok == 0 {
			return d, max(at, pos+1), 0
		}
	}
	return d, pos, a.sized(d)
}

// sized applies the address-size prefix.
func (a attr) sized(d Detail) attr {
	if a == 0 || d.Prefixes()&Prefix67 == 0 {
		return a
	}
	if a&attrMoffs != 0 {
		a = a&^attrLens | lens4
	}
	return a | attrAddr32
}

// suffixed reads 3DNow!, whose opcode stands after the operands; pos is that
// of the second 0F.
func (w *fetch) suffixed(d Detail, pos uint64) (Detail, uint64, attr) {
	l := operands[w[(pos+1)&15]].layout
	at := pos + 1 + l>>lengthAt&15
	if l&layoutBase != 0 && w[(pos+2)&15]&7 == 5 {
		at += 4
	}
	if at >= maxLen {
		return d, maxLen + 1, 0
	}
	op := w[at]
	if d.Prefixes()&PrefixLock != 0 || vectorForms(map3DNow, 0, op) == 0 {
		return d, at + 1, 0
	}
	d |= Detail(Map3DNow)<<mapAt | Detail(op)
	return d, pos, (attrValid | 1<<attrModRMAt | attrSuffix | lens1).sized(d)
}

// rex2 reads an instruction after D5 at pos.
func (w *fetch) rex2(d Detail, pos, pp uint64) (Detail, uint64, attr) {
	payload := Detail(w[(pos+1)&15])
	op := w[(pos+2)&15]
	if d.HasREX() {
		return d, pos + 1, 0
	}
	m := payload >> 7
	d |= Detail(EncREX2)<<encodingAt | m<<mapAt | Detail(op) | rexDetails[payload&15]&^bitREX |
		payload>>6&1<<r4At | payload>>5&1<<x4At | payload>>4&1<<b4At
	pos += 2
	if m == 0 && op == 0xa1 {
		if d.W() != 0 || d.Prefixes()&(Prefix66|Prefix67|PrefixF2|PrefixF3|PrefixLock) != 0 {
			return d, pos + 1, 0
		}
		return d, pos, attrValid | attrAddress | lens8 | attr(OpJumpAbsolute)<<attrOpAt
	}
	if _, a := w.match(d, pos, vectorForms(noREX2Map+uint64(m), pp, op), d.legacyKey()); a != 0 {
		return d, pos + 1 + uint64(a>>attrModRMAt&1), 0
	}
	index := uint64(op)
	if m != 0 {
		index += map0F + pp<<8
	}
	return w.legacy(d, pos, legacyEntries[index])
}

// Opcode maps in vectorEntries.
const (
	map3DNow  = 15
	noREX2Map = 16
	lockMap   = 18
)

// vectorForms returns the place of an opcode's forms.
func vectorForms(m, pp uint64, op byte) uint64 {
	if i := m<<10 | pp<<8 | uint64(op); i < uint64(len(vectorEntries)) {
		return uint64(vectorEntries[i])
	}
	return 0
}

// The opcode maps that VEX, EVEX and XOP select, 0 for none.
var (
	vexMaps  = [32]uint8{1: 1, 2: 2, 3: 3, 7: 4}
	evexMaps = [8]uint8{1: 5, 2: 6, 3: 7, 4: 8, 5: 9, 6: 10, 7: 11}
	xopMaps  = [32]uint8{8: 12, 9: 13, 10: 14}
)

// vector reads an instruction after C5, C4, 62 or 8F, which is b, at pos.
func (w *fetch) vector(d Detail, pos uint64, b byte) (Detail, uint64, attr) {
	if d.Prefixes()&(Prefix66|PrefixF2|PrefixF3|PrefixLock) != 0 || d.HasREX() {
		return d, pos + 1, 0
	}
	// The payload as in VEX3, of which R, X, B and vvvv are inverted.
	p0, p1 := uint64(w[(pos+1)&15]), uint64(w[(pos+2)&15])
	m, size := uint64(0), uint64(3)
	switch b {
	case 0xc5:
		p0, p1 = p0&0x80|0x61, p0&0x7f
		m, size = 1, 2
		d |= Detail(EncVEX2) << encodingAt
	case 0xc4:
		m = uint64(vexMaps[p0&31])
		d |= Detail(EncVEX3) << encodingAt
	case 0x8f:
		m = uint64(xopMaps[p0&31])
		d |= Detail(EncXOP) << encodingAt
	case 0x62:
		d |= Detail(EncEVEX)<<encodingAt | evexDetail(p0, p1, uint64(w[(pos+3)&15]))
		p0, p1 = p0&^8, p1&^4
		m, size = uint64(evexMaps[p0&7]), 4
	}
	if m == 0 {
		return d, pos + 2, 0
	}
	pos += size
	op := w[pos&15]
	d |= Detail(op) | Detail(p0&15)<<mapAt | rexDetails[^p0>>5&7]&^bitREX |
		Detail(p1>>7)<<wAt | Detail(^p1>>3&15)<<vvvvAt | Detail(p1>>2&1)<<vectorLenAt | Detail(p1&3)<<ppAt
	pos, a := w.match(d, pos, vectorForms(m, p1&3, op), d.vectorKey(w[(pos+1)&15]))
	return d, pos, a.sized(d)
}

// evexDetail returns what only the payload of EVEX has.
func evexDetail(p0, p1, p2 uint64) Detail {
	return Detail(^p0>>4&1)<<r4At | Detail(p0>>3&1)<<b4At | Detail(^p1>>2&1)<<x4At |
		Detail(^p2>>3&1)<<v4At | Detail(p2>>5&3)<<vectorLenAt |
		Detail(p2>>4&1)<<evexBAt | Detail(p2>>7)<<evexZAt | Detail(p2&7)<<evexAAAAt
}
