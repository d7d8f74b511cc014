package main

import (
	"bufio"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"xol/events"
	"xol/selection"
	"xol/session"
)

// formatTrace is how tracefs prints events.
const formatTrace = "trace"

func (a *app) traceCommand() *cobra.Command {
	opt := targetOptions{format: choiceOf(formatTrace, formatJSONL)}
	cmd := &cobra.Command{
		Use:   "trace [flags] " + targetUsage,
		Short: "Print a line each time a running program comes to places in it",
		Long: `Print a line each time that a program, with its libraries and children, comes to a PROBE,
as the file trace of Linux's tracefs has it.

` + probeNotations + `

Arguments follow, as kprobe_events has them: 'malloc size=$arg1', 'open path=+0($arg1):string',
'read%return n=$retval:s64'; and a condition as the files filter have it, on arguments, comm,
common_pid and cpu: 'malloc size=$arg1 if size > 4096 && comm == "sh"'. A static marker
records its own arguments.

The exit status is that of the program, or 128 and the number of the signal that ended it;
2 where xol could not do it.`,
		Example: `  xol trace 'malloc size=$arg1:u64 if size > 1000' -- ls
  xol trace 'getenv name=+0($arg1):string' 'getenv%return $retval' -- ls
  xol trace -o jsonl 'p:name libc:strlen s=+0(%di):string' -- ls`,
		RunE: func(cmd *cobra.Command, args []string) error {
			probes, t, err := opt.split(cmd, args)
			if err != nil {
				return usageError(cmd, err)
			}
			return a.trace(&opt, probes, t)
		},
		ValidArgsFunction:     cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		DisableFlagsInUseLine: true,
	}
	opt.addTo(cmd)
	opt.all.addTo(cmd)
	return cmd
}

func (a *app) trace(opt *targetOptions, probes []string, t target) error {
	r, err := a.newRun(opt, probes, t, checkRecorded)
	if err != nil {
		return err
	}
	l := &traceListing{app: a, w: r.w, jsonl: opt.format.value == formatJSONL, wishes: r.wishes, book: newAddressBook(), clock: newClock(), calls: map[callKey][]entered{}}
	flush := func(probing) error { return l.flush() }
	r.probes, r.hit, r.interval, r.tick, r.results = l.probes, l.hit, flushInterval, flush, flush
	return r.carryOut()
}

// flushInterval is how long a line may wait.
const flushInterval = 100 * time.Millisecond

// traceListing prints hits. The session calls it from one goroutine at a time.
type traceListing struct {
	*app
	mu     sync.Mutex // of what is written
	w      *bufio.Writer
	jsonl  bool
	wishes []wish
	book   *addressBook
	clock  clock
	// calls are those that go on and of which something was noted when they began.
	calls map[callKey][]entered
}

func (l *traceListing) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Flush()
}

// callKey is a function in a thread.
type callKey struct {
	tid int
	at  *recorder
}

// entered is a call of a function.
type entered struct {
	sp   uint64
	args []uint64
}

// probes returns probes that record. Where a return probe records what the function
// was called with, there is one at its entry as well.
func (l *traceListing) probes(m *session.Module, places []selection.Place) (probes []session.Probe) {
	l.book.add(m)
	for i := range places {
		p := &places[i]
		probe := session.Probe{
			Addr: p.Addr, Return: p.Return, Action: session.Trace, Semaphore: semaphoreOf(p), Symbol: p.Symbol, Offset: p.Offset,
		}
		rec, err := l.newRecorder(m, p)
		if err != nil {
			l.report(fmt.Errorf("%s in %s: %w", describe(&spot{Place: *p}), shortFile(m.Path), err))
			continue
		}
		probe.Data = &spot{Place: *p, recorder: rec}
		if p.Return && rec.program.NeedsEntry() {
			entry := probe
			entry.Return = false
			at := *p
			at.Return = false
			entry.Data = &spot{Place: at, recorder: rec}
			probes = append(probes, entry)
		}
		probes = append(probes, probe)
	}
	return probes
}

// hit prints a hit.
func (l *traceListing) hit(h *session.Hit) {
	at := spotOf(h.Placed)
	rec := at.recorder
	if rec.isReturn && !at.Return {
		l.enter(h, rec)
		return
	}
	e := rec.record(l, h)
	if e == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jsonl {
		r := records{format: formatJSONL}
		e.fields(&r, h.Placed)
		l.w.Write(r.buf)
		return
	}
	l.w.WriteString(printable(e.task.Line(e.text)))
	l.w.WriteByte('\n')
}

// enter notes what a function was called with.
func (l *traceListing) enter(h *session.Hit, rec *recorder) {
	key := callKey{h.TID, rec}
	l.calls[key] = append(l.calls[key], entered{h.Registers.Reg(rec.isa.Registers().SP), rec.program.Entry(h.Registers, h.Memory)})
}

// leave returns what the function was called with that returns. Calls that were left
// otherwise, by longjmp or an exception, are forgotten: their stack is gone.
func (l *traceListing) leave(h *session.Hit, rec *recorder) []uint64 {
	key := callKey{h.TID, rec}
	calls := l.calls[key]
	sp := h.Registers.Reg(rec.isa.Registers().SP)
	for len(calls) > 0 && calls[len(calls)-1].sp+wordSize < sp {
		calls = calls[:len(calls)-1]
	}
	if len(calls) == 0 {
		delete(l.calls, key)
		return nil
	}
	args := calls[len(calls)-1].args
	l.calls[key] = calls[:len(calls)-1]
	return args
}

const wordSize = 8 // bytes

// traced is a hit with what was recorded.
type traced struct {
	event  string
	task   events.Task
	tgid   int
	text   string // of the line
	values []tracedValue
	// returnTo is the address that a function returns to, where it does.
	returnTo uint64
}

// tracedValue is an argument: a number, a string, or what is printed of it.
type tracedValue struct {
	name   string
	text   string
	number bool
}

func (e *traced) fields(r *records, p *session.Placed) {
	r.begin()
	r.seconds("time", e.task.Time)
	r.str("comm", e.task.Comm)
	r.num("pid", e.tgid)
	r.num("tid", e.task.PID)
	r.num("cpu", e.task.CPU)
	r.str("event", e.event)
	placeFields(r, p)
	r.only(e.returnTo != 0)
	r.addr("return_to", e.returnTo)
	r.only(true)
	r.open("args")
	for _, v := range e.values {
		if v.number {
			r.raw(v.name, v.text)
		} else {
			r.str(v.name, v.text)
		}
	}
	r.close()
	r.end()
}
