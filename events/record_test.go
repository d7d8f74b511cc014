package events_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"xol/arch/amd64"
	"xol/arch/arm64"
	"xol/arch/ppc64"
	"xol/events"
)

// guest is a CPU's registers and memory.
type guest struct {
	isa   events.ISA
	regs  map[int]uint64
	bytes map[uint64]byte
}

func newGuest(isa events.ISA) *guest {
	return &guest{isa: isa, regs: map[int]uint64{}, bytes: map[uint64]byte{}}
}

func (g *guest) Reg(i int) uint64       { return g.regs[i] }
func (g *guest) SetReg(i int, v uint64) { g.regs[i] = v }

func (g *guest) Read(dst []byte, addr uint64) error {
	for i := range dst {
		b, ok := g.bytes[addr+uint64(i)]
		if !ok {
			return fs.ErrNotExist
		}
		dst[i] = b
	}
	return nil
}

func (g *guest) Write(addr uint64, src []byte) error {
	for i, b := range src {
		g.bytes[addr+uint64(i)] = b
	}
	return nil
}

func (g *guest) ReadWord(addr uint64) (uint64, error) {
	var b [8]byte
	err := g.Read(b[:], addr)
	return g.isa.ByteOrder().Uint64(b[:]), err
}

func (g *guest) WriteWord(addr, v uint64) error {
	return g.Write(addr, g.order().AppendUint64(nil, v))
}

