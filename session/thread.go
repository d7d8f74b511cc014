//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"errors"
	"fmt"

	"xol/decode"
	"xol/instrument"
	"xol/process"
)

// A thread is at an original address for everybody but the tracer. These methods put it
// there from a copy, and back.

// enter has a thread that has come to an original address, where text has been changed,
// go on in the copy. It returns false where the address is not one of those.
func (e *engine) enter(s *space, th *process.Thread, addr uint64) bool {
	c, step := s.copyOf(addr)
	if c == nil {
		return false
	}
	pc, fix, fixed := c.Enter(step)
	if fixed {
		e.correct(c, fix)
	}
	th.MovePC(pc)
	return true
}

// leave has a thread that is in a copy be where it would be without: at an original
// address, with the registers that it would have. fault says that the instruction that it
// is in has failed; else it may be put after it.
func (e *engine) leave(s *space, th *process.Thread, fault bool) error {
	for range maxSteps {
		pc := th.PC()
		if way, ok := s.wayOf(pc); ok {
			th.MovePC(way)
			return nil
		}
		c := s.copyAt(pc)
		if c == nil && !s.own(pc) {
			return nil
		}
		var done bool
		var err error
		if c == nil {
			err = e.follow(th) // a jump on its way to a copy
		} else {
			done, err = e.leaveCopy(th, c, pc, fault)
		}
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("session: %v does not come out of the copy at %#x", th, th.PC())
}

// maxSteps is how many instructions a moved form has at most.
const maxSteps = 16

// follow does what the jump does that a thread is at.
func (e *engine) follow(th *process.Thread) error {
	var code [decode.MaxLen]byte
	var inst decode.Inst
	pc := th.PC()
	if err := th.Process().Read(code[:], pc); err != nil {
		return err
	}
	err := e.isa.Decode(&inst, code[:], pc)
	target, direct := inst.BranchTarget()
	if err != nil || inst.Flow != decode.FlowJump || !direct {
		return fmt.Errorf("session: %v is at %#x, where a jump should be", th, pc)
	}
	th.MovePC(target)
	return nil
}

func (e *engine) leaveCopy(th *process.Thread, c *copied, pc uint64, fault bool) (done bool, err error) {
	w, ok := c.Locate(pc)
	if !ok {
		th.MovePC(c.Next())
		return true, nil
	}
	switch off := uint32(pc - c.Addr); {
	case w.Item >= 0:
		counted, err := e.takeBack(th, c, w, off)
		if err != nil {
			return false, err
		}
		e.place(th, c, w.Step, counted)
		e.passed.leave(th, c, w.Step, w.Item)
		return true, nil
	case off == w.Start:
		e.placeBefore(th, c, w.Step)
		return true, nil
	}
	switch p := &c.Points[w.Step]; {
	case p.After && !fault:
		// The system call has been made, and is perhaps to be made again.
		e.isa.AfterSyscall(th, c.Orig+uint64(p.Orig)+uint64(p.Len))
		th.MovePC(c.Orig + uint64(p.Orig) + uint64(p.Len))
		return true, nil // what is after it has not been counted yet
	case p.Forward && !fault:
		return false, e.follow(th)
	}
	if err := e.unwind(th, c, w.Start, uint32(pc-c.Addr)); err != nil {
		return false, err
	}
	e.placeBefore(th, c, w.Step)
	return true, nil
}

// placeBefore puts a thread that has passed all that is inserted before a step at the
// original of that.
func (e *engine) placeBefore(th *process.Thread, c *copied, step int) {
	e.place(th, c, step, true)
	e.passed.leave(th, c, step, c.ItemsUntil(step))
}

// place puts a thread at the original of a step.
func (e *engine) place(th *process.Thread, c *copied, step int, counted bool) {
	th.MovePC(c.Orig + uint64(c.Points[step].Orig))
	e.leaving(c, step, counted)
}

// leaving corrects the counts for a thread that leaves a copy before a step.
func (e *engine) leaving(c *copied, step int, counted bool) {
	if step >= len(c.Points) {
		return
	}
	if fix, ok := c.Leave(step, counted); ok {
		e.correct(c, fix)
	}
}

// takeBack undoes what inserted code has done with the registers, and says whether it
// has counted.
func (e *engine) takeBack(th *process.Thread, c *copied, w instrument.Where, off uint32) (counted bool, err error) {
	for i := w.Item; i >= 0 && c.Items[i].Step == uint32(w.Step); i-- {
		if c.Items[i].Kind == instrument.Count {
			counted = true
			if i == w.Item {
				counted, err = e.committed(th, c, w.Start, off)
			}
			break
		}
	}
	if err != nil || off == w.Start {
		return counted, err
	}
	return counted, e.unwind(th, c, w.Start, off)
}

func (e *engine) committed(th *process.Thread, c *copied, from, to uint32) (bool, error) {
	code := make([]byte, to-from)
	if err := th.Process().Read(code, c.Addr+uint64(from)); err != nil {
		return false, err
	}
	return e.isa.Committed(code, th), nil
}

// unwind takes back what code of a copy has done.
func (e *engine) unwind(th *process.Thread, c *copied, from, to uint32) error {
	code := make([]byte, to-from)
	if err := th.Process().Read(code, c.Addr+uint64(from)); err != nil {
		return err
	}
	return e.isa.Unwind(code, th, th.Process())
}

// correct tells the front of a correction of counts.
func (e *engine) correct(c *copied, fix instrument.Correction) {
	e.lost = errors.Join(e.lost, e.front.corrected(&corrected{Layout: c.of.number, Correction: fix}))
}
