package amd64

import (
	"xol/decode"
)

//go:generate go run gen.go

// maxLen is the length in bytes of the longest instruction.
const maxLen = 15

// A fetch holds the longest instruction and one byte more.
type fetch [16]byte

// Decode decodes one instruction of 64-bit mode; see decode.Decoder.
//
// Bytes are an instruction where the manuals of Intel, AMD or VIA define them
// as one, up to the extensions of 2024 (APX and User MSR are in; AVX10.2 and
// later are not). What raises #UD on every processor by its encoding alone
// is none, but for UD0, UD1 and UD2, which are there to do so. Where vendors
// differ:
//
//   - A near branch with an operand-size prefix (66 E8, 66 E9, 66 0F 8x, …) is
//     as long, and goes where, Intel says: the prefix has no effect. AMD
//     truncates displacement and target to 16 bits. Branch66 tells such
//     branches.
//   - UD0 (0F FF) has a ModRM byte, as on Intel's current processors.
//   - LOCK MOV CR0 is AMD's way to CR8.
func (ISA) Decode(inst *decode.Inst, code []byte, addr uint64) error {
	if len(code) >= len(fetch{}) {
		n := decodeFetched(inst, (*fetch)(code), addr)
		if n > 0 {
			return nil
		}
		return fail(inst, addr, n, len(code))
	}
	var w fetch
	copy(w[:], code)
	n := decodeFetched(inst, &w, addr)
	if 0 < n && n <= len(code) {
		return nil
	}
	return fail(inst, addr, n, len(code))
}

// tooLong is what decodeFetched returns for an instruction that does not end
// within its longest length.
const tooLong = -len(fetch{})

// fail overwrites inst and tells the error: n is what decodeFetched said of
// size bytes.
func fail(inst *decode.Inst, addr uint64, n, size int) error {
	*inst = decode.Inst{Addr: addr}
	switch {
	case n > size, -n > size:
		return decode.ErrTruncated
	case n == tooLong:
		return decode.ErrTooLong
	}
	return decode.ErrInvalid
}

// entry is what the tables say of a legacy opcode: its attributes, if they
// hold for all operands, else the place of its forms.
type entry uint32

const (
	entryValid = 1 << 14 // the low bits are attributes
	entryForms = 15      // from here the place in forms
)

// attr are the attributes of an instruction.
type attr uint32

// The bits of attr. They stand at attrAt in a form.
const (
	attrImm   attr = 15 // kind
	attrModRM attr = 1 << 4
	attrNoMem attr = 1 << 5 // ModRM.mod is ignored
	attrLea   attr = 1 << 10
	attrPad   attr = 1 << 11
	attrPriv  attr = 1 << 12
	attrLock  attr = 1 << 13
)

func (a attr) flow() decode.Flow { return decode.Flow(a >> 6 & 15) }

// Kinds of immediates.
const (
	kindNone = iota
	kindIb
	kindIw
	kindIwIb
	kindIbIb
	kindIz
	kindIv
	kindId
	kindIq
	kindMoffs
	kindRel8
	kindRel32
	kindRelZ
	_
	_
	_
)

// kindLen is the length of each kind of immediate for operands of 32, 16 and 64
// bits.
var kindLen = [3][16]uint8{
	{0, 1, 2, 3, 2, 4, 4, 4, 8, 8, 1, 4, 4},
	{0, 1, 2, 3, 2, 2, 2, 4, 8, 8, 1, 4, 2},
	{0, 1, 2, 3, 2, 4, 8, 4, 8, 8, 1, 4, 4},
}

// A form is one shape of an instruction: sets of field values that fit, one
// bit for each value, a constraint and the attributes.
type form uint64

