package image

import (
	"bytes"
	"math"
	"strings"
)

// kallsyms is the table of symbols that a kernel carries for itself, which is
// left when all others have been stripped [scripts/kallsyms.c,
// kernel/kallsyms.c]. Nothing in a file says where its parts are: they are
// found by how they fit together. Since Linux 6.4 their order is
//
//	number of symbols, names, markers, tokens, index of tokens, addresses,
//	(relative base, until 6.x), order by name
//
// and before addresses and base come first, and the order by name, which is
// there since 6.2, before the tokens. All offsets are of data.
type kallsyms struct {
	data  []byte
	order byteOrder

	tokens     [256]string // what a byte of a name stands for
	tokenTable int
	tokenIndex int
	markers    []uint64 // where in names every 256th name starts
	markersAt  int
	count      int // of symbols
	countAt    int
	names      int

	addressing addressing
	addresses  int
	base       int // the relative base; -1 where there is none
}

// addressing says what the entries of the table of addresses mean.
type addressing uint8

const (
	// addressBased: unsigned 32-bit offsets from the relative base.
	addressBased addressing = iota
	// addressPerCPU: signed words; from 0 on they are absolute, below their
	// complement is the offset from the base (KALLSYMS_ABSOLUTE_PERCPU).
	addressPerCPU
	// addressPlaced: signed 32-bit offsets from the entry itself.
	addressPlaced
	// addressWhole: 64-bit addresses.
	addressWhole
)

const (
	kallsymsMark      = 256 // a marker for so many names
	kallsymsTokens    = 256
	kallsymsIndexSize = 2 * kallsymsTokens
	longestToken      = 512 // bytes, more than a name has
	longestName       = 514 // bytes of a compressed name, with its length
	mostKallsyms      = 1 << 21
)

// digitTokens is how the digits stand in every table of tokens: a character
// that names use stands for itself.
var digitTokens = []byte("0\x001\x002\x003\x004\x005\x006\x007\x008\x009\x00")

// findKallsyms looks for a kernel's own table of symbols in data, whose first
// byte stands at an address that 8 divides. It returns nil where there is
// none.
func findKallsyms(data []byte, order byteOrder) *kallsyms {
	// Kernels have other rows of digits, but few, and one table of tokens.
	const mostDigits, mostTokens = 256, 4
	from, tables := 0, 0
	for digits := 0; digits < mostDigits && tables < mostTokens; digits++ {
		i := bytes.Index(data[from:], digitTokens)
		if i < 0 {
			return nil
		}
		k := &kallsyms{data: data, order: order}
		if k.findTokens(from + i) {
			if k.findNames() && k.findAddresses() {
				return k
			}
			tables++
		}
		from += i + 1
	}
	return nil
}

func roundUp(n, align int) int { return (n + align - 1) &^ (align - 1) }

// findTokens reads the tokens, of which that of the digit 0 stands at zero,
// and their index, which has to say the same.
func (k *kallsyms) findTokens(zero int) bool {
	var at [kallsymsTokens]int
	end := zero
	for t := '0'; t < kallsymsTokens; t++ {
		at[t] = end
		n := bytes.IndexByte(k.data[end:min(end+longestToken, len(k.data))], 0)
		if n < 0 {
			return false
		}
		end += n + 1
	}
	for _, align := range []int{4, 8, 2} {
		k.tokenIndex = roundUp(end, align)
		if k.tokenIndex+kallsymsIndexSize > len(k.data) {
			return false
		}
		k.tokenTable = zero - k.token('0')
		if k.tokenTable >= 0 && k.checkTokens(&at) {
			return true
		}
	}
	return false
}

// token returns where a token stands in their table.
func (k *kallsyms) token(t int) int { return int(k.order.u16(k.data[k.tokenIndex+2*t:])) }

