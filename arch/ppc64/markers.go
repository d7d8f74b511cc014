package ppc64

import (
	"strings"

	"xol/usdt"
)

// MarkerOperand parses an operand of a static marker's argument. A bare number
// is a general register; constants have an i in front: i-1, 3, %r3, 16(31),
// 0(%r9), 9,10, %f1, %vs34.
func (ISA) MarkerOperand(text string, symbols usdt.Symbols) (o usdt.Operand, err error) {
	if constant, ok := strings.CutPrefix(text, "i"); ok {
		o.Disp, err = usdt.Number(constant)
		return o, err
	}
	if disp, base, ok := strings.Cut(text, "("); ok {
		base, closed := strings.CutSuffix(base, ")")
		if !closed {
			return o, usdt.Errorf("%q does not end with )", text)
		}
		if disp != "" {
			if o.Disp, err = usdt.Number(disp); err != nil {
				return o, err
			}
		}
		return o, addMarkerAddress(&o, base, "")
	}
	if base, index, ok := strings.Cut(text, ","); ok {
		return o, addMarkerAddress(&o, base, strings.TrimSpace(index))
	}
	r, ok := markerRegister(text)
	if !ok {
		return o, usdt.Errorf("%q is neither a register nor a number nor an address", text)
	}
	o.Add(r)
	return o, nil
}

// addMarkerAddress adds a base and, where there is one, an index. As a base, 0
// is the number, not the register.
func addMarkerAddress(o *usdt.Operand, base, index string) error {
	o.Memory = true
	for i, name := range []string{base, index} {
		if i == 1 && name == "" {
			break
		}
		r, ok := markerRegister(name)
		if !ok || r.Reg >= PC {
			return usdt.Errorf("%q cannot be part of an address", name)
		}
		if i == 1 || r.Reg != R0 {
			o.Add(r)
		}
	}
	return nil
}

// markerRegister returns what a register's name stands for: 3, r3, %r3, f1,
// vs34, lr, ctr.
func markerRegister(text string) (usdt.Term, bool) {
	name := strings.TrimPrefix(text, "%")
	switch name {
	case "lr":
		return usdt.Term{Reg: LR, Bits: 64}, true
	case "ctr":
		return usdt.Term{Reg: CTR, Bits: 64}, true
	}
	letters := strings.TrimRight(name, "0123456789")
	class := markerClasses[letters]
	n, ok := usdt.RegisterNumber(name[len(letters):], class.count)
	return usdt.Term{Reg: class.first + n, Bits: 64, Wide: class.wide}, ok
}

// markerClasses are the registers with numbers, by the letters in front. The
// floating-point registers, which hold doubles only [Power ISA 3.1, Book I,
// 4.2.1], are the first doublewords of the lower half of the vectors.
var markerClasses = map[string]struct {
	first int
	count int
	wide  bool
}{
	"":   {R0, 32, false},
	"r":  {R0, 32, false},
	"f":  {VSR0, 32, true},
	"fr": {VSR0, 32, true},
	"vs": {VSR0, 64, true},
}
