//go:build unicorn

package tracer_test

import (
	"fmt"
	"slices"
	"testing"

	"xol/arch"
	"xol/image"
	"xol/rpn"
	"xol/runtime"
	"xol/tracer"
)

// TestProgram counts the bytes that the strings given to a function have, and
// logs the first of them.
func TestProgram(t *testing.T) {
	eachProgram(t, func(t *testing.T, name, level string) {
		tr := trace(t, name, level, tracer.Options{})
		program, err := rpn.Assemble(`
			global calls
			global first
			push 1
			addto calls
			arg 0
			load1
			set first
			arg 0
			logstr "text" 5
			exit
		`, &rpn.Target{File: tr.isa.Registers(), Convention: tr.isa.Convention(), Order: tr.isa.ByteOrder()})
		if err != nil {
			t.Fatal(err)
		}
		globals, log := program.NewGlobals(), new(logged)
		ended := map[rpn.Status]int{}
		_, err = tr.r.Attach(runtime.Probe{Symbol: "length", PreHandler: tracer.ProgramHandler(program, globals, log, func(r rpn.Result, err error) {
			if err != nil {
				t.Error(err)
			}
			ended[r.Status]++
		})})
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(3) {
			tr.call(t, "length", textAddr+i)
		}
		if want := []string{`text "hello"`, `text "ello,"`, `text "llo, "`}; !slices.Equal(log.lines, want) {
			t.Errorf("log %q, want %q", log.lines, want)
		}
		if n := ended[rpn.Exited]; n != 3 || len(ended) != 1 {
			t.Errorf("the runs ended %v, want 3 by exit", ended)
		}
	})
}

type logged struct{ lines []string }

func (l *logged) Values(name string, values []uint64) {
	l.lines = append(l.lines, fmt.Sprint(name, values))
}

func (l *logged) String(name string, text []byte, _ bool) {
	l.lines = append(l.lines, fmt.Sprintf("%s %q", name, text))
}

// TestMark puts probes on the marker server:request of a program that was
// assembled for each ISA.
func TestMark(t *testing.T) {
	for _, name := range arch.Names() {
		t.Run(name, func(t *testing.T) {
			l := load(t, name, "../cmd/xol/testdata/markers-"+name+".elf")
			tr := l.tracer(t, tracer.Options{})
			markers, err := l.img.Markers()
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(markers, func(m image.Marker) bool { return m.Name == "request" })
			var got []tracer.ArgValue
			probe, err := tr.Mark(markers[i], func(_ *runtime.Context, values []tracer.ArgValue) { got = slices.Clone(values) })
			if err != nil {
				t.Fatal(err)
			}
			listeners := func() uint16 {
				var b [2]byte
				if err := l.m.Read(b[:], markers[i].Semaphore); err != nil {
					t.Fatal(err)
				}
				return l.isa.ByteOrder().Uint16(b[:])
			}
			if n := listeners(); n != 1 {
				t.Errorf("%d listen, want 1", n)
			}
			l.call(t, "main", 0x1234, ^uint64(4))
			if len(got) < 2 || got[0] != (tracer.ArgValue{Value: 0x1234}) || got[1] != (tracer.ArgValue{Value: ^uint64(4)}) {
				t.Errorf("%s: %+v, want 0x1234 and -5 first", markers[i].Args, got)
			}
			if err := probe.Close(); err != nil {
				t.Fatal(err)
			}
			got = nil
			l.call(t, "main", 1, 2)
			if got != nil || listeners() != 0 {
				t.Errorf("after Close: %v, %d listen", got, listeners())
			}
		})
	}
}
