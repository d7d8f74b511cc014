package amd64

import (
	"encoding/binary"
	"slices"

	"xol/classify"
	"xol/decode"
	"xol/optcheck"
	"xol/place"
)

// Optimizer returns the rules for turning breakpoints into jumps under one of
// the names of package classify.
func (a ISA) Optimizer(profile string, opt classify.KernelOptions) (optcheck.Optimizer, bool) {
	mechanism, v, ok := known.Find(profile)
	if !ok {
		return nil, false
	}
	switch mechanism {
	case classify.Architecture:
		return optcheck.New(a), true
	case classify.Uprobes:
		return optcheck.LinuxUprobes(), true
	}
	return newKprobeOptimizer(v, opt), true
}

// kprobeOptimizer answers as kprobes of one version of Linux do
// [arch/x86/kernel/kprobes/opt.c]. Entry text needs no rule of its own, since
// probes are refused there. Like the verdicts on probes, it takes the kernel to
// run on several CPUs: LOCK prefixes are not patched then, and not reserved.
type kprobeOptimizer struct {
	decoder    *kernelDecoder
	noIndirect bool      // a function with an indirect jump is not optimized
	thunks     textRange // a jump into this is an indirect one, too
	returns    uint64    // but for one to here
}

func newKprobeOptimizer(v classify.Version, opt classify.KernelOptions) kprobeOptimizer {
	o := kprobeOptimizer{noIndirect: !opt.Retpoline, decoder: newKernelDecoder(v)}
	if o.decoder.knows&kprobeNoIndirect != 0 {
		o.noIndirect, o.thunks = true, indirectThunks(&opt)
		o.returns = opt.SymbolAddress("__x86_return_thunk")
	}
	return o
}

// textRange is a range of addresses [from, to).
type textRange struct{ from, to uint64 }

func (r textRange) holds(addr uint64) bool { return addr >= r.from && addr < r.to }

// indirectThunks returns where the retpolines are, as far as the kernel's symbols
// are known. When it boots, the kernel puts returns in the place of jumps to the
// return thunk among them, on CPUs that need no such thunk.
func indirectThunks(opt *classify.KernelOptions) textRange {
	r := textRange{opt.SymbolAddress("__indirect_thunk_start"), opt.SymbolAddress("__indirect_thunk_end")}
	if r.from == 0 || r.to == 0 {
		return textRange{}
	}
	return r
}

// toThunk reports whether a jump to addr is an indirect one.
func (o *kprobeOptimizer) toThunk(addr uint64) bool { return o.thunks.holds(addr) && addr != o.returns }

func (kprobeOptimizer) WholeProgram() bool { return false }

// Func judges every instruction of f; see optcheck.Optimizer.
func (o kprobeOptimizer) Func(dst []optcheck.Verdict, f *optcheck.Function, s *optcheck.Scratch) []optcheck.Verdict {
	base := len(dst)
	dst = slices.Grow(dst, len(f.Insts))[:base+len(f.Insts)]
	verdicts := dst[base:]
	clear(verdicts)
	open := 0
	for i := range verdicts {
		rule, decided := optcheck.LinuxKprobe(&f.Verdicts[i])
		verdicts[i].Rule = rule
		if !decided {
			open++
		}
	}
	if open == 0 {
		return dst
	}
	l := s.Layout(uint64(len(f.Code)))
	whole := o.lay(l, f)
	for i := range verdicts {
		if v := &f.Verdicts[i]; v.OK() && verdicts[i].Rule == nil {
			optimizeRegion(&verdicts[i], l, f, f.Insts[i].Addr-f.Addr, &whole)
		}
	}
	optimizeReserved(verdicts, f)
	markDependent(verdicts, f)
	if len(verdicts) > 0 {
		if i, start := decode.Find(f.Insts, f.Verdicts[0].MovedTo); start {
			verdicts[0] = verdicts[i]
		}
	}
	return dst
}

