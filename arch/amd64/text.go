package amd64

import (
	"math/bits"
	"strconv"
	"strings"

	"xol/decode"
)

// Text returns the instruction as GNU objdump 2.44 writes it in AT&T syntax,
// with single spaces: prefixes that change nothing are named, numbers are
// hexadecimal with 0x, the address that a RIP-relative operand designates
// stands in a comment, and lookup, where it is not nil, names it and the
// targets of branches as <symbol+offset>.
//
// Names and operands come from names.txt, lengths and targets from the decoded
// instruction. An instruction that names.txt lacks is written as its place in
// the opcode maps, as in evex.map5.66.w0 0x58; one with the property
// decode.Invalid as (bad).
//
// golang.org/x/arch/x86/x86asm is not used here: what REX2 and EVEX map 4 share
// with the older encodings would have to be known here all the same, and its
// text of displacements, immediates and SIB operands differs from GNU's.
func (ISA) Text(inst *decode.Inst, lookup decode.SymLookup) string {
	if inst.Len == 0 || inst.Len > decode.MaxLen || inst.Has(decode.Invalid) {
		return "(bad)"
	}
	t := writer{inst: inst, d: DetailOf(inst)}
	t.form = findName(inst, t.d)
	if t.form == nil {
		return t.placeInMaps()
	}
	t.markConditions()
	var opsArray [128]byte
	ops := t.operands(opsArray[:0], lookup)
	var nameArray [48]byte
	name := t.mnemonic(nameArray[:0])
	var textArray [256]byte
	text := t.prefixes(textArray[:0])
	text = append(text, name...)
	if len(ops) > 0 {
		text = append(text, ' ')
		text = append(text, ops...)
	}
	if t.ripRelative {
		text = append(text, " # "...)
		text = appendAddress(text, inst.Target, lookup)
	}
	return string(text)
}

// writer writes one instruction. Parts of the encoding that made a difference
// collect in used; the others are named in front.
type writer struct {
	inst        *decode.Inst
	d           Detail
	form        *nameForm
	used        usedParts
	ripRelative bool
}

// usedParts are parts of an encoding.
type usedParts uint16

const (
	usedW usedParts = 1 << iota
	usedR
	usedX
	usedB
	usedREX // its presence
	used66
	used67
	usedRep     // F2 or F3
	usedSeg     // FS or GS
	usedFlatSeg // CS, SS, DS or ES: a branch hint, or named as part of a string
)

// prefixBytes returns the legacy prefixes and REX bytes.
func prefixBytes(inst *decode.Inst) []byte {
	raw := inst.Bytes()
	n := 0
	for n < len(raw) && isPrefix(raw[n]) {
		n++
	}
	return raw[:n]
}

func isPrefix(b byte) bool { return byteClasses[b]&(classPrefixes|classREX) != 0 }

// operandBytes returns the size of a v operand.
func (d Detail) operandBytes() int {
	switch {
	case d.W() != 0:
		return 8
	case d.Encoding() == EncEVEX && d.PP() == 1, d.Encoding() != EncEVEX && d.Prefixes()&Prefix66 != 0:
		return 2
	}
	return 4
}

// bytes returns the size of a general operand, and notes what it depends on.
func (t *writer) bytes(s operandSize) int {
	switch s {
	case sizeB:
		return 1
	case sizeW:
		return 2
	case sizeD:
		return 4
	case sizeV:
		if t.d.W() != 0 {
			t.used |= usedW
		} else {
			t.used |= used66
		}
		return t.d.operandBytes()
	case sizeZ:
		if t.d.W() == 0 {
			t.used |= used66
			return t.d.operandBytes()
		}
		return 4
	case sizeR:
		t.used |= usedW
		return 4 << t.d.W()
	case sizeS:
		if t.d.W() == 0 {
			t.used |= used66
			if t.d.Prefixes()&Prefix66 != 0 {
				return 2
			}
		}
		return 8
	case sizeA:
		t.used |= used67
		if t.d.Prefixes()&Prefix67 != 0 {
			return 4
		}
	}
	return 8
}

// vectorBytes returns the vector length. Rounding and {sae} imply 64 bytes.
func (t *writer) vectorBytes() int {
	if t.d.Encoding() == EncEVEX && t.d.EVEXb() && t.d.Mod() == 3 {
		return 64
	}
	return 16 << t.d.VectorLength()
}

