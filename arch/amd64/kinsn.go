package amd64

import (
	"encoding/binary"

	"xol/classify"
)

// kernelInsn is an instruction as the instruction decoder of Linux sees it,
// whose answer the kernel's probes depend on [arch/x86/lib/insn.c]. It differs
// from the instruction set:
//
//   - VEX, EVEX, XOP and REX2 count as prefixes: the opcode is the one byte after
//     them, without its map;
//   - what a version does not know yet, it reads as something else: XOP as pop;
//   - it keeps four different legacy prefixes, a fifth is the opcode;
//   - the last legacy prefix is the mandatory one, not F3 or F2 before 66;
//   - what the maps lack has no operand bytes in a legacy encoding and is
//     refused after VEX and EVEX.
type kernelInsn struct {
	does     behavior // of the version that decoded it
	prefixes Prefixes // the different ones
	op       [3]byte  // opcode bytes, 0F and its second byte among them
	payload  [3]byte  // bytes of VEX, EVEX or REX2 after the first; VEX2's as VEX3's
	disp     int32    // of a RIP-relative operand
	rex      byte     // REX, or D5
	modrm    byte
	len      uint8
	nprefix  uint8 // legacy prefix bytes, repeated ones counted
	nrex     uint8 // 0, 1 for REX, 2 for REX2
	nvex     uint8 // 0, or length of VEX, EVEX or XOP
	nop      uint8 // bytes in op
	nimm     uint8 // bytes of the immediate, which is the last part
	hasModRM bool
	xop      bool // the VEX-like prefix is XOP
	forced   bool // starts with a forced-emulation prefix
}

// kernelDecoder is the instruction decoder of one version of Linux.
type kernelDecoder struct {
	knows   behavior
	primary [256]byte // letters, as in kernelMap0
	maps    [kernelMapCount][256]kernelCell
	common  [Map0F + 1][256]commonKind
}

// kernelCell holds the letters of an opcode by the variant that a prefix
// selects.
type kernelCell [4]byte

// kernelMapCount counts the maps that a decoder can have, up to XOP's last.
const kernelMapCount = MapXOPA + 1

// newKernelDecoder returns the decoder of version v.
func newKernelDecoder(v classify.Version) *kernelDecoder {
	d := &kernelDecoder{knows: behaviorOf(v), primary: [256]byte([]byte(kernelMap0))}
	for m := range d.maps {
		for op := range d.maps[m] {
			d.maps[m][op] = kernelCell{'.', '.', '.', '.'}
		}
	}
	for m := Map0F; int(m) < len(kernelMaps); m++ {
		for row, letters := range kernelMaps[m] {
			d.setRow(m, row, letters)
		}
	}
	for i := range kernelMapChanges {
		c := &kernelMapChanges[i]
		switch {
		case !c.versions.Holds(v):
		case c.row == everyRow:
			for row := range 16 {
				d.setRow(c.m, row, c.letters)
			}
		default:
			d.setRow(c.m, c.row, c.letters)
		}
	}
	d.sortCommon()
	return d
}

// setRow fills sixteen opcodes of a map. Letters are separated into cells but
// for the one-byte map and those of XOP, which know no variants.
func (d *kernelDecoder) setRow(m Map, row int, letters string) {
	for i := range 16 {
		op := row<<4 | i
		switch {
		case m == MapOneByte:
			d.primary[op] = letters[i]
		case letters == "":
			d.maps[m][op] = kernelCell{'.', '.', '.', '.'}
		case len(letters) == 16:
			c := letters[i]
			d.maps[m][op] = kernelCell{c, c, c, c}
		default:
			d.maps[m][op] = kernelCell([]byte(letters[5*i:][:4]))
		}
	}
}

const (
	maxInsnLen = 15

	// kernelWindow is what decode may look at. Bytes after an instruction
	// do not change how it decodes, so that code which ends early can be
	// padded.
	kernelWindow = 16
)

// nop pads code that ends early: so do the slots in which the kernel's
// verdicts were recorded.
const nop = 0x90

