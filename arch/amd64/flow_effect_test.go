//go:build linux && amd64

package amd64_test

import (
	"encoding/hex"
	"slices"
	"testing"

	"xol/arch/amd64"
	"xol/decode"
	"xol/internal/nativecpu"
	"xol/internal/refdata"
	"xol/internal/skip"
	"xol/machine"
)

// effectAt is where the instructions run.
const effectAt = 0x401000

// TestEffects runs instructions on the CPU: they change no register that they
// are not said to change, and no memory.
func TestEffects(t *testing.T) {
	file := amd64.Registers()
	cpu, err := nativecpu.Open(file)
	if err != nil {
		skip.Missing(t, "the right to trace a process", err)
	}
	defer cpu.Close()
	const (
		stride = 3 // of the list's rows
		seeds  = 3
	)
	in, out := file.NewState(), file.NewState()
	ran := 0
	for _, raw := range executed(t, stride) {
		var inst decode.Inst
		if (amd64.ISA{}).Decode(&inst, raw, effectAt) != nil || cpu.Skip(&inst) != "" || inst.Flow != decode.FlowNone {
			continue
		}
		if err := cpu.Load([]machine.Part{{Addr: effectAt, Code: inst.Bytes()}}); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(seeds) {
			randomRegisters(file, in, seed)
			amd64.ISA{}.Prepare(&inst, file, in)
			event, writes, err := cpu.Run(out, in, seed, machine.Range{Lo: effectAt, Hi: inst.Next()}, 64)
			if err != nil {
				t.Fatal(err)
			}
			if event.Kind != machine.EventLeft {
				continue
			}
			ran++
			checkEffect(t, &inst, file, in, out, len(writes) > 0)
		}
	}
	t.Logf("%d runs", ran)
	if ran == 0 {
		t.Error("nothing ran")
	}
}

// randomRegisters fills the general registers with pointers and numbers.
func randomRegisters(file *machine.File, s machine.State, seed uint64) {
	for i := range file.Registers {
		file.SetWord(s, i, file.Registers[i].Set)
	}
	for reg := amd64.RAX; reg <= amd64.R15; reg++ {
		file.SetWord(s, reg, machine.Interesting(machine.Mix(seed<<8|uint64(reg))))
	}
	file.SetWord(s, amd64.RSP, 1<<(machine.PointerBits+1))
	file.SetWord(s, amd64.RIP, effectAt)
}

// executed returns instructions that a CPU is known to execute.
func executed(t *testing.T, stride int) (list [][]byte) {
	rows, err := refdata.Rows("testdata/decode-cpu.tsv.gz")
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		raw, err := hex.DecodeString(row[0])
		if err != nil {
			t.Fatal(err)
		}
		if i%stride == 0 && row[1] != "0" {
			list = append(list, raw)
		}
	}
	// Those that address computations consist of, with any operands.
	for op := range 256 {
		for _, modRM := range []byte{0x00, 0x44, 0xc3, 0xd1, 0xe6, 0xfa} {
			rest := []byte{modRM, 0x24, 0x10, 1, 0, 0, 0}
			for _, prefix := range [][]byte{{}, {0x66}, {0x48}, {0x4d}, {0x0f}, {0x48, 0x0f}} {
				list = append(list, slices.Concat(prefix, []byte{byte(op)}, rest))
			}
		}
	}
	return list
}

func checkEffect(t *testing.T, inst *decode.Inst, file *machine.File, in, out machine.State, wrote bool) {
	full, part, memory := amd64.Effect(inst)
	for reg := amd64.RAX; reg <= amd64.R15; reg++ {
		changed := file.Word(in, reg) ^ file.Word(out, reg)
		if full>>reg&1 != 0 || changed == 0 || part>>reg&1 != 0 && changed < 1<<16 {
			continue
		}
		t.Errorf("% x %s: changes %s by %#x", inst.Bytes(), amd64.ISA{}.Text(inst, nil), file.Registers[reg].Name, changed)
	}
	if wrote && !memory {
		t.Errorf("% x %s: writes memory", inst.Bytes(), amd64.ISA{}.Text(inst, nil))
	}
}
