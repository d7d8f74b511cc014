package rpn

import (
	"fmt"
	"strings"

	"xol/internal/cputest"
)

// judge is an interpreter that takes the package comment at its word and
// trusts nothing: it panics where the stack is too empty or a place does not
// exist.
type judge struct {
	code    *source
	cpu     *cputest.CPU
	log     records
	stack   []uint64
	locals  map[uint64]uint64
	globals map[uint64]uint64
	rounds  map[int]uint64 // of loops, by their instruction
	result  Result
}

func (r *judge) push(v uint64) { r.stack = append(r.stack, v) }

func (r *judge) pop() uint64 {
	v := r.stack[len(r.stack)-1]
	r.stack = r.stack[:len(r.stack)-1]
	return v
}

// run runs to the end.
func (r *judge) run() {
	for pc := 0; pc >= 0; {
		r.result.Inst = pc
		if pc == len(r.code.Insts) {
			return
		}
		r.result.Steps++
		pc = r.step(pc, &r.code.Insts[pc])
	}
}

// step executes an instruction and returns the next one; -1 where it ends the
// program.
func (r *judge) step(pc int, in *instruction) int {
	switch name := in.Op.String(); name {
	case "push":
		r.push(in.Arg)
	case "reg":
		r.push(r.cpu.Reg(int(in.Arg)))
	case "setreg":
		r.cpu.SetReg(int(in.Arg), r.pop())
	case "get", "set", "addto", "fetchadd":
		r.variable(name, in)
	case "drop", "dup", "swap", "over", "rot", "neg", "not", "iszero":
		r.shuffle(name)
	case "jmp":
		return in.Target
	case "jz", "jnz":
		if (r.pop() == 0) == (name == "jz") {
			return in.Target
		}
	case "loop":
		if r.rounds[pc]++; r.rounds[pc] < in.Arg {
			for inner := in.Target; inner < pc; inner++ {
				delete(r.rounds, inner)
			}
			return in.Target
		}
	case "exit":
		r.result.Code = in.Arg
		return -1
	case "log":
		values := make([]uint64, in.Arg)
		for i := range values {
			values[len(values)-1-i] = r.pop()
		}
		r.log.Values(in.Name, values)
	case "load1", "load2", "load4", "load8", "load1s", "load2s", "load4s", "store1", "store2", "store4", "store8", "logstr":
		return r.memory(pc, name, in)
	default:
		return r.arithmetic(pc, name)
	}
	return pc + 1
}

func (r *judge) variable(name string, in *instruction) {
	vars := r.locals
	if in.Op >= opGetGlobal {
		vars = r.globals
	}
	switch name {
	case "get":
		r.push(vars[in.Arg])
	case "set":
		vars[in.Arg] = r.pop()
	case "addto":
		vars[in.Arg] += r.pop()
	case "fetchadd":
		old := vars[in.Arg]
		vars[in.Arg] += r.pop()
		r.push(old)
	}
}

func (r *judge) shuffle(name string) {
	c := r.pop()
	switch name {
	case "dup":
		r.push(c)
		r.push(c)
	case "neg":
		r.push(0 - c)
	case "not":
		r.push(1<<64 - 1 - c)
	case "iszero":
		r.push(map[bool]uint64{true: 1}[c == 0])
	case "swap":
		b := r.pop()
		r.push(c)
		r.push(b)
	case "over":
		b := r.pop()
		r.push(b)
		r.push(c)
		r.push(b)
	case "rot":
		b, a := r.pop(), r.pop()
		r.push(b)
		r.push(c)
		r.push(a)
	}
}

// memory reads and writes byte by byte, in little-endian order.
func (r *judge) memory(pc int, name string, in *instruction) int {
	value, size := uint64(0), int(name[len(name)-1]-'0')
	signed := strings.HasSuffix(name, "s")
	if signed {
		size = int(name[len(name)-2] - '0')
	}
	if name[0] == 's' {
		value = r.pop()
	}
	addr := r.pop()
	failed, err := addr, error(nil)
	switch name[:2] {
	case "st":
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(value >> (8 * i))
		}
		err = r.cpu.Write(addr, b)
	case "lo":
		if name == "logstr" {
			failed, err = r.text(addr, in)
			break
		}
		b := make([]byte, size)
		if err = r.cpu.Read(b, addr); err == nil {
			for i := range b {
				value += uint64(b[i]) << (8 * i)
			}
			if signed && b[size-1] >= 0x80 {
				value -= 1 << (8 * size)
			}
			r.push(value)
		}
	}
	switch {
	case err == nil:
		return pc + 1
	case in.Target == noTarget:
		r.result.Status, r.result.Addr, r.result.Fault = Faulted, failed, err
		return -1
	}
	r.stack = []uint64{failed}
	return in.Target
}

// text logs a string. A fault is told at the start of the string or at a
// multiple of 64 bytes after it, as the string is read in such pieces.
func (r *judge) text(addr uint64, in *instruction) (failed uint64, err error) {
	var s []byte
	for piece := addr; uint64(len(s)) < in.Arg; addr++ {
		if addr%64 == 0 {
			piece = addr
		}
		b := make([]byte, 1)
		if err := r.cpu.Read(b, addr); err != nil {
			return piece, err
		}
		if b[0] == 0 {
			r.log.String(in.Name, s, true)
			return 0, nil
		}
		s = append(s, b[0])
	}
	r.log.String(in.Name, s, false)
	return 0, nil
}

func (r *judge) arithmetic(pc int, name string) int {
	b, a := r.pop(), r.pop()
	if b == 0 && (strings.HasPrefix(name, "div") || strings.HasPrefix(name, "mod")) {
		r.result.Status = DividedByZero
		return -1
	}
	v, ok := meaning(name, a, b)
	if !ok {
		panic(fmt.Sprintf("no meaning of %s", name))
	}
	r.push(v)
	return pc + 1
}

// meaning is what the operations of two values leave, by their names.
func meaning(name string, a, b uint64) (v uint64, ok bool) {
	number := map[string]func() uint64{
		"add": func() uint64 { return a + b }, "sub": func() uint64 { return a - b }, "mul": func() uint64 { return a * b },
		"and": func() uint64 { return a & b }, "or": func() uint64 { return a | b }, "xor": func() uint64 { return a&^b | b&^a },
		"shl": func() uint64 { return a << b }, "shru": func() uint64 { return a >> b },
		"shrs": func() uint64 { return uint64(int64(a) >> b) },
		"divu": func() uint64 { return a / b }, "modu": func() uint64 { return a - a/b*b },
		"divs": func() uint64 { return uint64(int64(a) / int64(b)) },
		"mods": func() uint64 { return uint64(int64(a) - int64(a)/int64(b)*int64(b)) },
	}
	if f, ok := number[name]; ok {
		return f(), true
	}
	less := map[byte]bool{'u': a < b, 's': int64(a) < int64(b)}[name[len(name)-1]]
	holds, ok := map[string]bool{
		"eq": a == b, "ne": a != b,
		"lt": less, "ge": !less, "le": less || a == b, "gt": !less && a != b,
	}[name[:2]]
	return map[bool]uint64{true: 1}[holds], ok
}
