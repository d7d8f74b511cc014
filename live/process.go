package live

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Process is a process with the ELF files that it has mapped to execute.
type Process struct {
	PID   int
	Name  string // as the kernel has it; cut off after 15 bytes
	Files []MappedFile
	Gaps  []Gap

	system System
	memory *os.File // nil where it cannot be read
	other  []mapping
}

// MappedFile is an ELF file that a process has mapped.
type MappedFile struct {
	Name    string // its path, as the process sees it
	Path    string // where it can be opened from here
	Deleted bool   // the name is gone, or is another file's
	Bias    uint64 // to be added to the file's addresses to get those of the process
	text    []mapping
}

// mapping is a line of /proc/N/maps.
type mapping struct {
	lo, hi uint64
	off    uint64
	exec   bool
	id     string // device and inode
	name   string // a path, "[heap]", or nothing
}

// ProcessError says why a process cannot be asked about.
type ProcessError struct {
	PID  int
	What string
	Err  error // nil where there is no more to be said
}

func (e *ProcessError) Error() string {
	text := fmt.Sprintf("process %d %s", e.PID, e.What)
	if e.Err != nil {
		text += ": " + why(e.Err)
	}
	return text
}

// Unwrap returns the error that it is about.
func (e *ProcessError) Unwrap() error { return e.Err }

// OpenProcess reads what a process has mapped. It returns a *ProcessError.
func (s System) OpenProcess(pid int) (*Process, error) {
	p := &Process{PID: pid, system: s}
	if _, err := os.Stat(s.path(p.proc(""))); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, &ProcessError{pid, "is not there", err}
	}
	p.Name, _ = s.line(p.proc("comm"))
	text, err := s.read(p.proc("maps"))
	if err != nil {
		return nil, &ProcessError{pid, "does not show what it has mapped (be root, or its user)", err}
	}
	maps, err := readMaps(text)
	if err != nil {
		return nil, &ProcessError{pid, "has a list of mappings that is damaged", err}
	}
	if len(maps) == 0 {
		return nil, &ProcessError{pid, p.withoutMaps(), nil}
	}
	p.takeFiles(maps)
	if len(p.Files) == 0 {
		return nil, &ProcessError{pid, "has no 64-bit ELF file mapped to execute", p.firstGap()}
	}
	p.openMemory()
	return p, nil
}

func (p *Process) proc(name string) string { return path.Join("/proc", strconv.Itoa(p.PID), name) }

// withoutMaps says what a process is that has nothing mapped.
func (p *Process) withoutMaps() string {
	stat, _ := p.system.line(p.proc("stat"))
	if i := strings.LastIndexByte(stat, ')'); i >= 0 {
		fields := strings.Fields(stat[i+1:])
		const state, flags, kthread = 0, 6, 0x00200000 // [include/linux/sched.h, PF_KTHREAD]
		if len(fields) > state && (fields[state] == "Z" || fields[state] == "X") {
			return "has ended: nothing is mapped any more"
		}
		if len(fields) > flags {
			if n, err := strconv.ParseUint(fields[flags], 10, 64); err == nil && n&kthread != 0 {
				return "is a thread of the kernel, which has no files mapped (--live asks about the kernel)"
			}
		}
	}
	return "has nothing mapped"
}

func (p *Process) firstGap() error {
	if len(p.Gaps) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", p.Gaps[0].Source, p.Gaps[0].Why)
}

// readMaps reads /proc/N/maps [fs/proc/task_mmu.c, show_map_vma].
func readMaps(text []byte) (maps []mapping, err error) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		m, ok := readMapping(strings.TrimSuffix(string(line), "\n"))
		if !ok {
			return nil, &LineError{n, strings.TrimSpace(string(line)), `a mapping ("start-end rwxp offset device inode path")`}
		}
		maps = append(maps, m)
	}
	return maps, nil
}

// readMapping reads a line: five words, spaces, and what may be a path with spaces.
func readMapping(line string) (m mapping, ok bool) {
	var words [5]string
	rest := line
	for i := range words {
		words[i], rest, _ = strings.Cut(strings.TrimLeft(rest, " "), " ")
	}
	from, to, ok := strings.Cut(words[0], "-")
	lo, err1 := hex(from)
	hi, err2 := hex(to)
	off, err3 := hex(words[2])
	if !ok || err1 != nil || err2 != nil || err3 != nil || lo >= hi || len(words[1]) < 4 || words[4] == "" {
		return m, false
	}
	name := strings.ReplaceAll(strings.TrimLeft(rest, " "), `\012`, "\n") // all that is escaped
	return mapping{lo, hi, off, words[1][2] == 'x', words[3] + " " + words[4], name}, true
}

const deleted = " (deleted)"

// takeFiles finds the ELF files in a list of mappings, in its order.
func (p *Process) takeFiles(maps []mapping) {
	byFile := make(map[string][]mapping)
	var order []string
	for _, m := range maps {
		if strings.HasPrefix(m.name, "/") {
			if byFile[m.id] == nil {
				order = append(order, m.id)
			}
			byFile[m.id] = append(byFile[m.id], m)
		} else {
			p.other = append(p.other, m)
		}
	}
	for _, id := range order {
		own := byFile[id]
		text := slices.DeleteFunc(slices.Clone(own), func(m mapping) bool { return !m.exec })
		if len(text) == 0 {
			p.other = append(p.other, own...)
			continue
		}
		f, err := p.open(own[0], text)
		if err != nil {
			p.Gaps = append(p.Gaps, Gap{own[0].name, why(err), "it is left out"})
			p.other = append(p.other, own...)
			continue
		}
		p.Files = append(p.Files, f)
	}
}

