// Package analyze judges every instruction of a file: it decodes and
// classifies function by function, over all cores, and hands the results back
// in the order of the addresses.
package analyze

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"xol/arch"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/kernel"
	"xol/optcheck"
	"xol/place"
	"xol/registration"
)

// Options choose how a file is judged. The zero value is the file's default.
type Options struct {
	// Profile is the name of a profile of the ISA; empty means that of its own
	// version for a kernel or a module and isa for everything else.
	Profile string
	// Kernel is what is known of the kernel beside what the file tells. What
	// neither says is as Debian builds that version.
	Kernel kernel.Facts
	// Workers is the number of functions judged at a time; 0 means one per
	// CPU that Go may use.
	Workers int
	// Optimize asks for verdicts on jump optimization as well.
	Optimize bool
	// Armed are the addresses of other probes, which a jump must not
	// overwrite.
	Armed []uint64
	// AsFile judges the text of a kernel or module as the file has it, not as it is
	// after booting: for who knows what stands in memory.
	AsFile bool
	// Text returns what stands in memory where the file has code at addr, nil where it
	// is the same. It may be nil, and may be called concurrently.
	Text func(code []byte, addr uint64) []byte
	// ISAs are those that a file may be for; nil means all that xol supports.
	ISAs arch.Set
}

// ProfileError says that an ISA has no profile of that name.
type ProfileError struct {
	Name  string
	Known []string // the names that there are
}

func (e *ProfileError) Error() string {
	return "unknown profile " + e.Name + " (known: " + strings.Join(e.Known, ", ") + ")"
}

// StandIn returns asked, the name of a profile that p answers for, where p is that
// of another branch of Linux: the nearest older one of which the answers are known.
// Else it returns the empty string.
func StandIn(asked string, p classify.Profile) string {
	m, v, ok := classify.ParseProfile(asked)
	_, answers, _ := classify.ParseProfile(p.Name())
	if !ok || m == classify.Architecture || v.Branch() == answers.Branch() {
		return ""
	}
	return asked
}

// Analysis is a file that is ready to be judged. It is safe for concurrent use; its
// fields must not be changed.
type Analysis struct {
	Image   *image.Image
	ISA     arch.ISA
	Profile classify.Profile
	// Kernel is all that is known of the kernel whose rules these are.
	Kernel kernel.Facts
	// Asked is the name of the profile that was asked for where Profile stands
	// in for it: see StandIn.
	Asked string
	// Extent is how the profile counts functions: a kernel's own go on to the
	// next symbol.
	Extent image.Extent
	// Missing is what is not known of a kernel. What it leaves open is
	// undecided in the verdicts.
	Missing image.Missing
	// Optimizer judges jump optimization; nil where Options did not ask.
	Optimizer optcheck.Optimizer

	interfaces registration.Kernel // that take the kernel's probes

	functions []image.Function
	marks     *markIndex
	boot      *bootText
	workers   int
	armed     []uint64 // sorted
	text      func(code []byte, addr uint64) []byte

	surveying sync.Mutex
	survey    *survey
}

// New prepares the analysis of a file: its functions and what its tables say.
// It returns an *arch.UnknownError, a *ProfileError or what package image
// finds wrong.
func New(img *image.Image, opt Options) (*Analysis, error) {
	if opt.ISAs == nil {
		opt.ISAs = arch.Supported()
	}
	isa, err := opt.ISAs.ByMachine(img.Machine(), img.ByteOrder())
	if err != nil {
		return nil, err
	}
	a := &Analysis{Image: img, ISA: isa, workers: opt.Workers, text: opt.Text, armed: slices.Sorted(slices.Values(opt.Armed))}
	if mechanismOf(opt.Profile, img.Kind()) == classify.Kprobes {
		a.Extent = image.ExtentNext
	}
	// What the rules ask of the file and what its tables tell is read at a time.
	var g errgroup.Group
	g.Go(func() (err error) {
		a.functions, err = img.Functions(a.Extent)
		return err
	})
	a.boot = new(bootText)
	if !opt.AsFile && !img.Running() {
		g.Go(func() (err error) {
			a.boot, err = readBootText(img, isa)
			return err
		})
	}
	var marks place.Marks // which wait for the functions halfway: they had best start before
	g.Go(func() (err error) {
		marks, err = img.Marks()
		return err
	})
	err = a.chooseRules(&opt)
	if unread := g.Wait(); err == nil {
		err = unread
	}
	if err != nil {
		return nil, err
	}
	a.marks = newMarkIndex(marks, a.boot.marks)
	return a, nil
}

