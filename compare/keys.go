package compare

import (
	"hash/maphash"
	"strings"

	"xol/analyze"
	"xol/decode"
	"xol/image"
)

var seed = maphash.MakeSeed()

// keys appends a number for each instruction of r that says what it does: the same
// one wherever the instruction stands, and wherever what it refers to by name.
func keys(dst []uint64, an *analyze.Analysis, r *analyze.Result) []uint64 {
	return appendKeys(dst, an, &r.Function, r.Insts)
}

func appendKeys(dst []uint64, an *analyze.Analysis, f *image.Function, insts []decode.Inst) []uint64 {
	for i := range insts {
		dst = append(dst, key(an, f, &insts[i]))
	}
	return dst
}

func key(an *analyze.Analysis, f *image.Function, inst *decode.Inst) uint64 {
	if !inst.Has(decode.HasTarget) {
		return maphash.Bytes(seed, inst.Bytes())
	}
	var h maphash.Hash
	h.SetSeed(seed)
	if field := &inst.PCRel; field.Kind != decode.PCRelNone && int(field.Width) < 8*int(inst.Len) {
		raw := inst.Raw
		clear(raw[field.Offset:min(int(field.Offset)+int(field.Width)/8, len(raw))])
		h.Write(raw[:inst.Len])
	} else {
		// The field is some of the bits of a word: the text is without it.
		placeless := *inst
		placeless.Addr, placeless.Target = 0, 0
		h.WriteString(an.ISA.Text(&placeless, nil))
	}
	if inst.Target-f.Addr >= f.Size {
		h.WriteString(referent(an, inst.Target))
	}
	return h.Sum64()
}

// referent names what is at addr; what has no name is the same as all that has none.
func referent(an *analyze.Analysis, addr uint64) string {
	name, _ := an.Image.Symbolize(addr)
	if strings.HasPrefix(name, ".") { // in a section: ".text+0x40"
		name, _, _ = strings.Cut(name, "+")
	}
	return numberless(name)
}

// weakKey says what kind of instruction it is, whatever its operands are.
func weakKey(an *analyze.Analysis, inst *decode.Inst) uint64 {
	kind := struct {
		op       uint16
		flow     decode.Flow
		opcode   byte // on ISAs of variable length
		mnemonic uint64
	}{op: inst.Op, flow: inst.Flow}
	if f := &inst.Fields; *f != (decode.Fields{}) {
		kind.opcode = inst.Raw[f.Opcode&15]
	}
	mnemonic, _, _ := strings.Cut(an.ISA.Text(inst, nil), " ")
	kind.mnemonic = maphash.String(seed, mnemonic)
	return maphash.Comparable(seed, kind)
}
