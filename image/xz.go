package image

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// The xz container is read here, and only LZMA2 by the library, because
// kernels are compressed with a branch filter before LZMA2, which the
// library's own reader of containers does not know [The .xz File Format].

var (
	errXZHeader = errors.New("bad xz header")
	errXZCheck  = errors.New("checksum does not match")
)

// Filters that an xz block may name.
const (
	xzX86     = 0x04
	xzPowerPC = 0x05
	xzARM64   = 0x0a
	xzLZMA2   = 0x21
)

// xzBranchFilters undo, in place, what makes branches compress better: the
// displacement was replaced by the target, as if the data stood at pos.
var xzBranchFilters = map[uint64]func(b []byte, pos uint32){
	xzX86:     unfilterX86,
	xzPowerPC: unfilterPowerPC,
	xzARM64:   unfilterARM64,
}

// xzFilter is one step of a block's packing.
type xzFilter struct {
	undo func(b []byte, pos uint32)
	pos  uint32
}

// unpackXZ reads one xz stream up to its index. What follows adds nothing: the
// index repeats sizes.
func unpackXZ(dst *sink, src *bufio.Reader) error {
	var hdr [12]byte
	if _, err := io.ReadFull(src, hdr[:]); err != nil {
		return err
	}
	flags := hdr[6:8]
	if crc32.ChecksumIEEE(flags) != binary.LittleEndian.Uint32(hdr[8:]) || flags[0] != 0 || flags[1] > 0xf {
		return errXZHeader
	}
	for {
		units, err := src.ReadByte()
		if err != nil {
			return err
		}
		if units == 0 { // the index
			return nil
		}
		if err := unpackXZBlock(dst, src, units, flags[1]); err != nil {
			return err
		}
	}
}

// unpackXZBlock reads a block whose header is units*4+4 bytes long.
func unpackXZBlock(dst *sink, src *bufio.Reader, units, check byte) error {
	header := make([]byte, int(units)*4+4)
	header[0] = units
	if _, err := io.ReadFull(src, header[1:]); err != nil {
		return err
	}
	filters, dict, err := parseXZBlockHeader(header)
	if err != nil {
		return err
	}
	start := len(dst.buf)
	packed := &countingReader{r: src}
	r, err := lzma.Reader2Config{DictCap: int(min(max(dict, lzma.MinDictCap), dst.limit))}.NewReader2(packed)
	if err != nil {
		return err
	}
	if len(filters) > 0 {
		dst.check = nil // it would see what is still filtered
	}
	if err := dst.readAll(r); err != nil {
		return err
	}
	block := dst.buf[start:]
	for _, f := range filters {
		f.undo(block, f.pos)
	}
	if _, err := src.Discard(int(-packed.n & 3)); err != nil {
		return err
	}
	return verifyXZ(src, check, block)
}

// parseXZBlockHeader returns the branch filters in the order to undo them, and
// LZMA2's dictionary size in bytes.
func parseXZBlockHeader(header []byte) ([]xzFilter, int64, error) {
	body := len(header) - crc32.Size
	if crc32.ChecksumIEEE(header[:body]) != binary.LittleEndian.Uint32(header[body:]) {
		return nil, 0, errXZHeader
	}
	const countMask, hasPackedSize, hasSize, reserved = 0x03, 0x40, 0x80, 0x3c
	flags := header[1]
	b := header[2:body]
	if flags&reserved != 0 {
		return nil, 0, errXZHeader
	}
	for _, present := range []byte{hasPackedSize, hasSize} {
		if flags&present != 0 {
			_, b = xzNumber(b)
		}
	}
	var filters []xzFilter
	for last := int(flags & countMask); last >= 0; last-- {
		var id, n uint64
		id, b = xzNumber(b)
		n, b = xzNumber(b)
		if n > uint64(len(b)) {
			return nil, 0, errXZHeader
		}
		props := b[:n]
		b = b[n:]
		if last == 0 {
			dict, err := xzDictionary(id, props)
			return filters, dict, err
		}
		f, err := xzBranchFilter(id, props)
		if err != nil {
			return nil, 0, err
		}
		filters = append([]xzFilter{f}, filters...)
	}
	return nil, 0, errXZHeader
}

func xzDictionary(id uint64, props []byte) (int64, error) {
	if id != xzLZMA2 || len(props) != 1 {
		return 0, errXZHeader
	}
	return lzma.DecodeDictCap(props[0])
}

func xzBranchFilter(id uint64, props []byte) (xzFilter, error) {
	f := xzFilter{undo: xzBranchFilters[id]}
	if f.undo == nil {
		return f, fmt.Errorf("filter %#x is not supported", id)
	}
	switch len(props) {
	case 0:
	case 4:
		f.pos = binary.LittleEndian.Uint32(props)
	default:
		return f, errXZHeader
	}
	return f, nil
}

