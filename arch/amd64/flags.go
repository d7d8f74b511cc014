package amd64

import "xol/decode"

// flagUse says which status flags an instruction reads, and which it sets in any case
// [Intel SDM, volume 1, appendix A; AMD APM, volume 3]. What is left undefined is not
// among these, but for AF after a logical operation, which every CPU sets. 0 is an
// instruction of which nothing is known.
type flagUse uint64

const (
	fNone  flagUse = 1 << 63 // known, and uses no flags
	fGroup flagUse = 1 << 62 // more than the opcode tells

	readsShift = 16
	sC         = fNone | FlagCF
	sZ         = fNone | FlagZF
	sShift     = fNone | FlagCF | FlagPF | FlagZF | FlagSF          // by more than one
	sBits      = fNone | FlagOF | FlagSF | FlagZF | FlagCF          // andn, blsr …
	sField     = fNone | FlagOF | FlagZF | FlagCF                   // bextr
	sMul       = fNone | FlagOF | FlagCF                            // and a rotation by one
	sOne       = sShift | sMul                                      // a shift by one
	sLow       = fNone | lahfFlags                                  // sahf
	sOrdered   = fNone | FlagZF | FlagPF | FlagCF                   // fcomi
	sCount     = fNone | FlagOF | FlagSF | FlagZF | FlagAF | FlagPF // inc
	sAll       = fNone | statusFlags

	rC    = fNone | FlagCF<<readsShift
	rP    = fNone | FlagPF<<readsShift
	rZ    = fNone | FlagZF<<readsShift
	rS    = fNone | FlagSF<<readsShift
	rO    = fNone | FlagOF<<readsShift
	rCZ   = rC | rZ
	rSO   = rS | rO
	rZSO  = rZ | rSO
	rLow  = fNone | lahfFlags<<readsShift
	rAll  = fNone | statusFlags<<readsShift
	carry = rC | sC   // cmc
	adc   = rC | sAll // and sbb
)

// uses returns the flags that are read, and those that are set.
func (u flagUse) uses() (read, set uint64) {
	if u == 0 {
		return statusFlags, 0
	}
	return uint64(u >> readsShift & statusFlags), uint64(u & statusFlags)
}

var oneByteFlags = [256]flagUse{
	0x00: sAll, sAll, sAll, sAll, sAll, sAll, 0, 0, sAll, sAll, sAll, sAll, sAll, sAll, 0, 0,
	0x10: adc, adc, adc, adc, adc, adc, 0, 0, adc, adc, adc, adc, adc, adc, 0, 0,
	0x20: sAll, sAll, sAll, sAll, sAll, sAll, 0, 0, sAll, sAll, sAll, sAll, sAll, sAll, 0, 0,
	0x30: sAll, sAll, sAll, sAll, sAll, sAll, 0, 0, sAll, sAll, sAll, sAll, sAll, sAll, 0, 0,
	0x50: fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone,
	0x63: fNone, 0x68: fNone, sMul, fNone, sMul,
	0x70: rO, rO, rC, rC, rZ, rZ, rCZ, rCZ, rS, rS, rP, rP, rSO, rSO, rZSO, rZSO,
	0x80: fGroup, fGroup, 0, fGroup, sAll, sAll, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone,
	0x90: fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, 0, fNone, rAll, sAll, sLow, rLow,
	0xa0: fNone, fNone, fNone, fNone, fNone, fNone, fGroup, fGroup, sAll, sAll, fNone, fNone, fNone, fNone, fGroup, fGroup,
	0xb0: fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone,
	0xc0: fGroup, fGroup, fNone, fNone, 0, 0, fGroup, fGroup, fNone, fNone,
	0xd0: fGroup, fGroup, fGroup, fGroup, 0, 0, 0, fNone, fNone, fNone, fGroup, fGroup, fNone, fNone, fNone, fGroup,
	0xe0: rZ, rZ, fNone, fNone, 0, 0, 0, 0, fNone, fNone, 0, fNone,
	0xf5: carry, fGroup, fGroup, sC, sC, 0, 0, fNone, fNone, fGroup, fGroup,
}

var map0FFlags = [256]flagUse{
	0x02: sZ, sZ, // lar, lsl
	0x0d: fNone,
	0x10: fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone,
	0x28: fNone, fNone, fNone, fNone, fNone, fNone, sAll, sAll, // and ucomiss, comiss
	0x31: fNone, 0x33: fNone,
	0x40: rO, rO, rC, rC, rZ, rZ, rCZ, rCZ, rS, rS, rP, rP, rSO, rSO, rZSO, rZSO,
	0x50: fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone,
	0x60: fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone,
	0x70: fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, 0, 0, 0, 0, fNone, fNone, fNone, fNone,
	0x80: rO, rO, rC, rC, rZ, rZ, rCZ, rCZ, rS, rS, rP, rP, rSO, rSO, rZSO, rZSO,
	0x90: rO, rO, rC, rC, rZ, rZ, rCZ, rCZ, rS, rS, rP, rP, rSO, rSO, rZSO, rZSO,
	0xa0: fNone, fNone, fNone, sC, fGroup, fNone, 0, 0, fNone, fNone, 0, sC, fGroup, fNone, fGroup, sMul,
	0xb0: sAll, sAll, 0, sC, 0, 0, fNone, fNone, sAll, 0, sC, sC, sZ, sZ, fNone, fNone,
	0xc0: sAll, sAll, fNone, fNone, fNone, fNone, fNone, fGroup, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone,
	0xd0: fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone,
	0xe0: fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone,
	0xf0: fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone, fNone,
}

