package arm64

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xol/decode"
)

func TestChangedBy(t *testing.T) {
	for _, c := range []struct {
		name string
		word uint32
		want uint32
	}{
		{"add x1, x2, x3", 0x8b030041, set(1)},
		{"cmp x2, #4", 0xf100105f, 0},
		{"cmp x2, x3", 0xeb03005f, 0},
		{"tst x2, #3", 0xf240045f, 0},
		{"ccmp x2, #1, #4, eq", 0xfa410844, 0},
		{"add sp, sp, #16", 0x910043ff, set(31)},
		{"and sp, x2, #0xf0", 0x927c0c5f, set(31)},
		{"csel x1, x2, x3, eq", 0x9a830041, set(1)},
		{"ldr x1, [x2, #8]", 0xf9400441, set(1)},
		{"ldr x1, [x2], #8", 0xf8408441, set(1, 2)},
		{"ldr x1, [x2, #8]!", 0xf8408c41, set(1, 2)},
		{"ldr xzr, [x2]", 0xf940005f, 0},
		{"str x1, [x2, #8]", 0xf9000441, 0},
		{"str x1, [sp, #-16]!", 0xf81f0fe1, set(31)},
		{"ldp x1, x3, [x2]", 0xa9400c41, set(1, 3)},
		{"stp x1, x3, [sp, #-16]!", 0xa9bf0fe1, set(31)},
		{"ldr d1, [x2]", 0xfd400041, 0},
		{"ldr q1, [x2], #16", 0x3cc10441, set(2)},
		{"ld1 {v1.16b}, [x2], #16", 0x4cdf7041, set(2)},
		{"ld1 {v1.16b}, [x2]", 0x4c407041, 0},
		{"prfm pldl1keep, [x2]", 0xf9800040, 0},
		{"ldr x1, literal", 0x58000041, set(1)},
		{"ldr d1, literal", 0x5c000041, 0},
		{"stxr w4, x1, [x2]", 0xc8047c41, set(1, 2, 4, 5)}, // more than it changes, for it is rare
		{"fadd d1, d2, d3", 0x1e632841, 0},
		{"fmov x1, d2", 0x9e660041, set(1)},
		{"fmov d1, x2", 0x9e670041, 0},
		{"fcvtzs w1, s2", 0x1e380041, set(1)},
		{"scvtf s1, w2", 0x1e220041, 0},
		{"fcvtzs w1, s2, #3", 0x1e18f441, set(1)},
		{"umov w1, v2.b[0]", 0x0e013c41, set(1)},
		{"smov x1, v2.h[1]", 0x4e062c41, set(1)},
		{"nop", 0xd503201f, 0},
		{"autia1716", 0xd503219f, set(17)},
		{"autiasp", 0xd50323bf, set(30)},
		{"chkfeat x16", 0xd503251f, set(16)},
		{"bl", 0x94000001, callClobbers},
		{"blr x8", 0xd63f0100, callClobbers},
		{"b", 0x14000001, 0},
		{"cbz x3", 0xb4000203, 0},
		{"mrs x1, nzcv", 0xd53b4201, set(1, 2)},
	} {
		inst := &sweepWords(t, moveFrom, c.word)[0]
		if got := changedBy(inst); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

// flagSetters are the mnemonics of instructions that write the condition
// flags [Arm ARM, C6.2], as far as the list of real instructions has them.
var flagSetters = []string{
	"adds", "subs", "ands", "bics", "adcs", "sbcs", "negs", "ngcs", "cmp", "cmn", "tst", "ccmp", "ccmn",
	"fcmp", "fcmpe", "fccmp", "fccmpe",
}

// noResults are the mnemonics of instructions whose first operand is a general
// register that they only read.
var noResults = regexp.MustCompile(`^(st[a-z0-9]*|cmp|cmn|tst|ccmp|ccmn|cb.*|tb.*|b[rl].*|ret|msr|sys|dc|ic|at|tlbi|bc|cfp|dvp|cpp|gcs.*|set.*|rmif|wf.t|sys.*|.*brk)$`)

var (
	firstRegister = regexp.MustCompile(`^[wx]([0-9]+)(,|$)`)
	writeback     = regexp.MustCompile(`\[(x([0-9]+)|sp)(, #-?[0-9]+)?\](!|, #)`)
)

// TestEffectsReal judges by the text of real instructions.
func TestEffectsReal(t *testing.T) {
	insts := decode.Sweep(ISA{}, nil, realText(t), moveFrom)
	results, flags := 0, 0
	for i := range insts {
		inst := &insts[i]
		if inst.Has(decode.Invalid) {
			continue
		}
		text, _, _ := strings.Cut(ISA{}.Text(inst, nil), " //")
		mnemonic, operands, _ := strings.Cut(text, " ")
		operands = strings.TrimSpace(operands)
		if slices.Contains(flagSetters, mnemonic) {
			flags++
			if !setsFlags(inst) {
				t.Errorf("%s: the flags are not set", text)
			}
		}
		got := changedBy(inst)
		if m := firstRegister.FindStringSubmatch(operands); m != nil && !noResults.MatchString(mnemonic) {
			results++
			if r, _ := strconv.Atoi(m[1]); got>>r&1 == 0 {
				t.Errorf("%s: %#x lacks x%d", text, got, r)
			}
		}
		if m := writeback.FindStringSubmatch(operands); m != nil && isLoadStore(WordOf(inst)) {
			r, err := strconv.Atoi(m[2])
			if err != nil {
				r = zeroOrSP
			}
			if got>>r&1 == 0 {
				t.Errorf("%s: %#x lacks the base", text, got)
			}
		}
	}
	if results < 500 || flags < 20 {
		t.Errorf("only %d results and %d comparisons judged", results, flags)
	}
}