// xzNumber takes a number of 7-bit groups from the start of b. Of a damaged
// one, nothing is left.
func xzNumber(b []byte) (uint64, []byte) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil
	}
	return v, b[n:]
}

// xzCheckSizes are the bytes of each kind of checksum, known or not.
var xzCheckSizes = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// verifyXZ reads the checksum after a block and compares it.
func verifyXZ(src io.Reader, check byte, block []byte) error {
	var buf [64]byte
	want := buf[:xzCheckSizes[check]]
	if _, err := io.ReadFull(src, want); err != nil {
		return err
	}
	var ok bool
	switch check {
	case 1:
		ok = crc32.ChecksumIEEE(block) == binary.LittleEndian.Uint32(want)
	case 4:
		ok = crc64.Checksum(block, crc64.MakeTable(crc64.ECMA)) == binary.LittleEndian.Uint64(want)
	case 10:
		ok = sha256.Sum256(block) == [sha256.Size]byte(want)
	default: // none, or one that is not in use
		ok = true
	}
	if !ok {
		return errXZCheck
	}
	return nil
}

// countingReader counts what is read through it.
type countingReader struct {
	r *bufio.Reader
	n int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// unfilterPowerPC undoes the filter on bl.
func unfilterPowerPC(b []byte, pos uint32) {
	const bl, blMask, target = 0x48000001, 0xfc000003, 0x03fffffc
	for ; len(b) >= 4; b, pos = b[4:], pos+4 {
		if w := binary.BigEndian.Uint32(b); w&blMask == bl {
			binary.BigEndian.PutUint32(b, bl|(w-pos)&target)
		}
	}
}

// unfilterARM64 undoes the filter on bl and on adrp whose target is within
// 512 MiB.
func unfilterARM64(b []byte, pos uint32) {
	const (
		bl, blMask     = 0x94000000, 0xfc000000
		adrp, adrpMask = 0x90000000, 0x9f000000
		rd             = 0x1f
	)
	for ; len(b) >= 4; b, pos = b[4:], pos+4 {
		w := binary.LittleEndian.Uint32(b)
		switch {
		case w&blMask == bl:
			w = bl | (w-pos>>2)&^blMask
		case w&adrpMask == adrp:
			pages := w>>29&3 | w>>3&0x1ffffc
			if (pages+0x20000)&0x1c0000 != 0 {
				continue
			}
			pages -= pos >> 12
			sign := -(pages >> 17 & 1) & 7
			w = adrp | w&rd | pages&3<<29 | pages&0x3fffc<<3 | sign<<21
		default:
			continue
		}
		binary.LittleEndian.PutUint32(b, w)
	}
}

// unfilterX86 undoes the filter on call and jmp with 32-bit displacements. The
// filter knows no instruction boundaries: it took every opcode byte for a
// branch, unless bytes before it look like a branch that it is part of.
func unfilterX86(b []byte, pos uint32) {
	const length, alone, alonePair = 5, 0x01, 0x10
	// recent tells of the last bytes, one bit each, the nearest lowest: in the
	// low half, that it is an opcode byte which was left alone; in the high
	// half, that moreover what would be its displacement ends like one.
	recent := uint32(0)
	for i, last := 0, -length; i+length <= len(b); i++ {
		if b[i]&^1 != 0xe8 {
			continue
		}
		if i-last > length {
			recent = 0
		}
		for ; recent != 0 && last < i; last++ {
			recent = recent & 0x77 << 1
		}
		last = i
		near, top := recent>>1, b[i+4]
		switch {
		case !isSignByte(top):
			recent |= alone
		case near > 4 || near == 3:
			recent |= alone | alonePair
		default:
			target := binary.LittleEndian.Uint32(b[i+1:])
			binary.LittleEndian.PutUint32(b[i+1:], x86Displacement(target, pos+uint32(i)+length, near))
			recent = 0
			i += length - 1
		}
	}
}

func isSignByte(c byte) bool { return c == 0 || c == 0xff }

// x86Displacement returns the displacement that leads from next to target.
// Only its low 25 bits count: what the filter took has at least 7 sign bits.
// near is 1, 2 or 4 where an opcode byte, left alone, is one to three bytes
// before, so that what would be its displacement ends within this one. That
// last byte is no sign byte, and must not have become one: the filter inverted
// the bits up to there where it would have.
func x86Displacement(target, next, near uint32) uint32 {
	v := target - next
	if near != 0 {
		shift := [...]int{1: 16, 2: 8, 4: 0}[near]
		if isSignByte(byte(v >> shift)) {
			v = v ^ (1<<(shift+8) - 1) - next
		}
	}
	const sign = 1 << 24
	return v&(sign<<1-1) ^ sign - sign
}
