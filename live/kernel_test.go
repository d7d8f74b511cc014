package live_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xol/analyze"
	"xol/classify"
	"xol/image"
	"xol/internal/skip"
	"xol/live"
	"xol/registration"
)

//go:generate go run ./testdata/generate testdata/system

// system is a copy of the constructed system that a test may change.
type system struct {
	t   *testing.T
	dir string
}

func newSystem(t *testing.T) system {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "system")
	if err := os.CopyFS(dir, os.DirFS("testdata/system")); err != nil {
		t.Fatal(err)
	}
	return system{t, dir}
}

func (s system) remove(names ...string) {
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s system) read(name string) []byte {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

func (s system) write(name string, content []byte) {
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		s.t.Fatal(err)
	}
}

// hide replaces the addresses that lines start with by zeros, as the kernel does for
// those who must not know them.
func (s system) hide(name string) {
	var b strings.Builder
	for line := range strings.Lines(string(s.read(name))) {
		_, rest, _ := strings.Cut(line, "\t")
		if !strings.HasPrefix(line, "0x") {
			_, rest, _ = strings.Cut(line, " ")
			fmt.Fprintf(&b, "%016x %s", 0, rest)
			continue
		}
		fmt.Fprintf(&b, "0x%016x-0x%016x\t%s", 0, 0, rest)
	}
	s.write(name, []byte(b.String()))
}

const (
	release = "6.12.107+deb13-amd64"
	vmlinuz = "boot/vmlinuz-" + release
	list    = "sys/kernel/debug/kprobes/list"
	black   = "sys/kernel/debug/kprobes/blacklist"
	addrs   = "sys/kernel/tracing/available_filter_functions_addrs"
	names   = "sys/kernel/tracing/available_filter_functions"
)

// everything is what the kernel answers of the constructed functions: by the rules of
// 6.12 for what the generator has put there.
var everything = map[string]string{
	"vfs_demo":           "ftrace",
	"vfs_demo+5":         "ok",
	"vfs_demo+6":         "amd64/kprobe-inside-instruction",
	"notrace_demo":       "ok",
	"black_demo":         "linux/blacklist",
	"label_demo+5":       "linux/jump-label",
	"label_demo+10":      "ok",
	"patched_demo+5":     "ok",
	"probed_demo+5":      "ok",
	"probed_demo+10":     "ok",
	"jumped_demo+5":      "ok",
	"jumped_demo+7":      "amd64/kprobe-inside-instruction",
	"traced_demo":        "ftrace",
	"both_demo+5":        "ok",
	"both_demo+8":        "ok",
	"strange_demo":       "not known",
	"returned_demo+5":    "ok",
	"init_demo":          "linux/init-text",
	"exit_demo":          "linux/init-text",
	"demo_mod:mod_open":  "ftrace",
	"demo_mod:mod_black": "linux/blacklist",
}

// without returns what the answers are with some of them changed.
func without(changes ...string) map[string]string {
	all := make(map[string]string)
	for place, answer := range everything {
		all[place] = answer
	}
	for _, change := range changes {
		place, answer, _ := strings.Cut(change, " ")
		all[place] = answer
	}
	return all
}

// undecided are the answers where one of the lists is not known: refusals stay.
func undecided(known ...string) map[string]string {
	all := make(map[string]string)
	for place, answer := range everything {
		if answer == "ok" || answer == "ftrace" {
			answer = "undecided"
		}
		all[place] = answer
	}
	for _, change := range known {
		place, answer, _ := strings.Cut(change, " ")
		all[place] = answer
	}
	return all
}

