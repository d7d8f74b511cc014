package main

import (
	"fmt"
	"strings"

	"xol/classify"
	"xol/decode"
)

// slot returns the instruction slot of a probe at addr as the answer's profile
// would fill it, and whether there is one to show: uprobes have slots of their
// own kind, and what is emulated or refused has none.
func (a *answer) slot(addr uint64) (*moved, bool) {
	v := &a.verdict
	addr = a.target(addr)
	i, start := decode.Find(a.result.Insts, addr)
	if !start || v.Exec != classify.ExecSlot || a.uprobes() {
		return nil, false
	}
	m := mover{form: formSlot}
	opt := relocateOptions{profile: choiceOf(a.profile()), kconfig: kconfigFlag{a.file.Kernel}}
	if err := m.setISA(a.file.ISA, &opt); err != nil {
		return nil, false
	}
	m.lookup = a.file.Image.Symbolize
	res := m.move(job{from: addr, to: a.file.slotPage(), code: a.result.Insts[i].Bytes()}, formSlot)
	return &res, res.err == nil
}

// slotPage returns an address where slots could be: after the text, a MiB away.
func (f *analyzedFile) slotPage() uint64 {
	const distance, page = 1 << 20, 1 << 12
	end := uint64(0)
	for _, r := range f.Image.Text() {
		end = max(end, r.Addr+r.Size)
	}
	return (end + distance) &^ (page - 1)
}

// writeSlot writes the slot's bytes and what they do.
func writeSlot(t *table, s *moved) {
	t.end()
	t.left(0, fmt.Sprintf("slot (if it stood at %#x)", s.to), bold)
	t.end()
	t.left(len(gap), "", plain)
	t.left(0, fmt.Sprintf("% x", s.code), dim)
	t.end()
	t.left(len(gap), "", plain)
	t.left(0, strings.Join(s.text, "; "), plain)
	t.end()
}

// slotJSON is the JSON form of a slot.
type slotJSON struct {
	Addr  address  `json:"addr"`
	Bytes string   `json:"bytes"`
	Text  []string `json:"text"`
	Notes []string `json:"notes,omitempty"`
}

func newSlotJSON(s *moved) *slotJSON {
	return &slotJSON{address(s.to), fmt.Sprintf("%x", s.code), s.text, s.notes}
}
