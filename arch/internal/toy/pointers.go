package toy

import (
	"xol/classify"
	"xol/optcheck"
)

// FormsPointer finds none.
func (ISA) FormsPointer(*classify.Func, int, optcheck.Memory) (addr uint64, ok bool) { return 0, false }
