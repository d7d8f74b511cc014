package main

import (
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
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
	p.screen.bar = p.bar
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
