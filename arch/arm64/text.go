package arm64

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"xol/decode"
)

// maxSegments is the number of runs of bits that a field may have.
const maxSegments = 3

// segment is a run of bits of the instruction word.
type segment struct{ low, width uint8 }

func (s segment) of(word uint32) uint32 { return word >> s.low & (1<<s.width - 1) }

// item is an operand, or a part of one, and the text before it.
type item struct {
	text     string
	kind     itemKind
	members  uint8                // of a group: the items that follow
	names    uint8                // place in names
	segments [maxSegments]segment // of a number, high part first
	choice   segment              // selects the prefix of a register
	scale    int16                // the number counts units of 1 + scale …
	offset   int16                // … from here
}

// itemKind is a way to write an item.
type itemKind uint8

const (
	itemText              itemKind = iota
	itemGroup                      // left out where the number in it is 0
	itemName                       // one of names
	itemNumber                     // unsigned
	itemSigned                     // signed
	itemHex                        // unsigned, in hexadecimal digits
	itemMod16                      // number of a register of 16, counted around
	itemMod32                      // number of a register of 32, counted around
	itemRegister                   // w or x and a number, zr for 31
	itemStack                      // likewise, the stack pointer for 31
	itemTarget                     // the address that the instruction speaks of
	itemCond                       // condition
	itemNotCond                    // the opposite of a condition
	itemShift                      // shift of a register operand
	itemExtend                     // register operand with an extension
	itemIndex                      // index register of an address; offset is log2 of the size
	itemPrefetch                   // prefetch operation
	itemRangePrefetch              // prefetch operation on a range
	itemPostIndex                  // register or size after an address
	itemFloat                      // 8-bit floating-point constant
	itemByteMask                   // 64-bit constant of all-zero and all-one bytes
	itemImm8Shifted                // unsigned byte, shifted left by 0 or 8
	itemImm8ShiftedSigned          // signed byte, likewise
	itemBitmask                    // repeated run of ones
	itemBitmaskVector              // likewise, of one element of a vector
	itemBitmaskSize                // size of that element
	itemMoveWide                   // constant of movz and movn
	itemFieldLSB                   // lowest bit of a bit field that is written
	itemFieldWidth                 // width of a bit field that is read
	itemSysReg                     // system register
	itemOptionalX                  // register in bits 0-4, if not 31
	itemOptionalPair               // pair of registers from bits 0-4, if not 31
	itemPattern                    // constraint on a vector's number of elements
	itemPatternTimes               // likewise, with a multiplier
	itemTiles                      // set of tiles of ZA
)

// number returns the operand in p's segments, unsigned.
func (p *item) number(word uint32) int64 {
	v, _ := p.raw(word)
	return int64(v)*int64(1+p.scale) + int64(p.offset)
}

// signed returns the operand in p's segments, whose highest bit is the sign.
func (p *item) signed(word uint32) int64 {
	v, width := p.raw(word)
	return int64(v)<<(64-width)>>(64-width)*int64(1+p.scale) + int64(p.offset)
}

func (p *item) raw(word uint32) (v uint64, width uint8) {
	for _, s := range p.segments {
		v = v<<s.width | uint64(s.of(word))
		width += s.width
	}
	return v, width
}

// form is a way to write an instruction: its name, or as much as is fixed, and
// where the list of its items starts. If it has a condition that does not
// hold, the form orElse is used.
type form struct {
	name   string
	items  uint16
	cond   uint8
	orElse uint16
}

// Text returns the instruction in GNU assembler syntax, as GNU objdump 2.47
// writes it, without its comments. Addresses that the instruction speaks of are
// followed by the symbol that lookup knows for them. What is no instruction
// reads as .inst, or as .byte where it is cut off.
func (ISA) Text(inst *decode.Inst, lookup decode.SymLookup) string {
	var buf [96]byte
	return string(appendText(buf[:0], inst, lookup))
}

