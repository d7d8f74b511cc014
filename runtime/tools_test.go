//go:build unicorn

package runtime_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"xol/arch"
	"xol/guest"
	"xol/image"
	"xol/internal/isatest"
	"xol/machine"
	"xol/runtime"
)

// callNumbers are the system calls that the tools make, and the registers that pass
// their number and arguments, by ISA.
type callNumbers struct {
	write, mmap, brk, exit uint64
	number                 string
	args                   []string
}

var linuxCalls = map[string]callNumbers{
	"amd64":   {1, 9, 12, 60, "rax", []string{"rdi", "rsi", "rdx", "r10"}},
	"arm64":   {64, 222, 214, 93, "x8", []string{"x0", "x1", "x2", "x3"}},
	"ppc64":   {4, 90, 45, 1, "r0", []string{"r3", "r4", "r5", "r6"}},
	"ppc64le": {4, 90, 45, 1, "r0", []string{"r3", "r4", "r5", "r6"}},
}

// process is one of the tools that runs as a task.
type process struct {
	number uint64
	args   []string
	stack  machine.Range
	area   uint64 // where the next mmap goes
	state  machine.State
	output bytes.Buffer
	status uint64
	done   bool
}

// host is what an operating system is to the tools: it has one CPU take turns with
// processes that share their memory, answers their system calls, and gives them pages
// where they touch them.
type host struct {
	m         *guest.Machine
	r         *runtime.Runtime // nil: without probes
	calls     callNumbers
	processes []*process
	current   *process
	file      map[uint64][]byte // contents of pages that are not there yet
	heap      machine.Range
	areas     []machine.Range // of mmap and the stacks
	stacks    []machine.Range
	faults    int
	executed  map[uint64]uint64 // by address; counted where it is not nil
}

const (
	hostHeap   = 0x3000_0000
	toolsStack = 1 << 20
)

func toolsPath(isa string) string { return "../testdata/guest/tools/" + isa }

