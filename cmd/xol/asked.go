package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xol/analyze"
	"xol/image"
	"xol/notation"
	"xol/registration"
	"xol/selection"
)

// viaFlag is the flag --via, unset unless it is given: the notation of a probe may
// say by which interface it is registered.
type viaFlag struct {
	via registration.Via
	set bool
}

// Set, String and Type implement pflag.Value.
func (f *viaFlag) Set(s string) error {
	via, ok := registration.Parse(s)
	if !ok {
		return fmt.Errorf("want %s", strings.Join(registration.Names(), ", "))
	}
	f.via, f.set = via, true
	return nil
}

func (f *viaFlag) String() string { return "" }
func (f *viaFlag) Type() string   { return strings.Join(registration.Names(), "|") }

func (f *viaFlag) addTo(cmd *cobra.Command, set *pflag.FlagSet) {
	set.Var(f, "via", "by which interface a kprobe is registered (default as PLACE is written, else register)")
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions(registration.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// of returns the interface for a probe: the one that was given, else the one that the
// tool uses in whose notation it is.
func (f *viaFlag) of(p *notation.Probe) registration.Via {
	switch {
	case f.set:
		return f.via
	case p.Kind == notation.Fentry:
		return registration.BPF
	case p.Tool == notation.Tracefs || p.Tool == notation.Perf: // perf probe writes to kprobe_events
		return registration.KprobeEvents
	case p.Tool == notation.Bpftrace:
		return registration.Perf
	}
	return registration.Register
}

// fileOf returns the file that a probe is in: the one given, or the one that the
// probe names.
func fileOf(given string, p *notation.Probe) (string, error) {
	switch {
	case given != "":
		return given, nil
	case p.File == "" && p.Kind == notation.Any && p.Module != "":
		return selection.FindFile(p.Module)
	case p.File == "":
		return "", fmt.Errorf("%q names no file: give the file before it", p.Text)
	}
	return selection.FindFile(p.File)
}

// request returns what the kernel is asked for by a probe at a place that it may mean.
func request(p *notation.Probe, at *image.Place) analyze.Request {
	q := analyze.Request{Addr: at.Addr, Module: p.Module, Return: p.Return}
	if !isAddress(p.Place) {
		q.Symbol, q.Offset = image.SplitOffset(p.Place)
		if strings.ContainsRune(q.Symbol, ':') { // a source line, which tools turn into this
			q.Symbol, q.Offset = at.Symbol, at.Offset
		}
	}
	return q
}

func isAddress(place string) bool {
	return strings.HasPrefix(place, "0x") || strings.HasPrefix(place, "file:")
}
