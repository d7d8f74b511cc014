//go:build ignore

// Generate writes fixtures: one small ELF file, packed in every way by the
// tools that kernels and modules are packed with (gzip, xz 5.4, zstd, lz4,
// bzip2); and small ELF files with the answers of GNU binutils 2.40.
package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
)

var fixtures = []struct {
	name string
	tool []string
}{
	{"tiny.elf.gz", []string{"gzip", "-9n"}},
	{"tiny.elf.xz", []string{"xz", "--check=crc32", "--lzma2=dict=1MiB"}},               // as modules are
	{"tiny.x86.elf.xz", []string{"xz", "--check=crc32", "--x86", "--lzma2=dict=32MiB"}}, // as x86 kernels are
	{"tiny.powerpc.elf.xz", []string{"xz", "--check=crc64", "--powerpc", "--lzma2=dict=1MiB"}},
	{"tiny.arm64.elf.xz", []string{"xz", "--check=sha256", "--arm64=start=4096", "--lzma2=dict=1MiB"}},
	{"tiny.chain.elf.xz", []string{"xz", "--check=none", "--powerpc", "--x86", "--arm64", "--lzma2=dict=1MiB"}},
	{"tiny.blocks.elf.xz", []string{"xz", "--check=crc64", "--block-size=2000"}},
	{"tiny.delta.elf.xz", []string{"xz", "--delta=dist=4", "--lzma2=dict=1MiB"}},
	{"tiny.elf.zst", []string{"zstd", "-q", "-22", "--ultra"}},
	{"tiny.elf.lz4", []string{"lz4", "-q", "-9"}},
	{"tiny.legacy.elf.lz4", []string{"lz4", "-q", "-l", "-9"}}, // as kernels are
	{"tiny.elf.bz2", []string{"bzip2", "-9"}},
	{"tiny.elf.lzma", []string{"xz", "--format=lzma", "-9"}},
}

func main() {
	plain := tinyELF()
	write("tiny.elf", plain)
	for _, f := range fixtures {
		cmd := exec.Command(f.tool[0], append(f.tool[1:], "-c")...)
		cmd.Stdin = bytes.NewReader(plain)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			log.Fatal(f.name, ": ", err)
		}
		write(f.name, out)
	}
	for _, arch := range []string{"x86_64", "aarch64", "powerpc64", "powerpc64le"} {
		frames(arch)
		assembledLines(arch)
	}
	compiledLines()
}

var frameRange = regexp.MustCompile(`pc=([0-9a-f]+)\.\.([0-9a-f]+)`)

// frames assembles and links frames.s, and writes the ranges that readelf
// finds in its .eh_frame.
func frames(arch string) {
	name := "frames." + arch
	run(arch+"-linux-gnu-as", "-o", name+".o", "frames.s")
	run(arch+"-linux-gnu-ld", "--no-eh-frame-hdr", "-z", "max-page-size=64", "-z", "noseparate-code", "-s", "-o", name+".elf", name+".o")
	os.Remove(name + ".o")
	var list []byte
	for _, m := range frameRange.FindAllSubmatch(run("readelf", "--debug-dump=frames", name+".elf"), -1) {
		list = fmt.Appendf(list, "%s %s\n", m[1], m[2])
	}
	write(name+".txt", list)
}

// compiled are ways to write the debugging information of one and the same
// program.
var compiled = []struct {
	name    string
	flags   []string
	objcopy []string
}{
	{"dwarf2", []string{"-gdwarf-2", "-gstrict-dwarf"}, nil},
	{"dwarf4", []string{"-gdwarf-4"}, nil},
	{"dwarf5", []string{"-gdwarf-5"}, nil},
	{"wide", []string{"-gdwarf-5", "-gdwarf64"}, nil},
	{"compressed", []string{"-gdwarf-5"}, []string{"--compress-debug-sections=zlib"}},
	{"oldcompressed", []string{"-gdwarf-4"}, []string{"--compress-debug-sections=zlib-gnu"}},
	{"noaranges", []string{"-gdwarf-5"}, []string{"-R", ".debug_aranges"}},
	{"noaranges4", []string{"-gdwarf-4"}, []string{"-R", ".debug_aranges"}},
	{"split", []string{"-gdwarf-5", "-gsplit-dwarf"}, nil},
}

