package classify

import "xol/decode"

// withCheckedPlaces judges as own does, but for the addresses that its verdicts
// name to be probed instead: these are such as own accepts. The other wrappers
// see to it themselves.
func withCheckedPlaces(own Profile) Profile { return &placesProfile{own} }

type placesProfile struct{ Profile }

func (p *placesProfile) Func(dst []Verdict, f *Func) []Verdict {
	base := len(dst)
	dst = p.Profile.Func(dst, f)
	settlePlaces(dst[base:], f.Insts)
	return dst
}

func (p *placesProfile) At(f *Func, addr uint64) Verdict {
	return settledAt(p.Profile, f, p.Profile.At(f, addr))
}

// settlePlaces makes each address that a verdict names to be probed instead
// one that is accepted: the next such instruction at or after it.
func settlePlaces(verdicts []Verdict, insts []decode.Inst) {
	for i := range verdicts {
		if v := &verdicts[i]; v.Instead != 0 {
			v.Instead = acceptedFrom(v.Instead, verdicts, insts)
		}
	}
}

// settledAt returns v, a verdict of p on an address of f, with such a place.
func settledAt(p Profile, f *Func, v Verdict) Verdict {
	if v.Instead != 0 {
		v.Instead = acceptedFrom(v.Instead, p.Func(nil, f), f.Insts)
	}
	return v
}

// acceptedFrom returns the first instruction at or after addr that takes a
// probe, there and not elsewhere, and is then executed rightly; 0 where none
// does.
func acceptedFrom(addr uint64, verdicts []Verdict, insts []decode.Inst) uint64 {
	for i := decode.From(insts, addr); i < len(insts); i++ {
		v := &verdicts[i]
		if v.OK() && v.Hazard == nil && v.MovedTo == 0 && !insts[i].Has(decode.Invalid) {
			return insts[i].Addr
		}
	}
	return 0
}
