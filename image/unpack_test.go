package image

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"xol/image/isa"
)

//go:generate sh -c "cd testdata/formats && go run generate.go"

func readFixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "formats", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unpackAll unpacks a file that is held in memory.
func unpackAll(file []byte) ([]byte, Format, error) {
	r, size, f, err := unpack(bytes.NewReader(file), int64(len(file)), isa.Known())
	if err != nil {
		return nil, f, err
	}
	b, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	return b, f, err
}

// kernelPackings are how a kernel's payload may be compressed, by fixture.
var kernelPackings = []struct {
	file, method string
	noSize       bool // the format has the size itself
}{
	{"tiny.elf.gz", "gzip", true},
	{"tiny.x86.elf.xz", "xz", false},
	{"tiny.elf.zst", "zstd", false},
	{"tiny.legacy.elf.lz4", "lz4", false},
	{"tiny.elf.bz2", "bzip2", false},
	{"tiny.elf.lzma", "lzma", false},
}

func TestUnpackCompressedFile(t *testing.T) {
	for _, tt := range []struct{ file, method string }{
		{"tiny.elf", ""},
		{"tiny.elf.gz", "gzip"},
		{"tiny.elf.xz", "xz"},
		{"tiny.elf.zst", "zstd"},
		{"tiny.elf.lz4", "lz4"},
		{"tiny.legacy.elf.lz4", "lz4"},
		{"tiny.elf.bz2", "bzip2"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			got, f, err := unpackAll(readFixture(t, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, readFixture(t, "tiny.elf")) {
				t.Error("not the ELF file that was packed")
			}
			if want := (Format{Compression: tt.method}); f != want {
				t.Errorf("format %+v, want %+v", f, want)
			}
		})
	}
}

// A plain ELF file is passed on, not read: debug kernels are large.
func TestUnpackPlainReadsTheStartOnly(t *testing.T) {
	r := &limitedReaderAt{r: bytes.NewReader(readFixture(t, "tiny.elf")), limit: headSize}
	got, size, _, err := unpack(r, 7120, isa.Known())
	if err != nil {
		t.Fatal(err)
	}
	if got != io.ReaderAt(r) || size != 7120 {
		t.Errorf("got another reader, or size %d", size)
	}
}

// limitedReaderAt fails where reading goes beyond a limit.
type limitedReaderAt struct {
	r     io.ReaderAt
	limit int64
}

var errBeyond = errors.New("read beyond the limit")

func (l *limitedReaderAt) ReadAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) > l.limit {
		return 0, errBeyond
	}
	return l.r.ReadAt(b, off)
}

// bzImage builds an x86 boot image: a boot sector, one sector of setup code,
// and 100 bytes of code before and after the payload.
func bzImage(payload []byte) []byte {
	const around, protectedMode = 100, 2 * 512
	b := make([]byte, protectedMode+around)
	b[0x1f1] = 1
	copy(b[0x1fe:], "\x55\xaa")
	copy(b[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(b[0x206:], 0x20f)
	binary.LittleEndian.PutUint32(b[0x248:], around)
	binary.LittleEndian.PutUint32(b[0x24c:], uint32(len(payload)))
	return append(append(b, payload...), make([]byte, around)...)
}

func withSize(packed []byte, size int) []byte {
	return binary.LittleEndian.AppendUint32(bytes.Clone(packed), uint32(size))
}

func TestUnpackBzImage(t *testing.T) {
	plain := readFixture(t, "tiny.elf")
	for _, tt := range kernelPackings {
		t.Run(tt.file, func(t *testing.T) {
			payload := readFixture(t, tt.file)
			if !tt.noSize {
				payload = withSize(payload, len(plain))
			}
			got, f, err := unpackAll(bzImage(payload))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, plain) {
				t.Error("not the ELF file that was packed")
			}
			if want := (Format{Container: "bzImage", Compression: tt.method}); f != want {
				t.Errorf("format %+v, want %+v", f, want)
			}
		})
	}
}

// An absent count of setup sectors means 4.
func TestUnpackBzImageDefaultSetup(t *testing.T) {
	image := bzImage(readFixture(t, "tiny.elf.gz"))
	image = append(image[:1024:1024], append(make([]byte, 3*512), image[1024:]...)...)
	image[0x1f1] = 0
	got, _, err := unpackAll(image)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, readFixture(t, "tiny.elf")) {
		t.Error("not the ELF file that was packed")
	}
}

