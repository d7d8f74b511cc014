package image

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// lineHeader builds the header of a version 4 program with two directories and
// three files, and puts code after it.
func lineHeader(code ...byte) []byte {
	files := []byte("sub\x00/abs\x00\x00")
	for i, name := range []string{"a.c", "b.h", "c.h"} {
		files = append(append(files, name...), 0, byte(i), 0, 0) // directory, time, size
	}
	files = append(files, 0)
	// Lengths of opcodes 1 to 13; the last is unknown to us and has 2 operands.
	parameters := []byte{1, 1, 1, 0xfb, 14, 14, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2}
	body := append([]byte{4, 0}, binary.LittleEndian.AppendUint32(nil, uint32(len(parameters)+len(files)))...)
	body = slices.Concat(body, parameters, files, code)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// lineHeader5 builds that of version 5, with lists of directories and files
// that are given as they are written.
func lineHeader5(lists string) []byte {
	parameters := []byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}
	body := append([]byte{5, 0, 8, 0}, binary.LittleEndian.AppendUint32(nil, uint32(len(parameters)+len(lists)))...)
	body = slices.Concat(body, parameters, []byte(lists))
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// setAddress is an extended opcode.
func setAddress(addr uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{0, 9, 2}, addr)
}

var endOfSequence = []byte{0, 1, 1}

func TestLineProgram(t *testing.T) {
	code := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	for _, tt := range []struct {
		name string
		code []byte
		want string
	}{
		{"copy", code(setAddress(0x1000), []byte{1}, []byte{2, 4}, endOfSequence),
			"0x1000 /src/a.c:1 stmt\n0x1004 end\n"},
		{"special opcode", code(setAddress(0x1000), []byte{14 + 5 + 7 + 14*3}, endOfSequence), // line 1+7, address +3
			"0x1003 /src/a.c:8 stmt\n0x1003 end\n"},
		{"advance of line, back and forth", code(setAddress(0x1000), []byte{3, 0xe4, 0x00, 1, 3, 0x7f, 2, 1, 1}, endOfSequence),
			"0x1000 /src/a.c:101 stmt\n0x1001 /src/a.c:100 stmt\n0x1001 end\n"},
		{"files, statements", code(setAddress(0x1000), []byte{4, 2, 6, 1, 2, 1, 4, 3, 6, 1, 2, 1}, endOfSequence),
			"0x1000 /src/sub/b.h:1\n0x1001 /abs/c.h:1 stmt\n0x1002 end\n"},
		{"const and fixed advance", code(setAddress(0x1000), []byte{8, 1, 9, 0x34, 0x12, 1}, endOfSequence),
			"0x1011 /src/a.c:1 stmt\n0x2245 /src/a.c:1 stmt\n0x2245 end\n"},
		{"what tells nothing", code(setAddress(0x1000), []byte{5, 3, 7, 10, 11, 12, 1, 13, 0x81, 0x01, 2}, []byte{0, 3, 4, 5, 6}, []byte{0, 1, 0x80}, []byte{1}, endOfSequence),
			"0x1000 /src/a.c:1 stmt\n0x1000 end\n"},
		{"file that is not listed", code(setAddress(0x1000), []byte{4, 99, 1, 2, 1}, endOfSequence),
			"0x1000 :1 stmt\n0x1001 end\n"},
		{"sequences out of order", code(setAddress(0x3000), []byte{1, 2, 1}, endOfSequence, setAddress(0x1000), []byte{3, 1, 1, 2, 1}, endOfSequence),
			"0x1000 /src/a.c:2 stmt\n0x1001 end\n0x3000 /src/a.c:1 stmt\n0x3001 end\n"},
		{"code that was left out", code(setAddress(0), []byte{1, 2, 1}, endOfSequence, setAddress(0x1000), []byte{1, 2, 1}, endOfSequence),
			"0x1000 /src/a.c:1 stmt\n0x1001 end\n"},
		{"sequence without an end", code(setAddress(0x1000), []byte{1, 2, 1}, endOfSequence, setAddress(0x3000), []byte{1}),
			"0x1000 /src/a.c:1 stmt\n0x1001 end\n"},
		{"address of 4 bytes", code([]byte{0, 5, 2, 0, 0x10, 0, 0}, []byte{1}, endOfSequence),
			"0x1000 /src/a.c:1 stmt\n0x1000 end\n"},
		{"empty", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := newLineProgram(lineHeader(tt.code...), littleEndian, "/src", lineStrings{})
			if err != nil {
				t.Fatal(err)
			}
			rows, err := p.run(func(addr uint64) bool { return addr != 0 })
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, r := range rows.rows {
				switch {
				case r.file&rowEnd != 0:
					fmt.Fprintf(&got, "%#x end\n", r.addr)
				case r.file&rowStatement != 0:
					fmt.Fprintf(&got, "%#x %s:%d stmt\n", r.addr, rows.files[r.file&rowFile], r.line)
				default:
					fmt.Fprintf(&got, "%#x %s:%d\n", r.addr, rows.files[r.file&rowFile], r.line)
				}
			}
			if got.String() != tt.want {
				t.Errorf("got\n%swant\n%s", got.String(), tt.want)
			}
		})
	}
}

