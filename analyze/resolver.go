package analyze

import "slices"

// Implementations returns the functions that a resolver (see
// image.Function.Resolver) may choose, as far as its own code tells: those whose
// addresses its instructions form or load, sorted. It is empty for any other
// function.
func (a *Analysis) Implementations(r *Result) (addrs []uint64) {
	if !r.Function.Resolver {
		return nil
	}
	for i := range r.Insts {
		addr, ok := a.ISA.FormsPointer(&r.Func, i, a.Image)
		if !ok {
			continue
		}
		addr = a.Image.CodeOf(addr)
		if f, ok := a.FunctionAt(addr); ok && addr == f.Addr && addr != r.Function.Addr {
			addrs = append(addrs, addr)
		}
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}
