package analyze_test

import (
	"bytes"
	"encoding/hex"
	"path/filepath"
	"sort"
	"strconv"
	"testing"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/internal/refdata"
)

// shared is where the real kernels and the full lists are, beside the project.
var shared = filepath.Join("..", "..", "shared")

// kernels are the kernels that the lists of verdicts were recorded on.
var kernels = []struct{ kernel, list string }{
	{"amd64", "amd64"},
	{"arm64", "arm64"},
	{"ppc64el", "ppc64el"},
}

// TestKernelFileGivesTheVerdictsOfTheRunningKernel compares what the kernel
// answered when it ran with what its file says, wherever booting left the bytes
// of the function alone.
func TestKernelFileGivesTheVerdictsOfTheRunningKernel(t *testing.T) {
	for _, k := range kernels {
		t.Run(k.kernel, func(t *testing.T) {
			t.Parallel()
			funcs, err := refdata.KernelVerdicts(filepath.Join(shared, "kernel-verdicts", k.list+".jsonl.gz"))
			if err != nil {
				t.Skip(err)
			}
			img, err := image.OpenFile(filepath.Join(shared, "kernels", k.kernel+".vmlinux.xz"), image.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			a, err := analyze.New(img, analyze.Options{})
			if err != nil {
				t.Fatal(err)
			}
			patches := readPatches(t, filepath.Join(shared, "kernels", k.kernel+".runtime.tsv.gz"))
			var same, patched comparison
			for i := range funcs {
				kf := &funcs[i]
				f, ok := a.FunctionAt(uint64(kf.Addr))
				if !ok || f.Addr != uint64(kf.Addr) || f.Size != kf.Size {
					t.Errorf("%s: the file has %+v, the kernel %#x, %d bytes", kf.Sym, f, kf.Addr, kf.Size)
					continue
				}
				r := a.Judge(f)
				if bytes.Equal(r.Code, kf.Text) {
					same.compare(t, a, r, kf)
					continue
				}
				patches.apply(r.Code, r.Addr)
				r.Insts = decode.Sweep(a.ISA, r.Insts[:0], r.Code, r.Addr)
				patched.compare(t, a, r, kf)
			}
			t.Logf("as in the file: %d functions, %d rows; patched: %d functions, %d rows",
				same.funcs, same.rows, patched.funcs, patched.rows)
		})
	}
}

// comparison counts what was compared.
type comparison struct{ funcs, rows int }

func (c *comparison) compare(t *testing.T, a *analyze.Analysis, r *analyze.Result, kf *refdata.KernelFunc) {
	c.funcs++
	for i := range kf.Rows {
		row := &kf.Rows[i]
		c.rows++
		v := a.Profile.At(&r.Func, r.Addr+row.Off)
		if what := differs(&v, row, r.Addr); what != "" {
			rule := ""
			if v.Rule != nil {
				rule = v.Rule.ID
			}
			t.Errorf("%s+%#x: %s: %+v (%s), the kernel %+v", kf.Sym, row.Off, what, v, rule, row)
		}
	}
}

// differs names the first thing in which a verdict is not what the kernel
// answered.
func differs(v *classify.Verdict, row *refdata.KernelRow, base uint64) string {
	errno := classify.Errno(0)
	if v.Rule != nil {
		errno = v.Rule.Errno
	}
	switch {
	case errno != row.Errno:
		return "errno"
	case errno != 0:
		return ""
	case row.MovedTo != nil && v.MovedTo != base+*row.MovedTo || row.MovedTo == nil && v.MovedTo != 0:
		return "moved to"
	case row.Handler != "" && v.Emulator != row.Handler:
		return "handler"
	case row.Boost != nil && v.Boost != *row.Boost:
		return "boost"
	// Where a list does not tell emulation from a slot, its rows say slot.
	case v.Exec.String() != row.Exec && (row.Exec != "slot" || row.Boost != nil):
		return "exec"
	}
	return ""
}

// patches are the places where the running kernel's text is not the file's,
// sorted by address.
type patches []patch

type patch struct {
	addr uint64
	code []byte
}

func readPatches(t *testing.T, path string) patches {
	t.Helper()
	rows, err := refdata.Rows(path)
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
