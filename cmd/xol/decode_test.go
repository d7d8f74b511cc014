package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"xol/arch"
)

// TestDecodeLineAsDocumented compares a line with the one that scripts were
// promised.
func TestDecodeLineAsDocumented(t *testing.T) {
	const want = `{"addr":"0x1000","len":5,"bytes":"e8fb0f0000","text":"call 0x2000","flow":"call","target":"0x2000",` +
		`"pcrel":{"kind":"branch","target":"0x2000","offset":1,"width":32}}` + "\n"
	inv := xol("decode --arch amd64 -o jsonl -", "0x1000 e8fb0f0000\n")
	if inv.stdout != want || inv.status != 0 {
		t.Errorf("status %d, %s\nwant %s", inv.status, inv.stdout, want)
	}
}

// decodedJSON are the fields of a result in their order. Absent ones are nil.
type decodedJSON struct {
	Addr   string  `json:"addr"`
	Len    *int    `json:"len,omitempty"`
	Bytes  *string `json:"bytes,omitempty"`
	Text   *string `json:"text,omitempty"`
	Flow   *string `json:"flow,omitempty"`
	Target *string `json:"target,omitempty"`
	PCRel  *struct {
		Kind   string `json:"kind"`
		Target string `json:"target"`
		Offset int    `json:"offset"`
		Width  int    `json:"width"`
	} `json:"pcrel,omitempty"`
	Error   *string `json:"error,omitempty"`
	Probe   *string `json:"probe,omitempty"`
	Errno   *int    `json:"errno,omitempty"`
	Rule    *string `json:"rule,omitempty"`
	Reason  *string `json:"reason,omitempty"`
	Exec    *string `json:"exec,omitempty"`
	Boost   *bool   `json:"boost,omitempty"`
	Boosted *bool   `json:"boosted,omitempty"`
	Hazard  *string `json:"hazard,omitempty"`
	Note    *string `json:"note,omitempty"`
}

// TestDecodeLinesAreCanonicalJSON reads every line and writes it again with
// encoding/json: the fields, their order and their spelling stay.
func TestDecodeLinesAreCanonicalJSON(t *testing.T) {
	input := map[string]string{
		"amd64":   "90\n0x1000 e8fb0f0000\n488d05f0ffffff\nffffffff80000000 0f84fbffffff\n06\ne8fb\n\nzz\n62\ncc\n",
		"arm64":   "0x1000 000000d0\n1f2003d5\n00\n01000000\n00000000\n40000018\n",
		"ppc64le": "0x1000 00000048\n0000106000000000\n00001006\n",
		"ppc64":   "0x1000 48000004\n60000000\n",
	}
	for name, lines := range input {
		isa, err := arch.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, profile := range append([]string{""}, isa.Profiles()...) {
			command := "decode --arch " + name + " -o jsonl -"
			if profile != "" {
				command += " --profile " + profile
			}
			inv := xol(command, lines)
			if got, want := strings.Count(inv.stdout, "\n"), strings.Count(lines, "\n"); got != want {
				t.Errorf("%s: %d lines for %d", command, got, want)
			}
			for line := range strings.Lines(inv.stdout) {
				if again := rewritten(t, line); again != line {
					t.Errorf("%s:\n%s is written by encoding/json\n%s", command, line, again)
				}
			}
		}
	}
}

