package arm64

import (
	"testing"

	"xol/internal/archtest"
	"xol/internal/refdata"
)

// TestKprobesByVersion compares with what kernels of other versions answered,

func TestKprobesByVersion(t *testing.T) {
	for _, list := range []string{"5.10.218", "6.1.176", "7.3.4"} {
		k := recorded
		k.Version = archtest.Branch(t, list)
		t.Run(list, func(t *testing.T) { check(t, k, "testdata/kprobe/"+list+".jsonl.gz") })
		t.Run("all of "+list, func(t *testing.T) { check(t, k, refdata.Full(t, "kernel-verdicts", "arm64-"+list+".jsonl.gz")) })
	}
}

func check(t *testing.T, k archtest.Kernel, path string) {
	k.CheckProbes(t, path)
}