// checkTokens reads the tokens as the index has them. at is where those from
// the digit 0 on stand.
func (k *kallsyms) checkTokens(at *[kallsymsTokens]int) bool {
	for t := range kallsymsTokens {
		start := k.tokenTable + k.token(t)
		if t == 0 && start != k.tokenTable || t >= '0' && start != at[t] || start > k.tokenIndex {
			return false
		}
		n := bytes.IndexByte(k.data[start:k.tokenIndex], 0)
		if n < 0 || t+1 < kallsymsTokens && k.tokenTable+k.token(t+1) != start+n+1 {
			return false
		}
		k.tokens[t] = string(k.data[start : start+n])
	}
	return true
}

// findNames finds the markers before the tokens, and the names before them.
func (k *kallsyms) findNames() bool {
	for _, width := range []int{4, 8} { // 8 before Linux 4.20
		if k.markersBefore(k.tokenTable, width) || width == 4 && k.markersBeforeOrder() {
			return true
		}
	}
	return false
}

// word returns the number of width bytes at off.
func (k *kallsyms) word(off, width int) uint64 {
	if width == 8 {
		return k.order.u64(k.data[off:])
	}
	return uint64(k.order.u32(k.data[off:]))
}

// plausibleMark reports whether a marker may follow another one.
func plausibleMark(before, after uint64) bool {
	return after > before && after-before >= 2*kallsymsMark && after-before <= kallsymsMark*longestName
}

// markersBefore looks for markers that end at end, but for padding: they go
// back to one of 0.
func (k *kallsyms) markersBefore(end, width int) bool {
	for _, padding := range []int{0, 4} {
		last := end - padding - width
		first := last
		for first >= width && plausibleMark(k.word(first-width, width), k.word(first, width)) {
			first -= width
		}
		if first >= 0 && k.word(first, width) == 0 && k.namesBefore(first, width, (last-first)/width+1) {
			return true
		}
	}
	return false
}

// markersBeforeOrder looks for markers with the order of the symbols by name
// after them: 3 bytes for each symbol.
func (k *kallsyms) markersBeforeOrder() bool {
	const width, entry = 4, 3
	limit := max(0, k.tokenTable-(entry+1)*mostKallsyms)
	for first := k.tokenTable&^(width-1) - 2*width; first >= limit; first -= width {
		if k.word(first, width) != 0 {
			continue
		}
		n := 1
		for end := first + width*n; end+width <= k.tokenTable && plausibleMark(k.word(end-width, width), k.word(end, width)); end += width {
			n++
		}
		// What follows the markers may look like one more.
		for m := n; m > max(1, n-3); m-- {
			symbols := (k.tokenTable - first - width*m) / entry
			if symbols > kallsymsMark*(m-1) && symbols <= kallsymsMark*m+width && k.namesBefore(first, width, m) {
				return true
			}
		}
	}
	return false
}

// namesBefore looks for the names before n markers at off.
func (k *kallsyms) namesBefore(off, width, n int) bool {
	k.markersAt, k.markers = off, make([]uint64, n)
	for i := range k.markers {
		k.markers[i] = k.word(off+i*width, width)
	}
	last := k.markers[n-1]
	if last >= uint64(off) {
		return false
	}
	lo := max(0, off-int(last)-kallsymsMark*longestName-16) &^ 3
	for at := lo; at+4 < off-int(last); at += 4 {
		count := int(k.order.u32(k.data[at:]))
		if count <= kallsymsMark*(n-1) || count > kallsymsMark*n || count > mostKallsyms {
			continue
		}
		for _, gap := range []int{4, 8} {
			k.countAt, k.count, k.names = at, count, at+gap
			if k.checkNames() {
				return true
			}
		}
	}
	return false
}

// name returns the compressed name at off and where the next one stands. Long
// ones have two bytes of length since Linux 6.1.
func (k *kallsyms) name(off int) (name []byte, next int, ok bool) {
	if off >= k.markersAt {
		return nil, 0, false
	}
	n := int(k.data[off])
	off++
	if n&0x80 != 0 {
		n = n&0x7f | int(k.data[off])<<7
		off++
	}
	if n == 0 || n > k.markersAt-off {
		return nil, 0, false
	}
	return k.data[off : off+n], off + n, true
}

