package optcheck

import (
	"slices"

	"xol/decode"
	"xol/place"
)

// Exits are the ways in which a block leaves its function.
type Exits uint8

const (
	// ExitReturn: it returns to its caller.
	ExitReturn Exits = 1 << iota
	// ExitTail: it jumps to an address outside of the function.
	ExitTail
	// ExitPointer: it jumps to an address that a register or memory holds.
	ExitPointer
	// ExitUnresolved: it jumps to an address that is not known.
	ExitUnresolved
	// ExitFall: it goes on after the function's end.
	ExitFall
	// ExitStop: it traps, halts, or runs into bytes that are no instruction.
	ExitStop
)

// Block is a basic block: execution enters it at its first instruction only.
type Block struct {
	From, To int   // its instructions are Insts[From:To]
	Next     []int // blocks of the function that may follow, ascending
	Exits    Exits
}

// Blocks divides f into basic blocks, in the order of addresses. Neither calls
// nor system calls end a block.
func Blocks(f *Function, s *Scratch) []Block {
	s.land(f)
	var blocks []Block
	at := make([]int, len(f.Insts)) // block of each instruction
	for i := range f.Insts {
		if i == 0 || s.who[f.Insts[i].Addr-f.Addr] != 0 && !s.onlyReturns(f, i) || endsBlock(&f.Insts[i-1]) {
			blocks = append(blocks, Block{From: i})
		}
		at[i] = len(blocks) - 1
		blocks[at[i]].To = i + 1
	}
	tables := switchTargets(f)
	for b := range blocks {
		finishBlock(&blocks[b], f, at, tables)
	}
	return blocks
}

// onlyReturns reports whether nothing comes to instruction i but the call
// before it.
func (s *Scratch) onlyReturns(f *Function, i int) bool {
	return s.landings[s.who[f.Insts[i].Addr-f.Addr]-1].Kind == place.LandReturn
}

// endsBlock reports whether no block goes on after inst. A halt ends one, since
// not every interrupt returns.
func endsBlock(inst *decode.Inst) bool {
	return !inst.Continues() || inst.Flow == decode.FlowHalt || inst.Has(decode.Conditional) && !inst.IsCall()
}

// switchTargets returns the entries of jump tables by the jumps that use them.
func switchTargets(f *Function) map[uint64][]uint64 {
	tables := map[uint64][]uint64{}
	for _, l := range f.Landings {
		if l.Kind == place.LandSwitch {
			tables[l.From] = append(tables[l.From], l.Addr)
		}
	}
	return tables
}

// finishBlock finds where block b leads, by its last instruction.
func finishBlock(b *Block, f *Function, at []int, tables map[uint64][]uint64) {
	last := &f.Insts[b.To-1]
	goTo := func(target uint64, otherwise Exits) {
		if i, start := decode.Find(f.Insts, target); start {
			b.Next = append(b.Next, at[i])
		} else {
			b.Exits |= otherwise
		}
	}
	switch {
	case last.FallsThrough():
		goTo(last.Next(), ExitFall)
	case last.Continues(): // at the function's end, what is called never returns
		goTo(last.Next(), 0)
	}
	switch last.Flow {
	case decode.FlowJump, decode.FlowJumpIf:
		if target, ok := last.BranchTarget(); ok {
			goTo(target, ExitTail)
		}
	case decode.FlowReturn:
		b.Exits |= ExitReturn
	case decode.FlowJumpIndirect:
		b.Exits |= indirectExit(f, last.Addr, tables[last.Addr])
		for _, target := range tables[last.Addr] {
			goTo(target, ExitTail)
		}
	case decode.FlowTrap, decode.FlowHalt:
		b.Exits |= ExitStop
	}
	if last.Has(decode.Invalid) {
		b.Exits |= ExitStop
	}
	slices.Sort(b.Next)
	b.Next = slices.Compact(b.Next)
}

func indirectExit(f *Function, addr uint64, targets []uint64) Exits {
	switch {
	case slices.ContainsFunc(f.Unresolved, func(u Unresolved) bool { return u.Addr == addr }):
		return ExitUnresolved
	case len(targets) > 0:
		return 0
	}
	return ExitPointer
}
