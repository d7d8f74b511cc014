//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"unsafe"

	"xol/instrument"
)

// packed is a layout on its way to the guard, which is the same program on the same
// machine: long lists of plain values are sent as the memory that they have.
type packed struct {
	Rest                   instrument.Layout // without these lists
	Copies, Patches, Caves []byte
	Points, Items, Runs    []byte
}

// packedCopy is an instrument.Copy whose lists are the next ones of all.
type packedCopy struct {
	addr, orig, counters uint64
	size, back, sum      uint32
	points, items, runs  uint32 // how many
	whole                bool
}

func pack(l *instrument.Layout) *packed {
	var copies []packedCopy
	var points []instrument.Point
	var items []instrument.Inserted
	var runs []instrument.Run
	for _, c := range l.Copies {
		copies = append(copies, packedCopy{
			addr: c.Addr, orig: c.Orig, counters: c.Counters, size: c.Size, back: c.Back, sum: c.Sum, whole: c.Whole,
			points: uint32(len(c.Points)), items: uint32(len(c.Items)), runs: uint32(len(c.Runs)),
		})
		points, items, runs = append(points, c.Points...), append(items, c.Items...), append(runs, c.Runs...)
	}
	rest := *l
	rest.Copies, rest.Patches, rest.Caves = nil, nil, nil
	return &packed{
		Rest: rest, Copies: bytesOf(copies), Patches: bytesOf(l.Patches), Caves: bytesOf(l.Caves),
		Points: bytesOf(points), Items: bytesOf(items), Runs: bytesOf(runs),
	}
}

func (p *packed) unpack() *instrument.Layout {
	l := p.Rest
	l.Patches, l.Caves = listOf[instrument.Patch](p.Patches), listOf[instrument.Cave](p.Caves)
	points, items, runs := listOf[instrument.Point](p.Points), listOf[instrument.Inserted](p.Items), listOf[instrument.Run](p.Runs)
	packed := listOf[packedCopy](p.Copies)
	copies := make([]instrument.Copy, len(packed))
	for i := range packed {
		c := &packed[i]
		copies[i] = instrument.Copy{
			Addr: c.addr, Orig: c.orig, Counters: c.counters, Size: c.size, Back: c.back, Sum: c.sum, Whole: c.whole,
			Points: next(&points, c.points), Items: next(&items, c.items), Runs: next(&runs, c.runs),
		}
		l.Copies = append(l.Copies, &copies[i])
	}
	return &l
}

// next takes the next n values off a list.
func next[T any](list *[]T, n uint32) []T {
	taken := (*list)[:n:n]
	*list = (*list)[n:]
	return taken
}

// bytesOf returns the memory of a list of values that have no pointers.
func bytesOf[T any](list []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*int(unsafe.Sizeof(*new(T))))
}

func listOf[T any](memory []byte) []T {
	list := make([]T, len(memory)/int(unsafe.Sizeof(*new(T))))
	copy(bytesOf(list), memory)
	return list
}
