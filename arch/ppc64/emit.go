package ppc64

import (
	"encoding/binary"

	"xol/decode"
	"xol/relocate"
)

// Instructions that moved forms are made of [Power ISA 3.1, Book I].
const (
	insnB      = 18 << 26
	insnBC     = 16 << 26
	insnNop    = 24 << 26
	insnTrap   = 31<<26 | 31<<21 | 4<<1 // trap
	insnADDI   = 14 << 26
	insnADDIS  = 15 << 26
	insnADDPC  = 19<<26 | 2<<1 // addpcis
	insnORI    = 24 << 26
	insnORIS   = 25 << 26
	insnSLDI32 = 30<<26 | 31<<6 | 1<<2 | 1<<1 // rldicr ra,rs,32,31 without its sh bits
	insnLD     = 58 << 26
	insnSTD    = 62 << 26
	insnSTDU   = 62<<26 | 1
	insnMTSPR  = 31<<26 | 467<<1
	insnMFSPR  = 31<<26 | 339<<1
	insnBCTAR  = 19<<26 | 560<<1

	sprLR  = 8
	sprTAR = 815

	linkBit     = 1
	absoluteBit = 2
	boShift     = 21
)

// A form that saves a register on the stack makes a frame first, so that
// neither the red zone nor a signal handler's frame overlaps it.
const (
	frameBytes = redZone + scratchBytes
	savedAt    = 32 // in the frame, bytes
)

// emitter writes the forms of one byte order.
type emitter struct{ ISA }

// Encode writes the code of p; see relocate.Relocator.
func (a ISA) Encode(dst []byte, p *relocate.Plan, to uint64) (int, error) {
	return relocate.Encode(emitter{a}, dst, p, to)
}

