package amd64

import (
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// FuzzIndirectJump makes sure that the answer on any bytes makes sense.
func FuzzIndirectJump(f *testing.F) {
	f.Add(unhex(f, "83ff057713488d0d00000000486304b94801c83effe0"), uint64(0x401000))
	f.Add(unhex(f, "4889e5eb02ffe0ff24c500104000ebf7"), uint64(0))
	f.Add(unhex(f, "ff642408ff24d5f8ffffff83e00766ffe0"), ^uint64(9))
	f.Fuzz(func(t *testing.T, code []byte, addr uint64) {
		fn := classify.Func{Addr: addr, Code: code, Insts: decode.Sweep(ISA{}, nil, code, addr)}
		for i := range fn.Insts {
			checkJump(t, &fn, i)
		}
	})
}

// checkJump checks what must hold of any answer.
func checkJump(t *testing.T, f *classify.Func, i int) {
	j := ISA{}.IndirectJump(new(flow.Tracer), f, i, nil)
	table := j.Table
	switch j.Kind {
	case flow.JumpUnresolved:
		if j.What == "" || table != (flow.Table{}) {
			t.Errorf("% x: %+v", f.Code, j)
		}
		return
	case flow.JumpPointer:
		if j != (flow.Jump{Kind: j.Kind}) {
			t.Errorf("% x: %+v", f.Code, j)
		}
		return
	}
	width := table.Width == 1 || table.Width == 2 || table.Width == 4 || table.Width == 8
	bounded := table.Bound != flow.BoundNone
	if !width || table.Shift != 0 || bounded != (table.Count > 0) || !bounded && table.Check != 0 || j.What != "" {
		t.Errorf("% x: %+v", f.Code, j)
	}
	if _, start := decode.Find(f.Insts, table.Check); table.Check != 0 && !start {
		t.Errorf("% x: check at no instruction: %+v", f.Code, j)
	}
}
