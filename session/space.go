//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"xol/instrument"
	"xol/machine"
	"xol/process"
)

// space is what has been put into an address space. Children that fork makes start with
// a copy of it.
type space struct {
	mapped  []machine.Range    // copies of code
	data    []machine.Range    // counters and tables
	copies  []*instrument.Copy // by the addresses of the copies
	origins []*instrument.Copy // by those of the originals
	undo    []undo             // by address
	patches []instrument.Patch // all that have been made, by address
	loaded  []process.Mapping  // files that the front has been asked about
}

func newSpace() *space { return &space{} }

// undo is original text.
type undo struct {
	addr uint64
	len  uint8
	old  [8]byte
}

func (s *space) clone() *space {
	c := *s
	c.mapped, c.data, c.copies = slices.Clone(s.mapped), slices.Clone(s.data), slices.Clone(s.copies)
	c.origins, c.undo, c.loaded = slices.Clone(s.origins), slices.Clone(s.undo), slices.Clone(s.loaded)
	c.patches = slices.Clone(s.patches)
	return &c
}

func compareCopies(a, b *instrument.Copy) int { return cmp.Compare(a.Addr, b.Addr) }

func compareOrigins(a, b *instrument.Copy) int { return cmp.Compare(a.Orig, b.Orig) }

// copyAt returns the copy that holds an address; nil where none does.
func (s *space) copyAt(addr uint64) *instrument.Copy {
	i, found := slices.BinarySearchFunc(s.copies, addr, func(c *instrument.Copy, addr uint64) int { return cmp.Compare(c.Addr, addr) })
	if !found {
		i--
	}
	if i < 0 || addr >= s.copies[i].End() {
		return nil
	}
	return s.copies[i]
}

// copyOf returns the copy that has the instruction at an original address.
func (s *space) copyOf(addr uint64) (c *instrument.Copy, step int) {
	i, found := slices.BinarySearchFunc(s.origins, addr, func(c *instrument.Copy, addr uint64) int { return cmp.Compare(c.Orig, addr) })
	if !found {
		i--
	}
	// Copies overlap only where one of them is a landing pad alone.
	for ; i >= 0 && s.origins[i].Orig+maxSpan > addr; i-- {
		if step, ok := s.origins[i].At(addr); ok {
			return s.origins[i], step
		}
		if s.origins[i].Covers(addr) {
			break
		}
	}
	return nil, 0
}

// maxSpan is how far back the copy of a function may start.
const maxSpan = 1 << 30

// own reports whether an address is in memory that has been put into the process.
func (s *space) own(addr uint64) bool {
	return slices.ContainsFunc(s.mapped, func(r machine.Range) bool { return r.Holds(addr) })
}

// patchedAt reports whether something else than the program's own byte stands there.
func (s *space) patchedAt(addr uint64) bool {
	i, found := slices.BinarySearchFunc(s.undo, addr, func(u undo, addr uint64) int { return cmp.Compare(u.addr, addr) })
	if !found {
		i--
	}
	return i >= 0 && addr < s.undo[i].addr+uint64(s.undo[i].len)
}

// hide puts the program's own text into dst, which has been read at addr.
func (s *space) hide(dst []byte, addr uint64) {
	i, _ := slices.BinarySearchFunc(s.undo, addr, func(u undo, addr uint64) int { return cmp.Compare(u.addr+uint64(u.len)-1, addr) })
	for ; i < len(s.undo) && s.undo[i].addr < addr+uint64(len(dst)); i++ {
		for k := range uint64(s.undo[i].len) {
			if off := s.undo[i].addr + k - addr; off < uint64(len(dst)) {
				dst[off] = s.undo[i].old[k]
			}
		}
	}
}

// forget drops what has been put into text that is not mapped any more.
func (s *space) forget(maps []process.Mapping) {
	mapped := func(addr uint64) bool {
		return slices.ContainsFunc(maps, func(m process.Mapping) bool { return m.Holds(addr) && m.Perm&machine.PermExec != 0 })
	}
	gone := slices.ContainsFunc(s.loaded, func(l process.Mapping) bool { return !mapped(l.Lo) })
	if !gone {
		return
	}
	s.loaded = slices.DeleteFunc(s.loaded, func(l process.Mapping) bool { return !mapped(l.Lo) })
	s.origins = slices.DeleteFunc(s.origins, func(c *instrument.Copy) bool { return !mapped(c.Orig) })
	s.undo = slices.DeleteFunc(s.undo, func(u undo) bool { return !mapped(u.addr) })
	s.patches = slices.DeleteFunc(s.patches, func(c instrument.Patch) bool { return !mapped(c.Addr) })
}

// ErrText: the text in memory is not that of the file.
var ErrText = errors.New("session: the text in memory is not the file's")

// knows reports whether the front has been asked about a mapping.
func (s *space) knows(m *process.Mapping) bool {
	return slices.ContainsFunc(s.loaded, func(l process.Mapping) bool {
		return l.Device == m.Device && l.Inode == m.Inode && l.Lo <= m.Lo && m.Hi <= l.Hi
	})
}

