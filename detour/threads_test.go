//go:build linux && amd64

package detour_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xol/arch"
	"xol/detour"
	"xol/internal/skip"
)

// Where the code of the test program is, and what it works on.
const (
	threadsCode      = 0x1000_0000
	threadsCounter   = 0x2000
	threadsHistogram = 0x3000
	threadsTable     = 0x4000
)

// recursive returns a function that calls itself as often as its argument says, with a
// counter and timers.
func recursive(t *testing.T, isa arch.Prober, timer detour.Timer) (code []byte) {
	t.Helper()
	insert := func(in detour.Insertion) {
		in.Counter, in.Timer = threadsCode+threadsCounter, timer
		var err error
		if code, err = isa.AppendInsertion(code, threadsCode+uint64(len(code)), &in); err != nil {
			t.Fatal(err)
		}
	}
	insert(detour.Insertion{Action: detour.StartTimer})
	code = append(code, unhex(t, "4885ff")...) // test %rdi,%rdi
	insert(detour.Insertion{})
	code = append(code, unhex(t, "740a 57 48ffcf")...) // je over the call; push %rdi; dec %rdi
	code = append(code, 0xe8)
	code = binary.LittleEndian.AppendUint32(code, -uint32(len(code)+4))
	code = append(code, 0x5f) // pop %rdi
	insert(detour.Insertion{Action: detour.StopTimer})
	return append(code, 0xc3)
}

// TestInsertionsInThreads has threads and signal handlers count and take the time at
// once. Every call is counted; with room in the table its time is as well, and without
// it is one that is missed.
func TestInsertionsInThreads(t *testing.T) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		skip.Missing(t, "a C compiler", err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "threads")
	if out, err := exec.Command(compiler, "-O1", "-pthread", "-o", program, "testdata/threads.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		name    string
		bits    uint8
		depth   int
		allHave bool // room in the table
	}{{"room for all", 14, 40, true}, {"room for few", 5, 60, false}, {"deep calls", 0, 6000, false}} {
		t.Run(c.name, func(t *testing.T) {
			timer := detour.Timer{Table: threadsCode + threadsTable, Histogram: threadsCode + threadsHistogram, SlotBits: c.bits}
			size, err := timer.TableSize()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "code")
			if err := os.WriteFile(file, recursive(t, isaOf(t, "amd64"), timer), 0o600); err != nil {
				t.Fatal(err)
			}
			const threads, allCalls = 8, 2_000_000
			args := []string{file}
			for _, n := range []int{threadsCode, 0, threadsCounter, threadsHistogram, threadsTable,
				size / detour.TimerEntrySize, threads, allCalls / threads / c.depth * 2, c.depth} {
				args = append(args, fmt.Sprint(n))
			}
			out, err := exec.Command(program, args...).Output()
			if err != nil {
				t.Fatal(err)
			}
			var calls, counted, times, missed, left int
			if _, err := fmt.Fscan(strings.NewReader(string(out)), &calls, &counted, &times, &missed, &left); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d calls, %d counted, %d times, %d missed, %d entries left", calls, counted, times, missed, left)
			if counted != calls || times+missed != calls || times == 0 || (missed == 0) != c.allHave || left != 0 {
				t.Error("not all of them, or more")
			}
		})
	}
}
