// Cover prints which share of the statements of each package a coverage profile says
// was run, and fails where that is less than -least percent.
//
//	go run ./scripts/cover -least 85 cover.out
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

func main() {
	least := flag.Float64("least", 85, "fail where less than `PERCENT` of a package's statements were run")
	flag.Parse()
	f, err := os.Open(flag.Arg(0))
	if err == nil {
		defer f.Close()
		var packages map[string]*count
		if packages, err = read(f); err == nil {
			if !report(os.Stdout, packages, *least) {
				os.Exit(1)
			}
			return
		}
	}
	fmt.Fprintln(os.Stderr, "cover:", err)
	os.Exit(2)
}

// count counts statements.
type count struct{ all, run int }

func (c *count) percent() float64 { return 100 * float64(c.run) / float64(max(c.all, 1)) }

// block is a run of statements of a profile.
type block struct {
	n   int
	run bool
}

// read adds up a profile. A block is there once for each package whose tests were run.
func read(r io.Reader) (map[string]*count, error) {
	blocks := map[string]block{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		var where string
		var n, hits int
		if _, err := fmt.Sscanf(line, "%s %d %d", &where, &n, &hits); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		blocks[where] = block{n, blocks[where].run || hits > 0}
	}
	packages := map[string]*count{}
	for where, b := range blocks {
		file, _, _ := strings.Cut(where, ":")
		p := packages[path.Dir(file)]
		if p == nil {
			p = new(count)
			packages[path.Dir(file)] = p
		}
		p.all += b.n
		if b.run {
			p.run += b.n
		}
	}
	return packages, lines.Err()
}

// report prints a line for each package and reports whether all have enough.
func report(w io.Writer, packages map[string]*count, least float64) bool {
	enough := true
	var sum count
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		c := packages[name]
		sum.all += c.all
		sum.run += c.run
		note := ""
		if c.percent() < least {
			note, enough = fmt.Sprintf("  less than %.0f %%", least), false
		}
		fmt.Fprintf(w, "%6.1f %%  %s%s\n", c.percent(), name, note)
	}
	fmt.Fprintf(w, "%6.1f %%  all of them\n", sum.percent())
	return enough
}
