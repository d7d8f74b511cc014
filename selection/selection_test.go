package selection_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"xol/analyze"
	"xol/image"
	"xol/notation"
	"xol/selection"
)

// The fixtures are built by testdata/generate.sh; the addresses are those that nm and
// objdump print.
const (
	program = "testdata/prog"
	library = "testdata/libfix.so.1"
	markers = "../cmd/xol/testdata/markers-amd64.elf"
)

// As many lines objdump -d prints of them.
const programInstructions, libraryInstructions = 22, 20

// module opens a fixture as a module of process 1. name is its path there.
func module(t testing.TB, file, name string) *selection.Module {
	t.Helper()
	img, err := image.OpenFile(file, image.Options{Demangle: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	an, err := analyze.New(img, analyze.Options{Profile: "isa"})
	if err != nil {
		t.Fatal(err)
	}
	return &selection.Module{Path: name, Analysis: an, Process: 1}
}

// modules returns a program and a library as a process has them.
func modules(t testing.TB) []*selection.Module {
	all := []*selection.Module{
		module(t, program, "/usr/bin/prog"), module(t, library, "/usr/lib/x86_64-linux-gnu/libfix.so.1"),
		module(t, markers, "/usr/lib/libmark-2.31.so"),
	}
	all[0].Program = true
	return all
}

func newSelection(t testing.TB, probes, all []string) *selection.Selection {
	t.Helper()
	var parsed []notation.Probe
	for _, text := range probes {
		p, err := notation.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, p)
	}
	s, err := selection.New(parsed, all)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write writes a place as the tables here have it: file:symbol+offset.
func write(m *selection.Module, p *selection.Place) string {
	text := m.Path[strings.LastIndexByte(m.Path, '/')+1:] + ":" + p.Symbol
	if p.Offset != 0 {
		text += fmt.Sprintf("+%#x", p.Offset)
	}
	if p.Return {
		text += " return"
	}
	if p.Through != "" {
		text += " through " + p.Through
	}
	if p.Marker != nil {
		text += " marker " + p.Marker.Provider + ":" + p.Marker.Name
	}
	return text
}

func selected(t testing.TB, s *selection.Selection, modules []*selection.Module) (found []string) {
	t.Helper()
	for _, m := range modules {
		places, err := s.In(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		for i := range places {
			found = append(found, write(m, &places[i]))
		}
	}
	return found
}

func TestIn(t *testing.T) {
	for _, tc := range []struct {
		name, probe string
		want        []string
	}{
		{"of the program only", "_start", []string{"prog:_start"}},
		{"of both: the program's", "beta", []string{"prog:beta"}},
		{"imported by the program", "alpha", []string{"libfix.so.1:alpha"}},
		{"with an offset", "beta+3", []string{"prog:beta+0x3"}},
		{"its return", "beta%return", []string{"prog:beta return"}},
		{"its return, in short", "r:beta", []string{"prog:beta return"}},
		{"a library's, by its short name", "fix:beta", []string{"libfix.so.1:beta"}},
		{"a library's, with lib", "libfix:beta", []string{"libfix.so.1:beta"}},
		{"a library's, without a version", "libfix.so:beta", []string{"libfix.so.1:beta"}},
		{"a library's, by its whole name", "libfix.so.1:beta", []string{"libfix.so.1:beta"}},
		{"a library's, by its path", "/usr/lib/x86_64-linux-gnu/libfix.so.1:beta", []string{"libfix.so.1:beta"}},
		{"a library's, by a pattern", "/usr/lib/*/libfix.so.?:beta", []string{"libfix.so.1:beta"}},
		{"a library with its version in the name", "mark:main", []string{"libmark-2.31.so:main"}},
		{"the program's, by its name", "prog:beta", []string{"prog:beta"}},
		{"in all files", "*:beta", []string{"prog:beta", "libfix.so.1:beta"}},
		{"for bpftrace", "uprobe:libfix:alpha", []string{"libfix.so.1:alpha"}},
		{"its return for bpftrace", "uretprobe:libfix:alpha", []string{"libfix.so.1:alpha return"}},
		{"a pattern, in the program", "*ta", []string{"prog:beta"}},
		{"a pattern, in a library", "libfix:*ta", []string{"libfix.so.1:beta"}},
		{"a pattern that the program has nothing of", "alph?", []string{"libfix.so.1:alpha"}},
		{"a line of the program", "prog.c:8", []string{"prog:beta"}},
		{"an address of the program", "0x353", []string{"prog:beta+0x3"}},
		{"an offset in the program's file", "file:0x354", []string{"prog:_start"}},
		{"an address of a library", "libfix:0x367", []string{"libfix.so.1:alpha+0x3"}},
		{"an offset in a library's file", "uprobe:libfix:0x364", []string{"libfix.so.1:alpha"}},
		{"a version", "copy@V1", []string{"libfix.so.1:copy"}},
		{"all versions", "copy", []string{"libfix.so.1:copy", "libfix.so.1:copy"}},
		{"C++, with parameters", "ns::gamma(int)", []string{"libfix.so.1:ns::gamma(int)"}},
		{"C++, without", "libfix:ns::gamma", []string{"libfix.so.1:ns::gamma(int)"}},
		{"an IFUNC", "pick", []string{"libfix.so.1:.text through pick", "libfix.so.1:.text+0x4 through pick"}},
		{"an IFUNC's resolver", "pick+6", []string{"libfix.so.1:pick+0x6"}},
		{"a marker", "usdt:libmark:server:request", []string{"libmark-2.31.so:main+0x1 marker server:request"}},
		{"markers of all files", "usdt:*:serv*:st*", []string{
			"libmark-2.31.so:main marker server:start", "libmark-2.31.so:main+0x2 marker server:stack", "libmark-2.31.so:main+0x3 marker server:static"}},
		{"a line of kprobe_events", "p:g/e alpha x=%di", []string{"libfix.so.1:alpha"}},
		{"a line of kprobe_events, of a file", "r:g/e libfix:alpha $retval", []string{"libfix.so.1:alpha return"}},
		{"a definition of perf", "e=alpha x=%di", []string{"libfix.so.1:alpha"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSelection(t, []string{tc.probe}, nil)
			got := selected(t, s, modules(t))
			if !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if missing := s.Missing(); len(missing) > 0 {
				t.Error(missing[0])
			}
		})
	}
}

// TestFunctionsOfLibrary: those that a file has no name for are meant as well.
func TestFunctionsOfLibrary(t *testing.T) {
	s := newSelection(t, []string{"libfix:*"}, nil)
	got := selected(t, s, modules(t))
	want := []string{
		"libfix.so.1:.text", "libfix.so.1:.text+0x4", "libfix.so.1:alpha", "libfix.so.1:beta",
		"libfix.so.1:copy", "libfix.so.1:copy", "libfix.so.1:ns::gamma(int)",
	}
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], " through")
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestProgramsOfProcess: what one program has of its own does not count in another.
func TestProgramsOfProcess(t *testing.T) {
	s := newSelection(t, []string{"beta"}, nil)
	m := modules(t)
	first := selected(t, s, m[:2])
	other := *m[2] // the process runs another program, which has no beta
	other.Program = true
	second := selected(t, s, []*selection.Module{&other, m[1]})
	if !slices.Equal(first, []string{"prog:beta"}) || !slices.Equal(second, []string{"libfix.so.1:beta"}) {
		t.Errorf("%q, then %q", first, second)
	}
}

func TestAll(t *testing.T) {
	for _, tc := range []struct {
		name string
		all  []string
		want int // lines of objdump -d
	}{
		{"of the program", []string{""}, programInstructions},
		{"of a library", []string{"libfix"}, libraryInstructions},
		{"of both", []string{"", "libfix"}, programInstructions + libraryInstructions},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSelection(t, nil, tc.all)
			if got := selected(t, s, modules(t)); len(got) != tc.want {
				t.Errorf("%d places, want %d: %q", len(got), tc.want, got)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	for _, tc := range []struct {
		probe, says string
		later       bool
	}{
		{"alpa", "alpa: there is no such function in prog, libfix.so.1, libmark-2.31.so (did you mean alpha?)", false},
		{"libfix:betta", "libfix:betta: there is no such function in libfix.so.1 (did you mean beta?)", false},
		{"fix:zzz*", "fix:zzz*: there is no such function in libfix.so.1", false},
		{"libnone:alpha", "libnone:alpha: no file libnone is mapped, but prog, libfix.so.1, libmark-2.31.so", true},
		{"none.c:4", "none.c:4: ", false},
		{"0x1", "0x1: ", false},
		{"usdt:libmark:server:none", "no static marker server:none", false},
		{"r:prog.c:9", "is not where a function starts", false},
	} {
		t.Run(tc.probe, func(t *testing.T) {
			s := newSelection(t, []string{tc.probe, "beta"}, nil)
			selected(t, s, modules(t))
			missing := s.Missing()
			if len(missing) != 1 {
				t.Fatalf("%d are missing: %v", len(missing), missing)
			}
			if e := missing[0]; !strings.Contains(e.Error(), tc.says) || e.Later != tc.later {
				t.Errorf("%v, later: %v", e, e.Later)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for _, text := range []string{"kprobe:vfs_read", "fentry:vfs_read"} {
		p, err := notation.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var wrong *notation.Error
		if _, err := selection.New([]notation.Probe{p}, nil); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
