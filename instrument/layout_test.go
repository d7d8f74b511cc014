package instrument

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/internal/skip"
	"xol/machine"
)

// laid is a program that is planned and laid out as it would be in a process.
type laid struct {
	p       *Planner
	plans   []*Plan
	layout  *Layout
	memory  map[uint64]byte // parts and patches
	refused map[string]int  // by rule
}

const testBias = 0x7f00_0000_0000

// planner plans for a file as it would be in a process.
func planner(t *testing.T, path string, bias uint64) *Planner {
	t.Helper()
	img, err := image.OpenFile(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	a, err := analyze.New(img, analyze.Options{Profile: classify.ISA, Optimize: true, AsFile: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlanner(a, bias)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// own returns the path of this test's own program.
func own(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// layOut plans wants in all functions of a file.
func layOut(t *testing.T, path string, wants func(r *analyze.Result) []Want) *laid {
	t.Helper()
	return layOutAt(t, path, testBias, wants)
}

// layOutAt does so for a process that has the file elsewhere.
func layOutAt(t *testing.T, path string, bias uint64, wants func(r *analyze.Result) []Want) *laid {
	t.Helper()
	l := &laid{p: planner(t, path, bias), memory: map[uint64]byte{}, refused: map[string]int{}}
	err := analyze.Each(context.Background(), l.p.a, l.p.a.Functions(), func(r *analyze.Result) *Function {
		f, err := l.p.Function(r, wants(r))
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			return &Function{}
		}
		return f
	}, func(f *Function) error {
		l.plans = append(l.plans, f.Plans...)
		for _, r := range f.Refusals {
			l.refused[r.Rule.ID]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	needed := machine.Range{Lo: bias, Hi: bias + 1<<26}
	free := []machine.Range{{Lo: bias - 1<<31, Hi: bias}, {Lo: needed.Hi, Hi: bias + 1<<31}}
	if l.layout, err = l.p.Lay(l.plans, &Memory{Free: free, Needed: needed}); err != nil {
		t.Fatal(err)
	}
	for _, part := range l.layout.Parts {
		for i, b := range part.Code {
			if _, taken := l.memory[part.Addr+uint64(i)]; taken {
				t.Fatalf("two parts at %#x", part.Addr+uint64(i))
			}
			l.memory[part.Addr+uint64(i)] = b
		}
	}
	for _, patch := range l.layout.Patches {
		for i, b := range patch.New[:patch.Len] {
			if _, taken := l.memory[patch.Addr+uint64(i)]; taken {
				t.Fatalf("two patches at %#x", patch.Addr+uint64(i))
			}
			l.memory[patch.Addr+uint64(i)] = b
		}
	}
	return l
}

// at decodes what stands at an address.
func (l *laid) at(addr uint64) (inst decode.Inst, ok bool) {
	var code []byte
	for i := range uint64(decode.MaxLen) {
		b, ok := l.memory[addr+i]
		if !ok {
			break
		}
		code = append(code, b)
	}
	return inst, l.p.isa.Decode(&inst, code, addr) == nil
}

// everyInst wants all that may be probed.
func everyInst(r *analyze.Result) (wants []Want) {
	for i := range r.Insts {
		if r.Verdicts[i].OK() {
			wants = append(wants, Want{Addr: r.Insts[i].Addr})
		}
	}
	return wants
}

func firstInst(r *analyze.Result) []Want { return everyInst(r)[:min(1, len(everyInst(r)))] }

func returnsOf(r *analyze.Result) []Want { return []Want{{Addr: r.Addr, Returns: true, Kind: Gate}} }

// TestWaysLeadToCopies follows every patch of this test's own program.
func TestWaysLeadToCopies(t *testing.T) {
	for _, c := range []struct {
		name  string
		wants func(r *analyze.Result) []Want
		jumps int // at least
	}{{"every instruction", everyInst, 10_000}, {"entries", firstInst, 2000}, {"returns", returnsOf, 2000}} {
		t.Run(c.name, func(t *testing.T) {
			l := layOut(t, own(t), c.wants)
			trap, jumps := l.p.isa.Breakpoint(false), 0
			for _, plan := range l.plans {
				if plan.Copy() == nil {
					t.Errorf("no room for the copy of %#x", plan.From())
					continue
				}
				for i := range plan.Ways {
					w := &plan.Ways[i]
					inst, ok := l.at(w.Addr)
					if !w.Jump {
						if !ok || !bytes.Equal(inst.Bytes(), trap) {
							t.Fatalf("no breakpoint at %#x", w.Addr)
						}
						continue
					}
					jumps++
					l.follow(t, plan, w, inst)
				}
			}
			if jumps < c.jumps {
				t.Errorf("%d jumps, of at least %d", jumps, c.jumps)
			}
		})
	}
}

// follow checks that the jump of a way comes to its step, by a stub at most, and that who
// lands inside of it traps.
func (l *laid) follow(t *testing.T, plan *Plan, w *Way, jump decode.Inst) {
	t.Helper()
	want := plan.Copy().Addr + uint64(plan.Copy().Points[w.Step].Offset)
	target, _ := jump.BranchTarget()
	if target != want {
		onward, _ := l.at(target)
		target, _ = onward.BranchTarget()
	}
	if target != want {
		t.Fatalf("the jump at %#x comes to %#x, want %#x", w.Addr, target, want)
	}
	for k := range uint64(jump.Len) {
		if w.Inside>>k&1 != 0 && bytes.IndexByte(l.p.isa.Traps(), l.memory[w.Addr+k]) < 0 {
			t.Fatalf("byte %d of the jump at %#x does not trap", k, w.Addr)
		}
	}
}

// TestCopiesOfWholeFunctions checks that each instruction that has moved is a way into
// the copy, or inside of a jump, or only a landing pad comes to it.
func TestCopiesOfWholeFunctions(t *testing.T) {
	l := layOut(t, own(t), everyInst)
	whole := 0
	for _, plan := range l.plans {
		if !plan.Whole {
			continue
		}
		whole++
		ways := map[uint64]bool{}
		for _, w := range plan.Ways {
			ways[w.Addr] = true
			for k := range uint64(8) {
				ways[w.Addr+k] = ways[w.Addr+k] || w.Inside>>k&1 != 0
			}
		}
		c := plan.Copy()
		for i, p := range c.Points {
			addr := c.Orig + uint64(p.Orig)
			inst := &plan.code.Steps[i].Inst
			if !ways[addr] && !p.Left && !inst.Has(decode.LandingPad) {
				t.Fatalf("%#x has moved, and is no way in", addr)
			}
			if step, ok := c.At(addr); ok == p.Left || ok && step != i {
				t.Fatalf("%#x: step %d, %v, want %d", addr, step, ok, i)
			}
			if w, ok := c.Locate(c.Addr + uint64(p.Body)); !ok || w.Step != i || w.Item >= 0 || w.Start != p.Body {
				t.Fatalf("%#x: %+v, %v", addr, w, ok)
			}
		}
	}
	if whole < 1000 {
		t.Errorf("%d functions", whole)
	}
}

// TestStacksOfGo checks that code in functions of Go uses no red zone, which there is not,
// and in those that do not check their stack none of it.
func TestStacksOfGo(t *testing.T) {
	for _, c := range []struct {
		name    string
		wants   func(r *analyze.Result) []Want
		refused int // at most, as there is no room on the stack
	}{{"every instruction", everyInst, 5000}, {"entries", firstInst, 1}} { // runtime.asyncPreempt
		t.Run(c.name, func(t *testing.T) {
			l := layOut(t, own(t), c.wants)
			if n := l.refused["process/go-nosplit"]; n > c.refused || n == 0 && c.refused > 0 {
				t.Errorf("%d are refused", n)
			}
			checks := map[uint64]bool{}
			counted, used := 0, 0
			for _, plan := range l.plans {
				fn, _ := l.p.a.FunctionAt(plan.From() - testBias)
				if !l.p.a.Image.IsGo(fn.Addr) {
					continue // of C, which the race detector is written in
				}
				if _, known := checks[fn.Addr]; !known {
					checks[fn.Addr] = (&function{Planner: l.p, r: l.p.a.Judge(fn)}).checksStack()
				}
				copy := plan.Copy()
				if copy == nil {
					continue
				}
				for _, it := range copy.Items {
					counted++
					lowest := l.depth(t, copy.Addr+uint64(it.Offset), copy.Addr+uint64(copy.Points[it.Step].Body))
					if lowest > 0 {
						used++
					}
					if lowest > 8 || lowest > 0 && !checks[fn.Addr] {
						t.Fatalf("%s: code at %#x uses %d bytes of the stack", fn.Name, copy.Addr+uint64(it.Offset), lowest)
					}
				}
			}
			if counted < 2000 || used > counted/10 {
				t.Errorf("%d of %d counters use the stack", used, counted)
			}
		})
	}
}

// TestFlagsOfPreemption checks that nothing is inserted where code that a signal has
// interrupted would lose its flags: before runtime.asyncPreempt saves them, and after it
// has restored them. It is not called, and has no stack to save them on.
func TestFlagsOfPreemption(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := layOut(t, self, everyInst)
	i := slices.IndexFunc(l.p.a.Functions(), func(f image.Function) bool { return strings.TrimSuffix(f.Name, ".abi0") == "runtime.asyncPreempt" })
	if i < 0 {
		t.Fatal("no function of preemption")
	}
	r := l.p.a.Judge(l.p.a.Functions()[i])
	saved := slices.IndexFunc(r.Insts, func(inst decode.Inst) bool { return inst.Bytes()[0] == 0x9c })
	restored := slices.IndexFunc(r.Insts, func(inst decode.Inst) bool { return inst.Bytes()[0] == 0x9d })
	if saved < 0 || restored < saved {
		t.Fatalf("the flags are saved by instruction %d and restored by %d", saved, restored)
	}
	from, to := r.Insts[saved].Next(), r.Insts[restored].Addr
	counted := 0
	for _, plan := range l.plans {
		copy := plan.Copy()
		if copy == nil {
			continue
		}
		for _, it := range copy.Items {
			addr := copy.Orig + uint64(copy.Points[it.Step].Orig) - testBias
			switch {
			case addr < r.Addr || addr >= r.Insts[len(r.Insts)-1].Next():
			case addr < from || addr > to:
				t.Errorf("%#x is counted", addr)
			default:
				counted++
			}
		}
	}
	if counted == 0 {
		t.Error("nothing is counted between")
	}
}

// depth returns how many bytes below the stack pointer code uses.
func (l *laid) depth(t *testing.T, from, to uint64) (most int) {
	t.Helper()
	depth := 0
	for at := from; at < to; {
		inst, ok := l.at(at)
		if !ok {
			t.Fatalf("no code at %#x", at)
		}
		switch b := inst.Bytes(); {
		case b[0]&^7 == 0x50:
			depth += 8
		case b[0]&^7 == 0x58:
			depth -= 8
		case bytes.Equal(b[:2], []byte{0x48, 0x8d}): // of the stack pointer
			depth += 128
		}
		most = max(most, depth)
		at += uint64(inst.Len)
	}
	return most
}

// TestCaves checks that entries which another function's jump comes close to are left by a
// jump in the padding before them.
func TestCaves(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		skip.Missing(t, "gcc")
	}
	path := filepath.Join(t.TempDir(), "caves")
	cmd := exec.Command(gcc, "-nostdlib", "-shared", "-x", "assembler", "-", "-o", path)
	cmd.Stdin = strings.NewReader(`
		.macro function name
		.globl \name
		.type \name, @function
		.p2align 5
		\name:
		.endm
		.text
		function before
		nop; ret
		.size before, .-before
		function nearby
		mov %rdi, %rax
		1: cmp $16, %rdx          # jumped to from elsewhere
		jb 2f
		inc %rax
		2: ret
		.size nearby, .-nearby
		function padded
		endbr64
		push %rax; push %rcx
		3: pop %rcx; pop %rcx; ret
		.size padded, .-padded
		function falls            # it goes on to what is after it
		cmp %rsi, %rdi
		je 1b
		.size falls, .-falls
		function after
		mov %rdi, %rax
		4: ret
		.size after, .-after
		.nops 3
		5: .nops 8
		function landed           # its padding is jumped to
		mov %rdi, %rax
		6: ret
		.size landed, .-landed
		function others
		jp 5b
		jo 6b
		test %rdi, %rdi
		je 1b
		js 3b
		jmp 4b
		.size others, .-others
	`)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l := layOut(t, path, firstInst)
	ways := map[string]*Way{}
	for _, plan := range l.plans {
		fn, _ := l.p.a.FunctionAt(plan.From() - testBias)
		ways[fn.Name] = &plan.Ways[0]
		if w := &plan.Ways[0]; w.Cave != 0 {
			short, _ := l.at(w.Addr)
			if target, _ := short.BranchTarget(); target != w.Cave || short.Len != 2 {
				t.Errorf("%s: a jump of %d bytes to %#x", fn.Name, short.Len, target)
			}
			jump, _ := l.at(w.Cave)
			if target, _ := jump.BranchTarget(); target != plan.Copy().Addr+uint64(plan.Copy().Points[w.Step].Offset) {
				t.Errorf("%s: a jump to %#x", fn.Name, target)
			}
		}
	}
	for _, c := range []struct {
		name       string
		jump, cave bool
	}{{"before", true, false}, {"nearby", true, true}, {"padded", false, false}, {"falls", true, false}, {"after", true, true}, {"landed", false, false}, {"others", true, false}} {
		if w := ways[c.name]; w == nil || w.Jump != c.jump || w.Cave != 0 != c.cave {
			t.Errorf("%s: %+v", c.name, w)
		}
	}
}
