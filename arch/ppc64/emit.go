package ppc64

import (
	"encoding/binary"

	"xol/decode"
	"xol/relocate"
)

// Instructions that moved forms are made of [Power ISA 3.1, Book I].
const (
	insnB      = 18 << 26
	insnNop    = 24 << 26
	insnTrap   = 31<<26 | 31<<21 | 4<<1 // trap
	insnADDI   = 14 << 26
	insnADDIS  = 15 << 26
	insnADDPC  = 19<<26 | 2<<1 // addpcis
	insnMR     = 31<<26 | 444<<1
	insnORI    = 24 << 26
	insnORIS   = 25 << 26
	insnSLDI32 = 30<<26 | 31<<6 | 1<<2 | 1<<1 // rldicr ra,rs,32,31
	insnLD     = 58 << 26
	insnSTD    = 62 << 26
	insnSTDU   = 62<<26 | 1
	insnMTSPR  = 31<<26 | 467<<1
	insnMFSPR  = 31<<26 | 339<<1
	insnBCTAR  = 19<<26 | 560<<1

	linkBit     = 1
	absoluteBit = 2
	boShift     = 21
	conditionOf = 0x3ff << 16 // BO and BI
)

// emitter writes the forms of one byte order.
type emitter struct{ littleEndian bool }

// Encode writes the code of p; see relocate.Relocator.
func (a ISA) Encode(dst []byte, p *relocate.Plan, to uint64) (int, error) {
	return relocate.Encode(a.mover(), dst, p, to)
}

// Emit appends the form of s; see relocate.Forms.
func (e emitter) Emit(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	switch formOf(s) {
	case formBranch:
		return e.branch(code, s, l)
	case formRegister:
		return e.register(code, s, l), nil
	case formSyscall:
		code = e.put(code, WordOf(&s.Inst))
		return e.link(code, s, l), nil
	case formAddress:
		return e.address(code, s, l)
	case formMemory:
		return e.memory(code, s, l)
	}
	if s.Inst.Len == prefixedSize && !l.Plan.Options.Linux {
		code = e.align(code, l)
	}
	return append(code, s.Inst.Bytes()...), nil
}

// Leave appends a jump to the instruction; see relocate.Forms.
func (e emitter) Leave(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	disp := int64(s.Inst.Addr - l.At(code))
	if !reaches(disp, 26) {
		return nil, l.OutOfReach(code, s, s.Inst.Addr)
	}
	return e.put(code, insnB|uint32(disp)&0x3fffffc), nil
}

// Back appends the way back; see relocate.Forms.
func (e emitter) Back(code []byte, next uint64, l *relocate.Layout) ([]byte, error) {
	opt := &l.Plan.Options
	if disp := int64(next - l.At(code)); l.NearForms() && reaches(disp, 26) {
		return e.put(code, insnB|uint32(disp)&0x3fffffc), nil
	}
	r := scratchFor(opt, 0)
	if opt.Reach == relocate.Near || refuseFar(l.Plan, r) != nil {
		return nil, l.OutOfReach(code, &l.Plan.Steps[len(l.Plan.Steps)-1], next)
	}
	code = e.save(code, r, l)
	code = e.set(code, r, sprTAR, next)
	code = e.restore(code, r, l)
	return e.put(code, insnBCTAR|boAlways<<boShift), nil
}

func (e emitter) put(code []byte, word uint32) []byte {
	if e.littleEndian {
		return binary.LittleEndian.AppendUint32(code, word)
	}
	return binary.BigEndian.AppendUint32(code, word)
}

// putPrefixed appends a prefixed instruction, which must be aligned.
func (e emitter) putPrefixed(code []byte, insn uint64) []byte {
	return e.put(e.put(code, uint32(insn>>32)), uint32(insn))
}

// align appends a nop where a prefixed instruction would cross a line's end.
func (e emitter) align(code []byte, l *relocate.Layout) []byte {
	if l.At(code)%lineSize == lineSize-wordSize {
		return e.put(code, insnNop)
	}
	return code
}

// fits reports whether v is a sign-extended number of 16 or of 32 bits.
func fits16(v uint64) bool { return int64(v) == int64(int16(v)) }
func fits32(v uint64) bool { return int64(v) == int64(int32(v)) }

