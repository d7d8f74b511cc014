// Package usdt is the model of the arguments of static markers, also called
// USDT probes: what an expression like -4@8(%rsp) says, and its value at a hit.
// How operands are written is the business of each ISA (see Syntax).
//
// An argument is N@OP. N is the size in bytes, negative where the value has a
// sign, with an f after it where it is a floating-point number; OP is an
// operand as the assembler has it. Without N@ it is an unsigned word of 8
// bytes. [SystemTap wiki, UserSpaceProbeImplementation; <sys/sdt.h>]
package usdt

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"xol/machine"
)

// Symbols returns the address of a symbol of the file that has the marker.
type Symbols func(name string) (addr uint64, ok bool)

// Syntax is what an ISA knows of operands.
type Syntax interface {
	// ByteOrder returns the order of bytes in data.
	ByteOrder() binary.ByteOrder
	// MarkerOperand parses an operand as compilers write it in the ISA's
	// assembler syntax. Its errors are *OperandError.
	MarkerOperand(text string, symbols Symbols) (Operand, error)
}

// Arg is one argument of a marker.
type Arg struct {
	Text   string // as the note has it
	Size   int    // bytes: 1, 2, 4 or 8
	Signed bool
	Float  bool
	Operand
	order binary.ByteOrder
}

// Operand is where an argument is: the sum of the terms and a constant or, with
// Memory, what the memory at that address holds. A single term without Memory
// is a register.
type Operand struct {
	Terms    [3]Term
	NumTerms int
	Disp     uint64 // the constant part
	// Relative says that Disp is an address of the file, which moves with it.
	Relative bool
	Memory   bool
}

// Term is a register's part of an operand.
type Term struct {
	Reg    int   // index in the ISA's register file
	Low    uint8 // the lowest bit that counts
	Bits   uint8 // how many count
	Signed bool  // extended with their sign
	Shift  uint8 // multiplied by 1<<Shift
	// Wide says that the register holds every floating-point number in double
	// precision, whatever the argument's size.
	Wide bool
}

// Add adds a term. Operands have no more terms than there is room for.
func (o *Operand) Add(t Term) {
	o.Terms[o.NumTerms] = t
	o.NumTerms++
}

// OperandError says what is wrong with the way an operand is written.
type OperandError struct{ What string }

func (e *OperandError) Error() string { return e.What }

// Errorf returns an *OperandError.
func Errorf(format string, args ...any) error {
	return &OperandError{fmt.Sprintf(format, args...)}
}

// Error says which argument of a marker cannot be understood, and why.
type Error struct {
	Arg string // as the note has it
	Err error  // an *OperandError
}