func TestLineProgramForms(t *testing.T) {
	strs := lineStrings{str: []byte("\x00in str\x00"), lineStr: []byte("in line_str")}
	p, err := newLineProgram(lineHeader5(
		"\x01\x01\x08\x02/src\x00sub\x00"+ // directories: a string each
			"\x04\x01\x1f\x02\x0b\x05\x1e\x03\x09\x01"+"\x00\x00\x00\x00\x01"+"0123456789abcdef"+"\x02xx"), // line_strp, data1, data16, block
		littleEndian, "/elsewhere", strs)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.path(0), "/src/sub/in line_str"; got != want {
		t.Errorf("path %q, want %q", got, want)
	}
	p, err = newLineProgram(lineHeader5("\x00\x00"+"\x04\x01\x0e\x02\x0f\x03\x06\x04\x07\x01"+"\x01\x00\x00\x00\x00"+"1234"+"12345678"), littleEndian, "/src", strs)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.path(0), "/src/in str"; got != want {
		t.Errorf("path %q, want %q", got, want)
	}
}

func TestLineProgramRefuses(t *testing.T) {
	edit := func(off int, b byte) []byte {
		h := lineHeader(1)
		h[off] = b
		return h
	}
	for _, tt := range []struct {
		name string
		data []byte
	}{
		{"empty", nil},
		{"longer than the section", edit(1, 1)},
		{"version 1", edit(4, 1)},
		{"version 6", edit(4, 6)},
		{"header beyond the end", edit(7, 0x10)},
		{"line range 0", edit(14, 0)},
		{"operands beyond the end", edit(15, 255)},
		{"directories without an end", lineHeader()[:32]},
		{"2^63 directories", lineHeader5("\x01\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f")},
		{"many directories that take no room", lineHeader5("\x00\x7f\x00\x00" + strings.Repeat("x", 200))},
		{"unknown form", lineHeader5("\x01\x01\x77\x01abc\x00\x00\x00")},
		{"string without an end", lineHeader5("\x01\x01\x08\x01abc")},
		{"block beyond the end", lineHeader5("\x01\x03\x09\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00")},
	} {
		if _, err := newLineProgram(tt.data, littleEndian, "/src", lineStrings{}); err == nil {
			t.Errorf("%s: no error", tt.name)
		}
	}
	for _, code := range [][]byte{
		{0}, {0, 0}, {0, 9, 2, 0}, {2}, {2, 0x80}, {9, 1}, {13, 1}, append([]byte{3}, bytes.Repeat([]byte{0x80}, 20)...),
	} {
		p, err := newLineProgram(lineHeader(code...), littleEndian, "/src", lineStrings{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.run(func(uint64) bool { return true }); err == nil {
			t.Errorf("opcodes % x: no error", code)
		}
	}
}

func FuzzLineProgram(f *testing.F) {
	f.Add(lineHeader(slices.Concat(setAddress(0x1000), []byte{1, 60, 70, 4, 2, 200}, endOfSequence)...), false)
	f.Add(lineHeader5("\x01\x01\x08\x02/src\x00sub\x00\x02\x01\x1f\x02\x0b\x01\x00\x00\x00\x00\x01"), false)
	f.Fuzz(func(t *testing.T, data []byte, big bool) {
		p, err := newLineProgram(data, byteOrder(big), "/src", lineStrings{str: []byte("s\x00"), lineStr: []byte("l\x00")})
		if err != nil {
			return
		}
		rows, err := p.run(func(addr uint64) bool { return addr != 0 })
		if err != nil {
			return
		}
		for _, r := range rows.rows {
			if int(r.file&rowFile) >= len(rows.files) {
				t.Fatalf("row %+v of %d files", r, len(rows.files))
			}
			rows.find(r.addr)
		}
	})
}
