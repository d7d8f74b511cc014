// Package instrument plans how code of the user's runs inside of a real program: which
// instructions move to a copy, what is inserted before them, and where in the text
// execution leaves for the copy. Nothing is written here: the plans are plain values
// that a session carries out.
//
// A copy holds a single instruction, the region that a jump replaces, or a whole
// function. Branches inside of a function stay inside its copy, so that hot loops never
// come back to the text; but all addresses that the program can see are original ones,
// and every instruction of the text that has moved either is a way into the copy or
// traps. So whoever comes there by a way that is not foreseen goes on in the copy too.
package instrument

import (
	"cmp"
	"slices"
	"strings"

	"xol/analyze"
	"xol/arch"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/relocate"
)

// Kind is what runs before an instruction.
type Kind uint8

// The kinds.
const (
	Count Kind = iota // its executions are counted
	Gate              // the thread stops, for whoever traces it to look
	Start             // of the time until Stop: at the entry of a function
	Stop              // before its returns
)

// Want asks for code before an instruction.
type Want struct {
	Addr uint64 // in the file
	Kind Kind
	// Returns asks for it before each of the places where the function that starts at
	// Addr returns, or goes on as another function.
	Returns bool
	// Of is where the function starts whose part is at Addr (see Planner.Parts); 0 where
	// that is a function itself. It goes with Returns.
	Of uint64
	// Number is the caller's own, of a Gate or a timer.
	Number int
}

// Refusal says why a want cannot be had.
type Refusal struct {
	Want int // index
	Rule *classify.Rule
}

// Way is a place in the text where execution leaves for a copy.
type Way struct {
	Addr uint64
	Step int // of the plan
	// Jump says that there is room for a jump; else there is a breakpoint.
	Jump bool
	// Inside has bit k set where an instruction that moves starts k bytes after the
	// start of the jump: the jump must trap there.
	Inside uint8
	// Cave is where that stands which the jump, a short one, leads to: 0 where the jump
	// leads to the copy.
	Cave  uint64
	short []byte // that jump
}

// Item is code that is inserted before a step.
type Item struct {
	Step int
	Kind Kind
	// Number is the run that a Count counts, else Want.Number.
	Number int
	AtJump bool   // of a Stop: the function goes on as another one
	dead   uint64 // flags
}

// Run is steps that are executed one after the other, if none of them faults: one
// counter counts them all.
type Run struct{ First, Last int }

// Plan is a copy before its address is known. Addresses are those of the process.
type Plan struct {
	Whole bool   // a function, not a few instructions
	Ways  []Way  // by address
	Items []Item // by step
	Runs  []Run  // by step
	code  relocate.Plan
	copy  *Copy // by Planner.Lay
	isa   arch.Prober
	isGo  bool
}

// Copy returns what Planner.Lay has made of the plan; nil where there was no room that
// its operands can be reached from.
func (p *Plan) Copy() *Copy { return p.copy }

// Jumps reports whether the first of the ways is a jump: that at the entry of a function, or
// the only one.
func (p *Plan) Jumps() bool { return p.Ways[0].Jump }

// Place is where a want has come to be.
type Place struct {
	Want int
	Plan int // of the function's plans
	Step int
	Run  int // of a Count; else -1
	Jump bool
}

// Function is what is planned for one function.
type Function struct {
	Plans    []*Plan
	Places   []Place // a want for returns may have several, and none in a part
	Refusals []Refusal
}

// Rules of what cannot be had.
var (
	ruleNotInstruction = classify.Rule{
		ID:     "process/inside-instruction",
		Reason: "no instruction starts there",
	}
	ruleNotReached = classify.Rule{
		ID:     "process/not-known-as-code",
		Reason: "nothing that is known of the program leads there: it may be data",
	}
	ruleFullStack = classify.Rule{
		ID:     "process/go-nosplit",
		Reason: "the function of Go does not check its stack, which may be full: the code for the probe needs some of it",
		Remedy: "probe another instruction of the function, such as its first one, or a function that calls it",
	}
	ruleSequence = classify.Rule{
		ID:     "process/rseq",
		Reason: "it is in a restartable sequence (rseq): where that is interrupted the kernel starts it again, but not where it runs as a copy",
		Remedy: "probe the instructions before or after the sequence",
	}
)

// Planner plans for the functions of a file that is mapped at bias above its addresses.
// It is safe for concurrent use.
type Planner struct {
	isa       arch.Prober
	a         *analyze.Analysis
	bias      uint64
	sequences []image.Range // that can be restarted only in place
	cold      parts
}

// NewPlanner returns a planner. It returns an *arch.MissingError for an ISA that cannot
// be probed.
func NewPlanner(a *analyze.Analysis, bias uint64) (*Planner, error) {
	isa, err := arch.Probing(a.ISA)
	if err != nil {
		return nil, err
	}
	return &Planner{isa: isa, a: a, bias: bias, sequences: a.Image.RestartableSequences()}, nil
}

