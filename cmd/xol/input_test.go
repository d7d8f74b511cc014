package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xol/internal/skip"
)

// fixture returns what is in a file of testdata.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// with returns a copy of b with some bytes replaced.
func with(b []byte, offset int, replacement ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[offset:], replacement)
	return b
}

// oneLine reports what is wrong with an error message.
func oneLine(stderr string) string {
	switch {
	case !strings.HasPrefix(stderr, "xol: "):
		return "does not start with xol:"
	case strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n"):
		return "is not one line"
	}
	return ""
}

// withoutCode returns an ELF file as objcopy --only-keep-debug leaves it.
func withoutCode(t *testing.T, file []byte) []byte {
	t.Helper()
	const sectionHeaders, headerSize, shType = 40, 64, 4
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	file = bytes.Clone(file)
	for i, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 {
			at := f.ByteOrder.Uint64(file[sectionHeaders:]) + uint64(i)*headerSize + shType
			f.ByteOrder.PutUint32(file[at:], uint32(elf.SHT_NOBITS))
		}
	}
	return file
}

func TestBadFiles(t *testing.T) {
	const eType, eMachine = 16, 18 // offsets in the ELF header
	good := fixture(t, "amd64.elf")
	for _, c := range []struct {
		name string
		file []byte
		want string // in the message
	}{
		{"empty", nil, "empty"},
		{"text", []byte("#!/bin/sh\necho hello\n"), "not an ELF file"},
		{"only the magic", good[:4], "cut off"},
		{"32-bit", with(good, elf.EI_CLASS, byte(elf.ELFCLASS32)), "64-bit"},
		{"RISC-V", with(good, eMachine, byte(elf.EM_RISCV)), "supported: amd64, arm64, ppc64, ppc64le"},
		{"core dump", with(good, eType, byte(elf.ET_CORE)), "ET_CORE"},
		{"separate debug file", withoutCode(t, good), "this is a separate debug file: it has names and lines, but no code"},
		{"cut off in the headers", good[:100], "cut off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, c.file, 0o644); err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{"analyze " + path, "explain " + path + " main"} {
				inv := xol(command, "")
				if inv.status != 2 || inv.stdout != "" {
					t.Errorf("%s: status %d, output %q", command, inv.status, inv.stdout)
				}
				if wrong := oneLine(inv.stderr); wrong != "" {
					t.Errorf("%s: %q %s", command, inv.stderr, wrong)
				}
				if !strings.Contains(inv.stderr, c.want) || !strings.Contains(inv.stderr, path+": ") {
					t.Errorf("%s: %q lacks %q or the file's name", command, inv.stderr, c.want)
				}
			}
		})
	}
}

