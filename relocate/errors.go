package relocate

import (
	"errors"
	"fmt"

	"xol/classify"
)

// Errors of Plan and Encode, for errors.Is.
var (
	// ErrRefused: an instruction cannot be moved; the error is a
	// *RefusedError.
	ErrRefused = errors.New("instruction cannot be moved")
	// ErrEmpty: there are no instructions.
	ErrEmpty = errors.New("no instructions to move")
	// ErrNotContiguous: the instructions do not follow one another, or are
	// more than one for a slot.
	ErrNotContiguous = errors.New("instructions do not follow one another")
	// ErrTooSmall: the buffer does not hold the code.
	ErrTooSmall = errors.New("buffer too small for the moved code")
	// ErrRange: the new address is too far from what the code refers to.
	ErrRange = errors.New("target out of range")
	// ErrMisaligned: the new address has not the alignment of code.
	ErrMisaligned = errors.New("address misaligned")
)

// RefusedError says which instruction cannot be moved and why. It is an
// ErrRefused.
type RefusedError struct {
	Rule *classify.Rule
	Addr uint64 // of the instruction
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("instruction at %#x cannot be moved: %s (%s)", e.Addr, e.Rule.Reason, e.Rule.ID)
}

// Is makes the error an ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// RangeError says which reference does not reach. It is an ErrRange.
type RangeError struct {
	Addr   uint64 // of the instruction, in its original place
	Target uint64 // what it refers to
	At     uint64 // where its moved form would stand
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("instruction at %#x, moved to %#x, does not reach %#x", e.Addr, e.At, e.Target)
}

// Is makes the error an ErrRange.
func (e *RangeError) Is(target error) bool { return target == ErrRange }
