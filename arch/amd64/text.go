package amd64

import (
	"math/bits"
	"strings"

	"xol/decode"
)

// Text returns the instruction as GNU objdump 2.44 writes it in AT&T syntax,
// with single spaces: prefixes that change nothing are named, numbers are
// hexadecimal with 0x, the address that a RIP-relative operand designates
// stands in a comment, and lookup, where it is not nil, names it and the
// targets of branches as <symbol+offset>.
//
// Names and operands come from instructions.txt, lengths and targets from the decoded
// instruction. An instruction that instructions.txt lacks is written as its place in
// the opcode maps, as in evex.map5.66.w0 0x58; one with the property
// decode.Invalid as (bad).
//
// golang.org/x/arch/x86/x86asm does not help here: all it knows would have to
// be known here as well, for REX2 and EVEX map 4, and its text of displacements,
// immediates and SIB operands is not GNU's.
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

// writer writes one instruction. What of its encoding something else shows
// collects in shown and rexUsed; the rest is named in front.
type writer struct {
	inst        *decode.Inst
	d           Detail
	form        *nameForm
	shown       Prefixes
	rexUsed     byte // bits of a REX byte
	ripRelative bool
}

// The bits of a REX byte.
const (
	rexB = 1 << iota
	rexX
	rexR
	rexW
	rexPresence = 0x40 // which chooses spl, bpl, sil and dil
)

// Groups of prefixes of which the last counts.
const (
	repPrefixes   = PrefixF2 | PrefixF3
	basedSegments = PrefixFS | PrefixGS
	flatSegments  = PrefixCS | PrefixSS | PrefixDS | PrefixES // without effect in 64-bit mode
)

var prefixGroups = [...]Prefixes{repPrefixes, flatSegments, basedSegments, Prefix66, Prefix67}

// prefixNames are the names of prefixes by their bits in Prefixes.
var prefixNames = [...]string{"data16", "addr32", "repnz", "repz", "lock", "cs", "ss", "ds", "es", "fs", "gs"}

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

// markConditions notes the prefixes that chose the form.
func (t *writer) markConditions() {
	mask, want := t.form.mask, t.form.want
	if mask&(3<<keyPP) != 0 {
		t.shown |= [4]Prefixes{0, Prefix66, repPrefixes, repPrefixes}[want>>keyPP&3]
	}
	if mask&(1<<keyW) != 0 {
		t.rexUsed |= rexW
	}
	if mask&(3<<keySize) != 0 {
		t.bytes(sizeV)
	}
	if mask&(1<<keyAddr32) != 0 && operandSpecs[t.form.ops[0]].kind == opTarget {
		t.shown |= Prefix67 // which register counts; addresses note it themselves
	}
	if mask&(1<<keyB) != 0 {
		t.rexUsed |= rexB
	}
}

// prefixes writes what stands before the name.
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

// prefix returns the name of a prefix that others follow, empty where the
// instruction's own name or operands show it.
func (t *writer) prefix(p byte, rest []byte) string {
	set := Prefixes(byteClasses[p])
	if isLast(set, rest) {
		switch {
		case t.shown&set != 0:
			return ""
		case set == PrefixF2 && t.isNearBranch():
			return "bnd"
		case set == PrefixF2 && t.elidesLock(set):
			return "xacquire"
		case set == PrefixF3 && t.elidesLock(set):
			return "xrelease"
		case set == PrefixF3 && t.repeats():
			return "rep"
		case set == PrefixDS && (t.inst.Flow == decode.FlowJumpIndirect || t.inst.Flow == decode.FlowCallIndirect):
			return "notrack"
		}
	}
	return prefixNames[bits.TrailingZeros16(uint16(set))]
}

// isLast reports whether no prefix of the same group follows.
func isLast(set Prefixes, rest []byte) bool {
	for _, group := range prefixGroups {
		if set&group == 0 {
			continue
		}
		for _, p := range rest {
			if Prefixes(byteClasses[p])&group != 0 {
				return false
			}
		}
	}
	return true
}

