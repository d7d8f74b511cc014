//go:build unicorn

package tracer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"xol/arch"
	"xol/guest"
	"xol/image"
	"xol/machine"
	"xol/runtime"
	"xol/tracer"
)

// A line as people write it to kprobe_events probes a function of an arm64
// program; what it records is printed as the file trace shows it.
func Example() {
	const path, text = "../testdata/guest/arm64-O2", 0x6000_0000
	isa, err := arch.ByName("arm64")
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
	check(m.Write(text, []byte("out of line\x00")))
	img, err := image.OpenFile(path, image.Options{})
	check(err)
	defer img.Close()
	r, err := runtime.New(m, isa, runtime.Options{})
	check(err)
	_, err = r.Load("program", img)
	check(err)

	t, err := tracer.New(r, isa, img, tracer.Options{Line: func(line string) { fmt.Println(strings.TrimSpace(line)) }})
	check(err)
	check(t.Write("p:strings/measured length text=+0($arg1):string"))
	check(t.Write("r:strings/result length n=$retval:u64"))
	check(t.Enable("strings/", true))
	length, err := program.Function("length")
	check(err)
	_, err = r.Call(context.Background(), 0, length, text)
	check(err)
	for _, line := range t.Events() {
		fmt.Println(line)
	}
	// Output:
	// guest-0       [000]      0.000000: measured: (length+0x0/0x28) text="out of line"
	// guest-0       [000]      0.000000: result: (0x7fff000000000000 <- length) n=11
	// p:strings/measured length text=+0($arg1):string
	// r:strings/result length n=$retval:u64
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