// TestOpenKernel has a case for each source that is missing, hidden or damaged. gaps
// are the starts of what is said of each.
func TestOpenKernel(t *testing.T) {
	noModules := []string{"demo_mod:mod_open hidden", "demo_mod:mod_black hidden"}
	// The file has no text that the kernel has patched while it ran.
	fromFile := without(append(noModules, "strange_demo ftrace", "exit_demo none")...)
	for _, tc := range []struct {
		name    string
		change  func(system)
		gaps    []string
		file    bool // the text is that of the kernel's file
		answers map[string]string
	}{
		{"all is there", func(system) {}, nil, false, everything},
		{"no kcore", func(s system) { s.remove("proc/kcore") }, []string{"/proc/kcore: not there; text is that of the file"}, true, fromFile},
		{"an empty kcore", func(s system) { s.write("proc/kcore", nil) }, []string{"/proc/kcore: it is no 64-bit ELF core file: it ends in its headers"}, true, fromFile},
		{"kcore, cut off", func(s system) { s.write("proc/kcore", s.read("proc/kcore")[:100]) }, []string{"/proc/kcore: it is no 64-bit ELF core file"}, true, fromFile},
		{"kcore without its content", func(s system) { s.write("proc/kcore", s.read("proc/kcore")[:300]) }, []string{"/proc/kcore: EOF"}, true, fromFile},
		{"kcore of 32 bits", func(s system) {
			core := s.read("proc/kcore")
			core[4] = 1
			s.write("proc/kcore", core)
		}, []string{"/proc/kcore: it is no 64-bit ELF core file"}, true, fromFile},
		{"kcore without the text", func(s system) {
			core := s.read("proc/kcore")
			core[64+56+23] ^= 1 // the address of the second segment
			s.write("proc/kcore", core)
		}, []string{"/proc/kcore: it does not hold the addresses"}, true, fromFile},
		{"no kallsyms", func(s system) { s.remove("proc/kallsyms") },
			[]string{"/proc/kallsyms: not there", "/proc/kcore: without the symbols"}, true, without(
				append(noModules, "demo_mod:mod_open none", "demo_mod:mod_black none", "strange_demo ftrace", "exit_demo none")...)},
		{"kptr_restrict", func(s system) { s.hide("proc/kallsyms") },
			[]string{"/proc/kallsyms: all addresses are 0", "/proc/kcore: without the symbols"}, true, without(
				append(noModules, "demo_mod:mod_open none", "demo_mod:mod_black none", "strange_demo ftrace", "exit_demo none")...)},
		{"kallsyms, damaged", func(s system) { s.write("proc/kallsyms", append(s.read("proc/kallsyms"), "what\n"...)) },
			[]string{`/proc/kallsyms: symbols: not address, type and name: "what"`, "/proc/kcore: without the symbols"}, true, without(
				append(noModules, "demo_mod:mod_open none", "demo_mod:mod_black none", "strange_demo ftrace", "exit_demo none")...)},
		{"no version", func(s system) { s.remove("proc/version") }, []string{"/proc/version: not there; the version is that of /proc/sys/kernel/osrelease"}, false, everything},
		{"no version at all", func(s system) { s.remove("proc/version", "proc/sys") }, []string{"/proc/version: not there; the version is not known"}, false, without(
			"probed_demo+5 not known", "probed_demo+10 not known", "jumped_demo+5 not known", "jumped_demo+7 not known", "both_demo+5 not known", "both_demo+8 not known")},
		{"another version", func(s system) { s.write("proc/version", []byte("MINIX 3")) }, []string{"/proc/version: it does not start with"}, false, everything},
		{"no config.gz", func(s system) { s.remove("proc/config.gz") }, nil, false, everything},
		{"no configuration", func(s system) { s.remove("proc/config.gz", "boot/config-"+release) },
			[]string{"/proc/config.gz and /boot/config-" + release + ": not there; options that symbols do not tell"}, false, everything},
		{"a damaged configuration", func(s system) { s.write("proc/config.gz", []byte("what?\n")) }, []string{"/proc/config.gz: line 1 is not one of a kernel configuration"}, false, everything},
		{"the configuration of another version", func(s system) {
			s.write("proc/config.gz", bytes.Replace(gunzipped(s.read("boot/config-"+release)), []byte("6.12"), []byte("5.10"), 1))
		}, []string{"/proc/config.gz: the configuration is that of Linux 5.10.107"}, false, everything},
		{"debugfs is not mounted", func(s system) { s.remove("sys/kernel/debug") },
			[]string{"/sys/kernel/debug/kprobes/list: not there", "/sys/kernel/debug/kprobes/blacklist: not there; the blacklist is that of"}, false,
			without("demo_mod:mod_black ftrace")}, // its table is not in memory
		{"hidden probes", func(s system) { s.hide(list) }, []string{"/sys/kernel/debug/kprobes/list: its addresses are 0"}, false, everything},
		{"damaged probes", func(s system) { s.write(list, []byte("what\n")) }, []string{"/sys/kernel/debug/kprobes/list: line 1 is not a probe"}, false, everything},
		{"no probes", func(s system) { s.write(list, nil) }, nil, false, without(
			"probed_demo+5 amd64/kprobe-trap", "both_demo+5 amd64/kprobe-trap", "both_demo+8 amd64/kprobe-inside-instruction", "strange_demo ftrace")},
		{"a hidden blacklist", func(s system) { s.hide(black) }, []string{"/sys/kernel/debug/kprobes/blacklist: its addresses are 0"}, false, without("demo_mod:mod_black ftrace")},
		{"an empty blacklist", func(s system) { s.write(black, nil) }, []string{"/sys/kernel/debug/kprobes/blacklist: it is empty"}, false, without("demo_mod:mod_black ftrace")},
		{"a damaged blacklist", func(s system) { s.write(black, []byte("0x2-0x1 a\n")) }, []string{"/sys/kernel/debug/kprobes/blacklist: line 1 is not a range"}, false, without("demo_mod:mod_black ftrace")},
		{"neither blacklist nor file", func(s system) { s.remove(black, vmlinuz) },
			[]string{"/sys/kernel/debug/kprobes/blacklist: not there; which functions the kernel forbids to probe is not known"}, false, undecided(
				"black_demo undecided", "demo_mod:mod_black undecided", "probed_demo+5 not known", "probed_demo+10 not known", "jumped_demo+5 not known",
				"jumped_demo+7 not known", "both_demo+5 not known", "both_demo+8 not known")},
		{"names of ftrace sites only", func(s system) { s.remove(addrs) }, nil, false, everything},
		{"tracefs at its old place", func(s system) {
			s.write("sys/kernel/debug/tracing/available_filter_functions_addrs", s.read(addrs))
			s.remove("sys/kernel/tracing")
		}, nil, false, everything},
		{"tracefs is not mounted", func(s system) { s.remove("sys/kernel/tracing") },
			[]string{"/sys/kernel/tracing/available_filter_functions: not there; ftrace sites are those of"}, false, without("demo_mod:mod_open ok")},
		{"damaged ftrace sites", func(s system) { s.write(addrs, []byte("vfs_demo\n")) }, nil, false, everything},
		{"neither tracefs nor file", func(s system) { s.remove("sys/kernel/tracing", vmlinuz) },
			[]string{"/sys/kernel/tracing/available_filter_functions: not there; which functions have an ftrace site is not known"}, false, undecided(
				"probed_demo+5 not known", "probed_demo+10 not known", "jumped_demo+5 not known", "jumped_demo+7 not known", "both_demo+5 not known", "both_demo+8 not known")},
		{"hidden modules", func(s system) { s.remove("sys/module") }, []string{"/sys/module/demo_mod/sections: not there; text that is theirs is left out"}, false, without(noModules...)},
		{"modules with hidden addresses", func(s system) {
			for _, name := range []string{".text", ".init.text", ".rodata", "__jump_table", ".data"} {
				s.write("sys/module/demo_mod/sections/"+name, []byte("0x0000000000000000\n"))
			}
		}, []string{"/sys/module/demo_mod/sections: its addresses are 0"}, false, without(noModules...)},
		{"a damaged section", func(s system) { s.write("sys/module/demo_mod/sections/.text", []byte("what\n")) },
			[]string{`/sys/module/demo_mod/sections: .text is no address: "what"`}, false, without(noModules...)},
		{"no file", func(s system) { s.remove("boot") }, nil, false, without(
			"probed_demo+5 not known", "probed_demo+10 not known", "jumped_demo+5 not known", "jumped_demo+7 not known", "both_demo+5 not known", "both_demo+8 not known")},
		{"neither probes nor file", func(s system) { s.remove(list, vmlinuz) }, []string{"/sys/kernel/debug/kprobes/list: not there"}, false, without(
			"probed_demo+5 not known", "probed_demo+10 not known", "jumped_demo+7 amd64/kprobe-inside-instruction", "both_demo+5 not known", "both_demo+8 not known")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSystem(t)
			tc.change(s)
			k, err := live.System{Root: s.dir}.OpenKernel(image.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			for i, g := range k.Gaps {
				if i >= len(tc.gaps) || !strings.HasPrefix(g.String(), tc.gaps[i]) {
					t.Errorf("gap: %s", g)
				}
			}
			if len(k.Gaps) < len(tc.gaps) {
				t.Errorf("of the gaps %q only %d", tc.gaps, len(k.Gaps))
			}
			if k.Image.Running() == tc.file {
				t.Errorf("the text is that of %s", k.Path)
			}
			an, err := analyze.New(k.Image, analyze.Options{Kernel: k.Facts})
			if err != nil {
				t.Fatal(err)
			}
			for place, want := range tc.answers {
				if got := answer(an, place); got != want {
					t.Errorf("%s: %s, want %s", place, got, want)
				}
			}
		})
	}
}

