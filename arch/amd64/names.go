package amd64

import "xol/decode"

//go:generate go run gennames.go

// nameForm is how one instruction is written: a line of instructions.txt.
type nameForm struct {
	mask, want uint32   // it is this one where nameKey&mask == want
	name       string   // without its suffix; ? stands for a predicate
	ops        [5]uint8 // indices in operandSpecs, the destination first
	attr       nameAttr
}

// nameAttr says what a form's name changes with.
type nameAttr uint16

const (
	suffixMem   nameAttr = 1 << iota // b w l q: size of the operand in memory
	suffixSize                       // w l q: operand size
	suffixStack                      // w: operand of 16 bits instead of 64
	suffixXY                         // x y: length of the vector in memory, but for 512 bits
	suffixXYZ                        // x y z: likewise
	suffixCond                       // condition of ccmp and ctest
	pseudoVEX                        // {vex} in front
	hasTwin                          // {evex} in front where a shorter encoding could say the same
	scalar                           // EVEX without vectors: the opmask bits hold NF
	predCmp8                         // predicate of cmpps and its kin
	predCmp32                        // of vcmpps
	predInt                          // of vpcmpd
	predXOP                          // of vpcomd
	predClmul                        // of pclmulqdq

	predAny = predCmp8 | predCmp32 | predInt | predXOP | predClmul
)

// operandSpec is how one operand is written.
type operandSpec struct {
	kind operandKind
	size operandSize
	elem elemSize
}

// operandKind says where an operand is encoded and what it is.
type operandKind uint8

const (
	opNone     operandKind = iota
	opRM                   // general register or memory in ModRM.rm
	opRMReg                // general register in ModRM.rm, whatever its mod
	opReg                  // general register in ModRM.reg
	opV                    // in vvvv
	opOpcode               // in the low bits of the opcode
	opAcc                  // the accumulator, in the operand's size
	opFixed                // register that the opcode implies; size is a fixedReg
	opStarRM               // opRM as the operand of an indirect branch
	opVecRM                // vector or memory in ModRM.rm
	opVecReg               // vector in ModRM.reg
	opVecV                 // in vvvv
	opVecImm               // in the upper half of the immediate
	opVSIB                 // memory with a vector of indices
	opMaskRM               // mask register or memory in ModRM.rm
	opMaskReg              // mask register in ModRM.reg
	opMaskV                // in vvvv
	opTileRM               // tile in ModRM.rm
	opTileReg              // in ModRM.reg
	opTileV                // in vvvv
	opMMXRM                // MMX register or memory in ModRM.rm
	opMMXReg               // MMX register in ModRM.reg
	opBndRM                // bound register or memory in ModRM.rm
	opBndReg               // bound register in ModRM.reg
	opSegReg               // segment register in ModRM.reg
	opCtrlReg              // control register in ModRM.reg
	opDebugReg             // debug register in ModRM.reg
	opST                   // x87 register in ModRM.rm
	opImm                  // immediate, extended with its sign to size
	opImm2                 // second byte of two
	opImm4                 // low half of the immediate
	opOne                  // 1
	opTarget               // target of a direct branch
	opMoffs                // absolute address
	opSource               // string at ds:rsi
	opDest                 // string at es:rdi
	opXlat                 // table at ds:rbx
	opRounding             // {rn-sae} and its kin
	opSAE                  // {sae}
)

// operandSize is the size of an operand, often of its register form only.
type operandSize uint8

const (
	sizeB operandSize = iota // 1 byte
	sizeW                    // 2
	sizeD                    // 4
	sizeQ                    // 8
	sizeV                    // 2, 4, 8: operand size
	sizeZ                    // 2, 4: operand size, W ignored
	sizeR                    // 4, 8: W
	sizeS                    // 8, or 2 with 66
	sizeA                    // 8, or 4 with 67
	sizeO                    // 16: xmm
	sizeY                    // 32: ymm
	sizeX                    // vector length
	sizeH                    // half of it
	sizeF                    // a fourth
	sizeE                    // an eighth
	sizeM                    // memory of vmovddup: 8 bytes where the vector has 16
)

// elemSize is the size in bytes of the element that EVEX may broadcast, or the
// unit of disp8.
type elemSize uint8

const (
	elemOnly elemSize = 0x40 // the memory form is one element
	elemByW  elemSize = 0x80 // 4 or 8, by W
)

// fixedReg is a register that an opcode implies: an index in fixedNames.
const (
	regAL operandSize = iota
	regCL
	regAX
	regEAX
	regEBX
	regECX
	regEDX
	regXMM0
	regDXMem
	regFS
	regGS
	regST
)

var fixedNames = [...]string{
	"%al", "%cl", "%ax", "%eax", "%ebx", "%ecx", "%edx", "%xmm0", "(%dx)", "%fs", "%gs", "%st",
}

// regNames are the names of general registers by size (1 2 4 8 bytes), as REX
// makes them.
var regNames = [4][32]string{
	{
		"al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b", "r15b",
		"r16b", "r17b", "r18b", "r19b", "r20b", "r21b", "r22b", "r23b", "r24b", "r25b", "r26b", "r27b", "r28b", "r29b", "r30b", "r31b",
	},
	{
		"ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8w", "r9w", "r10w", "r11w", "r12w", "r13w", "r14w", "r15w",
		"r16w", "r17w", "r18w", "r19w", "r20w", "r21w", "r22w", "r23w", "r24w", "r25w", "r26w", "r27w", "r28w", "r29w", "r30w", "r31w",
	},
	{
		"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d",
		"r16d", "r17d", "r18d", "r19d", "r20d", "r21d", "r22d", "r23d", "r24d", "r25d", "r26d", "r27d", "r28d", "r29d", "r30d", "r31d",
	},
	{
		"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
		"r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31",
	},
}

