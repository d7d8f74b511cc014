//go:build unicorn

package guest

import (
	"bytes"
	"fmt"
	"testing"

	"xol/machine"
)

// TestBranchesAreExecutedOnce has a call lead to code that the engine knows, but
// that has to be looked at again because other code near it was changed.
func TestBranchesAreExecutedOnce(t *testing.T) {
	const text, changed = 0x40_0000, 0x40
	code := bytes.Repeat([]byte{0x90}, 2*changed)
	copy(code[0x18:], []byte{0xe8, 7, 0, 0, 0, 0x48, 0xff, 0xc0, 0xc3}) // call 1f; inc rax; ret
	copy(code[0x24:], []byte{0x48, 0xff, 0xc0, 0xc3})                   // 1: inc rax; ret
	for _, exact := range []bool{false, true} {
		t.Run(fmt.Sprint("exact ", exact), func(t *testing.T) {
			m := open(t, Options{Exact: exact}, "amd64")
			if err := m.Map(text, PageSize, machine.PermRead|machine.PermExec); err != nil {
				t.Fatal(err)
			}
			if err := m.Write(text, code); err != nil {
				t.Fatal(err)
			}
			rax := m.File.Index("rax")
			for round := range 10 {
				m.CPUs[0].SetReg(rax, 0)
				got, err := m.CPUs[0].CallAndRun(1000, machine.Function{Entry: text})
				if err != nil || got != 2 {
					t.Fatalf("round %d: %d, %v, want 2", round, got, err)
				}
				if err := m.Write(text+changed, code[changed:changed+1]); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
