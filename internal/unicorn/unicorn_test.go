//go:build unicorn

package unicorn

import (
	"encoding/hex"
	"testing"

	"golang.org/x/sys/unix"

	"xol/machine"
)

// one is a machine with a page of code and a page of data, both at an address
// as kernels use.
type one struct {
	*Engine
	code, data []byte
}

const (
	codePage = 0xffff_8000_0001_0000
	dataPage = 0xffff_8000_0002_0000
)

func openOne(t *testing.T, a Arch) *one {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, 2*PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(a, func(va uint64, _ machine.Access) (uint64, machine.Perm, bool) {
		switch va &^ (PageSize - 1) {
		case codePage:
			return 0, machine.PermRead | machine.PermExec, true
		case dataPage:
			return PageSize, machine.PermRead | machine.PermWrite, true
		}
		return 0, 0, false
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	if err := e.Map(0, mem); err != nil {
		t.Fatal(err)
	}
	return &one{e, mem[:PageSize], mem[PageSize:]}
}

func (o *one) load(t *testing.T, text string) {
	t.Helper()
	code, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	copy(o.code, code)
	if err := o.RemoveCache(codePage, codePage+PageSize); err != nil {
		t.Fatal(err)
	}
}

// Each ISA adds 2 to a register and stores it.
var addAndStore = []struct {
	name     string
	arch     Arch
	code     string
	value    int32 // register
	pointer  int32
	pc       int32
	trap     string // a breakpoint of the ISA
	trapStop uint32
	msr      uint64
}{
	{"amd64", AMD64, "4883c0024889" + "03", X86RAX, X86RBX, X86RIP, "cc", 3, 0},
	{"arm64", ARM64, "00080091" + "200000f9", ARM64X0, ARM64X0 + 1, ARM64PC, "800020d4", 7, 0},
	{"ppc64", PPC64, "38630002" + "f8640000", PPCR0 + 3, PPCR0 + 4, PPCPC, "7fe00008", 6, 1 << 63},
	{"ppc64le", PPC64LE, "02006338" + "000064f8", PPCR0 + 3, PPCR0 + 4, PPCPC, "0800e07f", 6, 1<<63 | 1},
}

func TestRun(t *testing.T) {
	for _, c := range addAndStore {
		t.Run(c.name, func(t *testing.T) {
			o := openOne(t, c.arch)
			ids := []int32{c.value, c.pointer, c.pc}
			if c.msr != 0 {
				ids = append(ids, PPCMSR)
			}
			r := NewRegisters(ids)
			defer r.Free()
			start := func() {
				*r.Word(0), *r.Word(1), *r.Word(2) = 40, dataPage+8, codePage
				if c.msr != 0 {
					*r.Word(3) = c.msr
				}
			}
			o.load(t, c.code)
			start()
			if stop, _, err := o.Run(r, c.pc, codePage, codePage+uint64(len(c.code)/2), 1, 2); stop != StopNone || err != nil {
				t.Fatalf("stop %d, error %v", stop, err)
			}
			want := o.data[8]
			if c.arch == PPC64 {
				want = o.data[15]
			}
			if *r.Word(0) != 42 || want != 42 {
				t.Errorf("register %d, memory % x", *r.Word(0), o.data[8:16])
			}
			if pc := *r.Word(2); pc != codePage+uint64(len(c.code)/2) {
				t.Errorf("pc %#x", pc)
			}

			o.load(t, c.code)
			start()
			if stop, _, err := o.Run(r, c.pc, codePage, codePage+PageSize, 1, 1); stop != StopSteps || err != nil {
				t.Errorf("one step: stop %d, error %v", stop, err)
			}

			o.load(t, c.trap)
			start()
			if stop, n, err := o.Run(r, c.pc, codePage, codePage+PageSize, 1, 1); stop != StopTrap || n != c.trapStop {
				t.Errorf("trap: stop %d, number %d, error %v", stop, n, err)
			}

			o.load(t, c.code)
			start()
			*r.Word(1) = dataPage + 0x10000
			if _, _, err := o.Run(r, c.pc, codePage, codePage+PageSize, 1, 2); err != ErrException {
				t.Errorf("store to nowhere: error %v", err)
			}
			if pc := *r.Word(2); pc != codePage+4 {
				t.Errorf("store to nowhere: pc %#x", pc)
			}
		})
	}
}

func TestEnginesAreReleased(t *testing.T) {
	for range 50 {
		e, err := Open(ARM64, func(uint64, machine.Access) (uint64, machine.Perm, bool) { return 0, 0, false })
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal("second Close:", err)
		}
	}
}

// TestCodeMayChangeAsOftenAsItLikes translates several times as much code as
// there is room for.
func TestCodeMayChangeAsOftenAsItLikes(t *testing.T) {
	o := openOne(t, AMD64)
	if err := o.Watch(1, true); err != nil {
		t.Fatal(err)
	}
	const size, count = 250, 35 // add r64, imm32; jmp to the exit
	code := make([]byte, size)
	lengths := make([]uint8, count+1)
	for i := range count {
		copy(code[7*i:], []byte{0x48, 0x81, 0xc0, 1, 0, 0, 0})
		lengths[i] = 7
	}
	copy(code[7*count:], []byte{0xff, 0xe3}) // jmp rbx
	lengths[count] = 2 | Branches
	copy(o.code, code)
	r := NewRegisters([]int32{X86RAX, X86RBX, X86RIP})
	defer r.Free()
	flushed := 0
	for n := 0; flushed < 3; n++ {
		before := o.translated
		if err := o.RemoveCache(codePage, codePage+1); err != nil {
			t.Fatal(err)
		}
		*r.Word(0), *r.Word(1) = 0, ExitAddress
		stop, _, err := o.Go(r, true, codePage, 1000)
		for stop == StopBlock && err == nil {
			if err = o.Allow(codePage, 7*count+2, lengths); err == nil {
				stop, _, err = o.Go(r, true, codePage, 1000)
			}
		}
		if stop != StopNone || err != nil {
			t.Fatalf("run %d: stop %d, error %v", n, stop, err)
		}
		if got := *r.Word(0); got != count {
			t.Fatalf("run %d: counted to %d", n, got)
		}
		if o.translated < before {
			flushed++
		}
	}
}
