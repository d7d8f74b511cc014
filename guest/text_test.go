//go:build unicorn

package guest

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"testing"

	"xol/arch"
	"xol/internal/skip"
	"xol/machine"
)

// Where the code of these tests is.
const (
	textAt       = 0x40_0000
	spinAt       = textAt + 0x100
	loaderAt     = textAt + 0x200
	farAt        = textAt + 4*PageSize // of its own
	writableText = machine.PermRead | machine.PermWrite | machine.PermExec
)

// rewritten is code of an ISA that is written while it runs. Words are in the order
// of numbers.
type rewritten struct {
	constant uint32 // where its number is 0, the instruction that is the result
	shift    uint   // of the number in it
	offset   uint64 // of the instruction's word in constant's code: bytes
	value    string // constant with 1; return
	spin     string // constant with 1; until it is 2; return
	store    string // argument 1, of 32 bits, to argument 0; return
	both     string // the same, then constant with 1; return
	bothAt   uint64 // offset of the word of constant in both
	load     string // from argument 0; return
	refused  uint32 // the engine must not run it, alone or in the place of constant
}

var rewrites = map[string]rewritten{
	"amd64": {
		offset: 1, value: "b801000000c3", spin: "b80100000083f80275f6c3", store: "8937c3",
		both: "8937b801000000c3", bothAt: 3, load: "8b07c3",
	},
	"arm64": {
		constant: 0x52800000, shift: 5, value: "52800020d65f03c0", spin: "528000207100081f54ffffc1d65f03c0",
		store: "b9000001d65f03c0", both: "b900000152800020d65f03c0", bothAt: 4, load: "b9400000d65f03c0",
		refused: 0x0ec01c00, // famax
	},
	"ppc64": {
		constant: 0x38600000, value: "386000014e800020", spin: "386000012c0300024082fff84e800020",
		store: "908300004e800020", both: "90830000386000014e800020", bothAt: 4, load: "806300004e800020",
	},
}

func rewrittenOf(isa string) rewritten {
	if isa == "ppc64le" {
		isa = "ppc64"
	}
	return rewrites[isa]
}

// lab is a machine with such code.
type lab struct {
	*Machine
	rewritten
	t *testing.T
}

func (l *lab) code(text string) []byte {
	l.t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		l.t.Fatal(err)
	}
	if l.ISA.Align() == 1 {
		return b
	}
	var out []byte
	for ; len(b) > 0; b = b[4:] {
		out = l.appendWord(out, binary.BigEndian.Uint32(b))
	}
	return out
}

func (l *lab) appendWord(b []byte, w uint32) []byte {
	if l.ISA.Name() == "ppc64" {
		return binary.BigEndian.AppendUint32(b, w)
	}
	return binary.LittleEndian.AppendUint32(b, w)
}

// word is what has constant's result be n.
func (l *lab) word(n uint32) uint32 { return l.constant | n<<l.shift }

func (l *lab) put(addr uint64, text string) {
	l.t.Helper()
	if err := l.Write(addr, l.code(text)); err != nil {
		l.t.Fatal(err)
	}
}

// call has a CPU call the function at addr.
func (l *lab) call(cpu int, addr uint64, args ...uint64) uint64 {
	l.t.Helper()
	v, err := l.CPUs[cpu].CallAndRun(10_000, machine.Function{Entry: addr}, args...)
	if err != nil {
		l.t.Fatal(err)
	}
	return v & 0xffff_ffff
}

func (l *lab) gives(what string, addr uint64, want uint64) {
	l.t.Helper()
	for cpu := range l.CPUs {
		if got := l.call(cpu, addr); got != want {
			l.t.Errorf("%s: CPU %d executes %d, want %d", what, cpu, got, want)
		}
	}
}

// eachLab calls f with a machine of two CPUs of every ISA whose code, of value, spin and
// load, the program may write, and which counts instructions one by one or not.
func eachLab(t *testing.T, f func(t *testing.T, l *lab)) {
	for _, isa := range arch.Names() {
		for _, exact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s exact=%t", isa, exact), func(t *testing.T) {
				m := open(t, Options{CPUs: 2, Exact: exact}, isa)
				l := &lab{m, rewrittenOf(isa), t}
				for _, at := range []uint64{textAt, farAt} {
					if err := m.Map(at, 2*PageSize, writableText); err != nil {
						t.Fatal(err)
					}
				}
				l.put(textAt, l.value)
				l.put(spinAt, l.spin)
				l.put(loaderAt, l.load)
				f(t, l)
			})
		}
	}
}

