package ppc64

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/internal/archtest"
	"xol/relocate"
)

// moveCase is a row of testdata/relocate-cases.txt.
type moveCase struct {
	name    string
	words   []uint64
	opt     relocate.Options
	to      uint64 // new address in a line
	near    bool   // no far forms
	same    bool   // a copy of the bytes would do
	refused string // rule against far forms
}

// moveCases reads the table of instructions that relocators move wrongly.
func moveCases(t testing.TB) (cases []moveCase) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "relocate-cases.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if line := s.Text(); line != "" && line[0] != '#' {
			c, err := parseMoveCase(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			cases = append(cases, c)
		}
	}
	return cases
}

func parseMoveCase(line string) (c moveCase, err error) {
	columns := strings.Split(line, "\t")
	c.name = columns[0]
	for _, word := range strings.Fields(columns[1]) {
		w, err := strconv.ParseUint(word, 16, 64)
		if err != nil {
			return c, err
		}
		c.words = append(c.words, w)
	}
	for _, option := range strings.Fields(strings.Join(columns[2:], " ")) {
		if err := c.option(option); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *moveCase) option(text string) (err error) {
	name, value, _ := strings.Cut(text, "=")
	switch name {
	case "region":
		c.opt.Form = relocate.Region
	case "to":
		c.to, err = strconv.ParseUint(value, 16, 64)
	case "near":
		c.near = true
	case "back":
		c.opt.Back = relocate.BackNone
	case "dead":
		for _, r := range strings.Split(value, ",") {
			n, err := strconv.ParseUint(r, 10, 5)
			if err != nil {
				return err
			}
			c.opt.Registers |= 1 << n
		}
	case "none":
		c.opt.Scratch = relocate.ScratchNone
	case "noredzone":
		c.opt.NoRedZone = true
	case "kernel":
		c.opt.Kernel = true
	case "refused":
		c.refused = value
	case "same":
		c.same = true
	default:
		err = fmt.Errorf("unknown option %s", text)
	}
	return err
}

// code returns the case's instructions in memory order.
func (c *moveCase) code(isa ISA) (code []byte) {
	for _, w := range c.words {
		code = append(code, isa.bytesOf(w)...)
	}
	return code
}

// Where these tests' instructions stand, and where they go.
const (
	moveFrom = 0x10_0001_0000
	moveNear = 0x10_0100_0000
	moveFar  = 0x7fff_0000_0000
)

func (a ISA) one(t testing.TB, word uint64) []decode.Inst {
	t.Helper()
	return archtest.Sweep(t, a, a.bytesOf(word), moveFrom)
}

func TestMoveErrors(t *testing.T) {
	const (
		addi  = 0x38630001
		b     = 0x48000100
		beq   = 0x41820100
		bl    = 0x48000101
		blrl  = 0x4e800021
		pld   = 0x04100000_e4600800
		pstq0 = 0x04100000_f0000800
		lwarx = 0x7c60f828
		stwcx = 0x7c60f92d
		trap  = 0x7fe00008
	)
	var isa ISA
	gap := append(isa.one(t, addi), isa.one(t, addi)...)
	gap[1].Addr += 8
	two := archtest.Sweep(t, isa, bytes.Repeat(isa.bytesOf(addi), 2), moveFrom)
	into := archtest.Sweep(t, isa, append(isa.bytesOf(0x4800000c), append(isa.bytesOf(pld), isa.bytesOf(pld)...)...), moveFrom)
	into[0] = isa.one(t, 0x48000008)[0]
	region := relocate.Options{Form: relocate.Region}
	for _, c := range []struct {
		name  string
		insts []decode.Inst
		opt   relocate.Options
		to    uint64
		size  int // of the buffer
		want  error
		rule  *classify.Rule
	}{
		{"nothing", nil, relocate.Options{}, moveNear, 64, relocate.ErrEmpty, nil},
		{"no instruction", []decode.Inst{{Addr: moveFrom, Len: 4, Props: decode.Invalid}}, relocate.Options{}, moveNear, 64, decode.ErrInvalid, nil},
		{"not decoded", make([]decode.Inst, 1), relocate.Options{}, moveNear, 64, decode.ErrInvalid, nil},
		{"two in a slot", two, relocate.Options{}, moveNear, 64, relocate.ErrNotContiguous, nil},
		{"a gap in a region", gap, region, moveNear, 64, relocate.ErrNotContiguous, nil},
		{"misaligned", isa.one(t, addi), relocate.Options{}, moveNear + 2, 64, relocate.ErrMisaligned, nil},
		{"no room for the way back", isa.one(t, addi), relocate.Options{}, moveNear, 7, relocate.ErrTooSmall, nil},
		{"no room at all", isa.one(t, bl), relocate.Options{}, moveNear, 0, relocate.ErrTooSmall, nil},
		{"way back out of range", isa.one(t, addi), relocate.Options{Reach: relocate.Near}, moveFar, 64, relocate.ErrRange, nil},
		{"b out of range", isa.one(t, b), relocate.Options{Reach: relocate.Near, Back: relocate.BackNone}, moveFar, 64, relocate.ErrRange, nil},
		{"bc out of range", isa.one(t, beq), relocate.Options{Reach: relocate.Near}, moveNear, 64, relocate.ErrRange, nil},
		{"pld out of range", isa.one(t, pld), relocate.Options{Reach: relocate.Near, Back: relocate.BackBreakpoint}, moveFar, 64, relocate.ErrRange, nil},
		{"addpcis with other low bits", isa.one(t, 0x4c610004), relocate.Options{Reach: relocate.Near}, moveNear + 4, 64, relocate.ErrRange, nil},
		{"no register for a far branch", isa.one(t, b), relocate.Options{Scratch: relocate.ScratchNone}, moveFar, 64, relocate.ErrRange, nil},
		{"no TAR for a far branch", isa.one(t, b), relocate.Options{Kernel: true}, moveFar, 64, relocate.ErrRange, nil},
		{"no register for LR", isa.one(t, bl), relocate.Options{Scratch: relocate.ScratchGiven}, moveNear, 64, nil, &ruleMoveScratch},
		{"no register for the way back", isa.one(t, addi), relocate.Options{Scratch: relocate.ScratchNone, Reach: relocate.Far}, moveFar, 64, nil, &ruleMoveScratch},
		{"no TAR for the way back", isa.one(t, addi), relocate.Options{Kernel: true, Reach: relocate.Far}, moveFar, 64, nil, &ruleMoveTAR},
		{"no TAR for LR's target", isa.one(t, blrl), relocate.Options{Kernel: true}, moveNear, 64, nil, &ruleMoveTAR},
		{"a pair with r1", isa.one(t, pstq0), relocate.Options{Reach: relocate.Far}, moveFar, 64, nil, &ruleMoveStackPointer},
		{"trap", isa.one(t, trap), relocate.Options{}, moveNear, 64, nil, &ruleMoveTrap},
		{"conditional trap", isa.one(t, 0x0b030000), relocate.Options{}, moveNear, 64, nil, &ruleMoveTrap},
		{"breakpoint after a reservation", isa.one(t, lwarx), relocate.Options{Back: relocate.BackBreakpoint}, moveNear, 64, nil, &ruleMoveReservation},
		{"a region with half of a reservation", isa.one(t, lwarx), region, moveNear, 64, nil, &ruleMoveReservation},
		{"a region with the other half", isa.one(t, stwcx), region, moveNear, 64, nil, &ruleMoveReservation},
		{"a branch into an instruction", into[:2], region, moveNear, 64, nil, &ruleMoveInto},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := bytes.Repeat([]byte{0xa5}, c.size)
			var p relocate.Plan
			_, err := move(isa, dst, &p, c.insts, c.opt, c.to)
			var refused *relocate.RefusedError
			var outOfRange *relocate.RangeError
			switch {
			case c.rule != nil:
				if !errors.As(err, &refused) || refused.Rule != c.rule || refused.Addr != c.insts[0].Addr || !errors.Is(err, relocate.ErrRefused) {
					t.Errorf("%v, want %s", err, c.rule.ID)
				}
			case !errors.Is(err, c.want):
				t.Errorf("%v, want %v", err, c.want)
			case c.want == relocate.ErrRange:
				if !errors.As(err, &outOfRange) || outOfRange.Addr != moveFrom || outOfRange.At-c.to >= 64 {
					t.Errorf("%#v", err)
				}
			}
			if !bytes.Equal(dst, bytes.Repeat([]byte{0xa5}, c.size)) {
				t.Errorf("the buffer was changed: %x", dst)
			}
		})
	}
}

