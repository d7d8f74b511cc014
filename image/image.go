// Package image reads ELF files: text, symbols, function extents, kernel
// tables and source lines, also of compressed kernels and modules. Files are
// read lazily. A kernel without symbols is read by the names that it carries
// for its own use.
//
// Addresses are those of the file's own headers. The sections of a relocatable
// file (a .o or a .ko) have none: they are laid out one after the other, and
// symbols that the file does not define get stand-in addresses after them.
package image

import (
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

// Image is an opened file. All methods but Close may be called concurrently.
type Image struct {
	program
	closer io.Closer
	opt    Options
	format Format

	marks    func() (place.Marks, error)
	landings func() (place.Landings, error)
	replaced func() ([]Alternative, error)
	lines    *lineTable
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
	im := &Image{opt: opt, format: format}
	im.r, im.size, im.isas, im.raw = r, size, opt.isas(), format.raw != nil
	im.claims = sync.OnceValues(im.readClaims)
	im.kernelNames = sync.OnceValues(im.readKernelNames)
	im.symbols = sync.OnceValues(im.readSymbols)
	im.relocate = im.relocateSection
	im.debug = sync.OnceValues(im.findDebugFile)
	im.debugSymbols = im.debugFileSymbols
	if opt.Symbols != nil {
		if im.userTable, err = readSymbolMap(opt.Symbols); err != nil {
			return nil, err
		}
	}
	if format.raw != nil {
		err = im.layRaw(format.raw)
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
	im.prepare()
	return im, nil
}

// prepare sets up what is found out when it is first asked for.
func (im *Image) prepare() {
	im.remember()
	im.marks = sync.OnceValues(im.readMarks)
	im.landings = sync.OnceValues(im.readLandings)
	im.replaced = sync.OnceValues(im.readAlternatives)
	im.lines = newLineTable(im.debugSectionOf, im.order, func(addr uint64) bool { return im.textAt(addr) >= 0 })
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

// Format returns how the file was packed.
func (im *Image) Format() Format { return im.format }

// Line returns the source line that the instruction at addr comes from, as
// far as the file has DWARF lines.
func (im *Image) Line(addr uint64) (file string, line int, ok bool) {
	return im.lines.line(addr)
}

// Alternatives returns what the tables of a kernel or a module tell of text
// that is replaced, by address. Of several that stand at one address, a later
// one in the list is written over an earlier one. Text that was taken from a
// running kernel has none left, as far as its indirect calls tell. The caller
// must not change the list.
func (im *Image) Alternatives() ([]Alternative, error) { return im.replaced() }

// Landings returns the addresses in text where execution may come from
// elsewhere according to the file's data, sorted by address: its entry point
// and symbols, addresses that data or relocations hold, where faults and
// exceptions go on, and the targets of jump labels. What its instructions say
// is not among them, nor what tables say that merely describe text.
//
// Beside an error, which is a *FormatError where a table is damaged, it
// returns what the rest of the file says. The caller must not change the list.
func (im *Image) Landings() (place.Landings, error) { return im.landings() }

// Marks returns what the kernel's tables, sections and symbols say of
// addresses in text, where data stands in text, and in relocatable files which
// bytes relocations fill. The list is sorted. The caller must not change it.
func (im *Image) Marks() (place.Marks, error) { return im.marks() }
