package image

import (
	"bytes"
	"debug/elf"
	"path/filepath"
	"testing"

	"xol/place"
)

// targets are the machines that the fixtures are built for.
var targets = []string{"amd64", "arm64", "ppc64", "ppc64le"}

// fixture opens a file of testdata/elf.
func fixture(t testing.TB, name string) *Image {
	t.Helper()
	im, err := OpenFile(filepath.Join("testdata", "elf", name), Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

// TestRelocations compares relocated sections with what the linker makes of
// the same file.
func TestRelocations(t *testing.T) {
	for _, target := range targets {
		t.Run(target, func(t *testing.T) {
			im := fixture(t, "relocs."+target+".o")
			linked, err := elf.Open(filepath.Join("testdata", "elf", "relocs."+target+".linked"))
			if err != nil {
				t.Fatal(err)
			}
			defer linked.Close()
			compared := 0
			for _, s := range linked.Sections {
				if s.Flags&elf.SHF_ALLOC == 0 {
					continue
				}
				want, err := s.Data()
				if err != nil {
					t.Fatal(err)
				}
				got, err := im.Data(nil, s.Addr, s.Size)
				if err != nil {
					t.Errorf("%s: %v; if the layout has changed, so must relocs.lds", s.Name, err)
					continue
				}
				for i := range want {
					if got[i] != want[i] {
						t.Errorf("%s+%#x: got %x, want %x", s.Name, i&^3, clip(got, i&^3), clip(want, i&^3))
					}
				}
				compared++
			}
			if compared < 3 {
				t.Errorf("only %d sections compared", compared)
			}
		})
	}
}

func clip(b []byte, i int) []byte { return b[i:min(i+8, len(b))] }

// TestRelocatedCall looks at the first instruction of a relocatable file, a
// call of something that the file does not define.
func TestRelocatedCall(t *testing.T) {
	for _, tc := range []struct {
		target   string
		field    place.Mark
		unlinked []byte // the instruction in the file
	}{
		{"amd64", place.Mark{Addr: 0x100001, Len: 4, Kind: place.ExternalReloc}, []byte{0xe8, 0, 0, 0, 0}},
		{"arm64", place.Mark{Addr: 0x100000, Len: 4, Kind: place.ExternalReloc}, []byte{0, 0, 0, 0x94}},
		{"ppc64", place.Mark{Addr: 0x100000, Len: 4, Kind: place.ExternalReloc}, []byte{0x48, 0, 0, 1}},
		{"ppc64le", place.Mark{Addr: 0x100000, Len: 4, Kind: place.ExternalReloc}, []byte{1, 0, 0, 0x48}},
	} {
		t.Run(tc.target, func(t *testing.T) {
			im := fixture(t, "relocs."+tc.target+".o")
			code, err := im.Code(nil, 0x100000, uint64(len(tc.unlinked)))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(code, tc.unlinked) {
				t.Errorf("not relocated: %x", code)
			}
			marks, err := im.Marks()
			if err != nil {
				t.Fatal(err)
			}
			if len(marks) == 0 || marks[0] != tc.field {
				t.Errorf("first mark: got %+v, want %+v", marks[:min(1, len(marks))], tc.field)
			}
			if name, base := im.Symbolize(0x101002); name != "external_code" || base != 0x101000 {
				t.Errorf("stand-in: got %s at %#x, want external_code at 0x101000", name, base)
			}
		})
	}
}
