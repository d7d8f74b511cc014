package rpn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"xol/arch/amd64"
	"xol/arch/ppc64"
	"xol/internal/cputest"
	"xol/machine"
)

// memory is where the tests' CPU has memory.
var memory = machine.Range{Lo: 0x10000, Hi: 0x11000}

func target() *Target {
	isa := amd64.ISA{}
	return &Target{File: isa.Registers(), Convention: isa.Convention(), Order: isa.ByteOrder()}
}

func newCPU() *cputest.CPU { return cputest.New(target().File, false, memory) }

func assemble(t testing.TB, text string) *Program {
	t.Helper()
	p, err := Assemble(text, target())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// records collects what programs log, one record in a line.
type records struct {
	strings.Builder
	mu sync.Mutex
}

func (r *records) Values(name string, values []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r, "%s", name)
	for _, v := range values {
		fmt.Fprintf(r, " %d", int64(v))
	}
	r.WriteString("\n")
}

func (r *records) String(name string, text []byte, complete bool) {
	fmt.Fprintf(r, "%s %q %v\n", name, text, complete)
}

func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		name, text string
		log        string // lines, joined by |
		result     Result
	}{
		{"empty", "", "", Result{}},
		{"only comments", "; one\n  # two\n", "", Result{}},
		{"code", "exit -3", "", Result{Code: 1<<64 - 3, Steps: 1}},
		{"end", "push 1\ndrop", "", Result{Steps: 2, Inst: 2}},
		{"values in order", "push 1\npush 2\npush 3\nlog \"v\" 3", "v 1 2 3", Result{Steps: 4, Inst: 4}},
		{"no values", `log "a ; b" 0`, "a ; b", Result{Steps: 1, Inst: 1}},
		{"registers", `reg rax
			arg 0
			arg 5
			ret
			sp
			ip
			log "r" 6`, "r 10 11 12 10 13 14", Result{Steps: 7, Inst: 7}},
		{"set a register", "push 7\nsetreg rbx\nreg rbx\nlog \"rbx\" 1", "rbx 7", Result{Steps: 4, Inst: 4}},
		{"stack", `push 1
			push 2
			push 3
			rot
			log "rot" 3
			push 1
			push 2
			swap
			over
			dup
			log "swap over dup" 4`, "rot 2 3 1|swap over dup 2 1 2 2", Result{Steps: 11, Inst: 11}},
		{"local variables are 0 at first", `local x
			get x
			push 5
			set x
			push 3
			addto x
			push 2
			fetchadd x
			get x
			log "x" 3`, "x 0 8 10", Result{Steps: 9, Inst: 9}},
		{"global variables", `global x = 7
			get x
			push 5
			set x
			push 3
			addto x
			push 2
			fetchadd x
			get x
			log "x" 3`, "x 7 8 10", Result{Steps: 9, Inst: 9}},
		{"forward jumps", `push 0
			jz yes
			push 1
			jmp end
		yes:	push 2
		end:	log "v" 1`, "v 2", Result{Steps: 4, Inst: 6}},
		{"a jump that is not taken", `push 0
			jnz no
			log "fell" 0
		no:`, "fell", Result{Steps: 3, Inst: 3}},
		{"loop", `local n
		top:	push 1
			addto n
			loop 5 top
			get n
			log "n" 1`, "n 5", Result{Steps: 17, Inst: 5}},
		{"loop of one round", "top: loop 1 top", "", Result{Steps: 1, Inst: 1}},
		{"loop to itself", "top: loop 4 top", "", Result{Steps: 4, Inst: 1}},
		{"nested loops", `local n
		outer:
		inner:	push 1
			addto n
			loop 3 inner
			loop 4 outer
			get n
			log "n" 1`, "n 12", Result{Steps: 42, Inst: 6}},
		{"a loop that is left early starts anew", `local n
			local i
		outer:	push 0
			set i
		inner:	push 1
			addto n
			push 1
			addto i
			get i
			push 2
			eq
			jnz out
			loop 3 inner
		out:	loop 4 outer
			get n
			log "n" 1`, "n 8", Result{Steps: 82, Inst: 14}},
		{"numbers", `push 0x10
			push 0b11
			push 0o17
			push 017
			push 'a'
			push '\n'
			push -1
			push 18446744073709551615
			log "n" 8`, "n 16 3 15 15 97 10 -1 -1", Result{Steps: 9, Inst: 9}},
		{"division by zero", "push 1\npush 0\ndivs", "", Result{Status: DividedByZero, Steps: 3, Inst: 2}},
		{"fault", "push 0x20000\nload4", "", Result{Status: Faulted, Steps: 2, Inst: 1, Addr: 0x20000, Fault: cputest.ErrLimit}},
		{"handled fault", `onfault bad
			push 99
			push 0x20000
			load8
			log "not reached" 2
			exit
		bad:	log "fault at" 1
			exit 1`, "fault at 131072", Result{Code: 1, Steps: 5, Inst: 6}},
		{"onfault exit", `onfault bad
			push 0x10000
			load1
			drop
			onfault exit
			push 1
			load1
			exit
		bad:	drop`, "", Result{Status: Faulted, Steps: 5, Inst: 4, Addr: 1, Fault: cputest.ErrLimit}},
		{"memory", `push 0x10000
			push 0x8182838485868788
			store8
			push 0x10000
			load1
			push 0x10000
			load2
			push 0x10000
			load4
			log "unsigned" 3
			push 0x10000
			load1s
			push 0x10000
			load2s
			push 0x10000
			load4s
			push 0x10000
			load8
			push 0x8182838485868788
			eq
			log "signed" 4
			push 0x10001
			push 0x1ff
			store1
			push 0x10002
			push 0x10000
			store2
			push 0x10004
			push 5
			store4
			push 0x10000
			load8
			log "stored" 1`, "unsigned 136 34696 2240186248|signed -120 -30840 -2054781048 1|stored 21474901896", Result{Steps: 33, Inst: 33}},
		{"string", `push 0x10100
			logstr "s" 32
			push 0x10100
			logstr "cut" 3
			push 0x10100
			logstr "no room for the zero" 6`, `s "rabbit" true|cut "rab" false|no room for the zero "rabbit" false`, Result{Steps: 6, Inst: 6}},
		{"string over pieces", "push 0x1013e\nlogstr \"s\" 256", `s "0123456789" true`, Result{Steps: 2, Inst: 2}},
		{"string at the end of memory", "push 0x10ffd\nlogstr \"s\" 256", `s "ok" true`, Result{Steps: 2, Inst: 2}},
		{"string without end", "push 0x10ff0\nlogstr \"s\" 256", "", Result{Status: Faulted, Steps: 2, Inst: 1, Addr: 0x11000, Fault: cputest.ErrLimit}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := assemble(t, c.text)
			cpu := newCPU()
			for name, v := range map[string]uint64{"rax": 10, "rdi": 11, "r9": 12, "rsp": 13, "rip": 14} {
				cpu.SetReg(cpu.File.Index(name), v)
			}
			for addr, s := range map[uint64]string{0x10100: "rabbit\x00", 0x1013e: "0123456789\x00", 0x10ff0: strings.Repeat("x", 13) + "ok\x00"} {
				if c.name == "string without end" {
					s = strings.Repeat("x", len(s))
				}
				if err := cpu.Write(addr, []byte(s)); err != nil {
					t.Fatal(err)
				}
			}
			var log records
			got, err := p.Run(cpu, cpu, p.NewGlobals(), &log)
			if err != nil {
				t.Fatal(err)
			}
			if !errors.Is(got.Fault, c.result.Fault) {
				t.Errorf("fault %v, want %v", got.Fault, c.result.Fault)
			}
			got.Fault, c.result.Fault = nil, nil
			if got != c.result {
				t.Errorf("%+v, want %+v", got, c.result)
			}
			if lines := strings.ReplaceAll(strings.TrimSuffix(log.Builder.String(), "\n"), "\n", "|"); lines != c.log {
				t.Errorf("logged %s\nwant %s", lines, c.log)
			}
			if got.Steps > p.MaxSteps() {
				t.Errorf("%d steps, at most %d were promised", got.Steps, p.MaxSteps())
			}
			checkText(t, p)
		})
	}
}

