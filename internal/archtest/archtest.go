// Package archtest holds what the tests of all instruction sets ask alike: that
// profiles answer as recorded kernels did, and what holds for any profile, for
// any optimizer and for any moved code.
package archtest

import (
	"encoding/hex"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/internal/refdata"
	"xol/optcheck"
	"xol/relocate"
)

// ISA is the part of arch.ISA that is tested here; package arch itself imports
// the packages under test.
type ISA interface {
	optcheck.Architecture
	relocate.Relocator
	Profiles() []string
	Profile(name string, opt classify.KernelOptions) (classify.Profile, bool)
	Optimizer(profile string, opt classify.KernelOptions) (optcheck.Optimizer, bool)
}

// Branch returns the branch of a release, such as 6.12 of 6.12.117.
func Branch(t *testing.T, release string) classify.Version {
	t.Helper()
	v, ok := classify.ParseVersion(release)
	if !ok {
		t.Fatalf("%s is no version", release)
	}
	return v.Branch()
}

// IDs returns the ids of a verdict's rule and hazard, empty where there is none.
func IDs(v *classify.Verdict) (rule, hazard string) {
	if v.Hazard != nil {
		hazard = v.Hazard.ID
	}
	return RuleID(v.Rule), hazard
}

// RuleID returns the id of r, empty for nil.
func RuleID(r *classify.Rule) string {
	if r == nil {
		return ""
	}
	return r.ID
}

// Errno returns what a verdict's rule answers, 0 where it has none.
func Errno(v *classify.Verdict) classify.Errno {
	if v.Rule == nil {
		return 0
	}
	return v.Rule.Errno
}

// Func returns code, which stands at addr, as a function f.
func Func(d decode.Decoder, addr uint64, code []byte) *classify.Func {
	return &classify.Func{Name: "f", Addr: addr, Code: code, Insts: decode.Sweep(d, nil, code, addr)}
}

// Sweep decodes code, which stands at addr, all of which has to be
// instructions.
func Sweep(t testing.TB, d decode.Decoder, code []byte, addr uint64) []decode.Inst {
	t.Helper()
	insts := decode.Sweep(d, nil, code, addr)
	for i := range insts {
		if insts[i].Has(decode.Invalid) {
			t.Fatalf("%x at %#x is no instruction", insts[i].Bytes(), insts[i].Addr)
		}
	}
	return insts
}

// KernelText returns the functions of a list of kernel verdicts as one text.
func KernelText(t testing.TB, path string) (text []byte) {
	t.Helper()
	funcs, err := refdata.KernelVerdicts(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range funcs {
		text = append(text, funcs[i].Text...)
	}
	return text
}

// RealText returns the instructions of a list as one text. Their bytes are in
// its second column.
func RealText(t testing.TB, path string) (text []byte) {
	t.Helper()
	rows, err := refdata.Rows(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		code, err := hex.DecodeString(row[1])
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, code...)
	}
	return text
}
