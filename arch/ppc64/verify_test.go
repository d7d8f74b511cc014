package ppc64

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"xol/decode"
	"xol/internal/archtest"
	"xol/machine"
	"xol/relocate"
)

// Every case has a page of its own in each of these places. The middle one is
// out of reach for bc, the far one for everything.
const (
	caseHome   = 0x20_0000_0000
	caseMiddle = caseHome + 0x40_0000
	caseFar    = 0x60_0000_0000
	casePage   = 0x1000

	// In the page: the original, a moved form and a mere copy. Nothing is between
	// them, so that branches end there. The data are elsewhere: a store to a page
	// with code makes the emulator translate that again.
	caseOriginal = 0x400
	caseMoved    = 0x800
	caseCopy     = 0xc00
	caseData     = caseOriginal + 0x20_0000
)

// states is the number of states that each form is run from.
const states = 24

// executions lays cases out in a guest.
type executions struct {
	guest
	pairs []executionPair
}

// executionPair is two runs per state that have to end the same way, or, where
// the second is a mere copy, differently.
type executionPair struct {
	name          string
	isCopy        bool
	first, second int    // runs, of states in sequence
	end           uint64 // after the second form, where nothing leads back
	next          uint64 // what that stands for
	clobbers      uint64
	noRedZone     bool
}

func newExecutions(isa ISA, cases int) *executions {
	x := &executions{guest: guest{isa: isa, order: binary.BigEndian}}
	if isa.LittleEndian {
		x.order = binary.LittleEndian
	}
	for _, addr := range []uint64{caseHome, caseHome + caseData&^(casePage-1), caseMiddle, caseFar} {
		x.segments = append(x.segments, guestSegment{addr, make([]byte, cases*casePage)})
	}
	for i := range states {
		x.states = append(x.states, x.state(uint64(i)))
	}
	return x
}

// state returns a random state. Code is branched to where nothing is, the
// stack pointer is in the stack window, and so is the first word of data.
func (x *executions) state(seed uint64) guestState {
	r := machine.Mix(seed*0x9e3779b97f4a7c15 + 1)
	next := func() uint64 {
		r += 0x9e3779b97f4a7c15
		return machine.Mix(r)
	}
	s := make(guestState, guestSize)
	put := func(at int, v uint64) { x.order.PutUint64(s[at:], v) }
	for at := 0; at < guestSize; at += 8 {
		put(at, machine.Interesting(next()))
	}
	clear(s[guestVR+32*16 : guestLow]) // VSCR and VRSAVE
	stack := func() uint64 { return guestStackAt + 600 + next()%16*16 + next()%2*8 }
	put(1*8, stack())
	put(guestData, stack())
	put(guestMSR, uint64(oneIf(x.order.Uint64([]byte{1, 0, 0, 0, 0, 0, 0, 0})&1)))
	put(guestCTR, []uint64{1, 2, 3, 5, 100}[next()%5])
	put(guestLR, 0x30_0000_0000+next()%0x1000)
	put(guestTAR, 0x31_0000_0000+next()%0x1000)
	put(guestCR, next()&0xffffffff)
	put(guestXER, next()&freeXER)
	put(guestFPSCR, next()&freeFPSCR)
	return s
}

// at returns the memory of an address.
func (x *executions) at(addr uint64) []byte {
	for _, s := range x.segments {
		if addr-s.addr < uint64(len(s.mem)) {
			return s.mem[addr-s.addr:]
		}
	}
	return nil
}

// runAll appends a run from every state.
func (x *executions) runAll(start, data uint64) (first int) {
	first = len(x.runs)
	for i := range states {
		x.runs = append(x.runs, guestRun{i, start, data})
	}
	return first
}

// destination is where a moved form goes, and how.
type destination struct {
	name  string
	base  uint64
	reach relocate.Reach
}

var destinations = []destination{
	{"near", caseHome + caseMoved, relocate.Anywhere},
	{"further", caseMiddle + caseMoved, relocate.Anywhere},
	{"far", caseFar + caseMoved, relocate.Anywhere},
	{"far forms", caseFar, relocate.Far},
}

// add lays one case out.
func (x *executions) add(t *testing.T, page int, c *moveCase) {
	t.Helper()
	offset := uint64(page * casePage)
	from, data := caseHome+offset+caseOriginal, caseHome+offset+caseData
	code := c.code(x.isa)
	copy(x.at(from), code)
	insts := archtest.Sweep(t, x.isa, code, from)
	next := from + uint64(len(code))
	original := x.runAll(from, data)

	to := caseHome + offset + caseCopy + c.to
	copy(x.at(to), code)
	if !c.same && !crosses(archtest.Sweep(t, x.isa, code, to)) {
		x.pairs = append(x.pairs, executionPair{name: c.name, isCopy: true, first: original,
			second: x.runAll(to, data), end: to + uint64(len(code)), next: next})
	}
	for _, at := range destinations {
		to := at.base + offset + c.to
		opt := c.opt
		opt.Reach = at.reach
		var p relocate.Plan
		n, err := move(x.isa, x.at(to), &p, insts, opt, to)
		if c.refused != "" && at.base >= caseFar {
			checkRefused(t, c, at, err)
			continue
		}
		if err != nil {
			t.Errorf("%s, %s: %v", c.name, at.name, err)
			continue
		}
		archtest.CheckBounds(t, &p, n)
		clobbers := uint64(0)
		for i := range p.Steps {
			clobbers |= p.Steps[i].Clobbers
		}
		x.pairs = append(x.pairs, executionPair{name: c.name + ", " + at.name, first: original,
			second: x.runAll(to, data), end: to + uint64(n), next: next, clobbers: clobbers, noRedZone: opt.NoRedZone})
	}
}