// order is g's byte order, for making data.
func (g *guest) order() binary.AppendByteOrder {
	if g.isa.ByteOrder() == binary.ByteOrder(binary.BigEndian) {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// set sets the register that fetch arguments call name.
func (g *guest) set(t testing.TB, name string, v uint64) {
	t.Helper()
	i, ok := g.isa.FetchRegister(name)
	if !ok || i < 0 {
		t.Fatalf("no register %s", name)
	}
	g.regs[i] = v
}

// Addresses in the guest's memory.
const (
	data    = 0x10000
	strs    = 0x20000
	stack   = 0x30000
	missing = 0x90000
)

// testGuest has a structure at data, strings at strs and a stack. Its first
// arguments are data, strs and missing.
func testGuest(t testing.TB, isa events.ISA) *guest {
	g := newGuest(isa)
	order := g.order()
	b := []byte{0x81, 0x02, 0x41, 0xff}                 // data: four bytes
	b = order.AppendUint32(b, 0xfffffffe)               // data+4
	b = order.AppendUint64(b, strs)                     // data+8: pointers to strings
	b = order.AppendUint64(b, missing)                  // data+16
	b = order.AppendUint64(b, strs+6)                   // data+24
	b = order.AppendUint64(b, data)                     // data+32
	b = order.AppendUint16(order.AppendUint16(b, 1), 2) // data+40
	g.Write(data, b)
	g.Write(strs, append([]byte("hello\x00wide world\x00"), make([]byte, 64)...))
	g.WriteWord(0xffffffff82000000, 4711) // jiffies
	convention := isa.Convention()
	for i, v := range []uint64{data, strs, missing} {
		g.regs[convention.Args[i]] = v
	}
	g.regs[isa.Registers().SP] = stack
	for i := range uint64(4) {
		g.WriteWord(stack+8*i, 0x1111*(i+1))
	}
	return g
}

// record returns what a line records, as trace shows the arguments.
func record(t testing.TB, g *guest, line string, h events.Hit) string {
	t.Helper()
	return recordWith(t, g, line, events.Options{}, h)
}

func recordWith(t testing.TB, g *guest, line string, opt events.Options, h events.Hit) string {
	t.Helper()
	opt.ISA, opt.Symbols = g.isa, kernel()
	if strings.Contains(strings.Fields(line)[1], "/") {
		opt.Kind = events.Uprobe
	}
	e, err := events.Parse(line, opt)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	p, err := events.Compile(&e, g.isa, opt)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	h.Registers, h.Memory = g, g
	values, err := p.Record(&h)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	text := make([]string, len(values))
	for i := range values {
		text[i] = values[i].String()
	}
	return strings.Join(text, " ")
}

// TestRecord expects the same on all ISAs, but for names of registers.
func TestRecord(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"$arg1 $arg2 $arg3", "0x10000 0x20000 0x90000"},
		{"$stack $stack0 $stack2", "0x30000 0x1111 0x3333"},
		{"$stack9", "0x0"}, // as Linux has it for what cannot be read
		{"$comm $COMM:string", `"cat" "cat"`},
		{`\7 \-1 \-1:s32 \0x41:char`, `0x7 0xffffffffffffffff -1 'A'`},
		{`\"text" \"":string`, `"text" ""`},
		{"@jiffies:u64 @jiffies+4 @0x10001:u8", "4711 (fault) 2"},

		{"+0($arg1):u8 +0($arg1):s8 +0($arg1):x8 +2($arg1):char", "129 -127 0x81 'A'"},
		{"+4($arg1):u32 +4($arg1):s32 +4($arg1):x32", "4294967294 -2 0xfffffffe"},
		{"+40($arg1):u16 +42($arg1):s16", "1 2"},
		{"-0x10000($arg2):u8 +8($arg1):u64", "129 131072"},
		{"+u4($arg1):s32", "-2"},
		{"+4(+32($arg1)):s32 +4(+32(+32($arg1))):s32", "-2 -2"},
		{"+0($arg3) +0($arg3):u8 +0(+0($arg3)) +0(+16($arg1))", "(fault) (fault) (fault) (fault)"},
		{"$arg1:u8 $arg1:u16 $arg1:s32", "0 0 65536"},

		{"+0($arg2):string +u0($arg2):string +0($arg2):ustring", `"hello" "hello" "hello"`},
		{"+6($arg2):string +0(+8($arg1)):string", `"wide world" "hello"`},
		{"+0($arg3):string +0(+16($arg1)):string", "(fault) (fault)"},
		{`\0x20000:string @0x20006:string`, `"hello" "wide world"`},
		// string[1] is a pointer to a string [kprobetrace.rst, types].
		{"+8($arg1):string[1] +0(+8($arg1)):string", `{"hello"} "hello"`},
		{"+0($arg3):string[2]", "{(fault),(fault)}"},
		{"+8($arg1):string[3]", `{"hello",(fault),"wide world"}`},
		{"+0(+32($arg1)):u8[4]", "{129,2,65,255}"},
		{"+0($arg1):x8[2] +40($arg1):u16[2] +8($arg1):x64[2]", "{0x81,0x2} {1,2} {0x20000,0x90000}"},
		{"+43($arg1):u8[2]", "{" + "%last" + ",(fault)}"},
		{`\0x20000:string[2]`, `{"hello",(fault)}`},

		{`\0xb5:b4@2/8 \0xb5:b1@0/8 \0xb5:b8@0/8`, "13 1 181"},
		{`\0xabcd1234:b12@8/32 \-1:b64@0/64`, "3346 18446744073709551615"},
		{"+0($arg1):b4@4/8[2]", "{8,0}"},

		{`\0xffffffff81200010:symbol \0xffffffff81200010:x64`, "vfs_read+0x10/0x100 0xffffffff81200010"},
		{`\5:symbol`, "0x5"},
		{"$arg1:symstr +0($arg3):symstr", `"0x10000" (fault)`},
	} {
		for _, isa := range []events.ISA{amd64.ISA{}, arm64.ISA{}, ppc64.ISA{}, ppc64.ISA{LittleEndian: true}} {
			last := "0"
			if isa.ByteOrder() == binary.ByteOrder(binary.BigEndian) {
				last = "2"
			}
			want := strings.ReplaceAll(c.want, "%last", last)
			got := record(t, testGuest(t, isa), "p vfs_read "+c.args, events.Hit{Comm: "cat"})
			if got != want {
				t.Errorf("%T %v: %s:\n got %s\nwant %s", isa, isa.ByteOrder(), c.args, got, want)
			}
		}
	}
}

