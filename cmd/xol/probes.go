package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"xol/image"
	"xol/notation"
)

// probesOptions are the flags of probes.
type probesOptions struct {
	patterns []string // of functions
	returns  bool
	format   choice
	checkOptions
}

// Formats of definitions.
const (
	formatBpftrace     = "bpftrace"
	formatPerf         = "perf"
	formatKprobeEvents = "kprobe_events"
	formatSystemtap    = "systemtap"
)

func (a *app) probesCommand() *cobra.Command {
	opt := probesOptions{format: choiceOf(formatBpftrace, formatPerf, formatKprobeEvents, formatSystemtap)}
	cmd := &cobra.Command{
		Use:   "probes [flags] FILE",
		Short: "Write definitions of probes, for tracers, at places that are good",
		Long: `Write a definition for each function of FILE that --func selects, ready for a tracer:
at its entry, or where that is refused or hazardous, at the first instruction after it
that is accepted. A function without such a place is named in a comment, with the
reason. With --return the definitions are of return probes, which only entries have.

kprobe_events stands for uprobe_events as well, where FILE is a program. A function
whose name is that of others too gets its address, where the tracer takes one.`,
		Example: `  xol probes --func 'vfs_r*' vmlinux
  xol probes --func readline --return --format kprobe_events /bin/bash`,
		Args: takes("FILE", 1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.probes(&opt, args[0])
		},
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&opt.patterns, "func", nil, "functions whose name matches `GLOB`; @FILE has one name or glob per line; repeatable")
	flags.BoolVar(&opt.returns, "return", false, "return probes")
	flags.StringVar(&opt.symbols, "symbols", "", "take the symbols from a System.map or kallsyms `FILE`")
	opt.format.addTo(cmd, flags, "format", "", "the tracer's notation")
	opt.profile.addTo(cmd, flags, "rules to judge by (default by the kind of file)")
	opt.kconfig.addTo(cmd, flags)
	return cmd
}

func (a *app) probes(opt *probesOptions, path string) error {
	patterns, err := a.readPatterns(opt.patterns)
	if err != nil {
		return err
	}
	c := checker{app: a, opt: &opt.checkOptions, files: make(map[string]*checkedFile)}
	defer c.close()
	if c.symbols, err = a.readSymbols(opt.symbols); err != nil {
		return err
	}
	c.opt.in = path
	f := c.openPath(new(notation.Probe), path)
	if f.err == nil && f.Image.Kind() == image.KindProgram { // what tracers do with it is a uprobe
		f = c.openPath(&notation.Probe{Kind: notation.Uprobe}, path)
	}
	if f.err != nil {
		return f.err
	}
	functions, missing, err := selectFunctions(f.Analysis, patterns)
	if err != nil {
		return fileError(path, err)
	}
	for _, err := range missing {
		a.report(fileError(path, err))
	}
	d := definer{&c, f, opt, definitions[opt.format.value]}
	w, flush := a.results()
	for i := range functions {
		fmt.Fprintln(w, d.define(&functions[i]))
	}
	if len(missing) > 0 {
		err = failed
	}
	return flush(err)
}

// definition writes a probe at an offset in a function, or in a file that is not
// empty at an offset in that, by the name of an event.
type definition struct {
	tool    notation.Tool
	comment string // what starts one
	kernel  func(place, event string, addr uint64, ret bool) string
	user    func(file, place string, offset uint64, event string, ret bool) string
	// byAddress says that the tracer takes an address for a place in the kernel.
	byAddress bool
}

