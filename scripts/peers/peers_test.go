package main

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rounds are what benchmarks print, in three rounds.
var rounds = []string{
	"zydis: Zydis 4.0.0\nBenchmarkDecode/isa=amd64/work=decode/peer=zydis 1 100 ns/inst 7 insts\n" +
		"BenchmarkDecode/isa=amd64/work=decode/peer=xol-8 1 20 ns/inst 7 insts\n",
	"BenchmarkDecode/isa=amd64/work=decode/peer=xol-8 1 25 ns/inst\nBenchmarkDecode/isa=amd64/work=decode/peer=zydis 1 150 ns/inst\n",
	"goos: linux\nBenchmarkHit/jump-2 \t 1 \t 0.5 ns/hit 1.5 ns/call\nBenchmarkHit/lttng 1 80 ns/hit\nPASS\n" +
		"BenchmarkDecode/isa=amd64/work=decode/peer=xol 1 40 ns/inst\n",
}

func measured(t *testing.T) *lab {
	t.Helper()
	l := &lab{versions: map[string]string{}, texts: []text{{isa: "amd64", from: "a kernel", size: 1 << 20}}, missing: []string{"gdb: left out: it is not installed"}}
	for i, out := range rounds {
		if err := l.samples.read(strings.NewReader(out), i, l.versions); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestSamples(t *testing.T) {
	l := measured(t)
	const ours, theirs = "Decode/isa=amd64/work=decode/peer=xol", "Decode/isa=amd64/work=decode/peer=zydis"
	if got, _ := l.samples.of(ours, "ns/inst"); got != (spread{25, 20, 40}) {
		t.Errorf("ours: %+v", got)
	}
	if got, _ := l.samples.of(theirs, "ns/inst"); got != (spread{125, 100, 150}) {
		t.Errorf("theirs: %+v", got)
	}
	if got, _ := l.samples.ratio(theirs, ours, "ns/inst"); got != (spread{5.5, 5, 6}) {
		t.Errorf("the ratio in the rounds that both have: %+v", got)
	}
	if _, ok := l.samples.of("Hit/gdb", "ns/hit"); ok {
		t.Error("what was not measured has a spread")
	}
	if got := l.samples.last(theirs, "insts"); got != 7 || l.versions["zydis"] != "Zydis 4.0.0" {
		t.Errorf("%v instructions by %q", got, l.versions["zydis"])
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0.5: "0.50", 9.876: "9.88", 12.34: "12.3", 999: "999", 1234.5: "1,234", 1234567: "1,234,567", -1234: "-1,234"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestPage(t *testing.T) {
	p := measured(t).page(time.Unix(0, 0), 3)
	p.Plots = "plots"
	var b bytes.Buffer
	if err := p.write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"on 1970-01-01", "- Zydis 4.0.0\n", "## Decoding amd64\n", "1.0 MiB of the text of a kernel",
		"| **xol** | 25.0 | 20.0 … 40.0 |  |\n| Zydis | 125 | 100 … 150 | 5.50 (5.00 … 6.00) |\n", "(plots/decode-amd64.svg)",
		"| LTTng-UST tracepoint | 80.0 | 80.0 … 80.0 | 160 (160 … 160) |", "## Not measured here\n\n- gdb: left out",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "objdump") {
		t.Error("the page has what was not measured")
	}
	for i := range p.Tables {
		file := filepath.Join(t.TempDir(), "plot.svg")
		if err := p.Tables[i].plot(file); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(data, []byte("<svg")) || !bytes.Contains(data, []byte(p.Tables[i].Rows[1].Label)) {
			t.Errorf("%s: %v, %.80q", p.Tables[i].ID, err, data)
		}
	}
}

func TestObjectOfText(t *testing.T) {
	text := []byte("\x90\x90\xc3")
	f, err := elf.NewFile(bytes.NewReader(asELF(elf.EM_X86_64, text)))
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Section(".text"); s == nil || s.Flags&elf.SHF_EXECINSTR == 0 || f.Type != elf.ET_REL {
		t.Fatalf("%+v", f.FileHeader)
	} else if data, err := s.Data(); err != nil || !bytes.Equal(data, text) {
		t.Errorf("% x, %v", data, err)
	}
}
