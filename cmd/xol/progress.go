package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progressDelay is how long work goes on before it shows its progress.
const progressDelay = time.Second

// progress shows how far work has come, once it turns out to take long. A nil
// progress shows nothing.
type progress struct {
	w           io.Writer
	what        string
	now         func() time.Time
	start       time.Time
	total, done int64
	bar         *progressbar.ProgressBar // nil until it is shown
}

// newProgress returns the progress of work on total units, or nil where it is
// not wanted: standard error is no terminal, or the results themselves run
// over one.
func (a *app) newProgress(what string, total int64) *progress {
	if !isTerminal(a.err) || isTerminal(a.out) {
		return nil
	}
	return &progress{w: a.err, what: what, now: time.Now, start: time.Now(), total: total}
}

// add reports n more units done.
func (p *progress) add(n int64) {
	if p == nil {
		return
	}
	p.done += n
	if p.bar == nil {
		if p.now().Sub(p.start) < progressDelay {
			return
		}
		p.bar = progressbar.NewOptions64(p.total,
			progressbar.OptionSetWriter(p.w),
			progressbar.OptionSetDescription(p.what),
			progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	_ = p.bar.Set64(p.done) // progress that cannot be shown is no error
}

// finish takes the bar off the screen.
func (p *progress) finish() {
	if p != nil && p.bar != nil {
		_ = p.bar.Finish()
	}
}
