//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"xol/internal/skip"
	"xol/session"
)

// The pages of docs/ are scripts: every block of code marked console is run, in a folder
// with the files of docs/examples, and what it prints has to be what the block shows.
// A line "…" stands for any lines, and … in one for any text; "[exit status
// 1]" at the end of what a command shows says how it ended.

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"xol": main})
}

// consoleBlocks returns what the blocks of a page show, with the lines that they start
// in.
func consoleBlocks(page string) (blocks []string, lines []int) {
	open := -1
	for i, line := range strings.Split(page, "\n") {
		switch {
		case open < 0 && line == "```console":
			open = i
			blocks, lines = append(blocks, ""), append(lines, i+1)
		case open >= 0 && line == "```":
			open = -1
		case open >= 0:
			blocks[len(blocks)-1] += line + "\n"
		}
	}
	return blocks, lines
}

// scriptOf makes a script of a page: a line for each block, which is a file in it.
func scriptOf(page string) []byte {
	var a txtar.Archive
	blocks, lines := consoleBlocks(page)
	for i, block := range blocks {
		name := "line-" + strconv.Itoa(lines[i])
		a.Comment = append(a.Comment, "console "+name+"\n"...)
		a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(block)})
	}
	return txtar.Format(&a)
}

// pagesWithCommands returns the pages of docs/ that show commands, by their names.
func pagesWithCommands(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	err := filepath.WalkDir(docs, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		data, err := os.ReadFile(path)
		if blocks, _ := consoleBlocks(string(data)); err == nil && len(blocks) > 0 {
			rel, _ := filepath.Rel(docs, path)
			pages[rel] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func TestDocs(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		skip.Missing(t, "a shell", err)
	}
	scripts := t.TempDir()
	refused := mayProbe(t)
	for name, page := range pagesWithCommands(t) {
		if refused != nil && isProbing(page) {
			t.Run(name, func(t *testing.T) { skip.Missing(t, "the right to trace programs", refused) })
			continue
		}
		file := strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "/", "_") + ".txtar"
		if err := os.WriteFile(filepath.Join(scripts, file), scriptOf(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	examples, err := filepath.Abs(filepath.Join(docs, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: scripts,
		Setup: func(e *testscript.Env) error {
			e.Setenv("LC_ALL", "C.UTF-8")
			e.Defer(func() { endStarted(e.WorkDir) })
			return os.CopyFS(e.WorkDir, os.DirFS(examples))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"console": console},
	})
}

// endStarted ends the programs that a page has started, if it did not come to their end.
func endStarted(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.pid"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// mayProbe returns why programs cannot be probed here, nil where they can.
func mayProbe(t *testing.T) error {
	t.Helper()
	s, err := session.Start(t.Context(), session.Command{Path: "/bin/true", Args: []string{"true"}}, session.Options{
		Select: func(*session.Module) ([]session.Probe, error) { return nil, nil },
	})
	if err != nil {
		return err
	}
	s.Wait(t.Context())
	return s.Close()
}

var exitStatus = regexp.MustCompile(`^\[exit status (\d+)\]$`)

// console runs the commands of a block.
func console(ts *testscript.TestScript, _ bool, args []string) {
	for _, e := range blockExamples(ts.ReadFile(args[0])) {
		want := 0
		if n := len(e.output); n > 0 {
			if m := exitStatus.FindStringSubmatch(e.output[n-1]); m != nil {
				want, _ = strconv.Atoi(m[1])
				e.output = e.output[:n-1]
			}
		}
		status := 0
		if err := ts.Exec("bash", "-o", "pipefail", "-c", e.command+" 2>&1"); err != nil {
			var ok bool
			if status, ok = statusOf(err); !ok {
				ts.Fatalf("%s: %v", e.command, err)
			}
		}
		out := ts.ReadFile("stdout")
		if shown := splitLines(strings.Join(e.output, "\n")); !matches(splitLines(out), shown) {
			ts.Fatalf("%s: %s\nthe page shows\n%s\nand this is printed\n%s", args[0], e.command, strings.Join(shown, "\n"), out)
		}
		if status != want {
			ts.Fatalf("%s: %s: exit status %d, the page shows %d", args[0], e.command, status, want)
		}
	}
}

func statusOf(err error) (int, bool) {
	exit, ok := err.(*exec.ExitError)
	if !ok {
		return 0, false
	}
	return exit.ExitCode(), true
}

// blockExamples takes a block apart: commands stand after "$ ", and go on in the next
// line after a backslash.
func blockExamples(block string) (all []example) {
	more := false
	for line := range strings.Lines(block) {
		line = strings.TrimSuffix(line, "\n")
		command, starts := strings.CutPrefix(line, "$ ")
		switch {
		case more:
			all[len(all)-1].command += "\n" + line
			more = strings.HasSuffix(line, "\\")
		case starts:
			all = append(all, example{command: command})
			more = strings.HasSuffix(line, "\\")
		case len(all) > 0:
			all[len(all)-1].output = append(all[len(all)-1].output, line)
		}
	}
	return all
}

func TestBlockExamples(t *testing.T) {
	page := "text\n```console\n$ a\n1\n\n2\n$ b \\\n  c\n```\nmore\n```go\n$ no\n```\n"
	blocks, lines := consoleBlocks(page)
	if len(blocks) != 1 || lines[0] != 2 {
		t.Fatalf("blocks %q in lines %v", blocks, lines)
	}
	got := fmt.Sprintf("%q", blockExamples(blocks[0]))
	if want := `[{"a" ["1" "" "2"]} {"b \\\n  c" []}]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestLinks looks whether each link to a file of the sources leads to one.
func TestLinks(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	root := filepath.Join("..", "..")
	for _, dir := range []string{root, docs} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && dir == root && path != root {
				return fs.SkipDir
			}
			if filepath.Ext(path) != ".md" {
				return nil
			}
			page, err := os.ReadFile(path)
			for _, m := range links.FindAllStringSubmatch(string(page), -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(m[1]))); err != nil {
					t.Errorf("%s: the link to %s leads nowhere", path, m[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
