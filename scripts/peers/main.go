// Peers measures xol beside other tools that do the same: decoders, disassemblers, and
// probes of running programs. All run in turns, for several rounds, so that what else the
// machine does meets all of them; a ratio compares two runs of one round. It writes a page
// and its plots.
//
//	go run . [-rounds N] [-kernels FOLDER] [-xol FILE] [-page FILE] [-plots FOLDER]
//
// Who is not installed is left out, and the page says so. Those written in C are compiled
// by cc, with the headers that Debian has in libzydis-dev, libcapstone-dev, llvm-dev and
// liblttng-ust-dev; the others are binutils, llvm, gdb and lttng-tools. Probes need the
// right to use ptrace and perf events.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

type options struct {
	rounds       int
	kernels, xol string
	page, plots  string
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 10, "measure `N` times")
	flag.StringVar(&o.kernels, "kernels", "../../../shared/kernels", "the `FOLDER` with the kernels whose text is decoded; without them it is that of this program")
	flag.StringVar(&o.xol, "xol", "../../bin/xol", "the `COMMAND` to measure")
	flag.StringVar(&o.page, "page", "../../BENCHMARKS.md", "write the page to `FILE`")
	flag.StringVar(&o.plots, "plots", "../../docs/benchmarks", "write the plots to `FOLDER`")
	flag.Parse()
	if flag.NArg() != 0 || o.rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &lab{dir: dir, out: os.Stdout, versions: map[string]string{}}
	defer l.close()
	l.machine = thisMachine()
	if err := l.prepare(ctx, o); err != nil {
		return err
	}
	start := time.Now()
	for round := range o.rounds {
		for _, r := range l.runners {
			if r.rounds != 0 && round >= r.rounds {
				continue
			}
			if err := l.once(ctx, round, r); err != nil {
				return err
			}
		}
		fmt.Fprintf(l.out, "round %d of %d, %v\n", round+1, o.rounds, time.Since(start).Round(time.Second))
	}
	p := l.page(start, o.rounds)
	if err := os.MkdirAll(o.plots, 0o755); err != nil {
		return err
	}
	for i := range p.Tables {
		if err := p.Tables[i].plot(filepath.Join(o.plots, p.Tables[i].ID+".svg")); err != nil {
			return err
		}
	}
	rel, err := filepath.Rel(filepath.Dir(o.page), o.plots)
	if err != nil {
		return err
	}
	p.Plots = filepath.ToSlash(rel)
	var text bytes.Buffer
	if err := p.write(&text); err != nil {
		return err
	}
	if err := os.WriteFile(o.page, text.Bytes(), 0o644); err != nil {
		return err
	}
	return p.print(l.out)
}

// lab is where everything is measured.
type lab struct {
	dir      string
	out      io.Writer
	machine  machine
	runners  []*runner
	closers  []func()
	versions map[string]string // of the peers
	missing  []string          // what is left out, and why
	samples  samples
	texts    []text
	whole    string // the file that is judged as a whole
}

// runner makes one measurement: it prints lines as Go's benchmarks do.
type runner struct {
	name   string
	rounds int // 0: all
	failed bool
	run    func(ctx context.Context, out io.Writer) error
}

// once has one thing measured. What cannot be is left out from then on.
func (l *lab) once(ctx context.Context, round int, r *runner) error {
	if r.failed {
		return nil
	}
	var out bytes.Buffer
	if err := r.run(ctx, &out); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.failed = true
		l.miss(r.name, err)
		return nil
	}
	return l.samples.read(&out, round, l.versions)
}

// miss notes what is left out.
func (l *lab) miss(what string, why error) {
	line := fmt.Sprintf("%s: left out: %v", what, why)
	l.missing = append(l.missing, line)
	fmt.Fprintln(l.out, line)
}

func (l *lab) close() {
	for _, f := range l.closers {
		f()
	}
}

// prepare builds what is measured.
func (l *lab) prepare(ctx context.Context, o *options) error {
	xol, err := filepath.Abs(o.xol)
	if err != nil {
		return err
	}
	l.versions["xol"] = firstLine(ctx, xol, "version")
	if l.versions["xol"] == "" {
		return errors.New("there is no " + filepath.Base(xol) + ": make build")
	}
	if err := l.prepareDecoders(ctx, o.kernels); err != nil {
		return err
	}
	l.prepareWhole(ctx, xol, o.kernels)
	l.prepareHits(ctx)
	return nil
}