// rangeFlags are the uses of opcodes in other maps and encodings. The first row that
// has the opcode counts.
type rangeFlags struct {
	opcodeRange
	use flagUse
}

var longFlags = [...]rangeFlags{
	{opcodeRange{Map0F38, 0x17, 0x17}, sAll}, // ptest
	{opcodeRange{Map0F38, 0x00, 0x41}, fNone},
	{opcodeRange{Map0F38, 0xc8, 0xcf}, fNone},
	{opcodeRange{Map0F38, 0xdb, 0xdf}, fGroup},
	{opcodeRange{Map0F38, 0xf0, 0xf1}, fNone}, // movbe, crc32
	{opcodeRange{Map0F38, 0xf6, 0xf6}, fGroup},
	{opcodeRange{Map0F38, 0xf9, 0xf9}, fNone}, // movdiri
	{opcodeRange{Map0F3A, 0x60, 0x63}, sAll},  // pcmpestri …
	{opcodeRange{Map0F3A, 0x00, 0xdf}, fNone},
	{opcodeRange{Map3DNow, 0x00, 0xff}, fNone},
}

var vexFlags = [...]rangeFlags{
	{opcodeRange{Map0F, 0x2e, 0x2f}, sAll},
	{opcodeRange{Map0F, 0x98, 0x99}, sAll}, // kortest, ktest
	{opcodeRange{Map0F, 0x00, 0xff}, fNone},
	{opcodeRange{Map0F38, 0x0e, 0x0f}, sAll}, // vtestps
	{opcodeRange{Map0F38, 0x17, 0x17}, sAll},
	{opcodeRange{Map0F38, 0x00, 0xdf}, fNone},
	{opcodeRange{Map0F38, 0xe0, 0xef}, sAll}, // cmpccxadd
	{opcodeRange{Map0F38, 0xf2, 0xf3}, sBits},
	{opcodeRange{Map0F38, 0xf5, 0xf7}, fGroup},
	{opcodeRange{Map0F3A, 0x60, 0x63}, sAll},
	{opcodeRange{Map0F3A, 0x00, 0xff}, fNone},
	{opcodeRange{MapXOP8, 0x00, 0xff}, fNone},
	{opcodeRange{MapXOP9, 0x01, 0x02}, sBits},
	{opcodeRange{MapXOP9, 0x80, 0xff}, fNone},
	{opcodeRange{MapXOPA, 0x10, 0x10}, sField},
}

// Legacy instructions that EVEX has as well are not among these.
var evexFlags = [...]rangeFlags{
	{opcodeRange{Map0F, 0x2e, 0x2f}, sAll},
	{opcodeRange{Map0F, 0x00, 0x8f}, fNone},
	{opcodeRange{Map0F, 0xa0, 0xff}, fNone},
	{opcodeRange{Map0F38, 0x00, 0xdf}, fNone},
	{opcodeRange{Map0F3A, 0x00, 0xef}, fNone},
	{opcodeRange{Map5, 0x2e, 0x2f}, sAll},
	{opcodeRange{Map5, 0x00, 0xff}, fNone},
	{opcodeRange{Map6, 0x00, 0xff}, fNone},
}

// flagUseOf returns what an instruction does with the status flags itself.
func flagUseOf(inst *decode.Inst) flagUse {
	d := DetailOf(inst)
	u := flagUse(0)
	switch enc := d.Encoding(); {
	case inst.Has(decode.Invalid):
		return 0
	case enc == EncEVEX:
		u = flagsInRange(evexFlags[:], d)
	case enc != EncLegacy && enc != EncREX2:
		u = flagsInRange(vexFlags[:], d)
	case d.Map() == MapOneByte:
		u = oneByteFlags[d.Opcode()]
	case d.Map() == Map0F:
		u = map0FFlags[d.Opcode()]
	default:
		u = flagsInRange(longFlags[:], d)
	}
	if u&fGroup != 0 {
		return groupFlags(inst, d)
	}
	return u
}

func flagsInRange(list []rangeFlags, d Detail) flagUse {
	for i := range list {
		r := &list[i]
		if r.opMap == d.Map() && r.lo <= d.Opcode() && d.Opcode() <= r.hi {
			return r.use
		}
	}
	return 0
}