func appendText(b []byte, inst *decode.Inst, lookup decode.SymLookup) []byte {
	if inst.Len != 4 {
		return appendBytes(b, inst.Bytes())
	}
	word := binary.LittleEndian.Uint32(inst.Raw[:])
	w := writer{b: b, word: word, inst: inst, lookup: lookup}
	leaf := find(formTree[:], formTreeRoot, word)
	if leaf == 0 || inst.Has(decode.Invalid) {
		return appendHex(append(b, ".inst "...), uint64(word))
	}
	if OpOf(inst) == OpSystem && w.systemAlias() {
		return w.b
	}
	f := &forms[leaf]
	for f.cond != 0 && !conditions[f.cond].holds(word) {
		f = &forms[f.orElse]
	}
	w.string(f.name)
	w.items(itemLists[f.items:])
	return w.b
}

func appendHex(b []byte, v uint64) []byte {
	return strconv.AppendUint(append(b, "0x"...), v, 16)
}

func appendBytes(b, code []byte) []byte {
	b = append(b, ".byte"...)
	for i, c := range code {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendHex(append(b, ' '), uint64(c))
	}
	return b
}

// writer appends the text of one instruction.
type writer struct {
	b      []byte
	word   uint32
	inst   *decode.Inst
	lookup decode.SymLookup
}

func (w *writer) string(s string) { w.b = append(w.b, s...) }

func (w *writer) int(v int64) { w.b = strconv.AppendInt(w.b, v, 10) }

func (w *writer) hex(v uint64) { w.b = appendHex(w.b, v) }

// items writes the items of a list, up to the 0 at its end.
func (w *writer) items(ids []uint16) {
	for i := 0; ids[i] != 0; i++ {
		p := &items[ids[i]]
		if p.kind == itemGroup {
			w.string(p.text)
			if !w.present(ids[i+1 : i+1+int(p.members)]) {
				i += int(p.members)
			}
			continue
		}
		w.item(p)
	}
	if n := len(w.b) - 1; w.b[n] == ' ' { // after an empty name
		w.b = w.b[:n]
	}
}

// present reports whether a number in the group is not 0.
func (w *writer) present(group []uint16) bool {
	for _, id := range group {
		if v, _ := items[id].raw(w.word); v != 0 {
			return true
		}
	}
	return false
}

// item writes p. The kinds that may be left out write their comma themselves.
func (w *writer) item(p *item) {
	w.string(p.text)
	switch p.kind {
	case itemName:
		v, _ := p.raw(w.word)
		w.string(names[p.names][v])
	case itemNumber:
		w.int(p.number(w.word))
	case itemSigned:
		w.int(p.signed(w.word))
	case itemHex:
		w.b = strconv.AppendUint(w.b, uint64(p.number(w.word)), 16)
	case itemMod16:
		w.int(p.number(w.word) & 15)
	case itemMod32:
		w.int(p.number(w.word) & 31)
	case itemRegister:
		w.register(names[p.names][p.choice.of(w.word)], uint32(p.number(w.word)))
	case itemStack:
		w.stack(names[p.names][p.choice.of(w.word)], uint32(p.number(w.word)))
	default:
		w.special(p)
	}
}

// special writes the operands that no other kind describes.
func (w *writer) special(p *item) {
	word := w.word
	switch p.kind {
	case itemTarget:
		w.target()
	case itemCond:
		w.string(condNames[p.number(word)])
	case itemNotCond:
		w.string(condNames[word>>12&15^1])
	case itemShift:
		if kind, amount := word>>22&3, word>>10&63; kind|amount != 0 {
			w.amount(shiftNames[kind], amount)
		}
	case itemExtend:
		w.extended()
	case itemIndex:
		w.index(uint32(p.offset))
	case itemPrefetch:
		w.prefetch()
	case itemRangePrefetch:
		w.rangePrefetch()
	case itemPostIndex:
		w.postIndex()
	case itemFloat:
		v, _ := p.raw(word)
		w.b = strconv.AppendFloat(append(w.b, '#'), float8(uint32(v)), 'e', 18, 64)
	case itemByteMask:
		w.b = append(w.b, '#')
		w.hex(byteMask(word>>11&0xe0 | word>>5&0x1f))
	case itemImm8Shifted:
		w.shiftedByte(int64(word >> 5 & 0xff))
	case itemImm8ShiftedSigned:
		w.shiftedByte(int64(int8(word >> 5)))
	case itemBitmask:
		w.hex(logicalImmediate(word))
	case itemBitmaskVector:
		v, size := vectorImmediate(word)
		w.hex(v & (1<<size - 1))
	case itemBitmaskSize:
		_, size := vectorImmediate(word)
		w.b = append(w.b, elementNames[size/16])
	case itemMoveWide:
		w.hex(wideImmediate(word))
	case itemFieldLSB:
		w.int(int64(-(word >> 16) & (registerBits(word) - 1)))
	case itemFieldWidth:
		w.int(int64(word>>10&63) - int64(word>>16&63) + 1)
	case itemSysReg:
		w.systemRegister()
	case itemOptionalX:
		if n := uint32(p.number(word)); n != 31 {
			w.string(", ")
			w.register("x", n)
		}
	case itemOptionalPair:
		w.optionalPair()
	case itemPattern:
		w.pattern(false)
	case itemPatternTimes:
		w.pattern(true)
	case itemTiles:
		w.tiles()
	}
}

