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
	checkUprobes(t, linux6_12, "testdata/uprobe-verdicts.tsv.gz")
}

func TestUprobeVerdictsComplete(t *testing.T) {
	checkUprobes(t, linux6_12, refdata.Full(t, "uprobe-verdicts", "amd64.tsv.gz"))
}

// Other versions: all that differs from 6.12, and every twelfth row.
func TestUprobeVerdictsByVersion(t *testing.T) {
	for _, release := range []string{"5.10.218", "6.1.176", "7.3.4"} {
		t.Run(release, func(t *testing.T) {
			checkUprobes(t, archtest.Branch(t, release), "testdata/uprobe/"+release+".tsv.gz")
		})
		t.Run(release+" complete", func(t *testing.T) {
			checkUprobes(t, archtest.Branch(t, release), refdata.Full(t, "uprobe-verdicts", "amd64-"+release+".tsv.gz"))
		})
	}
}

// Of some versions only the errors are known that user space was answered.
func TestUprobeErrnosByVersion(t *testing.T) {
	for _, release := range []string{"6.16.12", "6.17.13", "6.18.15", "6.19.14", "7.0.13", "7.1.13", "7.2.12"} {
		t.Run(release, func(t *testing.T) {
			checkErrnos(t, archtest.Branch(t, release), "testdata/uprobe/"+release+".tsv.gz")
		})
		t.Run(release+" complete", func(t *testing.T) {
			checkErrnos(t, archtest.Branch(t, release), refdata.Full(t, "uprobe-verdicts", "user", "amd64-"+release+".tsv.gz"))
		})
	}
}

func checkErrnos(t *testing.T, version classify.Version, path string) {
	rows, err := refdata.UprobeErrnos(path)
	if err != nil {
		t.Fatal(err)
	}
	p := uprobeProfile(version)
	for i := range rows {
		row := &rows[i]
		if got := p.Lone(row.Bytes, rowAddr(row)); archtest.Errno(&got) != row.Errno {
			t.Errorf("%x: got %+v, want %v", []byte(row.Bytes), got, row.Errno)
		}
	}
	t.Logf("%d rows", len(rows))
}

// rowAddr returns an address for the instruction of a row.
func rowAddr(row *refdata.UprobeRow) uint64 {
	const page = 0x402000
	if n, ok := row.PageEnd(); ok {
		return page - n
	}
	return page - 0x1000
}

func checkUprobes(t *testing.T, version classify.Version, path string) {
	p := uprobeProfile(version)
	archtest.EachUprobe(t, path, func(row *refdata.UprobeRow) {
		want := wantUprobe(row)
		got := p.Lone(row.Bytes, rowAddr(row))
		if archtest.Errno(&got) != row.Errno || got.Exec != want.Exec || got.Emulator != want.Emulator || got.Fixups != want.Fixups || got.Scratch != want.Scratch {
			t.Errorf("line %d: %x: got %+v, want %+v", row.Line, []byte(row.Bytes), got, row)
		}
		if becomesCall := got.Notes&classify.NoteNOPOperand != 0; becomesCall != strings.Contains(row.Fixups, "CAN_OPTIMIZE") {
			t.Errorf("line %d: %x: becomes a call: %v, want %+v", row.Line, []byte(row.Bytes), becomesCall, row)
		}
		var k kernelInsn
		var buf [kernelWindow]byte
		decoded := newUprobeJudge(version).decoder.decode(&k, window(row.Bytes, 0, &buf))
		if decoded != (row.Errno != classify.ENOEXEC) || row.Errno == 0 && int(k.len) != row.Len {
			t.Errorf("line %d: %x: got length %d, want %d", row.Line, []byte(row.Bytes), k.len, row.Len)
		}
	})
}

var fixupNames = map[string]classify.Fixups{
	"": 0, "IP": classify.FixPC, "CALL": classify.FixReturn, "SETF": classify.FixFlags,
}