// lay notes in l how the kernel decodes f. It returns a verdict with a rule
// where something keeps the kernel from optimizing anything in f.
func (o kprobeOptimizer) lay(l *optcheck.Layout, f *optcheck.Function) optcheck.Verdict {
	var k kernelInsn
	var buf [kernelWindow]byte
	var whole optcheck.Verdict
	i, off, n := 0, uint64(0), uint64(len(f.Code))
	for off < n {
		for i < len(f.Insts) && f.Insts[i].Addr-f.Addr < off {
			i++
		}
		l.Starts.Add(off)
		at := i < len(f.Insts) && f.Insts[i].Addr-f.Addr == off
		if at && o.layCommon(l, &f.Insts[i], &f.Verdicts[i], off) {
			off += uint64(f.Insts[i].Len)
			i++
			continue
		}
		code := window(f.Code, off, &buf)
		if !o.decoder.decode(&k, code) {
			return optcheck.Refuse(&optimizeRules[optimizeUndecodable], f.Addr+off)
		}
		if k.fixed(f.Addr+off) && !(at && f.Verdicts[i].Exec == classify.ExecFtrace) {
			l.Fixed.Add(off)
		}
		if distance, ok := k.jumps(code); ok && !(at && f.Insts[i].Has(decode.External)) {
			target := off + uint64(k.len) + distance
			l.Branch(off, target)
			if whole.Rule == nil && o.toThunk(f.Addr+target) {
				whole = optcheck.Refuse(&optimizeRules[optimizeIndirect], f.Addr+off)
			}
		}
		if o.noIndirect && whole.Rule == nil && k.jumpsIndirectly() {
			whole = optcheck.Refuse(&optimizeRules[optimizeIndirect], f.Addr+off)
		}
		off += uint64(k.len)
	}
	l.Starts.Add(off)
	if m := exceptionAt(l, f); m != nil {
		return optcheck.Refuse(&optimizeRules[optimizeException], m.Addr)
	}
	return whole
}

// exceptionAt returns the first entry of __ex_table that lists an instruction
// of f, nil where none does.
func exceptionAt(l *optcheck.Layout, f *optcheck.Function) *place.Mark {
	for i := range f.Marks {
		m := &f.Marks[i]
		if off := m.Addr - f.Addr; m.Kind&place.ExTable != 0 && off < uint64(len(f.Code)) && l.Starts.Has(off) {
			return m
		}
	}
	return nil
}

// layCommon notes in l an instruction of which its opcode, or the verdict on it,
// tells how the kernel takes it, and reports whether inst is one of them.
func (o kprobeOptimizer) layCommon(l *optcheck.Layout, inst *decode.Inst, v *classify.Verdict, off uint64) bool {
	if v.Exec == classify.ExecSlot && v.Hazard == nil && v.MovedTo == 0 && inst.Flow == decode.FlowNone && !inst.Has(decode.Invalid) {
		if !v.Boost { // the verdict has asked the same
			l.Fixed.Add(off)
		}
		return true
	}
	stays := true
	switch kind := o.decoder.kindOf(inst); {
	case kind == commonMoves, kind == commonStays:
		stays = kind == commonStays || !copyReaches(inst)
	case kind == commonBranch:
		if inst.Flow == decode.FlowCall {
			break
		}
		if o.toThunk(inst.Target) {
			return false
		}
		if !inst.Has(decode.External) {
			l.Branch(off, off+inst.Target-inst.Addr)
		}
	case v.MovedTo != 0 || inst.Has(decode.Invalid):
		return false
	case v.Exec == classify.ExecSlot && v.Hazard == nil && (!v.Boosted || inst.Flow == decode.FlowNone):
		// The kernel counts the same length, and only boosted branches run in a slot.
		stays = !v.Boost
	case v.Exec == classify.ExecEmulate && inst.Flow != decode.FlowJumpIf && isCommon(inst, DetailOf(inst)):
		if o.noIndirect && inst.Flow == decode.FlowJumpIndirect {
			return false
		}
		stays = !v.Boost
	default:
		return false
	}
	if stays && v.Exec != classify.ExecFtrace {
		l.Fixed.Add(off)
	}
	return true
}

// fixed reports whether the kernel would not move k, which stands at addr, into
// a detour buffer [copy_optimized_instructions]. What __ex_table lists keeps
// the whole function from being optimized.
func (k *kernelInsn) fixed(addr uint64) bool {
	return k.kprobeCopyRule(kprobeActions[k.op[0]], addr) != kprobeAccepted || !k.kprobeBoost()
}

// jumps returns how far after itself k jumps, which code starts with, if the
// kernel takes it for a direct jump [insn_jump_into_range]. It does so with
// VEX, EVEX and REX2 instructions of the same opcode byte, too.
func (k *kernelInsn) jumps(code *[kernelWindow]byte) (distance uint64, ok bool) {
	if !jumpsByOpcode(k.op[0]) && (k.op[0] != 0x0F || k.op[1]&0xF0 != 0x80) {
		return 0, false
	}
	switch k.nimm {
	case 1:
		distance = uint64(int8(code[k.len-1]))
	case 4:
		distance = uint64(int32(binary.LittleEndian.Uint32(code[k.len-4:])))
	}
	return distance, true
}

// jumpsByOpcode reports whether the kernel takes a first opcode byte for that of
// a direct jump: conditional ones, loops and jmp, but not xbegin.
func jumpsByOpcode(op byte) bool {
	return op&0xF0 == 0x70 || op&0xFC == 0xE0 || op == 0xE9 || op == 0xEB
}

// jumpsIndirectly reports whether the kernel takes k for an indirect jump
// [insn_is_indirect_jump].
func (k *kernelInsn) jumpsIndirectly() bool {
	return k.op[0] == 0xFF && k.reg()&6 == 4 || k.op[0] == 0xEA
}

