package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"xol/matrix"
)

func TestProgressShowsOnlyLongWork(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &progress{w: &out, screen: new(screen), what: "vmlinux", now: func() time.Time { return now }, start: now, total: 100}
	p.add(1)
	if out.Len() > 0 {
		t.Errorf("shown at once: %q", &out)
	}
	now = now.Add(2 * progressDelay)
	p.add(1)
	if !bytes.Contains(out.Bytes(), []byte("vmlinux")) {
		t.Errorf("not shown after two seconds: %q", &out)
	}
	p.finish()
}

func TestNoProgressWithoutTerminal(t *testing.T) {
	a := &app{out: new(bytes.Buffer), err: new(bytes.Buffer)}
	p := a.newProgress("x", 1)
	if p != nil {
		t.Fatal("progress goes to something that is no terminal")
	}
	p.add(1) // a nil progress takes everything
	p.finish()
}

// terminal returns a terminal, and what returns all that was written to it once
// it is closed.
func terminal(t *testing.T) (tty *os.File, written func() string) {
	t.Helper()
	master, tty := openTerminal(t)
	all := make(chan string)
	go func() {
		b, _ := io.ReadAll(master) // it ends in an error where the last writer is gone
		all <- string(b)
	}()
	return tty, func() string {
		tty.Close()
		s := <-all
		master.Close()
		return s
	}
}

// shown returns the lines of a screen that characters were written to.
func shown(written string) []string {
	var lines []string
	line, column := []rune{}, 0
	for _, r := range written {
		switch r {
		case '\r':
			column = 0
		case '\n':
			lines = append(lines, strings.TrimRight(string(line), " "))
			line, column = line[:0], 0
		default:
			if column == len(line) {
				line = append(line, r)
			}
			line[column] = r
			column++
		}
	}
	return append(lines, strings.TrimRight(string(line), " "))
}

// TestProgressLeavesResultsWhole shows progress on the terminal that results go
// to, in pieces that do not end where lines do.
func TestProgressLeavesResultsWhole(t *testing.T) {
	tty, written := terminal(t)
	a := &app{out: tty, err: tty}
	w, flush := a.results()
	p := a.newProgress("work", 100)
	if p == nil {
		t.Fatal("no progress where standard output is a terminal")
	}
	now := time.Now()
	p.now = func() time.Time { now = now.Add(time.Second); return now }
	var want []string
	for i := range 50 {
		p.add(1)
		row := fmt.Sprintf("row %d of the results, which may end anywhere in a piece", i)
		want = append(want, row)
		w.WriteString(row + "\n")
		if i%3 == 0 { // a flush in the middle of a line
			w.WriteString("more ")
			want[i] = row
			w.Flush()
			p.add(1)
			w.WriteString("of it\n")
			want = append(want, "more of it")
		}
	}
	p.finish()
	if err := flush(nil); err != nil {
		t.Fatal(err)
	}
	out := written()
	if !strings.Contains(out, "work") || !strings.Contains(out, "%") {
		t.Errorf("no progress in %q", out)
	}
	lines := 0
	for _, line := range shown(out) {
		switch {
		case strings.HasPrefix(line, "row ") && strings.HasSuffix(line, "piece"), line == "more of it":
			lines++
		case line != "":
			t.Errorf("the screen shows %q", line)
		}
	}
	if lines != len(want) {
		t.Errorf("%d lines, want %d", lines, len(want))
	}
}

// TestMatrixShowsProgress has a matrix take longer than a second, on a terminal.
func TestMatrixShowsProgress(t *testing.T) {
	tty, written := terminal(t)
	a := &app{out: tty, err: tty, color: choiceOf("never")}
	opt := matrixOptions{glob: "*", format: formatChoice()}
	first := true
	err := a.writeMatrix(&opt, func(ctx context.Context, match func(string) bool, each func(matrix.Result) error) error {
		return someResults(ctx, match, func(r matrix.Result) error {
			if !first && r.Target == "arm64" && r.Case == "good" && r.Mode == matrix.Emulated {
				time.Sleep(progressDelay)
			}
			first = false
			return each(r)
		})
	})
	if !errors.Is(err, answerNo) {
		t.Error(err)
	}
	out := written()
	if !strings.Contains(out, "matrix ") || !strings.Contains(out, "%") {
		t.Errorf("no progress in %q", out)
	}
	if table := strings.Join(shown(out), "\n"); strings.Contains(table, "%") || !strings.Contains(table, "35 passed, 1 failed, 4 not applicable") {
		t.Errorf("the screen shows\n%s", table)
	}
}
