package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// prepareHits builds the benchmark of package session, which has our probes, those of the
// kernel and those of gdb on the same function, and the program with a tracepoint.
func (l *lab) prepareHits(ctx context.Context) {
	l.versions["gdb"] = toolVersion(ctx, "gdb")
	l.versions["lttng"] = toolVersion(ctx, "lttng")
	bench := filepath.Join(l.dir, "session.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-C", "../..", "-c", "-o", bench, "./session").CombinedOutput(); err != nil {
		l.miss("probes of running programs", fmt.Errorf("%w: %s", err, out))
	} else {
		l.add("probes of running programs", 0, func(ctx context.Context, out io.Writer) error { return l.hits(ctx, bench, out) })
	}
	program, err := l.compile(ctx, "ust", "-llttng-ust", "-ldl")
	if err == nil {
		err = l.startTracing(ctx)
	}
	if err != nil {
		l.miss("LTTng-UST", err)
		return
	}
	l.add("LTTng-UST", 0, func(ctx context.Context, out io.Writer) error { return l.traced(ctx, program, out) })
}

var skipped = regexp.MustCompile(`(?m)--- SKIP: BenchmarkHit/(\S+?)(?:-\d+)?\n\s*(?:\S+\.go:\d+: )?(.*)$`)

// hits runs the benchmark once.
func (l *lab) hits(ctx context.Context, bench string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, bench, "-test.run", "^$", "-test.bench", "^BenchmarkHit$", "-test.benchtime", "1x")
	cmd.Dir = filepath.Join("..", "..", "session")
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, lastLines(string(text)))
	}
	for _, m := range skipped.FindAllStringSubmatch(string(text), -1) {
		line := "BenchmarkHit/" + m[1]
		if !strings.Contains(strings.Join(l.missing, "\n"), line+": ") {
			l.miss(line, errors.New(m[2]))
		}
	}
	_, err = out.Write(text)
	return err
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}

const tracing = "xol-peers"

// lttng runs a command of LTTng's.
func lttng(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "lttng", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("lttng %s: %w: %s", strings.Join(args, " "), err, lastLines(string(out)))
	}
	return nil
}

// startTracing makes a session of LTTng that keeps what the tracepoint says in memory, the
// newest of it. The daemon is started where none runs.
func (l *lab) startTracing(ctx context.Context) error {
	if l.versions["lttng"] == "" {
		return errors.New("lttng is not installed")
	}
	home := filepath.Join(l.dir, "lttng")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	if err := os.Setenv("LTTNG_HOME", home); err != nil { // of the program with the tracepoint, too
		return err
	}
	if lttng(ctx, "--no-sessiond", "list") != nil {
		daemon := exec.Command("lttng-sessiond", "--no-kernel")
		if err := daemon.Start(); err != nil {
			return err
		}
		l.closers = append(l.closers, func() {
			daemon.Process.Signal(os.Interrupt)
			daemon.Wait()
		})
		for wait := 0; lttng(ctx, "--no-sessiond", "list") != nil; wait++ {
			if wait == 50 {
				return errors.New("its daemon does not answer")
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	lttng(ctx, "destroy", tracing) // left by a run that was killed
	if err := lttng(ctx, "create", tracing, "--snapshot", "--output="+filepath.Join(l.dir, "snapshot")); err != nil {
		return err
	}
	l.closers = append([]func(){func() { lttng(context.Background(), "destroy", tracing) }}, l.closers...)
	return errors.Join(
		lttng(ctx, "enable-channel", "--session", tracing, "--userspace", "--overwrite", "--subbuf-size=1M", "--num-subbuf=4", "ring"),
		lttng(ctx, "enable-event", "--session", tracing, "--channel", "ring", "--userspace", "xol_peers:hit"))
}

// traced runs the program with the tracepoint off, and on.
func (l *lab) traced(ctx context.Context, program string, out io.Writer) error {
	call := func(on string) (float64, error) {
		if err := lttng(ctx, on, tracing); err != nil {
			return 0, err
		}
		cmd := exec.CommandContext(ctx, program, "100000", "100")
		cmd.Env = append(os.Environ(), "LTTNG_UST_REGISTER_TIMEOUT=-1")
		text, err := cmd.Output()
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	}
	on, err := call("start")
	if err != nil {
		return err
	}
	if err := lttng(ctx, "snapshot", "--session", tracing, "record"); err != nil {
		return err
	}
	off, err := call("stop")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "BenchmarkHit/lttng 1 %.3f ns/call %.3f ns/hit\n", on, on-off)
	return err
}
