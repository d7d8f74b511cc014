//go:build linux && amd64

package analyze_test

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"xol/arch/amd64"
	"xol/decode"
	"xol/internal/skip"
)

// nativeRuns are programs of the host. Each is single-stepped from its very start
// or, where leaps is not 0, that many times after it has run for a while.
var nativeRuns = []struct {
	argv         []string
	leaps, steps int
}{
	{[]string{"/bin/true"}, 0, 150_000}, // all of it, the dynamic linker's work above all
	{[]string{"/bin/bash", "-c", bashScript}, 6, 40_000},
	{[]string{"/usr/bin/perl", "-e", perlScript}, 6, 30_000},
	{[]string{"/usr/bin/python3", "-S", "-c", pythonScript}, 6, 40_000},
	{[]string{"../testdata/guest/throw-amd64", "on"}, 3, 50_000},
}

// leap is how long a program runs between two windows of steps.
const leap = 20 * time.Millisecond

// The scripts go on for ever.
const bashScript = `
f() { local i; for ((i = 0; i < $1; i++)); do a[i]=$((i * i % 7)); done; }
trap 'x=caught' USR1
while :; do
	a=(); f 12; s=; for w in "${a[@]}"; do case $w in 0) s+=z;; [1-3]) s+=l;; *) s+=h;; esac; done
	[[ $s =~ ^z(l|h)+ ]] && printf '%5d|%-8s|%x|%s\n' ${#s} "$s" 255 "${s//l/L}"
	kill -USR1 $$; x=${s:2:3}; echo "${x^^}" {1..3} $((1 << 4 | 3))
	until (( ${#s} < 3 )); do s=${s%?}; done; set -- a b c; shift; echo "$#" "$*"
done
`

const perlScript = `
while (1) {
	my %h = map { $_ => $_ ** 2 } 1 .. 20; my $s = join ",", sort { $h{$b} <=> $h{$a} } keys %h;
	$s =~ s/(\d)(\d)/$2$1/g; eval { die { code => 3 } };
	printf "%s %d %.3f %s\n", $s, $@->{code}, 1 / 3, sprintf("%08b", 77);
}
`

const pythonScript = `
def gen(n):
    for i in range(n):
        try:
            yield 10 // (i % 3)
        except ZeroDivisionError as e:
            yield str(e)
while True:
    print(sorted(map(str, gen(9))), "a12 b3".split(), f"{3.14159:.2f}", {k: hash(k) % 5 for k in "abc"})
    print([x.upper() for x in "text"], 2 ** 100 % 97, int("77", 8), b"\x00".hex(), (1.5).as_integer_ratio())
`

// TestFreeRegionsAreNotEnteredByPrograms single-steps programs of the host, and
// looks where execution lands in them and their libraries.
func TestFreeRegionsAreNotEnteredByPrograms(t *testing.T) {
	files := map[string]*mappedFile{}
	for _, run := range nativeRuns {
		if _, err := os.Stat(run.argv[0]); err != nil {
			continue
		}
		limit := run.steps
		if testing.Short() {
			limit /= 8
		}
		steps, err := stepProgram(files, run.argv, run.leaps, limit)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			skip.Missing(t, "the right to trace a process", err)
		}
		if err != nil {
			t.Fatalf("%s: %v", run.argv[0], err)
		}
		t.Logf("%s: %d steps", run.argv[0], steps)
	}
	careless := 0
	for path, f := range files {
		if len(f.landings) > 0 {
			careless += judge(t, path).check(t, f.landings)
		}
	}
	if careless == 0 {
		t.Error("no landing is inside any region, not even a heedless one")
	}
}

// mappedFile is a file that a program has mapped to execute.
type mappedFile struct {
	text     []textSegment
	landings landings
}

// textSegment is a segment of code at the file's own addresses.
type textSegment struct {
	addr, offset uint64
	code         []byte
	lengths      []uint8 // of the instructions that ran, by offset in code
}

func openMapped(path string) (*mappedFile, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := &mappedFile{landings: landings{}}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 {
			continue
		}
		code, err := io.ReadAll(p.Open())
		if err != nil {
			return nil, err
		}
		m.text = append(m.text, textSegment{p.Vaddr, p.Off, code, make([]uint8, len(code))})
	}
	return m, nil
}

// length returns the length of the instruction at an offset; 0 where there is
// none.
func (s *textSegment) length(at uint64) uint64 {
	if s.lengths[at] == 0 {
		var inst decode.Inst
		if (amd64.ISA{}).Decode(&inst, s.code[at:], s.addr+at) == nil {
			s.lengths[at] = inst.Len
		}
	}
	return uint64(s.lengths[at])
}

// mapping is a part of a process's address space that has a text segment.
type mapping struct {
	lo, hi uint64
	at     uint64 // offset of lo in the segment
	file   *mappedFile
	text   *textSegment
}

// stepper follows a process.
type stepper struct {
	pid      int
	status   unix.WaitStatus
	files    map[string]*mappedFile
	mappings []mapping
	last     *mapping // of the instruction in front
}

