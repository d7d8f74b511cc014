package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"xol/analyze"
	"xol/arch"
	"xol/classify"
	"xol/image"
	"xol/internal/skip"
	"xol/machine"
	"xol/session"
)

// fakeSession is a program that maps the fixtures of package selection and runs for a
// time. Each place is hit as often as its index in the order of wishes says, from 1 on.
type fakeSession struct {
	t      testing.TB
	opt    session.Options
	placed []*session.Placed
	status syscall.WaitStatus
	lasts  time.Duration
	err    error
	lost   error // of every probe
}

// fakePID is above all that Linux gives.
const fakePID = 1<<22 + 42

const fixtures = "../../../selection/testdata/" // from testdata

func (f *fakeSession) begin() (probing, error) {
	if f.err != nil {
		return nil, f.err
	}
	for _, m := range []*session.Module{{Path: "/usr/bin/prog", Program: true}, {Path: "/usr/lib/libfix.so.1", Bias: 0x7f0000000000}} {
		img, err := image.OpenFile(fixtures+filepath.Base(m.Path), image.Options{Demangle: true})
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() { img.Close() })
		m.Image, m.PID = img, fakePID
		if m.Analysis, err = analyze.New(img, analyze.Options{Profile: classify.ISA}); err != nil {
			f.t.Fatal(err)
		}
		probes, err := f.opt.Select(m)
		if err != nil {
			return nil, err
		}
		for _, p := range probes {
			placed := &session.Placed{Module: m, Probe: p, Way: session.Jump}
			if len(f.placed)%2 == 1 {
				placed.Way = session.Breakpoint
			}
			if p.Symbol == "_start" {
				placed.Way, placed.Refused = session.None, &classify.Rule{ID: "amd64/example", Reason: "it is an example"}
			} else if f.lost != nil {
				placed.Way, placed.Err = session.None, f.lost
			}
			f.placed = append(f.placed, placed)
		}
	}
	if f.opt.Hit != nil && !f.opt.DryRun {
		f.hits()
	}
	return f, nil
}

// hits has each place hit once, by a process that there is not.
func (f *fakeSession) hits() {
	for i, p := range f.placed {
		r := fakeRegisters{}
		for name, value := range map[string]uint64{"ip": p.Probe.Addr + p.Module.Bias, "di": 0x1000, "ax": uint64(i), "sp": 0x8000} {
			r.SetReg(register(f.t, name), value)
		}
		f.opt.Hit(&session.Hit{Placed: p, Registers: r, Memory: fakeMemory("hello\x00world"), Time: time.Now(), PID: fakePID, TID: fakePID})
	}
}

func (f *fakeSession) PID() int                      { return fakePID }
func (f *fakeSession) Placed() []*session.Placed     { return f.placed }
func (f *fakeSession) Close() error                  { return nil }
func (f *fakeSession) Hits(p *session.Placed) uint64 { return f.index(p) }

func (f *fakeSession) index(p *session.Placed) uint64 {
	for i := range f.placed {
		if f.placed[i] == p {
			return uint64(i + 1)
		}
	}
	return 0
}

func (f *fakeSession) Times(p *session.Placed) []uint64 {
	times := make([]uint64, 65)
	times[5], times[7], times[10] = 3*f.index(p), 6*f.index(p), f.index(p) // of 16, 64, 512 ns and more
	return times
}

func (f *fakeSession) Wait(ctx context.Context) (syscall.WaitStatus, bool, error) {
	if f.lasts == 0 {
		return f.status, true, nil
	}
	select {
	case <-ctx.Done():
		return f.status, false, ctx.Err()
	case <-time.After(f.lasts):
		return f.status, true, nil
	}
}

func (f *fakeSession) Summary() session.Summary {
	s := session.Summary{Probes: len(f.placed), Refused: map[string]int{}, Missed: 1, Lost: 2}
	for _, p := range f.placed {
		switch {
		case p.Refused != nil:
			s.Refused[p.Refused.ID]++
			continue
		case p.Err != nil:
			s.Refused["error"]++
			continue
		case p.Way == session.Jump:
			s.Jumps++
		default:
			s.Breakpoints++
		}
		s.Hits += f.Hits(p)
	}
	return s
}

