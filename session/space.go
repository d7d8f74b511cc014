//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"xol/arch"
	"xol/instrument"
	"xol/machine"
	"xol/process"
)

// space is what has been put into an address space. Children that fork makes start with
// a copy of it.
type space struct {
	users  int // processes that have it: more than one after vfork
	placed []*placed
	loaded []process.Mapping // files that the front has been asked about
	// uneven says that it is of a child that was made while text was being changed.
	uneven bool
}

func newSpace() *space { return &space{users: 1} }

// layout is a layout as the engine keeps it, for all processes that have it.
type layout struct {
	*instrument.Layout
	number  int
	origins []*instrument.Copy // by the addresses of the originals
}

func newLayout(number int, l *instrument.Layout) *layout {
	origins := slices.Clone(l.Copies)
	slices.SortFunc(origins, func(a, b *instrument.Copy) int { return cmp.Compare(a.Orig, b.Orig) })
	return &layout{Layout: l, number: number, origins: origins}
}

// placed is a layout in an address space.
type placed struct {
	*layout
	delta  uint64 // what addresses are above those of the layout
	number int    // of the placement
	spaces *int   // how many have it
	// patches are those of the layout, without those of copies that are left out.
	patches []instrument.Patch

	// How far it has come to be.
	held   []machine.Range // what has been mapped, at its addresses here
	mapped int             // how many ranges of code are among it
	code   [][]byte        // of the parts, as it is here
	part   int             // how many of them have been written
	offset int             // how much of the next one
	done   int             // how many of the patches have been made

	semaphores []uint64
	raised     bool
}

func (s *space) clone() *space {
	c := &space{users: 1, loaded: slices.Clone(s.loaded)}
	for _, p := range s.placed {
		*p.spaces++
		q := *p
		c.placed = append(c.placed, &q)
	}
	return c
}

// copied is a copy at its addresses in a process.
type copied struct {
	instrument.Copy
	of *layout
}

func (p *placed) copied(c *instrument.Copy) *copied {
	at := &copied{Copy: *c, of: p.layout}
	at.Addr, at.Orig = at.Addr+p.delta, at.Orig+p.delta
	return at
}

// copyAt returns the copy that holds an address; nil where none does.
func (s *space) copyAt(addr uint64) *copied {
	for _, p := range s.placed {
		if !p.owns(addr) {
			continue
		}
		addr := addr - p.delta
		i, found := slices.BinarySearchFunc(p.Copies, addr, func(c *instrument.Copy, addr uint64) int { return cmp.Compare(c.Addr, addr) })
		if !found {
			i--
		}
		if i >= 0 && addr < p.Copies[i].End() {
			return p.copied(p.Copies[i])
		}
	}
	return nil
}

// copyOf returns the copy that has the instruction at an original address.
func (s *space) copyOf(addr uint64) (c *copied, step int) {
	for _, p := range s.placed {
		if c, step := p.copyOf(addr - p.delta); c != nil {
			return p.copied(c), step
		}
	}
	return nil, 0
}

func (l *layout) copyOf(addr uint64) (c *instrument.Copy, step int) {
	i, found := slices.BinarySearchFunc(l.origins, addr, func(c *instrument.Copy, addr uint64) int { return cmp.Compare(c.Orig, addr) })
	if !found {
		i--
	}
	// Copies overlap only where one of them is a landing pad alone.
	for ; i >= 0 && l.origins[i].Orig+maxSpan > addr; i-- {
		if step, ok := l.origins[i].At(addr); ok {
			return l.origins[i], step
		}
		if l.origins[i].Covers(addr) {
			break
		}
	}
	return nil, 0
}

// maxSpan is how far back the copy of a function may start.
const maxSpan = 1 << 30

// owns reports whether an address is in what has been put into the process.
func (p *placed) owns(addr uint64) bool {
	return slices.ContainsFunc(p.held, func(r machine.Range) bool { return r.Holds(addr) })
}

// wayOf returns where in the program's text a thread is that is at a cave.
func (s *space) wayOf(addr uint64) (way uint64, ok bool) {
	for _, p := range s.placed {
		if i, ok := p.caveAt(addr - p.delta); ok {
			return p.Caves[i].Way + p.delta, true
		}
	}
	return 0, false
}

