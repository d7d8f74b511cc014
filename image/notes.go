package image

import (
	"fmt"
	"strings"
)

// Marker is a static marker (USDT probe) of a program: a nop that stands for
// an event, with a note that says so [SystemTap wiki,
// UserSpaceProbeImplementation].
type Marker struct {
	Provider, Name string
	Location       uint64 // address of the nop
	// Base is the address of the section .stapsdt.base when the note was
	// written; the other addresses here make up for what it has moved since.
	Base uint64
	// Semaphore is the address of a 2-byte counter of who listens, which the
	// program asks before it computes arguments; 0 where there is none.
	Semaphore uint64
	Args      string // the expressions of the arguments; see package usdt
}

const (
	markerSection     = ".note.stapsdt"
	markerBaseSection = ".stapsdt.base"
	markerOwner       = "stapsdt"
	markerType        = 3 // NT_STAPSDT
	noteAlign         = 4 // of names and descriptors
)

// Markers returns the static markers in the order of their notes, which is
// that of readelf. Notes that are damaged end the list, with a *FormatError.
func (im *file) Markers() ([]Marker, error) {
	var all []Marker
	for i := range im.sections {
		s := &im.sections[i]
		if s.name != markerSection {
			continue
		}
		data, err := im.contents(s)
		if err != nil {
			return all, err
		}
		n := len(all)
		if all, err = im.order.appendMarkers(all, data); err != nil {
			return all, err
		}
		im.rebaseMarkers(all[n:])
	}
	return all, nil
}

// rebaseMarkers makes up for what prelinking has moved.
func (im *file) rebaseMarkers(markers []Marker) {
	base := im.sectionNamed(markerBaseSection)
	if base == nil {
		return
	}
	for i := range markers {
		m := &markers[i]
		if m.Base == 0 { // the note does not say
			continue
		}
		moved := base.addr - m.Base
		m.Location += moved
		if m.Semaphore != 0 {
			m.Semaphore += moved
		}
	}
}

// appendMarkers appends the markers of a section of notes.
func (o byteOrder) appendMarkers(markers []Marker, data []byte) ([]Marker, error) {
	c := cursor{data: data, order: o}
	for c.pos < len(data) {
		start := c.pos
		damaged := func(what string) error {
			return &FormatError{What: what, Where: fmt.Sprintf("offset %#x of section %s", start, markerSection)}
		}
		nameSize, descSize, typ := c.u32(), c.u32(), c.u32()
		name := c.padded(nameSize)
		desc := c.padded(descSize)
		if c.bad {
			return markers, damaged("note goes beyond the end of its section")
		}
		if string(name) != markerOwner+"\x00" || typ != markerType {
			continue
		}
		m, what := o.marker(desc)
		if what != "" {
			return markers, damaged(what)
		}
		markers = append(markers, m)
	}
	return markers, nil
}

// padded takes n bytes and the padding after them, which may be missing at the
// very end.
func (c *cursor) padded(n uint32) []byte {
	if c.bad || uint64(n) > uint64(len(c.data)-c.pos) {
		c.bad = true
		return nil
	}
	b := c.take(int(n))
	c.skip(min(-int(n)&(noteAlign-1), len(c.data)-c.pos))
	return b
}

// marker reads the descriptor of a note, or says what is wrong with it.
func (o byteOrder) marker(desc []byte) (m Marker, what string) {
	c := cursor{data: desc, order: o}
	m.Location, m.Base, m.Semaphore = c.u64(), c.u64(), c.u64()
	if c.bad {
		return m, "marker is too short for its addresses"
	}
	m.Provider, m.Name, m.Args = c.cstring(), c.cstring(), c.cstring()
	switch {
	case c.bad:
		return m, "marker lacks its provider, name or arguments, or the zero after one"
	case m.Provider == "" || m.Name == "":
		return m, "marker without a name"
	case len(strings.Trim(string(desc[c.pos:]), "\x00")) > 0:
		return m, "marker has more than its arguments"
	}
	return m, ""
}
