package relocate_test

import (
	"errors"
	"fmt"

	"xol/arch/amd64"
	"xol/decode"
	"xol/relocate"
)

// A plan says what becomes of instructions and how many bytes that takes, before
// there is a place for them. Encode then writes the bytes for an address.
func Example() {
	isa := amd64.ISA{}
	code := []byte{0x48, 0x8b, 0x05, 0xf0, 0x0f, 0, 0, 0x74, 0x10} // mov 0xff0(%rip),%rax; je .+18
	insts := decode.Sweep(isa, nil, code, 0x1000)
	var p relocate.Plan
	if err := isa.Plan(&p, insts, relocate.Options{Form: relocate.Region}); err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range p.Steps {
		fmt.Printf("%#x: %s, %d to %d bytes\n", s.Inst.Addr, s.Action, s.Min, s.Max)
	}
	moved := make([]byte, p.Max)
	n, err := isa.Encode(moved, &p, 0x401000)
	fmt.Printf("% x %v\n", moved[:n], err)

	err = isa.Plan(&p, decode.Sweep(isa, nil, []byte{0x0f, 0x0b}, 0x2000), relocate.Options{})
	var refused *relocate.RefusedError
	if errors.As(err, &refused) {
		fmt.Println(refused.Rule.ID)
	}
	// Output:
	// 0x1000: re-based, 7 to 17 bytes
	// 0x1007: expanded, 6 to 16 bytes
	// 48 8b 05 f0 0f c0 ff 0f 84 0c 00 c0 ff e9 f7 ff bf ff <nil>
	// amd64/move-trap
}