// width returns the size of a vector operand in memory; its register has at
// least 16 bytes.
func (t *writer) width(s operandSize) int {
	n := t.vectorBytes()
	switch s {
	case sizeO:
		return 16
	case sizeY:
		return 32
	case sizeX:
		return n
	case sizeH:
		return n / 2
	case sizeF:
		return n / 4
	case sizeE:
		return n / 8
	case sizeM:
		if n == 16 {
			return 8
		}
		return n
	}
	return 1 << s
}

// reg returns the number of the register in ModRM.reg.
func (t *writer) reg() int {
	t.used |= usedR
	return int(t.d.R4()<<4 | t.d.R()<<3 | t.d.Reg())
}

// rm returns the number of the general register in ModRM.rm.
func (t *writer) rm() int {
	t.used |= usedB
	return int(t.d.B4()<<4 | t.d.B()<<3 | t.d.RM())
}

// vecRM returns the number of the vector register in ModRM.rm, whose bit 4 is X
// in EVEX.
func (t *writer) vecRM() int {
	t.used |= usedB
	n := t.d.B()<<3 | t.d.RM()
	if t.d.Encoding() == EncEVEX {
		n |= t.d.X() << 4
	}
	return int(n)
}

// isMem reports whether ModRM.rm is memory.
func (t *writer) isMem() bool { return t.inst.Fields.ModRM != 0 && t.d.Mod() != 3 }

// masked reports whether the opmask bits name a mask register.
func (t *writer) masked() bool {
	return t.d.Encoding() == EncEVEX && t.form.attr&scalar == 0
}

// markConditions notes the prefixes that chose the form.
func (t *writer) markConditions() {
	mask, want := t.form.mask, t.form.want
	if mask&(3<<keyPP) != 0 {
		switch want >> keyPP & 3 {
		case 1:
			t.used |= used66
		case 2, 3:
			t.used |= usedRep
		}
	}
	if mask&(1<<keyW) != 0 {
		t.used |= usedW
	}
	if mask&(3<<keySize) != 0 {
		t.bytes(sizeV)
	}
	if mask&(1<<keyAddr32) != 0 && operandSpecs[t.form.ops[0]].kind == opTarget {
		t.used |= used67 // which register counts; addresses note it themselves
	}
	if mask&(1<<keyB) != 0 {
		t.used |= usedB
	}
}

// prefixes writes what stands in front of the name.
func (t *writer) prefixes(b []byte) []byte {
	list := prefixBytes(t.inst)
	for i, p := range list {
		if byteClasses[p]&classREX != 0 {
			b = t.rex(b, p, i == len(list)-1)
			continue
		}
		if name := t.prefix(p, list[i+1:]); name != "" {
			b = append(b, name...)
			b = append(b, ' ')
		}
	}
	if t.d.Encoding() == EncREX2 && len(list) < len(t.inst.Raw)-1 {
		b = t.rex2(b, t.inst.Raw[len(list)+1])
	}
	switch a := t.form.attr; {
	case a&pseudoVEX != 0:
		b = append(b, "{vex} "...)
	case t.noFlags():
		b = append(b, "{nf} "...)
	case a&hasTwin != 0 && t.needsEVEX():
		b = append(b, "{evex} "...)
	}
	return b
}

// noFlags reports whether NF of APX is in force, unless it chose the form.
func (t *writer) noFlags() bool {
	return t.form.attr&scalar != 0 && t.d.EVEXaaa()&4 != 0 && t.form.mask&(1<<keyNF) == 0 && t.form.attr&suffixCond == 0
}

// needsEVEX reports whether nothing else tells that the encoding is EVEX.
func (t *writer) needsEVEX() bool {
	d := t.d
	if d.VectorLength() == 2 || d.EVEXb() || d.EVEXz() || d.EVEXaaa() != 0 ||
		d.R4()|d.B4()|d.X4() != 0 || d.VVVV() > 15 {
		return false
	}
	return d.X() == 0 || d.Mod() != 3 || t.form.attr&scalar != 0
}

// groups are prefixes of which the last counts.
var groups = [...]Prefixes{repPrefixes, flatSegments, basedSegments, Prefix66, Prefix67}

