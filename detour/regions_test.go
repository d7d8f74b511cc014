package detour_test

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"xol/arch"
)

// region is instructions that a jump may replace.
type region struct {
	name  string
	hex   string   // amd64
	words []uint32 // elsewhere
	user  bool     // relies on the red zone of user mode
	dead  uint64   // bytes after it that the jump overwrites as well
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	code, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// code returns the bytes in memory.
func (r region) code(t testing.TB, isa arch.Prober) (code []byte) {
	t.Helper()
	if r.hex != "" {
		return unhex(t, r.hex)
	}
	for _, w := range r.words {
		if isa.Name() == "ppc64" {
			code = binary.BigEndian.AppendUint32(code, w)
		} else {
			code = binary.LittleEndian.AppendUint32(code, w)
		}
	}
	return code
}

func regionsOf(isa arch.Prober) []region {
	switch isa.Name() {
	case "amd64":
		return amd64Regions
	case "arm64":
		return arm64Regions
	}
	return ppc64Regions
}

var amd64Regions = []region{
	{name: "nothing", hex: "90 90 90 90 90"},
	{name: "flags that are set before", hex: "4811c1 4819d3"},                     // adc, sbb
	{name: "flags that are saved", hex: "9c 58 9c 59 90"},                         // pushf; pop
	{name: "the direction flag", hex: "a4 a5 ac 90 90"},                           // movsb, movsl, lodsb
	{name: "the red zone", hex: "48894424f8 488b4c2480", user: true},              // mov %rax,-8(%rsp); mov -128(%rsp),%rcx
	{name: "the stack pointer as a value", hex: "4889e0 488d5c2408"},              // mov %rsp,%rax; lea 8(%rsp),%rbx
	{name: "pushes", hex: "55 4889e5 4154 53"},                                    //
	{name: "pops", hex: "5b 415c 5d 4158"},                                        //
	{name: "a prologue", hex: "55 4889e5 4883ec20"},                               //
	{name: "the stack pointer lowered by a register", hex: "4883e4f0 4829c4"},     //
	{name: "memory by instruction pointer", hex: "488b0577070000 4889056d070000"}, // loads and stores
	{name: "the instruction pointer as a value", hex: "488d0577070000"},           //
	{name: "a conditional branch out", hex: "4839c8 7540"},                        //
	{name: "a long branch out", hex: "85c9 0f8c00010000"},                         //
	{name: "a branch over a part of it", hex: "7503 48ffc0 48ffc1"},               //
	{name: "a call", hex: "e800010000"},                                           //
	{name: "an indirect call", hex: "48ffc0 ffd3"},                                //
	{name: "a return", hex: "4883c408 c3"},                                        //
	{name: "a return with dead bytes after", hex: "31c0 c3", dead: 2},
	{name: "a jump", hex: "31c0 90 90 eb40"},                                          //
	{name: "SIMD registers", hex: "660fefc1 0f28d8"},                                  // pxor, movaps
	{name: "more bytes than the jump has", hex: "31c0 48b88877665544332211"},          //
	{name: "a repeated instruction", hex: "f3aa 90 90 90"},                            // rep stosb
	{name: "every register", hex: "4801c3 4c01c1 4d01ca 4d01e3 4d01f5 4801f7 4d01fd"}, //
}

var arm64Regions = []region{
	{name: "nothing", words: []uint32{0xd503201f}},
	{name: "flags that are set before", words: []uint32{0xba020020}}, // adcs x0, x1, x2
	{name: "flags as a value", words: []uint32{0xd53b4200}},          // mrs x0, nzcv
	{name: "a condition", words: []uint32{0x9a9f17e0}},               // cset x0, eq
	{name: "the stack pointer as a value", words: []uint32{0x910003e0}},
	{name: "the stack pointer lowered", words: []uint32{0xd10083ff}},
	{name: "a push", words: []uint32{0xa9bf7bfd}}, // stp x29, x30, [sp, #-16]!
	{name: "a pop", words: []uint32{0xa8c17bfd}},
	{name: "memory", words: []uint32{0xf94000a6}},
	{name: "a literal", words: []uint32{0x58000205}},
	{name: "an address", words: []uint32{0x30000105}},
	{name: "a page", words: []uint32{0xb0000105}},
	{name: "a branch", words: []uint32{0x14000040}},
	{name: "a conditional branch", words: []uint32{0x54000200}},
	{name: "a compare and branch", words: []uint32{0xb4000203}},
	{name: "a test and branch", words: []uint32{0xb6400203}},
	{name: "a call", words: []uint32{0x94000040}},
	{name: "an indirect call", words: []uint32{0xd63f0060}},
	{name: "an indirect branch", words: []uint32{0xd61f0200}},
	{name: "a return", words: []uint32{0xd65f03c0}},
	{name: "SIMD registers", words: []uint32{0x4e228420}},
	{name: "several", words: []uint32{0xba020020, 0x54000040, 0x30000105, 0x91000421}},
}

var ppc64Regions = []region{
	{name: "nothing", words: []uint32{0x60000000}},
	{name: "a carry that is set before", words: []uint32{0x7c642914}}, // adde r3,r4,r5
	{name: "a result that is compared", words: []uint32{0x7c642a15}},  // add. r3,r4,r5
	{name: "conditions as a value", words: []uint32{0x7c600026}},      // mfcr r3
	{name: "XER as a value", words: []uint32{0x7c6102a6}},
	{name: "LR as a value", words: []uint32{0x7c0802a6}},
	{name: "CTR set", words: []uint32{0x7c6903a6}},
	{name: "the stack pointer as a value", words: []uint32{0x7c230b78}}, // mr r3,r1
	{name: "a stack frame", words: []uint32{0xf821ff91}},
	{name: "the nearest word of the red zone", words: []uint32{0xe861fff8}},
	{name: "the last word of the red zone", words: []uint32{0xe861fe00}, user: true},
	{name: "a store in the caller's frame", words: []uint32{0xf8010010}},
	{name: "an address", words: []uint32{0x4c600004}}, // addpcis
	{name: "a branch", words: []uint32{0x48000100}},
	{name: "a conditional branch", words: []uint32{0x41820040}},
	{name: "a branch that counts", words: []uint32{0x42000040}},
	{name: "a call", words: []uint32{0x48000101}},
	{name: "an indirect branch", words: []uint32{0x4e800420}},
	{name: "an indirect call", words: []uint32{0x4e800421}},
	{name: "a return", words: []uint32{0x4e800020}},
	{name: "the address of the next instruction", words: []uint32{0x429f0005}}, // bcl 20,31,$+4
	{name: "VSX registers", words: []uint32{0xf0010c97}},
	{name: "several", words: []uint32{0x7c642914, 0x41820008, 0x38630001, 0x7c642a15}},
}