// TestStoresToCodeAreSeenByAllCPUs has code that all CPUs have executed written in
// every way: from its own page and another one, over the end of a page, by the host.
func TestStoresToCodeAreSeenByAllCPUs(t *testing.T) {
	for name, at := range map[string]uint64{"page of its own": farAt, "page of the code": textAt + 0x300} {
		t.Run(name, func(t *testing.T) {
			eachLab(t, func(t *testing.T, l *lab) {
				l.put(at, l.store)
				l.gives("before", textAt, 1)
				for n := uint32(2); n < 9; n++ {
					cpu := int(n) % 2
					if n%3 == 0 {
						if err := l.Write(textAt+l.offset, l.appendWord(nil, l.word(n))); err != nil {
							t.Fatal(err)
						}
					} else {
						l.call(cpu, at, textAt+l.offset, uint64(l.word(n)))
					}
					l.gives(fmt.Sprintf("written by CPU %d", cpu), textAt, uint64(n))
				}
			})
		})
	}
}

// TestStoresOverTheEndOfAPage has an instruction's bytes in two pages written at once.
func TestStoresOverTheEndOfAPage(t *testing.T) {
	eachLab(t, func(t *testing.T, l *lab) {
		if l.ISA.Align() != 1 {
			skip.Pointless(t, "instructions are words")
		}
		for ahead := uint64(1); ahead < 5; ahead++ {
			at := textAt + PageSize - l.offset - ahead
			l.put(at, l.value)
			l.put(farAt, l.store)
			l.gives("before", at, 1)
			for n := uint32(2); n < 6; n++ {
				l.call(int(n)%2, farAt, at+l.offset, uint64(l.word(n|n<<24)))
				l.gives("written", at, uint64(n|n<<24))
			}
		}
	})
}

// TestStoresToCodeThatRuns has one CPU write what another one executes in a loop.
func TestStoresToCodeThatRuns(t *testing.T) {
	eachLab(t, func(t *testing.T, l *lab) {
		l.put(farAt, l.store)
		for _, way := range []string{"CPU", "host"} {
			if err := l.CPUs[1].Call(machine.Function{Entry: spinAt}); err != nil {
				t.Fatal(err)
			}
			if cpu, ev, err := l.Run(1000); cpu >= 0 || err != nil {
				t.Fatal(cpu, ev.Kind, err)
			}
			var err error
			if way == "CPU" {
				err = l.CPUs[0].Call(machine.Function{Entry: farAt}, spinAt+l.offset, uint64(l.word(2)))
			} else {
				err = l.Write(spinAt+l.offset, l.appendWord(nil, l.word(2)))
			}
			if err != nil {
				t.Fatal(err)
			}
			for l.CPUs[0].Running() || l.CPUs[1].Running() {
				if cpu, ev, err := l.Run(1000); cpu < 0 || ev.Kind != machine.EventReturned || err != nil {
					t.Fatalf("written by the %s: CPU %d: %v, %v", way, cpu, ev.Kind, err)
				}
			}
			l.put(spinAt, l.spin)
		}
	})
}

// TestStoresToTheNextInstruction has code change what it executes next.
func TestStoresToTheNextInstruction(t *testing.T) {
	eachLab(t, func(t *testing.T, l *lab) {
		l.put(farAt, l.both)
		for n := uint32(1); n < 6; n++ {
			if got := l.call(int(n)%2, farAt, farAt+l.bothAt, uint64(l.word(n))); got != uint64(n) {
				t.Errorf("executes %d, want %d", got, n)
			}
		}
	})
}

// TestDataBesideCode stores data into a page of code, where nothing of it is executed.
func TestDataBesideCode(t *testing.T) {
	const data = textAt + 0x800
	eachLab(t, func(t *testing.T, l *lab) {
		l.put(textAt+0x300, l.store)
		for n := uint64(1); n < 20; n++ {
			l.call(int(n)%2, textAt+0x300, data, n)
			if got := l.call(int(n+1)%2, loaderAt, data); got != n {
				t.Errorf("%d was stored, %d is loaded", n, got)
			}
			l.gives("beside data", textAt, 1)
		}
	})
}

