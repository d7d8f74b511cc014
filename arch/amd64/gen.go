//go:build ignore

// Gen makes tables.go of opcodes.txt.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"log"
	"os"
	"strconv"
	"strings"
)

// A form in the tables is one word: sets of field values that fit, one bit for
// each value; a constraint; and attributes of the instruction. The places are
// those of form and attr in decode.go.
const (
	setW    = 0  // 0, 1
	setL    = 2  // 0 to 3; rounding
	setOp   = 7  // 4 × mod 3 + 2 × EVEX.b + EVEX.z
	setMask = 15 // k0; k4; another
	setV    = 18 // 0; 1 to 7; above
	setV4   = 21 // 0, 1
	setReg  = 23 // 0 to 7
	setRM   = 31 // 0 to 7
	setR    = 39 // 0; another
	setB    = 41 // 0; another
	setAddr = 43 // neither; SIB; RIP-relative

	constraintAt = 46
	attrAt       = 50
)

const (
	anyW    = 3 << setW
	anyL    = 31 << setL
	vectorL = 7 << setL
	mem     = 1 << setOp
	reg     = 1 << (setOp + 4)
	anyReg  = 0xff << setReg
	anyRM   = 0xff << setRM
	anyR    = 3 << setR
	anyB    = 3 << setB
	anyAddr = 7 << setAddr
	noMask  = 1 << setMask
	noV     = 1<<setV | 1<<setV4
	anyV    = 7<<setV | 3<<setV4
)

// Attributes.
const (
	immAt     = 0 // 4 bits
	attrModRM = 1 << 4
	attrNoMem = 1 << 5
	flowAt    = 6 // 4 bits
	attrLea   = 1 << 10
	attrPad   = 1 << 11
	attrPriv  = 1 << 12
	attrLock  = 1 << 13
)

var attrs = map[string]uint64{
	"lea": attrLea, "pad": attrPad, "priv": attrPriv, "lock": attrLock, "nomem": attrNoMem,
}

var imms = map[string]uint64{
	"ib": 1, "iw": 2, "iwib": 3, "ibib": 4, "iz": 5, "iv": 6, "id": 7, "iq": 8,
	"moffs": 9, "rel8": 10, "rel32": 11, "relz": 12,
}

// In the order of decode.Flow.
var flows = map[string]uint64{
	"jump": 1, "jcc": 2, "call": 3, "ret": 4, "jind": 5, "cind": 6, "sys": 7, "trap": 8, "halt": 9,
}

var constraints = map[string]uint64{
	"gather vex": 1, "gather evex": 2, "tiles": 3, "complex": 4, "norex2": 5,
}

var prefixes = map[string]int{"np": 0, "66": 1, "f3": 2, "f2": 3}

// A section is an encoding with its opcode map; slot is its place in the
// tables.
type section struct {
	encoding string
	slot     int
}

var sections = map[string]section{
	"legacy 1b": {"legacy", 0}, "legacy 0f": {"legacy", 1},
	"legacy 0f38": {"legacy", 2}, "legacy 0f3a": {"legacy", 3},
	"vex 0f": {"vex", 1}, "vex 0f38": {"vex", 2}, "vex 0f3a": {"vex", 3}, "vex 7": {"vex", 4},
	"evex 0f": {"evex", 5}, "evex 0f38": {"evex", 6}, "evex 0f3a": {"evex", 7},
	"evex 4": {"evex", 8}, "evex 5": {"evex", 9}, "evex 6": {"evex", 10}, "evex 7": {"evex", 11},
	"xop 8": {"xop", 12}, "xop 9": {"xop", 13}, "xop a": {"xop", 14}, "3dnow": {"3dnow", 15},
}

const slots = 16

// An entry is an opcode under one mandatory prefix.
type entry struct{ forms []uint64 }

type table struct {
	legacy [4][4][256]entry
	vector [slots][4][256]entry
}