const (
	repPrefixes   = PrefixF2 | PrefixF3
	basedSegments = PrefixFS | PrefixGS
	flatSegments  = PrefixCS | PrefixSS | PrefixDS | PrefixES // without effect in 64-bit mode
)

// prefix returns the name of a prefix that others follow, empty where the
// instruction's own name or operands show it.
func (t *writer) prefix(p byte, rest []byte) string {
	set := Prefixes(byteClasses[p])
	last := true
	for _, g := range groups {
		if set&g != 0 {
			for _, r := range rest {
				last = last && Prefixes(byteClasses[r])&g == 0
			}
		}
	}
	switch set {
	case Prefix66:
		if last && t.used&used66 != 0 {
			return ""
		}
		return "data16"
	case Prefix67:
		if last && t.used&used67 != 0 {
			return ""
		}
		return "addr32"
	case PrefixLock:
		return "lock"
	case PrefixF2:
		switch {
		case last && t.used&usedRep != 0:
			return ""
		case last && t.isBranch():
			return "bnd"
		case last && t.elides(p):
			return "xacquire"
		}
		return "repnz"
	case PrefixF3:
		switch {
		case last && t.used&usedRep != 0:
			return ""
		case last && t.isString() && !t.isCompare():
			return "rep"
		case last && t.elides(p):
			return "xrelease"
		}
		return "repz"
	case PrefixFS, PrefixGS:
		if last && t.used&usedSeg != 0 {
			return ""
		}
	default:
		switch {
		case last && t.used&usedFlatSeg != 0:
			return ""
		case last && set == PrefixDS && (t.inst.Flow == decode.FlowJumpIndirect || t.inst.Flow == decode.FlowCallIndirect):
			return "notrack"
		}
	}
	return segPrefixName(set)
}

func segPrefixName(p Prefixes) string {
	return [...]string{"cs", "ss", "ds", "es", "fs", "gs"}[bits.TrailingZeros16(uint16(p/PrefixCS))%6]
}

// lastPrefix returns the last prefix of a group.
func (t *writer) lastPrefix(group Prefixes) (last Prefixes) {
	for _, p := range prefixBytes(t.inst) {
		if s := Prefixes(byteClasses[p]) & group; s != 0 && byteClasses[p]&classREX == 0 {
			last = s
		}
	}
	return last
}

// isBranch reports whether the instruction is a near branch, before which F2 is
// BND.
func (t *writer) isBranch() bool {
	switch t.inst.Flow {
	case decode.FlowJump, decode.FlowJumpIf, decode.FlowCall:
		return t.d.Opcode()&^3 != 0xe0 // LOOP and JRCXZ
	case decode.FlowJumpIndirect, decode.FlowCallIndirect:
		return t.d.Reg()&1 == 0 // far ones are odd
	case decode.FlowReturn:
		return t.d.Opcode()&^1 == 0xc2 && t.d.Map() == MapOneByte
	}
	return false
}

// elides reports whether F2 or F3 marks the instruction as the bound of an
// elided lock: locked instructions, XCHG, and for F3 a MOV to memory.
func (t *writer) elides(rep byte) bool {
	if t.d.Prefixes()&PrefixLock != 0 {
		return true
	}
	if t.d.Map() != MapOneByte || !t.isMem() {
		return false
	}
	switch t.d.Opcode() &^ 1 {
	case 0x86:
		return true
	case 0x88, 0xc6:
		return rep == 0xf3
	}
	return false
}

// isString reports whether REP repeats the instruction.
func (t *writer) isString() bool {
	if t.d.Encoding() != EncLegacy || t.d.Map() != MapOneByte {
		return false
	}
	op := t.d.Opcode()
	return op >= 0x6c && op <= 0x6f || op >= 0xa4 && op <= 0xa7 || op >= 0xaa && op <= 0xaf
}

// isCompare reports whether a string instruction sets flags, so that REPZ and
// REPNZ differ.
func (t *writer) isCompare() bool {
	op := t.d.Opcode() &^ 1
	return op == 0xa6 || op == 0xae
}

// rex names a REX byte of which not all bits are used, or that is not in force.
func (t *writer) rex(b []byte, p byte, last bool) []byte {
	if last && t.d.HasREX() && t.allUsed(p&15) && (p != 0x40 || t.used&usedREX != 0) {
		return b
	}
	b = append(b, "rex"...)
	if p != 0x40 {
		b = append(b, '.')
	}
	for i, c := range []byte("WRXB") {
		if p&(8>>i) != 0 {
			b = append(b, c)
		}
	}
	return append(b, ' ')
}

