package amd64

import "xol/decode"

// Encoding is the family of an instruction's encoding.
type Encoding uint8

// The families.
const (
	EncLegacy Encoding = iota // with or without REX
	EncREX2                   // D5 prefix
	EncVEX2                   // C5
	EncVEX3                   // C4
	EncEVEX                   // 62
	EncXOP                    // 8F
)

// Map is an opcode map.
type Map uint8

// The opcode maps. Those of VEX and EVEX share the numbers of the legacy maps
// that they extend; XOP has maps of its own.
const (
	MapOneByte Map = 0
	Map0F      Map = 1
	Map0F38    Map = 2
	Map0F3A    Map = 3
	Map4       Map = 4 // EVEX: promoted legacy instructions of APX
	Map5       Map = 5
	Map6       Map = 6
	Map7       Map = 7
	MapXOP8    Map = 8
	MapXOP9    Map = 9
	MapXOPA    Map = 10
	Map3DNow   Map = 15 // 0F 0F, opcode after the operands
)

// Prefixes is the set of legacy prefixes before an instruction, repeated
// ones and ones without effect among them.
type Prefixes uint16

// The legacy prefixes.
const (
	Prefix66 Prefixes = 1 << iota // operand size
	Prefix67                      // address size
	PrefixF2
	PrefixF3
	PrefixLock // F0
	PrefixCS   // 2E
	PrefixSS   // 36
	PrefixDS   // 3E
	PrefixES   // 26
	PrefixFS   // 64
	PrefixGS   // 65
)

// Detail is an amd64 instruction's encoding in one word, as it stands in
// decode.Inst.Detail.
//
//	bits  0-7   opcode byte
//	bits  8-15  ModRM byte; present where Fields.Operands is not 0
//	bits 16-19  Encoding
//	bits 20-23  Map
//	bits 24-34  Prefixes
//	bits 35-41  W R X B R4 X4 B4 of REX, REX2, VEX, EVEX or XOP, not inverted
//	bits 42-46  vvvv with V4 of EVEX, not inverted
//	bits 47-48  vector length L'L
//	bits 49-50  pp of VEX, EVEX and XOP
//	bit  51     EVEX.b (in map 4: ND)
//	bit  52     EVEX.z
//	bits 53-55  EVEX.aaa (in map 4: bit 55 is NF)
//	bits 56-59  number of legacy prefix bytes
//	bit  60     a REX byte (40-4F) is present and in force
type Detail uint64

// DetailOf returns the encoding of an instruction that this package decoded.
func DetailOf(i *decode.Inst) Detail { return Detail(i.Detail) }

// Opcode returns the opcode byte.
func (d Detail) Opcode() byte { return byte(d) }

// ModRM returns the ModRM byte, 0 where there is none.
func (d Detail) ModRM() byte { return byte(d >> 8) }

// Mod returns bits 6-7 of ModRM.
func (d Detail) Mod() byte { return byte(d>>14) & 3 }

// Reg returns bits 3-5 of ModRM, without an extension.
func (d Detail) Reg() byte { return byte(d>>11) & 7 }

// RM returns bits 0-2 of ModRM, without an extension.
func (d Detail) RM() byte { return byte(d>>8) & 7 }

// Encoding returns the family of the encoding.
func (d Detail) Encoding() Encoding { return Encoding(d>>16) & 15 }

// Map returns the opcode map.
func (d Detail) Map() Map { return Map(d>>20) & 15 }

// Prefixes returns the legacy prefixes.
func (d Detail) Prefixes() Prefixes { return Prefixes(d>>24) & 0x7ff }

// PrefixCount returns the number of legacy prefix bytes.
func (d Detail) PrefixCount() int { return int(d>>56) & 15 }

// HasREX reports whether a REX byte is present and in force.
func (d Detail) HasREX() bool { return d>>60&1 != 0 }

// W returns the operand-size bit of REX and its kin; R, X, B and R4, X4, B4
// the extensions of ModRM.reg, SIB.index and ModRM.rm or SIB.base.
func (d Detail) W() byte { return byte(d>>35) & 1 }

// R returns bit 3 of the register in ModRM.reg.
func (d Detail) R() byte { return byte(d>>36) & 1 }

// X returns bit 3 of the register in SIB.index.
func (d Detail) X() byte { return byte(d>>37) & 1 }

// B returns bit 3 of the register in ModRM.rm, SIB.base or the opcode.
func (d Detail) B() byte { return byte(d>>38) & 1 }

// R4 returns bit 4 of the register in ModRM.reg.
func (d Detail) R4() byte { return byte(d>>39) & 1 }

// X4 returns bit 4 of the register in SIB.index.
func (d Detail) X4() byte { return byte(d>>40) & 1 }

// B4 returns bit 4 of the register in ModRM.rm, SIB.base or the opcode.
func (d Detail) B4() byte { return byte(d>>41) & 1 }

// VVVV returns the register in vvvv, with EVEX.V' as bit 4.
func (d Detail) VVVV() byte { return byte(d>>42) & 31 }

// VectorLength returns L of VEX and XOP, L'L of EVEX.
func (d Detail) VectorLength() byte { return byte(d>>47) & 3 }

// PP returns the compressed legacy prefix: 0 none, 1 66, 2 F3, 3 F2.
func (d Detail) PP() byte { return byte(d>>49) & 3 }

// EVEXb returns EVEX.b.
func (d Detail) EVEXb() bool { return d>>51&1 != 0 }

// EVEXz returns EVEX.z.
func (d Detail) EVEXz() bool { return d>>52&1 != 0 }

// EVEXaaa returns EVEX.aaa.
func (d Detail) EVEXaaa() byte { return byte(d>>53) & 7 }

// Branch66 reports whether i is a near branch on whose operand-size prefix
// vendors differ: Intel ignores the prefix in 64-bit mode, as Decode does; AMD
// truncates the new RIP to 16 bits, and for E8, E9 and 0F 80-8F takes a
// displacement of 2 bytes. With REX.W they agree.
func Branch66(i *decode.Inst) bool {
	d := DetailOf(i)
	if d.Prefixes()&Prefix66 == 0 || d.W() != 0 || d.Encoding() != EncLegacy {
		return false
	}
	return nearBranches.has(i)
}
