package main

import (
	"strings"
	"testing"
)

// TestBootedTextIsJudged asks, in every format, about text that a kernel writes
// while it boots: a call through pv_ops that becomes a direct one, or sti; NOPs
// that become vmcall on some CPUs; an instruction before a jump to a return
// thunk, which is a return on some.
func TestBootedTextIsJudged(t *testing.T) {
	const file = "testdata/sites.elf"
	for _, c := range []struct{ name, command, want string }{
		{"table, same everywhere", "analyze --insns --func booted " + file, "ok          emulate  no        call 0xffffffff8100004c <irq_enable>"},
		{"table says so", "analyze --insns --func booted " + file, "ok          slot     7 bytes   nop                                   as the kernel writes it at boot\n"},
		{"table, by CPU", "analyze --insns --func booted " + file, "nopl (%rax)                           for another CPU the kernel writes another instruction, with another answer\n"},
		{"totals", "analyze --func booted " + file, "depend on the CPU                              2  "},
		{"jsonl, same everywhere", "analyze --insns -o jsonl --func booted " + file, `"off":7,"len":1,"text":"sti","flow":"none","probe":"ok","errno":0,"rule":"","reason":"","exec":"emulate"`},
		{"jsonl says so", "analyze --insns -o jsonl --func booted " + file, `"hazard":"","note":"","boot":"patched"}`},
		{"jsonl, by CPU", "analyze --insns -o jsonl --func booted " + file, `"hazard":"","note":"","boot":"cpu","depends":"probe optimize"}`},
		{"jsonl, jump", "analyze --insns -o jsonl --func booted " + file, `"text":"mov %rax,%rbx","flow":"none","probe":"ok","errno":0,"rule":"","reason":"","exec":"slot","boost":true,"boosted":false,"optimize":"refused","region":0`},
		{"json, jump", "analyze --insns -o json --func booted " + file, `"culprit":"0xffffffff8100004a","hazard":"","note":"","depends":"optimize"}`},
		{"csv", "analyze --insns -o csv --func booted " + file, ",,,cpu,probe optimize\n"},
		{"summary", "analyze -o jsonl --func booted " + file, `"depends":2,"reasons"`},
		{"explain", "explain " + file + " booted+0x1", "the file has call *0x1085(%rip) # 0xffffffff810010c2 <pv_ops>\n"},
		{"explain, by CPU", "explain " + file + " booted+0xd", "for another CPU (vmcall): refused: EOPNOTSUPP (95), amd64/kprobe-vm\n"},
		{"explain, the listing", "explain " + file + " booted+0x10", "at boot ret, but for CPUs that need a return thunk\n"},
		{"explain, json", "explain -o json " + file + " booted+0xd", `"depends": "probe optimize"`},
		{"explain, json, in words", "explain -o json " + file + " booted+0xd", `for another CPU (vmcall): refused: EOPNOTSUPP (95), amd64/kprobe-vm"`},
	} {
		if inv := xol(c.command, ""); inv.status != 0 || !strings.Contains(inv.stdout, c.want) {
			t.Errorf("%s: %s: no %q\n%s%s", c.name, c.command, c.want, inv.stdout, inv.stderr)
		}
	}
	if inv := xol("analyze --insns -o csv --func booted "+file, ""); strings.Contains(inv.stdout, "indirect-memory") {
		t.Errorf("the call through pv_ops is judged as the file has it:\n%s", inv.stdout)
	}
}
