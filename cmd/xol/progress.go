package main

import (
	"io"
	"slices"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

// progressDelay is how long work goes on before it shows its progress.
const progressDelay = time.Second

// screen is a terminal that shows progress, and perhaps the results as well: then
// results go through it, so that none is written over.
type screen struct {
	mu      sync.Mutex
	results io.Writer
	bar     *progressbar.ProgressBar // what is shown; nil where nothing is
	midLine bool                     // the last line of the results is not ended
	changed time.Time                // when something else was shown last
}

// Write writes results, in the place of the bar if one is shown.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	s.hide()
	n, err := s.results.Write(b)
	s.midLine = n > 0 && b[n-1] != '\n'
	return n, err
}

// hide takes the bar off the screen, until there is more progress.
func (s *screen) hide() {
	if s.bar != nil {
		_ = s.bar.Clear() // progress that cannot be shown is no error
		s.bar = nil
	}
	s.changed = time.Now()
}

// waitStep is how often a wait is shown to go on.
const waitStep = 200 * time.Millisecond

// wait shows that work goes on of which it is not known how long it takes, such as
// unpacking a kernel: whenever nothing else has been shown for a while. It ends with
// stop.
func (a *app) wait(what string) (stop func()) {
	if !isTerminal(a.err) {
		return func() {}
	}
	s, done := &a.screen, make(chan struct{})
	s.changed = time.Now()
	var running sync.WaitGroup
	running.Go(func() {
		var bar *progressbar.ProgressBar
		for {
			select {
			case <-done:
				return
			case <-time.After(waitStep):
				bar = s.turn(bar, a.err, what)
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hide()
	}
}

// turn shows a wait, which bar does if it has been shown before, unless there is
// something else to see.
func (s *screen) turn(bar *progressbar.ProgressBar, w io.Writer, what string) *progressbar.ProgressBar {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.bar != nil && s.bar != bar, s.midLine:
		return bar
	case s.bar == nil && time.Since(s.changed) < progressDelay:
		return bar
	case s.bar == nil:
		bar = progressbar.NewOptions64(-1,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(what),
			progressbar.OptionSpinnerType(14),
			progressbar.OptionSetSpinnerChangeInterval(0), // it turns here, not by itself
			progressbar.OptionSetElapsedTime(true),
			progressbar.OptionClearOnFinish(),
		)
		s.bar = bar
	}
	_ = bar.Add(1)
	return bar
}

// long has a command show that it works where it takes long, unless it reads what
// somebody may be typing.
func (a *app) long(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && !slices.Contains(args, "-") {
			defer a.wait(cmd.CommandPath())()
		}
		return run(cmd, args)
	}
	return cmd
}

// progress shows how far work has come, once it turns out to take long. A nil
// progress shows nothing.
type progress struct {
	w           io.Writer
	screen      *screen
	what        string
	now         func() time.Time
	start       time.Time
	total, done int64
	bar         *progressbar.ProgressBar // nil until it is shown
}

// newProgress returns the progress of work on total units, or nil where
// standard error is no terminal to show it on.
func (a *app) newProgress(what string, total int64) *progress {
	if !isTerminal(a.err) {
		return nil
	}
	return &progress{w: a.err, screen: &a.screen, what: printable(what), now: time.Now, start: time.Now(), total: total}
}

// add reports n more units done.
func (p *progress) add(n int64) {
	if p == nil {
		return
	}
	p.screen.mu.Lock()
	defer p.screen.mu.Unlock()
	p.done += n
	if p.screen.midLine || p.bar == nil && p.now().Sub(p.start) < progressDelay {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(p.total,
			progressbar.OptionSetWriter(p.w),
			progressbar.OptionSetDescription(p.what),
			progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	if p.screen.bar != p.bar {
		p.screen.hide()
		p.screen.bar = p.bar
	}
	_ = p.bar.Set64(p.done)
}

// finish takes the bar off the screen.
func (p *progress) finish() {
	if p == nil {
		return
	}
	p.screen.mu.Lock()
	defer p.screen.mu.Unlock()
	p.screen.hide()
}
