package amd64

import (
	"math"

	"xol/detour"
)

// Offsets in a detour.TimerEntry.
const (
	entryStart     = 8
	entryHistogram = 16
)

// timerSaved are the registers that timers use besides rax.
var timerSaved = [...]byte{RCX, RDX, RSI}

// timer writes the insertions that take the time. All of them have the key, which is
// the stack pointer, in rcx and the entry in rsi.
func (c *inserter) timer(in *detour.Insertion, bits int) {
	zone, kept := zoneOf(in), statusFlags&^in.DeadFlags
	c.code = appendAdjustStack(c.code, -zone)
	c.add(0x50) // push %rax
	depth := zone + wordSize*(1+int32(len(timerSaved)))
	if kept != 0 {
		c.packFlags(kept)
		c.add(0x50)
		depth += wordSize
	}
	for _, reg := range timerSaved {
		c.add(0x50 | reg)
	}
	c.stack = int(depth)
	if in.Action == detour.StartTimer {
		c.start(&in.Timer, bits, depth)
	} else {
		c.stop(in, bits, depth)
	}
	for i := len(timerSaved) - 1; i >= 0; i-- {
		c.add(0x58 | timerSaved[i])
	}
	if kept != 0 {
		c.add(0x58)
		c.unpackFlags(kept)
	}
	c.add(0x58) // pop %rax
	c.code = appendAdjustStack(c.code, zone)
}

// jump adds a short jump and returns where its distance is, for land.
func (c *inserter) jump(opcode byte) int {
	c.add(opcode, 0)
	return len(c.code)
}

// land has a jump lead to what is added next.
func (c *inserter) land(jump int) { c.code[jump-1] = byte(len(c.code) - jump) }

// back adds a short jump to an offset in code.
func (c *inserter) back(opcode byte, to int) {
	jump := c.jump(opcode)
	c.code[jump-1] = byte(to - jump)
}

// Opcodes of short jumps.
const (
	jumpAlways   = 0xeb
	jumpEqual    = 0x74
	jumpNotEqual = 0x75
	jumpNotBelow = 0x73
)

// window has rsi be the first entry where the key may be, and rdx the end of those.
func (c *inserter) window(t *detour.Timer, bits int, depth int32) {
	const golden, entryBits = 0x9e3779b1, 5
	c.code = appendStackOperand(append(c.code, 0x48, 0x8d), RCX, depth) // lea
	c.add32(golden, 0x69, 0xd1)                                         // imul $…,%ecx,%edx
	c.add(0xc1, 0xea, byte(32-entryBits-bits))                          // shr $…,%edx
	c.add(0x83, 0xe2, 0x100-1<<entryBits)                               // and $-32,%edx
	c.address(RSI, t.Table)
	c.add(0x48, 0x01, 0xd6)                                             // add %rdx,%rsi
	c.add32(detour.TimerWindow*detour.TimerEntrySize, 0x48, 0x8d, 0x96) // lea …(%rsi),%rdx
}

// again goes to the next entry, if there is one in the window.
func (c *inserter) again(to int) {
	c.add(0x48, 0x83, 0xc6, detour.TimerEntrySize) // add $32,%rsi
	c.add(0x48, 0x39, 0xd6)                        // cmp %rdx,%rsi
	c.back(jumpNotEqual, to)
}

var (
	loadKey  = []byte{0x48, 0x8b, 0x06}             // mov (%rsi),%rax
	claimKey = []byte{0xf0, 0x48, 0x0f, 0xb1, 0x0e} // lock cmpxchg %rcx,(%rsi)
)

// start notes the time at the entry of a function: in the entry that the key has, or
// else the first free one, or else the last of the window. Done twice, it does the
// same.
func (c *inserter) start(t *detour.Timer, bits int, depth int32) {
	c.window(t, bits, depth)
	loop := len(c.code)
	c.add(loadKey...)
	c.add(0x48, 0x39, 0xc8) // cmp %rcx,%rax
	own := c.jump(jumpEqual)
	c.add(0x48, 0x85, 0xc0) // test %rax,%rax
	taken := c.jump(jumpNotEqual)
	c.add(claimKey...)
	claimed := c.jump(jumpEqual)
	c.land(taken)
	c.again(loop)
	c.add(0x48, 0x83, 0xc6, 0x100-detour.TimerEntrySize) // add $-32,%rsi
	c.add(loadKey...)
	c.add(claimKey...)
	lost := c.jump(jumpNotEqual)
	c.land(own)
	c.land(claimed)
	c.address(RAX, t.Histogram)
	c.add(0x48, 0x89, 0x46, entryHistogram) // mov %rax,16(%rsi)
	c.add(readTSC...)
	c.add(0x48, 0x89, 0x46, entryStart) // mov %rax,8(%rsi)
	c.land(lost)
}

// stop takes the time first. It ends with an increment, whose histogram is in rcx and
// whose word in rax, and then frees the entry. Where there is none, rsi is a word of
// the histogram that is always 0.
func (c *inserter) stop(in *detour.Insertion, bits int, depth int32) {
	t, absent := &in.Timer, uint32(detour.HistogramMissed)
	if in.Action == detour.StopTimerAtJump {
		absent = detour.HistogramJumps
	}
	c.add(readTSC...)
	c.window(t, bits, depth)
	loop := len(c.code)
	c.add(0x48, 0x39, 0x0e) // cmp %rcx,(%rsi)
	found := c.jump(jumpEqual)
	c.again(loop)
	c.address(RCX, t.Histogram)
	c.add32(detour.HistogramNone*wordSize, 0x48, 0x8d, 0xb1) // lea …(%rcx),%rsi
	missed := len(c.code)
	c.add32(absent, 0xb8) // mov $…,%eax
	count := c.jump(jumpAlways)
	c.land(found)
	c.address(RCX, t.Histogram)
	c.add(0x48, 0x39, 0x4e, entryHistogram) // cmp %rcx,16(%rsi)
	c.back(jumpNotEqual, missed)
	c.bucket(t.Scale)
	c.land(count)
	c.add(0xf0, 0x48, 0xff, 0x04, 0xc1) // lock incq (%rcx,%rax,8)
	c.add32(0, 0x48, 0xc7, 0x06)        // movq $0,(%rsi)
}

// bucket turns the time in rax into the number of its bucket. Clocks of CPUs may be a
// little apart, so that a time is negative: it counts as 0.
func (c *inserter) bucket(scale uint64) {
	c.add(0x48, 0x2b, 0x46, entryStart) // sub 8(%rsi),%rax
	positive := c.jump(jumpNotBelow)
	c.add(0x31, 0xc0) // xor %eax,%eax
	c.land(positive)
	switch {
	case scale > math.MaxUint32:
		c.code = appendMovabs(c.code, RDX, scale)
	case scale != 0:
		c.add32(uint32(scale), 0xba) // mov $…,%edx
	}
	if scale != 0 {
		c.add(0x48, 0xf7, 0xe2)           // mul %rdx
		c.add(0x48, 0x0f, 0xac, 0xd0, 32) // shrd $32,%rdx,%rax
	}
	c.add(0x48, 0x83, 0xc8, 1)    // or $1,%rax
	c.add(0x48, 0x0f, 0xbd, 0xc0) // bsr %rax,%rax
}