// parse reads a line's tokens behind the opcodes: its form and the mandatory
// prefixes that it is for.
func parse(s section, tokens []string) (form uint64, pps []int, err error) {
	set := uint64(anyW | anyR | anyB | noMask | noV)
	if s.encoding == "legacy" {
		set |= 1 << setL
	}
	var attr, length, constraint uint64
	operand := uint64(0)
	regs, rms := uint64(0), uint64(0)
	addr := uint64(anyAddr)
	var round, zeroed uint64
	stores := false
	for _, t := range tokens {
		switch {
		case prefixList(t) != nil:
			pps = prefixList(t)
		case t == "m":
			operand = mem | reg
		case t == "mem":
			operand = mem
		case t == "reg":
			operand = reg
		case t == "sib" || t == "vsib":
			operand, addr = mem, 2<<setAddr
			if t == "vsib" {
				set |= 2 << setV4
			}
		case t == "norip":
			addr = 3 << setAddr
		case t[0] == '/':
			regs, err = values(t[1:])
		case strings.HasPrefix(t, "rm="):
			rms, err = values(t[3:])
		case t == "r0" || t == "r1":
			set = set&^anyR | 1<<(setR+int(t[1]-'0'))
		case t == "b0":
			set = set&^anyB | 1<<setB
		case t == "w0" || t == "w1":
			set = set&^anyW | 1<<(setW+int(t[1]-'0'))
		case t == "lig":
			length = anyL
		case t[0] == 'L':
			for _, c := range t[1:] {
				length |= 1 << (setL + int(c-'0'))
			}
		case t == "v":
			set |= anyV
		case t == "v8":
			set &^= 4<<setV | 2<<setV4
		case t == "bc":
			round |= 1 << (setOp + 2)
		case t == "er" || t == "sae":
			round |= 1 << (setOp + 6)
		case t == "kz":
			set |= 7 << setMask
			zeroed = 1
		case t == "k":
			set |= 7 << setMask
		case t == "k!":
			set |= 6 << setMask
			set &^= noMask
		case t == "st":
			stores = true
		case imms[t] != 0:
			attr |= imms[t] << immAt
		case flows[t] != 0:
			attr |= flows[t] << flowAt
		case attrs[t] != 0:
			attr |= attrs[t]
		case constraints[t] != 0:
			constraint = constraints[t]
		case constraints[t+" "+s.encoding] != 0:
			constraint = constraints[t+" "+s.encoding]
		default:
			err = fmt.Errorf("token %q", t)
		}
		if err != nil {
			return 0, nil, err
		}
	}
	if attr&attrNoMem != 0 {
		operand = mem | reg
	}
	if operand == 0 && regs|rms != 0 {
		operand = mem | reg
	}
	if operand != 0 {
		attr |= attrModRM
	} else {
		operand = mem | reg
	}
	if regs == 0 {
		regs = 0xff
	}
	if rms == 0 {
		rms = 0xff
	}
	if round&(1<<(setOp+6)) != 0 {
		set |= 16 << setL
	}
	operand |= round
	if zeroed != 0 {
		z := operand << 1
		if stores {
			z &= 0xf << (setOp + 4)
		}
		operand |= z
	}
	if length == 0 {
		length = map[string]uint64{"legacy": 0, "vex": anyL, "xop": anyL, "evex": vectorL, "3dnow": 0}[s.encoding]
	}
	if pps == nil {
		switch s.encoding {
		case "legacy":
			pps = []int{0, 1, 2, 3}
		case "xop", "3dnow":
			pps = []int{0}
		default:
			return 0, nil, fmt.Errorf("no mandatory prefix")
		}
	}
	set |= operand | length | regs<<setReg | rms<<setRM | addr
	return set | constraint<<constraintAt | attr<<attrAt, pps, nil
}

// prefixList returns the prefixes that a token lists, nil if it is no such list.
func prefixList(token string) (pps []int) {
	for name := range strings.SplitSeq(token, ",") {
		pp, ok := prefixes[name]
		if !ok {
			return nil
		}
		pps = append(pps, pp)
	}
	return pps
}

// values returns the set of the values that a list such as 0-3,6 names.
func values(list string) (set uint64, err error) {
	err = eachOf(list, 8, 7, func(n int) { set |= 1 << n })
	return set, err
}

// eachOf calls f for every number of a list of numbers and ranges.
func eachOf(list string, base, limit int, f func(n int)) error {
	for part := range strings.SplitSeq(list, ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		from, err := strconv.ParseUint(low, base, 8)
		if err != nil {
			return err
		}
		to, err := strconv.ParseUint(high, base, 8)
		if err != nil {
			return err
		}
		if from > to || int(to) > limit {
			return fmt.Errorf("range %q", part)
		}
		for n := from; n <= to; n++ {
			f(int(n))
		}
	}
	return nil
}

