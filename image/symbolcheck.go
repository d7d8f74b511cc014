package image

import (
	"debug/elf"
	"fmt"
	"strings"

	"xol/image/isa"
)

// MapMismatchError says why the symbols of Options.Symbols cannot be those of
// the file.
type MapMismatchError struct{ What string }

func (e *MapMismatchError) Error() string { return "the symbols are not those of this file: " + e.What }

func mismatch(format string, args ...any) error {
	return &MapMismatchError{fmt.Sprintf(format, args...)}
}

// checkUserTable finds out whether the symbols of Options.Symbols can be the
// file's: a map of another version of a kernel would put every name into the
// middle of something else.
func (im *namedFile) checkUserTable() error {
	if len(im.userTable) == 0 || im.typ == elf.ET_REL {
		return nil
	}
	shift := im.userShift()
	if err := im.checkMachine(im.userTable); err != nil {
		return err
	}
	if im.kind != KindKernel {
		return im.checkInText(im.userTable, shift)
	}
	own, err := im.ownSymbols()
	if err != nil {
		return err
	}
	if len(own) > 0 {
		return im.sameFunctions(im.userTable, own, shift)
	}
	for _, check := range []func([]MapSymbol, uint64) error{im.checkBounds, im.checkInText, im.checkBanner, im.checkEntries} {
		if err := check(im.userTable, shift); err != nil {
			return err
		}
	}
	return nil
}

// symbolsFit reports why a kernel's own symbols, moved by shift, cannot stand
// so, as far as the file's headers tell.
func (im *file) symbolsFit(syms []MapSymbol, shift uint64) error {
	if err := im.checkBounds(syms, shift); err != nil {
		return err
	}
	return im.checkInText(syms, shift)
}

// checkMachine reports that symbols are those of another architecture's
// kernel.
func (im *file) checkMachine(syms []MapSymbol) error {
	owners := make(map[string]*isa.Record)
	for _, r := range im.isas {
		for _, name := range r.Kernel.Symbols {
			owners[name] = r
		}
	}
	foreign := ""
	for i := range syms {
		switch r := owners[syms[i].Name]; {
		case r == nil:
		case r.Machine == im.machine:
			return nil
		case foreign == "":
			foreign = syms[i].Name
		}
	}
	if foreign == "" {
		return nil
	}
	return mismatch("%s is a symbol of %s kernels, and the file is for %s", foreign, owners[foreign].Name, im.isa.Name)
}

// checkBounds compares the symbols around sections and tables with the
// sections that the file has.
func (im *file) checkBounds(syms []MapSymbol, shift uint64) error {
	bounds := make(map[string]*section)
	atEnd := make(map[string]bool)
	add := func(start, stop string, s *section) {
		if s == nil || !s.inMemory() || im.raw {
			return
		}
		bounds[start] = s
		if stop != "" {
			bounds[stop], atEnd[stop] = s, true
		}
	}
	add("_sinittext", "", im.sectionNamed(".init.text"))
	for i := range linuxTables {
		if t := &linuxTables[i]; t.start != "" {
			add(t.start, t.stop, im.sectionNamed(t.section))
		}
	}
	for i := range syms {
		s := bounds[syms[i].Name]
		if s == nil {
			continue
		}
		want, addr := s.addr, syms[i].Addr+shift
		if atEnd[syms[i].Name] {
			want = s.end()
		}
		if addr != want {
			return mismatch("%s is at %#x in them and %s at %#x in the file", syms[i].Name, addr, edgeOf(s, want), want)
		}
	}
	return nil
}

func edgeOf(s *section, addr uint64) string {
	if addr == s.addr {
		return "section " + printable(s.name)
	}
	return "the end of section " + printable(s.name)
}

// mostOutside is how many of the symbols of functions may lie outside
// what is known to be text, in parts of 100: bare images do not tell all of it.
const mostOutside = 5

// checkInText finds out whether symbols of functions lie in text.
func (im *file) checkInText(syms []MapSymbol, shift uint64) error {
	functions, outside, first := 0, 0, -1
	for i := range syms {
		if syms[i].Type|0x20 != 't' {
			continue
		}
		functions++
		addr := syms[i].Addr + shift
		if im.textAt(addr) < 0 && im.textAt(addr-1) < 0 { // symbols of an end included
			if outside++; first < 0 {
				first = i
			}
		}
	}
	if outside == 0 || outside*100 <= functions*mostOutside {
		return nil
	}
	return mismatch("%d of %d symbols of functions lie outside its text, the first of them %s at %#x",
		outside, functions, printable(syms[first].Name), syms[first].Addr+shift)
}