// window returns the bytes from off on, padded with NOPs in buf where code
// ends too early.
func window(code []byte, off uint64, buf *[kernelWindow]byte) *[kernelWindow]byte {
	if off <= uint64(len(code)) && uint64(len(code))-off >= kernelWindow {
		return (*[kernelWindow]byte)(code[off:])
	}
	n := 0
	if off < uint64(len(code)) {
		n = copy(buf[:], code[off:])
	}
	for i := n; i < kernelWindow; i++ {
		buf[i] = nop
	}
	return buf
}

// kernelImm is the size of what follows ModRM, SIB and displacement.
type kernelImm uint8

const (
	immNone    kernelImm = iota
	imm8                 // 1 byte
	imm16                // 2 bytes
	imm16imm8            // 2 bytes and 1 byte
	imm32                // 4 bytes
	immZ                 // 2 or 4 bytes by operand size
	immNear              // 4 bytes: a near branch, on which 66 has no effect
	immV                 // 2, 4 or 8 bytes by operand size
	immOffset            // 4 or 8 bytes by address size
	immPointer           // far pointer: 4 or 6 bytes by operand size
)

// The encodings in which the kernel takes a form.
const (
	asLegacy = 1 << iota
	asVEX
	asEVEX
)

type kernelForm struct {
	encodings uint8
	modrm     bool
	imm       kernelImm
}

// kernelForms explains the letters of the maps.
var kernelForms = [128]kernelForm{
	'.': {asLegacy, false, immNone},
	'p': {asLegacy, false, immNone}, // a prefix, where it can be one no more
	'!': {0, false, immNone},
	'b': {asLegacy, false, imm8},
	'w': {asLegacy, false, imm16},
	'n': {asLegacy, false, imm16imm8},
	'z': {asLegacy, false, immZ},
	'q': {asLegacy, false, immV},
	'j': {asLegacy, false, immNear},
	'o': {asLegacy, false, immOffset},
	'f': {asLegacy, false, immPointer},
	'N': {asLegacy | asVEX | asEVEX, false, immNone},
	'M': {asLegacy, true, immNone},
	'm': {asLegacy, true, imm8},
	'V': {asLegacy | asVEX | asEVEX, true, immNone},
	'v': {asLegacy | asVEX | asEVEX, true, imm8},
	'X': {asVEX | asEVEX, true, immNone},
	'x': {asVEX | asEVEX, true, imm8},
	'E': {asEVEX, true, immNone},
	'e': {asEVEX, true, imm8},
	'Z': {asLegacy | asEVEX, true, immZ},
	'D': {asVEX | asEVEX, true, imm32},
	'G': {asLegacy | asVEX | asEVEX, true, immNone},
}

// decode fills in k with the instruction at b[0] and reports whether the kernel
// can decode it.
func (d *kernelDecoder) decode(k *kernelInsn, b *[kernelWindow]byte) bool {
	*k = kernelInsn{does: d.knows}
	i := 0
	if b[0] == 0x0F && b[1] == 0x0B && forcedEmulation(b) {
		k.forced = true
		i = 5
	}
	i, variant := k.takePrefixes(b, i)
	i = d.takeREX(k, b, i)
	i, at := d.takeOpcode(k, b, i, variant)
	letter := d.letter(at)
	form := &kernelForms[letter&127]
	if form.encodings&at.encodings == 0 {
		return false
	}
	if form.modrm {
		k.modrm, k.hasModRM = b[i&15], true
		if letter == 'G' {
			form = kernelGroupForm(at, k.reg())
			if form.encodings&at.encodings == 0 {
				return false
			}
		}
		if k.ripRelative() {
			k.disp = int32(binary.LittleEndian.Uint32([]byte{b[(i+1)&15], b[(i+2)&15], b[(i+3)&15], b[(i+4)&15]}))
		}
		i += 1 + addressLen(k.modrm, b[(i+1)&15])
	}
	if form.imm != immNone {
		n := k.immLen(form.imm)
		if n == 0 {
			return false
		}
		k.nimm = uint8(n)
		i += n
	}
	k.len = uint8(i)
	return i <= maxInsnLen
}

// kernelPlace is where the kernel looks up what follows an opcode, and the
// encodings that the instruction has for it.
type kernelPlace struct {
	m         Map
	op        byte
	variant   uint8 // 0, or 1 for 66, 2 for F3, 3 for F2
	encodings uint8
	stop      bool // nothing after the opcode is decoded
}