// newHost loads the tools into a machine: their text, and nothing else.
func newHost(t testing.TB, isa arch.Prober) *host {
	t.Helper()
	m, err := guest.Open(guest.Options{ISA: isa, Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	f, err := os.Open(toolsPath(isa.Name()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := &host{m: m, calls: linuxCalls[isa.Name()], file: map[uint64][]byte{}, heap: machine.Range{Lo: hostHeap, Hi: hostHeap}}
	before := m.File.NewState()
	m.CPUs[0].Save(before)
	p, err := m.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := p.Function("_start")
	if err != nil {
		t.Fatal(err)
	}
	h.pageOut(t)
	for i, run := range toolRuns {
		h.start(t, entry, uint64(i), strings.Fields(run.args), before)
	}
	return h
}

// pageOut takes the pages with data from the machine.
func (h *host) pageOut(t testing.TB) {
	t.Helper()
	f, err := elf.Open(toolsPath(h.m.ISA.Name()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range f.Progs {
		for at := s.Vaddr &^ (guest.PageSize - 1); s.Type == elf.PT_LOAD && at < s.Vaddr+s.Memsz; at += guest.PageSize {
			if perm := h.m.Perm(at); perm == 0 || perm&machine.PermExec != 0 {
				continue
			}
			page := make([]byte, guest.PageSize)
			if err := errors.Join(h.m.Read(page, at), h.m.Unmap(at, guest.PageSize)); err != nil {
				t.Fatal(err)
			}
			h.file[at] = page
		}
	}
	if len(h.file) == 0 {
		t.Fatal("no data")
	}
}

// start prepares a process as execve does. The stacks of the second one are above what
// mmap gives it, those of the first one below.
func (h *host) start(t testing.TB, entry machine.Function, i uint64, args []string, state machine.State) {
	t.Helper()
	bases := [...]uint64{0x5000_0000, 0x7a00_0000_0000}
	one := &process{
		number: 100 + i, args: args, area: 0x7100_0000_0000 + i<<32, state: slices.Clone(state),
		stack: machine.Range{Lo: bases[i], Hi: bases[i] + toolsStack},
	}
	h.processes = append(h.processes, one)
	h.areas, h.stacks = append(h.areas, one.stack), append(h.stacks, one.stack)
	sp := h.pushArgs(t, one)
	file, conv := h.m.File, h.m.ISA.Convention()
	file.SetWord(one.state, file.SP, sp)
	file.SetWord(one.state, file.PC, entry.Entry)
	if conv.Entry >= 0 {
		file.SetWord(one.state, conv.Entry, entry.Entry)
	}
	if conv.TOC >= 0 {
		file.SetWord(one.state, conv.TOC, entry.TOC)
	}
}

// pushArgs puts the arguments on the stack, their number first.
func (h *host) pushArgs(t testing.TB, one *process) (sp uint64) {
	t.Helper()
	all := append([]string{"tools"}, one.args...)
	page := one.stack.Hi - guest.PageSize
	words := []uint64{uint64(len(all))}
	var texts []byte
	at := page + guest.PageSize/2
	for _, arg := range all {
		words = append(words, at+uint64(len(texts)))
		texts = append(append(texts, arg...), 0)
	}
	err := errors.Join(h.m.Map(page, guest.PageSize, machine.PermRead|machine.PermWrite), h.m.Write(at, texts))
	sp = at - 16*uint64(len(words)/2+2)
	for i, w := range append(words, 0, 0) {
		err = errors.Join(err, h.m.WriteWord(sp+8*uint64(i), w))
	}
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

// run has all processes exit, with turns of some instructions.
func (h *host) run(t testing.TB, turn int) {
	t.Helper()
	for i := 0; ; i++ {
		var next *process
		for k := range h.processes {
			if one := h.processes[(i+k)%len(h.processes)]; !one.done {
				next = one
				break
			}
		}
		if next == nil {
			return
		}
		h.switchTo(next)
		if err := h.turn(t, turn); err != nil {
			t.Fatalf("%s: %v", next.args, err)
		}
	}
}

func (h *host) switchTo(next *process) {
	if h.current == next {
		return
	}
	c := h.m.CPUs[0]
	if h.current != nil {
		c.Save(h.current.state)
	}
	if h.r != nil {
		h.r.SetTask(0, next.number)
	}
	c.Restore(next.state)
	c.SetRunning(true)
	h.current = next
}

// turn has the current process run for some instructions, or until it has exited.
func (h *host) turn(t testing.TB, instructions int) error {
	t.Helper()
	if h.r == nil {
		return h.countTurn(instructions)
	}
	err := h.r.Run(t.Context(), instructions)
	var stop *runtime.StopError
	var fault *runtime.FaultError
	switch {
	case errors.Is(err, runtime.ErrBudget), err == nil:
		return nil
	case errors.As(err, &stop) && stop.Event.Kind == machine.EventSyscall:
		return h.syscall()
	case errors.As(err, &fault):
		return h.page(fault.Page)
	}
	return err
}

// countTurn runs without probes and counts the instructions.
func (h *host) countTurn(instructions int) error {
	c, one := h.m.CPUs[0], h.current
	for range instructions {
		pc := c.PC()
		ev, err := c.Run(1)
		if err == nil && ev.Kind == machine.EventFault {
			if err := h.page(ev.Page); err != nil {
				return err
			}
			continue
		}
		h.executed[pc]++
		switch {
		case err != nil:
			return err
		case ev.Kind == machine.EventSyscall:
			if err := h.syscall(); err != nil || one.done {
				return err
			}
		case ev.Kind != machine.EventBudget:
			return h.m.Unexpected(ev)
		}
	}
	return nil
}

var errBadAccess = errors.New("access to memory that the process does not have")

// page gives the current process the page that it touched.
func (h *host) page(at uint64) error {
	h.faults++
	content, inFile := h.file[at]
	has := func(r machine.Range) bool { return r.Holds(at) }
	if !inFile && !has(machine.Range{Lo: h.heap.Lo, Hi: h.heap.Hi + guest.PageSize - 1}) && !slices.ContainsFunc(h.areas, has) {
		return fmt.Errorf("%#x: %w", at, errBadAccess)
	}
	if err := h.m.Map(at, guest.PageSize, machine.PermRead|machine.PermWrite); err != nil {
		return err
	}
	return h.m.Write(at, content)
}

// syscall answers a system call.
func (h *host) syscall() error {
	c, one := h.m.CPUs[0], h.current
	reg := func(name string) uint64 { return c.Reg(h.m.File.Index(name)) }
	number := reg(h.calls.number)
	var args [4]uint64
	for i, name := range h.calls.args {
		args[i] = reg(name)
	}
	var result uint64
	switch number {
	case h.calls.write:
		text := make([]byte, args[2])
		if err := h.m.Read(text, args[1]); err != nil {
			return err
		}
		// As to a pipe that is nearly full, at times only a part is written.
		if len(text) > 1 && one.output.Len()%3 == 1 {
			text = text[:len(text)/2]
		}
		one.output.Write(text)
		result = uint64(len(text))
	case h.calls.brk:
		if args[0] >= h.heap.Lo {
			h.heap.Hi = args[0]
		}
		result = h.heap.Hi
	case h.calls.mmap:
		size := (args[1] + guest.PageSize - 1) &^ (guest.PageSize - 1)
		area := machine.Range{Lo: one.area, Hi: one.area + size}
		const stack = 0x20000
		if h.areas = append(h.areas, area); args[3]&stack != 0 {
			h.stacks = append(h.stacks, area)
		}
		one.area += size
		result = area.Lo
	case h.calls.exit:
		one.done, one.status = true, args[0]
		c.SetRunning(false)
		if h.r != nil {
			h.r.TaskExit(one.number)
		}
		return nil
	default:
		return fmt.Errorf("system call %d", number)
	}
	c.SetReg(h.m.ISA.Convention().Result, result)
	if cr := h.m.File.Index("cr"); cr >= 0 {
		const summaryOverflow = 1 << 28 // there is no error
		c.SetReg(cr, c.Reg(cr)&^summaryOverflow)
	}
	return nil
}

// memory returns the contents of all pages that the processes have touched, but for
// those of stacks.
func (h *host) memory(t testing.TB) map[uint64]string {
	t.Helper()
	ranges := append([]machine.Range{h.heap}, h.areas...)
	for at := range h.file {
		ranges = append(ranges, machine.Range{Lo: at, Hi: at + guest.PageSize})
	}
	pages := map[uint64]string{}
	for _, r := range ranges {
		if slices.Contains(h.stacks, r) {
			continue
		}
		for at := r.Lo; at < r.Hi; at += guest.PageSize {
			if h.m.Perm(at) == 0 {
				continue
			}
			page := make([]byte, guest.PageSize)
			if err := h.m.Read(page, at); err != nil {
				t.Fatal(err)
			}
			pages[at] = string(page)
		}
	}
	return pages
}

// toolRuns are what the processes run. What they print and exit with on a machine that
// runs Linux is in files beside the program (see its build).
var toolRuns = [...]struct{ args, output string }{
	{"walk 9 sort 30 leap 5 further 9", "output-1"},
	{"sieve 900 scatter 900 further 4 walk 12 leap 7", "output-2"},
}

// toolModes are the ways of execution that the tools run in.
var toolModes = append(slices.Clone(taskModes),
	mode{name: "optimized, classic trampoline", opt: runtime.Options{Pass: 300, ClassicTrampoline: true}},
	mode{name: "uprobes on NOPs", opt: runtime.Options{Uprobes: true, OptimizeNops: true, Pass: 300}},
)

// TestReturnsOnOtherStacks has return probes on functions that switch stacks, are left by
// a longjmp on one, and change where they return to: on stacks above the caller's and
// below, of tasks that share a CPU.
func TestReturnsOnOtherStacks(t *testing.T) {
	for _, name := range arch.Names() {
		t.Run(name, func(t *testing.T) {
			isa, err := isatest.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			plain := newHost(t, isa)
			plain.runPlain(t)
			for _, mode := range trampolines {
				if mode.opt.Stepping == runtime.StepTrap && !steps(name) {
					continue
				}
				for _, uprobes := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s uprobes=%t", mode.name, uprobes), func(t *testing.T) {
						h, opt := newHost(t, isa), mode.opt
						opt.Uprobes = uprobes
						probes := h.probe(t, opt, nil)
						h.run(t, 100)
						h.compare(t, plain)
						probes.compare(t, plain.executed)
					})
				}
			}
		})
	}
}

// runPlain runs the processes without probes, and checks what they do.
func (h *host) runPlain(t *testing.T) {
	t.Helper()
	h.executed = map[uint64]uint64{}
	h.run(t, 100)
	for i, one := range h.processes {
		want, err := os.ReadFile(toolsPath(toolRuns[i].output))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "what is printed for "+toolRuns[i].args, fmt.Sprintf("%sexit %d\n", &one.output, one.status), string(want))
	}
}

// TestToolsAsTasks runs two processes with demand-paged memory, a hundred instructions
// of each at a time, with a probe on every instruction and return probes on functions:
// they do what they do without.
func TestToolsAsTasks(t *testing.T) {
	for _, name := range arch.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isa, err := isatest.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			plain := newHost(t, isa)
			plain.runPlain(t)
			for i := range toolModes {
				mode := &toolModes[i]
				if mode.suits != nil && !mode.suits(name) {
					continue
				}
				t.Run(mode.name, func(t *testing.T) {
					h := newHost(t, isa)
					probes := h.probe(t, mode.opt, plain.executed)
					h.run(t, 100)
					h.compare(t, plain)
					probes.compare(t, plain.executed)
				})
			}
		})
	}
}