func TestRecordRegisters(t *testing.T) {
	for _, c := range []struct {
		isa   events.ISA
		names string // and the names in the register file
	}{
		{amd64.ISA{}, "ax=rax bx=rbx cx=rcx dx=rdx si=rsi di=rdi bp=rbp sp=rsp r8=r8 r15=r15 ip=rip flags=rflags"},
		{arm64.ISA{}, "x0=x0 x17=x17 x30=x30 lr=x30 sp=sp pc=pc pstate=nzcv"},
		{ppc64.ISA{}, "gpr0=r0 gpr1=r1 gpr31=r31 nip=pc link=lr ctr=ctr xer=xer ccr=cr"},
	} {
		file := c.isa.Registers()
		for pair := range strings.FieldsSeq(c.names) {
			name, register, _ := strings.Cut(pair, "=")
			g := newGuest(c.isa)
			g.regs[file.Index(register)] = 0x1234
			if got := record(t, g, "p vfs_read %"+name, events.Hit{}); got != "0x1234" {
				t.Errorf("%T: %%%s is %s", c.isa, name, got)
			}
		}
	}
}

// On amd64 the seventh argument is the first after the return address; on the
// others Linux does not look on the stack.
func TestRecordStackArguments(t *testing.T) {
	for _, c := range []struct {
		isa  events.ISA
		args string
		want string
	}{
		{amd64.ISA{}, "$arg7 $arg8", "0x2222 0x3333"},
		{arm64.ISA{}, "$arg9", "0x0"},
		{ppc64.ISA{}, "$arg9", "0x0"},
	} {
		if got := record(t, testGuest(t, c.isa), "p vfs_read "+c.args, events.Hit{}); got != c.want {
			t.Errorf("%T: %s is %s, want %s", c.isa, c.args, got, c.want)
		}
	}
}

func TestRecordFileOffset(t *testing.T) {
	g := testGuest(t, amd64.ISA{})
	// The file is mapped at 0xf000: its offset 0x1004 is data+4.
	h := events.Hit{Probe: 0xf000 + 0x500}
	if got := record(t, g, "p /bin/prog:0x500 @+0x1004:s32", h); got != "-2" {
		t.Errorf("got %s", got)
	}
}