// The places in a form.
const (
	setW    = 0  // 0, 1
	setL    = 2  // 0 to 3; rounding
	setOp   = 7  // 4 × mod 3 + 2 × EVEX.b + EVEX.z
	setMask = 15 // k0; k4; another
	setV    = 18 // 0; 1 to 7; above
	setV4   = 21 // 0, 1
	setReg  = 23 // 0 to 7
	setRM   = 31 // 0 to 7
	setR    = 39 // 0; another
	setB    = 41 // 0; another
	setAddr = 43 // neither; SIB; RIP-relative

	constraintAt = 46
	attrAt       = 50

	sets form = 1<<constraintAt - 1
)

// byteClass sorts the bytes that may start an instruction.
type byteClass uint16

const (
	classPrefixes byteClass = 0x7ff // Prefixes
	classREX      byteClass = 1 << (11 + iota)
	classEscape
	classVector // C4 C5 62 8F
	classREX2
)

var byteClasses = [256]byteClass{
	0x66: byteClass(Prefix66), 0x67: byteClass(Prefix67), 0xf2: byteClass(PrefixF2), 0xf3: byteClass(PrefixF3),
	0xf0: byteClass(PrefixLock), 0x2e: byteClass(PrefixCS), 0x36: byteClass(PrefixSS), 0x3e: byteClass(PrefixDS),
	0x26: byteClass(PrefixES), 0x64: byteClass(PrefixFS), 0x65: byteClass(PrefixGS),
	0x40: classREX, 0x41: classREX, 0x42: classREX, 0x43: classREX,
	0x44: classREX, 0x45: classREX, 0x46: classREX, 0x47: classREX,
	0x48: classREX, 0x49: classREX, 0x4a: classREX, 0x4b: classREX,
	0x4c: classREX, 0x4d: classREX, 0x4e: classREX, 0x4f: classREX,
	0x0f: classEscape,
	0xc4: classVector, 0xc5: classVector, 0x62: classVector, 0x8f: classVector,
	0xd5: classREX2,
}

// The places in Detail.
const (
	modRMAt    = 8
	encodingAt = 16
	mapAt      = 20
	prefixesAt = 24
	wAt        = 35
	rAt        = 36
	xAt        = 37
	bAt        = 38
	r4At       = 39
	x4At       = 40
	b4At       = 41
	vvvvAt     = 42
	lengthAt   = 47
	ppAt       = 49
	evexBAt    = 51
	evexZAt    = 52
	evexAAAAt  = 53
	countAt    = 56
	rexAt      = 60
)

// decodeFetched decodes the instruction that w starts with. It returns its
// length; or, where there is none, minus the number of bytes that tell so, or
// tooLong. Bytes behind the instruction are ignored.
func decodeFetched(inst *decode.Inst, w *fetch, addr uint64) int {
	var prefixes byteClass
	var rep byteClass
	var count, rex uint64
	pos := 0
	b := w[0]
	c := byteClasses[b]
	for c&(classPrefixes|classREX) != 0 {
		if c&classREX != 0 {
			rex = uint64(b)
		} else {
			rex = 0
			prefixes |= c
			if r := c & byteClass(PrefixF2|PrefixF3); r != 0 {
				rep = r
			}
			count++
		}
		pos++
		if pos == maxLen {
			return tooLong
		}
		b = w[pos]
		c = byteClasses[b]
	}
	pp := uint64(prefixes & 1)
	switch rep {
	case byteClass(PrefixF3):
		pp = 2
	case byteClass(PrefixF2):
		pp = 3
	}
	d := Detail(prefixes)<<prefixesAt | Detail(count)<<countAt | rexDetail(rex)
	if c&classVector != 0 && (b != 0x8f || w[(pos+1)&15]&0x1f >= 8) {
		return decodeVector(inst, w, addr, pos, d)
	}
	if c&classREX2 != 0 {
		return -pos - 1
	}
	index := uint64(b)
	if c&classEscape != 0 {
		pos++
		b = w[pos&15]
		d |= Detail(Map0F) << mapAt
		index = 256 + pp<<8 + uint64(b)
		switch b {
		case 0x38, 0x3a:
			d += Detail(b>>1&1+1) << mapAt
			index = 1280 + uint64(b>>1&1)<<10 + pp<<8
			pos++
			b = w[pos&15]
			index += uint64(b)
		case 0x0f:
			return decode3DNow(inst, w, addr, pos, d)
		}
	}
	d |= Detail(b)
	e := legacyEntries[index]
	a := attr(e) & (entryValid - 1)
	if e&entryValid == 0 {
		if a = match(w, pos, d, int(e>>entryForms)); a == 0 {
			return need(pos, e == 0)
		}
		a &^= entryValid
	}
	if prefixes&byteClass(PrefixLock) != 0 && (a&attrLock == 0 || a&attrNoMem == 0 && w[(pos+1)&15]>>6 == 3) {
		return -pos - 2
	}
	return finish(inst, w, addr, pos, a, d)
}

