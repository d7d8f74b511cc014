package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xol/selection"
	"xol/session"
)

// countOptions are the flags of count.
type countOptions struct {
	targetOptions
	top      int
	zero     bool
	interval time.Duration
}

const probeNotations = `PROBE is a function or a place as tracers write it: malloc, 'str*', main.c:42, malloc+4,
libc:malloc, /usr/lib/libssl.so.3:SSL_read, memcpy@GLIBC_2.2.5, malloc%return or r:malloc,
uprobe:/bin/bash:readline, 'usdt:*:*:request', 'p:name /bin/bash:0x1040'. A name without a
file is looked for in the program, and then in its libraries. That of an IFUNC, such as
memcpy, stands for all functions that calls of it may reach.`

func (a *app) countCommand() *cobra.Command {
	opt := countOptions{targetOptions: targetOptions{format: formatChoice()}}
	cmd := &cobra.Command{
		Use:   "count [flags] " + targetUsage,
		Short: "Count how often a running program comes to places in it",
		Long: `Count how often a program, with its libraries and children, comes to each PROBE.

` + probeNotations + `

The program counts by itself, in code that jumps lead to, and does not stop for it. Where
there is no room for a jump it is a breakpoint. Everything is taken back when xol ends.

The exit status is that of the program, or 128 and the number of the signal that ended it;
2 where xol could not do it.`,
		Example: `  xol count malloc free -- ls
  xol count --top 3 'libc:str*' -- ls
  xol count --all --dry-run -- true`,
		RunE: func(cmd *cobra.Command, args []string) error {
			probes, t, err := opt.split(cmd, args)
			if err != nil {
				return usageError(cmd, err)
			}
			return a.countHits(&opt, probes, t)
		},
		ValidArgsFunction:     cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		DisableFlagsInUseLine: true,
	}
	opt.addTo(cmd)
	opt.all.addTo(cmd)
	flags := cmd.Flags()
	flags.IntVar(&opt.top, "top", 0, "print only the `N` places with the most hits")
	flags.BoolVar(&opt.zero, "zero", false, "print places without a hit as well")
	flags.DurationVar(&opt.interval, "interval", 0, "print the hits of each such time as it ends")
	return cmd
}

func (a *app) countHits(opt *countOptions, probes []string, t target) error {
	r, err := a.newRun(&opt.targetOptions, probes, t, withoutArguments)
	if err != nil {
		return err
	}
	l := &countListing{opt: opt, w: r.w, palette: a.resultPalette(opt.out), start: time.Now()}
	if opt.format.value != formatTable && !opt.dryRun {
		l.stream = newStream(r.w, opt.format.value, "[", "\n]\n", func(r *records) { l.fields(r, &countRow{}, 0) })
	}
	r.probes, r.interval, r.tick, r.results = once(session.Count), opt.interval, l.tick, l.last
	return r.carryOut()
}

// once returns what makes probes of places, one for each place where several are
// wanted.
func once(action session.Action) func(m *session.Module, places []selection.Place) []session.Probe {
	type where struct {
		addr     uint64
		isReturn bool
	}
	return func(m *session.Module, places []selection.Place) []session.Probe {
		seen := make(map[where]bool, len(places))
		probes := make([]session.Probe, 0, len(places))
		for i := range places {
			p := &places[i]
			if key := (where{p.Addr, p.Return}); !seen[key] {
				seen[key] = true
				probes = append(probes, session.Probe{
					Addr: p.Addr, Return: p.Return, Action: action, Semaphore: semaphoreOf(p),
					Symbol: p.Symbol, Offset: p.Offset, Data: &spot{Place: *p},
				})
			}
		}
		return probes
	}
}

// semaphoreOf returns where the program asks whether a marker is probed; 0 where it does
// not.
func semaphoreOf(p *selection.Place) uint64 {
	if p.Marker == nil {
		return 0
	}
	return p.Marker.Semaphore
}

// countRow is a place with its hits.
type countRow struct {
	*session.Placed
	hits uint64
}

// countListing prints hits.
type countListing struct {
	opt     *countOptions
	w       *bufio.Writer
	palette palette
	stream  *stream
	start   time.Time
	before  map[*session.Placed]uint64 // at the end of the last interval
	headed  bool
}

// rows returns the places that are to be printed: with the hits since before.
func (l *countListing) rows(s probing) []countRow {
	placed := s.Placed()
	rows := make([]countRow, 0, len(placed))
	for _, p := range placed {
		if whyNot(p) != "" {
			continue
		}
		now := s.Hits(p)
		hits := now - l.before[p]
		if l.before != nil {
			l.before[p] = now
		}
		if hits > 0 || l.opt.zero {
			rows = append(rows, countRow{p, hits})
		}
	}
	slices.SortStableFunc(rows, func(a, b countRow) int {
		return cmp.Or(cmp.Compare(b.hits, a.hits), strings.Compare(a.Module.Path, b.Module.Path), cmp.Compare(a.Probe.Addr, b.Probe.Addr))
	})
	if l.opt.top > 0 {
		rows = rows[:min(len(rows), l.opt.top)]
	}
	return rows
}

// tick prints the hits of an interval.
func (l *countListing) tick(s probing) error {
	if l.before == nil {
		l.before = make(map[*session.Placed]uint64)
	}
	if err := l.print(l.rows(s)); err != nil {
		return err
	}
	return l.w.Flush()
}

// last prints the hits of the last interval, or of all the time.
func (l *countListing) last(s probing) error {
	err := l.print(l.rows(s))
	if l.stream != nil {
		l.stream.close()
	}
	return errors.Join(err, l.w.Flush())
}

func (l *countListing) print(rows []countRow) error {
	since := time.Since(l.start)
	if l.stream != nil {
		for i := range rows {
			r := records{format: l.stream.format}
			l.fields(&r, &rows[i], since)
			if err := l.stream.write(r.buf); err != nil {
				return err
			}
		}
		return nil
	}
	t := &table{palette: l.palette}
	if !l.headed {
		l.heads(t)
		l.headed = true
	}
	for i := range rows {
		row := &rows[i]
		if l.opt.interval > 0 {
			t.right(timeWidth, fmt.Sprintf("%.3f", since.Seconds()), dim)
		}
		t.right(hitsWidth, fmt.Sprint(row.hits), plain)
		t.left(wayWidth, row.Way.String(), plain)
		t.left(fileWidth, shortFile(row.Module.Path), plain)
		t.left(0, describe(spotOf(row.Placed)), plain)
		t.end()
	}
	_, err := l.w.Write(t.buf)
	return err
}

const (
	timeWidth = len("00000.000")
	hitsWidth = len("000000000000")
)

func (l *countListing) heads(t *table) {
	if l.opt.interval > 0 {
		t.right(timeWidth, "SECONDS", bold)
	}
	t.right(hitsWidth, "HITS", bold)
	t.left(wayWidth, "WAY", bold)
	t.left(fileWidth, "FILE", bold)
	t.left(0, "PLACE", bold)
	t.end()
}

func (l *countListing) fields(r *records, row *countRow, since time.Duration) {
	p := row.Placed
	if p == nil { // for the names of the columns
		p = &session.Placed{Module: new(session.Module), Probe: session.Probe{Data: new(spot)}}
	}
	r.begin()
	r.only(l.opt.interval > 0)
	r.seconds("time", since)
	r.only(true)
	placeFields(r, p)
	r.unsigned("hits", row.hits)
	r.str("way", p.Way.String())
	r.end()
}
