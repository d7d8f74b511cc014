package live

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"testing"

	"xol/image"
)

// seeds gives a fuzz target the constructed system's files.
func seeds(f *testing.F, names ...string) {
	f.Helper()
	for _, name := range names {
		text, err := os.ReadFile("testdata/system/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
}

// FuzzCore reads headers of core files: none makes a segment beyond what numbers can
// say.
func FuzzCore(f *testing.F) {
	text, err := os.ReadFile("testdata/system/proc/kcore")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text[:64+3*56])
	f.Fuzz(func(t *testing.T, text []byte) {
		var c kcore
		if err := c.readHeaders(bytes.NewReader(text)); err != nil {
			if !errors.Is(err, errNotCore) {
				t.Error(err)
			}
			return
		}
		for _, s := range c.segments {
			if s.off < 0 || s.addr+s.size < s.addr || s.off+int64(s.size) < s.off {
				t.Errorf("%+v", s)
			}
			if !c.holds(s.addr, s.size) || c.holds(s.addr, s.size+1) && len(c.segments) == 1 {
				t.Errorf("%+v does not hold itself", s)
			}
		}
	})
}

// FuzzLists reads what debugfs, tracefs and /proc list.
func FuzzLists(f *testing.F) {
	seeds(f, "sys/kernel/debug/kprobes/list", "sys/kernel/debug/kprobes/blacklist",
		"sys/kernel/tracing/available_filter_functions_addrs", "sys/kernel/tracing/available_filter_functions")
	f.Add([]byte("55d0c0000000-55d0c0001000 r-xp 00002000 fe:01 1234   /usr/bin/a b (deleted)\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, read := range map[string]func() error{
			"probes":    func() error { _, err := readProbes(text); return err },
			"blacklist": func() error { _, _, err := readBlacklist(text); return err },
			"addresses": func() error { _, err := readFtraceAddrs(text); return err },
			"names":     func() error { _, err := readFtraceNames(text); return err },
			"maps":      func() error { _, err := readMaps(text); return err },
		} {
			var line *LineError
			if err := read(); err != nil && !errors.As(err, &line) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// FuzzSections divides kernels and modules by any symbols: no piece overlaps another,
// and none goes beyond the address space.
func FuzzSections(f *testing.F) {
	seeds(f, "proc/kallsyms")
	f.Fuzz(func(t *testing.T, text []byte) {
		syms, err := image.ReadSymbolMap(bytes.NewReader(text))
		if err != nil {
			return
		}
		sections := kernelSections(syms, boundsOf(syms))
		end := uint64(0)
		for _, s := range sections {
			if s.Addr < end || s.Addr+s.Size <= s.Addr {
				t.Fatalf("%+v", sections)
			}
			end = s.Addr + s.Size
		}
		var loaded []loadedSection
		for i := range syms {
			loaded = append(loaded, loadedSection{syms[i].Name, syms[i].Addr})
		}
		const most = 1 << 20 // bytes: reading all of a large one takes its time
		if len(loaded) > 60 || len(sections) > 0 && end-sections[0].Addr > most {
			return
		}
		modules := moduleSections("m", loaded, syms, []string{"_kprobe_blacklist", "__mcount_loc"})
		if len(sections)+len(modules) > 0 {
			m := &image.Memory{Machine: elf.EM_X86_64, Sections: append(sections, modules...), Symbols: syms, Read: func([]byte, uint64) error { return errNoSegment }}
			if img, err := image.OpenMemory(m, image.Options{}); err == nil {
				_, _ = img.Functions(image.ExtentNext)
				_, _ = img.Marks()
			}
		}
	})
}

func TestRank(t *testing.T) {
	for _, tc := range []struct {
		name, path string
		want       bool
	}{
		{"/usr/lib/libc.so.6", "/usr/lib/libc.so.6", true}, {"libc.so.6", "/usr/lib/libc.so.6", true}, {"libc", "/usr/lib/libc.so.6", true},
		{"c", "/usr/lib/libc.so.6", true}, {"libc", "/lib/libc-2.31.so", true}, {"bash", "/usr/bin/bash", true},
		{"libc", "/usr/lib/libcrypt.so.1", false}, {"/lib/libc.so.6", "/usr/lib/libc.so.6", false}, {"ssl", "/usr/lib/libssl.so.3", true}, {"", "/usr/bin/bash", false},
	} {
		if got := rank(tc.name, tc.path) > 0; got != tc.want {
			t.Errorf("%q means %s: %v", tc.name, tc.path, got)
		}
	}
}
