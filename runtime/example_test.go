//go:build unicorn

package runtime_test

import (
	"fmt"
	"log"
	"os"

	"xol/arch"
	"xol/image"
	"xol/internal/guest"
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
	check(m.Map(text, guest.PageSize, runtime.PermRead|runtime.PermWrite))
	check(m.Write(text, []byte("execute out of line\x00")))

	r, err := runtime.New(m, isa, runtime.Options{})
	check(err)
	img, err := image.OpenFile(path, image.Options{})
	check(err)
	defer img.Close()
	_, err = r.Load("program", img)
	check(err)

	probe := &runtime.Probe{Symbol: "length", PreHandler: func(c *runtime.Context) bool {
		start, _ := c.Regs.Arg(0)
		word := make([]byte, 7)
		if err := c.Read(word, start); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("length(%q…)\n", word)
		return false
	}}
	check(r.Register(probe))
	length, err := program.Function("length")
	check(err)
	for range 2 {
		n, err := r.Call(0, length, text)
		check(err)
		fmt.Println(n, "optimized:", probe.Optimized())
		check(r.Settle())
	}
	check(r.Unregister(probe))
	fmt.Println(r.Hits(probe), "hits")
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
