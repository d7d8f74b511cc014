package decode

import "errors"

// Errors that decoders return. ErrTooLong also is an ErrInvalid.
var (
	// ErrInvalid: the bytes are no instruction of the ISA.
	ErrInvalid = errors.New("not an instruction")
	// ErrTruncated: the bytes end before the instruction does.
	ErrTruncated = errors.New("truncated instruction")
	// ErrTooLong: prefixes and operands exceed the ISA's longest instruction.
	ErrTooLong error = tooLong{}
)

type tooLong struct{}

func (tooLong) Error() string        { return "instruction longer than 15 bytes" }
func (tooLong) Is(target error) bool { return target == ErrInvalid }

// Decoder decodes the instructions of one ISA and byte order.
type Decoder interface {
	// Decode decodes the instruction that starts at code[0], which stands at
	// addr, into inst and overwrites all of inst. Bytes after the
	// instruction are ignored. It returns ErrInvalid, ErrTruncated or
	// ErrTooLong; inst.Len is 0 then. It does not allocate.
	Decode(inst *Inst, code []byte, addr uint64) error
	// Align returns the alignment and smallest length of instructions in
	// bytes: 1 or 4.
	Align() int
}

// Sweep decodes code, which stands at addr, from its first byte to its last
// and appends every instruction to dst. Where bytes are no instruction, or the
// last one is cut off, it appends an Inst with the property Invalid, Align
// bytes long (fewer at the end), and goes on after it.
func Sweep(d Decoder, dst []Inst, code []byte, addr uint64) []Inst {
	align := d.Align()
	for len(code) > 0 {
		n := len(dst)
		if n < cap(dst) {
			dst = dst[:n+1] // all of it is overwritten
		} else {
			dst = append(dst, Inst{})
		}
		inst := &dst[n]
		if n > 0 && dst[n-1].sameByte(code[0]) {
			*inst = dst[n-1]
			inst.Addr = addr
		} else if d.Decode(inst, code, addr) != nil {
			n := min(align, len(code))
			*inst = Inst{Addr: addr, Len: uint8(n), Props: Invalid}
			copy(inst.Raw[:], code[:n])
		}
		code = code[inst.Len:]
		addr += uint64(inst.Len)
	}
	return dst
}

// sameByte reports whether i is an instruction of one byte, which is b: padding
// consists of many.
func (i *Inst) sameByte(b byte) bool {
	return i.Len == 1 && i.Raw[0] == b && i.Props&(Invalid|HasTarget|External) == 0
}

// Find returns the index of the instruction that holds addr, in instructions
// sorted by address, and whether addr is its first byte; -1 where none does.
func Find(insts []Inst, addr uint64) (index int, start bool) {
	lo, hi := 0, len(insts)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if insts[mid].Next() <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(insts) || addr < insts[lo].Addr {
		return -1, false
	}
	return lo, insts[lo].Addr == addr
}