// arm64Image builds an arm64 kernel's memory image.
func arm64Image(flags uint64) []byte {
	b := make([]byte, 4096)
	copy(b, "MZ\x40\xfa")
	binary.LittleEndian.PutUint64(b[16:], 0x20000) // with what is zero
	binary.LittleEndian.PutUint64(b[24:], flags)
	copy(b[56:], "ARM\x64")
	return b
}

// zboot builds an EFI zboot image.
func zboot(payload []byte, method string) []byte {
	const offset = 512
	b := make([]byte, offset)
	copy(b, "MZ\x00\x00zimg")
	binary.LittleEndian.PutUint32(b[8:], offset)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(payload)))
	copy(b[24:], method)
	return append(append(b, payload...), make([]byte, 100)...)
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zstandard(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(b, nil)
}

func TestUnpackArm64(t *testing.T) {
	little, big := arm64Image(0b1010), arm64Image(0b1011)
	for _, tt := range []struct {
		name string
		file []byte
		want Format
		raw  rawKernel
		data []byte
	}{
		{"Image", little, Format{Container: "arm64 Image"},
			rawKernel{elf.EM_AARCH64, binary.LittleEndian, 0x20000}, little},
		{"big-endian Image", big, Format{Container: "arm64 Image"},
			rawKernel{elf.EM_AARCH64, binary.BigEndian, 0x20000}, big},
		{"Image.gz", gzipped(t, little), Format{Container: "arm64 Image", Compression: "gzip"},
			rawKernel{elf.EM_AARCH64, binary.LittleEndian, 0x20000}, little},
		{"zboot gzip", zboot(gzipped(t, little), "gzip"), Format{Container: "EFI zboot", Compression: "gzip"},
			rawKernel{elf.EM_AARCH64, binary.LittleEndian, 0x20000}, little},
		{"zboot zstd", zboot(zstandard(t, big), "zstd22"), Format{Container: "EFI zboot", Compression: "zstd"},
			rawKernel{elf.EM_AARCH64, binary.BigEndian, 0x20000}, big},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, f, err := unpackAll(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			if f.raw == nil {
				t.Fatal("not seen as a memory image")
			}
			if *f.raw != tt.raw {
				t.Errorf("image %+v, want %+v", *f.raw, tt.raw)
			}
			if f.raw = nil; f != tt.want {
				t.Errorf("format %+v, want %+v", f, tt.want)
			}
			if !bytes.Equal(got, tt.data) {
				t.Error("not the image that was packed")
			}
		})
	}
}

