package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	inv := xol("report -o "+page+" testdata/amd64.elf testdata/kernel.elf", "")
	if inv.status != 0 || inv.stderr != "" || inv.stdout != "" {
		t.Fatalf("status %d, %q, %q", inv.status, inv.stdout, inv.stderr)
	}
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	piped := xol("report -o - testdata/amd64.elf testdata/kernel.elf", "")
	if piped.stdout != string(written) {
		t.Errorf("-o - writes %d bytes, a file has %d", len(piped.stdout), len(written))
	}
	for _, part := range []string{"<!DOCTYPE html>", "testdata/kernel.elf", `"linux-6.12"`, "</html>"} {
		if !strings.Contains(string(written), part) {
			t.Errorf("the page has no %s", part)
		}
	}
}

func TestReportIsWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.html")
	if err := os.WriteFile(page, []byte("before"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, want string }{
		{"report -o " + page + " testdata/amd64.elf testdata/absent", "xol: testdata/absent: no such file or directory\n"},
		{"report -o " + page + " --profile linux-6.12 --profile nosuch testdata/amd64.elf", "xol: report: --profile \"nosuch\": want "},
		{"report -o " + filepath.Join(dir, "absent", "x.html") + " testdata/amd64.elf", "no such file or directory\n"},
		{"report testdata/amd64.elf", "xol: report: -o PAGE.html is missing\n"},
		{"report -o " + page, "xol: report: FILE… is missing (xol report --help)\n"},
		{"report --cpus -1 -o " + page + " testdata/amd64.elf", "xol: report: -1 is no number of CPUs (--cpus)\n"},
		{"report -o " + dir + " testdata/amd64.elf", "is a directory\n"},
	} {
		inv := xol(c.command, "")
		if inv.status != 2 || !strings.Contains(inv.stderr, c.want) || strings.Count(inv.stderr, "\n") != 1 {
			t.Errorf("%s: status %d, %q, want %q", c.command, inv.status, inv.stderr, c.want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v are left, %v", left, err)
	}
	if text, _ := os.ReadFile(page); string(text) != "before" {
		t.Errorf("the page is now %.40q", text)
	}
}
