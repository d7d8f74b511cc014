//go:build unicorn

package runtime_test

import (
	"bytes"
	"os"
	gort "runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"xol/arch"
	"xol/guest"
	"xol/image"
	"xol/internal/isatest"
	"xol/internal/skip"
	"xol/machine"
	"xol/runtime"
)

// holdings are what the process holds.
type holdings struct {
	resident   int // bytes of memory
	mappings   int
	files      int
	goroutines int
}

func measure(t *testing.T) (h holdings) {
	t.Helper()
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		skip.Missing(t, "/proc", err)
	}
	pages, err := strconv.Atoi(string(bytes.Fields(statm)[1]))
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return holdings{pages * os.Getpagesize(), bytes.Count(maps, []byte("\n")), len(files), gort.NumGoroutine()}
}

// cycle opens a machine with a program, runs it with probes, and leaves it.
func cycle(t *testing.T, isa string) {
	t.Helper()
	i, err := isatest.Named(isa)
	if err != nil {
		t.Fatal(err)
	}
	m, err := guest.Open(guest.Options{ISA: i, CPUs: 2})
	if err != nil {
		t.Fatal(err)
	}
	path := "../testdata/guest/" + isa + "-O2"
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := m.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Map(bufferAddr, guest.PageSize, machine.PermRead|machine.PermWrite); err != nil {
		t.Fatal(err)
	}
	r, err := runtime.New(m, i, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.OpenFile(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	im, err := r.Load("guest", img)
	if err != nil {
		t.Fatal(err)
	}
	with := &program{r, m, p, img, im}
	sort, err := p.Function("sort_words")
	if err != nil {
		t.Fatal(err)
	}
	with.start(t, sort, runtime.Probe{PreHandler: readArg})
	attach(t, r, runtime.Probe{Symbol: "quick_sort", Counter: true})
	if err := with.sortWords(t.Context(), sort); err != nil {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestClosingLeavesNothing opens and closes machines, and holds what the process
// has against what it had: a thousand cycles that leak pages, or handles that keep
// machines alive, show.
func TestClosingLeavesNothing(t *testing.T) {
	const (
		warmUp = 200
		cycles = 1000
	)
	names := arch.Names()
	n := cycles
	if testing.Short() {
		n /= 10
	}
	var before holdings
	for i := range warmUp + n {
		if i == warmUp {
			before = measure(t)
		}
		cycle(t, names[i%len(names)])
	}
	after := measure(t)
	const kept, slack = 4 << 20, 2 << 10 // bytes that allocators keep: in all, and of a cycle
	t.Logf("%d cycles: %+v before, %+v after", n, before, after)
	if grown := after.resident - before.resident; grown > kept+n*slack && !raceDetector {
		t.Errorf("%d bytes are left", grown)
	}
	if after.files > before.files || after.goroutines > before.goroutines {
		t.Error("files or goroutines are left")
	}
	if after.mappings > before.mappings+n/10 {
		t.Error("mappings are left")
	}
}
