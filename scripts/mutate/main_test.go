package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const table = `
# A comment.
fault: the sum is a difference
file: sum.go
test: ./... -run TestSum
- 	return a + b
+ 	return a - b

fault: no test looks at this
file: sum.go
test: ./...
- const unused = 1
+ const unused = 2
+
+ // with a second line
`

func TestParse(t *testing.T) {
	faults, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	want := []fault{
		{"the sum is a difference", "sum.go", "./... -run TestSum", "\treturn a + b\n", "\treturn a - b\n"},
		{"no test looks at this", "sum.go", "./...", "const unused = 1\n", "const unused = 2\n\n// with a second line\n"},
	}
	if len(faults) != len(want) {
		t.Fatalf("%d faults", len(faults))
	}
	for i := range want {
		if faults[i] != want[i] {
			t.Errorf("got %+v, want %+v", faults[i], want[i])
		}
	}
	for name, text := range map[string]string{
		"a line before the first fault": "- x",
		"another line":                  "fault: f\nfile: f\ntest: t\nwhat\n- x\n+ y",
		"no file":                       "fault: f\ntest: t\n- x\n+ y",
		"no change":                     "fault: f\nfile: f\ntest: t\n- x\n+ x",
	} {
		if _, err := parse(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A module of its own, with a fault that its test notices, one that it does not,
// one that does not build, and one whose text is gone.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module sum\n\ngo 1.21\n",
		"sum.go":      "package sum\n\nconst unused = 1\n\nfunc sum(a, b int) int {\n\treturn a + b\n}\n",
		"sum_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif sum(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n",
		"faults.txt":  table,
		"broken.txt":  "fault: f\nfile: sum.go\ntest: ./...\n- \treturn a + b\n+ \treturn c\n",
		"gone.txt":    "fault: f\nfile: sum.go\ntest: ./...\n- \treturn a * b\n+ \treturn a\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	tests := tester{limit: time.Minute}
	for _, c := range []struct {
		table, only string
		survived    int
		err         string
	}{
		{"faults.txt", "", 1, ""},
		{"faults.txt", "difference", 0, ""},
		{"broken.txt", "", 0, "does not build"},
		{"gone.txt", "", 0, "0 times in sum.go"},
		{"nosuch.txt", "", 0, "nosuch.txt"},
	} {
		survived, err := run(io.Discard, c.table, c.only, 2, tests)
		if survived != c.survived || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s, only %q: %d survived, error %v", c.table, c.only, survived, err)
		}
	}
	tests.check = true
	for table, want := range map[string]string{"faults.txt": "", "broken.txt": "does not build", "gone.txt": "0 times in sum.go"} {
		_, err := run(io.Discard, table, "", 1, tests)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("check of %s: error %v", table, err)
		}
	}
	if text, err := os.ReadFile("sum.go"); err != nil || !strings.Contains(string(text), "a + b") {
		t.Errorf("the file itself was changed: %q, %v", text, err)
	}
}
