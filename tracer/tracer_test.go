//go:build unicorn

package tracer_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"xol/arch"
	"xol/events"
	"xol/guest"
	"xol/image"
	"xol/internal/isatest"
	"xol/machine"
	"xol/runtime"
	"xol/tracer"
)

const textAddr = 0x6000_0000

// loaded is a program on a machine of its ISA, under a runtime.
type loaded struct {
	isa arch.Prober
	m   *guest.Machine
	p   *guest.Program
	img *image.Image
	r   *runtime.Runtime
}

func load(t testing.TB, isaName, path string) *loaded {
	t.Helper()
	isa, err := isatest.Named(isaName)
	if err != nil {
		t.Fatal(err)
	}
	m, err := guest.Open(guest.Options{ISA: isa})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := m.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.OpenFile(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	r, err := runtime.New(m, isa, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Load("guest", img); err != nil {
		t.Fatal(err)
	}
	return &loaded{isa, m, p, img, r}
}

func (l *loaded) call(t testing.TB, name string, args ...uint64) uint64 {
	t.Helper()
	f, err := l.p.Function(name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.r.Call(t.Context(), 0, f, args...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (l *loaded) tracer(t testing.TB, opt tracer.Options) *tracer.Tracer {
	t.Helper()
	tr, err := tracer.New(l.r, l.isa, l.img, opt)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// traced is a program with a tracer, and what it wrote.
type traced struct {
	*loaded
	*tracer.Tracer
	lines []string
}

func trace(t testing.TB, isa, level string, opt tracer.Options) *traced {
	t.Helper()
	tr := &traced{loaded: load(t, isa, fmt.Sprintf("../testdata/guest/%s-O%s", isa, level))}
	if err := errors.Join(
		tr.m.Map(textAddr, guest.PageSize, machine.PermRead|machine.PermWrite),
		tr.m.Write(textAddr, []byte("hello, world\x00")),
	); err != nil {
		t.Fatal(err)
	}
	opt.Line = func(line string) { tr.lines = append(tr.lines, line) }
	tr.Tracer = tr.tracer(t, opt)
	return tr
}

func eachProgram(t *testing.T, f func(t *testing.T, isa, level string)) {
	for _, isa := range arch.Names() {
		for _, level := range []string{"0", "2"} {
			t.Run(isa+" -O"+level, func(t *testing.T) { f(t, isa, level) })
		}
	}
}

// place matches what stands for addresses in a line.
var place = regexp.MustCompile(`\+0x[0-9a-f]+(/0x[0-9a-f]+)?`)

func TestLines(t *testing.T) {
	eachProgram(t, func(t *testing.T, isa, level string) {
		tr := trace(t, isa, level, tracer.Options{})
		for _, line := range []string{
			"p:strings/entry length text=+0($arg1):string first=+0($arg1):x8 all=+0($arg1):char[5]",
			"r:strings/return length n=$retval:u64",
			"r:strings/both find text=$arg1:x64 found=$retval:s64",
		} {
			if err := tr.Write(line); err != nil {
				t.Fatal(err)
			}
		}
		tr.call(t, "length", textAddr)
		if len(tr.lines) != 0 {
			t.Errorf("lines of events that are not enabled: %q", tr.lines)
		}
		if err := tr.Enable("strings/", true); err != nil {
			t.Fatal(err)
		}
		tr.call(t, "length", textAddr)
		tr.call(t, "find", textAddr, textAddr+7)
		var got []string
		for _, line := range tr.lines {
			if strings.Contains(line, "both:") || len(got) < 2 {
				got = append(got, place.ReplaceAllString(line[strings.Index(line, ": ")+2:], "+"))
			}
		}
		want := []string{
			`entry: (length+) text="hello, world" first=0x68 all={'h','e','l','l','o'}`,
			`return: (0x7fff000000000000 <- length) n=12`,
			`both: (0x7fff000000000000 <- find) text=0x60000000 found=7`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if err := tr.Write("-:strings/entry"); !errors.Is(err, tracer.ErrBusy) || len(tr.Events()) != 3 {
			t.Errorf("removing an event that is enabled: %v, %q", err, tr.Events())
		}
		if err := errors.Join(tr.Enable("entry", false), tr.Write("-:strings/entry")); err != nil {
			t.Error(err)
		}
		if n := len(tr.Events()); n != 2 {
			t.Errorf("%d events are left, want 2: %q", n, tr.Events())
		}
	})
}

// What a hit's frame has beside registers is there in a real hit as well, and
// dentries are followed through the layout that the tracer was given.
func TestKernelArguments(t *testing.T) {
	frame := map[string]string{
		"amd64": "%orig_ax:s64", "ppc64": "%trap:u16", "ppc64le": "%msr:u8",
	}
	want := map[string]string{"amd64": "-1", "ppc64": "1792", "ppc64le": "1"}
	eachProgram(t, func(t *testing.T, isa, level string) {
		const dentry, layout = textAddr + 0x100, 0x18
		tr := trace(t, isa, level, tracer.Options{Layout: events.Layout{DentryName: layout}})
		name := make([]byte, 8)
		tr.isa.ByteOrder().PutUint64(name, textAddr)
		if err := tr.m.Write(dentry+layout, name); err != nil {
			t.Fatal(err)
		}
		line := "p:files/open length name=$arg1:%pd"
		if frame[isa] != "" {
			line += " f=" + frame[isa]
		}
		if err := errors.Join(tr.Write(line), tr.Enable("files/", true)); err != nil {
			t.Fatal(err)
		}
		tr.call(t, "length", dentry)
		expected := `name="hello, world"`
		if frame[isa] != "" {
			expected += " f=" + want[isa]
		}
		if len(tr.lines) != 1 || !strings.HasSuffix(tr.lines[0], expected) {
			t.Errorf("lines %q, want one that ends in %s", tr.lines, expected)
		}
	})
}

func TestRefusals(t *testing.T) {
	tr := trace(t, "amd64", "2", tracer.Options{})
	var mistake *events.Error
	for _, line := range []string{"p:x/y length %nosuch", "p nosuch", "p length +0"} {
		if err := tr.Write(line); !errors.As(err, &mistake) {
			t.Errorf("%q: %v, want an *events.Error", line, err)
		}
	}
	var refused *runtime.RegisterError
	if err := tr.Write("p:x/y length+1"); !errors.As(err, &refused) {
		t.Errorf("a probe inside an instruction: %v, want a *runtime.RegisterError", err)
	}
	for _, err := range []error{tr.Write("-:x/y"), tr.Enable("x/y", true)} {
		if !errors.Is(err, tracer.ErrNoEvent) {
			t.Errorf("an event that is not defined: %v", err)
		}
	}
	if n := len(tr.Events()); n != 0 {
		t.Errorf("%d events are defined: %q", n, tr.Events())
	}
}

// TestAggregations counts calls per function by a glob, and shows how the values
// of an argument are spread.
func TestAggregations(t *testing.T) {
	eachProgram(t, func(t *testing.T, isa, level string) {
		counts, lengths := new(events.Counts), new(events.Histogram)
		tr := trace(t, isa, level, tracer.Options{Values: func(e *events.Event, _ events.Task, values []events.Value) {
			counts.Add(e.Name)
			if e.Return && e.Symbol == "length" {
				lengths.AddValue(&values[0])
			}
		}})
		for _, line := range []string{"p crc32*", "p:calls/ length", "r:calls/returned length n=$retval:u64"} {
			if err := tr.Write(line); err != nil {
				t.Fatal(err)
			}
		}
		if err := tr.Enable("", true); err != nil {
			t.Fatal(err)
		}
		for i := range uint64(12) {
			tr.call(t, "length", textAddr+i)
		}
		for range 3 {
			tr.call(t, "crc32", textAddr, 5)
		}
		tr.call(t, "crc32_bitwise", textAddr, 5)
		const wantCounts = "@[p_crc32_bitwise_0]: 1\n@[p_crc32_0]: 3\n@[p_length_0]: 12\n@[returned]: 12\n"
		if got := counts.String(); got != wantCounts {
			t.Errorf("counts:\n%s\nwant\n%s", got, wantCounts)
		}
		rows := regexp.MustCompile(`(?m)^(\S+(?: \S+)?) +(\d+) \|`).FindAllStringSubmatch(lengths.String(), -1)
		var spread []string
		for _, row := range rows {
			spread = append(spread, row[1]+" "+row[2])
		}
		if want := []string{"[1] 1", "[2, 4) 2", "[4, 8) 4", "[8, 16) 5"}; !slices.Equal(spread, want) {
			t.Errorf("lengths from 1 to 12: %q, want %q", spread, want)
		}
	})
}
