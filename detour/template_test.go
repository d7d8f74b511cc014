package detour_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"xol/arch"
	"xol/decode"
	"xol/detour"
)

var update = flag.Bool("update", false, "let objdump write the listings in testdata again")

// objdumps are the disassemblers of flat code, by ISA.
var objdumps = map[string][]string{
	"amd64":   {"x86_64-linux-gnu-objdump", "-m", "i386:x86-64", "--insn-width=16"},
	"arm64":   {"aarch64-linux-gnu-objdump", "-m", "aarch64"},
	"ppc64":   {"powerpc64-linux-gnu-objdump", "-m", "powerpc:common64", "-EB"},
	"ppc64le": {"powerpc64le-linux-gnu-objdump", "-m", "powerpc:common64", "-EL"},
}

// templates are the buffers of the listings.
var templates = []struct {
	name     string
	kernel   bool
	callback uint64
}{
	{"user", false, 0x48_0000},
	{"kernel", true, 0x7fff_1234_5678},
}

const (
	templateFrom = 0x40_1000
	templateAt   = 0x40_2000
)

func templateOf(t *testing.T, isa arch.Prober, opt detour.Options) []byte {
	t.Helper()
	var p detour.Plan
	if err := isa.PlanDetour(&p, sweep(t, isa, nops(isa), templateFrom), opt); err != nil {
		t.Fatal(err)
	}
	code := make([]byte, p.Max)
	n, err := isa.EncodeDetour(code, &p, templateAt)
	if err != nil {
		t.Fatal(err)
	}
	return code[:n]
}

// TestTemplates compares the buffers with what objdump read in them: bytes, and
// what these say.
func TestTemplates(t *testing.T) {
	for _, name := range arch.Names() {
		isa := isaOf(t, name)
		for _, c := range templates {
			t.Run(name+" "+c.name, func(t *testing.T) {
				code := templateOf(t, isa, detour.Options{Kernel: c.kernel, Callback: c.callback, Probe: probeArgument, TOC: tocValue})
				compareListing(t, isa, fmt.Sprintf("template-%s-%s.txt", name, c.name), code)
			})
		}
	}
}

// compareListing compares code at templateAt with what objdump read in it.
func compareListing(t *testing.T, isa arch.Prober, file string, code []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		writeListing(t, path, isa.Name(), code)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := listing(t, isa, code); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// listing is the code with our own text, a line for each instruction.
func listing(t *testing.T, isa arch.Prober, code []byte) string {
	t.Helper()
	var b strings.Builder
	insts := sweep(t, isa, code, templateAt)
	for i := range insts {
		writeLine(&b, &insts[i], isa.Text(&insts[i], nil))
	}
	return b.String()
}

func writeLine(b *strings.Builder, inst *decode.Inst, text string) {
	fmt.Fprintf(b, "%x: %x %s\n", inst.Addr, inst.Bytes(), plain(text))
}

var comment = regexp.MustCompile(`\s*(//|#\s).*`)

// plain is a text with single spaces and without comments.
func plain(text string) string {
	return strings.Join(strings.Fields(comment.ReplaceAllString(text, "")), " ")
}

var objdumpLine = regexp.MustCompile(`^\s*([0-9a-f]+):\t([0-9a-f ]+)\t(.*)$`)

// writeListing has objdump disassemble code. It prints the words of a
// little-endian ISA as numbers, so that the bytes come from the code.
func writeListing(t *testing.T, path, isa string, code []byte) {
	t.Helper()
	flat := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(flat, code, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(objdumps[isa][1:], "-D", "-b", "binary", fmt.Sprintf("--adjust-vma=%#x", templateAt), flat)
	out, err := exec.Command(objdumps[isa][0], args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	offset := 0
	for _, line := range bytes.Split(out, []byte("\n")) {
		m := objdumpLine.FindSubmatch(line)
		if m == nil {
			continue
		}
		n := len(bytes.ReplaceAll(m[2], []byte(" "), nil)) / 2
		fmt.Fprintf(&b, "%s: %x %s\n", m[1], code[offset:offset+n], plain(string(m[3])))
		offset += n
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
