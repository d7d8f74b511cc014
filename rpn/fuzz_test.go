package rpn

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// generator makes code that is right but for what spoil does to it.
type generator struct {
	*rand.Rand
	code  source
	depth int // of the stack
}

// randomCode makes nested loops, branches and handlers of faults around random
// instructions; every other code is spoiled in one place.
func randomCode(r *rand.Rand) *source {
	g := &generator{Rand: r, code: source{Globals: []global{{Name: "g", Init: r.Uint64()}}, Locals: []string{"a", "b"}}}
	g.block(3)
	if r.IntN(2) > 0 {
		g.spoil()
	}
	return &g.code
}

// add adds an instruction and returns its index.
func (g *generator) add(in instruction) int {
	pops, pushes := in.Op.Stack()
	if in.Op == opLog {
		pops = int(in.Arg)
	}
	g.depth += pushes - pops
	g.code.Insts = append(g.code.Insts, in)
	return len(g.code.Insts) - 1
}

// here lets an instruction lead to the next one that is added.
func (g *generator) here(inst int) { g.code.Insts[inst].Target = len(g.code.Insts) }

// block adds statements; as many values are on the stack after it as before.
func (g *generator) block(nesting int) {
	before := g.depth
	for range 1 + g.IntN(5) {
		switch kind := g.IntN(10); {
		case nesting == 0 || kind < 5:
			g.straight()
		case kind < 7:
			g.add(instruction{Op: opPush, Arg: g.Uint64N(3)})
			over := g.add(instruction{Op: opJz + opcode(g.IntN(2))})
			g.block(nesting - 1)
			g.here(over)
		case kind < 9:
			g.loop(nesting)
		default:
			g.handled(before)
		}
	}
	for g.depth > before {
		g.add(instruction{Op: opDrop})
	}
	for g.depth < before {
		g.add(instruction{Op: opPush, Arg: randomValue(g.Rand)})
	}
}

// loop adds a loop that may be left early, after a number of rounds in all.
func (g *generator) loop(nesting int) {
	start, out := len(g.code.Insts), -1
	g.block(nesting - 1)
	if g.IntN(2) > 0 {
		g.add(instruction{Op: opPush, Arg: 1})
		g.add(instruction{Op: opFetchAddLocal, Arg: 1})
		g.add(instruction{Op: opPush, Arg: 1 + g.Uint64N(3)})
		g.add(instruction{Op: opModU})
		out = g.add(instruction{Op: opJz})
	}
	g.block(nesting - 1)
	g.add(instruction{Op: opLoop, Arg: 1 + g.Uint64N(12), Target: start})
	if out >= 0 {
		g.here(out)
	}
}

// handled adds an access to memory with a handler, where the stack has before
// values at least: it is emptied, as the handler finds it empty.
func (g *generator) handled(before int) {
	if before > 0 {
		return
	}
	for g.depth > 0 {
		g.add(instruction{Op: opDrop})
	}
	for range g.IntN(3) {
		g.add(instruction{Op: opPush, Arg: randomValue(g.Rand)})
	}
	g.add(instruction{Op: opPush, Arg: randomValue(g.Rand)})
	access := g.add(instruction{Op: opLoad1 + opcode(g.IntN(7))})
	for g.depth > 0 {
		g.add(instruction{Op: opDrop})
	}
	over := g.add(instruction{Op: opJmp})
	g.here(access)
	g.depth = 1
	g.add(instruction{Op: opLog, Arg: 1, Name: "fault"})
	g.here(over)
}

// straight adds an instruction that goes on to the next one.
func (g *generator) straight() {
	op := opcode(g.IntN(int(opLogString) + 1))
	if pops, _ := op.Stack(); pops > g.depth || g.depth > 20 || op >= opJmp && op <= opExit {
		op = opPush
	}
	in := instruction{Op: op, Target: noTarget, Name: "x"}
	switch {
	case op == opPush:
		in.Arg = randomValue(g.Rand)
	case op <= opSetReg:
		in.Arg = g.Uint64N(16)
	case op <= opFetchAddLocal:
		in.Arg = g.Uint64N(2)
	case op == opLog:
		in.Arg = g.Uint64N(uint64(min(g.depth, 4)) + 1)
	case op == opLogString:
		in.Arg = 1 + g.Uint64N(maxString)
	}
	g.add(in)
}

