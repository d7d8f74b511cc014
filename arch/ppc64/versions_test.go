package ppc64

import (
	"strings"
	"testing"

	"xol/internal/archtest"
	"xol/internal/refdata"
)

// TestKprobesByVersion compares with what kernels of other versions answered,
// and with the jumps that they made.
func TestKprobesByVersion(t *testing.T) {
	for _, list := range []string{"6.1.176", "7.3rc7"} {
		k := recorded
		k.Version = archtest.Branch(t, strings.TrimSuffix(list, "rc7"))
		t.Run(list, func(t *testing.T) { check(t, k, "testdata/kprobe/"+list+".jsonl.gz") })
		t.Run("all of "+list, func(t *testing.T) { check(t, k, refdata.Full(t, "kernel-verdicts", "ppc64el-"+list+".jsonl.gz")) })
	}
}

func check(t *testing.T, k archtest.Kernel, path string) {
	k.CheckProbes(t, path)
	k.CheckJumps(t, path)
}