// read reads opcodes.txt.
func read(text string) (*table, error) {
	t := new(table)
	var s section
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		line, _, _ = strings.Cut(line, ";")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if name, ok := strings.CutPrefix(line, "["); ok {
			if s, ok = sections[strings.TrimSuffix(name, "]")]; !ok {
				return nil, fmt.Errorf("line %d: section %s", number, line)
			}
			continue
		}
		tokens := strings.Fields(line)
		form, pps, err := parse(s, tokens[1:])
		if err == nil {
			err = eachOf(tokens[0], 16, 255, func(op int) {
				for _, pp := range pps {
					e := &t.vector[s.slot][pp][op]
					if s.encoding == "legacy" {
						e = &t.legacy[s.slot][pp][op]
					}
					e.forms = append(e.forms, form)
				}
			})
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return t, nil
}

// A pool holds the distinct lists of forms. A list ends with 0. The first list
// is empty: nothing fits.
type pool struct {
	forms []uint64
	at    map[string]int
}

func (p *pool) index(forms []uint64) int {
	key := fmt.Sprint(forms)
	at, ok := p.at[key]
	if !ok {
		at = len(p.forms)
		p.at[key] = at
		p.forms = append(append(p.forms, forms...), 0)
	}
	return at
}

// unconditional reports whether a legacy form fits whatever the operands.
func unconditional(form uint64) bool {
	const all = anyW | 1<<setL | mem | reg | noMask | noV | anyReg | anyRM | anyR | anyB | anyAddr
	return form&all == all && form>>constraintAt&15 == 0
}

func main() {
	log.SetFlags(0)
	text, err := os.ReadFile("opcodes.txt")
	if err != nil {
		log.Fatal(err)
	}
	t, err := read(string(text))
	if err != nil {
		log.Fatal("opcodes.txt: ", err)
	}
	source, err := format.Source(render(t))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("tables.go", source, 0o666); err != nil {
		log.Fatal(err)
	}
}

func render(t *table) []byte {
	p := &pool{at: map[string]int{}}
	p.index(nil)
	var out bytes.Buffer
	out.WriteString("// Code generated by gen.go from opcodes.txt. DO NOT EDIT.\n\npackage amd64\n\n")

	out.WriteString("// legacyEntries are the one-byte map and, by mandatory prefix, 0F, 0F38 and 0F3A.\n")
	out.WriteString("var legacyEntries = [13 * 256]entry{\n")
	for m := range 4 {
		for pp := range 4 {
			if m == 0 && pp > 0 {
				continue
			}
			for op := range 256 {
				forms := t.legacy[m][pp][op].forms
				word := 0
				switch {
				case len(forms) == 1 && unconditional(forms[0]):
					word = int(forms[0]>>attrAt) | 1<<entryValid
				case len(forms) > 0:
					word = p.index(forms) << entryForms
				}
				separate(&out, op, word)
			}
		}
	}
	out.WriteString("}\n\n")

	out.WriteString("// vectorEntries are the maps of VEX, EVEX, XOP and 3DNow!, by mandatory prefix:\n// places in forms.\n")
	fmt.Fprintf(&out, "var vectorEntries = [%d * 4 * 256]uint16{\n", slots)
	for s := range slots {
		for pp := range 4 {
			for op := range 256 {
				separate(&out, op, p.index(t.vector[s][pp][op].forms))
			}
		}
	}
	out.WriteString("}\n\n")

	fmt.Fprintf(&out, "var forms = [%d]form{\n", len(p.forms))
	for i, f := range p.forms {
		fmt.Fprintf(&out, "%#x,", f)
		if i%6 == 5 {
			out.WriteByte('\n')
		}
	}
	out.WriteString("}\n")
	return out.Bytes()
}

// The word of a legacy opcode: attributes, whether they hold for all operands,
// and else the place of its forms.
const (
	entryValid = 14
	entryForms = 15
)

// separate writes one number of a table, sixteen on a line.
func separate(out *bytes.Buffer, i, word int) {
	fmt.Fprintf(out, "%#x,", word)
	if i%16 == 15 {
		out.WriteByte('\n')
	}
}
