//go:build linux && amd64

package verify_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"xol/arch/amd64"
	"xol/decode"
	"xol/internal/nativecpu"
	"xol/internal/skip"
	"xol/machine"
	"xol/relocate"
	"xol/verify"
)

// verifyMoved moves three instructions far away, runs both forms on this CPU, and
// writes what came of it.
func verifyMoved(w io.Writer) error {
	isa := amd64.ISA{}
	code := []byte{
		0x48, 0x8b, 0x05, 0x00, 0x10, 0x00, 0x00, // mov rax, [rip+0x1000]
		0x48, 0x01, 0xd8, //                         add rax, rbx
		0x75, 0x10, //                               jnz
	}
	report, err := verify.Instructions(context.Background(), decode.Sweep(isa, nil, code, 0x401000), verify.Options{
		Target: isa,
		Engines: func() ([]machine.Engine, error) {
			cpu, err := nativecpu.Open(isa.Registers())
			return []machine.Engine{cpu}, err
		},
		Reach:  relocate.Far,
		States: 50,
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w, report.Executed, "instructions from", report.States, "states,", report.Differences, "differences")
	return nil
}

// Moved code is compared with the original on a CPU, from random states.
func Example() {
	if err := verifyMoved(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// 3 instructions from 150 states, 0 differences
}

// TestExample runs what Example does, where processes may be traced.
func TestExample(t *testing.T) {
	cpu, err := nativecpu.Open(amd64.Registers())
	if err != nil {
		skip.Missing(t, "the right to trace a process", err)
	}
	cpu.Close()
	var out strings.Builder
	if err := verifyMoved(&out); err != nil {
		t.Fatal(err)
	}
	if want := "3 instructions from 150 states, 0 differences\n"; out.String() != want {
		t.Errorf("%s, want %s", &out, want)
	}
}
