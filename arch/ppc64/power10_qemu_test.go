package ppc64

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"xol/decode"
	"xol/internal/cputest"
	"xol/machine"
)

// TestPrefixedInQEMU executes every prefixed instruction here and there, from the
// same states.
func TestPrefixedInQEMU(t *testing.T) {
	for _, isa := range byteOrders {
		t.Run(isa.Name(), func(t *testing.T) {
			cases := prefixedSequences(isa)
			names := map[string]bool{}
			for _, c := range cases {
				names[c.mnemonic] = true
			}
			if len(names) < 44 {
				t.Fatalf("only %d instructions: %v", len(names), names)
			}
			for chunk := range slices.Chunk(cases, mostCases) {
				runPrefixed(t, isa, chunk)
			}
			t.Logf("%d cases of %d instructions", len(cases), len(names))
		})
	}
}

// mostCases is how many cases' code pages there are before their data.
const mostCases = caseData / casePage

// prefixedStates is the number of states that each case starts from.
const prefixedStates = 5

func runPrefixed(t *testing.T, isa ISA, cases []prefixedSequence) {
	t.Helper()
	x := newExecutions(isa, len(cases))
	first := make([]int, len(cases))
	for i := range cases {
		from, data := prefixedPlace(i)
		copy(x.at(from), cases[i].code(isa))
		first[i] = len(x.runs)
		for s := range prefixedStates {
			x.runs = append(x.runs, guestRun{s, from, data})
		}
	}
	results := x.run(t)
	for i := range cases {
		for s := range prefixedStates {
			if what := x.comparePrefixed(t, i, &cases[i], s, results[first[i]+s]); what != "" {
				t.Errorf("%s, state %d: %s", cases[i].name, s, what)
				break
			}
		}
	}
}

// prefixedPlace returns where a case's code and data are.
func prefixedPlace(i int) (code, data uint64) {
	page := caseHome + uint64(i)*casePage
	return page + caseOriginal, page + caseData
}

// prefixedSequence is some prefixed instructions that are executed one after the
// other.
type prefixedSequence struct {
	name, mnemonic string
	words          []uint64
}

func (s *prefixedSequence) code(isa ISA) (code []byte) {
	for _, w := range s.words {
		code = append(code, isa.bytesOf(w)...)
	}
	return code
}

// relativeWord sets R, and displaced the displacement.
const relativeWord = 1 << 52

func displaced(word uint64, d int64) uint64 {
	return word | uint64(d)>>16&0x3ffff<<32 | uint64(d)&0xffff
}

// prefixedSequences are all known instructions, with several registers and ways to
// get at memory.
func prefixedSequences(isa ISA) (list []prefixedSequence) {
	add := func(known *Power10, words ...uint64) {
		var inst decode.Inst
		word := words[len(words)-1]
		if isa.Decode(&inst, isa.bytesOf(word), 0) != nil || !known.Knows(&inst) {
			return
		}
		name := isa.Text(&inst, nil)
		var mnemonic string
		fmt.Sscan(name, &mnemonic)
		list = append(list, prefixedSequence{name, mnemonic, words})
	}
	known := NewPower10(isa)
	const inData, farAway, inStack = 0x13, 0x1_8765_4300, guestStackAt + 0x48
	paddi := func(rt, ra uint64, d int64) uint64 { return displaced(0x06000000_38000000|rt<<21|ra<<16, d) }
	for kind := uint64(0); kind < 4; kind += 2 {
		for opcode := uint64(0); opcode < 64; opcode++ {
			for _, rt := range []uint64{0, 1, 30} {
				word := 1<<58 | kind<<56 | opcode<<26 | rt<<21
				add(known, displaced(word|relativeWord, caseData-caseOriginal+inData))
				add(known, displaced(word|31<<16, inData+1))
				add(known, paddi(5, 31, farAway), displaced(word|5<<16, -farAway+0x10))
				add(known, paddi(5, 31, -farAway), displaced(word|5<<16, farAway))
				add(known, displaced(word, inStack))
			}
		}
	}
	r := uint64(1)
	for range 60 { // instructions on registers: draw words
		r = machine.Mix(r + 0x9e3779b97f4a7c15)
		prefix := uint64(0x05000000_00000000) | r>>32&0xffff<<32
		for _, opcode := range []uint64{32, 33, 34} {
			word := prefix | opcode<<26 | r&(1<<26-1)
			const eval, noImmediate = 1 << 4, ^uint64(0xffff << 32)
			switch opcode {
			case 33:
				word &= noImmediate
			case 34:
				word = word&noImmediate | r>>7&0xff<<32
				add(known, word&^(0xf8<<32|eval))
			}
			add(known, word)
		}
	}
	add(known, 0x07000000_00000000)
	for _, opcode := range []uint64{384, 416, 448, 480, 219, 155, 187} {
		for n := range uint64(8) { // registers, or bits of CR
			add(known, 31<<26|opcode<<1|(n*5+1)<<21)
			add(known, 31<<26|opcode<<1|7<<21|(n*4+n%4)<<16)
		}
	}
	return list
}

