package amd64

import (
	"testing"

	"xol/decode"
)

func FuzzDecode(f *testing.F) {
	n := 0
	for _, path := range []string{"testdata/decode-lists.tsv.gz", "testdata/decode-cpu.tsv.gz"} {
		rows(f, path, func(columns []string) {
			if n++; n%16 == 0 {
				f.Add(unhex(f, columns[0]), uint64(0xffffffff81000000))
			}
		})
	}
	f.Fuzz(checkDecode)
}

// checkDecode checks what must hold of any bytes.
func checkDecode(t *testing.T, code []byte, addr uint64) {
	var inst decode.Inst
	err := ISA{}.Decode(&inst, code, addr)
	switch err {
	case nil:
	case decode.ErrInvalid, decode.ErrTruncated, decode.ErrTooLong:
		if inst != (decode.Inst{Addr: addr}) {
			t.Errorf("% x: %v with %+v", code, err, inst)
		}
		return
	default:
		t.Fatalf("% x: error %v", code, err)
	}

	n := int(inst.Len)
	if n < 1 || n > maxLen || n > len(code) {
		t.Fatalf("% x: length %d", code, n)
	}
	checkFields(t, &inst)

	var again decode.Inst
	if err := (ISA{}).Decode(&again, inst.Bytes(), addr); err != nil || again != inst {
		t.Errorf("% x alone: %v\n%+v\n%+v", inst.Bytes(), err, again, inst)
	}
	longer := append(append([]byte{}, inst.Bytes()...), make([]byte, 32)...)
	for _, filler := range []byte{0x00, 0xff, 0x66} {
		for i := range longer[n:] {
			longer[n+i] = filler
		}
		if err := (ISA{}).Decode(&again, longer, addr); err != nil || again != inst {
			t.Errorf("% x with more after: %v\n%+v\n%+v", inst.Bytes(), err, again, inst)
		}
	}
	for i := range n {
		if err := (ISA{}).Decode(&again, code[:i], addr); err != decode.ErrTruncated {
			t.Errorf("% x: %v", code[:i], err)
		}
	}
}

// checkFields checks that the parts of an instruction lie in it, in order.
func checkFields(t *testing.T, inst *decode.Inst) {
	f, n := inst.Fields, inst.Len
	end := f.Opcode + 1
	if f.Operands != 0 {
		if DetailOf(inst).Map() != Map3DNow && f.Operands != end {
			t.Errorf("% x: ModRM at %d, opcode at %d", inst.Bytes(), f.Operands, f.Opcode)
		}
		end = f.Operands + 1
	}
	if f.DispLen != 0 {
		if f.Disp < end {
			t.Errorf("% x: %+v", inst.Bytes(), f)
		}
		end = f.Disp + f.DispLen
	}
	if f.ImmLen != 0 {
		if f.Imm < end {
			t.Errorf("% x: %+v", inst.Bytes(), f)
		}
		end = f.Imm + f.ImmLen
	}
	if end > n || f.Opcode >= n {
		t.Errorf("% x: %+v", inst.Bytes(), f)
	}
	p := inst.PCRel
	if p.Kind != decode.PCRelNone {
		if p.Offset+p.Width/8 > n || !inst.Has(decode.HasTarget) {
			t.Errorf("% x: %+v %+v", inst.Bytes(), p, inst.Props)
		}
	} else if p != (decode.PCRel{}) {
		t.Errorf("% x: %+v", inst.Bytes(), p)
	}
}
