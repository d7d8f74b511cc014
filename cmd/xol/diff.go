package main

import (
	"errors"
	"fmt"
	"path"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xol/analyze"
	"xol/compare"
	"xol/image"
)

// diffOptions are the flags of diff.
type diffOptions struct {
	patterns   []string // of functions
	insns      bool
	moved      bool
	answers    bool
	cpus       int
	noOptimize bool
	format     choice
	profiles   profileFlags
	kconfig    kconfigFlag
}

// profileFlags is the flag --profile where it may be given for each of two files.
type profileFlags struct{ list []profileFlag }

// String, Set and Type implement pflag.Value.
func (f *profileFlags) String() string {
	if len(f.list) == 0 {
		return ""
	}
	return f.list[len(f.list)-1].value
}

func (f *profileFlags) Set(s string) error {
	var one profileFlag
	if err := one.Set(s); err != nil {
		return err
	}
	if len(f.list) == 2 {
		return errors.New("it is given more than twice")
	}
	f.list = append(f.list, one)
	return nil
}

func (f *profileFlags) Type() string { return new(profileFlag).Type() }

func (f *profileFlags) addTo(cmd *cobra.Command, set *pflag.FlagSet, usage string) {
	set.Var(f, "profile", usage)
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(allProfiles(), cobra.ShellCompDirectiveNoFileComp))
}

// of returns the profile of the first or second file.
func (f *profileFlags) of(side int) string {
	if len(f.list) == 0 {
		return ""
	}
	return f.list[min(side, len(f.list)-1)].value
}

func (a *app) diffCommand() *cobra.Command {
	opt := diffOptions{format: formatChoice()}
	cmd := &cobra.Command{
		Use:   "diff [flags] A B",
		Short: "Say what is otherwise for probes in one build than in another, or by one profile than by another",
		Long: `Compare two builds of a program, library, kernel or module: which functions were
added, removed, moved or changed, which places there are no more, and which answers
are others: may it be probed (probe), how is it then executed (exec, boost), may the
breakpoint become a jump (jump), is it executed wrongly (hazard), may the function
have a return probe (return).

Functions are matched by name, also where the compiler adds to it or counts it up
(.constprop.0, .isra.0, .cold), those without a name by what they do; instructions by
what they do, not by where they stand. With --profile twice and only one file, the
file is compared with itself by the two profiles.

Functions that only stand elsewhere are counted, and listed with --moved. With
--answers only answers count: there is a row for each function in which an answer is
another one, and the exit status is 0 where none is. With --insns there is a row for
each answer that is another one, and for each place that there is in one file only;
json is then an array of these.

Exit status: 0 nothing is otherwise; 1 something is; 2 it could not be found out.`,
		Example: `  xol diff libcrypto.so.3 /usr/lib/x86_64-linux-gnu/libcrypto.so.3
  xol diff --profile uprobe-linux-6.12 --profile uprobe-linux-7.3 /bin/bash
  xol diff --answers -o jsonl vmlinux vmlinuz`,
		Args: takes("A B", 1, 2),
		RunE: func(cmd *cobra.Command, files []string) error {
			if opt.cpus < 0 {
				return usageError(cmd, fmt.Errorf("%d is no number of CPUs (--cpus)", opt.cpus))
			}
			if len(files) == 1 {
				if len(opt.profiles.list) < 2 {
					return usageError(cmd, fmt.Errorf("it takes A B, and there is only %q; or give --profile twice", files[0]))
				}
				files = append(files, files[0])
			}
			return a.diff(&opt, files)
		},
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&opt.patterns, "func", nil, "only functions whose name matches `GLOB`; @FILE has one name or glob per line; repeatable")
	flags.BoolVar(&opt.insns, "insns", false, "a row for every answer that is another one, and every place that is only in one file")
	flags.BoolVar(&opt.moved, "moved", false, "list functions as well that only stand elsewhere")
	flags.BoolVar(&opt.answers, "answers", false, "list and count only what is answered otherwise")
	flags.IntVar(&opt.cpus, "cpus", 0, "use `N` CPUs (default all)")
	flags.BoolVar(&opt.noOptimize, "no-optimize", false, "leave out whether breakpoints may become jumps")
	opt.format.addTo(cmd, flags, "output", "o", "output format")
	opt.profiles.addTo(cmd, flags, "rules to judge by (default by the kind of file); given twice: for A, and for B")
	opt.kconfig.addTo(cmd, flags)
	return cmd
}

