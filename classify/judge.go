package classify

import (
	"errors"
	"slices"

	"xol/decode"
)

// Judge knows the rules of one ISA for probes by one mechanism. It is what
// profiles differ in; New makes a Profile of it. One with a method
//
//	Entry(f *Func) uint64
//
// moves probes on the entry of f to the address that this returns, where that is
// another. A Judge is immutable and safe for concurrent use.
type Judge interface {
	// Decoder decodes lone instructions.
	decode.Decoder
	// Insts fills in verdicts, which are zero, for as many instructions of f,
	// from index first on: each by what it is and by what stands around it.
	Insts(verdicts []Verdict, f *Func, first int)
	// Elsewhere judges an address at which no instruction of f starts. holder is
	// the index of the instruction that holds it, -1 where it lies outside f.
	Elsewhere(f *Func, addr uint64, holder int) Verdict
	// Lone completes v, which Insts has filled in for the only instruction of a
	// function of which nothing else is known. err is what Decode said of its
	// bytes; where there is one, inst is Invalid.
	Lone(v *Verdict, inst *decode.Inst, err error)
}

// entryMover is a Judge of a mechanism that puts a probe on a function's entry
// after the instruction there: Entry returns the address where a probe on f.Addr
// is put, which is f.Addr where it is not moved.
type entryMover interface{ Entry(f *Func) uint64 }

// New returns the profile called name that judges by j.
func New(name string, j Judge) Profile {
	mover, _ := j.(entryMover)
	return &judged{name, j, mover}
}

type judged struct {
	name  string
	judge Judge
	mover entryMover // nil where no probe is moved
}

func (p *judged) Name() string { return p.name }

func (p *judged) Func(dst []Verdict, f *Func) []Verdict {
	dst, verdicts := extend(dst, len(f.Insts))
	if len(verdicts) == 0 {
		return dst
	}
	p.judge.Insts(verdicts, f, 0)
	if to := p.entry(f); to != f.Addr && f.Insts[0].Addr == f.Addr {
		if i, start := decode.Find(f.Insts, to); start {
			verdicts[0] = moved(verdicts[i], to)
		} else {
			verdicts[0] = moved(p.judge.Elsewhere(f, to, i), to)
		}
	}
	return dst
}

func (p *judged) At(f *Func, addr uint64) Verdict {
	if addr == f.Addr {
		if to := p.entry(f); to != addr {
			return moved(p.at(f, to), to)
		}
	}
	return p.at(f, addr)
}

// at judges the address addr of f, where the probe stays.
func (p *judged) at(f *Func, addr uint64) Verdict {
	i, start := decode.Find(f.Insts, addr)
	if !start {
		return p.judge.Elsewhere(f, addr, i)
	}
	var v [1]Verdict
	p.judge.Insts(v[:], f, i)
	return v[0]
}

func (p *judged) entry(f *Func) uint64 {
	if p.mover == nil {
		return f.Addr
	}
	return p.mover.Entry(f)
}

func (p *judged) Lone(code []byte, addr uint64) Verdict {
	var insts [1]decode.Inst
	inst := &insts[0]
	err := p.judge.Decode(inst, code, addr)
	if err != nil {
		*inst = decode.Inst{Addr: addr, Props: decode.Invalid}
		inst.Len = uint8(copy(inst.Raw[:p.judge.Align()], code))
	}
	var v [1]Verdict
	p.judge.Insts(v[:], &Func{Addr: addr, Code: code, Insts: insts[:]}, 0)
	p.judge.Lone(&v[0], inst, err)
	return v[0]
}

// Boundaries are the rules on addresses at which no instruction starts, and on
// bytes that are no instruction. A Judge that refuses all of these embeds them.
type Boundaries struct {
	Outside *Rule // addresses outside the function
	Inside  *Rule // addresses inside an instruction

	// Lone bytes that Decode refuses; nil where these are judged as they are.
	Truncated, TooLong, Invalid *Rule
}

// Elsewhere refuses addr; see Judge.
func (b *Boundaries) Elsewhere(f *Func, _ uint64, holder int) Verdict {
	if holder < 0 {
		return Refuse(b.Outside)
	}
	from := f.Insts[holder].Addr
	return Verdict{Rule: b.Inside, Culprit: from, Instead: from}
}

// Lone refuses bytes that are no instruction; see Judge.
func (b *Boundaries) Lone(v *Verdict, _ *decode.Inst, err error) {
	if rule := b.of(err); rule != nil {
		*v = Refuse(rule)
	}
}

// of returns the rule for an error of Decode.
func (b *Boundaries) of(err error) *Rule {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, decode.ErrTruncated):
		return b.Truncated
	case b.TooLong != nil && errors.Is(err, decode.ErrTooLong):
		return b.TooLong
	}
	return b.Invalid
}

// extend appends n zero verdicts to dst and returns all of them, and those
// that were added.
func extend(dst []Verdict, n int) (all, added []Verdict) {
	base := len(dst)
	all = slices.Grow(dst, n)[:base+n]
	added = all[base:]
	clear(added)
	return all, added
}

// Judges make the judge of each mechanism on one ISA.
type Judges struct {
	ISA     func() Judge
	Kprobes func(v Version, opt KernelOptions) Judge
	Uprobes func(v Version) Judge
}

// Profile returns the profile called name, with the rules that hold on every
// ISA laid over those of the ISA's judge. ok is false where there is no such
// profile; that of a version that is not known itself is answered by the nearest
// older one.
func (k *Known) Profile(name string, opt KernelOptions, judges Judges) (p Profile, ok bool) {
	m, v, ok := k.Find(name)
	if !ok {
		return nil, false
	}
	name = ProfileName(m, v)
	switch m {
	case Architecture:
		return withOwnedText(New(name, judges.ISA())), true
	case Uprobes:
		return withCheckedPlaces(New(name, judges.Uprobes(v))), true
	}
	return withKernelChecks(New(name, judges.Kprobes(v, opt)), opt), true
}
