package image

import (
	"slices"
	"testing"

	"xol/internal/refdata"
	"xol/place"
)

// readMeasured reads what a running kernel said of functions and their
// addresses.
func readMeasured(t *testing.T, name string) []refdata.KernelFunc {
	t.Helper()
	list, err := refdata.KernelVerdicts(refdata.Full(t, "kernel-verdicts", name+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func openKernel(t testing.TB, name string) *Image {
	t.Helper()
	im, err := OpenFile(refdata.Full(t, "kernels", name+".vmlinux.xz"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

// TestKernelVerdicts compares names, extents and tables with what running
// kernels said.
func TestKernelVerdicts(t *testing.T) {
	for _, tc := range []struct {
		kernel   string
		verdicts []string
	}{
		{"amd64", []string{"amd64", "amd64-nomitig"}}, {"arm64", []string{"arm64"}}, {"ppc64el", []string{"ppc64el"}},
	} {
		t.Run(tc.kernel, func(t *testing.T) {
			var list []refdata.KernelFunc
			for _, name := range tc.verdicts {
				list = append(list, readMeasured(t, name)...)
			}
			im := openKernel(t, tc.kernel)
			fns, err := im.Functions(ExtentNext)
			if err != nil {
				t.Fatal(err)
			}
			marks, err := im.Marks()
			if err != nil {
				t.Fatal(err)
			}
			for i := range list {
				checkMeasured(t, &list[i], fns, marks)
			}
		})
	}
}

func checkMeasured(t *testing.T, m *refdata.KernelFunc, fns []Function, marks place.Marks) {
	t.Helper()
	addr := uint64(m.Addr)
	f := functionAt(fns, addr)
	if f == nil || f.Addr != addr || f.Name != m.Sym || f.Size != m.Size {
		t.Errorf("%s at %#x, %d bytes: got %+v", m.Sym, addr, m.Size, f)
		return
	}
	inside := touching(marks, addr, addr+m.Size)
	for _, c := range []struct {
		kind place.Kind
		want []uint64
	}{
		{place.ExTable, m.ExTable}, {place.JumpLabel, m.JumpLabel}, {place.StaticCall, m.StaticCall},
		{place.Bug, m.Bug}, {place.Ftrace, m.Ftrace},
	} {
		var got []uint64
		for _, p := range inside {
			if p.Kind&c.kind != 0 && p.Addr >= addr {
				got = append(got, p.Addr-addr)
			}
		}
		if got = slices.Compact(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: offsets of kind %#x: got %v, want %v", m.Sym, c.kind, got, c.want)
		}
	}
	for _, r := range m.Rows {
		k := inside.At(addr + r.Off)
		if got := k&place.Blacklist != 0; got != r.Blacklisted {
			t.Errorf("%s+%d: blacklisted: got %v, want %v (errno %d)", m.Sym, r.Off, got, r.Blacklisted, r.Errno)
			break
		}
		if got := k&place.EntryText != 0; got != r.EntryText {
			t.Errorf("%s+%d: entry text: got %v, want %v", m.Sym, r.Off, got, r.EntryText)
			break
		}
	}
}

// touching returns the marks that hold for any address in [lo, hi).
func touching(marks place.Marks, lo, hi uint64) place.Marks {
	var inside place.Marks
	for _, p := range marks {
		if p.Addr < hi && p.End() > lo {
			inside = append(inside, p)
		}
	}
	return inside
}

// BenchmarkKernel measures all that an analysis of a kernel asks of this
// package before it decodes.
func BenchmarkKernel(b *testing.B) {
	for _, name := range []string{"amd64", "arm64", "ppc64el"} {
		b.Run(name, func(b *testing.B) {
			unpacked := openKernel(b, name)
			b.ReportAllocs()
			for b.Loop() {
				im, err := Open(unpacked.r, unpacked.size, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := im.Functions(ExtentNext); err != nil {
					b.Fatal(err)
				}
				if _, err := im.Marks(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
