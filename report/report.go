// Package report writes the analysis of files as one web page that needs nothing
// else: neither a network nor a server. Its data is compressed in blocks, which the
// page unpacks where they are looked at.
package report

import (
	"bufio"
	"compress/flate"
	"context"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"runtime"
	"slices"
	"strings"

	"xol/analyze"
	"xol/decode"
	"xol/place"
)

// File is a file as the page shows it.
type File struct {
	Name string
	// Analyses are those of the file by each of the profiles to show, with verdicts
	// on jumps; at least one.
	Analyses []*analyze.Analysis
}

// Options say how to write a page. The zero value is fine.
type Options struct {
	// Title of the page.
	Title string
	// Version of the program that writes the page, which it names.
	Version string
}

// Page is a page that is being written. After an error it is of no use.
type Page struct {
	out   *sink
	about pageJSON
}

// New starts a page, which goes to w. Close has to be called after all files, also
// after an error.
func New(w io.Writer, opt Options) (*Page, error) {
	out, err := newSink(w)
	if err != nil {
		return nil, err
	}
	out.head(opt.Title)
	return &Page{out, pageJSON{Version: opt.Version, Names: names()}}, nil
}

// Add adds a file. It holds the blocks of functions that are being compressed in
// memory, and what is told of each function as a whole; nothing of a file when it is
// done. progress is called with the bytes of text that have been done since its last
// call. The first error of the page, or ctx, ends it.
func (p *Page) Add(ctx context.Context, given File, progress func(bytes int64)) error {
	f := newFile(given, len(p.about.Files), p.out)
	if err := f.write(ctx, progress); err != nil {
		return err
	}
	p.about.Files = append(p.about.Files, f.describe())
	return nil
}

// Close ends the page, and returns the first error of its writer.
func (p *Page) Close() error { return p.out.end(&p.about) }

type pageJSON struct {
	Version string     `json:"version"`
	Names   namesJSON  `json:"names"`
	Files   []fileJSON `json:"files"`
}

// namesJSON are the names of constants that the page's data holds as numbers.
type namesJSON struct {
	Flows     []string       `json:"flows"`
	Props     map[string]int `json:"props"`
	Marks     []markJSON     `json:"marks"`
	TextMarks []markJSON     `json:"textMarks"`
	Landings  []string       `json:"landings"`
}

// markJSON is a place.Kind and what it is called.
type markJSON struct {
	Kind place.Kind `json:"kind"`
	Name string     `json:"name"`
}

var (
	siteMarks = []markJSON{
		{place.Ftrace, "ftrace site"},
		{place.JumpLabel, "jump label"},
		{place.StaticCall, "static call"},
		{place.Bug, "BUG or WARN"},
		{place.ExTable, "its fault is handled (exception table)"},
		{place.ExFixup, "a handled fault goes on here"},
		{place.CFIPreamble, "preamble of a control-flow check"},
		{place.CFITrap, "trap of a control-flow check"},
		{place.Data, "data"},
	}
	textMarks = []markJSON{
		{place.Blacklist, "kprobe blacklist"},
		{place.EntryText, "entry text"},
		{place.InitText, "init text"},
	}
)

// landingNames say who lands, as after "reached by".
var landingNames = [place.LandingKinds]string{
	place.LandBranch:     "a branch of another function",
	place.LandSwitch:     "a jump table",
	place.LandReturn:     "the return of a call",
	place.LandEntry:      "the file's entry point",
	place.LandSymbol:     "a symbol",
	place.LandLocalEntry: "calls, as the local entry",
	place.LandPointer:    "a pointer in data",
	place.LandTaken:      "an address that an instruction forms",
	place.LandExFixup:    "a handled fault",
	place.LandUnwind:     "an unwinding exception",
	place.LandJumpLabel:  "a jump label",
	place.LandIndirect:   "indirect branches, as a landing pad",
}

func names() namesJSON {
	n := namesJSON{Marks: siteMarks, TextMarks: textMarks, Landings: landingNames[:],
		Props: map[string]int{"conditional": int(decode.Conditional), "invalid": int(decode.Invalid)}}
	for f := decode.FlowNone; f <= decode.FlowHalt; f++ {
		n.Flows = append(n.Flows, f.String())
	}
	return n
}

// siteKinds are the marks that the page names.
var siteKinds = func() (kinds place.Kind) {
	for _, m := range slices.Concat(siteMarks, textMarks) {
		kinds |= m.Kind
	}
	return kinds
}()

//go:embed page
var assets embed.FS

// scripts are those of the page, in their order.
var scripts = []string{"d3-hierarchy.min.js", "dom.js", "data.js", "text.js", "map.js", "views.js", "function.js", "compare.js", "main.js"}

func asset(name string) string {
	b, err := assets.ReadFile("page/" + name)
	if err != nil {
		panic(err) // it is in the program
	}
	return string(b)
}

// sink writes the page in its order. Blocks are compressed while more are made.
type sink struct {
	w       *bufio.Writer
	waiting []packing
	packers chan *flate.Writer
}

// packing is a block that is being compressed.
type packing struct {
	id    string
	bytes chan []byte
}

func newSink(w io.Writer) (*sink, error) {
	s := &sink{w: bufio.NewWriterSize(w, 1<<16), packers: make(chan *flate.Writer, runtime.GOMAXPROCS(0))}
	for range cap(s.packers) {
		packer, err := flate.NewWriter(nil, flate.BestCompression)
		if err != nil {
			return nil, err
		}
		s.packers <- packer
	}
	return s, nil
}

// head writes what comes before the data.
func (s *sink) head(title string) {
	before, _, _ := strings.Cut(asset("page.html"), "{{data}}")
	before = strings.Replace(before, "{{style}}", asset("style.css"), 1)
	s.w.WriteString(strings.Replace(before, "{{title}}", html.EscapeString(shown(title)), 1))
}

// data adds columns as a block of the page, and keeps them until they are compressed.
func (s *sink) data(id string, c columns) error {
	b := packing{id, make(chan []byte, 1)}
	packer := <-s.packers
	go func() {
		packed := pack(c, packer)
		s.packers <- packer
		b.bytes <- packed
	}()
	s.waiting = append(s.waiting, b)
	if len(s.waiting) <= cap(s.packers) {
		return nil
	}
	return s.writeBlock()
}

// writeBlock writes the first block that waits.
func (s *sink) writeBlock() error {
	b := s.waiting[0]
	s.waiting = s.waiting[1:]
	packed := <-b.bytes
	fmt.Fprintf(s.w, "<script type=\"application/octet-stream\" id=\"%s\">", b.id)
	text := base64.NewEncoder(base64.StdEncoding, s.w)
	if _, err := text.Write(packed); err != nil {
		return err
	}
	if err := text.Close(); err != nil {
		return err
	}
	_, err := s.w.WriteString("</script>\n")
	return err
}

// end writes what the blocks are about, and the page's own scripts.
func (s *sink) end(page *pageJSON) error {
	for len(s.waiting) > 0 {
		if err := s.writeBlock(); err != nil {
			return err
		}
	}
	text, err := json.Marshal(page) // which writes < as \u003c
	if err != nil {
		return err
	}
	fmt.Fprintf(s.w, "<script type=\"application/json\" id=\"report\">%s</script>\n", text)
	for _, name := range scripts {
		fmt.Fprintf(s.w, "<script>\n%s</script>\n", asset(name))
	}
	_, after, _ := strings.Cut(asset("page.html"), "{{data}}")
	s.w.WriteString(after)
	return s.w.Flush()
}