func rewritten(t *testing.T, line string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(line))
	dec.DisallowUnknownFields()
	var res decodedJSON
	if err := dec.Decode(&res); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(res); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDecodeInputLines(t *testing.T) {
	const nop = `{"addr":"%s","len":1,"bytes":"90","text":"nop","flow":"none"}`
	for _, c := range []struct{ name, line, want string }{
		{"bytes alone", "90", fmt.Sprintf(nop, "0x0")},
		{"address with 0x", "0xffffffff81000000 90", fmt.Sprintf(nop, "0xffffffff81000000")},
		{"address without", "1000 90", fmt.Sprintf(nop, "0x1000")},
		{"tab", "0x10\t90", fmt.Sprintf(nop, "0x10")},
		{"blanks around", "  0x10   90  ", fmt.Sprintf(nop, "0x10")},
		{"end of line as on DOS", "90\r", fmt.Sprintf(nop, "0x0")},
		{"bytes after the instruction", "90cccc", fmt.Sprintf(nop, "0x0")},
		{"capital digits", "0X10 90", `{"addr":"0x0","error":"\"0X10\" is not an address (line 1)"}`},
		{"nothing", "", `{"addr":"0x0","error":"no bytes given (line 1)"}`},
		{"address too wide", "0x10000000000000000 90", `{"addr":"0x0","error":"\"0x10000000000000000\" is not an address (line 1)"}`},
		{"no bytes", "0x10 zz", `{"addr":"0x10","error":"\"zz\" is not hexadecimal (line 1)"}`},
		{"spaced bytes", "0x10 90 90", `{"addr":"0x10","error":"\"90 90\" is not hexadecimal (line 1)"}`},
		{"half a byte", "9", `{"addr":"0x0","error":"\"9\" has an odd number of hex digits (line 1)"}`},
		{"too long", strings.Repeat("90", maxLine), `{"addr":"0x0","error":"line longer than 65536 bytes (line 1)"}`},
		{"invalid", "06", `{"addr":"0x0","error":"not an instruction"}`},
		{"truncated", "e8fb", `{"addr":"0x0","error":"truncated instruction"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, input := range []string{c.line + "\n90\n", c.line + "\n90"} {
				got, rest, _ := strings.Cut(xol("decode --arch amd64 -o jsonl -", input).stdout, "\n")
				if got != c.want {
					t.Errorf("%s\nwant %s", got, c.want)
				}
				if rest != fmt.Sprintf(nop, "0x0")+"\n" {
					t.Errorf("the next line became %q", rest)
				}
			}
		})
	}
}

// TestDecodeAnswersAtOnce uses decode as a partner that answers each line
// before the next is written.
func TestDecodeAnswersAtOnce(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan int)
	go func() {
		done <- run([]string{"decode", "--arch", "amd64", "-o", "jsonl", "-"}, inR, outW, io.Discard)
		outW.Close()
	}()
	answers := bufio.NewReader(outR)
	for i := range 3 {
		fmt.Fprintf(inW, "%#x 90\n", 4*i)
		line, err := answers.ReadString('\n')
		if want := fmt.Sprintf(`{"addr":"%#x","len":1,`, 4*i); err != nil || !strings.HasPrefix(line, want) {
			t.Fatalf("answer %d is %q, %v", i, line, err)
		}
	}
	inW.Close()
	if status := <-done; status != 0 {
		t.Errorf("status %d", status)
	}
}

// brokenReader fails after what it holds.
type brokenReader struct{ io.Reader }

func (r brokenReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err == io.EOF {
		err = errFull
	}
	return n, err
}

func TestDecodeInputThatFails(t *testing.T) {
	var stdout, stderr bytes.Buffer
	status := run([]string{"decode", "--arch", "amd64", "-"}, brokenReader{strings.NewReader("90\n90\n")}, &stdout, &stderr)
	if want := "xol: standard input: " + errFull.Error() + " (line 3)\n"; status != 2 || stderr.String() != want {
		t.Errorf("status %d, %q, want %q", status, &stderr, want)
	}
	if n := strings.Count(stdout.String(), "nop"); n != 2 {
		t.Errorf("%d lines decoded before the failure, want 2", n)
	}
}

// FuzzDecodeLines gives decode any input: it answers every line with one JSON
// object.
func FuzzDecodeLines(f *testing.F) {
	for _, seed := range []string{"90\n0x1000 e8fb0f0000\n", "\n\n", "zz 90", "0x1 \t90\r\n", "\x00\xff\n62\n"} {
		f.Add(seed, "amd64")
	}
	f.Add("0x1000 1f2003d5\n", "arm64")
	f.Add("60000000\n06100000\n", "ppc64")
	f.Fuzz(func(t *testing.T, input, archName string) {
		var stdout, stderr bytes.Buffer
		status := run([]string{"decode", "--arch=" + archName, "-o", "jsonl", "-"}, strings.NewReader(input), &stdout, &stderr)
		if status == 2 {
			if _, err := arch.ByName(archName); err == nil {
				t.Fatalf("status 2: %s", &stderr)
			}
			return
		}
		lines := strings.Count(input, "\n")
		if input != "" && !strings.HasSuffix(input, "\n") {
			lines++
		}
		results, failures := 0, 0
		for line := range strings.Lines(stdout.String()) {
			var res decodedJSON
			if err := json.Unmarshal([]byte(line), &res); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			results++
			if res.Error != nil {
				failures++
			}
		}
		if results != lines || (failures > 0) != (status == 1) {
			t.Errorf("%d results for %d lines, %d of them errors, status %d", results, lines, failures, status)
		}
	})
}

func BenchmarkDecodeLines(b *testing.B) {
	const perRun = 1000
	lines := strings.Repeat("0x1000 e8fb0f0000\n488b4708\nf30f1efa\n48c7c001000000\n", perRun/4)
	for b.Loop() {
		if status := run([]string{"decode", "--arch", "amd64", "-o", "jsonl", "-"}, strings.NewReader(lines), io.Discard, io.Discard); status != 0 {
			b.Fatal(status)
		}
	}
	b.ReportMetric(perRun*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}

// TestHexArguments writes the same three bytes as people do.
func TestHexArguments(t *testing.T) {
	want := xol("decode --arch amd64 90 4889e5", "").stdout
	for _, args := range []string{"904889e5", "0x90 0x4889e5", "'90 48 89 e5'", "0x90,0x48,0x89,0xe5", `'\x90\x48\x89\xe5'`, "'0x90, 0x4889E5'"} {
		for _, isa := range []string{"amd64", "x86_64", "x86-64", "AMD64"} {
			if inv := xol("decode --arch "+isa+" "+args, ""); inv.stdout != want || inv.status != 0 {
				t.Errorf("%s", inv)
			}
		}
	}
	want = xol("relocate --arch ppc64le --from 0x1000 --to 0x2000 00000060", "").stdout
	if inv := xol("relocate --arch ppc64el --from 0x1000 --to 0x2000 '0x00 0x00 0x00 0x60'", ""); inv.stdout != want || inv.status != 0 {
		t.Errorf("%s", inv)
	}
	lines := xol("decode --arch aarch64 -o jsonl -", "0x1f2003d5\n0x10 0x1f2003d5\n")
	if strings.Count(lines.stdout, `"text":"nop"`) != 2 {
		t.Errorf("%s", lines)
	}
}
