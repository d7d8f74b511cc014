package main

import (
	"bytes"
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
)

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
