package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProbes(t *testing.T) {
	for _, c := range []struct {
		name, args, want string
	}{
		{"bpftrace", "testdata/kernel.elf", "kprobe:vfs_read { }\n// vfs_write: "},
		{"perf", "--format perf testdata/kernel.elf", "perf probe --add 'vfs_read'\n# vfs_write: "},
		{"kprobe_events", "--format kprobe_events testdata/kernel.elf", "p:xol/vfs_read vfs_read\n# vfs_write: "},
		{"systemtap, which asks from a module", "--format systemtap testdata/kernel.elf",
			"probe kprobe.function(\"vfs_read\") { }\n# vfs_write: "},
		{"returns", "--return testdata/kernel.elf", "kretprobe:vfs_read { }\n// vfs_write: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := xol("probes --func vfs_* "+c.args, "")
			if inv.status != 0 || !strings.HasPrefix(inv.stdout, c.want) {
				t.Errorf("status %d, want\n%s\ngot\n%s%s", inv.status, c.want, inv.stdout, inv.stderr)
			}
		})
	}
}

// What is written is accepted when it is checked, of a kernel and of a program.
func TestProbesAreGood(t *testing.T) {
	for _, format := range []string{formatBpftrace, formatPerf, formatKprobeEvents} {
		for _, file := range []string{"testdata/kernel.elf", "testdata/amd64.elf"} {
			written := xol("probes --format "+format+" "+file, "")
			var lines []string
			for line := range strings.Lines(written.stdout) {
				if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "//") {
					lines = append(lines, line)
				}
			}
			if len(lines) == 0 {
				t.Errorf("%s of %s: no definitions\n%s", format, file, written.stdout)
			}
			if inv := xol("check --in "+file, strings.Join(lines, "")); inv.status != 0 {
				t.Errorf("%s of %s: status %d\n%s%s", format, file, inv.status, inv.stdout, inv.stderr)
			}
		}
	}
}

func TestEventName(t *testing.T) {
	got := []string{
		eventName("vfs_read", 0), eventName("NF_HOOK.constprop.0", 0x1c), eventName("0day", 0),
		eventName(strings.Repeat("a", 99), 4),
	}
	want := []string{"vfs_read", "NF_HOOK_constprop_0_1c", "_0day", strings.Repeat("a", 50) + "_4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
