package amd64

import "xol/classify"

// The opcode maps that the instruction decoder of Linux knows
// [arch/x86/lib/x86-opcode-map.txt, arch/x86/lib/insn.c], as far as lengths
// and refusals depend on them: those of 6.12, and what other versions have
// instead in kernelMapChanges. They are facts about that decoder, with its gaps,
// not about the instruction set; tables_gen.go holds that.
//
// A letter says what follows an opcode and in which encodings the kernel takes
// it: see kernelForms. A dot is an opcode without operand bytes, also where
// the kernel does not know it: it accepts such bytes in a legacy encoding.

// kernelMap0 is the one-byte map, a letter per opcode. What is a prefix at its
// place is an ordinary opcode after another prefix: there the letter holds.
const kernelMap0 = "" +
	"MMMMbz..MMMMbz.." + // 00
	"MMMMbz..MMMMbz.." + // 10
	"MMMMbzp.MMMMbzp." + // 20
	"MMMMbzp.MMMMbzp." + // 30
	"................" + // 40
	"................" + // 50
	"..MMppppzZbm...." + // 60
	"bbbbbbbbbbbbbbbb" + // 70
	"mZmmMMMMMMMMMMMM" + // 80
	"..........f....." + // 90
	"oooo....bz......" + // A0
	"bbbbbbbbqqqqqqqq" + // B0
	"mmw.MMmZn.w..b.." + // C0
	"MMMMbb..MMMMMMMM" + // D0
	"bbbbbbbbjjfb...." + // E0
	"p.pp..GG......MM" // F0

