package instrument

import (
	"slices"
	"strings"
	"sync"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/optcheck"
)

// A call of a function ends where it returns, and where it goes on as another function. A
// compiler puts parts of a function elsewhere that are rarely executed: calls end there,
// too. What cannot have code for all of these places would miss calls, and is refused.

var (
	ruleUnseenReturn = classify.Rule{
		ID:     "process/unseen-return",
		Reason: "the function also ends where its returns cannot be seen: it jumps to another function on a condition, runs on into the next one, or jumps to an address that is not known",
		Remedy: "probe the function's entry, or the instructions after its calls",
	}
	ruleNoReturn = classify.Rule{
		ID:     "process/no-return",
		Reason: "nothing in the function returns",
		Remedy: "probe its entry",
	}
)

// parts are functions that hold rarely executed parts of others, by the name of those.
type parts struct {
	once   sync.Once
	byName map[string][]image.Function
}

// coldSuffix is how the names of such parts go on after that of the function, in GCC and
// LLVM.
const coldSuffix = ".cold"

func (p *parts) of(a *analyze.Analysis, name string) []image.Function {
	p.once.Do(func() {
		p.byName = map[string][]image.Function{}
		for _, fn := range a.Functions() {
			if of, _, found := strings.Cut(fn.Name, coldSuffix); found && of != "" {
				p.byName[of] = append(p.byName[of], fn)
			}
		}
	})
	return p.byName[name]
}

// Parts returns the functions that are parts of one: to which symbols give its name, and it
// jumps. Where its returns are wanted, those of its parts have to be as well, with Want.Of.
func (p *Planner) Parts(fn image.Function) []image.Function {
	named := p.cold.of(p.a, fn.Name)
	if len(named) == 0 {
		return nil
	}
	r := p.a.Judge(fn)
	return slices.DeleteFunc(slices.Clone(named), func(part image.Function) bool {
		return !slices.ContainsFunc(r.Insts, func(inst decode.Inst) bool { return leadsTo(&inst, part.Addr, part.End()) })
	})
}

// leadsTo reports whether a direct jump leads to an address from lo on and before hi.
func leadsTo(inst *decode.Inst, lo, hi uint64) bool {
	if inst.Flow != decode.FlowJump && inst.Flow != decode.FlowJumpIf {
		return false
	}
	target, ok := inst.BranchTarget()
	return ok && lo <= target && target < hi
}

// family is a function and its parts.
type family []*function

// familyOf returns that of the function whose returns are wanted, of which f is one.
func (f *function) familyOf(want *Want) family {
	root := f
	if want.Of != 0 {
		fn, _ := f.a.FunctionAt(want.Of)
		root = f.other(fn)
	}
	all := family{root}
	for _, part := range f.Parts(root.r.Function) {
		if part.Addr == f.r.Addr {
			all = append(all, f)
		} else {
			all = append(all, f.other(part))
		}
	}
	return all
}

// other returns another function of the file, of which nothing is wanted.
func (f *function) other(fn image.Function) *function {
	return &function{Planner: f.Planner, r: f.a.Judge(fn)}
}

func (all family) hold(addr uint64) bool {
	return slices.ContainsFunc(all, func(f *function) bool { return addr-f.r.Addr < f.r.End()-f.r.Addr })
}

// placeReturns finds the instructions that end calls. What is wanted of a function and
// its parts is refused in each of them, or in none.
func (f *function) placeReturns(w int, want *Want) {
	all := f.familyOf(want)
	found := 0
	var spots []spot
	for _, g := range all {
		ends, rule := g.ends(all)
		if rule != nil {
			f.refuse(w, rule)
			return
		}
		found += len(ends)
		if g == f {
			for _, end := range ends {
				spots = append(spots, spot{inst: end.inst, want: w, kind: want.Kind, number: want.Number, atJump: end.atJump})
			}
		}
	}
	if found == 0 {
		f.refuse(w, &ruleNoReturn)
		return
	}
	f.spots = append(f.spots, spots...)
}

// end is an instruction that ends a call: by a return, or by a jump to another function.
type end struct {
	inst   int
	atJump bool
}

// ends returns where calls of a family end in one of its functions, and the rule that
// keeps one of these places from being probed.
func (f *function) ends(all family) (list []end, rule *classify.Rule) {
	for b := range f.reach().Blocks {
		block := &f.reach().Blocks[b]
		last := block.To - 1
		if !f.reached(last) {
			continue
		}
		leaves, atJump, seen := f.leaves(block, all)
		switch {
		case !seen:
			return nil, &ruleUnseenReturn
		case leaves && f.inSequence(last):
			return nil, &ruleSequence
		case leaves:
			list = append(list, end{last, atJump})
		}
	}
	return list, nil
}

// leaves reports whether the last instruction of a block ends a call, whether it does so
// by a jump, and whether that is all that ends a call there.
func (f *function) leaves(block *optcheck.Block, all family) (leaves, atJump, seen bool) {
	inst := &f.r.Insts[block.To-1]
	if block.Exits&optcheck.ExitUnresolved != 0 || block.Exits&optcheck.ExitFall != 0 && f.runsOn(block) {
		return false, false, false
	}
	tail := false
	if target, direct := inst.BranchTarget(); direct && block.Exits&optcheck.ExitTail != 0 && !all.hold(target) {
		back, returns := f.follow(target, inst.Flow == decode.FlowJumpIf)
		if tail = !back && returns; back && returns {
			return false, false, false
		}
	}
	jumps := tail || block.Exits&optcheck.ExitPointer != 0
	leaves = jumps || block.Exits&optcheck.ExitReturn != 0
	return leaves, jumps, !leaves || !inst.Has(decode.Conditional)
}

// runsOn reports whether a block that reaches the function's end goes on there: not where
// it is but padding, after a call that does not return.
func (f *function) runsOn(block *optcheck.Block) bool {
	for i := block.To - 1; i >= 0; i-- {
		if !f.isa.IsPadding(&f.r.Insts[i]) {
			return !f.r.Insts[i].IsCall()
		}
	}
	return false
}

// follow looks at what a jump out of the function leads to. back says that it comes back,
// as a part does whose name is not known, and returns that calls end there, which is
// looked at where it matters.
func (f *function) follow(target uint64, conditional bool) (back, returns bool) {
	fn, ok := f.a.FunctionAt(target)
	if !ok {
		return false, true
	}
	r := f.a.Judge(fn)
	for i := range r.Insts {
		inst := &r.Insts[i]
		target, direct := inst.BranchTarget()
		within := direct && target-f.r.Addr < f.r.End()-f.r.Addr
		switch inst.Flow {
		case decode.FlowReturn, decode.FlowJumpIndirect:
			returns = true
		case decode.FlowJump, decode.FlowJumpIf:
			back = back || within && target != f.r.Addr
			returns = returns || !within && target-fn.Addr >= fn.Size
		}
	}
	return back, returns || !back && !conditional
}
