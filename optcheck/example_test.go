package optcheck_test

import (
	"fmt"

	"xol/arch/amd64"
	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

// Which breakpoints in a function may become jumps of 5 bytes: a branch goes to the
// instruction that the first jumps would overwrite.
func Example() {
	isa := amd64.ISA{}
	code := []byte{
		0x48, 0x89, 0xfe, // mov rsi, rdi
		0xff, 0xce, //       dec esi
		0x75, 0xfc, //       jnz 3
		0x31, 0xc0, //       xor eax, eax
		0x48, 0xff, 0xc0, // inc rax
		0xc3, //             ret
	}
	f := classify.Func{Name: "count", Addr: 0x1000, Code: code}
	f.Insts = decode.Sweep(isa, nil, f.Code, f.Addr)
	profile, _ := isa.Profile(classify.ISA, classify.KernelOptions{})
	optimizer, _ := isa.Optimizer(classify.ISA, classify.KernelOptions{})
	asked := optcheck.Function{Func: &f, Verdicts: profile.Func(nil, &f)}
	for i, v := range optimizer.Func(nil, &asked, new(optcheck.Scratch)) {
		if inst := &f.Insts[i]; v.OK() {
			fmt.Printf("%#x replaces %d bytes\n", inst.Addr, v.Region)
		} else {
			fmt.Printf("%#x %s, for %#x\n", inst.Addr, v.Rule.ID, v.Culprit)
		}
	}
	// Output:
	// 0x1000 amd64/region-jump-target, for 0x1005
	// 0x1003 replaces 6 bytes
	// 0x1005 replaces 7 bytes
	// 0x1007 replaces 5 bytes
	// 0x1009 amd64/region-beyond-function, for 0x100d
	// 0x100c amd64/region-beyond-function, for 0x100d
}
