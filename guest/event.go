//go:build unicorn

package guest

import (
	"fmt"

	"xol/machine"
)

// UnexpectedError is an event where none of its kind was expected.
type UnexpectedError struct {
	Event machine.Event
	Text  string // of the refused instruction
}

func (e *UnexpectedError) Error() string {
	ev := &e.Event
	switch ev.Kind {
	case machine.EventRefused:
		return fmt.Sprintf("guest: %#x: %s not executed: %s", ev.Addr, e.Text, ev.Reason)
	case machine.EventFault:
		return fmt.Sprintf("guest: %#x: %v of the page at %#x", ev.Addr, ev.Kind, ev.Page)
	}
	return fmt.Sprintf("guest: %#x: %v (%d)", ev.Addr, ev.Kind, ev.Number)
}
