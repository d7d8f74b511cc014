//go:build linux && amd64

package process

import (
	"context"
	"errors"
	"testing"
	"time"
)

// BenchmarkTrap is what a breakpoint costs, all in all, whose handler moves the program
// counter.
func BenchmarkTrap(b *testing.B) {
	mayTrace(b)
	c := spawnProgram(b, "loop")
	h, tr := newCounter(b, Options{})
	c.line(b)
	p := attach(b, tr, c.Process.Pid)
	ctx, cancel := context.WithCancel(context.Background())
	h.busy = func(*Thread) error {
		if h.hits == b.N {
			cancel()
		}
		return nil
	}
	h.signal = nil
	do(b, tr, func() error { return h.arm(p) })
	b.ResetTimer()
	if err := tr.Run(ctx); !errors.Is(err, context.Canceled) {
		b.Error(err)
	}
	b.StopTimer()
	do(b, tr, func() error { return errors.Join(p.Stop(), h.disarm(p), p.Detach()) })
}

// BenchmarkStop stops and resumes 8 threads that run.
func BenchmarkStop(b *testing.B) {
	mayTrace(b)
	c := spawnProgram(b, "busy", "1000000000000")
	tr := newTracer(b, &recorder{}, Options{})
	c.line(b)
	for { // until all threads are there
		if tids, _ := tasksOf(c.Process.Pid); len(tids) == 9 {
			break
		}
	}
	p := attach(b, tr, c.Process.Pid)
	var took time.Duration
	do(b, tr, func() error {
		for range b.N {
			time.Sleep(100 * time.Microsecond)
			begun := time.Now()
			if err := p.Stop(); err != nil {
				return err
			}
			took += time.Since(begun)
			if err := p.Resume(); err != nil {
				return err
			}
		}
		return nil
	})
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/stop")
	do(b, tr, p.Detach)
}

// BenchmarkSyscall makes a system call in a stopped process.
func BenchmarkSyscall(b *testing.B) {
	mayTrace(b)
	c := spawnProgram(b, "waits")
	tr := newTracer(b, &recorder{}, Options{})
	c.line(b)
	p := attach(b, tr, c.Process.Pid)
	do(b, tr, func() error {
		if err := p.Stop(); err != nil {
			return err
		}
		b.ResetTimer()
		for range b.N {
			if _, err := p.Syscall(39); err != nil {
				return err
			}
		}
		b.StopTimer()
		return errors.Join(p.Resume(), p.Detach())
	})
}