// bannerStart is how the text starts that a kernel says when it starts.
const bannerStart = "Linux version "

// checkBanner finds out whether the kernel's first words are where they should
// be.
func (im *file) checkBanner(syms []MapSymbol, shift uint64) error {
	s, ok := findSymbol(syms, "linux_banner")
	if !ok {
		return nil
	}
	addr := s.Addr + shift
	text, err := im.Data(nil, addr, uint64(len(bannerStart)))
	if err == nil && string(text) == bannerStart {
		return nil
	}
	const where = "linux_banner is at %#x in them, where the file has no %q"
	if version := im.release(); version != "" {
		return mismatch(where+"; its kernel is %s", addr, strings.TrimSpace(bannerStart), version)
	}
	return mismatch(where, addr, strings.TrimSpace(bannerStart))
}

// ownSymbols returns the symbols that the file itself has, at their addresses.
func (im *namedFile) ownSymbols() ([]MapSymbol, error) {
	table := im.sectionOfType(elf.SHT_SYMTAB)
	if table == nil {
		return im.kernelNames()
	}
	var t symtab
	if err := t.take(&im.file, table); err != nil {
		return nil, err
	}
	var list []MapSymbol
	for i := range t.syms {
		if s := &t.syms[i]; t.namesAddress(s) && im.textAt(s.addr) >= 0 {
			list = append(list, MapSymbol{Name: t.name(s), Addr: s.addr, Type: 't'})
		}
	}
	return list, nil
}

// sameFunctions compares the functions of a map, moved by shift, with those of
// the file that have the same name.
func (im *file) sameFunctions(syms, own []MapSymbol, shift uint64) error {
	at := make(map[string]uint64, len(own))
	for i := range own {
		name := own[i].Name
		if _, twice := at[name]; twice || im.textAt(own[i].Addr) < 0 {
			at[name] = 0 // it does not tell which
			continue
		}
		at[name] = own[i].Addr
	}
	times := make(map[string]int, len(syms))
	for i := range syms {
		times[syms[i].Name]++
	}
	compared := 0
	for i := range syms {
		s := &syms[i]
		want := at[s.Name]
		if want == 0 || s.Type|0x20 != 't' || times[s.Name] > 1 {
			continue
		}
		if addr := s.Addr + shift; addr != want {
			return mismatch("%s is at %#x in them and at %#x in the file's own table%s", printable(s.Name), addr, want, im.versionNote())
		}
		compared++
	}
	if compared == 0 {
		return mismatch("no function of the file's own table%s is in them", im.versionNote())
	}
	return nil
}

// versionNote says which kernel it is, where it says so.
func (im *file) versionNote() string {
	if v := im.release(); v != "" {
		return " (Linux " + v + ")"
	}
	return ""
}

// A kernel's map without anything to compare it with has to name places that
// look like the start of functions: most others do not, by far.
const (
	entrySample  = 2000 // symbols that are looked at
	fewestStarts = 75   // in 100 of them
)

// checkEntries finds out whether symbols of functions stand where code starts:
// after padding, or after what does not go on.
func (im *file) checkEntries(syms []MapSymbol, shift uint64) error {
	var entries []uint64
	for i := range syms {
		if syms[i].Type|0x20 == 't' && im.textAt(syms[i].Addr+shift) >= 0 {
			entries = append(entries, syms[i].Addr+shift)
		}
	}
	entries = evenSample(entries, entrySample)
	starts, looked, endsFlow := 0, 0, im.isa.EndsFlow
	for _, addr := range entries {
		var buf [8]byte
		before, err := im.Code(buf[:], addr-uint64(len(buf)), uint64(len(buf)))
		if err != nil {
			continue // the first of its section
		}
		looked++
		if endsFlow != nil && endsFlow(before, im.order == bigEndian) {
			starts++
		}
	}
	if starts*100 >= looked*fewestStarts {
		return nil
	}
	return mismatch("only %d of %d functions that they name start where code starts in the file", starts, looked)
}
