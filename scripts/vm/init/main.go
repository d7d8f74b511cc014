// Init is the only program of a machine that scripts/vm/run boots: it registers probes
// through kprobe_events, asks xol about the same ones, and compares the errors. It asks
// about the kernel's file, and then about the kernel that runs: with all that it shows,
// with probes in its text, without debugfs, and without its memory.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const (
	module = "/module.ko"
	events = "/sys/kernel/tracing/kprobe_events"
	enable = "/sys/kernel/tracing/events/xol/enable"
	// hidden is a system that shows what this one does, but for its memory.
	hidden = "/hidden"
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
	if err := load(module); err != nil {
		return err
	}
	symbols, err := readSymbols("/proc/kallsyms")
	if err != nil {
		return err
	}
	blacklist, err := readBlacklist("/sys/kernel/debug/kprobes/blacklist")
	if err != nil {
		return err
	}
	version, err := os.ReadFile("/proc/version")
	if err != nil {
		return err
	}
	fmt.Printf("vm: %s", version)
	r := rand.New(rand.NewPCG(option("seed"), 0))
	file, err := kernelFile()
	if err != nil {
		return err
	}
	ofFile := choose(symbols, blacklist, r)
	said, err := registerAll(ofFile)
	if err != nil {
		return err
	}
	differ, err := compare("its file", ofFile, said, "--in", file)
	if err != nil {
		return err
	}
	n, err := live(symbols, blacklist, r)
	if err != nil {
		return err
	}
	if differ += n; differ > 0 {
		fmt.Printf("vm: %d differ\n", differ)
		return nil
	}
	fmt.Println("vm: none differs")
	return nil
}

// live compares what the running kernel says with what xol makes of it.
func live(symbols []symbol, blacklist []string, r *rand.Rand) (differ int, err error) {
	lines := chooseLive(symbols, blacklist, r)
	said, err := registerAll(lines)
	if err != nil {
		return 0, err
	}
	if differ, err = compare("what runs", lines, said, "--live"); err != nil {
		return 0, err
	}
	n, err := explained(lines, said)
	if err != nil {
		return 0, err
	}
	differ += n
	if err := arm(lines, said); err != nil {
		return 0, err
	}
	n, err = compare("what runs, with probes in it", lines, said, "--live")
	if err != nil {
		return 0, err
	}
	differ += n
	// Probes stay while they are not listed, and then go.
	if err := syscall.Unmount("/sys/kernel/debug", 0); err != nil {
		return 0, err
	}
	if n, err = compare("what runs, without debugfs", lines, said, "--live"); err != nil {
		return 0, err
	}
	differ += n
	if err := os.WriteFile(enable, []byte("0"), 0); err != nil {
		return 0, err
	}
	// Without memory there are no modules, nor what the kernel's own patches made.
	lines, said = ofKernel(lines, said, symbols)
	if n, err = compare("what runs, without kcore", lines, said, "--live", "--sysroot", hidden); err != nil {
		return 0, err
	}
	return differ + n, nil
}

// ofKernel returns the lines that are about the kernel's own text, with what it said to
// them.
func ofKernel(lines []string, said []int, symbols []symbol) (own []string, ownSaid []int) {
	modules := make(map[string]bool)
	for _, s := range symbols {
		if s.module != "" {
			modules[s.name] = true
		}
	}
	for i, line := range lines {
		_, place, _ := strings.Cut(line, " ")
		name, _, _ := strings.Cut(place, "+")
		if !aboutModule(line) && !modules[name] {
			own, ownSaid = append(own, line), append(ownSaid, said[i])
		}
	}
	return own, ownSaid
}

// aboutModule reports whether a line names a place in a module, or may.
func aboutModule(line string) bool {
	_, place, _ := strings.Cut(line, " ")
	return strings.HasPrefix(place, moduleName+":") || strings.HasPrefix(place, "0x")
}

// kernelFile returns the path of the kernel's file.
func kernelFile() (string, error) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	return "/boot/vmlinuz-" + strings.TrimSpace(string(release)), err
}

// load loads a module.
func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	none := [1]byte{}
	if _, _, errno := syscall.Syscall(finitModule, f.Fd(), uintptr(unsafe.Pointer(&none[0])), 0); errno != 0 {
		return fmt.Errorf("load %s: %w", path, errno)
	}
	return nil
}

const finitModule = 313 // on x86-64

// moduleName is that of the module which is loaded, and missingModule one that is not.
const (
	moduleName    = "tun"
	missingModule = "nfsd"
)