// spoil changes one instruction.
func (g *generator) spoil() {
	in := &g.code.Insts[g.IntN(len(g.code.Insts))]
	switch g.IntN(3) {
	case 0:
		in.Op = opcode(g.IntN(int(opLogString) + 1))
	case 1:
		in.Target = g.IntN(len(g.code.Insts) + 1)
	case 2:
		in.Arg = g.Uint64N(1 << 14)
	}
}

func randomValue(r *rand.Rand) uint64 {
	switch r.IntN(4) {
	case 0:
		return memory.Lo + r.Uint64N(memory.Hi-memory.Lo)
	case 1:
		return r.Uint64()
	}
	return r.Uint64N(3) - 1
}

// compare verifies code, and runs what can be.
func compare(t *testing.T, code *source, seed uint64) (ran bool) {
	t.Helper()
	p, err := verify(code, target())
	var wrong *Error
	if err != nil {
		if !errors.As(err, &wrong) {
			t.Fatalf("error of type %T", err)
		}
		return false
	}
	checkText(t, p)
	cpu := newCPU()
	cpu.Seed = seed
	ref := judge{
		code: p.written(), cpu: cpu.Clone(), locals: map[uint64]uint64{}, globals: map[uint64]uint64{}, rounds: map[int]uint64{},
	}
	for i, g := range code.Globals {
		ref.globals[uint64(i)] = g.Init
	}
	ref.run()
	var log records
	globals := p.NewGlobals()
	got, err := p.Run(cpu, cpu, globals, &log)
	if err != nil {
		t.Fatal(err)
	}
	if got.Steps > p.MaxSteps() || p.MaxSteps() > maxSteps || p.depth() > maxStack {
		t.Errorf("%d steps of %d, depth %d\n%s", got.Steps, p.MaxSteps(), p.depth(), p.Disassemble())
	}
	if (got.Fault == nil) != (ref.result.Fault == nil) {
		t.Errorf("fault %v, want %v", got.Fault, ref.result.Fault)
	}
	got.Fault, ref.result.Fault = nil, nil
	if got != ref.result {
		t.Errorf("%+v, want %+v\n%s", got, ref.result, p.Disassemble())
	}
	if have, want := log.Builder.String(), ref.log.Builder.String(); have != want {
		t.Errorf("logged %s\nwant %s\n%s", have, want, p.Disassemble())
	}
	if what := cpu.Differences(ref.cpu.State, ref.cpu.Writes()); what != nil {
		t.Errorf("%v\n%s", what, p.Disassemble())
	}
	for i, g := range code.Globals {
		if v, _ := globals.Get(g.Name); v != ref.globals[uint64(i)] {
			t.Errorf("%s is %#x, want %#x", g.Name, v, ref.globals[uint64(i)])
		}
	}
	return true
}

// TestRandomPrograms runs many programs whose correctness only verify knows.
func TestRandomPrograms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const programs = 4000
	ran := 0
	for i := range uint64(programs) {
		if compare(t, randomCode(r), i) {
			ran++
		}
	}
	if ran < programs/10 {
		t.Errorf("only %d of %d programs ran", ran, programs)
	}
	t.Logf("%d of %d ran", ran, programs)
}

func FuzzVerified(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		for range 16 {
			compare(t, randomCode(r), a)
		}
	})
}

// FuzzCode takes instructions from bytes, four for each.
func FuzzCode(f *testing.F) {
	f.Add([]byte{byte(opPush), 7, 0, 0, byte(opLoop), 3, 0, 0, byte(opLoad8), 0, 3, 0, byte(opDrop), 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		code := &source{Globals: []global{{Name: "g"}}, Locals: []string{"a"}}
		for ; len(data) >= 4; data = data[4:] {
			code.Insts = append(code.Insts, instruction{
				Op: opcode(data[0]), Arg: uint64(data[1]) | uint64(data[3])<<11, Target: int(int8(data[2])), Name: "n",
			})
		}
		compare(t, code, 0)
	})
}

func FuzzAssemble(f *testing.F) {
	f.Add("local a\nglobal b = 5\ntop: get a\njz end\nloop 4 top\nend: exit 3")
	f.Add("onfault x\npush 'a' ; c\nload8\nlog \"n\" 1\nexit\nx: drop # y\n")
	f.Add("push 0x10\nlogstr \"a\\\"b\" 12")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Assemble(text, target())
		var wrong *Error
		switch {
		case err == nil:
			checkText(t, p)
		case !errors.As(err, &wrong):
			t.Errorf("error of type %T", err)
		case wrong.Line == 0 && wrong.Inst >= 0:
			t.Errorf("%v: no line", err)
		}
	})
}
