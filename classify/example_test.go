package classify_test

import (
	"fmt"

	"xol/arch/amd64"
	"xol/classify"
	"xol/decode"
	"xol/place"
)

// A profile judges each instruction of a function: what a kprobe of Linux 6.12
// would do here, where the kernel's BUG table names the ud2.
func ExampleProfile() {
	isa := amd64.ISA{}
	kprobes, _ := isa.Profile(classify.Linux612, classify.KernelOptions{Preemption: true})
	code := []byte{0x55, 0x48, 0x89, 0xe5, 0x74, 0x02, 0x0f, 0x0b, 0xc3}
	f := &classify.Func{Name: "f", Addr: 0x1000, Code: code, Insts: decode.Sweep(isa, nil, code, 0x1000)}
	f.Marks = place.Marks{{Addr: 0x1006, Len: 2, Kind: place.Bug}}
	for i, v := range kprobes.Func(nil, f) {
		if v.OK() {
			fmt.Printf("%#x: %s %q\n", f.Insts[i].Addr, v.Exec, v.Emulator)
		} else {
			fmt.Printf("%#x: %s, %s\n", f.Insts[i].Addr, v.Rule.Errno, v.Rule.ID)
		}
	}
	// Output:
	// 0x1000: slot ""
	// 0x1001: slot ""
	// 0x1004: emulate "jcc"
	// 0x1006: EINVAL, linux/bug
	// 0x1008: emulate "ret"
}