// need returns minus the number of bytes that tell that the opcode at pos is
// none.
func need(pos int, unknown bool) int {
	if unknown {
		return -pos - 1
	}
	return -pos - 3
}

func rexDetail(rex uint64) Detail {
	if rex == 0 {
		return 0
	}
	return Detail(rex>>3&1|rex>>1&2|rex<<1&4|rex<<3&8)<<wAt | 1<<rexAt
}

// match looks for the form that fits among those at index, and returns its
// attributes with entryValid, 0 if none does.
func match(w *fetch, pos int, d Detail, index int) attr {
	m := uint64(w[(pos+1)&15])
	d |= Detail(m) << modRMAt
	key := d.key(w[(pos+2)&15])
	for {
		f := forms[index]
		if f == 0 {
			return 0
		}
		if key&^(f&sets) == 0 {
			if !constraint(f>>constraintAt&15).holds(d, w[(pos+2)&15]) {
				return 0
			}
			return attr(f>>attrAt) | entryValid
		}
		index++
	}
}

// key is the field values of an instruction, one bit for each field. A key
// that no form fits stands for z without a mask.
func (d Detail) key(sib byte) form {
	mod3 := uint64(0)
	addr := uint64(0)
	b := uint64(0)
	if d.Mod() == 3 {
		mod3 = 1
		b = uint64(d.B() | d.B4())
	} else if d.RM() == 4 {
		addr = 1
	} else if d.Mod() == 0 && d.RM() == 5 {
		addr = 2
	}
	var eb, ez uint64
	if d.EVEXb() {
		eb = 1
	}
	if d.EVEXz() {
		ez = 1
	}
	l := uint64(d.VectorLength())
	if mod3&eb != 0 {
		l = 4
	}
	mask := uint64(2)
	switch d.EVEXaaa() {
	case 0:
		mask = 0
		if ez != 0 {
			return sets + 1
		}
	case 4:
		mask = 1
	}
	v := uint64(0)
	switch vvvv := d.VVVV() & 15; {
	case vvvv > 7:
		v = 2
	case vvvv > 0:
		v = 1
	}
	r := uint64(d.R() | d.R4())
	return 1<<(setW+d.W()) | 1<<(setL+l) | 1<<(setOp+4*mod3+2*eb+ez) | 1<<(setMask+mask) |
		1<<(setV+v) | 1<<(setV4+d.VVVV()>>4) | 1<<(setReg+d.Reg()) | 1<<(setRM+d.RM()) |
		1<<(setR+r) | 1<<(setB+b) | 1<<(setAddr+addr)
}

// A constraint is a rule that the fields of one form must keep together.
type constraint uint8

const (
	gatherVEX  constraint = 1 + iota // destination, index and mask differ
	gatherEVEX                       // destination and index differ
	tiles                            // the three tiles exist and differ
	complexFP                        // the destination is no source
	noREX2
)

