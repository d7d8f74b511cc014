package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Output formats.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatJSONL = "jsonl"
	formatCSV   = "csv"
)

// formatChoice returns the flag --output of a command that prints a list.
func formatChoice() choice {
	return choiceOf(formatTable, formatJSON, formatJSONL, formatCSV)
}

// records encodes records field by field and appends them to buf. The same
// calls give every format: an object in JSON, a line of columns in CSV. They
// are written by hand, not by reflection, because a kernel has millions.
//
// In JSON a field that only leaves out is absent; in CSV, whose columns are
// fixed, it is empty.
type records struct {
	format string // not formatTable
	buf    []byte
	absent bool   // fields are left out
	first  bool   // no field of the record has been written
	group  string // prefix of the CSV column names
	header bool   // write the CSV column names in place of the values
}

// begin starts a record.
func (r *records) begin() {
	r.first, r.absent = true, false
	switch r.format {
	case formatJSON:
		r.buf = append(r.buf, ",\n{"...) // the stream drops the very first comma
	case formatJSONL:
		r.buf = append(r.buf, '{')
	}
}

// end ends the record.
func (r *records) end() {
	switch r.format {
	case formatJSON:
		r.buf = append(r.buf, '}')
	case formatJSONL:
		r.buf = append(r.buf, "}\n"...)
	default:
		r.buf = append(r.buf, '\n')
	}
}

// only says whether the fields that follow are there at all.
func (r *records) only(present bool) { r.absent = !present }

// open starts a group of fields: a nested object in JSON, in CSV columns named
// name_field. Groups do not nest.
func (r *records) open(name string) {
	r.group = name
	if r.format != formatCSV && !r.absent {
		r.key(name)
		r.buf = append(r.buf, '{')
		r.first = true
	}
}

// close ends the group.
func (r *records) close() {
	r.group = ""
	if r.format != formatCSV && !r.absent {
		r.buf = append(r.buf, '}')
		r.first = false
	}
}

// key writes what stands before a value and reports whether to write one.
func (r *records) key(name string) bool {
	if r.format == formatCSV {
		return r.column(name)
	}
	if r.absent {
		return false
	}
	if !r.first {
		r.buf = append(r.buf, ',')
	}
	r.first = false
	r.buf = append(r.buf, '"')
	r.buf = append(r.buf, name...)
	r.buf = append(r.buf, `":`...)
	return true
}

func (r *records) column(name string) bool {
	if !r.first {
		r.buf = append(r.buf, ',')
	}
	r.first = false
	if !r.header {
		return !r.absent
	}
	if r.group != "" {
		r.buf = append(r.buf, r.group...)
		r.buf = append(r.buf, '_')
	}
	r.buf = append(r.buf, name...)
	return false
}

func (r *records) str(name, v string) {
	if !r.key(name) {
		return
	}
	if r.format == formatCSV {
		r.buf = appendCSV(r.buf, v)
	} else {
		r.buf = appendJSONString(r.buf, v)
	}
}

// strs writes a list of strings: an array in JSON, in CSV one field with "; "
// between them.
func (r *records) strs(name string, v []string) {
	if r.format == formatCSV {
		r.str(name, strings.Join(v, "; "))
		return
	}
	if !r.key(name) {
		return
	}
	r.buf = append(r.buf, '[')
	for i, s := range v {
		if i > 0 {
			r.buf = append(r.buf, ',')
		}
		r.buf = appendJSONString(r.buf, s)
	}
	r.buf = append(r.buf, ']')
}

func (r *records) num(name string, v int) {
	if r.key(name) {
		r.buf = strconv.AppendInt(r.buf, int64(v), 10)
	}
}

func (r *records) unsigned(name string, v uint64) {
	if r.key(name) {
		r.buf = strconv.AppendUint(r.buf, v, 10)
	}
}

// raw writes a number that is written already.
func (r *records) raw(name, number string) {
	if r.key(name) {
		r.buf = append(r.buf, number...)
	}
}

// seconds writes a time in seconds, to the microsecond.
func (r *records) seconds(name string, d time.Duration) {
	if r.key(name) {
		r.buf = strconv.AppendFloat(r.buf, d.Seconds(), 'f', 6, 64)
	}
}

func (r *records) flag(name string, v bool) {
	if r.key(name) {
		r.buf = strconv.AppendBool(r.buf, v)
	}
}

// addr writes an address: in JSON a string, because not every reader keeps 64
// bits of a number.
func (r *records) addr(name string, v uint64) {
	if r.key(name) {
		r.quote()
		r.buf = appendAddr(r.buf, v)
		r.quote()
	}
}

// addrOrEmpty writes an address, or an empty string for 0.
func (r *records) addrOrEmpty(name string, v uint64) {
	if v == 0 {
		r.str(name, "")
	} else {
		r.addr(name, v)
	}
}

func (r *records) bytes(name string, v []byte) {
	if r.key(name) {
		r.quote()
		r.buf = hex.AppendEncode(r.buf, v)
		r.quote()
	}
}

func (r *records) quote() {
	if r.format != formatCSV {
		r.buf = append(r.buf, '"')
	}
}

// appendAddr appends v as addresses are written everywhere.
func appendAddr(dst []byte, v uint64) []byte {
	return strconv.AppendUint(append(dst, "0x"...), v, 16)
}

// appendJSONString appends s as a JSON string.
func appendJSONString(dst []byte, s string) []byte {
	if isPlainJSON(s) {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string has no value that cannot be encoded
	return append(dst, bytes.TrimRight(b.Bytes(), "\n")...)
}

// isPlainJSON reports whether s stands for itself between quotes.
func isPlainJSON(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// appendCSV appends s as a CSV field, quoted where RFC 4180 asks for it.
func appendCSV(dst []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"\r\n") && !strings.HasPrefix(s, " ") {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(s, `"`, `""`)...)
	return append(dst, '"')
}

// stream writes encoded records and what has to stand around them. Errors stay
// in the writer until it is flushed; write returns them early so that a long
// run can end.
type stream struct {
	w      *bufio.Writer
	format string
	head   []byte // before the first record, which may never come
	tail   string // after the list, in JSON
	any    bool   // a record has been written
}

// newStream starts a stream of records to w. In JSON, head and tail enclose the
// list. row encodes any one record: it is asked for the names of CSV columns.
func newStream(w *bufio.Writer, format, head, tail string, row func(*records)) *stream {
	s := &stream{w: w, format: format, tail: tail}
	switch format {
	case formatJSON:
		s.head = []byte(head)
	case formatCSV:
		names := &records{format: format, header: true}
		row(names)
		s.head = names.buf
	}
	return s
}

// begin writes what stands before the records, once.
func (s *stream) begin() {
	s.w.Write(s.head)
	s.head = nil
}

// write writes any number of whole records.
func (s *stream) write(encoded []byte) error {
	s.begin()
	if s.format == formatJSON && !s.any && len(encoded) > 0 {
		encoded = encoded[len(","):]
	}
	s.any = s.any || len(encoded) > 0
	_, err := s.w.Write(encoded)
	return err
}

// close ends the list.
func (s *stream) close() {
	s.begin()
	if s.format == formatJSON {
		s.w.WriteString(s.tail)
	}
}