// highByteNames are byte registers 4 to 7 without REX.
var highByteNames = [4]string{"ah", "ch", "dh", "bh"}

var segNames = [8]string{"es", "cs", "ss", "ds", "fs", "gs", "?", "?"}

var roundingNames = [4]string{"{rn-sae}", "{rd-sae}", "{ru-sae}", "{rz-sae}"}

// condNames are the conditions of ccmp and ctest; 10 and 11 are always and never
// (Intel APX specification, table of source condition codes).
var condNames = [16]string{"o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "t", "f", "l", "ge", "le", "g"}

var defaultFlagNames = [16]string{
	"{dfv=}", "{dfv=cf}", "{dfv=zf}", "{dfv=zf, cf}", "{dfv=sf}", "{dfv=sf, cf}", "{dfv=sf, zf}", "{dfv=sf, zf, cf}",
	"{dfv=of}", "{dfv=of, cf}", "{dfv=of, zf}", "{dfv=of, zf, cf}", "{dfv=of, sf}", "{dfv=of, sf, cf}", "{dfv=of, sf, zf}", "{dfv=of, sf, zf, cf}",
}

var cmpPredicates = [32]string{
	"eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord",
	"eq_uq", "nge", "ngt", "false", "neq_oq", "ge", "gt", "true",
	"eq_os", "lt_oq", "le_oq", "unord_s", "neq_us", "nlt_uq", "nle_uq", "ord_s",
	"eq_us", "nge_uq", "ngt_uq", "false_os", "neq_os", "ge_oq", "gt_oq", "true_us",
}

var intPredicates = [8]string{"eq", "lt", "le", "", "neq", "nlt", "nle", ""}

var xopPredicates = [8]string{"lt", "le", "gt", "ge", "eq", "neq", "false", "true"}

// predicate returns the name of the predicate in a form's immediate byte, empty
// where it has none.
func (a nameAttr) predicate(imm byte) string {
	switch {
	case a&predCmp8 != 0 && imm < 8, a&predCmp32 != 0 && imm < 32:
		return cmpPredicates[imm]
	case a&predInt != 0 && imm < 8:
		return intPredicates[imm]
	case a&predXOP != 0 && imm < 8:
		return xopPredicates[imm]
	case a&predClmul != 0:
		switch imm {
		case 0x00:
			return "lqlq"
		case 0x01:
			return "hqlq"
		case 0x10:
			return "lqhq"
		case 0x11:
			return "hqhq"
		}
	}
	return ""
}

// nameSpace numbers the opcode maps in the order of gennames.go.
func (d Detail) nameSpace() (int, bool) {
	m := int(d.Map())
	switch d.Encoding() {
	case EncLegacy, EncREX2:
		if d.Map() == Map3DNow {
			return 4, true
		}
		return m, m < 4
	case EncVEX2, EncVEX3:
		if d.Map() == Map7 {
			return 8, true
		}
		return 4 + m, 1 <= m && m <= 3
	case EncEVEX:
		return 8 + m, 1 <= m && m <= 7
	case EncXOP:
		return 8 + m, 8 <= m && m <= 10
	}
	return 0, false
}

// legacyPP returns the mandatory prefix of a legacy instruction as pp has it:
// the last of F2 and F3, else 66.
func legacyPP(inst *decode.Inst, d Detail) uint32 {
	pp := uint32(0)
	for _, b := range prefixBytes(inst) {
		switch {
		case b == 0x66 && pp == 0:
			pp = 1
		case b == 0xf3:
			pp = 2
		case b == 0xf2:
			pp = 3
		}
	}
	return pp
}

// nameKey packs what the conditions of instructions.txt compare.
func nameKey(inst *decode.Inst, d Detail) uint32 {
	key := uint32(d.W())<<keyW | uint32(d.VectorLength())<<keyL |
		uint32(d.Reg())<<keyReg | uint32(d.RM())<<keyRM |
		bit(d.EVEXb())<<keyND | uint32(d.EVEXaaa()>>2)<<keyNF |
		bit(d.Prefixes()&Prefix67 != 0)<<keyAddr32 |
		uint32(d.B()|d.B4())<<keyB | bit(d.Encoding() == EncREX2)<<keyREX2
	if inst.Fields.Operands != 0 && d.Mod() != 3 {
		key |= 1 << keyMem
		key |= bit(d.Mod() == 0 && d.RM() == 5) << keyRIP
	}
	switch d.Encoding() {
	case EncLegacy, EncREX2:
		key |= legacyPP(inst, d) << keyPP
	default:
		key |= uint32(d.PP()) << keyPP
	}
	switch d.operandBytes() {
	case 2:
		key |= 1 << keySize
	case 4:
		key |= 2 << keySize
	default:
		key |= 3 << keySize
	}
	return key
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// findName returns the form of an instruction, nil where instructions.txt has none.
func findName(inst *decode.Inst, d Detail) *nameForm {
	space, ok := d.nameSpace()
	if !ok {
		return nil
	}
	at := space<<8 | int(d.Opcode())
	key := nameKey(inst, d)
	for i := nameStart[at]; i < nameStart[at+1]; i++ {
		if f := &nameForms[i]; key&f.mask == f.want {
			return f
		}
	}
	return nil
}
