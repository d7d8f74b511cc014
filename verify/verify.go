// Package verify shows that moved code does what the original does: it runs
// both from the same random states, on engines that the caller gives, and
// compares registers, flags, memory and the next address.
package verify

import (
	"context"
	"errors"
	"sort"
	"sync"
	"sync/atomic"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/machine"
	"xol/place"
	"xol/relocate"
)

// Target is what verifying asks of an ISA.
type Target interface {
	decode.Decoder
	relocate.Relocator
	// Registers returns the register file.
	Registers() *machine.File
	// UndefinedFlags returns the bits of the flags register that the
	// architecture leaves undefined after inst.
	UndefinedFlags(inst *decode.Inst) uint64
	// Prepare changes a random state so that inst makes sense in it: a
	// repetition is short, a divisor rarely 0.
	Prepare(inst *decode.Inst, f *machine.File, s machine.State)
	// StackScratch returns the addresses below the stack pointer sp that moved
	// code may overwrite, the red zone not among them.
	StackScratch(sp uint64) (lo, hi uint64)
	// DeadRegisters returns general registers that inst does not use, by
	// number, for far forms that need one and cannot save it; 0 on an ISA that
	// has no such forms.
	DeadRegisters(inst *decode.Inst) uint32
}

// Options choose what is verified. Target and Engines are required.
type Options struct {
	Target Target
	// Engines opens the engines that one worker uses, in order of preference.
	Engines func() ([]machine.Engine, error)
	// Reach is Near or Far: how far away the instructions are moved, and which
	// forms they take there.
	Reach relocate.Reach
	// Sample is the number of distinct instructions to verify, 0 for all.
	Sample int
	// States is the number of random states per instruction, 0 for 20.
	States  int
	Seed    uint64
	Workers int // 0 means one
	// Progress, where set, is told how many of the distinct instructions are
	// done, from any goroutine.
	Progress func(done, total int)
}

// Count is the number of distinct instructions of a class.
type Count struct {
	Class        string
	Instructions int
}

// Difference is a state in which the moved instruction does something else.
type Difference struct {
	Inst  decode.Inst   // as it stood when it was run
	Rest  []decode.Inst // of a region: what followed
	To    uint64        // where its moved form stood
	Moved []byte
	State machine.State // before
	What  []string      // each: the register or address, what the original and what the moved form left there
}

// Report is the result of a verification.
type Report struct {
	Instructions int // in the file
	Distinct     int // different ones, or the sample of them
	Executed     int // of the distinct ones
	// States is the number of states from which both forms of an executed
	// instruction were run, and Endless of those in which the original is a loop
	// that came to no end. Together they are Options.States for each executed
	// instruction, but for the states after the first that differs.
	States, Endless int
	Differences     int          // instructions with at least one differing state
	Verified        []Count      // what was executed, by class, most first
	Skipped         []Count      // what was not, by class, most first
	Examples        []Difference // the first of each differing instruction, at most MaxExamples
}

// maxExamples bounds Report.Examples.
const maxExamples = 50

// DefaultStates is the number of random states per instruction.
const DefaultStates = 20

// File verifies the instructions of a file, each distinct one once.
func File(ctx context.Context, a *analyze.Analysis, opt Options) (*Report, error) {
	insts, total, err := distinct(ctx, a)
	if err != nil {
		return nil, err
	}
	insts = sample(insts, opt.Sample, opt.Seed)
	r, err := Instructions(ctx, insts, opt)
	if err != nil {
		return nil, err
	}
	r.Instructions = total
	return r, nil
}

// distinct returns one instruction of every sequence of bytes, in the order of
// their addresses, and the number of all instructions. Data in text is left
// out.
func distinct(ctx context.Context, a *analyze.Analysis) (insts []decode.Inst, total int, err error) {
	type found struct {
		insts []decode.Inst
		total int
	}
	seen := make(map[[decode.MaxLen]byte]bool)
	err = analyze.Each(ctx, a, a.Functions(), func(r *analyze.Result) found {
		var f found
		if isTable(r) {
			return f
		}
		for i := range r.Insts {
			inst := &r.Insts[i]
			if inst.Has(decode.Invalid) || r.Marks.At(inst.Addr)&place.Data != 0 {
				continue
			}
			f.total++
			f.insts = append(f.insts, *inst)
		}
		return f
	}, func(f found) error {
		total += f.total
		for i := range f.insts {
			var key [decode.MaxLen]byte
			copy(key[:], f.insts[i].Bytes())
			if !seen[key] {
				seen[key] = true
				insts = append(insts, f.insts[i])
			}
		}
		return nil
	})
	return insts, total, err
}

