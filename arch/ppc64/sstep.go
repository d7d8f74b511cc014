package ppc64

// step is what Linux's emulator makes of an instruction
// [arch/powerpc/lib/sstep.c]: one of the operations, at most one need, and
// guarded.
type step uint16

// The operations, as analyse_instr tells them apart.
const (
	emuUnknown step = iota // not emulated
	emuCompute
	emuBranch
	emuBarrier
	emuLoad
	emuLoadMulti
	emuLoadFP
	emuLoadVMX
	emuLoadVSX
	emuStore
	emuStoreMulti
	emuStoreFP
	emuStoreVMX
	emuStoreVSX
	emuLARX
	emuSTCX
	emuCache
	emuMFMSR
	emuMFSPR
	emuMTSPR

	emuExtended // the extended opcode decides

	operations step = 0xff
)

// operationNames are the kernel's.
var operationNames = [...]string{
	"", "COMPUTE", "BRANCH", "BARRIER",
	"LOAD", "LOAD_MULTI", "LOAD_FP", "LOAD_VMX", "LOAD_VSX",
	"STORE", "STORE_MULTI", "STORE_FP", "STORE_VMX", "STORE_VSX",
	"LARX", "STCX", "CACHEOP", "MFMSR", "MFSPR", "MTSPR",
}

// What an instruction must fulfil to be emulated.
const (
	needISA31     step = (iota + 1) << 8 // a CPU of Power ISA 3.1
	needEven                             // RT is even
	needQuad                             // RT is even and not RA
	needQuadIndex                        // RT is even, not RA and not RB
	needBelow                            // RA is below RT
	needUserSPR                          // the SPR is XER, LR or CTR
	needRandom                           // L of darn is not 3
	needKernel                           // not in problem state

	needs step = 0x7f00
)

// guarded: the emulator reaches the program's memory in a way that is stopped
// by protection against unintended access to it (KUAP).
const guarded step = 0x8000

// name returns the kernel's name of the operation.
func (s step) name() string { return operationNames[s&operations] }

// mode is what the emulator's answer depends on beside the instruction.
type mode struct {
	user  bool // the probe is in a program, not in the kernel
	isa30 bool // the CPU is one of Power ISA 3.0, not 3.1
}

// emulate returns what the kernel's emulator makes of an instruction, prefix
// in the upper half; emuUnknown where the instruction runs out of line. Reserved
// bits and much of invalid forms are not looked at.
func (m mode) emulate(word uint64) step {
	s := stepOf(word)
	if s&needs != 0 && !m.meets(s&needs, uint32(word)) {
		return emuUnknown
	}
	return s
}

// meets reports whether a word or suffix fulfils a need.
func (m mode) meets(need step, word uint32) bool {
	rt, ra, rb := word>>21&31, word>>16&31, word>>11&31
	switch need {
	case needISA31:
		return !m.isa30
	case needEven:
		return rt&1 == 0
	case needQuad:
		return rt&1 == 0 && rt != ra
	case needQuadIndex:
		return rt&1 == 0 && rt != ra && rt != rb
	case needBelow:
		return ra < rt
	case needUserSPR:
		const xer, lr, ctr = 1, 8, 9
		return rb == 0 && (ra == xer || ra == lr || ra == ctr)
	case needRandom:
		return ra&3 != 3
	case needKernel:
		return !m.user
	}
	return true
}

// stepOf looks an instruction up by primary and extended opcode.
func stepOf(word uint64) step {
	if word>>32 != 0 {
		return prefixedStep(word)
	}
	s := steps[word>>26]
	if s == emuExtended {
		return extendedStep(word)
	}
	return s
}

// extendedStep looks at the extended opcode.
func extendedStep(word uint64) step {
	switch word >> 26 {
	case 4:
		return steps4[word&63]
	case 6:
		return steps6[word&15]
	case 19:
		if word>>1&31 == 2 {
			return emuCompute // addpcis
		}
		return steps19[word>>1&1023]
	case 30:
		return steps30[word>>1&15]
	case 31:
		if word>>1&31 == 15 {
			return emuCompute // isel
		}
		return steps31[word>>1&1023]
	case 57:
		return steps57[word&3]
	case 58:
		return steps58[word&3]
	case 61:
		return steps61[word&7]
	default:
		return steps62[word&3]
	}
}

