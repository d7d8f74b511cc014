//go:build unicorn

package guest

import (
	"encoding/hex"
	"fmt"
	"slices"

	"xol/machine"
)

// testCode is code that shows what an ISA's engine must be able to do: store,
// call through a pointer, trap, fault and return. Each is hexadecimal.
type testCode struct {
	code       string
	called     string // adds 1 to the value
	patched    string // subtracts 1
	breakpoint uint64 // offsets in code
	fault      uint64 // of a load of the value from nowhere
	pc         uint64 // from the breakpoint to where its handler finds the program counter
	words      bool   // the code is 4-byte words in big-endian order
	value      int    // registers
	data       int    // has a word to store the value in at 8, the called function's address at 16
	nowhere    int
}

// Where the test's memory is while it runs.
const (
	testText   = 0x7d00_0000_0000
	testCalled = testText + 0x800
	testData   = testText + PageSize
	testValue  = 41
)

// bytes returns code in the order of the guest's memory.
func (t *testCode) bytes(m *Machine, text string) ([]byte, error) {
	code, err := hex.DecodeString(text)
	if t.words && m.Order.Uint16([]byte{1, 0}) == 1 {
		for i := 0; i+4 <= len(code); i += 4 {
			slices.Reverse(code[i : i+4])
		}
	}
	return code, err
}

// test shows that the CPU works.
func (c *CPU) test() error {
	m, before := c.m, c.m.File.NewState()
	c.SaveCore(before)
	if err := m.Map(testText, PageSize, machine.PermRead|machine.PermExec); err != nil {
		return err
	}
	if err := m.Map(testData, PageSize, machine.PermRead|machine.PermWrite); err != nil {
		return err
	}
	for _, step := range []struct {
		called string
		want   uint64
	}{{m.target.test.called, testValue + 1}, {m.target.test.patched, testValue - 1}} {
		if err := c.testOnce(step.called, step.want); err != nil {
			return err
		}
	}
	if m.target.learn != nil {
		if err := m.target.learn(c); err != nil {
			return err
		}
	}
	c.RestoreCore(before)
	c.running = false
	return m.Unmap(testText, 2*PageSize)
}

func (c *CPU) testOnce(called string, want uint64) error {
	m, t := c.m, &c.m.target.test
	if err := c.loadTest(called); err != nil {
		return err
	}
	const nowhere = testData + 2*PageSize
	if err := c.Call(machine.Function{Entry: testText}); err != nil {
		return err
	}
	c.SetReg(t.value, testValue)
	c.SetReg(t.data, testData)
	c.SetReg(t.nowhere, nowhere)

	if err := c.testRun(machine.EventBreakpoint, testText+t.breakpoint); err != nil {
		return err
	}
	stored, err := m.ReadWord(testData + 8)
	if err != nil {
		return err
	}
	if v := c.Reg(t.value); v != want || stored != testValue {
		return fmt.Errorf("a called function returned %d, want %d; %d was stored, want %d", v, want, stored, testValue)
	}
	if pc := c.PC(); pc != testText+t.breakpoint+t.pc {
		return fmt.Errorf("a breakpoint at %#x has the program counter at %#x", testText+t.breakpoint, pc)
	}
	c.SetPC(testText + t.fault)
	if err := c.testRun(machine.EventFault, testText+t.fault); err != nil {
		return err
	}
	if v := c.Reg(t.value); v != want {
		return fmt.Errorf("a load that faulted made %d of %d", v, want)
	}
	c.SetReg(t.nowhere, testData+8)
	return c.testRun(machine.EventReturned, ExitAddress)
}

func (c *CPU) loadTest(called string) error {
	t := &c.m.target.test
	for _, part := range []struct {
		addr uint64
		text string
	}{{testText, t.code}, {testCalled, called}} {
		code, err := t.bytes(c.m, part.text)
		if err != nil {
			return err
		}
		if err := c.m.Write(part.addr, code); err != nil {
			return err
		}
	}
	return c.m.WriteWord(testData+16, testCalled)
}

func (c *CPU) testRun(k machine.EventKind, addr uint64) error {
	ev, err := c.Run(100)
	if err != nil {
		return err
	}
	return c.expect(ev, k, addr)
}
