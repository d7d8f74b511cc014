package instrument

import (
	"cmp"
	"slices"

	"xol/image"
)

// Cave is a place in padding where a jump stands to which there was no room for where
// execution leaves the text: a short jump leads there.
type Cave struct {
	Addr uint64
	Way  uint64 // where the short jump is
}

// useCave has a way at the start of the function be a short jump to a jump in the padding
// before it, if there is such room: false where there is not.
func (f *function) useCave(w *Way) bool {
	before, ok := f.padding()
	if !ok {
		return false
	}
	cave, jump, ok := f.isa.Cave(before, f.r.Addr, w.Addr)
	if !ok || !f.hasRoomFor(w.Addr, uint64(len(jump))) {
		return false
	}
	w.Jump, w.Cave, w.short = true, cave, jump
	return true
}

// padding returns the bytes between the function before and this one, if nothing lands
// there but at the first of them. The function before may go on there: NOPs lead to this
// one.
func (f *function) padding() (code []byte, ok bool) {
	list := f.a.Functions()
	i, found := slices.BinarySearchFunc(list, f.r.Addr, func(fn image.Function, addr uint64) int {
		return cmp.Compare(fn.Addr, addr)
	})
	if !found || i == 0 || list[i-1].Section != list[i].Section || list[i-1].End() >= f.r.Addr {
		return nil, false
	}
	lo := list[i-1].End()
	flow, err := f.a.Flow(f.a.Judge(list[i-1]))
	lands := err == nil && slices.ContainsFunc(flow.Entries, func(addr uint64) bool { return addr > lo })
	if err != nil || flow.Open || lands || flow.Slack < f.r.Addr-lo {
		return nil, false
	}
	code, err = f.a.Image.Code(nil, lo, f.r.Addr-lo)
	return code, err == nil
}
