package image

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"xol/image/isa"
)

// TestLinkageStubs compares with the labels of objdump -d.
func TestLinkageStubs(t *testing.T) {
	for _, tc := range []struct{ file, want string }{
		{"plt.amd64.so", `
.plt 0x0 16 0 section .plt
.plt 0x10 16 0 plt second@plt
.plt 0x20 16 0 plt first@plt`},
		{"plt.ibt.amd64.so", `
.plt 0x0 48 0 section .plt
.plt.sec 0x0 16 0 plt second@plt
.plt.sec 0x10 16 0 plt first@plt`},
		{"plt.arm64.so", `
.plt 0x0 32 0 section .plt
.plt 0x20 16 0 plt second@plt
.plt 0x30 16 0 plt first@plt`},
	} {
		t.Run(tc.file, func(t *testing.T) {
			im := fixture(t, tc.file)
			fns, err := im.Functions(ExtentSymbol)
			if err != nil {
				t.Fatal(err)
			}
			fns = slices.DeleteFunc(slices.Clone(fns), func(f Function) bool { return !strings.HasPrefix(f.Section, ".plt") })
			got := list(im, fns)
			for i := range got { // where the linker writes unwinding information, that speaks first
				got[i] = strings.Replace(got[i], "eh_frame", "section", 1)
			}
			if want := strings.Split(tc.want, "\n")[1:]; !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestStubsBTI finds the stubs of an executable with branch target
// identification, as GNU ld writes them.
func TestStubsBTI(t *testing.T) {
	var code []byte
	for _, word := range []uint32{
		0xd503245f, 0x90000110, 0xf9400a11, 0x91004210, 0xd61f0220, 0xd503201f, // bti c; adrp x16, 420000; ldr x17, [x16, #16]
		0xd503245f, 0x90000110, 0xf9400e11, 0x91006210, 0xd61f0220, 0xd503201f,
	} {
		code = binary.LittleEndian.AppendUint32(code, word)
	}
	got := make(map[uint64]uint64)
	isa.Known().Find(elf.EM_AARCH64).Stubs(code, 0x4005d0, 0, func(addr, slot uint64) { got[addr] = slot })
	if len(got) != 2 || got[0x4005d0] != 0x420010 || got[0x4005e8] != 0x420018 {
		t.Errorf("got %#x", got)
	}
}
