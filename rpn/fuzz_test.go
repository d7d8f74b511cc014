package rpn_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"xol/rpn"
)

// randomCode makes code most of which is right: it keeps an eye on the depth of
// the stack, but not on where jumps lead.
func randomCode(r *rand.Rand) *rpn.Code {
	c := &rpn.Code{Globals: []rpn.Global{{Name: "g", Init: r.Uint64()}}, Locals: []string{"a", "b"}}
	n := 1 + r.IntN(60)
	depth, behind := 0, r.IntN(2) > 0
	for i := range n {
		op := rpn.Op(r.IntN(int(rpn.OpLogString) + 1))
		pops, pushes := op.Stack()
		if pops > depth || op == rpn.OpExit || op == rpn.OpJmp || op == rpn.OpLog && depth < 3 {
			op, pops, pushes = rpn.OpPush, 0, 1
		}
		in := rpn.Inst{Op: op, Arg: uint64(r.IntN(2)), Target: rpn.NoTarget, Name: "x"}
		switch {
		case op == rpn.OpPush:
			in.Arg = randomValue(r)
		case op == rpn.OpLoop:
			in.Target = max(0, i-r.IntN(8))
			in.Arg = uint64(1 + r.IntN(30))
		case op == rpn.OpLog:
			in.Arg = uint64(r.IntN(4))
			pops = int(in.Arg)
		case op == rpn.OpLogString:
			in.Arg = uint64(1 + r.IntN(rpn.MaxString))
		case op == rpn.OpJz, op == rpn.OpJnz:
			in.Target = n
			if behind {
				in.Target = i + 1 + r.IntN(2)
			}
		case r.IntN(8) == 0:
			in.Target = n
		case op >= rpn.OpGetGlobal && op <= rpn.OpFetchAddGlobal:
			in.Arg = 0
		}
		depth += pushes - pops
		c.Insts = append(c.Insts, in)
	}
	return c
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

// run verifies code, and runs what can be.
func run(t *testing.T, code *rpn.Code, seed uint64) (ran bool) {
	t.Helper()
	p, err := rpn.Verify(code, target())
	var wrong *rpn.Error
	if err != nil {
		if !errors.As(err, &wrong) {
			t.Fatalf("error of type %T", err)
		}
		return false
	}
	checkText(t, p)
	cpu := newCPU()
	cpu.Seed = seed
	var log quietLog
	got, err := p.Run(cpu, cpu, p.NewGlobals(), log)
	if err != nil {
		t.Fatal(err)
	}
	if got.Steps > p.MaxSteps() || p.MaxSteps() > rpn.MaxSteps || p.MaxDepth() > rpn.MaxStack {
		t.Errorf("%d steps of %d, depth %d\n%s", got.Steps, p.MaxSteps(), p.MaxDepth(), p.Disassemble())
	}
	if end := len(code.Insts); got.Inst > end || got.Status == rpn.Faulted != (got.Fault != nil) {
		t.Errorf("%+v", got)
	}
	return true
}

// TestRandomPrograms runs many programs whose correctness only Verify knows.
func TestRandomPrograms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const programs = 4000
	ran := 0
	for i := range uint64(programs) {
		if run(t, randomCode(r), i) {
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
			run(t, randomCode(r), a)
		}
	})
}

// FuzzCode takes instructions from bytes, four for each.
func FuzzCode(f *testing.F) {
	f.Add([]byte{byte(rpn.OpPush), 7, 0, 0, byte(rpn.OpLoop), 3, 0, 0, byte(rpn.OpLoad8), 0, 3, 0, byte(rpn.OpDrop), 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		code := &rpn.Code{Globals: []rpn.Global{{Name: "g"}}, Locals: []string{"a"}}
		for ; len(data) >= 4; data = data[4:] {
			code.Insts = append(code.Insts, rpn.Inst{
				Op: rpn.Op(data[0]), Arg: uint64(data[1]) | uint64(data[3])<<11, Target: int(int8(data[2])), Name: "n",
			})
		}
		run(t, code, 0)
	})
}

func FuzzAssemble(f *testing.F) {
	f.Add("local a\nglobal b = 5\ntop: get a\njz end\nloop 4 top\nend: exit 3")
	f.Add("onfault x\npush 'a' ; c\nload8\nlog \"n\" 1\nexit\nx: drop # y\n")
	f.Add("push 0x10\nlogstr \"a\\\"b\" 12")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := rpn.Assemble(text, target())
		var wrong *rpn.Error
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
