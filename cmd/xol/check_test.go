package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

const checkKernel = "--in testdata/kernel.elf"

// probesOf writes a script, checks it and returns a line for each probe: its line,
// its place, what becomes of it and why.
func probesOf(t *testing.T, flags, script string) (inv invocation, rows string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	inv = xol("check -o jsonl "+flags+" "+path, "")
	var b strings.Builder
	for line := range strings.Lines(inv.stdout) {
		var row struct {
			Line                         int
			Place, Probe, Rule, Optimize string
			Errno                        int
			Hazard                       string
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		words := []string{row.Place, row.Probe, row.Rule, row.Optimize}
		if row.Hazard != "" {
			words = append(words, "hazard")
		}
		b.WriteString(strings.Join(strings.Fields(strings.Join(words, " ")), " ") + "\n")
	}
	return inv, b.String()
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, flags, script string
		status              int
		want                string
	}{
		{"bpftrace", checkKernel, "kprobe:vfs_read, kretprobe:vfs_read { @ = count(); }\ninterval:s:1 { exit(); }\n", 0,
			"kprobe:vfs_read ok -\nkretprobe:vfs_read ok -\n"},
		{"a function without an ftrace site", checkKernel, "kprobe:vfs_write+5 { }", 1,
			"kprobe:vfs_write+5 refused tracing/notrace -\n"},
		{"the same from a module", checkKernel + " --via register", "kprobe:vfs_write+5 { }", 1,
			"kprobe:vfs_write+5 ok refused hazard\n"},
		{"no such function", checkKernel, "kprobe:no_such { }", 1, "kprobe:no_such refused tracing/unknown-symbol -\n"},
		{"kprobe_events", checkKernel, "p:a vfs_read+9 fd=%di\nr:b vfs_read+9 $retval\np:1 vfs_read\n", 1,
			"p:a vfs_read+9 fd=%di ok refused\nr:b vfs_read+9 $retval refused tracing/return-not-at-entry -\np:1 vfs_read refused tracing/syntax -\n"},
		{"kprobe_events, after the ENDBR", checkKernel, "r:a vfs_read+4\np:b vfs_read+4 $arg1\np:c vfs_read+9 $arg1\np:d vfs_read+9%return\n", 1,
			"r:a vfs_read+4 ok -\np:b vfs_read+4 $arg1 ok -\np:c vfs_read+9 $arg1 refused tracing/syntax -\n" +
				"p:d vfs_read+9%return refused tracing/return-not-at-entry -\n"},
		{"places", checkKernel, "vfs_read+9\n# a comment\nvfs_read+0xa\n", 1,
			"vfs_read+9 ok refused\nvfs_read+0xa refused amd64/kprobe-inside-instruction -\n"},
		{"no jump", checkKernel + " --require optimize", "vfs_read+9\n", 1, "vfs_read+9 ok refused\n"},
		{"a pattern", checkKernel, "kprobe:vfs_* { }", 1, "vfs_read ok -\nvfs_write refused tracing/notrace -\n"},
		{"programs", "", "uprobe:testdata/amd64.elf:main { }\nuprobe:testdata/amd64.elf:0x78 { }\n", 0,
			"uprobe:testdata/amd64.elf:main ok -\nuprobe:testdata/amd64.elf:0x78 ok -\n"},
		{"a mistake in bpftrace", checkKernel, "kretprobe:vfs_read+4 { }", 1, "kretprobe:vfs_read+4 refused notation/syntax -\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, rows := probesOf(t, c.flags, c.script)
			if diff := cmp.Diff(c.want, rows); inv.status != c.status || diff != "" {
				t.Errorf("status %d, want %d; -want +got:\n%s%s", inv.status, c.status, diff, inv.stderr)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct{ name, flags, script, says string }{
		{"no file", "", "kprobe:vfs_read { }", "names no file"},
		{"no probes", checkKernel, "# none\n", "it has no probes"},
		{"no such program", "", "uprobe:testdata/none:main { }", "testdata/none"},
		{"no such symbol of a program", "", "uprobe:testdata/amd64.elf:none { }", "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, rows := probesOf(t, c.flags, c.script)
			if inv.status != 2 || rows != "" || strings.Count(inv.stderr, "\n") != 1 || !strings.Contains(inv.stderr, c.says) {
				t.Errorf("status %d\n%s%s", inv.status, rows, inv.stderr)
			}
		})
	}
	if inv := xol("check testdata/none.bt", ""); inv.status != 2 || !strings.Contains(inv.stderr, "testdata/none.bt") {
		t.Errorf("a script that is not there: status %d, %s", inv.status, inv.stderr)
	}
}

// What is wrong is in the format of services that check code, with its place.
func TestCheckSARIF(t *testing.T) {
	inv := xol("check -o sarif "+checkKernel, "vfs_read\n\nvfs_read+0xa\nvfs_write+5\n")
	if inv.status != 1 {
		t.Fatalf("status %d, %s", inv.status, inv.stderr)
	}
	report, err := sarif.FromString(inv.stdout)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range report.Runs[0].Results {
		where := r.Locations[0].PhysicalLocation
		got = append(got, strings.Join([]string{*where.ArtifactLocation.URI, string(rune('0' + *where.Region.StartLine)), r.Level, *r.RuleID}, " "))
	}
	want := []string{"- 3 error amd64/kprobe-inside-instruction", "- 4 warning amd64/kprobe-loop"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if name := *report.Runs[0].Tool.Driver.Name; name != "xol" {
		t.Errorf("the tool is %s", name)
	}
}