// checkText assembles what a program disassembles to.
func checkText(t testing.TB, p *Program) {
	t.Helper()
	text := p.Disassemble()
	q, err := Assemble(text, target())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !slices.Equal(q.written().Insts, p.written().Insts) || !slices.Equal(q.written().Globals, p.written().Globals) ||
		!slices.Equal(q.written().Locals, p.written().Locals) || q.Disassemble() != text {
		t.Errorf("%+v\nbecame %+v\nby %s", p.written(), q.written(), text)
	}
}

func TestArithmetic(t *testing.T) {
	const minInt = -1 << 63
	for _, c := range []struct {
		op   string
		a, b int64
		want int64
	}{
		{"add", 2, 3, 5},
		{"add", math.MaxInt64, 1, minInt},
		{"sub", 2, 3, -1},
		{"mul", -2, 3, -6},
		{"divu", -1, 2, math.MaxInt64},
		{"divs", -7, 2, -3},
		{"divs", minInt, -1, minInt},
		{"modu", -1, 10, 5},
		{"mods", -7, 2, -1},
		{"mods", minInt, -1, 0},
		{"and", 12, 10, 8},
		{"or", 12, 10, 14},
		{"xor", 12, 10, 6},
		{"shl", 1, 63, minInt},
		{"shl", 1, 64, 0},
		{"shru", -1, 60, 15},
		{"shru", -1, 64, 0},
		{"shru", 5, -1, 0},
		{"shrs", -16, 2, -4},
		{"shrs", -16, 64, -1},
		{"eq", 1, 1, 1}, {"eq", 1, 2, 0},
		{"ne", 1, 1, 0}, {"ne", 1, 2, 1},
		{"ltu", 1, -1, 1}, {"ltu", -1, 1, 0}, {"ltu", 1, 1, 0},
		{"leu", 1, -1, 1}, {"leu", -1, 1, 0}, {"leu", 1, 1, 1},
		{"gtu", 1, -1, 0}, {"gtu", -1, 1, 1}, {"gtu", 1, 1, 0},
		{"geu", 1, -1, 0}, {"geu", -1, 1, 1}, {"geu", 1, 1, 1},
		{"lts", 1, -1, 0}, {"lts", -1, 1, 1}, {"lts", 1, 1, 0},
		{"les", 1, -1, 0}, {"les", -1, 1, 1}, {"les", 1, 1, 1},
		{"gts", 1, -1, 1}, {"gts", -1, 1, 0}, {"gts", 1, 1, 0},
		{"ges", 1, -1, 1}, {"ges", -1, 1, 0}, {"ges", 1, 1, 1},
		{"drop\nneg", 5, 0, -5},
		{"drop\nnot", 5, 0, -6},
		{"drop\niszero", 5, 0, 0},
		{"iszero\nadd", 5, 0, 6},
	} {
		p := assemble(t, fmt.Sprintf("push %d\npush %d\n%s\nlog \"v\" 1", c.a, c.b, c.op))
		var log records
		if _, err := p.Run(newCPU(), newCPU(), nil, &log); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("v %d\n", c.want); log.Builder.String() != want {
			t.Errorf("%d %d %s: %s, want %s", c.a, c.b, c.op, log.Builder.String(), want)
		}
	}
}

