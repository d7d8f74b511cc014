package archtest

import (
	"cmp"
	"fmt"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/internal/refdata"
	"xol/kernel"
	"xol/optcheck"
)

// Kernel is the kernel of an ISA whose answers are recorded.
type Kernel struct {
	ISA ISA
	// SiteLen returns the length in bytes of the jump label or static call at
	// the start of code.
	SiteLen func(code []byte) uint64
	// Hits says whether the lists were recorded with the probes hit.
	Hits bool
	// Version is the kernel's; 0 means 6.12.
	Version classify.Version
	// Options are the kernel's; nil means Debian's.
	Options *classify.KernelOptions
}

// profile returns the name of the kernel's profile, and its options.
func (k Kernel) profile() (string, classify.KernelOptions) {
	v := cmp.Or(k.Version, classify.Linux(6, 12))
	name, opt := classify.ProfileName(classify.Kprobes, v), kernel.Debian(k.ISA.Name(), v)
	if k.Options != nil {
		opt = *k.Options
	}
	return name, opt
}

// OneWord is the SiteLen of ISAs whose instructions are words.
func OneWord([]byte) uint64 { return 4 }

func (k Kernel) read(t *testing.T, path string) []refdata.KernelFunc {
	t.Helper()
	funcs, err := refdata.KernelVerdicts(path)
	if err != nil {
		t.Fatal(err)
	}
	return funcs
}

// CheckProbes judges every address of a list by the kernel's profile and compares with
// what the kernel answered.
func (k Kernel) CheckProbes(t *testing.T, path string) {
	t.Helper()
	p, _ := k.ISA.Profile(k.profile())
	funcs := k.read(t, path)
	rows, emulated := 0, 0
	for i := range funcs {
		kf := &funcs[i]
		f := kf.Func(k.ISA, k.SiteLen)
		verdicts := p.Func(nil, f)
		for j := range kf.Rows {
			row := &kf.Rows[j]
			got := p.At(f, f.Addr+row.Off)
			if what := row.Differs(&got, f.Addr, k.Hits); what != "" {
				t.Errorf("%s+%#x: %s: got %+v, want %+v", kf.Sym, row.Off, what, got, row)
			}
			if n, start := decode.Find(f.Insts, f.Addr+row.Off); start && verdicts[n] != got {
				t.Errorf("%s+%#x: Func says %+v, At %+v", kf.Sym, row.Off, verdicts[n], got)
			}
			if got.Exec == classify.ExecEmulate {
				emulated++
			}
		}
		rows += len(kf.Rows)
	}
	t.Logf("%d functions, %d rows, %d of them emulated", len(funcs), rows, emulated)
}

// CheckJumps compares the jumps that the kernel's profile allows with what the kernel did
// with each probe of a list.
func (k Kernel) CheckJumps(t *testing.T, path string) {
	t.Helper()
	p, _ := k.ISA.Profile(k.profile())
	o, _ := k.ISA.Optimizer(k.profile())
	funcs := k.read(t, path)
	var s optcheck.Scratch
	count := map[bool]int{}
	for i := range funcs {
		kf := &funcs[i]
		f := kf.Func(k.ISA, k.SiteLen)
		verdicts := o.Func(nil, &optcheck.Function{Func: f, Verdicts: p.Func(nil, f)}, &s)
		for j := range kf.Rows {
			row := &kf.Rows[j]
			n, start := decode.Find(f.Insts, f.Addr+row.Off)
			if !start || !row.KnowsJump() {
				continue
			}
			v := &verdicts[n]
			if !row.AgreesOnJump(int(v.Region)) || (v.Rule != nil) != (row.Errno == 0 && !v.OK()) {
				t.Errorf("%s+%#x: got %s, want %+v", kf.Sym, row.Off, JumpText(v), row)
			}
			if row.Optimize != nil {
				count[*row.Optimize]++
			}
		}
	}
	t.Logf("%d functions, %d optimized, %d not", len(funcs), count[true], count[false])
}

// EachUprobe calls check for every row of a list of uprobe verdicts.
func EachUprobe(t *testing.T, path string, check func(row *refdata.UprobeRow)) {
	t.Helper()
	rows, err := refdata.UprobeVerdicts(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		check(&rows[i])
	}
	t.Logf("%d rows", len(rows))
}

// JumpText says what v allows or why it does not.
func JumpText(v *optcheck.Verdict) string {
	if v.Rule == nil {
		return fmt.Sprintf("%d bytes, %d moved", v.Region, v.Moved)
	}
	return fmt.Sprintf("%s by %#x", v.Rule.ID, v.Culprit)
}

// Symbols returns a kernel's symbols as classify.KernelOptions has them.
func Symbols(addrs map[string]uint64) func(name string) (addr uint64, ok bool) {
	return func(name string) (uint64, bool) {
		addr, ok := addrs[name]
		return addr, ok
	}
}
