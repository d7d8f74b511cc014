package events_test

import (
	"errors"
	"strings"
	"testing"

	"xol/arch/amd64"
	"xol/events"
)

// filtered compiles an event whose arguments are constants, and what it records.
func filtered(t testing.TB) (*events.Program, []events.Value) {
	t.Helper()
	e, err := events.Parse(`p:e f size=\5000:u64 neg=\-3:s32 name=\"libc.so":string bad=+0(%di) list=+0(%di):u8[2]`, events.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := events.Compile(&e, amd64.ISA{}, events.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(amd64.ISA{}) // which has no memory
	values, err := p.Record(&events.Hit{Registers: g, Memory: g})
	if err != nil {
		t.Fatal(err)
	}
	return p, values
}

// The syntax is that of Documentation/trace/events.rst.
func TestFilter(t *testing.T) {
	program, values := filtered(t)
	task := events.Task{Comm: "bash", PID: 42, CPU: 3}
	for _, c := range []struct {
		text string
		want bool
	}{
		{"size == 5000", true},
		{"size == 0x1388", true},
		{"size != 5000", false},
		{"size > 4999", true},
		{"size > 5000", false},
		{"size >= 5000", true},
		{"size < 5001", true},
		{"size <= 4999", false},
		{"size & 8", true},
		{"size & 1", false},
		{"neg < 0", true},
		{"neg == -3", true},
		{"neg > -4", true},
		{"size > -1", false}, // it has no sign
		{`name == "libc.so"`, true},
		{`name == 'libc.so'`, true},
		{`name != "libc.so"`, false},
		{`name ~ "lib*"`, true},
		{`name ~ "*.a"`, false},
		{"name == libc.so", true},
		{"comm == bash", true},
		{`COMM ~ "b?sh"`, true},
		{"common_pid == 42", true},
		{"cpu == 3", true},
		{"CPU != 3", false},
		{"bad == 0", false},
		{"!(bad == 0)", true},
		{"size == 1 || neg < 0", true},
		{"size == 1 || neg < 0 && cpu == 1", false},
		{"(size == 1 || neg < 0) && cpu == 3", true},
		{"size==5000&&cpu==3", true},
		{"!(size == 5000)", false},
		{"! size == 1", true},
	} {
		f, err := program.Filter(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := f.Match(&task, values); got != c.want {
			t.Errorf("%s: %v", c.text, got)
		}
	}
}

func TestFilterRefuses(t *testing.T) {
	program, _ := filtered(t)
	for _, c := range []struct {
		text string
		pos  int
		says string
	}{
		{"", 0, "name of a field"},
		{"sise > 1", 0, "no such field (there are size, neg, name, bad, list, common_pid, comm, cpu)"},
		{"size", 4, "want =="},
		{"size = 1", 5, "want =="},
		{"size > ", 7, "want a number"},
		{"size > big", 7, "want a number"},
		{"size > 1 2", 9, "want && or ||"},
		{"size ~ 1", 5, "numbers are compared"},
		{`name > "a"`, 5, "strings are compared"},
		{`name == "a`, 8, "not closed"},
		{"name == ", 8, "want a string"},
		{"(size > 1", 9, "want )"},
		{"size > 1)", 8, "want && or ||"},
		{"size > 1 &&", 11, "name of a field"},
		{"list == 1", 0, "an array"},
	} {
		_, err := program.Filter(c.text)
		var wrong *events.FilterError
		if !errors.As(err, &wrong) || wrong.Pos != c.pos || !strings.Contains(wrong.What, c.says) {
			t.Errorf("%q: %+v", c.text, err)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(`size > 4096 && (comm == "sh" || !name ~ "*.so")`)
	f.Fuzz(func(t *testing.T, text string) {
		program, values := filtered(t)
		if c, err := program.Filter(text); err == nil {
			c.Match(&events.Task{}, values)
		} else if e := err.(*events.FilterError); e.Pos > len(text) {
			t.Errorf("%q: at %d", text, e.Pos)
		}
	})
}
