package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xol/internal/skip"
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

// openTerminal returns the two ends of a terminal.
func openTerminal(t *testing.T) (master, tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		skip.Missing(t, "terminals", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		skip.Missing(t, "terminals", err)
	}
	return master, tty
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

// TestLongWorkShowsAndStops runs commands on a large file in a terminal: each shows
// that it works, and ends at Ctrl-C, and leaves nothing.
func TestLongWorkShowsAndStops(t *testing.T) {
	skip.Long(t, "commands on a large file")
	large, err := os.Executable() // this test
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "xol")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, command := range []string{
		"analyze " + large,
		"explain " + large + " runtime.main",
		"check --in " + large + " places.txt",
		"probes --func runtime.* --format bpftrace " + large,
		"verify " + large,
		"report -o page.html " + large,
		"diff " + large + " " + large,
		"relocate --to 0x400000 " + large + " runtime.main",
	} {
		name, _, _ := strings.Cut(command, " ")
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "places.txt"), []byte("runtime.main\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			run := startOnTerminal(t, dir, program, strings.Fields(command)...)
			if !run.showsProgress() {
				if took := time.Since(run.start); took > 4*progressDelay {
					t.Errorf("nothing is shown in %v", took)
				}
				return
			}
			start := time.Now()
			run.master.WriteString("\x03")
			select {
			case <-run.ended:
			case <-time.After(10 * time.Second):
				run.cmd.Process.Kill()
				t.Errorf("Ctrl-C is not answered after %v", time.Since(start))
			}
			left, _ := filepath.Glob(filepath.Join(dir, ".*"))
			whole, _ := filepath.Glob(filepath.Join(dir, "*.html"))
			if len(left)+len(whole) > 0 {
				t.Errorf("%v %v are left", left, whole)
			}
		})
	}
}

// terminalRun is a program that runs in a terminal of its own.
type terminalRun struct {
	cmd    *exec.Cmd
	master *os.File
	ended  chan struct{}
	shown  chan []byte
	start  time.Time
}

func startOnTerminal(t *testing.T, dir, program string, args ...string) *terminalRun {
	t.Helper()
	master, tty := openTerminal(t)
	r := &terminalRun{cmd: exec.Command(program, args...), master: master, ended: make(chan struct{}), shown: make(chan []byte, 1), start: time.Now()}
	r.cmd.Dir, r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = dir, tty, tty, tty
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err := r.cmd.Start()
	tty.Close()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.shown)
		buf := make([]byte, 1<<16)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			r.shown <- bytes.Clone(buf[:n])
		}
	}()
	go func() {
		r.cmd.Wait()
		close(r.ended)
	}()
	t.Cleanup(func() {
		go func() { // what it still writes
			for range r.shown {
			}
		}()
		<-r.ended
		master.Close()
	})
	return r
}

// showsProgress waits for the program to show progress. It is false where the program
// ends before it has taken long.
func (r *terminalRun) showsProgress() bool {
	for b := range r.shown {
		// A bar or a wait goes back to the start of its line.
		if bytes.Contains(b, []byte("\r")) && regexp.MustCompile(`\d+%|\[\d+s\]|it/s`).Match(b) {
			go func() {
				for range r.shown {
				}
			}()
			return true
		}
		if time.Since(r.start) > 30*time.Second {
			return false
		}
	}
	return false
}
