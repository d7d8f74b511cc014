package events_test

import (
	"reflect"
	"testing"
	"time"

	"xol/arch/amd64"
	"xol/events"
)

// The names and places are those of the examples in kprobetrace.rst and
// uprobetracer.rst. The default type is x64, whose format is 0x%Lx.
func TestText(t *testing.T) {
	table := events.NewTable([]events.Symbol{
		{Name: "do_sys_open", Addr: 0x1000, Size: 0xd6, Func: true},
		{Name: "sys_openat", Addr: 0x2000, Size: 0xe, Func: true},
		{Name: "ext4_file_open", Module: "ext4", Addr: 0x4000, Size: 0x40, Func: true},
	})
	const kprobe, uprobe = events.Kprobe, events.Uprobe
	for _, c := range []struct {
		name       string
		kind       events.Kind
		line, want string
	}{
		{"kprobe", kprobe, "p:myprobe do_sys_open dfd=%ax mode=%dx:u16", "myprobe: (do_sys_open+0x0/0xd6) dfd=0x3 mode=438"},
		{"kprobe at an address", kprobe, "p:x 0x200c", "x: (sys_openat+0xc/0xe)"},
		{"kprobe at an address without symbol", kprobe, "p:x 0x3000", "x: (0x3000)"},
		{"return of a kprobe", kprobe, "r:myretprobe do_sys_open $retval", "myretprobe: (sys_openat+0xc/0xe <- do_sys_open) arg1=0x3"},
		{"return of a kprobe without symbol", kprobe, "r:x 0x3000", "x: (sys_openat+0xc/0xe <- 0x00003000)"},
		{"kprobe in a module", kprobe, `p:x 0x4004 \0x4008:symbol \0x4008:string`, "x: (ext4_file_open+0x4/0x40 [ext4]) arg1=ext4_file_open+0x8/0x40 [ext4] arg2=(fault)"},
		{"return of a kprobe in a module", kprobe, "r:x 0x4000", "x: (sys_openat+0xc/0xe <- ext4_file_open)"},
		{"uprobe", uprobe, "p:zfree_entry /bin/zsh:0x46420 %ip %ax", "zfree_entry: (0x446420) arg1=0x446420 arg2=0x3"},
		{"return of a uprobe", uprobe, "r:zfree_exit /bin/zsh:0x46420 %ax", "zfree_exit: (0x446540 <- 0x446420) arg1=0x3"},
	} {
		g := newGuest(amd64.ISA{})
		g.set(t, "ax", 3)
		g.set(t, "dx", 0o666)
		g.set(t, "ip", 0x446420)
		h := events.Hit{Registers: g, Memory: g, Return: 0x200c}
		opt := events.Options{Kind: c.kind, ISA: amd64.ISA{}, Symbols: table}
		e, err := events.Parse(c.line, opt)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case c.kind == uprobe:
			h.Probe, h.Return = 0x446420, 0x446540
		case e.Symbol != "":
			h.Probe = 0x1000
		default:
			h.Probe = e.Addr
		}
		p, err := events.Compile(&e, amd64.ISA{}, opt)
		if err != nil {
			t.Fatal(err)
		}
		values, err := p.Record(&h)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Text(&h, values); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	task := events.Task{Comm: "<...>", PID: 1447, CPU: 1, Time: 1038282*time.Second + 286875*time.Microsecond}
	want := "           <...>-1447    [001]  1038282.286875: myprobe: (x)"
	if got := task.Line("myprobe: (x)"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	task = events.Task{Comm: "a-long-task-name", PID: 12345678, CPU: 12, Time: 70*time.Millisecond + 1500}
	want = "a-long-task-name-12345678 [012]      0.070002: x"
	if got := task.Line("x"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTable(t *testing.T) {
	table := events.NewTable([]events.Symbol{
		{Name: "b", Addr: 0x200, Size: 0x10, Func: true},
		{Name: "open", Addr: 0x100, Func: true},
		{Name: "last", Addr: 0x300, Func: true},
		{Name: "b", Module: "m", Addr: 0x280, Size: 4, Func: true},
	})
	for _, c := range []struct {
		addr         uint64
		name         string
		offset, size uint64
	}{
		{0xff, "", 0, 0},
		{0x100, "open", 0, 0x100}, // reaches to the next one
		{0x1ff, "open", 0xff, 0x100},
		{0x20f, "b", 0xf, 0x10},
		{0x210, "", 0, 0},
		{0x999, "last", 0x699, 0},
	} {
		s, offset, ok := table.Lookup(c.addr)
		if s.Name != c.name || offset != c.offset || s.Size != c.size || ok != (c.name != "") {
			t.Errorf("%#x is %s+%#x/%#x, %v", c.addr, s.Name, offset, s.Size, ok)
		}
	}
	if n := table.Count("", "b"); n != 2 {
		t.Errorf("%d functions b", n)
	}
	if n := table.Count("m", "b"); n != 1 {
		t.Errorf("%d functions b in m", n)
	}
	if addr, ok := table.Address("m:b"); addr != 0x280 || !ok {
		t.Errorf("m:b at %#x, %v", addr, ok)
	}
	if got := table.Functions("*"); !reflect.DeepEqual(got, []string{"open", "b", "b", "last"}) {
		t.Errorf("functions %q", got)
	}
}
