//go:build unicorn

package guest

import (
	"fmt"

	"xol/runtime"
)

// UnexpectedError is an event where none of its kind was expected.
type UnexpectedError struct {
	Event runtime.Event
	Text  string // of the refused instruction
}

func (e *UnexpectedError) Error() string {
	ev := &e.Event
	switch ev.Kind {
	case runtime.EventRefused:
		return fmt.Sprintf("guest: %#x: %s not executed: %s", ev.Addr, e.Text, ev.Reason)
	case runtime.EventFault:
		return fmt.Sprintf("guest: %#x: %v of the page at %#x", ev.Addr, ev.Kind, ev.Page)
	}
	return fmt.Sprintf("guest: %#x: %v (%d)", ev.Addr, ev.Kind, ev.Number)
}