// lastPrefix returns the last prefix of a group.
func lastPrefix(inst *decode.Inst, group Prefixes) (last Prefixes) {
	for _, p := range prefixBytes(inst) {
		if set := Prefixes(byteClasses[p]) & group; set != 0 {
			last = set
		}
	}
	return last
}

// isNearBranch reports whether the instruction is a near branch, before which F2 is
// BND.
func (t *writer) isNearBranch() bool {
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

// elidesLock reports whether F2 or F3 makes the instruction an end of an elided
// lock: locked instructions, XCHG, and with F3 a MOV to memory.
func (t *writer) elidesLock(rep Prefixes) bool {
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
		return rep == PrefixF3
	}
	return false
}

// repeats reports whether F3 is REP: before string instructions that do not
// compare.
func (t *writer) repeats() bool {
	if t.d.Encoding() != EncLegacy || t.d.Map() != MapOneByte {
		return false
	}
	switch t.d.Opcode() {
	case 0x6c, 0x6d, 0x6e, 0x6f, 0xa4, 0xa5, 0xaa, 0xab, 0xac, 0xad:
		return true
	}
	return false
}

// rex names a REX byte of which not all is used, or that is not in force.
func (t *writer) rex(b []byte, p byte, last bool) []byte {
	if last && t.d.HasREX() && t.usesREX(p&15, p == rexPresence) {
		return b
	}
	b = append(b, "rex"...)
	if p != rexPresence {
		b = append(b, '.')
	}
	for i, c := range []byte("WRXB") {
		if p&(rexW>>i) != 0 {
			b = append(b, c)
		}
	}
	return append(b, ' ')
}

// rex2 names the second byte of a REX2 prefix of which not all is used.
func (t *writer) rex2(b []byte, p byte) []byte {
	wrxb := p&15 | p>>4&7
	if t.form.mask&(1<<keyREX2) != 0 || wrxb != 0 && t.usesREX(wrxb, false) {
		return b
	}
	b = appendHex(append(b, "{rex2 "...), uint64(p))
	return append(b, "} "...)
}

// usesREX reports whether the bits of a REX byte, or its presence alone, make a
// difference.
func (t *writer) usesREX(wrxb byte, alone bool) bool {
	if alone {
		return t.rexUsed&rexPresence != 0
	}
	return wrxb&^t.rexUsed == 0
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
		b = append(b, defaultFlagNames[15-t.d.VVVV()&15]...)
	}
	if t.inst.Flow == decode.FlowJumpIf && t.d.ModRM() == 0 { // not XBEGIN
		b = t.hint(b)
	}
	return b
}

// namesPredicate reports whether the name tells what the immediate says.
func (t *writer) namesPredicate() bool {
	return t.form.attr&predAny != 0 && t.form.attr.predicate(t.immByte()) != ""
}

// sourceCond returns the condition of ccmp and ctest, which takes the place of
// the opmask and, not inverted, of V'.
func (t *writer) sourceCond() byte {
	if t.d.VVVV() < 16 {
		return t.d.EVEXaaa() | 8
	}
	return t.d.EVEXaaa()
}

// suffix writes what the form's name ends in.
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
		if !t.isRegForm() && t.bytes(sizeS) == 2 {
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

func sizeSuffix(n int) byte { return "bwlq"[(bits.Len(uint(n))-1)&3] }

// hint writes the branch hint that a CS or DS prefix is.
func (t *writer) hint(b []byte) []byte {
	switch lastPrefix(t.inst, flatSegments) {
	case PrefixCS:
		t.shown |= flatSegments
		return append(b, ",pn"...)
	case PrefixDS:
		t.shown |= flatSegments
		return append(b, ",pt"...)
	}
	return b
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
	b = appendHex(append(b, ' '), uint64(t.d.Opcode()))
	return string(b)
}
