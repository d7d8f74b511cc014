package registration

import (
	"testing"

	"xol/classify"
)

// Debian's kernels as their packages linux-config-X.Y have them.
var (
	v5_10      = Kernel{Version: classify.Linux(5, 10).Patch(218), DynamicFtrace: true}
	v6_1       = Kernel{Version: classify.Linux(6, 1).Patch(176), DynamicFtrace: true}
	v6_12      = Kernel{Version: classify.Linux(6, 12).Patch(107), DynamicFtrace: true, Fprobe: true, NoReturn: []string{"__switch_to"}}
	v6_12arm64 = Kernel{Version: classify.Linux(6, 12).Patch(107), DynamicFtrace: true}
	v7_3       = Kernel{Version: classify.Linux(7, 3).Patch(4), DynamicFtrace: true, Fprobe: true, NoReturn: []string{"__switch_to"}}
)

func with(k Kernel, change func(*Kernel)) Kernel { change(&k); return k }

// The functions that are probed.
var (
	plain    = Probe{Symbol: "vfs_read", Count: 1, InKernel: 1, Function: "vfs_read", OnEntry: true, AtStart: true, Traceable: true}
	notrace  = Probe{Symbol: "raw_irqentry_exit_cond_resched", Count: 1, InKernel: 1, Function: "raw_irqentry_exit_cond_resched", OnEntry: true, AtStart: true}
	twins    = Probe{Symbol: "NF_HOOK.constprop.0", Count: 3, InKernel: 3, Function: "NF_HOOK.constprop.0", OnEntry: true, AtStart: true, Traceable: true}
	nowhere  = Probe{Symbol: "no_such_function"}
	switchTo = Probe{Symbol: "__switch_to", Count: 1, InKernel: 1, Function: "__switch_to", OnEntry: true, AtStart: true, Traceable: true}
	inModule = Probe{Symbol: "ext4_iget", Module: "ext4", Count: 1, ModuleLoaded: true, Function: "ext4_iget", OnEntry: true, AtStart: true, Traceable: true}
)

func at(p Probe, off uint64) Probe {
	p.Offset, p.OnEntry, p.AtStart = off, false, false
	return p
}
func returns(p Probe) Probe              { p.Return = true; return p }
func address(p Probe) Probe              { p.Symbol = ""; return p }
func count(p Probe, all, own int) Probe  { p.Count, p.InKernel = all, own; return p }
func module(p Probe, loaded bool) Probe  { p.Module, p.ModuleLoaded = "ext4", loaded; return p }
func traceable(p Probe, yes bool) Probe  { p.Traceable = yes; return p }
func ftraceSite(p Probe, o uint64) Probe { p.Offset, p.OnEntry = o, true; return p }

