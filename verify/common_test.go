package verify_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"xol/decode"
	"xol/internal/refdata"
	"xol/relocate"
	"xol/verify"
)

var reaches = map[string]relocate.Reach{"near": relocate.Near, "far": relocate.Far}

// testText returns a piece of text of testdata.
func testText(t testing.TB, name string) []byte {
	t.Helper()
	text, err := refdata.Read(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// randomRuns draws n runs of 12 instructions at the most.
func randomRuns(insts []decode.Inst, n, shortest int, seed uint64) [][]decode.Inst {
	r := rand.New(rand.NewPCG(seed, 0))
	var runs [][]decode.Inst
	for len(runs) < n {
		start := r.IntN(len(insts))
		run := insts[start:min(start+shortest+r.IntN(13-shortest), len(insts))]
		valid := true
		for i := range run {
			valid = valid && !run[i].Has(decode.Invalid)
		}
		if valid {
			runs = append(runs, run)
		}
	}
	return runs
}

// run verifies one instruction in a slot, or a run as a region.
func run(t testing.TB, insts []decode.Inst, region bool, opt verify.Options) *verify.Report {
	t.Helper()
	var r *verify.Report
	var err error
	if region {
		r, err = verify.Regions(context.Background(), [][]decode.Inst{insts}, opt)
	} else {
		r, err = verify.Instructions(context.Background(), insts, opt)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// texter writes instructions.
type texter interface {
	Text(inst *decode.Inst, lookup decode.SymLookup) string
}

// report fails the test for each difference that r has as an example.
func report(t testing.TB, isa texter, r *verify.Report) {
	t.Helper()
	for i := range r.Examples {
		d := &r.Examples[i]
		t.Errorf("%x (%s) at %#x, moved to %#x: %x\n%s", d.Inst.Bytes(), isa.Text(&d.Inst, nil), d.Inst.Addr, d.To, d.Moved,
			strings.Join(d.What, "\n"))
	}
}

// summary says how much was compared.
func summary(r *verify.Report) string {
	return fmt.Sprintf("%d of %d executed, %d states, %d differences; skipped: %v", r.Executed, r.Distinct, r.States, r.Differences, r.Skipped)
}
