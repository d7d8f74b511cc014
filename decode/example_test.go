package decode_test

import (
	"fmt"

	"xol/arch/amd64"
	"xol/decode"
)

// A sweep decodes a function from its first byte to its last. What is no
// instruction becomes a gap.
func ExampleSweep() {
	code := []byte{0xf3, 0x0f, 0x1e, 0xfa, 0x74, 0x05, 0xe8, 0x10, 0, 0, 0, 0x06, 0xc3}
	for _, inst := range decode.Sweep(amd64.ISA{}, nil, code, 0x1000) {
		switch target, ok := inst.BranchTarget(); {
		case inst.Has(decode.Invalid):
			fmt.Printf("%#x: % x is no instruction\n", inst.Addr, inst.Bytes())
		case ok:
			fmt.Printf("%#x: %s to %#x, falls through: %t\n", inst.Addr, inst.Flow, target, inst.FallsThrough())
		default:
			fmt.Printf("%#x: %d bytes, flow %s\n", inst.Addr, inst.Len, inst.Flow)
		}
	}
	// Output:
	// 0x1000: 4 bytes, flow none
	// 0x1004: jump-if to 0x100b, falls through: true
	// 0x1006: call to 0x101b, falls through: false
	// 0x100b: 06 is no instruction
	// 0x100c: 1 bytes, flow return
}
