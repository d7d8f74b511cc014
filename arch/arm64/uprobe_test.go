package arm64

import (
	"encoding/binary"
	"strings"
	"testing"

	"xol/classify"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/kernel"
)

func TestUprobeVerdicts(t *testing.T) {
	checkUprobes(t, linux6_12, "testdata/uprobe-verdicts.tsv.gz")
}

func TestUprobeVerdictsComplete(t *testing.T) {
	checkUprobes(t, linux6_12, refdata.Full(t, "uprobe-verdicts", "arm64.tsv.gz"))
}

// Other versions: all that differs from 6.12, and every twelfth row.
func TestUprobeVerdictsByVersion(t *testing.T) {
	for _, release := range []string{"5.10.218", "6.1.176", "7.3.4"} {
		t.Run(release, func(t *testing.T) {
			checkUprobes(t, archtest.Branch(t, release), "testdata/uprobe/"+release+".tsv.gz")
		})
		t.Run(release+" complete", func(t *testing.T) {
			checkUprobes(t, archtest.Branch(t, release), refdata.Full(t, "uprobe-verdicts", "arm64-"+release+".tsv.gz"))
		})
	}
}

// uprobeExec are the words of the list for ways to execute.
var uprobeExec = map[classify.Exec]string{classify.ExecSlot: "xol", classify.ExecEmulate: "simulate"}

func checkUprobes(t *testing.T, version classify.Version, path string) {
	p, kprobes := uprobeProfile(version), kprobeProfile(version)
	archtest.EachUprobe(t, path, func(row *refdata.UprobeRow) {
		got := p.Lone(row.Bytes, 0x10000)
		handler := strings.TrimPrefix(row.Handler, "simulate_")
		if uprobeExec[got.Exec] != row.Exec || archtest.Errno(&got) != row.Errno || got.Emulator != handler {
			t.Errorf("line %d: %x: got %+v, want %+v", row.Line, []byte(row.Bytes), got, row)
		}
		checkSameSimulator(t, kprobes, row)
	})
}

// checkSameSimulator compares a kprobe with the uprobe in row: only the loads
// of literals differ.
func checkSameSimulator(t *testing.T, kprobes classify.Profile, row *refdata.UprobeRow) {
	v := kprobes.Lone(row.Bytes, 0x10000)
	literal := v.Emulator == "ldr_literal" || v.Emulator == "ldrsw_literal"
	if literal && row.Errno == classify.EINVAL {
		return
	}
	if uprobeExec[v.Exec] != row.Exec || archtest.Errno(&v) != row.Errno {
		t.Errorf("line %d: %x: kprobe %+v, uprobe %+v", row.Line, []byte(row.Bytes), v, row)
	}
}

// Errno and kind are in the list; the reasons are told apart here.
func TestUprobeRules(t *testing.T) {
	for _, c := range []struct {
		name         string
		word         uint32
		addr         uint64
		rule, hazard string
	}{
		{"add", addW, 0x10000, "", ""},
		{"no instruction", noWord, 0x10000, "", ""},
		{"misaligned", nop, 0x10002, "arm64/uprobe-misaligned", ""},
		{"misaligned breakpoint", 0xd42000a0, 0x10001, "arm64/uprobe-misaligned", ""},
		{"brk #5", 0xd42000a0, 0x10000, "arm64/uprobe-breakpoint", ""},
		{"brk #4", 0xd4200080, 0x10000, "arm64/uprobe-exception", ""},
		{"svc", 0xd4000001, 0x10000, "arm64/uprobe-exception", ""},
		{"msr nzcv", 0xd51b4200, 0x10000, "arm64/uprobe-msr", ""},
		{"mrs daif", 0xd53b4220, 0x10000, "arm64/uprobe-mrs-daif", ""},
		{"eret", 0xd69f03e0, 0x10000, "arm64/uprobe-exception-return", ""},
		{"retab", 0xd65f0fff, 0x10000, "arm64/uprobe-authenticating-branch", ""},
		{"autiasp", 0xd50323bf, 0x10000, "arm64/uprobe-hint", ""},
		{"ldxr", ldxr, 0x10000, "arm64/uprobe-exclusive", ""},
		{"setp", 0x19c10440, 0x10000, "arm64/uprobe-memory-copy", ""},
		{"ldr x literal", 0x58000040, 0x10000, "arm64/uprobe-literal", ""},
		{"ldrsw literal", 0x98000040, 0x10000, "arm64/uprobe-literal", ""},
		{"ldr s literal", 0x1c000040, 0x10000, "", "arm64/simd-literal"},
		{"prfm literal", 0xd8000000, 0x10000, "arm64/uprobe-prefetch-literal", ""},
		{"autiasppc", 0xf380001f, 0x10000, "", "arm64/pc-modifier"},
	} {
		v := uprobeProfile(linux6_12).Lone(binary.LittleEndian.AppendUint32(nil, c.word), c.addr)
		if rule, hazard := archtest.IDs(&v); rule != c.rule || hazard != c.hazard {
			t.Errorf("%s: got %q %q, want %q %q", c.name, rule, hazard, c.rule, c.hazard)
		}
	}
}