// Each row has its source: the function of the version's own source that says so.
func TestRefuse(t *testing.T) {
	const (
		create  = "kernel/trace/trace_kprobe.c, __trace_kprobe_create"
		create2 = "kernel/trace/trace_kprobe.c, trace_kprobe_create_internal"
		valid   = "kernel/trace/trace_kprobe.c, validate_probe_symbol"
		local   = "kernel/trace/trace_kprobe.c, create_local_trace_kprobe"
		within  = "kernel/trace/trace_kprobe.c, within_notrace_func"
		later   = "kernel/trace/trace_kprobe.c, register_trace_kprobe"
		number  = "kernel/trace/trace_kprobe.c, number_of_same_symbols"
		entry   = "kernel/kprobes.c, kprobe_on_func_entry"
		addr    = "kernel/kprobes.c, _kprobe_addr"
		kret    = "kernel/kprobes.c, register_kretprobe"
		black   = "arch/x86/kernel/kprobes/core.c, kretprobe_blacklist"
		link    = "kernel/trace/bpf_trace.c, bpf_kprobe_multi_link_attach"
		symbols = "kernel/trace/ftrace.c, ftrace_lookup_symbols"
		ips     = "kernel/trace/ftrace.c, __ftrace_match_addr"
		syscall = "kernel/bpf/syscall.c: the type of link is not known"
	)
	traced := func(k *Kernel) { k.OnNotrace = true }
	noFtrace := func(k *Kernel) { k.DynamicFtrace = false }
	noFprobe := func(k *Kernel) { k.Fprobe = false }
	for _, tc := range []struct {
		name   string
		kernel Kernel
		via    Via
		probe  Probe
		errno  classify.Errno
		id     string
		source string
	}{
		// A function like any other.
		{"5.10 register", v5_10, Register, plain, 0, "", kret},
		{"5.10 kprobe_events", v5_10, KprobeEvents, plain, 0, "", create},
		{"6.1 perf", v6_1, Perf, plain, 0, "", local},
		{"6.12 kprobe_events, in the middle", v6_12, KprobeEvents, at(plain, 9), 0, "", create2},
		{"6.12 kprobe_events, its return", v6_12, KprobeEvents, returns(plain), 0, "", create2},
		{"7.3 perf, by address", v7_3, Perf, address(plain), 0, "", local},
		{"7.3 bpf", v7_3, BPF, plain, 0, "", symbols},
		{"6.12 bpf, its return", v6_12, BPF, returns(plain), 0, "", symbols},
		{"6.12 bpf, by address", v6_12, BPF, address(plain), 0, "", ips},

		// Without an ftrace site.
		{"5.10 kprobe_events, notrace", v5_10, KprobeEvents, notrace, classify.EINVAL, "tracing/notrace", within},
		{"5.10 perf, notrace", v5_10, Perf, notrace, classify.EINVAL, "tracing/notrace", within},
		{"5.10 register, notrace", v5_10, Register, notrace, 0, "", kret},
		{"6.1 kprobe_events, notrace", v6_1, KprobeEvents, notrace, classify.EINVAL, "tracing/notrace", within},
		{"6.1 perf, notrace", v6_1, Perf, notrace, classify.EINVAL, "tracing/notrace", within},
		{"6.12 kprobe_events, notrace", v6_12, KprobeEvents, notrace, classify.EINVAL, "tracing/notrace", within},
		{"6.12 kprobe_events, notrace, in the middle", v6_12, KprobeEvents, at(notrace, 9), classify.EINVAL, "tracing/notrace", within},
		{"6.12 kprobe_events, notrace, by address", v6_12, KprobeEvents, address(notrace), classify.EINVAL, "tracing/notrace", within},
		{"6.12 kprobe_events, notrace, its return", v6_12, KprobeEvents, returns(notrace), classify.EINVAL, "tracing/notrace", within},
		{"6.12 perf, notrace", v6_12, Perf, notrace, classify.EINVAL, "tracing/notrace", within},
		{"6.12 register, notrace", v6_12, Register, notrace, 0, "", kret},
		{"7.3 kprobe_events, notrace", v7_3, KprobeEvents, notrace, classify.EINVAL, "tracing/notrace", within},
		{"7.3 kprobe_events, notrace allowed", with(v7_3, traced), KprobeEvents, notrace, 0, "", within},
		{"6.1 perf, notrace allowed", with(v6_1, traced), Perf, notrace, 0, "", within},
		{"6.12 kprobe_events, no ftrace at all", with(v6_12, noFtrace), KprobeEvents, notrace, 0, "", within},
		{"6.12 kprobe_events, outside every function", v6_12, KprobeEvents, Probe{}, 0, "", within},
		{"6.12 bpf, notrace", v6_12, BPF, notrace, classify.ESRCH, "bpf/no-ftrace-site", symbols},
		{"6.12 bpf, notrace, by address", v6_12, BPF, address(notrace), classify.EINVAL, "bpf/no-ftrace-site", ips},
		{"7.3 bpf, notrace allowed in events", with(v7_3, traced), BPF, notrace, classify.ESRCH, "bpf/no-ftrace-site", symbols},

		// A name of several functions.
		{"5.10 kprobe_events, three of the name", v5_10, KprobeEvents, twins, 0, "", create},
		{"5.10 perf, three of the name", v5_10, Perf, twins, 0, "", local},
		{"6.1 kprobe_events, three of the name", v6_1, KprobeEvents, twins, classify.EADDRNOTAVAIL, "tracing/symbol-not-unique", create},
		{"6.1 kprobe_events, three of the name, with offset", v6_1, KprobeEvents, at(twins, 4), classify.EADDRNOTAVAIL, "tracing/symbol-not-unique", create},
		{"6.1 perf, three of the name", v6_1, Perf, twins, classify.EADDRNOTAVAIL, "tracing/symbol-not-unique", local},
		{"6.12 kprobe_events, three of the name", v6_12, KprobeEvents, twins, classify.EINVAL, "tracing/symbol-not-unique", create2},
		{"6.12 kprobe_events, three of the name, with offset", v6_12, KprobeEvents, at(twins, 4), classify.EINVAL, "tracing/symbol-not-unique", create2},
		{"6.12 perf, three of the name", v6_12, Perf, twins, classify.EADDRNOTAVAIL, "tracing/symbol-not-unique", local},
		{"6.12 kprobe_events, one of three by address", v6_12, KprobeEvents, address(twins), 0, "", create2},
		{"6.12 register, three of the name", v6_12, Register, twins, 0, "", addr},
		{"6.12 bpf, three of the name", v6_12, BPF, twins, 0, "", symbols},
		{"7.3 kprobe_events, three of the name", v7_3, KprobeEvents, twins, classify.EINVAL, "tracing/symbol-not-unique", create2},
		{"6.12 perf, in the kernel and a module", v6_12, Perf, count(plain, 2, 1), classify.EADDRNOTAVAIL, "tracing/symbol-not-unique", number},
		{"7.3 perf, in the kernel and a module", v7_3, Perf, count(plain, 2, 1), 0, "", number},
		{"7.3 perf, in two modules", v7_3, Perf, count(plain, 2, 0), classify.EADDRNOTAVAIL, "tracing/symbol-not-unique", number},
		{"6.1 kprobe_events, twice in a module that is named", v6_1, KprobeEvents, count(inModule, 2, 0), 0, "", create},
		{"6.12 kprobe_events, twice in a module that is named", v6_12, KprobeEvents, count(inModule, 2, 0), classify.EINVAL, "tracing/symbol-not-unique", valid},
		{"6.12 perf, twice in a module that is named", v6_12, Perf, count(inModule, 2, 0), classify.EADDRNOTAVAIL, "tracing/symbol-not-unique", valid},

		// A name of none.
		{"5.10 register, unknown", v5_10, Register, nowhere, classify.ENOENT, "linux/unknown-symbol", addr},
		{"5.10 kprobe_events, unknown", v5_10, KprobeEvents, nowhere, classify.ENOENT, "tracing/unknown-symbol", later},
		{"5.10 perf, unknown", v5_10, Perf, nowhere, classify.ENOENT, "tracing/unknown-symbol", addr},
		{"6.1 kprobe_events, unknown", v6_1, KprobeEvents, nowhere, classify.ENOENT, "tracing/unknown-symbol", create},
		{"6.1 perf, unknown", v6_1, Perf, nowhere, classify.ENOENT, "tracing/unknown-symbol", local},
		{"6.12 register, unknown", v6_12, Register, nowhere, classify.ENOENT, "linux/unknown-symbol", addr},
		{"6.12 kprobe_events, unknown", v6_12, KprobeEvents, nowhere, classify.EINVAL, "tracing/unknown-symbol", create2},
		{"6.12 perf, unknown", v6_12, Perf, nowhere, classify.ENOENT, "tracing/unknown-symbol", valid},
		{"7.3 kprobe_events, unknown", v7_3, KprobeEvents, nowhere, classify.EINVAL, "tracing/unknown-symbol", create2},
		{"6.12 bpf, unknown", v6_12, BPF, nowhere, classify.ESRCH, "bpf/unknown-symbol", symbols},
		{"6.1 kprobe_events, its return, unknown", v6_1, KprobeEvents, returns(nowhere), classify.ENOENT, "tracing/unknown-symbol", create},
		{"6.12 kprobe_events, of a module not loaded", v6_12, KprobeEvents, module(nowhere, false), 0, "", later},
		{"6.1 kprobe_events, of a module not loaded", v6_1, KprobeEvents, module(nowhere, false), 0, "", later},
		{"6.12 perf, of a module not loaded", v6_12, Perf, module(nowhere, false), classify.ENOENT, "tracing/unknown-symbol", addr},
		{"6.12 kprobe_events, not in a loaded module", v6_12, KprobeEvents, module(nowhere, true), classify.EINVAL, "tracing/unknown-symbol", valid},
		{"6.1 kprobe_events, not in a loaded module", v6_1, KprobeEvents, module(nowhere, true), classify.ENOENT, "tracing/unknown-symbol", later},
		{"6.12 register, of a module not loaded", v6_12, Register, module(nowhere, false), classify.ENOENT, "linux/unknown-symbol", addr},

		// Returns.
		{"5.10 register, return in the middle", v5_10, Register, returns(at(plain, 9)), classify.EINVAL, "linux/return-not-at-entry", entry},
		{"5.10 kprobe_events, return in the middle", v5_10, KprobeEvents, returns(at(plain, 9)), classify.EINVAL, "tracing/return-not-at-entry", create},
		{"6.1 perf, return in the middle", v6_1, Perf, returns(at(plain, 9)), classify.EINVAL, "linux/return-not-at-entry", kret},
		{"6.12 kprobe_events, return in the middle", v6_12, KprobeEvents, returns(at(plain, 9)), classify.EINVAL, "tracing/return-not-at-entry", create2},
		{"6.12 kprobe_events, return in the middle, by address", v6_12, KprobeEvents, returns(address(at(plain, 9))), classify.EINVAL, "linux/return-not-at-entry", kret},
		{"6.12 kprobe_events, return after the ENDBR", v6_12, KprobeEvents, returns(ftraceSite(plain, 4)), 0, "", "arch/x86/kernel/kprobes/core.c, arch_adjust_kprobe_addr"},
		{"6.1 kprobe_events, return in the middle of one of three", v6_1, KprobeEvents, returns(at(twins, 9)), classify.EINVAL, "tracing/return-not-at-entry", create},
		{"6.12 register, return of __switch_to", v6_12, Register, returns(switchTo), classify.EINVAL, "linux/no-return-probe", black},
		{"6.12 perf, return of __switch_to", v6_12, Perf, returns(switchTo), classify.EINVAL, "linux/no-return-probe", black},
		{"6.12 perf, entry of __switch_to", v6_12, Perf, switchTo, 0, "", black},
		{"6.12 bpf, return of __switch_to", v6_12, BPF, returns(switchTo), 0, "", link},
		{"6.12 bpf, in the middle", v6_12, BPF, at(plain, 9), classify.EINVAL, "bpf/not-at-entry", ips},

		// Multi-kprobes that are not there.
		{"5.10 bpf", v5_10, BPF, plain, classify.EINVAL, "bpf/no-multi-kprobes", syscall},
		{"6.1 bpf", v6_1, BPF, plain, classify.EOPNOTSUPP, "bpf/no-fprobe", link},
		{"6.12 bpf on arm64", v6_12arm64, BPF, plain, classify.EOPNOTSUPP, "bpf/no-fprobe", link},
		{"7.3 bpf without fprobe", with(v7_3, noFprobe), BPF, plain, classify.EOPNOTSUPP, "bpf/no-fprobe", link},

		// Offsets.
		{"6.12 kprobe_events, offset of 33 bits", v6_12, KprobeEvents, at(plain, 1<<32), classify.EINVAL, "tracing/offset-too-large", create2},
		{"6.12 kprobe_events, offset of 32 bits", v6_12, KprobeEvents, at(plain, 1<<32-1), 0, "", create2},
		{"5.10 kprobe_events, offset of 33 bits", v5_10, KprobeEvents, at(plain, 1<<32), classify.EINVAL, "tracing/offset-too-large", create},
		{"6.12 kprobe_events, a clone of a traced function", v6_12, KprobeEvents, traceable(plain, true), 0, "", within},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var id string
			var errno classify.Errno
			if r := tc.kernel.Refuse(tc.via, &tc.probe); r != nil {
				id, errno = r.ID, r.Errno
			}
			if id != tc.id || errno != tc.errno {
				t.Errorf("%v %s, want %v %s [%s]", errno, id, tc.errno, tc.id, tc.source)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for i, name := range Names() {
		if v, ok := Parse(name); !ok || v != Via(i) || v.String() != name {
			t.Errorf("%s is %v, %v", name, v, ok)
		}
	}
	if _, ok := Parse("ftrace"); ok {
		t.Error("ftrace is accepted")
	}
}

func TestRules(t *testing.T) {
	for i := range rules {
		if r := &rules[i].Rule; r.ID == "" || r.Errno == 0 || r.Reason == "" || r.Remedy == "" {
			t.Errorf("%+v is not complete", rules[i].Rule)
		}
	}
}

func TestUprobeHazard(t *testing.T) {
	for _, c := range []struct{ returns, onEntry, want bool }{
		{false, false, false}, {false, true, false}, {true, true, false}, {true, false, true},
	} {
		if got := UprobeHazard(c.returns, c.onEntry); (got != nil) != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
