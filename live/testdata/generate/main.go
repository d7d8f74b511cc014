// Generate writes a small Linux system below the folder system: a kernel of a few
// functions and one module, as /proc, /sys and /boot show them. Everything is made up
// but the formats.
//
// Usage: go run ./live/testdata/generate live/testdata/system
package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Where the kernel was linked, and where it is.
const (
	linked = 0xffffffff81000000
	run    = 0xffffffff9b400000
	module = 0xffffffffc0a00000

	release = "6.12.107+deb13-amd64"
	banner  = "Linux version " + release + " (debian-kernel@lists.debian.org) (x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0, GNU ld (GNU Binutils for Debian) 2.44) #1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1 (2026-08-29)\n"

	page  = 0x1000
	width = 0x40 // bytes of each function
)

// The parts of the kernel, by their distance from its start.
const (
	text     = 0
	rodata   = 1 * page
	data     = 2 * page
	initText = 3 * page
	initEnd  = 4 * page
	end      = 5 * page
)

// Instructions.
const (
	nop5    = "\x0f\x1f\x44\x00\x00"
	endbr64 = "\xf3\x0f\x1e\xfa"
	mov1    = "\xb8\x01\x00\x00\x00" // mov $1,%eax
	mov42   = "\xb8\x2a\x00\x00\x00"
	moves   = "\x48\x89\xf8" // mov %rdi,%rax
	adds    = "\x48\x83\xc0\x07"
	lfence  = "\x0f\xae\xe8"
	nop3    = "\x0f\x1f\x00"
	ret     = "\xc3"
	int3    = "\xcc"
)

// function is one of the kernel or of the module.
type function struct {
	name   string
	file   string // its bytes as they are in the file
	memory string // as they are in memory; empty where they are the same
	ftrace int    // offset of its ftrace site; -1 for none
}

func kernelFunctions() []function {
	jump := "\xe9" + rel32(9*width+5, 0x800) // to a detour buffer
	return []function{
		{"first_demo", ret, "", -1},
		{"vfs_demo", nop5 + mov1 + moves + adds + ret, "", 0},
		{"twin_demo", nop5 + mov1 + ret, "", 0},
		{"twin_demo", nop5 + mov42 + ret, "", 0},
		{"notrace_demo", moves + adds + mov1 + ret, "", -1},
		{"black_demo", nop5 + moves + ret, "", 0},
		{"label_demo", nop5 + nop5 + moves + ret, "", 0},
		{"patched_demo", nop5 + lfence + moves + ret, nop5 + nop3 + moves + ret, 0},
		{"probed_demo", nop5 + mov42 + moves + ret, nop5 + int3 + mov42[1:] + moves + ret, 0},
		{"jumped_demo", nop5 + mov1 + adds + ret, nop5 + jump + adds + ret, 0},
		{"traced_demo", endbr64 + nop5 + moves + ret, endbr64 + "\xe8" + rel32(10*width+4, 0x800) + moves + ret, 4},
		{"both_demo", nop5 + lfence + adds + ret, nop5 + int3 + nop3[1:] + adds + ret, 0},
		{"strange_demo", nop5 + mov1 + ret, nop5 + int3 + "\x05\x00\x00\x00" + ret, 0},
		{"returned_demo", nop5 + moves + "\xe9" + rel32(13*width+8, 0), nop5 + moves + ret + int3 + int3 + int3 + int3, 0},
	}
}

func moduleFunctions() []function {
	return []function{
		{"mod_open", nop5 + mov1 + moves + ret, "", 0},
		{"mod_black", nop5 + moves + ret, "", 0},
		{"vfs_demo", nop5 + mov42 + ret, "", 0},
	}
}

// rel32 is the displacement of a jump or call of 5 bytes.
func rel32(from, to int) string {
	return string(binary.LittleEndian.AppendUint32(nil, uint32(int32(to-from-5))))
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: generate DIR")
	}
	dir := os.Args[1]
	put := func(name string, content []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	put("proc/version", []byte(banner))
	put("proc/sys/kernel/osrelease", []byte(release+"\n"))
	put("proc/kallsyms", []byte(kallsyms()))
	put("proc/kcore", kcore())
	put("boot/vmlinuz-"+release, vmlinux())
	put("boot/config-"+release, []byte(config))
	put("proc/config.gz", packed(config))
	for name, text := range lists() {
		put("sys/kernel/"+name, []byte(text))
	}
	for name, addr := range moduleSections {
		put("sys/module/demo_mod/sections/"+name, fmt.Appendf(nil, "0x%016x\n", addr))
	}
}

