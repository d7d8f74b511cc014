//go:build unicorn

package guest

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"

	"xol/arch"
	"xol/image/isa"
	"xol/machine"
)

// Program is an ELF file in a machine's memory.
type Program struct {
	Entry   uint64
	m       *Machine
	symbols map[string]elf.Symbol
	opd     elf.SectionIndex // section of ELFv1 function descriptors; 0 where there is none
}

// SymbolError says that a program has no symbol of a name.
type SymbolError struct{ Name string }

func (e *SymbolError) Error() string { return "guest: no symbol " + e.Name }

// Load puts a statically linked ELF file, of the machine's ISA, into memory at
// the addresses that its segments name. Nothing is relocated.
func (m *Machine) Load(r io.ReaderAt) (*Program, error) { return m.LoadAt(r, 0) }

// LoadAt puts an ELF file into memory bias above the addresses that its segments
// name, a multiple of PageSize. Of a position-independent one that needs no
// libraries, the pointers are relocated.
func (m *Machine) LoadAt(r io.ReaderAt, bias uint64) (*Program, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	f, err := m.open(r, bias)
	if err != nil {
		return nil, err
	}
	for _, s := range f.Progs {
		if s.Type != elf.PT_LOAD || s.Memsz == 0 {
			continue
		}
		s.Vaddr += bias
		if err := m.loadSegment(s); err != nil {
			return nil, err
		}
	}
	if err := m.relocate(f, bias); err != nil {
		return nil, err
	}
	return m.program(f, bias)
}

// Loaded returns the program of an ELF file that is in memory already: the machine
// is a copy of one that it was loaded into.
func (m *Machine) Loaded(r io.ReaderAt, bias uint64) (*Program, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	f, err := m.open(r, bias)
	if err != nil {
		return nil, err
	}
	return m.program(f, bias)
}

// open reads the headers of a file that can be loaded.
func (m *Machine) open(r io.ReaderAt, bias uint64) (*elf.File, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	of, err := arch.ByMachine(f.Machine, f.ByteOrder)
	if err != nil {
		return nil, err
	}
	fixed := f.Type == elf.ET_EXEC && bias == 0
	if of.Name() != m.ISA.Name() || !fixed && f.Type != elf.ET_DYN || bias%PageSize != 0 {
		return nil, fmt.Errorf("guest: %v for %s, %#x above its place; want %v for %s", f.Type, of.Name(), bias, elf.ET_EXEC, m.ISA.Name())
	}
	return f, nil
}

func (m *Machine) program(f *elf.File, bias uint64) (*Program, error) {
	p := &Program{Entry: f.Entry + bias, m: m}
	return p, p.readSymbols(f, bias)
}

func (m *Machine) loadSegment(s *elf.Prog) error {
	if s.Vaddr+s.Memsz < s.Vaddr || s.Filesz > s.Memsz {
		return fmt.Errorf("guest: a segment of %#x bytes at %#x", s.Memsz, s.Vaddr)
	}
	if err := m.mapSegment(s); err != nil {
		return err
	}
	return each(s.Vaddr, s.Filesz, func(at, size uint64) error {
		_, err := s.ReadAt(m.memory.pages[at&^pageMask].mem[at&pageMask:][:size], int64(at-s.Vaddr))
		return err
	})
}

// mapSegment maps what the segments before have not; what they share, may be
// used as either says.
func (m *Machine) mapSegment(s *elf.Prog) error {
	perm := permOfSegment(s.Flags)
	return each(s.Vaddr, s.Memsz, func(at, size uint64) error {
		if p := m.memory.pages[at&^pageMask]; p != nil {
			return m.Protect(at, size, p.perm|perm)
		}
		return m.Map(at, size, perm)
	})
}

func permOfSegment(flags elf.ProgFlag) (p machine.Perm) {
	if flags&elf.PF_R != 0 {
		p |= machine.PermRead
	}
	if flags&elf.PF_W != 0 {
		p |= machine.PermWrite
	}
	if flags&elf.PF_X != 0 {
		p |= machine.PermExec
	}
	return p
}

// relocate fills in the pointers of a position-independent file.
func (m *Machine) relocate(f *elf.File, bias uint64) error {
	s := f.Section(".rela.dyn")
	if s == nil || f.Type != elf.ET_DYN {
		return nil
	}
	data, err := s.Data()
	if err != nil {
		return err
	}
	const size = 24
	relative := isa.Known().Find(f.Machine).Loader.Relative
	for ; len(data) >= size; data = data[size:] {
		off, info, addend := f.ByteOrder.Uint64(data), f.ByteOrder.Uint64(data[8:]), f.ByteOrder.Uint64(data[16:])
		if uint32(info) != relative {
			return fmt.Errorf("guest: a relocation of type %d at %#x", uint32(info), off)
		}
		if err := m.WriteWord(off+bias, addend+bias); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) readSymbols(f *elf.File, bias uint64) error {
	symbols, err := f.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return err
	}
	p.symbols = make(map[string]elf.Symbol, len(symbols))
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			s.Value += bias
			p.symbols[s.Name] = s
		}
	}
	for i, s := range f.Sections {
		if s.Name == ".opd" {
			p.opd = elf.SectionIndex(i)
		}
	}
	return nil
}

// Symbol returns the address and size of a symbol, or a *SymbolError.
func (p *Program) Symbol(name string) (addr, size uint64, err error) {
	s, ok := p.symbols[name]
	if !ok {
		return 0, 0, &SymbolError{name}
	}
	return s.Value, s.Size, nil
}

// Function returns the function of that name, through its descriptor where it
// has one, or a *SymbolError.
func (p *Program) Function(name string) (machine.Function, error) {
	s, ok := p.symbols[name]
	if !ok {
		return machine.Function{}, &SymbolError{name}
	}
	if p.opd == 0 || s.Section != p.opd {
		return machine.Function{Entry: s.Value}, nil
	}
	var words [3]uint64
	for i := range words {
		var err error
		if words[i], err = p.m.ReadWord(s.Value + uint64(8*i)); err != nil {
			return machine.Function{}, err
		}
	}
	return machine.Function{Entry: words[0], TOC: words[1], Env: words[2]}, nil
}
