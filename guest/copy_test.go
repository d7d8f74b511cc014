//go:build unicorn

package guest

import (
	"os"
	"testing"

	"xol/arch"
	"xol/machine"
)

// TestCopy forks a machine in the middle of a function: both go on, each with
// memory of its own.
func TestCopy(t *testing.T) {
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			m := open(t, Options{CPUs: 2}, isa)
			p := loadAt(t, m, "../testdata/guest/pie/"+isa, 0x5555_0000_0000)
			f, err := p.Function("fork_twice")
			if err != nil {
				t.Fatal(err)
			}
			c := m.CPUs[1]
			if err := c.Call(f, 7); err != nil {
				t.Fatal(err)
			}
			if ev, err := c.Run(10_000); err != nil || ev.Kind != machine.EventSyscall {
				t.Fatal(ev.Kind, err)
			}
			other, err := m.Copy()
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			for i, c := range []*CPU{c, other.CPUs[1]} {
				if !c.Running() {
					t.Error("it does not run")
				}
				c.SetReg(m.convention.Result, uint64(10*i))
				ev, err := c.Run(10_000)
				if want := uint64(7 + 10*i + 1001); err != nil || ev.Kind != machine.EventReturned || c.Result() != want {
					t.Errorf("%d: %v, %v: %d, want %d", i, ev.Kind, err, c.Result(), want)
				}
			}
		})
	}
}

func loadAt(t *testing.T, m *Machine, path string, bias uint64) *Program {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := m.LoadAt(f, bias)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLoadAtRefused: a program that is not position-independent has one place.
func TestLoadAtRefused(t *testing.T) {
	m := open(t, Options{}, "amd64")
	for path, bias := range map[string]uint64{
		"../testdata/guest/amd64-O2":  PageSize, // not position-independent
		"../testdata/guest/pie/amd64": 1,
		"../testdata/guest/pie/arm64": 0,
	} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := m.LoadAt(f, bias); err == nil {
			t.Errorf("%s at %#x", path, bias)
		}
	}
}
