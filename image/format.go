package image

import (
	"debug/elf"
	"encoding/binary"
)

// Format says how the ELF file was packed. The zero value means a plain ELF
// file.
type Format struct {
	Container   string // "", "bzImage", "arm64 Image", "EFI zboot", "zImage"
	Compression string // "", "gzip", "xz", "zstd", "lz4" …
	// raw describes what was found inside where it is not an ELF file but a
	// kernel's bare memory image; nil otherwise.
	raw *rawKernel
}

// rawKernel is a kernel's memory image without ELF headers.
type rawKernel struct {
	machine elf.Machine
	order   binary.ByteOrder
	size    uint64 // bytes in memory, with what the file leaves out as zero
}
