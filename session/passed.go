//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"slices"

	"xol/instrument"
	"xol/machine"
	"xol/process"
)

// passed are the gates that threads have passed and will come to again: a thread that is at
// an instruction in a copy, and gets a signal, is put before the instruction, of which the
// hits have been told already.
type passed struct {
	file *machine.File
	of   map[*process.Thread][]passage
}

// passage is the registers of a thread before an instruction, whose first gates it has
// passed. All of them are as they were when it has come back from the signal's handler;
// one that has come there otherwise has others.
type passage struct {
	before machine.State // without flags
	gates  uint32        // the next item of the copy
}

// Bounds of what is remembered: a thread may never come back.
const (
	mostPassages = 8   // of a thread
	mostPassers  = 256 // threads, before those that have ended are looked for
)

// leave notes that a thread, whose program counter is an original one by now, has passed
// the gates of a step that are before an item.
func (p *passed) leave(th *process.Thread, c *copied, step, items int) {
	for items > 0 && c.Items[items-1].Kind != instrument.Gate {
		items--
	}
	if items == 0 || c.Items[items-1].Step != uint32(step) {
		return
	}
	list := append(p.of[th], passage{p.registers(th, th.PC()), uint32(items)})
	if len(list) > mostPassages {
		list = list[1:]
	}
	p.of[th] = list
	if len(p.of) > mostPassers {
		for th := range p.of {
			if !slices.Contains(th.Process().Threads(), th) {
				delete(p.of, th)
			}
		}
	}
}

// again reports whether a thread has passed a gate already, before the instruction at addr.
func (p *passed) again(th *process.Thread, addr uint64, item int) bool {
	list := p.of[th]
	if len(list) == 0 {
		return false
	}
	before := p.registers(th, addr)
	i := slices.IndexFunc(list, func(q passage) bool { return string(q.before) == string(before) })
	if i < 0 {
		return false
	}
	told := uint32(item) < list[i].gates
	if uint32(item)+1 >= list[i].gates {
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(p.of, th)
		} else {
			p.of[th] = list
		}
	}
	return told
}

// registers returns those of a thread that is at addr.
func (p *passed) registers(th *process.Thread, addr uint64) machine.State {
	state := p.file.NewState()
	th.SaveCore(state)
	p.file.SetWord(state, p.file.PC, addr)
	for i := range p.file.Registers {
		if p.file.Registers[i].Kind == machine.Flags {
			p.file.SetWord(state, i, 0)
		}
	}
	return state
}
