package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"xol/image/isa"
)

// headSize is how many bytes from a file's start tell how it is packed: all up
// to the end of the last field that we read of an x86 boot header.
const headSize = 0x250

// maxLayers is how often a file may be packed: a compressed kernel image whose
// payload is compressed is 2.
const maxLayers = 3

// packing is where in a file the packed ELF file is.
type packing struct {
	container string // as in Format; "" for a file that is only compressed
	off, size int64  // the payload
	sizeWord  bool   // its last word is its size after decompression
	plain     bool   // it may be uncompressed
}

func (p *packing) where() string {
	if p.container == "" {
		return "compressed file"
	}
	return fmt.Sprintf("%s payload at %#x", p.container, p.off)
}

// unpack returns the ELF file, or the bare memory image of a kernel, that r is
// or holds, its size, and how it was packed. A plain ELF file is r itself, of
// which no more than the start is read. What was compressed is held in memory,
// up to maxUnpacked bytes.
//
// It returns ErrNotELF, or a *FormatError, which may be an ErrTruncated or an
// ErrTooLarge.
func unpack(r io.ReaderAt, size int64, isas isa.Set) (io.ReaderAt, int64, Format, error) {
	var f Format
	for layer := 0; ; layer++ {
		head, err := readHead(r, size)
		if err != nil {
			return nil, 0, f, err
		}
		p, err := findPacking(r, size, head, isas)
		if err != nil {
			return nil, 0, f, err
		}
		if p == nil {
			var name string
			if f.raw, name = findRawKernel(head, size, isas); f.raw != nil && f.Container == "" {
				f.Container = name
			}
			if f.raw == nil && !isELF(head) {
				return nil, 0, f, notELF(f)
			}
			return r, size, f, nil
		}
		if layer == maxLayers {
			return nil, 0, f, &FormatError{What: fmt.Sprintf("packed more than %d times", maxLayers), Where: p.where()}
		}
		var method string
		if r, size, method, err = p.open(r, isas); err != nil {
			return nil, 0, f, err
		}
		if f.Container == "" {
			f.Container = p.container
		}
		if f.Compression == "" {
			f.Compression = method
		}
	}
}

func readHead(r io.ReaderAt, size int64) ([]byte, error) {
	head := make([]byte, min(headSize, size))
	if n, err := r.ReadAt(head, 0); n < len(head) {
		return nil, readError(err, "start of the file")
	}
	return head, nil
}

func isELF(head []byte) bool { return bytes.HasPrefix(head, []byte(elf.ELFMAG)) }

func notELF(f Format) error {
	switch {
	case f.Container != "":
		return &FormatError{Where: f.Container + " payload", Err: ErrNotELF}
	case f.Compression != "":
		return &FormatError{Where: "inside the " + f.Compression + " file", Err: ErrNotELF}
	}
	return ErrNotELF
}

// findPacking tells by a file's first bytes how it is packed. It returns nil
// where it is not.
func findPacking(r io.ReaderAt, size int64, head []byte, isas isa.Set) (*packing, error) {
	switch {
	case isELF(head):
		return findWrapped(r, head, isas), nil
	case hasAt(head, 0x202, "HdrS") && hasAt(head, 0x1fe, "\x55\xaa"):
		return findBzImage(size, head)
	case hasAt(head, 0, "MZ") && hasAt(head, 4, "zimg"):
		return findZboot(size, head)
	}
	if m := methodOf(head); m != nil && !m.weak {
		return &packing{size: size}, nil
	}
	return nil, nil
}

func hasAt(b []byte, off int, s string) bool {
	return len(b) >= off+len(s) && string(b[off:off+len(s)]) == s
}

// sizeWordLen is the length of the size after compressed data.
const sizeWordLen = 4

// open unpacks the payload.
func (p *packing) open(r io.ReaderAt, isas isa.Set) (io.ReaderAt, int64, string, error) {
	payload := io.NewSectionReader(r, p.off, p.size)
	magic := make([]byte, min(maxMagic, p.size))
	if n, err := payload.ReadAt(magic, 0); n < len(magic) {
		return nil, 0, "", readError(err, p.where())
	}
	m := methodOf(magic)
	switch {
	case m == nil && p.plain:
		return payload, p.size, "", nil
	case m == nil:
		return nil, 0, "", &FormatError{What: fmt.Sprintf("unknown compression (begins with % x)", magic), Where: p.where()}
	}
	size, unpacked := p.size, int64(0)
	if p.sizeWord {
		var word [sizeWordLen]byte
		if n, err := payload.ReadAt(word[:], p.size-sizeWordLen); n < len(word) {
			return nil, 0, "", readError(err, p.where())
		}
		unpacked = int64(binary.LittleEndian.Uint32(word[:]))
		if !m.endsWithSize {
			size -= sizeWordLen
		}
	}
	data, err := m.decompress(io.NewSectionReader(payload, 0, size), size, unpacked, isas)
	if err != nil {
		return nil, 0, "", unpackError(m, p, err)
	}
	return bytes.NewReader(data), int64(len(data)), m.name, nil
}

