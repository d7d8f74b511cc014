package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// frameFixtures are ELF files made by GNU as and ld.
var frameFixtures = []string{"x86_64", "aarch64", "powerpc64", "powerpc64le"}

// ehFrameOf returns the .eh_frame of a fixture.
func ehFrameOf(t testing.TB, file []byte) ([]byte, uint64, binary.ByteOrder) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	s := f.Section(".eh_frame")
	if s == nil {
		t.Fatal("no .eh_frame")
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	return data, s.Addr, f.ByteOrder
}

// What readelf says of the same files is beside them.
func TestEHFrameFunctionsLikeReadelf(t *testing.T) {
	for _, arch := range frameFixtures {
		t.Run(arch, func(t *testing.T) {
			data, addr, order := ehFrameOf(t, readFixture(t, "frames."+arch+".elf"))
			found, err := ehFrameFunctions(data, addr, order)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for _, e := range found {
				fmt.Fprintf(&got, "%016x %016x\n", e.lo, e.hi)
			}
			if want := readFixture(t, "frames."+arch+".txt"); !bytes.Equal(got.Bytes(), want) {
				t.Errorf("got\n%swant\n%s", got.Bytes(), want)
			}
		})
	}
}

// frameBuilder writes an .eh_frame that stands at frameAddr.
type frameBuilder struct {
	order byteOrder
	data  []byte
	cie   int // offset of the last CIE
}

const frameAddr = 0x1000

func (b *frameBuilder) u16(v uint16) []byte { return b.appender().AppendUint16(nil, v) }
func (b *frameBuilder) u32(v uint32) []byte { return b.appender().AppendUint32(nil, v) }
func (b *frameBuilder) u64(v uint64) []byte { return b.appender().AppendUint64(nil, v) }

