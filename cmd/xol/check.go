package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"xol/analyze"
	"xol/classify"
	"xol/image"
	"xol/notation"
	"xol/optcheck"
)

// checkOptions are the flags of check.
type checkOptions struct {
	in       string // the file of probes that name none
	symbols  string
	required choice
	format   choice
	profile  profileFlag
	kconfig  kconfigFlag
	via      viaFlag
	system   systemFlags
}

// What --require may ask for.
const (
	requireNothing  = "nothing"
	requireOptimize = "optimize"
)

const formatSARIF = "sarif"

func (a *app) checkCommand() *cobra.Command {
	opt := checkOptions{
		format:   choiceOf(formatTable, formatJSON, formatJSONL, formatCSV, formatSARIF),
		required: choiceOf(requireNothing, requireOptimize),
	}
	cmd := &cobra.Command{
		Use:   "check [flags] [SCRIPT]",
		Short: "Check the probes of a script: accepted or refused, hazards, jump or not",
		Long: `Check every probe of SCRIPT, or of standard input: a bpftrace script, a kprobe_events
or uprobe_events file, perf probe definitions, or one place per line.

A probe in a program or library names its file. Probes in a kernel, and plain places,
are in the file that --in names. What is asked of it is what xol explain answers: as
the tool does it in whose notation the probe is (or by --via), by the rules of the
kernel's own version (or --profile), and for programs by those of uprobe-linux-6.12.
A pattern stands for all functions that it matches. Attach points that are no place
in text, such as tracepoints and timers, are left out.

With --live probes that name no file are in the kernel that runs, and with --pid in the
files that a process has mapped, as xol explain has it.

Exit status: 0 where all are accepted and none is hazardous; 1 where one is refused,
hazardous, or not what --require asks for; 2 where one cannot be judged.`,
		Example: `  echo 'kprobe:vfs_read+9 { }' | xol check --in vmlinux --require optimize
  echo 'p:name vfs_read+9 fd=%di' | xol check --in vmlinux -o sarif
  echo 'uprobe:/bin/bash:readline' | xol check`,
		Args: takes("[SCRIPT]", 0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opt.system.check(cmd, "symbols", "in"); err != nil {
				return err
			}
			return a.check(&opt, append(args, "-")[0])
		},
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.in, "in", "", "the kernel, module or program that probes are in which name no file")
	flags.StringVar(&opt.symbols, "symbols", "", "take the symbols of that file from a System.map or kallsyms `FILE`")
	opt.required.addTo(cmd, flags, "require", "", "what each probe has to be besides accepted")
	opt.format.addTo(cmd, flags, "output", "o", "output format")
	opt.profile.addTo(cmd, flags, "rules to judge by (default by the kind of file)")
	opt.kconfig.addTo(cmd, flags)
	opt.via.addTo(cmd, flags)
	opt.system.addTo(flags)
	return cmd
}

// checked is a probe that has been judged.
type checked struct {
	line    int
	place   string // as it was asked for, or what a pattern stands for
	addr    uint64 // 0 where none is known
	verdict classify.Verdict
	jump    optcheck.Verdict
	hasJump bool // there is a verdict on the jump
	reason  string
	remedy  string
	failure error // it cannot be judged
}

// bad reports whether the probe is none that the script should have.
func (c *checked) bad(opt *checkOptions) bool {
	return !c.verdict.OK() || c.verdict.Hazard != nil || opt.required.value == requireOptimize && !c.jump.OK()
}

func (a *app) check(opt *checkOptions, script string) error {
	text, err := a.readAll(script)
	if err != nil {
		return err
	}
	lines := notation.Script(string(text))
	if len(lines) == 0 {
		return fileError(script, errors.New("it has no probes (an attach point, event line, definition or place per line)"))
	}
	c := checker{app: a, opt: opt, files: make(map[string]*checkedFile)}
	defer c.close()
	if c.symbols, err = a.readSymbols(opt.symbols); err != nil {
		return err
	}
	w, flush := a.results()
	out := a.newCheckListing(w, opt, script)
	result := error(nil)
	for i := range lines {
		for _, r := range c.line(&lines[i]) {
			switch {
			case r.failure != nil:
				a.report(fileError(fmt.Sprintf("%s:%d", script, r.line), r.failure))
				result = failed
				continue
			case result == nil && r.bad(opt):
				result = answerNo
			}
			out.add(&r)
		}
	}
	return flush(cmp.Or(out.close(), result))
}

