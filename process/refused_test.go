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

// asOtherUser is the argument by which this test's program attaches to a process and prints
// what comes of it.
const asOtherUser = "-xol-test-attach"

func attachAsOtherUser(pid string) {
	n, err := strconv.Atoi(pid)
	if err == nil {
		tr := New(&recorder{}, Options{})
		defer tr.Close()
		tr.Do(func() {
			var p *Process
			if p, err = tr.Attach(n); p != nil {
				p.Detach()
			}
		})
	}
	fmt.Println(errors.Is(err, ErrPermission), err)
}

// TestOtherUsersProcesses has a user without rights attach to a process of this one.
func TestOtherUsersProcesses(t *testing.T) {
	mayTrace(t)
	if os.Getuid() != 0 {
		skip.Missing(t, "the right to become another user")
	}
	target := exec.Command("/bin/sleep", "100")
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	defer target.Wait()
	defer target.Process.Kill()
	cmd := exec.Command("/proc/self/exe", asOtherUser, strconv.Itoa(target.Process.Pid))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := string(out); !strings.HasPrefix(got, "true ") || !strings.Contains(got, "it is of user 0; be that user, or root") || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
	if state, err := stateOf(target.Process.Pid); err != nil || state == 't' || state == 'T' {
		t.Errorf("the process is in state %c, %v", state, err)
	}
}

// waits32 waits for signals: pause; jmp to it.
var waits32 = []byte{0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7}

// TestOtherWidths attaches to a program of 32 bits.
func TestOtherWidths(t *testing.T) {
	mayTrace(t)
	const base = 0x10000
	var b bytes.Buffer
	h := elf.Header32{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_386), Version: 1, Phoff: 52, Ehsize: 52, Phentsize: 32, Phnum: 1, Entry: base + 84,
	}
	copy(h.Ident[:], elf.ELFMAG+string([]byte{byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB), 1}))
	size := uint32(84 + len(waits32))
	p := elf.Prog32{Type: uint32(elf.PT_LOAD), Vaddr: base, Paddr: base, Filesz: size, Memsz: size, Flags: uint32(elf.PF_R | elf.PF_X), Align: 0x1000}
	for _, part := range []any{h, p, waits32} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "waits32")
	if err := os.WriteFile(path, b.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	target := exec.Command(path)
	if err := target.Start(); err != nil {
		skip.Missing(t, "a kernel that runs programs of 32 bits", err)
	}
	defer target.Wait()
	defer target.Process.Kill()
	become(t, target.Process.Pid, "S")
	tr := newTracer(t, &recorder{}, Options{})
	tr.Do(func() {
		if _, err := tr.Attach(target.Process.Pid); !errors.Is(err, ErrWidth) {
			t.Errorf("%v, want %v", err, ErrWidth)
		}
	})
	if state, err := stateOf(target.Process.Pid); err != nil || state != 'S' {
		t.Errorf("the process is in state %c, %v", state, err)
	}
}