// isTable reports whether a piece of text that no symbol and no unwind table
// speaks of is a table of constants: compilers write few of those, assembler
// sources of cryptography large ones, and many of their words are no
// instructions.
func isTable(r *analyze.Result) bool {
	const most = 32 // one gap in as many instructions is code with data between
	if r.Function.Source != image.FromSection {
		return false
	}
	gaps := 0
	for i := range r.Insts {
		if r.Insts[i].Has(decode.Invalid) {
			gaps++
		}
	}
	return gaps*most > len(r.Insts)
}

// sample returns n of insts, chosen by seed, in their order.
func sample(insts []decode.Inst, n int, seed uint64) []decode.Inst {
	if n <= 0 || n >= len(insts) {
		return insts
	}
	order := make([]int, len(insts))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(i, j int) bool {
		return machine.Mix(seed^uint64(order[i])<<1|1) < machine.Mix(seed^uint64(order[j])<<1|1)
	})
	order = order[:n]
	sort.Ints(order)
	chosen := make([]decode.Inst, n)
	for i, j := range order {
		chosen[i] = insts[j]
	}
	return chosen
}

// Instructions verifies each of insts, moved to a slot.
func Instructions(ctx context.Context, insts []decode.Inst, opt Options) (*Report, error) {
	runs := make([][]decode.Inst, len(insts))
	for i := range insts {
		runs[i] = insts[i : i+1]
	}
	return verifyRuns(ctx, runs, relocate.Slot, opt)
}

// Regions verifies runs of instructions that follow one another, each moved as
// a region. In the report a run counts as one instruction.
func Regions(ctx context.Context, runs [][]decode.Inst, opt Options) (*Report, error) {
	return verifyRuns(ctx, runs, relocate.Region, opt)
}

func verifyRuns(ctx context.Context, runs [][]decode.Inst, form relocate.Form, opt Options) (*Report, error) {
	if opt.States == 0 {
		opt.States = DefaultStates
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		next    atomic.Int64
		running sync.WaitGroup
		tallies = make([]tally, max(opt.Workers, 1))
	)
	for i := range tallies {
		running.Go(func() {
			if err := work(ctx, runs, form, &next, &opt, &tallies[i]); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	r := merge(tallies)
	r.Distinct = len(runs)
	return r, nil
}

// work verifies runs of instructions until there are no more.
func work(ctx context.Context, runs [][]decode.Inst, form relocate.Form, next *atomic.Int64, opt *Options, t *tally) (err error) {
	engines, err := opt.Engines()
	if err != nil {
		return err
	}
	defer func() {
		for _, e := range engines {
			err = errors.Join(err, e.Close())
		}
	}()
	c := newChecker(opt, form, engines)
	for ctx.Err() == nil {
		i := int(next.Add(1)) - 1
		if i >= len(runs) {
			return nil
		}
		if err := c.check(runs[i], t); err != nil {
			return err
		}
		if opt.Progress != nil {
			opt.Progress(i+1, len(runs))
		}
	}
	return nil
}

// tally is what one worker counts.
type tally struct {
	executed, differences int
	states, endless       int
	verified, skipped     map[string]int
	examples              []Difference
}

func merge(tallies []tally) *Report {
	r := new(Report)
	verified, skipped := map[string]int{}, map[string]int{}
	for i := range tallies {
		t := &tallies[i]
		r.Executed += t.executed
		r.States += t.states
		r.Endless += t.endless
		r.Differences += t.differences
		for class, n := range t.verified {
			verified[class] += n
		}
		for class, n := range t.skipped {
			skipped[class] += n
		}
		r.Examples = append(r.Examples, t.examples...)
	}
	sort.Slice(r.Examples, func(i, j int) bool { return r.Examples[i].Inst.Addr < r.Examples[j].Inst.Addr })
	r.Examples = r.Examples[:min(len(r.Examples), maxExamples)]
	r.Verified, r.Skipped = counts(verified), counts(skipped)
	return r
}

func counts(m map[string]int) []Count {
	out := make([]Count, 0, len(m))
	for class, n := range m {
		out = append(out, Count{class, n})
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Instructions != out[j].Instructions {
			return out[i].Instructions > out[j].Instructions
		}
		return out[i].Class < out[j].Class
	})
	return out
}

// refusedClass names the class of instructions that rule keeps from moving.
func refusedClass(rule *classify.Rule) string { return "refused: " + rule.ID }