// TestTruncatedFiles cuts files off everywhere. Some prefixes are still good
// files; all others must be refused in one line.
func TestTruncatedFiles(t *testing.T) {
	for _, name := range []string{"amd64.elf", "kernel.elf", "arm64.elf", "ppc64.elf"} {
		file := fixture(t, name)
		for n := 0; n < len(file); n += 7 {
			var stdout, stderr bytes.Buffer
			status := run([]string{"analyze", "-"}, bytes.NewReader(file[:n]), &stdout, &stderr)
			switch {
			case status == 0 && stderr.Len() == 0:
			case status == 2 && oneLine(stderr.String()) == "":
			default:
				t.Errorf("%s: %d bytes: status %d, %q", name, n, status, &stderr)
			}
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"", "no command"},
		{"analyse x", `unknown command "analyse"`},
		{"analyze", "analyze: FILE… is missing"},
		{"analyze -o xml x", "table, json, jsonl, csv"},
		{"analyze --cpus -1 x", "--cpus"},
		{"analyze --frob x", "analyze: there is no flag --frob (xol analyze --help lists them)"},
		{"analyze --profile linux-2.0 x", "isa, linux-5.10, linux-6.1, linux-6.12, linux-7.3, uprobe-linux-5.10"},
		{"analyze testdata/absent", "testdata/absent: no such file or directory"},
		{"analyze testdata", "testdata: "},
		{"analyze --func @testdata/absent testdata/amd64.elf", "testdata/absent: no such file"},
		{"analyze --symbols testdata/absent testdata/amd64.elf", "testdata/absent: no such file"},
		{"analyze --func man testdata/amd64.elf", `no symbol "man" (similar: main)`},
		{"explain testdata/amd64.elf", `"testdata/amd64.elf" names no file: give the file before it`},
		{"explain testdata/amd64.elf nowhere", `no symbol "nowhere"`},
		{"--frob", "there is no flag --frob (xol --help lists them)"},
		{"analyze -zi x", "there is no flag -z (xol analyze --help lists them)"},
		{"analyze --cpus", "analyze: --cpus is without its value (N)"},
		{"analyze -o", "analyze: --output is without its value"},
		{"analyze --cpus many x", `analyze: --cpus "many": want a whole number`},
		{"analyze --cpus 99999999999999999999 x", "the number is too large"},
		{"verify --seed -1 x", `verify: --seed "-1": want a whole number that is not negative`},
		{"analyze --insns=perhaps x", `--insns "perhaps": want true or false`},
		{"analyze -o xml x", `analyze: --output "xml": want table, json, jsonl, csv`},
		{"analyze ---frob x", `"---frob" is no flag`},
		{"run --help", `unknown command "run" (xol --help lists them)`},
		{"--help run", `unknown command "run"`},
		{"run -h --frob", "there is no flag --frob"},
		{"help run", `unknown command "run"`},
		{"help analyze more", `unknown command`},
		{"analyze --func @/dev/null testdata/amd64.elf", "/dev/null: it lists no function"},
		{"decode --arch amd64 '90 zz'", `"zz" is not hexadecimal (argument 1)`},
		{"decode --arch amd64 0x", "no bytes given"},
		{"decode --arch amd64 ' , '", "no bytes given (argument 1)"},
		{"explain testdata/amd64.elf vectros", "similar: vectors"},
		{"explain testdata/amd64.elf 0x10", "0x10 is not in text"},
		{"explain testdata/amd64.elf message", "message is not in text"},
		{"explain testdata/amd64.elf 0xzz", `"0xzz"`},
		{"explain testdata/amd64.elf file:0xffffff", "file:0xffffff"},
		{"explain testdata/arm64.elf arm64.s:9", "arm64.s:9"},
		{"explain --context -1 testdata/amd64.elf main", "--context"},
		{"decode 90", "--arch is missing (one of amd64, arm64, ppc64, ppc64le)"},
		{"decode --arch mips 90", "architecture mips is not supported"},
		{"decode --arch amd64", "no bytes given"},
		{"decode --arch amd64 9", "odd number of hex digits (argument 1)"},
		{"decode --arch amd64 90 xy", `"xy" is not hexadecimal (argument 2)`},
		{"decode --arch amd64 --addr 12g 90", `"12g" is not an address (--addr)`},
		{"decode --arch amd64 --addr 0x10 -", "--addr is for HEX arguments"},
		{"decode --arch amd64 --profile none 90", "isa, linux-5.10, linux-6.1, linux-6.12, linux-7.3, uprobe-linux-5.10"},
		{"version x", "version: "},
		{"completion tcsh", "completion: "},
	} {
		t.Run(c.command, func(t *testing.T) {
			inv := xol(c.command, "")
			if inv.status != 2 {
				t.Errorf("status %d", inv.status)
			}
			if wrong := oneLine(inv.stderr); wrong != "" {
				t.Errorf("%q %s", inv.stderr, wrong)
			}
			if !strings.Contains(inv.stderr, c.want) {
				t.Errorf("%q lacks %q", inv.stderr, c.want)
			}
		})
	}
}

// failingWriter takes so many bytes and then fails.
type failingWriter struct{ room int }

var errFull = errors.New("no space left on device")

