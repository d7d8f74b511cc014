package detour_test

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"xol/arch"
	"xol/detour"
	"xol/machine"
)

func swapped(v uint64) uint64 { return bits.ReverseBytes64(v) }

// inOrder turns a word with its lowest byte first into the ISA's order.
func (r *runner) inOrder(v uint64) uint64 {
	if r.isa.Name() == "ppc64" {
		return v
	}
	return swapped(v)
}

// redZones are the bytes between the stack pointer and the frame.
var redZones = map[string]map[bool]uint64{
	"amd64":   {false: 128, true: 0},
	"arm64":   {false: 0, true: 0},
	"ppc64":   {false: 512, true: 288},
	"ppc64le": {false: 512, true: 288},
}

// frameCase is a way to call back.
type frameCase struct {
	name           string
	kernel, trapIP bool
	callback       uint64
}

var frameCases = []frameCase{
	{"user", false, false, home + 0x11000},
	{"kernel", true, false, home + 0x11000},
	{"callback out of reach", false, false, home + 0x1000_0000_0000},
	{"kernel, callback out of reach", true, false, home + 0x1000_0000_0000},
	{"instruction pointer as after a breakpoint", false, true, home + 0x11000},
}

// testFrames checks what the callback finds in the frame, and what becomes of
// what it writes there.
func testFrames(t *testing.T, name string, open opener) {
	isa := isaOf(t, name)
	for _, c := range frameCases {
		t.Run(name+" "+c.name, func(t *testing.T) {
			r := newRunner(t, isa, open)
			r.callback = c.callback
			opt := detour.Options{Kernel: c.kernel, TrapIP: c.trapIP, Probe: probeArgument, TOC: tocValue}
			for seed := range uint64(30) {
				r.randomize(seed)
				if event := r.run(t, nops(isa), opt, callbackCheck); event.Kind != machine.EventLeft {
					t.Fatalf("ended: %v", event.Kind)
				}
				r.checkFrame(t, c)
				r.checkRegisters(t, func(i int) uint64 { return r.file.Word(r.start, i) })
				if event := r.run(t, nops(isa), opt, callbackChange); event.Kind != machine.EventLeft {
					t.Fatalf("ended: %v", event.Kind)
				}
				r.checkRegisters(t, r.changed)
			}
		})
	}
}

// checkFrame compares the frame with the registers before the hit. The moved
// instructions have left it as it was.
func (r *runner) checkFrame(t *testing.T, c frameCase) {
	t.Helper()
	frame := r.isa.PtRegs()
	sp := r.file.Word(r.start, r.file.SP)
	base := sp - redZones[r.isa.Name()][c.kernel] - uint64(frame.Size)
	for _, f := range frame.Fields {
		want, known := r.expected(f, c)
		if got := r.memory(base + uint64(f.Offset)); known && got != want {
			t.Errorf("%s is %#x, want %#x", f.Name, got, want)
		}
	}
	if used := int(sp - base); r.plan.Stack < used {
		t.Errorf("the frame is %d bytes down, Stack %d", used, r.plan.Stack)
	}
}

// expected returns what a field must hold. Segment registers are those of a
// Linux program on the CPU, elsewhere the engine's own.
func (r *runner) expected(f detour.Field, c frameCase) (value uint64, known bool) {
	onCPU := r.engine.Name() == "cpu"
	switch {
	case f.Register == r.file.PC && c.trapIP && r.isa.Name() == "amd64":
		return home + 1, true
	case f.Register == r.file.PC:
		return home, true
	case f.Name == "pstate" && c.kernel:
		const el1h, masked = 5, 0xf << 6 // as the engine starts
		return r.file.Word(r.start, f.Register) | el1h | masked, true
	case f.Register != detour.NoRegister:
		return r.file.Word(r.start, f.Register), true
	}
	switch f.Name {
	case "orig_rax":
		return 1<<64 - 1, true
	case "trap":
		return 0x700, true
	case "msr":
		return 0, !c.kernel
	case "cs":
		return 0x33, onCPU
	case "ss":
		return 0x2b, onCPU
	}
	return 0, true
}

// changed returns what the callback change makes of a register.
func (r *runner) changed(index int) uint64 {
	for _, f := range r.isa.PtRegs().Fields {
		if f.Register != index || !f.Restored {
			continue
		}
		switch f.Name {
		case "eflags":
			return 0xed7
		case "pstate", "xer":
			return 0xa0000000
		case "ccr":
			return 0x12345678
		}
		return 0xc0de0000 + uint64(f.Offset)
	}
	return r.file.Word(r.start, index)
}

// checkRegisters compares the general registers, flags and what else is in the
// frame with want, after the buffer.
func (r *runner) checkRegisters(t *testing.T, want func(index int) uint64) {
	t.Helper()
	if pc := r.file.Word(r.end, r.file.PC); pc != r.plan.Next() {
		t.Errorf("continues at %#x, not at %#x", pc, r.plan.Next())
	}
	for _, f := range r.isa.PtRegs().Fields {
		if f.Register == detour.NoRegister || f.Register == r.file.PC {
			continue
		}
		if got := r.file.Word(r.end, f.Register); got != want(f.Register) {
			t.Errorf("%s is %#x, want %#x", f.Name, got, want(f.Register))
		}
	}
}

// nops returns the least region of instructions that do nothing.
func nops(isa arch.Prober) []byte {
	switch isa.Name() {
	case "amd64":
		return []byte{0x90, 0x90, 0x90, 0x90, 0x90}
	case "arm64":
		return binary.LittleEndian.AppendUint32(nil, 0xd503201f)
	case "ppc64":
		return binary.BigEndian.AppendUint32(nil, 0x60000000)
	}
	return binary.LittleEndian.AppendUint32(nil, 0x60000000)
}
