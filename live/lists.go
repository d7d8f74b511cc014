package live

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"xol/image"
)

// Probe is a kprobe that is registered in a running kernel, as the file kprobes/list
// of debugfs tells [kernel/kprobes.c, report_probe].
type Probe struct {
	Addr   uint64 // 0 where the kernel hides it
	Kind   string // "k", or "r" for a return probe
	Place  string // "vfs_read+0x4"
	Module string // empty for the kernel's own text
	// What the probe is now: gone with its module's text, disabled, a jump, one of
	// ftrace.
	Gone, Disabled, Optimized, Ftrace bool
}

// String writes the probe as the kernel lists it, without its address.
func (p *Probe) String() string {
	text := strings.TrimSpace(p.Kind + " " + p.Place)
	if p.Module != "" {
		text += " " + p.Module
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{p.Gone, "[GONE]"}, {p.Disabled, "[DISABLED]"}, {p.Optimized, "[OPTIMIZED]"}, {p.Ftrace, "[FTRACE]"}} {
		if f.on {
			text += " " + f.name
		}
	}
	return text
}

// inText reports whether the probe has changed text: by a breakpoint, or a jump.
func (p *Probe) inText() bool { return !p.Ftrace && !p.Gone && !p.Disabled }

// LineError says that a line of one of the kernel's lists is not what it should be.
type LineError struct {
	Line int // from 1
	Text string
	Want string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("line %d is not %s: %.60q", e.Line, e.Want, e.Text)
}

// eachLine calls f with the fields of every line that has any, until it returns false.
func eachLine(text []byte, want string, f func(fields []string) bool) error {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		fields := strings.Fields(string(line))
		if len(fields) > 0 && !f(fields) {
			return &LineError{n, strings.TrimSpace(string(line)), want}
		}
	}
	return nil
}

// readProbes reads kprobes/list. Probes whose address is hidden are among them.
func readProbes(text []byte) (probes []Probe, err error) {
	err = eachLine(text, `a probe ("ffffffff81000000  k  symbol+0x0")`, func(fields []string) bool {
		addr, err := hex(fields[0])
		if err != nil || len(fields) < 3 || len(fields[1]) != 1 {
			return false
		}
		p := Probe{Addr: addr, Kind: fields[1], Place: fields[2]}
		for _, word := range fields[3:] {
			switch word {
			case "[GONE]":
				p.Gone = true
			case "[DISABLED]":
				p.Disabled = true
			case "[OPTIMIZED]":
				p.Optimized = true
			case "[FTRACE]":
				p.Ftrace = true
			default:
				p.Module = strings.Trim(word, "[]")
			}
		}
		probes = append(probes, p)
		return true
	})
	return probes, err
}

// readBlacklist reads kprobes/blacklist [kernel/kprobes.c, kprobe_blacklist_seq_show].
// hidden says that it has lines, but without their addresses.
func readBlacklist(text []byte) (ranges []image.Range, hidden bool, err error) {
	lines := 0
	err = eachLine(text, `a range and a name ("0xffffffff81000000-0xffffffff81000010	symbol")`, func(fields []string) bool {
		from, to, ok := strings.Cut(fields[0], "-")
		lo, err1 := hex(from)
		hi, err2 := hex(to)
		if !ok || err1 != nil || err2 != nil || hi < lo {
			return false
		}
		lines++
		if lo != 0 {
			ranges = append(ranges, image.Range{Addr: lo, Size: hi - lo})
		}
		return true
	})
	return ranges, lines > 0 && len(ranges) == 0, err
}

// readFtraceAddrs reads available_filter_functions_addrs, which there is since 6.5.
func readFtraceAddrs(text []byte) (sites []uint64, err error) {
	err = eachLine(text, `an address and a name ("ffffffff81000000 symbol")`, func(fields []string) bool {
		addr, err := hex(fields[0])
		if err != nil || len(fields) < 2 {
			return false
		}
		sites = append(sites, addr)
		return true
	})
	return sites, err
}

// readFtraceNames reads available_filter_functions.
func readFtraceNames(text []byte) (functions []image.FunctionName, err error) {
	err = eachLine(text, `a function ("symbol" or "symbol [module]")`, func(fields []string) bool {
		f := image.FunctionName{Name: fields[0]}
		if len(fields) > 1 {
			f.Module = strings.Trim(fields[1], "[]")
		}
		functions = append(functions, f)
		return true
	})
	return functions, err
}

// hex reads an address, with or without 0x.
func hex(s string) (uint64, error) { return strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64) }
