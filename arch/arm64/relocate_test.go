package arm64

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/relocate"
)

// Where the tests' instructions stand, and where they go. From close all
// fields reach, from near those of b, bl and adrp; from far none.
const (
	moveFrom   = 0x40_1000
	moveClose  = 0x40_2000
	moveMiddle = 0x50_2000 // reached by 19 bits of words, but for a few bytes
	moveNear   = 0x70_0000
	moveFar    = 0x7f00_1234_0000
)

// sweepWords decodes words, all of which must be instructions.
func sweepWords(t testing.TB, addr uint64, words ...uint32) []decode.Inst {
	t.Helper()
	var code []byte
	for _, w := range words {
		code = put(code, w)
	}
	return archtest.Sweep(t, ISA{}, code, addr)
}

// textOf is moved code in GNU syntax, with single spaces.
func textOf(t testing.TB, code []byte, addr uint64) string {
	t.Helper()
	var out []string
	insts := decode.Sweep(ISA{}, nil, code, addr)
	for i := range insts {
		if insts[i].Has(decode.Invalid) {
			t.Fatalf("%x is no instruction", insts[i].Bytes())
		}
		text, _, _ := strings.Cut(ISA{}.Text(&insts[i], nil), " //")
		out = append(out, strings.Join(strings.Fields(text), " "))
	}
	return strings.Join(out, "; ")
}

// option changes options; optionsOf starts from those without a way back.
type option func(*relocate.Options)

func optionsOf(list ...option) relocate.Options {
	opt := relocate.Options{Back: relocate.BackNone}
	for _, set := range list {
		set(&opt)
	}
	return opt
}

func far(o *relocate.Options)        { o.Reach = relocate.Far }
func nearby(o *relocate.Options)     { o.Reach = relocate.Near }
func region(o *relocate.Options)     { o.Form = relocate.Region }
func onlyDead(o *relocate.Options)   { o.Scratch = relocate.ScratchGiven }
func linux(o *relocate.Options)      { o.Linux = true }
func noStack(o *relocate.Options)    { o.Scratch = relocate.ScratchNone }
func jumpBack(o *relocate.Options)   { o.Back = relocate.BackJump }
func breakpoint(o *relocate.Options) { o.Back = relocate.BackBreakpoint }

func dead(regs ...int) option {
	return func(o *relocate.Options) {
		for _, r := range regs {
			o.Registers |= 1 << r
		}
	}
}

