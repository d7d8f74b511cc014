package toy_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"xol/analyze"
	"xol/arch"
	"xol/arch/internal/toy"
	"xol/decode"
	"xol/image"
	"xol/image/isa"
	"xol/relocate"
)

// What the ISA has of what package arch asks for.
var (
	_ arch.ISA           = toy.ISA{}
	_ relocate.Relocator = toy.ISA{}
)

const (
	text   = 0x401000
	helper = text + 0x1c
)

// program is what is at text.
var program = []byte{
	1, 1, 5, 0, // main: add r1, 5
	2, 1, 3, 0, // jz r1, out
	4, 5, 0, 0, // call helper
	3, 0xfd, 0xff, 0xff, // jump main
	5, 0, 0, 0, // out: ret
	0, 0, 0, 0, 0, 0, 0, 0, // padding
	1, 2, 1, 0, // helper: add r2, 1
	9, 0, 0, 0, // no instruction
	5, 0, 0, 0, // ret
}

// file returns an ELF file with the program and the symbols of its two
// functions.
func file(t *testing.T) []byte {
	t.Helper()
	const ehdr, shdr, sym = 64, 64, 24
	names := "\x00.text\x00.symtab\x00.strtab\x00main\x00helper\x00"
	name := func(s string) uint32 { return uint32(strings.Index(names, "\x00"+s+"\x00") + 1) }
	symbols := []elf.Sym64{
		{},
		{Name: name("main"), Info: byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_FUNC), Shndx: 1, Value: text, Size: 0x14},
		{Name: name("helper"), Info: byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_FUNC), Shndx: 1, Value: helper, Size: 12},
	}
	table := uint64(ehdr + len(program))
	strings := table + uint64(sym*len(symbols))
	sections := []elf.Section64{
		{},
		{Name: name(".text"), Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Addr: text, Off: ehdr, Size: uint64(len(program)), Addralign: 4},
		{Name: name(".symtab"), Type: uint32(elf.SHT_SYMTAB), Off: table, Size: uint64(sym * len(symbols)), Link: 3, Info: 1, Entsize: sym, Addralign: 8},
		{Name: name(".strtab"), Type: uint32(elf.SHT_STRTAB), Off: strings, Size: uint64(len(names)), Addralign: 1},
	}
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(toy.Machine), Version: uint32(elf.EV_CURRENT), Entry: text,
		Shoff: strings + uint64(len(names)), Ehsize: ehdr, Shentsize: shdr, Shnum: uint16(len(sections)), Shstrndx: 3,
	}
	var b bytes.Buffer
	for _, part := range []any{header, program, symbols, []byte(names), sections} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func open(t *testing.T) *image.Image {
	t.Helper()
	data := file(t)
	img, err := image.Open(bytes.NewReader(data), int64(len(data)), image.Options{ISAs: isa.Set{&toy.Record}})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// lines collects what show has to say of each function.
func lines(t *testing.T, a *analyze.Analysis, show func(r *analyze.Result) []string) (all []string) {
	t.Helper()
	err := analyze.Each(context.Background(), a, a.Functions(), show, func(of []string) error {
		all = append(all, of...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAnalyze reads and judges a program of an ISA that only this test knows.
func TestAnalyze(t *testing.T) {
	img := open(t)
	a, err := analyze.New(img, analyze.Options{ISAs: append(arch.Supported(), toy.ISA{}), Optimize: true, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := lines(t, a, func(r *analyze.Result) (lines []string) {
		lines = append(lines, fmt.Sprintf("%s: %d bytes at %#x", r.Function.Name, r.Function.Size, r.Function.Addr))
		for i := range r.Insts {
			line := a.ISA.Text(&r.Insts[i], img.Symbolize)
			if v := &r.Verdicts[i]; v.Rule != nil {
				line += ": " + v.Rule.ID
			} else {
				line += fmt.Sprintf(": %v, jump %v", v.Exec, r.Optimize[i].Region)
			}
			lines = append(lines, line)
		}
		return lines
	})
	want := []string{
		"main: 20 bytes at 0x401000",
		"add r1, 5: slot, jump 4",
		"jz r1, 0x401010 <main+0x10>: slot, jump 4",
		"call 0x40101c <helper+0x0>: emulate, jump 4",
		"jump 0x401000 <main+0x0>: slot, jump 4",
		"ret: slot, jump 4",
		"helper: 12 bytes at 0x40101c",
		"add r2, 1: slot, jump 4",
		".word 0x09000000: toy/not-instruction",
		"ret: slot, jump 4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestUnknown has the toy's file read without the toy.
func TestUnknown(t *testing.T) {
	var unknown *arch.UnknownError
	if _, err := analyze.New(open(t), analyze.Options{}); !errors.As(err, &unknown) {
		t.Errorf("got %v", err)
	}
}

// TestMissing asks for what the toy does not have.
func TestMissing(t *testing.T) {
	const want = "xol can analyze toy code but cannot run its code"
	if _, err := arch.Execution(toy.ISA{}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestRelocate moves each instruction to another address, alone and together.
func TestRelocate(t *testing.T) {
	const to = 0x410000
	insts := decode.Sweep(toy.ISA{}, nil, program[:20], text)
	for _, c := range []struct {
		name        string
		first, last int
		form        relocate.Form
		back        relocate.Back
		want        []string
	}{
		{"kept", 0, 1, relocate.Slot, relocate.BackJump, []string{"add r1, 5", "jump 0x401004"}},
		{"re-based", 2, 3, relocate.Slot, relocate.BackNone, []string{"call 0x40101c"}},
		{"inside", 0, 4, relocate.Region, relocate.BackJump, []string{
			"add r1, 5", "jz r1, 0x401010", "call 0x40101c", "jump 0x410000", "jump 0x401010"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p relocate.Plan
			if err := (toy.ISA{}).Plan(&p, insts[c.first:c.last], relocate.Options{Form: c.form, Back: c.back}); err != nil {
				t.Fatal(err)
			}
			code := make([]byte, p.Max)
			n, err := toy.ISA{}.Encode(code, &p, to)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, inst := range decode.Sweep(toy.ISA{}, nil, code[:n], to) {
				got = append(got, toy.ISA{}.Text(&inst, nil))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestOutOfReach moves a branch further than it reaches.
func TestOutOfReach(t *testing.T) {
	insts := decode.Sweep(toy.ISA{}, nil, program[4:8], text+4)
	var p relocate.Plan
	if err := (toy.ISA{}).Plan(&p, insts, relocate.Options{Back: relocate.BackNone}); err != nil {
		t.Fatal(err)
	}
	if _, err := (toy.ISA{}).Encode(make([]byte, 8), &p, text+1<<20); !errors.Is(err, relocate.ErrRange) {
		t.Errorf("got %v", err)
	}
}