// holds reports whether the fields keep the constraint.
func (c constraint) holds(d Detail, sib byte) bool {
	reg := d.R4()<<4 | d.R()<<3 | d.Reg()
	rm := d.X()<<4 | d.B()<<3 | d.RM()
	index := d.VVVV()&16 | d.X()<<3 | sib>>3&7
	switch c {
	case gatherVEX:
		return reg != index && reg != d.VVVV() && index != d.VVVV()
	case gatherEVEX:
		return reg != index
	case tiles:
		return reg < 8 && d.B() == 0 && d.VVVV() < 8 && reg != rm && reg != d.VVVV() && rm != d.VVVV()
	case complexFP:
		return reg != d.VVVV() && (d.Mod() != 3 || reg != rm)
	case noREX2:
		return d.Encoding() != EncREX2
	}
	return true
}

// vectorSlots are the places of opcode maps in vectorEntries, 0 where there
// is none.
var vectorSlots = [5][32]uint8{
	EncVEX3: {1: 1, 2: 2, 3: 3, 7: 4},
	EncEVEX: {1: 5, 2: 6, 3: 7, 4: 8, 5: 9, 6: 10, 7: 11},
}

var xopSlots = [32]uint8{8: 12, 9: 13, 10: 14}

const slot3DNow = 15

// decodeVector decodes behind C5, C4, 62 or 8F at pos.
func decodeVector(inst *decode.Inst, w *fetch, addr uint64, pos int, d Detail) int {
	if d.Prefixes()&(Prefix66|PrefixF2|PrefixF3|PrefixLock) != 0 || d.HasREX() {
		return -pos - 2
	}
	b := w[pos]
	p0, p1, p2 := uint64(w[(pos+1)&15]), uint64(w[(pos+2)&15]), uint64(w[(pos+3)&15])
	var slot uint8
	n := 0
	switch b {
	case 0xc5:
		d |= Detail(EncVEX2)<<encodingAt | Detail(Map0F)<<mapAt | Detail(p0>>7^1)<<rAt
		p1 = p0 & 0x7f
		slot = 1
		n = 2
	case 0xc4, 0x8f:
		enc := EncVEX3
		slots := &vectorSlots[EncVEX3]
		if b == 0x8f {
			enc, slots = EncXOP, &xopSlots
		}
		slot = slots[p0&31]
		d |= Detail(enc)<<encodingAt | Detail(p0&15)<<mapAt | Detail(p0>>7&1^1)<<rAt | Detail(p0>>6&1^1)<<xAt | Detail(p0>>5&1^1)<<bAt
		n = 3
	case 0x62:
		slot = vectorSlots[EncEVEX][p0&7]
		d |= Detail(EncEVEX)<<encodingAt | Detail(p0&7)<<mapAt | Detail(p0>>7&1^1)<<rAt | Detail(p0>>6&1^1)<<xAt | Detail(p0>>5&1^1)<<bAt |
			Detail(p0>>4&1^1)<<r4At | Detail(p0>>3&1)<<b4At | Detail(p1>>2&1^1)<<x4At |
			Detail(p2>>3&1^1)<<(vvvvAt+4) | Detail(p2>>5&3)<<lengthAt | Detail(p2>>4&1)<<evexBAt | Detail(p2>>7)<<evexZAt | Detail(p2&7)<<evexAAAAt
		n = 4
	}
	if slot == 0 {
		return -pos - 2
	}
	d |= Detail(p1>>7)<<wAt | Detail(p1>>3&15^15)<<vvvvAt | Detail(p1&3)<<ppAt
	if n < 4 {
		d |= Detail(p1>>2&1) << lengthAt
	}
	if b == 0x8f && p1&3 != 0 {
		return -pos - 3
	}
	pos += n
	op := w[pos&15]
	d |= Detail(op)
	e := vectorEntries[int(slot)<<10|int(p1&3)<<8|int(op)]
	a := match(w, pos, d, int(e))
	if a == 0 {
		return need(pos, e == 0)
	}
	return finish(inst, w, addr, pos, a, d)
}

