package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"

	"github.com/spf13/cobra"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/events"
	"xol/image"
	"xol/kernel"
	"xol/notation"
	"xol/optcheck"
	"xol/place"
	"xol/registration"
)

// explainOptions are the flags of explain.
type explainOptions struct {
	symbols string
	context int
	region  bool
	armed   []string // places of other probes
	format  choice
	profile profileFlag
	kconfig kconfigFlag
	via     viaFlag
	system  systemFlags
}

func (a *app) explainCommand() *cobra.Command {
	opt := explainOptions{format: choiceOf(formatTable, formatJSON)}
	cmd := &cobra.Command{
		Use:   "explain [flags] [FILE] PLACE…",
		Short: "Explain one address: may it be probed, what happens, why, what else could be done",
		Long: `Explain one address of an ELF file: the instructions around it and the verdict on
a probe there, with the rule, what stands in the way, the error number and what to
do instead; and whether the breakpoint may become a jump. Several places of a file are
explained one after the other.

PLACE is symbol, symbol+0x1c, 0xffffffff81000000 (an address), file:0x1040 (an
offset in the file, as uprobe_events takes it) or source.c:123 (with DWARF lines).
With DWARF a function that is only inlined has a place wherever that is. A probe as
tracers write it is a place as well: kprobe:vfs_read+4, uprobe:/bin/bash:main,
usdt:/path:provider:name, a line of kprobe_events, vfs_read%return. One that names
its file needs no FILE.

A kprobe is asked for as register_kprobe takes it, or by --via; a probe in the
notation of a tracer as that tracer does it, which refuses more. What such an interface
says of a symbol that it does not know is an answer as well: kprobe_events takes one of
a module that is not loaded, and waits for that.

The name of a function alone means its entry as Linux has it: on ppc64 with two
entries the local one, or the site of ftrace; an address is taken as it is.

Names and lines of a stripped program are taken from its debug file, beside it or
below /usr/lib/debug; those of a stripped kernel from its own table (kallsyms).

With --region also what the jump would replace, who can land there, and the detour
buffer that it would lead to, as the first profile that allows it has them.

For a Linux kernel or module the verdicts are those of its own version and isa, else
of isa and uprobe-linux-6.12; that of --profile comes first, in the place of another
version of the same. Options of the kernel that neither its file nor --kconfig tells
are taken to be Debian's; where the answer depends on one, it is named.

With --live the kernel that runs is asked, with its modules (as by root, xol explain
--live ext4:ext4_file_read_iter+0x2f): its text in memory, its
symbols, options, blacklist, ftrace sites, and the probes that are registered now,
with which a jump may not collide. What the system does not show is named on standard
error, with what is lost by it; what hangs on that is not judged. With --pid it is a
process, as in xol explain --pid 1 libc:malloc: PLACE is an address in its memory, a
symbol of any file that it has mapped, or libc:malloc for one of them; text in memory
that is not the file's is judged as it is.

Exit status: 1 where the first of these profiles refuses a probe, 2 where the file
tells too little to judge one, as a kernel without names does.`,
		Example: `  xol explain /bin/bash main
  xol explain --region vmlinux vfs_read+9
  xol explain --profile uprobe-linux-6.12 -o json ./a.out main.c:12
  xol explain uretprobe:/bin/bash:readline
  xol explain --via kprobe_events --kconfig /boot/config-6.1.0-50-amd64 vmlinux vfs_read+9`,
		Args: takesUnlessLive(&opt.system, "[FILE] PLACE…", 1, math.MaxInt, 0),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if opt.system.any() {
				return opt.system.complete(typed), cobra.ShellCompDirectiveNoFileComp
			}
			return a.completePlace(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.context < 0 {
				return usageError(cmd, errors.New("--context must not be negative"))
			}
			if err := opt.system.check(cmd, "symbols"); err != nil {
				return err
			}
			given := ""
			if len(args) > 1 && !opt.system.any() {
				given, args = args[0], args[1:]
			}
			return a.explain(&opt, given, args)
		},
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.symbols, "symbols", "", "take the symbols from a System.map or kallsyms `FILE`")
	flags.IntVar(&opt.context, "context", 4, "show `N` instructions before and after the one asked for")
	flags.StringArrayVar(&opt.armed, "armed", nil, "another probe is armed at `PLACE`, which the jump may not overwrite; repeatable")
	flags.BoolVar(&opt.region, "region", false, "show the region that the jump replaces, and the detour buffer")
	opt.format.addTo(cmd, flags, "output", "o", "output format")
	opt.profile.addTo(cmd, flags, "rules to judge by first (default by the kind of file)")
	opt.kconfig.addTo(cmd, flags)
	opt.via.addTo(cmd, flags)
	opt.system.addTo(flags)
	return cmd
}

