//go:build linux && amd64

package session_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xol/internal/skip"
	"xol/process"
	"xol/session"
)

// countWrites attaches to a child, counts its calls of write while it copies lines, and
// lets it go on by itself.
func countWrites(ctx context.Context, out io.Writer) error {
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	if err != nil {
		return err
	}
	copied, err := cat.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cat.Start(); err != nil {
		return err
	}
	defer cat.Wait()
	defer in.Close()
	lines := bufio.NewReader(copied)
	send := func(text string) error {
		io.WriteString(in, text+"\n")
		_, err := lines.ReadString('\n')
		return err
	}
	if err := send("before"); err != nil { // cat is there, with its libraries
		return err
	}

	s, err := session.Attach(ctx, cat.Process.Pid, session.Options{
		Select: func(m *session.Module) (probes []session.Probe, err error) {
			if !strings.HasPrefix(filepath.Base(m.Path), "libc.so") {
				return nil, nil
			}
			places, err := m.Image.Resolve("write")
			if err != nil {
				return nil, err
			}
			return []session.Probe{{Addr: places[0].Addr, Symbol: "write"}}, nil
		},
	})
	if err != nil {
		return err
	}
	for _, text := range []string{"one", "two", "three"} {
		err = errors.Join(err, send(text))
	}
	err = errors.Join(err, s.Close(), send("after"))
	for _, p := range s.Placed() {
		fmt.Fprintf(out, "%d calls of %s, counted by a %v\n", s.Hits(p), p.Probe.Symbol, p.Way)
	}
	return err
}

// Attach to a child, count calls of a function in it, and take the probe back.
func ExampleAttach() {
	if err := countWrites(context.Background(), os.Stdout); err != nil {
		fmt.Println(err)
	}
	// It prints:
	//	3 calls of write, counted by a jump
}

func TestExample(t *testing.T) {
	var out strings.Builder
	switch err := countWrites(t.Context(), &out); {
	case errors.Is(err, process.ErrPermission):
		skip.Missing(t, "the right to trace a process", err)
	case err != nil:
		t.Fatal(err)
	}
	if want := "3 calls of write, counted by a jump\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}