// prefixedStep looks at the type of the prefix and the opcode of the suffix.
// With R=1 the suffix must have no base register.
func prefixedStep(word uint64) step {
	const r = 1 << 52
	if word&r != 0 && word>>16&31 != 0 {
		return emuUnknown
	}
	switch opcode := word >> 26 & 63; word >> 56 & 3 {
	case 0:
		return steps8LS[opcode]
	case 2:
		return stepsMLS[opcode]
	}
	return emuUnknown
}

// steps are the instructions that their primary opcode alone makes out.
var steps = [64]step{
	4: emuExtended, 6: emuExtended, 19: emuExtended, 30: emuExtended, 31: emuExtended,
	57: emuExtended, 58: emuExtended, 61: emuExtended, 62: emuExtended,

	7: emuCompute, 8: emuCompute, 10: emuCompute, 11: emuCompute, // mulli subfic cmpli cmpi
	12: emuCompute, 13: emuCompute, 14: emuCompute, 15: emuCompute, // addic addic. addi addis
	16: emuBranch, 18: emuBranch, // bc b
	20: emuCompute, 21: emuCompute, 23: emuCompute, // rlwimi rlwinm rlwnm
	24: emuCompute, 25: emuCompute, 26: emuCompute, 27: emuCompute, // ori oris xori xoris
	28: emuCompute, 29: emuCompute, // andi. andis.
	32: emuLoad, 33: emuLoad, // lwz lwzu
	34: emuLoad, 35: emuLoad, // lbz lbzu
	36: emuStore, 37: emuStore, // stw stwu
	38: emuStore, 39: emuStore, // stb stbu
	40: emuLoad, 41: emuLoad, // lhz lhzu
	42: emuLoad, 43: emuLoad, // lha lhau
	44: emuStore, 45: emuStore, // sth sthu
	46: emuLoadMulti | needBelow, 47: emuStoreMulti, // lmw stmw
	48: emuLoadFP, 49: emuLoadFP, // lfs lfsu
	50: emuLoadFP, 51: emuLoadFP, // lfd lfdu
	52: emuStoreFP, 53: emuStoreFP, // stfs stfsu
	54: emuStoreFP, 55: emuStoreFP, // stfd stfdu
	56: emuLoad | needQuad | guarded, // lq
}

var steps4 = [64]step{
	48: emuCompute, 49: emuCompute, 51: emuCompute, // maddhd maddhdu maddld
}

var steps6 = [16]step{
	0: emuLoadVSX | needISA31, 1: emuStoreVSX | needISA31, // lxvp stxvp
}

var steps19 = [1024]step{
	0:  emuCompute,                // mcrf
	16: emuBranch, 528: emuBranch, // bclr bcctr
	33: emuCompute, 129: emuCompute, 193: emuCompute, 225: emuCompute, // crnor crandc crxor crnand
	257: emuCompute, 289: emuCompute, 417: emuCompute, 449: emuCompute, // crand creqv crorc cror
	150: emuBarrier, // isync
}

// steps30 are indexed by the four bits before Rc.
var steps30 = [16]step{
	emuCompute, emuCompute, emuCompute, emuCompute, // rldicl rldicr
	emuCompute, emuCompute, emuCompute, emuCompute, // rldic rldimi
	emuCompute, emuCompute, // rldcl rldcr
}

var steps57 = [4]step{
	0: emuLoadFP | needEven, 2: emuLoadVSX, 3: emuLoadVSX, // lfdp lxsd lxssp
}

var steps58 = [4]step{
	0: emuLoad, 1: emuLoad, 2: emuLoad, // ld ldu lwa
}

var steps62 = [4]step{
	0: emuStore, 1: emuStore, 2: emuStore | needEven | guarded, // std stdu stq
}