var scratchNames = map[string]uint8{"RIP_SI": RSI, "RIP_DI": RDI, "RIP_BX": RBX}

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
			v.Scratch |= scratchNames[name]
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
		v := uprobe612.Lone(unhex(t, c.code), 0x401000)
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
		{"rip-relative with rex.b", "498b0511223344", ""},
		{"rip-relative after a prefix", "66418b0511223344", ""},
		{"rip-relative", "488b0511223344", ""},
		{"rip-relative with vex", "c5fa100511223344", ""},
		{"call through memory", "ff1511223344", ""},
		{"far call", "ff18", "amd64/uprobe-far-call"},
		{"far call with rex.w", "48ff18", "amd64/uprobe-far-call"},
		{"xop", "8fe878c2fa0d", ""},
		{"xop, rip-relative", "8fe8d8a305440d060030", "amd64/uprobe-wrong-address"},
		{"vcmpps has the opcode of ret", "c5f8c2c000", "amd64/uprobe-vex-as-return"},
		{"vfnmadd132ss has the opcode of popf", "c4e2799dc1", "amd64/uprobe-trap-flag"},
		{"popf", "9d", ""},
		{"pushf", "9c", "amd64/uprobe-pushf"},
		{"call after five prefixes", "646567f2f3e811223344", "amd64/uprobe-slot-return-address"},
		{"ret after five prefixes", "646567f2f3c3", "amd64/uprobe-moved-target"},
		{"nop that the kernel does not know", "0f190511223344", ""},
		{"sysret faults in a program", "480f07", ""},
		{"refused", "cc", ""},
	} {
		v := uprobe612.Lone(unhex(t, c.code), 0x401000)
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
		{"popf", "d5009d", decode.Inst{Len: 3, Op: uint16(OpPopFlags), Detail: rex2 | 0x9D}, ""},
		{"cmpps", "d580c2c000", decode.Inst{Len: 5, Detail: rex2 | uint64(Map0F)<<mapAt | 0xC2}, "amd64/uprobe-vex-as-return"},
		{"setge", "d5809dc0", decode.Inst{Len: 4, Detail: rex2 | uint64(Map0F)<<mapAt | 0x9D}, "amd64/uprobe-trap-flag"},
		{"seto", "d58090c0", decode.Inst{Len: 4, Detail: rex2 | uint64(Map0F)<<mapAt | 0x90}, "amd64/uprobe-vex-as-nop"},
		{"xchg r16,rax", "d51890", decode.Inst{Len: 3, Detail: rex2 | 0x90}, "amd64/uprobe-xchg-as-nop"},
		{"nop", "d50090", decode.Inst{Len: 3, Detail: rex2 | 0x90}, "amd64/uprobe-rex2-nop"},
		{"psubsb", "d580e8c0", decode.Inst{Len: 4, Detail: rex2 | uint64(Map0F)<<mapAt | 0xE8}, "amd64/uprobe-vex-as-call"},
		{"no instruction", "d50075", decode.Inst{Len: 1, Props: decode.Invalid}, "amd64/uprobe-vex-as-jump"},
	} {
		var v classify.Verdict
		var buf [kernelWindow]byte
		newUprobeJudge(linux6_12).judge(&v, window(unhex(t, c.code), 0, &buf), &c.inst)
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
		v := uprobe612.At(f, f.Addr+c.off)
		if rule, hazard := archtest.IDs(&v); rule != c.rule || hazard != c.hazard || v.Instead != c.instead || v.Culprit != c.instead {
			t.Errorf("+%d: got %q %q %+v, want %+v", c.off, rule, hazard, v, c)
		}
	}
}

// Instructions that ran on a CPU without and with a real uprobe: what ran wrongly
// carries a hazard, and hardly anything else does.
func TestUprobeRuns(t *testing.T) {
	checkRuns(t, "testdata/uprobe/executed-6.18.44.tsv.gz")
}

func TestUprobeRunsComplete(t *testing.T) {
	checkRuns(t, refdata.Full(t, "uprobe-verdicts", "executed-amd64-6.18.44.tsv.gz"))
}