// target writes the address that the instruction speaks of, with its symbol.
func (w *writer) target() {
	w.hex(w.inst.Target)
	if w.lookup == nil {
		return
	}
	name, base := w.lookup(w.inst.Target)
	if name == "" {
		return
	}
	w.string(" <")
	w.string(name)
	if off := w.inst.Target - base; off != 0 {
		w.b = append(w.b, '+')
		w.hex(off)
	}
	w.b = append(w.b, '>')
}

func (w *writer) register(prefix string, n uint32) {
	w.string(prefix)
	if n == 31 {
		w.string("zr")
		return
	}
	w.int(int64(n))
}

// stack writes the register whose prefix is W or X; 31 is the stack pointer.
func (w *writer) stack(prefix string, n uint32) {
	switch {
	case n != 31 && prefix == "W":
		w.register("w", n)
	case n != 31:
		w.register("x", n)
	case prefix == "W":
		w.string("wsp")
	default:
		w.string("sp")
	}
}

// amount writes a shift or an extension with its amount.
func (w *writer) amount(name string, n uint32) {
	w.string(", ")
	w.string(name)
	w.string(" #")
	w.int(int64(n))
}

var (
	condNames = [16]string{
		"eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc",
		"hi", "ls", "ge", "lt", "gt", "le", "al", "nv",
	}
	shiftNames   = [4]string{"lsl", "lsr", "asr", "ror"}
	extendNames  = [8]string{"uxtb", "uxth", "uxtw", "uxtx", "sxtb", "sxth", "sxtw", "sxtx"}
	elementNames = [5]byte{'b', 'h', 's', 0, 'd'} // by bits / 16
)

// The value of the extension that changes nothing, and the one that takes a
// 64-bit register.
const (
	extendLSL  = 3
	extendWide = 3 // in the low two bits
)

// extended writes the last operand of add and its kin with an extended
// register.
func (w *writer) extended() {
	word := w.word
	option, amount := word>>13&7, word>>10&7
	prefix := "w"
	if word>>31 != 0 && option&extendWide == extendWide {
		prefix = "x"
	}
	w.register(prefix, word>>16&31)
	setsFlags := word>>29&1 != 0
	stack := word>>5&31 == 31 || word&31 == 31 && !setsFlags
	if stack && option == 2+word>>31 {
		if amount != 0 {
			w.amount("lsl", amount)
		}
		return
	}
	if amount != 0 {
		w.amount(extendNames[option], amount)
		return
	}
	w.string(", ")
	w.string(extendNames[option])
}

// index writes the index register of an address and its extension; a set S bit
// shifts it by the size.
func (w *writer) index(size uint32) {
	option, shifted := w.word>>13&7, w.word>>12&1 != 0
	prefix := "w"
	if option&extendWide == extendWide {
		prefix = "x"
	}
	w.register(prefix, w.word>>16&31)
	name := extendNames[option]
	if option == extendLSL {
		name = "lsl"
	}
	switch {
	case shifted:
		w.amount(name, size)
	case option != extendLSL:
		w.string(", ")
		w.string(name)
	}
}

