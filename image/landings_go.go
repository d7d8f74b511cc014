package image

import "xol/place"

// goRecoveries adds where Go programs go on when a deferred function has
// recovered from a panic: the call of runtime.deferreturn at the end of the
// function that deferred it, which nothing else may lead to
// [runtime/panic.go, recovery].
func (l *landings) goRecoveries() error {
	if l.im.kind != KindProgram {
		return nil
	}
	data, text, err := l.im.goProgram()
	if data == nil || err != nil {
		return err
	}
	t, err := newGoTable(data, l.im.order)
	if err != nil {
		return err
	}
	t.setBase(text)
	for i := range t.count {
		e := t.extent(i)
		off, ok := t.described(i, goDeferReturnWord)
		if !ok {
			return t.damaged("description outside the table", i)
		}
		if addr := e.lo + uint64(off); off != 0 && addr < e.hi {
			l.add(addr, e.lo, place.LandUnwind)
		}
	}
	return nil
}
