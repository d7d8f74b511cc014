package amd64

import (
	"strings"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
)

// The sample holds every third row of the complete list, and all rows of a rare
// kind.
func TestUprobeVerdicts(t *testing.T) {
	checkUprobes(t, "testdata/uprobe-verdicts.tsv.gz")
}

func TestUprobeVerdictsComplete(t *testing.T) {
	checkUprobes(t, refdata.Full(t, "uprobe-verdicts", "amd64.tsv.gz"))
}

func checkUprobes(t *testing.T, path string) {
	archtest.EachUprobe(t, path, func(row *refdata.UprobeRow) {
		want := wantUprobe(row)
		got := uprobeProfile{}.Lone(row.Bytes, 0x401000)
		if archtest.Errno(&got) != row.Errno || got.Exec != want.Exec || got.Emulator != want.Emulator || got.Fixups != want.Fixups {
			t.Errorf("line %d: %x: got %+v, want %+v", row.Line, []byte(row.Bytes), got, row)
		}
		var k kernelInsn
		var buf [kernelWindow]byte
		decoded := k.decode(window(row.Bytes, 0, &buf))
		if decoded != (row.Errno != classify.ENOEXEC) || row.Errno == 0 && int(k.len) != row.Len {
			t.Errorf("line %d: %x: got length %d, want %d", row.Line, []byte(row.Bytes), k.len, row.Len)
		}
	})
}

var fixupNames = map[string]classify.Fixups{
	"": 0, "IP": classify.FixIP, "CALL": classify.FixCall, "SETF": classify.FixFlags,
	"RIP_SI": classify.ScratchSI, "RIP_DI": classify.ScratchDI, "RIP_BX": classify.ScratchBX,
}

// wantUprobe returns what a row of the list says of a verdict.
func wantUprobe(row *refdata.UprobeRow) (v classify.Verdict) {
	switch {
	case row.Errno != 0:
	case row.Exec == "emulate":
		v.Exec, v.Emulator = classify.ExecEmulate, row.Handler
	default:
		v.Exec = classify.ExecSlot
		for name := range strings.SplitSeq(row.Fixups, "|") {
			v.Fixups |= fixupNames[name]
		}
	}
	return v
}

// Errno and kind are in the list; the reasons are told apart here.
func TestUprobeRules(t *testing.T) {
	for _, c := range []struct{ name, code, rule string }{
		{"mov", "4889c0", ""},
		{"data", "c4e148ad0d", "amd64/uprobe-not-instruction"},
		{"fma4", "c4e37968d911", "amd64/uprobe-undecodable"},
		{"lock", "f0ff00", "amd64/uprobe-lock"},
		{"long nop", "662e0f1f840000000000", "amd64/uprobe-segment"},
		{"notrack jmp", "3effe0", "amd64/uprobe-segment"},
		{"fs is fine", "64488b042528000000", ""},
		{"mov to ss", "8ed0", "amd64/uprobe-stack-segment"},
		{"push es", "06", "amd64/uprobe-not-64-bit"},
		{"in", "ec", "amd64/uprobe-port"},
		{"int3", "cc", "amd64/uprobe-trap"},
		{"iretq", "48cf", "amd64/uprobe-iret"},
		{"hlt", "f4", "amd64/uprobe-privileged"},
		{"vmovdqu has the opcode of outs", "c5fa6f07", "amd64/uprobe-opcode-clash"},
		{"jmp with 66", "66e911223344", "amd64/uprobe-branch-66"},
		{"nothing", "", "amd64/uprobe-outside"},
	} {
		v := uprobeProfile{}.Lone(unhex(t, c.code), 0x401000)
		if got, _ := archtest.IDs(&v); got != c.rule {
			t.Errorf("%s: got %q, want %q", c.name, got, c.rule)
		}
	}
}

