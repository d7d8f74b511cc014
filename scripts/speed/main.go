// Speed measures what the default analysis of a kernel takes, against a
// disassembler that prints the same text, and on two CPUs against one.
//
//	go run ./scripts/speed [-xol bin/xol] [-objdump objdump] [-n N] KERNEL
//
// KERNEL is a vmlinux, plain or packed by xz. The commands run in turns, N times each;
// the fastest run of each counts, so that what else the machine does disturbs little.
// The time on the CPUs is given as well: it depends less on others.
//
// Two CPUs of a machine need not do twice the work of one: they share caches and
// memory, and often more. What this machine gives is measured, too, by two analyses at
// once that have nothing to do with each other, on one CPU each.
//
// Exit status: 0 if the analysis takes at most 1/20 of the disassembler's time, and is
// 1.8 times as fast on two CPUs as on one; 1 if not; 2 for an error.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/ulikunitz/xz"
)

// What is wanted.
const (
	wantFaster  = 20.0
	wantSpeedUp = 1.8
)

// run is one of the commands, with the best that was measured of it.
type run struct {
	name      string
	command   []string
	env       string
	atOnce    int // how many of it run at a time
	wall, cpu time.Duration
}

func main() {
	xol := flag.String("xol", "bin/xol", "the `COMMAND` to measure")
	objdump := flag.String("objdump", "objdump", "the `COMMAND` of the disassembler")
	times := flag.Int("n", 5, "measure `N` times")
	flag.Parse()
	if flag.NArg() != 1 || *times < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ok, err := measure(os.Stdout, *xol, *objdump, flag.Arg(0), *times)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}

func measure(w io.Writer, xol, objdump, kernel string, times int) (ok bool, err error) {
	kernel, remove, err := unpacked(kernel)
	if err != nil {
		return false, err
	}
	defer remove()
	analysis := []string{xol, "analyze", kernel}
	disassembler := &run{name: "disassembler", command: []string{objdump, "-d", kernel}, atOnce: 1}
	two := &run{name: "two CPUs", command: analysis, env: "GOMAXPROCS=2", atOnce: 1}
	one := &run{name: "one CPU", command: analysis, env: "GOMAXPROCS=1", atOnce: 1}
	pair := &run{name: "two at once", command: analysis, env: "GOMAXPROCS=1", atOnce: 2}
	runs := []*run{disassembler, two, one, pair}
	for range times {
		for _, r := range runs {
			if err := r.once(); err != nil {
				return false, err
			}
		}
	}
	for _, r := range runs {
		fmt.Fprintf(w, "%-14s %6.3f s, %6.3f s on CPUs\n", r.name, r.wall.Seconds(), r.cpu.Seconds())
	}
	faster, speedUp := r64(disassembler.wall, two.wall), r64(one.wall, two.wall)
	fmt.Fprintf(w, "analysis on two CPUs: 1/%.1f of the disassembler's time (want 1/%.0f)\n", faster, wantFaster)
	fmt.Fprintf(w, "two CPUs against one: %.2f times as fast (want %.1f);\n", speedUp, wantSpeedUp)
	fmt.Fprintf(w, "    this machine gives two programs at once %.2f times one\n", r64(2*one.wall, pair.wall))
	fmt.Fprintf(w, "time on CPUs: 1/%.1f of the disassembler's\n", r64(disassembler.cpu, two.cpu))
	return faster >= wantFaster && speedUp >= wantSpeedUp, nil
}

func r64(a, b time.Duration) float64 { return float64(a) / float64(b) }

// once runs the command and keeps what was best.
func (r *run) once() error {
	commands := make([]*exec.Cmd, r.atOnce)
	errors := make([]bytes.Buffer, r.atOnce)
	start := time.Now()
	for i := range commands {
		c := exec.Command(r.command[0], r.command[1:]...)
		c.Env = append(os.Environ(), r.env)
		c.Stderr = &errors[i]
		if err := c.Start(); err != nil {
			return err
		}
		commands[i] = c
	}
	var cpu time.Duration
	var failed error
	for i, c := range commands {
		if err := c.Wait(); err != nil {
			failed = fmt.Errorf("%s: %w: %s", r.command[0], err, errors[i].Bytes())
		}
		cpu += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	if failed != nil {
		return failed
	}
	wall := time.Since(start)
	if r.wall == 0 || wall < r.wall {
		r.wall = wall
	}
	if r.cpu == 0 || cpu < r.cpu {
		r.cpu = cpu
	}
	return nil
}

// unpacked returns the path of an ELF file with the content of the one at path,
// and what removes it.
func unpacked(path string) (plain string, remove func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	if string(magic) == "\x7fELF" {
		return path, func() {}, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", nil, err
	}
	r, err := xz.NewReader(f)
	if err != nil {
		return "", nil, fmt.Errorf("%s is neither an ELF file nor packed by xz: %w", path, err)
	}
	out, err := os.CreateTemp("", "vmlinux")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.Remove(out.Name()) }
	if _, err = io.Copy(out, r); err == nil {
		err = out.Close()
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return out.Name(), remove, nil
}