func (w *failingWriter) Write(b []byte) (int, error) {
	if len(b) > w.room {
		return 0, errFull
	}
	w.room -= len(b)
	return len(b), nil
}

func TestOutputThatFails(t *testing.T) {
	for _, command := range []string{
		"analyze testdata/amd64.elf",
		"analyze --insns -o json testdata/amd64.elf testdata/kernel.elf",
		"explain testdata/amd64.elf main",
		"explain -o json testdata/amd64.elf main",
		"decode --arch amd64 90",
		"decode --arch amd64 -o csv 90",
		"version",
	} {
		var stderr bytes.Buffer
		status := run(strings.Fields(command), strings.NewReader(""), &failingWriter{}, &stderr)
		if status != 2 || !strings.Contains(stderr.String(), errFull.Error()) || oneLine(stderr.String()) != "" {
			t.Errorf("%s: status %d, %q", command, status, &stderr)
		}
	}
}

// TestStreams gives every kind of input through a FIFO, which is what shells
// make of <(command): it can be read once, and has no size.
func TestStreams(t *testing.T) {
	elfFile := fixture(t, "amd64.elf")
	stream := func(content []byte) string {
		path := filepath.Join(t.TempDir(), "fifo")
		if err := makeFIFO(path); err != nil {
			skip.Missing(t, "FIFOs", err)
		}
		go os.WriteFile(path, content, 0)
		return path
	}
	for _, c := range []struct{ name, command, want string }{
		{"ELF file to analyze", "analyze " + stream(elfFile), "vectors"},
		{"ELF file to explain", "explain " + stream(elfFile) + " main", "may be probed"},
		{"symbols", "analyze --symbols " + stream([]byte("0000000000400078 T other\n")) + " testdata/stripped.elf", "other"},
		{"list of functions", "analyze --func @" + stream([]byte("vectors # a comment\n")) + " testdata/amd64.elf", "vectors"},
		{"nothing", "analyze " + stream(nil), "empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if inv := xol(c.command, ""); !strings.Contains(inv.stdout+inv.stderr, c.want) {
				t.Errorf("no %q in %s", c.want, inv)
			}
		})
	}
}

// TestLargeStream reads an ELF file that does not fit into the memory that
// streams are given.
func TestLargeStream(t *testing.T) {
	file := append(fixture(t, "amd64.elf"), make([]byte, maxInMemory)...)
	t.Setenv("TMPDIR", t.TempDir())
	var stdout, stderr bytes.Buffer
	if status := run([]string{"explain", "-", "main"}, bytes.NewReader(file), &stdout, &stderr); status != 0 {
		t.Errorf("status %d, %s", status, &stderr)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestNamesCannotSpoilTheTerminal gives a function a name that would turn the
// text red and end the line.
func TestNamesCannotSpoilTheTerminal(t *testing.T) {
	file := bytes.ReplaceAll(fixture(t, "amd64.elf"), []byte("vectors\x00"), []byte("\x1b[31m\n\x9b\x00"))
	path := filepath.Join(t.TempDir(), "a\x1b[31m.elf")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"analyze", path}, {"analyze", "--insns", path}, {"explain", path, "\x1b[31m\n\x9b"},
		{"explain", "--region", path, "main"}, {"explain", path, "\x1b[32m\n"}, {"analyze", "--func", "\x1b[31n\n*", path},
		{"relocate", "--to", "0x1000", path, "main"}, {"__complete", "explain", path, ""},
	} {
		var stdout, stderr bytes.Buffer
		run(args, strings.NewReader(""), &stdout, &stderr)
		for _, out := range []string{stdout.String(), stderr.String()} {
			if strings.Contains(out, "\x1b[3") || strings.Contains(out, "\x9b") {
				t.Errorf("%q:\n%q", args, out)
			}
		}
		if args[0] == "analyze" && len(args) == 2 && !strings.Contains(stdout.String(), `\x1b[31m\n\x9b`) {
			t.Errorf("the name is not to be seen:\n%s", &stdout)
		}
	}
}
