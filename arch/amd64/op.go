package amd64

import "xol/decode"

// Op is the class of an instruction, as it stands in decode.Inst.Op.
type Op uint8

// OpOf returns the class of an instruction that this package decoded.
func OpOf(i *decode.Inst) Op { return Op(i.Op) }

// An opSet is a set of classes.
type opSet uint64

func opsOf(list ...Op) (s opSet) {
	for _, op := range list {
		s |= 1 << op
	}
	return s
}

// has reports whether an instruction is of one of the classes.
func (s opSet) has(inst *decode.Inst) bool { return s>>OpOf(inst)&1 != 0 }

// _ is an error where there are more than an entry of the tables and a set have room
// for.
const _ = uint(64 - opCount)

// A fact is the Op, Props and Flow that all instructions of a class have. They stand in
// one word, so that they take one look at a table.
type fact uint64

func (f fact) store(inst *decode.Inst) {
	const propsAt, flowAt = 16, 32
	inst.Op = uint16(f)
	inst.Props = decode.Props(f >> propsAt)
	inst.Flow = decode.Flow(f >> flowAt)
}