// A dead register is taken before one is saved, and named among those that the
// form changes.
func TestDeadRegistersComeFirst(t *testing.T) {
	const storeWithUpdate = 0xf8210001 // stdu r1,…(r1)
	for _, c := range []struct {
		name string
		word uint64
	}{
		{"bl", 0x48000101},
		{"b", 0x48000100},
		{"bdnzl", 0x4200ff01},
		{"blrl", 0x4e800021},
		{"bctrl", 0x4e800421},
		{"scv", 0x44000001},
		{"pld r0", 0x04100000_e4000800},
		{"pstd r1", 0x04100000_f4200800},
		{"pla r1", 0x06100000_38200010},
		{"plxv", 0x04100000_cc400800},
		{"addi", 0x38630001},
	} {
		for _, dead := range []uint32{0, 1 << 1, 1<<1 | 1<<7, 1<<3 | 1<<29} {
			for _, scratch := range []relocate.ScratchPolicy{relocate.ScratchStack, relocate.ScratchGiven} {
				var p relocate.Plan
				var isa ISA
				code := make([]byte, 256)
				n, err := move(isa, code, &p, isa.one(t, c.word), relocate.Options{Reach: relocate.Far, Registers: dead, Scratch: scratch}, moveFar)
				usable := dead &^ (1 << stackPointer)
				if usable == 0 && scratch == relocate.ScratchGiven {
					if !errors.Is(err, relocate.ErrRefused) {
						t.Errorf("%s: %v without a register", c.name, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
					continue
				}
				changed := uint32(p.Steps[0].Clobbers)
				if changed&^usable != 0 || usable != 0 && changed == 0 {
					t.Errorf("%s with %#x dead: changes %#x", c.name, dead, changed)
				}
				frames := 0
				for at := 0; at < n; at += 4 {
					if binary.BigEndian.Uint32(code[at:])&0xffff0003 == storeWithUpdate {
						frames++
					}
				}
				if (frames == 0) != (usable != 0) {
					t.Errorf("%s with %#x dead: %d frames", c.name, dead, frames)
				}
			}
		}
	}
}

// scv leaves its own address in LR, which no emulator at hand does.
func TestSystemCallLeavesLR(t *testing.T) {
	var isa ISA
	var p relocate.Plan
	code := make([]byte, 64)
	n, err := move(isa, code, &p, isa.one(t, 0x44000001), relocate.Options{Registers: 1 << 11, Back: relocate.BackNone}, moveNear)
	if err != nil {
		t.Fatal(err)
	}
	// scv 0; li r11,16; sldi r11,r11,32; oris r11,r11,1; ori r11,r11,4; mtlr r11
	want := []uint64{0x44000001, 0x39600010, 0x796b07c6, 0x656b0001, 0x616b0004, 0x7d6803a6}
	for i, w := range want {
		if got := binary.BigEndian.Uint32(code[4*i:]); uint64(got) != w || n != 4*len(want) {
			t.Errorf("word %d of %d: %08x, want %08x", i, n/4, got, w)
		}
	}
	// sc returns to where it was, and leaves nothing of itself.
	for _, word := range []uint64{0x44000002, 0x44000022} {
		if n, err := move(isa, code, &p, isa.one(t, word), relocate.Options{Back: relocate.BackNone}, moveNear); n != 4 || err != nil {
			t.Errorf("%08x: %d bytes, %v", word, n, err)
		}
	}
}

// A kernel's slot holds the instruction as it is and a breakpoint.
func TestLinuxSlot(t *testing.T) {
	for _, isa := range byteOrders {
		for _, word := range []uint64{0x38630001, 0x48000101, 0x4e800421, 0x7fe00008, 0x06000000_38830002} {
			var p relocate.Plan
			code := make([]byte, 64)
			n, err := move(isa, code, &p, isa.one(t, word), relocate.Options{Linux: true, Back: relocate.BackBreakpoint}, moveFar)
			want := append(isa.bytesOf(word), isa.bytesOf(0x7fe00008)...)
			if err != nil || !bytes.Equal(code[:n], want) {
				t.Errorf("%s, %x: %x, %v", isa.Name(), word, code[:n], err)
			}
		}
	}
}

// An absolute branch into the region stays in it, too.
func TestAbsoluteBranchInside(t *testing.T) {
	for _, isa := range byteOrders {
		insts := archtest.Sweep(t, isa, append(isa.bytesOf(0x38630001), isa.bytesOf(0x48001002)...), 0x1000) // ba 0x1000
		var p relocate.Plan
		code := make([]byte, 64)
		n, err := move(isa, code, &p, insts, relocate.Options{Form: relocate.Region, Back: relocate.BackNone}, moveFar)
		want := append(isa.bytesOf(0x38630001), isa.bytesOf(0x4bfffffc)...) // b $-4
		if err != nil || !bytes.Equal(code[:n], want) {
			t.Errorf("%s: %x, %v, want %x", isa.Name(), code[:n], err, want)
		}
	}
}

func TestConstants(t *testing.T) {
	for _, c := range []struct {
		value uint64
		words []uint32 // into r3
	}{
		{0, []uint32{0x38600000}},
		{0x7fff, []uint32{0x38607fff}},
		{0x8000, []uint32{0x3c600000, 0x60638000}},
		{1<<64 - 0x8000, []uint32{0x38608000}},
		{0x7fff_0000, []uint32{0x3c607fff}},
		{0x7fff_1234, []uint32{0x3c607fff, 0x60631234}},
		{0x8000_0000, []uint32{0x38600000, 0x64638000}},
		{0xffff_ffff_8000_0000, []uint32{0x3c608000}},
		{0x1_0000_0000, []uint32{0x38600001, 0x786307c6}},
		{0x7fff_1234_5678, []uint32{0x38607fff, 0x786307c6, 0x64631234, 0x60635678}},
		{0xc000_0000_0123_4568, []uint32{0x3c60c000, 0x786307c6, 0x64630123, 0x60634568}},
		{0x1234_5678_9abc_def0, []uint32{0x3c601234, 0x60635678, 0x786307c6, 0x64639abc, 0x6063def0}},
	} {
		code := emitter{}.constant(nil, 3, c.value)
		var want []byte
		for _, w := range c.words {
			want = binary.BigEndian.AppendUint32(want, w)
		}
		if !bytes.Equal(code, want) || constantSize(c.value) != len(want) {
			t.Errorf("%#x: %x, %d bytes, want %x", c.value, code, constantSize(c.value), want)
		}
	}
}

// randomOptions turns bits into options.
func randomOptions(v uint64) relocate.Options {
	return relocate.Options{
		Form:      relocate.Form(v & 1),
		Back:      relocate.Back(v >> 1 & 3 % 3),
		Reach:     relocate.Reach(v >> 3 & 3 % 3),
		Scratch:   relocate.ScratchPolicy(v >> 5 & 3 % 3),
		NoRedZone: v>>7&1 != 0,
		Kernel:    v>>8&7 == 0,
		Linux:     v>>11&15 == 0,
		Registers: uint32(v>>32) * uint32(v>>15&1),
	}
}

// checkMove moves insts and checks what holds for all of them: what was written
// is instructions, none of which crosses a line's end.
func checkMove(t *testing.T, isa ISA, insts []decode.Inst, opt relocate.Options, to uint64) {
	t.Helper()
	_, code, err := archtest.Move(t, isa, insts, opt, to)
	if err != nil {
		return
	}
	moved := decode.Sweep(isa, nil, code, to)
	for i := range moved {
		if moved[i].Has(decode.Invalid) {
			t.Fatalf("%x of %x, moved to %#x with %+v, is no instruction", moved[i].Bytes(), insts[0].Bytes(), to, opt)
		}
	}
	if !opt.Linux && crosses(moved) {
		t.Errorf("%x, moved to %#x with %+v, crosses the end of a line", insts[0].Bytes(), to, opt)
	}
}

// interestingWords are instructions that do not stay as they are, with random
// operands: mask and value.
var interestingWords = []struct{ mask, value uint64 }{
	{0xfc000000, 0x48000000},                   // b
	{0xfc000000, 0x40000000},                   // bc
	{0xfc00e7fe, 0x4c000020},                   // bclr
	{0xfc00e7fe, 0x4c000420},                   // bcctr
	{0xfc00e7fe, 0x4c000460},                   // bctar
	{0xfc00003e, 0x4c000004},                   // addpcis
	{0xfffc0000_00000000, 0x04100000_00000000}, // 8LS
	{0xfffc0000_00000000, 0x06100000_00000000}, // MLS
	{0xffffffff, 0x44000001},                   // scv
}

func randomWord(r *rand.Rand) uint64 {
	w := interestingWords[r.IntN(len(interestingWords))]
	v := r.Uint64()&^w.mask | w.value
	if w.value>>32 == 0 {
		v &= 0xffffffff
	}
	return v
}

func TestSizesAreWithinBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300000 {
		isa := byteOrders[r.IntN(2)]
		at := r.Uint64() >> r.IntN(64) &^ 3
		var code []byte
		for range 1 + r.IntN(3) {
			code = append(code, isa.bytesOf(randomWord(r))...)
		}
		insts := decode.Sweep(isa, nil, code, at)
		opt := randomOptions(r.Uint64())
		if opt.Form == relocate.Slot {
			insts = insts[:1]
		}
		to := at + uint64(r.Int64())>>r.IntN(64)
		checkMove(t, isa, insts, opt, to&^3)
	}
}

func FuzzRelocate(f *testing.F) {
	for _, c := range moveCases(f) {
		f.Add(c.code(ISA{}), uint64(moveFrom), uint64(moveNear), uint64(c.opt.Form)|uint64(c.opt.Registers)<<32, false)
		f.Add(c.code(ISA{LittleEndian: true}), uint64(moveFrom), uint64(moveFar), uint64(2<<3), true)
	}
	f.Fuzz(func(t *testing.T, code []byte, at, to, options uint64, little bool) {
		isa := ISA{LittleEndian: little}
		insts := decode.Sweep(isa, nil, code[:min(len(code), 256)], at)
		opt := randomOptions(options)
		if opt.Form == relocate.Slot && len(insts) > 1 {
			insts = insts[:1]
		}
		checkMove(t, isa, insts, opt, to)
	})
}

func BenchmarkRelocate(b *testing.B) {
	for _, c := range []struct {
		name string
		word uint64
	}{
		{"kept", 0x38630001}, {"b", 0x48000100}, {"beq", 0x41820100}, {"bl", 0x48000101}, {"pld", 0x04100000_e4600800},
	} {
		for _, to := range []struct {
			name string
			addr uint64
		}{{"near", moveNear}, {"far", moveFar}} {
			b.Run(c.name+"/"+to.name, func(b *testing.B) {
				isa := ISA{LittleEndian: true}
				insts := isa.one(b, c.word)
				var p relocate.Plan
				var dst [256]byte
				b.ReportAllocs()
				for b.Loop() {
					if _, err := move(isa, dst[:], &p, insts, relocate.Options{}, to.addr); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func TestRelocateDoesNotAllocate(t *testing.T) {
	for _, c := range moveCases(t) {
		for _, isa := range byteOrders {
			insts := archtest.Sweep(t, isa, c.code(isa), moveFrom)
			var p relocate.Plan
			var dst [512]byte
			for _, to := range []uint64{moveNear, moveFar} {
				if n := testing.AllocsPerRun(5, func() {
					_, err := move(isa, dst[:], &p, insts, c.opt, to)
					if err != nil && c.refused == "" {
						t.Errorf("%s: %v", c.name, err)
					}
				}); n != 0 && c.refused == "" {
					t.Errorf("%s: %v allocations", c.name, n)
				}
			}
		}
	}
}
