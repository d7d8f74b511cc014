//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a folder with files to find, and others that are in the way.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyTo := func(fixture, name string) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join("testdata", fixture))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copyTo("hazards.elf", "usr/bin/breaks")
	copyTo("amd64.elf", "usr/bin/worst")
	copyTo("arm64.elf", "usr/lib/foreign")
	copyTo("kernel.elf", "boot/vmlinux")
	copyTo("generate.sh", "usr/bin/script")
	copyTo("generate.sh", "usr/share/words.ko.txt")
	for _, err := range []error{
		os.Link(filepath.Join(dir, "usr/bin/breaks"), filepath.Join(dir, "usr/bin/twice")),
		os.Symlink("/", filepath.Join(dir, "usr/root")),
		os.Symlink("..", filepath.Join(dir, "usr/bin/loop")),
		os.Symlink("worst", filepath.Join(dir, "usr/bin/other")),
		os.Symlink("usr/bin", filepath.Join(dir, "bin")),
		makeFIFO(filepath.Join(dir, "usr/bin/pipe")),
		os.Mkdir(filepath.Join(dir, "usr/empty"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// summaryOf returns the records of a summary, with names relative to dir.
func summaryOf(t *testing.T, args string, dir string) (rows []map[string]any, inv invocation) {
	t.Helper()
	inv = xol("analyze --summary -o jsonl --profile uprobe-linux-6.12 "+args, "")
	for line := range strings.Lines(inv.stdout) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		if file, ok := row["file"].(string); ok {
			if rel, err := filepath.Rel(dir, file); err == nil {
				row["file"] = rel
			}
		}
		rows = append(rows, row)
	}
	return rows, inv
}

func namesOf(rows []map[string]any) string {
	var names []string
	for _, row := range rows {
		if file, ok := row["file"].(string); ok {
			names = append(names, file)
		}
	}
	return strings.Join(names, " ")
}

func TestSummary(t *testing.T) {
	dir := tree(t)
	rows, inv := summaryOf(t, dir, dir)
	if inv.status != 0 || inv.stderr != "" {
		t.Fatalf("status %d, %q", inv.status, inv.stderr)
	}
	if got, want := namesOf(rows), "usr/bin/worst usr/bin/breaks usr/lib/foreign boot/vmlinux"; got != want {
		t.Fatalf("files %q, want %q", got, want)
	}
	second, totals := rows[1], rows[len(rows)-1]
	where := fmt.Sprint(second["hazard_rules"])
	if want := "map[amd64/uprobe-syscall:map[count:1 functions:1 places:[calls+0x5]] amd64/uprobe-vex-as-jump:map[count:3 functions:2 places:[clears cleared+0x1]]]"; where != want {
		t.Errorf("hazards %s\nwant %s", where, want)
	}
	if got, want := fmt.Sprint(totals["skipped"]), "map[arch:0 class:0 debug:0 link:1 text:0 type:0]"; got != want {
		t.Errorf("left out %s, want %s", got, want)
	}
	if totals["files"] != 4.0 || totals["hazardous"] != 3.0 || totals["hazards"] != 11.0 {
		t.Errorf("totals %v", totals)
	}
}

// A folder that the user names is walked even if it is a link, and a file in two of the
// folders is counted once.
func TestSummaryRoots(t *testing.T) {
	dir := tree(t)
	rows, inv := summaryOf(t, filepath.Join(dir, "bin")+" "+filepath.Join(dir, "usr"), dir)
	if got, want := namesOf(rows), "bin/worst bin/breaks usr/lib/foreign"; got != want || inv.status != 0 {
		t.Errorf("status %d, files %q, want %q", inv.status, got, want)
	}
	rows, _ = summaryOf(t, filepath.Join(dir, "usr/bin/other"), dir)
	if got, want := namesOf(rows), "usr/bin/other"; got != want {
		t.Errorf("files %q, want %q", got, want)
	}
}

func TestSummaryOfUnreadableFiles(t *testing.T) {
	dir := tree(t)
	data, err := os.ReadFile(filepath.Join("testdata", "amd64.elf"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "usr", "bin", "cut"), data[:100], 0o755); err != nil {
		t.Fatal(err)
	}
	rows, inv := summaryOf(t, dir, dir)
	if want := "usr/bin/cut: "; inv.status != 2 || strings.Count(inv.stderr, "\n") != 1 || !strings.Contains(inv.stderr, want) {
		t.Errorf("status %d, standard error %q", inv.status, inv.stderr)
	}
	if len(rows) != 5 {
		t.Errorf("%d rows", len(rows))
	}
	for _, c := range []struct{ args, stderr string }{
		{filepath.Join(dir, "absent"), "no such file or directory"},
		{filepath.Join(dir, "usr/empty"), "no ELF file that can be judged is in there"},
		{filepath.Join(dir, "usr/bin/script"), "not an ELF file"},
		{filepath.Join(dir, "usr/bin/pipe"), "it is no regular file"},
		{"/proc/self", "no ELF file that can be judged is in there"},
	} {
		if _, inv := summaryOf(t, c.args, dir); inv.status != 2 || !strings.Contains(inv.stderr, c.stderr) {
			t.Errorf("%s: status %d, standard error %q", c.args, inv.status, inv.stderr)
		}
	}
}

// TestSummaryProfiles judges programs by the running kernel's uprobes unless another
// profile is named.
func TestSummaryProfiles(t *testing.T) {
	for release, want := range map[string]string{
		"6.12.0-5-amd64\n": "uprobe-linux-6.12",
		"6.6.30":           "uprobe-linux-6.6.30",
		"":                 "uprobe-linux-7.3",
		"something":        "uprobe-linux-7.3",
	} {
		if got := uprobeProfile(release); got != want {
			t.Errorf("%q: %s, want %s", release, got, want)
		}
	}
	inv := xol("analyze --summary -o csv --profile isa testdata/ppc64.elf testdata/kernel.elf", "")
	if inv.status != 0 || strings.Count(inv.stdout, ",isa,") != 2 {
		t.Errorf("status %d\n%s", inv.status, inv.stdout)
	}
	inv = xol("analyze --summary -o csv testdata/ppc64.elf testdata/kernel.elf", "")
	if inv.status != 0 || strings.Count(inv.stdout, ",uprobe-linux-") != 1 || strings.Count(inv.stdout, ",linux-6.12,") != 1 {
		t.Errorf("status %d\n%s", inv.status, inv.stdout)
	}
}

// TestSummaryOnTerminal has an error line beside the bar.
func TestSummaryOnTerminal(t *testing.T) {
	dir := tree(t)
	tty, written := terminal(t)
	status := run([]string{"analyze", "--summary", dir}, strings.NewReader(""), tty, tty)
	if got := written(); status != 0 || !strings.Contains(got, "with hazards") {
		t.Errorf("status %d, %q", status, got)
	}
}
