package ppc64

import (
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
	checkUprobes(t, linux6_12, refdata.Full(t, "uprobe-verdicts", "ppc64el.tsv.gz"))
}

// Every tenth row of the lists of other versions. They were recorded on a POWER10
// only, and without protection of the program's memory.
func TestUprobeVerdictsByVersion(t *testing.T) {
	for _, release := range []string{"6.1.176", "7.3rc7"} {
		version, _, _ := strings.Cut(release, "rc")
		t.Run(release, func(t *testing.T) {
			checkUprobes(t, archtest.Branch(t, version), "testdata/uprobe/"+release+".tsv.gz")
		})
		t.Run(release+" complete", func(t *testing.T) {
			checkUprobes(t, archtest.Branch(t, version), refdata.Full(t, "uprobe-verdicts", "ppc64el-"+release+".tsv.gz"))
		})
	}
}

func checkUprobes(t *testing.T, version classify.Version, path string) {
	power10 := profileOf(t, ISA{LittleEndian: true}, classify.Uprobes, version)
	power9 := profileOf(t, ISA{LittleEndian: true, CPU: POWER9}, classify.Uprobes, version)
	kprobe := profileOf(t, ISA{LittleEndian: true}, classify.Kprobes, version)
	archtest.EachUprobe(t, path, func(row *refdata.UprobeRow) {
		addr := 0x10000 + row.Page
		got := power10.Lone(row.Bytes, addr)
		answer, handler := uprobeAnswer(&got)
		if row.Source != "" && answer == "either" {
			answer = "emulate"
		}
		if answer != row.Exec || archtest.Errno(&got) != row.Errno || handler != wantHandler(row) {
			t.Errorf("line %d: %x: got %s %s %+v, want %+v", row.Line, []byte(row.Bytes), answer, handler, got, row)
		}
		if row.Source == "" {
			checkPOWER9(t, power9.Lone(row.Bytes, addr), row)
		}
		checkSameEmulator(t, kprobe, row)
	})
}

func profileOf(t *testing.T, isa ISA, m classify.Mechanism, v classify.Version) classify.Profile {
	t.Helper()
	p, ok := isa.Profile(classify.ProfileName(m, v), kernel.Debian("ppc64", classify.Linux(6, 12)))
	if !ok {
		t.Fatalf("no profile of %s", classify.ProfileName(m, v))
	}
	return p
}

func checkPOWER9(t *testing.T, got classify.Verdict, row *refdata.UprobeRow) {
	t.Helper()
	want := row.ISA30
	if want == "" {
		want = row.Errno.String() + ":" + row.Exec
	}
	if answer, _ := uprobeAnswer(&got); archtest.Errno(&got).String()+":"+answer != want {
		t.Errorf("line %d: %x: got %s %+v on POWER9, want %s", row.Line, []byte(row.Bytes), answer, got, want)
	}
}

// uprobeAnswer returns a verdict in the words of the list: either is what is
// emulated but for the protection of the program's memory.
func uprobeAnswer(v *classify.Verdict) (exec, handler string) {
	switch {
	case !v.OK():
		return "", ""
	case v.Exec == classify.ExecEmulate:
		return "emulate", v.Emulator
	case v.Emulator != "":
		return "either", v.Emulator
	}
	return "xol", ""
}

// wantHandler returns the kind of operation that a row says is emulated. The
// list names it also where nothing is.
func wantHandler(row *refdata.UprobeRow) string {
	if row.Exec == "xol" {
		return ""
	}
	return row.Handler
}

// checkSameEmulator compares the emulation of a kprobe with that of the uprobe
// in row: it is the same emulator, which in the kernel may also read the MSR
// and is never kept from memory.
func checkSameEmulator(t *testing.T, p classify.Profile, row *refdata.UprobeRow) {
	if row.Errno == classify.EINVAL {
		return // kprobes do not ask where a prefixed instruction stands
	}
	v := p.Lone(row.Bytes, 0x10000+row.Page)
	if v.OK() != (row.Errno == 0) {
		t.Errorf("line %d: %x: kprobe %+v, uprobe %+v", row.Line, []byte(row.Bytes), v, row)
		return
	}
	emulated := row.Exec == "emulate" || row.Exec == "either" || row.Handler == "INTERRUPT"
	if v.OK() && (v.Exec == classify.ExecEmulate) != emulated || v.Boost != (v.Exec == classify.ExecEmulate) {
		t.Errorf("line %d: %x: kprobe %+v, uprobe %+v", row.Line, []byte(row.Bytes), v, row)
	}
}

