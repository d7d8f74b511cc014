package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"xol/notation"
	"xol/selection"
	"xol/session"
)

// probing is a program with probes in it, as package session has it.
type probing interface {
	PID() int
	Placed() []*session.Placed
	Hits(p *session.Placed) uint64
	// Times returns how many calls took a time of as many bits as the index says, in ns.
	Times(p *session.Placed) []uint64
	// Wait waits until the program has ended; ok is false where its status is not known.
	Wait(ctx context.Context) (status syscall.WaitStatus, ok bool, err error)
	Close() error
	Summary() session.Summary
}

// target is the program that is probed: one to start, or a process.
type target struct {
	pid     int
	command []string // empty where there is a process
}

// targetOptions are the flags of commands that probe running programs.
type targetOptions struct {
	pid      int
	all      allFlag
	duration time.Duration
	summary  string
	out      string
	dryRun   bool
	noFollow bool
	format   choice
}

const targetUsage = "PROBE… {-p PID | -- PROGRAM [ARG…]}"

func (o *targetOptions) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVarP(&o.pid, "pid", "p", 0, "probe the process `PID`, which goes on when xol ends")
	flags.DurationVar(&o.duration, "duration", 0, "take the probes back after this time")
	flags.StringVar(&o.out, "output-file", "", "write the results to `FILE`")
	flags.StringVar(&o.summary, "summary", "", "write the summary to `FILE`, as JSON, and not to standard error")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only list what would be done at each place")
	flags.BoolVar(&o.noFollow, "no-follow", false, "leave children of the program alone")
	o.format.addTo(cmd, flags, "output", "o", "output format")
	_ = cmd.RegisterFlagCompletionFunc("pid", completePIDs)
}

// allFlag is the flag --all: files, or the program where it is given without a value.
type allFlag []string

// ownProgram stands for the program as the value of --all. The flag library does not
// show it in the help where the flag is one that counts.
const ownProgram = "+1"

// String, Set and Type implement pflag.Value.
func (f *allFlag) String() string { return strings.Join(*f, " ") }
func (f *allFlag) Type() string   { return "count" }

func (f *allFlag) Set(file string) error {
	if file == ownProgram {
		file = ""
	}
	*f = append(*f, file)
	return nil
}

func (f *allFlag) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(f, "all", "every instruction that may be probed, of `[FILE]` or else of the program; repeatable")
	flags.Lookup("all").NoOptDefVal = ownProgram
}

// joinAll makes one argument of --all and the file after it, as flags with an optional
// value have to be.
func joinAll(args []string) (joined []string) {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--":
			return append(joined, args[i:]...)
		case args[i] == "--all" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			joined = append(joined, args[i]+"="+args[i+1])
			i++
		default:
			joined = append(joined, args[i])
		}
	}
	return joined
}

// split takes the arguments apart: probes, and the program after the two dashes.
func (o *targetOptions) split(cmd *cobra.Command, args []string) (probes []string, t target, err error) {
	t.pid, probes = o.pid, args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		probes, t.command = args[:dash], args[dash:]
	}
	help := " (" + cmd.CommandPath() + " --help)"
	switch given := cmd.Flags().Changed("pid"); {
	case len(probes) == 0 && len(o.all) == 0:
		err = errors.New("PROBE is missing" + help)
	case given && len(t.command) > 0:
		err = errors.New("it takes -p PID or a program, and not both" + help)
	case given && (o.pid <= 0 || o.pid > math.MaxInt32):
		err = fmt.Errorf("--pid %d: there is no such process", o.pid)
	case !given && len(t.command) == 0:
		err = errors.New("the program is missing: give -p PID, or -- PROGRAM after the probes" + help)
	case o.duration < 0:
		err = errors.New("--duration: want a time such as 500ms, 10s or 2m")
	case !given:
		_, err = exec.LookPath(t.command[0])
		var notFound *exec.Error
		if errors.As(err, &notFound) {
			err = fmt.Errorf("%s: %w", notFound.Name, withoutPath(notFound.Err))
		}
	}
	return probes, t, err
}

// wish is a probe of the command line.
type wish struct {
	notation.Probe
	condition string // what has to hold of a hit, after " if "
}

// parseWishes reads probes. A condition may follow each.
func parseWishes(args []string) ([]wish, error) {
	list := make([]wish, len(args))
	for i, text := range args {
		w := &list[i]
		text, w.condition, _ = strings.Cut(text, " if ")
		letter, definition := splitShort(text)
		var err error
		if w.Probe, err = notation.Parse(definition); err != nil {
			return nil, err
		}
		if letter != "" {
			w.Text, w.Return = text, w.Return || letter == "r"
		}
	}
	return list, nil
}

// shortDefinition is a place with the first letter of an event before it, and arguments
// after it. In tracefs a place comes first, and none starts like an argument.
var shortDefinition = regexp.MustCompile(`^([pr]):(\S+\s+(?:\w+=)?[$%@+\\-].*)$`)

// splitShort takes the letter from "r:malloc $retval"; it is empty for other notations.
func splitShort(text string) (letter, definition string) {
	if m := shortDefinition.FindStringSubmatch(text); m != nil {
		return m[1], m[2]
	}
	return "", text
}

// withoutArguments refuses probes that record something, which only xol trace does.
func withoutArguments(list []wish) error {
	for i := range list {
		if w := &list[i]; len(w.Args) > 0 || w.condition != "" {
			return fmt.Errorf("%q: arguments and conditions are for xol trace", w.Text)
		}
	}
	return nil
}

// selectionOf returns the selection of the probes, and of --all.
func (o *targetOptions) selectionOf(list []wish) (*selection.Selection, error) {
	probes := make([]notation.Probe, len(list))
	for i := range list {
		probes[i] = list[i].Probe
	}
	return selection.New(probes, o.all)
}

// completePIDs completes the number of a process, with its name.
func completePIDs(_ *cobra.Command, _ []string, typed string) (values []string, _ cobra.ShellCompDirective) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil || !strings.HasPrefix(e.Name(), typed) {
			continue
		}
		if _, err := os.Readlink("/proc/" + e.Name() + "/exe"); err != nil {
			continue // the kernel's own, or not ours
		}
		name, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
		values = append(values, e.Name()+"\t"+strings.TrimSpace(string(name)))
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}