// kernelMaps are the other maps by their number, in rows of sixteen opcodes; a
// missing row is all dots. An opcode has four letters: without a mandatory
// prefix, with 66, with F3, with F2, as a legacy prefix or as pp of VEX and
// EVEX. G refers to kernelGroups.
var kernelMaps = [8][16]string{
	Map0F: {
		0x0: "MMMM MMMM MMMM MMMM .... .... .... .... .... .... .... .... .... MMMM .... mmmm",
		0x1: "VVVV VVVV VVVV VV.. VV.. VV.. VVV. VV.. MMMM .... MMMM MMMM MMMM .... MMMM MMMM",
		0x2: "MMMM MMMM MMMM MMMM .... .... .... .... VV.. VV.. MMVV VV.. MMVV MMVV VV.. VV..",
		0x4: "MMMM VV.. VV.. MMMM VV.. VV.. VV.. VV.. MMMM MMMM VV.. VV.. MMMM MMMM MMMM MMMM",
		0x5: "VV.. VVVV V.V. V.V. VV.. VV.. VV.. VV.. VVVV VVVV VVVV VVV. VVVV VVVV VVVV VVVV",
		0x6: "MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. .V.. .V.. MV.. MVVE",
		0x7: "mvvv GGGG GGGG GGGG MV.. MV.. MV.. N... VEEE VEEE .EEE .EEE .V.V .V.V MVV. MVVE",
		0x8: "jjjj jjjj jjjj jjjj jjjj jjjj jjjj jjjj jjjj jjjj jjjj jjjj jjjj jjjj jjjj jjjj",
		0x9: "VV.. VV.. VV.V VV.V MMMM MMMM MMMM MMMM VV.. VV.. MMMM MMMM MMMM MMMM MMMM MMMM",
		0xA: ".... .... .... MMMM mmmm MMMM MMMM MMMM .... .... .... MMMM mmmm MMMM GGGG MMMM",
		0xB: "MMMM MMMM MMMM MMMM MMMM MMMM MMMM MMMM ..M. MMMM mmmm MMMM MMMM MMMM MMMM MMMM",
		0xC: "MMMM MMMM vvvv MMMM mv.. mv.. vv.. MMMM .... .... .... .... .... .... .... ....",
		0xD: ".V.V MV.. MV.. MV.. MV.. MV.. .VMM MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV..",
		0xE: "MV.. MV.. MV.. MV.. MV.. MV.. .VVV MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV..",
		0xF: "...V MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. ....",
	},
	Map0F38: {
		0x0: "MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. MV.. .X.. .X.. .X.. .X..",
		0x1: ".VE. .EE. .EE. .XE. .VE. .VE. .X.. .V.. .X.. .X.. .X.. .E.. MV.. MV.. MV.. .E..",
		0x2: ".VE. .VE. .VE. .VE. .VE. .VE. .EE. .EE. .VE. .VE. .VE. .V.. .X.. .X.. .X.. .X..",
		0x3: ".VE. .VE. .VE. .VE. .VE. .VE. .X.. .V.. .VE. .VE. .VE. .V.. .V.. .V.. .V.. .V..",
		0x4: ".V.. .V.. .E.. .E.. .E.. .X.. .X.. .X.. .... VV.V .... .VXV .E.. .E.. .E.. .E..",
		0x5: "XVXX XVXX .VEE .V.E .E.. .E.. .... .... .X.. .X.. .X.. .E.. ..VV .... VVVV ....",
		0x6: ".... .... .E.. .E.. .E.. .E.. .E.. .... ...E .... .... .... VV.. .... .... ....",
		0x7: ".E.. .E.. .EVE .E.. .... .E.. .E.. .E.. .X.. .X.. .E.. .E.. .E.. .E.. .E.. .E..",
		0x8: ".M.. .M.. .M.. .E.. .... .... .... .... .E.. .E.. .E.. .E.. .X.. .E.. .X.. .E..",
		0x9: ".X.. .X.. .X.. .X.. .... .... .X.. .X.. .X.. .X.. .X.E .X.E .X.. .X.. .X.. .X..",
		0xA: ".E.. .E.. .E.. .E.. .... .... .X.. .X.. .X.. .X.. .X.E .X.E .X.. .X.. .X.. .X..",
		0xB: "XXXX .XX. .... .... .V.. .V.. .X.. .X.. .X.. .X.. .X.. .X.. .X.. .X.. .X.. .X..",
		0xC: ".... .... .... .... .E.. .... GGGG GGGG ME.. MMMM ME.. ME.X ME.X ME.X .... .V..",
		0xD: ".... .... XXX. XXX. .... .... .... .... ..M. .... VVXX .V.. .VM. .VM. .VM. .VM.",
		0xE: ".V.. .V.. .V.. .V.. .V.. .V.. .V.. .V.. .V.. .V.. .V.. .V.. .V.. .V.. .V.. .V..",
		0xF: "MM.M MM.M X!!! GGGG .... XMXX MMMX XXXX .MMM MMMM ..M. ..M. MMMM .... .... ....",
	},
	Map0F3A: {
		0x0: ".x.. .x.. .x.. .e.. .x.. .x.. .x.. .... vv.. .v.. vv.. .v.. .v.. .v.. .v.. mv..",
		0x1: ".... .... .... .... .v.. .v.. .v.. .v.. .x.. .x.. .e.. .e.. .... .x.. .e.. .e..",
		0x2: ".v.. .v.. .v.. .e.. .... .e.. ee.. ee.. .... .... .... .... .... .... .... ....",
		0x3: ".x.. .x.. .x.. .x.. .... .... .... .... .x.. .x.. .e.. .e.. .... .... .e.. .e..",
		0x4: ".v.. .v.. .v.. .e.. .v.. .... .x.. .... .... .... .x.. .x.. .v.. .... .... ....",
		0x5: ".e.. .e.. .... .... .e.. .e.. ee.. ee.. .... .... .... .... .... .... .... ....",
		0x6: ".v.. .v.. .v.. .v.. .... .... ee.. ee.. .... .... .... .... .... .... .... ....",
		0x7: ".e.. .e.. .e.. .e.. .... .... .... .... .... .... .... .... .... .... .... ....",
		0xC: ".... .... e.e. .... .... .... .... .... .... .... .... .... mmmm .... .v.. .v..",
		0xD: ".... .... .... .... .... .... .... .... .... .... .... .... .... .... .v.. .v..",
		0xF: "..mx .... .... .... .... .... .... .... .... .... .... .... .... .... .... ....",
	},
	Map4: {
		0x0: "E... EE.. E... EE.. .... .... .... .... E... EE.. E... EE.. .... .... .... ....",
		0x1: "E... EE.. E... EE.. .... .... .... .... E... EE.. E... EE.. .... .... .... ....",
		0x2: "E... EE.. E... EE.. ee.. .... .... .... E... EE.. E... EE.. ee.. .... .... ....",
		0x3: "E... EE.. E... EE.. .... .... .... .... E... EE.. E... EE.. .... .... .... ....",
		0x4: "EE.E EE.E EE.E EE.E EE.E EE.E EE.E EE.E EE.E EE.E EE.E EE.E EE.E EE.E EE.E EE.E",
		0x6: "EE.. EE.. .... .... .... .E.. EEE. .... .... ZZ.. .... ee.. .... .... .... ....",
		0x8: "eeee ZZZZ .... eeee E... EE.. .... .... EE.. .... .... .... .... .... .... E...",
		0xA: ".... .... .... .... .... EE.. .... .... .... .... .... .... .... EE.. .... EE..",
		0xC: "eeee eeee .... .... .... .... .... .... .... .... .... .... .... .... .... ....",
		0xD: "EEEE EEEE EEEE EEEE .... .... .... .... .... .... .... .... .... .... .... ....",
		0xF: "E.E. EEE. ..E. .... EE.. EE.. GGGG GGGG .EEE E... .... .... .... .... EEEE EEEE",
	},
	Map5: {
		0x1: "..E. ..E. .... .... .... .... .... .... .... .... .... .... .... EE.. .... ....",
		0x2: ".... .... .... .... .... .... .... .... .... .... ..E. .... ..E. ..E. E... E...",
		0x5: ".... E.E. .... .... .... .... .... .... E.E. E.E. EEEE EEE. E.E. E.E. E.E. E.E.",
		0x6: ".... .... .... .... .... .... .... .... .... .... .... .... .... .... .E.. ....",
		0x7: ".... .... .... .... .... .... .... .... EEE. EEE. .E.E .EE. EE.. EEEE .E.. ....",
	},
	Map6: {
		0x1: ".... .... .... EE.. .... .... .... .... .... .... .... .... .... .... .... ....",
		0x2: ".... .... .... .... .... .... .... .... .... .... .... .... .E.. .E.. .... ....",
		0x4: ".... .... .E.. .E.. .... .... .... .... .... .... .... .... .E.. .E.. .E.. .E..",
		0x5: ".... .... .... .... .... .... ..EE ..EE .... .... .... .... .... .... .... ....",
		0x9: ".... .... .... .... .... .... .E.. .E.. .E.. .E.. .E.. .E.. .E.. .E.. .E.. .E..",
		0xA: ".... .... .... .... .... .... .E.. .E.. .E.. .E.. .E.. .E.. .E.. .E.. .E.. .E..",
		0xB: ".... .... .... .... .... .... .E.. .E.. .E.. .E.. .E.. .E.. .E.. .E.. .E.. .E..",
		0xD: ".... .... .... .... .... .... ..EE ..EE .... .... .... .... .... .... .... ....",
	},
	Map7: {
		0xF: ".... .... .... .... .... .... .... .... ..DD .... .... .... .... .... .... ....",
	},
}