// toolProbes are the probes of a host's processes.
type toolProbes struct {
	r       *runtime.Runtime
	hits    map[uint64]map[uint64]uint64 // by address and task
	returns map[string]*runtime.Link
}

// probe puts probes on the instructions that are executed, and return probes on the
// functions.
func (h *host) probe(t *testing.T, opt runtime.Options, executed map[uint64]uint64) *toolProbes {
	t.Helper()
	r, err := runtime.New(h.m, h.m.ISA, opt)
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.OpenFile(toolsPath(h.m.ISA.Name()), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	if _, err := r.Load("tools", img); err != nil {
		t.Fatal(err)
	}
	p := &toolProbes{r: r, hits: map[uint64]map[uint64]uint64{}, returns: map[string]*runtime.Link{}}
	for _, addr := range slices.Sorted(maps.Keys(executed)) {
		by := map[uint64]uint64{}
		probe := runtime.Probe{Addr: addr, PreHandler: func(c *runtime.Context) bool { by[c.Task()]++; return false }}
		if err := try(r, probe); err != nil {
			t.Logf("%v", err)
			continue
		}
		p.hits[addr] = by
	}
	functions, err := img.Functions(image.ExtentSymbol)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range functions {
		if f.Name == "_start" || f.Name == "begin_stack" {
			continue // nothing calls them
		}
		rp := attach(t, r, runtime.ReturnProbe{Addr: f.Addr, MaxActive: 64})

		p.returns[f.Name] = rp
	}
	h.r = r
	return p
}

// compare holds what the processes did against what they do without probes.
func (h *host) compare(t *testing.T, plain *host) {
	t.Helper()
	for i, one := range h.processes {
		want := plain.processes[i]
		same(t, "the output", one.output.String(), want.output.String())
		same(t, "the exit status", one.status, want.status)
	}
	got, want := h.memory(t), plain.memory(t)
	same(t, "pages", len(got), len(want))
	for at, page := range want {
		if got[at] != page {
			t.Errorf("the page at %#x differs", at)
		}
	}
}

// neverReturn are how many calls of a function never return; all where the number is
// negative: coroutines wait at the end, and some functions are left or go elsewhere.
var neverReturn = map[string]int{
	"begin": -1, "walk_all": -1, "dig": -1, "returns_elsewhere": -1,
	"hand_out": 6, "switch_stack": 6, "visit": 4,
}

// compare holds the hits against the instructions that are executed without probes.
func (p *toolProbes) compare(t *testing.T, executed map[uint64]uint64) {
	t.Helper()
	for addr, by := range p.hits {
		n := uint64(0)
		for task, hits := range by {
			if n += hits; task != 100 && task != 101 {
				t.Errorf("%#x: hit in task %d", addr, task)
			}
		}
		if n != executed[addr] {
			t.Errorf("%#x: %d hits, executed %d times", addr, n, executed[addr])
		}
	}
	for _, probe := range p.r.Links() {
		same(t, "missed", probe.Nmissed(), 0)
	}
	for name, rp := range p.returns {
		same(t, "missed calls of "+name, rp.Nmissed(), 0)
		calls, left := executed[rp.Address()], neverReturn[name]
		if left < 0 {
			calls, left = 0, 0
		}
		if n := rp.Hits(); n+uint64(left) != calls {
			t.Errorf("%s: %d returns, called %d times", name, n, calls)
		}
	}
}