// takeREX takes REX, REX2, VEX, EVEX or XOP at b[i] and returns the index after
// it.
func (d *kernelDecoder) takeREX(k *kernelInsn, b *[kernelWindow]byte, i int) int {
	switch c := b[i&15]; {
	case c&0xF0 == 0x40:
		k.rex, k.nrex = c, 1
		i++
		if d.knows&vexAfterREX != 0 {
			i = k.takeVEX(b, i)
		}
	case c == 0xD5 && d.knows&knowsREX2 != 0:
		k.rex, k.nrex = c, 2
		k.payload[0] = b[(i+1)&15]
		i += 2
	case c == 0xC4 || c == 0xC5 || c == 0x62:
		i = k.takeVEX(b, i)
	case c == 0x8F && d.knows&knowsXOP != 0 && b[(i+1)&15]&0x38 != 0:
		k.nvex, k.xop = 3, true
		k.payload = [3]byte{b[(i+1)&15], b[(i+2)&15], 0}
		i += 3
	}
	return i
}

// takeOpcode takes the opcode at b[i] and returns the index after it.
func (d *kernelDecoder) takeOpcode(k *kernelInsn, b *[kernelWindow]byte, i int, variant uint8) (next int, at kernelPlace) {
	at = kernelPlace{op: b[i&15], variant: variant, encodings: asLegacy}
	i++
	k.op[0], k.nop = at.op, 1
	switch {
	case k.nvex != 0:
		at.m, at.variant, at.encodings = d.vexMap(k)
	case k.nrex == 2:
		// The kernel takes any form here.
		at.encodings = asLegacy | asVEX | asEVEX
		if k.payload[0]&0x80 != 0 {
			at.m = Map0F
		}
	case at.op == 0x0F:
		at.m, at.op = Map0F, b[i&15]
		i++
		k.op[1], k.nop = at.op, 2
		if at.op == 0x38 || at.op == 0x3A {
			at.m = Map0F38 + Map(at.op>>1&1)
			at.op = b[i&15]
			i++
			k.op[2], k.nop = at.op, 3
		}
	case d.knows&stopsAtNot64 != 0:
		at.stop = at.op == 0x82 || at.op == 0x9A || at.op == 0xD4 || at.op == 0xEA
	}
	return i, at
}

// forcedEmulation reports whether the bytes after a UD2 make it one of the
// prefixes by which Xen and KVM are asked to emulate an instruction.
func forcedEmulation(b *[kernelWindow]byte) bool {
	return b[2] == 'x' && b[3] == 'e' && b[4] == 'n' || b[2] == 'k' && b[3] == 'v' && b[4] == 'm'
}

// takePrefixes takes the legacy prefixes at b[i] and returns the index after
// them and the variant of an opcode that the last one selects.
func (k *kernelInsn) takePrefixes(b *[kernelWindow]byte, i int) (next int, variant uint8) {
	start, different := i, 0
	for ; i < maxInsnLen; i++ {
		bit := legacyPrefix(b[i])
		if bit == 0 {
			break
		}
		if k.prefixes&bit == 0 {
			if different == 4 {
				break
			}
			different++
			k.prefixes |= bit
		}
	}
	k.nprefix = uint8(i - start)
	if i > start {
		switch b[i-1] {
		case 0x66:
			variant = 1
		case 0xF3:
			variant = 2
		case 0xF2:
			variant = 3
		}
	}
	return i, variant
}

// legacyPrefix returns the legacy prefix that c is, or 0.
func legacyPrefix(c byte) Prefixes {
	if kernelMap0[c] != 'p' {
		return 0
	}
	switch c {
	case 0x66:
		return Prefix66
	case 0x67:
		return Prefix67
	case 0xF2:
		return PrefixF2
	case 0xF3:
		return PrefixF3
	case 0xF0:
		return PrefixLock
	case 0x2E:
		return PrefixCS
	case 0x36:
		return PrefixSS
	case 0x3E:
		return PrefixDS
	case 0x26:
		return PrefixES
	case 0x64:
		return PrefixFS
	}
	return PrefixGS
}

