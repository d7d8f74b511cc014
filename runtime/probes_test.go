//go:build unicorn

package runtime_test

import (
	"fmt"
	"os"
	"testing"

	"xol/arch"
	"xol/guest"
	"xol/image"
	"xol/internal/isatest"
	"xol/internal/workload"
	"xol/machine"
	"xol/runtime"
)

// bufferAddr is where the buffers of the CPUs are, one after the other, and
// another one for all of them.
const bufferAddr = 0x6000_0000

// program is a runtime with one of the programs in testdata/guest.
type program struct {
	*runtime.Runtime
	m     *guest.Machine
	p     *guest.Program
	img   *image.Image
	image *runtime.Module
}

func programPath(isa, level string) string {
	return fmt.Sprintf("../testdata/guest/%s-O%s", isa, level)
}

func open(t testing.TB, isaName, level string, mopt guest.Options, opt runtime.Options) *program {
	t.Helper()
	return openFile(t, isaName, programPath(isaName, level), mopt, opt)
}

func openFile(t testing.TB, isaName, path string, mopt guest.Options, opt runtime.Options) *program {
	t.Helper()
	isa, err := isatest.Named(isaName)
	if err != nil {
		t.Fatal(err)
	}
	return openWith(t, isa, path, mopt, opt)
}

// openWith is openFile with an ISA of the caller's own.
func openWith(t testing.TB, isa arch.Prober, path string, mopt guest.Options, opt runtime.Options) *program {
	t.Helper()
	mopt.ISA = isa
	m, err := guest.Open(mopt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := m.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Map(bufferAddr, (uint64(len(m.CPUs))+1)*workload.Size, machine.PermRead|machine.PermWrite); err != nil {
		t.Fatal(err)
	}
	r, err := runtime.New(m, isa, opt)
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.OpenFile(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	im, err := r.Load("guest", img)
	if err != nil {
		t.Fatal(err)
	}
	return &program{r, m, p, img, im}
}
