package analyze

import (
	"context"
	"slices"
	"strings"
	"sync"

	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/optcheck"
	"xol/place"
)

// survey is what the whole file tells of who can land where.
type survey struct {
	landings place.Landings
	// unresolved are the jumps that may go anywhere in the function at an
	// address.
	unresolved map[uint64][]optcheck.Unresolved
	data       *markIndex // jump tables in text
	unread     bool       // tables of the file are damaged
}

// wantsSurvey reports whether functions are judged by what the whole file tells.
func (a *Analysis) wantsSurvey() bool {
	return a.Optimizer != nil && a.Optimizer.WholeProgram() ||
		a.Profile.Name() == classify.ISA && a.ISA.TablesInText()
}

// surveyed returns the survey of the file, which is made once.
func (a *Analysis) surveyed(ctx context.Context) (*survey, error) {
	a.surveying.Lock()
	defer a.surveying.Unlock()
	if a.survey != nil {
		return a.survey, nil
	}
	s, err := a.makeSurvey(ctx)
	if err == nil {
		a.survey = s
	}
	return s, err
}

func (a *Analysis) makeSurvey(ctx context.Context) (*survey, error) {
	program := optcheck.Program{
		Arch:     a.ISA,
		Memory:   a.Image,
		Absolute: !a.Image.PositionIndependent(),
		Starts:   new(optcheck.Addresses),
	}
	for _, r := range a.Image.Text() {
		program.Starts.AddRange(r.Addr, r.End())
	}
	for i := range a.functions {
		program.Starts.Add(a.functions[i].Addr)
	}
	var tables place.Landings
	var unread error
	var reading sync.WaitGroup
	reading.Go(func() { tables, unread = a.Image.Landings() })
	var all optcheck.Findings
	err := parallel(ctx, a.workers, a.executable(), func() func(*optcheck.Findings, image.Function) {
		var r Result
		return func(found *optcheck.Findings, f image.Function) {
			unresolved := len(found.Unresolved)
			if a.read(&r, f) {
				r.cutPadding()
				a.decode(&r, nil)
				program.Survey(&r.Func, found)
			}
			if f.Section == replacements {
				found.Unresolved = found.Unresolved[:unresolved]
			}
		}
	}, func(found *optcheck.Findings) error {
		all.Add(found)
		*found = optcheck.Findings{}
		return nil
	})
	reading.Wait()
	if err != nil {
		return nil, err
	}
	s := &survey{
		landings:   program.Merge(tables, all.Landings),
		unresolved: a.jumpsByFunction(&all),
		data:       newMarkIndex(all.Data, nil),
		unread:     unread != nil,
	}
	return s, nil
}

// replacements is the section of the pieces of code that a kernel copies over
// its functions. Their branches are those of the functions then. An indirect
// jump there stands for one through a retpoline, to a whole pointer.
const replacements = ".altinstr_replacement"

// executable returns all text that is executed: the functions, and what a
// kernel copies over them.
func (a *Analysis) executable() []image.Function {
	list := slices.Clone(a.functions)
	list = slices.DeleteFunc(list, func(f image.Function) bool { return f.Section == replacements })
	for _, r := range a.Image.Text() {
		if r.Section == replacements {
			list = append(list, image.Function{Name: r.Section, Section: r.Section, Addr: r.Addr, Size: r.Size})
		}
	}
	return list
}

