package events

import "slices"

// CheckJoin says whether the probe of p, which is compiled from the line, may
// join an event of its name that has the given probes already: all of them
// stand at entries or all at returns, record values of the same names and
// types, and no two record the same at the same place. The error is an *Error
// [kernel/trace/trace_kprobe.c, append_trace_kprobe].
func (p *Program) CheckJoin(line string, probes []*Program) error {
	if len(probes) == 0 {
		return nil
	}
	at := parser{line: line, words: split(line)}
	if p.event.Return != probes[0].event.Return {
		return at.fail(0, 0, DiffProbeType)
	}
	if i, differ := p.differingArg(probes[0]); differ {
		return at.fail(i+2, 0, DiffArgType)
	}
	for _, other := range probes {
		if p.event.place() == other.event.place() && slices.Equal(p.event.Args, other.event.Args) {
			return at.fail(0, 0, SameProbe)
		}
	}
	return nil
}

// differingArg returns the index of the first argument that has another name or
// type in other, or is missing there; of the first that is missing here.
func (p *Program) differingArg(other *Program) (i int, differ bool) {
	n := len(p.fetches)
	if n != len(other.fetches) {
		return min(n, len(other.fetches)), true
	}
	for i := range n {
		a, b := &p.fetches[i], &other.fetches[i]
		if a.name != b.name || a.typ != b.typ || a.count != b.count {
			return i, true
		}
	}
	return 0, false
}

// Removes says whether e, a line that removes, means d, which is defined: by
// the event's name or group, and by the place and the first arguments where
// the line has them, all written as d.String writes them.
func (e *Event) Removes(d *Event) bool {
	if e.Group != "" && e.Group != d.Group || e.Name != "" && e.Name != d.Name {
		return false
	}
	words := []string{d.place()}
	for _, a := range d.Args {
		words = append(words, a.Name+"="+a.Text)
	}
	return len(e.Match) <= len(words) && slices.Equal(e.Match, words[:len(e.Match)])
}
