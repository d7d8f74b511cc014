package events

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"xol/machine"
)

// ISA is what a Program must know of an instruction set architecture.
type ISA interface {
	RegisterNames
	// FrameConstant returns what the frame of every hit has in a field for which
	// FetchRegister knows no register; ok is false where nothing is known of it.
	FrameConstant(name string, kernel bool) (value uint64, ok bool)
	ByteOrder() binary.ByteOrder
	Convention() *machine.Convention
	Registers() *machine.File
}

const wordSize = 8 // bytes of a word of the stack, and of an address

// Program fetches the arguments of an event. It is immutable and safe for
// concurrent use.
type Program struct {
	event      Event
	fetches    []fetch
	order      binary.ByteOrder
	convention *machine.Convention
	sp         int
	symbols    Symbols
	entryArgs  []uint64 // the numbers of the arguments that Entry keeps
	items      int      // of all values together
}

// UnavailableError says that an event's argument needs what is not there.
type UnavailableError struct {
	Arg  string // its name
	What string // "register %cs", "symbol jiffies"
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("argument %s: there is no %s", e.Arg, e.What)
}

// Compile turns an event that defines a probe into a program. opt is as for
// Parse, but kind and ISA are taken from the other arguments. The errors are
// those of Parse for the line that e.String gives, for an event that was made
// otherwise, and *UnavailableError for a register that is not modelled or a
// symbol that does not exist.
func Compile(e *Event, isa ISA, opt Options) (*Program, error) {
	opt.ISA, opt.Kind = isa, e.Kind
	parsed, err := parse(e.String(), opt)
	if err != nil {
		return nil, err
	}
	if parsed.event.Remove {
		return nil, parsed.fail(0, 0, Invalid)
	}
	p := &Program{
		event: parsed.event, fetches: parsed.fetches, symbols: opt.Symbols,
		order: isa.ByteOrder(), convention: isa.Convention(), sp: isa.Registers().SP,
	}
	for i := range p.fetches {
		f := &p.fetches[i]
		if err := p.link(f, isa); err != nil {
			return nil, err
		}
		p.items += max(f.count, 1)
	}
	return p, nil
}

// link finds what a fetch names.
func (p *Program) link(f *fetch, isa ISA) error {
	switch f.source {
	case fromRegister:
		if int64(f.number) >= 0 {
			return nil
		}
		value, ok := isa.FrameConstant(f.text, p.event.Kind == Kprobe)
		if !ok {
			return &UnavailableError{f.name, "register %" + f.text}
		}
		f.source, f.number = fromImmediate, value
	case fromSymbol:
		if p.symbols == nil {
			return &UnavailableError{f.name, "symbol " + f.text}
		}
		addr, ok := p.symbols.Address(f.text)
		if !ok {
			return &UnavailableError{f.name, "symbol " + f.text}
		}
		f.source, f.number = fromImmediate, addr+f.number
	case fromEntryArg:
		f.number = p.keep(f.number)
	}
	return nil
}

// keep notes that an argument is needed when the function returns, and returns
// its index among those.
func (p *Program) keep(arg uint64) uint64 {
	for i, kept := range p.entryArgs {
		if kept == arg {
			return uint64(i)
		}
	}
	p.entryArgs = append(p.entryArgs, arg)
	return uint64(len(p.entryArgs) - 1)
}

// Event returns the event that p was made of. It must not be changed.
func (p *Program) Event() *Event { return &p.event }

// NeedsEntry says whether Entry has to be called when the function starts.
func (p *Program) NeedsEntry() bool { return len(p.entryArgs) > 0 }

// Entry returns the arguments of the function that starts with the registers r,
// as Hit.Entry needs them when it returns.
func (p *Program) Entry(r machine.Registers, m machine.Memory) []uint64 {
	kept := make([]uint64, len(p.entryArgs))
	for i, n := range p.entryArgs {
		kept[i] = p.argument(n, r, m)
	}
	return kept
}

// Hit is one time that a probe is reached.
type Hit struct {
	Registers machine.Registers
	Memory    machine.Memory
	// Probe is the probe's address: for a return event, that of the function.
	Probe uint64
	// Return is the address that a return event's function returns to.
	Return uint64
	Comm   string   // the task's name
	Entry  []uint64 // what Program.Entry returned; only if NeedsEntry
}

// Record fetches the arguments. Memory that cannot be read makes a value's Fault
// true, but a word of the stack, or an argument there, is 0 then. The error says
// that h.Entry is missing.
func (p *Program) Record(h *Hit) ([]Value, error) {
	if len(h.Entry) < len(p.entryArgs) {
		return nil, &UnavailableError{p.event.Name, "record of the function's entry"}
	}
	values := make([]Value, len(p.fetches))
	items := make([]Item, p.items)
	for i := range p.fetches {
		f := &p.fetches[i]
		n := max(f.count, 1)
		values[i] = Value{Name: f.name, Type: f.typ.name, Array: f.count > 0, format: f.typ.format}
		values[i].Items, items = items[:n:n], items[n:]
		p.fetch(f, h, values[i].Items)
	}
	return values, nil
}

