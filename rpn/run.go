package rpn

import (
	"bytes"
	"errors"
	"sync/atomic"

	"xol/machine"
)

// Status is how a run ended.
type Status uint8

// The ways.
const (
	Exited        Status = iota // by exit, or at the end
	Faulted                     // memory could not be accessed
	DividedByZero               // by divu, divs, modu or mods
)

var statusNames = [...]string{"exited", "faulted", "divided by zero"}

// String returns the status in words.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "invalid"
}

// Result is how a run ended.
type Result struct {
	Status Status
	Code   uint64 // of exit
	Steps  int    // instructions that were executed
	Inst   int    // index of the last one; of the end, the number of all
	Addr   uint64 // that could not be accessed
	Fault  error  // of the memory
}

// Log takes the records of runs, which may be concurrent. What it is given is
// valid during the call.
type Log interface {
	// Values takes a record of numbers.
	Values(name string, values []uint64)
	// String takes a record of a string; complete says that its end was found
	// within the limit.
	String(name string, text []byte, complete bool)
}

// Globals are the variables that runs of one program share. They are safe for
// concurrent use.
type Globals struct {
	program *Program
	values  []atomic.Uint64
}

// NewGlobals returns the program's global variables as they are declared.
func (p *Program) NewGlobals() *Globals {
	g := &Globals{p, make([]atomic.Uint64, len(p.code.Globals))}
	for i := range g.values {
		g.values[i].Store(p.code.Globals[i].Init)
	}
	return g
}

// Get returns a variable by its name.
func (g *Globals) Get(name string) (value uint64, ok bool) {
	for i := range g.values {
		if g.program.code.Globals[i].Name == name {
			return g.values[i].Load(), true
		}
	}
	return 0, false
}

// Set sets a variable by its name; it reports whether there is one.
func (g *Globals) Set(name string, value uint64) bool {
	for i := range g.values {
		if g.program.code.Globals[i].Name == name {
			g.values[i].Store(value)
			return true
		}
	}
	return false
}

// ErrGlobals: the variables are of another program.
var ErrGlobals = errors.New("the global variables are not those of the program")

// opEnd stands after the last instruction.
const opEnd = numOps

// step is a compiled instruction.
type step struct {
	op     opcode
	slot   uint8 // of a loop: its counter
	first  uint8 // and the first of those in it
	target int32
	arg    uint64
}

// frame is what one run needs.
type frame struct {
	stack    [maxStack]uint64
	locals   [maxVariables]uint64
	counters [maxLoops]uint32
	buf      [maxString]byte
}

// top masks indices, which verify has checked, for the compiler.
const top = maxStack - 1

// Run runs the program with the registers and the memory of a program that has
// hit a probe. globals come from NewGlobals and may be nil where the program
// has none; log may be nil. The error is ErrGlobals; what the program itself
// runs into is in the Result. Run allocates nothing, once as many runs have been
// as go on at a time.
func (p *Program) Run(r machine.Registers, m machine.Memory, globals *Globals, log Log) (Result, error) {
	if len(p.code.Globals) > 0 && (globals == nil || globals.program != p) {
		return Result{}, ErrGlobals
	}
	f := p.frames.Get().(*frame)
	clear(f.locals[:len(p.code.Locals)])
	clear(f.counters[:p.loops])
	run := run{program: p, frame: f, regs: r, memory: m, globals: globals, log: log}
	run.execute()
	p.frames.Put(f)
	return run.result, nil
}

// run is a program on its way.
type run struct {
	program *Program
	frame   *frame
	regs    machine.Registers
	memory  machine.Memory
	globals *Globals
	log     Log
	result  Result
}

