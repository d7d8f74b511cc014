//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/sha1"
	"debug/elf"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"xol/internal/refdata"
	"xol/internal/skip"
)

// What README.md and the help texts show is run here as it stands, by a shell, in
// a folder with the files that they speak of. What README.md shows as output has
// to be the output.

// shownFiles are the files whose output README.md shows, with their build-ids:
// Debian's bash 5.2.15-2+b8, libc6 2.36-9+deb12u14, libstdc++6 12.2.0-14+deb12u1
// and kernel 6.12.117.
var shownFiles = map[string]string{
	"/bin/bash":                                "135afc8c6d1b9e02356cce218bf0109c3687ad9f",
	"/usr/lib/x86_64-linux-gnu/libc.so.6":      "93ac61ec5a8eb1396f9fbd350e3169a558528a40",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6": "289ee39f8c07bd4fa48102dfeeb7e6f9c76158b4",
	"vmlinux": "764949bbe8b7a9241512fbf3b0d66d0ba34686a8",
}

// example is a command that a page shows, and the output below it.
type example struct {
	command string
	output  []string
}

// readmeExamples returns the commands of README.md, which stand after "$".
func readmeExamples(t *testing.T) (all []example) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimRight(line, "\n")
		text, indented := strings.CutPrefix(line, "    ")
		command, starts := strings.CutPrefix(text, "$ ")
		switch {
		case indented && starts:
			all = append(all, example{command: command})
			shown = true
		case shown && (indented || line == ""):
			last := &all[len(all)-1]
			last.output = append(last.output, text)
		default:
			shown = false
		}
	}
	return all
}

// shop is the folder in which examples run.
type shop struct {
	dir  string
	path string // of programs, the one under test first
}