// Emit appends the form of s; see relocate.Emitter.
func (e emitter) Emit(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	switch formOf(s) {
	case formBranch:
		return e.branch(code, s, l)
	case formLinked:
		code = e.set(code, scratchOf(s), sprLR, s.Inst.Next(), l)
		return e.put(code, WordOf(&s.Inst)&^linkBit), nil
	case formLinkedToLR:
		return e.linkedToLR(code, s, l), nil
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

// Back appends the way back; see relocate.Emitter.
func (e emitter) Back(code []byte, next uint64, l *relocate.Layout) ([]byte, error) {
	if l.Plan.Options.Back == relocate.BackBreakpoint {
		return e.put(code, insnTrap), nil
	}
	s := relocate.Step{Inst: decode.Inst{Addr: next}}
	return e.jump(code, uint32(scratchFor(&l.Plan.Options, noRegister)), next, &s, l)
}

func (e emitter) put(code []byte, word uint32) []byte {
	if e.LittleEndian {
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

// constantSize is the size of what constant appends.
func constantSize(v uint64) int {
	switch {
	case int64(v) == int64(int16(v)):
		return wordSize
	case int64(v) == int64(int32(v)):
		return 2 * wordSize
	}
	return 5 * wordSize
}

// constant appends instructions that load reg with v.
func (e emitter) constant(code []byte, reg uint32, v uint64) []byte {
	rt, same := reg<<21, reg<<21|reg<<16
	half := func(n int) uint32 { return uint32(v>>(16*n)) & 0xffff }
	switch constantSize(v) {
	case wordSize:
		return e.put(code, insnADDI|rt|half(0))
	case 2 * wordSize:
		code = e.put(code, insnADDIS|rt|half(1))
		return e.put(code, insnORI|same|half(0))
	}
	code = e.put(code, insnADDIS|rt|half(3))
	code = e.put(code, insnORI|same|half(2))
	code = e.put(code, insnSLDI32|same)
	code = e.put(code, insnORIS|same|half(1))
	return e.put(code, insnORI|same|half(0))
}

// save makes a frame and keeps reg in it, where the stack is for scratch.
func (e emitter) save(code []byte, reg uint32, l *relocate.Layout) []byte {
	if l.Plan.Options.Scratch != relocate.ScratchStack {
		return code
	}
	const down = 0x10000 - frameBytes
	code = e.put(code, insnSTDU|1<<21|1<<16|down)
	return e.put(code, insnSTD|reg<<21|1<<16|savedAt)
}

func (e emitter) restore(code []byte, reg uint32, l *relocate.Layout) []byte {
	if l.Plan.Options.Scratch != relocate.ScratchStack {
		return code
	}
	code = e.put(code, insnLD|reg<<21|1<<16|savedAt)
	return e.put(code, insnADDI|1<<21|1<<16|frameBytes)
}

// spr returns the field of an instruction that names a special register.
func spr(n uint32) uint32 { return n&31<<16 | n>>5<<11 }

// set appends instructions that load a special register with v by way of the
// general register reg.
func (e emitter) set(code []byte, reg, special uint32, v uint64, l *relocate.Layout) []byte {
	code = e.save(code, reg, l)
	code = e.constant(code, reg, v)
	code = e.put(code, insnMTSPR|reg<<21|spr(special))
	return e.restore(code, reg, l)
}

// reaches reports whether a displacement fits a field of that many bits.
func reaches(disp int64, bits uint) bool { return disp>>(bits-1) == 0 || disp>>(bits-1) == -1 }

// nearForms reports whether fields of instructions are to be used at all.
func nearForms(l *relocate.Layout) bool { return l.Plan.Options.Reach != relocate.Far }

// jump appends a jump to an original address, by way of TAR where b does not
// reach.
func (e emitter) jump(code []byte, scratch uint32, target uint64, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	target, inside := l.Moved(target), l.Plan.Inside(target)
	disp := int64(target - l.At(code))
	if reaches(disp, 26) && (inside || nearForms(l)) {
		return e.put(code, insnB|uint32(disp)&0x3fffffc), nil
	}
	if l.Plan.Options.Reach == relocate.Near || scratch == noRegister {
		return nil, &relocate.RangeError{Addr: s.Inst.Addr, Target: target, At: l.At(code)}
	}
	code = e.set(code, scratch, sprTAR, target, l)
	return e.put(code, insnBCTAR|boAlways<<boShift), nil
}

// branch appends b or bc without link, LR being loaded first where it has one.
func (e emitter) branch(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst := &s.Inst
	if inst.Has(decode.Link) {
		code = e.set(code, scratchOf(s), sprLR, inst.Next(), l)
	}
	if onlyGetsPC(inst) {
		return code, nil
	}
	word := WordOf(inst) &^ linkBit
	if inst.PCRel.Kind == decode.PCRelNone {
		return e.put(code, word), nil
	}
	if OpOf(inst) == OpBranch {
		return e.jump(code, scratchOf(s), inst.Target, s, l)
	}
	const displacement = 0xfffc
	disp := int64(l.Moved(inst.Target) - l.At(code))
	if reaches(disp, 16) && (nearForms(l) || l.Plan.Inside(inst.Target)) {
		return e.put(code, word&^displacement|uint32(disp)&displacement), nil
	}
	if !inst.Has(decode.Conditional) {
		return e.jump(code, scratchOf(s), inst.Target, s, l)
	}
	if l.Plan.Options.Reach == relocate.Near {
		return nil, &relocate.RangeError{Addr: inst.Addr, Target: inst.Target, At: l.At(code)}
	}
	return e.conditional(code, word&^displacement, s, l)
}

// conditional appends a bc that goes over a branch around the jump that it
// stands for, so that CTR is decremented and tested once.
func (e emitter) conditional(code []byte, word uint32, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	code = e.put(code, word|overSize)
	around := len(code)
	code = e.put(code, insnB)
	code, err := e.jump(code, scratchOf(s), s.Inst.Target, s, l)
	if err != nil {
		return nil, err
	}
	e.put(code[:around], insnB|uint32(len(code)-around))
	return code, nil
}

// linkedToLR appends the form of bclrl: its target goes from LR to TAR.
func (e emitter) linkedToLR(code []byte, s *relocate.Step, l *relocate.Layout) []byte {
	const conditionAndHint = 0x3ff<<16 | 3<<11
	reg := scratchOf(s)
	code = e.save(code, reg, l)
	code = e.put(code, insnMFSPR|reg<<21|spr(sprLR))
	code = e.put(code, insnMTSPR|reg<<21|spr(sprTAR))
	code = e.constant(code, reg, s.Inst.Next())
	code = e.put(code, insnMTSPR|reg<<21|spr(sprLR))
	code = e.restore(code, reg, l)
	return e.put(code, insnBCTAR|WordOf(&s.Inst)&conditionAndHint)
}

// address appends addpcis or paddi with another displacement, or a constant.
func (e emitter) address(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst := &s.Inst
	word := WordOf(inst)
	if inst.Len == prefixedSize {
		aligned := e.align(code, l)
		if disp := int64(inst.Target - l.At(aligned)); reaches(disp, 34) && nearForms(l) {
			return e.putPrefixed(aligned, withDisplacement(inst.Detail, disp)), nil
		}
	} else if disp := int64(inst.Target - l.At(code) - wordSize); disp&0xffff == 0 && reaches(disp>>16, 16) && nearForms(l) {
		d := uint32(disp >> 16)
		return e.put(code, word&^0x1fffc1|d&0xffc0|d&0x3e<<15|d&1), nil
	}
	if l.Plan.Options.Reach == relocate.Near {
		return nil, &relocate.RangeError{Addr: inst.Addr, Target: inst.Target, At: l.At(code)}
	}
	return e.constant(code, word>>21&31, inst.Target), nil
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
	inst := &s.Inst
	aligned := e.align(code, l)
	if disp := int64(inst.Target - l.At(aligned)); reaches(disp, 34) && nearForms(l) {
		return e.putPrefixed(aligned, withDisplacement(inst.Detail, disp)), nil
	}
	base, d := scratchOf(s), dataOf(inst)
	if base == noRegister || l.Plan.Options.Reach == relocate.Near || d.usesStackPointer() {
		return nil, &relocate.RangeError{Addr: inst.Addr, Target: inst.Target, At: l.At(code)}
	}
	own := d.ownBase() != noRegister
	if !own {
		code = e.save(code, base, l)
	}
	code = e.align(e.constant(code, base, inst.Target), l)
	const pcRelative = 1 << 52 // R
	code = e.putPrefixed(code, withDisplacement(inst.Detail&^pcRelative, 0)|uint64(base)<<16)
	if !own {
		code = e.restore(code, base, l)
	}
	return code, nil
}
