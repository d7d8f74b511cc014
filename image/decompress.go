package image

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz/lzma"

	"xol/image/isa"
)

// Bounds on what is unpacked, so that a small file cannot take all memory. The
// largest kernels, with debugging information, stay below 2 GiB, and programs
// do not compress better than 50 to 1.
const (
	maxUnpacked = 2 << 30  // bytes
	maxRatio    = 64       // bytes unpacked per byte packed, above
	minUnpacked = 64 << 20 // bytes, which are always allowed, where headers do not say less

	// maxWindow is the most that zstd -22 uses, in bytes.
	maxWindow = 128 << 20
)

// ErrTooLarge: what is unpacked is larger than any kernel or module.
var ErrTooLarge = errors.New("too large when unpacked")

var (
	errNoLZO     = errors.New("LZO is not supported; unpack it first")
	errWrongSize = errors.New("its size is not the one that the file names")
)

// method is a way to compress, known by the first bytes of what it makes.
type method struct {
	name         string
	magic        string
	weak         bool // magic is too short to trust where anything may come
	endsWithSize bool // the format ends with the size before compression
	unpack       func(dst *sink, src *bufio.Reader) error
}

// maxMagic is the length of the longest magic.
const maxMagic = 9

var methods = [...]method{
	{name: "gzip", magic: "\x1f\x8b\x08", endsWithSize: true, unpack: unpackGzip},
	{name: "xz", magic: "\xfd7zXZ\x00", unpack: unpackXZ},
	{name: "zstd", magic: "\x28\xb5\x2f\xfd", unpack: unpackZstd},
	{name: "lz4", magic: "\x04\x22\x4d\x18", unpack: unpackLZ4},
	{name: "lz4", magic: "\x02\x21\x4c\x18", unpack: unpackLZ4}, // legacy frames, as kernels use
	{name: "bzip2", magic: "BZh", unpack: unpackBzip2},
	{name: "lzma", magic: "\x5d\x00\x00", weak: true, unpack: unpackLZMA},
	{name: "lzo", magic: "\x89LZO\x00\r\n\x1a\n", unpack: unpackLZO},
}

// methodOf returns how data that begins with head is compressed, or nil.
func methodOf(head []byte) *method {
	for i := range methods {
		if bytes.HasPrefix(head, []byte(methods[i].magic)) {
			return &methods[i]
		}
	}
	return nil
}

// decompress unpacks the size bytes of r. want is the size that they must
// have then; 0 where it is not known.
func (m *method) decompress(r io.Reader, size, want int64, isas isa.Set) ([]byte, error) {
	dst := &sink{limit: unpackLimit(size)}
	if want > dst.limit {
		return nil, dst.tooLarge()
	}
	if want > 0 {
		dst.grow(int(want) + 1) // one more to see the end
	} else {
		dst.check = (&fileBound{isas: isas}).check
	}
	if err := m.unpack(dst, bufio.NewReaderSize(r, 256<<10)); err != nil {
		return nil, err
	}
	if want > 0 && int64(len(dst.buf)) != want {
		return nil, errWrongSize
	}
	return dst.buf, nil
}

// unpackLimit bounds what size packed bytes may become.
func unpackLimit(size int64) int64 { return min(maxUnpacked, max(minUnpacked, size*maxRatio)) }

// unpackError says what in which file could not be unpacked.
func unpackError(m *method, p *packing, err error) error {
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return &FormatError{What: m.name + " data", Where: p.where(), Err: ErrTruncated}
	case errors.Is(err, ErrNotELF):
		return notELF(Format{Container: p.container, Compression: m.name})
	case errors.Is(err, ErrTooLarge) || errors.Is(err, errNoLZO):
		return &FormatError{Where: p.where(), Err: err}
	}
	return &FormatError{What: "damaged " + m.name + " data", Where: p.where(), Err: err}
}

// sink collects at most limit bytes. Its memory grows with what really comes.
type sink struct {
	buf   []byte
	limit int64
	// check, unless it is nil, judges what has come so far, and tells how much
	// there will be at most, 0 where that is not known.
	check func(start []byte) (size int64, err error)
	size  int64
}

func (s *sink) grow(size int) {
	if size > cap(s.buf) {
		s.buf = append(make([]byte, 0, size), s.buf...)
	}
}

// nextSize returns the room for what comes next: for all of a file where its
// headers tell how much that is and a good part of it has come.
func (s *sink) nextSize() int {
	const first, part = 64 << 10, 8
	n := cap(s.buf)
	size := min(s.size, s.limit) + 1 // one more to see the end
	if s.size > 0 && size > int64(n) && (size <= int64(n)*part || n >= minUnpacked) {
		return int(size)
	}
	return max(first, n+n/2)
}

// readAll takes all of r.
func (s *sink) readAll(r io.Reader) error {
	for {
		if len(s.buf) == cap(s.buf) {
			s.grow(s.nextSize())
		}
		n, err := r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		if int64(len(s.buf)) > s.limit {
			return s.tooLarge()
		}
		if s.check != nil {
			var bad error
			if s.size, bad = s.check(s.buf); bad != nil {
				return bad
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *sink) tooLarge() error {
	return fmt.Errorf("%w: more than %d MiB", ErrTooLarge, s.limit>>20)
}

func unpackGzip(dst *sink, src *bufio.Reader) error {
	r, err := gzip.NewReader(src)
	if err != nil {
		return err
	}
	r.Multistream(false) // what follows is not ours: kernels may be padded
	return dst.readAll(r)
}

func unpackZstd(dst *sink, src *bufio.Reader) error {
	r, err := zstd.NewReader(src,
		zstd.WithDecoderConcurrency(1), // no goroutines
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer r.Close()
	return dst.readAll(r)
}

func unpackLZ4(dst *sink, src *bufio.Reader) error { return dst.readAll(lz4.NewReader(src)) }

func unpackBzip2(dst *sink, src *bufio.Reader) error { return dst.readAll(bzip2.NewReader(src)) }

func unpackLZMA(dst *sink, src *bufio.Reader) error {
	r, err := lzma.ReaderConfig{DictCap: int(min(dst.limit, lzma.MaxDictCap))}.NewReader(src)
	if err != nil {
		return err
	}
	return dst.readAll(r)
}

func unpackLZO(*sink, *bufio.Reader) error { return errNoLZO }
