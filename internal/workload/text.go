package workload

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// second is where the second string of a call is in a Buffer.
const second = Size / 2

// put writes strings, each with a NUL, to the halves of the buffer.
func (b *Buffer) put(texts ...string) error {
	for i, s := range texts {
		if err := b.Write(b.Addr+uint64(i)*second, append([]byte(s), 0)); err != nil {
			return err
		}
	}
	return nil
}

const wordSize = 8

func moving(b *Buffer, r *rand.Rand) (Call, error) {
	data := make([]byte, 600)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	to, from, n := r.IntN(300), r.IntN(300), r.IntN(300)
	if from > to && from-to < wordSize {
		from = to + wordSize // the guest's memmove moves words, and what is left from the end on
	}
	err := b.Write(b.Addr, data)
	copy(data[to:], data[from:from+n])
	at := b.Addr + uint64(to)
	return Call{"memmove", []uint64{at, b.Addr + uint64(from), uint64(n)}, both(wants(at), b.leaves(b.Addr, data))}, err
}

func setting(b *Buffer, r *rand.Rand) (Call, error) {
	data := bytes.Repeat([]byte{1}, 200)
	at, n, c := r.IntN(100), r.IntN(100), byte(r.Uint32())
	err := b.Write(b.Addr, data)
	for i := range n {
		data[at+i] = c
	}
	addr := b.Addr + uint64(at)
	return Call{"memset", []uint64{addr, uint64(c), uint64(n)}, both(wants(addr), b.leaves(b.Addr, data))}, err
}

func measuring(b *Buffer, r *rand.Rand) (Call, error) {
	s := word(r, 100, 26)
	return Call{"length", []uint64{b.Addr}, wants(uint64(len(s)))}, b.put(s)
}

func comparing(b *Buffer, r *rand.Rand) (Call, error) {
	x, y := word(r, 4, 2), word(r, 4, 2)
	if r.IntN(2) == 0 {
		y = x + y
	}
	check := func(result uint64) error {
		if got, want := cmp.Compare(int32(result), 0), strings.Compare(x, y); got != want {
			return fmt.Errorf("compared %q with %q: %d, want %d", x, y, got, want)
		}
		return nil
	}
	return Call{"compare", []uint64{b.Addr, b.Addr + second}, check}, b.put(x, y)
}

func finding(b *Buffer, r *rand.Rand) (Call, error) {
	text, part := word(r, 60, 3), word(r, 4, 3)
	return Call{"find", []uint64{b.Addr, b.Addr + second}, wants(uint64(strings.Index(text, part)))}, b.put(text, part)
}

func reading(b *Buffer, r *rand.Rand) (Call, error) {
	v := int64(r.Uint64()) >> r.IntN(63)
	text := strconv.FormatInt(v, 10)
	if r.IntN(2) == 0 {
		text = fmt.Sprintf("%#x", v)
	}
	text = strings.Repeat(" ", r.IntN(3)) + text + []string{"", "z", " 1"}[r.IntN(3)]
	return Call{"number", []uint64{b.Addr}, wants(uint64(v))}, b.put(text)
}

// directives are those that Go's fmt and the guest's format agree on.
var directives = []string{
	"%ld", "%+ld", "%8ld", "%-8ld|", "%08ld", "%lx", "%#lx", "%lX", "%lo", "%lb", "%20.6ld", "%c", "%s", "%12s", "%-12s|", "%.2s", "%%%lx",
}

func formatting(b *Buffer, r *rand.Rand) (Call, error) {
	var pattern, want strings.Builder
	args := []uint64{b.Addr, b.Addr + second}
	at := b.Addr + second + 1024
	for range 4 {
		d := directives[r.IntN(len(directives))]
		var value any
		var arg uint64
		switch d[len(strings.TrimRight(d, "|"))-1] {
		case 's':
			s := word(r, 15, 26)
			if err := b.Write(at, append([]byte(s), 0)); err != nil {
				return Call{}, err
			}
			value, arg = s, at
			at += 64
		case 'c':
			c := rune('!' + r.IntN(90))
			value, arg = c, uint64(c)
		case 'd':
			v := int64(r.Uint64()) >> r.IntN(64)
			value, arg = v, uint64(v)
		default:
			v := r.Uint64() >> r.IntN(64)
			value, arg = v, v
		}
		pattern.WriteString(d + ", ")
		fmt.Fprintf(&want, strings.ReplaceAll(d, "l", "")+", ", value)
		args = append(args, arg)
	}
	n := wants(uint64(want.Len()))
	err := b.Write(b.Addr+second, append([]byte(pattern.String()), 0))
	return Call{"format", args, both(b.leaves(b.Addr, append([]byte(want.String()), 0)), n)}, err
}