var steps61 = [8]step{
	0: emuStoreFP, 4: emuStoreFP, // stfdp
	1: emuLoadVSX, 5: emuStoreVSX, // lxv stxv
	2: emuStoreVSX, 6: emuStoreVSX, // stxsd
	3: emuStoreVSX, 7: emuStoreVSX, // stxssp
}

var steps31 = [1024]step{
	598: emuBarrier, 854: emuBarrier, // sync eieio

	83:  emuMFMSR | needKernel,
	339: emuMFSPR | needUserSPR, 467: emuMTSPR | needUserSPR,
	19: emuCompute, 144: emuCompute, 128: emuCompute, // mfcr mtcrf setb

	0: emuCompute, 32: emuCompute, 508: emuCompute, // cmp cmpl cmpb
	8:  emuCompute,                                                 // subfc
	10: emuCompute,                                                 // addc
	9:  emuCompute, 11: emuCompute, 73: emuCompute, 75: emuCompute, // mulhdu mulhwu mulhd mulhw
	40: emuCompute, 104: emuCompute, 136: emuCompute, 138: emuCompute, // subf neg subfe adde
	200: emuCompute, 202: emuCompute, 232: emuCompute, 234: emuCompute, // subfze addze subfme addme
	233: emuCompute, 235: emuCompute, 266: emuCompute, // mulld mullw add
	457: emuCompute, 459: emuCompute, 489: emuCompute, 491: emuCompute, // divdu divwu divd divw
	393: emuCompute, 425: emuCompute, // divdeu divde
	265: emuCompute, 267: emuCompute, // modud moduw
	777: emuCompute, 779: emuCompute, // modsd modsw
	755: emuCompute | needRandom,                                      // darn
	26:  emuCompute, 58: emuCompute, 538: emuCompute, 570: emuCompute, // cntlzw cntlzd cnttzw cnttzd
	28: emuCompute, 60: emuCompute, 124: emuCompute, 284: emuCompute, // and andc nor eqv
	316: emuCompute, 412: emuCompute, 444: emuCompute, 476: emuCompute, // xor orc or nand
	122: emuCompute, 378: emuCompute, 506: emuCompute, // popcntb popcntw popcntd
	154: emuCompute, 186: emuCompute, 252: emuCompute, // prtyw prtyd bpermd
	922: emuCompute, 954: emuCompute, 986: emuCompute, // extsh extsb extsw
	24: emuCompute, 536: emuCompute, 792: emuCompute, 824: emuCompute, // slw srw sraw srawi
	27: emuCompute, 539: emuCompute, 794: emuCompute, 826: emuCompute, 827: emuCompute, // sld srd srad sradi
	890: emuCompute, 891: emuCompute, // extswsli

	54: emuCache | guarded, 86: emuCache | guarded, 982: emuCache | guarded, // dcbst dcbf icbi
	246: emuCache, 278: emuCache, 1014: emuCache, // dcbtst dcbt dcbz

	52: emuLARX | guarded, 116: emuLARX | guarded, 20: emuLARX | guarded, 84: emuLARX | guarded, // lbarx lharx lwarx ldarx
	276: emuLARX | needQuadIndex | guarded,                                                         // lqarx
	694: emuSTCX | guarded, 726: emuSTCX | guarded, 150: emuSTCX | guarded, 214: emuSTCX | guarded, // stbcx. sthcx. stwcx. stdcx.
	182: emuSTCX | needEven | guarded, // stqcx.

	23: emuLoad, 55: emuLoad, 87: emuLoad, 119: emuLoad, // lwzx lwzux lbzx lbzux
	21: emuLoad, 53: emuLoad, 279: emuLoad, 311: emuLoad, // ldx ldux lhzx lhzux
	341: emuLoad, 373: emuLoad, 343: emuLoad, 375: emuLoad, // lwax lwaux lhax lhaux
	532: emuLoad, 534: emuLoad, 790: emuLoad, // ldbrx lwbrx lhbrx
	149: emuStore, 181: emuStore, 151: emuStore, 183: emuStore, // stdx stdux stwx stwux
	215: emuStore, 247: emuStore, 407: emuStore, 439: emuStore, // stbx stbux sthx sthux
	660: emuStore, 662: emuStore, 918: emuStore, // stdbrx stwbrx sthbrx
	533: emuLoadMulti, 597: emuLoadMulti, 661: emuStoreMulti, 725: emuStoreMulti, // lswx lswi stswx stswi

	535: emuLoadFP, 567: emuLoadFP, 599: emuLoadFP, 631: emuLoadFP, // lfsx lfsux lfdx lfdux
	791: emuLoadFP, 855: emuLoadFP, 887: emuLoadFP, // lfdpx lfiwax lfiwzx
	663: emuStoreFP, 695: emuStoreFP, 727: emuStoreFP, 759: emuStoreFP, // stfsx stfsux stfdx stfdux
	919: emuStoreFP, 983: emuStoreFP, // stfdpx stfiwx

	7: emuLoadVMX, 39: emuLoadVMX, 71: emuLoadVMX, 103: emuLoadVMX, 359: emuLoadVMX, // lvebx lvehx lvewx lvx lvxl
	135: emuStoreVMX, 167: emuStoreVMX, 199: emuStoreVMX, 231: emuStoreVMX, 487: emuStoreVMX, // stvebx stvehx stvewx stvx stvxl

	12: emuLoadVSX, 76: emuLoadVSX, 140: emuStoreVSX, // lxsiwzx lxsiwax stxsiwx
	332: emuLoadVSX, 524: emuLoadVSX, 588: emuLoadVSX, 780: emuLoadVSX, 844: emuLoadVSX, // lxvdsx lxsspx lxsdx lxvw4x lxvd2x
	652: emuStoreVSX, 716: emuStoreVSX, 908: emuStoreVSX, 972: emuStoreVSX, // stxsspx stxsdx stxvw4x stxvd2x
	268: emuLoadVSX, 269: emuLoadVSX, 301: emuLoadVSX, // lxvx lxvl lxvll
	364: emuLoadVSX, 781: emuLoadVSX, 812: emuLoadVSX, // lxvwsx lxsibzx lxvh8x
	813: emuLoadVSX, 876: emuLoadVSX, // lxsihzx lxvb16x
	396: emuStoreVSX, 397: emuStoreVSX, 429: emuStoreVSX, // stxvx stxvl stxvll
	909: emuStoreVSX, 940: emuStoreVSX, // stxsibx stxvh8x
	941: emuStoreVSX, 1004: emuStoreVSX, // stxsihx stxvb16x
	333: emuLoadVSX | needISA31, 461: emuStoreVSX | needISA31, // lxvpx stxvpx
}

