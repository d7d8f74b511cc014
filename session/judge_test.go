//go:build linux && amd64

package session_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"xol/decode"
	"xol/internal/skip"
	"xol/session"
)

var rounds = flag.Int("rounds", 1, "how long programs run whose counts are compared with another tool's")

// judged is a program that does the same in each run.
type judged struct {
	name string
	args []string
	env  []string
	in   string   // standard input
	objs []string // the files whose counts are compared, by how their names start
}

const sqlScript = `create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i+1 from n where i<%d)
 insert into t select i, 'row '||(i*7919%%1009), i*0.5 from n;
create index tb on t(b);
select count(*), sum(c), max(b) from t where b like 'row 1%%';
begin; update t set c=c+1 where a%%3=0; delete from t where a%%5=0; rollback;
select b, c from t order by b desc limit 5;
select group_concat(x) from (select distinct substr(b, 5, 1) x from t order by 1);
explain query plan select * from t where b='x';
`

const perlScript = `my ($n, %%h, $s) = (%d); sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
$h{"k$_"} = $_ * $_ for 1 .. 100 * $n; for (sort keys %%h) { $s += $h{$_} if /k(\d+)5$/ } print "$s\n";
print fib(10 + $n %% 10), "\n"; my $t = "abc" x 50; $t =~ s/b(.)/$1$1/g; print length $t, "\n";
eval { die {x => 1} }; print $@->{x}, "\n"; printf "%%s\n", join ",", map { sprintf "%%02x", $_ } 1 .. 20;
`

func judgedPrograms(t *testing.T) []judged {
	own := build(t, "judged.c")
	path := func(name string) string { path, _ := exec.LookPath(name); return path }
	return []judged{
		{name: "judged.c", args: []string{own, strconv.Itoa(*rounds)}, objs: []string{"judged"}},
		{name: "sqlite3", args: []string{path("sqlite3"), ":memory:"}, in: fmt.Sprintf(sqlScript, 100**rounds), objs: []string{"sqlite3", "libsqlite3.so"}},
		{name: "perl", args: []string{path("perl"), "-e", fmt.Sprintf(perlScript, *rounds)}, env: []string{"PERL_HASH_SEED=0"}, objs: []string{"perl"}},
	}
}

// TestCountsAreThoseOfCallgrind compares counts of functions, and of all instructions, with
// those that valgrind's callgrind has for each address.
func TestCountsAreThoseOfCallgrind(t *testing.T) {
	mayTrace(t)
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		skip.Missing(t, "valgrind")
	}
	for _, c := range judgedPrograms(t) {
		t.Run(c.name, func(t *testing.T) {
			if c.args[0] == "" {
				skip.Missing(t, c.name)
			}
			want := c.callgrind(t, valgrind)
			for _, k := range []struct {
				name  string
				entry bool
			}{{"functions", true}, {"instructions", false}} {
				t.Run(k.name, func(t *testing.T) { c.compare(t, want, k.entry) })
			}
		})
	}
}

// compare counts, and compares with what is wanted of each address.
func (c *judged) compare(t *testing.T, want *profile, entries bool) {
	all := everything(c.objs...)
	s := c.run(t, func(m *session.Module) (list []session.Probe, err error) {
		list, err = all(m)
		if entries {
			list = entriesOf(list)
		}
		return list, err
	})
	probes, executed, hits, wrong := 0, 0, uint64(0), 0
	for _, p := range s.Placed() {
		if p.Refused != nil || p.Err != nil {
			continue
		}
		name := filepath.Base(p.Module.Path)
		got, n := s.Hits(p), want.count(c.object(name), p)
		if code, err := p.Module.Image.Code(nil, p.Probe.Addr, 4); err == nil && repeats(code) {
			continue
		}
		probes, hits = probes+1, hits+got
		if n > 0 {
			executed++
		}
		if got != n {
			if wrong++; wrong <= 20 {
				t.Errorf("%s: %s+%#x (%#x) by %v: %d, want %d", name, p.Probe.Symbol, p.Probe.Offset, p.Probe.Addr, p.Way, got, n)
			}
		}
	}
	t.Logf("%d probes, %d executed, %d hits, %d wrong; %+v", probes, executed, hits, wrong, s.Summary().Refused)
	if executed < 10 {
		t.Errorf("only %d were executed", executed)
	}
}