// constantSize is the size of what constant appends.
func constantSize(v uint64) int {
	switch {
	case fits16(v):
		return wordSize
	case fits32(v):
		return (1 + oneIf(v&0xffff)) * wordSize
	}
	high := uint64(int64(v) >> 32)
	return constantSize(high) + (oneIf(high)+oneIf(v&0xffff0000)+oneIf(v&0xffff))*wordSize
}

func oneIf(v uint64) int {
	if v != 0 {
		return 1
	}
	return 0
}

// constant appends instructions that load r with v.
func (e emitter) constant(code []byte, r uint8, v uint64) []byte {
	rt := uint32(r) << 21
	same := rt | uint32(r)<<16
	switch {
	case fits16(v):
		return e.put(code, insnADDI|rt|uint32(v)&0xffff)
	case fits32(v):
		code = e.put(code, insnADDIS|rt|uint32(v)>>16)
	default:
		high := uint64(int64(v) >> 32)
		code = e.constant(code, r, high)
		if high != 0 {
			code = e.put(code, insnSLDI32|same)
		}
		if half := uint32(v) >> 16; half != 0 {
			code = e.put(code, insnORIS|same|half)
		}
	}
	if half := uint32(v) & 0xffff; half != 0 {
		code = e.put(code, insnORI|same|half)
	}
	return code
}

// Where a frame holds what, in bytes: the back chain first, which is r1 as it
// was, and then after the header that the ABI reserves.
const (
	frameChain  = 0
	frameSaved  = 32 // the scratch register
	frameSecond = 40 // another one, or a new value of r1
	frameBytes  = 64
)

// frameOf returns the size of a frame in bytes. It covers the red zone, unless
// nothing below the stack pointer is of use: a signal handler's frame then
// stays clear of both.
func frameOf(opt *relocate.Options) uint32 {
	if opt.NoRedZone {
		return frameBytes
	}
	return redZone + frameBytes
}

// inFrame appends a load or store of r at an offset in the frame.
func (e emitter) inFrame(code []byte, insn uint32, r uint8, offset uint32) []byte {
	return e.put(code, insn|uint32(r)<<21|stackPointer<<16|offset)
}

// save makes a frame and keeps r in it, where r is live.
func (e emitter) save(code []byte, r relocate.Scratch, l *relocate.Layout) []byte {
	if !r.Saved {
		return code
	}
	code = e.inFrame(code, insnSTDU, stackPointer, -frameOf(&l.Plan.Options)&0xffff)
	return e.inFrame(code, insnSTD, r.Reg, frameSaved)
}

func (e emitter) restore(code []byte, r relocate.Scratch, l *relocate.Layout) []byte {
	if !r.Saved {
		return code
	}
	code = e.inFrame(code, insnLD, r.Reg, frameSaved)
	return e.inFrame(code, insnADDI, stackPointer, frameOf(&l.Plan.Options))
}

// restoreTo is restore, with r1 becoming the value of r instead.
func (e emitter) restoreTo(code []byte, r relocate.Scratch) []byte {
	if !r.Saved {
		return e.put(code, insnMR|uint32(r.Reg)<<21|stackPointer<<16|uint32(r.Reg)<<11)
	}
	code = e.inFrame(code, insnSTD, r.Reg, frameSecond)
	code = e.inFrame(code, insnLD, r.Reg, frameSaved)
	return e.inFrame(code, insnLD, stackPointer, frameSecond)
}

// moveSPR appends mtspr or mfspr.
func (e emitter) moveSPR(code []byte, insn uint32, r relocate.Scratch, spr uint32) []byte {
	return e.put(code, insn|uint32(r.Reg)<<21|sprField(spr))
}

// set appends instructions that load a special register with v by way of r.
func (e emitter) set(code []byte, r relocate.Scratch, spr uint32, v uint64) []byte {
	return e.moveSPR(e.constant(code, r.Reg, v), insnMTSPR, r, spr)
}

// link appends instructions that load LR with the address after s.
func (e emitter) link(code []byte, s *relocate.Step, l *relocate.Layout) []byte {
	r := s.Scratch
	code = e.save(code, r, l)
	code = e.set(code, r, sprLR, s.Inst.Next())
	return e.restore(code, r, l)
}