// jumpsByFunction returns the unresolved jumps by the functions that they may go to:
// their own, and its parts that stand elsewhere.
func (a *Analysis) jumpsByFunction(all *optcheck.Findings) map[uint64][]optcheck.Unresolved {
	reached := map[uint64][]optcheck.Unresolved{}
	named := map[string][]optcheck.Unresolved{}
	for _, u := range all.Unresolved {
		if f, ok := a.FunctionAt(u.Addr); ok {
			reached[f.Addr] = append(reached[f.Addr], u)
			named[f.Name] = append(named[f.Name], u)
		}
	}
	if len(reached) == 0 {
		return nil
	}
	parts := map[uint64][]optcheck.Unresolved{}
	for _, l := range all.Parts {
		from, _ := a.FunctionAt(l.From)
		if to, ok := a.FunctionAt(l.Addr); ok {
			parts[to.Addr] = reached[from.Addr]
		}
	}
	for i := range a.functions {
		f := &a.functions[i]
		if name, _, cold := strings.Cut(f.Name, coldSuffix); cold && len(named[name]) > 0 {
			parts[f.Addr] = named[name]
		}
	}
	for addr, jumps := range parts {
		if len(reached[addr]) == 0 {
			reached[addr] = jumps
		}
	}
	return reached
}

// coldSuffix is what compilers add to a function's name for the part that is
// seldom executed.
const coldSuffix = ".cold"

// optimizable returns r as an Optimizer is asked about it.
func (a *Analysis) optimizable(r *Result, whole *survey) *optcheck.Function {
	f := &r.asked
	*f = optcheck.Function{Func: &r.Func, Verdicts: r.Verdicts, Armed: within(a.armed, r.Addr, r.End()+decode.MaxLen)}
	if whole != nil {
		f.Slack = a.slack(&r.Function)
		f.Landings = whole.landings.Within(r.Addr, r.End()+f.Slack)
		f.Unresolved = whole.unresolved[r.Function.Addr]
		f.Unread = whole.unread
	}
	return f
}

// within returns the part of a sorted list in [lo, hi).
func within(list []uint64, lo, hi uint64) []uint64 {
	from, _ := slices.BinarySearch(list, lo)
	to, _ := slices.BinarySearch(list[from:], hi)
	return list[from:][:to]
}

// slack returns the number of bytes after f that are padding.
func (a *Analysis) slack(f *image.Function) uint64 {
	i := lastAtOrBelow(a.functions, f.Addr)
	limit := uint64(0)
	if i >= 0 && i+1 < len(a.functions) {
		limit = a.functions[i+1].Addr
	}
	for _, r := range a.Image.Text() {
		if r.Addr <= f.Addr && f.Addr < r.End() && (limit == 0 || limit > r.End()) {
			limit = r.End()
		}
	}
	if limit <= f.End() {
		return 0
	}
	for _, m := range a.marks.touching(nil, f.End(), limit) {
		if m.Kind&optcheck.MustStay != 0 {
			return 0
		}
	}
	return limit - f.End()
}

// Flow is the control flow of a judged function.
type Flow struct {
	Landings place.Landings // who can land where, one for each address, sorted
	Blocks   []optcheck.Block
	// Entries are where execution may come by other ways than the function's own
	// direct branches, or from the instruction before: its start, the returns of what
	// it calls, entries of jump tables, and what else the file tells. Sorted; they may
	// be inside of instructions.
	Entries []uint64
	// Open says that there may be more of them, at any instruction.
	Open bool
	// Slack is the number of bytes after the function that are padding.
	Slack uint64
}

// Flow returns the control flow of a judged function, as far as the whole file
// tells.
func (a *Analysis) Flow(r *Result) (*Flow, error) {
	whole, err := a.surveyed(context.Background())
	if err != nil {
		return nil, err
	}
	f, s := a.optimizable(r, whole), new(optcheck.Scratch)
	return &Flow{
		Landings: optcheck.Landings(nil, f, s), Blocks: optcheck.Blocks(f, s),
		Entries: entries(f), Open: f.Unread || len(f.Unresolved) > 0, Slack: f.Slack,
	}, nil
}

// entries returns Flow.Entries.
func entries(f *optcheck.Function) []uint64 {
	list := []uint64{f.Addr}
	for i := range f.Landings {
		list = append(list, f.Landings[i].Addr)
	}
	for i := range f.Insts {
		if f.Insts[i].IsCall() {
			list = append(list, f.Insts[i].Next())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
