package events_test

import (
	"errors"
	"fmt"
	"time"

	"xol/arch/amd64"
	"xol/arch/arm64"
	"xol/events"
)

func ExampleParse() {
	e, err := events.Parse("p:reads vfs_read+0x10 file=%di count=%dx:u64", events.Options{ISA: amd64.ISA{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Group, e.Name, e.Symbol, e.Offset)
	fmt.Println(e.String())
	// Output:
	// kprobes reads vfs_read 16
	// p:kprobes/reads vfs_read+16 file=%di count=%dx:u64
}

func ExampleError() {
	_, err := events.Parse("p vfs_read name=+0($arg1):strnig", events.Options{ISA: amd64.ISA{}})
	var mistake *events.Error
	if errors.As(err, &mistake) {
		fmt.Println(mistake)
		fmt.Println(mistake.Caret())
	}
	// Output:
	// Unknown type is specified (BAD_TYPE) at 26: The type is none of those that this kind of event knows.
	// p vfs_read name=+0($arg1):strnig
	//                           ^
}

func ExampleParseGlob() {
	table := events.NewTable([]events.Symbol{
		{Name: "vfs_read", Addr: 0x1000, Func: true},
		{Name: "vfs_write", Addr: 0x2000, Func: true},
		{Name: "do_exit", Addr: 0x3000, Func: true},
	})
	all, err := events.ParseGlob("r vfs_* $retval:s64", events.Options{Symbols: table}, table.Functions)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range all {
		fmt.Println(e.String())
	}
	// Output:
	// r:kprobes/r_vfs_read_0 vfs_read arg1=$retval:s64
	// r:kprobes/r_vfs_write_0 vfs_write arg1=$retval:s64
}

// A program fetches arguments from registers and memory when its probe is hit.
func ExampleProgram() {
	opt := events.Options{ISA: arm64.ISA{}, Symbols: events.NewTable([]events.Symbol{
		{Name: "do_sys_open", Addr: 0xffff800008001000, Size: 0xd6, Func: true},
	})}
	e, err := events.Parse("p:opens do_sys_open dfd=$arg1:s32 name=+0($arg2):ustring flags=%x2:x16", opt)
	if err != nil {
		fmt.Println(err)
		return
	}
	program, err := events.Compile(&e, arm64.ISA{}, opt)
	if err != nil {
		fmt.Println(err)
		return
	}
	cpu := newGuest(arm64.ISA{}) // machine.Registers and machine.Memory
	cpu.SetReg(arm64.X0, 0xffffff9c)
	cpu.SetReg(arm64.X0+1, 0x4000)
	cpu.SetReg(arm64.X0+2, 0x8000)
	cpu.Write(0x4000, append([]byte("/etc/passwd"), make([]byte, 64)...))

	hit := events.Hit{Registers: cpu, Memory: cpu, Probe: 0xffff800008001000, Comm: "cat"}
	values, err := program.Record(&hit)
	if err != nil {
		fmt.Println(err)
		return
	}
	task := events.Task{Comm: "a-very-long-name", PID: 42, CPU: 1, Time: 3500 * time.Millisecond}
	fmt.Println(task.Line(program.Text(&hit, values)))
	// Output:
	// a-very-long-name-42      [001]      3.500000: opens: (do_sys_open+0x0/0xd6) dfd=-100 name="/etc/passwd" flags=0x8000
}

func ExampleLatency() {
	var l events.Latency
	for i, instructions := range []uint64{40, 50, 60, 700} {
		entered := uint64(1000 * i)
		l.Enter(1, "vfs_read", entered)
		l.Leave(1, "vfs_read", entered+instructions)
	}
	fmt.Print(l.String())
	// Output:
	// @[vfs_read]:
	// [32, 64)               3 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
	// [64, 128)              0 |                                                    |
	// [128, 256)             0 |                                                    |
	// [256, 512)             0 |                                                    |
	// [512, 1K)              1 |@@@@@@@@@@@@@@@@@                                   |
}

func ExampleCounts() {
	var c events.Counts
	for _, function := range []string{"vfs_read", "vfs_write", "vfs_read"} {
		c.Add(function)
	}
	fmt.Print(c.String())
	// Output:
	// @[vfs_write]: 1
	// @[vfs_read]: 2
}
