package decode

import (
	"errors"
	"testing"
)

// evenLength is an ISA whose instructions start with their length, 2 or 4.
type evenLength struct{ align int }

func (e evenLength) Align() int { return e.align }

func (evenLength) Decode(inst *Inst, code []byte, addr uint64) error {
	*inst = Inst{Addr: addr}
	n := int(code[0])
	switch {
	case n != 2 && n != 4:
		return ErrInvalid
	case n > len(code):
		return ErrTruncated
	}
	inst.Len = uint8(n)
	copy(inst.Raw[:], code[:n])
	return nil
}

func TestSweepStandsInvalidBytesForGaps(t *testing.T) {
	for _, c := range []struct {
		name  string
		align int
		code  []byte
		lens  []uint8
		bad   []bool
	}{
		{"only instructions", 1, []byte{2, 0, 4, 0, 0, 0}, []uint8{2, 4}, []bool{false, false}},
		{"a bad byte between", 1, []byte{2, 0, 9, 2, 0}, []uint8{2, 1, 2}, []bool{false, true, false}},
		{"a bad word", 4, []byte{9, 2, 0, 2, 4, 0, 0, 0}, []uint8{4, 4}, []bool{true, false}},
		{"cut off at the end", 4, []byte{4, 0, 0, 0, 4, 0}, []uint8{4, 2}, []bool{false, true}},
		{"cut off, byte by byte", 1, []byte{4, 2}, []uint8{1, 1}, []bool{true, true}},
		{"nothing", 1, nil, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			insts := Sweep(evenLength{c.align}, nil, c.code, 0x1000)
			if len(insts) != len(c.lens) {
				t.Fatalf("%d instructions, want %d", len(insts), len(c.lens))
			}
			addr := uint64(0x1000)
			for i := range insts {
				in := &insts[i]
				if in.Addr != addr || in.Len != c.lens[i] || in.Has(Invalid) != c.bad[i] {
					t.Errorf("%d: %+v", i, in)
				}
				if string(in.Bytes()) != string(c.code[addr-0x1000:][:in.Len]) {
					t.Errorf("%d: bytes %x", i, in.Bytes())
				}
				addr = in.Next()
			}
		})
	}
}

func TestFind(t *testing.T) {
	insts := Sweep(evenLength{1}, nil, []byte{2, 0, 4, 0, 0, 0}, 0x10)
	for _, c := range []struct {
		addr  uint64
		index int
		start bool
	}{{0x0f, -1, false}, {0x10, 0, true}, {0x11, 0, false}, {0x12, 1, true}, {0x15, 1, false}, {0x16, -1, false}} {
		if i, start := Find(insts, c.addr); i != c.index || start != c.start {
			t.Errorf("Find(%#x) = %d, %t, want %d, %t", c.addr, i, start, c.index, c.start)
		}
	}
}

func TestErrTooLongIsInvalid(t *testing.T) {
	if !errors.Is(ErrTooLong, ErrInvalid) || errors.Is(ErrTooLong, ErrTruncated) {
		t.Error("ErrTooLong must be an ErrInvalid, and no ErrTruncated")
	}
}

func TestBranchTarget(t *testing.T) {
	for _, c := range []struct {
		name string
		inst Inst
		ok   bool
	}{
		{"relative jump", Inst{Flow: FlowJump, Props: HasTarget, PCRel: PCRel{Kind: PCRelBranch}}, true},
		{"absolute call", Inst{Flow: FlowCall, Props: HasTarget}, true},
		{"indirect jump through a table that lies at a known address",
			Inst{Flow: FlowJumpIndirect, Props: HasTarget, PCRel: PCRel{Kind: PCRelMemory}}, false},
		{"load", Inst{Props: HasTarget, PCRel: PCRel{Kind: PCRelMemory}}, false},
	} {
		c.inst.Target = 0x40
		if target, ok := c.inst.BranchTarget(); ok != c.ok || ok && target != 0x40 {
			t.Errorf("%s: %#x, %t", c.name, target, ok)
		}
	}
}

func TestNames(t *testing.T) {
	if s := FlowCallIndirect.String(); s != "call-indirect" {
		t.Error(s)
	}
	if s := FlowHalt.String(); s != "halt" {
		t.Error(s)
	}
	if s := PCRelAddress.String(); s != "address" {
		t.Error(s)
	}
	if Flow(200).String() != "invalid" || PCRelKind(200).String() != "invalid" {
		t.Error("values out of range must say so")
	}
}