// TestStoredCodeIsChecked has a program write an instruction that the engine runs
// wrongly, in the place of one that has been executed.
func TestStoredCodeIsChecked(t *testing.T) {
	eachLab(t, func(t *testing.T, l *lab) {
		at, word := uint64(textAt), l.refused
		switch {
		case l.ISA.Name() == "amd64": // vpxor xmm0, xmm0, xmm0
			word = binary.LittleEndian.Uint32([]byte{0xc5, 0xf9, 0xef, 0xc0})
		case word == 0:
			skip.Pointless(t, "the engine runs no instruction wrongly")
		}
		l.put(farAt, l.store)
		l.gives("before", at, 1)
		for _, cpu := range []int{0, 1} {
			l.call(cpu, farAt, at, uint64(word))
			for _, c := range l.CPUs {
				if err := c.Call(machine.Function{Entry: at}); err != nil {
					t.Fatal(err)
				}
				if ev, err := c.Run(100); err != nil || ev.Kind != machine.EventRefused || ev.Addr != at {
					t.Errorf("CPU %d: %v at %#x, %v", c.Index, ev.Kind, ev.Addr, err)
				}
				c.SetRunning(false)
			}
			l.put(at, l.value)
			l.gives("after", at, 1)
		}
	})
}

// TestPatchesAreNotData patches code: the program reads what was there, and what it
// writes there is executed when the patch is gone.
func TestPatchesAreNotData(t *testing.T) {
	eachLab(t, func(t *testing.T, l *lab) {
		l.put(farAt, l.store)
		first := uint64(binary.LittleEndian.Uint32(l.code(l.value)))
		if l.ISA.Name() == "ppc64" {
			first = uint64(binary.BigEndian.Uint32(l.code(l.value)))
		}
		at := uint64(textAt) + l.offset
		l.gives("before", textAt, 1)
		var told []machine.Range
		l.OnStore(func(r machine.Range) error { told = append(told, r); return nil })
		guarded := machine.Range{Lo: at, Hi: at + 4}
		if err := l.Guard(guarded, true); err != nil {
			t.Fatal(err)
		}
		for n := uint32(1); n < 4; n++ {
			if err := l.Patch(at, l.appendWord(nil, l.word(100+n))); err != nil {
				t.Fatal(err)
			}
			l.gives("patched", textAt, uint64(100+n))
			if got := l.call(0, loaderAt, textAt); n == 1 && got != first {
				t.Errorf("the program reads %#x, want %#x", got, first)
			}
			told = nil
			l.call(int(n)%2, farAt, at, uint64(l.word(10+n)))
			if len(told) != 1 || told[0].Lo < at || told[0].Hi > at+4 {
				t.Errorf("stores that were told: %x", told)
			}
			l.gives("written under the patch", textAt, uint64(100+n))
			if got := l.call(0, loaderAt, at); got != uint64(l.word(10+n)) {
				t.Errorf("the program reads %#x, want %#x", got, l.word(10+n))
			}
			if err := l.Patch(at, l.appendWord(nil, l.word(10+n))); err != nil {
				t.Fatal(err)
			}
			l.gives("patch gone", textAt, uint64(10+n))
			l.call(int(n)%2, farAt, at, uint64(l.word(20+n)))
			l.gives("written after it", textAt, uint64(20+n))
		}
		if err := l.Guard(guarded, false); err != nil {
			t.Fatal(err)
		}
		told = nil
		l.call(0, farAt, at, uint64(l.word(5)))
		l.gives("no longer guarded", textAt, 5)
		if len(told) != 0 {
			t.Errorf("stores that were told: %x", told)
		}
	})
}

// TestProtectedCode has a program's code made by turns writable and executable.
func TestProtectedCode(t *testing.T) {
	eachLab(t, func(t *testing.T, l *lab) {
		l.put(farAt, l.store)
		for n := uint32(2); n < 6; n++ {
			if err := l.Protect(textAt, PageSize, machine.PermRead|machine.PermWrite); err != nil {
				t.Fatal(err)
			}
			l.call(int(n)%2, farAt, textAt+l.offset, uint64(l.word(n)))
			if err := l.Protect(textAt, PageSize, machine.PermRead|machine.PermExec); err != nil {
				t.Fatal(err)
			}
			l.gives("executable again", textAt, uint64(n))
		}
	})
}