// chooseRules finds out whose kernel it is, and the profile and the optimizer that
// opt names.
func (a *Analysis) chooseRules(opt *Options) (err error) {
	if a.Kernel, err = detect(a.Image, a.ISA, opt.Kernel); err != nil {
		return err
	}
	asked, name := opt.Profile, opt.Profile
	if asked == "" {
		asked = DefaultProfile(a.Image.Kind(), a.Kernel.Version)
		name = orOldest(a.ISA, asked)
	}
	if m, v, _ := classify.ParseProfile(asked); m != classify.Architecture && v.Branch() != a.Kernel.Version.Branch() {
		a.Kernel.Version = v
	}
	options := kernelOptions(a.Image, &a.Kernel)
	a.interfaces = a.Kernel.Registration()
	profile, ok := a.ISA.Profile(name, options)
	if !ok {
		return &ProfileError{name, a.ISA.Profiles()}
	}
	if a.Missing, err = a.Image.Missing(); err != nil {
		return err
	}
	a.Profile, a.Asked = classify.WithGaps(profile, gaps(a.Missing), a.ISA.Align()), StandIn(asked, profile)
	if opt.Optimize && a.Missing&image.MissingFunctions == 0 { // else all is undecided
		a.Optimizer, _ = a.ISA.Optimizer(name, options)
	}
	return nil
}

// gaps returns what is missing as a profile has to know it.
func gaps(m image.Missing) classify.Gaps {
	return classify.Gaps{
		Functions: m&image.MissingFunctions != 0,
		Sites:     m&(image.MissingBlacklist|image.MissingTables) != 0,
	}
}

// Functions returns the functions of the file as the profile counts them,
// sorted by address. The slice must not be changed.
func (a *Analysis) Functions() []image.Function { return a.functions }

// FunctionAt returns the function that holds addr.
func (a *Analysis) FunctionAt(addr uint64) (image.Function, bool) {
	i := lastAtOrBelow(a.functions, addr)
	if i < 0 || addr-a.functions[i].Addr >= a.functions[i].Size {
		return image.Function{}, false
	}
	return a.functions[i], true
}

// Result is one judged function.
type Result struct {
	Function image.Function
	classify.Func
	Verdicts []classify.Verdict // one for each of Insts
	// Optimize holds the verdicts on jump optimization, one for each of Insts;
	// it is empty where Options did not ask.
	Optimize []optcheck.Verdict
	// Unresolved are the function's indirect jumps of which it is not known
	// where they go, in the profile isa.
	Unresolved []optcheck.Unresolved
	Padding    uint64 // bytes at the end that were not judged
	Changed    bool   // the text is not the file's, but what stands in memory
	Err        error  // the text could not be read; Insts is empty then

	asked   optcheck.Function // by optimizable
	scratch optcheck.Scratch
	booted  place.Marks // those of Marks that are about booting
	cursor  markCursor  // where Marks were found
	form    *Result     // memory for another form of the function
}

// Judge judges one function, to its very end.
func (a *Analysis) Judge(f image.Function) *Result {
	r := new(Result)
	if !a.read(r, f) {
		return r
	}
	var whole *survey
	if a.wantsSurvey() {
		if whole, r.Err = a.surveyed(context.Background()); r.Err != nil {
			return r
		}
	}
	a.judgeText(r, whole)
	return r
}

// JudgeTo makes r the result of a function, in the memory that r has, judged as Each
// does: without padding of pages at its end.
func (a *Analysis) JudgeTo(ctx context.Context, r *Result, f image.Function) {
	if !a.read(r, f) {
		return
	}
	var whole *survey
	if a.wantsSurvey() {
		if whole, r.Err = a.surveyed(ctx); r.Err != nil {
			return
		}
	}
	r.cutPadding()
	a.judgeText(r, whole)
}

// JudgeText judges a function as Judge does, whose text is code and not the file's:
// somebody has changed it in memory. Who lands where in it is not known then, so that
// a jump may replace a single instruction only.
func (a *Analysis) JudgeText(f image.Function, code []byte) *Result {
	r := a.Judge(f)
	if r.Err != nil || bytes.Equal(r.Code, code) {
		return r
	}
	var whole *survey
	if a.wantsSurvey() {
		if whole, r.Err = a.surveyed(context.Background()); r.Err != nil {
			return r
		}
	}
	file := r.Code
	r.start(f)
	r.Code = code
	a.judgeChanged(r, file, whole)
	return r
}

