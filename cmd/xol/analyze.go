package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"xol/analyze"
	"xol/image"
)

// analyzeOptions are the flags of analyze.
type analyzeOptions struct {
	patterns   []string // of functions
	insns      bool
	markers    bool
	summary    bool
	symbols    string
	cpus       int
	noOptimize bool
	armed      []string // places of other probes
	format     choice
	profile    profileFlag
	kconfig    kconfigFlag
	system     systemFlags
}

func (a *app) analyzeCommand() *cobra.Command {
	opt := analyzeOptions{format: formatChoice()}
	cmd := &cobra.Command{
		Use:   "analyze [flags] FILE…",
		Short: "Judge every function of ELF files: what can be probed, how it runs, what is refused and why",
		Long: `Judge every instruction of ELF files and count the verdicts by function: how many
instructions there are, how many can be probed, and how these would run (boosted,
stepped, emulated, through ftrace); how many are refused, and for which reasons;
how many would be accepted and then executed wrongly (hazards); and at how many of
the probeable ones the breakpoint may become a jump (optimizable).

Without --profile a Linux kernel or module is judged by the profile of its own
version, everything else by isa. With --insns there is a row for every instruction.

Output formats:
  table  a table for each FILE, then its totals
  json   {"file":…,"functions":[…],"totals":{…}}; an array of these for several FILEs
  jsonl  a line for each function ("kind":"function"), then a line "kind":"totals" for each FILE
  csv    a line for each function, no totals
Rows of functions say whether a return probe may be put on the function (return), and
by which rule not (return_rule).
With --insns json is an array, and json, jsonl and csv have rows of instructions
(boost: the copy may end in a jump back; boosted: and it does, which it never does
in a kernel with CONFIG_PREEMPTION, see --kconfig) and nothing else.

Of a kernel whose names are not known, in the file or by --symbols, what cannot be
judged is "unknown", and the exit status is 2.

A kernel is judged as it stands after booting: what it then writes over its text
on every machine is applied first (direct calls in the place of those through
pv_ops; the machine is taken not to be a Xen PV guest). Where the CPU decides,
the file's text is judged, and each other one that the file has: depends says
which answers are others then (probe, optimize), boot what became of the
instruction (patched: the same everywhere; cpu: as the CPU needs it).

With --summary a FILE may be a folder, and there is a row for each ELF file in it and
below, found by content, those with hazards first, and where these are: which programs
break under a probe. Kernels and modules may be packed. Links are not followed, a file
with several names is judged once, and what cannot be read is named and left out. Without
--profile programs are judged by the uprobes of the running kernel's version.
  json   {"files":[…],"totals":{…}}
  jsonl  a line for each file ("kind":"file"), then a line "kind":"totals"

With --live FILE is the kernel that runs, with its modules, and with --pid all files
that a process has mapped to execute; see xol explain.

With --markers nothing is judged: there is a row for every static marker (USDT
probe) of the files, with its arguments as the file has them.`,
		Example: `  xol analyze /bin/bash
  xol analyze --markers /usr/bin/python3
  xol analyze --func 'vfs_*' --insns -o jsonl vmlinux
  xol analyze --summary /usr/lib/x86_64-linux-gnu
  xol analyze --symbols System.map --func @names.txt vmlinuz`,
		Args: takesUnlessLive(&opt.system, "FILE…", 1, math.MaxInt, 1),
		RunE: func(cmd *cobra.Command, files []string) error {
			if opt.cpus < 0 {
				return usageError(cmd, fmt.Errorf("%d is no number of CPUs (--cpus)", opt.cpus))
			}
			if err := opt.system.check(cmd, "symbols", "markers", "summary"); err != nil {
				return err
			}
			if opt.summary {
				if opt.insns || opt.markers || len(opt.patterns) > 0 || len(opt.armed) > 0 || opt.symbols != "" {
					return usageError(cmd, errors.New("--summary goes with none of --insns, --markers, --func, --armed and --symbols"))
				}
				return a.summarize(&opt, files)
			}
			if opt.markers {
				if opt.insns || len(opt.patterns) > 0 {
					return usageError(cmd, errors.New("--markers goes neither with --insns nor with --func"))
				}
				return a.markers(&opt, files)
			}
			return a.analyze(&opt, files)
		},
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&opt.patterns, "func", nil, "only functions whose name matches `GLOB`; @FILE has one name or glob per line; repeatable")
	flags.BoolVar(&opt.insns, "insns", false, "a row for every instruction")
	flags.BoolVar(&opt.summary, "summary", false, "a row for every ELF file, also of those in folders")
	flags.BoolVar(&opt.markers, "markers", false, "list the static markers (USDT probes) instead")
	flags.StringVar(&opt.symbols, "symbols", "", "take the symbols from a System.map or kallsyms `FILE`")
	flags.IntVar(&opt.cpus, "cpus", 0, "use `N` CPUs (default all)")
	flags.StringArrayVar(&opt.armed, "armed", nil, "another probe is armed at `PLACE`, which no jump may overwrite; repeatable")
	flags.BoolVar(&opt.noOptimize, "no-optimize", false, "leave out whether breakpoints may become jumps: a fifth of the work for a kernel, two thirds for a program")
	opt.format.addTo(cmd, flags, "output", "o", "output format")
	opt.profile.addTo(cmd, flags, "rules to judge by (default by the kind of file)")
	opt.kconfig.addTo(cmd, flags)
	opt.system.addTo(flags)
	return cmd
}

