// Decoder goes over a text with xol's decoders or with golang.org/x/arch, and prints a line
// as Go's benchmarks do.
//
//	decoder PEER ISA WORK FILE
//
// WORK is decode or text.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/ppc64/ppc64asm"
	"golang.org/x/arch/x86/x86asm"

	"xol/arch"
	"xol/decode"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: decoder PEER ISA WORK FILE")
		os.Exit(2)
	}
	if err := measure(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "decoder:", err)
		os.Exit(1)
	}
}

// decoder returns the length of the instruction at the start of code, 0 where there is
// none.
type decoder func(code []byte, addr uint64) int

func measure(peer, isa, work, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	a, err := arch.ByName(isa)
	if err != nil {
		return err
	}
	one := ours(a, work == "text")
	if peer != "xol" {
		if one = theirs(isa, work == "text"); one == nil {
			return fmt.Errorf("golang.org/x/arch has no decoder for %s", isa)
		}
	}
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == "golang.org/x/arch" {
			fmt.Printf("x-arch: golang.org/x/arch %s\n", dep.Version)
		}
	}
	over(text[:len(text)/16], a.Align(), one)
	start := onCPU()
	n := over(text, a.Align(), one)
	fmt.Printf("BenchmarkDecode/isa=%s/work=%s/peer=%s 1 %.3f ns/inst %d insts\n", isa, work, peer, (onCPU()-start)/float64(n), n)
	return nil
}

// over goes over the text once, and returns the number of instructions.
func over(text []byte, unit int, one decoder) (n int) {
	for at := 0; at+unit <= len(text); n++ {
		at += max(one(text[at:], uint64(at)), unit)
	}
	return n
}

func ours(isa arch.ISA, text bool) decoder {
	var inst decode.Inst
	return func(code []byte, addr uint64) int {
		if isa.Decode(&inst, code, addr) != nil {
			return 0
		}
		if text {
			isa.Text(&inst, nil)
		}
		return int(inst.Len)
	}
}

func theirs(isa string, text bool) decoder {
	switch isa {
	case "amd64":
		return func(code []byte, addr uint64) int {
			inst, err := x86asm.Decode(code, 64)
			if err != nil {
				return 0
			}
			if text {
				x86asm.GNUSyntax(inst, addr, nil)
			}
			return inst.Len
		}
	case "arm64":
		return func(code []byte, _ uint64) int {
			inst, err := arm64asm.Decode(code[:4])
			if err == nil && text {
				arm64asm.GNUSyntax(inst)
			}
			return 4
		}
	case "ppc64le":
		return func(code []byte, addr uint64) int {
			inst, err := ppc64asm.Decode(code, binary.LittleEndian)
			if err != nil {
				return 0
			}
			if text {
				ppc64asm.GNUSyntax(inst, addr)
			}
			return inst.Len
		}
	}
	return nil
}

// onCPU returns the nanoseconds that the process has been on CPUs, those of the garbage
// collector among them.
func onCPU() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}
