package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"xol/analyze"
	"xol/classify"
	"xol/report"
)

// reportOptions are the flags of report.
type reportOptions struct {
	symbols  string
	output   string
	cpus     int
	profiles profilesFlag
	kconfig  kconfigFlag
}

func (a *app) reportCommand() *cobra.Command {
	var opt reportOptions
	cmd := &cobra.Command{
		Use:   "report [flags] -o PAGE.html FILE…",
		Short: "Write the analysis of files as one web page: a map of all functions, reasons, each instruction",
		Long: `Write the analysis of ELF files as one web page that needs neither a network nor a
server: how much can be probed, by profile; a map of all functions, coloured by what
share of each can be probed, boosted, turned into a jump, or is hazardous; the reasons
for refusals with the functions of each; each function with its instructions, basic
blocks, jump tables and verdicts; each address with rule, culprit, errno and remedy.
Two files, or two profiles of one, are compared: what was gained and lost.

Without --profile a Linux kernel or module is judged by the profile of its own version
and by isa, everything else by isa and uprobe-linux-6.12.

The page is written to a temporary file beside PAGE.html first: there is a whole page
or none. With -o - it goes to standard output.`,
		Example: `  xol report -o bash.html /bin/bash
  xol report -o bash.html --profile uprobe-linux-6.12 --profile uprobe-linux-7.3 /bin/bash
  xol report -o - ./a.out > a.html`,
		Args: takes("FILE…", 1, math.MaxInt),
		RunE: func(cmd *cobra.Command, files []string) error {
			if opt.output == "" {
				return usageError(cmd, errors.New("-o PAGE.html is missing"))
			}
			if opt.cpus < 0 {
				return usageError(cmd, fmt.Errorf("%d is no number of CPUs (--cpus)", opt.cpus))
			}
			return a.writeReport(&opt, files)
		},
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringVarP(&opt.output, "output", "o", "", "write the page to `PAGE.html`, or to standard output where that is -")
	flags.StringVar(&opt.symbols, "symbols", "", "take the symbols from a System.map or kallsyms `FILE`")
	flags.IntVar(&opt.cpus, "cpus", 0, "use `N` CPUs (default all)")
	flags.Var(&opt.profiles, "profile", "rules to judge by; repeatable (default by the kind of file)")
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(allProfiles(), cobra.ShellCompDirectiveNoFileComp))
	opt.kconfig.addTo(cmd, flags)
	return cmd
}

func (a *app) writeReport(opt *reportOptions, paths []string) error {
	if opt.output == "-" && isTerminal(a.out) {
		return errors.New("standard output is a terminal, which no page is for (-o PAGE.html, or a pipe)")
	}
	symbols, err := a.readSymbols(opt.symbols)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	write := func(w io.Writer) error { return a.writePage(ctx, w, opt, paths, symbols) }
	if opt.output == "-" {
		w, flush := a.results()
		return flush(write(w))
	}
	return writeWhole(opt.output, write)
}

// writePage writes the page, with one file open at a time.
func (a *app) writePage(ctx context.Context, w io.Writer, opt *reportOptions, paths []string, symbols []byte) (err error) {
	page, err := report.New(w, report.Options{Title: "xol: " + strings.Join(paths, ", "), Version: buildVersion()})
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err == nil {
			err = a.addToPage(ctx, page, opt, path, symbols)
		}
	}
	if closed := page.Close(); err == nil {
		err = closed
	}
	return err
}

func (a *app) addToPage(ctx context.Context, page *report.Page, opt *reportOptions, path string, symbols []byte) error {
	f, close, err := a.openReported(opt, path, symbols)
	if err != nil {
		return err
	}
	defer close()
	if err := ctx.Err(); err != nil {
		return err
	}
	bar := a.newProgress(path, int64(textSize(f.Analyses[0].Functions())))
	defer bar.finish()
	if err := page.Add(ctx, f, bar.add); err != nil {
		return fileError(path, err)
	}
	return nil
}

// openReported opens a file and prepares its analysis by each profile.
func (a *app) openReported(opt *reportOptions, path string, symbols []byte) (f report.File, close func() error, err error) {
	img, err := a.openImage(path, symbols)
	if err != nil {
		return f, nil, err
	}
	f.Name = path
	profiles := opt.profiles.names
	if len(profiles) == 0 {
		profiles = explainedProfiles(img.Kind(), "", classify.Uprobe612)
	}
	for _, name := range profiles {
		an, err := analyze.New(img, analyze.Options{Profile: name, Kernel: opt.kconfig.facts, Workers: opt.cpus, Optimize: true})
		if err != nil {
			img.Close()
			return f, nil, fileError(path, err)
		}
		f.Analyses = append(f.Analyses, an)
	}
	return f, img.Close, nil
}

// writeWhole writes a file by a temporary one beside it, so that there is never half
// of it. What is no regular file, such as a pipe, is written to as it is.
func writeWhole(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fileError(path, err)
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fileError(path, err)
	}
	defer os.Remove(f.Name()) // which is gone where all went well
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	for _, finish := range []func() error{
		func() error { return f.Chmod(pageMode) },
		f.Close,
		func() error { return os.Rename(f.Name(), path) },
	} {
		if err := finish(); err != nil {
			return fileError(path, err)
		}
	}
	return nil
}

// pageMode lets everybody read a page, as what a shell writes.
const pageMode = 0o644

// profilesFlag is a flag --profile that may be given several times.
type profilesFlag struct{ names []string }

// String, Set and Type implement pflag.Value.
func (f *profilesFlag) String() string { return strings.Join(f.names, ",") }

func (f *profilesFlag) Set(s string) error {
	var one profileFlag
	if err := one.Set(s); err != nil {
		return err
	}
	if !slices.Contains(f.names, one.value) {
		f.names = append(f.names, one.value)
	}
	return nil
}

func (f *profilesFlag) Type() string { return (&profileFlag{}).Type() }
