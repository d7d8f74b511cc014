package main

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TestAnalyzeOutputDoesNotDependOnWorkers runs the same analysis on different
// numbers of CPUs, several at a time.
func TestAnalyzeOutputDoesNotDependOnWorkers(t *testing.T) {
	for _, flags := range []string{"", "--insns -o jsonl", "-o json", "-o csv"} {
		command := "analyze " + flags + " testdata/amd64.elf testdata/kernel.elf testdata/ppc64.elf"
		want := xol(command, "")
		if want.status != 0 || want.stdout == "" {
			t.Fatalf("%s: status %d, %s", command, want.status, want.stderr)
		}
		var running sync.WaitGroup
		for _, cpus := range []string{"1", "2", "3", "16"} {
			running.Go(func() {
				if got := xol(command+" --cpus "+cpus, ""); got.stdout != want.stdout {
					t.Errorf("%s: other output with --cpus %s", command, cpus)
				}
			})
		}
		running.Wait()
	}
}

func TestAnalyzeJSONOfSeveralFiles(t *testing.T) {
	type file struct {
		File, Arch, Profile string
		Functions           []struct {
			Kind, File, Name string
			Insts, Refused   int
		}
		Totals struct {
			Functions, Insts, Probeable, Boosted, Stepped, Emulated, Ftrace, Refused int
			Reasons                                                                  map[string]int
		}
	}
	inv := xol("analyze -o json testdata/amd64.elf testdata/kernel.elf", "")
	var files []file
	if err := json.Unmarshal([]byte(inv.stdout), &files); err != nil {
		t.Fatalf("%v\n%s", err, inv.stdout)
	}
	if len(files) != 2 || files[0].Profile != "isa" || files[1].Profile != "linux-6.12" {
		t.Fatalf("got %+v", files)
	}
	for _, f := range files {
		insts, refused := 0, 0
		for _, fn := range f.Functions {
			insts += fn.Insts
			refused += fn.Refused
			if fn.File != f.File {
				t.Errorf("%s is listed under %s", fn.File, f.File)
			}
		}
		sum := f.Totals
		if len(f.Functions) != sum.Functions || insts != sum.Insts || refused != sum.Refused {
			t.Errorf("%s: functions sum up to %d instructions, %d refused; totals are %+v", f.File, insts, refused, sum)
		}
		if sum.Probeable+sum.Refused != sum.Insts || sum.Boosted+sum.Stepped+sum.Emulated+sum.Ftrace != sum.Probeable {
			t.Errorf("%s: totals do not add up: %+v", f.File, sum)
		}
		reasons := 0
		for _, n := range sum.Reasons {
			reasons += n
		}
		if reasons != sum.Refused {
			t.Errorf("%s: %d reasons for %d refusals", f.File, reasons, sum.Refused)
		}
	}
	var single file
	inv = xol("analyze -o json testdata/amd64.elf", "")
	if err := json.Unmarshal([]byte(inv.stdout), &single); err != nil {
		t.Errorf("one file: %v", err)
	}
}

// TestAnalyzeGoesOn analyzes the files that it can.
func TestAnalyzeGoesOn(t *testing.T) {
	inv := xol("analyze testdata/absent testdata/amd64.elf", "")
	if inv.status != 2 || !strings.Contains(inv.stdout, "vectors") || !strings.HasPrefix(inv.stderr, "xol: testdata/absent: ") {
		t.Errorf("status %d, %q\n%s", inv.status, inv.stderr, inv.stdout)
	}
	inv = xol("analyze --func nosuch --func vectors testdata/amd64.elf", "")
	if inv.status != 2 || !strings.Contains(inv.stdout, "vectors") || oneLine(inv.stderr) != "" {
		t.Errorf("status %d, %q\n%s", inv.status, inv.stderr, inv.stdout)
	}
}

