package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xol/image/isa"
)

// Where unwindImage puts things.
const (
	lsdaText = 0x10000
	lsdaAddr = 0x2000
	lsdaWord = 0x3000 // holds lsdaAddr
	lsdaGot  = 0x3008
	lsdaEnd  = 0x11000 // of text
)

// unwindImage is a program with the given unwind table, at frameAddr, and
// language-specific data, at lsdaAddr.
func unwindImage(t testing.TB, order byteOrder, frames, lsda []byte) *Image {
	t.Helper()
	var content []byte
	im := newImage(file{isa: isa.Known().Find(elf.EM_X86_64), order: order, typ: elf.ET_EXEC, sections: []section{{}}})
	add := func(name string, typ elf.SectionType, flags elf.SectionFlag, addr uint64, data []byte) {
		im.sections = append(im.sections, section{
			name: name, index: len(im.sections), typ: typ, flags: elf.SHF_ALLOC | flags,
			addr: addr, size: uint64(len(data)), off: uint64(len(content)),
		})
		content = append(content, data...)
	}
	b := frameBuilder{order: order}
	add(".eh_frame", elf.SHT_PROGBITS, 0, frameAddr, frames)
	add(".gcc_except_table", elf.SHT_PROGBITS, 0, lsdaAddr, lsda)
	add(".data", elf.SHT_PROGBITS, elf.SHF_WRITE, lsdaWord, b.u64(lsdaAddr))
	add(".dynamic", elf.SHT_DYNAMIC, elf.SHF_WRITE, lsdaGot+8, slices.Concat(b.u64(uint64(elf.DT_PLTGOT)), b.u64(lsdaGot)))
	add(".text", elf.SHT_PROGBITS, elf.SHF_EXECINSTR, lsdaText, make([]byte, lsdaEnd-lsdaText))
	im.r, im.size = bytes.NewReader(content), int64(len(content))
	if err := im.finishLayout(); err != nil {
		t.Fatal(err)
	}
	im.symbols = func() (*symtab, error) { return new(symtab), nil }
	im.pointers = im.readPointers
	return im
}

// pads lists the landing pads of an image as "site: pad".
func pads(im *Image) ([]string, error) {
	var found []string
	err := im.eachLandingPad(func(site, pad uint64) { found = append(found, fmt.Sprintf("%#x: %#x", site, pad)) })
	return found, err
}

// oneSite is the data of a function whose bytes from 4 to 9 go on at 0x20.
var oneSite = []byte{peOmit, peOmit, peULEB, 4, 4, 5, 0x20, 0}

// TestLSDAPointers finds the data of a function by all encodings of pointers.
func TestLSDAPointers(t *testing.T) {
	for _, order := range []byteOrder{littleEndian, bigEndian} {
		b := &frameBuilder{order: order}
		const to = lsdaAddr
		want := []string{"0x10004: 0x10020"}
		for _, tt := range []struct {
			name     string
			encoding byte
			pointer  func(place uint64) []byte
			want     []string
			err      string
		}{
			{"absolute", 0x00, func(uint64) []byte { return b.u64(to) }, want, ""},
			{"udata4", 0x03, func(uint64) []byte { return b.u32(to) }, want, ""},
			{"udata8", 0x04, func(uint64) []byte { return b.u64(to) }, want, ""},
			{"uleb", 0x01, func(uint64) []byte { return binary.AppendUvarint(nil, to) }, want, ""},
			{"udata2", 0x02, func(uint64) []byte { return b.u16(to) }, want, ""},
			{"sdata4 relative", 0x1b, func(p uint64) []byte { return b.u32(uint32(to - p)) }, want, ""},
			{"sdata8 relative", 0x1c, func(p uint64) []byte { return b.u64(to - p) }, want, ""},
			{"relative to data", 0x3b, func(uint64) []byte { return b.u32(uint32(to - lsdaGot + 1<<32)) }, want, ""},
			{"relative to the function", 0x4b, func(uint64) []byte { return b.u32(uint32(to - lsdaText + 1<<32)) }, want, ""},
			{"aligned", 0x50, func(p uint64) []byte { return append(make([]byte, -p&7), b.u64(to)...) }, want, ""},
			{"indirect", 0x80, func(uint64) []byte { return b.u64(lsdaWord) }, want, ""},
			{"indirect, relative", 0x9b, func(p uint64) []byte { return b.u32(uint32(lsdaWord - p)) }, want, ""},
			{"omitted", 0xff, func(uint64) []byte { return nil }, nil, ""},
			{"none", 0x1b, func(uint64) []byte { return b.u32(0) }, nil, ""},
			{"none, relative to data", 0x3b, func(uint64) []byte { return b.u32(0) }, nil, ""},
			{"relative to text", 0x2b, func(uint64) []byte { return b.u32(to) }, nil, "cannot be read"},
			{"unknown format", 0x0d, func(uint64) []byte { return b.u32(to) }, nil, "cannot be read"},
			{"cut off", 0x00, func(uint64) []byte { return b.u32(to) }, nil, "cannot be read"},
			{"indirect, no address there", 0x80, func(uint64) []byte { return b.u64(lsdaText) }, nil, "cannot be read"},
			{"nowhere", 0x03, func(uint64) []byte { return b.u32(0x100) }, nil, "not in a section"},
		} {
			t.Run(fmt.Sprintf("%s/big-endian=%v", tt.name, order), func(t *testing.T) {
				b.data = nil
				b.addCIE(1, "zLR", tt.encoding, 0x03)
				b.addLSDA(tt.pointer)
				got, err := pads(unwindImage(t, order, b.data, oneSite))
				checkPads(t, got, err, tt.want, tt.err)
			})
		}
	}
}