// compiledLines writes the program in each way, and what addr2line says of
// every byte of it.
func compiledLines() {
	dir, err := os.Getwd()
	if err != nil {
		log.Fatal(err)
	}
	sources := []string{"lines/main.c", "lines/sub/helper.c"}
	for _, v := range compiled {
		args := append([]string{"-c", "-O1", "-ffreestanding", "-fno-pic", "-fcf-protection=none",
			"-fno-asynchronous-unwind-tables", "-ffile-prefix-map=" + dir + "/lines=/src"}, v.flags...)
		var objects []string
		for i, source := range sources {
			object := fmt.Sprintf("lines%d.o", i)
			run("gcc", append(args, "-o", object, dir+"/"+source)...)
			objects = append(objects, object)
		}
		name := "lines." + v.name
		run("ld", append([]string{"-r", "-o", name + ".o"}, objects...)...)
		run("ld", "-z", "max-page-size=64", "-z", "noseparate-code", "-o", name+".elf", name+".o")
		if v.objcopy != nil {
			run("objcopy", append(v.objcopy, name+".elf")...)
		}
		if v.name == "dwarf5" {
			addr2line("addr2line", name+".elf", "lines.compiled.txt")
		} else {
			os.Remove(name + ".o")
		}
		for _, object := range objects {
			os.Remove(object)
			os.Remove(object[:len(object)-2] + ".dwo")
		}
	}
}

// assembledLines does likewise with lines.s, for any architecture.
func assembledLines(arch string) {
	name := "lines." + arch
	run(arch+"-linux-gnu-as", "-gdwarf-5", "-o", name+".o", "lines/lines.s")
	run(arch+"-linux-gnu-ld", "-z", "max-page-size=64", "-z", "noseparate-code", "-o", name+".elf", name+".o")
	os.Remove(name + ".o")
	addr2line(arch+"-linux-gnu-addr2line", name+".elf", name+".txt")
}

// addr2line writes a line of address, file and line for every fourth byte of
// text.
func addr2line(tool, file, list string) {
	f, err := elf.Open(file)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	args := []string{"-a", "-e", file}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		for addr := s.Addr; addr < s.Addr+s.Size; addr += 4 {
			args = append(args, fmt.Sprintf("%#x", addr))
		}
	}
	var b []byte
	for i, line := range bytes.SplitAfter(run(tool, args...), []byte("\n")) {
		if i%2 == 0 {
			line = bytes.Replace(line, []byte("\n"), []byte(" "), 1)
		}
		b = append(b, line...)
	}
	write(list, b)
}

func run(tool string, args ...string) []byte {
	cmd := exec.Command(tool, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		log.Fatal(tool, ": ", err)
	}
	return out
}

func write(name string, data []byte) {
	if err := os.WriteFile(name, data, 0o644); err != nil {
		log.Fatal(err)
	}
}

// tinyELF returns an executable whose text is no program, but full of what the
// branch filters of xz take for branches of each architecture.
func tinyELF() []byte {
	const headers, text, base = 64 + 56, 7000, 0x400000
	size := uint64(headers + text)
	b := append([]byte("\x7fELF"), 2, 1, 1, 0)
	b = append(b, make([]byte, 8)...)
	for _, v := range []any{
		uint16(2), uint16(62), uint32(1), uint64(base + headers), // ET_EXEC, EM_X86_64, version, entry
		uint64(64), uint64(0), uint32(0), // program and section headers, flags
		uint16(64), uint16(56), uint16(1), uint16(64), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(4096), // PT_LOAD, r-x
	} {
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for len(b) < int(size) {
		b = appendBranch(b, r)
	}
	return b[:size]
}

func appendBranch(b []byte, r *rand.Rand) []byte {
	switch r.IntN(4) {
	case 0: // bytes of which every second may be an x86 opcode, sign or displacement
		for range 16 {
			bytes := [...]byte{0xe8, 0xe9, 0x00, 0xff, byte(r.Uint32())}
			b = append(b, bytes[r.IntN(len(bytes))])
		}
	case 1: // powerpc bl, b
		for range 2 {
			b = binary.BigEndian.AppendUint32(b, 0x48000000|r.Uint32()&0x03fffffd)
		}
	case 2: // arm64 bl and adrp, near and far
		b = binary.LittleEndian.AppendUint32(b, 0x94000000|r.Uint32()&0x03ffffff)
		b = binary.LittleEndian.AppendUint32(b, 0x90000000|r.Uint32()&0x60ffffff)
		b = binary.LittleEndian.AppendUint32(b, 0x90000000|r.Uint32()&0x600fffff)
		b = binary.LittleEndian.AppendUint32(b, 0x90f00000|r.Uint32()&0x600fffff)
	case 3: // what compresses well
		b = append(b, "\x48\x89\xe5\x5d\xc3\x0f\x1f\x40\x00\x90\x90\x90\x90\x90\x90\x90"...)
	}
	return b
}
