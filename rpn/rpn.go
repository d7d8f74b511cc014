// Package rpn is a small stack machine for handlers of probes that are data,
// not code: programs are assembled from text, checked as a whole, and then run
// in bounded time and memory whatever they are given.
//
// # Language
//
// A line has an instruction, a declaration, a label, a label with an
// instruction after it, or nothing; a comment goes from ; or # to its end.
// Numbers are decimal, 0x…, 0o… or 0…, 0b… or a character 'c', with a minus sign
// or without. Values have 64 bits. The stack holds up to MaxStack of them; (a b -- c)
// says that an instruction takes b from its top, then a, and leaves c.
//
//	global NAME [= N]    declares a variable that all runs share, N at first
//	local NAME           declares a variable of one run, 0 at first
//	NAME:                a label
//	onfault LABEL        from here on, a fault of memory goes to LABEL, which is
//	                     further down and finds on the stack only the address
//	onfault exit         from here on, a fault ends the program, as without onfault
//
// Constants, registers and variables:
//
//	push N               ( -- N)
//	reg NAME             ( -- v)  a register by the ISA's name: rax, x0, r3
//	arg N                ( -- v)  argument N, from 0, that is passed in a register
//	ret                  ( -- v)  the register of a function's result
//	sp, ip               ( -- v)  the stack pointer, the instruction pointer
//	setreg NAME          (v -- )  sets a register
//	get NAME             ( -- v)  a variable's value
//	set NAME             (v -- )  sets a variable
//	addto NAME           (v -- )  adds to a variable; atomic, as is all here
//	fetchadd NAME        (v -- w) likewise, w is what it was before
//
// Memory of the probed program, in its byte order:
//
//	load1 load2 load4 load8    (addr -- v)  1, 2, 4 or 8 bytes
//	load1s load2s load4s       (addr -- v)  with their sign
//	store1 store2 store4 store8 (addr v -- )
//
// Arithmetic is that of 64 bits, without overflow. A u is for unsigned numbers,
// an s for signed ones; comparisons leave 1 or 0. A division by zero ends the
// program.
//
//	add sub mul divu divs modu mods neg
//	and or xor not shl shru shrs       shifts by 64 and more leave 0 or the sign
//	eq ne ltu leu gtu geu lts les gts ges   (a b -- a<b)
//	iszero                             (a -- a==0)
//
// The stack:
//
//	dup (a -- a a)  drop (a -- )  swap (a b -- b a)  over (a b -- a b a)
//	rot (a b c -- b c a)
//
// Jumps lead forward only; the one way back is loop. Loops may be nested but
// not overlap. A loop that is left early and begun again by the one around it
// starts counting anew.
//
//	jmp LABEL            ( -- )
//	jz LABEL, jnz LABEL  (v -- )  where v is 0, is not 0
//	loop N LABEL         ( -- )   back to LABEL, until it has been here N times
//	exit [N]             ( -- )   ends the program with the code N; without it 0,
//	                              as does the end of the text
//
// Records:
//
//	log "NAME" N         (v1 … vN -- )  N values, v1 first
//	logstr "NAME" N      (addr -- )     a string that ends with a zero, at most N
//	                                    bytes of it
//
// # What is checked
//
// Assemble accepts a program only if the stack is as deep at an instruction
// whichever way leads there, never too deep nor too empty; if every instruction
// can be reached; if jumps, variables, registers and limits are right; and if
// it cannot take more than 1,048,576 instructions. Nothing of that has to be
// asked while it runs.
package rpn

import (
	"encoding/binary"
	"fmt"
	"sync"

	"xol/machine"
)

// Limits of programs.
const (
	maxInsts     = 4096
	maxStack     = 64      // values
	maxVariables = 64      // of each kind
	maxLoops     = 64      // loop instructions
	maxSteps     = 1 << 20 // instructions that one run may take
	maxValues    = 16      // of a record
	maxString    = 256     // bytes of a string in a record
)

// Target is what programs know of the ISA whose registers they read.
type Target struct {
	File       *machine.File
	Convention *machine.Convention
	Order      binary.ByteOrder // of numbers in memory
}

// global is a variable that all runs of a program share.
type global struct {
	Name string
	Init uint64
}

// source is a program as it is written.
type source struct {
	Globals []global
	Locals  []string
	Insts   []instruction
}

// instruction is one instruction.
type instruction struct {
	Op opcode
	// Arg is the constant of opPush, the index of a register or variable, how
	// often opLoop is passed, the code of opExit, the number of values of opLog
	// or bytes of opLogString.
	Arg uint64
	// Target is the index of the instruction that a jump leads to or, for an
	// instruction that accesses memory, a fault of it; noTarget where a fault
	// ends the program. The end of the code is a target as well.
	Target int
	Name   string // of a record
}

// noTarget is the Target of instructions whose faults end the program.
const noTarget = -1

// Program is a verified program. It is immutable and safe for concurrent use.
type Program struct {
	target   Target
	code     source
	steps    []step
	maxSteps int
	maxDepth int
	loops    int
	big      bool
	frames   sync.Pool // of *frame
}

// written returns the program's instructions and variables. The caller must not
// change them.
func (p *Program) written() *source { return &p.code }

// MaxSteps returns how many instructions a run takes at most, with every loop
// passed as often as it may be.
func (p *Program) MaxSteps() int { return p.maxSteps }

// depth returns how many values are on the stack at most.
func (p *Program) depth() int { return p.maxDepth }

// Error says what is wrong with a program, and where.
type Error struct {
	Line, Column int    // from 1, in bytes; 0 where there is no text
	Inst         int    // index of the instruction; negative where it is not one
	Text         string // the instruction's name, where it is one
	What         string // and what would be right
}

func (e *Error) Error() string {
	what := e.What
	if e.Text != "" {
		what = e.Text + ": " + what
	}
	switch {
	case e.Line > 0:
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, what)
	case e.Inst >= 0:
		return fmt.Sprintf("instruction %d: %s", e.Inst, what)
	}
	return what
}
