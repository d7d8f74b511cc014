// Package image reads ELF files: text, symbols, function extents, kernel
// tables and source lines, also of compressed kernels and modules. Files are
// read lazily. A kernel without symbols is read by the names that it carries
// for its own use.
//
// Addresses are those of the file's own headers. The sections of a relocatable
// file (a .o or a .ko) have none: they are laid out one behind the other, and
// symbols that the file does not define get stand-in addresses behind them.
package image

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"xol/image/isa"
	"xol/place"
)

// Kind says what a file is to Linux.
type Kind uint8

// The kinds of files.
const (
	KindProgram Kind = iota // an executable or shared object
	KindObject              // relocatable, not linked
	KindModule              // a kernel module
	KindKernel              // vmlinux
)

var kindNames = [...]string{"program", "object", "module", "kernel"}

// String returns the kind in one word.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Options say how to read a file. The zero value is fine.
type Options struct {
	// Symbols is a System.map or the text of /proc/kallsyms, which then
	// replaces the symbols of a linked file. Where its _text stands elsewhere
	// than the file's (a randomized kernel), its addresses are moved. It is
	// compared with what the file tells.
	Symbols io.Reader
	// Demangle makes Symbolize return C++ and Rust names as they were
	// written.
	Demangle bool
	// DebugDirs are the folders that hold the separate debug files of stripped
	// programs, such as /usr/lib/debug, from which names and lines are then
	// taken. Where it is nil none is looked for, not even beside the file.
	DebugDirs []string
	// Path is where the file is. OpenFile knows it.
	Path string
	// ISAs are those that xol does not know, or knows otherwise.
	ISAs isa.Set
}

// isas returns what is known of all ISAs.
func (o *Options) isas() isa.Set { return slices.Concat(o.ISAs, isa.Known()) }

// mapSymbol is one line of a symbol map.
type mapSymbol struct {
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
	Container   string // "", "bzImage", "arm64 Image", "EFI zboot", "zImage"
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

// Image is an opened file. All methods but Close may be called concurrently.
type Image struct {
	r       io.ReaderAt
	size    int64
	closer  io.Closer
	opt     Options
	format  Format
	file    *elf.File // nil for a bare kernel image
	typ     elf.Type
	machine elf.Machine
	isa     *isa.Record
	order   byteOrder
	entry   uint64
	flags   uint32 // e_flags
	kind    Kind

	sections []section // by their index in the file
	byAddr   []int32   // those in memory, by address, without overlap
	text     []Range
	external uint64 // of a relocatable file: where stand-ins for undefined symbols start

	headless bool // no section headers: segments stand in

	symbols   func() (*symtab, error)
	extents   [2]func() ([]Function, error) // by Extent
	marks     func() (place.Marks, error)
	pointers  func() (*pointers, error)
	landings  func() (place.Landings, error)
	replaced  func() ([]Alternative, error)
	lines     *lineTable
	userTable []mapSymbol // of Options.Symbols
	// kernelNames returns the symbols that a kernel carries for itself, nil
	// where it has none.
	kernelNames func() ([]mapSymbol, error)
	// debug returns the separate debug file, nil where there is none.
	debug     func() (*debugFile, error)
	debugOpen atomic.Pointer[debugFile] // to be closed
}

// Open reads the headers of an ELF file, or of one that is packed in a kernel
// image or a compressed module. r must stay readable while the image is used.
//
// It returns ErrEmpty, ErrNotELF, ErrClass, ErrNoSymbols, a *TypeError, a
// *DebugFileError, a
// *MapMismatchError for symbols that cannot be the file's, or a *FormatError
// for a file that is damaged.
func Open(r io.ReaderAt, size int64, opt Options) (*Image, error) {
	im, err := open(r, size, opt)
	if err != nil {
		return nil, err
	}
	if im.isDebugFile() {
		return nil, &DebugFileError{hex.EncodeToString(im.buildID())}
	}
	return im, nil
}

// open opens any file, also one with debugging information only.
func open(r io.ReaderAt, size int64, opt Options) (*Image, error) {
	if size == 0 {
		return nil, ErrEmpty
	}
	r, size, format, err := unpack(r, size, opt.isas())
	if err != nil {
		return nil, err
	}
	im := &Image{r: r, size: size, opt: opt, format: format}
	im.kernelNames = sync.OnceValues(im.readKernelNames)
	if opt.Symbols != nil {
		if im.userTable, err = readSymbolMap(opt.Symbols); err != nil {
			return nil, err
		}
	}
	if format.Raw != nil {
		err = im.layRaw(format.Raw)
	} else {
		err = im.readHeaders()
	}
	if err != nil {
		return nil, err
	}
	if err := im.finishLayout(); err != nil {
		return nil, err
	}
	if err := im.checkUserTable(); err != nil {
		return nil, err
	}
	im.symbols = sync.OnceValues(im.readSymbols)
	for e := range im.extents {
		im.extents[e] = sync.OnceValues(func() ([]Function, error) { return im.listFunctions(Extent(e)) })
	}
	im.marks = sync.OnceValues(im.readMarks)
	im.pointers = sync.OnceValues(im.readPointers)
	im.landings = sync.OnceValues(im.readLandings)
	im.replaced = sync.OnceValues(im.readAlternatives)
	im.debug = sync.OnceValues(im.findDebugFile)
	im.lines = newLineTable(im.debugSectionOf, im.order, func(addr uint64) bool { return im.textAt(addr) >= 0 })
	return im, nil
}

// OpenFile opens the file at path as Open does. Close closes it.
func OpenFile(path string, opt Options) (*Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	opt.Path = path
	im, err := openOSFile(f, opt)
	if err != nil {
		f.Close()
		return nil, err
	}
	im.closer = f
	return im, nil
}

func openOSFile(f *os.File, opt Options) (*Image, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", ErrNotELF)
	}
	return Open(f, info.Size(), opt)
}

// Close closes the file that OpenFile opened, and a debug file.
func (im *Image) Close() error {
	var err error
	if d := im.debugOpen.Swap(nil); d != nil {
		err = d.Close()
	}
	if im.closer != nil {
		err = errors.Join(im.closer.Close(), err)
	}
	return err
}

// Kind returns what the file is to Linux.
func (im *Image) Kind() Kind { return im.kind }

// Machine returns the architecture that the file names, supported or not.
func (im *Image) Machine() elf.Machine { return im.machine }

// ByteOrder returns the byte order of the file.
func (im *Image) ByteOrder() binary.ByteOrder {
	if im.order == littleEndian {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

// Format returns how the file was packed.
func (im *Image) Format() Format { return im.format }

// ABI returns the version of the ppc64 ELF ABI: 1 with function descriptors,
// 2 with local entry points; 0 on other machines.
func (im *Image) ABI() int {
	if im.isa.ABI == nil {
		return 0
	}
	return im.isa.ABI(im.flags, im.order == bigEndian, im.sectionNamed(".opd") != nil)
}

// Line returns the source line that the instruction at addr comes from, as
// far as the file has DWARF lines.
func (im *Image) Line(addr uint64) (file string, line int, ok bool) {
	return im.lines.line(addr)
}
