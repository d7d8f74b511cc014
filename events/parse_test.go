package events_test

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"xol/arch/amd64"
	"xol/arch/arm64"
	"xol/arch/ppc64"
	"xol/events"
)

// isas are those that lines of testdata name.
var isas = map[string]events.ISA{"amd64": amd64.ISA{}, "arm64": arm64.ISA{}, "ppc64": ppc64.ISA{}}

const endbr64 = 4 // bytes

// kernel returns the names that the lines of testdata use.
func kernel() *events.Table {
	t := events.NewTable([]events.Symbol{
		{Name: "vfs_read", Addr: 0xffffffff81200000, Size: 0x100, Func: true},
		{Name: "vfs_write", Addr: 0xffffffff81200100, Size: 0x80, Func: true},
		{Name: "do_sys_open", Addr: 0xffffffff81200200, Size: 0xd6, Func: true},
		{Name: "do_exit.cold", Addr: 0xffffffff81200300, Size: 0x10, Func: true},
		{Name: "twice", Addr: 0xffffffff81200400, Size: 0x10, Func: true},
		{Name: "twice", Addr: 0xffffffff81200500, Size: 0x10, Func: true},
		{Name: "jiffies", Addr: 0xffffffff82000000, Size: 8},
		{Name: "ext4_file_open", Module: "ext4", Addr: 0xffffffffa0000000, Size: 0x40, Func: true},
	})
	t.Landing = func(addr uint64) uint64 {
		if addr == 0xffffffff81200000 {
			return endbr64
		}
		return 0
	}
	return t
}

// fakeFile is a file, or a directory.
type fakeFile struct{ mode fs.FileMode }

func (f fakeFile) Name() string       { return "file" }
func (f fakeFile) Size() int64        { return 0 }
func (f fakeFile) Mode() fs.FileMode  { return f.mode }
func (f fakeFile) ModTime() time.Time { return time.Time{} }
func (f fakeFile) IsDir() bool        { return f.mode.IsDir() }
func (f fakeFile) Sys() any           { return nil }

func stat(path string) (fs.FileInfo, error) {
	switch {
	case strings.HasPrefix(path, "/nowhere/"):
		return nil, fs.ErrNotExist
	case path == "/usr/bin":
		return fakeFile{fs.ModeDir}, nil
	}
	return fakeFile{}, nil
}

// options returns those for a file and ISA, "kprobe amd64".
func options(t testing.TB, where string) events.Options {
	t.Helper()
	kind, isa, _ := strings.Cut(where, " ")
	opt := events.Options{ISA: isas[isa], Symbols: kernel(), Stat: stat}
	if kind == events.Uprobe.String() {
		opt.Kind = events.Uprobe
	}
	if opt.ISA == nil || kind != opt.Kind.String() {
		t.Fatalf("%q is no file and ISA", where)
	}
	return opt
}

// row is a line of testdata/lines.txt.
type row struct{ where, line, want, why string }

func rows(t testing.TB) []row {
	t.Helper()
	data, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []row
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 4 {
			t.Fatalf("%q has %d columns", line, len(cells))
		}
		all = append(all, row{cells[0], cells[1], cells[2], cells[3]})
	}
	return all
}

func TestParse(t *testing.T) {
	all := rows(t)
	if len(all) < 150 {
		t.Errorf("testdata has %d lines", len(all))
	}
	for _, r := range all {
		opt := options(t, r.where)
		if want, ok := strings.CutPrefix(r.want, "= "); ok {
			checkAccepted(t, r, want, opt)
		} else {
			checkRefused(t, r, events.ID(r.want), opt)
		}
	}
}

func checkAccepted(t *testing.T, r row, want string, opt events.Options) {
	t.Helper()
	e, err := events.Parse(r.line, opt)
	if err != nil {
		t.Errorf("%s: %s (%s): %v", r.where, r.line, r.why, err)
		return
	}
	if got := e.String(); got != want {
		t.Errorf("%s: %s (%s)\n got %s\nwant %s", r.where, r.line, r.why, got, want)
	}
	again, err := events.Parse(want, opt)
	if err != nil || !reflect.DeepEqual(again, e) {
		t.Errorf("%s: %s becomes %+v, that line %+v, %v", r.where, r.line, e, again, err)
	}
}

