package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"xol/events"
	"xol/notation"
	"xol/selection"
	"xol/session"
)

func (a *app) latencyCommand() *cobra.Command {
	opt := targetOptions{format: choiceOf(formatTable, formatJSON)}
	cmd := &cobra.Command{
		Use:   "latency [flags] FUNCTION… {-p PID | -- PROGRAM [ARG…]}",
		Short: "Measure how long calls of functions of a running program take",
		Long: `Measure how long the calls of each FUNCTION take, from its entry to its return, in a program,
its libraries and children, and print a histogram of nanoseconds for each.

` + probeNotations + `

The program measures by itself, as it does for xol count. Times are kept by powers of two:
the mean and the percentiles say between which two they lie.

The exit status is that of the program, or 128 and the number of the signal that ended it;
2 where xol could not do it.`,
		Example: `  xol latency malloc -- ls
  xol latency -o json 'libc:read*' -- ls`,
		RunE: func(cmd *cobra.Command, args []string) error {
			functions, t, err := opt.split(cmd, args)
			if err != nil {
				return usageError(cmd, err)
			}
			return a.latency(&opt, functions, t)
		},
		ValidArgsFunction:     cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		DisableFlagsInUseLine: true,
	}
	opt.addTo(cmd)
	return cmd
}

func (a *app) latency(opt *targetOptions, functions []string, t target) error {
	r, err := a.newRun(opt, functions, t, onlyFunctions)
	if err != nil {
		return err
	}
	probes := once(session.Time)
	r.probes = func(m *session.Module, places []selection.Place) []session.Probe {
		for i := range places {
			places[i].Return = false
		}
		return probes(m, places)
	}
	r.results = func(s probing) error {
		if err := writeLatencies(r.w, opt.format.value, a.resultPalette(opt.out), latenciesOf(s)); err != nil {
			return err
		}
		return r.w.Flush()
	}
	return r.carryOut()
}

// onlyFunctions has wishes be for places where functions start.
func onlyFunctions(list []wish) error {
	if err := withoutArguments(list); err != nil {
		return err
	}
	for i := range list {
		if _, offset := splitPlace(list[i].Place); offset || list[i].Kind == notation.Marker {
			return fmt.Errorf("%q: it is no function, whose calls could be measured", list[i].Text)
		}
		list[i].Return = true // it has to be where a function starts
	}
	return nil
}

// splitPlace reports whether a place has an offset.
func splitPlace(place string) (name string, offset bool) {
	name, after, offset := strings.Cut(place, "+")
	return name, offset && after != "" && after[0] >= '0' && after[0] <= '9'
}

// latency is how long the calls of a function took.
type latency struct {
	placed *session.Placed
	events.Histogram
	rows  []events.Row // of nanoseconds
	count uint64
	// least and most are between which times the mean is.
	least, most float64
}

// latenciesOf returns what was measured, the function first that took the most time.
func latenciesOf(s probing) (all []*latency) {
	for _, p := range s.Placed() {
		l := &latency{placed: p}
		for i, n := range s.Times(p) {
			if n > 0 {
				l.AddMany(leastOf(i), n)
			}
		}
		l.rows = l.Rows()
		for _, row := range l.rows {
			l.count += row.N
			l.least += float64(row.N) * float64(row.Low)
			l.most += float64(row.N) * float64(row.High)
		}
		if l.count > 0 {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b *latency) int { return cmp.Compare(b.least+b.most, a.least+a.most) })
	return all
}

// leastOf returns the least time of a count of session.Times: of i bits.
func leastOf(i int) uint64 {
	if i == 0 {
		return 0
	}
	return 1 << (i - 1)
}

func (l *latency) percentile(q float64) events.Row { return events.Quantile(l.rows, q) }

func writeLatencies(w *bufio.Writer, format string, palette palette, all []*latency) error {
	if format == formatJSON {
		return latencyJSON(w, all)
	}
	t := &table{palette: palette}
	for i, l := range all {
		if i > 0 {
			t.end()
		}
		t.left(0, describe(spotOf(l.placed)), bold)
		t.left(0, shortFile(l.placed.Module.Path), plain)
		t.left(0, count(l.count, "call"), plain)
		t.left(0, fmt.Sprintf("mean %s to %s", nanoseconds(l.least/float64(l.count)), nanoseconds(l.most/float64(l.count))), plain)
		for _, q := range percentiles {
			t.left(0, fmt.Sprintf("%s < %s", q.name, nanoseconds(float64(l.percentile(q.share).High)+1)), plain)
		}
		t.end()
		t.buf = append(t.buf, l.String()...)
	}
	_, err := w.Write(t.buf)
	return err
}

var percentiles = []struct {
	name  string
	share float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}

// nanoseconds writes a time with three digits.
func nanoseconds(ns float64) string {
	units := []string{"ns", "µs", "ms", "s"}
	for ; ns >= 1000 && len(units) > 1; ns /= 1000 {
		units = units[1:]
	}
	return fmt.Sprintf("%.3g %s", ns, units[0])
}

func latencyJSON(w *bufio.Writer, all []*latency) error {
	type row struct {
		Low   uint64 `json:"low"`
		High  uint64 `json:"high"`
		Count uint64 `json:"count"`
	}
	type between struct {
		Low  uint64 `json:"low"`
		High uint64 `json:"high"`
	}
	type object struct {
		File      string  `json:"file"`
		Sym       string  `json:"sym"`
		Off       uint64  `json:"off"`
		Addr      address `json:"addr"`
		Through   string  `json:"through,omitempty"`
		Count     uint64  `json:"count"`
		Mean      between `json:"mean_ns"`
		P50       between `json:"p50_ns"`
		P90       between `json:"p90_ns"`
		P99       between `json:"p99_ns"`
		Histogram []row   `json:"histogram_ns"`
	}
	list := make([]object, len(all))
	for i, l := range all {
		at := spotOf(l.placed)
		o := object{
			File: l.placed.Module.Path, Sym: at.Symbol, Off: at.Offset, Addr: address(at.Addr), Through: at.Through, Count: l.count,
			Mean: between{uint64(l.least / float64(l.count)), uint64(l.most / float64(l.count))},
		}
		for k, p := range []*between{&o.P50, &o.P90, &o.P99} {
			r := l.percentile(percentiles[k].share)
			*p = between{r.Low, r.High}
		}
		for _, r := range l.rows {
			o.Histogram = append(o.Histogram, row{r.Low, r.High, r.N})
		}
		list[i] = o
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(list)
}