// decode3DNow decodes behind 0F 0F, the second of which is at pos.
func decode3DNow(inst *decode.Inst, w *fetch, addr uint64, pos int, d Detail) int {
	if d.Prefixes()&PrefixLock != 0 {
		return -pos - 2
	}
	d |= Detail(Map3DNow) << mapAt
	n := finish(inst, w, addr, pos, attrModRM|kindIb, d)
	if n < 0 {
		return n
	}
	op := w[n-1]
	if vectorEntries[slot3DNow<<10|int(op)] == 0 {
		return -n
	}
	inst.Detail = inst.Detail&^0xff | uint64(op)
	inst.Fields.Opcode = inst.Fields.Imm
	inst.Fields.Imm, inst.Fields.ImmLen = 0, 0
	return n
}

// finish fills inst with the instruction whose opcode is at pos.
func finish(inst *decode.Inst, w *fetch, addr uint64, pos int, a attr, d Detail) int {
	var f decode.Fields
	f.Opcode = uint8(pos)
	end := pos + 1
	props := decode.Props(0)
	rip := false
	if a&attrModRM != 0 {
		m := w[end&15]
		f.ModRM = uint8(end)
		d |= Detail(m) << modRMAt
		end++
		n := 0
		if a&attrNoMem == 0 && m < 0xc0 {
			switch m >> 6 {
			case 1:
				n = 1
			case 2:
				n = 4
			}
			switch m & 7 {
			case 4:
				if m>>6 == 0 && w[end&15]&7 == 5 {
					n = 4
				}
				end++
			case 5:
				if m>>6 == 0 {
					n = 4
					rip = true
				}
			}
		}
		if n > 0 {
			f.Disp, f.DispLen = uint8(end), uint8(n)
			end += n
		}
	}
	size := d.W() << 1
	if size == 0 && d.Prefixes()&Prefix66 != 0 {
		size = 1
	}
	kind := a & attrImm
	pcrel := decode.PCRel{}
	if n := kindLen[size][kind]; n > 0 {
		if kind == kindMoffs {
			if d.Prefixes()&Prefix67 != 0 {
				n = 4
			}
			f.Disp, f.DispLen = uint8(end), n
		} else {
			f.Imm, f.ImmLen = uint8(end), n
		}
		end += int(n)
	}
	if end > maxLen {
		return tooLong
	}
	target := uint64(0)
	if kind >= kindRel8 {
		pcrel = decode.PCRel{Kind: decode.PCRelBranch, Offset: f.Imm, Width: f.ImmLen * 8}
	} else if rip {
		pcrel = decode.PCRel{Kind: decode.PCRelMemory, Offset: f.Disp, Width: 32}
		if a&attrLea != 0 {
			pcrel.Kind = decode.PCRelAddress
		}
	}
	if pcrel.Kind != 0 {
		o := pcrel.Offset
		x := int64(int8(w[o&15]))
		if pcrel.Width == 16 {
			x = int64(int16(uint16(w[o&15]) | uint16(w[(o+1)&15])<<8))
		} else if pcrel.Width == 32 {
			x = int64(int32(uint32(w[o&15]) | uint32(w[(o+1)&15])<<8 | uint32(w[(o+2)&15])<<16 | uint32(w[(o+3)&15])<<24))
		}
		target = addr + uint64(end) + uint64(x)
		props |= decode.HasTarget
		if rip && d.Prefixes()&Prefix67 != 0 {
			target &= 0xffffffff
		}
	}
	flow := a.flow()
	switch flow {
	case decode.FlowJumpIf:
		props |= decode.Conditional
	case decode.FlowCall, decode.FlowCallIndirect:
		props |= decode.Link
	}
	if a&attrPad != 0 {
		props |= decode.LandingPad
	}
	if a&attrPriv != 0 {
		props |= decode.Privileged
	}
	*inst = decode.Inst{
		Addr: addr, Target: target, Detail: uint64(d), Props: props, Flow: flow,
		Len: uint8(end), PCRel: pcrel, Fields: f,
	}
	copy(inst.Raw[:], w[:end])
	return end
}
