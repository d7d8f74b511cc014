//go:build linux && amd64

package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"xol/internal/skip"
	"xol/process"
)

// watcher counts the signals that come to a program, and drops those that would end it.
type watcher struct{ signals int }

func (w *watcher) Trap(*process.Thread) (bool, error) { return false, nil }

func (w *watcher) Signal(th *process.Thread, s *process.Signal) error {
	w.signals++
	s.Drop = s.Number == syscall.SIGTERM
	return nil
}

func (w *watcher) Started(*process.Process) error                        { return nil }
func (w *watcher) Mapped(*process.Process, *process.Thread) error        { return nil }
func (w *watcher) Forked(_, _ *process.Process, _ *process.Thread) error { return nil }
func (w *watcher) Exited(*process.Process, syscall.WaitStatus)           {}

// watch attaches to a child, keeps SIGTERM from it, and lets it go on.
func watch(out io.Writer) error {
	cmd := exec.Command("cat")
	cmd.Stdout = out
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	w := &watcher{}
	t := process.New(w, process.Options{})
	defer t.Close()

	var p *process.Process
	if doErr := t.Do(func() { p, err = t.Attach(cmd.Process.Pid) }); doErr != nil || err != nil {
		return errors.Join(doErr, err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := t.Run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	t.Do(func() {
		if err = p.Stop(); err != nil {
			return
		}
		th := p.Threads()[0]
		var code [2]byte
		err = errors.Join(p.Read(code[:], th.PC()-2), p.Detach())
		fmt.Fprintf(out, "%d signal; it waits in a system call: % x\n", w.signals, code)
	})
	if err != nil {
		return err
	}
	io.WriteString(in, "it goes on\n")
	in.Close()
	return cmd.Wait()
}

// Attach to a child, see what it does, and detach from it.
func ExampleTracer_Attach() {
	if err := watch(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// It prints:
	//	1 signal; it waits in a system call: 0f 05
	//	it goes on
}

func TestExample(t *testing.T) {
	var out buffer
	switch err := watch(&out); {
	case errors.Is(err, process.ErrPermission):
		skip.Missing(t, "the right to trace a process", err)
	case err != nil:
		t.Fatal(err)
	}
	if want := "1 signal; it waits in a system call: 0f 05\nit goes on\n"; string(out) != want {
		t.Errorf("%q", out)
	}
}

type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
