package main

import (
	"strings"
	"testing"
)

// A place is understood as tracers write it, and asked for as they do.
func TestExplainNotations(t *testing.T) {
	const kernel = "testdata/kernel.elf"
	for _, c := range []struct {
		name, args string
		status     int
		says       string
	}{
		{"bpftrace", kernel + " kprobe:vfs_read+9", 0, "vfs_read+0x9 "},
		{"bpftrace, of a function without an ftrace site", kernel + " kprobe:vfs_write+5", 1, "tracing/notrace"},
		{"its return", kernel + " kretprobe:vfs_read", 0, "a return probe costs this hit at each call"},
		{"its return in the middle, by a flag", "--via perf " + kernel + " vfs_read+9%return", 2, "has no offset"},
		{"a line of kprobe_events", kernel + " 'p:a/b vfs_read+9 a=%di'", 0, "vfs_read+0x9 "},
		{"its return, by a line of kprobe_events", kernel + " 'r:a/b vfs_read+9'", 1, "tracing/return-not-at-entry"},
		{"its return, by its suffix", kernel + " 'p:a/b vfs_read+9%return'", 1, "tracing/return-not-at-entry"},
		{"its return, after the ENDBR", kernel + " 'r:a/b vfs_read+4'", 0, "a return probe costs this hit at each call"},
		{"its return, after the ENDBR, by a letter", kernel + " r:vfs_read+4", 0, "a return probe costs this hit at each call"},
		{"an argument, after the ENDBR", kernel + " 'p:a/b vfs_read+4 $arg1'", 0, "may be probed"},
		{"an argument in the middle", kernel + " 'p:a/b vfs_read+9 $arg1'", 1, "NOFENTRY_ARGS"},
		{"no such function, by kprobe_events", "--via kprobe_events " + kernel + " vfs_raed", 1, "tracing/unknown-symbol"},
		{"no such function", kernel + " vfs_raed", 2, "similar: vfs_read"},
		{"data, by kprobe_events", "--via kprobe_events " + kernel + " 0xffffffff90000000", 1, "linux/outside-text"},
		{"kallsyms", kernel + " ffffffff8100001a", 0, "vfs_read+0x9 "},
		{"of a module", kernel + " ext4:ext4_iget", 2, "give the file ext4.ko"},
		{"by kprobe_events", "--via kprobe_events " + kernel + " vfs_write+5", 1, "tracing/notrace"},
		{"by kprobe_events, and what is assumed", "--via kprobe_events " + kernel + " vfs_write+5", 1, "CONFIG_KPROBE_EVENTS_ON_NOTRACE=n"},
		{"where that is allowed", "--via kprobe_events --kconfig KPROBE_EVENTS_ON_NOTRACE=y " + kernel + " vfs_write+5", 0, "may be probed"},
		{"by multi-kprobes", "--via bpf " + kernel + " vfs_read", 0, "through ftrace"},
		{"by multi-kprobes, in the middle", "--via bpf " + kernel + " vfs_read+9", 1, "bpf/not-at-entry"},
		{"other interfaces", kernel + " vfs_write+5", 0, "by kprobe_events and perf: refused, EINVAL (22)"},
		{"a program", "uprobe:testdata/amd64.elf:main", 0, "amd64 program"},
		{"its return", "uretprobe:testdata/amd64.elf:main", 0, "follows 64 nested calls"},
		{"a return from the middle", "'r:a/b ./testdata/amd64.elf:0x7c'", 0, "linux/uretprobe-not-at-entry"},
		{"a program, without a tool", "./testdata/amd64.elf:main+4", 0, "amd64 program"},
		{"an offset in its file", "uprobe:testdata/amd64.elf:0x78", 0, "file:0x78"},
		{"its marker", "usdt:testdata/markers-amd64.elf:*:*", 0, "amd64 program"},
		{"no such marker", "usdt:testdata/markers-amd64.elf:none", 2, "no static marker none"},
		{"no file", "kprobe:vfs_read", 2, "names no file"},
		{"no place", kernel + " tracepoint:sched:sched_switch", 2, "no place in text"},
		{"no such library", "uprobe:libnosuch:f", 2, "give its path"},
		{"several places", kernel + " vfs_read+9 vfs_read", 0, "\n\nvfs_read   0x"},
		{"several places, one refused", kernel + " vfs_read+0xb vfs_read", 1, "\n\nvfs_read   0x"},
		{"several places, one of them none", kernel + " vfs_read+0xb vfs_raed vfs_read", 2, "similar: vfs_read"},
		{"what follows a place that is none", kernel + " vfs_raed vfs_read", 2, "vfs_read   0x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := xol("explain "+c.args, "")
			if inv.status != c.status || !strings.Contains(inv.stdout+inv.stderr, c.says) {
				t.Errorf("status %d, want %d and %q\n%s%s", inv.status, c.status, c.says, inv.stdout, inv.stderr)
			}
			if n := strings.Count(inv.stderr, "\n"); inv.status == 2 && n != 1 {
				t.Errorf("%d lines of errors", n)
			}
		})
	}
}
