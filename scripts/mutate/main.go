// Mutate puts named faults into the code, one at a time, and runs the tests that
// should notice it. The working tree stays as it is: the go command reads the
// changed file through an overlay.
//
//	go run ./scripts/mutate [-faults FILE] [-only REGEXP] [-j N] [-tags TAGS] [-check]
//
// With -check no test runs: it only makes sure that every fault can still be put in,
// and that the code builds with it.
//
// It has to run in the root of the project. Exit status: 0 if every fault was
// noticed, 1 if one was not, 2 if the table is wrong.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

func main() {
	table := flag.String("faults", "scripts/mutate/faults.txt", "the `FILE` with the faults")
	only := flag.String("only", "", "only the faults whose name matches `REGEXP`")
	tags := flag.String("tags", "", "build tags")
	jobs := flag.Int("j", 1, "try `N` faults at a time")
	check := flag.Bool("check", false, "only make sure that each fault can be put in, and builds")
	limit := flag.Duration("limit", 10*time.Minute, "a test that runs longer has noticed the fault")
	flag.Parse()
	survived, err := run(os.Stdout, *table, *only, *jobs, tester{tags: *tags, limit: *limit, check: *check})
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	case survived > 0:
		os.Exit(1)
	}
}

func run(w io.Writer, table, only string, jobs int, t tester) (survived int, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(table)
	if err != nil {
		return 0, err
	}
	faults, err := parse(string(text))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", table, err)
	}
	var chosen []fault
	for _, f := range faults {
		if match.MatchString(f.name) {
			chosen = append(chosen, f)
		}
	}
	if t.check {
		return 0, t.checkAll(w, chosen)
	}
	if err := t.sound(chosen); err != nil {
		return 0, err
	}
	survived, err = tryAll(w, t, chosen, jobs)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(w, "%d faults, %d noticed, %d survived\n", len(chosen), len(chosen)-survived, survived)
	return survived, nil
}

// tryAll tries faults, jobs at a time, and writes a line for each as soon as it has
// been tried.
func tryAll(w io.Writer, t tester, faults []fault, jobs int) (survived int, err error) {
	var (
		running sync.WaitGroup
		writing sync.Mutex
		errs    []error
		free    = make(chan struct{}, max(jobs, 1))
	)
	for i := range faults {
		free <- struct{}{}
		running.Go(func() {
			o, err := t.try(&faults[i])
			writing.Lock()
			defer writing.Unlock()
			if err != nil {
				errs = append(errs, err)
			} else {
				fmt.Fprintf(w, "%-8s  %s  (%s)\n", o.word(), faults[i].name, o.detail)
				if !o.noticed {
					survived++
				}
			}
			<-free
		})
	}
	running.Wait()
	return survived, errors.Join(errs...)
}

// tester runs tests.
type tester struct {
	tags  string
	limit time.Duration
	check bool // tests are not run
}

// checkAll puts each fault in, and builds its package.
func (t tester) checkAll(w io.Writer, faults []fault) error {
	var errs []error
	for i := range faults {
		errs = append(errs, t.build(&faults[i]))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d faults can be put in\n", len(faults))
	return err
}

// build builds the package of a fault with it in place.
func (t tester) build(f *fault) error {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := f.overlay(dir)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-tags", t.tags, "-overlay", overlay, "./"+filepath.Dir(f.file))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: the code with the fault does not build: %w\n%s", f.name, err, out)
	}
	return nil
}

// outcome is what the tests said of a fault.
type outcome struct {
	noticed bool
	detail  string
}

func (o outcome) word() string {
	if o.noticed {
		return "noticed"
	}
	return "SURVIVED"
}

// sound makes sure that the tests pass without a fault.
func (t tester) sound(faults []fault) error {
	done := map[string]bool{}
	for _, f := range faults {
		if done[f.test] {
			continue
		}
		done[f.test] = true
		if out, err := t.goTest(f.test, ""); err != nil {
			return fmt.Errorf("go test %s fails without any fault: %w\n%s", f.test, err, out)
		} else if strings.Contains(string(out), "no tests to run") {
			return fmt.Errorf("go test %s runs no test (%s)", f.test, f.name)
		}
	}
	return nil
}

// try runs the tests of a fault with it in place.
func (t tester) try(f *fault) (outcome, error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(dir)
	overlay, err := f.overlay(dir)
	if err != nil {
		return outcome{}, err
	}
	out, err := t.goTest(f.test, overlay)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return outcome{false, "go test " + f.test + " passes"}, nil
	case errors.Is(err, context.DeadlineExceeded):
		return outcome{true, "it does not end"}, nil
	case !errors.As(err, &exit):
		return outcome{}, err
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return outcome{}, fmt.Errorf("%s: the code with the fault does not build:\n%s", f.name, out)
	}
	return outcome{true, firstFailure(out)}, nil
}

// goTest runs go test, with an overlay unless it is empty.
func (t tester) goTest(arguments, overlay string) ([]byte, error) {
	ctx, stop := context.WithTimeout(context.Background(), t.limit)
	defer stop()
	args := []string{"test", "-tags", t.tags, "-failfast", "-vet=off"}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, strings.Fields(arguments)...)...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out, err
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(panic: .*)`)

// firstFailure names what failed.
func firstFailure(out []byte) string {
	m := failure.FindSubmatch(out)
	switch {
	case m == nil:
		return "the tests end"
	case len(m[1]) > 0:
		return string(m[1])
	}
	return string(m[2])
}

// overlay writes the changed file and the list that has the go command read it.
func (f *fault) overlay(dir string) (string, error) {
	text, err := os.ReadFile(f.file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.name, err)
	}
	if n := strings.Count(string(text), f.old); n != 1 {
		return "", fmt.Errorf("%s: the old text is %d times in %s, want once:\n%s", f.name, n, f.file, f.old)
	}
	changed := filepath.Join(dir, filepath.Base(f.file))
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), f.old, f.new, 1)), 0o600); err != nil {
		return "", err
	}
	original, err := filepath.Abs(f.file)
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
