package ppc64

import (
	"strings"

	"xol/decode"
)

// loaded returns what is known of width bytes at the address v.
func (t *tracer) loaded(v value, width uint8, signed bool) value {
	if v.kind == valueTarget { // one table holds the indices of another
		v = value{kind: valueAddress, number: v.base, scale: v.shift, index: noIndex}
	}
	if v.kind == valueAddress && v.scale == 0 && width > 1 {
		v.scale, v.index = unscaled, noIndex // the index was scaled out of sight
	}
	switch {
	case v.kind == valueAddress && (v.scale == unscaled || width == 1<<v.scale):
		v.kind, v.width, v.signed = valueEntry, width, signed
		return v
	case width < 8:
		return value{kind: valueNumber}
	case v.kind == valueConst && t.mem != nil:
		if p, ok := t.mem.Pointer(v.number); ok {
			return value{kind: valueConst, cell: true, number: p}
		}
	}
	return value{kind: valueWhole}
}

// loads are the instructions that load a general register, without the letters
// for prefixed and indexed ones, and those that leave their address in the base
// register.
var loads = [...]struct {
	name, update string
	width        uint8
	signed       bool
}{
	{"ld", "ldu", 8, false}, {"lwz", "lwzu", 4, false}, {"lwa", "", 4, true},
	{"lhz", "lhzu", 2, false}, {"lha", "lhau", 2, true}, {"lbz", "lbzu", 1, false},
}

// load is a load of a general register.
type load struct {
	width   uint8
	signed  bool
	indexed bool // the address is the sum of two registers
}

// loadOf tells loads without update.
func loadOf(inst *decode.Inst) (l load, ok bool) {
	f := formatOf(inst)
	name := strings.TrimPrefix(f.name, "p")
	name, l.indexed = strings.CutSuffix(name, "x")
	for i := range loads {
		if loads[i].name == name {
			l.width, l.signed = loads[i].width, loads[i].signed
			return l, true
		}
	}
	return l, false
}

// displacementOf returns the displacement of a load or store that is not
// indexed.
func displacementOf(inst *decode.Inst) uint64 {
	return uint64(args[formatOf(inst).args[1]].signed(inst.Detail))
}

// base returns what register RA holds in front of instruction p; as a base, r0
// stands for 0.
func (t *tracer) base(p int) value {
	ra := fieldRA(WordOf(&t.f.Insts[p]))
	if ra == 0 {
		return constant(0)
	}
	return t.register(ra, p)
}

// result returns what instruction p, which is known to write register r, puts
// there.
func (t *tracer) result(r uint8, p int) value {
	inst := &t.f.Insts[p]
	word := WordOf(inst)
	switch OpOf(inst) {
	case OpAddPCIS, OpPCAddress:
		return constant(inst.Target)
	case OpBranch, OpBranchLR, OpBranchCTR, OpBranchTAR, OpBranchCond, OpSyscall:
		return afterBranch(inst, r)
	case OpMoveSPR:
		return t.moved(inst, p)
	}
	if l, ok := loadOf(inst); ok {
		return t.loadResult(p, l)
	}
	switch word >> 26 {
	case opADDI:
		if inst.Len == prefixedSize {
			return t.base(p).plus(displacement34(inst.Detail))
		}
		return t.base(p).plus(signedField(word))
	case opADDIS:
		return t.base(p).plus(signedField(word) << 16)
	case opORI:
		return t.register(targetOf(inst), p).or(uint64(word & 0xffff))
	case opORIS:
		return t.register(targetOf(inst), p).or(uint64(word&0xffff) << 16)
	case opRLWINM, opRotate:
		return t.rotated(p)
	case opX:
		return t.extendedResult(p)
	}
	return value{kind: valueNumber}
}

// afterBranch is result for branches and system calls.
func afterBranch(inst *decode.Inst, r uint8) value {
	switch {
	case onlyGetsPC(inst) && r == LR:
		return constant(inst.Next())
	case r == 3:
		return value{kind: valueWhole}
	case inst.Has(decode.Link) || inst.Flow == decode.FlowSyscall:
		return value{kind: valueNone}
	}
	return value{}
}

// moved is result for mfspr and mtspr.
func (t *tracer) moved(inst *decode.Inst, p int) value {
	word := WordOf(inst)
	if word&moveTo != 0 {
		return t.register(targetOf(inst), p)
	}
	switch sprOf(word) {
	case sprLR:
		return t.register(LR, p)
	case sprCTR:
		return t.register(CTR, p)
	case sprTAR:
		return t.register(TAR, p)
	}
	return value{}
}

