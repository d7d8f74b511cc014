//go:build unicorn

package runtime_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"xol/arch"
	"xol/guest"
	"xol/image"
	"xol/machine"
	"xol/runtime"
)

// A function of a ppc64le program is probed: the handler prints its argument, and
// the second call reaches it through a jump.
func Example() {
	const path, text = "../testdata/guest/ppc64le-O2", 0x6000_0000
	isa, err := arch.ByName("ppc64le")
	check(err)
	m, err := guest.Open(guest.Options{ISA: isa})
	check(err)
	defer m.Close()
	file, err := os.Open(path)
	check(err)
	defer file.Close()
	program, err := m.Load(file)
	check(err)
	check(m.Map(text, guest.PageSize, machine.PermRead|machine.PermWrite))
	check(m.Write(text, []byte("execute out of line\x00")))

	r, err := runtime.New(m, isa, runtime.Options{})
	check(err)
	img, err := image.OpenFile(path, image.Options{})
	check(err)
	defer img.Close()
	_, err = r.Load("program", img)
	check(err)

	spec := runtime.Probe{Symbol: "length", PreHandler: func(c *runtime.Context) bool {
		start, _ := c.Regs.Arg(0)
		word := make([]byte, 7)
		if err := c.Read(word, start); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("length(%q…)\n", word)
		return false
	}}
	probe, err := r.Attach(spec)
	check(err)
	length, err := program.Function("length")
	check(err)
	for range 2 {
		n, err := r.Call(context.Background(), 0, length, text)
		check(err)
		fmt.Println(n, "optimized:", probe.Optimized())
		check(r.Settle())
	}
	check(probe.Close())
	fmt.Println(probe.Hits(), "hits")
	// Output:
	// length("execute"…)
	// 19 optimized: false
	// length("execute"…)
	// 19 optimized: true
	// 2 hits
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// The calls of a function that calls itself, innermost first: the entry handler
// keeps the argument for the handler of the same call.
func ExampleReturnProbe() {
	m, program, img := exampleMachine("ppc64le", "../testdata/guest/returns/ppc64le", 0)
	defer m.Close()
	defer img.Close()
	r, err := runtime.New(m, m.ISA, runtime.Options{})
	check(err)
	_, err = r.Load("program", img)
	check(err)
	spec := runtime.ReturnProbe{
		Symbol: "descend", DataSize: 1, MaxActive: 3,
		EntryHandler: func(c *runtime.ReturnContext) (skip bool) {
			n, _ := c.Regs.Arg(0)
			c.Data[0] = byte(n)
			return false
		},
		Handler: func(c *runtime.ReturnContext) {
			fmt.Printf("descend(%d) returned %d\n", c.Data[0], c.Regs.ReturnValue())
		},
	}
	probe, err := r.Attach(spec)
	check(err)
	descend, err := program.Function("descend")
	check(err)
	n, err := r.Call(context.Background(), 0, descend, 4)
	check(err)
	fmt.Println(n, "missed:", probe.Nmissed())
	check(probe.Close())
	// Output:
	// descend(2) returned 9
	// descend(3) returned 10
	// descend(4) returned 11
	// 11 missed: 2
}

// A function of the program with twelve arguments sees those of another one, and
// may change them.
func ExampleJprobe() {
	m, program, img := exampleMachine("amd64", "../testdata/guest/returns/amd64", 0)
	defer m.Close()
	defer img.Close()
	r, err := runtime.New(m, m.ISA, runtime.Options{})
	check(err)
	_, err = r.Load("program", img)
	check(err)
	mirror, err := program.Function("mirror_many")
	check(err)
	spec := runtime.Jprobe{Symbol: "many", Mirror: mirror}
	probe, err := r.Attach(spec)
	check(err)
	f, err := program.Function("calls_many")
	check(err)
	n, err := r.Call(context.Background(), 0, f, 5)
	check(err)
	addr, _, err := program.Symbol("seen")
	check(err)
	seen, err := m.ReadWord(addr)
	check(err)
	fmt.Println(probe.Hits(), n == seen^5)
	// Output:
	// 1 true
}

// Hits are counted in the guest: they do not stop it once the breakpoint is a
// jump.
func ExampleProbe_counter() {
	m, program, img := exampleMachine("arm64", "../testdata/guest/returns/arm64", 0)
	defer m.Close()
	defer img.Close()
	r, err := runtime.New(m, m.ISA, runtime.Options{})
	check(err)
	_, err = r.Load("program", img)
	check(err)
	spec := runtime.Probe{Symbol: "descend", Offset: 4, Counter: true}
	probe, err := r.Attach(spec)
	check(err)
	check(r.Settle())
	descend, err := program.Function("descend")
	check(err)
	_, err = r.Call(context.Background(), 0, descend, 999)
	check(err)
	fmt.Println(probe.Hits(), "hits, optimized:", probe.Optimized())
	// Output:
	// 1000 hits, optimized: true
}
