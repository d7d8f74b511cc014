package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

//go:generate sh -c "cd testdata && ./generate.sh"

var update = flag.Bool("update", false, "write what the commands print into testdata/*.golden")

// invocation is a command line with what it is given and what comes of it.
type invocation struct {
	command string // without the program's name
	stdin   string
	stdout  string
	stderr  string
	status  int
}

// xol runs the command in testdata. Arguments are separated by spaces; single
// quotes hold one together.
func xol(command, stdin string) invocation {
	var stdout, stderr bytes.Buffer
	inv := invocation{command: command, stdin: stdin}
	inv.status = run(splitArguments(command), strings.NewReader(stdin), &stdout, &stderr)
	inv.stdout, inv.stderr = stdout.String(), stderr.String()
	return inv
}

func splitArguments(command string) []string {
	var args []string
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

// String writes an invocation as golden files have it: the command after $,
// the lines of its input after <, its output, the lines of its standard error
// after !, and the exit status after = where it is not 0.
func (inv invocation) String() string {
	var b strings.Builder
	b.WriteString("$ xol " + inv.command + "\n")
	for line := range strings.Lines(inv.stdin) {
		b.WriteString("< " + line)
	}
	b.WriteString(inv.stdout)
	for line := range strings.Lines(inv.stderr) {
		b.WriteString("! " + line)
	}
	if inv.status != 0 {
		fmt.Fprintf(&b, "= %d\n", inv.status)
	}
	return b.String()
}

// goldenCommands returns the commands of a golden file with their input.
func goldenCommands(golden string) []invocation {
	var all []invocation
	for line := range strings.Lines(golden) {
		if command, ok := strings.CutPrefix(line, "$ xol "); ok {
			all = append(all, invocation{command: strings.TrimSpace(command)})
		} else if input, ok := strings.CutPrefix(line, "< "); ok {
			all[len(all)-1].stdin += input
		}
	}
	return all
}

// TestGolden runs every command of testdata/*.golden and compares all that it
// prints.
func TestGolden(t *testing.T) {
	t.Chdir("testdata")
	files, err := filepath.Glob("*.golden")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := string(data)
		var got strings.Builder
		for _, inv := range goldenCommands(want) {
			got.WriteString(xol(inv.command, inv.stdin).String())
		}
		if *update {
			if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(file, func(t *testing.T) { compareLines(t, got.String(), want) })
	}
}

// compareLines reports the first line in which got and want differ, with the
// command that printed it.
func compareLines(t *testing.T, got, want string) {
	t.Helper()
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	command := ""
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := lineAt(gotLines, i), lineAt(wantLines, i)
		if strings.HasPrefix(w, "$ ") {
			command = w
		}
		if g != w {
			t.Fatalf("%s\nline %d:\n got %q\nwant %q", command, i+1, g, w)
		}
	}
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(no line)"
}