// own reports whether an address is in code that has been put into the process.
func (s *space) own(addr uint64) bool {
	_, cave := s.wayOf(addr)
	return cave || slices.ContainsFunc(s.placed, func(p *placed) bool { return p.owns(addr) })
}

// patchAfter returns the index of the first patch that ends after an address.
func (p *placed) patchAfter(addr uint64) int {
	i, _ := slices.BinarySearchFunc(p.patches[:p.done], addr-p.delta, func(c instrument.Patch, addr uint64) int {
		return cmp.Compare(c.Addr+uint64(c.Len)-1, addr)
	})
	return i
}

// patchedAt reports whether something else than the program's own byte stands there, or
// may stand there.
func (s *space) patchedAt(addr uint64) bool {
	return slices.ContainsFunc(s.placed, func(p *placed) bool {
		i := p.patchAfter(addr)
		return i < p.done && p.patches[i].Addr <= addr-p.delta
	})
}

// hide puts the program's own text into dst, which has been read at addr.
func (s *space) hide(dst []byte, addr uint64) {
	for _, p := range s.placed {
		for _, c := range p.patches[p.patchAfter(addr):p.done] {
			at := c.Addr + p.delta
			if at >= addr+uint64(len(dst)) {
				break
			}
			for k, old := range c.Old[:c.Len] {
				if off := at + uint64(k) - addr; off < uint64(len(dst)) {
					dst[off] = old
				}
			}
		}
	}
}

// changes reports whether a layout changes the text of a mapping.
func (p *placed) changes(m *process.Mapping) bool {
	return len(p.patches) > 0 && m.Perm&machine.PermExec != 0 && m.Holds(p.patches[0].Addr+p.delta)
}

// forget drops what is not mapped any more, and returns the layouts of its text.
func (s *space) forget(maps []process.Mapping) (gone []*placed) {
	mapped := func(l *process.Mapping) bool {
		return slices.ContainsFunc(maps, func(m process.Mapping) bool {
			return m.Holds(l.Lo) && m.Perm&machine.PermExec != 0 && m.Inode == l.Inode
		})
	}
	s.loaded = slices.DeleteFunc(s.loaded, func(l process.Mapping) bool { return !mapped(&l) })
	s.placed = slices.DeleteFunc(s.placed, func(p *placed) bool {
		kept := slices.ContainsFunc(s.loaded, func(m process.Mapping) bool { return p.changes(&m) })
		if !kept {
			gone = append(gone, p)
		}
		return !kept
	})
	return gone
}

// ErrText: the text in memory is not that of the file.
var ErrText = errors.New("session: the text in memory is not the file's")

// knows reports whether the front has been asked about a mapping.
func (s *space) knows(m *process.Mapping) bool {
	return slices.ContainsFunc(s.loaded, func(l process.Mapping) bool {
		return l.Device == m.Device && l.Inode == m.Inode && l.Lo <= m.Lo && m.Hi <= l.Hi
	})
}

// compare leaves out the copies whose originals are otherwise in memory than in the file:
// another tracer has its breakpoints there, or the program has changed itself. It returns
// which these are, or ErrText where there are no others.
func (q *placed) compare(p *process.Process) (other []int, err error) {
	differs := map[*instrument.Copy]bool{}
	for rest := q.origins; len(rest) > 0; {
		lo, n := rest[0].Orig, 1
		hi := rest[0].Next()
		for ; n < len(rest) && rest[n].Orig <= hi+pageSize && rest[n].Next()-lo < mostText; n++ {
			hi = max(hi, rest[n].Next())
		}
		text := make([]byte, hi-lo)
		if err := p.Read(text, lo+q.delta); err != nil {
			return nil, err
		}
		for _, c := range rest[:n] {
			if !c.IsOf(text[c.Orig-lo:]) {
				differs[c] = true
			}
		}
		rest = rest[n:]
	}
	if len(differs) == 0 {
		return nil, nil
	}
	for i, c := range q.Copies {
		if differs[c] {
			other = append(other, i)
		}
	}
	if len(other) == len(q.Copies) {
		return nil, fmt.Errorf("%w at %#x", ErrText, q.Copies[0].Orig+q.delta)
	}
	q.patches = slices.DeleteFunc(slices.Clone(q.patches), func(c instrument.Patch) bool { return differs[q.changedFor(&c)] })
	return other, nil
}

