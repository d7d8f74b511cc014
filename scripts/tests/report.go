package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"xol/internal/skip"
)

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// report prints what go test would print, and collects why tests are skipped.
type report struct {
	w       *bufio.Writer
	verbose bool
	running map[string]*testedPackage
	skipped map[string][]string // details by reason
	count   map[string]int      // tests by reason
	no      int                 // cases in which there was nothing to test
	failed  bool                // a package
}

// testedPackage is a package whose tests have not ended.
type testedPackage struct {
	tests  map[string]*tested // running
	order  []string           // their names
	failed strings.Builder    // what the failed tests said, in the order of their ends
	said   []string           // by the package itself
}

// tested is a test that runs: what it has said, and its failed parts after it.
type tested struct{ head, said strings.Builder }

func newReport(w *bufio.Writer, verbose bool) *report {
	return &report{w: w, verbose: verbose, running: map[string]*testedPackage{}, skipped: map[string][]string{}, count: map[string]int{}}
}

// read takes the events one by one. What is no event is printed as it is.
func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil:
			r.w.WriteString(line)
		default:
			r.take(&e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e *event) {
	if e.Action == "build-output" {
		r.w.WriteString(e.Output)
		return
	}
	p := r.running[e.Package]
	if p == nil {
		p = &testedPackage{tests: map[string]*tested{}}
		r.running[e.Package] = p
	}
	switch e.Action {
	case "output":
		if r.verbose {
			r.w.WriteString(e.Output)
		}
		p.take(e)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.ended(p, e.Action == "fail")
			delete(r.running, e.Package)
			return
		}
		if e.Action == "skip" {
			r.skip(p.reason(e.Test))
		}
		p.end(e.Test, e.Action == "fail")
	}
}

// take keeps a line.
func (p *testedPackage) take(e *event) {
	if e.Test == "" {
		p.said = append(p.said, e.Output)
		return
	}
	t := p.tests[e.Test]
	if t == nil {
		t = new(tested)
		p.tests[e.Test] = t
		p.order = append(p.order, e.Test)
	}
	switch line := strings.TrimLeft(e.Output, " "); {
	case framing.MatchString(line):
	case strings.HasPrefix(line, "--- "):
		t.head.WriteString(line)
	default:
		t.said.WriteString(e.Output)
	}
}

// end ends a test. If it has failed, what it said belongs to the test that it is a
// part of.
func (p *testedPackage) end(name string, failed bool) {
	t := p.tests[name]
	delete(p.tests, name)
	p.order = slices.DeleteFunc(p.order, func(s string) bool { return s == name })
	if t == nil || !failed {
		return
	}
	text := t.head.String() + t.said.String()
	i := strings.LastIndexByte(name, '/')
	for ; i >= 0; i = strings.LastIndexByte(name[:i], '/') {
		if whole := p.tests[name[:i]]; whole != nil {
			for line := range strings.Lines(text) {
				whole.said.WriteString("    " + line)
			}
			return
		}
	}
	p.failed.WriteString(text)
}

// ended prints what go test prints of a package: its last line, and where it fails
// all that the failed tests said, those that did not end among them.
func (r *report) ended(p *testedPackage, failed bool) {
	r.failed = r.failed || failed
	if r.verbose {
		return
	}
	if failed {
		r.w.WriteString(p.failed.String())
		for _, name := range p.order {
			r.w.WriteString(p.tests[name].said.String())
		}
	}
	for _, line := range p.said {
		if failed && line != "PASS\n" || lastLine.MatchString(line) {
			r.w.WriteString(line)
		}
	}
	r.w.Flush()
}

var (
	// framing is what go test prints with -v only.
	framing = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME) `)
	// lastLine is how go test ends a package.
	lastLine = regexp.MustCompile(`^(ok|FAIL|---|\?) *\t|^\t.*coverage: `)
	// place is what testing.T writes before a message.
	place = regexp.MustCompile(`^\s*\S+\.go:\d+: `)
)

// reason returns why a test was skipped: its last message.
func (p *testedPackage) reason(test string) string {
	said := ""
	if t := p.tests[test]; t != nil {
		for line := range strings.Lines(t.said.String()) {
			if place.MatchString(line) {
				said = ""
			}
			said += place.ReplaceAllString(line, "")
		}
	}
	return strings.Join(strings.Fields(said), " ")
}

// skip counts a reason. What stands in brackets at its end is a detail.
func (r *report) skip(reason string) {
	if strings.HasPrefix(reason, skip.PointlessPrefix) {
		r.no++
		return
	}
	if !strings.HasPrefix(reason, skip.MissingPrefix) && !strings.HasPrefix(reason, skip.LongPrefix) {
		reason = "for no reason that is known: " + reason
	}
	if head, detail, ok := strings.Cut(reason, " ("); ok && strings.HasSuffix(detail, ")") {
		reason = head
		if detail = strings.TrimSuffix(detail, ")"); !slices.Contains(r.skipped[reason], detail) {
			r.skipped[reason] = append(r.skipped[reason], detail)
		}
	}
	r.count[reason]++
}

// summary says what was not judged, the most frequent reason first.
func (r *report) summary() {
	if r.failed {
		r.w.WriteString("FAIL\n")
	}
	reasons := slices.Sorted(maps.Keys(r.count))
	slices.SortStableFunc(reasons, func(a, b string) int { return cmp.Compare(r.count[b], r.count[a]) })
	for _, reason := range reasons {
		fmt.Fprintf(r.w, "not judged: %s, %s", count(r.count[reason], "test", "tests"), reason)
		if details := r.skipped[reason]; len(details) > 0 {
			fmt.Fprintf(r.w, " (%s)", examples(details))
		}
		r.w.WriteByte('\n')
	}
	if r.no > 0 {
		fmt.Fprintf(r.w, "%s in which there is nothing to test\n", count(r.no, "case", "cases"))
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// examples returns the first few of a list.
func examples(list []string) string {
	const shown = 3
	if len(list) > shown {
		return strings.Join(list[:shown], ", ") + ", …"
	}
	return strings.Join(list, ", ")
}
