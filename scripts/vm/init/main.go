// Init is the only program of a machine that scripts/vm/run boots: it registers probes
// through kprobe_events, asks xol about the same ones, and compares the errors.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	kernel = "/vmlinuz"
	events = "/sys/kernel/tracing/kprobe_events"
)

func main() {
	if err := run(); err != nil {
		fmt.Println("vm: failed:", err)
	}
	syscall.Sync()
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_RESTART)
}

func run() error {
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"tracefs", "/sys/kernel/tracing"}, {"debugfs", "/sys/kernel/debug"}} {
		if err := syscall.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	symbols, err := readSymbols("/proc/kallsyms")
	if err != nil {
		return err
	}
	blacklist, err := readBlacklist("/sys/kernel/debug/kprobes/blacklist")
	if err != nil {
		return err
	}
	lines := choose(symbols, blacklist, rand.New(rand.NewPCG(seed(), 0)))
	kernelSays := make([]int, len(lines))
	for i, line := range lines {
		if kernelSays[i], err = register(line); err != nil {
			return err
		}
	}
	xolSays, err := ask(lines)
	if err != nil {
		return err
	}
	return compare(lines, kernelSays, xolSays)
}

// seed returns the number on the kernel's command line that the choice hangs on.
func seed() uint64 {
	text, _ := os.ReadFile("/proc/cmdline")
	for _, word := range strings.Fields(string(text)) {
		if s, ok := strings.CutPrefix(word, "seed="); ok {
			n, _ := strconv.ParseUint(s, 10, 64)
			return n
		}
	}
	return 0
}

// symbol is a function of the kernel, with the bytes to the next one.
type symbol struct {
	name string
	addr uint64
	size uint64
}

// readSymbols reads the kernel's functions, sorted by address.
func readSymbols(path string) (all []symbol, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var end uint64
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 { // a module's has four
			continue
		}
		addr, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil {
			return nil, err
		}
		if fields[2] == "_etext" {
			end = addr
		}
		if fields[1] == "t" || fields[1] == "T" {
			all = append(all, symbol{name: fields[2], addr: addr})
		}
	}
	slices.SortStableFunc(all, func(a, b symbol) int { return int(int64(a.addr - b.addr)) })
	for i := 1; i < len(all); i++ {
		all[i-1].size = all[i].addr - all[i-1].addr
	}
	return slices.DeleteFunc(all, func(s symbol) bool { return s.size == 0 || s.addr >= end }), nil
}

// readBlacklist reads the names of functions that may not be probed.
func readBlacklist(path string) (names []string, err error) {
	text, err := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 2 { // range and name
			names = append(names, fields[1])
		}
	}
	return names, err
}

// choose returns lines for kprobe_events of all sorts: entries, places inside of
// functions and of instructions, returns, names of several functions and of none, and
// what is forbidden.
func choose(symbols []symbol, blacklist []string, r *rand.Rand) (lines []string) {
	count := make(map[string]int)
	for _, s := range symbols {
		count[s.name]++
	}
	add := func(letter, place string) {
		lines = append(lines, fmt.Sprintf("%s:xol/e%d %s", letter, len(lines), place))
	}
	some := func(n int, fit func(*symbol) bool, use func(*symbol)) {
		for range n {
			for tries := 0; tries < 1_000_000; tries++ {
				if s := &symbols[r.IntN(len(symbols))]; fit(s) {
					use(s)
					break
				}
			}
		}
	}
	unique := func(s *symbol) bool { return count[s.name] == 1 }
	inside := func(s *symbol) string { return fmt.Sprintf("%s+%d", s.name, r.Uint64N(min(s.size, 512))) }
	some(80, unique, func(s *symbol) { add("p", s.name) })
	some(120, unique, func(s *symbol) { add("p", inside(s)) })
	some(40, unique, func(s *symbol) { add("r", s.name) })
	some(20, unique, func(s *symbol) { add("r", inside(s)) })
	some(30, func(s *symbol) bool { return count[s.name] > 1 }, func(s *symbol) { add("p", s.name) })
	some(10, func(s *symbol) bool { return count[s.name] > 1 }, func(s *symbol) { add("p", inside(s)) })
	some(20, func(s *symbol) bool { return unique(s) && strings.Contains(s.name, ".") }, func(s *symbol) { add("p", s.name) })
	for range 20 {
		add("p", blacklist[r.IntN(len(blacklist))])
	}
	for i := range 10 {
		add("p", fmt.Sprintf("no_such_function_%d", i))
	}
	add("r", "__switch_to")
	return lines
}

// register writes a line to kprobe_events and takes the event away again. It returns
// the number of the error, 0 for none.
func register(line string) (int, error) {
	errno, err := write(line)
	if err != nil || errno != 0 {
		return errno, err
	}
	name, _, _ := strings.Cut(line[1:], " ")
	if errno, err = write("-" + name); errno != 0 {
		err = fmt.Errorf("-%s: %w", name, syscall.Errno(errno))
	}
	return 0, err
}

func write(line string) (int, error) {
	f, err := os.OpenFile(events, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var errno syscall.Errno
	if _, err = f.WriteString(line + "\n"); errors.As(err, &errno) {
		return int(errno), nil
	}
	return 0, err
}

// answer is what xol expects.
type answer struct {
	Line, Errno int
	// Depends says what is another answer on another CPU: "probe", "optimize", both.
	Depends string
}

// ask returns what xol expects of each line.
func ask(lines []string) ([]answer, error) {
	cmd := exec.Command("/xol", "check", "--in", kernel, "-o", "jsonl")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return nil, fmt.Errorf("xol: %w: %s", err, &stderr)
	}
	says := slices.Repeat([]answer{{Errno: -1}}, len(lines))
	for line := range bytes.Lines(out) {
		var row answer
		if err := json.Unmarshal(line, &row); err != nil {
			return nil, err
		}
		says[row.Line-1] = row
	}
	return says, nil
}

// compare prints where the two do not agree. Where xol says that the CPU decides, one
// answer of two is as good.
func compare(lines []string, kernel []int, xol []answer) error {
	counts := make(map[int]int)
	differ, depend := 0, 0
	for i, line := range lines {
		counts[kernel[i]]++
		switch {
		case kernel[i] == xol[i].Errno:
		case strings.Contains(xol[i].Depends, "probe") && kernel[i] != 0 && xol[i].Errno > 0:
			depend++
		default:
			differ++
			fmt.Printf("vm: differs: %s: the kernel says %d, xol %d\n", line, kernel[i], xol[i].Errno)
		}
	}
	version, err := os.ReadFile("/proc/version")
	if err != nil {
		return err
	}
	fmt.Printf("vm: %s", version)
	for errno, n := range counts {
		fmt.Printf("vm: %d with error %d\n", n, errno)
	}
	if differ > 0 {
		fmt.Printf("vm: %d places, %d differ\n", len(lines), differ)
		return nil
	}
	fmt.Printf("vm: %d places, of which %d depend on the CPU: none differs\n", len(lines), depend)
	return nil
}