// checker judges probes of many files.
type checker struct {
	*app
	opt     *checkOptions
	symbols []byte
	files   map[string]*checkedFile
	process *process // of --pid, when it is open
}

// checkedFile is a file that probes are in, with the functions that were judged.
type checkedFile struct {
	*analyzedFile
	subject *subject
	judged  map[uint64]*analyze.Result
	err     error
}

func (c *checker) close() {
	if c.process != nil {
		c.process.close()
	}
	for _, f := range c.files {
		if f.subject != nil {
			f.subject.close()
		}
	}
}

// line judges the probes of a line.
func (c *checker) line(l *notation.Line) []checked {
	p := &l.Probe
	if l.Err != nil {
		return []checked{c.mistake(l)}
	}
	f, err := c.fileFor(p)
	if err == nil {
		err = f.err
	}
	if err != nil {
		return []checked{{line: l.Number, failure: err}}
	}
	if p.Glob && p.Kind != notation.Marker {
		return c.pattern(l, f)
	}
	return c.probe(l.Number, f, p)
}

// given returns the file that was given, for a probe that names none.
func (c *checker) given(p *notation.Probe) string {
	if p.File != "" {
		return ""
	}
	return c.opt.in
}

// notUnderstood is the rule for what is no probe in any notation.
var notUnderstood = classify.Rule{ID: "notation/syntax", Reason: "no tool takes it"}

// mistake returns what becomes of a line that is not understood: the tool or Linux
// refuses it.
func (c *checker) mistake(l *notation.Line) checked {
	r := checked{line: l.Number, place: l.Text, verdict: classify.Refuse(&notUnderstood), reason: l.Err.Error()}
	if e, ok := notation.SyntaxError(l.Err); ok {
		r.verdict, r.reason = classify.Refuse(&tracingSyntax), e.Error()
	}
	return r
}

// tracingSyntax is the rule for a line that kprobe_events or uprobe_events refuses.
var tracingSyntax = classify.Rule{ID: "tracing/syntax", Errno: classify.EINVAL, Reason: "the line is not one of kprobe_events or uprobe_events"}

// fileFor returns the file that a probe is in, or the kernel that runs, and turns an
// address in p into one of that.
func (c *checker) fileFor(p *notation.Probe) (*checkedFile, error) {
	switch {
	case c.opt.system.live && p.File == "":
		f := c.open(p, "", func() (*subject, error) { return c.openKernel(&c.opt.system, c.opt.kconfig.facts) })
		if f.err == nil {
			*p = f.subject.inImage(*p)
		}
		return f, nil
	case c.opt.system.pid != 0:
		return c.fileOfProcess(p)
	}
	path, err := fileOf(c.given(p), p)
	if err != nil {
		return nil, err
	}
	return c.openPath(p, path), nil
}

// fileOfProcess returns the file of a process that a probe is in.
func (c *checker) fileOfProcess(p *notation.Probe) (f *checkedFile, err error) {
	if c.process == nil {
		if c.process, err = c.openProcess(&c.opt.system, c.opt.kconfig.facts); err != nil {
			return nil, err
		}
	}
	s, found, err := c.process.find(*p)
	if err != nil {
		return nil, err
	}
	*p = found
	if p.Kind == notation.Any {
		found.Kind = notation.Uprobe // that is what there is for a process
	}
	return c.open(&found, s.path, func() (*subject, error) { return s, nil }), nil
}

// openPath returns the file at a path, ready to be judged for a probe.
func (c *checker) openPath(p *notation.Probe, path string) *checkedFile {
	return c.open(p, path, func() (*subject, error) {
		symbols := c.symbols
		if path != c.opt.in {
			symbols = nil
		}
		return c.openFile(path, symbols, c.opt.kconfig.facts)
	})
}

// open returns what is opened at a path, ready to be judged for a probe.
func (c *checker) open(p *notation.Probe, path string, open func() (*subject, error)) *checkedFile {
	profile := c.opt.profile.value
	if profile == "" && (p.Kind == notation.Uprobe || p.Kind == notation.Marker) {
		profile = classify.Uprobe612
		if c.process != nil {
			profile = c.process.profile(path)
		}
	}
	key := path + "\x00" + profile
	if f := c.files[key]; f != nil {
		return f
	}
	f := &checkedFile{judged: make(map[uint64]*analyze.Result)}
	c.files[key] = f
	if f.subject, f.err = open(); f.err != nil {
		return f
	}
	if f.analyzedFile, f.err = f.subject.analyzed(analyze.Options{Profile: profile, Optimize: true}); f.err != nil {
		f.err = fileError(f.subject.path, f.err)
	}
	return f
}

