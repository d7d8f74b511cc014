package archtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"xol/internal/skip"
)

// CheckGenerated runs a generator of the package that is tested, a Go file that
// writes to the folder that -o names, and compares what it makes with the files
// of the package.
func CheckGenerated(t *testing.T, generator string) {
	t.Helper()
	skip.Long(t, "the go command runs")
	made := t.TempDir()
	if out, err := exec.Command("go", "run", generator, "-o", made).CombinedOutput(); err != nil {
		t.Fatalf("go run %s: %v\n%s", generator, err, out)
	}
	files, err := filepath.Glob(filepath.Join(made, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s makes nothing: %v", generator, err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Base(file))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what %s makes of its input: run go generate (%v)", filepath.Base(file), generator, err)
		}
	}
}