// steps8LS and stepsMLS are indexed by the primary opcode of the suffix.
var steps8LS = [64]step{
	41: emuLoad | needISA31, 57: emuLoad | needISA31, 61: emuStore | needISA31, // plwa pld pstd
	42: emuLoadVSX | needISA31, 43: emuLoadVSX | needISA31, // plxsd plxssp
	46: emuStoreVSX | needISA31, 47: emuStoreVSX | needISA31, // pstxsd pstxssp
	50: emuLoadVSX | needISA31, 51: emuLoadVSX | needISA31, // plxv
	54: emuStoreVSX | needISA31, 55: emuStoreVSX | needISA31, // pstxv
	56: emuLoad | needISA31 | guarded, 60: emuStore | needISA31 | guarded, // plq pstq
	58: emuLoadVSX | needISA31, 62: emuStoreVSX | needISA31, // plxvp pstxvp
}

var stepsMLS = [64]step{
	14: emuCompute | needISA31,                                                                         // paddi
	32: emuLoad | needISA31, 34: emuLoad | needISA31, 40: emuLoad | needISA31, 42: emuLoad | needISA31, // plwz plbz plhz plha
	36: emuStore | needISA31, 38: emuStore | needISA31, 44: emuStore | needISA31, // pstw pstb psth
	48: emuLoadFP | needISA31, 50: emuLoadFP | needISA31, // plfs plfd
	52: emuStoreFP | needISA31, 54: emuStoreFP | needISA31, // pstfs pstfd
}
