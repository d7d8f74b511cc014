package archtest

import (
	"slices"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/kernel"
	"xol/optcheck"
	"xol/place"
)

// profiles returns every profile of an ISA by name.
func profiles(t testing.TB, isa ISA) map[string]classify.Profile {
	t.Helper()
	all := map[string]classify.Profile{}
	for _, name := range isa.Profiles() {
		_, v, _ := classify.ParseProfile(name)
		p, ok := isa.Profile(name, kernel.Debian(isa.Name(), v))
		if !ok {
			t.Fatalf("%s is missing", name)
		}
		all[name] = p
	}
	return all
}

// CheckNames checks that profiles are called what they are asked for by, that
// older ones answer for versions between, and that there are none of kernels of
// which nothing is known.
func CheckNames(t *testing.T, isa ISA) {
	t.Helper()
	for _, name := range []string{"linux-2.6", "uprobe-linux-3.10", "linux-", "linux-6", "linux-6.012", "uprobe-linux-6.12.x", "windows", ""} {
		if p, ok := isa.Profile(name, classify.KernelOptions{}); ok || p != nil {
			t.Errorf("got %v, a profile of %q", p, name)
		}
		if o, ok := isa.Optimizer(name, classify.KernelOptions{}); ok || o != nil {
			t.Errorf("got %v, an optimizer of %q", o, name)
		}
	}
	for asked, want := range map[string]string{
		"uprobe-linux-6.11":    "uprobe-linux-6.1",
		"uprobe-linux-6.12.99": "uprobe-linux-6.12",
		"uprobe-linux-99.0":    "uprobe-linux-7.3",
		"linux-6.13":           "linux-6.12",
		"linux-6.6":            "linux-6.1",
	} {
		p, ok := isa.Profile(asked, classify.KernelOptions{})
		if _, alsoJumps := isa.Optimizer(asked, classify.KernelOptions{}); !ok || !alsoJumps || p.Name() != want {
			t.Errorf("%s is answered by %v, want %s", asked, p, want)
		}
	}
	for name, p := range profiles(t, isa) {
		if p.Name() != name {
			t.Errorf("%s is called %s", name, p.Name())
		}
	}
}

// CheckUprobesStay checks that no uprobe in f becomes a jump.
func CheckUprobesStay(t *testing.T, isa ISA, f *classify.Func) {
	t.Helper()
	o, ok := isa.Optimizer(classify.Uprobe612, classify.KernelOptions{})
	if !ok {
		t.Fatal("no optimizer of uprobes")
	}
	for _, v := range o.Func(nil, &optcheck.Function{Func: f, Verdicts: make([]classify.Verdict, len(f.Insts))}, nil) {
		if RuleID(v.Rule) != "linux/uprobe-no-jump" || v.OK() {
			t.Errorf("got %s", JumpText(&v))
		}
	}
}

// CheckOwnedText checks what the profile isa says of text that the kernel
// writes itself or that is data: the middle one of three nops.
func CheckOwnedText(t *testing.T, isa ISA, nop []byte) {
	t.Helper()
	const addr = 0x10000
	n := uint64(len(nop))
	var code []byte
	for range 3 {
		code = append(code, nop...)
	}
	p, _ := isa.Profile(classify.ISA, classify.KernelOptions{})
	for _, c := range []struct {
		kind    place.Kind
		rule    string
		instead uint64
	}{
		{place.Data, "isa/data", 0},
		{place.JumpLabel, "isa/jump-label", addr + 2*n},
		{place.StaticCall, "isa/static-call", addr + 2*n},
		{place.Ftrace, "isa/ftrace-site", addr + 2*n},
		{place.ExTable, "", 0},
	} {
		f := Func(isa, addr, code)
		f.Marks = place.Marks{{Addr: addr + n, Len: n, Kind: c.kind}}
		for i, v := range p.Func(nil, f) {
			at := p.At(f, f.Insts[i].Addr)
			rule, _ := IDs(&v)
			if want := i == 1 && c.rule != ""; want != (rule != "") || want && (rule != c.rule || v.Instead != c.instead) || v != at {
				t.Errorf("%s at %d: Func %+v, At %+v", c.rule, i, v, at)
			}
		}
	}
}