// openShop builds the program and provides the files that can be had here.
func openShop(t *testing.T) *shop {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		skip.Missing(t, "a shell", err)
	}
	s := &shop{dir: t.TempDir()}
	tags := ""
	if hasEngine() {
		tags = "unicorn"
	}
	build := exec.Command("go", "build", "-tags", tags, "-o", filepath.Join(s.dir, "bin", "xol"), ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.path = filepath.Join(s.dir, "bin") + string(filepath.ListSeparator) + os.Getenv("PATH")
	s.provideKernel(t)
	s.provideProgram(t)
	if err := os.MkdirAll(filepath.Join(s.dir, ".config", "fish", "completions"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(t, "names.txt", "# the calls that read and write\nvfs_read\nvfs_write\n")
	for _, crypto := range []string{"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib64/libcrypto.so.3"} {
		if _, err := os.Stat(crypto); err == nil {
			s.link(t, crypto, "libcrypto.so.3")
			break
		}
	}
	return s
}

func (s *shop) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *shop) link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(s.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// provideKernel makes vmlinux, vmlinuz and System.map of the kernel beside the
// project.
func (s *shop) provideKernel(t *testing.T) {
	t.Helper()
	packed, err := refdata.Beside("kernels", "amd64.vmlinux.xz")
	if err != nil {
		t.Log("no vmlinux: ", err)
		return
	}
	out, err := os.Create(filepath.Join(s.dir, "vmlinux"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	unpack := exec.Command("xz", "-dc", packed)
	unpack.Stdout = out
	if err := unpack.Run(); err != nil {
		t.Log("no vmlinux: ", err)
		return
	}
	s.link(t, packed, "vmlinuz")
	s.write(t, "System.map", systemMap(t, out.Name()))
}

// systemMap returns the symbols of a kernel as its System.map has them.
func systemMap(t *testing.T, kernel string) string {
	t.Helper()
	out, err := exec.Command("nm", "-n", kernel).Output()
	if err != nil {
		skip.Missing(t, "nm", err)
	}
	return string(out)
}

// provideProgram makes a.out, with line numbers, where there is a compiler.
func (s *shop) provideProgram(t *testing.T) {
	t.Helper()
	s.write(t, "main.c", strings.Repeat("\n", 9)+"int main(int argc, char **argv)\n{\n\treturn argc > 1 ? argv[1][0] : 0;\n}\n")
	compile := exec.Command("gcc", "-g", "main.c")
	compile.Dir = s.dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Logf("no a.out: %v: %s", err, out)
	}
}

// missing returns a file that the command speaks of and that is not here, or is
// another one than the page shows.
func (s *shop) missing(command string, asShown bool) string {
	if strings.HasPrefix(command, "make ") {
		return ""
	}
	for _, word := range strings.Fields(command) {
		name := strings.TrimPrefix(word, "@")
		shown, known := shownFiles[name]
		known = known && asShown
		if !known && !regexp.MustCompile(`^(/|\./|vmlinu|System\.map|lib.*\.so)`).MatchString(name) {
			continue
		}
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.dir, path)
		}
		if _, err := os.Stat(path); err != nil {
			return name
		}
		if id := buildID(path); known && id != shown {
			return name + " with the build-id " + shown + " (found " + id + ")"
		}
	}
	return ""
}

// buildID returns the GNU build-id of an ELF file in hexadecimal.
func buildID(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for _, s := range f.Sections {
		notes, err := s.Data()
		if s.Type != elf.SHT_NOTE || err != nil {
			continue
		}
		// The size of a build-id, its type, and the name of its owner.
		_, after, found := bytes.Cut(notes, []byte("\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00"))
		if found && len(after) >= sha1.Size {
			return hex.EncodeToString(after[:sha1.Size])
		}
	}
	return ""
}

// run has a shell carry out a command.
func (s *shop) run(t *testing.T, command string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -o pipefail; fpath=(. .); "+command)
	cmd.Env = append(os.Environ(), "PATH="+s.path)
	if strings.HasPrefix(command, "make ") {
		cmd.Dir = filepath.Join("..", "..")
	} else {
		cmd.Dir = s.dir
		cmd.Env = append(cmd.Env, "HOME="+s.dir)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// matches reports whether the lines are those that a page shows. A line "…" there
// stands for any number of lines, and … in one for any text.
func matches(lines, shown []string) bool {
	if len(shown) == 0 {
		return len(lines) == 0
	}
	if shown[0] == "…" {
		return matches(lines, shown[1:]) || len(lines) > 0 && matches(lines[1:], shown)
	}
	if len(lines) == 0 {
		return false
	}
	return matchesLine(lines[0], shown[0]) && matches(lines[1:], shown[1:])
}

func matchesLine(line, shown string) bool {
	parts := strings.Split(shown, "…")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return line == shown || regexp.MustCompile("^"+strings.Join(parts, ".*")+"$").MatchString(line)
}

func splitLines(text string) []string {
	var lines []string
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return lines
}

func TestExamples(t *testing.T) {
	s := openShop(t)
	t.Run("README", func(t *testing.T) { runReadme(t, s) })
	t.Run("help", func(t *testing.T) { runHelp(t, s) })
}

func runReadme(t *testing.T, s *shop) {
	examples := readmeExamples(t)
	if len(examples) < 8 {
		t.Fatalf("%d examples found in README.md", len(examples))
	}
	for _, e := range examples {
		t.Run(e.command, func(t *testing.T) {
			if file := s.missing(e.command, true); file != "" {
				skip.Missing(t, "files of examples", file)
			}
			skipSlow(t, e.command)
			s.skipProbing(t, e.command)
			stdout, stderr, status := s.run(t, e.command)
			shown := splitLines(timeless(e.command, strings.Join(e.output, "\n")))
			if len(shown) > 0 && !matches(splitLines(timeless(e.command, stdout)), shown) {
				t.Errorf("README.md shows\n%s\nand this is printed\n%s", strings.Join(shown, "\n"), stdout)
			}
			stderr = withoutSummary(e.command, stderr)
			if stderr != "" || status > 1 || len(shown) == 0 && stdout == "" {
				t.Errorf("status %d, standard error %q", status, stderr)
			}
		})
	}
}

func runHelp(t *testing.T, s *shop) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			command := strings.TrimSpace(line)
			if command == "" {
				continue
			}
			t.Run(command, func(t *testing.T) {
				if file := s.missing(command, false); file != "" {
					skip.Missing(t, "files of examples", file)
				}
				skipSlow(t, command)
				s.skipProbing(t, command)
				stdout, stderr, status := s.run(t, command)
				stderr = withoutSummary(command, stderr)
				// Status 1 is an answer, also that of grep.
				silent := regexp.MustCompile(`\| grep|^source|>|report -o`).MatchString(command)
				if stderr != "" || status > 1 || stdout == "" && !silent {
					t.Errorf("status %d, standard error %q, standard output %.200q", status, stderr, stdout)
				}
			})
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(new(app).rootCommand())
}

// timeless leaves out of what a command prints how long calls took, which is never the
// same: times, and the rows that count them. That there are some is left.
func timeless(command, text string) string {
	if !strings.Contains(command, "xol latency ") {
		return text
	}
	text = regexp.MustCompile(`\d+(\.\d+)? [nµm]?s\b`).ReplaceAllString(text, "T")
	return regexp.MustCompile(`(?m)(^\[\d+K?M?, \d+K?M?\) +\d+ \|[@ ]{52}\|\n?)+`).ReplaceAllString(text, "[rows]\n")
}

// withoutSummary takes off standard error what a command that probes a program tells at
// its end.
func withoutSummary(command, stderr string) string {
	if !isProbing(command) {
		return stderr
	}
	return regexp.MustCompile(`(?m)^xol: \d+ (probes?: .*|refused: .*|hits? missed, .*)\n`).ReplaceAllString(stderr, "")
}

// isProbing reports whether a command of an example probes a program.
func isProbing(command string) bool {
	return regexp.MustCompile(`\bxol (count|trace|latency) `).MatchString(command)
}

// hasEngine reports whether this build has the engine for all ISAs.
func hasEngine() bool {
	_, err := openMatrix()
	return err == nil
}

// skipProbing leaves out the commands that probe programs where that is not allowed.
func (s *shop) skipProbing(t *testing.T, command string) {
	t.Helper()
	if !isProbing(command) {
		return
	}
	if _, stderr, status := s.run(t, "xol count --dry-run main -- true"); strings.Contains(stderr, "permi") && status == 2 {
		skip.Missing(t, "the right to trace programs", stderr)
	}
}

// skipSlow leaves out, in a short run, the commands that execute much code, and in
// a build without an engine those that need one.
func skipSlow(t *testing.T, command string) {
	t.Helper()
	if !regexp.MustCompile(`^xol (verify|matrix)|^make`).MatchString(command) {
		return
	}
	skip.Long(t, "examples that execute code")
	if !hasEngine() {
		skip.Missing(t, "an engine", "the build has none")
	}
}

// The program in README.md is the one that the example of package analyze runs.
func TestReadmeProgram(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(page), "```go\n")
	program, _, closed := strings.Cut(program, "```")
	if !found || !closed {
		t.Fatal("README.md shows no program")
	}
	example, err := os.ReadFile(filepath.Join("..", "..", "analyze", "example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(example), program) {
		t.Errorf("analyze/example_test.go does not have\n%s", program)
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		name, lines, shown string
		want               bool
	}{
		{"the same", "a\nb", "a\nb", true},
		{"another line", "a\nb", "a\nc", false},
		{"a line more", "a\nb", "a", false},
		{"a line less", "a", "a\nb", false},
		{"lines left out", "a\nb\nc\nd", "a\n…\nd", true},
		{"none left out", "a\nd", "a\n…\nd", true},
		{"another end", "a\nb\nc", "a\n…\nd", false},
		{"the rest left out", "a\nb\nc", "a\n…", true},
		{"the start left out", "a\nb\nc", "…\nc", true},
		{"the rest of a line left out", "abc def", "abc …", true},
		{"another start of a line", "xbc def", "abc …", false},
		{"the middle of lines left out", "abc 1 def\ng 2 2", "abc … def\ng … …", true},
		{"another end of a line", "abc 1 xef", "abc … def", false},
		{"the sign itself", "a … and more", "a … and more", true},
	} {
		if got := matches(splitLines(c.lines), splitLines(c.shown)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
