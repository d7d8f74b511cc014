// Command xol answers, for any instruction of an ELF file: may a probe be put
// here, how would the instruction then be executed, and if not, why not.
//
// Each sub-command is in the file of its name and only translates between the
// command line and the packages that do the work.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"xol/session"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run carries out one command line and returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := newApp(stdin, stdout, stderr)
	return a.run(args)
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	return &app{in: stdin, out: stdout, err: stderr, color: colorChoice(), launch: launch, attach: attach}
}

// run carries out one command line and returns the exit status.
func (a *app) run(args []string) int {
	root := a.rootCommand()
	root.SetArgs(append([]string{}, joinAll(args)...)) // cobra takes nil for os.Args
	var unknown error                                  // that help was asked for
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if rest := cmd.Flags().Args(); cmd == root && len(rest) > 0 {
			unknown = unknownCommand(rest)
			return
		}
		help(cmd, args)
	})
	return a.exitStatus(cmp.Or(root.Execute(), unknown))
}

// app is what the sub-commands share: the standard streams and the flags that
// belong to all of them.
type app struct {
	in       io.Reader
	out, err io.Writer
	color    choice
	screen   screen
	// launch and attach put probes into programs.
	launch func(ctx context.Context, cmd session.Command, opt session.Options) (probing, error)
	attach func(ctx context.Context, pid int, opt session.Options) (probing, error)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "xol",
		Short: "Probe points of ELF files: may an instruction be probed, how, and if not, why not",
		Long: `xol answers, for any instruction of an amd64, arm64 or ppc64 ELF file: may a
probe be put here, how would the instruction then be executed, and if not, why
not and what to do instead. And it puts probes into programs that run.

Exit status: 0 done; 1 done, and the answer is no; 2 could not do it.`,
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true, // they take several lines
		CompletionOptions:  cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(args)
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return errors.New("no command given (xol --help lists them)")
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	a.color.addTo(root, root.PersistentFlags(), "color", "", "colour the output; auto: on a terminal, unless NO_COLOR is set")
	root.AddCommand(
		a.long(a.analyzeCommand()),
		a.long(a.explainCommand()),
		a.long(a.checkCommand()),
		a.long(a.probesCommand()),
		a.countCommand(),
		a.traceCommand(),
		a.latencyCommand(),
		a.long(a.diffCommand()),
		a.decodeCommand(),
		a.long(a.relocateCommand()),
		a.long(a.verifyCommand()),
		a.matrixCommand(),
		a.long(a.reportCommand()),
		a.versionCommand(),
		a.completionCommand(),
		guardCommand(),
	)
	root.SetHelpCommand(a.helpCommand())
	root.SetFlagErrorFunc(usageError)
	for _, cmd := range root.Commands() {
		if check := cmd.Args; check != nil {
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				return usageError(cmd, check(cmd, args))
			}
		}
	}
	return root
}

// exitError ends the program with a status and without a message: what there
// is to say has been said.
type exitError int

const (
	answerNo exitError = 1 // done, and the answer is no
	failed   exitError = 2 // reported already
)

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// exitStatus reports err, if that is still to be done, and translates it.
func (a *app) exitStatus(err error) int {
	if err == nil {
		return 0
	}
	a.report(err)
	var exit exitError
	if errors.As(err, &exit) {
		return int(exit)
	}
	return int(failed)
}

var errInterrupted = errors.New("interrupted before all was done")

// interruptible returns a context that Ctrl-C ends. A second one ends the program, as
// it does where there is nothing to be tidied up.
func interruptible() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// report writes err as one line to standard error, unless that is done.
func (a *app) report(err error) {
	var exit exitError
	if errors.As(err, &exit) {
		return
	}
	if errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	line := strings.Join(strings.Fields(err.Error()), " ")
	a.screen.mu.Lock()
	defer a.screen.mu.Unlock()
	a.screen.hide()
	fmt.Fprintf(a.err, "xol: %s\n", printable(line))
}

// results returns a buffered standard output and the function that flushes it,
// to be called once with the command's own error.
func (a *app) results() (*bufio.Writer, func(error) error) {
	out := a.out
	if isTerminal(a.out) && isTerminal(a.err) {
		a.screen.results = a.out
		out = &a.screen
	}
	w := bufio.NewWriterSize(out, 1<<16)
	return w, func(err error) error {
		if flushErr := w.Flush(); flushErr != nil {
			return fmt.Errorf("standard output: %w", withoutPath(flushErr))
		}
		return err
	}
}
