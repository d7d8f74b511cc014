package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// compile compiles a program in C, and returns its path.
func (l *lab) compile(ctx context.Context, name string, flags ...string) (string, error) {
	program := filepath.Join(l.dir, name)
	args := append([]string{"-O2", "-Ic", "-o", program, filepath.Join("c", name+".c")}, flags...)
	if out, err := exec.CommandContext(ctx, "cc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not compile here: %s", firstError(out, err))
	}
	return program, nil
}

// firstError returns the line of a compiler that says most.
func firstError(out []byte, err error) string {
	for line := range strings.Lines(string(out)) {
		if _, text, ok := strings.Cut(line, "error: "); ok {
			return strings.TrimSpace(text)
		}
	}
	return err.Error()
}

// execute runs a command whose output is what was measured.
func execute(name string, args ...string) func(context.Context, io.Writer) error {
	return func(ctx context.Context, out io.Writer) error {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Stdout, cmd.Stderr = out, &stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
		}
		return nil
	}
}

// timed runs a command and writes the time that it is on CPUs as a measurement: in
// nanoseconds for one of n, or in seconds where n is 0.
func timed(benchmark string, n func() int, unit, name string, args ...string) func(context.Context, io.Writer) error {
	return func(ctx context.Context, out io.Writer) error {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
		}
		took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		value := took.Seconds()
		if n != nil {
			if n() == 0 {
				return errors.New("nothing tells how many instructions there are")
			}
			value = float64(took.Nanoseconds()) / float64(n())
		}
		_, err := fmt.Fprintf(out, "Benchmark%s 1 %.6f %s\n", benchmark, value, unit)
		return err
	}
}

// firstLine returns the first line that a command prints, "" where it cannot be run.
func firstLine(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// machine is what the measurements were made on.
type machine struct {
	CPU    string
	CPUs   int
	Kernel string
	Go     string
	Load   string // of the last minute before
}

func thisMachine() machine {
	m := machine{CPU: "unknown CPU", CPUs: runtime.NumCPU(), Go: runtime.Version(), Load: "unknown"}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(data), " ")
	}
	var u syscall.Utsname
	if syscall.Uname(&u) == nil {
		for _, c := range u.Release {
			if c == 0 {
				break
			}
			m.Kernel += string(rune(byte(c)))
		}
	}
	return m
}