var definitions = map[string]*definition{
	formatBpftrace: {
		tool: notation.Bpftrace, comment: "// ",
		kernel: func(place, _ string, _ uint64, ret bool) string {
			return either(ret, "kretprobe:", "kprobe:") + place + " { }"
		},
		user: func(file, place string, _ uint64, _ string, ret bool) string {
			return either(ret, "uretprobe:", "uprobe:") + file + ":\"" + place + "\" { }"
		},
	},
	formatPerf: {
		tool: notation.Perf, comment: "# ",
		kernel: func(place, _ string, _ uint64, ret bool) string {
			return "perf probe --add '" + place + either(ret, "%return", "") + "'"
		},
		user: func(file, place string, _ uint64, _ string, ret bool) string {
			return "perf probe -x '" + file + "' --add '" + place + either(ret, "%return", "") + "'"
		},
	},
	formatKprobeEvents: {
		tool: notation.Tracefs, comment: "# ",
		byAddress: true,
		kernel: func(place, event string, _ uint64, ret bool) string {
			return either(ret, "r", "p") + ":xol/" + event + " " + place
		},
		user: func(file, _ string, offset uint64, event string, ret bool) string {
			return fmt.Sprintf("%s:xol/%s %s:%#x", either(ret, "r", "p"), event, file, offset)
		},
	},
	formatSystemtap: {
		tool: notation.Plain, comment: "# ", // it registers probes from a module of its own
		kernel: func(place, _ string, addr uint64, ret bool) string {
			name, off := image.SplitOffset(place)
			if off != 0 {
				return fmt.Sprintf("probe kprobe.statement(%#x).absolute { }", addr)
			}
			return "probe kprobe.function(\"" + name + "\")" + either(ret, ".return", "") + " { }"
		},
		user: func(file, place string, _ uint64, _ string, ret bool) string {
			name, _ := image.SplitOffset(place)
			return "probe process(\"" + file + "\").function(\"" + name + "\")" + either(ret, ".return", "") + " { }"
		},
	},
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// definer writes definitions for the functions of a file.
type definer struct {
	*checker
	file *checkedFile
	opt  *probesOptions
	as   *definition
}

// define returns the line for a function.
func (d *definer) define(f *image.Function) string {
	if strings.ContainsAny(f.Name, " \"'") {
		return d.as.comment + printable(f.Name) + ": no tracer takes this name"
	}
	res := d.file.Judge(*f)
	if res.Err != nil {
		return d.as.comment + f.Name + ": " + res.Err.Error()
	}
	d.file.judged[f.Addr] = res
	first := d.try(f, f.Name, f.Addr)
	if first.good() {
		return d.text(f, 0)
	}
	if !d.opt.returns && d.takesOffsets() {
		for i := 1; i < len(res.Insts); i++ {
			off := res.Insts[i].Addr - f.Addr
			if r := d.try(f, fmt.Sprintf("%s+%#x", f.Name, off), f.Addr+off); r.good() {
				return d.text(f, off)
			}
		}
	}
	if d.as.byAddress && d.file.Image.Kind() != image.KindProgram {
		place := fmt.Sprintf("%#x", f.Addr)
		if r := d.try(f, place, f.Addr); r.good() {
			return d.as.kernel(place, eventName(f.Name, 0), f.Addr, d.opt.returns)
		}
	}
	return d.as.comment + f.Name + ": " + first.message(&d.opt.checkOptions)
}

// takesOffsets reports whether the tracer takes places inside of functions.
func (d *definer) takesOffsets() bool {
	return d.opt.format.value != formatSystemtap || d.file.Image.Kind() != image.KindProgram
}

// try judges a probe as the tracer would ask for it.
func (d *definer) try(f *image.Function, place string, addr uint64) checked {
	p := notation.Probe{Text: place, Tool: d.as.tool, Return: d.opt.returns, Place: place, Kind: notation.Kprobe}
	at := image.Place{Addr: addr, Symbol: f.Name, Offset: addr - f.Addr, Named: place == f.Name}
	return d.at(0, d.file, &p, &at)
}

// good reports whether the probe is accepted and does no harm.
func (c *checked) good() bool { return c.failure == nil && c.verdict.OK() && c.verdict.Hazard == nil }

// text returns the definition of a probe at an offset in f.
func (d *definer) text(f *image.Function, off uint64) string {
	place := placeName(f.Name, off)
	if d.file.Image.Kind() != image.KindProgram {
		return d.as.kernel(place, eventName(f.Name, off), f.Addr+off, d.opt.returns)
	}
	path, err := filepath.Abs(d.file.path)
	if err != nil {
		path = d.file.path
	}
	fileOffset, ok := d.file.Image.OffsetOf(f.Addr + off)
	if !ok {
		return d.as.comment + f.Name + ": it is not in the file"
	}
	return d.as.user(path, place, fileOffset, eventName(f.Name, off), d.opt.returns)
}

// eventName makes a name for an event, of letters, digits and underscores.
func eventName(function string, off uint64) string {
	const most = 50 // of 63 that tracefs takes
	name := strings.Map(func(c rune) rune {
		if c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, function)
	name = name[:min(len(name), most)]
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	if off != 0 {
		name += fmt.Sprintf("_%x", off)
	}
	return name
}