const config = `# Linux/x86 6.12.107 Kernel Configuration
CONFIG_PREEMPTION=y
CONFIG_MITIGATION_RETPOLINE=y
CONFIG_X86_KERNEL_IBT=y
CONFIG_KPROBES_ON_FTRACE=y
# CONFIG_KPROBE_EVENTS_ON_NOTRACE is not set
CONFIG_DYNAMIC_FTRACE=y
CONFIG_FPROBE=y
`

func packed(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	return b.Bytes()
}

var moduleSections = map[string]uint64{
	".text": module, ".init.text": module + 0x100000, ".rodata": module + page, "__jump_table": module + page + 0x100, ".data": module + 2*page,
}

// lists are what tracefs and debugfs show.
func lists() map[string]string {
	var addrs, names strings.Builder
	k, m := uint64(run), uint64(module)
	list := func(fns []function, base uint64, suffix string) {
		for i, f := range fns {
			if f.ftrace >= 0 {
				fmt.Fprintf(&addrs, "%x %s%s\n", base+uint64(i*width+f.ftrace), f.name, suffix)
				fmt.Fprintf(&names, "%s%s\n", f.name, suffix)
			}
		}
	}
	list(kernelFunctions(), k, "")
	list(moduleFunctions(), m, " [demo_mod]")
	return map[string]string{
		"tracing/available_filter_functions_addrs": addrs.String(),
		"tracing/available_filter_functions":       names.String(),
		"debug/kprobes/blacklist": fmt.Sprintf("0x%x-0x%x\tblack_demo\n0x%x-0x%x\tmod_black\n",
			k+5*width, k+6*width, m+width, m+2*width),
		"debug/kprobes/list": fmt.Sprintf("%x  k  probed_demo+0x5    \n%x  k  jumped_demo+0x5    [OPTIMIZED]\n%x  r  traced_demo+0x4    [FTRACE]\n%x  k  both_demo+0x5    \n%x  k  strange_demo+0x5    \n%x  k  mod_open+0xa  demo_mod [DISABLED]\n",
			k+8*width+5, k+9*width+5, k+10*width+4, k+11*width+5, k+12*width+5, m+10),
	}
}

// symbol is one of the kernel, by its distance from the start.
type symbol struct {
	name   string
	letter byte
	at     uint64
}

func kernelSymbols() []symbol {
	syms := []symbol{{"_text", 'T', text}, {"_stext", 'T', text}}
	for i, f := range kernelFunctions() {
		letter := byte('T')
		if f.name == "twin_demo" {
			letter = 't'
		}
		syms = append(syms, symbol{f.name, letter, text + uint64(i*width)})
	}
	return append(syms,
		symbol{"_etext", 'T', rodata},
		symbol{"linux_banner", 'D', rodata},
		symbol{"__start___ex_table", 'R', rodata + 0x200}, symbol{"__stop___ex_table", 'R', rodata + 0x200},
		symbol{"__start___jump_table", 'R', rodata + 0x300}, symbol{"__stop___jump_table", 'R', rodata + 0x310},
		symbol{"__end_rodata", 'R', data},
		symbol{"_sdata", 'D', data}, symbol{"demo_data", 'd', data}, symbol{"_edata", 'D', data + 0x100},
		symbol{"__init_begin", 'D', initText}, symbol{"_sinittext", 'T', initText}, symbol{"init_demo", 't', initText},
		symbol{"_einittext", 'T', initText + width}, symbol{"__alt_instructions", 'D', initText + 0x200},
		symbol{"__alt_instructions_end", 'D', initText + 0x21c}, symbol{"exit_demo", 't', initText + 0x400},
		symbol{"__init_end", 'D', initEnd}, symbol{"_end", 'B', end},
	)
}

