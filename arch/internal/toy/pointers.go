package toy

import (
	"xol/classify"
	"xol/optcheck/flow"
)

// FormsPointer finds none.
func (ISA) FormsPointer(*classify.Func, int, flow.Memory) (addr uint64, ok bool) { return 0, false }