// comparison is two files that are compared, on their way to the output.
type comparison struct {
	a, b   *analyzedFile
	opt    *diffOptions
	totals compare.Totals
}

// diff compares two files.
func (a *app) diff(opt *diffOptions, files []string) error {
	patterns, err := a.readPatterns(opt.patterns)
	if err != nil {
		return err
	}
	for _, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("diff: %q is no glob (--func): %w", pattern, err)
		}
	}
	d := &comparison{opt: opt}
	if d.a, err = a.openSide(opt, files, 0, nil); err != nil {
		return err
	}
	defer d.a.Image.Close()
	if d.b, err = a.openSide(opt, files, 1, d.a); err != nil {
		return err
	}
	defer d.b.Image.Close()
	found := false
	c, err := compare.New(d.a.Analysis, d.b.Analysis, func(f *image.Function) bool {
		ok := matchesAny(patterns, f.Name)
		found = found || ok
		return ok
	})
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	if !found {
		return fmt.Errorf("diff: neither file has such a function (--func)")
	}
	if err := a.printDiff(d, c); err != nil {
		return err
	}
	if d.same() {
		return nil
	}
	return answerNo
}

// same reports whether nothing that is asked for is otherwise.
func (d *comparison) same() bool {
	if d.opt.answers {
		return d.totals.Answers == [compare.Questions]compare.Count{}
	}
	return d.totals.Same()
}

// openSide opens the first or second file. The second may be the first one again.
func (a *app) openSide(opt *diffOptions, files []string, side int, first *analyzedFile) (*analyzedFile, error) {
	file := files[side]
	var img *image.Image
	if side > 0 && file == files[0] {
		img = first.Image
	} else {
		var err error
		if img, err = a.openImage(file, nil); err != nil {
			return nil, err
		}
	}
	an, err := analyze.New(img, analyze.Options{
		Profile:  opt.profiles.of(side),
		Kernel:   opt.kconfig.facts,
		Workers:  opt.cpus,
		Optimize: !opt.noOptimize,
	})
	if err != nil {
		img.Close()
		return nil, fileError(file, err)
	}
	return &analyzedFile{path: file, Analysis: an}, nil
}

func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return len(patterns) == 0
}

// differences is what becomes of a run of functions.
type differences struct {
	rows   []byte
	size   uint64
	totals compare.Totals
	err    error // of the first function that could not be read
}

func (a *app) printDiff(d *comparison, c *compare.Comparison) error {
	w, flush := a.results()
	list := newDiffListing(w, d, a.palette())
	bar := a.newProgress(d.a.path+" "+d.b.path, int64(c.Size()))
	defer bar.finish()
	ctx, stop := interruptible()
	defer stop()
	list.begin()
	var unreadable error
	err := compare.Gather(ctx, c, func(part *differences, f *compare.Function) {
		part.size += size(f)
		part.totals.Add(f)
		if part.err == nil {
			part.err = d.unreadable(f)
		}
		if d.wanted(f) {
			part.rows = list.encode(part.rows, f)
		}
	}, func(part *differences) error {
		bar.add(int64(part.size))
		d.totals.Merge(&part.totals)
		if unreadable == nil {
			unreadable = part.err
		}
		err := list.write(part.rows)
		*part = differences{rows: part.rows[:0]}
		return err
	})
	d.totals.Rank()
	bar.finish()
	list.end()
	if err == nil {
		err = unreadable
	}
	return flush(err)
}

func size(f *compare.Function) uint64 {
	if f.A != nil {
		return f.A.Function.Size
	}
	return f.B.Function.Size
}

func (d *comparison) unreadable(f *compare.Function) error {
	if f.A != nil && f.A.Err != nil {
		return fileError(d.a.path, f.A.Err)
	}
	if f.B != nil && f.B.Err != nil {
		return fileError(d.b.path, f.B.Err)
	}
	return nil
}

// wanted reports whether there is a row for f.
func (d *comparison) wanted(f *compare.Function) bool {
	switch {
	case len(f.Changes) > 0:
		return true
	case d.opt.answers || f.Status == compare.Same:
		return false
	case f.Status == compare.Moved:
		return d.opt.moved
	}
	return true
}

// answerName writes an answer in one word.
func answerName(q compare.Question, answer compare.Answer) string {
	switch {
	case q == compare.Boost && answer.Yes:
		return "yes"
	case q == compare.Boost:
		return "no"
	case q == compare.Hazard && !answer.Yes:
		return "none"
	case answer.ID != "":
		return answer.ID
	case answer.Yes:
		return probeOK
	}
	return jumpNone
}