func kallsyms() string {
	var b strings.Builder
	for _, s := range kernelSymbols() {
		fmt.Fprintf(&b, "%016x %c %s\n", uint64(run)+s.at, s.letter, s.name)
	}
	for i, f := range moduleFunctions() {
		fmt.Fprintf(&b, "%016x t %s\t[demo_mod]\n", uint64(module)+uint64(i*width), f.name)
	}
	fmt.Fprintf(&b, "%016x d mod_data\t[demo_mod]\n", uint64(module)+2*page)
	fmt.Fprintf(&b, "%016x t bpf_prog_6deef7357e7b4530\t[bpf]\n", uint64(module)+8*page)
	return b.String()
}

// code lays functions side by side.
func code(fns []function, size int, memory bool) []byte {
	b := bytes.Repeat([]byte(int3), size)
	for i, f := range fns {
		bytesOf := f.file
		if memory && f.memory != "" {
			bytesOf = f.memory
		}
		copy(b[i*width:], bytesOf)
	}
	return b
}

// constants is the page of constants, the same wherever the kernel is: its tables
// are relative to themselves.
func constants() []byte {
	b := make([]byte, page)
	copy(b, banner)
	at, site := rodata+0x300, text+6*width+5
	binary.LittleEndian.PutUint32(b[0x300:], uint32(int32(site-at)))
	binary.LittleEndian.PutUint32(b[0x304:], uint32(int32(site+8-(at+4))))
	binary.LittleEndian.PutUint64(b[0x308:], uint64(data-(at+8)))
	return b
}

// kcore is the memory of the running kernel.
func kcore() []byte {
	kernel := slices.Concat(code(kernelFunctions(), page, true), constants(), make([]byte, end-data))
	mod := slices.Concat(code(moduleFunctions(), page, true), make([]byte, 2*page))
	segments := []struct {
		addr, size, off uint64
		content         []byte
	}{
		{0xffff888000000000, 1 << 46, 0x7f0000000000, nil}, // all of the machine's memory, far in the file
		{run, uint64(len(kernel)), page, kernel},
		{module, uint64(len(mod)), page + uint64(len(kernel)), mod},
	}
	const ehdr, phdr = 64, 56
	b := make([]byte, page)
	copy(b, elf.ELFMAG)
	b[elf.EI_CLASS], b[elf.EI_DATA], b[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	le := binary.LittleEndian
	le.PutUint16(b[16:], uint16(elf.ET_CORE))
	le.PutUint16(b[18:], uint16(elf.EM_X86_64))
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[32:], ehdr)
	le.PutUint16(b[52:], ehdr)
	le.PutUint16(b[54:], phdr)
	le.PutUint16(b[56:], uint16(len(segments)))
	for i, s := range segments {
		p := b[ehdr+i*phdr:]
		le.PutUint32(p, uint32(elf.PT_LOAD))
		le.PutUint32(p[4:], uint32(elf.PF_R|elf.PF_W|elf.PF_X))
		le.PutUint64(p[8:], s.off)
		le.PutUint64(p[16:], s.addr)
		le.PutUint64(p[32:], s.size)
		le.PutUint64(p[40:], s.size)
	}
	for _, s := range segments {
		b = append(b, s.content...)
	}
	return b
}

// section is one of the kernel's file.
type section struct {
	name    string
	typ     elf.SectionType
	flags   elf.SectionFlag
	addr    uint64
	content []byte
	link    uint32
	entsize uint64
}