// Those marked "seen" were observed on running kernels; the others follow from
// what the kernel does with the opcode byte and from its fix-ups.
func TestUprobeHazards(t *testing.T) {
	for _, c := range []struct{ name, code, hazard string }{
		{"vpor, seen", "c5edebc0", "amd64/uprobe-vex-as-jump"},
		{"vpcmpeqd, seen", "c5fd76c0", "amd64/uprobe-vex-as-jump"},
		{"vpshufd, seen", "c5f970c0b1", "amd64/uprobe-vex-as-jump"},
		{"vpsrlw, seen", "c5f971d008", "amd64/uprobe-vex-as-jump"},
		{"vzeroupper, seen", "c5f877", "amd64/uprobe-vex-as-jump"},
		{"vpsubsb, seen", "c5f9e8c0", "amd64/uprobe-vex-as-call"},
		{"kmovw with the opcode of nop", "c5f890c1", "amd64/uprobe-vex-as-nop"},
		{"evex", "62f17d4876c1", "amd64/uprobe-vex-as-jump"},
		{"vmovaps", "c5f828c0", ""},
		{"xchg r8d,eax, seen", "4190", "amd64/uprobe-xchg-as-nop"},
		{"xchg r8,rax", "4990", "amd64/uprobe-xchg-as-nop"},
		{"nop", "90", ""},
		{"nop with rex.w", "4890", ""},
		{"pause", "f390", ""},
		{"jcc", "7510", ""},
		{"call", "e811223344", ""},
		{"push", "4157", ""},
		{"rip-relative with rex.b, seen", "498b0511223344", "amd64/uprobe-rex-left-changed"},
		{"rip-relative behind a prefix", "66418b0511223344", ""},
		{"rip-relative", "488b0511223344", ""},
		{"rip-relative with vex", "c5fa100511223344", ""},
		{"call through memory", "ff1511223344", ""},
		{"far call", "ff18", "amd64/uprobe-far-call"},
		{"far call with rex.w", "48ff18", ""},
		{"xop", "8fe878c2fa0d", ""},
		{"xop, rip-relative", "8fe8d8a305440d060030", "amd64/uprobe-wrong-address"},
		{"vcmpps has the opcode of ret", "c5f8c2c000", "amd64/uprobe-vex-as-return"},
		{"vfnmadd132ss has the opcode of popf", "c4e2799dc1", "amd64/uprobe-trap-flag"},
		{"popf", "9d", ""},
		{"pushf", "9c", "amd64/uprobe-pushf"},
		{"call behind five prefixes", "646567f2f3e811223344", "amd64/uprobe-slot-return-address"},
		{"ret behind five prefixes", "646567f2f3c3", "amd64/uprobe-moved-target"},
		{"nop that the kernel does not know", "0f190511223344", ""},
		{"sysret faults in a program", "480f07", ""},
		{"refused", "cc", ""},
	} {
		v := uprobeProfile{}.Lone(unhex(t, c.code), 0x401000)
		if _, got := archtest.IDs(&v); got != c.hazard {
			t.Errorf("%s: got %q, want %q; %+v", c.name, got, c.hazard, v)
		}
	}
}

// What REX2 leads, told apart by what the instruction is. Seen: d5 becomes d4.
func TestUprobeREX2(t *testing.T) {
	const rex2 = uint64(EncREX2) << encodingAt
	for _, c := range []struct {
		name, code string
		inst       decode.Inst
		hazard     string
	}{
		{"rip-relative", "d5008b0511223344",
			decode.Inst{Len: 8, Detail: rex2 | 0x8B, PCRel: decode.PCRel{Kind: decode.PCRelMemory, Offset: 4, Width: 32}}, "amd64/uprobe-rex2-broken"},
		{"register", "d5008bc0", decode.Inst{Len: 4, Detail: rex2 | 0x8B}, ""},
		{"jmpabs", "d500a11122334455667788", decode.Inst{Len: 11, Detail: rex2 | 0xA1, Flow: decode.FlowJump}, "amd64/uprobe-moved-target"},
		{"ret", "d500c3", decode.Inst{Len: 3, Detail: rex2 | 0xC3, Flow: decode.FlowReturn}, ""},
		{"popf", "d5009d", decode.Inst{Len: 3, Detail: rex2 | 0x9D}, ""},
		{"cmpps", "d580c2c000", decode.Inst{Len: 5, Detail: rex2 | uint64(Map0F)<<mapAt | 0xC2}, "amd64/uprobe-vex-as-return"},
		{"setge", "d5809dc0", decode.Inst{Len: 4, Detail: rex2 | uint64(Map0F)<<mapAt | 0x9D}, "amd64/uprobe-trap-flag"},
		{"seto", "d58090c0", decode.Inst{Len: 4, Detail: rex2 | uint64(Map0F)<<mapAt | 0x90}, "amd64/uprobe-vex-as-nop"},
		{"xchg r16,rax", "d51890", decode.Inst{Len: 3, Detail: rex2 | 0x90}, "amd64/uprobe-xchg-as-nop"},
		{"nop", "d50090", decode.Inst{Len: 3, Detail: rex2 | 0x90}, ""},
		{"psubsb", "d580e8c0", decode.Inst{Len: 4, Detail: rex2 | uint64(Map0F)<<mapAt | 0xE8}, "amd64/uprobe-vex-as-call"},
		{"no instruction", "d50075", decode.Inst{Len: 1, Props: decode.Invalid}, "amd64/uprobe-vex-as-jump"},
	} {
		var v classify.Verdict
		var buf [kernelWindow]byte
		uprobeProfile{}.judge(&v, window(unhex(t, c.code), 0, &buf), &c.inst)
		if _, got := archtest.IDs(&v); got != c.hazard || !v.OK() {
			t.Errorf("%s: got %q, want %q; %+v", c.name, got, c.hazard, v)
		}
	}
}

// The kernel knows no instruction boundaries in user text.
func TestUprobeInsideInstruction(t *testing.T) {
	f := testFunc(unhex(t, "90 4889c0 f0ff00"))
	for _, c := range []struct {
		off          uint64
		rule, hazard string
		instead      uint64
	}{
		{1, "", "", 0},
		{2, "", "amd64/uprobe-inside-instruction", testAddr + 1},
		{4, "amd64/uprobe-lock", "", 0},
		{5, "", "amd64/uprobe-inside-instruction", testAddr + 4},
		{7, "amd64/uprobe-outside", "", 0},
	} {
		v := uprobeProfile{}.At(f, f.Addr+c.off)
		if rule, hazard := archtest.IDs(&v); rule != c.rule || hazard != c.hazard || v.Instead != c.instead || v.Culprit != c.instead {
			t.Errorf("+%d: got %q %q %+v, want %+v", c.off, rule, hazard, v, c)
		}
	}
}