// execute runs to the end. sp is the number of values on the stack, done that
// of instructions begun. It is one function because a call costs more than most
// instructions.
func (r *run) execute() {
	code, f := r.program.steps, r.frame
	stack := &f.stack
	sp, pc, done := uint(0), 0, 0
	for {
		s := &code[pc]
		pc++
		done++
		switch s.op {
		case opPush:
			stack[sp&top] = s.arg
			sp++
		case opReg:
			stack[sp&top] = r.regs.Reg(int(s.arg))
			sp++
		case opSetReg:
			sp--
			r.regs.SetReg(int(s.arg), stack[sp&top])
		case opGetLocal:
			stack[sp&top] = f.locals[s.arg%maxVariables]
			sp++
		case opSetLocal:
			sp--
			f.locals[s.arg%maxVariables] = stack[sp&top]
		case opAddLocal:
			sp--
			f.locals[s.arg%maxVariables] += stack[sp&top]
		case opFetchAddLocal:
			v := &f.locals[s.arg%maxVariables]
			*v, stack[(sp-1)&top] = *v+stack[(sp-1)&top], *v
		case opGetGlobal:
			stack[sp&top] = r.globals.values[s.arg].Load()
			sp++
		case opSetGlobal:
			sp--
			r.globals.values[s.arg].Store(stack[sp&top])
		case opAddGlobal:
			sp--
			r.globals.values[s.arg].Add(stack[sp&top])
		case opFetchAddGlobal:
			v := &stack[(sp-1)&top]
			*v = r.globals.values[s.arg].Add(*v) - *v
		case opNeg:
			stack[(sp-1)&top] = -stack[(sp-1)&top]
		case opNot:
			stack[(sp-1)&top] = ^stack[(sp-1)&top]
		case opIsZero:
			stack[(sp-1)&top] = truth(stack[(sp-1)&top] == 0)
		case opDup:
			stack[sp&top] = stack[(sp-1)&top]
			sp++
		case opDrop:
			sp--
		case opSwap:
			a, b := &stack[(sp-2)&top], &stack[(sp-1)&top]
			*a, *b = *b, *a
		case opOver:
			stack[sp&top] = stack[(sp-2)&top]
			sp++
		case opRot:
			a, b, c := &stack[(sp-3)&top], &stack[(sp-2)&top], &stack[(sp-1)&top]
			*a, *b, *c = *b, *c, *a
		case opJmp:
			pc = int(s.target)
		case opJz:
			sp--
			if stack[sp&top] == 0 {
				pc = int(s.target)
			}
		case opJnz:
			sp--
			if stack[sp&top] != 0 {
				pc = int(s.target)
			}
		case opLoop:
			n := &f.counters[s.slot%maxLoops]
			if *n++; uint64(*n) < s.arg {
				clear(f.counters[s.first:s.slot])
				pc = int(s.target)
			}
		case opExit:
			r.end(Exited, pc-1, done)
			r.result.Code = s.arg
			return
		case opEnd:
			r.end(Exited, pc-1, done-1) // it is no instruction
			return
		case opLog:
			sp -= uint(s.arg)
			if r.log != nil {
				r.log.Values(r.program.code.Insts[pc-1].Name, stack[sp:sp+uint(s.arg)])
			}
		case opLoad1, opLoad2, opLoad4, opLoad8, opLoad1S, opLoad2S, opLoad4S,
			opStore1, opStore2, opStore4, opStore8, opLogString:
			n := uint(ops[s.op].pops)
			v, addr, err := r.access(s, pc-1, stack[(sp-n)&top], stack[(sp-1)&top])
			switch {
			case err == nil:
				stack[(sp-n)&top] = v
				sp += uint(ops[s.op].pushes) - n
			case s.target == noTarget:
				r.end(Faulted, pc-1, done)
				r.result.Addr, r.result.Fault = addr, err
				return
			default:
				stack[0], sp, pc = addr, 1, int(s.target)
			}
		default:
			sp--
			a, b := stack[(sp-1)&top], stack[sp&top]
			if b == 0 && s.op >= opDivU && s.op <= opModS {
				r.end(DividedByZero, pc-1, done)
				return
			}
			stack[(sp-1)&top] = binary2(s.op, a, b)
		}
	}
}

