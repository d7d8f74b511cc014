package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"xol/internal/skip"
)

// liveAnswer is what explain tells of what runs.
type liveAnswer struct {
	Addr string
	Sym  string
	Inst struct {
		Bytes string
		Notes []string
	}
	Profiles []struct{ Profile, Probe string }
	Live     struct {
		Addr, Text string
		PID        int
	}
}

func explainLive(t *testing.T, command string) (a liveAnswer) {
	t.Helper()
	inv := xol(command, "")
	if inv.status != 0 && inv.status != 1 {
		t.Fatal(inv.stderr)
	}
	if err := json.Unmarshal([]byte(inv.stdout), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// changeable is never called: the tests change its text.
//
//go:noinline
func changeable(n int) int {
	for i := range n {
		n += i * n
	}
	return n
}

// needOwnMaps skips where a process does not see its own mappings.
func needOwnMaps(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/maps"); err != nil {
		skip.Missing(t, "/proc", err)
	}
}

// This process is explained to itself: by the name of a function, by its address in
// memory, and as its file has it.
func TestExplainProcess(t *testing.T) {
	needOwnMaps(t)
	self, at := os.Getpid(), reflect.ValueOf(changeable).Pointer()
	byName := explainLive(t, fmt.Sprintf("explain --pid %d -o json xol/cmd/xol.changeable", self))
	byAddr := explainLive(t, fmt.Sprintf("explain --pid %d -o json %#x", self, at))
	want := fmt.Sprintf("%#x", at)
	for name, got := range map[string]liveAnswer{"by its name": byName, "by its address": byAddr} {
		if got.Live.Addr != want || got.Sym != "xol/cmd/xol.changeable" || got.Live.PID != self || got.Live.Text != "file" {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
	if len(byName.Profiles) != 2 || !strings.HasPrefix(byName.Profiles[1].Profile, "uprobe-linux-") {
		t.Errorf("%+v", byName.Profiles)
	}
}

// Text that has been changed in memory is judged as it is there; a breakpoint in it is
// not taken for the program's.
func TestExplainChangedText(t *testing.T) {
	needOwnMaps(t)
	at := reflect.ValueOf(changeable).Pointer()
	command := fmt.Sprintf("explain --pid %d -o json %#x", os.Getpid(), at)
	file := explainLive(t, command)
	code := writable(t, at)
	old := code[0]
	defer func() { code[0] = old }()

	code[0] = 0xcc
	if got := explainLive(t, command); got.Live.Text != "file" || got.Inst.Bytes != file.Inst.Bytes || len(got.Inst.Notes) == 0 {
		t.Errorf("with a breakpoint: %+v", got)
	}
	code[0] = 0x90
	if got := explainLive(t, command); got.Live.Text != "memory" || got.Inst.Bytes != "90" {
		t.Errorf("with a NOP: %+v", got)
	}
	inv := xol(fmt.Sprintf("explain --pid %d %#x", os.Getpid(), at), "")
	if !strings.Contains(inv.stdout, "the text in memory is not that of the file") {
		t.Error(inv.stdout)
	}
}

// writable makes the text at an address of this process writable for as long as a test
// takes.
func writable(t *testing.T, at uintptr) []byte {
	t.Helper()
	page := uintptr(os.Getpagesize())
	start := at &^ (page - 1)
	pages := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), start)), 2*page)
	if err := protect(pages, true); err != nil {
		skip.Missing(t, "text that can be made writable", err)
	}
	t.Cleanup(func() { _ = protect(pages, false) })
	return pages[at-start:]
}

func TestProcessPlaces(t *testing.T) {
	needOwnMaps(t)
	self := os.Getpid()
	for _, c := range []struct{ command, stdin, want string }{
		{"explain --pid %d no_such_function", "", `has the symbol "no_such_function"`},
		{"explain --pid %d libnone:malloc", "", "has not mapped libnone to execute; it has "},
		{"explain --pid %d 0x10", "", "0x10 of process"},
		{"explain --pid %d 0xzz", "", "no hexadecimal number"},
		{"explain --pid 4194304999 main", "", "process 4194304999 is not there"},
		{"check --pid %d", "xol/cmd/xol.changeable\n", "xol/cmd/xol.changeable"},
		{"analyze --pid %d --func xol/cmd/xol.changeable", "", "xol/cmd/xol.changeable"},
		{"analyze --pid %d --func none_of_that_name", "", `no symbol "none_of_that_name"`},
	} {
		command := c.command
		if strings.Contains(command, "%d") {
			command = fmt.Sprintf(command, self)
		}
		inv := xol(command, c.stdin)
		if !strings.Contains(inv.stdout+inv.stderr, c.want) || strings.Count(inv.stderr, "\n") > 1 {
			t.Errorf("%s: status %d\n%s%s", command, inv.status, inv.stdout, inv.stderr)
		}
	}
}

// A file is given as a habit from the other form of the command: it is no place of what runs.
func TestExplainWhatRunsTakesNoFile(t *testing.T) {
	needOwnMaps(t)
	const file = "testdata/kernel.elf"
	for _, c := range []struct{ flags, name string }{
		{"--live --sysroot ../../live/testdata/system", "--live"}, {"--live --sysroot /none", "--live"}, {fmt.Sprint("--pid ", os.Getpid()), "--pid"},
	} {
		for _, places := range []string{file, file + " vfs_demo"} {
			inv := xol("explain "+c.flags+" "+places, "")
			lines := strings.Split(strings.TrimSpace(inv.stderr), "\n")
			if want := fmt.Sprintf("xol: %s takes no file, and %q is one", c.name, file); inv.status != 2 || lines[len(lines)-1] != want || inv.stdout != "" {
				t.Errorf("%s: %s", c.flags, inv)
			}
		}
	}
}

// Without kcore addresses are those of the file, and also told as they are in memory.
func TestExplainMovedKernel(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../live/testdata/system")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir + "/proc/kcore"); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"vfs_demo+5", "0xffffffff9b400045"} {
		got := explainLive(t, "explain --live --sysroot "+dir+" -o json "+place)
		if got.Addr != "0xffffffff81000045" || got.Live.Addr != "0xffffffff9b400045" || got.Live.Text != "file" {
			t.Errorf("%s: %+v", place, got)
		}
	}
	inv := xol("check --live --sysroot "+dir, "p:a/b mod_open\np:a/c demo_mod:mod_open\np:a/d other_mod:mod_open\n")
	if strings.Count(inv.stderr, "is in a module, whose text the system does not show") != 2 || !strings.Contains(inv.stdout, "other_mod") || inv.status != 2 {
		t.Errorf("status %d\n%s%s", inv.status, inv.stdout, inv.stderr)
	}
}

func TestCompletePlaceOfWhatRuns(t *testing.T) {
	needOwnMaps(t)
	const system = "--sysroot ../../live/testdata/system "
	for command, want := range map[string]string{
		"__complete explain --live " + system + "probed_":                           "probed_demo\n:4",
		"__complete explain --live " + system + "demo_mod:mod_o":                    "demo_mod:mod_open\n:4",
		"__complete explain --live " + system + "other_mod:mod_o":                   ":4",
		"__complete explain --live --sysroot /none vfs":                             ":4",
		fmt.Sprintf("__complete explain --pid %d xol/cmd/xol.changea", os.Getpid()): "xol/cmd/xol.changeable\n:4",
	} {
		if inv := xol(command, ""); !strings.HasPrefix(inv.stdout, want) {
			t.Errorf("%s: %s%s", command, inv.stdout, inv.stderr)
		}
	}
}