func (b *frameBuilder) appender() binary.AppendByteOrder {
	if b.order == bigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (b *frameBuilder) entry(wide bool, parts ...[]byte) {
	content := slices.Concat(parts...)
	if wide {
		b.data = append(b.data, 0xff, 0xff, 0xff, 0xff)
		b.data = append(b.data, b.u64(uint64(len(content)))...)
	} else {
		b.data = append(b.data, b.u32(uint32(len(content)))...)
	}
	b.data = append(b.data, content...)
}

// addCIE appends a CIE with the given augmentation and its data.
func (b *frameBuilder) addCIE(version byte, augmentation string, data ...byte) {
	b.cie = len(b.data)
	parts := [][]byte{b.u32(0), {version}, append([]byte(augmentation), 0)}
	if version == 4 {
		parts = append(parts, []byte{8, 0})
	}
	parts = append(parts, []byte{1, 0x78, 16})
	if augmentation != "" {
		parts = append(parts, []byte{byte(len(data))})
	}
	b.entry(false, append(parts, data)...)
}

// addFDE appends an FDE. place returns the address of its first pointer.
func (b *frameBuilder) addFDE(wide bool, pointers func(place uint64) []byte) {
	header := 4
	if wide {
		header = 12
	}
	id := len(b.data) + header
	b.entry(wide, b.u32(uint32(id-b.cie)), pointers(frameAddr+uint64(id)+4), []byte{0, 0, 0, 0})
}

func TestEHFrameFunctionsEncodings(t *testing.T) {
	const lo, size = 0x12340, 0x81
	want := []extent{{lo, lo + size}}
	for _, order := range []byteOrder{littleEndian, bigEndian} {
		b := &frameBuilder{order: order}
		words := func(lo, size uint64) []byte { return append(b.u64(lo), b.u64(size)...) }
		halves := func(lo, size uint64) []byte { return append(b.u32(uint32(lo)), b.u32(uint32(size))...) }
		leb := func(lo, size uint64) []byte {
			return binary.AppendUvarint(binary.AppendUvarint(nil, lo), size)
		}
		for _, tt := range []struct {
			name         string
			version      byte
			augmentation string
			data         []byte
			wide         bool
			pointers     func(place uint64) []byte
			want         []extent
		}{
			{"no augmentation", 1, "", nil, false, func(uint64) []byte { return words(lo, size) }, want},
			{"z alone", 1, "z", nil, false, func(uint64) []byte { return words(lo, size) }, want},
			{"absolute", 1, "zR", []byte{0x00}, false, func(uint64) []byte { return words(lo, size) }, want},
			{"version 3", 3, "zR", []byte{0x00}, false, func(uint64) []byte { return words(lo, size) }, want},
			{"version 4", 4, "zR", []byte{0x00}, false, func(uint64) []byte { return words(lo, size) }, want},
			{"64-bit length", 1, "zR", []byte{0x00}, true, func(uint64) []byte { return words(lo, size) }, want},
			{"udata4", 1, "zR", []byte{0x03}, false, func(uint64) []byte { return halves(lo, size) }, want},
			{"sdata4 relative", 1, "zR", []byte{0x1b}, false, func(p uint64) []byte { return halves(lo-p, size) }, want},
			{"sdata8 relative", 1, "zR", []byte{0x1c}, false, func(p uint64) []byte { return words(lo-p, size) }, want},
			{"absolute format, relative", 1, "zR", []byte{0x10}, true, func(p uint64) []byte { return words(lo-p, size) }, want},
			{"uleb", 1, "zR", []byte{0x01}, false, func(uint64) []byte { return leb(lo, size) }, want},
			{"sleb", 1, "zR", []byte{0x09}, false, func(uint64) []byte {
				return []byte{0xc0, 0xc6, 0x04, 0x81, 0x01} // 0x12340, 0x81
			}, want},
			{"sleb relative, backwards", 1, "zR", []byte{0x19}, false, func(uint64) []byte {
				return []byte{0x70, 0x10} // -16, 16
			}, []extent{{0x1000 + 25 - 16, 0x1000 + 25}}},
			{"sdata2 relative", 1, "zR", []byte{0x1a}, false, func(p uint64) []byte {
				return append(b.u16(uint16(0x800-p)), b.u16(0x10)...)
			}, []extent{{0x800, 0x810}}},
			{"udata2", 1, "zR", []byte{0x02}, false, func(uint64) []byte {
				return append(b.u16(0x9000), b.u16(0xf000)...)
			}, []extent{{0x9000, 0x18000}}},
			{"aligned", 1, "zR", []byte{0x50}, false, func(p uint64) []byte {
				return append(make([]byte, -p&7), words(lo, size)...)
			}, want},
			{"handler before", 1, "zPLR", []byte{0x9b, 1, 2, 3, 4, 0x1b, 0x03}, false, func(uint64) []byte { return halves(lo, size) }, want},
			{"handler of 8 bytes", 1, "zPR", []byte{0x00, 1, 2, 3, 4, 5, 6, 7, 8, 0x03}, false, func(uint64) []byte { return halves(lo, size) }, want},
			{"aligned handler", 1, "zPR", append([]byte{0x50}, append(make([]byte, 6+8), 0x03)...), false, func(uint64) []byte { return halves(lo, size) }, want},
			{"no handler", 1, "zPR", []byte{0xff, 0x03}, false, func(uint64) []byte { return halves(lo, size) }, want},
			{"number without end", 1, "zR", []byte{0x01}, false, func(uint64) []byte { return bytes.Repeat([]byte{0x80}, 20) }, nil},
			{"handler beyond the entry", 1, "zPR", []byte{0x00, 1}, false, func(uint64) []byte { return halves(lo, size) }, nil},
			{"signal frame", 1, "zRS", []byte{0x03}, false, func(uint64) []byte { return halves(lo, size) }, want},
			{"signed addresses", 1, "zRB", []byte{0x03}, false, func(uint64) []byte { return halves(lo, size) }, want},
			{"indirect", 1, "zR", []byte{0x9b}, false, func(uint64) []byte { return halves(lo, size) }, nil},
			{"relative to data", 1, "zR", []byte{0x3b}, false, func(uint64) []byte { return halves(lo, size) }, nil},
			{"omitted", 1, "zR", []byte{0xff}, false, func(uint64) []byte { return nil }, nil},
			{"unknown format", 1, "zR", []byte{0x0d}, false, func(uint64) []byte { return words(lo, size) }, nil},
			{"unknown augmentation", 1, "zXR", []byte{0x03}, false, func(uint64) []byte { return halves(lo, size) }, nil},
			{"augmentation of another kind", 1, "eh", nil, false, func(uint64) []byte { return halves(lo, size) }, nil},
			{"augmentation too long", 1, "zRRRRRRRRRRRRRRRRRRRRR", []byte{0x03}, false, func(uint64) []byte { return halves(lo, size) }, nil},
			{"empty range", 1, "zR", []byte{0x03}, false, func(uint64) []byte { return halves(lo, 0) }, nil},
			{"range around the end", 1, "zR", []byte{0x00}, false, func(uint64) []byte { return words(lo, 1<<64-16) }, nil},
			{"entry too short", 1, "zR", []byte{0x00}, false, func(uint64) []byte { return b.u64(lo) }, nil},
		} {
			t.Run(fmt.Sprintf("%s/big-endian=%v", tt.name, order), func(t *testing.T) {
				b.data = nil
				b.addCIE(tt.version, tt.augmentation, tt.data...)
				b.addFDE(tt.wide, tt.pointers)
				got, err := ehFrameFunctions(b.data, frameAddr, b.appender().(binary.ByteOrder))
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("got %#x, want %#x", got, tt.want)
				}
			})
		}
	}
}

