//go:build linux && amd64

package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"xol/internal/skip"
)

// program32 is a program of 32 bits that waits for a signal.
func program32(t *testing.T) string {
	const base = 0x10000
	code := []byte{0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7} // mov $SYS_pause,%eax; int $0x80; jmp
	h := elf.Header32{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_386), Version: 1, Entry: base + 84, Phoff: 52, Ehsize: 52, Phentsize: 32, Phnum: 1,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB), 1
	size := uint32(84 + len(code))
	p := elf.Prog32{Type: uint32(elf.PT_LOAD), Vaddr: base, Filesz: size, Memsz: size, Flags: uint32(elf.PF_R | elf.PF_X), Align: 0x1000}
	var file bytes.Buffer
	for _, part := range []any{&h, &p, code} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "pause32")
	if err := os.WriteFile(path, file.Bytes(), 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// oneLine checks that an error is the one that is wanted, and says what is wrong in a line.
func oneLine(t *testing.T, err, want error, says string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want %v: %s", err, want, says)
	}
}

func TestErrorsOfPrograms(t *testing.T) {
	mayTrace(t)
	tr := newTracer(t, &recorder{}, Options{})
	narrow := program32(t)
	startOf := func(path string) (err error) {
		tr.Do(func() { _, err = tr.Start(&Command{Path: path, Args: []string{path}}) })
		return err
	}
	oneLine(t, startOf(narrow), ErrWidth, "only those of 64 bits")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint16(self[18:], uint16(elf.EM_RISCV))
	foreign := filepath.Join(t.TempDir(), "foreign")
	if err := os.WriteFile(foreign, self, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(foreign).Run(); errors.Is(err, syscall.ENOEXEC) {
		oneLine(t, startOf(foreign), ErrISA, "EM_RISCV, this machine is amd64")
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program, nor a script, but twenty bytes"), 0o777); err != nil {
		t.Fatal(err)
	}
	oneLine(t, startOf(text), syscall.ENOEXEC, text)
}

// waiting starts a program that waits, and returns when it does.
func waiting(t *testing.T, path string, args ...string) (*exec.Cmd, error) {
	t.Helper()
	target := exec.Command(path, args...)
	if err := target.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		target.Process.Kill()
		target.Wait()
	})
	become(t, target.Process.Pid, "S")
	return target, nil
}

// untouched checks that a process that was refused waits as before, and is traced by none.
func untouched(t *testing.T, target *exec.Cmd) {
	t.Helper()
	if state := state(t, target.Process.Pid); state != 'S' {
		t.Errorf("the process is in state %c", state)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", target.Process.Pid))
	if err != nil || !bytes.Contains(status, []byte("\nTracerPid:\t0\n")) {
		t.Errorf("the process is traced: %s, %v", status, err)
	}
}

// TestErrorOfOtherWidth attaches to a program of 32 bits.
func TestErrorOfOtherWidth(t *testing.T) {
	tr := newTracer(t, &recorder{}, Options{})
	target, err := waiting(t, program32(t))
	if err != nil {
		skip.Missing(t, "a kernel that runs programs of 32 bits", err)
	}
	tr.Do(func() {
		_, err := tr.Attach(target.Process.Pid)
		oneLine(t, err, ErrWidth, "only those of 64 bits")
	})
	untouched(t, target)
}

// TestErrorOfOtherUser has a user without rights attach to a process of root: this test,
// executed again, is that user.
func TestErrorOfOtherUser(t *testing.T) {
	if target := os.Getenv("XOL_TEST_ATTACH"); target != "" {
		pid, _ := strconv.Atoi(target)
		tr := New(&recorder{}, Options{})
		defer tr.Close()
		tr.Do(func() {
			_, err := tr.Attach(pid)
			oneLine(t, err, ErrPermission, "it is of user 0; be that user, or root")
		})
		return
	}
	mayTrace(t)
	if os.Getuid() != 0 {
		skip.Missing(t, "the right to become another user")
	}
	target, err := waiting(t, "/bin/sleep", "100")
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command("/proc/self/exe", "-test.run=^TestErrorOfOtherUser$", "-test.v")
	other.Env = append(os.Environ(), "XOL_TEST_ATTACH="+strconv.Itoa(target.Process.Pid))
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := other.CombinedOutput()
	if errors.Is(err, syscall.EACCES) {
		skip.Missing(t, "a test that others may execute", err)
	}
	if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Errorf("%v: %s", err, out)
	}
	untouched(t, target)
}