func (t *writer) rex2(b []byte, p byte) []byte {
	if p&0x7f != 0 && t.allUsed(p&15|p>>4&7) {
		return b
	}
	b = append(b, "{rex2 0x"...)
	b = strconv.AppendUint(b, uint64(p), 16)
	return append(b, "} "...)
}

// allUsed reports whether the bits W R X B of a REX byte made a difference.
func (t *writer) allUsed(wrxb byte) bool {
	var bits usedParts
	for i, u := range [4]usedParts{usedB, usedX, usedR, usedW} {
		if wrxb>>i&1 != 0 {
			bits |= u
		}
	}
	return bits&^t.used == 0
}

// mnemonic writes the name.
func (t *writer) mnemonic(b []byte) []byte {
	f := t.form
	before, after, hasPredicate := strings.Cut(f.name, "?")
	b = append(b, before...)
	if hasPredicate {
		b = append(b, f.attr.predicate(t.immByte())...)
		if after == "dq" && !t.namesPredicate() {
			b = append(b, 'q')
		}
		b = append(b, after...)
	}
	if f.attr&suffixCond != 0 {
		b = append(b, condNames[t.sourceCond()]...)
	}
	b = t.suffix(b)
	if f.attr&suffixCond != 0 {
		b = append(b, ' ')
		b = append(b, defaultFlagNames[^t.d.VVVV()&15]...)
	}
	if t.inst.Flow == decode.FlowJumpIf && t.d.Encoding() == EncLegacy {
		b = t.hint(b)
	}
	return b
}

// namesPredicate reports whether the name tells what the immediate says.
func (t *writer) namesPredicate() bool {
	return t.form.attr&predAny != 0 && t.form.attr.predicate(t.immByte()) != ""
}

// sourceCond returns the condition of ccmp and ctest, which takes the place of
// the opmask and of V' (not inverted).
func (t *writer) sourceCond() byte { return t.d.EVEXaaa() | ^t.d.VVVV()>>4&1<<3 }

func (t *writer) suffix(b []byte) []byte {
	a := t.form.attr
	switch {
	case a&suffixMem != 0:
		first := operandSpecs[t.form.ops[0]].kind
		if !t.isMem() || first == opV {
			break
		}
		for _, i := range t.form.ops {
			if o := operandSpecs[i]; o.kind == opRM {
				b = append(b, sizeSuffix(t.bytes(o.size)))
			}
		}
	case a&suffixSize != 0:
		b = append(b, sizeSuffix(t.bytes(sizeV)))
	case a&suffixStack != 0:
		if (!t.isRegForm()) && t.bytes(sizeS) == 2 {
			b = append(b, 'w')
		}
	case a&(suffixXY|suffixXYZ) != 0:
		l := t.d.VectorLength()
		if t.isMem() && !t.d.EVEXb() && (l < 2 || a&suffixXYZ != 0) {
			b = append(b, 'x'+l)
		}
	}
	return b
}

// isRegForm reports whether ModRM.rm is a register operand, whose name tells the
// size.
func (t *writer) isRegForm() bool {
	k := operandSpecs[t.form.ops[0]].kind
	return (k == opRM || k == opStarRM) && !t.isMem()
}

func sizeSuffix(n int) byte { return "bwlq"[bits.Len(uint(n))-1&3] }

// hint writes the branch hint that a CS or DS prefix is.
func (t *writer) hint(b []byte) []byte {
	switch t.lastPrefix(flatSegments) {
	case PrefixCS:
		t.used |= usedFlatSeg
		return append(b, ",pn"...)
	case PrefixDS:
		t.used |= usedFlatSeg
		return append(b, ",pt"...)
	}
	return b
}