// stepProgram runs a program, instruction by instruction where it is looked at,
// and adds where it lands in the files that it maps.
func stepProgram(files map[string]*mappedFile, argv []string, leaps, steps int) (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_, _ = cmd.Process.Wait()
	}()
	s := &stepper{pid: cmd.Process.Pid, files: files}
	if err := s.wait(); err != nil {
		return 0, err
	}
	if err := unix.PtraceSetOptions(s.pid, unix.PTRACE_O_EXITKILL); err != nil {
		return 0, err
	}
	if leaps == 0 {
		return s.follow(steps)
	}
	total := 0
	for range leaps {
		if err := s.leap(); err != nil {
			return total, err
		}
		n, err := s.follow(steps)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// wait waits for the process to stop or end.
func (s *stepper) wait() error {
	for {
		if _, err := unix.Wait4(s.pid, &s.status, unix.WALL, nil); err != unix.EINTR {
			return err
		}
	}
}

// resume has the process go on until it stops again, with the signal that it
// stopped for, unless that came from here.
func (s *stepper) resume(request uintptr) error {
	signal := s.status.StopSignal()
	if signal == unix.SIGTRAP || signal == unix.SIGSTOP {
		signal = 0
	}
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, request, uintptr(s.pid), 0, uintptr(signal), 0, 0); errno != 0 {
		return fmt.Errorf("resume: %w", errno)
	}
	return s.wait()
}

// leap lets the process run for a while.
func (s *stepper) leap() error {
	timer := time.AfterFunc(leap, func() { _ = unix.Kill(s.pid, unix.SIGSTOP) })
	defer timer.Stop()
	for first := true; s.status.Stopped() && (first || s.status.StopSignal() != unix.SIGSTOP); first = false {
		if err := s.resume(unix.PTRACE_CONT); err != nil {
			return err
		}
	}
	return nil
}

// follow makes at most that many steps.
func (s *stepper) follow(steps int) (int, error) {
	s.last = nil
	after := uint64(unknown)
	var from uint64
	for n := range steps {
		if !s.status.Stopped() {
			return n, nil
		}
		pc, err := s.programCounter()
		if err != nil {
			return n, err
		}
		s.find(pc)
		if pc != after && pc != from && after != unknown {
			s.land(from, pc)
		}
		from, after = pc, s.after(pc)
		if err := s.resume(unix.PTRACE_SINGLESTEP); err != nil {
			return n, err
		}
	}
	return steps, nil
}

func (s *stepper) programCounter() (pc uint64, err error) {
	const peekUser = 3
	offset := unsafe.Offsetof(unix.PtraceRegs{}.Rip)
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, peekUser, uintptr(s.pid), offset, uintptr(unsafe.Pointer(&pc)), 0, 0)
	if errno != 0 {
		return 0, fmt.Errorf("program counter: %w", errno)
	}
	return pc, nil
}

// find sets last to what holds pc; nil where no file does.
func (s *stepper) find(pc uint64) {
	if s.last != nil && pc-s.last.lo < s.last.hi-s.last.lo {
		return
	}
	for range 2 {
		for i := range s.mappings {
			if m := &s.mappings[i]; pc-m.lo < m.hi-m.lo {
				if s.last = m; m.text == nil {
					s.last = nil
				}
				return
			}
		}
		s.readMappings()
	}
	s.last = nil
}

// readMappings reads what the process has mapped to execute. What is no ELF file
// has no text.
func (s *stepper) readMappings() {
	s.mappings = s.mappings[:0]
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", s.pid))
	if err != nil {
		return
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var lo, hi, offset, inode uint64
		var perms, device, path string
		n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s %x %s %d %s", &lo, &hi, &perms, &offset, &device, &inode, &path)
		if n < 6 || !strings.Contains(perms, "x") {
			continue
		}
		m := mapping{lo: lo, hi: hi}
		if n == 7 && inode != 0 {
			m.file, m.text, m.at = s.textOf(path, offset)
		}
		s.mappings = append(s.mappings, m)
	}
}

func (s *stepper) textOf(path string, offset uint64) (*mappedFile, *textSegment, uint64) {
	f, ok := s.files[path]
	if !ok {
		var err error
		if f, err = openMapped(path); err != nil {
			f = &mappedFile{}
		}
		s.files[path] = f
	}
	for i := range f.text {
		// Segments are mapped from the start of a page.
		if t := &f.text[i]; offset-t.offset&^0xfff < uint64(len(t.code)) {
			return f, t, offset - t.offset
		}
	}
	return f, nil, 0
}

// unknown is the address after what may go on anywhere: after a system call, since
// a signal handler's last one returns to where the signal came.
const unknown = 1

// after returns the address after the instruction at pc; that of pc where no
// file holds it.
func (s *stepper) after(pc uint64) uint64 {
	if s.last == nil {
		return pc
	}
	at := pc - s.last.lo + s.last.at
	code := s.last.text.code
	switch {
	case at+2 > uint64(len(code)):
		return pc
	case code[at] == 0x0f && code[at+1] == 0x05: // syscall
		return unknown
	}
	return pc + s.last.text.length(at)
}

func (s *stepper) land(from, to uint64) {
	if s.last == nil {
		return
	}
	bias := s.last.lo - s.last.at - s.last.text.addr
	s.last.file.landings.add(from-bias, to-bias)
}
