package notation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The forms are those of bpftrace(8), perf-probe(1) and
// Documentation/trace/kprobetrace.rst, uprobetracer.rst.
func TestParse(t *testing.T) {
	for _, tc := range []struct {
		text string
		want Probe
	}{
		{"vfs_read", Probe{Place: "vfs_read"}},
		{"vfs_read+0x1c", Probe{Place: "vfs_read+0x1c"}},
		{"0xffffffff81000000", Probe{Place: "0xffffffff81000000"}},
		{"ffffffff81000000", Probe{Place: "0xffffffff81000000"}},
		{"deadbee", Probe{Place: "deadbee"}}, // seven digits are a name
		{"file:0x1040", Probe{Place: "file:0x1040"}},
		{"main.c:12", Probe{Place: "main.c:12"}},
		{"ext4:ext4_file_open", Probe{Module: "ext4", Place: "ext4_file_open"}},
		{"memcpy@GLIBC_2.2.5", Probe{Place: "memcpy@GLIBC_2.2.5"}},
		{"memcpy@@GLIBC_2.14", Probe{Place: "memcpy@@GLIBC_2.14"}},
		{"vfs_*", Probe{Place: "vfs_*", Glob: true}},
		{"ns::f(int, char*)", Probe{Place: "ns::f(int, char*)"}},
		{"operator==(A const&)", Probe{Place: "operator==(A const&)"}},
		{"std::vector<int>::push_back", Probe{Place: "std::vector<int>::push_back"}},
		{"libc.so.6:malloc", Probe{File: "libc.so.6", Place: "malloc"}},
		{"libc:mem*", Probe{Module: "libc", Place: "mem*", Glob: true}},
		{"/lib/x.so.3:SSL_read+8", Probe{File: "/lib/x.so.3", Place: "SSL_read+8"}},
		{"/lib/*/x.so:f", Probe{File: "/lib/*/x.so", Place: "f"}},
		{"*:f", Probe{File: "*", Place: "f"}},
		{"/bin/bash:main.c:42", Probe{File: "/bin/bash", Place: "main.c:42"}},
		{"/bin/bash:file:0x1040", Probe{File: "/bin/bash", Place: "file:0x1040"}},
		{"libc:0x98930", Probe{Module: "libc", Place: "0x98930"}},
		{"/usr/src/main.c:42", Probe{Place: "/usr/src/main.c:42"}},
		{"main.c:parse", Probe{Source: "main.c", Place: "parse"}},
		{"libstdc++.so.6:std::terminate", Probe{File: "libstdc++.so.6", Place: "std::terminate"}},
		{"x:ns::f(int, char*)", Probe{Module: "x", Place: "ns::f(int, char*)"}},
		{"libc.so.6:malloc%return", Probe{Tool: Perf, Return: true, File: "libc.so.6", Place: "malloc"}},
		{"libc.so.6:memcpy@GLIBC_2.2.5", Probe{File: "libc.so.6", Place: "memcpy@GLIBC_2.2.5"}},
		{"r:malloc", Probe{Return: true, Place: "malloc"}},
		{"r:libc:malloc", Probe{Return: true, Module: "libc", Place: "malloc"}},
		{"r:/bin/bash:main", Probe{Return: true, File: "/bin/bash", Place: "main"}},
		{"p:malloc+4", Probe{Place: "malloc+4"}},

		{"kprobe:vfs_read", Probe{Kind: Kprobe, Tool: Bpftrace, Place: "vfs_read"}},
		{"uprobe:/opt/größe/bin:main", Probe{Kind: Uprobe, Tool: Bpftrace, File: "/opt/größe/bin", Place: "main"}},
		{"kprobe:vfs_read+4", Probe{Kind: Kprobe, Tool: Bpftrace, Place: "vfs_read+4"}},
		{`kprobe:"vfs_read+4"`, Probe{Kind: Kprobe, Tool: Bpftrace, Place: "vfs_read+4"}},
		{"kprobe:ext4:ext4_file_open", Probe{Kind: Kprobe, Tool: Bpftrace, Module: "ext4", Place: "ext4_file_open"}},
		{"kretprobe:vfs_read", Probe{Kind: Kprobe, Tool: Bpftrace, Return: true, Place: "vfs_read"}},
		{"fentry:vmlinux:vfs_read", Probe{Kind: Fentry, Tool: Bpftrace, Place: "vfs_read"}},
		{"kretfunc:vfs_read", Probe{Kind: Fentry, Tool: Bpftrace, Return: true, Place: "vfs_read"}},
		{"kprobe:vfs_*", Probe{Kind: Kprobe, Tool: Bpftrace, Place: "vfs_*", Glob: true}},
		{"uprobe:/bin/bash:main", Probe{Kind: Uprobe, Tool: Bpftrace, File: "/bin/bash", Place: "main"}},
		{"uprobe:/bin/bash:main+4", Probe{Kind: Uprobe, Tool: Bpftrace, File: "/bin/bash", Place: "main+4"}},
		{"uprobe:/bin/bash:0x1040", Probe{Kind: Uprobe, Tool: Bpftrace, File: "/bin/bash", Place: "file:0x1040"}},
		{"uprobe:./a.out:cpp:ns::f", Probe{Kind: Uprobe, Tool: Bpftrace, File: "./a.out", Place: "ns::f"}},
		{`uprobe:./a.out:cpp:"ns::f(int, int)"`, Probe{Kind: Uprobe, Tool: Bpftrace, File: "./a.out", Place: "ns::f(int, int)"}},
		{"uretprobe:libc:malloc", Probe{Kind: Uprobe, Tool: Bpftrace, Return: true, File: "libc", Place: "malloc"}},
		{"usdt:/bin/x:prov:name", Probe{Kind: Marker, Tool: Bpftrace, File: "/bin/x", Provider: "prov", Name: "name"}},
		{"usdt:/bin/x:name", Probe{Kind: Marker, Tool: Bpftrace, File: "/bin/x", Name: "name"}},
		{"usdt:/bin/x:*:gc__*", Probe{Kind: Marker, Tool: Bpftrace, File: "/bin/x", Provider: "*", Name: "gc__*", Glob: true}},

		{"p vfs_read", Probe{Kind: Kprobe, Tool: Tracefs, Place: "vfs_read"}},
		{"p:grp/name vfs_read+4 fd=%di", Probe{Kind: Kprobe, Tool: Tracefs, Place: "vfs_read+0x4"}},
		{"p:name ext4:ext4_file_open", Probe{Kind: Kprobe, Tool: Tracefs, Module: "ext4", Place: "ext4_file_open"}},
		{"r16:name vfs_read ret=$retval", Probe{Kind: Kprobe, Tool: Tracefs, Return: true, Place: "vfs_read"}},
		{"p 0xffffffff81000000", Probe{Kind: Kprobe, Tool: Tracefs, Place: "0xffffffff81000000"}},
		{"p vfs_read%return", Probe{Kind: Kprobe, Tool: Tracefs, Return: true, Place: "vfs_read"}},
		{"r:grp/name vfs_read+4", Probe{Kind: Kprobe, Tool: Tracefs, Return: true, Place: "vfs_read+0x4"}},
		{"p vfs_read+4%return", Probe{Kind: Kprobe, Tool: Tracefs, Return: true, Place: "vfs_read+0x4"}},
		{"p vfs_read+4 $arg1", Probe{Kind: Kprobe, Tool: Tracefs, Place: "vfs_read+0x4"}},
		{"r:vfs_read+4", Probe{Return: true, Place: "vfs_read+4"}},
		{"p:u/e /bin/bash:0x1040 %ip", Probe{Kind: Uprobe, Tool: Tracefs, File: "/bin/bash", Place: "file:0x1040"}},
		{"r /bin/bash:0x1040", Probe{Kind: Uprobe, Tool: Tracefs, Return: true, File: "/bin/bash", Place: "file:0x1040"}},

		{"vfs_read%return", Probe{Tool: Perf, Return: true, Place: "vfs_read"}},
		{"vfs_read%return $retval", Probe{Tool: Perf, Return: true, Place: "vfs_read"}},
		{"myevent=vfs_read+4 file", Probe{Tool: Perf, Place: "vfs_read+4"}},
		{"grp:ev=vfs_read", Probe{Tool: Perf, Place: "vfs_read"}},
		{"start@fs/read_write.c+8", Probe{Tool: Perf, Place: "start+8", Source: "fs/read_write.c"}},
		{"vfs_read $params s=+0(%di):string", Probe{Tool: Perf, Place: "vfs_read"}},
	} {
		t.Run(tc.text, func(t *testing.T) {
			got, err := Parse(tc.text)
			tc.want.Text = tc.text
			got.Event, got.Args = "", nil // see TestParseEvent
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("error %v; -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestParseEvent(t *testing.T) {
	for _, tc := range []struct {
		text, event string
		args        []string
	}{
		{"vfs_read", "", nil},
		{"p:grp/name vfs_read+4 fd=%di", "grp/name", []string{"fd=%di"}},
		{"r vfs_read $retval", "kprobes/r_vfs_read_0", []string{"arg1=$retval"}},
		{"p:u/e /bin/bash:0x1040 %ip s=+0(%di):string", "u/e", []string{"arg1=%ip", "s=+0(%di):string"}},
		{"malloc size=%di", "", []string{"size=%di"}},
		{"grp:ev=malloc size=%di  %si", "grp/ev", []string{"size=%di", "%si"}},
		{"ev=malloc%return $retval", "ev", []string{"$retval"}},
	} {
		t.Run(tc.text, func(t *testing.T) {
			p, err := Parse(tc.text)
			if err != nil || p.Event != tc.event || !slices.Equal(p.Args, tc.args) {
				t.Errorf("event %q, arguments %q, error %v", p.Event, p.Args, err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ text, says string }{
		{"", "it is empty"},
		{"kprobe:", "names no function"},
		{"kprobe:a:b:c", "want kprobe:function"},
		{"kretprobe:vfs_read+4", "has no offset"},
		{"uprobe:main", "want uprobe:FILE:function"},
		{"uprobe::main", "want uprobe:FILE:function"},
		{"usdt:/bin/x", "want usdt:FILE"},
		{"tracepoint:sched:sched_switch", "no place in text"},
		{"interval:s:1", "no place in text"},
		{"p:grp/1name vfs_read", "BAD_EVENT_NAME"},
		{"r vfs_read+4+5", "BAD_PROBE_ADDR"},
		{"vfs_read%entry", "only %return"},
		{"vfs_read;file=*", "source lines"},
		{"e=vfs_read:3", "lines of a function"},
		{"vfs_read+4%return", "has no offset"},
		{"r:vfs_read+4%return", "has no offset"},
		{"r:", "it is empty"},
		{"x= y", "it names no place"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			if p, err := Parse(tc.text); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%+v, error %v", p, err)
			}
		})
	}
	if _, err := Parse("profile:hz:99"); !errors.Is(err, ErrNotAPlace) {
		t.Errorf("a timer: %v", err)
	}
	if _, err := Parse("p:x vfs_read x=%zz:zz"); err == nil {
		t.Error("a wrong argument is accepted")
	} else if e, ok := SyntaxError(err); !ok || e.ID == "" {
		t.Errorf("a wrong argument: %v", err)
	}
}

// asText writes what a script has, a line for each probe.
func asText(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%02d %s", l.Number, l.Text)
		if l.Err != nil {
			b.WriteString(" !")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestScript(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"bpftrace", `#!/usr/bin/env bpftrace
#include <linux/fs.h>
/* kprobe:not_this { } */
BEGIN { printf("a { b"); }
struct x { int y; };
kprobe:vfs_read, // kprobe:nor_this
kprobe:vfs_write
/ pid == 4 && str("}") != "{" /
{ if (arg0) { @ = count(); } }
k:vfs_open,kr:vfs_open{ }
uprobe:/usr/lib/*/libc.so.6:malloc /arg0 > 4/ { }
u:"/a b":"f(int, int)" { } interval:s:1 { exit(); } t:sched:sched_switch { }
nonsense:x { }
`, `06 kprobe:vfs_read
07 kprobe:vfs_write
10 k:vfs_open
10 kr:vfs_open
11 uprobe:/usr/lib/*/libc.so.6:malloc
12 u:"/a b":"f(int, int)"
13 nonsense:x !
`},
		{"one line of bpftrace", `kprobe:vfs_read { @[comm] = count(); }`, "01 kprobe:vfs_read\n"},
		{"kprobe_events", `# mine
p:a vfs_read fd=%di

r:b vfs_read $retval	# the result
-:a
p:c vfs_read+
p /bin/bash:0x40
`, `02 p:a vfs_read fd=%di
04 r:b vfs_read $retval
06 p:c vfs_read+ !
07 p /bin/bash:0x40
`},
		{"places", "vfs_read\n  vfs_write+4  # why\nffffffff81000000\n", "01 vfs_read\n02 vfs_write+4\n03 ffffffff81000000\n"},
		{"perf", "perf probe -x /bin/bash -a 'main%return' --add=\"readline a=%di\"\nperf probe -m ext4 ext4_file_open inode\n",
			"01 main%return\n01 readline a=%di\n02 ext4_file_open inode\n"},
		{"perf, options with their values", "perf probe -x/bin/bash -amain\nperf probe --exec=/bin/bash --add main\n", "01 main\n02 main\n"},
		{"perf, no probe is made", "perf probe -d vfs_read\nperf probe --del='xol:*'\nperf probe -l\nperf probe -F -x /bin/bash\nperf probe -L vfs_read -k vmlinux\nperf probe -V vfs_read\n", ""},
		{"empty", "\n# nothing\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, asText(Script(tc.text))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPerfCommand(t *testing.T) {
	lines := Script("perf probe -x /bin/bash -a 'main%return'\nperf probe -m ext4 ext4_file_open\nperf probe -x/bin/bash -amain\n")
	want := []Probe{
		{Text: "main%return", Kind: Uprobe, Tool: Perf, Return: true, File: "/bin/bash", Place: "main"},
		{Text: "ext4_file_open", Kind: Kprobe, Tool: Perf, Module: "ext4", Place: "ext4_file_open"},
		{Text: "main", Kind: Uprobe, Tool: Perf, File: "/bin/bash", Place: "main"},
	}
	for i := range want {
		if diff := cmp.Diff(want[i], lines[i].Probe); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func FuzzScript(f *testing.F) {
	f.Add("kprobe:vfs_read /pid/ { @ = 1; }")
	f.Add("p:a/b vfs_read+4 a=+0(%di):string\nperf probe -x '/a b' f%return")
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range Script(text) {
			if n := strings.Count(text, "\n") + 1; l.Number < 1 || l.Number > n {
				t.Errorf("line %d of %d", l.Number, n)
			}
			if l.Err == nil && l.Probe.Place == "" && l.Probe.Name == "" {
				t.Errorf("%q has no place", l.Text)
			}
		}
	})
}
