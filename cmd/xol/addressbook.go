package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"xol/events"
	"xol/session"
)

// addressBook names addresses in processes, by the files that they have mapped.
type addressBook struct {
	modules   map[string]*session.Module // by path
	processes map[int]*mappedFiles
}

// mappedFiles are the executable mappings of a process.
type mappedFiles struct {
	read   time.Time
	ranges []mappedFile
}

type mappedFile struct {
	lo, hi, offset uint64
	path           string
}

func newAddressBook() *addressBook {
	return &addressBook{modules: map[string]*session.Module{}, processes: map[int]*mappedFiles{}}
}

func (b *addressBook) add(m *session.Module) {
	b.modules[m.Path] = m
	delete(b.processes, m.PID) // it has mapped another file
}

// staleMaps is how old the list of a process's mappings may be when an address is not
// in it.
const staleMaps = time.Second

// at returns the mapping that holds an address.
func (b *addressBook) at(pid int, addr uint64) (mappedFile, bool) {
	for {
		p := b.processes[pid]
		fresh := p == nil
		if fresh {
			p = readMaps(pid)
			b.processes[pid] = p
		}
		for _, r := range p.ranges {
			if r.lo <= addr && addr < r.hi {
				return r, true
			}
		}
		if fresh || time.Since(p.read) < staleMaps {
			return mappedFile{}, false
		}
		delete(b.processes, pid)
	}
}

// bias returns what addresses of a module in a process are above those of its file.
func (b *addressBook) bias(pid int, m *session.Module) uint64 {
	if b.processes[pid] == nil {
		b.processes[pid] = readMaps(pid)
	}
	for _, r := range b.processes[pid].ranges {
		if addr, ok := m.Image.AddrOf(r.offset); ok && r.path == m.Path {
			return r.lo - addr
		}
	}
	return m.Bias
}

// lookup names an address as a process has it.
func (b *addressBook) lookup(pid int, addr uint64) (s events.Symbol, offset uint64, ok bool) {
	r, ok := b.at(pid, addr)
	if !ok {
		return events.Symbol{}, 0, false
	}
	m := b.modules[r.path]
	if m == nil {
		return events.Symbol{}, 0, false
	}
	at, ok := m.Image.AddrOf(addr - r.lo + r.offset)
	if !ok {
		return events.Symbol{}, 0, false
	}
	f, ok := m.Analysis.FunctionAt(at)
	if !ok {
		return events.Symbol{}, 0, false
	}
	name, _ := m.Image.Symbolize(f.Addr)
	s = events.Symbol{Name: name, Addr: addr - (at - f.Addr), Size: f.Size, Func: true}
	if !m.Program {
		s.Module = shortFile(m.Path)
	}
	return s, at - f.Addr, true
}

// readMaps reads which files a process has mapped to execute them.
func readMaps(pid int) *mappedFiles {
	p := &mappedFiles{read: time.Now()}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return p
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || !strings.Contains(fields[1], "x") {
			continue
		}
		lo, hi, _ := strings.Cut(fields[0], "-")
		var r mappedFile
		r.lo, _ = strconv.ParseUint(lo, 16, 64)
		r.hi, _ = strconv.ParseUint(hi, 16, 64)
		r.offset, _ = strconv.ParseUint(fields[2], 16, 64)
		r.path = strings.Join(fields[5:], " ")
		p.ranges = append(p.ranges, r)
	}
	return p
}

// taskOf returns the name of a thread and the CPU that it runs on.
func taskOf(pid, tid int) events.Task {
	t := events.Task{Comm: "<...>", PID: tid} // as tracefs has it where the name is lost
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	if err != nil {
		return t
	}
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return t
	}
	t.Comm = string(text[open+1 : end])
	const processor = 39 - 3 // its place among the fields after the name [proc_pid_stat(5)]
	if fields := strings.Fields(string(text[end+1:])); len(fields) > processor {
		t.CPU, _ = strconv.Atoi(fields[processor])
	}
	return t
}
