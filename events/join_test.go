package events_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"xol/events"
)

func compiled(t *testing.T, line string) *events.Program {
	t.Helper()
	opt := options(t, "kprobe amd64")
	e, err := events.Parse(line, opt)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	p, err := events.Compile(&e, isas["amd64"], opt)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return p
}

// In a line that is refused, ^ stands before the byte that the error log points
// at. "selftest" is what kprobe_syntax_errors.tc expects.
func TestCheckJoin(t *testing.T) {
	for _, c := range []struct {
		there, line string
		want        events.ID
		why         string
	}{
		{`p:x vfs_read`, `^r:x vfs_write`, events.DiffProbeType, "selftest"},
		{`p:x vfs_read abcd=\1`, `p:x vfs_read ^bcd=\1`, events.DiffArgType, "selftest"},
		{`p:x vfs_read abcd=\1`, `p:x vfs_read ^abcd=\1:u8`, events.DiffArgType, "selftest"},
		{`p:x vfs_read abcd=\1`, `p:x vfs_read ^abcd=\"foo"`, events.DiffArgType, "selftest"},
		{`p:x vfs_read abcd=\1`, `^p:x vfs_read abcd=\1`, events.SameProbe, "selftest"},
		{`p:x vfs_read %ax`, `p:x  vfs_write  %ax ^%bx`, events.DiffArgType, "an argument more"},
		{`p:x vfs_read %ax %bx`, `p:x vfs_write %ax^`, events.DiffArgType, "the index is that after the last word"},
		{`p:x vfs_read +0(%di):u8[2]`, `p:x vfs_read ^+0(%di):u8[3]`, events.DiffArgType, "the number of elements counts"},
		{"p:x vfs_read\np:x vfs_write", `^p:x vfs_write`, events.SameProbe, "any of the probes counts"},
		{`p:x vfs_read %ax`, `p:x vfs_write %ax`, "", "another place"},
		{`p:x vfs_read %ax`, `p:x vfs_read+16 %ax`, "", "another offset"},
		{`p:x vfs_read %ax`, `p:x vfs_read %bx`, "", "other arguments of the same names and types"},
		{`p:x vfs_read %ax:u8`, `p:x vfs_write %ax:b3@2/8`, "", "a bitfield has the type of its container"},
		{`p:x vfs_read %ax`, `p:x vfs_write %ax:x64`, "", "x64 is the default"},
		{``, `p:x vfs_read`, "", "a new event"},
	} {
		var there []*events.Program
		for line := range events.Commands(c.there) {
			there = append(there, compiled(t, line))
		}
		before, after, marked := strings.Cut(c.line, "^")
		err := compiled(t, before+after).CheckJoin(before+after, there)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s joins %q (%s): %v", c.line, c.there, c.why, err)
			}
			continue
		}
		var mistake *events.Error
		if !errors.As(err, &mistake) || !marked || mistake.ID != c.want || mistake.Pos != len(before) || mistake.ID.Text() == "" {
			t.Errorf("%s joins %q (%s): %v, want %s at %d", c.line, c.there, c.why, err, c.want, len(before))
		}
	}
}

func TestRemoves(t *testing.T) {
	const event = `p:g/x vfs_read+16 a=%ax arg2=+8(%di):u8`
	for _, c := range []struct {
		line string
		want bool
	}{
		{"-:x", true},
		{"-:g/x", true},
		{"-:g/", true},
		{"-:y", false},
		{"-:h/x", false},
		{"-:h/", false},
		{"-:x vfs_read+16", true},
		{"-:x vfs_read", false},
		{"-:x vfs_read+0x10", false},
		{"-:g/ vfs_read+16 a=%ax", true},
		{"-:g/x vfs_read+16 a=%ax arg2=+8(%di):u8", true},
		{"-:g/x vfs_read+16 a=%ax +8(%di):u8", false},
		{"-:g/x vfs_read+16 a=%bx", false},
		{"-:g/x vfs_read+16 a=%ax arg2=+8(%di):u8 b=%bx", false},
	} {
		opt := options(t, "kprobe amd64")
		d, err := events.Parse(event, opt)
		if err != nil {
			t.Fatal(err)
		}
		e, err := events.Parse(c.line, opt)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Removes(&d); got != c.want {
			t.Errorf("%s removes %s: %v", c.line, event, got)
		}
	}
}

func TestCommands(t *testing.T) {
	got := slices.Collect(events.Commands("# nothing\n\n \t \np:a x # first\n  r:b y\\\n#\n-:c"))
	if want := []string{"p:a x ", `  r:b y\`, "-:c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