// analyze prints the analysis of one file after the other. A file that cannot
// be analyzed does not keep the others from being.
func (a *app) analyze(opt *analyzeOptions, files []string) error {
	patterns, err := a.readPatterns(opt.patterns)
	if err != nil {
		return err
	}
	symbols, err := a.readSymbols(opt.symbols)
	if err != nil {
		return err
	}
	w, flush := a.results()
	list := newListing(w, opt, a.palette(), len(files) > 1 || opt.system.pid != 0)
	var result error
	switch {
	case opt.system.live:
		result = a.analyzeKernel(list, opt, patterns)
	case opt.system.pid != 0:
		result = a.analyzeProcess(list, opt, patterns)
	}
	for _, file := range files {
		err := a.analyzeFile(list, opt, file, symbols, patterns)
		if _, broken := w.Write(nil); broken != nil {
			break // the output fails, which flush reports
		}
		if err != nil {
			a.report(err)
			result = failed
		}
	}
	list.close()
	return flush(result)
}

// analyzeKernel prints the analysis of the kernel that runs, with its modules.
func (a *app) analyzeKernel(list listing, opt *analyzeOptions, patterns []string) error {
	s, err := a.openKernel(&opt.system, opt.kconfig.facts)
	if err != nil {
		return err
	}
	defer s.close()
	return a.analyzeSubject(list, opt, s, patterns)
}

// analyzeProcess prints the analysis of the files that a process has mapped, one after
// the other. A pattern has to match in one of them.
func (a *app) analyzeProcess(list listing, opt *analyzeOptions, patterns []string) error {
	p, err := a.openProcess(&opt.system, opt.kconfig.facts)
	if err != nil {
		return err
	}
	defer p.close()
	var result error
	matched := make(map[string]bool)
	for i := range p.Files {
		s, err := p.open(&p.Files[i])
		if err == nil {
			err = a.analyzeMatching(list, opt, s, patterns, matched)
		}
		if err != nil {
			a.report(err)
			result = failed
		}
	}
	for _, pattern := range patterns {
		if !matched[pattern] {
			a.report(fmt.Errorf("process %d: %w", p.PID, &image.SymbolNotFoundError{Name: pattern, Pattern: true}))
			result = failed
		}
	}
	return result
}

// analyzeMatching prints the analysis of a file in which any of the patterns matches,
// and notes which.
func (a *app) analyzeMatching(list listing, opt *analyzeOptions, s *subject, patterns []string, matched map[string]bool) error {
	var here []string
	for _, pattern := range patterns {
		if functions, err := s.img.Match(image.ExtentSymbol, pattern); err == nil && len(functions) > 0 {
			here = append(here, pattern)
			matched[pattern] = true
		}
	}
	if len(patterns) > 0 && len(here) == 0 {
		return nil
	}
	return a.analyzeSubject(list, opt, s, here)
}

func (a *app) analyzeFile(list listing, opt *analyzeOptions, path string, symbols []byte, patterns []string) error {
	s, err := a.openFile(path, symbols, opt.kconfig.facts)
	if err != nil {
		return err
	}
	defer s.close()
	return a.analyzeSubject(list, opt, s, patterns)
}

