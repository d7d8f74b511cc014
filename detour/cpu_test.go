//go:build linux && amd64

package detour_test

import (
	"testing"

	"xol/arch"
	"xol/internal/nativecpu"
	"xol/internal/skip"
	"xol/machine"
)

func openCPU(isa arch.Prober) (machine.Engine, error) { return nativecpu.Open(isa.Registers()) }

// skipWithoutCPU skips a test where the system allows no ptrace.
func skipWithoutCPU(t *testing.T) {
	t.Helper()
	e, err := openCPU(isaOf(t, "amd64"))
	if err != nil {
		skip.Missing(t, "the right to trace a process", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestBuffersOnTheCPU(t *testing.T) {
	skipWithoutCPU(t)
	testBuffers(t, "amd64", openCPU)
}

func TestCountsOnTheCPU(t *testing.T) {
	skipWithoutCPU(t)
	testCounts(t, "amd64", openCPU)
}

func TestFramesOnTheCPU(t *testing.T) {
	skipWithoutCPU(t)
	testFrames(t, "amd64", openCPU)
}

func TestLibraryOnTheCPU(t *testing.T) {
	skipWithoutCPU(t)
	testLibrary(t, "amd64", openCPU)
}

func TestInsertedCountersOnTheCPU(t *testing.T) {
	skipWithoutCPU(t)
	testInsertedCounters(t, "amd64", openCPU)
}

func TestTimersOnTheCPU(t *testing.T) {
	skipWithoutCPU(t)
	testTimers(t, openCPU)
}
