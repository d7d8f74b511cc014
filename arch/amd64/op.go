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

// _ is an error where the classes do not fit a set.
const _ = uint(64 - opCount)
