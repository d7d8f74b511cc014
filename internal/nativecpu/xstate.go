//go:build linux && amd64

package nativecpu

import (
	"encoding/binary"

	"xol/arch/amd64"
	"xol/machine"
)

// Places in the legacy region and the header of the XSAVE area, in bytes
// [Intel SDM, volume 1, 13.4].
const (
	xsaveFCW    = 0
	xsaveFSW    = 2
	xsaveFTW    = 4 // one bit a register: 1 is in use
	xsaveMXCSR  = 24
	xsaveST     = 32
	xsaveXMM    = 160
	xsaveHeader = 512
	xsaveMin    = 576
)

// Components of the extended state.
const (
	componentX87    = 0
	componentSSE    = 1
	componentAVX    = 2
	componentMask   = 5
	componentZMMHi  = 6
	componentZMM16  = 7
	xstateComponent = 0xd // leaf of cpuid
)

// xstate moves registers between a State and an XSAVE area, at the offsets
// that the CPU names.
type xstate struct {
	file *machine.File
	area []byte
	// offsets of the components in the area, 0 where the CPU has none.
	offsets [8]int
	enabled uint64
}

func newXstate(c *child, f *machine.File) (*xstate, error) {
	x := &xstate{file: f, area: make([]byte, 16384), enabled: 1<<componentX87 | 1<<componentSSE}
	n, err := c.regset(ptraceGetRegset, x.area)
	if err != nil {
		return nil, err
	}
	x.area = x.area[:n]
	for _, component := range []int{componentAVX, componentMask, componentZMMHi, componentZMM16} {
		size, offset, _, _, err := c.cpuid(xstateComponent, uint32(component))
		if err != nil {
			return nil, err
		}
		if size > 0 && int(offset+size) <= n {
			x.offsets[component] = int(offset)
			x.enabled |= 1 << component
		}
	}
	return x, nil
}

// part is a piece of a register and its place in the area.
type part struct {
	register, from, size int
	offset               int
}

// parts calls move for every piece of every vector, mask and x87 register that
// the CPU has.
func (x *xstate) parts(move func(part)) {
	for i := range 8 {
		move(part{amd64.ST0 + i, 0, 10, xsaveST + 16*i})
		if o := x.offsets[componentMask]; o != 0 {
			move(part{amd64.K0 + i, 0, 8, o + 8*i})
		}
	}
	for i := range 16 {
		move(part{amd64.ZMM0 + i, 0, 16, xsaveXMM + 16*i})
		if o := x.offsets[componentAVX]; o != 0 {
			move(part{amd64.ZMM0 + i, 16, 16, o + 16*i})
		}
		if o := x.offsets[componentZMMHi]; o != 0 {
			move(part{amd64.ZMM0 + i, 32, 32, o + 32*i})
		}
		if o := x.offsets[componentZMM16]; o != 0 {
			move(part{amd64.ZMM0 + 16 + i, 0, 64, o + 64*i})
		}
	}
}

// store fills the area from s.
func (x *xstate) store(s machine.State) {
	x.parts(func(p part) { copy(x.area[p.offset:][:p.size], x.file.Bytes(s, p.register)[p.from:]) })
	binary.LittleEndian.PutUint16(x.area[xsaveFCW:], uint16(x.file.Word(s, amd64.FCW)))
	binary.LittleEndian.PutUint16(x.area[xsaveFSW:], uint16(x.file.Word(s, amd64.FSW)))
	binary.LittleEndian.PutUint32(x.area[xsaveMXCSR:], uint32(x.file.Word(s, amd64.MXCSR)))
	x.area[xsaveFTW] = abridge(uint16(x.file.Word(s, amd64.FTW)))
	binary.LittleEndian.PutUint64(x.area[xsaveHeader:], x.enabled)
}

// load fills s from the area. Components in their initial state are zero.
func (x *xstate) load(s machine.State) {
	inUse := binary.LittleEndian.Uint64(x.area[xsaveHeader:])
	x.parts(func(p part) {
		value := x.file.Bytes(s, p.register)[p.from:][:p.size]
		if inUse>>x.component(p.offset)&1 == 0 {
			clear(value)
			return
		}
		copy(value, x.area[p.offset:][:p.size])
	})
	x.file.SetWord(s, amd64.FCW, uint64(binary.LittleEndian.Uint16(x.area[xsaveFCW:])))
	x.file.SetWord(s, amd64.FSW, uint64(binary.LittleEndian.Uint16(x.area[xsaveFSW:])))
	x.file.SetWord(s, amd64.MXCSR, uint64(binary.LittleEndian.Uint32(x.area[xsaveMXCSR:])))
	x.file.SetWord(s, amd64.FTW, uint64(expand(x.area[xsaveFTW])))
}

// component returns the component that an offset belongs to.
func (x *xstate) component(offset int) int {
	switch {
	case offset < xsaveXMM:
		return componentX87
	case offset < xsaveHeader:
		return componentSSE
	}
	found := componentAVX
	for c, o := range x.offsets {
		if o != 0 && o <= offset && o > x.offsets[found] {
			found = c
		}
	}
	return found
}

// abridge turns a tag word, two bits a register with 3 for empty, into a bit a
// register with 1 for in use.
func abridge(tags uint16) (used byte) {
	for i := range 8 {
		if tags>>(2*i)&3 != 3 {
			used |= 1 << i
		}
	}
	return used
}

func expand(used byte) (tags uint16) {
	for i := range 8 {
		if used>>i&1 == 0 {
			tags |= 3 << (2 * i)
		}
	}
	return tags
}
