// Package events reads probes as people already write them in the files
// kprobe_events and uprobe_events of Linux's tracefs, fetches the arguments that
// they ask for, and writes what was recorded as the file trace shows it.
//
// The syntax, the limits, the names of mistakes and the output are those of
// Linux 6.12 without BTF [Documentation/trace/kprobetrace.rst,
// uprobetracer.rst, kernel/trace/trace_probe.c, trace_kprobe.c, trace_uprobe.c].
package events