// option returns a number that scripts/vm/run puts on the kernel's command line: seed,
// which the choice of places hangs on, or explain, how many are explained.
func option(name string) uint64 {
	text, _ := os.ReadFile("/proc/cmdline")
	for _, word := range strings.Fields(string(text)) {
		if s, ok := strings.CutPrefix(word, name+"="); ok {
			n, _ := strconv.ParseUint(s, 10, 64)
			return n
		}
	}
	return 0
}

// symbol is a function of the kernel, with the bytes to the next one.
type symbol struct {
	name   string
	module string // empty for the kernel's own
	addr   uint64
	size   uint64
	freed  bool // after booting
}

// readSymbols reads the functions of the kernel and of its module, sorted by address.
func readSymbols(path string) (all []symbol, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var end uint64
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
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
			all = append(all, symbol{name: fields[2], addr: addr, module: strings.Trim(strings.Join(fields[3:], ""), "[]")})
		}
	}
	slices.SortStableFunc(all, func(a, b symbol) int { return int(int64(a.addr - b.addr)) })
	for i := 1; i < len(all); i++ {
		all[i-1].size = all[i].addr - all[i-1].addr
	}
	for i := range all {
		all[i].freed = all[i].module == "" && all[i].addr >= end
	}
	return slices.DeleteFunc(all, func(s symbol) bool { return s.size == 0 || s.module != "" && s.module != moduleName }), nil
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
	symbols = slices.DeleteFunc(slices.Clone(symbols), func(s symbol) bool { return s.freed || s.module != "" })
	count := countNames(symbols)
	add := func(letter, place string) {
		lines = append(lines, fmt.Sprintf("%s:xol/e%d %s", letter, len(lines), place))
	}
	some := func(n int, fit func(*symbol) bool, use func(*symbol)) { pick(symbols, r, n, fit, use) }
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

func countNames(symbols []symbol) map[string]int {
	count := make(map[string]int)
	for _, s := range symbols {
		count[s.name]++
	}
	return count
}

// pick calls use with n of the symbols that fit.
func pick(symbols []symbol, r *rand.Rand, n int, fit func(*symbol) bool, use func(*symbol)) {
	for range n {
		for tries := 0; tries < 1_000_000; tries++ {
			if s := &symbols[r.IntN(len(symbols))]; fit(s) {
				use(s)
				break
			}
		}
	}
}

// chooseLive returns 200 lines, also about what only a running kernel has: a module,
// addresses, text that is freed.
func chooseLive(symbols []symbol, blacklist []string, r *rand.Rand) (lines []string) {
	count := countNames(symbols)
	add := func(letter, place string) {
		lines = append(lines, fmt.Sprintf("%s:xol/l%d %s", letter, len(lines), place))
	}
	some := func(n int, fit func(*symbol) bool, use func(*symbol)) { pick(symbols, r, n, fit, use) }
	own := func(s *symbol) bool { return count[s.name] == 1 && s.module == "" && !s.freed }
	freed := func(s *symbol) bool { return count[s.name] == 1 && s.freed }
	loaded := func(s *symbol) bool { return s.module != "" }
	offset := func(s *symbol) uint64 { return r.Uint64N(min(s.size, 512)) }
	some(40, own, func(s *symbol) { add("p", s.name) })
	some(60, own, func(s *symbol) { add("p", fmt.Sprintf("%s+%d", s.name, offset(s))) })
	some(20, own, func(s *symbol) { add("r", s.name) })
	some(5, own, func(s *symbol) { add("r", fmt.Sprintf("%s+%d", s.name, offset(s))) })
	some(15, own, func(s *symbol) { add("p", fmt.Sprintf("0x%x", s.addr+offset(s))) })
	some(10, loaded, func(s *symbol) { add("p", s.module+":"+s.name) })
	some(5, loaded, func(s *symbol) { add("p", s.name) })
	some(10, loaded, func(s *symbol) { add("p", fmt.Sprintf("%s:%s+%d", s.module, s.name, offset(s))) })
	some(5, loaded, func(s *symbol) { add("r", s.module+":"+s.name) })
	some(10, func(s *symbol) bool { return count[s.name] > 1 }, func(s *symbol) { add("p", s.name) })
	some(5, freed, func(s *symbol) { add("p", s.name) })
	for range 10 {
		add("p", blacklist[r.IntN(len(blacklist))])
	}
	add("p", "no_such_function")
	add("p", moduleName+":no_such_function")
	add("p", moduleName+":vfs_read")
	add("p", missingModule+":nfsd_open")
	add("r", "__switch_to")
	return lines
}

