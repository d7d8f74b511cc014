//go:build linux && amd64

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"xol/internal/skip"
)

var transparency = flag.Bool("transparency", false, "run all programs of TestTransparency, which takes minutes")

// transparencyDir has the sources of the programs that are run.
var transparencyDir = filepath.Join("testdata", "transparency")

// transparent is a program that has to do the same with probes at every instruction of
// its own and of libc as without.
type transparent struct {
	name  string
	needs []string // programs
	// prepare makes what is run, in a folder in which it will not run.
	prepare [][]string
	// setUp is carried out in each folder in which it runs.
	setUp   [][]string
	command []string // DIR is the folder of prepare, SRC that of the sources
	stdin   string
	status  int
	// varies is what differs from run to run.
	varies *regexp.Regexp
	quick  bool // it is run by default
}

var transparents = []transparent{
	{name: "a script of bash", needs: []string{"bash", "awk"}, command: []string{"bash", "SRC/script.sh"}, status: 42},
	{name: "python", needs: []string{"/usr/bin/python3"}, command: []string{"/usr/bin/python3", "SRC/program.py"}, status: 1},
	{name: "perl", needs: []string{"perl"}, command: []string{"perl", "SRC/program.pl"}, status: 255},
	{name: "sqlite", needs: []string{"sqlite3"}, command: []string{"sqlite3", "new.db"}, stdin: inserts(10_000), status: 1},
	{name: "gcc", needs: []string{"gcc"}, command: []string{"gcc", "-O2", "-S", "-o", "-", "SRC/threads.c"}},
	{
		name: "git status", needs: []string{"git"}, setUp: repository,
		command: []string{"git", "-c", "core.pager=cat", "status"},
	},
	{
		name: "git log", needs: []string{"git"}, setUp: repository,
		command: []string{"git", "-c", "core.pager=cat", "log", "-p", "--stat"},
	},
	{
		name: "openssl sha256", needs: []string{"openssl"}, command: []string{"openssl", "speed", "-seconds", "1", "sha256"},
		varies: regexp.MustCompile(`[0-9.]+k?`),
	},
	{
		name: "openssl aes-256-gcm", needs: []string{"openssl"}, command: []string{"openssl", "speed", "-seconds", "1", "-evp", "aes-256-gcm"},
		varies: regexp.MustCompile(`[0-9.]+k?`),
	},
	{
		name: "threads and signals", needs: []string{"gcc"}, prepare: [][]string{{"gcc", "-O2", "-pthread", "-o", "DIR/threads", "SRC/threads.c"}},
		command: []string{"DIR/threads"}, status: 5, quick: true,
	},
	{
		name: "exceptions", needs: []string{"g++"}, prepare: [][]string{{"g++", "-O2", "-o", "DIR/throws", "SRC/throws.cc"}},
		command: []string{"DIR/throws"}, status: 128 + 6, quick: true,
	},
	{
		name: "goroutines", needs: []string{"go"}, prepare: [][]string{{"go", "build", "-o", "DIR/goroutines", "SRC/goroutines"}},
		command: []string{"env", "GODEBUG=asyncpreemptoff=0", "DIR/goroutines"}, status: 6, quick: true,
	},
}

// repository makes a repository with a history that is always the same.
var repository = [][]string{
	{"git", "init", "-q", "-b", "main"},
	{"sh", "-c", "seq 1 200 >one; seq 1 50 >two; git add . && git commit -qm first"},
	{"sh", "-c", "sed -i 's/7/seven/' one; git commit -qam second; git mv two three; git commit -qm third"},
	{"sh", "-c", "echo more >>one; echo new >four; rm three"},
}

// inserts returns statements that insert so many rows, and look at them.
func inserts(n int) string {
	var b strings.Builder
	b.WriteString("create table t(id integer primary key, name text, value real);\nbegin;\n")
	for i := range n {
		fmt.Fprintf(&b, "insert into t values(%d, 'name %d', %d.25);\n", i, i*7919%10007, i*i%1000)
	}
	b.WriteString("commit;\ncreate index byname on t(name);\nselect count(*), sum(value), max(name) from t;\n" +
		"select id, name from t where name like '%99%' order by value, id limit 10;\nselect value from none;\n")
	return b.String()
}

// ran is what came of a run.
type ran struct {
	stdout, stderr string
	status         int
}

// TestTransparency runs programs as they are, and with probes at every instruction of
// theirs and of libc that may have one, and compares what they print and how they end.
func TestTransparency(t *testing.T) {
	skip.Long(t, "programs with probes everywhere")
	xol := buildProbing(t)
	for i := range transparents {
		tc := &transparents[i]
		t.Run(tc.name, func(t *testing.T) {
			skip.Unasked(t, tc.quick || *transparency, "all programs of make transparency")
			for _, tool := range tc.needs {
				if _, err := exec.LookPath(tool); err != nil {
					skip.Missing(t, "programs for tests of transparency", tool)
				}
			}
			dir := t.TempDir()
			for _, command := range tc.prepare {
				must(t, dir, tc.expand(t, dir, command))
			}
			command := tc.expand(t, dir, tc.command)
			want := tc.run(t, command)
			summary := filepath.Join(dir, "summary")
			probed := append([]string{xol, "count", "--all", "--all=libc.so.6", "--top", "1", "--output-file", filepath.Join(dir, "counts"), "--summary", summary, "--"}, command...)
			start := time.Now()
			got := tc.run(t, probed)
			took := time.Since(start)
			if want.status != tc.status {
				t.Errorf("without probes its status is %d, want %d", want.status, tc.status)
			}
			if got.status != want.status {
				t.Errorf("status %d, without probes %d; standard error: %s", got.status, want.status, got.stderr)
			}
			compareRuns(t, "standard output", tc.same(got.stdout), tc.same(want.stdout))
			compareRuns(t, "standard error", tc.same(got.stderr), tc.same(want.stderr))
			tellSummary(t, summary, took)
		})
	}
}

