package verify_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xol/arch/arm64"
	"xol/decode"
	"xol/internal/cputest"
	"xol/internal/refdata"
	"xol/internal/skip"
	"xol/machine"
	"xol/verify"
)

// interpreter is an ISA whose interpreter is compared with an engine.
type interpreter interface {
	cputest.ISA
	verify.Target
	Name() string
	Text(inst *decode.Inst, lookup decode.SymLookup) string
}

// interpretation is a comparison of an interpreter with an engine.
type interpretation struct {
	isa     interpreter
	open    func(isa string, f *machine.File) (machine.Engine, error)
	limit   machine.Range // the addresses where the engine has memory; all where it is empty
	fill    []byte        // what pages of code have besides it; nil where that is data
	prepare func(f *machine.File, s machine.State, seed uint64)
	states  int
}

// interpretHome keeps the low bits of addresses, so that what is relative to
// them stays aligned.
const interpretHome = 0x2a00_0000_0000

// compare runs each of insts from random states in both.
func (p *interpretation) compare(t *testing.T, insts []decode.Inst) {
	t.Helper()
	engine, err := p.open(p.isa.Name(), p.isa.Registers())
	if err != nil {
		skip.Missing(t, "an engine", err)
	}
	defer engine.Close()
	counts := map[string]int{}
	failures := 0
	for i := range insts {
		var inst decode.Inst
		addr := interpretHome + insts[i].Addr&(1<<30-1)
		if err := p.isa.Decode(&inst, insts[i].Bytes(), addr); err != nil {
			t.Fatal(err)
		}
		what, err := p.compareOne(engine, &inst, uint64(i), counts)
		if err != nil {
			t.Fatal(err)
		}
		if what != nil {
			t.Errorf("% x (%s): %s", inst.Bytes(), p.isa.Text(&inst, nil), strings.Join(what, "\n"))
			if failures++; failures == 20 {
				break
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%s: %d", kind, counts[kind])
	}
	if counts[kindSame] == 0 {
		t.Error("nothing was compared")
	}
}

// compareOne compares one instruction in all states, up to one in which
// something differs.
func (p *interpretation) compareOne(engine machine.Engine, inst *decode.Inst, seed uint64, counts map[string]int) (what []string, err error) {
	if reason := engine.Skip(inst); reason != "" {
		counts["not run: "+reason]++
		return nil, nil
	}
	f := p.isa.Registers()
	c := cputest.New(f, p.isa.Name() == "ppc64", p.limit)
	start, after := f.NewState(), f.NewState()
	if done, missing := p.isa.Interpret(inst, c, c); !done && missing == nil {
		counts["unknown"]++
		return c.Differences(start, nil), nil
	}
	code := machine.Part{Addr: inst.Addr, Code: inst.Bytes()}
	if err := engine.Load([]machine.Part{code}); err != nil {
		return nil, err
	}
	for n := range p.states {
		seed := machine.Mix(seed<<16 | uint64(n))
		verify.RandomState(f, start, seed)
		p.isa.Prepare(inst, f, start)
		if p.prepare != nil {
			p.prepare(f, start, seed)
		}
		f.SetWord(start, f.PC, inst.Addr)
		c.Reset(start, seed)
		if err := p.load(c, code); err != nil {
			return nil, err
		}
		done, missing := p.isa.Interpret(inst, c, c)
		if done == (missing != nil) {
			return []string{fmt.Sprintf("done %v, error %v", done, missing)}, nil
		}
		event, writes, err := engine.Run(after, start, seed, machine.Range{Lo: inst.Addr, Hi: inst.Next()}, 1)
		if err != nil {
			return nil, err
		}
		if missing != nil {
			copy(after, start) // where nothing may have changed
		}
		kind, what := judge(c, missing, event, after, writes)
		if what != nil {
			return append(what, fmt.Sprintf("seed %#x", seed)), nil
		}
		counts[kind]++
	}
	return nil, nil
}

// load puts code, and what fills its pages, into memory.
func (p *interpretation) load(c *cputest.CPU, code machine.Part) error {
	if p.fill != nil {
		const page = 4096
		first, last := code.Addr&^(page-1), (code.Addr+uint64(len(code.Code))+decode.MaxLen)&^(page-1)
		if err := c.Load(machine.Part{Addr: first, Code: bytes.Repeat(p.fill, int(last-first)+page)}); err != nil {
			return err
		}
	}
	return c.Load(code)
}

const (
	kindSame      = "states that are the same"
	kindFault     = "states in which both fault"
	kindForeign   = "states not compared: an instruction unknown to the engine"
	kindCanonical = "states in which the branch faults, since its target is not canonical"
)

// judge says what came of one state, and what differs.
func judge(c *cputest.CPU, missing error, event machine.Event, after machine.State, writes []machine.Write) (kind string, what []string) {
	pc := c.Reg(c.File.PC)
	switch {
	case missing != nil && (event.Kind == machine.EventFault || event.Kind == machine.EventException): // of the stack's segment
		return kindFault, c.Differences(after, nil)
	case event.Kind == machine.EventUndefined:
		return kindForeign, nil
	case missing == nil && event.Kind == machine.EventFault && int64(pc<<16)>>16 != int64(pc):
		return kindCanonical, nil
	case missing == nil && (event.Kind == machine.EventLeft || event.Kind == machine.EventBudget):
		return kindSame, c.Differences(after, writes)
	}
	return "", []string{fmt.Sprintf("to %#x, error %v; the engine: %v", pc, missing, event)}
}

// branches returns the control-flow instructions of a list, whose rows have
// their bytes in the given column, and its PC-relative ones.
func branches(t *testing.T, isa decode.Decoder, path string, column int) (insts []decode.Inst) {
	t.Helper()
	rows, err := refdata.Rows(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		raw, err := hex.DecodeString(row[column])
		if err != nil {
			t.Fatal(err)
		}
		var inst decode.Inst
		if isa.Decode(&inst, raw, interpretHome+64*uint64(i)) != nil {
			continue
		}
		if inst.Flow != decode.FlowNone || inst.PCRel.Kind != decode.PCRelNone {
			insts = append(insts, inst)
		}
	}
	return insts
}

// compareLists compares the instructions of samples, and those of a complete
// list where it is there.
func (p *interpretation) compareLists(t *testing.T, column int, complete string, samples ...string) {
	for _, path := range samples {
		t.Run(path, func(t *testing.T) { p.compare(t, branches(t, p.isa, path, column)) })
	}
	t.Run("all of "+complete, func(t *testing.T) {
		p.compare(t, branches(t, p.isa, refdata.Full(t, "decode", complete), column))
	})
}

// compareRandom compares n random instructions of control flow, or PC-relative
// ones; draw makes their bytes.
func (p *interpretation) compareRandom(t *testing.T, n int, draw func(r *rand.Rand) []byte) {
	r := rand.New(rand.NewPCG(7, 0))
	var insts []decode.Inst
	for len(insts) < n {
		var inst decode.Inst
		err := p.isa.Decode(&inst, draw(r), interpretHome+64*uint64(len(insts)))
		if err == nil && (inst.Flow != decode.FlowNone || inst.PCRel.Kind != decode.PCRelNone) {
			insts = append(insts, inst)
		}
	}
	p.compare(t, insts)
}

// sampleOf returns the path of a list in the test data of an ISA's package.
func sampleOf(isa, list string) string { return filepath.Join("..", "arch", isa, "testdata", list) }

// mistaken is an interpreter that does something wrong besides.
type mistaken struct {
	interpreter
	mistake func(r machine.Registers, m machine.Memory) error
}

func (w mistaken) Interpret(inst *decode.Inst, r machine.Registers, m machine.Memory) (bool, error) {
	done, err := w.interpreter.Interpret(inst, r, m)
	if !done {
		return done, err
	}
	return true, w.mistake(r, m)
}

// TestInterpretMistakesAreFound shows that the comparison sees registers, the
// program counter and memory.
func TestInterpretMistakesAreFound(t *testing.T) {
	const somewhere = 0x1234_5678
	add := func(register int) func(machine.Registers, machine.Memory) error {
		return func(r machine.Registers, _ machine.Memory) error {
			r.SetReg(register, r.Reg(register)+4)
			return nil
		}
	}
	bl := []byte{0x00, 0x04, 0x00, 0x94}
	for name, c := range map[string]struct {
		mistake func(machine.Registers, machine.Memory) error
		found   bool
	}{
		"none":                {func(machine.Registers, machine.Memory) error { return nil }, false},
		"the program counter": {add(arm64.PC), true},
		"the link register":   {add(arm64.X0 + 30), true},
		"the flags":           {add(arm64.NZCV), true},
		"memory":              {func(_ machine.Registers, m machine.Memory) error { return m.WriteWord(somewhere, 0) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := openEmulator("arm64", arm64.Registers())
			if err != nil {
				skip.Missing(t, "an engine", err)
			}
			defer engine.Close()
			p := &interpretation{isa: mistaken{arm64.ISA{}, c.mistake}, states: 4}
			var inst decode.Inst
			if err := p.isa.Decode(&inst, bl, interpretHome); err != nil {
				t.Fatal(err)
			}
			what, err := p.compareOne(engine, &inst, 1, map[string]int{})
			if err != nil || (what != nil) != c.found {
				t.Errorf("%q, %v", what, err)
			}
		})
	}
}
