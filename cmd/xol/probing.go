package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"xol/selection"
	"xol/session"
)

// probingRun is one run of a command that probes a program.
type probingRun struct {
	*app
	opt       *targetOptions
	target    target
	wishes    []wish
	selection *selection.Selection
	// probes returns what stands at places of a module.
	probes func(m *session.Module, places []selection.Place) []session.Probe
	hit    func(*session.Hit)
	// tick is called at each interval, unless that is 0, and results once at the end.
	interval time.Duration
	tick     func(s probing) error
	results  func(s probing) error

	w       *bufio.Writer // of the results
	flush   func(error) error
	session probing
}

// newRun prepares a run with probes as they were written, which check looks at. What it
// does with them is for the caller to set, and then to have it carry out.
func (a *app) newRun(opt *targetOptions, probes []string, t target, check func([]wish) error) (*probingRun, error) {
	list, err := parseWishes(probes)
	if err == nil {
		err = check(list)
	}
	if err != nil {
		return nil, err
	}
	r := &probingRun{app: a, opt: opt, target: t, wishes: list}
	if r.selection, err = opt.selectionOf(list); err != nil {
		return nil, err
	}
	r.w, r.flush, err = a.openResults(opt.out)
	return r, err
}

// carryOut does it, or only shows what would be done.
func (r *probingRun) carryOut() error {
	if r.opt.dryRun {
		r.interval, r.results = 0, func(probing) error { return r.plan(r.w) }
	}
	return r.flush(r.do())
}

// spot is the Data of a probe: where it was wanted, and by which probe.
type spot struct {
	selection.Place
	recorder *recorder // nil where nothing is recorded
}

func spotOf(p *session.Placed) *spot { return p.Probe.Data.(*spot) }

// do starts or attaches, waits, and reports.
func (r *probingRun) do() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	var err error
	if r.session, err = r.start(ctx); err != nil {
		return err
	}
	idle := r.idle()
	if idle || r.opt.dryRun && r.target.pid != 0 {
		cancel() // all is known
	}
	status, ended, err := r.wait(ctx, signals)
	if err = errors.Join(err, r.session.Close()); err != nil {
		return err
	}
	code := 0
	switch {
	case r.opt.dryRun:
	case idle:
		code = int(failed)
	case ended:
		code = exitCode(status)
	}
	return r.conclude(code)
}

func (r *probingRun) start(ctx context.Context) (probing, error) {
	opt := session.Options{Follow: !r.opt.noFollow, DryRun: r.opt.dryRun, Hit: r.hit, Select: func(m *session.Module) ([]session.Probe, error) {
		places, err := r.selection.In(ctx, &selection.Module{Path: m.Path, Analysis: m.Analysis, Program: m.Program, Process: m.PID})
		if err != nil {
			return nil, err
		}
		return r.probes(m, places), nil
	}}
	if r.target.pid != 0 {
		return r.attach(ctx, r.target.pid, opt)
	}
	path, err := exec.LookPath(r.target.command[0])
	if err != nil {
		return nil, err
	}
	return r.launch(ctx, session.Command{Path: path, Args: r.target.command}, opt)
}

// idle reports whether a process that runs has nothing of what is wanted, or none of it
// can be probed, and nothing of it may come.
func (r *probingRun) idle() bool {
	return r.target.pid != 0 && !slices.ContainsFunc(r.session.Placed(), stands) &&
		!slices.ContainsFunc(r.selection.Missing(), func(e *selection.MissingError) bool { return e.Later })
}

func stands(p *session.Placed) bool { return whyNot(p) == "" }

// wait waits for the end: of the program, of the time, or that somebody wants.
func (r *probingRun) wait(ctx context.Context, signals <-chan os.Signal) (status syscall.WaitStatus, ended bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.opt.duration > 0 {
		ctx, cancel = context.WithTimeout(ctx, r.opt.duration)
		defer cancel()
	}
	type end struct {
		status syscall.WaitStatus
		known  bool
		err    error
	}
	ends := make(chan end, 1)
	go func() {
		status, known, err := r.session.Wait(ctx)
		ends <- end{status, known, err}
	}()
	var ticks <-chan time.Time
	if r.interval > 0 {
		t := time.NewTicker(r.interval)
		defer t.Stop()
		ticks = t.C
	}
	for {
		select {
		case e := <-ends:
			if e.err != nil && ctx.Err() != nil {
				e.err = nil // it was we who ended it
			}
			return e.status, e.known, e.err
		case s := <-signals:
			r.signal(s, cancel)
		case <-ticks:
			if err := r.tick(r.session); err != nil {
				return status, false, err
			}
		}
	}
}

// signal does what a signal to xol means. A process that was attached to goes on
// without probes. A program that was started gets what ends programs; what a terminal
// sends it has already got.
func (r *probingRun) signal(s os.Signal, stop context.CancelFunc) {
	if r.target.pid != 0 {
		stop()
		return
	}
	if s == syscall.SIGTERM || s == syscall.SIGHUP {
		if p, err := os.FindProcess(r.session.PID()); err == nil {
			_ = p.Signal(s) // it may have ended
		}
	}
}

// conclude prints what has come of it, and returns the exit status.
func (r *probingRun) conclude(code int) error {
	missing := r.selection.Missing()
	for _, e := range missing {
		r.report(e)
	}
	if len(missing) > 0 && len(r.session.Placed()) == 0 {
		return failed
	}
	if err := r.results(r.session); err != nil {
		return err
	}
	if err := r.summarize(code); err != nil {
		return err
	}
	if code != 0 {
		return exitError(code)
	}
	return nil
}

// exitCode returns a program's exit status as shells have it.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// openResults returns where results go, and the function that ends them with the
// command's own error.
func (a *app) openResults(path string) (*bufio.Writer, func(error) error, error) {
	if path == "" {
		w, flush := a.results()
		return w, flush, nil
	}
	f, err := createResults(path)
	if err != nil {
		return nil, nil, fileError(path, err)
	}
	w := bufio.NewWriter(f)
	return w, func(err error) error {
		var status exitError
		noResults := err != nil && (!errors.As(err, &status) || status == failed)
		if closeErr := errors.Join(w.Flush(), f.close(noResults)); closeErr != nil {
			return fileError(path, closeErr)
		}
		return err
	}, nil
}

// resultFile is a file of results. What it held stays until there are some.
type resultFile struct {
	*os.File
	isNew, begun bool
}

func createResults(path string) (*resultFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil || !errors.Is(err, os.ErrExist) {
		return &resultFile{File: f, isNew: true}, err
	}
	f, err = os.OpenFile(path, os.O_WRONLY, 0)
	return &resultFile{File: f}, err
}

func (f *resultFile) Write(data []byte) (int, error) {
	if err := f.begin(); err != nil {
		return 0, err
	}
	return f.File.Write(data)
}

// begin takes away what the file held: not of what is no file, such as a pipe.
func (f *resultFile) begin() error {
	begun := f.begun
	f.begun = true
	if begun || f.isNew {
		return nil
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return f.Truncate(0)
}

// close ends the file. Where there came to be no results, it is as it was.
func (f *resultFile) close(noResults bool) error {
	if noResults && !f.begun {
		err := f.Close()
		if f.isNew {
			err = errors.Join(err, os.Remove(f.Name()))
		}
		return err
	}
	return errors.Join(f.begin(), f.Close())
}

// resultPalette is that of the results: a file has no colours.
func (a *app) resultPalette(path string) palette { return a.palette() && path == "" }