// Errno and kind are in the list; the reasons are told apart here.
func TestUprobeRules(t *testing.T) {
	for _, c := range []struct {
		name         string
		word         uint64
		addr         uint64
		rule, hazard string
	}{
		{"add", 0x7c642a14, 0x10000, "", ""},
		{"no instruction", 0x00000000, 0x10000, "", ""},
		{"misaligned", 0x60000000, 0x10002, "ppc64/uprobe-misaligned", ""},
		{"misaligned trap", 0x7fe00008, 0x10001, "ppc64/uprobe-misaligned", ""},
		{"trap", 0x7fe00008, 0x10000, "ppc64/uprobe-trap", ""},
		{"twi", 0x0fe00000, 0x10000, "ppc64/uprobe-trap", ""},
		{"sc", 0x44000002, 0x10000, "ppc64/uprobe-syscall", ""},
		{"mtmsrd", 0x7c610164, 0x10000, "ppc64/uprobe-mtmsr", ""},
		{"rfid", 0x4c000024, 0x10000, "ppc64/uprobe-return-from-interrupt", ""},
		{"nap", 0x4c000364, 0x10000, "ppc64/uprobe-power-saving", ""},
		{"prefixed", 0x06000001_38640010, 0x10038, "", ""},
		{"prefixed at 60", 0x06000001_38640010, 0x1003c, "ppc64/uprobe-prefixed-boundary", ""},
		{"bctr", 0x4e800420, 0x10000, "", ""},
		{"bctar", 0x4e800460, 0x10000, "", "ppc64/lost-branch"},
		{"rfebb", 0x4c000924, 0x10000, "", "ppc64/lost-branch"},
		{"pld of PC", 0x04100000_e4600010, 0x10000, "", ""},
		{"plq of PC", 0x04100000_e0800010, 0x10000, "", "ppc64/wrong-address"},
		{"plq of a register", 0x04000000_e0830010, 0x10000, "", ""},
		{"lwarx", 0x7c642828, 0x10000, "", "ppc64/reservation-lost"},
		{"stdcx.", 0x7c6429ad, 0x10000, "", "ppc64/reservation-lost"},
	} {
		for _, isa := range byteOrders {
			v := uprobeProfile(isa).Lone(isa.bytesOf(c.word), c.addr)
			if rule, hazard := archtest.IDs(&v); rule != c.rule || hazard != c.hazard {
				t.Errorf("%s, %s: got %q %q, want %q %q", isa.Name(), c.name, rule, hazard, c.rule, c.hazard)
			}
		}
	}
}

// On a POWER9 a prefix is an illegal instruction like others.
func TestUprobePOWER9(t *testing.T) {
	isa := ISA{CPU: POWER9}
	p, _ := isa.Profile(classify.Uprobe612, kernel.Debian("ppc64", classify.Linux(6, 12)))
	v := p.Lone(isa.bytesOf(0x04100000_e4600010), 0x1003c)
	if _, hazard := archtest.IDs(&v); !v.OK() || v.Exec != classify.ExecSlot || hazard != "ppc64/wrong-address" {
		t.Errorf("got %+v", v)
	}
}

// The kernel does not look whether a word is the suffix of an instruction.
func TestUprobeSuffix(t *testing.T) {
	for _, isa := range byteOrders {
		f := testFunc(isa, 0x06000001_38640010, 0x60000000)
		p := uprobeProfile(isa)
		v := p.At(f, testAddr+4)
		if _, hazard := archtest.IDs(&v); hazard != "ppc64/uprobe-suffix" || v.Culprit != testAddr || v.Instead != testAddr {
			t.Errorf("%s: suffix: %+v", isa.Name(), v)
		}
		v = p.At(f, testAddr+8)
		if rule, hazard := archtest.IDs(&v); rule != "" || hazard != "" {
			t.Errorf("%s: after it: %+v", isa.Name(), v)
		}
		v = p.At(f, testAddr+12)
		if rule, _ := archtest.IDs(&v); rule != "ppc64/uprobe-outside" {
			t.Errorf("%s: after the function: %+v", isa.Name(), v)
		}
	}
}
