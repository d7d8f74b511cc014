package rpn_test

import (
	"fmt"

	"xol/arch/amd64"
	"xol/internal/cputest"
	"xol/machine"
	"xol/rpn"
)

// target is what the handlers know of amd64.
func target() *rpn.Target {
	isa := amd64.ISA{}
	return &rpn.Target{File: isa.Registers(), Convention: isa.Convention(), Order: isa.ByteOrder()}
}

func newCPU() *cputest.CPU {
	return cputest.New(target().File, false, machine.Range{Lo: 0x10000, Hi: 0x11000})
}

// printer writes records to standard output.
type printer struct{}

func (printer) Values(name string, values []uint64) { fmt.Println(name, values) }

func (printer) String(name string, text []byte, complete bool) {
	fmt.Printf("%s %q %v\n", name, text, complete)
}

// A handler for the entry of write(fd, buffer, size) that counts large writes
// and shows the first bytes of their data.
func Example() {
	program, err := rpn.Assemble(`
		global large                ; how many there were
		arg 2
		push 4096
		ltu
		jnz small                   ; not worth a record
		push 1
		addto large
		arg 0
		arg 2
		log "fd, size" 2
		onfault unreadable
		arg 1
		logstr "data" 16
		exit
	unreadable:
		log "no memory at" 1
	small:`, target())
	if err != nil {
		fmt.Println(err)
		return
	}
	globals := program.NewGlobals()
	cpu := newCPU()
	_ = cpu.Write(0x10000, []byte("Lorem ipsum dolor sit amet"))
	for _, write := range [][3]uint64{{1, 0x10000, 10}, {4, 0x10000, 8192}, {4, 0x99000, 8192}} {
		for i, register := range target().Convention.Args[:3] {
			cpu.SetReg(register, write[i])
		}
		result, err := program.Run(cpu, cpu, globals, printer{})
		fmt.Println(result.Status, result.Steps, "steps", err)
	}
	large, _ := globals.Get("large")
	fmt.Println(large, "large writes")
	// Output:
	// exited 4 steps <nil>
	// fd, size [4 8192]
	// data "Lorem ipsum dolo" false
	// exited 12 steps <nil>
	// fd, size [4 8192]
	// no memory at [626688]
	// exited 12 steps <nil>
	// 2 large writes
}

// A loop with a bound walks a list of nodes whose first word leads to the next.
func ExampleProgram_Run() {
	program, err := rpn.Assemble(`
		local node
		local length
		arg 0
		set node
	next:	get node
		jz done
		push 1
		addto length
		get node
		load8
		set node
		loop 100 next               ; a list may be a circle
	done:	get length
		log "length" 1`, target())
	if err != nil {
		fmt.Println(err)
		return
	}
	cpu := newCPU()
	for node := uint64(0x10000); node < 0x10040; node += 16 {
		_ = cpu.WriteWord(node, (node+16)%0x10040)
	}
	cpu.SetReg(target().Convention.Args[0], 0x10000)
	result, err := program.Run(cpu, cpu, nil, printer{})
	fmt.Println(result.Steps, "steps of", program.MaxSteps(), err)
	// Output:
	// length [4]
	// 38 steps of 804 <nil>
}

func ExampleAssemble_error() {
	_, err := rpn.Assemble("push 1\n  adds\n", target())
	fmt.Println(err)
	_, err = rpn.Assemble("again: arg 0\njnz again", target())
	fmt.Println(err)
	// Output:
	// line 2, column 3: no instruction "adds"; those that start so are add, addto
	// line 2, column 1: jnz: the target is not further down; only loop leads back
}

func ExampleProgram_Disassemble() {
	program, err := rpn.Assemble("top: arg 1\njz end\nloop 3 top\nend:", target())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(program.Disassemble())
	// Output:
	// L1:
	// 	reg rsi
	// 	jz L2
	// 	loop 3 L1
	// L2:
}