func TestReturnEvent(t *testing.T) {
	g := testGuest(t, amd64.ISA{})
	opt := events.Options{Symbols: kernel()}
	e, err := events.Parse("r vfs_read $retval:s32 $arg2 +0($arg2):string $arg2:x8", events.Options{ISA: amd64.ISA{}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := events.Compile(&e, amd64.ISA{}, opt)
	if err != nil {
		t.Fatal(err)
	}
	h := events.Hit{Registers: g, Memory: g, Probe: 0xffffffff81200000, Return: 0xffffffff8120020c}
	if _, err := p.Record(&h); err == nil {
		t.Error("recorded arguments that were not kept")
	}
	if !p.NeedsEntry() {
		t.Error("arguments are not to be kept")
	}
	h.Entry = p.Entry(g, g)
	g.set(t, "si", 0) // the function changes its argument
	g.set(t, "ax", 0xffffffff)
	values, err := p.Record(&h)
	if err != nil {
		t.Fatal(err)
	}
	want := `r_vfs_read_0: (do_sys_open+0xc/0xd6 <- vfs_read) arg1=-1 arg2=0x20000 arg3="hello" arg4=0x0`
	if got := p.Text(&h, values); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestLongString(t *testing.T) {
	g := testGuest(t, amd64.ISA{})
	g.Write(strs+1, []byte(strings.Repeat("x", 5000)))
	got := record(t, g, "p vfs_read +1($arg2):string", events.Hit{})
	if want := `"` + strings.Repeat("x", events.MaxString-1) + `"`; got != want {
		t.Errorf("a string of %d bytes", len(got)-2)
	}
	// It ends just before memory does.
	g = newGuest(amd64.ISA{})
	g.Write(0x10fc, []byte("end\x00"))
	g.Write(0x10c0, []byte(strings.Repeat("y", 0x3c)))
	if got := record(t, g, `p vfs_read \0x10d0:string`, events.Hit{}); got != `"`+strings.Repeat("y", 0x2c)+`end"` {
		t.Errorf("got %s", got)
	}
}

// Fields of pt_regs that no register holds are those of an exception.
func TestFieldsOfTheFrame(t *testing.T) {
	for _, c := range []struct {
		isa        events.ISA
		line, want string
	}{
		{amd64.ISA{}, "p vfs_read %orig_ax:s64 %cs %ss", "-1 0x10 0x18"},
		{amd64.ISA{}, "p /bin/bash:0x4245c0 %orig_ax %cs %ss", "0xffffffffffffffff 0x33 0x2b"},
		{ppc64.ISA{}, "p vfs_read %msr %trap %softe", "0x8000000002802000 0x700 0x0"},
		{ppc64.ISA{LittleEndian: true}, "p /bin/bash:0x4245c0 %msr %trap %msr:u8", "0x8000000002802001 0x700 1"},
	} {
		if got := record(t, newGuest(c.isa), c.line, events.Hit{}); got != c.want {
			t.Errorf("%s, %v: %s, want %s", c.line, c.isa.ByteOrder(), got, c.want)
		}
	}
}

// A dentry's name is read through the fields that the layout names.
func TestDentryNames(t *testing.T) {
	// Names end where memory that is there ends.
	const file, dentry, hosts, group = 0x1000, 0x2000, 0x3040 - 6, 0x3080 - 6
	for _, c := range []struct {
		name   string
		layout events.Layout
		line   string
		args   []uint64
		want   string
	}{
		{"a dentry of Linux 6.12", events.Layout{}, "p vfs_read $arg1:%pd", []uint64{dentry}, `"hosts"`},
		{"a file of Linux 6.12", events.Layout{}, "p vfs_read n=$arg1:%pD", []uint64{file}, `"hosts"`},
		{"another layout", events.Layout{DentryName: 0x60, FileDentry: 0x10}, "p vfs_read n=$arg2:%pD m=$arg1:%pd", []uint64{dentry, file}, `"group" "group"`},
		{"no dentry", events.Layout{}, "p vfs_read $arg1:%pd", []uint64{0x7000}, "(fault)"},
	} {
		g := newGuest(arm64.ISA{})
		for addr, word := range map[uint64]uint64{file + 0x48: dentry, file + 0x10: dentry, dentry + 0x28: hosts, dentry + 0x60: group} {
			if err := g.WriteWord(addr, word); err != nil {
				t.Fatal(err)
			}
		}
		g.Write(hosts, []byte("hosts\x00"))
		g.Write(group, []byte("group\x00"))
		for i, arg := range c.args {
			g.SetReg(g.isa.Convention().Args[i], arg)
		}
		if got := recordWith(t, g, c.line, events.Options{Layout: c.layout}, events.Hit{}); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	opt := events.Options{Symbols: kernel()}
	for _, c := range []struct {
		name string
		e    events.Event
		want string
	}{
		{"a symbol that does not exist", events.Event{Group: "g", Name: "n", Symbol: "vfs_read", Args: []events.Arg{{Name: "x", Text: "@nothing"}}}, "argument x: there is no symbol nothing"},
	} {
		_, err := events.Compile(&c.e, amd64.ISA{}, opt)
		var missing *events.UnavailableError
		if !errors.As(err, &missing) || err.Error() != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	fault := events.Event{Group: "g", Name: "n", Symbol: "vfs_read", Args: []events.Arg{{Name: "x", Text: "%dar"}}}
	if _, err := events.Compile(&fault, ppc64.ISA{}, opt); err == nil || err.Error() != "argument x: there is no register %dar" {
		t.Errorf("a field that differs from hit to hit: %v", err)
	}
	e := events.Event{Group: "g", Name: "n", Symbol: "vfs_read", Args: []events.Arg{{Name: "x", Text: "@jiffies"}}}
	var missing *events.UnavailableError
	if _, err := events.Compile(&e, amd64.ISA{}, events.Options{}); !errors.As(err, &missing) {
		t.Errorf("a symbol where none is known: %v", err)
	}
	for _, c := range []struct {
		name string
		e    events.Event
		want events.ID
	}{
		{"no group", events.Event{Name: "n", Symbol: "vfs_read"}, events.NoGroupName},
		{"a wrong argument", events.Event{Group: "g", Name: "n", Symbol: "vfs_read", Args: []events.Arg{{Name: "x", Text: "&1"}}}, events.BadFetchArg},
		{"a removal", events.Event{Remove: true, Name: "n"}, events.Invalid},
	} {
		_, err := events.Compile(&c.e, amd64.ISA{}, opt)
		var mistake *events.Error
		if !errors.As(err, &mistake) || mistake.ID != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}