func gunzipped(plain []byte) []byte { return plain }

// answer returns in a word or two what becomes of a probe.
func answer(an *analyze.Analysis, place string) string {
	module, symbol, in := strings.Cut(place, ":")
	if !in {
		module, symbol = "", place
	}
	found, err := an.Image.Resolve(symbol)
	found = slices.DeleteFunc(found, func(p image.Place) bool { return an.Image.ModuleOf(p.Addr) != module })
	if len(found) == 0 {
		name, _ := image.SplitOffset(symbol)
		if n, _ := an.Kernel.Modules.Count(module, name); n > 0 {
			return "hidden"
		}
		return "none"
	}
	if err != nil {
		return err.Error()
	}
	f, ok := an.FunctionAt(found[0].Addr)
	if !ok {
		return "no function"
	}
	r := an.Judge(f)
	var overwritten *live.OverwrittenError
	switch {
	case errors.As(r.Err, &overwritten):
		return "not known"
	case r.Err != nil:
		return r.Err.Error()
	}
	v := an.At(r, found[0].Addr)
	switch {
	case v.Undecided():
		return "undecided"
	case v.Rule != nil:
		return v.Rule.ID
	case v.Exec == classify.ExecFtrace:
		return "ftrace"
	}
	return "ok"
}

// Text under a probe is that which the kernel was started with, or what it has made of
// it since.
func TestTextUnderProbes(t *testing.T) {
	k, err := live.System{Root: "testdata/system"}.OpenKernel(image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for place, want := range map[string]string{
		"probed_demo": "0f1f440000 b82a000000 4889f8 c3",
		"jumped_demo": "0f1f440000 b801000000 4883c007 c3",
		"both_demo":   "0f1f440000 0f1f00 4883c007 c3", // an alternative, which the kernel has chosen
	} {
		addr, _ := k.Image.SymbolAddress(place)
		want = strings.ReplaceAll(want, " ", "")
		for from := range len(want) / 2 { // also of a part of it
			code, err := k.Image.Code(nil, addr+uint64(from), uint64(len(want)/2-from))
			if got := fmt.Sprintf("%x", code); err != nil || got != want[2*from:] {
				t.Errorf("%s+%d: %s, %v, want %s", place, from, got, err, want[2*from:])
			}
		}
	}
}

func TestNoText(t *testing.T) {
	s := newSystem(t)
	s.remove("proc/kcore", "boot")
	_, err := live.System{Root: s.dir}.OpenKernel(image.Options{})
	var none *live.NoTextError
	if !errors.As(err, &none) || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v", err)
	}
	if text := err.Error(); strings.Count(text, "\n") > 0 || !strings.Contains(text, "/proc/kcore: not there") || !strings.Contains(text, vmlinuz+": not there") {
		t.Error(text)
	}
}