// kernelGroups are the opcodes whose form depends on ModRM.reg: a letter for
// each reg, by prefix.
var kernelGroups = [...]kernelGroup{
	{MapOneByte, 0xF6, [4]string{"mmMMMMMM", "mmMMMMMM", "mmMMMMMM", "mmMMMMMM"}},
	{MapOneByte, 0xF7, [4]string{"ZZMMMMMM", "ZZMMMMMM", "ZZMMMMMM", "ZZMMMMMM"}},
	{Map0F, 0x71, [4]string{"MMmMmMmM", "MMvMvMvM", "MMMMMMMM", "MMMMMMMM"}},
	{Map0F, 0x72, [4]string{"MMmMmMmM", "vvvMvMvM", "MMMMMMMM", "MMMMMMMM"}},
	{Map0F, 0x73, [4]string{"MMmMMMmM", "MMvvMMvv", "MMMMMMMM", "MMMMMMMM"}},
	{Map0F, 0xAE, [4]string{"MMVVMMMM", "MMMMMMMM", "MMMMMMMM", "MMMMMMMM"}},
	{Map0F38, 0xC6, [4]string{"MMMMMMMM", "MVVMMVVM", "MMMMMMMM", "MMMMMMMM"}},
	{Map0F38, 0xC7, [4]string{"MMMMMMMM", "MVVMMVVM", "MMMMMMMM", "MMMMMMMM"}},
	{Map0F38, 0xF3, [4]string{"MVVVMMMM", "MVVVMMMM", "MVVVMMMM", "MVVVMMMM"}},
	{Map4, 0xF6, [4]string{"eeEEEEEE", "eeEEEEEE", "eeEEEEEE", "eeEEEEEE"}},
	{Map4, 0xF7, [4]string{"ZZEEEEEE", "ZZEEEEEE", "ZZEEEEEE", "ZZEEEEEE"}},
	{MapXOPA, 0x12, [4]string{"DDXXXXXX", "DDXXXXXX", "DDXXXXXX", "DDXXXXXX"}},
}

type kernelGroup struct {
	m     Map
	op    byte
	forms [4]string
}

// kernelMapChange is a row of a map that some versions have instead of that of
// 6.12. Empty letters are an unknown row.
type kernelMapChange struct {
	versions classify.Span
	m        Map
	row      int // 0 to 15, or everyRow
	letters  string
}

const everyRow = -1

