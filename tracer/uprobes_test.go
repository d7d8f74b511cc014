//go:build unicorn

package tracer_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
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

const pieName = "/usr/bin/pie"

// processes are some that run the same file, at different addresses.
type processes struct {
	*tracer.Uprobes
	group *runtime.Uprobes
	isa   arch.Prober
	path  string
	file  *runtime.Executable
	lines []string
	pids  map[*runtime.Process]int
}

func newProcesses(t *testing.T, isaName string) *processes {
	t.Helper()
	isa, err := isatest.Named(isaName)
	if err != nil {
		t.Fatal(err)
	}
	s := &processes{group: &runtime.Uprobes{}, isa: isa, path: "../testdata/guest/pie/" + isaName, pids: map[*runtime.Process]int{}}
	img, err := image.OpenFile(s.path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	if s.file, err = runtime.NewExecutable(pieName, img); err != nil {
		t.Fatal(err)
	}
	s.Uprobes, err = tracer.NewUprobes(s.group, isa, []*runtime.Executable{s.file}, tracer.Options{
		Line: func(line string) { s.lines = append(s.lines, line) },
		ProcessTask: func(p *runtime.Process, cpu int) events.Task {
			return events.Task{Comm: "pie", PID: s.pids[p], CPU: cpu}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// process is one of them.
type process struct {
	*runtime.Process
	m *guest.Machine
	p *guest.Program
}

func (s *processes) start(t *testing.T, bias uint64) *process {
	t.Helper()
	m, err := guest.Open(guest.Options{ISA: s.isa})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	f, err := os.Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := m.LoadAt(f, bias)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runtime.New(m, s.isa, runtime.Options{Uprobes: true})
	if err != nil {
		t.Fatal(err)
	}
	started, err := s.group.Start(r)
	if err != nil {
		t.Fatal(err)
	}
	s.pids[started] = 100 + len(s.pids)
	if err := errors.Join(
		started.Map(s.file, bias),
		m.Map(textAddr, guest.PageSize, machine.PermRead|machine.PermWrite),
		m.Write(textAddr, []byte("hello, world\x00")),
	); err != nil {
		t.Fatal(err)
	}
	return &process{started, m, p}
}

func (p *process) call(t *testing.T, name string, args ...uint64) {
	t.Helper()
	f, err := p.p.Function(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Call(t.Context(), 0, f, args...); err != nil {
		t.Fatal(err)
	}
}

// entry returns the address in the file, and the offset in it, of a function's
// first instruction.
func (s *processes) entry(t *testing.T, name string) (addr, offset uint64) {
	t.Helper()
	functions, err := s.file.Image.Functions(image.ExtentSymbol)
	if err != nil {
		t.Fatal(err)
	}
	for i := range functions {
		if f := &functions[i]; f.Name == name {
			addr = f.Addr + f.LocalEntry
		}
	}
	offset, ok := s.file.Image.OffsetOf(addr)
	if !ok {
		t.Fatalf("%s is not in the file", name)
	}
	return addr, offset
}

// firstArgument is the register of argument 0, as fetch arguments call it.
var firstArgument = map[string]string{"amd64": "%di", "arm64": "%x0", "ppc64": "%gpr3", "ppc64le": "%gpr3"}

// TestUprobeLines has events in two processes, one of which starts later.
func TestUprobeLines(t *testing.T) {
	const early, late = 0x5555_5555_0000, 0x10_0000
	for _, name := range arch.Names() {
		t.Run(name, func(t *testing.T) {
			s := newProcesses(t, name)
			first := s.start(t, early)
			addr, offset := s.entry(t, "length")
			text := fmt.Sprintf("p:s/entry %[1]s:%#[2]x text=+0(%[3]s):string comm=$comm\nr:s/return %[1]s:%#[2]x n=$retval:u64 # result\n",
				pieName, offset, firstArgument[name])
			if err := s.Write(text); err != nil {
				t.Fatal(err)
			}
			first.call(t, "length", textAddr)
			if len(s.lines) != 0 {
				t.Errorf("lines of events that are not enabled: %q", s.lines)
			}
			if err := s.Enable("s/", true); err != nil {
				t.Fatal(err)
			}
			second := s.start(t, late)
			first.call(t, "length", textAddr)
			second.call(t, "length", textAddr+7)
			want := []string{
				fmt.Sprintf(`             pie-100     [000]      0.000000: entry: (%#x) text="hello, world" comm="pie"`, addr+early),
				fmt.Sprintf(`             pie-100     [000]      0.000000: return: (0x7fff000000000000 <- %#x) n=12`, addr+early),
				fmt.Sprintf(`             pie-101     [000]      0.000000: entry: (%#x) text="world" comm="pie"`, addr+late),
				fmt.Sprintf(`             pie-101     [000]      0.000000: return: (0x7fff000000000000 <- %#x) n=5`, addr+late),
			}
			if !slices.Equal(s.lines, want) {
				t.Errorf("got %q\nwant %q", s.lines, want)
			}
			if n := s.Hits("s/entry"); n != 2 {
				t.Errorf("%d hits, want 2", n)
			}
			s.lines = nil
			if err := errors.Join(s.Enable("", false), s.Write("-:s/entry")); err != nil {
				t.Fatal(err)
			}
			first.call(t, "length", textAddr)
			if len(s.lines) != 0 || len(first.Links()) != 0 {
				t.Errorf("disabled and removed: %q, %d probes", s.lines, len(first.Links()))
			}
			if want := []string{fmt.Sprintf("r:s/return %s:0x%016x n=$retval:u64", pieName, offset)}; !slices.Equal(s.Events(), want) {
				t.Errorf("events %q, want %q", s.Events(), want)
			}
		})
	}
}

// TestUprobeListens sees the program compute what its marker asks for, because
// the reference counter in the line says that somebody listens.
func TestUprobeListens(t *testing.T) {
	for _, name := range arch.Names() {
		t.Run(name, func(t *testing.T) {
			s := newProcesses(t, name)
			p := s.start(t, 0x10_0000)
			_, offset := s.entry(t, "marked")
			counter, ok := s.file.Image.SymbolAddress("semaphore")
			counterOffset, inFile := s.file.Image.OffsetOf(counter)
			if !ok || !inFile {
				t.Fatal("no semaphore")
			}
			listeners := func() uint16 {
				var b [2]byte
				if err := p.m.Read(b[:], counter+0x10_0000); err != nil {
					t.Fatal(err)
				}
				return s.isa.ByteOrder().Uint16(b[:])
			}
			if err := s.Write(fmt.Sprintf("p:s/m %s:%#x(%#x)", pieName, offset, counterOffset)); err != nil {
				t.Fatal(err)
			}
			for _, on := range []bool{true, true, false, false} {
				if err := s.Enable("s/m", on); err != nil {
					t.Fatal(err)
				}
				if n := listeners(); (n == 1) != on {
					t.Errorf("%d listen, enabled %v", n, on)
				}
			}
		})
	}
}

func TestUprobeGlob(t *testing.T) {
	s := newProcesses(t, "amd64")
	p := s.start(t, 0x10_0000)
	if err := errors.Join(s.Write("p:s/ "+pieName+":lengt?"), s.Enable("", true)); err != nil {
		t.Fatal(err)
	}
	p.call(t, "length", textAddr)
	if len(s.Events()) != 1 || len(s.lines) != 1 {
		t.Errorf("events %q, lines %q", s.Events(), s.lines)
	}
}

func TestUprobeRefusals(t *testing.T) {
	s := newProcesses(t, "amd64")
	s.start(t, 0x10_0000)
	_, offset := s.entry(t, "length")
	for line, want := range map[string]events.ID{
		"p /usr/bin/other:0x10": events.FileNotFound,
		"p /usr/bin/other:len*": events.BadProbeAddr,
		"p length":              events.Invalid,
		fmt.Sprintf("p %s:%#x $arg1", pieName, offset):       events.NoEntryArgs,
		fmt.Sprintf("p %s:%#x %%rdi", pieName, offset):       events.BadRegister,
		fmt.Sprintf("p %s:%#x @length", pieName, offset):     events.SymbolOnUprobe,
		fmt.Sprintf("p %s:%#x %%ip:symbol", pieName, offset): events.BadType,
	} {
		var mistake *events.Error
		if err := s.Write(line); !errors.As(err, &mistake) || mistake.ID != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	// In Linux as well, the place is looked at when the event is enabled.
	data, _ := s.file.Image.SymbolAddress("semaphore")
	offset, _ = s.file.Image.OffsetOf(data)
	if err := s.Write(fmt.Sprintf("p:s/x %s:%#x", pieName, offset)); err != nil {
		t.Fatal(err)
	}
	var refused *runtime.RegisterError
	if err := s.Enable("s/x", true); !errors.As(err, &refused) {
		t.Errorf("a probe in data: %v", err)
	}
}