// TestByteOrder stores and loads in the order of a big-endian target.
func TestByteOrder(t *testing.T) {
	isa := ppc64.ISA{}
	big := &Target{File: isa.Registers(), Convention: isa.Convention(), Order: binary.BigEndian}
	p, err := Assemble(`
		push 0x10000
		push 0x1122334455667788
		store8
		push 0x10000
		load2
		push 0x10004
		push 0xaabb
		store2
		push 0x10000
		load8
		log "v" 2`, big)
	if err != nil {
		t.Fatal(err)
	}
	cpu := cputest.New(big.File, true, memory)
	var log records
	if _, err := p.Run(cpu, cpu, nil, &log); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("v %d %d\n", 0x1122, 0x11223344aabb7788); log.Builder.String() != want {
		t.Errorf("%s, want %s", log.Builder.String(), want)
	}
}

// declarations declares n variables.
func declarations(kind string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s v%d\n", kind, i)
	}
	return b.String()
}

func TestAssembleErrors(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int
		want         string
	}{
		{"push 1\n  ad", 2, 3, "are add, addto"},
		{"zzz", 1, 1, "instructions are add"},
		{"push", 1, 5, "it is written push NUMBER"},
		{"push x", 1, 6, "not a number"},
		{"push 18446744073709551616", 1, 6, "64 bits"},
		{"push 'ab'", 1, 6, "one character"},
		{"push 'a", 1, 6, "has no end"},
		{"push 1 2", 1, 8, `"2" is too much; it is written push NUMBER`},
		{"add 1", 1, 5, "too much; it is written add"},
		{"reg eax", 1, 5, "registers are rax, rcx"},
		{"arg 6", 1, 5, "0 to 5 are"},
		{"arg", 1, 4, "arg NUMBER"},
		{"get x", 1, 5, "there are no variables"},
		{"local a\nglobal b\nget x", 3, 5, "variables are a, b"},
		{"local a\nlocal a", 2, 7, "declared already"},
		{"local 1a", 1, 7, "not a name"},
		{"global a =", 1, 11, "missing"},
		{"jmp end", 1, 5, "there are no labels"},
		{"a:\nb: jmp end", 2, 8, "labels are a, b"},
		{"a:\na:", 2, 1, "there already"},
		{"1:", 1, 1, "not a label"},
		{"exit:", 1, 1, "not a label"},
		{": add", 1, 1, "no instruction"},
		{"loop a", 1, 6, "not a number"},
		{"loop 3", 1, 7, "loop COUNT LABEL"},
		{"log x 1", 1, 5, "name between"},
		{"log 'x' 1", 1, 5, "name between"},
		{`log "x`, 1, 5, "has no end"},
		{`log "x"`, 1, 8, "missing"},
		{"onfault", 1, 8, "onfault LABEL"},
		{"push 1\nonfault nowhere\nload8", 2, 9, "no label nowhere"},
		{"onfault nowhere\nexit", 1, 9, "no label nowhere"},
		{declarations("local", maxVariables+1), maxVariables + 1, 7, "64 of each kind"},
		{declarations("global", maxVariables+1), maxVariables + 1, 8, "64 of each kind"},
		// What verify finds.
		{"push 1\n\tadd", 2, 2, "add: takes 2 values from the stack, which has 1"},
		{"exit\npush 1", 2, 1, "nothing leads here"},
		{"a: push 1\ndrop\njmp a", 3, 1, "not further down"},
		{"loop 2 a\na:", 1, 1, "not further up"},
		{"a: push 1\nloop 2 a", 2, 1, "1 value here, 0 where the loop starts"},
		{"arg 0\njz a\npush 1\na: exit", 3, 1, "reached with 1 value on the stack from here, with 0 by another way"},
		{"a: arg 0\nb: drop\nloop 2 a\narg 0\ndrop\nloop 2 a\nc: loop 0 c", 7, 4, "rounds from 1"},
		{"a: arg 0\ndrop\nb: arg 0\ndrop\nloop 2 a\nloop 2 b", 6, 1, "overlaps the loop that ends at instruction 4"},
		{"a: loop 1048577 a", 1, 4, "rounds from 1 to 1048576"},
		{"a: b: loop 1024 b\nloop 1025 a", 2, 1, "more than 1048576 steps"},
		{"log \"x\" 17", 1, 1, "values from 0 to 16"},
		{"push 1\nlogstr \"x\" 0", 2, 1, "bytes from 1 to 256"},
		{"push 1\nlogstr \"\" 1", 2, 1, "record's name"},
		{"log \"a\\n\" 0", 1, 1, "record's name"},
		{"a: onfault a\npush 1\nload8", 3, 1, "on a fault the target is not further down"},
		{"push 1\nload8\nonfault b\npush 1\nload8\nb: log \"x\" 2", 5, 1, "reached with 2 values on the stack from here, with 1 by another way"},
		{strings.Repeat("push 1\n", maxStack+1), maxStack + 1, 1, "deeper than 64"},
		{strings.Repeat("ip\ndrop\n", maxInsts/2) + "exit", maxInsts + 1, 1, "at most 4096"},
		{"a:\n" + strings.Repeat("loop 1 a\n", maxLoops+1), maxLoops + 2, 1, "more than 64 loops"},
		{strings.Repeat("local a\n", 1) + "local " + strings.Repeat("b", 65), 2, 7, "not a name"},
	} {
		_, err := Assemble(c.text, target())
		var wrong *Error
		if !errors.As(err, &wrong) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if wrong.Line != c.line || wrong.Column != c.column || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q at %d, %d", c.text, err, c.want, c.line, c.column)
		}
	}
}

