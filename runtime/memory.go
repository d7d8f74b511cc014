package runtime

import (
	"xol/machine"
)

// program is memory as the program may use it.
type program struct{ m machine.Machine }

var _ machine.Memory = program{}

// accessError says which page must not be accessed so.
type accessError struct {
	page   uint64
	access machine.Access
}

func (e *accessError) Error() string { return "runtime: " + e.access.String() + " not allowed" }

// check returns an *accessError for the first page of [addr, addr+size) that the
// program may not access so.
func (p program) check(addr, size uint64, a machine.Access) error {
	for page := addr &^ (pageSize - 1); page < addr+size; page += pageSize {
		if p.m.Perm(page)&a.Perm() == 0 {
			return &accessError{page, a}
		}
	}
	return nil
}

func (p program) Read(dst []byte, addr uint64) error {
	if err := p.check(addr, uint64(len(dst)), machine.AccessRead); err != nil {
		return err
	}
	return p.m.Read(dst, addr)
}

func (p program) Write(addr uint64, src []byte) error {
	if err := p.check(addr, uint64(len(src)), machine.AccessWrite); err != nil {
		return err
	}
	return p.m.Write(addr, src)
}

func (p program) ReadWord(addr uint64) (uint64, error) {
	if err := p.check(addr, wordSize, machine.AccessRead); err != nil {
		return 0, err
	}
	return p.m.ReadWord(addr)
}

func (p program) WriteWord(addr, value uint64) error {
	if err := p.check(addr, wordSize, machine.AccessWrite); err != nil {
		return err
	}
	return p.m.WriteWord(addr, value)
}

const (
	pageSize = 4096
	wordSize = 8
)
