package arm64

import (
	"encoding/binary"

	"xol/decode"
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
	return relocate.Encode(&mover, dst, p, to)
}

// Emit appends the form of s; see relocate.Forms.
func (e emitter) Emit(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	switch formOf(s) {
	case formBranch:
		return e.branch(code, s, l)
	case formCond, formOver:
		return e.cond(code, s, l)
	case formCall:
		return e.branch(e.constant(code, linkRegister, s.Inst.Next(), l), s, l)
	case formCallReg:
		return e.callReg(code, s, l), nil
	case formCallAuth:
		return e.callAuth(code, s, l), nil
	case formAddress:
		return e.address(code, s, l)
	case formLiteral:
		return e.literal(code, s, l)
	}
	return append(code, s.Inst.Bytes()...), nil
}

// Back appends the way back; see relocate.Forms.
func (e emitter) Back(code []byte, next uint64, l *relocate.Layout) ([]byte, error) {
	last := &l.Plan.Steps[len(l.Plan.Steps)-1]
	if !needsBack(&last.Inst) {
		return code, nil
	}
	return e.jump(code, last, next, uint32(backRegister(l.Plan)), l)
}

// Leave appends a jump to the instruction; see relocate.Forms.
func (e emitter) Leave(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	disp := int64(s.Inst.Addr - l.At(code))
	if !reaches(disp, 26) {
		return nil, l.OutOfReach(code, s, s.Inst.Addr)
	}
	return put(code, insnB|uint32(disp>>2)&0x3ffffff), nil
}

func put(code []byte, w uint32) []byte { return binary.LittleEndian.AppendUint32(code, w) }

// reaches reports whether a displacement in words fits a field of that many
// bits.
func reaches(disp int64, bits uint) bool {
	words := disp >> 2
	return words>>(bits-1) == 0 || words>>(bits-1) == -1
}

// constant appends instructions that load x<reg> with v: adrp and add where v
// is near, else its halves.
func (e emitter) constant(code []byte, reg uint32, v uint64, l *relocate.Layout) []byte {
	if l.NearForms() {
		if near, ok := e.pageAndOffset(code, reg, v, l); ok {
			return near
		}
	}
	first, skip := uint32(insnMOVZ), uint16(0)
	if mostlyOnes(v) {
		first, skip = insnMOVN, 0xffff
	}
	start := len(code)
	for i := range uint32(4) {
		switch h := half(v, i); {
		case h == skip:
		case len(code) == start:
			code = put(code, first|i<<21|uint32(h^skip)<<5|reg)
		default:
			code = put(code, insnMOVK|i<<21|uint32(h)<<5|reg)
		}
	}
	if len(code) == start {
		code = put(code, first|reg)
	}
	return code
}

// half returns the i-th 16 bits of v.
func half(v uint64, i uint32) uint16 { return uint16(v >> (16 * i)) }

// countHalves returns how many halves of v equal h.
func countHalves(v uint64, h uint16) (n int) {
	for i := range uint32(4) {
		if half(v, i) == h {
			n++
		}
	}
	return n
}

func mostlyOnes(v uint64) bool { return countHalves(v, 0xffff) > countHalves(v, 0) }

// halves returns how many instructions load a register with v half by half.
func halves(v uint64) int {
	return max(1, 4-max(countHalves(v, 0), countHalves(v, 0xffff)))
}

// pageMask is the part of an address that adrp leaves to add.
const pageMask = 0xfff

// pageAndOffset appends adrp, and add where the address is not a page's.
func (e emitter) pageAndOffset(code []byte, reg uint32, v uint64, l *relocate.Layout) ([]byte, bool) {
	code, ok := e.page(code, reg, v, l)
	if offset := uint32(v & pageMask); ok && offset != 0 {
		code = put(code, insnADD|offset<<10|reg<<5|reg)
	}
	return code, ok
}

// page appends adrp for the page of v, if that reaches.
func (e emitter) page(code []byte, reg uint32, v uint64, l *relocate.Layout) ([]byte, bool) {
	pages := int64(v&^pageMask-l.At(code)&^pageMask) >> 12
	if pages>>20 != 0 && pages>>20 != -1 {
		return code, false
	}
	return put(code, insnADRP|uint32(pages)&3<<29|uint32(pages>>2)&0x7ffff<<5|reg), true
}

// jump appends a jump to an original address. Beyond the reach of b it returns
// to the register reg, which is dead there: unlike br, ret may land anywhere in
// pages that are guarded against indirect branches [Arm ARM, D8.4.9].
func (e emitter) jump(code []byte, s *relocate.Step, target uint64, reg uint32, l *relocate.Layout) ([]byte, error) {
	moved, inside := l.Moved(target), l.Plan.Inside(target)
	disp := int64(moved - l.At(code))
	if reaches(disp, 26) && (inside || l.NearForms()) {
		return put(code, insnB|uint32(disp>>2)&0x3ffffff), nil
	}
	if l.Plan.Options.Reach == relocate.Near || reg == noRegister {
		return nil, l.OutOfReach(code, s, target)
	}
	return put(e.constant(code, reg, moved, l), insnRET|reg<<5), nil
}

// branch appends b, or the jump that stands for it.
func (e emitter) branch(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	return e.jump(code, s, s.Inst.Target, uint32(s.Scratch.Reg), l)
}

// displacement is the field of a conditional branch that holds the distance in
// words: so many bits from bit 5.
type displacement uint

func displacementOf(inst *decode.Inst) displacement {
	switch OpOf(inst) {
	case OpTestBranch:
		return 14
	case OpCompareRegsBranch:
		return 9
	}
	return 19
}