// TestReturnsAreAsManyAsCalls counts where functions end and where they start, which has
// been compared with callgrind.
func TestReturnsAreAsManyAsCalls(t *testing.T) {
	mayTrace(t)
	c := judgedPrograms(t)[0]
	all := everything(c.objs...)
	s := c.run(t, func(m *session.Module) (list []session.Probe, err error) {
		list, err = all(m)
		list = entriesOf(list)
		for _, p := range list {
			p.Return = true
			list = append(list, p)
		}
		return list, err
	})
	type counted struct{ entries, returns uint64 }
	functions := map[string]*counted{}
	for _, p := range s.Placed() {
		name := p.Probe.Symbol
		if functions[name] == nil {
			functions[name] = &counted{}
		}
		switch {
		case p.Probe.Return && p.Refused != nil:
			delete(functions, name)
		case p.Probe.Return:
			functions[name].returns = s.Hits(p)
		default:
			functions[name].entries = s.Hits(p)
		}
	}
	if functions["parted"] == nil || functions["parted"].entries == 0 || functions["_start"] != nil {
		t.Errorf("parted is called %v times, _start returns %v times", functions["parted"], functions["_start"])
	}
	functions["deep"].entries -= 11 * uint64(*rounds) // longjmp
	for name, n := range functions {
		if strings.HasSuffix(name, "@plt") {
			continue // its first call comes to it again from its own jump by a pointer
		}
		if n.entries != n.returns {
			t.Errorf("%s is called %d times and returns %d times", name, n.entries, n.returns)
		}
	}
}

// profile is how often instructions were executed, by callgrind.
type profile struct {
	counts map[string]map[uint64]uint64 // by object and address in its file
	// Of sections that are not .text it does not know whose they are: their addresses are
	// those in memory. unknown is the name of that object; calls into it are what tells.
	calls map[string]map[uint64]uint64 // by object: from, to
	bias  map[string]uint64            // of objects
}

const unknown = "???"

// count returns how often the instruction at a probe was executed.
func (w *profile) count(object string, p *session.Placed) uint64 {
	if n := w.counts[object][p.Probe.Addr]; n > 0 {
		return n
	}
	bias, ok := w.bias[object]
	for from, to := range w.calls[object] {
		if ok {
			break
		}
		var inst decode.Inst
		var target uint64
		if code, err := p.Module.Image.Code(nil, from, decode.MaxLen); err == nil && p.Module.Analysis.ISA.Decode(&inst, code, from) == nil {
			if target, ok = inst.BranchTarget(); ok {
				bias = to - target
				w.bias[object] = bias
			}
		}
	}
	if !ok {
		return 0
	}
	return w.counts[unknown][p.Probe.Addr+bias]
}

// callgrind runs the program under callgrind and reads its profile.
func (c *judged) callgrind(t *testing.T, valgrind string) *profile {
	t.Helper()
	file := filepath.Join(t.TempDir(), "callgrind")
	args := []string{"-q", "--tool=callgrind", "--dump-instr=yes", "--skip-plt=no", "--compress-pos=no", "--compress-strings=no"}
	cmd := exec.Command(valgrind, append(append(args, "--callgrind-out-file="+file), c.args...)...)
	files := c.files(t)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.env, files[0], files[1], files[2]
	if err := cmd.Run(); err != nil {
		skip.Missing(t, "callgrind", err)
	}
	// What valgrind adds to the environment is for the other run as well: programs read it.
	cmd = exec.Command(valgrind, "-q", "--tool=callgrind", "--callgrind-out-file=/dev/null", "/usr/bin/env")
	cmd.Env = c.env
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	c.env = strings.Split(strings.TrimSpace(string(out)), "\n")
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &profile{map[string]map[uint64]uint64{}, map[string]map[uint64]uint64{}, map[string]uint64{}}
	of := func(m map[string]map[uint64]uint64, path string) map[uint64]uint64 {
		name := c.object(filepath.Base(path))
		if m[name] == nil {
			m[name] = map[uint64]uint64{}
		}
		return m[name]
	}
	var counts, calls map[uint64]uint64
	var called uint64 // by the next line, into an object that is not known
	var callee string
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		key, value, _ := strings.Cut(line, "=")
		fields := strings.Fields(line) // address, line, count
		switch {
		case key == "ob":
			counts, calls = of(w.counts, value), of(w.calls, value)
		case key == "cob":
			callee = value
		case key == "calls":
			called = number(strings.Fields(value)[1])
		case !strings.HasPrefix(line, "0x"):
		case called != 0: // what the call has cost
			if callee == unknown {
				calls[number(fields[0])] = called
			}
			called, callee = 0, ""
		default:
			counts[number(fields[0])] += number(fields[2])
		}
	}
	return w
}

