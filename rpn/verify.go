package rpn

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// verify checks code and returns it as a program; see the package comment for
// what is checked. Its errors are *Error.
func verify(code *source, target *Target) (*Program, error) {
	v := verifier{code: code, target: target}
	if err := v.declarations(); err != nil {
		return nil, err
	}
	n := len(code.Insts)
	if n > maxInsts {
		return nil, &Error{Inst: maxInsts, What: fmt.Sprintf("%d instructions; a program has at most %d", n, maxInsts)}
	}
	v.depths, v.weights = make([]int, n), make([]int, n)
	for i := range v.depths {
		v.depths[i], v.weights[i] = unreached, 1
	}
	v.total = n
	if n > 0 {
		v.depths[0] = 0
	}
	for i := range code.Insts {
		if what := v.inst(i); what != "" {
			return nil, &Error{Inst: i, Text: code.Insts[i].Op.String(), What: what}
		}
	}
	return v.program(), nil
}

// unreached is the depth at an instruction that nothing leads to so far. As all
// jumps but those of loops lead forward, it is final when the instruction comes.
const unreached = -1

type verifier struct {
	code     *source
	target   *Target
	depths   []int // of the stack before each instruction
	maxDepth int
	weights  []int // how often each instruction may be executed
	total    int   // the sum of them
	loops    []loop
	open     []int // loops that are in no other so far, by index
}

// loop is a loop instruction: what it leads back to, and the first of the
// loops, itself at last, that lie in it.
type loop struct{ start, end, first int }

// declarations checks the names of variables.
func (v *verifier) declarations() error {
	seen := map[string]bool{}
	check := func(name string) string {
		switch {
		case !isName(name):
			return fmt.Sprintf("%q is not a name: letters, digits, _ and . with no digit in front", name)
		case seen[name]:
			return fmt.Sprintf("variable %s is declared twice", name)
		}
		seen[name] = true
		return ""
	}
	if len(v.code.Globals) > maxVariables || len(v.code.Locals) > maxVariables {
		return &Error{Inst: -1, What: fmt.Sprintf("too many variables; there may be %d of each kind", maxVariables)}
	}
	for _, g := range v.code.Globals {
		if what := check(g.Name); what != "" {
			return &Error{Inst: -1, What: what}
		}
	}
	for _, name := range v.code.Locals {
		if what := check(name); what != "" {
			return &Error{Inst: -1, What: what}
		}
	}
	return nil
}

// inst checks one instruction and returns what is wrong with it.
func (v *verifier) inst(i int) string {
	in := &v.code.Insts[i]
	if in.Op >= numOps {
		return "no such operation"
	}
	depth := v.depths[i]
	if depth == unreached {
		return "nothing leads here; remove it, or jump to it"
	}
	if what := v.operand(in); what != "" {
		return what
	}
	if pops := in.pops(); depth < pops {
		return fmt.Sprintf("takes %s from the stack, which has %d", values(pops), depth)
	}
	depth += ops[in.Op].pushes - in.pops()
	if v.maxDepth = max(v.maxDepth, depth); depth > maxStack {
		return fmt.Sprintf("the stack gets deeper than %d values", maxStack)
	}
	return v.flow(i, in, depth)
}

// flow passes the depth after an instruction on to what comes next.
func (v *verifier) flow(i int, in *instruction, depth int) string {
	switch in.Op {
	case opExit:
		return ""
	case opLoop:
		if what := v.loop(i, in, depth); what != "" {
			return what
		}
	case opJmp:
		return v.jump(i, in.Target, depth)
	case opJz, opJnz:
		if what := v.jump(i, in.Target, depth); what != "" {
			return what
		}
	default:
		if ops[in.Op].memory && in.Target != noTarget {
			v.maxDepth = max(v.maxDepth, 1)
			if what := v.jump(i, in.Target, 1); what != "" {
				return "on a fault " + what
			}
		}
	}
	return v.reach(i+1, depth)
}

// jump checks a way forward.
func (v *verifier) jump(i, target, depth int) string {
	switch {
	case target < 0 || target > len(v.depths):
		return fmt.Sprintf("the target %d is outside the program", target)
	case target <= i:
		return "the target is not further down; only loop leads back"
	}
	return v.reach(target, depth)
}

// reach says that there is a way to an instruction. The end takes any depth.
func (v *verifier) reach(i, depth int) string {
	switch {
	case i == len(v.depths) || v.depths[i] == depth:
	case v.depths[i] == unreached:
		v.depths[i] = depth
	default:
		return fmt.Sprintf("instruction %d is reached with %s on the stack from here, with %d by another way",
			i, values(depth), v.depths[i])
	}
	return ""
}

