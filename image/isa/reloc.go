package isa

import (
	"encoding/binary"
)

// Value says what a relocation computes, in the terms of the ABIs: S is the
// symbol's address, A the addend, P the place's address, G that of the
// symbol's entry in the global offset table.
type Value uint8

// What relocations compute.
const (
	Opaque       Value = iota // what only the linker knows: the field keeps its bytes
	Nothing                   // a note to the linker
	AbsoluteS                 // S + A
	RelativeS                 // S + A - P
	PageS                     // Page(S + A) - Page(P)
	AbsoluteG                 // G + A
	RelativeG                 // G + A - P
	PageG                     // Page(G + A) - Page(P)
	TOCRelativeS              // S + A - TOC
	TOCRelativeG              // G + A - TOC
	TOCBase                   // TOC
	SizeS                     // the symbol's size + A
)

// Howto is what a type of relocation does.
type Howto struct {
	Value Value
	Field *Field // nil where it fills nothing
	Shift uint8  // the value's lowest bits that the field leaves out
	Round bool   // the field makes up for a lower part that is taken as signed
}

// Field says which bits a relocation fills.
type Field struct {
	Size   uint64 // bytes that the relocation speaks of, from its offset
	Branch bool   // of a branch, which goes to a function's local entry point
	// Low is the number of the value's lowest bits that count before it is
	// shifted; 0 means all.
	Low uint8
	// Put puts a value into the field that b starts with.
	Put func(b []byte, v uint64, order binary.ByteOrder)
}

// The fields that data has: whole bytes, in the file's byte order.
var (
	Data8  = &Field{Size: 1, Put: func(b []byte, v uint64, _ binary.ByteOrder) { b[0] = byte(v) }}
	Data16 = &Field{Size: 2, Put: put16}
	Data32 = &Field{Size: 4, Put: func(b []byte, v uint64, order binary.ByteOrder) { order.PutUint32(b, uint32(v)) }}
	Data64 = &Field{Size: 8, Put: func(b []byte, v uint64, order binary.ByteOrder) { order.PutUint64(b, v) }}
)

func put16(b []byte, v uint64, order binary.ByteOrder) { order.PutUint16(b, uint16(v)) }

// IsData reports whether the field is one that data has.
func (f *Field) IsData() bool { return f == Data8 || f == Data16 || f == Data32 || f == Data64 }

// Fill puts a value into the field that b starts with.
func (h *Howto) Fill(b []byte, v uint64, order binary.ByteOrder) {
	if h.Round {
		v += 1 << (h.Shift - 1)
	}
	if h.Field.Low > 0 {
		v &= 1<<h.Field.Low - 1
	}
	h.Field.Put(b, uint64(int64(v)>>h.Shift), order)
}

// insert puts the bits of mask of a value into the word that b starts with.
func insert(b []byte, value, mask uint32, order binary.ByteOrder) {
	order.PutUint32(b, order.Uint32(b)&^mask|value&mask)
}
