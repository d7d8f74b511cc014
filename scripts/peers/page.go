package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"
)

//go:embed page.md
var pageText string

// page is what was measured.
type page struct {
	Date     string
	Rounds   int
	Machine  machine
	Versions []string
	Tables   []table
	Missing  []string
	Plots    string // the folder, as seen from the page
}

// table compares ours with others.
type table struct {
	ID, Title, Text, Unit string
	Rows                  []row
}

type row struct {
	Label  string
	Ours   bool
	Values spread
	Ratio  string // to ours
}

// contender is one of a table's: what it is called, and its benchmark.
type contender struct{ label, benchmark string }

var decoders = []struct{ peer, decode, text string }{
	{"xol", "xol", "xol"},
	{"x-arch", "golang.org/x/arch", "golang.org/x/arch"},
	{"zydis-no-operands", "Zydis, without operands", ""},
	{"zydis", "Zydis", "Zydis"},
	{"capstone", "Capstone (text and details)", "Capstone"},
	{"llvm", "", "LLVM"},
	{"objdump", "", "objdump -d"},
	{"llvm-objdump", "", "llvm-objdump -d"},
}

// page makes tables of what was measured.
func (l *lab) page(start time.Time, rounds int) *page {
	p := &page{Date: start.UTC().Format(time.DateOnly), Rounds: rounds, Machine: l.machine, Missing: l.missing}
	for _, peer := range []string{"xol", "x-arch", "zydis", "capstone", "llvm", "objdump", "llvm-objdump", "gdb", "lttng"} {
		if v := l.versions[peer]; v != "" {
			p.Versions = append(p.Versions, v)
		}
	}
	add := func(t table, unit string, all ...contender) {
		if t.Rows = l.rows(unit, all); len(t.Rows) > 1 {
			t.Unit = unit
			p.Tables = append(p.Tables, t)
		}
	}
	for _, t := range l.texts {
		from := fmt.Sprintf("%.1f MiB of the text of %s.", float64(t.size)/(1<<20), t.from)
		var decode, text []contender
		for _, d := range decoders {
			name := "Decode/isa=" + t.isa + "/work=%s/peer=" + d.peer
			if d.decode != "" {
				decode = append(decode, contender{d.decode, fmt.Sprintf(name, "decode")})
			}
			if d.text != "" {
				text = append(text, contender{d.text, fmt.Sprintf(name, "text")})
			}
		}
		add(table{ID: "decode-" + t.isa, Title: "Decoding " + t.isa,
			Text: "Lengths, where execution goes on, and what operands refer to: " + from}, "ns/inst", decode...)
		add(table{ID: "text-" + t.isa, Title: "Decoding " + t.isa + " and writing it as text", Text: from}, "ns/inst", text...)
	}
	add(table{ID: "whole-file", Title: "A whole kernel",
		Text: "`xol analyze` decodes and judges every instruction of " + l.whole + ", for probes and for jumps; the others write its text. Time on all CPUs."},
		"s/file", contender{"xol analyze", "Whole/peer=xol"}, contender{"objdump -d", "Whole/peer=objdump"}, contender{"llvm-objdump -d", "Whole/peer=llvm-objdump"})
	add(table{ID: "hits-entry", Title: "Counting calls at a function's entry",
		Text: "What a hit adds to a call. The kernel emulates what most functions start with, has other instructions executed out of line, and may replace a NOP of 5 bytes. The tracepoint is compiled into its program; it records an event with a time, the others count."},
		"ns/hit", contender{"xol count, by a jump", "Hit/jump"}, contender{"uprobe on a NOP of 5 bytes", "Hit/uprobe-nop5"}, contender{"uprobe, emulated", "Hit/uprobe"},
		contender{"uprobe, out of line", "Hit/uprobe-stepped"}, contender{"LTTng-UST tracepoint", "Hit/lttng"})
	add(table{ID: "hits-return", Title: "Counting returns", Text: "What a hit adds to a call."},
		"ns/hit", contender{"xol count, by a jump", "Hit/return"}, contender{"uretprobe", "Hit/uretprobe"})
	add(table{ID: "hits-breakpoint", Title: "Counting calls by a breakpoint",
		Text: "What a hit adds to a call where no jump fits: a stop of the thread for its tracer. The kernel's uprobe handles its breakpoint without one."},
		"ns/hit", contender{"xol count, by a breakpoint", "Hit/breakpoint"}, contender{"gdb, ignored breakpoint", "Hit/gdb"}, contender{"uprobe, emulated", "Hit/uprobe"})
	return p
}

// rows returns a row for each contender that was measured; the first is ours.
func (l *lab) rows(unit string, all []contender) (rows []row) {
	for i, c := range all {
		values, ok := l.samples.of(c.benchmark, unit)
		if !ok {
			continue
		}
		r := row{Label: c.label, Ours: i == 0, Values: values}
		if ratio, ok := l.samples.ratio(c.benchmark, all[0].benchmark, unit); ok && i > 0 {
			r.Ratio = fmt.Sprintf("%v (%s)", ratio, ratio.Range())
		}
		rows = append(rows, r)
	}
	return rows
}

func (p *page) write(w io.Writer) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

// print writes the tables for a terminal.
func (p *page) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range p.Tables {
		fmt.Fprintf(out, "\n%s\t%s\tspread\ttimes ours\n", t.Title, t.Unit)
		for _, r := range t.Rows {
			fmt.Fprintf(out, "  %s\t%v\t%s\t%s\n", r.Label, r.Values, r.Values.Range(), r.Ratio)
		}
	}
	if len(p.Missing) > 0 {
		fmt.Fprintf(out, "\n%s\n", strings.Join(p.Missing, "\n"))
	}
	return out.Flush()
}
