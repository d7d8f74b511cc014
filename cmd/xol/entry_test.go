package main

import (
	"strings"
	"testing"
)

// TestProbesByNameStandAtTheEntry names functions of ppc64le that have a global
// and a local entry. A kernel takes the site of ftrace, else the local entry;
// what is asked for by address stays there, and is missed by local calls.
func TestProbesByNameStandAtTheEntry(t *testing.T) {
	const missed = "missed by calls from within the"
	for _, c := range []struct {
		name, command string
		status        int
		want, never   string
	}{
		{"the site of ftrace", "explain --profile linux-6.12 testdata/entries.elf traced", 0,
			"may be probed; through ftrace, without a breakpoint\n            by the name, the kernel puts the probe at traced+0xc, the site of ftrace", missed},
		{"in JSON", "explain -o json --profile linux-6.12 testdata/entries.elf traced", 0, `"moved_to": "0xc000000000000014"`, `"missed"`},
		{"an offset of 0 is the name", "explain --profile linux-6.12 testdata/entries.elf traced+0x0", 0, "puts the probe at traced+0xc, the site", missed},
		{"a kernel that has no probes on ftrace", "explain --kconfig KPROBES_ON_FTRACE=n testdata/entries.elf traced", 0, "puts the probe at traced+0x8, the local entry", missed},
		{"no site", "explain testdata/entries.elf untraced", 0, "by the name, the kernel puts the probe at untraced+0x8, the local entry", missed},
		{"refused at the local entry", "explain testdata/entries.elf forbidden", 1, "the kernel would put it at forbidden+0x8: trap, and refuses it there:", "is put at"},
		{"one entry and a site", "explain testdata/entries.elf one_entry", 0, "puts the probe at one_entry+0x4, the site of ftrace", missed},
		{"one entry, by address", "explain testdata/entries.elf one_entry+0x4", 0, "through ftrace", "by the name"},
		{"by address", "explain testdata/entries.elf 0xc000000000000008", 0, missed + " kernel, which enter at traced+0x8", "by the name"},
		{"between the entries", "explain testdata/entries.elf traced+0x4", 0, missed + " kernel", "by the name"},
		{"by address in JSON", "explain -o json testdata/entries.elf 0xc000000000000008", 0, `"missed": true`, "moved_to"},
		{"after them", "explain testdata/entries.elf traced+0x8", 0, "may be probed", missed},
		{"the listing", "explain testdata/entries.elf untraced", 0, "global entry\n", ""},
		{"the listing, local", "explain testdata/entries.elf untraced", 0, "local entry; here the probe is put (linux-6.12)", ""},
		{"the listing in JSON", "explain -o json testdata/entries.elf untraced", 0, `"local_entry": 8`, ""},
		{"uprobes", "explain --profile uprobe-linux-6.12 testdata/ppc64le.elf main", 0, "judged at main+0x8 (file:0x88), the local entry, where perf puts a probe by the name; one", ""},
		{"uprobes by address", "explain --profile uprobe-linux-6.12 testdata/ppc64le.elf file:0x80", 0, missed + " program, which", "judged at"},
		{"uprobes, big-endian", "explain --profile uprobe-linux-6.12 testdata/ppc64.elf main", 0, "judged at main+0x8", ""},
		{"no such entries elsewhere", "explain testdata/arm64.elf main", 0, "may be probed", "local entry"},
	} {
		inv := xol(c.command, "")
		words := strings.Join(strings.Fields(inv.stdout), " ")
		if inv.status != c.status || !strings.Contains(words, strings.Join(strings.Fields(c.want), " ")) {
			t.Errorf("%s: status %d, no %q\n%s%s", c.name, inv.status, c.want, inv.stdout, inv.stderr)
		}
		if c.never != "" && strings.Contains(words, c.never) {
			t.Errorf("%s: %q\n%s", c.name, c.never, inv.stdout)
		}
	}
}
