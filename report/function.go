package report

import (
	"context"
	"sort"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/optcheck"
	"xol/optcheck/flow"
	"xol/place"
)

// function is all that the page tells of one function.
type function struct {
	image.Function
	name    string // as it was written, of C++ and Rust
	source  string
	line    int
	err     bool // its text could not be read
	padding uint64
	insts   []instruction
	blocks  []int // instructions of each basic block
	marks   place.Marks
	lands   place.Landings // from elsewhere, and from its jump tables
	jumps   []indirect
	boot    []booted
	by      []judged // by profile
}

type instruction struct {
	addr      uint64
	form      uint32 // index into the forms of the batch
	numbers   [maxHoles]uint64
	target    uint64
	hasTarget bool // one that the form computes
	branches  bool // to the target, not as a call
	ends      bool // a basic block
}

// indirect is an indirect jump.
type indirect struct {
	inst    int
	kind    flow.JumpKind
	table   flow.Table
	what    string
	targets []uint64
}

// booted is an instruction that a kernel writes while it boots.
type booted struct {
	inst int
	boot analyze.Boot
}

// reader makes functions of what the profiles of one file say. The zero batch and
// reader of a worker are ready.
type reader struct {
	*file
	ctx    context.Context
	others []*analyze.Result // by profile
	former former
	tracer flow.Tracer
}

// batch is a run of functions on its way into the page.
type batch struct {
	functions []function
	insts     []instruction // of all of them
	judged    []judged      // by profile: of all of them
	forms     []form
	numbers   map[form]uint32
	size      uint64 // of text, in bytes
	err       error
	reader    reader
}

func (b *batch) reset() {
	b.functions, b.insts, b.forms, b.size = b.functions[:0], b.insts[:0], b.forms[:0], 0
	for p := range b.judged {
		b.judged[p].empty()
	}
	clear(b.numbers)
}

// add adds a function that the first profile of those counted has judged.
func (b *batch) add(ctx context.Context, of *file, r *analyze.Result) {
	rd := &b.reader
	if rd.file == nil {
		rd.file, rd.ctx = of, ctx
		rd.former.isa = of.base().ISA
		for range of.Analyses {
			rd.others = append(rd.others, new(analyze.Result))
		}
		b.numbers, b.judged = map[form]uint32{}, make([]judged, len(of.Analyses))
	}
	n := len(b.functions)
	if n < cap(b.functions) {
		b.functions = b.functions[:n+1]
	} else {
		b.functions = append(b.functions, function{})
	}
	f := &b.functions[n]
	b.size += r.Function.Size
	if err := rd.read(f, r, b.judged); err != nil && b.err == nil {
		b.err = err
	}
	start := len(b.insts)
	for i := range r.Insts {
		inst := &r.Insts[i]
		form, numbers := rd.former.of(inst)
		k, ok := b.numbers[form]
		if !ok {
			k = uint32(len(b.forms))
			b.forms = append(b.forms, form)
			b.numbers[form] = k
		}
		b.insts = append(b.insts, instruction{inst.Addr, k, numbers, inst.Target, form.base != baseNone,
			inst.Flow == decode.FlowJump || inst.Flow == decode.FlowJumpIf, endsBlock(inst)})
	}
	f.insts = b.insts[start:]
}

// read fills in all but the instructions.
func (rd *reader) read(f *function, r *analyze.Result, all []judged) error {
	base := rd.base()
	*f = function{Function: r.Function, err: r.Err != nil, padding: r.Padding, blocks: f.blocks[:0],
		marks: f.marks[:0], lands: f.lands[:0], jumps: f.jumps[:0], boot: f.boot[:0], by: f.by}
	f.name = nameOf(base.Image, &r.Function)
	if path, line, ok := base.Image.Line(f.Addr); ok {
		f.source, f.line = path, line
	}
	for _, m := range r.Marks {
		if m.Kind &= siteKinds; m.Kind != 0 {
			f.marks = append(f.marks, m)
		}
	}
	for i := range r.Insts {
		if boot := r.Boot(i); boot != analyze.BootKept {
			f.boot = append(f.boot, booted{i, boot})
		}
	}
	if f.by == nil {
		f.by = make([]judged, len(rd.Analyses))
	}
	flowing := r
	for p, an := range rd.Analyses {
		j := &f.by[p]
		before := all[p].lengths()
		if p == rd.first {
			all[p].take(r.Insts, r, an.ISA.JumpLen())
			*j = all[p].since(before)
			j.summary, j.returns = analyze.Summarize(r), an.Return(r)
			continue
		}
		summary, returns, err := rd.judgeBy(p, f, r, &all[p])
		if err != nil {
			return err
		}
		*j = all[p].since(before)
		j.summary, j.returns = summary, returns
		if p == rd.flow && len(rd.others[p].Insts) == len(r.Insts) {
			flowing = rd.others[p]
		}
	}
	return rd.follow(f, flowing)
}