var (
	prefetchActions = [4]string{"pld", "pli", "pst", ""}
	prefetchCaches  = [4]string{"l1", "l2", "l3", "slc"}
	prefetchPolicy  = [2]string{"keep", "strm"}
)

// prfmImmediate are the upper bits of prfm with an immediate offset, the only one
// that has a name for operation 24.
const prfmImmediate = 0x3e6

// prefetch writes the operation of prfm, or that of SVE, which has no
// instruction prefetches and one bit less.
func (w *writer) prefetch() {
	op := w.word & 31
	sve := w.word>>25&15 != 12 // not among the loads and stores
	if sve {
		op = op&7 | op&8<<1
	}
	action, cache := prefetchActions[op>>3], prefetchCaches[op>>1&3]
	switch {
	case op == 24 && w.word>>22 == prfmImmediate:
		w.string("ir")
		return
	case action == "" || sve && cache == "slc":
		w.b = append(w.b, '#')
		if sve {
			op = w.word & 15
			w.int(int64(op))
			return
		}
		w.hex(uint64(op))
		return
	}
	w.string(action)
	w.string(cache)
	w.string(prefetchPolicy[op&1])
}

// rangePrefetch writes the operation of rprfm.
func (w *writer) rangePrefetch() {
	op := w.word>>10&0x20 | w.word>>9&0x10 | w.word>>9&8 | w.word&7
	if op&^5 != 0 {
		w.b = append(w.b, '#')
		w.int(int64(op))
		return
	}
	w.string([2]string{"pld", "pst"}[op&1])
	w.string(prefetchPolicy[op>>2])
}

// postIndex writes what is added to the address of a load or store of
// structures.
func (w *writer) postIndex() {
	if rm := w.word >> 16 & 31; rm != 31 {
		w.register("x", rm)
		return
	}
	w.b = append(w.b, '#')
	w.int(int64(structureBytes(w.word)))
}

// structureBytes returns how many bytes a load or store of structures reaches
// [Arm ARM, C4.1, advanced SIMD load/store].
func structureBytes(word uint32) uint32 {
	const single = 1 << 24
	if word&single == 0 {
		registers := [8]uint32{4, 4, 3, 3, 2, 2}[word>>13&7]
		if word>>12&15 == 7 {
			registers = 1
		}
		return registers * (8 << (word >> 30 & 1))
	}
	elements := 1 + word>>21&1 + word>>12&2
	size := word >> 14 & 3
	if size == 3 || size == 2 {
		size += word >> 10 & 3
		if word>>14&3 == 3 {
			size -= 3
		}
	}
	return elements << size
}

// float8 returns the floating-point number that 8 bits stand for
// [Arm ARM, VFPExpandImm].
func float8(v uint32) float64 {
	exp := int(v>>4&7^4) - 3
	f := math.Ldexp(float64(16+v&15), exp-4)
	if v>>7&1 != 0 {
		f = -f
	}
	return f
}

// byteMask returns eight bytes, all ones where a bit of v is set.
func byteMask(v uint32) (m uint64) {
	for i := range 8 {
		m |= -uint64(v>>i&1) & 0xff << (8 * i)
	}
	return m
}

// shiftedByte writes v, shifted left by 8 where bit 13 is set.
func (w *writer) shiftedByte(v int64) {
	w.b = append(w.b, '#')
	shifted := w.word>>13&1 != 0
	if shifted && v != 0 {
		v <<= 8
		shifted = false
	}
	w.int(v)
	if shifted {
		w.amount("lsl", 8)
	}
}

// bitmask returns the constant that N, immr and imms stand for, in 64 bits,
// and the size in bits of the element that is repeated
// [Arm ARM, DecodeBitMasks].
func bitmask(n, immr, imms uint32) (v uint64, size uint32) {
	size = 1 << (31 - bits.LeadingZeros32(n<<6|^imms&63))
	ones := imms&(size-1) + 1
	v = 1<<ones - 1
	r := immr & (size - 1)
	v = v>>r | v<<(size-r)
	if size < 64 {
		v &= 1<<size - 1
	}
	for s := size; s < 64; s *= 2 {
		v |= v << s
	}
	return v, size
}