// reaches reports whether a displacement fits a field of that many bits.
func reaches(disp int64, bits uint) bool { return disp>>(bits-1) == 0 || disp>>(bits-1) == -1 }

// branch appends b or bc without link, LR being loaded first where it has one.
func (e emitter) branch(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst := &s.Inst
	near := code
	if inst.Has(decode.Link) {
		near = e.link(code, s, l)
	}
	inside := l.Plan.Inside(inst.Target)
	switch {
	case onlyGetsPC(inst):
		return near, nil
	case inst.PCRel.Kind == decode.PCRelNone && !inside:
		return e.put(near, WordOf(inst)&^linkBit), nil
	}
	if inside || l.NearForms() {
		if near, ok := e.nearBranch(near, inst, l); ok {
			return near, nil
		}
	}
	if l.Plan.Options.Reach == relocate.Near || refuseFar(l.Plan, s.Scratch) != nil {
		return nil, l.OutOfReach(code, s, inst.Target)
	}
	return e.farBranch(code, s, l), nil
}

// nearBranch appends b or bc with another displacement. Out of reach of bc, it
// goes over a branch to b, so that CTR is decremented and tested once.
func (e emitter) nearBranch(code []byte, inst *decode.Inst, l *relocate.Layout) ([]byte, bool) {
	disp := int64(l.Moved(inst.Target) - l.At(code))
	conditional := inst.Has(decode.Conditional)
	const shortDisplacement = 0xfffc
	word := WordOf(inst) &^ (linkBit | absoluteBit | shortDisplacement)
	switch {
	case OpOf(inst) == OpBranchCond && reaches(disp, 16):
		return e.put(code, word|uint32(disp)&shortDisplacement), true
	case !conditional && reaches(disp, 26):
		return e.put(code, insnB|uint32(disp)&0x3fffffc), true
	case conditional && l.Plan.Options.Reach != relocate.Near && reaches(disp-overSize, 26):
		code = e.put(code, word|overSize)
		code = e.put(code, insnB|overSize)
		return e.put(code, insnB|uint32(disp-overSize)&0x3fffffc), true
	}
	return code, false
}

// farBranch appends bctar with the condition of b or bc.
func (e emitter) farBranch(code []byte, s *relocate.Step, l *relocate.Layout) []byte {
	inst, r := &s.Inst, s.Scratch
	code = e.save(code, r, l)
	if inst.Has(decode.Link) {
		code = e.set(code, r, sprLR, inst.Next())
	}
	code = e.set(code, r, sprTAR, inst.Target)
	code = e.restore(code, r, l)
	condition := uint32(boAlways << boShift)
	if OpOf(inst) == OpBranchCond {
		condition = WordOf(inst) & conditionOf
	}
	return e.put(code, insnBCTAR|condition)
}

// register appends bcctr or bctar after what loads LR. The target of bclrl
// goes from LR to TAR.
func (e emitter) register(code []byte, s *relocate.Step, l *relocate.Layout) []byte {
	word, r := WordOf(&s.Inst), s.Scratch
	if OpOf(&s.Inst) != OpBranchLR {
		return e.put(e.link(code, s, l), word&^linkBit)
	}
	code = e.save(code, r, l)
	code = e.moveSPR(code, insnMFSPR, r, sprLR)
	code = e.moveSPR(code, insnMTSPR, r, sprTAR)
	code = e.set(code, r, sprLR, s.Inst.Next())
	code = e.restore(code, r, l)
	// Of the hints BH only this one means the same to both [Power ISA 3.1,
	// Book I, 2.4].
	const hint, unpredictable = 3 << 11, 3 << 11
	if word&hint == unpredictable {
		return e.put(code, insnBCTAR|word&(conditionOf|hint))
	}
	return e.put(code, insnBCTAR|word&conditionOf)
}

// address appends addpcis or paddi with another displacement, or a constant.
func (e emitter) address(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst, r := &s.Inst, s.Scratch
	if l.NearForms() {
		if near, ok := e.nearAddress(code, inst, l); ok {
			return near, nil
		}
	}
	switch rt := targetOf(inst); {
	case l.Plan.Options.Reach == relocate.Near, rt == stackPointer && r.None():
		return nil, l.OutOfReach(code, s, inst.Target)
	case rt != stackPointer:
		return e.constant(code, rt, inst.Target), nil
	}
	code = e.save(code, r, l)
	code = e.constant(code, r.Reg, inst.Target)
	return e.restoreTo(code, r), nil
}

