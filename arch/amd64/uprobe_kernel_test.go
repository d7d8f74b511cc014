//go:build linux && amd64

package amd64

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"xol/classify"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/internal/skip"
	"xol/kernel"
)

// TestUprobesOfThisKernel registers uprobes in a file of its own, which is mapped
// but never executed, and compares the errors of the kernel that runs with those of
// its version's profile.
func TestUprobesOfThisKernel(t *testing.T) {
	t.Parallel()
	pmu := uprobePMU(t)
	version := runningVersion(t)
	name := classify.ProfileName(classify.Uprobes, version)
	p, ok := ISA{}.Profile(name, classify.KernelOptions{})
	if !ok {
		skip.Missing(t, "a kernel whose uprobes are known", version)
	}
	const wanted, step, slot = 300, 7, 64 // instructions, each in bytes of its own
	rows, err := refdata.UprobeVerdicts("testdata/uprobe-verdicts.tsv.gz")
	if err != nil {
		t.Fatal(err)
	}
	var codes [][]byte
	for i := 0; i < len(rows) && len(codes) < wanted; i += step * max(1, len(rows)/(wanted*step)) {
		codes = append(codes, rows[i].Bytes)
	}
	text := make([]byte, len(codes)*slot)
	for i := range text {
		text[i] = 0x90
	}
	for i, code := range codes {
		copy(text[i*slot:], code)
	}
	path := mapped(t, text)
	switch errno := tryUprobe(t, pmu, path, 0); unix.Errno(errno) {
	case unix.EACCES, unix.EPERM, unix.ENOSYS:
		skip.Missing(t, "a kernel whose uprobes can be registered", unix.Errno(errno))
	}
	got := make([]classify.Errno, len(codes))
	var g sync.WaitGroup
	turns := make(chan struct{}, 32) // taking a probe away takes the kernel 90 ms
	for i := range codes {
		turns <- struct{}{}
		g.Go(func() {
			got[i] = tryUprobe(t, pmu, path, uint64(i*slot))
			<-turns
		})
	}
	g.Wait()
	if t.Failed() {
		return
	}
	counts := make(map[classify.Errno]int)
	for i, code := range codes {
		counts[got[i]]++
		v := p.Lone(text[i*slot:i*slot+slot], uint64(i*slot))
		if want := archtest.Errno(&v); got[i] != want {
			t.Errorf("% x: %v, want %v (%s)", code, got[i], want, name)
		}
	}
	t.Logf("Linux %v by %s: %d instructions, %v", version, p.Name(), len(codes), counts)
}

// uprobePMU returns the number of the kernel's PMU for uprobes; it skips the test
// where there is none to use.
func uprobePMU(t *testing.T) uint32 {
	t.Helper()
	text, err := os.ReadFile("/sys/bus/event_source/devices/uprobe/type")
	if err != nil || os.Getuid() != 0 {
		skip.Missing(t, "a kernel whose uprobes can be registered", "no PMU for them, or not root")
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func runningVersion(t *testing.T) classify.Version {
	t.Helper()
	banner, err := os.ReadFile("/proc/version")
	if err != nil {
		skip.Missing(t, "the version of the running kernel", err)
	}
	return kernel.FromBanner(string(banner)).Version
}

// mapped writes text into a file and maps it to be executed: the kernel looks at an
// instruction when it puts the breakpoint into a process.
func mapped(t *testing.T, text []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, len(text), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		skip.Missing(t, "a file that can be mapped to be executed", err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	return path
}

// tryUprobe registers a uprobe for this process and takes it away again.
func tryUprobe(t *testing.T, pmu uint32, path string, offset uint64) classify.Errno {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		t.Error(err)
		return 0
	}
	attr := unix.PerfEventAttr{Type: pmu, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Ext1: uint64(uintptr(unsafe.Pointer(name))), Ext2: offset}
	fd, err := unix.PerfEventOpen(&attr, os.Getpid(), -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	var errno unix.Errno
	switch {
	case err == nil:
		unix.Close(fd)
		return 0
	case errors.As(err, &errno):
		return classify.Errno(errno)
	}
	t.Error(err)
	return 0
}