// judgeChanged judges the text of r, which the file has otherwise.
func (a *Analysis) judgeChanged(r *Result, file []byte, whole *survey) {
	r.Changed = true
	if whole == nil {
		a.judge(r, nil)
		return
	}
	f, changed := &r.Function, *whole
	changed.data = newMarkIndex(unchanged(whole.data.touching(nil, f.Addr, f.End()), f.Addr, file, r.Code), nil)
	changed.unresolved = map[uint64][]optcheck.Unresolved{f.Addr: {{Addr: f.Addr, What: "the text is not the file's"}}}
	a.judge(r, &changed)
}

// judgeText judges the text of r as it is in memory.
func (a *Analysis) judgeText(r *Result, whole *survey) {
	if a.text == nil {
		a.judge(r, whole)
		return
	}
	now := a.text(r.Code, r.Addr)
	if now == nil {
		a.judge(r, whole)
		return
	}
	file := bytes.Clone(r.Code)
	r.Code = append(r.Code[:0], now...)
	a.judgeChanged(r, file, whole)
}

// unchanged returns the marks of bytes that are the same in two texts at addr.
func unchanged(marks place.Marks, addr uint64, a, b []byte) place.Marks {
	return slices.DeleteFunc(marks, func(m place.Mark) bool {
		lo, hi := max(m.Addr, addr)-addr, min(m.End()-addr, uint64(len(a)), uint64(len(b)))
		return lo > hi || !bytes.Equal(a[lo:hi], b[lo:hi])
	})
}

// start makes r the result of f, in the memory that r has.
func (r *Result) start(f image.Function) {
	r.Function, r.Padding, r.Changed = f, 0, false
	r.Name, r.Addr = f.Name, f.Addr
	r.Insts, r.Verdicts, r.Marks = r.Insts[:0], r.Verdicts[:0], r.Marks[:0]
	r.Optimize, r.Unresolved = r.Optimize[:0], nil
}

// read fills r with the text of f.
func (a *Analysis) read(r *Result, f image.Function) bool {
	r.start(f)
	r.Code, r.Err = a.Image.Code(r.Code[:0], f.Addr, f.Size)
	if r.Err != nil {
		r.Code = r.Code[:0]
	}
	write(a.boot.settled, r.Code, f.Addr)
	return r.Err == nil
}

// A function's extent, to the next symbol, may take in what fills up a section
// or a huge page. The end of a function from minPadding bytes of one repeated
// word on is left out where a whole file is judged.
const (
	minPadding  = 4096
	paddingWord = 4
)

func (r *Result) cutPadding() {
	n := len(r.Code)
	if n < minPadding+paddingWord {
		return
	}
	keep := n - paddingWord
	for keep >= paddingWord && string(r.Code[keep-paddingWord:keep]) == string(r.Code[n-paddingWord:]) {
		keep -= paddingWord
	}
	if n-keep >= minPadding {
		r.Padding = uint64(n - keep)
		r.Code = r.Code[:keep]
	}
}

// judge decodes and judges the text of r.
func (a *Analysis) judge(r *Result, whole *survey) {
	a.decode(r, whole)
	r.Verdicts = a.Profile.Func(r.Verdicts, &r.Func)
	if a.Optimizer != nil {
		f := a.optimizable(r, whole)
		r.Unresolved = f.Unresolved
		r.Optimize = a.Optimizer.Func(r.Optimize, f, &r.scratch)
	}
	if len(r.booted) > 0 {
		a.judgeForms(r)
	}
}

func (a *Analysis) decode(r *Result, whole *survey) {
	f := &r.Function
	r.Marks = a.marks.touchingNear(r.Marks, f.Addr, f.Addr+f.Size, &r.cursor)
	if whole != nil {
		if data := whole.data.touching(nil, f.Addr, f.Addr+f.Size); len(data) > 0 {
			r.Marks = append(r.Marks, data...)
			r.Marks.Sort()
		}
	}
	r.noteBoot()
	r.Insts = decode.Sweep(a.ISA, r.Insts, r.Code, f.Addr)
	markExternal(r.Insts, r.Marks)
}

// markExternal gives the instructions that a relocation against an undefined
// symbol fills the property External.
func markExternal(insts []decode.Inst, marks place.Marks) {
	for _, m := range marks {
		if m.Kind&place.ExternalReloc != 0 {
			if i, _ := decode.Find(insts, m.Addr); i >= 0 {
				insts[i].Props |= decode.External
			}
		}
	}
}
