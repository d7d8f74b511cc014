package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"xol/classify"
)

func TestKconfig(t *testing.T) {
	var k kconfigFlag
	for _, s := range []string{"PREEMPTION=n", "CONFIG_CFI_CLANG=y", "MITIGATION_RETPOLINE=n", "X86_KERNEL_IBT=n", "KPROBES_ON_FTRACE=n"} {
		if err := k.Set(s); err != nil {
			t.Error(err)
		}
	}
	if got, want := k.options("amd64", classify.Linux612), (classify.KernelOptions{CFI: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, s := range []string{"", "PREEMPTION", "PREEMPTION=", "PREEMPTION=m", "SMP=y", "=y", "testdata/kernel.elf"} {
		if k.Set(s) == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

// A file with the configuration says what is on and what is off; one option that is
// given beside it counts more.
func TestKconfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config-6.12")
	const text = "# Linux/x86 6.12.107 Kernel Configuration\nCONFIG_KPROBES=y\n# CONFIG_PREEMPTION is not set\nCONFIG_KPROBES_ON_FTRACE=y\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flags, want string }{
		{"--kconfig " + path, "runs in a slot, boostable\n"},
		{"--kconfig " + path + " --kconfig PREEMPTION=y", "runs in a slot\n"},
		{"--kconfig PREEMPTION=y --kconfig " + path, "runs in a slot\n"},
	} {
		if inv := xol("explain testdata/kernel.elf vfs_read+0x9 "+c.flags, ""); inv.status != 0 || !strings.Contains(inv.stdout, c.want) {
			t.Errorf("%s: status %d, no %q\n%s%s", c.flags, inv.status, c.want, inv.stdout, inv.stderr)
		}
	}
}

// TestKconfigChangesAnswers asks a kernel that cannot put kprobes on ftrace
// sites.
func TestKconfigChangesAnswers(t *testing.T) {
	const question = "explain testdata/kernel.elf vfs_read+0x4"
	if inv := xol(question, ""); inv.status != 0 || !strings.Contains(inv.stdout, "through ftrace") {
		t.Errorf("status %d\n%s", inv.status, inv.stdout)
	}
	if inv := xol(question+" --kconfig KPROBES_ON_FTRACE=n", ""); inv.status != 1 || !strings.Contains(inv.stdout, "linux/ftrace-site") {
		t.Errorf("status %d\n%s", inv.status, inv.stdout)
	}
}

// TestKconfigPreemption asks kernels with and without preemption, of which only
// the latter boosts: for an instruction, for its slot, and for all of them.
func TestKconfigPreemption(t *testing.T) {
	const place = "explain testdata/kernel.elf vfs_read+0x9"
	for _, c := range []struct{ command, with, without string }{
		{place, "runs in a slot\n", "runs in a slot, boostable\n"},
		{place, "push %r15; int3", "push %r15; jmp 0xffffffff8100001c"},
		{place + " -o json", `"boosted": false`, `"boosted": true`},
		{"analyze --insns -o jsonl --func vfs_read testdata/kernel.elf", `"text":"push %r15","flow":"none","probe":"ok","errno":0,"rule":"","reason":"","exec":"slot","boost":true,"boosted":false`,
			`"text":"push %r15","flow":"none","probe":"ok","errno":0,"rule":"","reason":"","exec":"slot","boost":true,"boosted":true`},
		{"analyze -o jsonl --func vfs_read testdata/kernel.elf", `"boosted":0,"stepped":4,"emulated":1,`, `"boosted":3,"stepped":2,"emulated":0,`},
	} {
		for flag, want := range map[string]string{"PREEMPTION=y": c.with, "PREEMPTION=n": c.without} {
			if inv := xol(c.command+" --kconfig "+flag, ""); !strings.Contains(inv.stdout, want) {
				t.Errorf("%s with %s: no %q\n%s%s", c.command, flag, want, inv.stdout, inv.stderr)
			}
		}
	}
}
