package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"xol/arch"
	"xol/matrix"
)

// matrixOptions are the flags of matrix.
type matrixOptions struct {
	glob   string
	format choice
}

func (a *app) matrixCommand() *cobra.Command {
	opt := matrixOptions{format: formatChoice()}
	cmd := &cobra.Command{
		Use:   "matrix [flags]",
		Short: "Carry out the life of kprobes on an emulated CPU of each ISA, case by case",
		Long: `Carry out the life of kprobes on an emulated CPU of each ISA: registration, hits,
handlers, faults, hits inside hits, boosting, jump optimization, unregistration.

Each case runs on every ISA and in every mode, that is, in every way in which a
probed instruction may be executed: stepped with a breakpoint after its copy or
by the ISA's single-step exception, boosted, optimized, emulated. It passes where
the program computes what it has to, and the CPUs go through the states that they
have to. It needs a build with the Unicorn engine.

Exit status: 1 where any case failed.`,
		Example: `  xol matrix
  xol matrix --case 'fault*'
  xol matrix -o jsonl | grep '"fail"'`,
		Args: takes("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := path.Match(opt.glob, ""); err != nil {
				return usageError(cmd, fmt.Errorf("--case %s: %w", opt.glob, err))
			}
			return a.matrix(&opt)
		},
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.glob, "case", "*", "only the cases whose name matches `GLOB`")
	opt.format.addTo(cmd, flags, "output", "o", "output format")
	return cmd
}

// matrixRunner calls each with the results of the cases that match, until ctx ends.
type matrixRunner func(ctx context.Context, match func(name string) bool, each func(matrix.Result) error) error

func (a *app) matrix(opt *matrixOptions) error {
	run, err := openMatrix()
	if err != nil {
		return err
	}
	return a.writeMatrix(opt, run)
}

func (a *app) writeMatrix(opt *matrixOptions, run matrixRunner) error {
	w, flush := a.results()
	out := newMatrixWriter(w, opt.format.value, a.palette())
	failures, matches := 0, 0
	match := func(name string) bool {
		ok, _ := path.Match(opt.glob, name)
		if ok {
			matches++
		}
		return ok
	}
	ctx, stop := interruptible()
	defer stop()
	var bar *progress
	started := false
	err := run(ctx, match, func(r matrix.Result) error {
		if !started {
			bar, started = a.newProgress("matrix", int64(matches*len(arch.Names())*len(matrix.Modes()))), true
		}
		bar.add(1)
		if r.Outcome == matrix.Fail {
			failures++
		}
		return out.add(r)
	})
	bar.finish()
	if err == nil && matches == 0 {
		return fmt.Errorf("matrix: no case matches --case %q (a glob for the whole name, such as '*handler*')", opt.glob)
	}
	if err == nil {
		err = out.close()
	}
	if err == nil && failures > 0 {
		err = answerNo
	}
	return flush(err)
}

// matrixWriter writes results in an output format.
type matrixWriter interface {
	add(r matrix.Result) error
	close() error
}

func newMatrixWriter(w *bufio.Writer, format string, p palette) matrixWriter {
	if format == formatTable {
		t := &matrixTable{w: w, table: table{palette: p}, reasons: map[string]int{}}
		t.head()
		return t
	}
	return &matrixRecords{stream: newStream(w, format, "[", "\n]\n", func(r *records) { encodeResult(r, matrix.Result{}) })}
}

// matrixRecords writes a record for each result.
type matrixRecords struct{ stream *stream }

func (m *matrixRecords) add(result matrix.Result) error {
	r := records{format: m.stream.format}
	encodeResult(&r, result)
	return m.stream.write(r.buf)
}

func (m *matrixRecords) close() error {
	m.stream.close()
	return nil
}

func encodeResult(r *records, result matrix.Result) {
	r.begin()
	r.str("case", result.Case)
	r.str("target", result.Target)
	r.str("mode", result.Mode.String())
	r.str("result", result.Outcome.String())
	r.str("reason", result.Reason)
	r.end()
}

// matrixTable writes a row for each case and a column for each target and mode.
type matrixTable struct {
	w       *bufio.Writer
	table   table
	row     string // the case of the row under way
	cells   int    // of the row
	counts  [matrix.NotApplicable + 1]int
	failed  []matrix.Result
	reasons map[string]int // of what is not applicable
}

const (
	matrixCaseWidth = 52
	matrixCellWidth = 2
)

// matrixHeads are the heads of the columns of a target, and cells what stands
// for an outcome.
var (
	matrixHeads = map[matrix.Mode]string{
		matrix.SteppedBreakpoint: "br", matrix.SteppedTrap: "tr", matrix.Boosted: "bo",
		matrix.Optimized: "op", matrix.Emulated: "em",
	}
	matrixCells = [...]struct {
		text  string
		style style
	}{matrix.Pass: {"ok", green}, matrix.Fail: {"NO", red}, matrix.NotApplicable: {"-", dim}}
)

func (m *matrixTable) head() {
	modes := matrix.Modes()
	m.table.left(matrixCaseWidth, "", plain)
	for _, target := range arch.Names() {
		m.table.left(len(modes)*(matrixCellWidth+len(gap)), target, bold)
	}
	m.table.end()
	m.table.left(matrixCaseWidth, "CASE", bold)
	for range arch.Names() {
		for _, mode := range modes {
			m.table.left(matrixCellWidth, matrixHeads[mode], bold)
		}
		m.table.pad(len(gap))
	}
	m.table.end()
}

func (m *matrixTable) add(r matrix.Result) error {
	if r.Case != m.row || m.cells == 0 {
		m.endRow()
		m.row = r.Case
		m.table.left(matrixCaseWidth, r.Case, plain)
	} else if m.cells%len(matrix.Modes()) == 0 {
		m.table.pad(len(gap))
	}
	cell := &matrixCells[r.Outcome]
	m.table.left(matrixCellWidth, cell.text, cell.style)
	m.cells++
	m.counts[r.Outcome]++
	switch r.Outcome {
	case matrix.Fail:
		m.failed = append(m.failed, r)
	case matrix.NotApplicable:
		m.reasons[r.Reason]++
	}
	return nil
}

func (m *matrixTable) endRow() {
	if m.cells > 0 {
		m.table.end()
		m.cells = 0
	}
}

// close writes what the columns are, why cells are empty, and in full what
// failed.
func (m *matrixTable) close() error {
	m.endRow()
	m.table.end()
	line := func(st style, format string, args ...any) {
		m.table.left(0, fmt.Sprintf(format, args...), st)
		m.table.end()
	}
	var modes []string
	for _, mode := range matrix.Modes() {
		modes = append(modes, matrixHeads[mode]+" "+mode.String())
	}
	line(dim, "%s", strings.Join(modes, "   "))
	for _, reason := range slices.SortedFunc(maps.Keys(m.reasons), func(a, b string) int {
		return cmp.Or(m.reasons[b]-m.reasons[a], cmp.Compare(a, b))
	}) {
		line(dim, "- %4d  %s", m.reasons[reason], reason)
	}
	for _, r := range m.failed {
		line(red, "NO %s, %s, %v: %s", r.Case, r.Target, r.Mode, r.Reason)
	}
	line(plain, "%d passed, %d failed, %d not applicable", m.counts[matrix.Pass], m.counts[matrix.Fail], m.counts[matrix.NotApplicable])
	_, err := m.w.Write(m.table.buf)
	return err
}
