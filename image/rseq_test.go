package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"testing"
)

// What a table of restartable sequences says that cannot be is left out.
func TestRestartableSequences(t *testing.T) {
	const start, table, size = 0x1ac, 0x2000, 10 // objdump -d
	good, err := os.ReadFile("../instrument/testdata/sequence.elf")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		bytes uint64 // of the sequence, as the table has it
		found bool
	}{
		{"as it is", size, true},
		{"up to the end of the text", 0x1c6 - start, true},
		{"after the end of the text", 0x1c7 - start, false},
		{"without an instruction", 0, false},
		{"longer than all memory", ^uint64(0), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := bytes.Clone(good)
			f, err := elf.NewFile(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			s := f.Section("__rseq_cs")
			if s.Addr != table || s.Size != 32 {
				t.Fatalf("%#x, %d bytes", s.Addr, s.Size)
			}
			binary.LittleEndian.PutUint64(data[s.Offset+16:], c.bytes)
			im, err := Open(bytes.NewReader(data), int64(len(data)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer im.Close()
			got := im.RestartableSequences()
			if found := len(got) == 1 && got[0] == (Range{Addr: start, Size: c.bytes, Section: ".text"}); found != c.found || len(got) > 1 {
				t.Errorf("%+v", got)
			}
		})
	}
}