// TestMoved is the table of what other relocators get wrong, and of every
// form. What the forms do is judged by running them, in package verify.
func TestMoved(t *testing.T) {
	for _, c := range []struct {
		name  string
		words []uint32
		opt   relocate.Options
		to    uint64
		want  string
	}{
		{"b, near", []uint32{0x14000040}, optionsOf(), moveNear,
			"b 0x401100"},
		{"b, far, by way of a dead register", []uint32{0x14000040}, optionsOf(far, dead(9)), moveFar,
			"mov x9, #0x1100; movk x9, #0x40, lsl #16; ret x9"},
		{"b.al, which has no opposite", []uint32{0x5400020e}, optionsOf(far, dead(9)), moveFar,
			"mov x9, #0x1040; movk x9, #0x40, lsl #16; ret x9"},
		{"b.eq, re-based", []uint32{0x54000200}, optionsOf(), moveNear,
			"b.ne 0x700008; b 0x401040"},
		{"b.eq out of reach of its field, in reach of b", []uint32{0x54000200}, optionsOf(), moveMiddle,
			"b.ne 0x502008; b 0x401040"},
		{"b.eq, far", []uint32{0x54000200}, optionsOf(far, dead(9)), moveFar,
			"b.ne 0x7f0012340010; mov x9, #0x1040; movk x9, #0x40, lsl #16; ret x9"},
		{"bc.eq stays consistent", []uint32{0x54000210}, optionsOf(far, dead(9)), moveFar,
			"bc.ne 0x7f0012340010; mov x9, #0x1040; movk x9, #0x40, lsl #16; ret x9"},
		{"cbz out of reach of its field", []uint32{0xb4000203}, optionsOf(), moveMiddle,
			"cbnz x3, 0x502008; b 0x401040"},
		{"cbnz, far", []uint32{0x35000203}, optionsOf(far, dead(9)), moveFar,
			"cbz w3, 0x7f0012340010; mov x9, #0x1040; movk x9, #0x40, lsl #16; ret x9"},
		{"tbz out of reach: 14 bits", []uint32{0xb6400203}, optionsOf(), moveNear,
			"tbnz x3, #40, 0x700008; b 0x401040"},
		{"tbnz, far", []uint32{0x373ffe03}, optionsOf(far, dead(9)), moveFar,
			"tbz w3, #7, 0x7f0012340010; mov x9, #0xfc0; movk x9, #0x40, lsl #16; ret x9"},
		{"cbgt of registers, which has no opposite, out of reach", []uint32{0x7403c004}, optionsOf(far, dead(9)), moveFar,
			"cbhgt w4, w3, 0x7f0012340008; b 0x7f0012340014; mov x9, #0x1000; movk x9, #0x40, lsl #16; ret x9"},
		{"bl: x30 is the address after the original", []uint32{0x94000040}, optionsOf(), moveNear,
			"adrp x30, 0x401000; add x30, x30, #0x4; b 0x401100"},
		{"bl, far, to a function that may use x9", []uint32{0x94000040}, optionsOf(far, dead(9)), moveFar,
			"mov x30, #0x1004; movk x30, #0x40, lsl #16; mov x9, #0x1100; movk x9, #0x40, lsl #16; ret x9"},
		{"bl to the next instruction", []uint32{0x94000001}, optionsOf(), moveNear,
			"adrp x30, 0x401000; add x30, x30, #0x4; b 0x401004"},
		{"blr: x30 is the address after the original", []uint32{0xd63f0060}, optionsOf(), moveNear,
			"adrp x30, 0x401000; add x30, x30, #0x4; ret x3"},
		{"blr x16 lands on a pad by br", []uint32{0xd63f0200}, optionsOf(), moveNear,
			"adrp x30, 0x401000; add x30, x30, #0x4; br x16"},
		{"blr x30: the target first leaves x30", []uint32{0xd63f03c0}, optionsOf(dead(9)), moveNear,
			"mov x9, x30; adrp x30, 0x401000; add x30, x30, #0x4; ret x9"},
		{"blraa x16, x4", []uint32{0xd73f0a04}, optionsOf(), moveNear,
			"adrp x30, 0x401000; add x30, x30, #0x4; braa x16, x4"},
		{"blraa x3, sp", []uint32{0xd73f087f}, optionsOf(dead(9)), moveNear,
			"mov x9, x3; autia x9, sp; adrp x30, 0x401000; add x30, x30, #0x4; ret x9"},
		{"blraa x3, x30", []uint32{0xd73f087e}, optionsOf(dead(9)), moveNear,
			"mov x9, x3; autia x9, x30; adrp x30, 0x401000; add x30, x30, #0x4; ret x9"},
		{"blrabz x30", []uint32{0xd63f0fdf}, optionsOf(dead(16)), moveNear,
			"mov x16, x30; autizb x16; adrp x30, 0x401000; add x30, x30, #0x4; br x16"},
		{"adr, out of reach of its field", []uint32{0x30000105}, optionsOf(), moveNear,
			"adrp x5, 0x401000; add x5, x5, #0x21"},
		{"adr, far", []uint32{0x30000105}, optionsOf(far), moveFar,
			"mov x5, #0x1021; movk x5, #0x40, lsl #16"},
		{"adrp, re-based", []uint32{0xb0000005}, optionsOf(), moveNear,
			"adrp x5, 0x402000"},
		{"adrp out of reach", []uint32{0xb0000005}, optionsOf(), moveFar,
			"mov x5, #0x2000; movk x5, #0x40, lsl #16"},
		{"adrp, far", []uint32{0xb0000005}, optionsOf(far), moveFar,
			"mov x5, #0x2000; movk x5, #0x40, lsl #16"},
		{"adr xzr has no effect, and must not become an add to sp", []uint32{0x3000011f}, optionsOf(far), moveFar,
			"adr xzr, 0x7f0012340021"},
		{"ldr w, in reach", []uint32{0x18000205}, optionsOf(), moveClose,
			"ldr w5, 0x401040"},
		{"ldr w: no frozen value", []uint32{0x18000205}, optionsOf(), moveNear,
			"adrp x5, 0x401000; add x5, x5, #0x40; ldr w5, [x5]"},
		{"ldr x, far", []uint32{0x58000205}, optionsOf(far), moveFar,
			"mov x5, #0x1040; movk x5, #0x40, lsl #16; ldr x5, [x5]"},
		{"ldr x30", []uint32{0x5800021e}, optionsOf(far), moveFar,
			"mov x30, #0x1040; movk x30, #0x40, lsl #16; ldr x30, [x30]"},
		{"ldr xzr still reads memory", []uint32{0x5800021f}, optionsOf(far), moveFar,
			"str x16, [sp, #-16]!; mov x16, #0x1040; movk x16, #0x40, lsl #16; ldr xzr, [x16]; ldr x16, [sp], #16"},
		{"ldr xzr with a dead register", []uint32{0x5800021f}, optionsOf(far, dead(17)), moveFar,
			"mov x17, #0x1040; movk x17, #0x40, lsl #16; ldr xzr, [x17]"},
		{"ldrsw is no ldr", []uint32{0x98000205}, optionsOf(far), moveFar,
			"mov x5, #0x1040; movk x5, #0x40, lsl #16; ldrsw x5, [x5]"},
		{"prfm stays a prefetch", []uint32{0xd8000200}, optionsOf(far), moveFar,
			"str x16, [sp, #-16]!; mov x16, #0x1040; movk x16, #0x40, lsl #16; prfm pldl1keep, [x16]; ldr x16, [sp], #16"},
		{"prfm with a dead register", []uint32{0xd8000200}, optionsOf(far, dead(9)), moveFar,
			"mov x9, #0x1040; movk x9, #0x40, lsl #16; prfm pldl1keep, [x9]"},
		{"ldr s", []uint32{0x1c000205}, optionsOf(far), moveFar,
			"str x16, [sp, #-16]!; mov x16, #0x1040; movk x16, #0x40, lsl #16; ldr s5, [x16]; ldr x16, [sp], #16"},
		{"ldr d", []uint32{0x5c000205}, optionsOf(far, dead(9)), moveFar,
			"mov x9, #0x1040; movk x9, #0x40, lsl #16; ldr d5, [x9]"},
		{"ldr q", []uint32{0x9c000205}, optionsOf(far), moveFar,
			"str x16, [sp, #-16]!; mov x16, #0x1040; movk x16, #0x40, lsl #16; ldr q5, [x16]; ldr x16, [sp], #16"},
		{"ldr q31, whose number is no xzr", []uint32{0x9c00021f}, optionsOf(), moveNear,
			"str x16, [sp, #-16]!; adrp x16, 0x401000; add x16, x16, #0x40; ldr q31, [x16]; ldr x16, [sp], #16"},
		{"br x3 is kept", []uint32{0xd61f0060}, optionsOf(far, jumpBack), moveFar,
			"br x3"},
		{"ret needs no way back", []uint32{0xd65f03c0}, optionsOf(far, jumpBack), moveFar,
			"ret"},
		{"svc", []uint32{0xd4000001}, optionsOf(jumpBack), moveNear,
			"svc #0x0; b 0x401004"},
		{"bti c is kept", []uint32{0xd503245f}, optionsOf(jumpBack), moveNear,
			"bti c; b 0x401004"},
		{"paciasp is kept", []uint32{0xd503233f}, optionsOf(jumpBack), moveNear,
			"paciasp; b 0x401004"},
		{"x17 is not clobbered on the way back", []uint32{0x91000529}, optionsOf(jumpBack, far, dead(9, 17)), moveFar,
			"add x9, x9, #0x1; mov x17, #0x1004; movk x17, #0x40, lsl #16; ret x17"},
		{"on the way back x9 is the result", []uint32{0xd2800029}, optionsOf(jumpBack, far, dead(9, 10)), moveFar,
			"mov x9, #0x1; mov x10, #0x1004; movk x10, #0x40, lsl #16; ret x10"},
		{"a loaded pair is not dead on the way back", []uint32{0xa8c12969}, optionsOf(jumpBack, far, dead(9, 10, 11, 12)), moveFar,
			"ldp x9, x10, [x11], #16; mov x12, #0x1004; movk x12, #0x40, lsl #16; ret x12"},
		{"a way back by a breakpoint", []uint32{0x91000421}, optionsOf(breakpoint), moveNear,
			"add x1, x1, #0x1; brk #0x6"},
		{"constants with halves of ones", []uint32{0x90800005}, optionsOf(far), moveFar,
			"mov x5, #0xffffffffffff1000; movk x5, #0x40, lsl #16"},
		{"branch back into the region", []uint32{0xf1000421, 0x54ffffe1}, optionsOf(region, jumpBack), moveNear,
			"subs x1, x1, #0x1; b.ne 0x700000; b 0x401008"},
		{"branch forward inside the region, over an expansion", []uint32{0x54000040, 0x94000001, 0x91000421}, optionsOf(region), moveNear,
			"b.eq 0x700010; adrp x30, 0x401000; add x30, x30, #0x8; b 0x700010; add x1, x1, #0x1"},
		{"bl into the region", []uint32{0x94000002, 0x91000421, 0x91000421}, optionsOf(region), moveNear,
			"adrp x30, 0x401000; add x30, x30, #0x4; b 0x700010; add x1, x1, #0x1; add x1, x1, #0x1"},
		{"a branch that leaves the region goes to the original", []uint32{0x54000040, 0x91000421}, optionsOf(region), moveNear,
			"b.ne 0x700008; b 0x401008; add x1, x1, #0x1"},
		{"tbz to its own region", []uint32{0x91000421, 0xb637fff0}, optionsOf(region, jumpBack), moveNear,
			"add x1, x1, #0x1; tbz x16, #38, 0x700000; b 0x401008"},
		{"the last of a region and the next instruction", []uint32{0x91000421, 0xb4000020}, optionsOf(region), moveNear,
			"add x1, x1, #0x1; cbnz x0, 0x70000c; b 0x401008"},
		{"a whole exclusive sequence", []uint32{0xc85f7c41, 0x91000421, 0xc8037c41, 0x35ffffa3}, optionsOf(region, jumpBack), moveNear,
			"ldxr x1, [x2]; add x1, x1, #0x1; stxr w3, x1, [x2]; cbnz w3, 0x700000; b 0x401010"},
		{"a load-exclusive with clrex", []uint32{0xc85f7c41, 0xd5033f5f}, optionsOf(region), moveNear,
			"ldxr x1, [x2]; clrex"},
		{"a whole memory copy", []uint32{0x1d010440, 0x1d410440, 0x1d810440}, optionsOf(region, jumpBack), moveNear,
			"cpyp [x0]!, [x1]!, x2!; cpym [x0]!, [x1]!, x2!; cpye [x0]!, [x1]!, x2!; b 0x40100c"},
		{"an instruction of Linux's slot", []uint32{0x91000421}, optionsOf(linux, breakpoint), moveNear,
			"add x1, x1, #0x1; brk #0x6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, code, err := archtest.Move(t, ISA{}, sweepWords(t, moveFrom, c.words...), c.opt, c.to)
			if err != nil {
				t.Fatal(err)
			}
			if got := textOf(t, code, c.to); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestPlanSays checks what is known of forms before there is an address.
func TestPlanSays(t *testing.T) {
	for _, c := range []struct {
		name     string
		words    []uint32
		opt      relocate.Options
		action   relocate.Action
		note     string
		min, max int
		clobbers uint64
	}{
		{"an instruction without an address", []uint32{0x91000421}, optionsOf(), relocate.Kept, "", 4, 4, 0},
		{"b", []uint32{0x14000040}, optionsOf(), relocate.Rebased, "arm64/branch", 4, 4, 0},
		{"b with a dead register", []uint32{0x14000040}, optionsOf(dead(9)), relocate.Rebased, "arm64/branch", 4, 12, 1 << 9},
		{"b.eq, near", []uint32{0x54000200}, optionsOf(nearby), relocate.Rebased, "arm64/branch", 4, 4, 0},
		{"bl", []uint32{0x94000040}, optionsOf(), relocate.Expanded, "arm64/link-register", 12, 12, 0},
		{"bl, far", []uint32{0x94000040}, optionsOf(far, dead(17)), relocate.Expanded, "arm64/link-register", 20, 20, 1 << 17},
		{"bl inside a region", []uint32{0x94000040, 0x91000421}, optionsOf(region), relocate.Expanded, "arm64/link-register-inside", 16, 16, 0},
		{"ldr x", []uint32{0x58000205}, optionsOf(), relocate.Rebased, "arm64/literal", 4, 12, 0},
		{"ldr q, with a saved register", []uint32{0x9c000205}, optionsOf(), relocate.Rebased, "arm64/literal", 4, 20, 0},
		{"ldr q, with nothing to be had", []uint32{0x9c000205}, optionsOf(noStack), relocate.Rebased, "arm64/literal", 4, 4, 0},
		{"ldr q, with a dead register", []uint32{0x9c000205}, optionsOf(onlyDead, dead(3)), relocate.Rebased, "arm64/literal", 4, 12, 1 << 3},
		{"adr xzr", []uint32{0x3000011f}, optionsOf(far), relocate.Kept, "", 4, 4, 0},
		{"a way back", []uint32{0x91000421}, optionsOf(jumpBack, dead(1, 9)), relocate.Kept, "", 8, 16, 1 << 9},
		{"no way back", []uint32{0xd65f03c0}, optionsOf(jumpBack, dead(9)), relocate.Kept, "", 4, 4, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p relocate.Plan
			if err := (ISA{}).Plan(&p, sweepWords(t, moveFrom, c.words...), c.opt); err != nil {
				t.Fatal(err)
			}
			s, note := &p.Steps[0], ""
			if s.Note != nil {
				note = s.Note.ID
			}
			if s.Action != c.action || note != c.note || p.Min != c.min || p.Max != c.max || s.Clobbers != c.clobbers {
				t.Errorf("%v %s, %d to %d bytes, clobbers %#x", s.Action, note, p.Min, p.Max, s.Clobbers)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		words []uint32
		opt   relocate.Options
		index int // of the instruction
		rule  string
	}{
		{"brk", []uint32{0xd4200020}, optionsOf(), 0, "arm64/move-trap"},
		{"hlt", []uint32{0xd4400020}, optionsOf(), 0, "arm64/move-trap"},
		{"udf", []uint32{0x00000001}, optionsOf(), 0, "arm64/move-trap"},
		{"ldxr before a breakpoint", []uint32{0xc85f7c41}, optionsOf(breakpoint), 0, "arm64/move-exclusive"},
		{"stxr after a breakpoint", []uint32{0xc8037c41}, optionsOf(breakpoint), 0, "arm64/move-exclusive"},
		{"ldxr without its stxr", []uint32{0x91000421, 0xc85f7c41, 0x91000421}, optionsOf(region), 1, "arm64/move-exclusive"},
		{"stxr without its ldxr", []uint32{0x91000421, 0xc8037c41}, optionsOf(region), 1, "arm64/move-exclusive"},
		{"a second stxr", []uint32{0xc85f7c41, 0xc8037c41, 0xc8037c41}, optionsOf(region), 2, "arm64/move-exclusive"},
		{"stxr after clrex", []uint32{0xc85f7c41, 0xd5033f5f, 0xc8037c41}, optionsOf(region), 2, "arm64/move-exclusive"},
		{"cpyp alone", []uint32{0x1d010440}, optionsOf(), 0, "arm64/move-memory-copy"},
		{"cpym alone", []uint32{0x1d410440}, optionsOf(), 0, "arm64/move-memory-copy"},
		{"cpyp and cpym without cpye", []uint32{0x1d010440, 0x1d410440, 0x91000421}, optionsOf(region), 0, "arm64/move-memory-copy"},
		{"pacm", []uint32{0xd50324ff}, optionsOf(), 0, "arm64/move-signature"},
		{"paciasppc", []uint32{0xdac1a3fe}, optionsOf(), 0, "arm64/move-signature"},
		{"autiasppc", []uint32{0xf380001f}, optionsOf(), 0, "arm64/move-signature"},
		{"retaasppc", []uint32{0x5500001f}, optionsOf(), 0, "arm64/move-signature"},
		{"b, far, without a dead register", []uint32{0x14000040}, optionsOf(far), 0, "arm64/move-far-jump"},
		{"tbz, far, without a dead register", []uint32{0xb6400203}, optionsOf(far), 0, "arm64/move-far-jump"},
		{"bl, far: x16 may hold an operand", []uint32{0x94000040}, optionsOf(far), 0, "arm64/move-far-jump"},
		{"bl, far: x30 and x31 are never dead", []uint32{0x94000040}, optionsOf(far, dead(30, 31)), 0, "arm64/move-far-jump"},
		{"bl, far: no scratch at all", []uint32{0x94000040}, optionsOf(far, dead(9), noStack), 0, "arm64/move-far-jump"},
		{"a far way back without a dead register", []uint32{0x91000421}, optionsOf(far, jumpBack), 0, "arm64/move-far-jump"},
		{"a far way back with the result's register", []uint32{0xd2800029}, optionsOf(far, jumpBack, dead(9)), 0, "arm64/move-far-jump"},
		{"a far way back after pacia1716", []uint32{0xd503211f}, optionsOf(far, jumpBack, dead(17)), 0, "arm64/move-far-jump"},
		{"a far way back after a system call", []uint32{0xd4000001}, optionsOf(far, jumpBack, dead(0)), 0, "arm64/move-far-jump"},
		{"ldr q, far, without scratch", []uint32{0x9c000205}, optionsOf(far, noStack), 0, "arm64/move-scratch"},
		{"prfm, far, without a given register", []uint32{0xd8000200}, optionsOf(far, onlyDead), 0, "arm64/move-scratch"},
		{"blr x30", []uint32{0xd63f03c0}, optionsOf(), 0, "arm64/move-link-operand"},
		{"blraaz x30", []uint32{0xd63f0bdf}, optionsOf(), 0, "arm64/move-link-operand"},
		{"blraa x16, x30", []uint32{0xd73f0a1e}, optionsOf(), 0, "arm64/move-link-operand"},
		{"blraa x3, x4, which braa would land elsewhere", []uint32{0xd73f0864}, optionsOf(dead(3, 4)), 0, "arm64/move-authenticated-call"},
		{"b, which Linux simulates", []uint32{0x14000040}, optionsOf(linux), 0, "arm64/move-simulated"},
		{"adr, which Linux simulates", []uint32{0x30000105}, optionsOf(linux), 0, "arm64/move-simulated"},
		{"ldr, which Linux simulates", []uint32{0x58000205}, optionsOf(linux), 0, "arm64/move-simulated"},
		{"blr, which Linux simulates", []uint32{0xd63f0060}, optionsOf(linux), 0, "arm64/move-simulated"},
		{"ret, which Linux simulates", []uint32{0xd65f03c0}, optionsOf(linux), 0, "arm64/move-simulated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p relocate.Plan
			err := ISA{}.Plan(&p, sweepWords(t, moveFrom, c.words...), c.opt)
			var refused *relocate.RefusedError
			if !errors.Is(err, relocate.ErrRefused) || !errors.As(err, &refused) {
				t.Fatalf("%v", err)
			}
			if refused.Rule.ID != c.rule || refused.Addr != moveFrom+4*uint64(c.index) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	const room = 64
	for _, c := range []struct {
		name  string
		words []uint32
		from  uint64
		opt   relocate.Options
		to    uint64
		room  int
		want  error
	}{
		{"nothing", nil, moveFrom, optionsOf(), moveNear, room, relocate.ErrEmpty},
		{"two in a slot", []uint32{0x91000421, 0x91000421}, moveFrom, optionsOf(), moveNear, room, relocate.ErrNotContiguous},
		{"an address that no instruction has", []uint32{0x91000421}, moveFrom + 2, optionsOf(), moveNear, room, relocate.ErrMisaligned},
		{"a misaligned new address", []uint32{0x91000421}, moveFrom, optionsOf(), moveNear + 2, room, relocate.ErrMisaligned},
		{"no room", []uint32{0x91000421}, moveFrom, optionsOf(), moveNear, 3, relocate.ErrTooSmall},
		{"no room for the way back", []uint32{0x91000421}, moveFrom, optionsOf(jumpBack), moveNear, 7, relocate.ErrTooSmall},
		{"b without a dead register", []uint32{0x14000040}, moveFrom, optionsOf(), moveFar, room, relocate.ErrRange},
		{"a way back without a dead register", []uint32{0x91000421}, moveFrom, optionsOf(jumpBack), moveFar, room, relocate.ErrRange},
		{"b, near", []uint32{0x14000040}, moveFrom, optionsOf(nearby, dead(9)), moveFar, room, relocate.ErrRange},
		{"b.eq, near", []uint32{0x54000200}, moveFrom, optionsOf(nearby), moveNear, room, relocate.ErrRange},
		{"tbz, near", []uint32{0xb6400203}, moveFrom, optionsOf(nearby), moveMiddle, room, relocate.ErrRange},
		{"bl, near", []uint32{0x94000040}, moveFrom, optionsOf(nearby, dead(9)), moveFar, room, relocate.ErrRange},
		{"adr, near", []uint32{0x30000105}, moveFrom, optionsOf(nearby), moveNear, room, relocate.ErrRange},
		{"adrp, near", []uint32{0xb0000005}, moveFrom, optionsOf(nearby), moveFar, room, relocate.ErrRange},
		{"ldr, near", []uint32{0x58000205}, moveFrom, optionsOf(nearby), moveNear, room, relocate.ErrRange},
		{"ldr q without scratch", []uint32{0x9c000205}, moveFrom, optionsOf(noStack), moveNear, room, relocate.ErrRange},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p relocate.Plan
			buf := bytes.Repeat([]byte{0xaa}, c.room)
			err := ISA{}.Plan(&p, sweepWords(t, c.from, c.words...), c.opt)
			if err == nil {
				_, err = ISA{}.Encode(buf, &p, c.to)
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if !bytes.Equal(buf, bytes.Repeat([]byte{0xaa}, c.room)) {
				t.Errorf("the buffer was written to: %x", buf)
			}
		})
	}
}

func TestMoreErrors(t *testing.T) {
	insts := sweepWords(t, moveFrom, 0x91000421, 0x91000421, 0x14000040)
	var p relocate.Plan
	apart := []decode.Inst{insts[0], insts[2]}
	if err := (ISA{}).Plan(&p, apart, optionsOf(region)); !errors.Is(err, relocate.ErrNotContiguous) {
		t.Errorf("a gap: %v", err)
	}
	insts[1].Props |= decode.Invalid
	if err := (ISA{}).Plan(&p, insts, optionsOf(region)); !errors.Is(err, decode.ErrInvalid) {
		t.Errorf("not an instruction: %v", err)
	}
	_, _, err := archtest.Move(t, ISA{}, insts[2:], optionsOf(), moveFar)
	var outside *relocate.RangeError
	if !errors.As(err, &outside) || outside.Addr != insts[2].Addr || outside.Target != insts[2].Target || outside.At != moveFar {
		t.Errorf("out of range: %v", err)
	}
}

// randomWord returns a word of the groups that have to do with addresses, more
// often than not.
func randomWord(r *rand.Rand) uint32 {
	groups := [...]struct{ value, free uint32 }{
		{0x14000000, 0x83ffffff}, {0x54000000, 0x00ffffff}, {0x34000000, 0x83ffffff}, {0x36000000, 0x81ffffff},
		{0x10000000, 0xe0ffffff}, {0x18000000, 0xc4ffffff}, {0xd63f0000, 0x000003e0}, {0xd63f0800, 0x010007ff},
		{0x74000000, 0x81ffffff}, {0xc8000000, 0x007fffff},
	}
	g := groups[r.IntN(len(groups))]
	if r.IntN(4) == 0 {
		g.value, g.free = 0, 1<<32-1
	}
	return g.value | r.Uint32()&g.free
}

func randomOptions(r *rand.Rand) relocate.Options {
	opt := relocate.Options{
		Form: relocate.Form(r.IntN(2)), Back: relocate.Back(r.IntN(3)), Reach: relocate.Reach(r.IntN(3)),
		Scratch: relocate.ScratchPolicy(r.IntN(3)), Linux: r.IntN(8) == 0, Kernel: r.IntN(2) == 0,
	}
	if r.IntN(3) != 0 {
		opt.Registers = r.Uint32() & r.Uint32()
	}
	return opt
}

// checkMove moves instructions and checks all that holds for any of them.
func checkMove(t *testing.T, insts []decode.Inst, opt relocate.Options, to uint64) (moved bool) {
	t.Helper()
	p, code, err := archtest.Move(t, ISA{}, insts, opt, to)
	if err != nil {
		return false
	}
	for _, inst := range decode.Sweep(ISA{}, nil, code, to) {
		if inst.Has(decode.Invalid) {
			t.Errorf("%08x: moved code %x is no instruction", WordOf(&insts[0]), inst.Bytes())
		}
	}
	again := make([]byte, len(code))
	if n, err := (ISA{}).Encode(again, p, to); err != nil || !bytes.Equal(again[:n], code) {
		t.Errorf("%08x: another time %x, %v, not %x", WordOf(&insts[0]), again[:n], err, code)
	}
	if len(code) > 0 {
		if _, err := (ISA{}).Encode(again[:len(code)-1], p, to); !errors.Is(err, relocate.ErrTooSmall) {
			t.Errorf("%08x: too small a buffer: %v", WordOf(&insts[0]), err)
		}
	}
	return true
}

func TestRandomMoves(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	moved := 0
	for range 100_000 {
		var code []byte
		for range 1 + r.IntN(6) {
			code = put(code, randomWord(r))
		}
		opt := randomOptions(r)
		from := r.Uint64() >> r.IntN(40) &^ 3
		insts := decode.Sweep(ISA{}, nil, code, from)
		if opt.Form == relocate.Slot {
			insts = insts[:1]
		}
		to := from + uint64(int64(r.Uint64())>>r.IntN(64))&^3
		if checkMove(t, insts, opt, to) {
			moved++
		}
	}
	if moved < 20_000 {
		t.Errorf("only %d were moved", moved)
	}
}

// TestLongRegion moves more instructions than fields reach over.
func TestLongRegion(t *testing.T) {
	var words []uint32
	for range 700 {
		words = append(words, 0x14000040, 0xb6400203) // b and tbz, forward
	}
	insts := sweepWords(t, moveFrom, words...)
	p, code, err := archtest.Move(t, ISA{}, insts, optionsOf(region, far, dead(9)), moveFar)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if !p.Inside(s.Inst.Target) {
			continue
		}
		var moved decode.Inst
		if err := (ISA{}).Decode(&moved, code[s.Offset:], moveFar+uint64(s.Offset)); err != nil {
			t.Fatal(err)
		}
		want := moveFar + uint64(p.Steps[(s.Inst.Target-moveFrom)/4].Offset)
		if moved.Target != want {
			t.Fatalf("step %d leads to %#x, want %#x", i, moved.Target, want)
		}
	}
}

func FuzzRelocate(f *testing.F) {
	for _, word := range []uint32{0x14000040, 0x54000200, 0xb6400203, 0x94000001, 0x9c000205, 0xd63f03c0, 0xd73f087e, 0x30000105} {
		f.Add(put(put(nil, word), 0xf1000421), uint64(moveFrom), uint64(moveFar), uint64(word))
	}
	f.Fuzz(func(t *testing.T, code []byte, from, to, choice uint64) {
		opt := randomOptions(rand.New(rand.NewPCG(choice, 0)))
		insts := decode.Sweep(ISA{}, nil, code[:min(len(code), 256)], from)
		if opt.Form == relocate.Slot && len(insts) > 1 {
			insts = insts[:1]
		}
		checkMove(t, insts, opt, to)
	})
}

// movable returns the instructions of kernel functions that o lets move.
func movable(t testing.TB, opt relocate.Options) (insts []decode.Inst) {
	t.Helper()
	funcs, err := refdata.KernelVerdicts(kernelList)
	if err != nil {
		t.Fatal(err)
	}
	var p relocate.Plan
	for i := range funcs {
		for _, inst := range decode.Sweep(ISA{}, nil, funcs[i].Text, uint64(funcs[i].Addr)) {
			if (ISA{}).Plan(&p, []decode.Inst{inst}, opt) == nil {
				insts = append(insts, inst)
			}
		}
	}
	return insts
}

var benchmarks = []struct {
	name string
	opt  relocate.Options
	away uint64
}{
	{"near", relocate.Options{Kernel: true}, 1 << 26},
	{"far", relocate.Options{Reach: relocate.Far, Registers: 1<<16 | 1<<17}, 1 << 40},
}

func BenchmarkRelocate(b *testing.B) {
	for _, c := range benchmarks {
		b.Run(c.name, func(b *testing.B) {
			insts := movable(b, c.opt)
			var p relocate.Plan
			var dst [64]byte
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				n := i % len(insts)
				if err := (ISA{}).Plan(&p, insts[n:n+1], c.opt); err != nil {
					b.Fatal(err)
				}
				if _, err := (ISA{}).Encode(dst[:], &p, insts[n].Addr+c.away); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestNoAllocation(t *testing.T) {
	for _, c := range benchmarks {
		insts := movable(t, c.opt)
		var p relocate.Plan
		var dst [64]byte
		i := 0
		allocs := testing.AllocsPerRun(len(insts)-1, func() {
			if err := (ISA{}).Plan(&p, insts[i:i+1], c.opt); err != nil {
				t.Fatal(err)
			}
			if _, err := (ISA{}).Encode(dst[:], &p, insts[i].Addr+c.away); err != nil {
				t.Fatal(err)
			}
			i = (i + 1) % len(insts)
		})
		if len(insts) < 1000 || allocs != 0 {
			t.Errorf("%s: %d instructions, %v allocations each", c.name, len(insts), allocs)
		}
	}
}
