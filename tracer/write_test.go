//go:build unicorn

package tracer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"xol/events"
	"xol/image"
	"xol/runtime"
	"xol/tracer"
	"xol/usdt"
)

// TestWriteText writes a whole file, as scripts do.
func TestWriteText(t *testing.T) {
	tr := trace(t, "amd64", "2", tracer.Options{})
	text := "# what the strings are\n\np:a/x length # of a string\nr:a/y length\n \t\np:a/z nosuch\np:a/w length\n"
	var mistake *events.Error
	if err := tr.Write(text); !errors.As(err, &mistake) || mistake.Line != "p:a/z nosuch" {
		t.Errorf("%v, want the mistake in the fourth line", err)
	}
	if want := []string{"p:a/x length", "r:a/y length"}; !slices.Equal(tr.Events(), want) {
		t.Errorf("events %q, want %q", tr.Events(), want)
	}
	for _, text := range []string{"", "\n", "# nothing"} {
		if err := tr.Write(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestJoin puts several probes on one event, and takes one of them away, as
// kprobe_multiprobe.tc among Linux's selftests does.
func TestJoin(t *testing.T) {
	eachProgram(t, func(t *testing.T, isa, level string) {
		tr := trace(t, isa, level, tracer.Options{})
		if err := errors.Join(tr.Write("p:a/x length text=$arg1"), tr.Enable("a/x", true), tr.Write("p:a/x find text=$arg1")); err != nil {
			t.Fatal(err)
		}
		for line, want := range map[string]events.ID{
			"p:a/x length text=$arg1":    events.SameProbe,
			"r:a/x crc32":                events.DiffProbeType,
			"p:a/x crc32":                events.DiffArgType,
			"p:a/x crc32 text=$arg1:u32": events.DiffArgType,
		} {
			var mistake *events.Error
			if err := tr.Write(line); !errors.As(err, &mistake) || mistake.ID != want {
				t.Errorf("%s: %v, want %s", line, err, want)
			}
		}
		if want := []string{"p:a/x length text=$arg1", "p:a/x find text=$arg1"}; !slices.Equal(tr.Events(), want) {
			t.Errorf("events %q, want %q", tr.Events(), want)
		}
		tr.call(t, "length", textAddr)
		tr.call(t, "find", textAddr, textAddr)
		hits := func(function string) int {
			return strings.Count(strings.Join(tr.lines, "\n"), "x: ("+function+"+")
		}
		if hits("length") == 0 || hits("find") != 1 {
			t.Errorf("lines %q, want hits of both functions, as the event is enabled", tr.lines)
		}
		if err := tr.Write("-:a/x crc32"); !errors.Is(err, tracer.ErrNoEvent) {
			t.Errorf("removing a place that has no probe: %v", err)
		}
		if err := tr.Write("-:a/x length"); err != nil {
			t.Error(err)
		}
		tr.lines = nil
		tr.call(t, "length", textAddr)
		tr.call(t, "find", textAddr, textAddr)
		if hits("length") != 0 || hits("find") != 1 {
			t.Errorf("lines %q, want a hit of find only", tr.lines)
		}
	})
}

// TestData reads a variable by its name: the constants of SHA-256, which FIPS
// 180-4 lists.
func TestData(t *testing.T) {
	eachProgram(t, func(t *testing.T, isa, level string) {
		tr := trace(t, isa, level, tracer.Options{})
		if err := errors.Join(tr.Write("p:a/x length k=@rounds:x32 k1=+4(\\0):x32 k4=@rounds+16:x32"), tr.Enable("", true)); err != nil {
			t.Fatal(err)
		}
		tr.call(t, "length", textAddr)
		if want := "k=0x428a2f98 k1=(fault) k4=0x3956c25b"; len(tr.lines) == 0 || !strings.HasSuffix(tr.lines[0], want) {
			t.Errorf("lines %q, want %s", tr.lines, want)
		}
		var missing *events.UnavailableError
		if err := tr.Write("p length @nosuch"); !errors.As(err, &missing) {
			t.Errorf("an unknown variable: %v", err)
		}
	})
}

// TestMarkStripped has an argument of glibc's libc, which names a symbol that is
// not in the symbol table, between two others.
func TestMarkStripped(t *testing.T) {
	tr := trace(t, "amd64", "2", tracer.Options{})
	length, err := tr.p.Function("length")
	if err != nil {
		t.Fatal(err)
	}
	marker := image.Marker{Provider: "libc", Name: "memory_mallopt_mmap_max", Location: length.Entry, Args: "8@%rdi -4@72+mp_(%rip) 4@$7"}
	var got []tracer.ArgValue
	p, err := tr.Mark(marker, func(_ *runtime.Context, values []tracer.ArgValue) { got = slices.Clone(values) })
	if err != nil {
		t.Fatal(err)
	}
	tr.call(t, "length", textAddr)
	var unclear *usdt.Error
	if len(got) != 3 || got[0] != (tracer.ArgValue{Value: textAddr}) || got[2] != (tracer.ArgValue{Value: 7}) || !errors.As(got[1].Err, &unclear) {
		t.Errorf("%+v", got)
	}
	if len(p.Args) != 3 || p.Args[1].Text != "-4@72+mp_(%rip)" {
		t.Errorf("arguments %+v", p.Args)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestMarkWithoutSemaphore: a marker whose counter is in no memory gets no probe.
func TestMarkWithoutSemaphore(t *testing.T) {
	tr := trace(t, "amd64", "2", tracer.Options{})
	length, err := tr.p.Function("length")
	if err != nil {
		t.Fatal(err)
	}
	marker := image.Marker{Provider: "p", Name: "n", Location: length.Entry, Semaphore: 0x7000_0000}
	hits := 0
	if p, err := tr.Mark(marker, func(*runtime.Context, []tracer.ArgValue) { hits++ }); err == nil || p != nil {
		t.Errorf("%v, %v", p, err)
	}
	tr.call(t, "length", textAddr)
	if hits != 0 {
		t.Errorf("%d hits", hits)
	}
}

// TestLocalEntry: after the setup of the TOC pointer is a function's entry as
// well, where perf puts its probes [arch/powerpc/kernel/kprobes.c,
// arch_kprobe_on_func_entry].
func TestLocalEntry(t *testing.T) {
	tr := trace(t, "ppc64le", "2", tracer.Options{})
	if err := errors.Join(
		tr.Write("p:a/entry crc32+8 text=$arg1 n=$arg2"), tr.Write("r:a/return crc32+8 text=$arg1"), tr.Enable("a/", true),
	); err != nil {
		t.Fatal(err)
	}
	tr.call(t, "crc32", textAddr, 5)
	if len(tr.lines) != 2 || !strings.HasSuffix(tr.lines[0], "text=0x60000000 n=0x5") || !strings.HasSuffix(tr.lines[1], "<- crc32) text=0x60000000") {
		t.Errorf("lines %q", tr.lines)
	}
	var mistake *events.Error
	for line, want := range map[string]events.ID{"p crc32+12 $arg1": events.NoEntryArgs, "r crc32+12": events.BadReturnProbe} {
		if err := tr.Write(line); !errors.As(err, &mistake) || mistake.ID != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
