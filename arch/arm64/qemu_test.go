package arm64

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"xol/internal/archtest"

	"xol/internal/skip"
	"xol/relocate"
)

// The guest is a static program whose one segment is guarded against indirect
// branches: it sets registers, goes to the moved code, and leaves with the
// status that the target of the branch has set, if it comes back to the
// instruction after the original.
const (
	guestBase     = 0x40_0000
	guestEntry    = guestBase + 0x1000
	guestOriginal = guestBase + 0x1100
	guestTarget   = guestBase + 0x1200
	guestMoved    = guestBase + 0x2000
	guestSize     = 0x3000

	statusReached = 7
	guestPad      = 0xd503245f // bti c
	guestNoPad    = 0xd503201f // nop
	guestReturn   = 0xd65f03c0 // ret
)

// guestProgram is the program with moved code at guestMoved.
func guestProgram(moved []byte, pad uint32, back uint32) []byte {
	file := make([]byte, guestSize)
	place := func(addr uint64, words ...uint32) {
		for i, w := range words {
			binary.LittleEndian.PutUint32(file[addr-guestBase+uint64(4*i):], w)
		}
	}
	jump := func(from, to uint64) uint32 { return insnB | uint32((to-from)>>2)&0x3ffffff }
	entry := []uint32{
		0xd2824003, 0xf2a00803, // x3 = guestTarget
		0xaa0303f0, 0xaa0303fe, // x16 = x30 = x3
		0xd2800084,             // x4 = 4
		0xd2800014,             // x20 = 0
		0xaa0303e5, 0xdac10085, // x5 = x3, signed with x4
	}
	place(guestEntry, entry...)
	at := guestEntry + uint64(4*len(entry))
	place(at, jump(at, guestMoved))
	place(guestOriginal+4, 0xaa1403e0, 0xd2800ba8, 0xd4000001) // exit(x20)
	place(guestTarget, pad, 0xd2800014|statusReached<<5, back)
	copy(file[guestMoved-guestBase:], moved)
	copy(file, guestHeader())
	return file
}

// guestHeader is the ELF header, the program headers of the segment and of the
// note, and the note, which asks for guarded pages [AAELF64, 7.2].
func guestHeader() []byte {
	type programHeader struct {
		Type, Flags                            uint32
		Offset, Vaddr, Paddr, Filesz, Memsz, A uint64
	}
	const (
		headers   = 64 + 2*56
		noteSize  = 32
		load      = 1
		property  = 0x6474e553
		readAndEx = 5
	)
	var b bytes.Buffer
	for _, part := range []any{
		[]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
		uint16(2), uint16(183), uint32(1), uint64(guestEntry), uint64(64), uint64(0),
		uint32(0), uint16(64), uint16(56), uint16(2), uint16(64), uint16(0), uint16(0),
		programHeader{load, readAndEx, 0, guestBase, guestBase, guestSize, guestSize, 0x1000},
		programHeader{property, 4, headers, guestBase + headers, guestBase + headers, noteSize, noteSize, 8},
		uint32(4), uint32(16), uint32(5), []byte("GNU\x00"),
		uint32(0xc0000000), uint32(4), uint32(1), uint32(0),
	} {
		// Writes of fixed-size values to a buffer do not fail.
		_ = binary.Write(&b, binary.LittleEndian, part)
	}
	return b.Bytes()
}

// runGuest returns the exit status, -1 where a signal ended the program.
func runGuest(t *testing.T, emulator string, program []byte) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	err := exec.Command(emulator, "-cpu", "max", path).Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}

// TestLandingInGuardedPages runs moved branches where an indirect branch must
// land on a pad, and the same by br, which must fail where it would.
func TestLandingInGuardedPages(t *testing.T) {
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		skip.Missing(t, "qemu-user", "qemu-aarch64")
	}
	const backToNext = insnB | (guestOriginal+4-(guestTarget+8))>>2&0x3ffffff
	for _, c := range []struct {
		name  string
		word  uint32
		opt   relocate.Options
		pad   uint32
		back  uint32
		plain []uint32 // the same by br; nil where that is what is done
	}{
		{"blr x3 to a pad of calls", 0xd63f0060, optionsOf(), guestPad, guestReturn,
			[]uint32{0xd282209e, 0xf2a0081e, 0xd61f0060}},
		{"blr x16 to a pad of calls", 0xd63f0200, optionsOf(), guestPad, guestReturn, nil},
		{"blr x30 to a pad of calls", 0xd63f03c0, optionsOf(dead(9)), guestPad, guestReturn,
			[]uint32{0xaa1e03e9, 0xd282209e, 0xf2a0081e, 0xd61f0120}},
		{"blraa x5, x4 to a pad of calls", 0xd73f08a4, optionsOf(dead(9)), guestPad, guestReturn,
			[]uint32{0xd282209e, 0xf2a0081e, 0xd71f08a4}},
		{"bl to a function without a pad, far", insnBL | (guestTarget-guestOriginal)>>2, optionsOf(far, dead(16)), guestNoPad, guestReturn,
			[]uint32{0xd282209e, 0xf2a0081e, 0xd61f0200}},
		{"b to no pad, far", insnB | (guestTarget-guestOriginal)>>2, optionsOf(far, dead(9)), guestNoPad, backToNext,
			[]uint32{0xaa0303e9, 0xd61f0120}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, code, err := archtest.Move(t, ISA{}, sweepWords(t, guestOriginal, c.word), c.opt, guestMoved)
			if err != nil {
				t.Fatal(err)
			}
			if status := runGuest(t, emulator, guestProgram(code, c.pad, c.back)); status != statusReached {
				t.Errorf("moved as %s: status %d", textOf(t, code, guestMoved), status)
			}
			if c.plain == nil {
				return
			}
			var plain []byte
			for _, w := range c.plain {
				plain = put(plain, w)
			}
			if status := runGuest(t, emulator, guestProgram(plain, c.pad, c.back)); status != -1 {
				t.Errorf("by br: status %d, so that the pages are not guarded", status)
			}
		})
	}
}
