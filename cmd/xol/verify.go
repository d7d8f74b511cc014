package main

import (
	"bufio"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"xol/analyze"
	"xol/arch"
	"xol/machine"
	"xol/verify"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	sample, states, cpus int
	seed                 uint64
	symbols              string
	distance, format     choice
}

func (a *app) verifyCommand() *cobra.Command {
	opt := verifyOptions{distance: choiceOf("near", "far"), format: choiceOf(formatTable, formatJSON)}
	cmd := &cobra.Command{
		Use:   "verify [flags] FILE",
		Short: "Move every instruction of an ELF file and run both forms: do they do the same?",
		Long: `Move every instruction of an ELF file to another address and run both forms from
the same random states. Registers, flags, memory and the next address have to
agree. Every distinct instruction is verified once.

The code runs in the Unicorn engine, in a build that has it, and on amd64 also on
this machine's CPU, under ptrace, where the engine does not run an instruction or
runs it wrongly. What neither runs is listed by class, with the reason.

Exit status: 1 where any instruction differs.`,
		Example: `  xol verify /bin/bash
  xol verify --distance far --sample 10000 --seed 7 -o json libcrypto.so.3`,
		Args: takes("FILE", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.sample < 0 || opt.states < 1 || opt.cpus < 0 {
				return usageError(cmd, errors.New("--sample and --cpus must not be negative, --states at least 1"))
			}
			return a.verify(&opt, args[0])
		},
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.IntVar(&opt.sample, "sample", 0, "verify `N` of the distinct instructions (default all)")
	flags.IntVar(&opt.states, "states", verify.DefaultStates, "run each from `N` random states")
	flags.Uint64Var(&opt.seed, "seed", 1, "what sample and states are drawn from: the same `N`, the same run")
	flags.StringVar(&opt.symbols, "symbols", "", "take the symbols from a System.map or kallsyms `FILE`")
	flags.IntVar(&opt.cpus, "cpus", 0, "use `N` CPUs (default all)")
	opt.distance.addTo(cmd, flags, "distance", "", "how far away the instructions are moved: within the reach of most displacements, or of none")
	opt.format.addTo(cmd, flags, "output", "o", "output format")
	return cmd
}

func (a *app) verify(opt *verifyOptions, path string) error {
	symbols, err := a.readSymbols(opt.symbols)
	if err != nil {
		return err
	}
	img, err := a.openImage(path, symbols)
	if err != nil {
		return err
	}
	defer img.Close()
	an, err := analyze.New(img, analyze.Options{Workers: opt.cpus})
	if err != nil {
		return fileError(path, err)
	}
	isa, err := arch.Execution(an.ISA)
	if err != nil {
		return fileError(path, err)
	}
	open, err := a.engines(isa)
	if err != nil {
		return fileError(path, err)
	}
	ctx, stop := interruptible()
	defer stop()
	workers := opt.cpus
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	p := verifyProgress{app: a}
	report, err := verify.File(ctx, an, verify.Options{
		Target: isa, Engines: open, Reach: reaches[opt.distance.value],
		Sample: opt.sample, States: opt.states, Seed: opt.seed, Workers: workers,
		Progress: p.done,
	})
	p.finish()
	if err != nil {
		return fileError(path, err)
	}
	w, flush := a.results()
	if opt.format.value == formatJSON {
		writeReportJSON(w, report)
	} else {
		writeReport(w, a.palette(), isa, report)
	}
	if report.Differences > 0 {
		err = answerNo
	}
	return flush(err)
}

// engines returns what opens the engines for an ISA, after trying it once: a
// missing one is named on standard error, and an error where none is left.
func (a *app) engines(isa arch.Executor) (func() ([]machine.Engine, error), error) {
	var openers []engineOpener
	var missing []error
	for _, open := range engineOpeners {
		e, err := open(isa)
		if err != nil {
			missing = append(missing, err)
			continue
		}
		if err := e.Close(); err != nil {
			return nil, err
		}
		openers = append(openers, open)
	}
	if len(openers) == 0 {
		return nil, fmt.Errorf("there is nothing to run %s code with: %w", isa.Name(), errors.Join(missing...))
	}
	for _, err := range missing {
		if !errors.Is(err, errForeignCPU) {
			a.report(err)
		}
	}
	return func() (engines []machine.Engine, err error) {
		for _, open := range openers {
			e, err := open(isa)
			if err != nil {
				for _, opened := range engines {
					err = errors.Join(err, opened.Close())
				}
				return nil, err
			}
			engines = append(engines, e)
		}
		return engines, nil
	}, nil
}

// errForeignCPU: the host's CPU has another ISA.
var errForeignCPU = errors.New("this machine's CPU does not run it")

// engineOpener opens one kind of engine, or says why there is none.
type engineOpener func(arch.Executor) (machine.Engine, error)

// engineOpeners are the kinds of engines, first the one to prefer.
var engineOpeners = []engineOpener{openEmulator, openCPU}

// verifyProgress shows how many instructions are done.
type verifyProgress struct {
	app *app
	mu  sync.Mutex
	bar *progress
	on  bool
}

func (p *verifyProgress) done(_, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on {
		p.bar, p.on = p.app.newProgress("verifying", int64(total)), true
	}
	p.bar.add(1)
}

func (p *verifyProgress) finish() { p.bar.finish() }

func writeReportJSON(w *bufio.Writer, v *verify.Report) {
	r := &records{format: formatJSONL}
	r.begin()
	r.num("instructions", v.Instructions)
	r.num("distinct", v.Distinct)
	r.num("executed", v.Executed)
	r.num("states", v.States)
	r.num("endless", v.Endless)
	r.num("differences", v.Differences)
	countFields(r, "verified", v.Verified)
	countFields(r, "skipped", v.Skipped)
	r.end()
	w.Write(r.buf)
}

func countFields(r *records, name string, counts []verify.Count) {
	r.open(name)
	for _, c := range counts {
		r.num(c.Class, c.Instructions)
	}
	r.close()
}

// writeReport prints the counts, then each difference with the state that
// shows it.
func writeReport(w *bufio.Writer, p palette, isa arch.Executor, v *verify.Report) {
	t := table{palette: p}
	line := func(label string, n int, note string) {
		t.left(38, label, plain)
		t.num(10, n, plain)
		t.left(0, note, dim)
		t.end()
	}
	share := ""
	if v.Distinct > 0 {
		share = fmt.Sprintf("%.2f %%", 100*float64(v.Executed)/float64(v.Distinct))
	}
	line("instructions", v.Instructions, "")
	line("distinct", v.Distinct, "")
	line("  executed", v.Executed, share)
	for _, c := range v.Verified {
		line("    "+c.Class, c.Instructions, "")
	}
	line("  skipped", v.Distinct-v.Executed, "")
	for _, c := range v.Skipped {
		line("    ", c.Instructions, c.Class)
	}
	line("states", v.States, "")
	if v.Endless > 0 {
		line("  not run", v.Endless, "loops that come to no end")
	}
	line("differences", v.Differences, "")
	for i := range v.Examples {
		writeDifference(&t, isa, &v.Examples[i])
	}
	w.Write(t.buf)
}

func writeDifference(t *table, isa arch.Executor, d *verify.Difference) {
	t.end()
	t.left(0, fmt.Sprintf("%#x  %x  %s", d.Inst.Addr, d.Inst.Bytes(), isa.Text(&d.Inst, nil)), bold)
	t.end()
	t.left(0, fmt.Sprintf("  moved to %#x  %x", d.To, d.Moved), plain)
	t.end()
	for _, what := range d.What {
		t.left(0, "  "+what, red)
		t.end()
	}
	file := isa.Registers()
	for i := range file.Registers {
		if r := &file.Registers[i]; r.Size <= 8 && file.Word(d.State, i) != 0 {
			t.left(0, fmt.Sprintf("    %s=%#x", r.Name, file.Word(d.State, i)), dim)
			t.end()
		}
	}
}
