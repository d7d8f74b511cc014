package main

import (
	"bufio"
	"fmt"
	"strings"
)

// movedWriter prints results.
type movedWriter interface {
	write(*moved) error
	close()
}

func newMovedWriter(w *bufio.Writer, format string, p palette) movedWriter {
	if format == formatTable {
		return &movedTable{w: w, palette: p}
	}
	m := &movedRecords{records: records{format: format}}
	m.stream = newStream(w, format, "[", "\n]\n", func(r *records) { m.fields(r, new(moved)) })
	return m
}

// movedRecords prints results as JSON or CSV.
type movedRecords struct {
	*stream
	records records
}

func (m *movedRecords) write(res *moved) error {
	m.records.buf = m.records.buf[:0]
	m.fields(&m.records, res)
	return m.stream.write(m.records.buf)
}

func (m *movedRecords) fields(r *records, res *moved) {
	r.begin()
	r.addr("from", res.from)
	r.addr("to", res.to)
	r.only(res.err == nil)
	r.bytes("bytes", res.code)
	r.str("exec", res.exec)
	r.strs("notes", res.notes)
	r.strs("text", res.text)
	r.only(res.err != nil)
	r.str("error", errorText(res.err))
	r.str("rule", res.rule)
	r.only(res.err == nil)
	r.str("form", res.form)
	r.strs("clobbers", res.clobbers)
	r.end()
}

// movedTable prints results for people: each instruction of the moved code on
// a line, then the notes.
type movedTable struct {
	w       *bufio.Writer
	palette palette
}

func (m *movedTable) write(res *moved) error {
	t := table{palette: m.palette}
	if res.err != nil {
		t.left(0, fmt.Sprintf("%#x to %#x: %v", res.from, res.to, res.err), red)
		t.left(0, res.rule, dim)
		t.end()
		_, err := m.w.Write(t.buf)
		return err
	}
	t.left(0, fmt.Sprintf("%#x to %#x, %s, %d bytes", res.from, res.to, res.what(), len(res.code)), bold)
	t.end()
	if len(res.code) > 0 {
		t.left(0, fmt.Sprintf("  %x", res.code), plain)
		t.end()
	}
	for _, text := range res.text {
		t.left(0, "    "+text, plain)
		t.end()
	}
	if len(res.clobbers) > 0 {
		t.left(0, "  clobbers: "+strings.Join(res.clobbers, ", "), yellow)
		t.end()
	}
	for _, note := range res.notes {
		t.left(0, "  "+note, dim)
		t.end()
	}
	_, err := m.w.Write(t.buf)
	return err
}

func (m *movedTable) close() {}

// what names the moved code: a region, or how the copy of one instruction is
// executed.
func (res *moved) what() string {
	if res.form == formRegion {
		return formRegion
	}
	return res.exec
}