type fakeRegisters map[int]uint64

func (r fakeRegisters) Reg(i int) uint64       { return r[i] }
func (r fakeRegisters) SetReg(i int, v uint64) { r[i] = v }

// fakeMemory is at 0x1000.
type fakeMemory string

func (m fakeMemory) Read(dst []byte, addr uint64) error {
	if addr < 0x1000 || addr >= 0x1000+uint64(len(m)) {
		return errors.New("no memory")
	}
	copy(dst, m[addr-0x1000:])
	return nil
}
func (m fakeMemory) Write(uint64, []byte) error           { return errors.New("no memory") }
func (m fakeMemory) WriteWord(uint64, uint64) error       { return errors.New("no memory") }
func (m fakeMemory) ReadWord(addr uint64) (uint64, error) { return 0x123456, nil }

var _ machine.Memory = fakeMemory("")

// probingXol runs a command on a fake program in testdata.
func probingXol(t testing.TB, f *fakeSession, command string) invocation {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := newApp(strings.NewReader(""), &stdout, &stderr)
	a.launch = func(_ context.Context, cmd session.Command, opt session.Options) (probing, error) {
		if cmd.Path == "" || len(cmd.Args) == 0 {
			t.Errorf("the program is %+v", cmd)
		}
		f.t, f.opt = t, opt
		return f.begin()
	}
	a.attach = func(_ context.Context, pid int, opt session.Options) (probing, error) {
		if pid != 42 {
			t.Errorf("process %d", pid)
		}
		f.t, f.opt = t, opt
		return f.begin()
	}
	inv := invocation{command: command}
	inv.status = a.run(splitArguments(command))
	inv.stdout, inv.stderr = stdout.String(), stderr.String()
	return inv
}

// register returns the index of an amd64 register.
func register(t testing.TB, name string) int {
	isa, err := arch.ByName("amd64")
	if err != nil {
		t.Fatal(err)
	}
	prober, err := arch.Probing(isa)
	if err != nil {
		t.Fatal(err)
	}
	i, ok := prober.FetchRegister(name)
	if !ok {
		t.Fatalf("no register %s", name)
	}
	return i
}

// amd64Only skips where the machine's registers have other names.
func amd64Only(t testing.TB) {
	t.Helper()
	if isa, err := hostISA(); err != nil || isa.Name() != "amd64" {
		skip.Missing(t, "an amd64 machine")
	}
}