// Function plans what is wanted in a judged function. wants are sorted by address.
func (p *Planner) Function(r *analyze.Result, wants []Want) (*Function, error) {
	f := &function{Planner: p, r: r, isGo: p.a.Image.IsGo(r.Addr)}
	f.full = f.isGo && !f.checksStack()
	f.abi = f.isGo && !p.isa.SavesFlags(r.Insts)
	f.place(wants)
	if err := f.plan(); err != nil {
		return nil, err
	}
	return &f.out, f.err
}

// spot is a want at an instruction.
type spot struct {
	inst   int
	want   int
	kind   Kind
	number int
	atJump bool
}

// function is a function that is being planned for.
type function struct {
	*Planner
	r     *analyze.Result
	spots []spot
	isGo  bool
	full  bool // of the stack there may be nothing left
	abi   bool // no flags are passed to it or returned by it
	out   Function
	err   error // why its control flow is not known

	known *control // by reach
}

// control is where execution goes in a function. Most probes at entries do without.
type control struct {
	*analyze.Flow
	leaders []bool // an instruction starts a block
	reached []bool // execution may come to an instruction
}

// checksStack reports whether a function of Go makes sure that it has room on the stack,
// and gets more where it has not.
func (f *function) checksStack() bool {
	for i := range f.r.Insts {
		if target, direct := f.r.Insts[i].BranchTarget(); direct {
			if other, ok := f.a.FunctionAt(target); ok && other.Addr != f.r.Addr && strings.HasPrefix(other.Name, "runtime.morestack") {
				return true
			}
		}
	}
	return false
}

// reach finds out where execution may come, once.
func (f *function) reach() *control {
	if f.known != nil {
		return f.known
	}
	k := &control{leaders: make([]bool, len(f.r.Insts)), reached: make([]bool, len(f.r.Insts))}
	f.known = k
	if k.Flow, f.err = f.a.Flow(f.r); f.err != nil {
		k.Flow = new(analyze.Flow)
		return k
	}
	seen, todo := make([]bool, len(k.Blocks)), []int{}
	visit := func(b int) {
		if !seen[b] {
			seen[b] = true
			todo = append(todo, b)
		}
	}
	for b := range k.Blocks {
		from := k.Blocks[b].From
		k.leaders[from] = true
		if k.Open || f.entryIn(f.r.Insts[from].Addr, 1) {
			visit(b)
		}
	}
	for len(todo) > 0 {
		b := &k.Blocks[todo[len(todo)-1]]
		todo = todo[:len(todo)-1]
		for i := b.From; i < b.To; i++ {
			k.reached[i] = true
		}
		for _, next := range b.Next {
			visit(next)
		}
	}
	return k
}

// leader reports whether instruction i starts a block.
func (f *function) leader(i int) bool { return f.reach().leaders[i] }

// reached reports whether execution may come to instruction i, as it does to the first.
func (f *function) reached(i int) bool { return i == 0 || f.reach().reached[i] }

// entryIn reports whether execution may come from elsewhere to one of n addresses.
func (f *function) entryIn(addr, n uint64) bool {
	entries := f.reach().Entries
	i, found := slices.BinarySearch(entries, addr)
	return found || i < len(entries) && entries[i] < addr+n
}

func (f *function) refuse(want int, rule *classify.Rule) {
	f.out.Refusals = append(f.out.Refusals, Refusal{want, rule})
}

// place finds the instructions of the wants.
func (f *function) place(wants []Want) {
	for w := range wants {
		want := &wants[w]
		if want.Returns {
			f.placeReturns(w, want)
			continue
		}
		i, start := decode.Find(f.r.Insts, want.Addr)
		switch {
		case !start:
			f.refuse(w, &ruleNotInstruction)
		case !f.r.Verdicts[i].OK():
			f.refuse(w, f.r.Verdicts[i].Rule)
		case !f.reached(i):
			f.refuse(w, &ruleNotReached)
		case f.isa.Immovable(&f.r.Insts[i]) != nil:
			f.refuse(w, f.isa.Immovable(&f.r.Insts[i]))
		case f.inSequence(i):
			f.refuse(w, &ruleSequence)
		default:
			f.spots = append(f.spots, spot{inst: i, want: w, kind: want.Kind, number: want.Number})
		}
	}
	f.dropTimers(wants)
	slices.SortStableFunc(f.spots, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.inst, b.inst), cmp.Compare(order[a.kind], order[b.kind]))
	})
}

// dropTimers takes no start of the time where its end is refused.
func (f *function) dropTimers(wants []Want) {
	for _, r := range f.out.Refusals {
		if stop := &wants[r.Want]; stop.Kind == Stop {
			f.spots = slices.DeleteFunc(f.spots, func(s spot) bool { return s.kind == Start && s.number == stop.Number })
		}
	}
}

// order is in which order code of several kinds runs before an instruction: the time is
// that of the program alone.
var order = [...]uint8{Stop: 0, Count: 1, Gate: 2, Start: 3}

// inSequence reports whether instruction i is in a restartable sequence. A region never
// comes to hold the start of one: a pointer in data leads there.
func (f *function) inSequence(i int) bool {
	return slices.ContainsFunc(f.sequences, func(r image.Range) bool { return f.r.Insts[i].Addr-r.Addr < r.Size })
}
