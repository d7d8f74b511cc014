package patch_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"xol/arch"
	"xol/internal/isatest"
	"xol/machine"
	"xol/patch"
	"xol/relocate"
)

// The site of the tables, and where its detour buffer is.
const (
	siteAddr   = 0x40_1000
	detourAddr = 0x40_2000
	detourEnd  = 0x40_2100
)

func isaOf(t testing.TB, name string) arch.Prober {
	t.Helper()
	isa, err := isatest.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return isa
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	code, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// stepText is a step in a line.
func stepText(s *patch.Step) string {
	switch s.Kind {
	case patch.Write:
		text := fmt.Sprintf("write %#x %x", s.Addr, s.New)
		if s.Alone {
			text += " alone"
		}
		return text
	case patch.Redirect:
		return "redirect " + s.Hits.String()
	case patch.Quiesce:
		return fmt.Sprintf("quiesce %#x-%#x", s.Range.Lo, s.Range.Hi)
	}
	return s.Kind.String()
}

// stateText is a state in a line.
func stateText(s patch.State) string { return fmt.Sprintf("%x %s", s.Text, s.Hits) }

// planCases are the plans, step by step, with the states before them and after
// each.
var planCases = []struct {
	name, isa string
	op        patch.Operation
	kernel    bool
	original  string
	steps     []string
	states    []string
}{
	{"arm", "amd64", patch.Arm, false, "4889e5",
		[]string{"write 0x401000 cc", "sync"},
		[]string{"4889e5 slot", "cc89e5 slot", "cc89e5 slot"}},
	{"disarm", "amd64", patch.Disarm, false, "4889e5",
		[]string{"write 0x401000 48", "sync"},
		[]string{"cc89e5 slot", "4889e5 slot", "4889e5 slot"}},
	{"optimize", "amd64", patch.Optimize, false, "55 4889e5 4154",
		[]string{"redirect detour", "quiesce 0x401001-0x401006", "write 0x401001 fb0f0000", "sync", "write 0x401000 e9", "sync"},
		[]string{"cc4889e54154 slot", "cc4889e54154 detour", "cc4889e54154 detour", "ccfb0f000054 detour",
			"ccfb0f000054 detour", "e9fb0f000054 detour", "e9fb0f000054 detour"}},
	{"unoptimize", "amd64", patch.Unoptimize, false, "55 4889e5 4154",
		[]string{"write 0x401000 cc", "sync", "write 0x401001 4889e541", "sync", "redirect slot", "quiesce 0x402000-0x402100"},
		[]string{"e9fb0f000054 detour", "ccfb0f000054 detour", "ccfb0f000054 detour", "cc4889e54154 detour",
			"cc4889e54154 detour", "cc4889e54154 slot", "cc4889e54154 slot"}},

	{"arm a program", "arm64", patch.Arm, false, "e10300aa",
		[]string{"write 0x401000 a00020d4 alone", "sync"}, []string{"e10300aa slot", "a00020d4 slot", "a00020d4 slot"}},
	{"arm a kernel", "arm64", patch.Arm, true, "e10300aa",
		[]string{"write 0x401000 800020d4 alone", "sync"}, []string{"e10300aa slot", "800020d4 slot", "800020d4 slot"}},
	{"arm a branch", "arm64", patch.Arm, false, "10000014",
		[]string{"write 0x401000 a00020d4", "sync"}, []string{"10000014 slot", "a00020d4 slot", "a00020d4 slot"}},
	{"disarm a nop", "arm64", patch.Disarm, true, "1f2003d5",
		[]string{"write 0x401000 1f2003d5", "sync"}, []string{"800020d4 slot", "1f2003d5 slot", "1f2003d5 slot"}},
	{"optimize", "arm64", patch.Optimize, true, "e10300aa",
		[]string{"write 0x401000 00040014", "sync"}, []string{"800020d4 slot", "00040014 slot", "00040014 slot"}},
	{"unoptimize", "arm64", patch.Unoptimize, true, "e10300aa",
		[]string{"write 0x401000 800020d4", "sync", "quiesce 0x402000-0x402100"},
		[]string{"00040014 slot", "800020d4 slot", "800020d4 slot", "800020d4 slot"}},

	{"arm", "ppc64", patch.Arm, false, "38630001",
		[]string{"write 0x401000 7fe00008 alone", "sync"}, []string{"38630001 slot", "7fe00008 slot", "7fe00008 slot"}},
	{"arm", "ppc64le", patch.Arm, false, "01006338",
		[]string{"write 0x401000 0800e07f alone", "sync"}, []string{"01006338 slot", "0800e07f slot", "0800e07f slot"}},
	{"arm a prefixed instruction", "ppc64", patch.Arm, false, "06000000 38600001",
		[]string{"write 0x401000 7fe00008 alone", "sync"},
		[]string{"0600000038600001 slot", "7fe0000838600001 slot", "7fe0000838600001 slot"}},
	{"disarm", "ppc64le", patch.Disarm, false, "01006338",
		[]string{"write 0x401000 01006338 alone", "sync"}, []string{"0800e07f slot", "01006338 slot", "01006338 slot"}},
	{"optimize a prefixed instruction", "ppc64", patch.Optimize, false, "06000000 38600001",
		[]string{"write 0x401000 48001000 alone", "sync"},
		[]string{"7fe0000838600001 slot", "4800100038600001 slot", "4800100038600001 slot"}},
	{"unoptimize", "ppc64le", patch.Unoptimize, false, "01006338",
		[]string{"write 0x401000 0800e07f alone", "sync", "quiesce 0x402000-0x402100"},
		[]string{"00100048 slot", "0800e07f slot", "0800e07f slot", "0800e07f slot"}},
}

func siteOf(original []byte, kernel bool) *patch.Site {
	return &patch.Site{Addr: siteAddr, Original: original, Kernel: kernel, Detour: machine.Range{Lo: detourAddr, Hi: detourEnd}}
}

func TestPlans(t *testing.T) {
	for _, c := range planCases {
		t.Run(c.isa+" "+c.name, func(t *testing.T) {
			original := unhex(t, c.original)
			p, err := isaOf(t, c.isa).PlanPatch(c.op, siteOf(original, c.kernel))
			if err != nil {
				t.Fatal(err)
			}
			var steps, states []string
			for i := range p.Steps {
				steps = append(steps, stepText(&p.Steps[i]))
			}
			for _, s := range p.States() {
				states = append(states, stateText(s))
			}
			if !reflect.DeepEqual(steps, c.steps) {
				t.Errorf("steps\n%s\nwant\n%s", strings.Join(steps, "\n"), strings.Join(c.steps, "\n"))
			}
			if !reflect.DeepEqual(states, c.states) {
				t.Errorf("states\n%s\nwant\n%s", strings.Join(states, "\n"), strings.Join(c.states, "\n"))
			}
			if p.Operation != c.op || p.Addr != siteAddr || !bytes.Equal(original, unhex(t, c.original)) {
				t.Errorf("%v at %#x, original %x", p.Operation, p.Addr, original)
			}
		})
	}
}

// TestPlansFollowOneAnother checks that each plan starts where the one before
// it ends, and that undoing ends where doing began.
func TestPlansFollowOneAnother(t *testing.T) {
	for _, name := range arch.Names() {
		isa := isaOf(t, name)
		original := bytes.Repeat([]byte{0x11, 0x22, 0x33}, 4)
		last := patch.State{Text: original}
		for _, op := range []patch.Operation{patch.Arm, patch.Optimize, patch.Unoptimize, patch.Disarm} {
			p, err := isa.PlanPatch(op, siteOf(original, true))
			if err != nil {
				t.Fatal(err)
			}
			states := p.States()
			if !bytes.Equal(states[0].Text, last.Text) || states[0].Hits != last.Hits {
				t.Errorf("%s: %s starts with %s, not %s", name, op, stateText(states[0]), stateText(last))
			}
			last = states[len(states)-1]
		}
		if !bytes.Equal(last.Text, original) {
			t.Errorf("%s: ends with %s", name, stateText(last))
		}
	}
}

func TestErrors(t *testing.T) {
	word := binary.LittleEndian.AppendUint32(nil, 0xd503201f)
	for _, c := range []struct {
		name, isa string
		op        patch.Operation
		addr      uint64
		original  []byte
		detour    uint64
		want      error
	}{
		{"nothing", "amd64", patch.Arm, siteAddr, nil, 0, patch.ErrShort},
		{"less than the jump", "amd64", patch.Optimize, siteAddr, word, detourAddr, patch.ErrShort},
		{"half a word", "arm64", patch.Arm, siteAddr, word[:2], 0, patch.ErrShort},
		{"no operation", "amd64", patch.Unoptimize + 1, siteAddr, word, detourAddr, patch.ErrOperation},
		{"an odd address", "arm64", patch.Disarm, siteAddr + 2, word, 0, relocate.ErrMisaligned},
		{"an odd address", "ppc64", patch.Arm, siteAddr + 1, word, 0, relocate.ErrMisaligned},
		{"an odd buffer", "arm64", patch.Optimize, siteAddr, word, detourAddr + 2, relocate.ErrMisaligned},
		{"out of reach", "amd64", patch.Optimize, siteAddr, append(word, 0x90), siteAddr + 1<<31 + 5, relocate.ErrRange},
		{"out of reach", "arm64", patch.Optimize, siteAddr, word, siteAddr + 1<<27, relocate.ErrRange},
		{"out of reach", "ppc64le", patch.Unoptimize, siteAddr, word, siteAddr + 1<<25, relocate.ErrRange},
	} {
		s := &patch.Site{Addr: c.addr, Original: c.original, Detour: machine.Range{Lo: c.detour}}
		if p, err := isaOf(t, c.isa).PlanPatch(c.op, s); p != nil || !errors.Is(err, c.want) {
			t.Errorf("%s, %s: %v, want %v", c.isa, c.name, err, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		got  fmt.Stringer
		want string
	}{
		{patch.Arm, "arm"}, {patch.Unoptimize, "unoptimize"}, {patch.Unoptimize + 1, "invalid"},
		{patch.Quiesce, "quiesce"}, {patch.Quiesce + 1, "invalid"}, {patch.HitDetour, "detour"}, {patch.HitDetour + 1, "invalid"},
	} {
		if c.got.String() != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