// judgeBy adds the verdicts of another profile to all, which may count functions
// otherwise: those that start in f are taken together.
func (rd *reader) judgeBy(p int, f *function, r *analyze.Result, all *judged) (sum analyze.Summary, returns *classify.Rule, err error) {
	an, res := rd.Analyses[p], rd.others[p]
	functions := an.Functions()
	first := sort.Search(len(functions), func(i int) bool { return functions[i].Addr >= f.Addr })
	last := first
	for last < len(functions) && (functions[last].Addr < f.End() || functions[last].Addr == f.Addr) {
		last++
	}
	if last-first == 1 && functions[first].Addr == f.Addr {
		if err := an.JudgeInto(rd.ctx, res, functions[first]); err != nil {
			return sum, nil, err
		}
		all.take(r.Insts, res, an.ISA.JumpLen())
		return analyze.Summarize(res), an.Return(res), nil
	}
	var whole analyze.Result
	for _, one := range functions[first:last] {
		if err := an.JudgeInto(rd.ctx, res, one); err != nil {
			return sum, nil, err
		}
		s := analyze.Summarize(res)
		sum.Merge(&s)
		whole.Insts = append(whole.Insts, res.Insts...)
		whole.Verdicts = append(whole.Verdicts, res.Verdicts...)
		whole.Optimize = append(whole.Optimize, res.Optimize...)
	}
	sum.Rank()
	all.take(r.Insts, &whole, an.ISA.JumpLen())
	return sum, nil, nil
}

// follow finds where control goes in a judged function.
func (rd *reader) follow(f *function, r *analyze.Result) error {
	if len(r.Insts) == 0 {
		return nil
	}
	an := rd.Analyses[rd.flow]
	if len(r.Verdicts) == 0 {
		return nil
	}
	way, err := an.Flow(r)
	if err != nil {
		return err
	}
	for i := range way.Blocks {
		b := &way.Blocks[i]
		f.blocks = append(f.blocks, b.To-b.From)
		if last := b.To - 1; r.Insts[last].Flow == decode.FlowJumpIndirect {
			f.jumps = append(f.jumps, rd.indirect(r, last, way.Blocks, b))
		}
	}
	for _, l := range way.Landings {
		own := l.Kind == place.LandBranch && l.From >= r.Addr && l.From < r.End()
		if !own && l.Kind != place.LandReturn {
			f.lands = append(f.lands, l)
		}
	}
	rd.tracer.End()
	return nil
}

// indirect describes the indirect jump that ends block b.
func (rd *reader) indirect(r *analyze.Result, i int, blocks []optcheck.Block, b *optcheck.Block) indirect {
	an := rd.Analyses[rd.flow]
	jump := an.ISA.IndirectJump(&rd.tracer, &r.Func, i, an.Image)
	x := indirect{inst: i, kind: jump.Kind, table: jump.Table, what: jump.What}
	if b.Exits&optcheck.ExitUnresolved != 0 {
		x.kind = flow.JumpUnresolved
		for _, u := range r.Unresolved {
			if u.Addr == r.Insts[i].Addr {
				x.what = u.What
			}
		}
	}
	for _, next := range b.Next {
		x.targets = append(x.targets, r.Insts[blocks[next].From].Addr)
	}
	return x
}

// nameOf returns a function's name as it was written in C++ and Rust.
func nameOf(img *image.Image, f *image.Function) string {
	if len(f.Name) > 0 && f.Name[0] == '_' {
		if name, base := img.Symbolize(f.Addr); base == f.Addr {
			return name
		}
	}
	return f.Name
}

// endsBlock reports whether a basic block ends with inst, by what the page knows of it.
func endsBlock(inst *decode.Inst) bool {
	return !inst.Continues() || inst.Flow == decode.FlowHalt || inst.Has(decode.Conditional) && !inst.IsCall()
}

// guessBlocks returns the numbers of instructions in basic blocks that the page finds
// by itself: a block starts where a branch of the function or a landing leads, and
// after an instruction that ends one.
func (f *function) guessBlocks() (sizes []int) {
	starts := map[uint64]bool{}
	for i := range f.insts {
		inst := &f.insts[i]
		if inst.hasTarget && inst.branches {
			starts[inst.target] = true
		}
	}
	for _, l := range f.lands {
		starts[l.Addr] = true
	}
	for i := range f.insts {
		if i == 0 || f.insts[i-1].ends || starts[f.insts[i].addr] {
			sizes = append(sizes, 0)
		}
		sizes[len(sizes)-1]++
	}
	return sizes
}