// arm registers some of the probes that the kernel takes, and has them stand in the
// text: most of them inside of functions, where they are breakpoints or jumps.
func arm(lines []string, said []int) error {
	n := 0
	for _, inside := range []bool{true, false} {
		most := n + 20
		for i, line := range lines {
			_, place, _ := strings.Cut(line, " ")
			if said[i] != 0 || line[0] == 'r' || strings.Contains(place, ":") || strings.ContainsAny(place, "+") != inside || n == most || i%4 == 3 {
				continue
			}
			if errno, err := write(fmt.Sprintf("p:xol/a%d %s", n, place)); err != nil || errno != 0 {
				return fmt.Errorf("%s: %w", line, errors.Join(err, syscall.Errno(errno)))
			}
			n++
		}
	}
	if err := os.WriteFile(enable, []byte("1"), 0); err != nil {
		return err
	}
	time.Sleep(time.Second) // for the optimizer
	list, err := os.ReadFile("/sys/kernel/debug/kprobes/list")
	fmt.Printf("vm: %d probes are armed, of which %d are jumps and %d of ftrace\n", n, bytes.Count(list, []byte("[OPTIMIZED]")), bytes.Count(list, []byte("[FTRACE]")))
	return err
}

// explained asks xol explain about some of the places: each line is a place of its own.
func explained(lines []string, said []int) (differ int, err error) {
	every := max(1, len(lines)/max(1, int(option("explain"))))
	args := []string{"explain", "--live", "--via", "kprobe_events", "-o", "json"}
	asked := make(map[string]int) // what the kernel said
	for i := 0; i < len(lines); i += every {
		args = append(args, lines[i])
		asked[lines[i]] = said[i]
	}
	n, start := len(asked), time.Now()
	out, stderr, err := xol("", args...)
	if err != nil {
		return 0, err
	}
	took := time.Since(start)
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var says struct {
			Place    string
			Profiles []struct{ Errno int }
		}
		if err := d.Decode(&says); err != nil {
			return 0, err
		}
		want, ok := asked[says.Place]
		if delete(asked, says.Place); !ok || want != says.Profiles[0].Errno {
			differ++
			fmt.Printf("vm: differs: explain %s: the kernel says %d, xol %d\n", says.Place, want, says.Profiles[0].Errno)
		}
	}
	for place := range asked {
		differ++
		fmt.Printf("vm: differs: explain %s: no answer\n", place)
	}
	if len(asked) > 0 {
		fmt.Printf("vm: it says: %q\n", stderr)
	}
	fmt.Printf("vm: what runs, explained: %d places in %v: %d differ\n", n, took.Round(time.Millisecond), differ)
	return differ, nil
}

// registerAll returns the kernel's answers to all lines.
func registerAll(lines []string) (said []int, err error) {
	said = make([]int, len(lines))
	for i, line := range lines {
		if said[i], err = register(line); err != nil {
			return nil, err
		}
	}
	return said, nil
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

// xol runs it. It may refuse what it is asked about.
func xol(stdin string, args ...string) (out []byte, stderr string, err error) {
	cmd := exec.Command("/xol", args...)
	cmd.Stdin = strings.NewReader(stdin)
	var e bytes.Buffer
	cmd.Stderr = &e
	out, err = cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return out, e.String(), err
}

// ask returns what xol expects of each line.
func ask(lines []string, args ...string) ([]answer, error) {
	out, stderr, err := xol(strings.Join(lines, "\n")+"\n", append([]string{"check", "-o", "jsonl"}, args...)...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(stderr) {
		fmt.Printf("vm: it says: %s", line)
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
func compare(what string, lines []string, said []int, args ...string) (differ int, err error) {
	start := time.Now()
	says, err := ask(lines, args...)
	if err != nil {
		return 0, err
	}
	took := time.Since(start)
	counts := make(map[int]int)
	depend := 0
	for i, line := range lines {
		counts[said[i]]++
		switch {
		case said[i] == says[i].Errno:
		case strings.Contains(says[i].Depends, "probe") && said[i] != 0 && says[i].Errno > 0:
			depend++
		default:
			differ++
			fmt.Printf("vm: differs: %s: the kernel says %d, xol %d\n", line, said[i], says[i].Errno)
		}
	}
	fmt.Printf("vm: %s: %d places in %v, of which %d depend on the CPU: %d differ;", what, len(lines), took.Round(time.Millisecond), depend, differ)
	for _, errno := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf(" %d with error %d", counts[errno], errno)
	}
	fmt.Println()
	return differ, nil
}
