//go:build linux && amd64

package process

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xol/internal/skip"
)

// hotGo is what the Go program calls.
//
//go:noinline
func hotGo(x int) int { return x*3 + 1 }

// goProgram allocates, switches goroutines, preempts loops, handles a signal and starts
// other programs.
func goProgram() {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, syscall.SIGUSR1)
	var wg sync.WaitGroup
	sums := make([]int, 16)
	for i := range sums {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var keep []byte
			for j := range 400 {
				sums[i] += hotGo(j)
				keep = append(keep, make([]byte, 4096)...)
				if j%64 == 0 {
					sums[i] += len(keep)
					keep = nil
					runtime.Gosched()
				}
				for k := range 2000 {
					sums[i] ^= k & 1
				}
			}
		}()
	}
	for range 5 {
		runtime.GC()
		syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		<-signals
	}
	wg.Wait()
	out, err := exec.Command("echo", "child").Output()
	fmt.Printf("%v %q %v\n", sums, out, err)
}

// TestGoProgram has a breakpoint on a function of a Go program, whose instruction is stepped
// with the other threads stopped.
func TestGoProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if f, err := elf.Open(self); err != nil || f.Type != elf.ET_EXEC {
		skip.Pointless(t, "the test is a program that may be anywhere")
	}
	hot := uint64(reflect.ValueOf(hotGo).Pointer())
	want, err := exec.Command(self, goProgramArgument).Output()
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	tr := newTracer(t, r, Options{})
	hits, original := 0, make([]byte, 1)
	arm := func(p *Process) error {
		if p.PID() == 0 {
			return nil
		}
		if err := p.Read(original, hot); err != nil {
			return err
		}
		return p.Write(hot, []byte{0xcc})
	}
	r.started = arm
	r.forked = func(parent, child *Process, th *Thread) error {
		if child.Shares() != nil {
			return nil
		}
		return child.Write(hot, original)
	}
	r.trap = func(th *Thread) (bool, error) {
		if th.PC() != hot {
			return false, nil
		}
		p := th.Process()
		if err := p.Stop(); err != nil {
			return false, err
		}
		defer p.Resume()
		if err := p.Write(hot, original); err != nil {
			return false, err
		}
		switch err := th.Step(); err {
		case nil:
			hits++
		case ErrInterrupted: // it comes here again
		default:
			return false, err
		}
		return true, p.Write(hot, []byte{0xcc})
	}
	o := newOutput(t)
	begun := time.Now()
	p := start(t, tr, o, self, goProgramArgument)
	run(t, tr)
	if o.String() != string(want) || r.exits[p.PID()] != 0 {
		t.Errorf("%q, status %#x; want %q", o, r.exits[p.PID()], want)
	}
	if hits != 16*400 {
		t.Errorf("%d hits, want %d", hits, 16*400)
	}
	t.Logf("%d hits in %v", hits, time.Since(begun))
}

const bashScript = `
f() { local x=$1; echo $((x * 2)); }
for i in 1 2 3 4 5; do f $i; done | sort -rn | head -n 3
x=$(for i in a b c; do (echo $i; exit 3) ; done | tr a-c A-C)
echo $x
trap 'echo caught' USR1
kill -USR1 $$
( kill -TERM $BASHPID ) ; echo $?
cat <(echo one) <(echo two) | wc -l
`

// TestBash has a breakpoint on malloc's wrapper in bash and its children.
func TestBash(t *testing.T) {
	mayTrace(t)
	path, err := exec.LookPath("bash")
	if err != nil {
		skip.Missing(t, "bash")
	}
	want, wantErr := exec.Command(path, "-c", bashScript).CombinedOutput()
	for _, follow := range []bool{false, true} {
		r := &recorder{}
		tr := newTracer(t, r, Options{Follow: follow})
		hits := 0
		places := map[*Process]uint64{}
		original := make([]byte, 1)
		r.started = func(p *Process) error {
			maps, err := p.Maps()
			if err != nil || !strings.HasSuffix(maps[0].Path, "/bash") {
				return err
			}
			at, err := dynamicSymbol(maps[0], "xmalloc")
			if err != nil {
				return err
			}
			places[p] = at
			if err := p.Read(original, at); err != nil {
				return err
			}
			return p.Write(at, []byte{0xcc})
		}
		r.forked = func(parent, child *Process, th *Thread) error {
			places[child] = places[parent]
			if child.Shares() == nil && !follow && places[parent] != 0 {
				return child.Write(places[parent], original)
			}
			return nil
		}
		r.trap = func(th *Thread) (bool, error) {
			p := th.Process()
			if at := places[p]; at == 0 || th.PC() != at {
				return false, nil
			}
			hits++
			if err := p.Stop(); err != nil {
				return false, err
			}
			defer p.Resume()
			if err := p.Write(places[p], original); err != nil {
				return false, err
			}
			if err := th.Step(); err != nil && err != ErrInterrupted {
				return false, err
			}
			return true, p.Write(places[p], []byte{0xcc})
		}
		o := newOutput(t)
		p := start(t, tr, o, path, "-c", bashScript)
		run(t, tr)
		if o.String() != string(want) || r.exits[p.PID()] != 0 || wantErr != nil {
			t.Errorf("%q, status %#x; want %q", o, r.exits[p.PID()], want)
		}
		if hits == 0 {
			t.Error("no hits")
		}
		t.Logf("follow %v: %d hits", follow, hits)
	}
}

func dynamicSymbol(m Mapping, name string) (uint64, error) {
	f, err := os.Open(m.Path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	at, ok := functionOf(f, m.Lo, name)
	if !ok {
		return 0, fmt.Errorf("%s has no %s", m.Path, name)
	}
	return at, nil
}