// open finds out from where a mapped file can be opened, and where it was put.
func (p *Process) open(first mapping, text []mapping) (MappedFile, error) {
	f := MappedFile{Name: first.name, Path: p.system.path(p.proc("root") + first.name), text: text}
	name, gone := strings.CutSuffix(first.name, deleted)
	if _, err := os.Stat(f.Path); gone && err != nil {
		f.Name, f.Deleted = name, true
		f.Path = p.system.path(fmt.Sprintf("%s/%x-%x", p.proc("map_files"), text[0].lo, text[0].hi))
	}
	bias, err := biasOf(f.Path, text)
	f.Bias = bias
	return f, err
}

var errNoSegmentThere = errors.New("it has no segment where the process has mapped it; it is another file by now")

// biasOf returns how far a file was moved, by its program headers and where its text
// is mapped.
func biasOf(path string, text []mapping) (uint64, error) {
	r, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var ident [elf.EI_NIDENT]byte
	if _, err := io.ReadFull(r, ident[:]); err != nil || string(ident[:4]) != elf.ELFMAG {
		return 0, errors.New("it is no ELF file")
	}
	if elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return 0, errors.New("it is not a 64-bit ELF file; only 64-bit ones are supported")
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return 0, err
	}
	for _, m := range text {
		for _, s := range f.Progs {
			if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 && s.Off < m.off+(m.hi-m.lo) && m.off <= s.Off {
				return m.lo - m.off - (s.Vaddr - s.Off), nil
			}
		}
	}
	return 0, errNoSegmentThere
}

// openMemory opens the memory of the process, to compare text with its file.
func (p *Process) openMemory() {
	f, err := os.Open(p.system.path(p.proc("mem")))
	if err == nil {
		err = readMemory(f, make([]byte, 1), p.Files[0].text[0].lo)
		if err != nil {
			f.Close()
		}
	}
	if err != nil {
		p.Gaps = append(p.Gaps, Gap{p.proc("mem"), why(err), "text is taken to be that of the files"})
		return
	}
	p.memory = f
}

// Close closes what is open.
func (p *Process) Close() error {
	if p.memory == nil {
		return nil
	}
	return p.memory.Close()
}

// readMemory reads at an address, which a file of memory takes for an offset.
func readMemory(f *os.File, b []byte, addr uint64) error {
	if int64(addr) < 0 {
		return errNoSegment
	}
	n, err := f.ReadAt(b, int64(addr))
	if n == len(b) {
		return nil
	}
	return err
}

// Text returns what the process has in memory where code of one of its files is: nil
// where it is the same, or where memory cannot be read. Breakpoints, which trap is one
// of, are those of a debugger or of uprobes, and do not count; their addresses in the
// file are returned.
func (p *Process) Text(f *MappedFile, code []byte, addr uint64, trap []byte) (now []byte, breakpoints []uint64) {
	if p.memory == nil {
		return nil, nil
	}
	now = make([]byte, len(code))
	if err := readMemory(p.memory, now, addr+f.Bias); err != nil {
		return nil, nil
	}
	for i := 0; len(trap) > 0 && i+len(trap) <= len(code); i += len(trap) {
		if own := code[i : i+len(trap)]; bytes.Equal(now[i:i+len(trap)], trap) && !bytes.Equal(own, trap) {
			copy(now[i:], own)
			breakpoints = append(breakpoints, addr+uint64(i))
		}
	}
	if bytes.Equal(now, code) {
		return nil, breakpoints
	}
	return now, breakpoints
}

// FileAt returns the file that has an address of the process in its text, and what
// else is there where none has: "[heap]", a path, or nothing.
func (p *Process) FileAt(addr uint64) (f *MappedFile, what string) {
	for i := range p.Files {
		if slices.ContainsFunc(p.Files[i].text, func(m mapping) bool { return m.lo <= addr && addr < m.hi }) {
			return &p.Files[i], ""
		}
	}
	for _, m := range p.other {
		if m.lo <= addr && addr < m.hi {
			return nil, m.name
		}
	}
	return nil, ""
}

// Find returns the files that a name means, as tracers write it: a path as the process
// sees it, "libc.so.6", or "libc".
func (p *Process) Find(name string) (found []*MappedFile) {
	for i := range p.Files {
		if f := &p.Files[i]; rank(name, f.Name) > 0 {
			found = append(found, f)
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return rank(name, found[i].Name) > rank(name, found[j].Name) })
	return found
}

// rank says how well a name fits a path: 0 not at all.
func rank(name, full string) int {
	base := path.Base(full)
	stem, _, _ := strings.Cut(base, ".so")
	stem = strings.TrimRightFunc(stem, func(r rune) bool { return r == '-' || r == '.' || r >= '0' && r <= '9' })
	switch {
	case name == full:
		return 5
	case strings.Contains(name, "/"):
		return 0
	case name == base:
		return 4
	case strings.HasPrefix(base, name+".so"):
		return 3
	case strings.HasPrefix(base, "lib"+name+".so"):
		return 2
	case name == stem || "lib"+name == stem:
		return 1
	}
	return 0
}
