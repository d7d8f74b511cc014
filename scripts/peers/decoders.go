package main

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ulikunitz/xz"
)

// text is what is decoded.
type text struct {
	isa, from string // where the text comes from
	size      int
	raw, elf  string // files with it
}

// mostText is how much of a program's text is decoded.
const mostText = 4 << 20

// machines are the ISAs, by the names of kernels.
var machines = []struct {
	isa, kernel string
	machine     elf.Machine
}{
	{"amd64", "amd64.vmlinux.xz", elf.EM_X86_64}, {"arm64", "arm64.vmlinux.xz", elf.EM_AARCH64}, {"ppc64le", "ppc64el.vmlinux.xz", elf.EM_PPC64},
}

// prepareDecoders builds the decoders and the texts.
func (l *lab) prepareDecoders(ctx context.Context, kernels string) error {
	ours := filepath.Join(l.dir, "decoder")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", ours, "./decoder").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	peers := map[string]string{}
	for name, flags := range map[string][]string{"zydis": {"-lZydis"}, "capstone": {"-lcapstone"}, "llvm": llvmFlags(ctx)} {
		program, err := l.compile(ctx, name, flags...)
		if err != nil {
			l.miss(name, err)
			continue
		}
		peers[name] = program
	}
	disassemblers := l.installed(ctx, "objdump", "llvm-objdump")
	for _, m := range machines {
		t, err := l.textOf(m.isa, filepath.Join(kernels, m.kernel), m.machine)
		if err != nil {
			l.miss("text for "+m.isa, err)
			continue
		}
		l.texts = append(l.texts, t)
		for _, work := range []string{"decode", "text"} {
			for _, peer := range []string{"xol", "x-arch"} {
				l.add(peer+", "+m.isa, 0, execute(ours, peer, m.isa, work, t.raw))
			}
			for _, peer := range []string{"zydis", "capstone", "llvm"} {
				if peers[peer] != "" && (peer != "zydis" || m.isa == "amd64") && (peer != "llvm" || work == "text") {
					l.add(peer+", "+m.isa, 0, execute(peers[peer], m.isa, work, t.raw))
				}
			}
		}
		insts := func() int { return int(l.samples.last("Decode/isa="+m.isa+"/work=text/peer=xol", "insts")) }
		for _, peer := range disassemblers {
			l.add(peer+", "+m.isa, 0, timed("Decode/isa="+m.isa+"/work=text/peer="+peer, insts, "ns/inst", peer, "-d", t.elf))
		}
	}
	return nil
}

func (l *lab) add(name string, rounds int, run func(context.Context, io.Writer) error) {
	l.runners = append(l.runners, &runner{name: name, rounds: rounds, run: run})
}

// installed returns those of the tools that are there.
func (l *lab) installed(ctx context.Context, tools ...string) (there []string) {
	for _, tool := range tools {
		if l.versions[tool] = toolVersion(ctx, tool); l.versions[tool] == "" {
			l.miss(tool, errors.New("it is not installed"))
			continue
		}
		there = append(there, tool)
	}
	return there
}

// llvmFlags are the flags that programs with LLVM are compiled with.
func llvmFlags(ctx context.Context) []string {
	out, err := exec.CommandContext(ctx, "llvm-config", "--cflags", "--ldflags", "--libs").Output()
	if err != nil {
		return []string{"-lLLVM"}
	}
	return strings.Fields(string(out))
}

// toolVersion returns the name and version of a tool.
func toolVersion(ctx context.Context, tool string) string {
	out, err := exec.CommandContext(ctx, tool, "--version").Output()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		switch line = strings.TrimSpace(line); {
		case !strings.ContainsAny(line, "0123456789"):
		case strings.Contains(line, tool):
			return line
		default:
			return tool + ": " + line
		}
	}
	return tool
}

// prepareWhole has a whole file judged, and disassembled by others.
func (l *lab) prepareWhole(ctx context.Context, xol, kernels string) {
	file := filepath.Join(l.dir, "amd64.vmlinux")
	if err := unpack(file, filepath.Join(kernels, machines[0].kernel)); err != nil {
		l.miss("a whole kernel", err)
		return
	}
	l.whole = filepath.Base(file)
	const rounds = 3
	l.add("xol analyze", rounds, timed("Whole/peer=xol", nil, "s/file", xol, "analyze", file))
	for _, peer := range []string{"objdump", "llvm-objdump"} {
		if l.versions[peer] != "" {
			l.add(peer+" of a whole file", rounds, timed("Whole/peer="+peer, nil, "s/file", peer, "-d", file))
		}
	}
}

// textOf writes the text of a kernel, or of this program where there is none, into files.
func (l *lab) textOf(isa, kernel string, m elf.Machine) (t text, err error) {
	t = text{isa: isa, from: "a Linux kernel", raw: filepath.Join(l.dir, isa+".bin"), elf: filepath.Join(l.dir, isa+".elf")}
	file := filepath.Join(l.dir, isa+".kernel")
	if err := unpack(file, kernel); err != nil {
		self, errSelf := os.Executable()
		if errSelf != nil {
			return t, err
		}
		file, t.from = self, "a program written in Go"
	}
	f, err := elf.Open(file)
	if err != nil {
		return t, err
	}
	defer f.Close()
	section := f.Section(".text")
	if f.Machine != m || section == nil {
		return t, errors.New("there is no kernel for it")
	}
	data, err := section.Data()
	if err != nil {
		return t, err
	}
	data = data[:min(len(data), mostText)&^7]
	t.size = len(data)
	return t, errors.Join(os.WriteFile(t.raw, data, 0o644), os.WriteFile(t.elf, asELF(f.Machine, data), 0o644))
}

// unpack unpacks a file packed by xz.
func unpack(to, from string) error {
	packed, err := os.Open(from)
	if err != nil {
		return errors.New(filepath.Base(from) + " is not there")
	}
	defer packed.Close()
	r, err := xz.NewReader(packed)
	if err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// asELF makes an object file of a text.
func asELF(m elf.Machine, text []byte) []byte {
	const names = "\x00.text\x00.shstrtab\x00"
	header := binary.Size(elf.Header64{})
	at := uint64(header + len(text))
	table := (at + uint64(len(names)) + 7) &^ 7
	h := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(m), Version: 1, Shoff: table,
		Ehsize: uint16(header), Shentsize: uint16(binary.Size(elf.Section64{})), Shnum: 3, Shstrndx: 2,
	}
	copy(h.Ident[:], elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1}))
	if m == elf.EM_PPC64 {
		h.Flags = 2 // the second version of the ABI
	}
	var b bytes.Buffer
	write := func(v any) { binary.Write(&b, binary.LittleEndian, v) }
	write(h)
	b.Write(text)
	b.WriteString(names)
	b.Write(make([]byte, int(table)-b.Len()))
	write([3]elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Off: uint64(header), Size: uint64(len(text)), Addralign: 8},
		{Name: 7, Type: uint32(elf.SHT_STRTAB), Off: at, Size: uint64(len(names)), Addralign: 1},
	})
	return b.Bytes()
}
