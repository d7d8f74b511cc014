package workload

import (
	"crypto/sha256"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"time"
)

// words returns values in the guest's byte order.
func (b *Buffer) words(values []int64) []byte {
	data := make([]byte, 8*len(values))
	for i, v := range values {
		b.Order.PutUint64(data[8*i:], uint64(v))
	}
	return data
}

func sorting(function string) func(*Buffer, *rand.Rand) (Call, error) {
	return func(b *Buffer, r *rand.Rand) (Call, error) {
		values := make([]int64, r.IntN(60))
		for i := range values {
			values[i] = int64(r.Uint64()) >> r.IntN(64)
		}
		err := b.Write(b.Addr, b.words(values))
		slices.Sort(values)
		return Call{function, []uint64{b.Addr, uint64(len(values))}, b.leaves(b.Addr, b.words(values))}, err
	}
}

func summing(function string) func(*Buffer, *rand.Rand) (Call, error) {
	return func(b *Buffer, r *rand.Rand) (Call, error) {
		data := random(r, 300)
		check := func(result uint64) error { return wants(uint64(crc32.ChecksumIEEE(data)))(result & (1<<32 - 1)) }
		return Call{function, []uint64{b.Addr, uint64(len(data))}, check}, b.Write(b.Addr, data)
	}
}

func hashing(b *Buffer, r *rand.Rand) (Call, error) {
	data := random(r, 200)
	digest := sha256.Sum256(data)
	return Call{"sha256", []uint64{b.Addr, uint64(len(data)), b.Addr + second}, b.leaves(b.Addr+second, digest[:])}, b.Write(b.Addr, data)
}

func dating(_ *Buffer, r *rand.Rand) (Call, error) {
	year, month := 1600+r.IntN(800), r.IntN(14)
	want := ^uint64(0)
	if month >= 1 && month <= 12 {
		want = uint64(time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day())
	}
	return Call{"days", []uint64{uint64(year), uint64(month)}, wants(want)}, nil
}

// counting is the switches of classes, in the order of its source.
func counting(b *Buffer, r *rand.Rand) (Call, error) {
	text := random(r, 400)
	var c [8]uint32
	last := int64(-1)
	for i, t := range text {
		switch t & 7 {
		case 0:
			c[0]++
			last = int64(i)
		case 1:
			c[1] += uint32(t)
		case 2:
			c[2] ^= uint32(t)
			last ^= 1
		case 3:
			c[3] = c[3]*3 + 1
		case 4:
			c[4] -= uint32(i)
		case 5:
			c[5] |= uint32(t)
			last++
		case 6:
			c[6] = ^c[6]
		case 7:
			c[7] += c[0]
			last = int64(c[7])
		}
		if f := sparse[t]; f != nil {
			f(&c, &last)
		}
	}
	left := make([]byte, 4*len(c))
	for i, v := range c {
		b.Order.PutUint32(left[4*i:], v)
	}
	if err := b.Write(b.Addr+second, make([]byte, len(left))); err != nil {
		return Call{}, err
	}
	check := both(wants(uint64(last)), b.leaves(b.Addr+second, left))
	return Call{"classes", []uint64{b.Addr, uint64(len(text)), b.Addr + second}, check}, b.Write(b.Addr, text)
}

// sparse is the second switch of classes.
var sparse = map[byte]func(c *[8]uint32, last *int64){
	3:   func(_ *[8]uint32, last *int64) { *last += 5 },
	17:  func(_ *[8]uint32, last *int64) { *last ^= 0x55 },
	64:  func(_ *[8]uint32, last *int64) { *last -= 9 },
	100: func(c *[8]uint32, _ *int64) { c[0] += 7 },
	133: func(c *[8]uint32, _ *int64) { c[1] ^= 3 },
	180: func(c *[8]uint32, _ *int64) { c[2]++ },
	201: func(_ *[8]uint32, last *int64) { *last = -*last },
	250: func(c *[8]uint32, _ *int64) { c[3]-- },
}

// unwinding follows how often save_context returns, and with what.
func unwinding(_ *Buffer, r *rand.Rand) (Call, error) {
	depth, value := int64(r.IntN(8)), int64(r.IntN(1000))
	rounds, returned := int64(0), int64(0)
	for rounds < 10 {
		returned = (value+rounds+depth*(depth+1)/2)%7 + 1
		rounds += returned
	}
	return Call{"unwind", []uint64{uint64(depth), uint64(value)}, wants(uint64(rounds*100 + returned))}, nil
}

func unwindingBuiltin(_ *Buffer, r *rand.Rand) (Call, error) {
	depth, value := uint64(r.IntN(8)), uint64(r.IntN(1000))
	return Call{"unwind_builtin", []uint64{depth, value}, wants(value + 3*depth)}, nil
}