// What the commands print of a run, as golden files have it. Times are left out.
func TestProbing(t *testing.T) {
	amd64Only(t)
	t.Chdir("testdata")
	var got strings.Builder
	for _, c := range []struct {
		name, command string
		f             fakeSession
	}{
		{"count", "count beta alpha -- true", fakeSession{}},
		{"count, with what is refused", "count beta _start -- true", fakeSession{}},
		{"count, in JSON", "count -o jsonl beta alpha pick r:beta -- true", fakeSession{}},
		{"count, as a list in JSON", "count -o json beta -- true", fakeSession{}},
		{"count, in CSV", "count -o csv beta alpha -- true", fakeSession{}},
		{"the most", "count --top 1 beta alpha -- true", fakeSession{}},
		{"all", "count --all -o csv -- true", fakeSession{}},
		{"all of a library", "count --all libfix --top 2 -- true", fakeSession{}},
		{"the same place twice", "count beta bet? prog:beta -- true", fakeSession{}},
		{"a name that is missing", "count beta betta -- true", fakeSession{}},
		{"nothing", "count zeta -- true", fakeSession{}},
		{"nothing, in JSON", "count -o json zeta -- true", fakeSession{}},
		{"nothing, in CSV", "count -o csv zeta -- true", fakeSession{}},
		{"nothing in a process", "count -p 42 zeta libfix:etta", fakeSession{lasts: time.Hour}},
		{"all refused in a process", "count -p 42 _start", fakeSession{lasts: time.Hour}},
		{"an error for all of a file", "count -p 42 'libfix:*'", fakeSession{lasts: time.Hour, lost: errors.New("process 42: there is no memory left")}},
		{"an exit status", "count beta -- true", fakeSession{status: exited(3)}},
		{"a signal", "count beta -- true", fakeSession{status: killed(syscall.SIGSEGV)}},
		{"a process, for a time", "count -p 42 --duration 10ms beta", fakeSession{lasts: time.Hour}},
		{"what would be done", "count --dry-run beta alpha _start -- true", fakeSession{}},
		{"what would be done, in JSON", "count --dry-run -o jsonl alpha _start -- true", fakeSession{}},
		{"no right", "count -p 42 beta", fakeSession{err: errors.New("process 42: no permission (ptrace_scope is 1)")}},
		{"trace", "trace 'beta x=$arg1 s=+0($arg1):string' 'alpha%return $retval:s64' -- true", fakeSession{}},
		{"trace, in JSON", "trace -o jsonl 'ev=beta x=$arg1:u32 s=+0(%di):string' 'alpha%return' -- true", fakeSession{}},
		{"trace, on a condition", "trace 'beta x=$arg1 if x == 0x1000' 'alpha x=$arg1 if x != 4096' -- true", fakeSession{}},
		{"trace, with what went in", "trace 'alpha%return $arg1 $retval' -- true", fakeSession{}},
		{"trace, in a function", "trace beta+3 'alpha+3 x=$arg1' -- true", fakeSession{}},
		{"trace, in short", "trace 'r:alpha v=$retval:u8' 'p:beta $arg1' 'r:libfix:alpha $retval' -- true", fakeSession{}},
		{"trace, lines of tracefs", "trace 'p:g/one beta a=%di' 'r:g/two libfix:alpha $retval' 'p:u/off /usr/bin/prog:0x350 %di' -- true", fakeSession{}},
		{"latency", "latency beta alpha -- true", fakeSession{}},
		{"latency, in JSON", "latency -o json alpha -- true", fakeSession{}},
	} {
		fmt.Fprintf(&got, "# %s\n%s", c.name, normal(probingXol(t, &c.f, c.command).String()))
	}
	if *update {
		if err := os.WriteFile("probing.txt", []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("probing.txt")
	if err != nil {
		t.Fatal(err)
	}
	compareLines(t, got.String(), string(want))
}

// TestResultFiles has results in a file: what it held goes when there are some.
func TestResultFiles(t *testing.T) {
	amd64Only(t)
	t.Chdir("testdata")
	const results = "time,file,sym,off,addr,return,through,marker,hits,way\n,/usr/bin/prog,beta,0,0x350,,,,1,jump\n"
	for _, c := range []struct {
		name, probe string
		f           fakeSession
		held        string // "" where there was no file
		want        string // likewise
	}{
		{"results", "beta", fakeSession{}, "", results},
		{"other results", "beta", fakeSession{}, strings.Repeat("old\n", 100), results},
		{"results of a program that fails", "beta", fakeSession{status: exited(3)}, "old\n", results},
		{"no results", "zeta", fakeSession{}, "", ""},
		{"no results, for a file that is there", "zeta", fakeSession{}, "old\n", "old\n"},
		{"no right", "beta", fakeSession{err: errors.New("no permission")}, "old\n", "old\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "results")
			if c.held != "" {
				if err := os.WriteFile(path, []byte(c.held), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			probingXol(t, &c.f, "count -o csv --output-file "+path+" "+c.probe+" -- true")
			got, err := os.ReadFile(path)
			if string(got) != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// normal replaces what differs from run to run.
func normal(text string) string {
	text = regexp.MustCompile(`(\[\d{3}\] +)\d+\.\d{6}: `).ReplaceAllString(text, "[000] 1.000000: ")
	return regexp.MustCompile(`"time":[0-9.]+`).ReplaceAllString(text, `"time":1`)
}