// TestAnalyzeSelection names the functions that rows are printed for.
func TestAnalyzeSelection(t *testing.T) {
	for _, c := range []struct{ flags, stdin, want string }{
		{"--func main", "", "main"},
		{"--func v*", "", "vectors"},
		{"--func refused --func main --func m?in", "", "main refused"},
		{"--func @-", "main\n\n  vec*\n", "main vectors"},
		{"--func @-", "# all of them\n main\t# the first\n#refused\n\nvec*\r\n", "main vectors"},
	} {
		inv := xol("analyze -o jsonl "+c.flags+" testdata/amd64.elf", c.stdin)
		var names []string
		for line := range strings.Lines(inv.stdout) {
			var row struct{ Kind, Name string }
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			if row.Kind == "function" {
				names = append(names, row.Name)
			}
		}
		if got := strings.Join(names, " "); got != c.want || inv.status != 0 {
			t.Errorf("%s: %q, want %q; status %d %s", c.flags, got, c.want, inv.status, inv.stderr)
		}
	}
}

// TestAnalyzeWithoutMatch asks for functions that the file does not have: one
// line says so, and nothing looks like a result.
func TestAnalyzeWithoutMatch(t *testing.T) {
	for flags, want := range map[string]string{
		"-o table": "", "-o json": "", "-o jsonl": "", "--insns -o table": "", "--insns -o json": "[\n]\n",
	} {
		inv := xol("analyze "+flags+" --func nosuch* testdata/amd64.elf", "")
		if inv.status != 2 || inv.stdout != want || inv.stderr != "xol: testdata/amd64.elf: no function matches \"nosuch*\"\n" {
			t.Errorf("%s: status %d, %q\n%s", flags, inv.status, inv.stderr, inv.stdout)
		}
	}
}

// TestEveryRowNamesItsFile counts on the field for one file and for several.
func TestEveryRowNamesItsFile(t *testing.T) {
	for _, flags := range []string{"", "--insns", "--markers"} {
		for _, files := range []string{"testdata/markers-amd64.elf", "testdata/markers-amd64.elf testdata/markers-arm64.elf"} {
			inv := xol("analyze "+flags+" -o jsonl "+files, "")
			if inv.stdout == "" {
				t.Errorf("%s %s: no rows; %s", flags, files, inv.stderr)
			}
			for line := range strings.Lines(inv.stdout) {
				var row struct{ File string }
				if err := json.Unmarshal([]byte(line), &row); err != nil || !strings.Contains(files, row.File) || row.File == "" {
					t.Errorf("%s %s: %q in %s", flags, files, row.File, line)
				}
			}
		}
	}
}

// TestWrittenNames asks for C++ functions as tables print them.
func TestWrittenNames(t *testing.T) {
	const file = "../../image/testdata/elf/names.amd64.so"
	inv := xol("analyze --func 'ns::*' "+file, "")
	for _, name := range []string{"ns::over(int)", "ns::over(double)", "int ns::fill<int>(int)", "ns::imported(int)@plt"} {
		if !strings.Contains(inv.stdout, name) || inv.status != 0 {
			t.Errorf("status %d, %s: no %s in\n%s", inv.status, inv.stderr, name, inv.stdout)
		}
	}
	inv = xol("explain "+file+" ns::over", "")
	if !strings.HasPrefix(inv.stdout, "ns::over(int) ") || !strings.Contains(inv.stdout, "also means 0x1070") {
		t.Errorf("%s\n%s", inv.stderr, inv.stdout)
	}
	inv = xol("explain "+file+" do_sysinfo", "")
	if inv.status != 2 || !strings.Contains(inv.stderr, "similar: do_sysinfo.isra.0") {
		t.Errorf("%s", inv.stderr)
	}
}

