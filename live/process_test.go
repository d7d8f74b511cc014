package live_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xol/image"
	"xol/internal/skip"
	"xol/live"
)

// start starts a copy of a program that sleeps, and returns the process and the copy.
func start(t *testing.T) (pid int, program string) {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		skip.Missing(t, "a program to start", err)
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(t.TempDir(), "sleep")
	if err := os.WriteFile(program, text, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "1000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		out.Close()
		_ = cmd.Wait()
	})
	for { // until the loader has mapped the libraries
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		wchan, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", cmd.Process.Pid))
		if strings.Contains(string(maps), program) && !strings.HasPrefix(string(wchan), "running") {
			return cmd.Process.Pid, program
		}
	}
}

func TestOpenProcess(t *testing.T) {
	pid, program := start(t)
	p, err := live.System{}.OpenProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	f := &p.Files[0]
	if f.Name != program || f.Deleted || p.Name != "sleep" {
		t.Errorf("%+v of %s", f, p.Name)
	}
	checkText(t, p, f)
	if found := p.Find("libc"); len(found) > 0 { // it may be a static program
		checkText(t, p, found[0])
	}
}

// checkText compares the text of a mapped file with memory: the bias is right where
// they are the same.
func checkText(t *testing.T, p *live.Process, f *live.MappedFile) {
	t.Helper()
	img, err := image.OpenFile(f.Path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	for _, r := range img.Text() {
		code, err := img.Code(nil, r.Addr, r.Size)
		if err != nil {
			t.Fatal(err)
		}
		if now, traps := p.Text(f, code, r.Addr, nil); now != nil || traps != nil {
			t.Errorf("%s, %s: memory is another", f.Name, r.Section)
		}
		if at, _ := p.FileAt(r.Addr + f.Bias); at != f {
			t.Errorf("%#x is in %+v, not in %s", r.Addr+f.Bias, at, f.Name)
		}
		code[0] ^= 0xff
		if now, _ := p.Text(f, code, r.Addr, nil); now == nil {
			skip.Missing(t, "the right to read a process's memory", p.Gaps)
		}
		trap := []byte{code[0] ^ 0xff} // as if what stands there were a breakpoint
		if now, traps := p.Text(f, code[:1], r.Addr, trap); now != nil || len(traps) != 1 || traps[0] != r.Addr {
			t.Errorf("a breakpoint at %#x: %x, %x", r.Addr, now, traps)
		}
	}
}

// A program that has been deleted, or replaced by another, is still mapped.
func TestDeleted(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		pid, program := start(t)
		if err := os.Remove(program); err != nil {
			t.Fatal(err)
		}
		if replaced {
			if err := os.WriteFile(program, []byte("another"), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		p, err := live.System{}.OpenProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if len(p.Gaps) > 0 && p.Gaps[0].Source == program {
			skip.Missing(t, "the right to read map_files", p.Gaps)
		}
		if f := &p.Files[0]; f.Name != program || !f.Deleted || !strings.Contains(f.Path, "/map_files/") {
			t.Errorf("%+v", f)
		}
		checkText(t, p, &p.Files[0])
	}
}

// The errors are those of constructed systems, so that no such process has to be
// there.
func TestProcessErrors(t *testing.T) {
	const mapped = "00400000-00401000 r-xp 00000000 fe:01 12   /bin/prog\n"
	elf32 := "\x7fELF\x01\x01\x01" + strings.Repeat("\x00", 57)
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no such process", nil, "process 7 is not there"},
		{"a thread of the kernel", map[string]string{"maps": "", "stat": "7 (kworker/0:1) S 2 0 0 0 -1 69238880 0"}, "is a thread of the kernel, which has no files mapped"},
		{"a zombie", map[string]string{"maps": "", "stat": "7 (sh) Z 1 0 0 0 -1 4228108 0"}, "has ended"},
		{"nothing is known", map[string]string{"maps": ""}, "has nothing mapped"},
		{"no right to see", map[string]string{"comm": "sh"}, "does not show what it has mapped (be root, or its user): not there"},
		{"damaged", map[string]string{"maps": "what\n"}, "has a list of mappings that is damaged: line 1 is not a mapping"},
		{"32 bits", map[string]string{"maps": mapped, "root/bin/prog": elf32}, "/bin/prog: it is not a 64-bit ELF file"},
		{"no file", map[string]string{"maps": mapped}, "has no 64-bit ELF file mapped to execute: /bin/prog: not there"},
		{"no ELF file", map[string]string{"maps": mapped, "root/bin/prog": "#!/bin/sh\n"}, "/bin/prog: it is no ELF file"},
		{"cut off", map[string]string{"maps": mapped, "root/bin/prog": "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 20)}, "has no 64-bit ELF file mapped to execute: /bin/prog: "},
		{"only what is no file", map[string]string{"maps": "7f00-8000 r-xp 0 0:0 0 [vdso]\n"}, "has no 64-bit ELF file mapped to execute"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tc.files {
				path := filepath.Join(dir, "proc/7", name)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			_, err := live.System{Root: dir}.OpenProcess(7)
			var want *live.ProcessError
			if !errors.As(err, &want) || want.PID != 7 || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

// A process whose memory cannot be read is asked about by its files.
func TestHiddenMemory(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "proc/7/root/bin/prog")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, program, 0o666); err != nil {
		t.Fatal(err)
	}
	maps := "00400000-00800000 r-xp 00000000 fe:01 12   /bin/prog\n"
	if err := os.WriteFile(filepath.Join(dir, "proc/7/maps"), []byte(maps), 0o666); err != nil {
		t.Fatal(err)
	}
	p, err := live.System{Root: dir}.OpenProcess(7)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if len(p.Gaps) != 1 || p.Gaps[0].String() != "/proc/7/mem: not there; text is taken to be that of the files" {
		t.Errorf("%v", p.Gaps)
	}
	if now, _ := p.Text(&p.Files[0], []byte{1, 2}, 0x401000, nil); now != nil {
		t.Errorf("%x", now)
	}
}
