package arm64

import (
	"encoding/binary"

	"xol/relocate"
)

// Instructions that moved forms are made of [Arm ARM, C6.2].
const (
	insnB      = 0x14000000
	insnBR     = 0xd61f0000
	insnRET    = 0xd65f0000
	insnMOVZ   = 0xd2800000
	insnMOVN   = 0x92800000
	insnMOVK   = 0xf2800000
	insnADRP   = 0x90000000
	insnADD    = 0x91000000 // immediate, 64 bits
	insnMOV    = 0xaa0003e0 // register
	insnAUTIA  = 0xdac11000
	insnAUTIZA = 0xdac13000
	insnPush   = 0xf81f0fe0 // str xt, [sp, #-16]!
	insnPop    = 0xf84107e0 // ldr xt, [sp], #16
	insnBRK    = 0xd4200000

	brkKprobeStep = 6 // the immediate of a kprobe's step breakpoint
)

// emitter writes the moved forms.
type emitter struct{}

// Encode writes the code of p; see relocate.Relocator.
func (ISA) Encode(dst []byte, p *relocate.Plan, to uint64) (int, error) {
	return relocate.Encode(emitter{}, dst, p, to)
}

// Emit appends the form of s; see relocate.Emitter.
func (e emitter) Emit(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	switch formOf(s) {
	case formBranch:
		return e.jump(code, s, s.Inst.Target, l)
	case formCond:
		return e.cond(code, s, l)
	case formCall:
		code = e.constant(code, linkRegister, s.Inst.Next(), l)
		return e.jump(code, s, s.Inst.Target, l)
	case formCallReg:
		return e.callReg(code, s, l), nil
	case formAddress:
		return e.address(code, s, l)
	case formLiteral:
		return e.literal(code, s, l)
	}
	return append(code, s.Inst.Bytes()...), nil
}

// Back appends the way back; see relocate.Emitter.
func (e emitter) Back(code []byte, next uint64, l *relocate.Layout) ([]byte, error) {
	if l.Plan.Options.Back == relocate.BackBreakpoint {
		return put(code, insnBRK|brkKprobeStep<<5), nil
	}
	s := relocate.Step{Inst: decode.Inst{Addr: next}, Detail: uint32(deadRegister(&l.Plan.Options, 0)) << 8}
	return e.jump(code, &s, next, l)
}

func put(code []byte, w uint32) []byte { return binary.LittleEndian.AppendUint32(code, w) }

// reaches reports whether a displacement in words fits a field of that many
// bits.
func reaches(disp int64, bits uint) bool {
	words := disp >> 2
	return words>>(bits-1) == 0 || words>>(bits-1) == -1
}

// nearForms reports whether fields of instructions are to be used at all.
func nearForms(l *relocate.Layout) bool { return l.Plan.Options.Reach != relocate.Far }

func outOfReach(code []byte, s *relocate.Step, l *relocate.Layout) error {
	return &relocate.RangeError{Addr: s.Inst.Addr, Target: s.Inst.Target, At: l.At(code)}
}

// constant appends instructions that load x<reg> with v: adrp and add where v
// is near, else as many halves as it takes.
func (e emitter) constant(code []byte, reg uint32, v uint64, l *relocate.Layout) []byte {
	if nearForms(l) {
		if near, ok := e.pageAndOffset(code, reg, v, l); ok {
			return near
		}
	}
	zeros, ones := 0, 0
	for i := range 4 {
		switch uint16(v >> (16 * i)) {
		case 0:
			zeros++
		case 0xffff:
			ones++
		}
	}
	first, skip := uint32(insnMOVZ), uint16(0)
	if ones > zeros {
		first, skip = insnMOVN, 0xffff
	}
	started := false
	for i := range uint32(4) {
		half := uint16(v >> (16 * i))
		switch {
		case half == skip:
			continue
		case started:
			code = put(code, insnMOVK|i<<21|uint32(half)<<5|reg)
		default:
			code = put(code, first|i<<21|uint32(half^skip)<<5|reg)
			started = true
		}
	}
	if !started {
		code = put(code, first|reg)
	}
	return code
}

// pageAndOffset appends adrp, and add where the address is not a page's.
func (e emitter) pageAndOffset(code []byte, reg uint32, v uint64, l *relocate.Layout) ([]byte, bool) {
	code, ok := e.page(code, reg, v, l)
	if offset := uint32(v & 0xfff); ok && offset != 0 {
		code = put(code, insnADD|offset<<10|reg<<5|reg)
	}
	return code, ok
}

// page appends adrp for the page of v, if that reaches.
func (e emitter) page(code []byte, reg uint32, v uint64, l *relocate.Layout) ([]byte, bool) {
	pages := int64(v>>12<<12-l.At(code)>>12<<12) >> 12
	if pages>>20 != 0 && pages>>20 != -1 {
		return code, false
	}
	return put(code, insnADRP|uint32(pages)&3<<29|uint32(pages>>2)&0x7ffff<<5|reg), true
}