// Uprobes are accepted between ldxr and stxr, and never let them succeed.
func TestUprobeInSequence(t *testing.T) {
	p, _ := ISA{}.Profile(classify.Uprobe612, kernel.Debian("arm64", classify.Linux(6, 12)))
	f := testFunc(ldxr, addW, stxr, cbnz)
	for i, want := range []string{"", "arm64/exclusive-lost", "", ""} {
		at := p.At(f, testAddr+uint64(i)*4)
		if _, hazard := archtest.IDs(&at); hazard != want || at != p.Func(nil, f)[i] {
			t.Errorf("instruction %d: got %+v", i, at)
		}
	}
	if v := p.At(f, testAddr+16); v.OK() {
		t.Errorf("after the function: %+v", v)
	}
	if v := p.At(f, testAddr+5); v.OK() || v.Instead != testAddr+12 { // +4 would lose the reservation
		t.Errorf("misaligned: %+v", v)
	}
}

// What holds in some versions only.
func TestUprobeHazardsByVersion(t *testing.T) {
	v := classify.Linux
	for _, c := range []struct {
		name   string
		word   uint32
		hazard string
		holds  classify.Span
	}{
		{"ldr x literal", 0x58000040, "arm64/uprobe-literal-load", until(v(5, 10).Patch(262))},
		{"ldrsw literal", 0x98000040, "arm64/uprobe-literal-load", until(v(5, 10).Patch(262))},
		{"bc.eq", 0x54000050, "arm64/leaves-slot", until(v(6, 12))},
		{"b.eq", 0x54000040, "", classify.Span{}},
		{"setp", 0x19c10440, "arm64/memory-copy-split", until(v(6, 12))},
		{"ldr s literal", 0x1c000040, "arm64/simd-literal", classify.Span{}},
		{"nop", nop, "", classify.Span{}},
	} {
		for _, version := range known.Uprobes {
			want := ""
			if c.holds.Holds(version) {
				want = c.hazard
			}
			got := uprobeProfile(version).Lone(binary.LittleEndian.AppendUint32(nil, c.word), 0x10000)
			if _, hazard := archtest.IDs(&got); hazard != want {
				t.Errorf("%s on %v: got %q, want %q; %+v", c.name, version, hazard, want, got)
			}
		}
	}
}

// TestUprobeOutside asks for addresses that are no instruction of the function.
func TestUprobeOutside(t *testing.T) {
	p, _ := ISA{}.Profile(classify.Uprobe612, kernel.Debian("arm64", classify.Linux(6, 12)))
	f := testFunc(0xd503201f, 0xd65f03c0) // nop; ret
	for _, c := range []struct {
		name, rule string
		v          classify.Verdict
	}{
		{"before the function", "arm64/uprobe-outside", p.At(f, testAddr-4)},
		{"after the function", "arm64/uprobe-outside", p.At(f, testAddr+8)},
		{"its last instruction", "", p.At(f, testAddr+4)},
		{"an instruction that is cut off", "arm64/uprobe-outside", p.Lone([]byte{0x1f, 0x20, 0x03}, testAddr)},
		{"a whole one", "", p.Lone([]byte{0x1f, 0x20, 0x03, 0xd5}, testAddr)},
	} {
		if rule, _ := archtest.IDs(&c.v); rule != c.rule {
			t.Errorf("%s: %q, want %q", c.name, rule, c.rule)
		}
	}
}
