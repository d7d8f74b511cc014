//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"debug/elf"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"xol/machine"
)

// How the program and its interpreter were put into memory: /proc/PID/auxv.
type auxiliary struct {
	interpreter uint64 // where it starts; 0 where there is none
	headers     uint64 // the program's headers
	count       uint64
	entry       uint64
}

func (p *Process) auxiliary() (a auxiliary, err error) {
	const (
		atHeaders = 3
		atCount   = 5
		atBase    = 7
		atEntry   = 9
	)
	var text []byte
	for _, path := range p.procPaths("auxv") {
		if text, err = os.ReadFile(path); err == nil && len(text) > 0 {
			break
		}
	}
	order := p.order()
	for ; len(text) >= 16; text = text[16:] {
		value := order.Uint64(text[8:])
		switch order.Uint64(text) {
		case atHeaders:
			a.headers = value
		case atCount:
			a.count = value
		case atBase:
			a.interpreter = value
		case atEntry:
			a.entry = value
		}
	}
	return a, err
}

// watchStart finds out when the program's libraries are there: the interpreter calls
// _dl_debug_state when it has changed the list of them.
func (p *Process) watchStart(th *Thread) error {
	a, err := p.auxiliary()
	if err != nil || a.interpreter == 0 {
		return nil // a program without libraries
	}
	p.starting = true
	p.dynamic = p.dynamicSection(a)
	th.calls = p.tracer.options.EachMapping
	at, ok := p.interpreterSymbol(a.interpreter, "_dl_debug_state")
	if !ok {
		// An interpreter that does not tell: its work is done when the program starts.
		return p.setBreak(a.entry, func(p *Process, th *Thread) error {
			if err := p.removeBreak(a.entry); err != nil {
				return err
			}
			return p.mapped(th)
		})
	}
	return p.setBreak(at, (*Process).mapped)
}

// findLoader does it for a program that runs already, by the address that the interpreter
// has left for debuggers.
func (p *Process) findLoader() error {
	a, err := p.auxiliary()
	if err != nil || a.interpreter == 0 {
		return nil
	}
	if p.dynamic = p.dynamicSection(a); p.dynamic == 0 {
		return nil
	}
	if debug, ok := p.debugArea(); ok {
		const atBreakpoint = 16
		if at, err := p.ReadWord(debug + atBreakpoint); err == nil && at != 0 {
			return p.setBreak(at, (*Process).mapped)
		}
		return nil
	}
	// It has not come so far.
	p.starting = true
	if at, ok := p.interpreterSymbol(a.interpreter, "_dl_debug_state"); ok {
		return p.setBreak(at, (*Process).mapped)
	}
	return nil
}

// Starting reports whether the libraries that the program was linked with are not all
// there yet: it has done nothing of its own.
func (p *Process) Starting() bool { return p.starting }

// mapped handles the breakpoint of the interpreter.
func (p *Process) mapped(th *Thread) error {
	const (
		atState    = 24
		consistent = 0
	)
	if debug, ok := p.debugArea(); ok {
		var state [4]byte
		if p.Read(state[:], debug+atState) == nil && p.order().Uint32(state[:]) != consistent {
			return nil // it is about to change the list
		}
	}
	if p.starting {
		p.starting = false
		for _, th := range p.threads {
			th.calls = false
		}
	}
	return p.tracer.handler.Mapped(p, th)
}

// dynamicSection returns where the program's dynamic section is; 0 where it has none.
func (p *Process) dynamicSection(a auxiliary) uint64 {
	const size = 56 // of a program header
	headers := make([]byte, size*min(a.count, 1<<10))
	if p.Read(headers, a.headers) != nil {
		return 0
	}
	var bias, dynamic uint64
	order := p.order()
	for h := headers; len(h) >= size; h = h[size:] {
		addr := order.Uint64(h[16:])
		switch elf.ProgType(order.Uint32(h)) {
		case elf.PT_PHDR:
			bias = a.headers - addr
		case elf.PT_DYNAMIC:
			dynamic = addr
		}
	}
	if dynamic == 0 {
		return 0
	}
	return bias + dynamic
}

// debugArea returns where the interpreter keeps struct r_debug; false where it has not
// said so yet.
func (p *Process) debugArea() (uint64, bool) {
	if p.dynamic == 0 {
		return 0, false
	}
	const most = 1 << 10
	for i := range uint64(most) {
		tag, err := p.ReadWord(p.dynamic + 16*i)
		if err != nil || elf.DynTag(tag) == elf.DT_NULL {
			break
		}
		if elf.DynTag(tag) == elf.DT_DEBUG {
			value, err := p.ReadWord(p.dynamic + 16*i + 8)
			return value, err == nil && value != 0
		}
	}
	return 0, false
}

// interpreterSymbol returns the address of a function of the interpreter, by the file that
// is mapped at base.
func (p *Process) interpreterSymbol(base uint64, name string) (uint64, bool) {
	maps, err := p.maps()
	if err != nil {
		return 0, false
	}
	for _, m := range maps {
		if !m.Holds(base) {
			continue
		}
		f, err := p.openMapped(m)
		if err != nil {
			return 0, false
		}
		defer f.Close()
		return functionOf(f, base, name)
	}
	return 0, false
}

// openMapped opens the file of a mapping: by its name as the process sees it, if that is
// still the same file, or through the mapping.
func (p *Process) openMapped(m Mapping) (*os.File, error) {
	if f, err := os.Open(fmt.Sprintf("/proc/%d/root%s", p.pid, m.Path)); err == nil {
		var stat unix.Stat_t
		if unix.Fstat(int(f.Fd()), &stat) == nil && stat.Ino == m.Inode {
			return f, nil
		}
		f.Close()
	}
	return os.Open(fmt.Sprintf("/proc/%d/map_files/%x-%x", p.pid, m.Lo, m.Hi))
}

func functionOf(f *os.File, base uint64, name string) (uint64, bool) {
	file, err := elf.NewFile(f)
	if err != nil {
		return 0, false
	}
	first := ^uint64(0)
	for _, h := range file.Progs {
		if h.Type == elf.PT_LOAD {
			first = min(first, h.Vaddr&^(pageSize-1))
		}
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, false
	}
	for _, s := range symbols {
		if s.Name == name && s.Section != elf.SHN_UNDEF {
			return base + s.Value - first, true
		}
	}
	return 0, false
}

// called handles a stop at a system call during start-up.
func (t *Tracer) called(th *Thread) error {
	info, err := getSyscallInfo(th.tid)
	if err != nil {
		return nil // it has been killed
	}
	switch info.op {
	case syscallEntry:
		th.inCall = info.data
	case syscallExit:
		if info.data[1]&0xff == 0 && mapsText(th.inCall) {
			return t.handler.Mapped(th.process, th)
		}
	}
	return nil
}

// mapsText reports whether a system call makes a part of a file executable.
func mapsText(call [7]uint64) bool {
	const (
		prot = 1 + 2
		file = 1 + 4
	)
	if machine.Perm(call[prot])&machine.PermExec == 0 {
		return false
	}
	switch call[0] {
	case unix.SYS_MMAP:
		return int32(call[file]) >= 0
	case unix.SYS_MPROTECT:
		return true
	}
	return false
}