func checkRefused(t *testing.T, r row, want events.ID, opt events.Options) {
	t.Helper()
	before, after, ok := strings.Cut(r.line, "^")
	if !ok {
		t.Errorf("%s: %s does not mark the mistake", r.where, r.line)
	}
	e, err := events.Parse(before+after, opt)
	var mistake *events.Error
	if !errors.As(err, &mistake) {
		t.Errorf("%s: %s (%s): got %+v, %v, want %s", r.where, r.line, r.why, e, err, want)
		return
	}
	if mistake.ID != want || mistake.Pos != len(before) {
		t.Errorf("%s: %s (%s): got %s at %d, want %s at %d", r.where, r.line, r.why, mistake.ID, mistake.Pos, want, len(before))
	}
	if mistake.ID.Text() == "" || mistake.ID.Explanation() == "" {
		t.Errorf("%s has no text", mistake.ID)
	}
}

func TestParseCountsSpaces(t *testing.T) {
	line := "p:x  vfs_read\t%ax  &1"
	_, err := events.Parse(line, options(t, "kprobe amd64"))
	var mistake *events.Error
	if !errors.As(err, &mistake) {
		t.Fatal(err)
	}
	if mistake.Pos != strings.Index(line, "&") {
		t.Errorf("mistake at %d", mistake.Pos)
	}
	if want := line + "\n             \t     ^"; mistake.Caret() != want {
		t.Errorf("got\n%s\nwant\n%s", mistake.Caret(), want)
	}
}

func TestParseWithoutKnowledge(t *testing.T) {
	for _, c := range []struct {
		kind       events.Kind
		line, want string
	}{
		{events.Kprobe, "p any_function %any_register", "p:kprobes/p_any_function_0 any_function arg1=%any_register"},
		{events.Kprobe, "r any_function $arg1", "r:kprobes/r_any_function_0 any_function arg1=$arg1"},
		{events.Uprobe, "p /nowhere/prog:0x10", "p:uprobes/p_prog_0x10 /nowhere/prog:0x0000000000000010"},
	} {
		e, err := events.Parse(c.line, events.Options{Kind: c.kind})
		if err != nil || e.String() != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.line, e.String(), err, c.want)
		}
	}
}

func TestParseLines(t *testing.T) {
	opt := options(t, "kprobe amd64")
	all, err := events.ParseLines("# nothing\n\np:a vfs_read # first\n  r:b vfs_read\n-:c", opt)
	var got []string
	for i := range all {
		got = append(got, all[i].String())
	}
	want := []string{"p:kprobes/a vfs_read", "r:kprobes/b vfs_read", "-:c"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	all, err = events.ParseLines("p vfs_read\np nothing\np vfs_write", opt)
	var mistake *events.Error
	if len(all) != 1 || !errors.As(err, &mistake) || mistake.Line != "p nothing" {
		t.Errorf("got %v, %v", all, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, r := range rows(f) {
		f.Add(strings.Replace(r.line, "^", "", 1), strings.HasPrefix(r.where, "uprobe"))
	}
	f.Fuzz(func(t *testing.T, line string, uprobe bool) {
		opt := events.Options{ISA: amd64.ISA{}}
		if uprobe {
			opt.Kind = events.Uprobe
		}
		e, err := events.Parse(line, opt)
		if err != nil {
			var mistake *events.Error
			if !errors.As(err, &mistake) || mistake.Pos < 0 || mistake.Pos > len(line) || mistake.ID.Text() == "" {
				t.Fatalf("%q: %v", line, err)
			}
			return
		}
		again, err := events.Parse(e.String(), opt)
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%q is %+v, but %q is %+v, %v", line, e, e.String(), again, err)
		}
		if p, err := events.Compile(&e, amd64.ISA{}, opt); err == nil {
			checkRecord(t, p)
		}
	})
}

// checkRecord asks for one value of each argument, also where there is little
// memory.
func checkRecord(t *testing.T, p *events.Program) {
	t.Helper()
	g := testGuest(t, amd64.ISA{})
	h := events.Hit{Registers: g, Memory: g, Entry: p.Entry(g, g)}
	values, err := p.Record(&h)
	if err != nil || len(values) != len(p.Event().Args) {
		t.Fatalf("%s: %d values, %v", p.Event().String(), len(values), err)
	}
	for i := range values {
		if text := p.Text(&h, values); !strings.Contains(text, " "+values[i].Name+"=") {
			t.Fatalf("%s is not in %q", values[i].Name, text)
		}
	}
}