// CheckPlaces checks that what is named to be probed instead of a jump label is
// not the instruction after it where that is refused itself: one that traps,
// and a second jump label.
func CheckPlaces(t *testing.T, isa ISA, nop, trap []byte) {
	t.Helper()
	const addr = 0x10000
	n, m := uint64(len(nop)), uint64(len(trap))
	label := func(off uint64) place.Mark { return place.Mark{Addr: addr + off, Len: n, Kind: place.JumpLabel} }
	for _, c := range []struct {
		name    string
		after   []byte
		marks   place.Marks
		instead uint64 // offset; 0 for none
	}{
		{"a nop", nop, place.Marks{label(0)}, n},
		{"a trap", slices.Concat(trap, nop), place.Marks{label(0)}, n + m},
		{"a second site", slices.Concat(nop, trap, nop), place.Marks{label(0), label(n)}, 2*n + m},
		{"nothing but a trap", trap, place.Marks{label(0)}, 0},
		{"nothing", nil, place.Marks{label(0)}, 0},
	} {
		for _, name := range []string{classify.Linux612, classify.ISA} {
			p, _ := isa.Profile(name, kernel.Debian(isa.Name(), classify.Linux(6, 12)))
			f := Func(isa, addr, slices.Concat(nop, c.after))
			f.Marks = slices.Clone(c.marks)
			if name == classify.ISA {
				markData(f, trap)
			}
			want := c.instead
			if want != 0 {
				want += addr
			}
			if v := p.Func(nil, f)[0]; v.OK() || v.Instead != want || v != p.At(f, addr) {
				t.Errorf("%s, followed by %s: %+v, want %#x", name, c.name, v, want)
			}
		}
	}
}

// markData marks the instructions of f that have the bytes of trap as data,
// which the profile isa refuses as Linux does a trap.
func markData(f *classify.Func, trap []byte) {
	for i := range f.Insts {
		if inst := &f.Insts[i]; string(inst.Bytes()) == string(trap) {
			f.Marks = append(f.Marks, place.Mark{Addr: inst.Addr, Len: uint64(inst.Len), Kind: place.Data})
		}
	}
	f.Marks.Sort()
}

// CheckProfiles judges bytes that stand at addr, with a mark off bytes after
// that, by all profiles: Func and At agree, and verdicts do not contradict
// themselves.
func CheckProfiles(t *testing.T, isa ISA, code []byte, addr, off uint64) {
	t.Helper()
	f := Func(isa, addr, code)
	f.Marks = place.Marks{{Addr: addr + off, Len: 1 + off%16, Kind: place.Kind(1 << (off % 16))}}
	for name, p := range profiles(t, isa) {
		verdicts := p.Func(nil, f)
		if len(verdicts) != len(f.Insts) {
			t.Fatalf("%s: %d verdicts for %d instructions", name, len(verdicts), len(f.Insts))
		}
		for i := range verdicts {
			v := &verdicts[i]
			if at := p.At(f, f.Insts[i].Addr); at != *v && addr+uint64(len(code)) >= addr {
				t.Fatalf("%s at %#x: Func %+v, At %+v", name, f.Insts[i].Addr, *v, at)
			}
			if to := p.At(f, v.Instead); v.Instead != 0 && (!to.OK() || to.Hazard != nil) {
				t.Fatalf("%s at %#x: %+v is to be probed at %#x instead: %+v", name, f.Insts[i].Addr, *v, v.Instead, to)
			}
			if v.OK() == (v.Exec == classify.ExecNone) {
				t.Fatalf("%s at %#x: %+v", name, f.Insts[i].Addr, *v)
			}
		}
		p.At(f, addr+off)
		p.At(f, off)
		p.Lone(code, addr)
	}
}

// CheckProfileAllocs checks that no profile allocates for the instructions of a
// text.
func CheckProfileAllocs(t *testing.T, isa ISA, addr uint64, text []byte) {
	t.Helper()
	f := Func(isa, addr, text)
	dst := make([]classify.Verdict, 0, len(f.Insts))
	for name, p := range profiles(t, isa) {
		if n := testing.AllocsPerRun(5, func() { dst = p.Func(dst[:0], f) }); n != 0 {
			t.Errorf("%s: %v allocations for %d instructions", name, n, len(f.Insts))
		}
	}
}

// BenchmarkProfiles judges functions by each profile; the metric is the time per
// instruction, without decoding.
func BenchmarkProfiles(b *testing.B, isa ISA, funcs ...*classify.Func) {
	insts, longest := 0, 0
	for _, f := range funcs {
		insts, longest = insts+len(f.Insts), max(longest, len(f.Insts))
	}
	verdicts := make([]classify.Verdict, 0, longest)
	for _, name := range isa.Profiles() {
		p := profiles(b, isa)[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, f := range funcs {
					verdicts = p.Func(verdicts[:0], f)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*insts), "ns/inst")
		})
	}
}

// CheckDecodeAllocs checks that decoding a text does not allocate.
func CheckDecodeAllocs(t *testing.T, d decode.Decoder, text []byte) {
	t.Helper()
	step := uint8(d.Align())
	var inst decode.Inst
	if n := testing.AllocsPerRun(5, func() {
		for off := 0; off < len(text); off += int(max(inst.Len, step)) {
			_ = d.Decode(&inst, text[off:], 0x1000)
		}
	}); n != 0 {
		t.Errorf("%v allocations in %d bytes of text", n, len(text))
	}
}
