// Package image reads ELF files: text, symbols, function extents, kernel
// tables and source lines, also of compressed kernels and modules. Files are
// read lazily.
package image

import (
	"debug/elf"
	"encoding/binary"
)

// Symbol is one named address.
type Symbol struct {
	Name string
	Addr uint64
	Size uint64 // bytes; 0 where the file does not say
	Type byte   // nm's letter: 't', 'T', 'w', 'D' …
}

// extent is the range of addresses [lo, hi).
type extent struct{ lo, hi uint64 }

// Format says how the ELF file was packed. The zero value means a plain ELF
// file.
type Format struct {
	Container   string // "", "bzImage", "arm64 Image", "EFI zboot"
	Compression string // "", "gzip", "xz", "zstd", "lz4" …
	// Raw describes what was found inside where it is not an ELF file but a
	// kernel's bare memory image; nil otherwise.
	Raw *RawKernel
}

// RawKernel is a kernel's memory image without ELF headers.
type RawKernel struct {
	Machine elf.Machine
	Order   binary.ByteOrder
	Size    uint64 // bytes in memory, with what the file leaves out as zero
}
