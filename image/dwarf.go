package image

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"io"
)

// debugSection opens a section of debugging information: .debug_NAME, or
// .zdebug_NAME as it was once compressed. Where it can be read in place, it
// is.
func (im *file) debugSection(name string) (*io.SectionReader, error) {
	s, old := im.sectionNamed(".debug_"+name), false
	if s == nil {
		s, old = im.sectionNamed(".zdebug_"+name), true
	}
	if s == nil || !s.inFile() {
		return nil, nil
	}
	if !old && s.relocated == nil && s.flags&elf.SHF_COMPRESSED == 0 {
		return io.NewSectionReader(im.r, int64(s.off), int64(s.size)), nil
	}
	b, err := im.contents(s)
	if err == nil && old {
		b, err = unzipDebug(b)
	}
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), nil
}

// unzipDebug decompresses a .zdebug section: "ZLIB", the size, and the data.
func unzipDebug(b []byte) ([]byte, error) {
	const header = 12
	if len(b) < header || string(b[:4]) != "ZLIB" {
		return nil, &FormatError{What: "cannot decompress", Where: "debugging information"}
	}
	r, err := zlib.NewReader(bytes.NewReader(b[header:]))
	if err != nil {
		return nil, &FormatError{What: "cannot decompress", Where: "debugging information", Err: err}
	}
	dst := &sink{limit: unpackLimit(int64(len(b)))}
	if err := dst.readAll(r); err != nil {
		return nil, &FormatError{What: "cannot decompress", Where: "debugging information", Err: err}
	}
	return dst.buf, nil
}