// crosses reports whether a prefixed instruction crosses the end of a line. The
// emulator gives up on one.
func crosses(insts []decode.Inst) bool {
	for i := range insts {
		if insts[i].Len == prefixedSize && insts[i].Addr%lineSize == lineSize-wordSize {
			return true
		}
	}
	return false
}

func move(isa ISA, dst []byte, p *relocate.Plan, insts []decode.Inst, opt relocate.Options, to uint64) (int, error) {
	if err := isa.Plan(p, insts, opt); err != nil {
		return 0, err
	}
	return isa.Encode(dst, p, to)
}

// checkRefused wants the rule where far forms are asked for, and an address out
// of range where they are not.
func checkRefused(t *testing.T, c *moveCase, at destination, err error) {
	t.Helper()
	var refused *relocate.RefusedError
	switch {
	case at.reach != relocate.Far && errors.Is(err, relocate.ErrRange):
	case errors.As(err, &refused) && refused.Rule.ID == c.refused:
	default:
		t.Errorf("%s, %s: %v, want %s", c.name, at.name, err, c.refused)
	}
}

// check runs everything and compares.
func (x *executions) check(t *testing.T) {
	t.Helper()
	results := x.run(t)
	for i := range x.pairs {
		p := &x.pairs[i]
		differ := ""
		for s := range states {
			what := x.compare(p, x.states[s], results[p.first+s], results[p.second+s])
			if what != "" && differ == "" {
				differ = fmt.Sprintf("state %d: %s", s, what)
			}
		}
		if p.isCopy && differ == "" {
			t.Errorf("%s: a mere copy does the same, so that nothing is tested", p.name)
		}
		if !p.isCopy && differ != "" {
			t.Errorf("%s: %s", p.name, differ)
		}
	}
	t.Logf("%s: %d pairs, %d runs", x.isa.Name(), len(x.pairs), len(x.runs))
}

// names of the doublewords before the vectors that are compared, beside
// the general registers.
var specials = map[int]string{
	guestNIP: "nip", guestCTR: "ctr", guestLR: "lr", guestXER: "xer", guestCR: "cr", guestTAR: "tar", guestSignal: "signal",
}

// compare says what differs between the end of the original and that of the
// moved form.
func (x *executions) compare(p *executionPair, start guestState, a, b guestResult) string {
	for at := 0; at < guestSize; at += 8 {
		name := x.compared(p, start, a, at)
		was, is := x.order.Uint64(a[at:]), x.order.Uint64(b[at:])
		if at == guestNIP && is == p.end {
			is = p.next
		}
		if name != "" && was != is {
			return fmt.Sprintf("%s: %#x, moved %#x", name, was, is)
		}
	}
	return ""
}

// compared names a doubleword of a result, with "" for those that may differ.
func (x *executions) compared(p *executionPair, start guestState, end guestResult, at int) string {
	switch {
	case at < 32*8:
		if p.clobbers>>(at/8)&1 == 0 {
			return fmt.Sprintf("r%d", at/8)
		}
		return ""
	case at == guestTAR && p.clobbers>>TAR&1 != 0:
		return ""
	case at < guestFPR:
		return specials[at]
	case at < guestData:
		return fmt.Sprintf("vector registers+%d", at-guestFPR)
	case at < guestStack:
		return fmt.Sprintf("data+%d", at-guestData)
	}
	addr := uint64(guestStackAt + at - guestStack)
	for _, s := range [][]byte{start, end} {
		lo, hi := (ISA{}).StackScratch(x.order.Uint64(s[1*8:]))
		if p.noRedZone {
			lo, hi = lo+redZone, hi+redZone
		}
		if addr >= lo&^7 && addr < hi {
			return ""
		}
	}
	return fmt.Sprintf("stack+%d", at-guestStack)
}

func TestMovedCodeDoesTheSame(t *testing.T) {
	cases := moveCases(t)
	for _, isa := range byteOrders {
		t.Run(isa.Name(), func(t *testing.T) {
			x := newExecutions(isa, len(cases))
			for i := range cases {
				x.add(t, i, &cases[i])
			}
			x.check(t)
		})
	}
}

// Every prefixed instruction with a PC-relative operand, with registers that
// matter to its far form.
func TestEveryPrefixedOperand(t *testing.T) {
	for _, isa := range byteOrders {
		t.Run(isa.Name(), func(t *testing.T) {
			cases := prefixedCases(isa)
			if len(cases) < 100 {
				t.Fatalf("only %d instructions", len(cases))
			}
			x := newExecutions(isa, len(cases))
			for i := range cases {
				x.add(t, i, &cases[i])
			}
			x.check(t)
		})
	}
}

func prefixedCases(isa ISA) (cases []moveCase) {
	const relative, displacement = 1 << 52, 0x20<<32 | 0x10 // to the second quadword of the data
	for kind := uint64(0); kind < 4; kind++ {
		for opcode := uint64(0); opcode < 64; opcode++ {
			for _, rt := range []uint64{0, 1, 11, 12, 30} {
				word := 1<<58 | kind<<56 | relative | displacement | opcode<<26 | rt<<21
				var inst decode.Inst
				if isa.Decode(&inst, isa.bytesOf(word), 0) != nil || inst.PCRel.Kind == decode.PCRelNone {
					continue
				}
				c := moveCase{name: isa.Text(&inst, nil), words: []uint64{word}, to: rt % 2 * 0x3c}
				d := dataOf(&inst)
				if rt == stackPointer && (d.load || OpOf(&inst) == OpPCAddress) {
					c.opt.Back = relocate.BackNone // it leaves no stack
				}
				if d.pair && rt == 0 {
					c.refused = ruleMoveStackPointer.ID
				}
				cases = append(cases, c)
			}
		}
	}
	return cases
}