// The file of another kernel is not taken for that of the one which runs.
func TestFileOfAnother(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"another release": func(b []byte) []byte {
			return bytes.Replace(b, []byte("version 6.12.107"), []byte("version 6.12.108"), 1)
		},
		"no kernel": func([]byte) []byte { return []byte("what") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			s.remove("proc/kcore")
			s.write(vmlinuz, change(s.read(vmlinuz)))
			_, err := live.System{Root: s.dir}.OpenKernel(image.Options{})
			var boot *live.BootError
			if !errors.As(err, &boot) || !strings.Contains(boot.Path, vmlinuz) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestKernelFacts(t *testing.T) {
	k, err := live.System{Root: "testdata/system"}.OpenKernel(image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if got := k.Facts.Version.String(); got != "6.12.107" || k.Facts.Release != release || len(k.Facts.Assumed(registration.KprobeEvents)) > 0 {
		t.Errorf("%s, %s, assumed %v", got, k.Facts.Release, k.Facts.Assumed(registration.KprobeEvents))
	}
	var probes []string
	for _, p := range k.Probes {
		probes = append(probes, fmt.Sprintf("%x %s", p.Addr, &p))
	}
	if want := []string{
		"ffffffff9b400205 k probed_demo+0x5",
		"ffffffff9b400245 k jumped_demo+0x5 [OPTIMIZED]",
		"ffffffff9b400284 r traced_demo+0x4 [FTRACE]",
		"ffffffff9b4002c5 k both_demo+0x5",
		"ffffffff9b400305 k strange_demo+0x5",
		"ffffffffc0a0000a k mod_open+0xa demo_mod [DISABLED]",
	}; !slices.Equal(probes, want) {
		t.Errorf("%q", probes)
	}
	if !k.Placed || k.Bias != 0 || !k.Facts.Modules.Loaded("demo_mod") || k.Facts.Modules.Loaded("bpf") {
		t.Errorf("placed %v at %#x", k.Placed, k.Bias)
	}
}

// Without kcore, addresses are those of the file, and the kernel was moved.
func TestBias(t *testing.T) {
	s := newSystem(t)
	s.remove("proc/kcore")
	k, err := live.System{Root: s.dir}.OpenKernel(image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if addr, _ := k.Image.SymbolAddress("vfs_demo"); !k.Placed || addr+k.Bias != 0xffffffff9b400040 {
		t.Errorf("vfs_demo is at %#x, moved by %#x", addr, k.Bias)
	}
}

// A kernel has some 200,000 symbols, and all of the machine's memory is in its core
// file. What is asked about one function takes well less than a second.
func TestFast(t *testing.T) {
	s := newSystem(t)
	var b bytes.Buffer
	b.Write(s.read("proc/kallsyms"))
	for i := range 200_000 {
		fmt.Fprintf(&b, "%016x d some_variable_of_the_kernel_%d\n", uint64(0xffffffff9b402000)+uint64(i%4096), i)
	}
	s.write("proc/kallsyms", b.Bytes())
	if err := os.Truncate(filepath.Join(s.dir, "proc/kcore"), 1<<40); err != nil {
		skip.Missing(t, "a file system with holes in files", err)
	}
	start := time.Now()
	k, err := live.System{Root: s.dir}.OpenKernel(image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	an, err := analyze.New(k.Image, analyze.Options{Kernel: k.Facts})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer(an, "vfs_demo"); got != "ftrace" {
		t.Error(got)
	}
	if took := time.Since(start); took > 3*time.Second { // 0.2 s on an idle machine
		t.Errorf("it took %v", took)
	}
}