func (a *app) analyzeSubject(list listing, opt *analyzeOptions, s *subject, patterns []string) error {
	path := s.path
	armed, err := resolveAll(s.img, opt.armed)
	if err != nil {
		return fileError(path, err)
	}
	file, err := s.analyzed(analyze.Options{
		Profile:  opt.profile.value,
		Workers:  opt.cpus,
		Optimize: !opt.noOptimize,
		Armed:    armed,
	})
	if err != nil {
		return fileError(path, err)
	}
	functions, missing, err := selectFunctions(file.Analysis, patterns)
	if err != nil {
		return fileError(path, err)
	}
	for _, err := range missing {
		a.report(fileError(path, err))
	}
	if len(missing) > 0 && len(functions) == 0 {
		return failed
	}
	err = a.analyzeFunctions(list, file, file.withoutFreed(functions))
	if err == nil && len(missing) > 0 {
		err = failed
	}
	return err
}

// resolveAll returns the first address that each of the places means.
func resolveAll(img *image.Image, places []string) (addrs []uint64, err error) {
	for _, s := range places {
		found, err := img.Resolve(s)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, found[0].Addr)
	}
	return addrs, nil
}

// fileAnalysis is the analysis of one file on its way to the output.
type fileAnalysis struct {
	file       *analyzedFile
	list       listing
	bar        *progress
	totals     totals
	unreadable error // of the first function that could not be read
}

func (a *app) analyzeFunctions(list listing, file *analyzedFile, functions []image.Function) error {
	fa := &fileAnalysis{file: file, list: list, bar: a.newProgress(file.path, int64(textSize(functions)))}
	defer fa.bar.finish()
	list.begin(file)
	err := analyze.Gather(context.Background(), file.Analysis, functions, fa.judged, fa.add)
	fa.totals.Rank()
	list.end(file, &fa.totals)
	if err == nil {
		err = fa.unreadable
	}
	if n := fa.totals.Undecided; err == nil && n > 0 {
		err = file.undecided(fmt.Sprintf("%d of %d instructions", n, fa.totals.Insts))
	}
	return err
}

// judged is what becomes of a run of functions: their rows, and what they add to
// the totals.
type judged struct {
	rows       []byte
	size       uint64 // of text, in bytes
	totals     totals
	function   analyze.Summary // of the last one
	unreadable error           // of the first that could not be read
}

// judged adds a function to j. It may be called concurrently, for several j.
func (fa *fileAnalysis) judged(j *judged, r *analyze.Result) {
	j.function.Set(r)
	j.rows = fa.list.encode(j.rows, fa.file, r, &j.function)
	j.size += r.Function.Size
	j.totals.add(1, &j.function)
	if r.Err != nil && j.unreadable == nil {
		j.unreadable = fileError(fa.file.path, r.Err)
	}
}

// add adds a run of functions to the output and empties j.
func (fa *fileAnalysis) add(j *judged) error {
	fa.bar.add(int64(j.size))
	fa.totals.add(j.totals.functions, &j.totals.Summary)
	if fa.unreadable == nil {
		fa.unreadable = j.unreadable
	}
	err := fa.list.write(j.rows)
	*j = judged{rows: j.rows[:0], function: j.function}
	return err
}

// selectFunctions returns the functions that match any of the patterns, all of
// them where there are none, sorted by address; and an error for each pattern
// that matches none.
func selectFunctions(an *analyze.Analysis, patterns []string) (selected []image.Function, missing []*image.SymbolNotFoundError, err error) {
	if len(patterns) == 0 {
		return an.Functions(), nil, nil
	}
	return an.Image.Select(an.Extent, patterns)
}

// textSize returns the bytes of text in functions.
func textSize(functions []image.Function) uint64 {
	n := uint64(0)
	for i := range functions {
		n += functions[i].Size
	}
	return n
}

// readPatterns replaces every @FILE by the lines of the file. What follows a #
// at the start of a line or after a space is a comment.
func (a *app) readPatterns(args []string) ([]string, error) {
	var patterns []string
	for _, arg := range args {
		path, isFile := strings.CutPrefix(arg, "@")
		if !isFile {
			patterns = append(patterns, arg)
			continue
		}
		data, err := a.readAll(path)
		if err != nil {
			return nil, err
		}
		listed := len(patterns)
		for line := range strings.Lines(string(data)) {
			if pattern := withoutComment(line); pattern != "" {
				patterns = append(patterns, pattern)
			}
		}
		if len(patterns) == listed {
			return nil, fileError(path, errors.New("it lists no function (--func @FILE: a name or glob per line)"))
		}
	}
	return patterns, nil
}

// withoutComment returns what a line says.
func withoutComment(line string) string {
	line = " " + line
	for _, start := range []string{" #", "\t#"} {
		line, _, _ = strings.Cut(line, start)
	}
	return strings.TrimSpace(line)
}