// TestFileOffsets compares the offset that is told of each instruction with the
// bytes that stand there in the file.
func TestFileOffsets(t *testing.T) {
	for _, name := range []string{"amd64.elf", "kernel.elf", "arm64.elf", "ppc64.elf", "ppc64le.elf", "markers-object.o"} {
		file := fixture(t, name)
		inv := xol("analyze --insns -o jsonl testdata/"+name, "")
		for line := range strings.Lines(inv.stdout) {
			var row struct {
				Addr, Sym  string
				FileOffset string `json:"file_offset"`
				Len        int
			}
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			off, err := strconv.ParseUint(row.FileOffset, 0, 32)
			if err != nil {
				t.Fatalf("%s: %v in %s", name, err, line)
			}
			var e struct {
				FileOffset string `json:"file_offset"`
				Inst       struct {
					Bytes      string
					FileOffset string `json:"file_offset"`
				}
			}
			explained := xol("explain -o json testdata/"+name+" "+row.Addr, "")
			if err := json.Unmarshal([]byte(explained.stdout), &e); err != nil {
				t.Fatalf("%s: %v %s", name, err, explained.stderr)
			}
			if hex.EncodeToString(file[off:][:row.Len]) != e.Inst.Bytes || e.FileOffset != row.FileOffset || e.Inst.FileOffset != row.FileOffset {
				t.Errorf("%s: %s%+v", name, line, e)
			}
			text := xol("explain testdata/"+name+" file:"+row.FileOffset, "").stdout
			if !strings.Contains(text, row.Addr+"   file:"+row.FileOffset+" ") {
				t.Errorf("%s: no offset in %s", row.Addr, text)
			}
		}
		table, csv := xol("analyze --insns testdata/"+name, "").stdout, xol("analyze --insns -o csv testdata/"+name, "").stdout
		if !strings.Contains(table, " OFFSET ") || !strings.Contains(csv, ",file_offset,") {
			t.Errorf("%s: no column for the offset", name)
		}
	}
}

// TestResolversSayThatTheyAre looks for what is told of copy, in names.c, which
// stands for its resolver.
func TestResolversSayThatTheyAre(t *testing.T) {
	for _, machine := range []string{"amd64", "arm64", "ppc64le", "ppc64"} {
		file := " ../../image/testdata/elf/names." + machine + ".so"
		for command, want := range map[string]string{
			"explain" + file + " copy":                        "IFUNC: this is the resolver",
			"explain" + file + " copy+0x8":                    "copy_plain, copy_wide",
			"analyze" + file:                                  "callers call what it returns: copy_plain, copy_wide",
			"analyze --insns --func copy" + file:              "callers call what it returns: copy_plain, copy_wide",
			"analyze -o json --func copy" + file:              `"resolver":true,"implementations":["copy_plain","copy_wide"]`,
			"analyze -o jsonl --func copy" + file:             `"resolver":true,"implementations":["copy_plain","copy_wide"]`,
			"analyze -o csv --func copy" + file:               ",true,copy_plain; copy_wide,",
			"analyze --insns -o jsonl --func copy" + file:     `"resolver":true`,
			"analyze --insns -o csv --func copy" + file:       ",true\n",
			"explain -o json" + file + " copy":                `"sym": "copy_wide"`,
			"analyze -o jsonl --func copy_plain" + file:       `"resolver":false}`,
			"analyze --insns -o csv --func copy_plain" + file: ",\n",
		} {
			if inv := xol(command, ""); !strings.Contains(strings.Join(strings.Fields(inv.stdout), " "), strings.TrimSpace(want)) {
				t.Errorf("%s: no %q in\n%s%s", command, want, inv.stdout, inv.stderr)
			}
		}
		if inv := xol("explain"+file+" copy_plain", ""); strings.Contains(inv.stdout, "IFUNC") {
			t.Errorf("%s", inv)
		}
	}
}

// TestExplainInlined asks for a function that has no symbol.
func TestExplainInlined(t *testing.T) {
	for _, machine := range []string{"amd64", "arm64", "ppc64le", "ppc64"} {
		file := "../../image/testdata/elf/names." + machine + ".so"
		text := xol("explain "+file+" mixed", "").stdout
		if !strings.HasPrefix(text, "ns::over(double)") || !strings.Contains(text, "names.c:1") ||
			!strings.Contains(text, "mixed has no code of its own: it is inlined here, and at int ns::fill<int>(int)+0x") {
			t.Errorf("%s: %s", machine, text)
		}
		var e struct {
			Inlined bool
			Also    []string
		}
		inv := xol("explain -o json "+file+" mixed", "")
		if err := json.Unmarshal([]byte(inv.stdout), &e); err != nil || !e.Inlined || len(e.Also) != 1 {
			t.Errorf("%s: %v in %s", machine, err, inv)
		}
	}
	if inv := xol("explain ../../image/testdata/elf/inlined.5.amd64.so ns::over(int)", ""); !strings.HasPrefix(inv.stdout, "third(int)+0x23 ") || strings.Contains(inv.stdout, ", and at") {
		t.Errorf("%s", inv)
	}
}