// addLSDA appends the FDE of a function at lsdaText with augmentation data.
func (b *frameBuilder) addLSDA(pointer func(place uint64) []byte) {
	const before = 4 + 4 + 1 // start and length of the function, length of the data
	data := pointer(frameAddr + uint64(len(b.data)) + 8 + before)
	content := slices.Concat(b.u32(uint32(len(b.data)+4-b.cie)), b.u32(lsdaText), b.u32(0x100), []byte{byte(len(data))}, data)
	b.entry(false, content)
}

func checkPads(t *testing.T, got []string, err error, want []string, wantErr string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var format *FormatError
	switch {
	case wantErr == "" && err != nil:
		t.Errorf("error %v", err)
	case wantErr != "" && (!errors.As(err, &format) || !strings.Contains(err.Error(), wantErr)):
		t.Errorf("error %v, want a *FormatError with %q", err, wantErr)
	}
}

// TestLSDA reads language-specific data of a function at lsdaText.
func TestLSDA(t *testing.T) {
	b := &frameBuilder{}
	words := func(encoding byte, number func(v uint32) []byte, sites ...uint32) []byte {
		var table []byte
		for i, v := range sites {
			if i%3 == 0 && i > 0 {
				table = append(table, 0)
			}
			table = append(table, number(v)...)
		}
		table = append(table, 0)
		return append([]byte{peOmit, peOmit, encoding, byte(len(table))}, table...)
	}
	two := []string{"0x10008: 0x10030", "0x10040: 0x10050"}
	for _, tt := range []struct {
		name string
		data []byte
		want []string
		err  string
	}{
		{"uleb", []byte{0xff, 0xff, 0x01, 9, 4, 5, 0x80, 0x01, 0, 10, 1, 0, 0}, []string{"0x10004: 0x10080"}, ""},
		{"udata4", words(0x03, b.u32, 0, 8, 0, 8, 4, 0x30, 0x40, 4, 0x50), two, ""},
		{"sdata4", words(0x0b, b.u32, 8, 4, 0x30, 0x40, 4, 0x50), two, ""},
		{"udata2", words(0x02, func(v uint32) []byte { return b.u16(uint16(v)) }, 8, 4, 0x30, 0x40, 4, 0x50), two, ""},
		{"udata8", words(0x04, func(v uint32) []byte { return b.u64(uint64(v)) }, 8, 4, 0x30, 0x40, 4, 0x50), two, ""},
		{"types", []byte{0xff, 0x9b, 0x20, 0x01, 4, 4, 5, 0x20, 1}, []string{"0x10004: 0x10020"}, ""},
		{"actions", []byte{0xff, 0xff, 0x01, 5, 4, 5, 0x20, 0x81, 0x01}, []string{"0x10004: 0x10020"}, ""},
		{"no sites", []byte{0xff, 0xff, 0x01, 0}, nil, ""},
		{"pads relative to an address", slices.Concat([]byte{0x03}, b.u32(0x10400), []byte{0xff, 0x01, 4, 4, 5, 0x20, 0}), []string{"0x10004: 0x10420"}, ""},
		{"pads relative to their place", slices.Concat([]byte{0x1b}, b.u32(0x10400-lsdaAddr-1), []byte{0xff, 0x01, 4, 4, 5, 0x20, 0}), []string{"0x10004: 0x10420"}, ""},
		{"pads relative to 0", []byte{0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x01, 6, 4, 5, 0xa0, 0x80, 0x04, 0}, []string{"0x10004: 0x10020"}, ""},
		{"pad outside", []byte{0xff, 0xff, 0x01, 6, 4, 5, 0x80, 0x80, 0x40, 0}, nil, "table of call sites"},
		{"pad outside after others", []byte{0xff, 0xff, 0x01, 10, 4, 5, 0x20, 0, 4, 5, 0x80, 0x80, 0x40, 0}, []string{"0x10004: 0x10020"}, "table of call sites"},
		{"site cut off", []byte{0xff, 0xff, 0x01, 3, 4, 5, 0x20, 0}, nil, "table of call sites"},
		{"number without end", []byte{0xff, 0xff, 0x01, 4, 0x80, 0x80, 0x80, 0x80}, nil, "table of call sites"},
		{"table longer than the section", []byte{0xff, 0xff, 0x01, 5, 4, 5, 0x20, 0}, nil, "header"},
		{"unknown encoding", []byte{0xff, 0xff, 0x0d, 4, 4, 5, 0x20, 0}, nil, "table of call sites"},
		{"relative sites", []byte{0xff, 0xff, 0x11, 4, 4, 5, 0x20, 0}, nil, "header"},
		{"pads relative to data", []byte{0x31, 1, 0xff, 0x01, 0}, nil, "header"},
		{"header cut off", []byte{0xff, 0xff}, nil, "header"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.data = nil
			b.addCIE(1, "zLR", 0x03, 0x03)
			b.addLSDA(func(uint64) []byte { return b.u32(lsdaAddr) })
			got, err := pads(unwindImage(t, littleEndian, b.data, tt.data))
			checkPads(t, got, err, tt.want, tt.err)
		})
	}
}

