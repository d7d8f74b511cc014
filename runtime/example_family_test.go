//go:build unicorn

package runtime_test

import (
	"context"
	"fmt"
	"os"

	"xol/arch"
	"xol/guest"
	"xol/image"
	"xol/machine"
	"xol/runtime"
)

// exampleMachine returns a machine that runs a file, and the file.
func exampleMachine(isaName, path string, bias uint64) (*guest.Machine, *guest.Program, *image.Image) {
	isa, err := arch.ByName(isaName)
	check(err)
	m, err := guest.Open(guest.Options{ISA: isa})
	check(err)
	file, err := os.Open(path)
	check(err)
	defer file.Close()
	program, err := m.LoadAt(file, bias)
	check(err)
	img, err := image.OpenFile(path, image.Options{})
	check(err)
	return m, program, img
}

// An arm64 function was compiled with -fpatchable-function-entry=2: its probe
// needs no breakpoint.
func ExampleOptions_entryProbes() {
	m, program, img := exampleMachine("arm64", "../testdata/guest/entry/arm64-patchable", 0)
	defer m.Close()
	defer img.Close()
	r, err := runtime.New(m, m.ISA, runtime.Options{EntryProbes: true})
	check(err)
	_, err = r.Load("program", img)
	check(err)
	spec := runtime.Probe{Symbol: "days", PreHandler: func(c *runtime.Context) bool {
		year, _ := c.Regs.Arg(0)
		month, _ := c.Regs.Arg(1)
		fmt.Println("days of", year, month)
		return false
	}}
	probe, err := r.Attach(spec)
	check(err)
	days, err := program.Function("days")
	check(err)
	n, err := r.Call(context.Background(), 0, days, 2024, 2)
	check(err)
	fmt.Println(n, "called:", probe.Called())
	// Output:
	// days of 2024 2
	// 29 called: true
}

// A variable of an amd64 program is watched: the handler runs after every
// write.
func ExampleWatchProbe() {
	const bias = 0x5555_5555_0000
	m, program, img := exampleMachine("amd64", "../testdata/guest/pie/amd64", bias)
	defer m.Close()
	defer img.Close()
	r, err := runtime.New(m, m.ISA, runtime.Options{})
	check(err)
	_, err = r.LoadAt("program", img, bias)
	check(err)
	calls, _, err := program.Symbol("calls")
	check(err)
	spec := runtime.WatchProbe{Addr: calls, Len: 8, Kind: machine.WatchWrite}
	spec.Handler = func(c *runtime.WatchContext) {
		name, base := img.Symbolize(c.Regs.IP() - bias)
		fmt.Printf("%d becomes %d, seen at %s+%#x\n", c.Old, c.New, name, c.Regs.IP()-bias-base)
	}
	watch, err := r.Attach(spec)
	check(err)
	count, err := program.Function("count_call")
	check(err)
	for _, by := range []uint64{1, 20} {
		_, err := r.Call(context.Background(), 0, count, by)
		check(err)
	}
	check(watch.Close())
	// Output:
	// 1000 becomes 1001, seen at count_call+0x15
	// 1001 becomes 1021, seen at count_call+0x15
}

// A uprobe is in two processes, which have mapped its file at different
// addresses; the second one starts when it is there already.
func ExampleUprobes() {
	const path = "../testdata/guest/pie/ppc64le"
	img, err := image.OpenFile(path, image.Options{})
	check(err)
	defer img.Close()
	file, err := runtime.NewExecutable("program", img)
	check(err)
	var system runtime.Uprobes
	run := func(bias, by uint64) {
		m, program, own := exampleMachine("ppc64le", path, bias)
		defer m.Close()
		defer own.Close()
		r, err := runtime.New(m, m.ISA, runtime.Options{Uprobes: true})
		check(err)
		p, err := system.Start(r)
		check(err)
		defer p.Exit()
		check(p.Map(file, bias))
		count, err := program.Function("count_call")
		check(err)
		n, err := p.Call(context.Background(), 0, count, by)
		check(err)
		fmt.Println(n)
	}
	spec := runtime.Uprobe{Executable: file, Symbol: "count_call"}
	spec.Handler = func(c *runtime.UprobeContext) bool {
		by, _ := c.Regs.Arg(0)
		fmt.Printf("count_call(%d) at %#x\n", by, c.Regs.IP())
		return false
	}
	probe, err := system.Attach(spec)
	check(err)
	run(0x10_0000, 5)
	run(0x7000_0000_0000, 6)
	check(probe.Close())
	fmt.Println(probe.Hits(), "hits")
	// Output:
	// count_call(5) at 0x100548
	// 1005
	// count_call(6) at 0x700000000548
	// 1006
	// 2 hits
}