// loadResult is result for loads.
func (t *tracer) loadResult(p int, l load) value {
	inst := &t.f.Insts[p]
	word := WordOf(inst)
	switch {
	case l.width < 4: // no compiler makes entries so small
		return value{kind: valueNumber}
	case OpOf(inst) == OpPCMemory:
		return t.loaded(constant(inst.Target), l.width, l.signed)
	case l.indexed:
		return t.loaded(t.sum(t.base(p), t.register(fieldRB(word), p)), l.width, l.signed)
	case l.width == 8 && t.inFrame(fieldRA(word)):
		return t.stored(slot{base: fieldRA(word), disp: displacementOf(inst), width: l.width}, p)
	}
	return t.loaded(t.base(p).plus(displacementOf(inst)), l.width, l.signed)
}

// extendedResult is result for opcode 31.
func (t *tracer) extendedResult(p int) value {
	inst := &t.f.Insts[p]
	word := WordOf(inst)
	switch extendedOp(word) {
	case xoADD:
		return t.sum(t.register(fieldRA(word), p), t.register(fieldRB(word), p))
	case xoOR:
		if targetOf(inst) == fieldRB(word) {
			return t.register(targetOf(inst), p)
		}
	case xoEXTSW:
		v := t.register(targetOf(inst), p)
		switch {
		case v.kind == valueConst:
			return constant(uint64(int64(int32(v.number))))
		case v.kind == valueEntry && v.width == 4 && v.shift == 0:
			v.signed = true
			return v
		case v.kind == valueIndex:
			return v
		}
		return t.plainIndex(targetOf(inst), p)
	case xoSUBF:
		return value{}
	}
	if extendedOp(word)&31 == xoISEL {
		return t.either(t.resolve(t.base(p)), t.resolve(t.register(fieldRB(word), p)))
	}
	return value{kind: valueNumber}
}

// plainIndex is the value of a register that may become an index.
func (t *tracer) plainIndex(r uint8, p int) value {
	return value{kind: valueIndex, index: selector{reg: r, bits: 64, user: int32(p)}}
}

// rotation is what the instructions do that rotate and mask: of a run of bits
// of the source, the lowest of which is from, they make one whose lowest bit
// is to.
type rotation struct{ from, to, bits uint8 }

// rotationOf tells rlwinm, rldicl, rldicr and rldic whose mask does not wrap
// and cuts no bits off that the rotation has brought round.
func rotationOf(inst *decode.Inst) (r rotation, ok bool) {
	word := WordOf(inst)
	if word>>26 == opRLWINM {
		sh, mb, me := int(fieldRB(word)), int(word>>6&31), int(word>>1&31)
		return newRotation(sh, 31-me, 31-mb, 32)
	}
	sh, m := int(word>>11&31|word>>1&1<<5), int(word>>6&31|word&0x20)
	switch word >> 2 & 7 {
	case 0: // rldicl
		return newRotation(sh, 0, 63-m, 64)
	case 1: // rldicr
		return newRotation(sh, 63-m, 63, 64)
	case 2: // rldic
		return newRotation(sh, sh, 63-m, 64)
	}
	return r, false
}

// newRotation returns the rotation left by sh of a number of size bits that
// keeps the bits low to high of the result.
func newRotation(sh, low, high, size int) (r rotation, ok bool) {
	if high < low {
		return r, false
	}
	from := low - sh
	if from < 0 {
		from += size
	}
	if from+high-low >= size { // it is made of both ends of the source
		return r, false
	}
	return rotation{from: uint8(from), to: uint8(low), bits: uint8(high - low + 1)}, true
}

// rotated is result for rotations.
func (t *tracer) rotated(p int) value {
	inst := &t.f.Insts[p]
	r, ok := rotationOf(inst)
	if !ok {
		return value{kind: valueNumber}
	}
	source := targetOf(inst)
	v := t.register(source, p)
	wide := r.bits+r.to >= 32 // nothing of an int is masked
	switch {
	case v.kind == valueConst:
		return constant(v.number >> r.from & (1<<r.bits - 1) << r.to)
	case r.from == 0 && wide && v.kind == valueEntry && v.shift == 0 && (r.bits+r.to == 64 || !v.signed):
		v.shift = r.to
		return v
	case r.from != 0:
		return value{kind: valueIndex, scale: r.to, index: selector{reg: noRegister, bits: r.bits, check: inst.Addr}}
	}
	i := selector{reg: source, bits: 64, user: int32(p)}
	if !wide {
		i.bits, i.check = r.bits, inst.Addr
	}
	if v.kind == valueIndex && wide { // the scale of a scaled index, or of a masked one
		v.scale += r.to
		return v
	}
	return value{kind: valueIndex, scale: r.to, index: i}
}
