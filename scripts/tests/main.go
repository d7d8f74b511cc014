// Tests runs go test and says at the end what was not judged, and why: a test that
// is skipped, or is not built here, proves nothing.
//
//	go run ./scripts/tests [ARGUMENTS OF go test]
//
// All else that go test prints stays as it is, and so does its exit status. The
// lines at the end are, for each reason,
//
//	not judged: 14 tests, not here: ../shared (kernels/amd64.vmlinux.xz, …)
//
// and, for files of tests that constraints leave out (such as those that need the
// engine, in a build without),
//
//	not judged: 9 files of tests, not built here: guest (cpu_test.go, …)
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	args := os.Args[1:]
	verbose := slices.Contains(args, "-v") || slices.Contains(args, "-test.v")
	c := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	c.Stderr = os.Stderr
	events, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
		os.Exit(2)
	}
	out := bufio.NewWriter(os.Stdout)
	r := newReport(out, verbose)
	readErr := r.read(events)
	err = c.Wait()
	r.summary()
	for _, line := range leftOut(args) {
		fmt.Fprintln(out, line)
	}
	out.Flush()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil || readErr != nil:
		fmt.Fprintln(os.Stderr, "tests:", errors.Join(err, readErr))
		os.Exit(2)
	}
}

// leftOut returns a line for the files of tests that are not built here, in the
// packages that the arguments name.
func leftOut(args []string) []string {
	list := []string{"list", "-e", "-json=ImportPath,IgnoredGoFiles"}
	for i, arg := range args {
		if tags, ok := strings.CutPrefix(arg, "-tags="); ok {
			list = append(list, "-tags", tags)
		} else if arg == "-tags" && i+1 < len(args) {
			list = append(list, arg, args[i+1])
		}
	}
	for _, arg := range args {
		if strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "xol") {
			list = append(list, arg)
		}
	}
	out, err := exec.Command("go", list...).Output()
	if err != nil {
		return []string{"not judged: which files of tests are not built here cannot be found out: " + err.Error()}
	}
	return ignored(strings.NewReader(string(out)))
}

// ignored counts what go list says of files that it leaves out.
func ignored(r io.Reader) (lines []string) {
	d := json.NewDecoder(r)
	for {
		var p struct {
			ImportPath     string
			IgnoredGoFiles []string
		}
		if d.Decode(&p) != nil {
			return lines
		}
		files := slices.DeleteFunc(p.IgnoredGoFiles, func(f string) bool { return !strings.HasSuffix(f, "_test.go") })
		if len(files) > 0 {
			lines = append(lines, fmt.Sprintf("not judged: %s, not built here: %s (%s)", count(len(files), "file of tests", "files of tests"),
				strings.TrimPrefix(p.ImportPath, "xol/"), examples(files)))
		}
	}
}
