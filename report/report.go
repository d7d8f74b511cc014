// Package report writes the analysis of files as one web page that needs nothing
// else: neither a network nor a server. Its data is compressed in blocks, which the
// page unpacks where they are looked at.
package report

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
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
	// Version of the program that writes the page, which it names.
	Version string
	// Progress is called with the bytes of text that have been done since the last
	// call; nil where that does not matter.
	Progress func(bytes int64)
}

// Write writes the page of files to w. It holds about a block of functions in
// memory, and what is known of each function as a whole.
func Write(ctx context.Context, w io.Writer, files []File, opt Options) error {
	out, err := newSink(w)
	if err != nil {
		return err
	}
	progress := opt.Progress
	if progress == nil {
		progress = func(int64) {}
	}
	var titles []string
	for _, f := range files {
		titles = append(titles, f.Name)
	}
	out.head("xol: " + strings.Join(titles, ", "))
	page := pageJSON{Version: opt.Version, Names: names()}
	for i := range files {
		f := newFile(files[i], i, out)
		if err := f.write(ctx, progress); err != nil {
			return err
		}
		page.Files = append(page.Files, f.describe())
	}
	return out.end(&page)
}

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

// sink writes the page in its order.
type sink struct {
	w      *bufio.Writer
	packer *flate.Writer
	packed bytes.Buffer
}

func newSink(w io.Writer) (*sink, error) {
	packer, err := flate.NewWriter(nil, flate.BestCompression)
	return &sink{w: bufio.NewWriterSize(w, 1<<16), packer: packer}, err
}

// head writes what comes before the data.
func (s *sink) head(title string) {
	before, _, _ := strings.Cut(asset("page.html"), "{{data}}")
	before = strings.Replace(before, "{{style}}", asset("style.css"), 1)
	s.w.WriteString(strings.Replace(before, "{{title}}", html.EscapeString(shown(title)), 1))
}

// data writes columns as a block of the page.
func (s *sink) data(id string, c columns) error {
	if err := pack(c, s.packer, &s.packed); err != nil {
		return err
	}
	fmt.Fprintf(s.w, "<script type=\"application/octet-stream\" id=\"%s\">", id)
	text := base64.NewEncoder(base64.StdEncoding, s.w)
	if _, err := text.Write(s.packed.Bytes()); err != nil {
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