// comparePrefixed executes a case here and says what differs from a result.
func (x *executions) comparePrefixed(t *testing.T, i int, c *prefixedSequence, state int, result guestResult) string {
	t.Helper()
	from, data := prefixedPlace(i)
	start := slices.Clone(x.states[state])
	x.order.PutUint64(start[31*8:], data)
	x.order.PutUint64(start[guestNIP:], from)
	cpu, memory := x.cpu(start), windows{start, data}
	p, code := NewPower10(x.isa), c.code(x.isa)
	for at := 0; at < len(code); {
		var inst decode.Inst
		if err := x.isa.Decode(&inst, code[at:], from+uint64(at)); err != nil {
			t.Fatal(err)
		}
		if err := p.Execute(&inst, cpu, memory); err != nil {
			return err.Error()
		}
		at += int(inst.Len)
	}
	for _, what := range cpu.Differences(x.cpu(guestState(result)).State, nil) {
		return what
	}
	if !bytes.Equal(start[guestData:], result[guestData:]) {
		return fmt.Sprintf("memory % x, want % x", start[guestData:], result[guestData:])
	}
	return ""
}

// cpu returns the registers of a state.
func (x *executions) cpu(s guestState) *cputest.CPU {
	get := func(at int) uint64 { return x.order.Uint64(s[at:]) }
	c := cputest.New(Registers(), !x.isa.LittleEndian, machine.Range{})
	for i := range 32 {
		c.SetReg(R0+i, get(8*i))
		c.SetWide(VSR0+i, get(guestFPR+8*i), get(guestLow+8*i))
		first, second := get(guestVR+16*i), get(guestVR+16*i+8)
		if x.isa.LittleEndian {
			first, second = second, first
		}
		c.SetWide(vr0+i, first, second)
	}
	for index, at := range map[int]int{
		PC: guestNIP, LR: guestLR, CTR: guestCTR, CR: guestCR, XER: guestXER, TAR: guestTAR,
	} {
		c.SetReg(index, get(at))
	}
	return c
}

// windows is the memory of a state: its data, which are at an address, and stack.
type windows struct {
	state guestState
	data  uint64
}

func (w windows) at(addr uint64, size int) ([]byte, error) {
	if at := addr - w.data; at <= uint64(guestDataSize-size) {
		return w.state[guestData+at:][:size], nil
	}
	if at := addr - guestStackAt; at <= uint64(guestStackSize-size) {
		return w.state[guestStack+at:][:size], nil
	}
	return nil, fmt.Errorf("%#x: %w", addr, cputest.ErrLimit)
}

func (w windows) Read(dst []byte, addr uint64) error {
	src, err := w.at(addr, len(dst))
	copy(dst, src)
	return err
}

func (w windows) Write(addr uint64, src []byte) error {
	dst, err := w.at(addr, len(src))
	copy(dst, src)
	return err
}

func (windows) ReadWord(uint64) (uint64, error) { return 0, cputest.ErrLimit }
func (windows) WriteWord(_, _ uint64) error     { return cputest.ErrLimit }
