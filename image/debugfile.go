package image

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// DebugFileError says that a file is a separate debug file: what was stripped
// off a program, without its code (objcopy --only-keep-debug).
type DebugFileError struct {
	BuildID string // in hexadecimal; empty where the file has none
}

func (e *DebugFileError) Error() string {
	text := "this is a separate debug file: it has names and lines, but no code; give the program or library that it belongs to"
	if e.BuildID != "" {
		text += " (build id " + e.BuildID + ")"
	}
	return text
}

// isDebugFile reports whether a file has text only by name.
func (im *Image) isDebugFile() bool {
	return len(im.text) == 0 && slices.ContainsFunc(im.sections, func(s section) bool {
		return s.alloc() && s.flags&elf.SHF_EXECINSTR != 0 && s.typ == elf.SHT_NOBITS && s.size > 0
	})
}

// DebugFile returns the path of the separate debug file that names and lines
// are taken from; empty where none is. The error says of a file that was found
// why it is not used.
func (im *Image) DebugFile() (path string, err error) {
	d, err := im.debug()
	if d == nil {
		return "", err
	}
	return d.path, nil
}

// debugFile is a separate debug file.
type debugFile struct {
	*Image
	path string
}

// ErrStaleDebugFile: a debug file was found by its name, but it is that of
// another build.
var ErrStaleDebugFile = errors.New("the debug file is that of another build")

// wantsDebugFile reports whether something could be found in a debug file that
// the file itself lacks.
func (im *Image) wantsDebugFile() bool {
	linked := im.typ == elf.ET_EXEC || im.typ == elf.ET_DYN
	return linked && im.opt.DebugDirs != nil && im.kind == KindProgram &&
		(im.sectionOfType(elf.SHT_SYMTAB) == nil || im.sectionNamed(".debug_info") == nil && im.sectionNamed(".zdebug_info") == nil)
}

// findDebugFile looks where debuggers look: by the build id, then by the name
// in .gnu_debuglink beside the file, in .debug there, and below the folders of
// debug files [GDB manual, 18.3].
func (im *Image) findDebugFile() (*debugFile, error) {
	if !im.wantsDebugFile() {
		return nil, nil
	}
	id := im.buildID()
	link, sum, linked := im.debugLink()
	var stale error
	for _, path := range im.debugPaths(id, link) {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		opened, err := im.useDebugFile(f, id, sum, linked)
		if err == nil {
			d := &debugFile{opened, path}
			im.debugOpen.Store(d)
			return d, nil
		}
		f.Close()
		stale = fmt.Errorf("%s: %w", path, err)
	}
	return nil, stale
}

// debugPaths lists where the debug file may be.
func (im *Image) debugPaths(id []byte, link string) []string {
	var paths []string
	if len(id) > 1 {
		name := filepath.Join(".build-id", hex.EncodeToString(id[:1]), hex.EncodeToString(id[1:])+".debug")
		for _, dir := range im.opt.DebugDirs {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	if link == "" || link != filepath.Base(link) || im.opt.Path == "" {
		return paths
	}
	here, err := filepath.Abs(im.opt.Path)
	if err != nil {
		return paths
	}
	folders := []string{filepath.Dir(here)}
	if real, err := filepath.EvalSymlinks(here); err == nil && real != here {
		folders = append(folders, filepath.Dir(real))
	}
	for _, folder := range folders {
		paths = append(paths, filepath.Join(folder, link), filepath.Join(folder, ".debug", link))
		for _, dir := range im.opt.DebugDirs {
			paths = append(paths, filepath.Join(dir, folder, link))
		}
	}
	return slices.DeleteFunc(paths, func(path string) bool { return path == here })
}

// useDebugFile opens a debug file if it is that of im: by the build id where
// both have one, else by the checksum in im.
func (im *Image) useDebugFile(f *os.File, id []byte, sum uint32, linked bool) (*Image, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, err
	}
	d, err := open(f, info.Size(), Options{})
	if err != nil {
		return nil, err
	}
	d.closer = f
	switch other := d.buildID(); {
	case len(id) > 0 && len(other) > 0:
		if !bytes.Equal(id, other) {
			return nil, fmt.Errorf("%w (build id %x, not %x)", ErrStaleDebugFile, other, id)
		}
	case !linked:
		return nil, fmt.Errorf("%w (it has no build id)", ErrStaleDebugFile)
	default:
		got, err := checksum(f)
		if err != nil {
			return nil, err
		}
		if got != sum {
			return nil, fmt.Errorf("%w (checksum %08x, not %08x)", ErrStaleDebugFile, got, sum)
		}
	}
	return d, im.sameText(d)
}

// checksum returns the CRC-32 of a whole file.
func checksum(f *os.File) (uint32, error) {
	h := crc32.NewIEEE()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	_, err := io.Copy(h, f)
	return h.Sum32(), err
}

// sameText finds out whether the sections of text of a debug file are where
// those of im are.
func (im *Image) sameText(d *Image) error {
	if d.machine != im.machine || d.order != im.order {
		return fmt.Errorf("%w (for %v)", ErrStaleDebugFile, d.machine)
	}
	for _, r := range im.text {
		if s := d.sectionNamed(r.Section); s == nil || s.addr != r.Addr || s.size != r.Size {
			return fmt.Errorf("%w (section %s differs)", ErrStaleDebugFile, printable(r.Section))
		}
	}
	return nil
}

// debugLink returns the name of the debug file and its CRC-32, as
// .gnu_debuglink tells: a string, padding, and the checksum.
func (im *Image) debugLink() (name string, sum uint32, ok bool) {
	const align = 4
	s := im.sectionNamed(".gnu_debuglink")
	if s == nil {
		return "", 0, false
	}
	data, err := im.rawContents(s)
	if err != nil {
		return "", 0, false
	}
	c := cursor{data: data, order: im.order}
	name = c.cstring()
	c.skip(-c.pos & (align - 1))
	sum = c.u32()
	return name, sum, !c.bad
}

// buildID returns the descriptor of the note that names the build; nil where
// there is none.
func (im *Image) buildID() []byte {
	const owner, typ = "GNU\x00", 3 // NT_GNU_BUILD_ID
	for i := range im.sections {
		s := &im.sections[i]
		if s.typ != elf.SHT_NOTE || s.size > 1<<16 {
			continue
		}
		data, err := im.rawContents(s)
		if err != nil {
			return nil
		}
		for c := (cursor{data: data, order: im.order}); !c.bad && c.pos < len(data); {
			nameSize, descSize, t := c.u32(), c.u32(), c.u32()
			name, desc := c.padded(nameSize), c.padded(descSize)
			if !c.bad && string(name) == owner && t == typ {
				return desc
			}
		}
	}
	return nil
}

// debugFileSymbols returns the debug file if it has symbols, and its path.
func (im *Image) debugFileSymbols() (*file, string) {
	d, _ := im.debug()
	if d == nil || d.sectionOfType(elf.SHT_SYMTAB) == nil {
		return nil, ""
	}
	return &d.file, d.path
}

// debugSectionOf opens a section of debugging information of the file, or of
// its debug file where it has none.
func (im *Image) debugSectionOf(name string) (*io.SectionReader, error) {
	if im.sectionNamed(".debug_info") == nil && im.sectionNamed(".zdebug_info") == nil {
		if d, _ := im.debug(); d != nil {
			return d.debugSection(name)
		}
	}
	return im.debugSection(name)
}