func checkRuns(t *testing.T, path string) {
	rows, err := refdata.UprobeRuns(path)
	if err != nil {
		t.Fatal(err)
	}
	p := uprobeProfile(linux6_18)
	outcomes := map[string]int{}
	const mostAlarms = 40 // about rows that ran alike in the states tried
	alarms := 0
	for i := range rows {
		row := &rows[i]
		if row.Refused() {
			continue // with other bytes after it, which is not said
		}
		v := p.Lone(row.Bytes, testAddr)
		if archtest.Errno(&v) != row.Errno {
			t.Errorf("%x: got %+v, want %v", []byte(row.Bytes), v, row.Errno)
			continue
		}
		_, hazard := archtest.IDs(&v)
		switch {
		case row.Outcome == "diff" && hazard == "":
			t.Errorf("%x has no hazard, but ran wrongly: %s", []byte(row.Bytes), row.What)
		case row.Outcome == "same" && hazard != "" && !row.Weak():
			alarms++
			t.Logf("%x ran rightly (%s), but has %s", []byte(row.Bytes), row.What, hazard)
		}
		outcomes[row.Outcome]++
	}
	if alarms >= mostAlarms {
		t.Errorf("%d rows ran rightly, but have a hazard; want fewer than %d", alarms, mostAlarms)
	}
	t.Logf("%d rows, %d false alarms, outcomes %v", len(rows), alarms, outcomes)
}

// What holds in some versions only, by the kernels that were asked and by what
// their sources say of those between.
func TestUprobeHazardsByVersion(t *testing.T) {
	v := classify.Linux
	for _, c := range []struct {
		name, code string
		hazard     string
		holds      classify.Span
	}{
		{"xchg r8d,eax", "4190", "amd64/uprobe-xchg-as-nop", until(v(6, 19))},
		{"kmovw with the opcode of nop", "c5f890c1", "amd64/uprobe-vex-as-nop", until(v(6, 19))},
		{"vprotb with the opcode of nop", "8fe97890c0", "amd64/uprobe-vex-as-nop", classify.Span{Since: v(6, 18), Until: v(6, 19)}},
		{"nop of 5 bytes", "0f1f440000", "amd64/uprobe-nop-as-call", classify.Span{Since: v(6, 18), Until: v(7, 2)}},
		{"nop of 5 bytes with 90", "6666666690", "amd64/uprobe-nop-as-call", classify.Span{Since: v(6, 18), Until: v(7, 2)}},
		{"lea of 5 bytes that does nothing", "488d642400", "amd64/uprobe-nop-as-call", classify.Span{Since: v(6, 19), Until: v(7, 2)}},
		{"lea of 5 bytes with an index", "488d440000", "", classify.Span{}},
		{"nop of 4 bytes", "0f1f4000", "", classify.Span{}},
		{"vpor", "c5edebc0", "amd64/uprobe-vex-as-jump", classify.Span{}},
		{"syscall", "0f05", "amd64/uprobe-syscall", classify.Span{}},
		{"smsw", "0f01e2", "amd64/uprobe-umip", classify.Span{}},
		{"str", "0f00c8", "amd64/uprobe-umip", classify.Span{}},
		{"call with 66", "66ffd0", "amd64/uprobe-call-66", classify.Span{}},
		{"jrcxz with 66", "66e310", "amd64/uprobe-cut-target", classify.Span{}},
		{"jrcxz", "e310", "", classify.Span{}},
		{"rex before 66", "4066eb10", "amd64/uprobe-cut-target", classify.Span{}},
		{"rex before a segment", "482ee911223304", "amd64/uprobe-far-branch", classify.Span{}},
		{"popf after rex and 66", "48669d", "amd64/uprobe-popf", classify.Span{}},
		{"mov to ss after rex and 36", "48368ed0", "amd64/uprobe-stack-segment-step", classify.Span{}},
		{"far call with rex.w", "48ff18", "amd64/uprobe-far-call", classify.Span{}},
		{"setge by rex2, popf to the kernel", "d5809dc0", "amd64/uprobe-trap-flag", classify.Span{Since: v(6, 12), Until: v(6, 19)}},
	} {
		for _, version := range known.Uprobes {
			want := ""
			if c.holds.Holds(version) {
				want = c.hazard
			}
			got := uprobeProfile(version).Lone(unhex(t, c.code), 0x401000)
			if _, hazard := archtest.IDs(&got); hazard != want && got.OK() {
				t.Errorf("%s on %v: got %q, want %q; %+v", c.name, version, hazard, want, got)
			}
		}
	}
}