// operands writes the operands, the destination last.
func (t *writer) operands(b []byte, lookup decode.SymLookup) []byte {
	ops := &t.form.ops
	skipImm := t.namesPredicate()
	start := len(b)
	for i := len(ops) - 1; i >= 0; i-- {
		o := operandSpecs[ops[i]]
		if o.kind == opNone || skipImm && o.kind == opImm {
			continue
		}
		if (o.kind == opRounding || o.kind == opSAE) && !(t.d.Encoding() == EncEVEX && t.d.EVEXb() && t.d.Mod() == 3) {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = t.operand(b, o, lookup)
		if i == 0 && t.masked() {
			b = t.mask(b)
		}
	}
	return b
}

// mask writes the opmask behind the destination.
func (t *writer) mask(b []byte) []byte {
	if k := t.d.EVEXaaa(); k != 0 {
		b = append(b, "{%k"...)
		b = append(b, '0'+k, '}')
	}
	if t.d.EVEXz() {
		b = append(b, "{z}"...)
	}
	return b
}

func (t *writer) operand(b []byte, o operandSpec, lookup decode.SymLookup) []byte {
	switch o.kind {
	case opStarRM:
		b = append(b, '*')
		fallthrough
	case opRM:
		if t.isMem() {
			return t.memory(b, t.unit(o.elem), 0)
		}
		return t.general(b, t.bytes(o.size), t.rm())
	case opRMReg:
		return t.general(b, t.bytes(o.size), t.rm())
	case opReg:
		return t.general(b, t.bytes(o.size), t.reg())
	case opV:
		return t.general(b, t.bytes(o.size), int(t.d.VVVV()))
	case opOpcode:
		t.used |= usedB
		return t.general(b, t.bytes(o.size), int(t.d.B4()<<4|t.d.B()<<3|t.d.Opcode()&7))
	case opAcc:
		return t.general(b, t.bytes(o.size), 0)
	case opFixed:
		return append(b, fixedNames[o.size]...)
	case opVecRM, opVecReg, opVecV, opVecImm, opVSIB:
		return t.vectorOperand(b, o)
	case opTarget:
		return appendAddress(b, t.inst.Target, lookup)
	case opImm, opImm2, opImm4, opOne, opMoffs:
		return t.constant(b, o)
	case opSource, opDest, opXlat:
		return t.stringOperand(b, o.kind)
	case opRounding:
		return append(b, roundingNames[t.d.VectorLength()]...)
	case opSAE:
		return append(b, "{sae}"...)
	}
	return t.specialRegister(b, o.kind)
}

// specialRegister writes a register that is neither general nor a vector.
func (t *writer) specialRegister(b []byte, k operandKind) []byte {
	switch k {
	case opMaskRM, opMMXRM, opBndRM:
		if t.isMem() {
			return t.memory(b, 1, 0)
		}
	}
	switch k {
	case opMaskRM:
		return appendNumbered(b, "%k", int(t.d.RM()))
	case opMaskReg:
		return appendNumbered(b, "%k", int(t.d.Reg()))
	case opMaskV:
		return appendNumbered(b, "%k", int(t.d.VVVV()&7))
	case opTileRM:
		return appendNumbered(b, "%tmm", int(t.d.RM()))
	case opTileReg:
		return appendNumbered(b, "%tmm", int(t.d.Reg()))
	case opTileV:
		return appendNumbered(b, "%tmm", int(t.d.VVVV()&7))
	case opMMXRM:
		return appendNumbered(b, "%mm", int(t.d.RM()))
	case opMMXReg:
		return appendNumbered(b, "%mm", int(t.d.Reg()))
	case opBndRM:
		return appendNumbered(b, "%bnd", t.rm()&3)
	case opBndReg:
		return appendNumbered(b, "%bnd", t.reg()&3)
	case opSegReg:
		return append(append(b, '%'), segNames[t.d.Reg()]...)
	case opCtrlReg:
		return appendNumbered(b, "%cr", t.reg())
	case opDebugReg:
		return appendNumbered(b, "%db", t.reg())
	case opST:
		return append(appendNumbered(b, "%st(", int(t.d.RM())), ')')
	}
	return b
}

func appendNumbered(b []byte, prefix string, n int) []byte {
	return strconv.AppendInt(append(b, prefix...), int64(n), 10)
}

// general writes a general register of n bytes.
func (t *writer) general(b []byte, n, number int) []byte {
	b = append(b, '%')
	if n == 1 && number&^3 == 4 {
		t.used |= usedREX
		if t.d.Encoding() == EncLegacy && !t.d.HasREX() {
			return append(b, highByteNames[number&3]...)
		}
	}
	return append(b, regNames[bits.Len(uint(n))-1&3][number&31]...)
}

func (t *writer) vectorOperand(b []byte, o operandSpec) []byte {
	n := t.width(o.size)
	switch o.kind {
	case opVSIB:
		return t.memory(b, t.unit(o.elem), max(n, 16))
	case opVecRM:
		if t.isMem() {
			return t.vectorMemory(b, o, n)
		}
		return appendVector(b, n, t.vecRM())
	case opVecReg:
		return appendVector(b, n, t.reg())
	case opVecV:
		return appendVector(b, n, int(t.d.VVVV()))
	default:
		return appendVector(b, n, int(t.immByte()>>4))
	}
}

// vectorMemory writes a vector operand of n bytes in memory, or the element of
// it that is broadcast.
func (t *writer) vectorMemory(b []byte, o operandSpec, n int) []byte {
	elem := t.unit(o.elem &^ elemOnly)
	switch {
	case t.d.Encoding() != EncEVEX:
		return t.memory(b, 1, 0)
	case o.elem&elemOnly != 0:
		return t.memory(b, elem, 0)
	case t.d.EVEXb() && o.elem != 0:
		b = t.memory(b, elem, 0)
		b = append(b, "{1to"...)
		b = strconv.AppendInt(b, int64(n/elem), 10)
		return append(b, '}')
	}
	return t.memory(b, n, 0)
}

func appendVector(b []byte, width, number int) []byte {
	letter := byte('x')
	switch {
	case width >= 64:
		letter = 'z'
	case width == 32:
		letter = 'y'
	}
	return strconv.AppendInt(append(b, '%', letter, 'm', 'm'), int64(number), 10)
}

// unit returns what disp8 counts.
func (t *writer) unit(e elemSize) int {
	switch {
	case t.d.Encoding() != EncEVEX || e == 0:
		return 1
	case e == elemByW:
		return 4 << t.d.W()
	}
	return int(e)
}

// field returns n bytes of the instruction from a field's place on, with their
// sign.
func (t *writer) field(at, n uint8) int64 {
	v := uint64(0)
	n = min(n, 8)
	for i := range n {
		v |= uint64(t.inst.Raw[(at+i)&15]) << (8 * i)
	}
	shift := 64 - 8*n
	return int64(v<<shift) >> shift
}

func (t *writer) immByte() byte { return t.inst.Raw[t.inst.Fields.Imm&15] }

// constant writes an operand that stands in the instruction's last bytes.
func (t *writer) constant(b []byte, o operandSpec) []byte {
	f := t.inst.Fields
	var v uint64
	switch o.kind {
	case opOne:
		return append(b, "$1"...)
	case opMoffs:
		at, n := f.Imm, f.ImmLen
		if n == 0 {
			at, n = f.Disp, f.DispLen
		}
		v = uint64(t.field(at, n))
		if n == 4 {
			v = uint64(uint32(v))
		}
		return t.appendHex(t.segment(b), v)
	case opImm2:
		v = uint64(t.inst.Raw[(f.Imm+f.ImmLen-1)&15])
	case opImm4:
		v = uint64(t.immByte() & 15)
	default:
		size := uint8(t.bytes(o.size))
		v = uint64(t.field(f.Imm, f.ImmLen))
		if o.size == sizeB {
			v = uint64(t.immByte())
		} else if size < 8 {
			v &= 1<<(8*size) - 1
		}
	}
	return t.appendHex(append(b, '$'), v)
}

func (t *writer) appendHex(b []byte, v uint64) []byte {
	return strconv.AppendUint(append(b, "0x"...), v, 16)
}

// stringOperand writes what a string instruction reads or writes.
func (t *writer) stringOperand(b []byte, k operandKind) []byte {
	reg := 6
	switch {
	case k == opDest:
		b = append(b, "%es:"...)
		reg = 7
	case t.d.Prefixes()&basedSegments != 0:
		b = t.segment(b)
	default:
		t.used |= usedFlatSeg
		b = append(b, "%ds:"...)
	}
	if k == opXlat {
		reg = 3
	}
	b = append(b, '(')
	b = t.general(b, t.bytes(sizeA), reg)
	return append(b, ')')
}

// segment writes the segment that a prefix names, where it has a base in 64-bit
// mode.
func (t *writer) segment(b []byte) []byte {
	if t.d.Prefixes()&basedSegments == 0 {
		return b
	}
	t.used |= usedSeg
	if t.lastPrefix(basedSegments) == PrefixFS {
		return append(b, "%fs:"...)
	}
	return append(b, "%gs:"...)
}

// memory writes the operand in ModRM.rm, SIB and displacement. A disp8 counts
// units; vsib is the width of the vector of indices, 0 for a general index.
func (t *writer) memory(b []byte, unit, vsib int) []byte {
	f := t.inst.Fields
	b = t.segment(b)
	disp := t.field(f.Disp, f.DispLen)
	if f.DispLen == 1 {
		disp *= int64(unit)
	}
	addr := t.bytes(sizeA)
	t.used |= usedB
	if t.d.RM() != 4 {
		if t.d.Mod() == 0 && t.d.RM() == 5 {
			return t.ripMemory(b, disp, addr)
		}
		if t.d.Mod() != 0 {
			b = appendDisp(b, disp)
		}
		b = t.general(append(b, '('), addr, t.rm())
		return append(b, ')')
	}
	t.used |= usedX
	sib := t.inst.Raw[(f.ModRM+1)&15]
	hasBase := t.d.Mod() != 0 || sib&7 != 5
	index := int(t.d.X4()<<4 | t.d.X()<<3 | sib>>3&7)
	if vsib != 0 {
		index = int(t.d.VVVV()&16*vsibHigh(t.d) | t.d.X()<<3 | sib>>3&7)
	}
	hasIndex := vsib != 0 || index != 4
	if !hasBase && !hasIndex && sib>>6 == 0 && addr == 8 {
		return t.appendHex(b, uint64(disp))
	}
	if t.d.Mod() != 0 || !hasBase {
		b = appendDisp(b, disp)
	}
	b = append(b, '(')
	if hasBase {
		b = t.general(b, addr, int(t.d.B4()<<4|t.d.B()<<3|sib&7))
	}
	switch {
	case vsib != 0:
		b = appendVector(append(b, ','), vsib, index)
	case hasIndex:
		b = t.general(append(b, ','), addr, index)
	case hasBase && sib&7 == 4 && sib>>6 == 0:
		return append(b, ')') // SIB for rsp and r12 only
	case addr == 8:
		b = append(b, ",%riz"...)
	default:
		b = append(b, ",%eiz"...)
	}
	return append(b, ',', '0'+1<<(sib>>6), ')')
}

// vsibHigh is 1 where V' is bit 4 of the vector of indices.
func vsibHigh(d Detail) byte {
	if d.Encoding() == EncEVEX {
		return 1
	}
	return 0
}

func (t *writer) ripMemory(b []byte, disp int64, addr int) []byte {
	t.ripRelative = true
	b = appendDisp(b, disp)
	if addr == 4 {
		return append(b, "(%eip)"...)
	}
	return append(b, "(%rip)"...)
}

func appendDisp(b []byte, disp int64) []byte {
	if disp < 0 {
		b = append(b, '-')
		disp = -disp
	}
	return strconv.AppendUint(append(b, "0x"...), uint64(disp), 16)
}

// appendAddress writes an address and the symbol that holds it.
func appendAddress(b []byte, addr uint64, lookup decode.SymLookup) []byte {
	b = strconv.AppendUint(append(b, "0x"...), addr, 16)
	if lookup == nil {
		return b
	}
	name, base := lookup(addr)
	if name == "" {
		return b
	}
	b = append(append(b, " <"...), name...)
	if addr != base {
		b = strconv.AppendUint(append(b, "+0x"...), addr-base, 16)
	}
	return append(b, '>')
}

var encodingNames = [...]string{"legacy", "rex2", "vex", "vex", "evex", "xop"}

var ppNames = [4]string{"", ".66", ".f3", ".f2"}

// placeInMaps writes an instruction without a name.
func (t *writer) placeInMaps() string {
	var array [48]byte
	b := array[:0]
	name := "unknown"
	if e := int(t.d.Encoding()); e < len(encodingNames) {
		name = encodingNames[e]
	}
	b = append(b, name...)
	b = appendNumbered(b, ".map", int(t.d.Map()))
	b = append(b, ppNames[t.d.PP()]...)
	b = appendNumbered(b, ".w", int(t.d.W()))
	b = append(b, " 0x"...)
	b = strconv.AppendUint(b, uint64(t.d.Opcode()), 16)
	return string(b)
}