// TestLSDAGoesOn reads what is right beside what is damaged.
func TestLSDAGoesOn(t *testing.T) {
	want := []string{"0x10004: 0x10020"}
	at := func(b *frameBuilder, addr uint32) { b.addLSDA(func(uint64) []byte { return b.u32(addr) }) }
	for _, tt := range []struct {
		name  string
		build func(b *frameBuilder)
		err   string
	}{
		{"damaged data", func(b *frameBuilder) { at(b, 0x100); at(b, lsdaAddr) }, "not in a section"},
		{"entry without a CIE", func(b *frameBuilder) { b.entry(false, b.u32(1)); at(b, lsdaAddr) }, ".eh_frame+0x"},
		{"entry without an end", func(b *frameBuilder) { at(b, lsdaAddr); b.data = append(b.data, 9, 0, 0, 0) }, "without an end"},
		{"CIE that is not understood", func(b *frameBuilder) {
			at(b, lsdaAddr)
			b.addCIE(1, "zX", 1)
			at(b, lsdaAddr)
		}, "cannot be understood"},
		{"data of many functions", func(b *frameBuilder) {
			at(b, lsdaAddr)
			for range 4 {
				at(b, lsdaAddr+8) // after oneSite, as large as that
			}
		}, "overlap"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := new(frameBuilder)
			b.addCIE(1, "zLR", 0x03, 0x03)
			tt.build(b)
			idle := []byte{peOmit, peOmit, peULEB, 12, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0}
			got, err := pads(unwindImage(t, littleEndian, b.data, slices.Concat(oneSite, idle)))
			checkPads(t, got, err, want, tt.err)
		})
	}
}

func FuzzLSDA(f *testing.F) {
	for _, target := range targets {
		file, err := os.ReadFile(filepath.Join("testdata", "elf", "throw."+target+".so"))
		if err != nil {
			f.Fatal(err)
		}
		frames, _, order := ehFrameOf(f, file)
		f.Add(frames, oneSite, order == binary.ByteOrder(binary.BigEndian))
	}
	b := new(frameBuilder)
	b.addCIE(1, "zLR", 0x03, 0x03)
	b.addLSDA(func(uint64) []byte { return b.u32(lsdaAddr) })
	f.Add(b.data, oneSite, false)
	f.Fuzz(func(t *testing.T, frames, lsda []byte, big bool) {
		im := unwindImage(t, byteOrder(big), frames, lsda)
		n := 0
		_ = im.eachLandingPad(func(_, pad uint64) { // an error is fine
			n++
			if pad < lsdaText || pad >= lsdaEnd {
				t.Errorf("landing pad %#x is not in text", pad)
			}
		})
		if n > len(lsda) {
			t.Errorf("%d landing pads from %d bytes", n, len(lsda))
		}
	})
}
