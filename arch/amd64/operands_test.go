package amd64

import (
	"encoding/hex"
	"regexp"
	"testing"

	"xol/decode"
	"xol/internal/refdata"
)

// An instruction whose operand moves out of reach must be known to use the
// stack pointer: saving a register would change it. objdump's text is the judge.
func TestUsesStackPointer(t *testing.T) {
	rows, err := refdata.Rows("testdata/relocate-operands.tsv.gz")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`%(rsp|esp|sp|spl)\b`)
	judged, using, unknown := 0, 0, 0
	for _, row := range rows {
		raw, err := hex.DecodeString(row[0])
		if err != nil {
			t.Fatal(err)
		}
		var inst decode.Inst
		if (ISA{}).Decode(&inst, raw, 0x401000) != nil {
			unknown++
			continue
		}
		if inst.Flow == decode.FlowTrap {
			continue // ud0, ud1: never moved
		}
		want := named.MatchString(row[1])
		if got := DetailOf(&inst).usesStackPointer(); got != want {
			t.Errorf("%s %s: %t", row[0], row[1], got)
		}
		judged++
		if want {
			using++
		}
	}
	t.Logf("%d instructions, of which %d use the stack pointer; %d that only objdump takes for one", judged, using, unknown)
}