// changedFor returns the copy that a patch leads to.
func (q *placed) changedFor(patch *instrument.Patch) *instrument.Copy {
	addr := patch.Addr
	if i, cave := q.caveAt(addr); cave {
		addr = q.Caves[i].Way
	}
	c, _ := q.copyOf(addr)
	return c
}

func (l *layout) caveAt(addr uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(l.Caves, addr, func(c instrument.Cave, addr uint64) int { return cmp.Compare(c.Addr, addr) })
}

// rebase makes the code of a placement.
func (q *placed) rebase(isa arch.Prober) error {
	for i := range q.Parts {
		part := &q.Parts[i]
		code := part.Code
		if q.delta != 0 {
			code = bytes.Clone(code)
			if err := q.Rebase(isa, part, code, q.delta); err != nil {
				return err
			}
		}
		q.code = append(q.code, code)
	}
	return nil
}

// mapData maps what code works on. It returns the memory of the counters; nil where there
// are none.
func (q *placed) mapData(p *process.Process) (counters *os.File, err error) {
	if r := q.here(q.Counters); r.Hi > r.Lo {
		if counters, err = p.MapShared(r.Lo, r.Hi-r.Lo); err != nil {
			return nil, err
		}
		q.held = append(q.held, r)
	}
	if r := q.here(q.Table); r.Hi > r.Lo {
		if err := p.Map(r.Lo, r.Hi-r.Lo, machine.PermRead|machine.PermWrite); err != nil {
			return counters, err
		}
		q.held = append(q.held, r)
	}
	return counters, nil
}

// here returns addresses of the layout as they are in the process.
func (q *placed) here(r machine.Range) machine.Range {
	return machine.Range{Lo: r.Lo + q.delta, Hi: r.Hi + q.delta}
}

// mapCode maps the next range of code.
func (q *placed) mapCode(p *process.Process) error {
	r := q.here(q.Code[q.mapped])
	err := p.Map(r.Lo, r.Hi-r.Lo, machine.PermRead|machine.PermExec)
	if err == nil {
		q.held = append(q.held[:len(q.held):len(q.held)], r) // that of children goes on by itself
		q.mapped++
	}
	return err
}

// remove takes memory of the layout away, as much as can be with one call, as others of
// the program's own are not to be touched; maps are all that it has.
func (q *placed) remove(p *process.Process, maps []process.Mapping) (more bool, err error) {
	if len(q.held) == 0 {
		return false, nil
	}
	slices.SortFunc(q.held, func(a, b machine.Range) int { return cmp.Compare(a.Lo, b.Lo) })
	n, span := 1, q.held[0]
	for ; n < len(q.held); n++ {
		next := q.held[n]
		if slices.ContainsFunc(maps, func(m process.Mapping) bool { return m.Lo < next.Lo && m.Hi > span.Hi }) {
			break
		}
		span.Hi = next.Hi
	}
	q.held = q.held[n:]
	return len(q.held) > 0, p.Unmap(span.Lo, span.Hi-span.Lo)
}

// advance maps or writes some more of the code, to which nothing leads yet, or changes some
// more of the text.
func (q *placed) advance(p *process.Process, to switches, trap []byte) (more bool, err error) {
	if q.mapped < len(q.Code) {
		err := q.mapCode(p)
		return err == nil, err
	}
	if q.part == len(q.code) {
		return q.patch(p, to, trap)
	}
	code := q.code[q.part]
	n := min(len(code)-q.offset, mostText)
	if err := p.Write(q.Parts[q.part].Addr+q.delta+uint64(q.offset), code[q.offset:][:n]); err != nil {
		return false, err
	}
	if q.offset += n; q.offset == len(code) {
		q.part, q.offset = q.part+1, 0
	}
	return true, nil
}

// mostText is how many bytes of text are changed at a time.
const mostText = 1 << 18

const pageSize = 1 << 12