// findBzImage reads an x86 boot header [Documentation/arch/x86/boot.rst,
// arch/x86/boot/compressed/Makefile].
func findBzImage(size int64, head []byte) (*packing, error) {
	const (
		setupSects    = 0x1f1
		version       = 0x206
		payloadOffset = 0x248
		payloadLength = 0x24c
		sector        = 512
	)
	if len(head) < headSize {
		return nil, truncated("bzImage boot header")
	}
	if v := binary.LittleEndian.Uint16(head[version:]); v < 0x208 {
		return nil, &FormatError{
			What:  fmt.Sprintf("boot protocol %d.%02d does not say where the kernel is; 2.08 and later do", v>>8, v&0xff),
			Where: "bzImage boot header",
		}
	}
	setup := int64(head[setupSects])
	if setup == 0 {
		setup = 4
	}
	p := &packing{
		container: "bzImage",
		off:       (setup+1)*sector + int64(binary.LittleEndian.Uint32(head[payloadOffset:])),
		size:      int64(binary.LittleEndian.Uint32(head[payloadLength:])),
		sizeWord:  true,
	}
	if p.size <= sizeWordLen {
		return nil, &FormatError{What: "no payload", Where: "bzImage boot header"}
	}
	if p.off+p.size > size {
		return nil, truncated(p.where())
	}
	return p, nil
}

// findZboot reads the header of an EFI zboot image
// [drivers/firmware/efi/libstub/zboot-header.S].
func findZboot(size int64, head []byte) (*packing, error) {
	const payloadOffset, payloadSize, headerSize = 8, 12, 64
	if len(head) < headerSize {
		return nil, truncated("EFI zboot header")
	}
	p := &packing{
		container: "EFI zboot",
		off:       int64(binary.LittleEndian.Uint32(head[payloadOffset:])),
		size:      int64(binary.LittleEndian.Uint32(head[payloadSize:])),
	}
	if p.off+p.size > size {
		return nil, truncated(p.where())
	}
	return p, nil
}

// findWrapped looks for the kernel inside a boot wrapper. Any other ELF file,
// and one that is damaged, is no wrapper.
func findWrapped(r io.ReaderAt, head []byte, isas isa.Set) *packing {
	const machine = 18
	if len(head) < machine+2 {
		return nil
	}
	order := byteOrder(elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB)
	w := wrapperFor(elf.Machine(order.u16(head[machine:])), isas)
	if w == nil {
		return nil
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return nil
	}
	s := f.Section(w.Section)
	if s == nil || s.Type == elf.SHT_NOBITS || s.FileSize == 0 || int64(s.Offset|s.FileSize) < 0 {
		return nil
	}
	return &packing{container: w.Name, off: int64(s.Offset), size: int64(s.FileSize), plain: true}
}

func wrapperFor(m elf.Machine, isas isa.Set) *isa.Wrapper {
	for _, r := range isas {
		if w := r.Kernel.Wrapper; w != nil && slices.Contains(w.Machines, m) {
			return w
		}
	}
	return nil
}

// findRawKernel reads the header of a kernel's memory image, whose format it
// names. It returns nil where head is something else.
func findRawKernel(head []byte, size int64, isas isa.Set) (k *rawKernel, format string) {
	const (
		imageSize  = 16
		flags      = 24
		headerSize = 64
		bigEndian  = 1 << 0 // of flags
	)
	i := slices.IndexFunc(isas, func(r *isa.Record) bool {
		return r.Kernel.Image != nil && hasAt(head, r.Kernel.Image.MagicAt, r.Kernel.Image.Magic)
	})
	if len(head) < headerSize || i < 0 {
		return nil, ""
	}
	k = &rawKernel{
		machine: isas[i].Machine,
		order:   binary.LittleEndian,
		size:    binary.LittleEndian.Uint64(head[imageSize:]),
	}
	if binary.LittleEndian.Uint64(head[flags:])&bigEndian != 0 {
		k.order = binary.BigEndian
	}
	if k.size == 0 { // before Linux 3.17
		k.size = uint64(size)
	}
	return k, isas[i].Kernel.Image.Name
}