// set returns w with a distance in bytes.
func (d displacement) set(w uint32, disp int64) uint32 {
	mask := uint32(1<<d-1) << 5
	return w&^mask | uint32(disp>>2)<<5&mask
}

// cond appends a conditional branch with a new displacement; or the opposite
// one over a jump; or, where there is no opposite, the same to a jump that
// another one goes over.
func (e emitter) cond(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst := &s.Inst
	w, field := WordOf(inst), displacementOf(inst)
	disp := int64(l.Moved(inst.Target) - l.At(code))
	if reaches(disp, uint(field)) && (l.Plan.Inside(inst.Target) || l.NearForms()) {
		return put(code, field.set(w, disp)), nil
	}
	if l.Plan.Options.Reach == relocate.Near {
		return nil, l.OutOfReach(code, s, inst.Target)
	}
	if formOf(s) == formOver {
		code = put(code, field.set(w, 2*wordSize))
	}
	at := len(code)
	code, err := e.jump(put(code, 0), s, inst.Target, uint32(s.Scratch.Reg), l)
	if err != nil {
		return nil, err
	}
	over := uint32(insnB | (len(code)-at)>>2)
	if formOf(s) == formCond {
		over = field.set(opposite(inst), int64(len(code)-at))
	}
	binary.LittleEndian.PutUint32(code[at:], over)
	return code, nil
}

// opposite returns the branch with the opposite condition.
func opposite(inst *decode.Inst) uint32 {
	const (
		nonZero = 1 << 24 // cbnz, tbnz
		not     = 1 << 0  // in a condition
	)
	if OpOf(inst) == OpBCond {
		return WordOf(inst) ^ not
	}
	return WordOf(inst) ^ nonZero
}

// callReg appends the form of blr: x30, then a jump. A target in x30 is moved
// out of the way.
func (e emitter) callReg(code []byte, s *relocate.Step, l *relocate.Layout) []byte {
	target := fieldRn(&s.Inst)
	if reg := uint32(s.Scratch.Reg); reg != noRegister {
		code = put(code, insnMOV|target<<16|reg)
		target = reg
	}
	code = e.constant(code, linkRegister, s.Inst.Next(), l)
	return put(code, landing(target)|target<<5)
}

// landing returns the jump to a register that may land on a function: br of x16
// or x17 does on a landing pad of calls, and where there is none in pages that
// are not guarded; ret does anywhere [Arm ARM, D8.4.9].
func landing(reg uint32) uint32 {
	if reg == ip0 || reg == ip1 {
		return insnBR
	}
	return insnRET
}

// callAuth appends the form of blraa and its kin: the same without link, or
// authentication in a register that is then jumped to.
func (e emitter) callAuth(code []byte, s *relocate.Step, l *relocate.Layout) []byte {
	const linkBit = 1 << 21
	inst, reg := &s.Inst, uint32(s.Scratch.Reg)
	if reg == noRegister {
		return put(e.constant(code, linkRegister, inst.Next(), l), WordOf(inst)&^linkBit)
	}
	code = put(code, insnMOV|fieldRn(inst)<<16|reg)
	code = put(code, authenticate(inst)|reg)
	code = e.constant(code, linkRegister, inst.Next(), l)
	return put(code, landing(reg)|reg<<5)
}

// authenticate returns the instruction, but for its destination, that checks
// the signature of a pointer as a call does.
func authenticate(inst *decode.Inst) uint32 {
	const (
		callModifier = 1 << 24 // blraa and blrab, in contrast to blraaz and blrabz
		callKeyB     = 1 << 10
		keyB         = 1 << 10
	)
	w := WordOf(inst)
	insn := uint32(insnAUTIZA | zeroOrSP<<5)
	if w&callModifier != 0 {
		insn = insnAUTIA | fieldRd(inst)<<5
	}
	if w&callKeyB != 0 {
		insn |= keyB
	}
	return insn
}

// address appends adr or adrp with a new displacement, or a constant.
func (e emitter) address(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst := &s.Inst
	const field = 3<<29 | 0x7ffff<<5
	disp := int64(inst.Target - l.At(code))
	if OpOf(inst) == OpADR && disp>>20 == disp>>63 && l.NearForms() {
		return put(code, WordOf(inst)&^field|uint32(disp)&3<<29|uint32(disp>>2)&0x7ffff<<5), nil
	}
	if l.Plan.Options.Reach != relocate.Near {
		return e.constant(code, fieldRd(inst), inst.Target, l), nil
	}
	if OpOf(inst) == OpADRP {
		if moved, ok := e.page(code, fieldRd(inst), inst.Target, l); ok {
			return moved, nil
		}
	}
	return nil, l.OutOfReach(code, s, inst.Target)
}

// literal appends a literal load or prefetch with a new displacement, or with
// its address in a register.
func (e emitter) literal(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	const field = displacement(19)
	inst := &s.Inst
	w, base := WordOf(inst), uint32(s.Scratch.Reg)
	disp := int64(inst.Target - l.At(code))
	if reaches(disp, uint(field)) && l.NearForms() {
		return put(code, field.set(w, disp)), nil
	}
	if base == noRegister {
		return nil, l.OutOfReach(code, s, inst.Target)
	}
	if s.Scratch.Saved {
		code = put(code, insnPush|base)
	}
	code = e.constant(code, base, inst.Target, l)
	code = put(code, baseForms[w>>30|w>>24&4]|base<<5|fieldRd(inst))
	if s.Scratch.Saved {
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
