package toy

import "xol/image/isa"

// Record is what the reader of ELF files has to know.
var Record = isa.Record{
	Name:     "toy",
	Machine:  Machine,
	MinInsn:  wordSize,
	Padding:  padding,
	EndsFlow: func(code []byte, _ bool) bool { return code[len(code)-wordSize] == opReturn },
	Relocations: map[uint32]isa.Howto{
		1: {Value: isa.AbsoluteS, Field: isa.Data64},
	},
	Loader: isa.Loader{Relative: 2},
}

// padding counts words of zero.
func padding(code []byte, _ bool) (n uint64) {
	for len(code) >= wordSize && wordOf(code) == 0 {
		n, code = n+wordSize, code[wordSize:]
	}
	return n
}
