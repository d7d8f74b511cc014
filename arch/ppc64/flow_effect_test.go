package ppc64

import (
	"bufio"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"xol/decode"
	"xol/optcheck/flow"
)

// listedInstruction is a row of instructions.txt, whose names of operands tell
// results from sources.
type listedInstruction struct {
	value    uint64
	name     string
	operands []string
}

func listedInstructions(t *testing.T) (list []listedInstruction) {
	t.Helper()
	f, err := os.Open("instructions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 3 || fields[0] == "operand" || fields[0][0] == '#' {
			continue
		}
		value, err := strconv.ParseUint(strings.ReplaceAll(fields[0], "_", ""), 16, 64)
		if err != nil {
			continue // another name of the row before
		}
		list = append(list, listedInstruction{value, fields[1], strings.Split(fields[2], ",")})
	}
	return list
}

// word returns some words of an instruction, with what the list says
// are its registers by random values.
func (l *listedInstruction) word(r *rand.Rand) uint64 {
	word := l.value
	for _, operand := range l.operands {
		switch shift := map[string]int{"RT": 21, "RS": 21, "RA": 16, "RA0": 16, "RB": 11}[operand]; shift {
		case 0:
		default:
			word |= uint64(1+r.IntN(31)) << shift
		}
	}
	return word
}

// wants returns the general registers that the list says are results.
func (l *listedInstruction) wants(word uint64) (set flow.Set) {
	rt, ra := flow.Set(1)<<(word>>21&31), flow.Set(1)<<(word>>16&31)
	name := strings.TrimPrefix(l.name, "p")
	memory := strings.HasPrefix(name, "l") || strings.HasPrefix(name, "st")
	switch {
	case l.operands[0] == "RT":
		set = rt
	case l.operands[0] == "RA":
		set = ra
	}
	if memory && strings.HasSuffix(strings.TrimSuffix(name, "x"), "u") {
		set |= ra
	}
	return set
}

func TestWritesFollowsTheList(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	isa := ISA{}
	checked := 0
	for _, l := range listedInstructions(t) {
		for range 20 {
			word := l.word(r)
			inst := decode.Sweep(isa, nil, isa.bytesOf(word), 0)[0]
			if inst.Has(decode.Invalid) || inst.Flow != decode.FlowNone {
				continue
			}
			checked++
			got := changedBy(&inst) & (1<<32 - 1)
			if want := l.wants(word); want&^got != 0 && !keepsAll(uint32(word)) {
				t.Errorf("%s %x: writes %#x, want %#x", l.name, word, got, want)
			}
			if stored := l.operands[0] == "RS" && strings.HasPrefix(l.name, "st"); stored && got&^l.wants(word) != 0 {
				t.Errorf("%s %x: writes %#x, which it stores", l.name, word, got)
			}
		}
	}
	if checked < 5000 {
		t.Errorf("%d words checked", checked)
	}
}

func TestWrites(t *testing.T) {
	for _, c := range []struct {
		name      string
		word      uint64
		registers flow.Set
		fields    uint8
	}{
		{"lmw r29,8(r1)", 0xbba10008, 7 << 29, 0},
		{"lq r4,16(r1)", 0xe0810010, 3 << 4, 0},
		{"lwzu r5,4(r29)", 0x84bd0004, 1<<5 | 1<<29, 0},
		{"stdu r1,-32(r1)", 0xf821ffe1, 1 << 1, 0},
		{"stdux r1,r1,r0", 0x7c21016a, 1 << 1, 0},
		{"std r31,-8(r1)", 0xfbe1fff8, 0, 0},
		{"pld r5,16 (pc)", 0x04100000_e4a00010, 1 << 5, 0},
		{"pla r5,16", 0x06100000_38a00010, 1 << 5, 0},
		{"pstd r5,16 (pc)", 0x04100000_f4a00010, 0, 0},
		{"mtctr r9", 0x7d2903a6, 1 << CTR, 0},
		{"mflr r0", 0x7c0802a6, 1 << 0, 0},
		{"bdnz", 0x4200fff0, 1 << CTR, 0},
		{"bl", 0x48000101, callRegisters, callFields},
		{"bcl 20,31,$+4", 0x429f0005, 1 << LR, 0},
		{"sc", 0x44000002, callRegisters, callFields},
		{"ori r2,r2,0", 0x60420000, 0, 0},
		{"cmplwi cr7,r9,7", 0x2b890007, 0, 1 << 7},
		{"cmpld cr1,r3,r4", 0x7ca32040, 0, 1 << 1},
		{"andi. r9,r9,7", 0x71290007, 1 << 9, 1<<0 | 1<<1 | 1<<6},
		{"crxor 6,6,6", 0x4cc63182, 0, 1 << 1},
		{"mtcrf 255,r3", 0x7c6ff120, 0, 0xff},
		{"fcmpu cr6,f1,f2", 0xff011000, 0, 1 << 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			inst := ISA{}.one(t, c.word)[0]
			got := changedBy(&inst) & (flow.Flags - 1)
			if got != c.registers {
				t.Errorf("registers %#x, want %#x", got, c.registers)
			}
			if fields := writesFields(&inst); fields != c.fields {
				t.Errorf("fields %#x, want %#x", fields, c.fields)
			}
		})
	}
}
