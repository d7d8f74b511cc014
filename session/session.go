//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"context"
	"errors"
	"sync"
	"syscall"

	"xol/process"
)

// Session is a program with probes, and its children.
type Session struct {
	opt    Options
	engine *engine

	mutex  sync.Mutex
	placed []*Placed
	files  map[fileKey]*file

	pid    int
	done   chan struct{} // closed when the tracer has stopped
	err    error         // of the tracer
	status *syscall.WaitStatus
	cancel context.CancelFunc
}

// Start starts a program. Its text is changed before any of it is executed.
func Start(ctx context.Context, cmd Command, opt Options) (*Session, error) {
	s := newSession(opt)
	return s, s.begin(ctx, func() error {
		p, err := s.engine.tracer.Start(&process.Command{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, Files: cmd.Files})
		if err == nil {
			s.pid = p.PID()
		}
		return err
	})
}

// Attach puts probes into a running program.
func Attach(ctx context.Context, pid int, opt Options) (*Session, error) {
	s := newSession(opt)
	return s, s.begin(ctx, func() error {
		p, err := s.engine.tracer.Attach(pid)
		if err != nil {
			return err
		}
		s.pid = pid
		return s.engine.attached(p)
	})
}

func newSession(opt Options) *Session {
	s := &Session{opt: opt, files: map[fileKey]*file{}, done: make(chan struct{})}
	s.engine = newEngine(s)
	return s
}

// begin gets the program, and has its events handled.
func (s *Session) begin(ctx context.Context, get func() error) error {
	var err error
	if doErr := s.engine.tracer.Do(func() { err = get() }); doErr != nil {
		err = doErr
	}
	if err != nil {
		close(s.done)
		return errors.Join(err, s.engine.tracer.Close())
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	go func() {
		defer close(s.done)
		err := s.engine.tracer.Run(run)
		if !errors.Is(err, context.Canceled) {
			s.err = err
		}
	}()
	return nil
}

// PID returns the process that was started or attached to.
func (s *Session) PID() int { return s.pid }

// Placed returns all probes so far, in the order in which they were wanted.
func (s *Session) Placed() []*Placed {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]*Placed(nil), s.placed...)
}

// Hits returns how often a probe was hit, in all processes.
func (s *Session) Hits(p *Placed) (n uint64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, c := range p.place.counts {
		n += c.counters.count(c.addr, c.step)
	}
	return n
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
	var err error
	if doErr := s.engine.tracer.Do(func() { err = s.engine.withdraw() }); doErr != nil {
		err = errors.Join(err, doErr)
	}
	return errors.Join(s.err, err, s.engine.tracer.Close())
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
	return sum
}