// pattern judges all functions that a pattern matches.
func (c *checker) pattern(l *notation.Line, f *checkedFile) (rows []checked) {
	functions, err := f.Image.Match(f.Extent, l.Probe.Place)
	if err != nil {
		return []checked{{line: l.Number, failure: err}}
	}
	for i := range functions {
		p := l.Probe
		p.Place, p.Text, p.Glob = functions[i].Name, functions[i].Name, false
		p.Args = nil // an entry has them all
		rows = append(rows, c.probe(l.Number, f, &p)...)
	}
	return rows
}

// probe judges the places that a probe means.
func (c *checker) probe(line int, f *checkedFile, p *notation.Probe) []checked {
	found, err := f.subject.places(p)
	if err != nil {
		b, ok := f.bare(c.opt.via.of(p), p, err)
		if !ok {
			return []checked{{line: line, failure: err}}
		}
		return []checked{{line: line, place: p.Text, addr: b.addr, verdict: b.verdict, reason: b.reason, remedy: b.remedy()}}
	}
	if p.Kind != notation.Marker {
		found = found[:1] // the kernel takes the first, or refuses them all
	}
	rows := make([]checked, len(found))
	for i := range found {
		rows[i] = c.at(line, f, p, &found[i])
	}
	return rows
}

// at judges a probe at one place.
func (c *checker) at(line int, f *checkedFile, p *notation.Probe, at *image.Place) checked {
	r := checked{line: line, place: p.Text, addr: at.Addr}
	fn, ok := holder(f.Analysis, at.Addr)
	if !ok {
		r.failure = fmt.Errorf("%#x is in text, but belongs to no function", at.Addr)
		return r
	}
	res := f.judged[fn.Addr]
	if res == nil {
		res = f.Judge(fn)
		f.judged[fn.Addr] = res
	}
	if res.Err != nil {
		r.failure = res.Err
		return r
	}
	e := explanation{probe: p, via: c.opt.via.of(p), request: request(p, at), addr: at.Addr}
	a := answer{file: f.analyzedFile, result: res}
	a.ask(&e, at.Named)
	if a.verdict.Undecided() {
		r.failure = f.undecided(p.Text)
		return r
	}
	r.verdict, r.jump = a.verdict, a.jump
	r.hasJump = a.verdict.OK() && a.hasBreakpoint() && !a.uprobes()
	if rule := a.verdict.Rule; rule != nil {
		r.reason, r.remedy = rule.Reason, rule.Remedy
	}
	return r
}

// optimize says whether the breakpoint may become a jump.
func (c *checked) optimize() string {
	switch {
	case !c.hasJump:
		return "-"
	case c.jump.OK():
		return probeOK
	}
	return probeRefused
}

// hazard returns the sentence on what goes wrong; empty where nothing does.
func (c *checked) hazard() string {
	if c.verdict.Hazard == nil {
		return ""
	}
	return c.verdict.Hazard.Text
}

// message says in one sentence what is wrong with the probe; empty where nothing is.
func (c *checked) message(opt *checkOptions) string {
	var parts []string
	switch {
	case !c.verdict.OK():
		parts = append(parts, c.reason)
		if c.remedy != "" {
			parts = append(parts, "instead: "+c.remedy)
		}
	case c.verdict.Hazard != nil:
		parts = append(parts, "the kernel accepts it and then executes the instruction wrongly: "+c.hazard())
	case opt.required.value == requireOptimize && !c.jump.OK():
		parts = append(parts, "the breakpoint stays a breakpoint")
		if c.jump.Rule != nil {
			parts = append(parts, c.jump.Rule.Reason)
		}
	}
	return strings.Join(parts, "; ")
}

// rule returns the id of the rule or hazard that decides; empty where there is none.
func (c *checked) rule(opt *checkOptions) string {
	switch {
	case c.verdict.Rule != nil:
		return c.verdict.Rule.ID
	case c.verdict.Hazard != nil:
		return c.verdict.Hazard.ID
	case opt.required.value == requireOptimize && c.jump.Rule != nil:
		return c.jump.Rule.ID
	}
	return ""
}
