//go:build unicorn

package runtime_test

import (
	"os"
	"path/filepath"
	"testing"

	"xol/arch"
	"xol/classify"
	"xol/guest"
	"xol/image"
	"xol/internal/isatest"
	"xol/machine"
	"xol/runtime"
)

// unwatched is a machine that does not report accesses to data.
type unwatched struct{ machine.Machine }

// openUnwatched returns a runtime on such a machine, with a program.
func openUnwatched(t *testing.T, name string) *runtime.Runtime {
	t.Helper()
	isa, err := isatest.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := guest.Open(guest.Options{ISA: isa})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	r, err := runtime.New(unwatched{m}, isa, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWatchesAreRefused(t *testing.T) {
	spec := runtime.WatchProbe{Addr: bufferAddr, Len: 8, Kind: machine.WatchWrite}
	with := func(change func(*runtime.WatchProbe)) runtime.WatchProbe {
		p := spec
		change(&p)
		return p
	}
	for _, isa := range arch.Names() {
		p := openReturns(t, isa, guest.Options{}, runtime.Options{})
		for _, c := range []struct {
			what string
			spec runtime.WatchProbe
		}{
			{"neither reads nor writes", with(func(p *runtime.WatchProbe) { p.Kind = 0 })},
			{"a kind that there is not", with(func(p *runtime.WatchProbe) { p.Kind = machine.WatchAccess + 1 })},
			{"no byte", with(func(p *runtime.WatchProbe) { p.Len = 0 })},
			{"a CPU that there is not", with(func(p *runtime.WatchProbe) { p.CPUs = []int{0, 1} })},
			{"a CPU below the first", with(func(p *runtime.WatchProbe) { p.CPUs = []int{-1} })},
		} {
			refusedBy(t, isa+": "+c.what, try(p, c.spec), "runtime/watch-kind", classify.EINVAL)
		}
		refusedBy(t, isa+": a machine that does not watch", try(openUnwatched(t, isa), spec), "runtime/no-watch", classify.EOPNOTSUPP)
		same(t, "one that does", try(p, spec), nil)
	}
}

// TestNoRoom keeps the runtime out of all memory that jumps can reach.
func TestNoRoom(t *testing.T) {
	for _, isa := range arch.Names() {
		p := openReturns(t, isa, guest.Options{}, runtime.Options{Reserved: []machine.Range{{Hi: 1<<64 - 1}}})
		for what, spec := range map[string]runtime.Spec{
			"a counter": runtime.Probe{Symbol: "descend", Counter: true}, "a return probe": runtime.ReturnProbe{Symbol: "descend"},
		} {
			refusedBy(t, isa+": "+what, try(p, spec), "runtime/no-room", classify.ENOMEM)
		}
		same(t, "probes that are left", len(p.Links()), 0)
		p.calls(t, 6, "tail", 2)
	}
}

// TestNoExecution probes a far return: nothing interprets it, and a breakpoint after its
// copy is never come to.
func TestNoExecution(t *testing.T) {
	path := filepath.Join(t.TempDir(), "far")
	data, err := os.ReadFile(returnsPath("amd64"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.OpenFile(returnsPath("amd64"), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	places, err := img.Resolve("tail")
	if err != nil {
		t.Fatal(err)
	}
	offset, ok := img.OffsetOf(places[0].Addr)
	if !ok {
		t.Fatal("tail is not in the file")
	}
	const lret = 0xcb
	data[offset] = lret
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stepping runtime.Stepping
		rule     string
	}{{runtime.StepBreakpoint, "runtime/no-execution"}, {runtime.StepTrap, ""}} {
		p := openFile(t, "amd64", path, guest.Options{}, runtime.Options{Stepping: c.stepping})
		err := try(p, runtime.Probe{Addr: places[0].Addr})
		if c.rule == "" {
			same(t, "on a machine that steps", err, nil)
			continue
		}
		refusedBy(t, "on a machine that does not step", err, c.rule, classify.EOPNOTSUPP)
	}
}

// TestInsideEntries probes what the runtime has made patchable: in the middle of a site
// there is no instruction.
func TestInsideEntries(t *testing.T) {
	p := openFile(t, "amd64", "../testdata/guest/entry/amd64-fentry", guest.Options{}, runtime.Options{EntryProbes: true})
	sites, err := p.img.EntrySites()
	if err != nil || len(sites) == 0 {
		t.Fatal(sites, err)
	}
	for n := range uint64(6) {
		err := try(p, runtime.Probe{Addr: sites[0] + n})
		if n == 0 || n == 5 {
			same(t, "at the site and after it", err, nil)
			continue
		}
		refusedBy(t, "inside of a site", err, "runtime/entry-site", classify.EILSEQ)
	}
}

// TestSemaphoresAreRefused names counters of markers that cannot be.
func TestSemaphoresAreRefused(t *testing.T) {
	s := newSystem(t, "amd64")
	u := s.start(t, biases[0], runtime.Options{})
	good := runtime.Uprobe{Executable: s.file, Symbol: "mark_site", Semaphore: s.semaphoreOffset(t, u)}
	bad := good
	bad.Semaphore = 1 << 40
	_, err := s.Attach(bad)
	refusedBy(t, "no such place", err, "runtime/semaphore", classify.EINVAL)
	attachUprobe(t, s, good)
}
