package amd64

import (
	"strings"

	"xol/usdt"
)

// MarkerOperand parses an operand of a static marker's argument in AT&T syntax:
// $5, %eax, -8(%rbp), (%rax,%rbx,4), table+4(%rip), %fs:-16.
func (ISA) MarkerOperand(text string, symbols usdt.Symbols) (o usdt.Operand, err error) {
	switch {
	case len(text) > 1 && text[0] == '$':
		return o, o.Sum(text[1:], symbols)
	case len(text) > 1 && text[0] == '%' && !strings.ContainsAny(text, ":("):
		r, ok := markerRegister(text)
		if !ok {
			return o, usdt.Errorf("%q is not a register", text)
		}
		o.Add(r)
		return o, nil
	}
	o.Memory = true
	if segment, rest, ok := strings.Cut(text, ":"); ok {
		base, ok := segmentBases[segment]
		if !ok {
			return o, usdt.Errorf("%q is neither %%fs nor %%gs", segment)
		}
		o.Add(usdt.Term{Reg: base, Bits: 64})
		text = rest
	}
	sum, inner, indirect := strings.Cut(text, "(")
	if err := o.Sum(sum, symbols); err != nil {
		return o, err
	}
	if !indirect {
		if sum == "" {
			return o, usdt.Errorf("no address")
		}
		return o, nil
	}
	inner, closed := strings.CutSuffix(inner, ")")
	if !closed {
		return o, usdt.Errorf("%q does not end with )", text)
	}
	return o, addMarkerAddress(&o, inner)
}

var segmentBases = map[string]int{"%fs": FSBase, "%gs": GSBase}

// addMarkerAddress adds what stands in parentheses: base, index and scale, of
// which all but one may be missing.
func addMarkerAddress(o *usdt.Operand, inner string) error {
	fields := strings.Split(inner, ",")
	if len(fields) > 3 {
		return usdt.Errorf("%q is not a base, an index and a scale", inner)
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	if fields[0] == "%rip" && o.Relative && len(fields) == 1 {
		return nil // the symbol says it all
	}
	shift := uint8(0)
	if len(fields) == 3 {
		n := strings.Index("1248", fields[2])
		if n < 0 || len(fields[2]) != 1 {
			return usdt.Errorf("scale %q is none of 1, 2, 4, 8", fields[2])
		}
		shift = uint8(n)
	}
	for i, name := range fields[:min(len(fields), 2)] {
		if i == 0 && name == "" && len(fields) > 1 {
			continue
		}
		r, ok := markerRegister(name)
		if !ok || r.Bits != 64 || r.Reg > RIP || r.Reg == RIP && len(fields) > 1 || i == 1 && r.Reg == RSP {
			return usdt.Errorf("%q cannot be part of an address", name)
		}
		if i == 1 {
			r.Shift = shift
		}
		o.Add(r)
	}
	return nil
}

// legacyRegisters are the registers with names instead of numbers, by number.
const legacyRegisters = "ax cx dx bx sp bp si di "

// markerRegister returns what a register's name stands for: %rax, %eax, %al,
// %ah, %r8d, %xmm0.
func markerRegister(text string) (usdt.Term, bool) {
	name, ok := strings.CutPrefix(text, "%")
	if !ok || name == "" {
		return usdt.Term{}, false
	}
	for _, vector := range []string{"xmm", "ymm", "zmm"} {
		if number, ok := strings.CutPrefix(name, vector); ok {
			n, ok := usdt.RegisterNumber(number, 32)
			return usdt.Term{Reg: ZMM0 + n, Bits: 64}, ok
		}
	}
	if name == "rip" {
		return usdt.Term{Reg: RIP, Bits: 64}, true
	}
	if number := strings.TrimRight(name[1:], "bwd"); name[0] == 'r' && number != "" {
		if n, ok := usdt.RegisterNumber(number, 16); ok && n >= R8 {
			bits, ok := map[string]uint8{"b": 8, "w": 16, "d": 32, "": 64}[name[1+len(number):]]
			return usdt.Term{Reg: n, Bits: bits}, ok
		}
	}
	return legacyRegister(name)
}

// legacyRegister returns the parts of rax to rdi.
func legacyRegister(name string) (usdt.Term, bool) {
	number := func(word string) (int, bool) {
		i := strings.Index(legacyRegisters, word+" ")
		return i / 3, i >= 0 && len(word) == 2
	}
	term := func(word string, low, bits uint8) (usdt.Term, bool) {
		n, ok := number(word)
		return usdt.Term{Reg: n, Low: low, Bits: bits}, ok
	}
	last := len(name) - 1
	switch {
	case len(name) == 3 && name[0] == 'r':
		return term(name[1:], 0, 64)
	case len(name) == 3 && name[0] == 'e':
		return term(name[1:], 0, 32)
	case len(name) == 3 && name[last] == 'l': // spl, bpl, sil, dil
		n, ok := number(name[:last])
		return usdt.Term{Reg: n, Bits: 8}, ok && n >= RSP
	case len(name) == 2 && name[last] == 'l':
		n, ok := number(name[:last] + "x")
		return usdt.Term{Reg: n, Bits: 8}, ok
	case len(name) == 2 && name[last] == 'h':
		n, ok := number(name[:last] + "x")
		return usdt.Term{Reg: n, Low: 8, Bits: 8}, ok
	}
	return term(name, 0, 16)
}