// loop checks a way back, and counts how much more often than without it the
// instructions of the loop may be executed.
func (v *verifier) loop(i int, in *instruction, depth int) string {
	start := in.Target
	switch {
	case start < 0 || start > i:
		return "the target is not further up; jmp, jz and jnz lead forward"
	case v.depths[start] != depth:
		return fmt.Sprintf("the stack has %s here, %d where the loop starts", values(depth), v.depths[start])
	case len(v.loops) == maxLoops:
		return fmt.Sprintf("more than %d loops", maxLoops)
	}
	l := loop{start: start, end: i, first: len(v.loops)}
	for n := len(v.open); n > 0; n-- {
		inner := &v.loops[v.open[n-1]]
		if inner.start < start {
			if inner.end >= start {
				return fmt.Sprintf("overlaps the loop that ends at instruction %d; one has to lie in the other", inner.end)
			}
			break
		}
		l.first = inner.first
		v.open = v.open[:n-1]
	}
	v.open = append(v.open, len(v.loops))
	v.loops = append(v.loops, l)
	return v.repeat(l, in.Arg)
}

// repeat multiplies the weights of a loop's instructions.
func (v *verifier) repeat(l loop, times uint64) string {
	for i := l.start; i <= l.end; i++ {
		// Both factors are at most maxSteps.
		more := v.weights[i] * (int(times) - 1)
		v.weights[i] += more
		if v.total += more; v.total > maxSteps {
			return fmt.Sprintf("the program could take more than %d steps; make this loop, or one around it, shorter", maxSteps)
		}
	}
	return ""
}

// operand checks what an instruction refers to.
func (v *verifier) operand(in *instruction) string {
	within := func(what string, n int) string {
		if in.Arg >= uint64(n) {
			return fmt.Sprintf("%s %d does not exist; there are %d", what, in.Arg, n)
		}
		return ""
	}
	between := func(what string, low, high uint64) string {
		if in.Arg < low || in.Arg > high {
			return fmt.Sprintf("%d is not a number of %s from %d to %d", in.Arg, what, low, high)
		}
		return ""
	}
	what := ""
	switch ops[in.Op].operand {
	case operandRegister:
		return within("register", len(v.target.File.Registers))
	case operandLocal:
		return within("local variable", len(v.code.Locals))
	case operandGlobal:
		return within("global variable", len(v.code.Globals))
	case operandLoop:
		return between("rounds", 1, maxSteps)
	case operandLog:
		what = between("values", 0, maxValues)
	case operandString:
		what = between("bytes", 1, maxString)
	default:
		return ""
	}
	if what == "" && !isPrintable(in.Name) {
		what = fmt.Sprintf("%q is not a record's name: printable characters, up to %d bytes", in.Name, maxName)
	}
	return what
}

const maxName = 64 // bytes

func isPrintable(name string) bool {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) {
		return false
	}
	for _, c := range name {
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}

// isName reports whether variables and labels may have a name.
func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i], i == 0) {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

func isNameByte(c byte, first bool) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '.':
		return true
	}
	return !first && c >= '0' && c <= '9'
}

func values(n int) string {
	if n == 1 {
		return "1 value"
	}
	return fmt.Sprintf("%d values", n)
}

// program compiles what has been checked.
func (v *verifier) program() *Program {
	p := &Program{
		target: *v.target, maxSteps: v.total, maxDepth: v.maxDepth, loops: len(v.loops),
		code: source{slices.Clone(v.code.Globals), slices.Clone(v.code.Locals), slices.Clone(v.code.Insts)},
		big:  v.target.Order == binary.ByteOrder(binary.BigEndian),
	}
	p.steps = make([]step, 0, len(v.code.Insts)+1)
	slot := 0
	for i := range p.code.Insts {
		in := &p.code.Insts[i]
		in.normalize()
		s := step{op: in.Op, target: int32(in.Target), arg: in.Arg}
		if in.Op == opLoop {
			s.slot, s.first = uint8(slot), uint8(v.loops[slot].first)
			slot++
		}
		p.steps = append(p.steps, s)
	}
	p.steps = append(p.steps, step{op: opEnd})
	p.frames.New = func() any { return new(frame) }
	return p
}

// normalize clears what the operation does not use, so that equal programs
// have equal code.
func (in *instruction) normalize() {
	o := ops[in.Op].operand
	if o == operandNone || o == operandLabel {
		in.Arg = 0
	}
	if !in.hasTarget() {
		in.Target = noTarget
	}
	if o != operandLog && o != operandString {
		in.Name = ""
	}
}