// fetch sets the elements of an array, or the one value.
func (p *Program) fetch(f *fetch, h *Hit, items []Item) {
	value, err := p.load(f, h)
	steps := f.derefs
	if len(steps) > 0 {
		steps = steps[:len(steps)-1] // the last one is the value itself
	}
	for _, d := range steps {
		if err == nil {
			value, err = h.Memory.ReadWord(value + uint64(d.offset))
		}
	}
	for i := range items {
		if err != nil {
			items[i].Fault = true
			continue
		}
		items[i] = p.item(f, h, value, i)
	}
}

// item returns the i-th element; value is where the last dereference starts,
// or the value if there is none.
func (p *Program) item(f *fetch, h *Hit, value uint64, i int) Item {
	if f.fromMemory() {
		value += uint64(f.derefs[len(f.derefs)-1].offset)
	}
	switch {
	case f.typ.format == asString:
		return p.stringItem(f, h, value, i)
	case !f.fromMemory():
		return p.number(f, value)
	}
	var buf [8]byte
	b := buf[:f.typ.size]
	if h.Memory.Read(b, value+uint64(i*f.typ.size)) != nil {
		return Item{Fault: true}
	}
	return p.number(f, p.decode(b))
}

// decode returns the number in b.
func (p *Program) decode(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(p.order.Uint16(b))
	case 4:
		return uint64(p.order.Uint32(b))
	}
	return p.order.Uint64(b)
}

// number makes an Item of a value, cut to its type.
func (p *Program) number(f *fetch, value uint64) Item {
	unused := 64 - 8*f.typ.size
	item := Item{Number: f.bits.of(value << unused >> unused)}
	switch f.typ.format {
	case asSigned:
		item.Number = uint64(int64(value<<unused) >> unused)
	case asSymbol:
		item.Text = symbolText(p.symbols, item.Number)
	}
	return item
}

// stringItem returns the i-th string. A single one is at the address; an array
// is one of addresses there.
func (p *Program) stringItem(f *fetch, h *Hit, addr uint64, i int) Item {
	var err error
	switch {
	case f.source == fromComm && !f.fromMemory():
		return Item{Text: h.Comm}
	case f.source == fromString:
		return Item{Text: f.text}
	case f.typ.name == symStr:
		if f.fromMemory() {
			addr, err = h.Memory.ReadWord(addr)
		}
		if err != nil {
			return Item{Fault: true}
		}
		return Item{Text: symbolText(p.symbols, addr)}
	case f.count > 0 && f.fromMemory():
		addr, err = h.Memory.ReadWord(addr + uint64(i*wordSize))
	case i > 0:
		return Item{Fault: true} // nothing says where a further string is
	}
	if err != nil {
		return Item{Fault: true}
	}
	s, err := readString(h.Memory, addr)
	if err != nil {
		return Item{Fault: true}
	}
	return Item{Text: s}
}

// readString reads up to a zero byte, or MaxString-1 bytes. It takes pieces that
// do not cross a page.
func readString(m machine.Memory, addr uint64) (string, error) {
	const piece = 64
	var s []byte
	for len(s) < MaxString-1 {
		var buf [piece]byte
		b := buf[:piece-addr%piece]
		if err := m.Read(b, addr); err != nil {
			return "", err
		}
		if end := bytes.IndexByte(b, 0); end >= 0 {
			s = append(s, b[:end]...)
			break
		}
		s = append(s, b...)
		addr += uint64(len(b))
	}
	return string(s[:min(len(s), MaxString-1)]), nil
}

// load returns the value that a fetch starts with.
func (p *Program) load(f *fetch, h *Hit) (uint64, error) {
	switch f.source {
	case fromRegister:
		return h.Registers.Reg(int(f.number)), nil
	case fromStackPointer:
		return h.Registers.Reg(p.sp), nil
	case fromStack:
		return p.stackWord(f.number, h.Registers, h.Memory), nil
	case fromResult:
		return h.Registers.Reg(p.convention.Result), nil
	case fromArg:
		return p.argument(f.number, h.Registers, h.Memory), nil
	case fromEntryArg:
		return h.Entry[f.number], nil
	case fromFile:
		return h.Probe - p.event.Offset + f.number, nil
	}
	return f.number, nil // an immediate; strings have none
}

// argument returns the n-th argument of a function that starts, n from 0. Where
// the return address is on the stack, further arguments follow it; elsewhere
// those beyond the registers are 0, as in Linux.
func (p *Program) argument(n uint64, r machine.Registers, m machine.Memory) uint64 {
	in := uint64(len(p.convention.Args))
	switch {
	case n < in:
		return r.Reg(p.convention.Args[n])
	case p.convention.Link < 0:
		return p.stackWord(n-in+1, r, m)
	}
	return 0
}

func (p *Program) stackWord(n uint64, r machine.Registers, m machine.Memory) uint64 {
	v, err := m.ReadWord(r.Reg(p.sp) + n*wordSize)
	if err != nil {
		return 0
	}
	return v
}
