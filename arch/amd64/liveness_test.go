package amd64

import (
	"testing"

	"xol/decode"
	"xol/detour"
)

func TestDeadFlags(t *testing.T) {
	const all = statusFlags
	abi := detour.LivenessOptions{ABI: true}
	for _, c := range []struct {
		name, code string
		opt        detour.LivenessOptions
		want       uint64
	}{
		{"sub sets all", "4883ec08", detour.LivenessOptions{}, all},
		{"after instructions without flags", "55 4889e5 4154 85ff", detour.LivenessOptions{}, all},
		{"the end of what is known", "55", detour.LivenessOptions{}, 0},
		{"the end, by convention", "55", abi, 0},
		{"adc reads the carry", "4811c1", detour.LivenessOptions{}, all &^ FlagCF},
		{"inc leaves the carry to adc", "ffc0 11c0", detour.LivenessOptions{}, all &^ FlagCF},
		{"inc, and the carry is set after it", "ffc0 01c0", detour.LivenessOptions{}, all},
		{"sete reads the zero flag", "0f94c0 01c0", detour.LivenessOptions{}, all &^ FlagZF},
		{"cmovle reads three", "0f4ec1 01c0", detour.LivenessOptions{}, all &^ (FlagZF | FlagSF | FlagOF)},
		{"a shift by one sets all but AF", "d1e0 0f94c0", detour.LivenessOptions{}, all &^ FlagAF},
		{"a shift by cl may set none", "d3e0 0f94c0 01c0", detour.LivenessOptions{}, all &^ FlagZF},
		{"rep cmpsb may set none", "f3a6 0f92c0 01c0", detour.LivenessOptions{}, all &^ FlagCF},
		{"cmpsb", "a6 0f92c0", detour.LivenessOptions{}, all},
		{"pushf reads all", "9c 01c0", detour.LivenessOptions{}, 0},
		{"lahf reads all but OF", "9f 01c0", detour.LivenessOptions{}, FlagOF},
		{"a jump forth", "eb02 9c90 01c0", detour.LivenessOptions{}, all},
		{"a jump away", "eb7f 01c0", detour.LivenessOptions{}, 0},
		{"both ways of a branch", "e302 01c0 01c0", detour.LivenessOptions{}, all},
		{"one way of a branch reads", "e302 01c0 0f94c0 01c0", detour.LivenessOptions{}, all &^ FlagZF},
		{"a branch reads", "7400 01c0", detour.LivenessOptions{}, all &^ FlagZF},
		{"a branch away", "e37f 01c0", detour.LivenessOptions{}, 0},
		{"an endless loop reads nothing", "90 ebfd", detour.LivenessOptions{}, all},
		{"a loop reads at its end", "90 e2fd 0f92c0 01c0", detour.LivenessOptions{}, all &^ FlagCF},
		{"a return", "c3", detour.LivenessOptions{}, 0},
		{"a return, by convention", "c3", abi, all},
		{"a call", "e800000000 01c0", detour.LivenessOptions{}, 0},
		{"a call, by convention", "e800000000 0f92c0", abi, all},
		{"an indirect call, by convention", "ffd0", abi, all},
		{"an indirect jump, by convention", "ffe0", abi, 0},
		{"a system call, by convention", "0f05 01c0", abi, 0},
		{"a trap", "cc 01c0", abi, 0},
		{"ud2", "0f0b", abi, 0},
		{"bytes that are no instruction", "06 01c0", abi, 0},
		{"an entry, by convention", "0f92c0", detour.LivenessOptions{ABI: true, Entry: true}, all},
		{"an entry", "0f92c0 01c0", detour.LivenessOptions{Entry: true}, all &^ FlagCF},
		{"a transaction", "c7f800000000 01c0", abi, 0},
	} {
		if got := (ISA{}).DeadFlags(sweepHex(t, c.code, 0x1000), 0, c.opt); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
	if got := (ISA{}).DeadFlags(nil, 0, abi); got != 0 {
		t.Errorf("nothing: %#x", got)
	}
}

func TestSavesFlags(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       bool
	}{
		{"at the entry", "55 4889e5 9c 4883ec70 e800000000 4883c470 9d 5d c3", true},
		{"with 16 bits", "669c c3", true},
		{"some of them, in a register", "9f c3", false},
		{"restored only", "9d c3", false},
		{"nothing", "", false},
	} {
		if got := (ISA{}).SavesFlags(sweepHex(t, c.code, 0x1000)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestDeadFlagsEnds has the search meet more ways and instructions than it goes.
func TestDeadFlagsEnds(t *testing.T) {
	var ways, long []byte
	for range maxWays {
		ways = append(ways, 0xe3, 0x7f-byte(len(ways))) // jrcxz to the same place
	}
	for i := range maxWays + 4 {
		ways = append(ways, 0xe3, byte(2*i)) // to places of their own
	}
	for range maxInsts {
		long = append(long, 0x90)
	}
	for _, code := range [][]byte{ways, append(long, 0x01, 0xc0)} {
		insts := decode.Sweep(ISA{}, nil, code, 0x1000)
		if got := (ISA{}).DeadFlags(insts, 0, detour.LivenessOptions{}); got != 0 {
			t.Errorf("% x: %#x", code, got)
		}
	}
	if got := (ISA{}).DeadFlags(decode.Sweep(ISA{}, nil, append(long[1:], 0x01, 0xc0), 0), 0, detour.LivenessOptions{}); got != statusFlags {
		t.Errorf("just enough: %#x", got)
	}
}

// FuzzDeadFlags has the search read any bytes: what an instruction reads is not dead
// before it.
func FuzzDeadFlags(f *testing.F) {
	f.Add([]byte{0xff, 0xc0, 0x11, 0xc0, 0x74, 0xfa, 0xc3}, true)
	f.Fuzz(func(t *testing.T, code []byte, abi bool) {
		insts := decode.Sweep(ISA{}, nil, code, 0x1000)
		for i := range insts {
			dead := ISA{}.DeadFlags(insts, i, detour.LivenessOptions{ABI: abi})
			if read, _ := flagUseOf(&insts[i]).uses(); read&dead != 0 || dead&^statusFlags != 0 {
				t.Errorf("% x: %#x", code, dead)
			}
		}
	})
}