// neighbours returns how many of the first patches are on neighbouring pages.
func neighbours(list []instrument.Patch) int {
	n := 1
	for n < len(list) && list[n].Addr/pageSize-list[n-1].Addr/pageSize <= 1 && list[n].Addr+8-list[0].Addr < mostText {
		n++
	}
	return n
}

// change changes the text of the first patches of a list as edit says, and returns how
// many. Text that is so already is not written.
func (q *placed) change(p *process.Process, list []instrument.Patch, edit func(text []byte, c *instrument.Patch) error) (n int, err error) {
	n = neighbours(list)
	last := &list[n-1]
	lo, hi := list[0].Addr, last.Addr+uint64(last.Len)
	text := make([]byte, hi-lo)
	if err := p.Read(text, lo+q.delta); err != nil {
		return n, err
	}
	was := bytes.Clone(text)
	for i := range list[:n] {
		c := &list[i]
		if err := edit(text[c.Addr-lo:][:c.Len], c); err != nil {
			return n, err
		}
	}
	if bytes.Equal(text, was) {
		return n, nil
	}
	return n, p.Write(lo+q.delta, text)
}

// patch makes the next patches, where text is that of the file.
func (q *placed) patch(p *process.Process, to switches, trap []byte) (more bool, err error) {
	if q.done == len(q.patches) {
		return false, nil
	}
	n, err := q.change(p, q.patches[q.done:], func(text []byte, c *instrument.Patch) error {
		if !bytes.Equal(text, c.Old[:c.Len]) {
			return fmt.Errorf("%w at %#x", ErrText, c.Addr+q.delta)
		}
		to.write(text, c, trap)
		return nil
	})
	if err != nil {
		return false, err
	}
	q.done += n
	return q.done < len(q.patches), nil
}

// write has text be as switches say.
func (w switches) write(text []byte, c *instrument.Patch, trap []byte) {
	switch {
	case w.Disarmed:
		copy(text, c.Old[:])
	case w.NoJumps && c.InCave:
		copy(text, c.Old[:]) // NOPs, which lead to the breakpoint
	case w.NoJumps:
		copy(text, c.Old[:])
		copy(text, trap)
	default:
		copy(text, c.New[:])
	}
}

// isOurs reports whether text is as a patch, or a switch, has made it. What is not may have
// been mapped in place of a library, of which the program's loader has not told yet.
func isOurs(text []byte, c *instrument.Patch, trap []byte) bool {
	for _, w := range [...]switches{{}, {Disarmed: true}, {NoJumps: true}} {
		var is [len(c.New)]byte
		w.write(is[:c.Len], c, trap)
		if bytes.Equal(text, is[:c.Len]) {
			return true
		}
	}
	return false
}

// set returns what has the text of all patches be as switches say, a part at each call.
// Text that is not mapped any more is left out.
func set(p *process.Process, todo []*placed, to switches, trap []byte) func() (more bool, err error) {
	todo = slices.Clone(todo)
	at := 0
	var errs error // that do not keep it from going on
	return func() (more bool, err error) {
		for len(todo) > 0 && at == todo[0].done {
			todo, at = todo[1:], 0
		}
		if len(todo) == 0 {
			return false, errs
		}
		q := todo[0]
		n, err := q.change(p, q.patches[at:q.done], func(text []byte, c *instrument.Patch) error {
			if isOurs(text, c, trap) {
				to.write(text, c, trap)
			}
			return nil
		})
		at += n
		if unmapped := (*process.AddressError)(nil); !errors.As(err, &unmapped) {
			errs = errors.Join(errs, err)
		}
		return true, nil
	}
}

// raise adds n to the semaphores: 1, or -1 to take that back. One that is not mapped is
// left out.
func (q *placed) raise(p *process.Process, n uint16) error {
	var errs []error
	for _, addr := range q.semaphores {
		var count [2]byte
		err := p.Read(count[:], addr)
		if err == nil {
			binary.NativeEndian.PutUint16(count[:], binary.NativeEndian.Uint16(count[:])+n)
			err = p.Write(addr, count[:])
		}
		if unmapped := (*process.AddressError)(nil); !errors.As(err, &unmapped) {
			errs = append(errs, err)
		}
	}
	q.raised = n == 1
	return errors.Join(errs...)
}