// logicalImmediate returns the operand of and, orr, eor and ands.
func logicalImmediate(word uint32) uint64 {
	v, _ := bitmask(word>>22&1, word>>16&63, word>>10&63)
	if word>>31 == 0 {
		v &= 1<<32 - 1
	}
	return v
}

// vectorImmediate returns the operand of the same instructions on vectors, and
// the size of the elements in bits.
func vectorImmediate(word uint32) (v uint64, size uint32) {
	v, size = bitmask(word>>17&1, word>>11&63, word>>5&63)
	return v, max(size, 8)
}

// wideImmediate returns the constant of movz and movn.
func wideImmediate(word uint32) uint64 {
	v := uint64(word>>5&0xffff) << (word >> 21 & 3 * 16)
	if word>>29&3 == 0 { // movn
		v = ^v
	}
	if word>>31 == 0 {
		v &= 1<<32 - 1
	}
	return v
}

// registerBits returns 32 or 64.
func registerBits(word uint32) uint32 { return 32 << (word >> 31) }

// patternNames are the constraints on a vector's number of elements.
var patternNames = [32]string{
	"pow2", "vl1", "vl2", "vl3", "vl4", "vl5", "vl6", "vl7",
	"vl8", "vl16", "vl32", "vl64", "vl128", "vl256",
	29: "mul4", 30: "mul3", 31: "all",
}

// pattern writes a constraint on the number of elements, and the multiplier of
// what is counted. Neither is written where it changes nothing.
func (w *writer) pattern(multiplied bool) {
	const all = 31
	n, times := w.word>>5&31, uint32(1)
	if multiplied {
		times = w.word>>16&15 + 1
	}
	if n == all && times == 1 {
		return
	}
	w.string(", ")
	if name := patternNames[n]; name != "" {
		w.string(name)
	} else {
		w.b = append(w.b, '#')
		w.int(int64(n))
	}
	if times != 1 {
		w.amount("mul", times)
	}
}

// tiles writes the tiles of ZA that zero clears: one bit for each of the eight
// 64-bit tiles, of which the larger ones consist.
func (w *writer) tiles() {
	rest := w.word & 0xff
	w.b = append(w.b, '{')
	if rest == 0xff {
		w.string("za}")
		return
	}
	first := true
	for _, size := range [...]struct {
		mask uint32
		n    int
		name string
	}{{0x55, 2, ".h"}, {0x11, 4, ".s"}, {0x01, 8, ".d"}} {
		for i := range size.n {
			if tile := size.mask << i; rest&tile == tile {
				rest &^= tile
				if !first {
					w.string(", ")
				}
				first = false
				w.string("za")
				w.int(int64(i))
				w.string(size.name)
			}
		}
	}
	w.b = append(w.b, '}')
}

// condition restricts a form beyond the bits that lead to it.
type condition struct {
	kind     condKind
	segments [maxSegments]segment
}

// condKind is a kind of condition.
type condKind uint8

const (
	condEqual       condKind = iota // all fields are equal
	condMoveBitmask                 // no movz or movn does the same
	condMoveZero                    // movz that is not better written with a shift
	condMoveNot32                   // movn, likewise
	condMoveNot64                   // movn, likewise
	condFieldInsert                 // imms < immr
	condFieldShift                  // imms + 1 = immr
	condMoveMask                    // no dup makes the same vector
)

func (c *condition) holds(word uint32) bool {
	immr, imms := word>>16&63, word>>10&63
	switch c.kind {
	case condMoveBitmask:
		return word&31 == 31 || !moveWide(logicalImmediate(word), registerBits(word))
	case condMoveZero, condMoveNot64:
		return word>>5&0xffff != 0 || word>>21&3 == 0
	case condMoveNot32:
		return (word>>5&0xffff != 0 || word>>21&3 == 0) && word>>5&0xffff != 0xffff
	case condFieldInsert:
		return imms < immr
	case condFieldShift:
		return imms+1 == immr
	case condMoveMask:
		return !duplicated(vectorImmediate(word))
	}
	for _, s := range c.segments[1:] {
		if s.width != 0 && s.of(word) != c.segments[0].of(word) {
			return false
		}
	}
	return true
}

