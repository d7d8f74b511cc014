package main

import (
	"bufio"

	"xol/classify"
	"xol/decode"
)

// decoded is one result of decoding.
type decoded struct {
	addr    uint64
	inst    decode.Inst
	text    string
	err     error // why there is no instruction
	judged  bool
	verdict classify.Verdict // where judged
}

// decodedWriter prints results.
type decodedWriter interface {
	write(*decoded) error
	close()
}

func newDecodedWriter(w *bufio.Writer, format string, p palette, verdicts bool) decodedWriter {
	if format == formatTable {
		return newDecodedTable(w, p, verdicts)
	}
	return newDecodedRecords(w, format, verdicts)
}

// decodedRecords prints them as JSON or CSV.
type decodedRecords struct {
	*stream
	records  records
	verdicts bool // there are CSV columns for verdicts
}

func newDecodedRecords(w *bufio.Writer, format string, verdicts bool) *decodedRecords {
	d := &decodedRecords{records: records{format: format}, verdicts: verdicts}
	d.stream = newStream(w, format, "[", "\n]\n", func(r *records) { d.fields(r, new(decoded)) })
	return d
}

func (d *decodedRecords) write(res *decoded) error {
	d.records.buf = d.records.buf[:0]
	d.fields(&d.records, res)
	return d.stream.write(d.records.buf)
}

func (d *decodedRecords) fields(r *records, res *decoded) {
	inst, ok := &res.inst, res.err == nil
	target, direct := inst.BranchTarget()
	r.begin()
	r.addr("addr", res.addr)
	r.only(ok)
	r.num("len", int(inst.Len))
	r.bytes("bytes", inst.Bytes())
	r.str("text", res.text)
	r.str("flow", inst.Flow.String())
	r.only(ok && direct)
	r.addr("target", target)
	r.only(ok && inst.PCRel.Kind != decode.PCRelNone)
	pcrelFields(r, inst)
	r.only(!ok)
	r.str("error", errorText(res.err))
	if d.verdicts {
		r.only(res.judged)
		verdictFields(r, &res.verdict)
		hazardField(r, &res.verdict)
	}
	r.end()
}

// errorText returns the message of err, empty for none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// decodedTable prints results as a table.
type decodedTable struct {
	w        *bufio.Writer
	table    table
	verdicts bool
}

// Widths of the columns.
const (
	bytesWidth = 2 * decode.MaxLen
	flowWidth  = len("call-indirect")
	textWidth  = 36
)

func newDecodedTable(w *bufio.Writer, p palette, verdicts bool) *decodedTable {
	d := &decodedTable{w: w, table: table{palette: p}, verdicts: verdicts}
	t := &d.table
	t.right(addrWidth, "ADDRESS", bold)
	t.left(bytesWidth, "BYTES", bold)
	t.left(flowWidth, "FLOW", bold)
	t.right(addrWidth, "TARGET", bold)
	if verdicts {
		verdictHeads(t)
	}
	t.left(textWidth, "TEXT", bold)
	if verdicts {
		reasonHead(t)
	}
	t.end()
	w.Write(t.buf)
	return d
}

func (d *decodedTable) write(res *decoded) error {
	t := &d.table
	t.buf = t.buf[:0]
	t.addr(res.addr)
	if res.err == nil {
		d.instruction(&res.inst)
	} else {
		t.left(bytesWidth, "-", dim)
		t.left(flowWidth, "-", dim)
		t.right(addrWidth, "-", dim)
	}
	if res.judged {
		verdictCells(t, &res.verdict)
	} else if d.verdicts {
		t.left(probeWidth, "-", dim)
		t.left(runsWidth, "-", dim)
	}
	if res.err == nil {
		t.left(textWidth, res.text, plain)
	} else {
		t.left(textWidth, res.err.Error(), red)
	}
	if res.judged {
		reasonCell(t, &res.verdict)
	}
	t.end()
	_, err := d.w.Write(t.buf)
	return err
}

func (d *decodedTable) close() {}

func (d *decodedTable) instruction(inst *decode.Inst) {
	t := &d.table
	t.bytes(bytesWidth, inst.Bytes())
	t.left(flowWidth, inst.Flow.String(), plain)
	if inst.Has(decode.HasTarget) {
		t.addr(inst.Target)
	} else {
		t.right(addrWidth, "-", dim)
	}
}