// object returns which of the objects a file is; its own name where it is none of them.
func (c *judged) object(name string) string {
	for _, o := range c.objs {
		if strings.HasPrefix(name, o) {
			return o
		}
	}
	return name
}

// files returns standard input, output and error of the program.
func (c *judged) files(t *testing.T) []*os.File {
	t.Helper()
	in, err := os.CreateTemp(t.TempDir(), "in")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	in.WriteString(c.in)
	in.Seek(0, 0)
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return []*os.File{in, out, os.Stderr}
}

// run runs the program with probes.
func (c *judged) run(t *testing.T, want selecting) *session.Session {
	t.Helper()
	s, err := session.Start(t.Context(), session.Command{Path: c.args[0], Args: c.args, Env: c.env, Files: c.files(t)},
		session.Options{Select: want})
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, s)
	shut(t, s)
	return s
}

// entriesOf returns those that are at the first instruction of a function.
func entriesOf(list []session.Probe) (entries []session.Probe) {
	for _, p := range list {
		if p.Offset == 0 {
			entries = append(entries, p)
		}
	}
	return entries
}

// repeats reports whether an instruction is a string instruction that is repeated: callgrind
// counts each repetition.
func repeats(code []byte) bool {
	rep := false
	for _, b := range code {
		switch {
		case b == 0xf2 || b == 0xf3:
			rep = true
		case b == 0x66 || b == 0x67 || b&0xf0 == 0x40: // other prefixes
		default:
			return rep && (b >= 0xa4 && b <= 0xa7 || b >= 0xaa && b <= 0xaf || b >= 0x6c && b <= 0x6f)
		}
	}
	return false
}

// TestCountsAreThoseOfGDB compares counts of all functions of a program with how often
// gdb's breakpoints were hit.
func TestCountsAreThoseOfGDB(t *testing.T) {
	mayTrace(t)
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		skip.Missing(t, "gdb")
	}
	c := judgedPrograms(t)[0]
	if c.args[0] == "" {
		skip.Missing(t, "gcc")
	}
	all := everything(c.objs...)
	s := c.run(t, func(m *session.Module) ([]session.Probe, error) {
		list, err := all(m)
		return entriesOf(list), err
	})
	want := c.breakpoints(t, gdb, s.Placed())
	for i, p := range s.Placed() {
		if got := s.Hits(p); got != want[i] {
			t.Errorf("%s by %v: %d, want %d", p.Probe.Symbol, p.Way, got, want[i])
		}
	}
}

// breakpoints returns how often breakpoints were hit, by index.
func (c *judged) breakpoints(t *testing.T, gdb string, at []*session.Placed) []uint64 {
	t.Helper()
	var script strings.Builder
	script.WriteString("set confirm off\nhandle SIGUSR1 nostop noprint pass\nstarti\n")
	for _, p := range at {
		if p.Probe.Symbol == "main" {
			fmt.Fprintf(&script, "set $base = (unsigned long)&main - %d\n", p.Probe.Addr)
		}
	}
	for i, p := range at {
		fmt.Fprintf(&script, "break *($base + %d)\nignore %d 1000000000\n", p.Probe.Addr, i+1)
	}
	script.WriteString("continue\ninfo breakpoints\n")
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(gdb, append([]string{"-nx", "-batch", "-x", file, "--args"}, c.args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "exited normally") {
		skip.Missing(t, "gdb", fmt.Errorf("%v: %.300s", err, out))
	}
	hits, number := make([]uint64, len(at)), 0
	_, list, _ := strings.Cut(string(out), "exited normally")
	for line := range strings.Lines(list) {
		var n uint64
		if k, _ := fmt.Sscanf(line, "%d breakpoint", &n); k == 1 && n <= uint64(len(at)) {
			number = int(n)
		}
		if k, _ := fmt.Sscanf(line, "\tbreakpoint already hit %d time", &n); k == 1 && number > 0 {
			hits[number-1] = n
		}
	}
	return hits
}