// install puts a layout into a process: memory first, and then the text, a part at a time
// with all threads stopped. It returns the memory of the counters; nil where there are none.
func (s *space) install(p *process.Process, l *instrument.Layout) (counters *os.File, err error) {
	for _, r := range l.Code {
		if err := p.Map(r.Lo, r.Hi-r.Lo, machine.PermRead|machine.PermExec); err != nil {
			return nil, err
		}
		s.mapped = append(s.mapped, r)
	}
	if r := l.Counters; r.Hi > r.Lo {
		if counters, err = p.MapShared(r.Lo, r.Hi-r.Lo); err != nil {
			return nil, err
		}
		s.data = append(s.data, r)
	}
	if r := l.Table; r.Hi > r.Lo {
		if err := p.Map(r.Lo, r.Hi-r.Lo, machine.PermRead|machine.PermWrite); err != nil {
			return counters, err
		}
		s.data = append(s.data, r)
	}
	if err := writeParts(p, l); err != nil {
		return counters, err
	}
	s.copies = append(s.copies, l.Copies...)
	s.origins = append(s.origins, l.Copies...)
	slices.SortFunc(s.copies, compareCopies)
	slices.SortFunc(s.origins, compareOrigins)
	return counters, s.patch(p, l.Patches)
}

// writeParts writes code, what follows in memory at once.
func writeParts(p *process.Process, l *instrument.Layout) error {
	var run []byte
	var start uint64
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		err := p.Write(start, run)
		run = run[:0]
		return err
	}
	for _, part := range l.Parts {
		if gap := part.Addr - (start + uint64(len(run))); len(run) > 0 && gap < 64 {
			run = append(run, make([]byte, gap)...)
		} else {
			if err := flush(); err != nil {
				return err
			}
			start = part.Addr
		}
		run = append(run, part.Code...)
	}
	return flush()
}

// patchBatch is how many bytes of text are changed at a time.
const patchBatch = 1 << 20

// patch changes text. Where memory has other text than the file, nothing is changed.
func (s *space) patch(p *process.Process, patches []instrument.Patch) error {
	for len(patches) > 0 {
		n := 1
		for n < len(patches) && patches[n].Addr+8-patches[0].Addr < patchBatch {
			n++
		}
		if err := s.patchStopped(p, patches[:n]); err != nil {
			return err
		}
		patches = patches[n:]
	}
	slices.SortFunc(s.undo, func(a, b undo) int { return cmp.Compare(a.addr, b.addr) })
	slices.SortFunc(s.patches, func(a, b instrument.Patch) int { return cmp.Compare(a.Addr, b.Addr) })
	return nil
}

func (s *space) patchStopped(p *process.Process, patches []instrument.Patch) (err error) {
	if err := p.Stop(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Resume()) }()
	return s.patchRun(p, patches)
}

// patchRun changes text that is no longer than patchBatch.
func (s *space) patchRun(p *process.Process, patches []instrument.Patch) error {
	last := &patches[len(patches)-1]
	lo, hi := patches[0].Addr, last.Addr+uint64(last.Len)
	was := make([]byte, hi-lo)
	if err := p.Read(was, lo); err != nil {
		return err
	}
	now := bytes.Clone(was)
	for i := range patches {
		c := &patches[i]
		from, to := c.Addr-lo, c.Addr-lo+uint64(c.Len)
		if !bytes.Equal(was[from:to], c.Old[:c.Len]) {
			return fmt.Errorf("%w at %#x", ErrText, c.Addr)
		}
		s.patches = append(s.patches, *c)
		u := undo{addr: c.Addr, len: c.Len}
		copy(u.old[:], was[from:to])
		s.undo = append(s.undo, u)
		copy(now[from:to], c.New[:])
	}
	return p.Write(lo, now)
}

// set has the text be as a switch says.
func (s *space) set(p *process.Process, to switches, trap []byte) error {
	var errs []error
	for list := s.patches; len(list) > 0; {
		n := 1
		for n < len(list) && list[n].Addr+8-list[0].Addr < patchBatch {
			n++
		}
		errs = append(errs, setRun(p, list[:n], to, trap))
		list = list[n:]
	}
	return errors.Join(errs...)
}

func setRun(p *process.Process, list []instrument.Patch, to switches, trap []byte) error {
	last := &list[len(list)-1]
	lo, hi := list[0].Addr, last.Addr+uint64(last.Len)
	text := make([]byte, hi-lo)
	if err := p.Read(text, lo); err != nil {
		return err
	}
	for i := range list {
		c := &list[i]
		at := text[c.Addr-lo:][:c.Len]
		switch {
		case to.Disarmed:
			copy(at, c.Old[:])
		case to.NoJumps:
			copy(at, c.Old[:])
			copy(at, trap)
		default:
			copy(at, c.New[:])
		}
	}
	return p.Write(lo, text)
}

// restore puts all of the program's own text back. The process is stopped.
func (s *space) restore(p *process.Process) error {
	var errs []error
	for len(s.undo) > 0 {
		n := 1
		for n < len(s.undo) && s.undo[n].addr+8-s.undo[0].addr < patchBatch {
			n++
		}
		errs = append(errs, restoreRun(p, s.undo[:n]))
		s.undo = s.undo[n:]
	}
	return errors.Join(errs...)
}

func restoreRun(p *process.Process, list []undo) error {
	last := &list[len(list)-1]
	lo, hi := list[0].addr, last.addr+uint64(last.len)
	text := make([]byte, hi-lo)
	if err := p.Read(text, lo); err != nil {
		return err
	}
	for i := range list {
		u := &list[i]
		copy(text[u.addr-lo:], u.old[:u.len])
	}
	return p.Write(lo, text)
}
