// Speed measures what the default analysis of a kernel takes, against a
// disassembler that prints the same text, and on two CPUs against one.
//
//	go run ./scripts/speed [-xol bin/xol] [-objdump objdump] [-n N] KERNEL
//
// KERNEL is a vmlinux, plain or packed by xz. The three commands run in turns, N
// times each; the fastest run of each counts, so that what else the machine does
// disturbs little. The time on the CPUs is given as well: it depends less on
// others. Exit status: 0 if the analysis takes at most 1/20 of the disassembler's
// time, and is 1.8 times as fast on two CPUs as on one; 1 if not; 2 for an error.
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
	runs := []*run{
		{name: "disassembler", command: []string{objdump, "-d", kernel}},
		{name: "two CPUs", command: []string{xol, "analyze", kernel}, env: "GOMAXPROCS=2"},
		{name: "one CPU", command: []string{xol, "analyze", kernel}, env: "GOMAXPROCS=1"},
	}
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
	faster := r64(runs[0].wall, runs[1].wall)
	speedUp := r64(runs[2].wall, runs[1].wall)
	fmt.Fprintf(w, "analysis on two CPUs: 1/%.1f of the disassembler's time (want 1/%.0f)\n", faster, wantFaster)
	fmt.Fprintf(w, "two CPUs against one: %.2f times as fast (want %.1f)\n", speedUp, wantSpeedUp)
	fmt.Fprintf(w, "time on CPUs: 1/%.1f of the disassembler's\n", r64(runs[0].cpu, runs[1].cpu))
	return faster >= wantFaster && speedUp >= wantSpeedUp, nil
}

func r64(a, b time.Duration) float64 { return float64(a) / float64(b) }

// once runs the command and keeps what was best.
func (r *run) once() error {
	c := exec.Command(r.command[0], r.command[1:]...)
	c.Env = append(os.Environ(), r.env)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	start := time.Now()
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", r.command[0], err, stderr.Bytes())
	}
	wall, cpu := time.Since(start), c.ProcessState.UserTime()+c.ProcessState.SystemTime()
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
