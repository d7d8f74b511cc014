package image

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"testing"

	"xol/internal/refdata"
)

// applyRuntime writes what the text of a running kernel had over its file.
func applyRuntime(t *testing.T, im *Image, name string, file []byte) {
	t.Helper()
	rows, err := refdata.Rows(refdata.Full(t, "kernels", name+".runtime.tsv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		addr, err := strconv.ParseUint(row[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		code, err := hex.DecodeString(row[1])
		if err != nil {
			t.Fatal(err)
		}
		if off, ok := im.OffsetOf(addr); ok {
			copy(file[off:], code)
		}
	}
}

// TestFtraceSitesOfRunningKernels compares the sites in kernels' files with those
// in the text of machines that have booted them.
func TestFtraceSitesOfRunningKernels(t *testing.T) {
	for _, name := range []string{"arm64", "ppc64el"} {
		t.Run(name, func(t *testing.T) {
			im := openKernel(t, name)
			want, err := im.EntrySites()
			if err != nil {
				t.Fatal(err)
			}
			text := make([]byte, im.size)
			if _, err := im.r.ReadAt(text, 0); err != nil {
				t.Fatal(err)
			}
			applyRuntime(t, im, name, text)
			running, err := Open(bytes.NewReader(text), im.size, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := running.EntrySites()
			if err != nil {
				t.Fatal(err)
			}
			wrong := 0
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					wrong++
				}
			}
			if wrong > 0 || len(want) == 0 || len(got) != len(want) {
				t.Errorf("%d sites, %d in the running text, %d differ", len(want), len(got), wrong)
			}
		})
	}
}