// By ModRM.reg.
var (
	flagsImmediate = [8]flagUse{sAll, sAll, adc, adc, sAll, sAll, sAll, sAll}             // 80, 81, 83
	flagsShiftOne  = [8]flagUse{sMul, sMul, rC | sMul, rC | sMul, sOne, sOne, sOne, sOne} // D0, D1
	flagsShiftBy   = [8]flagUse{sC, sC, rC, rC, sShift, sShift, sShift, sShift}           // C0, C1
	flagsShiftAny  = [8]flagUse{fNone, fNone, rC, rC, fNone, fNone, fNone, fNone}         // by cl, which may be 0
	flagsMove      = [8]flagUse{0: fNone}                                                 // C6, C7, but xabort
	flagsUnary     = [8]flagUse{sAll, sAll, fNone, sAll, sMul, sMul, fNone, fNone}        // F6, F7
	flagsIndirect  = [8]flagUse{sCount, sCount, fNone, fNone, fNone, fNone, fNone}        // FE, FF
	flagsMoveIf    = [8]flagUse{rC, rZ, rCZ, rP, fNone, sOrdered, sOrdered, fNone}        // DA, DB of registers: fcmov, fcomi
	flagsExchange  = [8]flagUse{1: sZ, 3: fNone, 4: fNone, 5: fNone}                      // 0F C7 of memory: cmpxchg8b, xsavec
	flagsRandom    = [8]flagUse{6: sAll, 7: sAll}                                         // 0F C7 of registers
)

// groupFlags is flagUseOf where the opcode does not tell.
func groupFlags(inst *decode.Inst, d Detail) flagUse {
	switch legacy := d.Encoding() == EncLegacy || d.Encoding() == EncREX2; {
	case !legacy:
		return vexGroupFlags(d)
	case d.Map() == MapOneByte:
		return oneByteGroupFlags(inst, d)
	case d.Map() == Map0F:
		return map0FGroupFlags(inst, d)
	}
	return map0F38GroupFlags(d)
}

func oneByteGroupFlags(inst *decode.Inst, d Detail) flagUse {
	reg, register := d.Reg(), d.Mod() == 3
	switch d.Opcode() &^ 1 {
	case 0x80, 0x82:
		return flagsImmediate[reg]
	case 0xa6, 0xae: // cmps, scas
		if isRepeated(inst) {
			return fNone
		}
		return sAll
	case 0xc0:
		return shiftFlags(inst, d)
	case 0xc6:
		return flagsMove[reg]
	case 0xd0:
		return flagsShiftOne[reg]
	case 0xd2:
		return flagsShiftAny[reg]
	case 0xf6:
		return flagsUnary[reg]
	case 0xfe:
		return flagsIndirect[reg]
	}
	fewer := reg < 5 && d.Opcode() == 0xdf || reg >= 5 && d.Opcode() == 0xda
	if !register || fewer { // x87
		return fNone
	}
	return flagsMoveIf[reg]
}

// shiftFlags is flagUseOf for shifts by a constant. By as many bits as the operand
// has, CF is undefined.
func shiftFlags(inst *decode.Inst, d Detail) flagUse {
	count, bits := inst.Raw[inst.Fields.Imm]&31, byte(32)
	switch {
	case d.Opcode() == 0xc0:
		bits = 8
	case d.W() != 0:
		count, bits = inst.Raw[inst.Fields.Imm]&63, 64
	case d.operandIs16():
		bits = 16
	}
	switch {
	case count == 0 || count >= bits:
		return flagsShiftAny[d.Reg()]
	case count == 1:
		return flagsShiftOne[d.Reg()]
	}
	return flagsShiftBy[d.Reg()]
}

func map0FGroupFlags(inst *decode.Inst, d Detail) flagUse {
	register := d.Mod() == 3
	prefixed := d.Prefixes()&(Prefix66|PrefixF2|PrefixF3) != 0
	switch d.Opcode() {
	case 0xa4, 0xac: // shld, shrd
		mask := 31 | d.W()<<5
		if d.operandIs16() || inst.Raw[inst.Fields.Imm]&mask == 0 {
			return fNone
		}
		return sShift
	case 0xae:
		if d.Reg() == 6 && prefixed { // umwait and its kin
			return 0
		}
		return fNone
	}
	switch {
	case !register:
		return flagsExchange[d.Reg()]
	case prefixed:
		return 0
	}
	return flagsRandom[d.Reg()]
}

func map0F38GroupFlags(d Detail) flagUse {
	prefixes := d.Prefixes()
	switch {
	case d.Opcode() != 0xf6 && prefixes&PrefixF3 != 0: // of Key Locker
		return 0
	case d.Opcode() != 0xf6:
		return fNone
	case prefixes&PrefixF3 != 0:
		return rO | fNone | FlagOF // adox
	case prefixes&Prefix66 != 0:
		return carry // adcx
	}
	return fNone
}

func vexGroupFlags(d Detail) flagUse {
	switch {
	case d.PP() != 0: // pdep, mulx, sarx and their kin
		return fNone
	case d.Opcode() == 0xf5: // bzhi
		return sBits
	}
	return sField // bextr
}