// nearAddress appends paddi, or addpcis, after which addi makes up for what is
// not a multiple of 64 KiB where that is shorter than a constant.
func (e emitter) nearAddress(code []byte, inst *decode.Inst, l *relocate.Layout) ([]byte, bool) {
	if inst.Len == prefixedSize {
		code = e.align(code, l)
		disp := int64(inst.Target - l.At(code))
		return e.putPrefixed(code, withDisplacement(inst.Detail, disp)), reaches(disp, 34)
	}
	rt := uint32(targetOf(inst))
	disp := int64(inst.Target - l.At(code) - wordSize)
	low := int64(int16(disp))
	high := (disp - low) >> 16
	if !reaches(high, 16) {
		return code, false
	}
	code = e.put(code, insnADDPC|rt<<21|uint32(high)&0xffc0|uint32(high)&0x3e<<15|uint32(high)&1)
	if low == 0 {
		return code, true
	}
	shorter := constantSize(inst.Target) > 2*wordSize && l.Plan.Options.Reach != relocate.Near
	return e.put(code, insnADDI|rt<<21|rt<<16|uint32(low)&0xffff), shorter && rt > stackPointer
}

// withDisplacement returns a prefixed instruction with another 34-bit
// displacement.
func withDisplacement(insn uint64, disp int64) uint64 {
	const field = 0x3ffff<<32 | 0xffff
	return insn&^field | uint64(disp)>>16&0x3ffff<<32 | uint64(disp)&0xffff
}

// memory appends a prefixed load or store with another displacement, or with
// its address in a register.
func (e emitter) memory(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst, r, d := &s.Inst, s.Scratch, dataOf(&s.Inst)
	aligned := e.align(code, l)
	if disp := int64(inst.Target - l.At(aligned)); reaches(disp, 34) && l.NearForms() {
		return e.putPrefixed(aligned, withDisplacement(inst.Detail, disp)), nil
	}
	rt := targetOf(inst)
	switch {
	case l.Plan.Options.Reach == relocate.Near:
		return nil, l.OutOfReach(code, s, inst.Target)
	case d.ownBase():
		code = e.constant(code, rt, inst.Target)
		return e.access(code, inst, rt, rt, l), nil
	case r.None():
		return nil, l.OutOfReach(code, s, inst.Target)
	case r.Saved && d.registers>>stackPointer&1 != 0:
		return e.stackPointerAccess(code, s, l), nil
	}
	code = e.save(code, r, l)
	code = e.constant(code, r.Reg, inst.Target)
	code = e.access(code, inst, rt, r.Reg, l)
	return e.restore(code, r, l), nil
}

// access appends a prefixed load or store of rt at the address in base.
func (e emitter) access(code []byte, inst *decode.Inst, rt, base uint8, l *relocate.Layout) []byte {
	const (
		relative = 1 << 52 // R
		target   = 31 << 21
	)
	insn := withDisplacement(inst.Detail&^(relative|target), 0)
	return e.putPrefixed(e.align(code, l), insn|uint64(rt)<<21|uint64(base)<<16)
}

// stackPointerAccess appends a load or store of r1 where the scratch register
// is on the stack. A new value comes into r1 last; an old one is that of the
// back chain.
func (e emitter) stackPointerAccess(code []byte, s *relocate.Step, l *relocate.Layout) []byte {
	inst, r := &s.Inst, s.Scratch
	code = e.save(code, r, l)
	if dataOf(inst).load {
		code = e.constant(code, r.Reg, inst.Target)
		code = e.access(code, inst, r.Reg, r.Reg, l)
		return e.restoreTo(code, r)
	}
	second := r.Reg + 1
	code = e.inFrame(code, insnSTD, second, frameSecond)
	code = e.constant(code, r.Reg, inst.Target)
	code = e.inFrame(code, insnLD, second, frameChain)
	code = e.access(code, inst, second, r.Reg, l)
	code = e.inFrame(code, insnLD, second, frameSecond)
	return e.restore(code, r, l)
}