// buildProbing builds the command, where programs may be probed.
func buildProbing(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "xol")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command(path, "count", "--all", "--dry-run", "--", "true").CombinedOutput(); err != nil {
		skip.Missing(t, "the right to trace programs", string(out))
	}
	return path
}

func (tc *transparent) expand(t *testing.T, dir string, command []string) []string {
	t.Helper()
	src, err := filepath.Abs(transparencyDir)
	if err != nil {
		t.Fatal(err)
	}
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = strings.NewReplacer("DIR/", dir+"/", "SRC/", src+"/").Replace(word)
	}
	return words
}

// run runs a command in a folder of its own.
func (tc *transparent) run(t *testing.T, command []string) ran {
	t.Helper()
	dir := t.TempDir()
	for _, c := range tc.setUp {
		must(t, dir, c)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, sameEnvironment(dir), strings.NewReader(tc.stdin), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status := cmd.ProcessState.ExitCode()
	if status < 0 { // a signal, which xol tells as shells do
		status = 128 + int(signalOf(cmd.ProcessState))
	}
	return ran{strings.ReplaceAll(stdout.String(), dir, "DIR"), strings.ReplaceAll(stderr.String(), dir, "DIR"), status}
}

// sameEnvironment is that of all runs.
func sameEnvironment(dir string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "TZ=UTC", "PYTHONDONTWRITEBYTECODE=1", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_AUTHOR_DATE=2024-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE=2024-01-02T03:04:05Z",
	}
}

func must(t *testing.T, dir string, command []string) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	if cmd.Env = sameEnvironment(dir); command[0] == "go" {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	} else {
		cmd.Dir = dir
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", command, err, out)
	}
}

// same returns a text without what varies.
func (tc *transparent) same(text string) string {
	if tc.varies == nil {
		return text
	}
	return strings.Join(strings.Fields(tc.varies.ReplaceAllString(text, "N")), " ")
}

// compareRuns reports the first line in which two texts differ.
func compareRuns(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if lineAt(g, i) != lineAt(w, i) {
			t.Errorf("%s, line %d: %q, without probes %q", what, i+1, lineAt(g, i), lineAt(w, i))
			return
		}
	}
}

// tellSummary logs what there was of probes.
func tellSummary(t *testing.T, file string, took time.Duration) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Probes, Jumps, Breakpoints int
		Refused                    map[string]int
		Hits                       uint64
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if s.Probes == 0 || s.Jumps+s.Breakpoints == 0 || s.Hits == 0 {
		t.Errorf("it had no probes that were hit: %s", text)
	}
	t.Logf("%d instructions probed: %d by jumps, %d by breakpoints; %d refused; %d hits; %.1f s", s.Jumps+s.Breakpoints, s.Jumps, s.Breakpoints, s.Probes-s.Jumps-s.Breakpoints, s.Hits, took.Seconds())
}

func signalOf(s *os.ProcessState) syscall.Signal {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal()
	}
	return 0
}

// TestTransparencyOfServer attaches to a server under load and detaches again, many
// times, and looks whether it has noticed.
func TestTransparencyOfServer(t *testing.T) {
	skip.Unasked(t, *transparency, "all programs of make transparency")
	for _, tool := range []string{"redis-server", "redis-benchmark", "redis-cli"} {
		if _, err := exec.LookPath(tool); err != nil {
			skip.Missing(t, "programs for tests of transparency", tool)
		}
	}
	const times, port = 50, "26379"
	xol := buildProbing(t)
	server := exec.Command("redis-server", "--port", port, "--save", "", "--appendonly", "no", "--daemonize", "no")
	server.Dir = t.TempDir()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Process.Kill()
	client := func(args ...string) (string, error) {
		out, err := exec.Command("redis-cli", append([]string{"-p", port}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if out, err := client("ping"); err == nil && out == "PONG" {
			break
		} else if time.Since(start) > 20*time.Second {
			t.Fatalf("the server does not answer: %s", out)
		}
	}
	load, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() {
		for load.Err() == nil {
			out, err := exec.Command("redis-benchmark", "-p", port, "-n", "20000", "-c", "20", "-q", "-t", "ping,set,get,incr,lpush,lrange_100,zadd,mset").CombinedOutput()
			if err == nil && strings.Contains(strings.ToLower(string(out)), "error") {
				err = errors.New(string(out))
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	pid := fmt.Sprint(server.Process.Pid)
	for i := range times {
		if out, err := exec.Command(xol, "count", "--all", "--all=libc.so.6", "-p", pid, "--duration", "100ms", "--top", "1").CombinedOutput(); err != nil {
			t.Fatalf("time %d: %v: %s", i+1, err, out)
		} else if i == 0 {
			t.Logf("%s", out)
		}
		if out, err := client("incr", "mine"); err != nil || out != fmt.Sprint(i+1) {
			t.Fatalf("time %d: %v: %s", i+1, err, out)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	textIsOriginal(t, server.Process.Pid)
	client("shutdown", "nosave")
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

// textIsOriginal compares the text of a process with its files.
func textIsOriginal(t *testing.T, pid int) {
	t.Helper()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for _, r := range readMaps(pid).ranges {
		want, err := os.ReadFile(r.path)
		if err != nil {
			continue // [vdso]
		}
		want = want[r.offset:min(r.offset+r.hi-r.lo, uint64(len(want)))]
		got := make([]byte, len(want))
		if _, err := memory.ReadAt(got, int64(r.lo)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the text of %s has changed", r.path)
		}
	}
}
