package amd64

// A form is one shape of an instruction: the sets of the values of its fields,
// one bit for each value; a constraint; and the place of its attributes.
type form uint64

// The places in a form.
const (
	setW    = 0  // 0, 1
	setL    = 2  // 0 to 3; rounding
	setOp   = 7  // EVEX.b + 2 × EVEX.z + 4 × mod 3
	setMask = 15 // k0; k4; another
	setV    = 18 // 0; 1 to 7; above
	setV4   = 21 // 0, 1
	setReg  = 23 // 0 to 7
	setRM   = 31 // 0 to 7
	setR    = 39 // 0; another
	setB    = 41 // 0; another
	setAddr = 43 // neither; SIB; RIP-relative

	constraintAt = 46
	formAttrAt   = 50

	sets form = 1<<constraintAt - 1
)

// match looks among the forms at index for one that fits the operands of the
// opcode at pos, of which key has all that ModRM does not say. It returns pos
// and the form's attributes; or, if none fits, the number of bytes that tell so
// and 0.
func (w *fetch) match(d Detail, pos, index uint64, key form) (uint64, attr) {
	if index == 0 {
		return pos + 1, 0
	}
	m, sib := w[(pos+1)&15], w[(pos+2)&15]
	mod3 := form(m>>6+1) >> 2
	key |= modRMKeys[m] | (1+15*mod3)<<(d>>evexBAt&3)<<setOp | (1+mod3&form(d>>bAt|d>>b4At))<<setB
	for ; index < uint64(len(forms)); index++ {
		f := forms[index]
		if f == 0 {
			break
		}
		if key&^(f&sets) == 0 {
			if c := constraint(f >> constraintAt & 15); c != 0 && !c.holds(d|Detail(m)<<modRMAt, sib) {
				break
			}
			return pos, formAttrs[f>>formAttrAt%form(len(formAttrs))]
		}
	}
	if mod3 == 0 && m&7 == 4 {
		pos++ // the SIB byte may matter
	}
	return pos + 2, 0
}

// legacyKey returns what prefixes say to a legacy form, one bit for each field.
func (d Detail) legacyKey() form {
	return d.wrKey() | 1<<setL | noMask | noV
}

// vectorKey returns what VEX, EVEX and XOP say to a form, one bit for each
// field.
func (d Detail) vectorKey(modRM byte) form {
	l := form(1) << (d >> vectorLenAt & 3)
	if modRM>>6 == 3 && d.EVEXb() && d.Map() != Map4 {
		l = 1 << 4 // of rounding
	}
	mask := maskClasses[d>>evexAAAAt&7]
	if d.EVEXz() && mask == 1<<setMask {
		return sets + 1 // nothing to zero: no form fits
	}
	return d.wrKey() | l<<setL | mask | vvvvClasses[d>>vvvvAt&31]
}

// wrKey returns what W and R say.
func (d Detail) wrKey() form {
	return form(1+d>>wAt&1)<<setW | form(1+(d>>rAt|d>>r4At)&1)<<setR
}

var (
	maskClasses = [8]form{noMask, otherMask, otherMask, otherMask, noFlags, otherMask, otherMask, otherMask}
	vvvvClasses = [32]form{
		noV, lowV, lowV, lowV, lowV, lowV, lowV, lowV,
		highV, highV, highV, highV, highV, highV, highV, highV,
		noV4, lowV4, lowV4, lowV4, lowV4, lowV4, lowV4, lowV4,
		highV4, highV4, highV4, highV4, highV4, highV4, highV4, highV4,
	}
)

const (
	noMask    = 1 << setMask
	noFlags   = 2 << setMask
	otherMask = 4 << setMask

	noV    = 1<<setV | 1<<setV4
	lowV   = 2<<setV | 1<<setV4
	highV  = 4<<setV | 1<<setV4
	noV4   = 1<<setV | 2<<setV4
	lowV4  = 2<<setV | 2<<setV4
	highV4 = 4<<setV | 2<<setV4
)

// A constraint is a rule on several registers of an instruction; breaking it
// raises #UD.
type constraint uint8

const (
	gatherVEX  constraint = 1 + iota // destination, index and mask differ
	gatherEVEX                       // destination and index differ
	tiles                            // the three tiles exist and differ
	complexFP                        // the destination is no source
	cr8                              // there is no control register above CR15
	push2                            // RSP is not pushed
	pop2                             // nor popped, and the destinations differ
)

// holds reports whether an instruction keeps the constraint.
func (c constraint) holds(d Detail, sib byte) bool {
	const rsp = 4
	v := d.VVVV()
	reg := d.R4()<<4 | d.R()<<3 | d.Reg()
	index := v&16 | d.X()<<3 | sib>>3&7
	vector := d.X()<<4 | d.B()<<3 | d.RM()
	general := d.B4()<<4 | d.B()<<3 | d.RM()
	switch c {
	case gatherVEX:
		return reg != index && reg != v && index != v
	case gatherEVEX:
		return reg != index
	case tiles:
		return reg < 8 && v < 8 && d.B() == 0 && reg != vector&7 && reg != v && v != vector&7
	case complexFP:
		return reg != v && (d.Mod() != 3 || reg != vector)
	case cr8:
		return d.R4() == 0
	case push2:
		return v != rsp && general != rsp
	case pop2:
		return v != rsp && general != rsp && v != general
	}
	return true
}
