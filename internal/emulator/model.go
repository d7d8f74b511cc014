//go:build unicorn

package emulator

import (
	"fmt"

	"xol/decode"
	"xol/internal/unicorn"
	"xol/machine"
)

// Link ties a register of the machine.File to one of the engine's.
type Link struct {
	Index int   // in the File
	ID    int32 // the engine's number
	Size  int   // bytes that the engine holds, 16 at most
}

// Constant is a register of the engine that always has the same value.
type Constant struct {
	ID    int32
	Value uint64
}

// Model is what there is to know of the engine's CPU of one ISA.
type Model struct {
	Arch      unicorn.Arch
	Links     []Link // the program counter's among them
	Constants []Constant
	// Defect says why the engine does not run an instruction as the
	// architecture has it, in the words of a class of instructions; empty
	// where it does.
	Defect func(*decode.Inst) string
	// Lethal reports whether the engine crashes on an instruction word even
	// where it only translates it; nil where there is no such word.
	Lethal func(word uint32) bool
	// NewExecutor returns what executes instructions that the engine does not
	// know; nil where there are none.
	NewExecutor func() Executor

	skip  func(*decode.Inst) string // what else no random state is run on
	event func(trap uint32) machine.Event
	// pends reports whether the engine goes on to handle a trap after the run
	// that it ended, so that a later one would have another number, or none;
	// nil where it never does.
	pends func(trap uint32) bool
	blank byte // fills memory that has no instructions, and ends what the engine translates
}

var models = map[string]func(*machine.File) Model{
	"amd64":   amd64Model,
	"arm64":   arm64Model,
	"ppc64":   func(f *machine.File) Model { return ppc64Model(f, unicorn.PPC64) },
	"ppc64le": func(f *machine.File) Model { return ppc64Model(f, unicorn.PPC64LE) },
}

// ModelOf returns the model of the ISA of that name, for its register file.
func ModelOf(name string, f *machine.File) (Model, error) {
	model, ok := models[name]
	if !ok {
		return Model{}, fmt.Errorf("emulator: no ISA %s", name)
	}
	return model(f), nil
}

// links returns the links in the order of the file.
func links(f *machine.File, ids map[int]int32) []Link {
	var out []Link
	for i := range f.Registers {
		if id, ok := ids[i]; ok {
			out = append(out, Link{i, id, min(f.Registers[i].Size, 16)})
		}
	}
	return out
}
