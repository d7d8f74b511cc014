package main

import (
	"strings"

	"xol/classify"
	"xol/kernel"
	"xol/registration"
)

// joinVias lists interfaces.
func joinVias(via []registration.Via) string {
	names := make([]string, len(via))
	for i, v := range via {
		names[i] = v.String()
	}
	return strings.Join(names, " and ")
}

// assumedText names options that an answer depends on and that nothing tells.
func assumedText(assumed []kernel.Setting) string {
	return "this takes " + strings.Join(settingNames(assumed), ", ") + ", as Debian builds this version: the file does not tell (--kconfig)"
}

func settingNames(settings []kernel.Setting) []string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.String()
	}
	return names
}

// returnText says what a return probe costs, where one is asked for; empty elsewhere.
func (a *answer) returnText() string {
	if !a.returning || !a.verdict.OK() {
		return ""
	}
	switch mechanismOf(a.profile()) {
	case classify.Kprobes:
		return "a return probe costs this hit at each call and a pass through the trampoline at each return; " +
			"it follows " + a.followed() + " calls at a time (maxactive), and counts the others as missed"
	case classify.Uprobes:
		return "a return probe costs this hit at each call and " + a.returnTrap() + " at each return; it follows 64 nested calls of a task"
	}
	return ""
}

// followed says how many calls a return probe follows unless it is told
// [kernel/kprobes.c, register_kretprobe].
func (a *answer) followed() string {
	k := &a.file.Kernel
	if k.Version < classify.Linux(6, 1) && !k.Setting(kernel.Preemption).On {
		return "as many as there are CPUs"
	}
	return "twice as many as there are CPUs, at least 10,"
}

// returnTrap says how a task gets to the kernel when the function returns
// [arch/x86/kernel/uprobes.c, arch_uprobe_trampoline].
func (a *answer) returnTrap() string {
	if a.file.ISA.Name() == "amd64" && a.file.Kernel.Version >= classify.Linux(6, 12) {
		return "a system call"
	}
	return "a breakpoint"
}