func (r *run) end(s Status, inst, steps int) {
	r.result.Status, r.result.Inst, r.result.Steps = s, inst, steps
}

// binary2 is what the operations of two values leave. b is no divisor of 0.
func binary2(op opcode, a, b uint64) uint64 {
	switch op {
	case opAdd:
		return a + b
	case opSub:
		return a - b
	case opMul:
		return a * b
	case opDivU:
		return a / b
	case opDivS:
		return uint64(int64(a) / int64(b))
	case opModU:
		return a % b
	case opModS:
		return uint64(int64(a) % int64(b))
	case opAnd:
		return a & b
	case opOr:
		return a | b
	case opXor:
		return a ^ b
	case opShl:
		return a << b
	case opShrU:
		return a >> b
	case opShrS:
		return uint64(int64(a) >> b)
	case opEq:
		return truth(a == b)
	case opNe:
		return truth(a != b)
	case opLtU:
		return truth(a < b)
	case opLeU:
		return truth(a <= b)
	case opGtU:
		return truth(a > b)
	case opGeU:
		return truth(a >= b)
	case opLtS:
		return truth(int64(a) < int64(b))
	case opLeS:
		return truth(int64(a) <= int64(b))
	case opGtS:
		return truth(int64(a) > int64(b))
	}
	return truth(int64(a) >= int64(b)) // OpGeS
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// access does what an instruction does to memory at addr. v is what it loads.
// failed is the address of a fault, which is addr but for strings.
func (r *run) access(s *step, inst int, addr, value uint64) (v, failed uint64, err error) {
	switch s.op {
	case opLoad1, opLoad1S, opLoad2, opLoad2S, opLoad4, opLoad4S, opLoad8:
		v, err = r.load(s.op, addr)
	case opLogString:
		return r.logString(s, inst, addr)
	default:
		err = r.store(s.op, addr, value)
	}
	return v, addr, err
}

// load loads a number and extends it.
func (r *run) load(op opcode, addr uint64) (uint64, error) {
	if op == opLoad8 {
		return r.memory.ReadWord(addr)
	}
	b := r.frame.buf[:1<<((op-opLoad1)&3)]
	if err := r.memory.Read(b, addr); err != nil {
		return 0, err
	}
	v := uint64(0)
	for i := range b {
		if r.program.big {
			v = v<<8 | uint64(b[i])
		} else {
			v |= uint64(b[i]) << (8 * i)
		}
	}
	if op >= opLoad1S {
		unused := 64 - 8*len(b)
		v = uint64(int64(v<<unused) >> unused)
	}
	return v, nil
}

func (r *run) store(op opcode, addr, v uint64) error {
	if op == opStore8 {
		return r.memory.WriteWord(addr, v)
	}
	b := r.frame.buf[:1<<(op-opStore1)]
	for i := range b {
		if r.program.big {
			b[len(b)-1-i] = byte(v >> (8 * i))
		} else {
			b[i] = byte(v >> (8 * i))
		}
	}
	return r.memory.Write(addr, b)
}

// logString reads a string piece by piece; no piece reaches into a page that
// the string may not reach into.
func (r *run) logString(s *step, inst int, addr uint64) (_, failed uint64, err error) {
	const piece = 64 // bytes, aligned
	text, complete := r.frame.buf[:0], false
	for uint64(len(text)) < s.arg && !complete {
		next := text[len(text):min(uint64(len(text))+piece-addr%piece, s.arg)]
		if err := r.memory.Read(next, addr); err != nil {
			return 0, addr, err
		}
		end := bytes.IndexByte(next, 0)
		if complete = end >= 0; complete {
			next = next[:end]
		}
		text = text[:len(text)+len(next)]
		addr += uint64(len(next))
	}
	if r.log != nil {
		r.log.String(r.program.code.Insts[inst].Name, text, complete)
	}
	return 0, 0, nil
}