// moveWide reports whether one movz or movn can make v, of that many bits.
func moveWide(v uint64, size uint32) bool {
	for shift := uint32(0); shift < size; shift += 16 {
		hole := uint64(0xffff) << shift
		if v&^hole == 0 || ^v&(1<<size-1)&^hole == 0 {
			return true
		}
	}
	return false
}

// duplicated reports whether dup can make a vector of elements v of that many
// bits: with a signed byte, or, for more than 8 bits, one shifted left by 8.
func duplicated(v uint64, size uint32) bool {
	for ; size > 8; size /= 2 { // take the smallest element that repeats
		half := size / 2
		if v<<(64-half) != v>>half<<(64-half) {
			break
		}
	}
	s := int64(v<<(64-size)) >> (64 - size)
	return s == int64(int8(s)) || size > 8 && s == int64(int8(s>>8))<<8
}

// access says in which direction a system register has its name.
type access uint8

const (
	accessBoth access = iota
	accessRead
	accessWrite
)

// systemRegister names a system register.
type systemRegister struct {
	key    uint16 // bits 5 to 19 of the word: low bit of op0, op1, CRn, CRm, op2
	access access
	name   string
}

// systemRegister writes the operand of mrs and msr.
func (w *writer) systemRegister() {
	key := uint16(w.word >> 5 & 0x7fff)
	i, _ := slices.BinarySearchFunc(systemRegisters[:], key, func(r systemRegister, key uint16) int {
		return int(r.key) - int(key)
	})
	direction := accessWrite
	if w.word>>21&1 != 0 {
		direction = accessRead
	}
	for ; i < len(systemRegisters) && systemRegisters[i].key == key; i++ {
		if a := systemRegisters[i].access; a == accessBoth || a == direction {
			w.string(systemRegisters[i].name)
			return
		}
	}
	for _, part := range [...]struct {
		text string
		v    uint32
	}{
		{"s", 2 + w.word>>19&1}, {"_", w.word >> 16 & 7}, {"_c", w.word >> 12 & 15}, {"_c", w.word >> 8 & 15}, {"_", w.word >> 5 & 7},
	} {
		w.string(part.text)
		w.int(int64(part.v))
	}
}

// systemOperand says what a named system instruction takes.
type systemOperand uint8

const (
	operandReg    systemOperand = iota // a register, or a pair
	operandOpt                         // a register, or a pair, if not 31
	operandNone                        // nothing; the name needs register 31
	operandAny                         // nothing, whatever the register
	operandResult                      // a register for the result, if not 31
)

// systemOp names a system instruction.
type systemOp struct {
	key     uint16 // bits 5 to 18 of the word: op1, CRn, CRm, op2
	operand systemOperand
	name    string
}

// systemAlias writes a system instruction by its name, if it has one.
func (w *writer) systemAlias() bool {
	list, pair := systemOps[:], false
	switch w.word >> 21 & 3 {
	case 1:
		list = systemResultOps[:]
	case 2:
		list, pair = systemPairOps[:], true
	}
	i, found := slices.BinarySearchFunc(list, uint16(w.word>>5&0x3fff), func(o systemOp, key uint16) int {
		return int(o.key) - int(key)
	})
	rt := w.word & 31
	if !found || list[i].operand == operandNone && rt != 31 {
		return false
	}
	op := &list[i]
	w.string(op.name)
	if op.operand == operandNone || op.operand == operandAny || op.operand != operandReg && rt == 31 {
		return true
	}
	if slices.Contains(w.b, ' ') {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, ' ')
	w.register("x", rt)
	if pair && rt < 30 {
		w.string(", ")
		w.register("x", rt+1)
	}
	return true
}

// optionalPair writes the operands of sysp.
func (w *writer) optionalPair() {
	rt := w.word & 31
	if rt == 31 {
		return
	}
	w.string(", ")
	w.register("x", rt)
	if rt < 30 {
		w.string(", ")
		w.register("x", rt+1)
	}
}