// An entry that makes no sense does not keep those after it from being read.
func TestEHFrameFunctionsGoesOn(t *testing.T) {
	b := &frameBuilder{}
	at := func(lo uint32) func(uint64) []byte {
		return func(uint64) []byte { return append(b.u32(lo), b.u32(4)...) }
	}
	b.addCIE(1, "zR", 0x03)
	b.addFDE(false, at(0x100))
	b.entry(false)                       // a terminator, as of each file that was linked
	b.entry(false, []byte{1})            // too short for anything
	b.entry(false, b.u32(1), at(5)(0))   // its CIE is itself
	b.entry(false, b.u32(1e6), at(5)(0)) // its CIE is before the section
	b.addFDE(false, at(0x200))
	whole := len(b.data)
	b.addFDE(false, at(0x300))

	want := []extent{{0x100, 0x104}, {0x200, 0x204}, {0x300, 0x304}}
	got, err := ehFrameFunctions(b.data, frameAddr, binary.LittleEndian)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %#x, %v, want %#x", got, err, want)
	}
	got, err = ehFrameFunctions(b.data[:len(b.data)-1], frameAddr, binary.LittleEndian)
	if !errors.Is(err, ErrTruncated) || !slices.Equal(got, want[:2]) {
		t.Errorf("cut off: got %#x, %v, want %#x", got, err, want[:2])
	}
	if where := fmt.Sprintf("(.eh_frame+%#x)", whole); err == nil || !bytes.Contains([]byte(err.Error()), []byte(where)) {
		t.Errorf("cut off: error %v does not say %s", err, where)
	}
}

func FuzzEHFrameFunctions(f *testing.F) {
	for _, arch := range frameFixtures {
		data, addr, order := ehFrameOf(f, readFixture(f, "frames."+arch+".elf"))
		f.Add(data, addr, order == binary.ByteOrder(binary.BigEndian))
	}
	f.Fuzz(func(t *testing.T, data []byte, addr uint64, big bool) {
		order := binary.ByteOrder(binary.LittleEndian)
		if big {
			order = binary.BigEndian
		}
		found, _ := ehFrameFunctions(data, addr, order)
		for _, e := range found {
			if e.lo >= e.hi {
				t.Errorf("range %#x", e)
			}
		}
	})
}
