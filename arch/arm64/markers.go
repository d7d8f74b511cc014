package arm64

import (
	"slices"
	"strings"

	"xol/usdt"
)

// MarkerOperand parses an operand of a static marker's argument: 5, x0, w1, d2,
// [sp, 24], [x0, x1, lsl 3], [x0, w1, sxtw], [x0, #:lo12:counters]. Constants
// have # in front or not.
func (ISA) MarkerOperand(text string, symbols usdt.Symbols) (o usdt.Operand, err error) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		if !closed {
			return o, usdt.Errorf("%q does not end with ]", text)
		}
		o.Memory = true
		return o, addMarkerAddress(&o, inner, symbols)
	}
	if r, ok := markerRegister(text); ok {
		o.Add(r)
		return o, nil
	}
	if text == "xzr" || text == "wzr" {
		return o, nil
	}
	if v, err := usdt.Number(strings.TrimPrefix(text, "#")); err == nil {
		o.Disp = v
		return o, nil
	}
	return o, usdt.Errorf("%q is neither a register nor a number nor [an address]", text)
}

// addMarkerAddress adds what stands in brackets.
func addMarkerAddress(o *usdt.Operand, inner string, symbols usdt.Symbols) error {
	fields := strings.Split(inner, ",")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	base, ok := markerRegister(fields[0])
	if !ok || base.Bits != 64 || base.Reg > SP {
		return usdt.Errorf("%q cannot be the base of an address", fields[0])
	}
	o.Add(base)
	switch len(fields) {
	case 1:
		return nil
	case 2, 3:
		if index, ok := markerRegister(fields[1]); ok {
			return addMarkerIndex(o, index, fields[1:])
		}
		if len(fields) == 2 {
			return addMarkerOffset(o, strings.TrimPrefix(fields[1], "#"), symbols)
		}
	}
	return usdt.Errorf("%q is not a base with an offset or an index", inner)
}

// addMarkerOffset adds a number or the low part of a symbol's address, which
// does not change when a file is moved by whole pages.
func addMarkerOffset(o *usdt.Operand, text string, symbols usdt.Symbols) error {
	const page = 1 << 12
	symbol, low := strings.CutPrefix(text, ":lo12:")
	if !low {
		v, err := usdt.Number(text)
		o.Disp = v
		return err
	}
	var address usdt.Operand
	if err := address.Sum(symbol, symbols); err != nil {
		return err
	}
	o.Disp = address.Disp % page
	return nil
}

// markerExtensions are how an index may be made 64 bits wide.
var markerExtensions = []string{"uxtw", "sxtw", "lsl", "sxtx"}

// addMarkerIndex adds an index; fields are it and how it is extended and
// shifted.
func addMarkerIndex(o *usdt.Operand, index usdt.Term, fields []string) error {
	if index.Reg >= SP && index.Reg < V0 {
		return usdt.Errorf("%q cannot be an index", fields[0])
	}
	how, amount := "lsl", "0"
	if len(fields) == 2 {
		how, amount, _ = strings.Cut(fields[1], " ")
	}
	extension := slices.Index(markerExtensions, how)
	if extension < 0 {
		return usdt.Errorf("%q is none of lsl, uxtw, sxtw, sxtx", how)
	}
	if narrow := extension < 2; narrow != (index.Bits == 32) || index.Reg >= V0 {
		return usdt.Errorf("%s does not go with %s", how, fields[0])
	}
	shift := uint64(0)
	if amount = strings.TrimPrefix(strings.TrimSpace(amount), "#"); amount != "" {
		var err error
		if shift, err = usdt.Number(amount); err != nil || shift > 4 {
			return usdt.Errorf("%q is not a shift from 0 to 4", amount)
		}
	}
	index.Signed, index.Shift = how == "sxtw", uint8(shift)
	o.Add(index)
	return nil
}

// markerRegister returns what a register's name stands for.
func markerRegister(name string) (usdt.Term, bool) {
	switch name {
	case "sp":
		return usdt.Term{Reg: SP, Bits: 64}, true
	case "wsp":
		return usdt.Term{Reg: SP, Bits: 32}, true
	case "fp":
		return usdt.Term{Reg: X0 + framePointer, Bits: 64}, true
	case "lr":
		return usdt.Term{Reg: X0 + linkRegister, Bits: 64}, true
	case "":
		return usdt.Term{}, false
	}
	class := markerClasses[name[0]]
	n, ok := usdt.RegisterNumber(name[1:], class.count)
	return usdt.Term{Reg: class.first + n, Bits: class.bits}, ok
}

const framePointer = 29

// markerClasses are the registers with numbers, by the letter in front. Of
// vectors only the low 64 bits can be an argument.
var markerClasses = map[byte]struct {
	first int
	count int
	bits  uint8
}{
	'x': {X0, 31, 64},
	'w': {X0, 31, 32},
	'v': {V0, 32, 64},
	'q': {V0, 32, 64},
	'd': {V0, 32, 64},
	's': {V0, 32, 32},
	'h': {V0, 32, 16},
	'b': {V0, 32, 8},
}