// TestVerifyErrors has code that no text makes.
func TestVerifyErrors(t *testing.T) {
	inst := func(op opcode, arg uint64, target int) []instruction {
		return []instruction{{Op: opPush}, {Op: op, Arg: arg, Target: target}}
	}
	for _, c := range []struct {
		name string
		code source
		inst int
		want string
	}{
		{"operation", source{Insts: inst(255, 0, 0)}, 1, "no such operation"},
		{"register", source{Insts: inst(opReg, 1000, 0)}, 1, "register 1000 does not exist"},
		{"local variable", source{Insts: inst(opGetLocal, 0, 0)}, 1, "local variable 0 does not exist"},
		{"global variable", source{Globals: []global{{Name: "a"}}, Insts: inst(opSetGlobal, 1, 0)}, 1, "there are 1"},
		{"jump outside", source{Insts: inst(opJmp, 0, 3)}, 1, "outside the program"},
		{"jump before the start", source{Insts: inst(opJz, 0, -1)}, 1, "outside the program"},
		{"fault outside", source{Insts: inst(opLoad8, 0, 9)}, 1, "outside the program"},
		{"loop before the start", source{Insts: inst(opLoop, 1, -1)}, 1, "not further up"},
		{"name of a variable", source{Locals: []string{"a b"}}, -1, "not a name"},
		{"variables of the same name", source{Locals: []string{"a"}, Globals: []global{{Name: "a"}}}, -1, "declared twice"},
		{"variables", source{Locals: make([]string, maxVariables+1)}, -1, "too many variables"},
	} {
		_, err := verify(&c.code, target())
		var wrong *Error
		if !errors.As(err, &wrong) || wrong.Inst != c.inst || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestGlobals(t *testing.T) {
	p := assemble(t, "global hits\nglobal seen = 40\npush 1\naddto hits\npush 1\nfetchadd seen\nlog \"seen\" 1")
	g := p.NewGlobals()
	if _, err := p.Run(newCPU(), newCPU(), nil, nil); !errors.Is(err, ErrGlobals) {
		t.Errorf("without variables: %v", err)
	}
	if _, err := p.Run(newCPU(), newCPU(), assemble(t, "global a").NewGlobals(), nil); !errors.Is(err, ErrGlobals) {
		t.Errorf("with those of another program: %v", err)
	}
	const runs, workers = 500, 8
	var group sync.WaitGroup
	var log records
	for range workers {
		group.Go(func() {
			cpu := newCPU()
			for range runs {
				if _, err := p.Run(cpu, cpu, g, &log); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	hits, ok := g.Get("hits")
	seen, _ := g.Get("seen")
	if hits != runs*workers || seen != 40+runs*workers || !ok {
		t.Errorf("%d hits, %d seen", hits, seen)
	}
	lines := strings.Fields(strings.ReplaceAll(log.Builder.String(), "seen ", ""))
	slices.Sort(lines)
	if n := len(slices.Compact(lines)); n != runs*workers {
		t.Errorf("%d numbers, want %d", n, runs*workers)
	}
	if !g.Set("hits", 3) || g.Set("nothing", 3) {
		t.Error("Set finds other variables")
	}
	if v, _ := g.Get("hits"); v != 3 {
		t.Errorf("set to 3, got %d", v)
	}
	if _, ok := g.Get("nothing"); ok {
		t.Error("there is a variable called nothing")
	}
}

// quietLog takes records and forgets them.
type quietLog struct{}

func (quietLog) Values(string, []uint64)     {}
func (quietLog) String(string, []byte, bool) {}

func TestRunDoesNotAllocate(t *testing.T) {
	p := assemble(t, `global n
		push 1
		addto n
		push 0x10000
		load4
		push 0x10000
		load8
		log "v" 2
		push 0x10000
		push 1
		store2
		push 0x10000
		logstr "s" 16`)
	cpu := newCPU()
	if err := cpu.Write(0x10000, make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	g, m := p.NewGlobals(), fixed{}
	var log quietLog
	if n := testing.AllocsPerRun(1000, func() { _, _ = p.Run(cpu, m, g, log) }); n > 0.5 {
		t.Errorf("%v allocations", n)
	}
}

// fixed is memory that holds nothing but zeros.
type fixed struct{}

func (fixed) Read(dst []byte, _ uint64) error { clear(dst); return nil }
func (fixed) Write(uint64, []byte) error      { return nil }
func (fixed) ReadWord(uint64) (uint64, error) { return 0, nil }
func (fixed) WriteWord(uint64, uint64) error  { return nil }
