package classify_test

import (
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/place"
)

// bytewise is an ISA of one-byte instructions: probes on a function that starts
// with 0xe1 are put after that, 0xff is refused, 0xf0 is no instruction,
// everything else runs in a slot.
type bytewise struct{}

var (
	refusedByISA = classify.Rule{ID: "test/ff", Errno: classify.EILSEQ, Reason: "refused"}
	outside      = classify.Rule{ID: "test/outside", Errno: classify.EINVAL, Reason: "outside"}
	noBytes      = classify.Rule{ID: "test/truncated", Errno: classify.EINVAL, Reason: "no bytes"}
)

func (bytewise) Align() int { return 1 }

func (bytewise) Decode(inst *decode.Inst, code []byte, addr uint64) error {
	if len(code) == 0 {
		return decode.ErrTruncated
	}
	if code[0] == 0xf0 {
		return decode.ErrInvalid
	}
	*inst = decode.Inst{Addr: addr, Len: 1}
	inst.Raw[0] = code[0]
	return nil
}

func (bytewise) Insts(verdicts []classify.Verdict, f *classify.Func, first int) {
	for i := range verdicts {
		verdicts[i] = classify.Verdict{Exec: classify.ExecSlot, Boost: true}
		if f.Insts[first+i].Raw[0] == 0xff {
			verdicts[i] = classify.Refuse(&refusedByISA)
		}
	}
}

func (bytewise) Elsewhere(*classify.Func, uint64, int) classify.Verdict {
	return classify.Refuse(&outside)
}

func (bytewise) Lone(v *classify.Verdict, _ *decode.Inst, err error) {
	switch err {
	case decode.ErrTruncated:
		*v = classify.Refuse(&noBytes)
	case decode.ErrInvalid:
		v.Emulator = "as it is"
	}
}

func (bytewise) Entry(f *classify.Func) uint64 {
	if len(f.Code) > 0 && f.Code[0] == 0xe1 {
		return f.Addr + 1
	}
	return f.Addr
}

// own judges by the rules of bytewise only.
var own = classify.New(classify.Linux612, bytewise{})

func bytewiseFunc(code string, marks ...place.Mark) *classify.Func {
	f := &classify.Func{Name: "f", Addr: 0x100, Code: []byte(code), Marks: marks}
	f.Insts = decode.Sweep(bytewise{}, nil, f.Code, f.Addr)
	return f
}

func TestKernelChecks(t *testing.T) {
	const ok = ""
	ftrace := classify.KernelOptions{FtraceProbes: true}
	for _, c := range []struct {
		name  string
		opt   classify.KernelOptions
		code  string
		marks []place.Mark
		want  []string // rule ids, one an instruction
	}{
		{"nothing known", ftrace, "\x01\x02", nil, []string{ok, ok}},
		{"the ISA's own rules stay", ftrace, "\x01\xff", nil, []string{ok, "test/ff"}},
		{"a range that starts before the function", ftrace, "\x01\x02\x03",
			[]place.Mark{{Addr: 0xf0, Len: 0x12, Kind: place.Blacklist}},
			[]string{"linux/blacklist", "linux/blacklist", ok}},
		{"the common check comes before the ISA's", ftrace, "\xff",
			[]place.Mark{{Addr: 0x100, Len: 1, Kind: place.InitText}}, []string{"linux/init-text"}},
		{"a site forbids every byte of it", ftrace, "\x01\x02\x03\x04",
			[]place.Mark{{Addr: 0x101, Len: 2, Kind: place.JumpLabel}},
			[]string{ok, "linux/jump-label", "linux/jump-label", ok}},
		{"a BUG is one address", ftrace, "\x01\x02\x03",
			[]place.Mark{{Addr: 0x101, Len: 2, Kind: place.Bug}}, []string{ok, "linux/bug", ok}},
		{"the first check of the kernel's order decides", ftrace, "\x01",
			[]place.Mark{{Addr: 0x100, Len: 1, Kind: place.Bug}, {Addr: 0x100, Len: 1, Kind: place.Blacklist}},
			[]string{"linux/blacklist"}},
		{"an exception table entry forbids nothing", ftrace, "\x01",
			[]place.Mark{{Addr: 0x100, Len: 1, Kind: place.ExTable}}, []string{ok}},
		{"an ftrace site where kprobes cannot use it", classify.KernelOptions{}, "\x01\x02",
			[]place.Mark{{Addr: 0x100, Len: 2, Kind: place.Ftrace}}, []string{"linux/ftrace-site", ok}},
		{"a module's init text", classify.KernelOptions{Module: true}, "\x01",
			[]place.Mark{{Addr: 0x100, Len: 1, Kind: place.InitText}}, []string{"linux/module-init-text"}},
		{"a module's init text on the blacklist", classify.KernelOptions{Module: true}, "\x01",
			[]place.Mark{{Addr: 0x100, Len: 1, Kind: place.InitText}, {Addr: 0x100, Len: 1, Kind: place.Blacklist}},
			[]string{"linux/blacklist"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := classify.WithKernelChecks(own, c.opt)
			f := bytewiseFunc(c.code, c.marks...)
			got := p.Func(nil, f)
			for i, want := range c.want {
				if id := ruleID(&got[i]); id != want {
					t.Errorf("+%d: rule %q, want %q", i, id, want)
				}
				if at := p.At(f, f.Addr+uint64(i)); at != got[i] {
					t.Errorf("+%d: At says %+v, Func %+v", i, at, got[i])
				}
			}
		})
	}
}

func ruleID(v *classify.Verdict) string {
	if v.Rule == nil {
		return ""
	}
	return v.Rule.ID
}

func TestFtraceSiteTakesTheProbe(t *testing.T) {
	p := classify.WithKernelChecks(own, classify.KernelOptions{FtraceProbes: true})
	f := bytewiseFunc("\xe1\xff\x02", place.Mark{Addr: 0x101, Len: 1, Kind: place.Ftrace})
	want := []classify.Verdict{
		{Exec: classify.ExecFtrace, MovedTo: 0x101},
		{Exec: classify.ExecFtrace},
		{Exec: classify.ExecSlot, Boost: true},
	}
	for i, got := range p.Func(nil, f) {
		if got != want[i] {
			t.Errorf("+%d: %+v, want %+v", i, got, want[i])
		}
		if at := p.At(f, f.Addr+uint64(i)); at != want[i] {
			t.Errorf("+%d: At says %+v, want %+v", i, at, want[i])
		}
	}
}

func TestProbeIsJudgedWhereItIsMovedTo(t *testing.T) {
	p := classify.WithKernelChecks(own, classify.KernelOptions{})
	for _, c := range []struct {
		name string
		mark uint64
		want string
	}{{"there", 0x101, "linux/jump-label"}, {"not where it was asked for", 0x100, ""}} {
		f := bytewiseFunc("\xe1\x01", place.Mark{Addr: c.mark, Len: 1, Kind: place.JumpLabel})
		v := p.Func(nil, f)[0]
		if ruleID(&v) != c.want || v.MovedTo != 0x101 {
			t.Errorf("%s: got %+v", c.name, v)
		}
		if at := p.At(f, 0x100); at != v {
			t.Errorf("%s: At says %+v", c.name, at)
		}
	}
}

func TestErrnoNames(t *testing.T) {
	for e, want := range map[classify.Errno]string{22: "EINVAL", 84: "EILSEQ", 524: "ENOTSUPP", 5: "5"} {
		if got := e.String(); got != want {
			t.Errorf("Errno(%d) = %q, want %q", e, got, want)
		}
	}
}
