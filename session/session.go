//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"xol/detour"
	"xol/process"
)

// Session is a program with probes, and its children. Its methods may be called from any
// goroutine.
type Session struct {
	opt    Options
	engine tracing

	mutex      sync.Mutex
	placed     []*Placed
	files      map[fileKey]*file
	layouts    []*laid // by their numbers
	placements []*laid // by the numbers of placements; nil where no process has it

	longest time.Duration // stop of a process

	measure     sync.Once
	nanoseconds uint64 // per tick of the CPU's clock, times 2^32
	throwing    sync.Mutex
	switches    switches

	pid    int
	done   chan struct{} // closed when the tracer has stopped
	err    error         // of the tracer
	status *syscall.WaitStatus
	cancel context.CancelFunc
}

// tracing is the tracer's side of a session, here or in another process.
type tracing interface {
	start(cmd *process.Command) (pid int, err error)
	attach(pid int) (int, error)
	// run handles events until no process is left, or ctx ends.
	run(ctx context.Context) error
	// set throws the switches.
	set(to switches) error
	// close takes everything back.
	close() error
	// file opens what the other side has open.
	file(fd int) (*os.File, error)
}

// Start starts a program. Its text is changed before any of it is executed.
func Start(ctx context.Context, cmd Command, opt Options) (*Session, error) {
	files := cmd.Files
	return begin(ctx, opt, files, func(t tracing) (int, error) {
		return t.start(&process.Command{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, Files: files})
	})
}

// Attach puts probes into a running program.
func Attach(ctx context.Context, pid int, opt Options) (*Session, error) {
	return begin(ctx, opt, nil, func(t tracing) (int, error) { return t.attach(pid) })
}

// begin gets the program, and has its events handled.
func begin(ctx context.Context, opt Options, files []*os.File, get func(t tracing) (int, error)) (s *Session, err error) {
	s = &Session{opt: opt, files: map[fileKey]*file{}, done: make(chan struct{})}
	if opt.Guard == nil {
		s.engine = newEngine(s, opt.Follow, opt.DryRun)
	} else if s.engine, err = newGuarded(s, opt, files); err != nil {
		return nil, err
	}
	if s.pid, err = get(s.engine); err != nil {
		return nil, errors.Join(err, s.engine.close())
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	go func() {
		defer close(s.done)
		if err := s.engine.run(run); !errors.Is(err, context.Canceled) && !errors.Is(err, errEnough) {
			s.err = err
		}
	}()
	return s, nil
}

// PID returns the process that was started or attached to.
func (s *Session) PID() int { return s.pid }

// Placed returns all probes so far, in the order in which they were wanted.
func (s *Session) Placed() []*Placed {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]*Placed(nil), s.placed...)
}

// Hits returns how often a probe was hit, in all processes: of a Time probe, how many calls
// were measured.
func (s *Session) Hits(p *Placed) (n uint64) {
	if p.Probe.Action == Time {
		for _, calls := range s.Times(p) {
			n += calls
		}
		return n
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, c := range p.counts {
		n += c.laid.count(c.addr, c.step)
	}
	return n + p.told.Load()
}

// TimeBits is how many bits a time has at most.
const TimeBits = 64

// Times returns how many calls of a Time probe took a time of as many bits as the index
// says, in nanoseconds: 0; 1; 2 or 3; 4 to 7; and so on.
func (s *Session) Times(p *Placed) []uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	times := make([]uint64, TimeBits+1)
	for _, t := range p.timers {
		for i := range TimeBits {
			times[i+1] += t.laid.word(t.addr + counterSize*uint64(i))
		}
	}
	return times
}

// scale returns detour.Timer.Scale for nanoseconds.
func (s *Session) scale() uint64 {
	s.measure.Do(func() { s.nanoseconds = nanosecondsPerTick() })
	return s.nanoseconds
}

// Wait waits until the program and all that is followed have ended, and returns the status
// of the program; ok is false where it has not ended, or is not a child. It returns the
// error of ctx where that ends first.
func (s *Session) Wait(ctx context.Context) (status syscall.WaitStatus, ok bool, err error) {
	select {
	case <-ctx.Done():
		return 0, false, ctx.Err()
	case <-s.done:
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.status == nil {
		return 0, false, s.err
	}
	return *s.status, true, s.err
}

// Close takes everything back. The program goes on without the session. What was counted
// stays known.
func (s *Session) Close() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	<-s.done
	s.cancel = nil
	return errors.Join(s.err, s.engine.close())
}

// SetArmed is the global switch: off, the text is the program's own, and nothing is hit.
func (s *Session) SetArmed(on bool) error {
	return s.set(func(w *switches) { w.Disarmed = !on })
}

// SetOptimization is the switch of jumps: off, they are breakpoints.
func (s *Session) SetOptimization(on bool) error {
	return s.set(func(w *switches) { w.NoJumps = !on })
}

func (s *Session) set(change func(*switches)) error {
	s.throwing.Lock()
	defer s.throwing.Unlock()
	change(&s.switches)
	return s.engine.set(s.switches)
}

// Summary adds up what there is.
func (s *Session) Summary() Summary {
	sum := Summary{Refused: map[string]int{}}
	for _, p := range s.Placed() {
		sum.Probes++
		switch {
		case p.Refused != nil:
			sum.Refused[p.Refused.ID]++
		case p.Err != nil:
			sum.Refused[reasonOf(p.Err)]++
		case p.Way == Jump:
			sum.Jumps++
		default:
			sum.Breakpoints++
		}
		sum.Hits += s.Hits(p)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	sum.LongestStop = s.longest
	for _, p := range s.placed {
		if p.laid != nil && p.laid.unmapped {
			sum.Lost++
		}
		for _, t := range p.timers {
			sum.Missed += t.laid.word(t.addr + counterSize*detour.HistogramMissed)
		}
	}
	return sum
}
