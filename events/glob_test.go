package events_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"xol/events"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"vfs_*", "vfs_read", true},
		{"vfs_*", "vfs_", true},
		{"vfs_*", "xvfs_read", false},
		{"*_read", "vfs_read", true},
		{"*_read", "vfs_read_iter", false},
		{"*r*d*", "vfs_read", true},
		{"*aab", "aaab", true},
		{"a*b*c", "axbxxbxc", true},
		{"a*b*c", "axbxxbx", false},
		{"vfs_?ead", "vfs_read", true},
		{"vfs_?ead", "vfs_ead", false},
		{"[rw]*", "write", true},
		{"[a-f]x", "ex", true},
		{"[a-f]x", "gx", false},
		{"[!a-f]x", "gx", true},
		{"[!a-f]x", "ax", false},
		{"[]a]", "]", true},
		{"[a-]", "-", true},
		{"[a", "[a", true},
		{`\*`, "*", true},
		{`\*`, "x", false},
		{"", "", true},
		{"", "x", false},
		{"***", "", true},
		{"x", "", false},
	} {
		if got := events.Match(c.pattern, c.name); got != c.want {
			t.Errorf("%q and %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestParseGlob(t *testing.T) {
	offsets := func(string) []string { return []string{"0x10", "0x20", "0x10"} }
	table := kernel()
	for _, c := range []struct {
		where, line string
		places      func(string) []string
		want        []string
	}{
		{"kprobe amd64", "p vfs_* $arg1", table.Functions, []string{
			"p:kprobes/p_vfs_read_0 vfs_read arg1=$arg1", "p:kprobes/p_vfs_write_0 vfs_write arg1=$arg1"}},
		{"kprobe amd64", "r5:g/ vfs_[rw]*%return $retval", table.Functions, []string{
			"r5:g/r_vfs_read_0 vfs_read arg1=$retval", "r5:g/r_vfs_write_0 vfs_write arg1=$retval"}},
		{"kprobe amd64", "p:one do_sys_op?n+4", table.Functions, []string{"p:kprobes/one do_sys_open+4"}},
		{"kprobe amd64", "p ext4:ext4_*", table.Functions, []string{"p:kprobes/p_ext4_ext4_file_open_0 ext4:ext4_file_open"}},
		{"kprobe amd64", "p ext4:*", table.Functions, []string{"p:kprobes/p_ext4_ext4_file_open_0 ext4:ext4_file_open"}},
		{"kprobe amd64", "p vfs_read", table.Functions, []string{"p:kprobes/p_vfs_read_0 vfs_read"}},
		{"kprobe amd64", "-:name", table.Functions, []string{"-:name"}},
		{"uprobe amd64", "p /bin/sh:*%return", offsets, []string{
			"r:uprobes/p_sh_0x10 /bin/sh:0x0000000000000010", "r:uprobes/p_sh_0x20 /bin/sh:0x0000000000000020"}},
	} {
		all, err := events.ParseGlob(c.line, options(t, c.where), c.places)
		var got []string
		for i := range all {
			got = append(got, all[i].String())
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.line, got, err, c.want)
		}
	}
}

func TestParseGlobRefuses(t *testing.T) {
	for _, c := range []struct {
		line string // with ^ before the mistake
		want events.ID
	}{
		{"p ^nothing_*", events.BadProbeAddr},
		{"p ext4:^nothing_*", events.BadProbeAddr},
		{"p ^twic*", events.NonUniqueSymbol},
		{"^", events.Invalid},
		{"p^", events.Invalid},
	} {
		before, after, _ := strings.Cut(c.line, "^")
		_, err := events.ParseGlob(before+after, options(t, "kprobe amd64"), kernel().Functions)
		var mistake *events.Error
		if !errors.As(err, &mistake) || mistake.ID != c.want || mistake.Pos != len(before) {
			t.Errorf("%s: %v", c.line, err)
		}
	}
}
