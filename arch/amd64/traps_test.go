//go:build linux && amd64

package amd64_test

import (
	"testing"

	"xol/arch/amd64"
	"xol/internal/nativecpu"
	"xol/internal/skip"
	"xol/machine"
)

// TestTraps has a CPU execute each trap before every byte: it does, and stays where
// it is, or after int3.
func TestTraps(t *testing.T) {
	const at = 0x401000
	file := amd64.Registers()
	cpu, err := nativecpu.Open(file)
	if err != nil {
		skip.Missing(t, "the right to trace a process", err)
	}
	defer cpu.Close()
	in, out := file.NewState(), file.NewState()
	for i, trap := range (amd64.ISA{}).Traps() {
		for next := range 256 {
			code := []byte{trap, byte(next), 0, 0, 0, 0, 0, 0}
			if err := cpu.Load([]machine.Part{{Addr: at, Code: code}}); err != nil {
				t.Fatal(err)
			}
			randomRegisters(file, in, 1)
			file.SetWord(in, file.PC, at)
			event, writes, err := cpu.Run(out, in, 1, machine.Range{Lo: at, Hi: at + uint64(len(code))}, 1)
			if err != nil {
				t.Fatal(err)
			}
			want, pc := machine.EventUndefined, uint64(at)
			if i == 0 {
				want, pc = machine.EventException, at+1
			}
			if got := file.Word(out, file.PC); event.Kind != want || got != pc || len(writes) > 0 {
				t.Fatalf("% x: %v at %#x, want %v at %#x", code[:2], event.Kind, got, want, pc)
			}
		}
	}
}