func (e *Error) Error() string { return fmt.Sprintf("argument %q: %v", e.Arg, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Parse parses the arguments of a marker as its note has them. symbols may be
// nil. Its errors are *Error.
func Parse(isa Syntax, text string, symbols Symbols) ([]Arg, error) {
	if symbols == nil {
		symbols = func(string) (uint64, bool) { return 0, false }
	}
	var args []Arg
	for _, field := range Split(text) {
		arg, err := parseArg(isa, field, symbols)
		if err != nil {
			return nil, &Error{field, err}
		}
		args = append(args, arg)
	}
	return args, nil
}

// Split returns the arguments one by one. Spaces in brackets belong to an
// operand.
func Split(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(c rune) bool {
		switch c {
		case '[', '(':
			depth++
		case ']', ')':
			depth = max(depth-1, 0)
		}
		return depth == 0 && (c == ' ' || c == '\t')
	})
}

func parseArg(isa Syntax, text string, symbols Symbols) (Arg, error) {
	arg := Arg{Text: text, Size: 8, order: isa.ByteOrder()}
	operand := text
	if size, rest, ok := strings.Cut(text, "@"); ok {
		operand = rest
		if err := arg.setSize(size); err != nil {
			return Arg{}, err
		}
	}
	if operand == "" {
		return Arg{}, Errorf("no operand")
	}
	var err error
	arg.Operand, err = isa.MarkerOperand(operand, symbols)
	return arg, err
}

// setSize takes what stands before the @.
func (a *Arg) setSize(s string) error {
	digits, float := strings.CutSuffix(s, "f")
	size, signed := strings.CutPrefix(digits, "-")
	a.Signed, a.Float = signed, float
	switch size {
	case "1", "2", "4", "8":
		a.Size = int(size[0] - '0')
	default:
		return Errorf("size %q is none of 1, 2, 4, 8, -1, -2, -4, -8, 4f, 8f", s)
	}
	if float && (signed || a.Size < 4) {
		return Errorf("floating-point size %q is neither 4f nor 8f", s)
	}
	return nil
}

// Eval returns the argument's value from the registers and the memory of a
// program that has hit the marker. bias is what the file was moved by when it
// was loaded. Signed values are extended to 64 bits, floating-point numbers
// returned as the bits of their format, 32 of them where Size is 4. An error
// is one of m.
func (a *Arg) Eval(r machine.Registers, m machine.Memory, bias uint64) (uint64, error) {
	v, bits := a.Disp, uint(8*a.Size)
	if a.Relative {
		v += bias
	}
	for i := range a.Terms[:a.NumTerms] {
		v += a.Terms[i].value(r)
	}
	switch {
	case a.Memory:
		var err error
		if v, err = load(m, a.order, v, a.Size); err != nil {
			return 0, err
		}
	case a.Float && a.Size == 4 && a.NumTerms > 0 && a.Terms[0].Wide:
		v = uint64(math.Float32bits(float32(math.Float64frombits(v))))
	case a.NumTerms == 1:
		bits = min(bits, uint(a.Terms[0].Bits))
	}
	return extend(v, bits, a.Signed), nil
}

func (t *Term) value(r machine.Registers) uint64 {
	return extend(r.Reg(t.Reg)>>t.Low, uint(t.Bits), t.Signed) << t.Shift
}

// extend makes 64 bits of the lowest bits of v.
func extend(v uint64, bits uint, signed bool) uint64 {
	v <<= 64 - bits
	if signed {
		return uint64(int64(v) >> (64 - bits))
	}
	return v >> (64 - bits)
}

// load returns a number of size bytes, 1, 2, 4 or 8, in memory.
func load(m machine.Memory, order binary.ByteOrder, addr uint64, size int) (uint64, error) {
	if size == 8 {
		return m.ReadWord(addr)
	}
	b := make([]byte, size)
	if err := m.Read(b, addr); err != nil {
		return 0, err
	}
	switch size {
	case 1:
		return uint64(b[0]), nil
	case 2:
		return uint64(order.Uint16(b)), nil
	}
	return uint64(order.Uint32(b)), nil
}

// Number parses an integer as GNU assemblers do: decimal, 0x… or octal with a
// 0 in front, with a sign or without.
func Number(text string) (uint64, error) {
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	if digits == "" || digits[0] < '0' || digits[0] > '9' || strings.Contains(digits, "_") {
		return 0, Errorf("%q is not a number", text)
	}
	v, err := strconv.ParseUint(digits, 0, 64)
	if err != nil {
		return 0, Errorf("%q is not a number of 64 bits", text)
	}
	if negative {
		v = -v
	}
	return v, nil
}

// RegisterNumber parses the number of a register, which is below limit.
func RegisterNumber(digits string, limit int) (n int, ok bool) {
	v, err := strconv.ParseUint(digits, 10, 8)
	if err != nil || int(v) >= limit || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	return int(v), true
}

// Sum parses numbers and at most one symbol, joined by + and -: 16+counters-4.
func (o *Operand) Sum(text string, symbols Symbols) error {
	for rest := text; rest != ""; {
		end := strings.IndexAny(rest[1:], "+-") + 1
		if end == 0 {
			end = len(rest)
		}
		if err := o.addend(rest[:end], symbols); err != nil {
			return err
		}
		rest = rest[end:]
	}
	return nil
}

// addend adds a number or a symbol with its sign.
func (o *Operand) addend(text string, symbols Symbols) error {
	name := strings.TrimLeft(text, "+-")
	if name == "" {
		return Errorf("a sign without a number")
	}
	if c := name[0]; c >= '0' && c <= '9' {
		v, err := Number(text)
		o.Disp += v
		return err
	}
	if text[0] == '-' || o.Relative {
		return Errorf("symbol %q is not a plain address", name)
	}
	addr, ok := symbols(name)
	if !ok {
		return Errorf("no symbol %q in the file", name)
	}
	o.Disp += addr
	o.Relative = true
	return nil
}