// vmlinux is the file that the kernel was started from.
func vmlinux() []byte {
	const alloc, exec = elf.SHF_ALLOC, elf.SHF_ALLOC | elf.SHF_EXECINSTR
	le := binary.LittleEndian
	var mcount, blacklist, alts, names, symtab []byte
	for i, f := range kernelFunctions() {
		if f.ftrace >= 0 {
			mcount = le.AppendUint64(mcount, linked+uint64(i*width+f.ftrace))
		}
	}
	blacklist = le.AppendUint64(blacklist, linked+5*width)
	const altAt, replacement = initText + 0x200, initText + 0x300
	for _, site := range []int{7*width + 5, 11*width + 5} { // lfence becomes a NOP for some CPUs
		at := altAt + len(alts)
		alts = le.AppendUint32(alts, uint32(int32(site-at)))
		alts = le.AppendUint32(alts, uint32(int32(replacement-(at+4))))
		alts = le.AppendUint16(alts, 7*32+1)
		alts = le.AppendUint16(alts, 0)
		alts = append(alts, 3, 3)
	}
	names = append(names, 0)
	symtab = append(symtab, make([]byte, 24)...)
	sectionOf := func(at uint64) uint16 {
		switch {
		case at < rodata:
			return 1
		case at < data:
			return 2
		case at < initText:
			return 3
		}
		return 4
	}
	for _, s := range kernelSymbols() {
		info := byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_NOTYPE)
		if s.letter|0x20 == 't' {
			info = byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_FUNC)
		}
		symtab = le.AppendUint32(symtab, uint32(len(names)))
		symtab = append(symtab, info, 0)
		symtab = le.AppendUint16(symtab, sectionOf(s.at))
		symtab = le.AppendUint64(symtab, linked+s.at)
		symtab = le.AppendUint64(symtab, 0)
		names = append(append(names, s.name...), 0)
	}
	sections := []section{
		{},
		{".text", elf.SHT_PROGBITS, exec, linked + text, code(kernelFunctions(), page, false), 0, 0},
		{".rodata", elf.SHT_PROGBITS, alloc, linked + rodata, constants(), 0, 0},
		{".data", elf.SHT_PROGBITS, alloc, linked + data, make([]byte, 0x100), 0, 0},
		{".init.text", elf.SHT_PROGBITS, exec, linked + initText, code([]function{{"init_demo", moves + ret, "", -1}}, width, false), 0, 0},
		{".altinstructions", elf.SHT_PROGBITS, alloc, linked + altAt, alts, 0, 0},
		{".altinstr_replacement", elf.SHT_PROGBITS, exec, linked + replacement, []byte(nop3), 0, 0},
		{"__mcount_loc", elf.SHT_PROGBITS, alloc, linked + initText + 0x500, mcount, 0, 0},
		{"_kprobe_blacklist", elf.SHT_PROGBITS, alloc, linked + initText + 0x800, blacklist, 0, 0},
		{"__ksymtab", elf.SHT_PROGBITS, alloc, linked + initText + 0x900, make([]byte, 12), 0, 0},
		{".symtab", elf.SHT_SYMTAB, 0, 0, symtab, 11, 24},
		{".strtab", elf.SHT_STRTAB, 0, 0, names, 0, 0},
	}
	shstr := []byte{0}
	at := make([]uint32, len(sections)+1)
	sections = append(sections, section{".shstrtab", elf.SHT_STRTAB, 0, 0, nil, 0, 0})
	for i := 1; i < len(sections); i++ {
		at[i] = uint32(len(shstr))
		shstr = append(append(shstr, sections[i].name...), 0)
	}
	sections[len(sections)-1].content = shstr
	b := make([]byte, 64)
	headers := make([]byte, 64*len(sections))
	for i, s := range sections {
		if i == 0 {
			continue
		}
		for len(b)%16 != 0 {
			b = append(b, 0)
		}
		h := headers[64*i:]
		le.PutUint32(h, at[i])
		le.PutUint32(h[4:], uint32(s.typ))
		le.PutUint64(h[8:], uint64(s.flags))
		le.PutUint64(h[16:], s.addr)
		le.PutUint64(h[24:], uint64(len(b)))
		le.PutUint64(h[32:], uint64(len(s.content)))
		le.PutUint32(h[40:], s.link)
		le.PutUint32(h[44:], 1)
		le.PutUint64(h[48:], 1)
		le.PutUint64(h[56:], s.entsize)
		b = append(b, s.content...)
	}
	for len(b)%16 != 0 {
		b = append(b, 0)
	}
	copy(b, elf.ELFMAG)
	b[elf.EI_CLASS], b[elf.EI_DATA], b[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	le.PutUint16(b[16:], uint16(elf.ET_EXEC))
	le.PutUint16(b[18:], uint16(elf.EM_X86_64))
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[40:], uint64(len(b)))
	le.PutUint16(b[52:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], uint16(len(sections)))
	le.PutUint16(b[62:], uint16(len(sections)-1))
	return append(b, headers...)
}
