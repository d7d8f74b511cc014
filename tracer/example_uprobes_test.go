//go:build unicorn

package tracer_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"xol/arch"
	"xol/guest"
	"xol/image"
	"xol/machine"
	"xol/runtime"
	"xol/tracer"
)

// Lines as people write them to uprobe_events probe a function of an amd64 file
// in every process that maps it.
func ExampleUprobes() {
	const path, bias, text = "../testdata/guest/pie/amd64", 0x5555_5555_0000, 0x6000_0000
	isa, err := arch.ByName("amd64")
	check(err)
	img, err := image.OpenFile(path, image.Options{})
	check(err)
	defer img.Close()
	pie, err := runtime.NewExecutable("/usr/bin/pie", img)
	check(err)

	system := new(runtime.Uprobes)
	t, err := tracer.NewUprobes(system, isa, []*runtime.Executable{pie}, tracer.Options{Line: func(line string) { fmt.Println(strings.TrimSpace(line)) }})
	check(err)
	check(t.Write(`
		p:strings/measured /usr/bin/pie:0x3630 text=+0(%di):string # length
		r:strings/result   /usr/bin/pie:0x3630 n=$retval:u64
	`))
	check(t.Enable("strings/", true))

	m, err := guest.Open(guest.Options{ISA: isa})
	check(err)
	defer m.Close()
	file, err := os.Open(path)
	check(err)
	defer file.Close()
	program, err := m.LoadAt(file, bias)
	check(err)
	check(m.Map(text, guest.PageSize, machine.PermRead|machine.PermWrite))
	check(m.Write(text, []byte("out of line\x00")))
	r, err := runtime.New(m, isa, runtime.Options{Uprobes: true})
	check(err)
	process, err := system.Start(r)
	check(err)
	check(process.Map(pie, bias))

	length, err := program.Function("length")
	check(err)
	_, err = process.Call(context.Background(), 0, length, text)
	check(err)
	for _, line := range t.Events() {
		fmt.Println(line)
	}
	// Output:
	// guest-0       [000]      0.000000: measured: (0x555555553630) text="out of line"
	// guest-0       [000]      0.000000: result: (0x7fff000000000000 <- 0x555555553630) n=11
	// p:strings/measured /usr/bin/pie:0x0000000000003630 text=+0(%di):string
	// r:strings/result /usr/bin/pie:0x0000000000003630 n=$retval:u64
}