// Each hazard holds where its span says so and nowhere else.
func TestUprobeHazardSpans(t *testing.T) {
	rows, err := refdata.UprobeVerdicts("testdata/uprobe-verdicts.tsv.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range known.Uprobes {
		p := uprobeProfile(version)
		for i := range rows {
			v := p.Lone(rows[i].Bytes, testAddr)
			if v.Hazard != nil && !v.Hazard.Span.Holds(version) {
				t.Errorf("%x on %v: %s holds in %v", []byte(rows[i].Bytes), version, v.Hazard.ID, v.Hazard.Span)
			}
			for note := range v.Notes.All() {
				if !note.Span.Holds(version) {
					t.Errorf("%x on %v: %s holds in %v", []byte(rows[i].Bytes), version, note.ID, note.Span)
				}
			}
		}
	}
	for i := range uprobeHazards {
		for _, version := range uprobeHazards[i].Seen {
			if !uprobeHazards[i].Span.Holds(version) {
				t.Errorf("%s was seen on %v, but holds in %v", uprobeHazards[i].ID, version, uprobeHazards[i].Span)
			}
		}
	}
}

func TestUprobeNotes(t *testing.T) {
	all := classify.Linux(7, 3)
	for _, c := range []struct {
		name, code string
		version    classify.Version
		want       classify.Notes
	}{
		{"rip-relative with rex.b, seen", "498b0511223344", all, classify.NoteFirstByte},
		{"movups with rex.b", "410f101d11223344", all, classify.NoteFirstByte},
		{"rip-relative after a prefix", "66418b0511223344", all, 0},
		{"rip-relative without rex.b", "488b0511223344", all, 0},
		{"ud2", "0f0b", all, classify.NoteTrapNumber},
		{"rep movsb", "f3a4", all, classify.NoteIterations},
		{"repne scasb", "f2ae", all, classify.NoteIterations},
		{"movsb", "a4", all, 0},
		{"movss", "f30f10c1", all, 0},
		{"nop of 10 bytes, seen", "662e0f1f840000000000", all, classify.NoteNOPOperand},
		{"nop of 10 bytes before 7.2", "662e0f1f840000000000", classify.Linux(7, 1), 0},
	} {
		v := uprobeProfile(c.version).Lone(unhex(t, c.code), testAddr)
		if v.Notes != c.want || v.Hazard != nil {
			t.Errorf("%s: got %+v, want notes %b", c.name, v, c.want)
		}
	}
}

// A NOP becomes a call where its page holds it whole.
func TestUprobeNOPAtPageEnd(t *testing.T) {
	for _, c := range []struct {
		name, code string
		version    classify.Version
		addr       uint64
		rule       string
		hazard     string
	}{
		{"5 bytes in the page", "0f1f440000", linux6_18, 0x401ffb, "", "amd64/uprobe-nop-as-call"},
		{"5 bytes across", "0f1f440000", linux6_18, 0x401ffc, "", ""},
		{"10 bytes in the page", "662e0f1f840000000000", linux7_2, 0x401ff6, "", ""},
		{"10 bytes across", "662e0f1f840000000000", linux7_2, 0x401ff7, "amd64/uprobe-segment", ""},
	} {
		v := uprobeProfile(c.version).Lone(unhex(t, c.code), c.addr)
		if rule, hazard := archtest.IDs(&v); rule != c.rule || hazard != c.hazard {
			t.Errorf("%s: got %+v", c.name, v)
		}
	}
}
