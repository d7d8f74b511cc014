package workload

import "math/rand/v2"

// The stack machine that the guest's interpreters are, in Go.
const (
	stackWords = 32
	mostSteps  = 4096
)

type stackMachine struct {
	stack  [stackWords]uint64
	memory [8]uint64
	sp     uint64
	at     int64
	input  int64
}

func (m *stackMachine) push(v uint64) {
	m.sp++
	m.stack[m.sp%stackWords] = v
}

func (m *stackMachine) pop() uint64 {
	v := m.stack[m.sp%stackWords]
	m.sp--
	return v
}

// instruction is one of the stack machine, with one operand byte or none. It
// returns false to halt.
type instruction struct {
	bytes int64
	do    func(m *stackMachine, operand byte) bool
}

func monadic(f func(a uint64) uint64) instruction {
	return instruction{0, func(m *stackMachine, _ byte) bool { m.push(f(m.pop())); return true }}
}

func dyadic(f func(a, b uint64) uint64) instruction {
	return instruction{0, func(m *stackMachine, _ byte) bool {
		b, a := m.pop(), m.pop()
		m.push(f(a, b))
		return true
	}}
}

func plain(bytes int64, f func(m *stackMachine, operand byte)) instruction {
	return instruction{bytes, func(m *stackMachine, operand byte) bool { f(m, operand); return true }}
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

var instructions = []instruction{
	plain(0, func(*stackMachine, byte) {}),
	plain(1, func(m *stackMachine, o byte) { m.push(uint64(int8(o))) }),
	plain(0, func(m *stackMachine, _ byte) { m.push(uint64(m.input)) }),
	plain(0, func(m *stackMachine, _ byte) { a := m.pop(); m.push(a); m.push(a) }),
	plain(0, func(m *stackMachine, _ byte) { m.sp-- }),
	plain(0, func(m *stackMachine, _ byte) { a, b := m.pop(), m.pop(); m.push(a); m.push(b) }),
	plain(0, func(m *stackMachine, _ byte) { m.push(m.stack[(m.sp-1)%stackWords]) }),
	dyadic(func(a, b uint64) uint64 { return a + b }),
	dyadic(func(a, b uint64) uint64 { return a - b }),
	dyadic(func(a, b uint64) uint64 { return a * b }),
	dyadic(func(a, b uint64) uint64 {
		if b == 0 {
			return a
		}
		return a / b
	}),
	dyadic(func(a, b uint64) uint64 {
		if b == 0 {
			return 0
		}
		return a % b
	}),
	dyadic(func(a, b uint64) uint64 { return a & b }),
	dyadic(func(a, b uint64) uint64 { return a | b }),
	dyadic(func(a, b uint64) uint64 { return a ^ b }),
	dyadic(func(a, b uint64) uint64 { return a << (b & 63) }),
	dyadic(func(a, b uint64) uint64 { return a >> (b & 63) }),
	monadic(func(a uint64) uint64 { return -a }),
	monadic(func(a uint64) uint64 { return ^a }),
	dyadic(func(a, b uint64) uint64 { return truth(int64(a) < int64(b)) }),
	dyadic(func(a, b uint64) uint64 { return truth(a == b) }),
	monadic(func(a uint64) uint64 { return a + 1 }),
	monadic(func(a uint64) uint64 { return a - 1 }),
	plain(1, func(m *stackMachine, o byte) { m.push(m.memory[o&7]) }),
	plain(1, func(m *stackMachine, o byte) { m.memory[o&7] = m.pop() }),
	plain(1, func(m *stackMachine, o byte) { m.at += int64(int8(o)) }),
	plain(1, func(m *stackMachine, o byte) {
		if m.pop() == 0 {
			m.at += int64(int8(o))
		}
	}),
	{0, func(*stackMachine, byte) bool { return false }},
}

// run returns what the guest's interpreters return.
func (m *stackMachine) run(code []byte) uint64 {
	for range mostSteps {
		if m.at < 0 || m.at >= int64(len(code)) {
			break
		}
		in := &instructions[int(code[m.at])%len(instructions)]
		operand := m.at + 1
		m.at = operand + in.bytes
		if m.at > int64(len(code)) {
			break
		}
		o := byte(0)
		if in.bytes > 0 {
			o = code[operand]
		}
		if !in.do(m, o) {
			break
		}
	}
	sum := uint64(0)
	for _, v := range m.stack {
		sum = sum*31 + v
	}
	for _, v := range m.memory {
		sum = sum*31 + v
	}
	return sum
}

func running(function string) func(*Buffer, *rand.Rand) (Call, error) {
	return func(b *Buffer, r *rand.Rand) (Call, error) {
		code := random(r, 200)
		m := stackMachine{input: int64(r.Uint64())}
		input := uint64(m.input)
		return Call{function, []uint64{b.Addr, uint64(len(code)), input}, wants(m.run(code))}, b.Write(b.Addr, code)
	}
}