// checkNames goes from name to name: the markers have to agree, and after the
// last one the markers have to begin.
func (k *kallsyms) checkNames() bool {
	const mostPadding = 8
	pos := k.names
	for i := range k.count {
		if i%kallsymsMark == 0 && uint64(pos-k.names) != k.markers[i/kallsymsMark] {
			return false
		}
		_, next, ok := k.name(pos)
		if !ok {
			return false
		}
		pos = next
	}
	return k.markersAt-pos < mostPadding
}

// findAddresses finds the table of addresses: after the tokens, or before the
// names.
func (k *kallsyms) findAddresses() bool {
	const align = 8
	after := k.tokenIndex + kallsymsIndexSize
	before := k.countAt - align - 4*k.count
	for _, c := range []struct {
		kind     addressing
		at, base int
	}{
		{addressBased, after, roundUp(after+4*k.count, align)},
		{addressPerCPU, after, roundUp(after+4*k.count, align)},
		{addressBased, before &^ (align - 1), k.countAt - align},
		{addressPerCPU, before &^ (align - 1), k.countAt - align},
		{addressWhole, k.countAt - align*k.count, -1},
		{addressPlaced, after, -1},
	} {
		k.addressing, k.addresses, k.base = c.kind, c.at, c.base
		if k.checkAddresses() {
			return true
		}
	}
	return false
}

// entrySize returns the bytes of an entry of the table of addresses.
func (a addressing) entrySize() int {
	if a == addressWhole {
		return 8
	}
	return 4
}

// checkAddresses reports whether the addresses lie in data and are sorted, as
// the table is.
func (k *kallsyms) checkAddresses() bool {
	const fewest = 8 // one address of so many symbols must differ from the one before
	end := k.addresses + k.addressing.entrySize()*k.count
	if k.addresses < 0 || end > len(k.data) || k.base >= 0 && k.base+8 > len(k.data) {
		return false
	}
	last, steps := int64(math.MinInt64), 0
	for i := range k.count {
		a := k.rank(i)
		if a < last {
			return false
		}
		if a > last {
			steps++
		}
		last = a
	}
	return steps > 1 && steps >= k.count/fewest
}

// rank returns a number that grows with the address of symbol i.
func (k *kallsyms) rank(i int) int64 {
	const above = 1 << 32
	v, absolute := k.address(i)
	if k.addressing == addressPerCPU && !absolute {
		return above + int64(v)
	}
	if k.addressing == addressWhole {
		return int64(v - 1<<63)
	}
	return int64(v)
}

// address returns where symbol i stands: an address where it is absolute or
// all are whole; else relative to the relative base or, where addresses are
// relative to themselves, to the start of data.
func (k *kallsyms) address(i int) (v uint64, absolute bool) {
	if k.addressing == addressWhole {
		return k.order.u64(k.data[k.addresses+8*i:]), false
	}
	at := k.addresses + 4*i
	word := k.order.u32(k.data[at:])
	switch {
	case k.addressing == addressPlaced:
		return uint64(at) + uint64(int64(int32(word))), false
	case k.addressing == addressPerCPU && int32(word) >= 0:
		return uint64(word), true
	case k.addressing == addressPerCPU:
		return uint64(^word), false
	}
	return uint64(word), false
}

// symbols returns the symbols in their order, with addresses as address has
// them; those that are absolute have the type A.
func (k *kallsyms) symbols() []MapSymbol {
	var text strings.Builder
	text.Grow(2 * (k.markersAt - k.names))
	syms := make([]MapSymbol, k.count)
	ends := make([]int, k.count)
	pos := k.names
	for i := range syms {
		name, next, _ := k.name(pos)
		for _, t := range name {
			text.WriteString(k.tokens[t])
		}
		ends[i], pos = text.Len(), next
	}
	all, start := text.String(), 0
	for i := range syms {
		name := all[start:ends[i]]
		start = ends[i]
		if len(name) < 2 {
			name = "?" // a type without a name: no one can ask for it
		}
		v, absolute := k.address(i)
		syms[i] = MapSymbol{Name: name[1:], Addr: v, Type: name[0]}
		if absolute {
			syms[i].Type = 'A'
		}
	}
	return syms
}