// completePlace offers the functions of FILE for PLACE.
func (a *app) completePlace(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if args[0] == "-" || isStream(args[0]) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	img, err := a.openImage(args[0], nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer img.Close()
	functions, err := img.Match(image.ExtentNext, typed+"*")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range functions {
		if name := functions[i].Name; printable(name) == name {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// explain explains the places in the file that is given, or in those that they name.
func (a *app) explain(opt *explainOptions, given string, places []string) error {
	x := explainer{app: a, opt: opt, given: given, subjects: make(map[string]*subject), files: make(map[explainedFile]*analyzedFile)}
	defer x.close()
	w, flush := a.results()
	var result error
	written := false
	for i, where := range places {
		e, err := x.place(where)
		if i == 0 && opt.system.any() && err != nil && namesELF(where) {
			return flush(fmt.Errorf("%s takes no file, and %q is one", opt.system.name(), where))
		}
		if err == nil {
			err = x.write(w, e, written)
			written = true
		}
		switch {
		case len(places) == 1:
			result = err
		case err == answerNo:
			result = cmp.Or(result, err)
		case err != nil:
			a.report(err)
			result = failed
		}
	}
	return flush(result)
}

// explained is all that is told about one place.
type explained interface {
	writeText(w *bufio.Writer, p palette, context int)
	writeJSON(w io.Writer, context int) error
	status() error
}

// explainer explains places, and keeps open what they are in.
type explainer struct {
	*app
	opt      *explainOptions
	given    string // file
	subjects map[string]*subject
	files    map[explainedFile]*analyzedFile
	process  *process // of --pid, when it is open
}

// explainedFile is a file by the rules of one profile.
type explainedFile struct {
	*subject
	profile string
}

func (x *explainer) close() {
	if x.process != nil {
		x.process.close()
	}
	for _, s := range x.subjects {
		s.close()
	}
}

// place explains one place.
func (x *explainer) place(where string) (explained, error) {
	probe, err := notation.Parse(where)
	if err != nil {
		return nil, err
	}
	s, err := x.openFor(&probe)
	if err != nil {
		return nil, err
	}
	e, err := x.explain(s, &probe)
	if err != nil {
		return nil, fileError(s.path, err)
	}
	return e, nil
}

// write writes an explanation, as text apart from the one before.
func (x *explainer) write(w *bufio.Writer, e explained, apart bool) error {
	if x.opt.format.value == formatJSON {
		if err := e.writeJSON(w, x.opt.context); err != nil {
			return err
		}
		return e.status()
	}
	if apart {
		w.WriteByte('\n')
	}
	e.writeText(w, x.palette(), x.opt.context)
	return e.status()
}

// openFor opens what a probe is asked about: what runs, the file that is given, or the
// one that the probe names.
func (x *explainer) openFor(p *notation.Probe) (*subject, error) {
	switch {
	case x.opt.system.live && p.File == "":
		s, err := x.open("", func() (*subject, error) { return x.openKernel(&x.opt.system, x.opt.kconfig.facts) })
		if err == nil {
			*p = s.inImage(*p)
		}
		return s, err
	case x.opt.system.pid != 0:
		return x.openInProcess(p)
	}
	path, err := fileOf(x.given, p)
	if err != nil {
		return nil, err
	}
	return x.open(path, func() (*subject, error) {
		symbols, err := x.readSymbols(x.opt.symbols)
		if err != nil {
			return nil, err
		}
		return x.openFile(path, symbols, x.opt.kconfig.facts)
	})
}

// open returns what is opened at a path, at most once.
func (x *explainer) open(path string, open func() (*subject, error)) (*subject, error) {
	if s := x.subjects[path]; s != nil {
		return s, nil
	}
	s, err := open()
	if err == nil {
		x.subjects[path] = s
	}
	return s, err
}

// openInProcess opens the file of a process that a probe is in.
func (x *explainer) openInProcess(p *notation.Probe) (s *subject, err error) {
	if x.process == nil {
		if x.process, err = x.openProcess(&x.opt.system, x.opt.kconfig.facts); err != nil {
			return nil, err
		}
	}
	s, found, err := x.process.find(*p)
	if err == nil {
		*p = found
	}
	return s, err
}

// analyzed returns what a profile has to say of a file.
func (x *explainer) analyzed(s *subject, profile string) (*analyzedFile, error) {
	key := explainedFile{s, profile}
	if f := x.files[key]; f != nil {
		return f, nil
	}
	armed, err := resolveAll(s.img, x.opt.armed)
	if err != nil {
		return nil, err
	}
	f, err := s.analyzed(analyze.Options{Profile: profile, Optimize: true, Armed: armed})
	if err == nil {
		x.files[key] = f
	}
	return f, err
}

// status returns what the exit status tells of the first profile's answer.
func (e *explanation) status() error {
	a := &e.answers[0]
	switch {
	case a.verdict.Undecided():
		return a.file.undecided(fmt.Sprintf("a probe at %#x", a.target(e.addr)))
	case !a.verdict.OK():
		return answerNo
	}
	return nil
}

// explanation is all that is told about one address.
type explanation struct {
	place   string // as it was asked for
	probe   *notation.Probe
	via     registration.Via
	request analyze.Request
	addr    uint64
	also    []uint64 // other addresses that the place could mean
	inlined bool     // the place is a function that is only inlined
	answers []answer // by profile; at least one
	region  *region  // nil where it was not asked for, or where there is none
}

// answer is what one profile says.
type answer struct {
	file    *analyzedFile
	result  *analyze.Result // of the function that holds the address
	entry   uint64          // of the function, where it was asked for by name; else 0
	verdict classify.Verdict
	jump    optcheck.Verdict
	forms   []*analyze.Result // the function as other CPUs may have it
	// returns is the rule that forbids a return probe there; nil where there may be
	// one.
	returns   *classify.Rule
	returning bool // a return probe is asked for
	via       registration.Via
	elsewhere []refusal        // by other interfaces
	assumed   []kernel.Setting // options that the answer depends on
}

// refusal is what an interface refuses that another one takes.
type refusal struct {
	via  []registration.Via
	rule *classify.Rule
}

// explain explains a probe on a file, or on what runs.
func (x *explainer) explain(s *subject, probe *notation.Probe) (explained, error) {
	meant, err := s.places(probe)
	if err != nil {
		return x.explainBare(s, probe, err)
	}
	e := &explanation{place: probe.Text, probe: probe, via: x.opt.via.of(probe), addr: meant[0].Addr, inlined: meant[0].Inlined}
	e.request = request(probe, &meant[0])
	for _, p := range meant[1:] {
		e.also = append(e.also, p.Addr)
	}
	for _, name := range explainedProfiles(s.img.Kind(), x.opt.profile.value, s.uprobes()) {
		file, err := x.analyzed(s, name)
		if err != nil {
			return nil, err
		}
		if err := e.answer(file, meant[0].Named); err != nil {
			return nil, err
		}
	}
	if x.opt.region {
		if e.region, err = e.findRegion(); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// answer adds the answer of a profile; named says that the place was asked for by the
// function's name.
func (e *explanation) answer(file *analyzedFile, named bool) error {
	f, ok := holder(file.Analysis, e.addr)
	if !ok {
		return fmt.Errorf("%#x is in text, but belongs to no function", e.addr)
	}
	if file.freedText(&f) && mechanismOf(file.Profile.Name()) != classify.Kprobes {
		if len(e.answers) == 0 {
			return fmt.Errorf("%s: the kernel has freed this text after booting", f.Name)
		}
		return nil // there is no instruction to be judged
	}
	res := file.Judge(f)
	if res.Err != nil {
		return res.Err
	}
	a := answer{file: file, result: res, forms: file.Forms(res)}
	a.ask(e, named)
	e.answers = append(e.answers, a)
	return nil
}

// ask takes all that the profile says of the probe: of the instruction, of a jump in
// its place, and then of the interface, which may refuse both.
func (a *answer) ask(e *explanation, named bool) {
	a.judge(e.addr, named)
	if i, start := decode.Find(a.result.Insts, a.target(e.addr)); start && i < len(a.result.Optimize) {
		a.jump = a.result.Optimize[i]
	}
	a.register(e)
}

// judge takes the verdict on a probe at addr; named says that it was asked for
// by the function's name.
func (a *answer) judge(addr uint64, named bool) {
	if named {
		a.entry = a.file.Entry(a.result)
	}
	at := cmp.Or(a.entry, addr)
	a.verdict = a.file.At(a.result, at)
	if a.verdict.MovedTo == 0 && at != addr {
		a.verdict.MovedTo = at
	}
}

// register asks the interface by which the kernel is asked, which may refuse what the
// instruction allows, and the others.
func (a *answer) register(e *explanation) {
	a.returning, a.via = e.probe.Return, e.via
	a.assumed = a.file.DependsOn(a.result, cmp.Or(a.entry, e.addr), e.via, &e.request)
	switch mechanismOf(a.profile()) {
	case classify.Uprobes:
		if a.verdict.OK() && a.verdict.Hazard == nil {
			f := &a.result.Function
			a.verdict.Hazard = registration.UprobeHazard(a.returning, e.addr == f.Addr || e.addr == f.Addr+f.LocalEntry)
		}
	case classify.Kprobes:
		if !a.verdict.Undecided() {
			a.registerKprobe(e)
		}
	}
}

// registerKprobe does so for a kprobe.
func (a *answer) registerKprobe(e *explanation) {
	returning := e.request
	returning.Return = true
	a.returns = a.file.Registration(a.result, e.via, &returning)
	rule := a.file.Registration(a.result, e.via, &e.request)
	if rule == nil {
		rule = a.arguments(e)
	}
	switch {
	case rule != nil:
		a.verdict, a.jump = classify.Refuse(rule), optcheck.Verdict{}
	case e.via == registration.BPF: // no breakpoint is asked for
		a.verdict, a.jump = classify.Verdict{Exec: classify.ExecFtrace}, optcheck.Verdict{}
	case e.via == registration.Register && a.verdict.OK():
		a.elsewhere = a.refusedElsewhere(&e.request)
	}
}

// arguments returns the rule by which tracing refuses what the line of an event records
// there: the arguments of a function are known at its entry only. It is nil where there
// is nothing against it.
func (a *answer) arguments(e *explanation) *classify.Rule {
	if e.probe.Tool != notation.Tracefs || len(e.probe.Args) == 0 {
		return nil
	}
	known := &placeSymbols{entry: a.file.OnEntry(a.result, e.addr)}
	_, err := events.Parse(e.probe.Text, events.Options{Kind: events.Kprobe, Symbols: known})
	mistake, ok := notation.SyntaxError(err)
	if !ok {
		return nil
	}
	rule := tracingSyntax
	rule.Reason = mistake.Error()
	return &rule
}

// refusedElsewhere returns what tracing refuses of what register_kprobe takes.
func (a *answer) refusedElsewhere(q *analyze.Request) (refused []refusal) {
	for _, via := range []registration.Via{registration.KprobeEvents, registration.Perf} {
		rule := a.file.Registration(a.result, via, q)
		switch last := len(refused) - 1; {
		case rule == nil:
		case last >= 0 && refused[last].rule == rule:
			refused[last].via = append(refused[last].via, via)
		default:
			refused = append(refused, refusal{[]registration.Via{via}, rule})
		}
	}
	return refused
}

// target returns where a probe asked for at addr really stands.
func (a *answer) target(addr uint64) uint64 { return cmp.Or(a.verdict.MovedTo, addr) }

// hasBreakpoint reports whether the probe, where it is allowed, is a
// breakpoint: through ftrace it is none.
func (a *answer) hasBreakpoint() bool { return a.verdict.Exec != classify.ExecFtrace }

// explainedProfiles returns the profiles that have something to say about a
// kind of file, first the one that was asked for. That of a kernel's own version has
// no name here; uprobes is the one for a program.
func explainedProfiles(kind image.Kind, first, uprobes string) []string {
	const own = ""
	names := []string{classify.ISA, uprobes}
	if kind == image.KindKernel || kind == image.KindModule {
		names = []string{own, classify.ISA}
	}
	if first == "" {
		return names
	}
	chosen := []string{first}
	for _, name := range names {
		m := mechanismOf(name)
		if name == own {
			m = classify.Kprobes
		}
		if m != mechanismOf(first) {
			chosen = append(chosen, name)
		}
	}
	return chosen
}

// holder returns the function that holds addr, or the one before it where addr
// stands between two functions.
func holder(an *analyze.Analysis, addr uint64) (image.Function, bool) {
	if f, ok := an.FunctionAt(addr); ok {
		return f, true
	}
	functions, err := an.Image.Functions(image.ExtentNext)
	if err != nil {
		return image.Function{}, false
	}
	i := sort.Search(len(functions), func(i int) bool { return functions[i].Addr > addr }) - 1
	if i < 0 || addr >= functions[i].End() {
		return image.Function{}, false
	}
	return functions[i], true
}

// around returns the instructions around the one that holds the address, at
// most n on either side, and the index of that one; -1 where there is none.
func (e *explanation) around(n int) (insts []decode.Inst, asked int) {
	a := &e.answers[0]
	all := a.result.Insts
	i, _ := decode.Find(all, e.addr)
	if i < 0 || a.file.freedText(&a.result.Function) {
		return nil, -1
	}
	from := max(0, i-n)
	return all[from:min(len(all), i+n+1)], i - from
}

// note is what is told about a place that a table of the file speaks of.
type note struct {
	kind place.Kind
	text string
}

var (
	// siteNotes are about single instructions.
	siteNotes = [...]note{
		{place.Ftrace, "ftrace site"},
		{place.JumpLabel, "jump label"},
		{place.StaticCall, "static call"},
		{place.Bug, "BUG or WARN"},
		{place.ExTable, "its fault is handled (exception table)"},
		{place.ExFixup, "a handled fault goes on here"},
		{place.CFIPreamble, "preamble of a control-flow check"},
		{place.CFITrap, "trap of a control-flow check"},
		{place.Data, "data"},
	}
	// textNotes are about whole pieces of text.
	textNotes = [...]note{
		{place.Blacklist, "kprobe blacklist"},
		{place.EntryText, "entry text"},
		{place.InitText, "init text"},
	}
)

// notes returns those of the notes that apply to [lo, hi).
func (e *explanation) notes(of []note, lo, hi uint64) []string {
	var kinds place.Kind
	for _, m := range e.answers[0].result.Marks {
		if m.Addr < hi && lo < m.End() {
			kinds |= m.Kind
		}
	}
	var texts []string
	for _, n := range of {
		if kinds&n.kind != 0 {
			texts = append(texts, n.text)
		}
	}
	return texts
}

// instNotes returns what is told about one instruction.
func (e *explanation) instNotes(inst *decode.Inst) []string {
	notes := append(e.notes(siteNotes[:], inst.Addr, inst.Next()), e.answers[0].bootNotes(inst)...)
	notes = append(notes, e.answers[0].file.probeNotes(inst.Addr, inst.Next())...)
	holds := func(addr uint64) bool { return inst.Addr <= addr && addr < inst.Next() }
	if f := &e.answers[0].result.Function; f.LocalEntry != 0 && holds(f.Addr) {
		notes = append(notes, "global entry")
	} else if f.LocalEntry != 0 && holds(f.Addr+f.LocalEntry) {
		notes = append(notes, "local entry")
	}
	for i := range e.answers {
		a := &e.answers[i]
		if holds(a.verdict.MovedTo) {
			if a.verdict.OK() {
				notes = append(notes, "here the probe is put ("+a.profile()+")")
			} else {
				notes = append(notes, "here the probe would be put ("+a.profile()+")")
			}
		}
		if holds(a.verdict.Culprit) && !holds(e.addr) {
			notes = append(notes, "in the way ("+a.profile()+")")
		}
	}
	return notes
}

func (a *answer) profile() string { return a.file.Profile.Name() }

// uprobes reports whether the answer is about uprobes.
func (a *answer) uprobes() bool { return mechanismOf(a.profile()) == classify.Uprobes }

// mechanismOf returns whose rules the profile of that name has.
func mechanismOf(profile string) classify.Mechanism {
	m, _, _ := classify.ParseProfile(profile)
	return m
}

// source returns the source line of the address, empty where it is not known.
func (e *explanation) source() string {
	file, line, ok := e.answers[0].file.Image.Line(e.addr)
	if !ok {
		return ""
	}
	return file + ":" + strconv.Itoa(line)
}

// placeOf names an address.
func (a *answer) placeOf(addr uint64) string {
	name, base := a.file.Image.Symbolize(addr)
	if name == "" {
		return fmt.Sprintf("%#x", addr)
	}
	return placeName(a.file.moduleName(name, addr), addr-base)
}