// kernelMapChanges are these rows. The one-byte map and those of XOP have one
// letter per opcode.
var kernelMapChanges = [...]kernelMapChange{
	{until(linux5_10.Patch(262)), MapOneByte, 0x6, "..MMppppjZbm...."},
	{until(linux6_1), Map0F38, 0x4, ".V.. .V.. .E.. .E.. .E.. .X.. .X.. .X.. .... .... .... .... .E.. .E.. .E.. .E.."},
	{until(linux6_1), Map0F38, 0x5, ".E.. .E.. .EEE .E.E .E.. .E.. .... .... .X.. .X.. .X.. .E.. .... .... .... ...."},
	{until(linux6_1), Map0F3A, 0x0, ".x.. .x.. .x.. .e.. .x.. .x.. .x.. .... .v.. .v.. .v.. .v.. .v.. .v.. .v.. mv.."},
	{until(linux6_1), Map0F3A, 0x2, ".v.. .v.. .v.. .e.. .... .e.. .e.. .e.. .... .... .... .... .... .... .... ...."},
	{until(linux6_1), Map0F3A, 0x5, ".e.. .e.. .... .... .e.. .e.. .e.. .e.. .... .... .... .... .... .... .... ...."},
	{until(linux6_1), Map0F3A, 0x6, ".v.. .v.. .v.. .v.. .... .... .e.. .e.. .... .... .... .... .... .... .... ...."},
	{until(linux6_1), Map0F3A, 0xC, ".... .... .... .... .... .... .... .... .... .... .... .... mmmm .... .v.. .v.."},
	{until(linux6_1), Map0F3A, 0xF, "...x .... .... .... .... .... .... .... .... .... .... .... .... .... .... ...."},
	{until(linux6_1), Map5, everyRow, ""},
	{until(linux6_1), Map6, everyRow, ""},
	{classify.Span{Since: linux6_1, Until: linux6_12}, Map0F38, 0x5, ".V.. .V.. .VEE .V.E .E.. .E.. .... .... .X.. .X.. .X.. .E.. ..V. .... VVVV ...."},
	{until(linux6_12), Map0F38, 0x6, ".... .... .E.. .E.. .E.. .E.. .E.. .... ...E .... .... .... .... .... .... ...."},
	{until(linux6_12), Map0F38, 0x7, ".E.. .E.. .EEE .E.. .... .E.. .E.. .E.. .X.. .X.. .E.. .E.. .E.. .E.. .E.. .E.."},
	{until(linux6_12), Map0F38, 0xB, ".... .... .... .... .E.. .E.. .X.. .X.. .X.. .X.. .X.. .X.. .X.. .X.. .X.. .X.."},
	{until(linux6_12), Map0F38, 0xC, ".... .... .... .... .E.. .... GGGG GGGG ME.. MMMM ME.. ME.. ME.. ME.. .... .V.."},
	{until(linux6_12), Map0F38, 0xD, ".... .... .... .... .... .... .... .... .... .... .... .V.. .V.. .V.. .V.. .V.."},
	{until(linux6_12), Map0F38, 0xE, ""},
	{until(linux6_12), Map0F38, 0xF, "MM.M MM.M X!!! GGGG .... XMXX MMMX XXXX .MMM MMMM .... .... .... .... .... ...."},
	{until(linux6_12), Map0F3A, 0xD, ".... .... .... .... .... .... .... .... .... .... .... .... .... .... .... .v.."},
	{until(linux6_12), Map4, everyRow, ""},
	{until(linux6_12), Map7, everyRow, ""},
	{since(linux6_18), MapXOP8, 0x8, ".....xxx......xx"},
	{since(linux6_18), MapXOP8, 0x9, ".....xxx......xx"},
	{since(linux6_18), MapXOP8, 0xA, "..xx..x........."},
	{since(linux6_18), MapXOP8, 0xB, "......x........."},
	{since(linux6_18), MapXOP8, 0xC, "xxxx........xxxx"},
	{since(linux6_18), MapXOP8, 0xE, "............xxxx"},
	{since(linux6_18), MapXOP9, 0x0, ".XX............."},
	{since(linux6_18), MapXOP9, 0x1, "..X............."},
	{since(linux6_18), MapXOP9, 0x8, "XXXX............"},
	{since(linux6_18), MapXOP9, 0x9, "XXXXXXXXXXXX...."},
	{since(linux6_18), MapXOP9, 0xC, ".XXX..XX...X...."},
	{since(linux6_18), MapXOP9, 0xD, ".XXX..XX...X...."},
	{since(linux6_18), MapXOP9, 0xE, ".XXX............"},
	{since(linux6_18), MapXOPA, 0x1, "D.G............."},
}