// zImage builds a PowerPC boot wrapper: an ELF file that holds the kernel in
// a section.
func zImage(class elf.Class, order binary.AppendByteOrder, kernel []byte) []byte {
	const names = "\x00.kernel:vmlinux.strip\x00.shstrtab\x00"
	wide := class == elf.ELFCLASS64
	word := func(b []byte, v int) []byte {
		if wide {
			return order.AppendUint64(b, uint64(v))
		}
		return order.AppendUint32(b, uint32(v))
	}
	data, headerSize, sectionSize, machine := byte(elf.ELFDATA2MSB), 52, 40, elf.EM_PPC
	if wide {
		headerSize, sectionSize, machine = 64, 64, elf.EM_PPC64
	}
	if order == binary.AppendByteOrder(binary.LittleEndian) {
		data = byte(elf.ELFDATA2LSB)
	}
	kernelOff := headerSize + len(names)
	b := append([]byte("\x7fELF"), byte(class), data, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = order.AppendUint16(b, uint16(elf.ET_EXEC))
	b = order.AppendUint16(b, uint16(machine))
	b = order.AppendUint32(b, 1)
	for _, v := range []int{0, 0, kernelOff + len(kernel)} {
		b = word(b, v)
	}
	b = order.AppendUint32(b, 0)
	for _, v := range []int{headerSize, 0, 0, sectionSize, 3, 2} {
		b = order.AppendUint16(b, uint16(v))
	}
	b = append(append(b, names...), kernel...)
	section := func(name int, typ elf.SectionType, off, size int) {
		b = order.AppendUint32(b, uint32(name))
		b = order.AppendUint32(b, uint32(typ))
		for _, v := range []int{0, 0, off, size} {
			b = word(b, v)
		}
		b = order.AppendUint32(b, 0)
		b = order.AppendUint32(b, 0)
		b = word(word(b, 1), 0)
	}
	section(0, elf.SHT_NULL, 0, 0)
	section(1, elf.SHT_PROGBITS, kernelOff, len(kernel))
	section(strings.Index(names, ".shstrtab"), elf.SHT_STRTAB, headerSize, len(names))
	return b
}

func TestUnpackZImage(t *testing.T) {
	plain := readFixture(t, "tiny.elf")
	for _, tt := range []struct {
		name, file, method string
		class              elf.Class
		order              binary.AppendByteOrder
	}{
		{"32-bit big-endian", "tiny.elf.gz", "gzip", elf.ELFCLASS32, binary.BigEndian},
		{"64-bit little-endian", "tiny.powerpc.elf.xz", "xz", elf.ELFCLASS64, binary.LittleEndian},
		{"not compressed", "tiny.elf", "", elf.ELFCLASS64, binary.BigEndian},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, f, err := unpackAll(zImage(tt.class, tt.order, readFixture(t, tt.file)))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, plain) {
				t.Error("not the ELF file that was packed")
			}
			if want := (Format{Container: "zImage", Compression: tt.method}); f != want {
				t.Errorf("format %+v, want %+v", f, want)
			}
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	plain := readFixture(t, "tiny.elf")
	zst := withSize(readFixture(t, "tiny.elf.zst"), len(plain))
	edit := func(b []byte, off int, s string) []byte {
		b = bytes.Clone(b)
		copy(b[off:], s)
		return b
	}
	lzop := []byte("\x89LZO\x00\r\n\x1a\n\x10\x40\x20\xa0")
	bomb := gzipped(t, make([]byte, minUnpacked+1))
	for _, tt := range []struct {
		name string
		file []byte
		want error // nil: any *FormatError
		text string
	}{
		{"text", []byte("#!/bin/sh\n"), ErrNotELF, ""},
		{"one byte", []byte{0x7f}, ErrNotELF, ""},
		{"another PE program", edit(make([]byte, 1024), 0, "MZ"), ErrNotELF, ""},
		{"compressed text", gzipped(t, []byte("#!/bin/sh\n")), ErrNotELF, "inside the gzip file"},
		{"bzImage of text", bzImage(gzipped(t, []byte("#!/bin/sh\n"))), ErrNotELF, "bzImage payload"},
		{"lzop", lzop, errNoLZO, "LZO"},
		{"LZO kernel", bzImage(withSize(lzop, len(plain))), errNoLZO, "bzImage payload at 0x464"},
		{"boot header cut off", bzImage(zst)[:0x220], ErrTruncated, "bzImage boot header"},
		{"payload cut off", bzImage(zst)[:2048], ErrTruncated, "bzImage payload at 0x464"},
		{"no payload", bzImage(nil), nil, "no payload"},
		{"payload beyond the end", edit(bzImage(zst), 0x248, "\xff\xff\xff\xff"), ErrTruncated, "bzImage payload"},
		{"old boot protocol", edit(bzImage(zst), 0x206, "\x06\x02"), nil, "boot protocol 2.06"},
		{"unknown compression", bzImage([]byte("PK\x03\x04 and more")), nil, "unknown compression (begins with 50 4b 03 04"},
		{"wrong size", bzImage(withSize(readFixture(t, "tiny.elf.zst"), len(plain)-1)), errWrongSize, "zstd"},
		{"size beyond reason", bzImage(withSize(readFixture(t, "tiny.elf.zst"), 1<<31)), ErrTooLarge, "64 MiB"},
		{"bomb", bomb, ErrNotELF, "inside the gzip file"},
		{"damaged data", edit(readFixture(t, "tiny.elf.xz"), 200, "\x00\x00\x00\x00"), nil, "damaged xz data"},
		{"zboot header cut off", zboot(nil, "")[:32], ErrTruncated, "EFI zboot header"},
		{"zboot payload cut off", zboot(zst, "zstd")[:600], ErrTruncated, "EFI zboot payload at 0x200"},
		{"too many layers", gzipped(t, gzipped(t, gzipped(t, gzipped(t, plain)))), nil, "more than 3 times"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := unpackAll(tt.file)
			if err == nil {
				t.Fatal("unpacked")
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("error %q is not %q", err, tt.want)
			}
			if fe := new(FormatError); tt.want == nil && !errors.As(err, &fe) {
				t.Errorf("error %q is a %T", err, err)
			}
			if !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q: want one line with %q", err, tt.text)
			}
		})
	}
}

