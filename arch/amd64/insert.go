package amd64

import (
	"encoding/binary"
	"math"

	"xol/detour"
	"xol/machine"
	"xol/relocate"
)

// InsertSize returns bounds of an insertion's size; see detour.Inserter.
func (ISA) InsertSize(in *detour.Insertion) (least, most int, err error) {
	near, far := inserter{reach: relocate.Near}, inserter{reach: relocate.Far}
	small, large := *in, *in
	small.Timer.Scale, large.Timer.Scale = 0, math.MaxUint64
	if err := near.insert(&small); err != nil {
		return 0, 0, err
	}
	if err := far.insert(&large); err != nil {
		return 0, 0, err
	}
	return len(near.code), len(far.code), nil
}

// InsertStack returns bounds of the stack that an insertion uses; see detour.Inserter.
func (ISA) InsertStack(in *detour.Insertion) (least, most int) {
	near, far := inserter{reach: relocate.Near}, inserter{reach: relocate.Far}
	if near.insert(in) != nil || far.insert(in) != nil {
		return 0, 0
	}
	return near.stack, far.stack
}

// AppendInsertion appends an insertion; see detour.Inserter. The flags are kept by lahf
// and sahf, which every CPU since 2006 has in 64-bit mode, and which take a sixth of
// the time of pushf and popf.
func (ISA) AppendInsertion(code []byte, at uint64, in *detour.Insertion) ([]byte, error) {
	c := inserter{code: code, at: at - uint64(len(code))}
	if err := c.insert(in); err != nil {
		return code, err
	}
	return c.code, nil
}

// Committed reports whether an insertion has done what it is for; see detour.Inserter.
// It has with the one locked increment of a count and of a histogram, and with the
// store of the time at the start.
func (a ISA) Committed(code []byte, _ machine.Registers) bool {
	for len(code) > 0 {
		inst, ok := a.next(&code)
		if !ok {
			return false
		}
		d := DetailOf(&inst)
		increments := d.Map() == MapOneByte && d.Opcode() == 0xff && d.Reg() == 0 && d.Prefixes()&PrefixLock != 0
		storesStart := OpOf(&inst) == OpMoveStore && d.Mod() == 1 && d.RM() == RSI && displacement(&inst) == entryStart
		if increments || storesStart {
			return true
		}
	}
	return false
}

// inserter writes an insertion.
type inserter struct {
	code  []byte
	at    uint64 // the address of code
	stack int    // bytes that are used below the stack pointer
	reach relocate.Reach
}

func (c *inserter) insert(in *detour.Insertion) error {
	switch in.Action {
	case detour.Count:
		c.count(in)
		return nil
	case detour.StartTimer, detour.StopTimer, detour.StopTimerAtJump:
		bits, err := in.Timer.Slots()
		if err != nil {
			return err
		}
		c.timer(in, bits)
		return nil
	}
	return detour.ErrInsertion
}

func (c *inserter) add(code ...byte) { c.code = append(c.code, code...) }

// add32 adds an instruction that ends with a number of four bytes.
func (c *inserter) add32(v uint32, code ...byte) {
	c.code = binary.LittleEndian.AppendUint32(append(c.code, code...), v)
}

// displacement returns that of an operand in an instruction of size bytes, which ends
// with it, and whether it reaches.
func (c *inserter) displacement(target uint64, size int) (disp uint32, reaches bool) {
	far := target - (c.at + uint64(len(c.code)+size))
	return uint32(far), c.reach == relocate.Near || c.reach != relocate.Far && fitsSigned(far)
}

// address loads a register below r8 with an address.
func (c *inserter) address(reg byte, v uint64) {
	const leaSize = 7
	if disp, reaches := c.displacement(v, leaSize); reaches {
		c.add32(disp, 0x48, 0x8d, 0x05|reg<<3)
		return
	}
	c.code = appendMovabs(c.code, reg, v)
}

// Instructions that stand in several insertions.
var (
	lahf    = []byte{0x9f}
	setoAL  = []byte{0x0f, 0x90, 0xc0}
	addAL   = []byte{0x04, 0x7f} // 1 becomes -128, which overflows
	sahf    = []byte{0x9e}
	readTSC = []byte{0x0f, 0x31, 0x48, 0xc1, 0xe2, 32, 0x48, 0x09, 0xd0} // rdtsc; shl $32,%rdx; or %rdx,%rax
)

// packFlags has rax hold the flags that are kept.
func (c *inserter) packFlags(kept uint64) {
	c.add(lahf...)
	if kept&FlagOF != 0 {
		c.add(setoAL...)
	}
}

// unpackFlags undoes packFlags.
func (c *inserter) unpackFlags(kept uint64) {
	if kept&FlagOF != 0 {
		c.add(addAL...)
	}
	c.add(sahf...)
}

func zoneOf(in *detour.Insertion) int32 {
	return redZoneOf(&relocate.Options{NoRedZone: in.NoRedZone, Kernel: in.Kernel})
}

// count adds 1 to the counter. The increment leaves the carry flag alone.
func (c *inserter) count(in *detour.Insertion) {
	const nearSize = 8
	kept := statusFlags &^ FlagCF &^ in.DeadFlags
	_, near := c.displacement(in.Counter, nearSize)
	if near && kept == 0 {
		c.increment(in.Counter, true, 0)
		return
	}
	zone, base := zoneOf(in), byte(RAX)
	c.code = appendAdjustStack(c.code, -zone)
	c.add(0x50) // push %rax
	c.stack = int(zone) + wordSize
	if kept != 0 {
		c.packFlags(kept)
		base = RCX
	}
	_, near = c.displacement(in.Counter, nearSize)
	extra := !near && base != RAX
	if extra {
		c.add(0x50 | base)
		c.stack += wordSize
	}
	c.increment(in.Counter, near, base)
	if extra {
		c.add(0x58 | base)
	}
	if kept != 0 {
		c.unpackFlags(kept)
	}
	c.add(0x58) // pop %rax
	c.code = appendAdjustStack(c.code, zone)
}

// increment adds 1 to a word, whose address base gets where it is not near.
func (c *inserter) increment(word uint64, near bool, base byte) {
	if near {
		disp, _ := c.displacement(word, 8)
		c.add32(disp, 0xf0, 0x48, 0xff, 0x05) // lock incq word(%rip)
		return
	}
	c.code = appendMovabs(c.code, base, word)
	c.add(0xf0, 0x48, 0xff, base) // lock incq (base)
}
