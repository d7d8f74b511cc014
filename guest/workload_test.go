//go:build unicorn

package guest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"xol/arch"
	"xol/internal/workload"
	"xol/machine"
)

const bufferAddr = 0x6000_0000

// load opens a machine with one of the programs in testdata/guest.
func load(t *testing.T, opt Options, isa, level string) (*Machine, *Program) {
	t.Helper()
	m := open(t, opt, isa)
	f, err := os.Open(fmt.Sprintf("../testdata/guest/%s-O%s", isa, level))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := m.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Map(bufferAddr, uint64(len(m.CPUs))*workload.Size, machine.PermRead|machine.PermWrite); err != nil {
		t.Fatal(err)
	}
	return m, p
}

func eachProgram(t *testing.T, f func(t *testing.T, isa, level string)) {
	for _, isa := range arch.Names() {
		for _, level := range []string{"0", "2"} {
			t.Run(isa+" -O"+level, func(t *testing.T) { f(t, isa, level) })
		}
	}
}

// TestPrograms calls every function of every program with random arguments.
func TestPrograms(t *testing.T) {
	for _, exact := range []bool{false, true} {
		eachProgram(t, func(t *testing.T, isa, level string) {
			m, p := load(t, Options{Exact: exact}, isa, level)
			b := &workload.Buffer{Memory: m, Order: m.Order, Addr: bufferAddr}
			r := rand.New(rand.NewPCG(1, 2))
			for _, w := range workload.All() {
				for range 20 {
					if err := callOnce(m.CPUs[0], p, w, b, r); err != nil {
						t.Fatalf("%s: %v", w.Name, err)
					}
				}
			}
		})
	}
}

func callOnce(c *CPU, p *Program, w workload.Workload, b *workload.Buffer, r *rand.Rand) error {
	call, err := w.New(b, r)
	if err != nil {
		return err
	}
	f, err := p.Function(call.Function)
	if err != nil {
		return err
	}
	result, err := c.CallAndRun(1_000_000, f, call.Args...)
	if err != nil {
		return err
	}
	if err := call.Check(result); err != nil {
		return fmt.Errorf("%#x: %w", call.Args, err)
	}
	return nil
}