// A file that is cut off anywhere is an error, or is whole because only what
// repeats something is missing.
func TestUnpackCutOff(t *testing.T) {
	plain := readFixture(t, "tiny.elf")
	files := map[string][]byte{
		"zImage": zImage(elf.ELFCLASS32, binary.BigEndian, readFixture(t, "tiny.elf.gz")),
		"zboot":  zboot(gzipped(t, plain), "gzip"),
	}
	for _, p := range kernelPackings {
		if p.method != "lzma" {
			files[p.file] = readFixture(t, p.file)
		}
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			for n := 4; n < len(file); n += 13 {
				got, _, err := unpackAll(file[:n])
				switch {
				case err == nil && bytes.Equal(got, plain):
				case err == nil && bytes.Equal(got, file[:n]): // an ELF file
				case err == nil && name == "tiny.legacy.elf.lz4": // has no mark at its end
				case err == nil:
					t.Fatalf("%d of %d bytes: no error, but not the ELF file", n, len(file))
				}
			}
		})
	}
}

func TestUnpackReadError(t *testing.T) {
	file := readFixture(t, "tiny.elf.gz")
	for _, limit := range []int64{0, 1000} {
		_, _, _, err := unpack(&limitedReaderAt{bytes.NewReader(file), limit}, int64(len(file)), isa.Known())
		if !errors.Is(err, errBeyond) {
			t.Errorf("limit %d: error %v", limit, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	plain := readFixture(f, "tiny.elf")
	for _, p := range kernelPackings {
		b := readFixture(f, p.file)
		f.Add(b)
		f.Add(bzImage(withSize(b, len(plain))))
	}
	f.Add(plain)
	f.Add(arm64Image(0b1010))
	f.Add(zboot(zstandard(f, arm64Image(0)), "zstd"))
	f.Add(zImage(elf.ELFCLASS32, binary.BigEndian, gzipped(f, plain)))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, format, err := unpackAll(file)
		if err != nil {
			return
		}
		if !isELF(got) && format.raw == nil {
			t.Fatalf("neither an ELF file nor a kernel image: %+v", format)
		}
		if format.Compression == "" && format.Container != "zImage" && !bytes.Equal(got, file) {
			t.Fatal("a file that is not packed was changed")
		}
	})
}
