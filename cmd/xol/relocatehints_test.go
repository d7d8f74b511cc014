package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestClobbers moves branches near and far: only far forms go through registers.
func TestClobbers(t *testing.T) {
	const near, far = "0x2000", "0x7f0000000000"
	for _, c := range []struct {
		name, command string
		want          []string
	}{
		{"b", "--arch ppc64 48000100 --to " + far, []string{"tar"}},
		{"b", "--arch ppc64le 00010048 --to " + far, []string{"tar"}},
		{"bl", "--arch ppc64le 01010048 --to " + far, []string{"tar"}},
		{"a near b", "--arch ppc64 48000100 --to " + near, nil},
		{"a near bl", "--arch ppc64le 01010048 --to " + near, nil},
		{"a dead register instead of the stack", "--arch ppc64le 00010048 --dead r9 --to " + far, []string{"r9", "tar"}},
		{"b", "--arch arm64 20000014 --dead x16 --to " + far, []string{"x16"}},
		{"a near b", "--arch arm64 20000014 --dead x16 --to " + near, nil},
		{"a call through memory", "--arch amd64 ff1500100000 --dead r11 --to " + far, []string{"r11"}},
		{"nop", "--arch amd64 90 --to " + far, nil},
	} {
		inv := xol("relocate --from 0x1000 -o json "+c.command, "")
		var moved struct{ Clobbers []string }
		if err := json.Unmarshal([]byte(inv.stdout), &moved); err != nil || !slices.Equal(moved.Clobbers, c.want) || moved.Clobbers == nil {
			t.Errorf("%s: want %q: %s", c.name, c.want, inv)
		}
		line := "\n  clobbers: " + strings.Join(c.want, ", ") + "\n"
		if table := xol("relocate --from 0x1000 "+c.command, ""); strings.Contains(table.stdout, line) != (len(c.want) > 0) {
			t.Errorf("%s: %s", c.name, table)
		}
	}
}

// TestOutOfReach looks for the rule and for what would help, and tries that.
func TestOutOfReach(t *testing.T) {
	const far = " --from 0x1000 --to 0x7f0000000000 "
	for _, c := range []struct{ command, rule, flag, with string }{
		{"--arch arm64 20000014", "arm64/move-far-jump", "--dead REGISTERS", "--dead x16"},                         // b
		{"--arch arm64 00000094", "arm64/move-far-jump", "--dead REGISTERS", "--dead x17"},                         // bl
		{"--arch arm64 --reach far 20000014", "arm64/move-far-jump", "--dead REGISTERS", "--dead x16"},             // refused by the plan
		{"--arch arm64 1f2003d5", "arm64/move-far-jump", "--dead REGISTERS", "--dead x9"},                          // nop: the way back
		{"--arch ppc64le --scratch none 00010048", "ppc64/move-scratch", "--scratch stack", "--scratch stack"},     // b
		{"--arch amd64 --scratch none 480305f00f0000", "amd64/move-scratch", "--scratch stack", "--scratch stack"}, // add
	} {
		inv := xol("relocate"+far+c.command+" -o json", "")
		var refused struct{ Rule, Error string }
		if err := json.Unmarshal([]byte(inv.stdout), &refused); err != nil || refused.Rule != c.rule || !strings.Contains(refused.Error, c.flag) || inv.status != 1 {
			t.Errorf("want %s and %s: %s", c.rule, c.flag, inv)
		}
		if inv := xol("relocate"+far+c.command+" "+c.with, ""); inv.status != 0 {
			t.Errorf("%s", inv)
		}
	}
}