// takeVEX takes a VEX or EVEX prefix at b[i], if there is one, and returns the
// index after it.
func (k *kernelInsn) takeVEX(b *[kernelWindow]byte, i int) int {
	switch b[i&15] {
	case 0xC5:
		k.nvex = 2
		k.payload = [3]byte{b[(i+1)&15], b[(i+1)&15] & 0x7F, 0}
	case 0xC4:
		k.nvex = 3
		k.payload = [3]byte{b[(i+1)&15], b[(i+2)&15], 0}
	case 0x62:
		k.nvex = 4
		k.payload = [3]byte{b[(i+1)&15], b[(i+2)&15], b[(i+3)&15]}
	}
	return i + int(k.nvex)
}

// vexMap returns the opcode map and pp of k's VEX, EVEX or XOP prefix, and what
// it counts as.
func (d *kernelDecoder) vexMap(k *kernelInsn) (m Map, pp, encodings uint8) {
	pp = k.payload[1] & 3
	switch {
	case k.xop:
		if m = Map(k.payload[0] & 31); m < MapXOP8 {
			return m, pp, 0
		}
		return m, pp, asVEX
	case k.nvex == 2:
		return Map0F, pp, asVEX
	case k.nvex == 3:
		m, encodings = Map(k.payload[0]&31), asVEX
	case d.knows&wideEVEXMap != 0:
		m, encodings = Map(k.payload[0]&7), asEVEX
	default:
		m, encodings = Map(k.payload[0]&3), asEVEX
	}
	if m == MapOneByte || m >= MapXOP8 {
		encodings = 0
	}
	return m, pp, encodings
}

// letter returns what a map says of an opcode.
func (d *kernelDecoder) letter(at kernelPlace) byte {
	switch {
	case at.stop:
		return '.'
	case at.m == MapOneByte:
		return d.primary[at.op]
	case at.m < kernelMapCount:
		return d.maps[at.m][at.op][at.variant&3]
	}
	return '.'
}

// kernelGroupForm returns the form of an opcode that depends on ModRM.reg.
func kernelGroupForm(at kernelPlace, reg byte) *kernelForm {
	for i := range kernelGroups {
		if g := &kernelGroups[i]; g.m == at.m && g.op == at.op {
			return &kernelForms[g.forms[at.variant&3][reg&7]&127]
		}
	}
	return &kernelForms['M']
}

// addressLen returns the length of SIB and displacement after a ModRM byte.
func addressLen(modrm, sib byte) int {
	mod, rm := modrm>>6, modrm&7
	if mod == 3 {
		return 0
	}
	n := 0
	if rm == 4 {
		n = 1
		rm = sib & 7
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, rm == 5:
		n += 4
	}
	return n
}

// immLen returns the length in bytes of what follows the operands, 0 where
// the kernel refuses it.
func (k *kernelInsn) immLen(imm kernelImm) int {
	switch imm {
	case imm8:
		return 1
	case imm16:
		return 2
	case imm16imm8:
		return 3
	case imm32, immNear:
		return 4
	case immZ:
		return min(k.operandSize(), 4)
	case immV:
		return k.operandSize()
	case immOffset:
		if k.prefixes&Prefix67 != 0 {
			return 4
		}
		return 8
	}
	if size := k.operandSize(); size < 8 {
		return size + 2
	}
	return 0
}

// operandSize returns the operand size in bytes.
func (k *kernelInsn) operandSize() int {
	if k.nvex == 4 {
		// For W the kernel reads the bit of EVEX.z, but not beside pp.
		switch {
		case k.payload[1]&0x83 == 1:
			return 2
		case k.payload[2]&0x80 != 0, k.nrex == 1 && k.rex&8 != 0:
			return 8
		}
	} else if k.wide() {
		return 8
	}
	if k.prefixes&Prefix66 != 0 {
		return 2
	}
	return 4
}

// wide reports whether REX.W or its kin is set.
func (k *kernelInsn) wide() bool {
	return k.nrex == 1 && k.rex&8 != 0 || k.nrex == 2 && k.payload[0]&8 != 0 || k.nvex >= 2 && k.payload[1]&0x80 != 0
}

// ripRelative reports whether the kernel takes the operand to be relative to
// the instruction pointer. It looks at ModRM alone.
func (k *kernelInsn) ripRelative() bool { return k.hasModRM && k.modrm&0xC7 == 5 }

// reg returns bits 3-5 of ModRM.
func (k *kernelInsn) reg() byte { return k.modrm >> 3 & 7 }
