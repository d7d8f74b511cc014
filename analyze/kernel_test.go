package analyze_test

import (
	"bytes"
	"encoding/hex"
	"sort"
	"strconv"
	"testing"

	"xol/analyze"
	"xol/decode"
	"xol/image"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/kernel"
)

// kernels are the kernels that the lists of verdicts were recorded on; hits
// says whether the probes were hit.
var kernels = []struct {
	kernel string
	hits   bool
}{
	{"amd64", true},
	{"arm64", true},
	{"ppc64el", false},
}

// olderAndNewer are kernels of other versions, and what has to be found out about
// them from their files.
var olderAndNewer = []struct {
	kernel, list     string
	hits             bool
	version, profile string
	preemption       bool
}{
	{"amd64-5.10.218", "amd64-5.10.218", true, "5.10.218", "linux-5.10", false},
	{"amd64-6.1.176", "amd64-6.1.176", true, "6.1.176", "linux-6.1", true},
	{"amd64-6.1.176", "amd64-6.1.176-nomitig", true, "6.1.176", "linux-6.1", true},
	{"amd64-7.3.4", "amd64-7.3.4", true, "7.3.4", "linux-7.3", true},
	{"amd64-7.3.4", "amd64-7.3.4-nomitig", true, "7.3.4", "linux-7.3", true},
	{"arm64-5.10.218", "arm64-5.10.218", true, "5.10.218", "linux-5.10", false},
	{"arm64-6.1.176", "arm64-6.1.176", true, "6.1.176", "linux-6.1", false},
	{"arm64-7.3.4", "arm64-7.3.4", true, "7.3.4", "linux-7.3", true},
	{"ppc64el-6.1.176", "ppc64el-6.1.176", false, "6.1.176", "linux-6.1", false},
	{"ppc64el-7.3rc7", "ppc64el-7.3rc7", false, "7.3", "linux-7.3", true},
}

// TestVersionsFromFiles judges by what a file tells of its kernel, and compares with
// what the kernel answered when it ran: no version is given.
func TestVersionsFromFiles(t *testing.T) {
	for _, k := range olderAndNewer {
		t.Run(k.list, func(t *testing.T) {
			funcs, a := recordedKernel(t, k.kernel, k.list)
			if got := a.Kernel.Version.String(); got != k.version || a.Profile.Name() != k.profile {
				t.Errorf("it is taken for %s, profile %s", got, a.Profile.Name())
			}
			if s := a.Kernel.Setting(kernel.Preemption); s.On != k.preemption || s.Source != kernel.Told {
				t.Errorf("preemption: %v, source %d", s, s.Source)
			}
			patches := readPatches(t, k.list)
			c := comparison{hits: k.hits}
			for i := range funcs {
				kf := &funcs[i]
				r, ok := judgeRecorded(t, a, kf)
				if !ok {
					continue
				}
				r.Code = fileCode(t, a, r)
				patches.apply(r.Code, r.Addr)
				if !bytes.Equal(r.Code, kf.Text) {
					t.Errorf("%s: the text is not that of the list", kf.Sym)
					continue
				}
				r.Insts = decode.Sweep(a.ISA, r.Insts[:0], r.Code, r.Addr)
				c.compare(t, a, r, kf)
			}
			t.Logf("%d functions, %d rows", c.funcs, c.rows)
		})
	}
}

// recordedKernel reads a list of verdicts and opens the file of the kernel that
// it was recorded on.
func recordedKernel(t *testing.T, kernel, list string) ([]refdata.KernelFunc, *analyze.Analysis) {
	t.Helper()
	funcs, err := refdata.KernelVerdicts(refdata.Full(t, "kernel-verdicts", list+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.OpenFile(refdata.Full(t, "kernels", kernel+".vmlinux.xz"), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	a, err := analyze.New(img, analyze.Options{Optimize: true})
	if err != nil {
		t.Fatal(err)
	}
	return funcs, a
}

// judgeRecorded judges what the file has where the kernel had kf.
func judgeRecorded(t *testing.T, a *analyze.Analysis, kf *refdata.KernelFunc) (r *analyze.Result, ok bool) {
	t.Helper()
	f, ok := a.FunctionAt(uint64(kf.Addr))
	if !ok || f.Addr != uint64(kf.Addr) || f.Size != kf.Size {
		t.Errorf("%s: the file has %+v, the kernel %#x, %d bytes", kf.Sym, f, kf.Addr, kf.Size)
		return nil, false
	}
	return a.Judge(f), true
}

// TestKernelFileGivesTheVerdictsOfTheRunningKernel compares what the kernel
// answered when it ran with what its file says, wherever booting left the bytes
// of the function alone.
func TestKernelFileGivesTheVerdictsOfTheRunningKernel(t *testing.T) {
	for _, k := range kernels {
		t.Run(k.kernel, func(t *testing.T) {
			t.Parallel()
			funcs, a := recordedKernel(t, k.kernel, k.kernel)
			patches := readPatches(t, k.kernel)
			same, patched := comparison{hits: k.hits}, comparison{hits: k.hits}
			for i := range funcs {
				kf := &funcs[i]
				r, ok := judgeRecorded(t, a, kf)
				switch {
				case !ok:
				case bytes.Equal(r.Code, kf.Text):
					same.compare(t, a, r, kf)
				default:
					r.Code = fileCode(t, a, r)
					patches.apply(r.Code, r.Addr)
					r.Insts = decode.Sweep(a.ISA, r.Insts[:0], r.Code, r.Addr)
					patched.compare(t, a, r, kf)
				}
			}
			t.Logf("as in the file: %d functions, %d rows; patched: %d functions, %d rows",
				same.funcs, same.rows, patched.funcs, patched.rows)
		})
	}
}

// fileCode returns what the file has where r stands.
func fileCode(t *testing.T, a *analyze.Analysis, r *analyze.Result) []byte {
	t.Helper()
	code, err := a.Image.Code(nil, r.Addr, uint64(len(r.Code)))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// comparison counts what was compared.
type comparison struct {
	hits        bool
	funcs, rows int
}

func (c *comparison) compare(t *testing.T, a *analyze.Analysis, r *analyze.Result, kf *refdata.KernelFunc) {
	c.funcs++
	for i := range kf.Rows {
		row := &kf.Rows[i]
		c.rows++
		v := a.Profile.At(&r.Func, r.Addr+row.Off)
		if what := row.Differs(&v, r.Addr, c.hits); what != "" {
			t.Errorf("%s+%#x: %s: %+v (%s), the kernel %+v", kf.Sym, row.Off, what, v, archtest.RuleID(v.Rule), row)
		}
	}
}

// patches are the places where the running kernel's text is not the file's,
// sorted by address.
type patches []patch

type patch struct {
	addr uint64
	code []byte
}

func readPatches(t *testing.T, kernel string) patches {
	t.Helper()
	rows, err := refdata.Rows(refdata.Full(t, "kernels", kernel+".runtime.tsv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	list := make(patches, len(rows))
	for i, row := range rows {
		if list[i].addr, err = strconv.ParseUint(row[0], 16, 64); err != nil {
			t.Fatal(err)
		}
		if list[i].code, err = hex.DecodeString(row[1]); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func (p patches) apply(code []byte, addr uint64) {
	i := sort.Search(len(p), func(i int) bool { return p[i].addr+uint64(len(p[i].code)) > addr })
	for ; i < len(p) && p[i].addr < addr+uint64(len(code)); i++ {
		for j, b := range p[i].code {
			if at := p[i].addr + uint64(j) - addr; at < uint64(len(code)) {
				code[at] = b
			}
		}
	}
}
