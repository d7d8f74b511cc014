package amd64

import (
	"fmt"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

// modRMs returns ModRM bytes with every mod and reg, of a register, of a SIB byte
// and of what is relative to the instruction pointer.
func modRMs() (list []byte) {
	for mod := range byte(4) {
		for reg := range byte(8) {
			for _, rm := range []byte{0, 4, 5} {
				list = append(list, mod<<6|reg<<3|rm)
			}
		}
	}
	return list
}

// eachForm calls f with the instructions of one and two opcode bytes, each with
// many ModRM bytes, without and with REX, near the kernel's text and far from its
// slots.
func eachForm(f func(inst *decode.Inst, code []byte)) {
	for _, rex := range [][]byte{nil, {0x41}, {0x48}} {
		for op := range 512 {
			for _, modrm := range modRMs() {
				code := append([]byte{}, rex...)
				if op >= 256 {
					code = append(code, 0x0F)
				}
				code = append(code, byte(op), modrm, 0x25, 1, 2, 3, 0x70, 5, 6, 7, 8, 9, 10, 11, 12, 13)[:kernelWindow]
				for _, addr := range []uint64{0xffffffff81000000, 0xffffffff01000000} {
					var inst decode.Inst
					if (ISA{}).Decode(&inst, code, addr) == nil {
						f(&inst, code[:inst.Len])
					}
				}
			}
		}
	}
}

// TestCommonVerdicts compares what the opcode alone tells with what the bytes
// tell, for every version.
func TestCommonVerdicts(t *testing.T) {
	for _, v := range known.Kprobes {
		for _, preemption := range []bool{false, true} {
			p := newKprobeJudge(v, classify.KernelOptions{Preemption: preemption})
			common := 0
			eachForm(func(inst *decode.Inst, code []byte) {
				var got, want classify.Verdict
				if !p.common(&got, inst) {
					return
				}
				common++
				w := kernelWalk{decoder: p.decoder, code: code}
				p.reach(&want, &w, &classify.Func{Addr: inst.Addr, Code: code}, 0, inst)
				if got != want || w.next != uint64(inst.Len) {
					t.Errorf("%v: % x at %#x: %+v, want %+v of %d bytes", v, code, inst.Addr, got, want, w.next)
				}
			})
			if common < 50000 {
				t.Errorf("%v: only %d encodings are common", v, common)
			}
		}
	}
}

// TestCommonLayout compares how the optimizer takes common instructions, with any
// verdict, with how it takes those of which it looks at the bytes.
func TestCommonLayout(t *testing.T) {
	refused := classify.Verdict{Rule: &kprobeRules[kprobeTrap]}
	for _, v := range known.Kprobes {
		for _, opt := range []classify.KernelOptions{{}, {Retpoline: true},
			{Retpoline: true, Symbol: thunkSymbols(textRange{0xffffffff73040000, 0xfffffffff3ffffff}, 0)}} {
			o := newKprobeOptimizer(v, opt)
			eachForm(func(inst *decode.Inst, code []byte) {
				var by [2]optcheck.Scratch
				f := &optcheck.Function{Func: &classify.Func{Addr: inst.Addr, Code: code, Insts: []decode.Inst{*inst}},
					Verdicts: []classify.Verdict{refused}}
				common, bytes := by[0].Layout(uint64(len(code))), by[1].Layout(uint64(len(code)))
				whole := o.lay(common, f)
				f.Insts[0].Props |= decode.Invalid
				wanted := o.lay(bytes, f)
				if got, want := laid(common, &whole), laid(bytes, &wanted); got != want {
					t.Errorf("%v: % x at %#x: %s, want %s", v, code, inst.Addr, got, want)
				}
			})
		}
	}
}

func laid(l *optcheck.Layout, whole *optcheck.Verdict) string {
	from, ok := l.BranchInto(0, 40)
	return fmt.Sprintf("starts %#x fixed %#x targets %#x from %d %v whole %v", l.Starts.Window(0), l.Fixed.Window(0), l.Targets.Window(0), from, ok, whole.Rule)
}
