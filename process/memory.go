//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openMemory opens the process's memory, as any of its live threads has it.
func (p *Process) openMemory() error {
	p.closeMemory()
	var err error
	for _, path := range p.procPaths("mem") {
		if p.memory, err = os.OpenFile(path, os.O_RDWR, 0); err == nil {
			return nil
		}
	}
	return p.fail(permissionOr(err), "its memory cannot be opened")
}

func permissionOr(err error) error {
	if os.IsPermission(err) {
		return ErrPermission
	}
	return err
}

func (p *Process) closeMemory() {
	if p.memory != nil {
		p.memory.Close()
		p.memory = nil
	}
}

// procPaths returns where a file of proc(5) is for the process: in the folder of the leader,
// and where that has ended, of other threads.
func (p *Process) procPaths(name string) []string {
	paths := []string{fmt.Sprintf("/proc/%d/%s", p.pid, name)}
	for _, th := range p.threads {
		if th.tid != p.pid {
			paths = append(paths, fmt.Sprintf("/proc/%d/task/%d/%s", p.pid, th.tid, name))
		}
	}
	return paths
}

// Read copies memory at addr to dst, whatever the program may do with it. What this package
// has put into text for its own use is not seen.
func (p *Process) Read(dst []byte, addr uint64) error {
	if err := p.read(dst, addr); err != nil {
		return err
	}
	for at, b := range p.space.breaks {
		overlay(dst, addr, b.original, at)
	}
	return nil
}

// overlay copies the part of src, which stands at from, that dst at addr has.
func overlay(dst []byte, addr uint64, src []byte, from uint64) {
	for i := range src {
		if off := from + uint64(i) - addr; off < uint64(len(dst)) {
			dst[off] = src[i]
		}
	}
}

// Write stores src at addr, whatever the program may do there: what is mapped privately
// is copied first, so no file is changed.
func (p *Process) Write(addr uint64, src []byte) error {
	for at, b := range p.space.breaks {
		if at-addr < uint64(len(src)) || addr-at < uint64(len(b.original)) {
			overlay(b.original, at, src, addr)
			src = bytes.Clone(src)
			overlay(src, addr, b.instruction, at)
		}
	}
	return p.write(addr, src)
}

func (p *Process) read(dst []byte, addr uint64) error {
	return p.access(dst, addr, "read", unix.Pread)
}

func (p *Process) write(addr uint64, src []byte) error {
	return p.access(src, addr, "write", unix.Pwrite)
}

func (p *Process) access(data []byte, addr uint64, name string, f func(int, []byte, int64) (int, error)) error {
	if p.ended || p.replaced {
		return p.fail(ErrGone, "")
	}
	if p.memory == nil {
		if err := p.openMemory(); err != nil {
			return err
		}
	}
	for len(data) > 0 {
		n, err := f(int(p.memory.Fd()), data, int64(addr))
		switch {
		case err == unix.EINTR:
			continue
		case err == nil && n == 0: // all threads have ended, or execute another program
			return p.fail(ErrGone, "")
		case err != nil:
			return &AddressError{PID: p.pid, Addr: addr, Access: name, Err: err}
		}
		data, addr = data[n:], addr+uint64(n)
	}
	return nil
}

// ReadWord returns the 8 bytes at addr as a number, in the program's byte order.
func (p *Process) ReadWord(addr uint64) (uint64, error) {
	var b [8]byte
	err := p.Read(b[:], addr)
	return p.order().Uint64(b[:]), err
}

// WriteWord stores a number.
func (p *Process) WriteWord(addr, value uint64) error {
	var b [8]byte
	p.order().PutUint64(b[:], value)
	return p.Write(addr, b[:])
}

func (p *Process) order() binary.ByteOrder { return p.tracer.isa.ByteOrder() }

// ownBreak is a breakpoint of this package, which is not to be seen.
type ownBreak struct {
	original    []byte // what is there otherwise
	instruction []byte
	hit         func(p *Process, th *Thread) error
}

// setBreak puts a breakpoint of this package.
func (p *Process) setBreak(addr uint64, hit func(*Process, *Thread) error) error {
	instruction := p.tracer.layout.Breakpoint
	b := &ownBreak{original: make([]byte, len(instruction)), instruction: instruction, hit: hit}
	if err := p.read(b.original, addr); err != nil {
		return err
	}
	if err := p.write(addr, instruction); err != nil {
		return err
	}
	p.space.breaks[addr] = b
	return nil
}

func (p *Process) removeBreak(addr uint64) error {
	b := p.space.breaks[addr]
	if b == nil {
		return nil
	}
	delete(p.space.breaks, addr)
	return p.write(addr, b.original)
}