// optimizeRegion fills in v, the zero verdict, for the region that starts at off.
// whole has a rule where that refuses all of f.
func optimizeRegion(v *optcheck.Verdict, l *optcheck.Layout, f *optcheck.Function, off uint64, whole *optcheck.Verdict) {
	if uint64(len(f.Code))-off < jumpNear {
		v.Rule, v.Culprit = &optimizeRules[optimizeBeyond], f.End()
		return
	}
	if whole.Rule != nil {
		*v = *whole
		return
	}
	// The byte after the jump counts, too.
	if from, ok := l.BranchInto(off+1, jumpNear); ok {
		v.Rule, v.Culprit = &optimizeRules[optimizeTarget], f.Addr+from
		return
	}
	if !reachesSlots(f.Addr + off) {
		v.Rule = &optimizeRules[optimizeReach]
		return
	}
	if at, ok := l.Fixed.Within(off, jumpNear); ok {
		v.Rule = &optimizeRules[optimizeFixed]
		if at != off {
			v.Culprit = f.Addr + at
		}
		return
	}
	end, _ := l.Starts.Within(off+jumpNear, maxInsnLen)
	v.Region = uint8(end - off)
	v.Moved = v.Region
}

// optimizeReserved refuses the regions that touch text which the kernel
// patches, or another probe.
func optimizeReserved(verdicts []optcheck.Verdict, f *optcheck.Function) {
	for _, m := range f.Marks {
		for i := range reservedRules {
			if m.Kind&reservedRules[i].kind != 0 {
				refuseOver(verdicts, f.Insts, m.Addr, m.End(), &reservedRules[i].rule)
				break
			}
		}
	}
	for _, addr := range f.Armed {
		refuseOver(verdicts, f.Insts, addr, addr, &optimizeRules[optimizeProbe])
	}
}

// maxRegion is the length in bytes of the longest region.
const maxRegion = jumpNear - 1 + maxInsnLen

// refuseOver refuses by r the regions that hold lo and start below hi.
func refuseOver(verdicts []optcheck.Verdict, insts []decode.Inst, lo, hi uint64, r *classify.Rule) {
	for i := decode.From(insts, lo-min(lo, maxRegion)); i < len(insts) && insts[i].Addr < hi; i++ {
		if v := &verdicts[i]; v.OK() && insts[i].Addr+uint64(v.Region) > lo {
			*v = optcheck.Refuse(r, lo)
		}
	}
}

// markDependent marks the verdicts that are other ones where the kernel has
// written other text: for a CPU that needs no thunk, or for a jump label that
// has changed.
func markDependent(verdicts []optcheck.Verdict, f *optcheck.Function) {
	for _, m := range f.Marks {
		switch {
		case m.Kind&place.ReturnThunk != 0:
			dependOnThunk(verdicts, f, m.Addr, 1) // ret
		case m.Kind&place.BranchThunk != 0:
			dependOnThunk(verdicts, f, m.Addr, 3) // jmp through a register
		case m.Kind&place.JumpTarget != 0:
			dependOnLabel(verdicts, f, m.Addr, func(v *optcheck.Verdict) bool { return v.OK() })
		case m.Kind&place.JumpLabel != 0:
			if i, start := decode.Find(f.Insts, m.Addr); start && f.Insts[i].Flow == decode.FlowJump {
				dependOnLabel(verdicts, f, f.Insts[i].Target, func(v *optcheck.Verdict) bool { return v.Culprit == m.Addr })
			}
		}
	}
}

// dependOnThunk marks the regions that the jump to a thunk at addr alone keeps
// from being replaced, and that would end in the instruction, of at most size
// bytes, which stands there on a CPU that needs no thunk. That one passes the
// test of boosting.
func dependOnThunk(verdicts []optcheck.Verdict, f *optcheck.Function, addr, size uint64) {
	i, start := decode.Find(f.Insts, addr)
	if !start || f.Insts[i].Flow != decode.FlowJump {
		return
	}
	for i--; i >= 0 && f.Insts[i].Addr+jumpNear > addr; i-- {
		if v := &verdicts[i]; f.Insts[i].Addr+jumpNear <= addr+size && v.Rule == &optimizeRules[optimizeFixed] && v.Culprit == addr {
			v.Depends = true
		}
	}
}

// dependOnLabel marks the verdicts of which that holds on the regions into which
// a branch to addr would go.
func dependOnLabel(verdicts []optcheck.Verdict, f *optcheck.Function, addr uint64, holds func(*optcheck.Verdict) bool) {
	for i := decode.From(f.Insts, addr-jumpNear); i < len(f.Insts) && f.Insts[i].Addr < addr; i++ {
		if holds(&verdicts[i]) {
			verdicts[i].Depends = true
		}
	}
}
