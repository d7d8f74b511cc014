//go:build unicorn

package runtime_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"testing"
	"time"

	"xol/arch"
	"xol/guest"
	"xol/image"
	"xol/internal/isatest"
	"xol/machine"
	"xol/runtime"
)

// snippet is a function of a program made by hand. Its code is hexadecimal: bytes
// where instructions are bytes, else words in the order of numbers.
type snippet struct{ name, code string }

const snippetText = 0x40_0000 // where the first one is

// snippets is a program of such functions, whose text it may write, on a machine with
// a runtime.
type snippets struct {
	*runtime.Runtime
	t   *testing.T
	isa arch.Prober
	m   *guest.Machine
	img *image.Image
	at  map[string]uint64 // where functions are
}

// textOf returns the bytes of code in memory.
func (p *snippets) textOf(code string) []byte {
	p.t.Helper()
	return textOf(p.t, p.isa, code)
}

func textOf(t *testing.T, isa arch.Prober, code string) []byte {
	t.Helper()
	b, err := hex.DecodeString(code)
	if err != nil {
		t.Fatal(err)
	}
	if isa.Align() > 1 && isa.Name() != "ppc64" {
		for w := b; len(w) > 0; w = w[4:] {
			binary.LittleEndian.PutUint32(w, binary.BigEndian.Uint32(w))
		}
	}
	return b
}

// openSnippets returns the program, in which functions are 256 bytes from each other.
func openSnippets(t *testing.T, isa string, functions []snippet, machine guest.Options, opt runtime.Options) *snippets {
	t.Helper()
	p := &snippets{t: t, at: map[string]uint64{}}
	var err error
	if p.isa, err = isatest.Named(isa); err != nil {
		t.Fatal(err)
	}
	file := p.file(functions)
	machine.ISA = p.isa
	if p.m, err = guest.Open(machine); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.m.Close() })
	if _, err = p.m.Load(bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	if p.Runtime, err = runtime.New(p.m, p.isa, opt); err != nil {
		t.Fatal(err)
	}
	p.img, err = image.Open(bytes.NewReader(file), int64(len(file)), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.img.Close() })
	if _, err = p.Load("snippets", p.img); err != nil {
		t.Fatal(err)
	}
	return p
}

var machineOf = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "ppc64": elf.EM_PPC64, "ppc64le": elf.EM_PPC64,
}

// file returns the ELF file of functions.
func (p *snippets) file(functions []snippet) []byte {
	const headers, distance = 0x1000, 0x100
	order, data := binary.ByteOrder(binary.LittleEndian), elf.ELFDATA2LSB
	if p.isa.Name() == "ppc64" {
		order, data = binary.BigEndian, elf.ELFDATA2MSB
	}
	var text []byte
	symbols, names := []elf.Sym64{{}}, []byte{0}
	for i, f := range functions {
		at := uint64(i * distance)
		text = append(text, make([]byte, int(at)-len(text))...)
		code := p.textOf(f.code)
		text = append(text, code...)
		p.at[f.name] = snippetText + at
		symbols = append(symbols, elf.Sym64{
			Name: uint32(len(names)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1,
			Value: snippetText + at, Size: uint64(len(code)),
		})
		names = append(append(names, f.name...), 0)
	}
	text = append(text, make([]byte, distance)...)
	sectionNames := []byte("\x00.text\x00.symtab\x00.strtab\x00")
	symtab := uint64(headers + len(text))
	strtab := symtab + uint64(24*len(symbols))
	sections := strtab + uint64(len(names)+len(sectionNames))
	named := uint32(len(names))
	head := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(data), 1}, Type: uint16(elf.ET_EXEC),
		Machine: uint16(machineOf[p.isa.Name()]), Version: 1, Entry: snippetText, Phoff: 64, Shoff: sections,
		Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64, Shnum: 4, Shstrndx: 3,
	}
	if head.Machine == uint16(elf.EM_PPC64) {
		head.Flags = 2 // ELFv2: no function descriptors
	}
	var out bytes.Buffer
	put := func(v any) {
		if err := binary.Write(&out, order, v); err != nil {
			p.t.Fatal(err)
		}
	}
	put(head)
	put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W | elf.PF_X), Off: headers,
		Vaddr: snippetText, Paddr: snippetText, Filesz: uint64(len(text)), Memsz: uint64(len(text)), Align: 0x1000})
	out.Write(make([]byte, headers-out.Len()))
	out.Write(text)
	put(symbols)
	out.Write(names)
	out.Write(sectionNames)
	put([]elf.Section64{{},
		{Name: named + 1, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR | elf.SHF_WRITE), Addr: snippetText, Off: headers, Size: uint64(len(text)), Addralign: 4},
		{Name: named + 7, Type: uint32(elf.SHT_SYMTAB), Off: symtab, Size: strtab - symtab, Link: 3, Info: 1, Addralign: 1, Entsize: 24},
		{Name: named + 15, Type: uint32(elf.SHT_STRTAB), Off: strtab, Size: sections - strtab, Addralign: 1},
	})
	return out.Bytes()
}

// callTime is far more than a call takes.
const callTime = 10 * time.Second

// call calls a function on a CPU, and returns 32 bits of its result.
func (p *snippets) call(cpu int, name string, args ...uint64) uint64 {
	p.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), callTime)
	defer stop()
	v, err := p.Call(ctx, cpu, machine.Function{Entry: p.at[name]}, args...)
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	return v & 0xffff_ffff
}

// settle has the optimizer finish.
func (p *snippets) settle() {
	p.t.Helper()
	if err := p.Settle(); err != nil {
		p.t.Fatal(err)
	}
}
