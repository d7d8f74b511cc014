package events

import "strings"

// format is how a value is written.
type format uint8

const (
	asUnsigned format = iota
	asSigned
	asHex
	asChar
	asSymbol // the symbol at an address
	asString
)

// fetchType is a type of fetch arguments.
type fetchType struct {
	name   string
	size   int // bytes of a number
	format format
	kernel bool // not for uprobes
}

// types are those of Linux, the default first
// [kernel/trace/trace_probe.c, probe_fetch_types].
var types = [...]fetchType{
	{name: "x64", size: 8, format: asHex},
	{name: "x32", size: 4, format: asHex},
	{name: "x16", size: 2, format: asHex},
	{name: "x8", size: 1, format: asHex},
	{name: "u8", size: 1, format: asUnsigned},
	{name: "u16", size: 2, format: asUnsigned},
	{name: "u32", size: 4, format: asUnsigned},
	{name: "u64", size: 8, format: asUnsigned},
	{name: "s8", size: 1, format: asSigned},
	{name: "s16", size: 2, format: asSigned},
	{name: "s32", size: 4, format: asSigned},
	{name: "s64", size: 8, format: asSigned},
	{name: "char", size: 1, format: asChar},
	{name: "symbol", size: 8, format: asSymbol, kernel: true},
	{name: "string", format: asString},
	{name: "ustring", format: asString},
	{name: symStr, format: asString, kernel: true},
}

// symStr is the type of a string that names the symbol of an address.
const symStr = "symstr"

var defaultType = &types[0]

// containers are the types of bitfields.
var containers = map[uint64]string{8: "u8", 16: "u16", 32: "u32", 64: "u64"}

// findType returns the type of that name, nil for none. A bitfield has the type
// of its container.
func findType(name string, kind Kind) *fetchType {
	if strings.HasPrefix(name, "b") {
		_, container, _ := strings.Cut(name, "/")
		bits, ok := parseUint(container, 64)
		if !ok {
			return nil
		}
		name = containers[bits]
	}
	for i := range types {
		t := &types[i]
		if t.name == name && (kind == Kprobe || !t.kernel) {
			return t
		}
	}
	return nil
}

// bitfield is a part of a container; its width is 0 for all of it.
type bitfield struct {
	width, offset uint // bits; the offset from the lowest one
}

// parseBitfield reads b<width>@<offset>/<container>, a container of size bytes.
func parseBitfield(s string, size int) (f bitfield, ok bool) {
	width, rest := prefixUint(s[1:])
	if width == 0 || !strings.HasPrefix(rest, "@") {
		return f, false
	}
	tail := rest[1:]
	offset, rest := prefixUint(tail)
	if rest == tail || !strings.HasPrefix(rest, "/") {
		return f, false
	}
	bits := uint64(size) * 8
	if width > bits || offset > bits-width {
		return f, false
	}
	return bitfield{uint(width), uint(offset)}, true
}

// of returns the field's value in a container of size bytes.
func (f bitfield) of(container uint64) uint64 {
	if f.width == 0 {
		return container
	}
	return container >> f.offset & (1<<f.width - 1)
}
