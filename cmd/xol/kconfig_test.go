package main

import (
	"strings"
	"testing"

	"xol/classify"
)

func TestKconfig(t *testing.T) {
	k := debianKconfig()
	for _, s := range []string{"PREEMPTION=n", "CONFIG_CFI_CLANG=y", "MITIGATION_RETPOLINE=n", "KPROBES_ON_FTRACE=n"} {
		if err := k.Set(s); err != nil {
			t.Error(err)
		}
	}
	if want := (classify.KernelOptions{CFI: true}); k.KernelOptions != want {
		t.Errorf("got %+v, want %+v", k.KernelOptions, want)
	}
	for _, s := range []string{"", "PREEMPTION", "PREEMPTION=", "PREEMPTION=m", "SMP=y", "=y"} {
		if k.Set(s) == nil {
			t.Errorf("%q is taken", s)
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
