package image

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
)

func unxz(file []byte) ([]byte, error) {
	dst := &sink{limit: minUnpacked}
	err := unpackXZ(dst, bufio.NewReader(bytes.NewReader(file)))
	return dst.buf, err
}

// The fixtures come from xz itself, with every filter and check that we know.
func TestUnpackXZ(t *testing.T) {
	plain := readFixture(t, "tiny.elf")
	for _, file := range []string{
		"tiny.elf.xz", "tiny.x86.elf.xz", "tiny.powerpc.elf.xz", "tiny.arm64.elf.xz", "tiny.chain.elf.xz", "tiny.blocks.elf.xz",
	} {
		got, err := unxz(readFixture(t, file))
		if err != nil {
			t.Errorf("%s: %v", file, err)
		} else if !bytes.Equal(got, plain) {
			t.Errorf("%s: not what was packed", file)
		}
	}
}

func TestUnpackXZRefuses(t *testing.T) {
	if _, err := unxz(readFixture(t, "tiny.delta.elf.xz")); err == nil || err.Error() != "filter 0x3 is not supported" {
		t.Errorf("delta filter: %v", err)
	}
	flip := func(off int) []byte {
		b := readFixture(t, "tiny.elf.xz")
		b[off] ^= 0x10
		return b
	}
	for _, tt := range []struct {
		name string
		off  int
		want error
	}{
		{"stream flags", 7, errXZHeader},
		{"block flags", 13, errXZHeader},
		{"dictionary size", 16, errXZHeader},
		{"checksum of the data", 4608, errXZCheck},
	} {
		if _, err := unxz(flip(tt.off)); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
	whole := readFixture(t, "tiny.blocks.elf.xz")
	index := bytes.LastIndex(whole, []byte("YZ")) - 40
	for n := 0; n < index; n += 41 {
		if _, err := unxz(whole[:n]); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func BenchmarkUnfilterX86(b *testing.B) {
	data := readFixture(b, "tiny.elf")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		unfilterX86(data, 0)
	}
}
