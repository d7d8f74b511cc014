//go:build linux && amd64

package amd64_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"xol/arch/amd64"
	"xol/decode"
	"xol/internal/nativecpu"
	"xol/internal/refdata"
	"xol/internal/skip"
	"xol/machine"
)

const statusFlags = amd64.FlagCF | amd64.FlagPF | amd64.FlagAF | amd64.FlagZF | amd64.FlagSF | amd64.FlagOF

// TestFlagsOnTheCPU asks the CPU which flags instructions read and set.
func TestFlagsOnTheCPU(t *testing.T) {
	cpu, err := nativecpu.Open(amd64.Registers())
	if err != nil {
		skip.Missing(t, "the right to trace a process", err)
	}
	defer cpu.Close()
	testFlags(t, cpu)
}

// flagsJudge runs an instruction with one flag changed at a time.
type flagsJudge struct {
	engine           machine.Engine
	file             *machine.File
	in, out, changed machine.State
	writes           []machine.Write
}

// testFlags runs instructions of every form. A flag that is not read may change nothing
// but itself, and one that is set not even that.
func testFlags(t *testing.T, engine machine.Engine) {
	file := amd64.Registers()
	j := &flagsJudge{engine: engine, file: file, in: file.NewState(), out: file.NewState(), changed: file.NewState()}
	const seeds = 2
	ran, unknown := 0, 0
	for _, raw := range flagsForms(t) {
		var inst decode.Inst
		if (amd64.ISA{}).Decode(&inst, raw, effectAt) != nil || engine.Skip(&inst) != "" ||
			inst.Flow != decode.FlowNone && inst.Flow != decode.FlowJumpIf {
			continue
		}
		if _, _, ok := amd64.FlagUse(&inst); !ok {
			unknown++
			continue
		}
		if err := engine.Load([]machine.Part{{Addr: effectAt, Code: inst.Bytes()}}); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(seeds) {
			executed, what := j.judge(t, &inst, seed)
			if !executed {
				break
			}
			ran++
			for _, w := range what {
				t.Errorf("% x %s: %s", inst.Bytes(), amd64.ISA{}.Text(&inst, nil), w)
			}
		}
	}
	t.Logf("%d runs, %d forms of which nothing is known", ran, unknown)
	if ran < 5000 {
		t.Error("too few")
	}
}

// judge runs an instruction from one state, with each flag as it is there and changed.
func (j *flagsJudge) judge(t *testing.T, inst *decode.Inst, seed uint64) (executed bool, what []string) {
	t.Helper()
	read, set, _ := amd64.FlagUse(inst)
	randomRegisters(j.file, j.in, seed)
	amd64.ISA{}.Prepare(inst, j.file, j.in)
	flags := j.file.Word(j.in, amd64.RFLAGS) | machine.Mix(seed+1000)&statusFlags
	j.file.SetWord(j.in, amd64.RFLAGS, flags)
	first, ok := j.run(t, j.out, inst, seed)
	if !ok {
		return false, nil
	}
	writes := slices.Clone(j.writes)
	for _, flag := range turns(read, set) {
		j.file.SetWord(j.in, amd64.RFLAGS, flags^flag)
		event, _ := j.run(t, j.changed, inst, seed)
		differ := j.file.Word(j.out, amd64.RFLAGS) ^ j.file.Word(j.changed, amd64.RFLAGS)
		j.file.SetWord(j.changed, amd64.RFLAGS, j.file.Word(j.out, amd64.RFLAGS))
		name := fmt.Sprintf("flag %#x", flag)
		switch {
		case event != first:
			what = append(what, fmt.Sprintf("%s changes how it ends: %v, %v", name, first, event))
		case differ&^flag != 0:
			what = append(what, fmt.Sprintf("%s changes the flags %#x", name, differ))
		case differ&set != 0:
			what = append(what, name+" is not set")
		case !bytes.Equal(j.out, j.changed):
			what = append(what, name+" changes registers")
		case !slices.Equal(writes, j.writes):
			what = append(what, name+" changes memory")
		}
	}
	return true, what
}

// turns returns what to change: flag by flag, or all at once where none is said to be
// used.
func turns(read, set uint64) (list []uint64) {
	if read|set == 0 {
		return []uint64{statusFlags}
	}
	for flag := uint64(1); flag <= statusFlags; flag <<= 1 {
		if flag&statusFlags&^read != 0 {
			list = append(list, flag)
		}
	}
	return list
}

func (j *flagsJudge) run(t *testing.T, out machine.State, inst *decode.Inst, seed uint64) (event machine.Event, ok bool) {
	t.Helper()
	event, writes, err := j.engine.Run(out, j.in, seed, machine.Range{Lo: effectAt, Hi: inst.Next()}, 64)
	if err != nil {
		t.Fatal(err)
	}
	j.writes = append(j.writes[:0], writes...)
	return event, event.Kind == machine.EventLeft
}

// flagsForms returns instructions of the lists, one of each form that flags may
// depend on, and all opcodes with each operation that ModRM chooses.
func flagsForms(t *testing.T) (list [][]byte) {
	rows, err := refdata.Rows("testdata/decode-lists.tsv.gz")
	if err != nil {
		t.Fatal(err)
	}
	type form struct {
		detail amd64.Detail
		imm    byte
	}
	seen := map[form]bool{}
	add := func(raw []byte) {
		var inst decode.Inst
		if (amd64.ISA{}).Decode(&inst, raw, effectAt) != nil {
			return
		}
		const (
			rm       = 0x7 << 8
			memory   = 0x3 << 14
			extended = 0x7ff << 36 // registers
			count    = 0xf << 56
		)
		d := amd64.DetailOf(&inst)
		f := form{detail: d &^ (rm | extended | count)}
		if d.Mod() != 3 {
			f.detail &^= memory
		}
		if shifts := d.Map() == amd64.MapOneByte && d.Opcode()&^1 == 0xc0 || d.Map() == amd64.Map0F && d.Opcode() == 0xa4; shifts {
			f.imm = inst.Raw[inst.Fields.Imm] % 67
		}
		if !seen[f] {
			seen[f] = true
			list = append(list, bytes.Clone(inst.Bytes()))
		}
	}
	for _, row := range rows {
		raw, err := hex.DecodeString(row[0])
		if err != nil {
			t.Fatal(err)
		}
		add(raw)
	}
	for op := range 256 {
		for reg := range byte(8) {
			for _, mode := range []byte{0x03, 0xc3} {
				for _, prefix := range [][]byte{{}, {0x66}, {0x48}, {0x0f}, {0x66, 0x0f}, {0xf3, 0x0f}, {0x48, 0x0f}} {
					add(slices.Concat(prefix, []byte{byte(op), mode | reg<<3, 1, 0, 0, 0, 0, 0, 0, 0}))
				}
			}
		}
	}
	return list
}