// jump appends a jump to an original address. Beyond the reach of b it returns
// to a register that holds the address: unlike br, ret may land anywhere in
// pages that are guarded against indirect branches.
func (e emitter) jump(code []byte, s *relocate.Step, target uint64, l *relocate.Layout) ([]byte, error) {
	moved, inside := l.Moved(target), l.Plan.Inside(target)
	disp := int64(moved - l.At(code))
	if reaches(disp, 26) && (inside || nearForms(l)) {
		return put(code, insnB|uint32(disp>>2)&0x3ffffff), nil
	}
	reg := scratchOf(s)
	if l.Plan.Options.Reach == relocate.Near || reg == noRegister {
		return nil, outOfReach(code, s, l)
	}
	code = e.constant(code, reg, moved, l)
	return put(code, insnRET|reg<<5), nil
}

// cond appends a conditional branch with a new displacement, or the opposite
// one over a jump.
func (e emitter) cond(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	target := s.Inst.Target
	w := word(&s.Inst)
	field := uint32(0x7ffff << 5)
	bits := uint(19)
	if isTestBranch(w) {
		field, bits = 0x3fff<<5, 14
	}
	disp := int64(l.Moved(target) - l.At(code))
	if reaches(disp, bits) && (l.Plan.Inside(target) || nearForms(l)) {
		return put(code, w&^field|uint32(disp>>2)<<5&field), nil
	}
	if l.Plan.Options.Reach == relocate.Near {
		return nil, outOfReach(code, s, l)
	}
	if isAlways(w) {
		return e.jump(code, s, target, l)
	}
	at := len(code)
	code, err := e.jump(put(code, 0), s, target, l)
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint32(code[at:], opposite(w)&^field|uint32(len(code)-at)>>2<<5)
	return code, nil
}

// isTestBranch recognises tbz and tbnz, isCompareBranch cbz and cbnz.
func isTestBranch(w uint32) bool    { return w&0x7e000000 == 0x36000000 }
func isCompareBranch(w uint32) bool { return w&0x7e000000 == 0x34000000 }

// isAlways recognises b.al and b.nv.
func isAlways(w uint32) bool {
	return !isTestBranch(w) && !isCompareBranch(w) && w&0xe == 0xe
}

// opposite returns the branch with the opposite condition.
func opposite(w uint32) uint32 {
	if isTestBranch(w) || isCompareBranch(w) {
		return w ^ 1<<24
	}
	return w ^ 1
}

// callReg appends the form of blr: x30 first, then the same branch without
// link. A target in x30 is moved out of the way.
func (e emitter) callReg(code []byte, s *relocate.Step, l *relocate.Layout) []byte {
	const linkBit = 1 << 21
	w := word(&s.Inst) &^ linkBit
	if reg := scratchOf(s); reg != noRegister {
		code = put(code, insnMOV|linkRegister<<16|reg)
		w = w&^(31<<5) | reg<<5
	}
	return put(e.constant(code, linkRegister, s.Inst.Next(), l), w)
}

// address appends adr or adrp with a new displacement, or a constant.
func (e emitter) address(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst := &s.Inst
	w := word(inst)
	const field = 3<<29 | 0x7ffff<<5
	isADRP := w>>31 != 0
	if nearForms(l) {
		disp := int64(inst.Target - l.At(code))
		if !isADRP && disp>>20 == disp>>63 {
			return put(code, w&^field|uint32(disp)&3<<29|uint32(disp>>2)&0x7ffff<<5), nil
		}
		if isADRP {
			if moved, ok := e.page(code, w&31, inst.Target, l); ok {
				return moved, nil
			}
		}
	}
	if l.Plan.Options.Reach == relocate.Near {
		return nil, outOfReach(code, s, l)
	}
	return e.constant(code, w&31, inst.Target, l), nil
}

// literal appends a literal load or prefetch with a new displacement, or with
// its address in a register.
func (e emitter) literal(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst := &s.Inst
	w := word(inst)
	const field = 0x7ffff << 5
	disp := int64(inst.Target - l.At(code))
	if reaches(disp, 19) && nearForms(l) {
		return put(code, w&^field|uint32(disp>>2)<<5&field), nil
	}
	base := scratchOf(s)
	if base == noRegister || l.Plan.Options.Reach == relocate.Near {
		return nil, outOfReach(code, s, l)
	}
	saved := s.Detail&savedBit != 0
	if saved {
		code = put(code, insnPush|base)
	}
	code = e.constant(code, base, inst.Target, l)
	code = put(code, baseForms[w>>30|w>>24&4]|base<<5|w&31)
	if saved {
		code = put(code, insnPop|base)
	}
	return code, nil
}

// baseForms are the loads with a base register and no offset that stand for
// literal ones, by opc and, above it, V.
var baseForms = [8]uint32{
	0xb9400000, // ldr w
	0xf9400000, // ldr x
	0xb9800000, // ldrsw
	0xf9800000, // prfm
	0xbd400000, // ldr s
	0xfd400000, // ldr d
	0x3dc00000, // ldr q
}
