package main

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
)

// TestExplanationsDoNotContradictThemselves asks for what was once told in two
// ways on one screen.
func TestExplanationsDoNotContradictThemselves(t *testing.T) {
	for _, c := range []struct{ name, command, want, never string }{
		{"through ftrace", "explain --profile linux-6.12 testdata/kernel.elf vfs_read",
			`linux-6.12  may be probed; through ftrace, without a breakpoint\n.*vfs_read\+0x4 instead\n(.*\n)* +no breakpoint`,
			`without a breakpoint\n(.*\n){1,3} +the breakpoint stays`},
		{"moved and refused", "explain testdata/kernel.elf vfs_write",
			`refused: EILSEQ.*\n +the kernel would put it at vfs_write\+0x4: int3, and refuses it there:\n`,
			`refused: EILSEQ.*\n +the probe is put at`},
		{"another instruction is in the way", "explain testdata/sites.elf push_before_call",
			`amd64/optimize-not-boostable\n +the jump would replace an instruction that the kernel does not\n? *move(.*\n)+? +because of push_before_call\+0x1: call`,
			`optimize-not-boostable\n.*this instruction`},
		{"a place that is refused, too", "explain testdata/sites.elf two_labels",
			`a place that would do|instead: probe two_labels\+0xb; what is nearer is refused as well`,
			`two_labels\+0x5\n`},
		{"no region where there is no breakpoint", "explain --region --profile linux-6.12 testdata/kernel.elf vfs_read+4",
			`no breakpoint`, `region \(linux-6.12`},
		{"offsets of landings", "explain --region testdata/sites.elf landed+0x3",
			`\+0x5  a branch goes here: landed\+0x8`, `\n +\+2  a branch`},
		{"a buffer's own offsets", "explain --region testdata/amd64.elf vectors", `buffer\+0x0 `, `\n +\+0x0  6a`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := xol(c.command, "")
			if inv.status == 2 || !regexp.MustCompile(c.want).MatchString(inv.stdout) {
				t.Errorf("%s: no %q\n%s%s", c.command, c.want, inv.stdout, inv.stderr)
			}
			if regexp.MustCompile(c.never).MatchString(inv.stdout) {
				t.Errorf("%s: %q\n%s", c.command, c.never, inv.stdout)
			}
		})
	}
}

// TestRefusedPlacesAreNotOffered explains the first two bytes of every instruction of a test kernel: what is
// to be probed instead is accepted, by the profile that says so.
func TestRefusedPlacesAreNotOffered(t *testing.T) {
	offered := regexp.MustCompile(`(?:a place that would do:|instead: probe) (\w+(?:\+0x[0-9a-f]+)?)(?:;|\n)`)
	profile := regexp.MustCompile(`(?m)^(\S+) +(?:refused|may be)`)
	asked, seen := map[string]bool{}, 0
	rows := xol("analyze --insns -o jsonl testdata/sites.elf", "").stdout
	for _, row := range regexp.MustCompile(`"addr":"(0x[0-9a-f]+)"`).FindAllStringSubmatch(rows, -1) {
		addr := row[1]
		place, err := strconv.ParseUint(addr, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		out := xol("explain testdata/sites.elf "+addr, "").stdout + xol(fmt.Sprintf("explain testdata/sites.elf %#x", place+1), "").stdout
		heads := profile.FindAllStringSubmatchIndex(out, -1)
		for i, h := range heads {
			end := len(out)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			for _, m := range offered.FindAllStringSubmatch(out[h[0]:end], -1) {
				command := "explain --profile " + out[h[2]:h[3]] + " testdata/sites.elf " + m[1]
				if asked[command] {
					continue
				}
				asked[command] = true
				seen++
				if inv := xol(command, ""); inv.status != 0 {
					t.Errorf("%s offers %s, which is refused:\n%s", addr, m[1], inv.stdout)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d places were offered", seen)
	}
}
