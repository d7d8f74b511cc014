package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"

	"xol/image/isa"
)

// elfStart returns the header of an ELF file whose section headers are at
// shoff.
func elfStart(class elf.Class, order binary.AppendByteOrder, shoff uint64, sections uint16) []byte {
	h := append([]byte(elf.ELFMAG), byte(class), byte(elf.ELFDATA2LSB), 1)
	if order == binary.AppendByteOrder(binary.BigEndian) {
		h[elf.EI_DATA] = byte(elf.ELFDATA2MSB)
	}
	h = append(h, make([]byte, 9)...)
	h = order.AppendUint16(h, uint16(elf.ET_EXEC))
	h = order.AppendUint16(h, uint16(elf.EM_PPC64))
	h = order.AppendUint32(h, 1)
	word, entry := order.AppendUint64, uint16(shdrSize)
	if class == elf.ELFCLASS32 {
		word, entry = func(b []byte, v uint64) []byte { return order.AppendUint32(b, uint32(v)) }, 40
	}
	for _, v := range []uint64{0, 0, shoff} { // entry point, program headers, section headers
		h = word(h, v)
	}
	h = order.AppendUint32(h, 0)
	for _, v := range []uint16{ehdrSize, phdrSize, 0, entry, sections, 0} {
		h = order.AppendUint16(h, v)
	}
	return h
}

func lz4Frame(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	return closed(t, &b, lz4.NewWriter(&b), data)
}

func closed(t *testing.T, b *bytes.Buffer, w interface {
	Write([]byte) (int, error)
	Close() error
}, data []byte) []byte {
	t.Helper()
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestUnpackBounded unpacks what becomes far larger than its headers say. No
// more memory is used than a file needs that they could speak of.
func TestUnpackBounded(t *testing.T) {
	const zeros = 20 << 20
	little, big := binary.AppendByteOrder(binary.LittleEndian), binary.AppendByteOrder(binary.BigEndian)
	start := func(head []byte) []byte { return append(head, make([]byte, zeros)...) }
	rawStart := make([]byte, 64)
	copy(rawStart[56:], "ARMd")
	binary.LittleEndian.PutUint64(rawStart[16:], 1<<20)
	for _, c := range []struct {
		name string
		data []byte
		want error
		text string
	}{
		{"nothing of ours", start(nil), ErrNotELF, "inside the"},
		{"ELF file of 64 bits", start(elfStart(elf.ELFCLASS64, little, 4096, 8)), ErrTooLarge, "its headers tell of"},
		{"ELF file of 64 bits, big-endian", start(elfStart(elf.ELFCLASS64, big, 4096, 8)), ErrTooLarge, "its headers tell of"},
		{"ELF file of 32 bits", start(elfStart(elf.ELFCLASS32, big, 4096, 8)), ErrTooLarge, "its headers tell of"},
		{"ELF file without tables", start(elfStart(elf.ELFCLASS64, little, 0, 0)), ErrTooLarge, "its headers tell of"},
		{"kernel image", start(rawStart), ErrTooLarge, "its headers tell of"},
		{"bzImage", start(bzImage(gzipped(t, []byte("a kernel")))), ErrTooLarge, "its headers tell of"},
		{"zboot", start(zboot(gzipped(t, []byte("a kernel")), "gzip")), ErrTooLarge, "its headers tell of"},
	} {
		for method, packed := range map[string][]byte{
			"gzip": gzipped(t, c.data), "zstd": zstandard(t, c.data), "lz4": lz4Frame(t, c.data), "gzip twice": gzipped(t, gzipped(t, c.data)),
		} {
			t.Run(c.name+", "+method, func(t *testing.T) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, _, _, err := unpack(bytes.NewReader(packed), int64(len(packed)), isa.Known())
				runtime.ReadMemStats(&after)
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("error %v, want %v with %q", err, c.want, c.text)
				}
				if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
					t.Errorf("%d MiB of memory for a file of 5 KiB", used>>20)
				}
			})
		}
	}
}

// TestUnpackTails takes what may stand after what headers speak of.
func TestUnpackTails(t *testing.T) {
	const far = 5 << 20
	order := binary.AppendByteOrder(binary.LittleEndian)
	after := append(elfStart(elf.ELFCLASS64, order, ehdrSize, 2), make([]byte, 2*shdrSize+far)...)
	section := after[ehdrSize+shdrSize:]
	binary.LittleEndian.PutUint32(section[4:], uint32(elf.SHT_PROGBITS))
	binary.LittleEndian.PutUint64(section[24:], uint64(len(after)-100))
	binary.LittleEndian.PutUint64(section[32:], 100)
	segment := append(elfStart(elf.ELFCLASS64, order, 0, 0), make([]byte, phdrSize+far)...)
	binary.LittleEndian.PutUint64(segment[32:], ehdrSize)
	binary.LittleEndian.PutUint16(segment[56:], 1)
	binary.LittleEndian.PutUint64(segment[ehdrSize+8:], 4096)
	binary.LittleEndian.PutUint64(segment[ehdrSize+32:], far)
	for name, data := range map[string][]byte{
		"a signature":                        append(readFixture(t, "tiny.elf"), make([]byte, 4096)...),
		"sections after the section headers": after,
		"segments only":                      segment,
	} {
		packed := gzipped(t, data)
		got, _, err := unpackAll(packed)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(data))
		}
	}
}
