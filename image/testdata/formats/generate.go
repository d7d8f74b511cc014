//go:build ignore

// Generate writes fixtures: one small ELF file, packed in every way by the
// tools that kernels and modules are packed with (gzip, xz 5.4, zstd, lz4,
// bzip2); and small ELF files with the answers of GNU binutils 2.40.
package main

import (
	"bytes"
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
	}
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
