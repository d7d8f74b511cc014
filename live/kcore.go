package live

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// kcore is the kernel's memory as /proc/kcore shows it: an ELF core file of which
// only the headers are read at once.
type kcore struct {
	file     *os.File
	machine  elf.Machine
	order    binary.ByteOrder
	segments []segment
}

// segment is a range of addresses that a core file has.
type segment struct {
	addr, size uint64
	off        int64
}

var errNotCore = errors.New("it is no 64-bit ELF core file")

// openCore reads the headers of a core file.
func openCore(path string) (*kcore, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	c := &kcore{file: f}
	if err := c.readHeaders(f); err != nil {
		f.Close()
		return nil, err
	}
	return c, nil
}

func (c *kcore) close() error { return c.file.Close() }

// readHeaders finds the segments. The file's size is not asked: it is that of the
// address space.
func (c *kcore) readHeaders(r io.ReaderAt) error {
	const ehdrSize, phdrSize = 64, 56
	var h [ehdrSize]byte
	if _, err := r.ReadAt(h[:], 0); err != nil {
		return coreError(err)
	}
	if string(h[:4]) != elf.ELFMAG || elf.Class(h[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return errNotCore
	}
	c.order = binary.LittleEndian
	if elf.Data(h[elf.EI_DATA]) == elf.ELFDATA2MSB {
		c.order = binary.BigEndian
	}
	if elf.Type(c.order.Uint16(h[16:])) != elf.ET_CORE || c.order.Uint16(h[54:]) != phdrSize {
		return errNotCore
	}
	c.machine = elf.Machine(c.order.Uint16(h[18:]))
	start, count := c.order.Uint64(h[32:]), int(c.order.Uint16(h[56:]))
	if start > math.MaxInt32 {
		return errNotCore
	}
	headers := make([]byte, count*phdrSize)
	if _, err := r.ReadAt(headers, int64(start)); err != nil {
		return coreError(err)
	}
	for ; len(headers) > 0; headers = headers[phdrSize:] {
		if elf.ProgType(c.order.Uint32(headers)) != elf.PT_LOAD {
			continue
		}
		off, addr, size := c.order.Uint64(headers[8:]), c.order.Uint64(headers[16:]), c.order.Uint64(headers[32:])
		if off > math.MaxInt64-size || addr+size < addr || size == 0 {
			continue
		}
		c.segments = append(c.segments, segment{addr, size, int64(off)})
	}
	return nil
}

func coreError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends in its headers", errNotCore)
	}
	return err
}

// holds reports whether the core has a range in one segment.
func (c *kcore) holds(addr, size uint64) bool { return c.find(addr, size) != nil }

func (c *kcore) find(addr, size uint64) *segment {
	for i := range c.segments {
		if s := &c.segments[i]; addr-s.addr < s.size && size <= s.size-(addr-s.addr) {
			return s
		}
	}
	return nil
}

var errNoSegment = errors.New("the core file has no such address")

// read fills b with what is at addr.
func (c *kcore) read(b []byte, addr uint64) error {
	s := c.find(addr, uint64(len(b)))
	if s == nil {
		return errNoSegment
	}
	n, err := c.file.ReadAt(b, s.off+int64(addr-s.addr))
	if n == len(b) {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return err
}
