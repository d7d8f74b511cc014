package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"xol/arch"
	"xol/matrix"
)

// someResults makes a matrix of two cases: all pass in the first; of the second
// one field fails, and what is emulated is not applicable.
func someResults(_ context.Context, match func(string) bool, each func(matrix.Result) error) error {
	names := slices.DeleteFunc([]string{"good", "bad, at times"}, func(name string) bool { return !match(name) })
	for _, name := range names {
		for _, target := range arch.Names() {
			for _, mode := range matrix.Modes() {
				r := matrix.Result{Case: name, Target: target, Mode: mode}
				switch {
				case name == "good":
				case mode == matrix.Emulated:
					r.Outcome, r.Reason = matrix.NotApplicable, "no sense"
				case mode == matrix.Boosted && target == "ppc64":
					r.Outcome, r.Reason = matrix.Fail, "states are none"
				}
				if err := each(r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func writeSome(t *testing.T, format, glob string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	a := &app{out: &out, color: choiceOf("never")}
	opt := matrixOptions{glob: glob, format: formatChoice()}
	if err := opt.format.Set(format); err != nil {
		t.Fatal(err)
	}
	err := a.writeMatrix(&opt, someResults)
	return out.String(), err
}

func TestMatrixTable(t *testing.T) {
	const want = `
                                                      amd64                 arm64                 ppc64                 ppc64le
CASE                                                  br  tr  bo  op  em    br  tr  bo  op  em    br  tr  bo  op  em    br  tr  bo  op  em
good                                                  ok  ok  ok  ok  ok    ok  ok  ok  ok  ok    ok  ok  ok  ok  ok    ok  ok  ok  ok  ok
bad, at times                                         ok  ok  ok  ok  -     ok  ok  ok  ok  -     ok  ok  NO  ok  -     ok  ok  ok  ok  -

br stepped-breakpoint   tr stepped-trap   bo boosted   op optimized   em emulated
-    4  no sense
NO bad, at times, ppc64, boosted: states are none
35 passed, 1 failed, 4 not applicable
`
	got, err := writeSome(t, formatTable, "*")
	if !errors.Is(err, answerNo) {
		t.Errorf("error %v, want %v", err, answerNo)
	}
	compareLines(t, "\n"+got, want)
}

func TestMatrixWithoutACase(t *testing.T) {
	for _, format := range []string{formatTable, formatJSON, formatJSONL, formatCSV} {
		got, err := writeSome(t, format, "nosuch*")
		if err == nil || errors.Is(err, answerNo) || !strings.Contains(err.Error(), `"nosuch*"`) {
			t.Errorf("%s: error %v, want one that names the glob", format, err)
		}
		if got != "" {
			t.Errorf("%s: wrote %q", format, got)
		}
	}
}

func TestMatrixRecords(t *testing.T) {
	got, err := writeSome(t, formatJSONL, "bad*")
	if !errors.Is(err, answerNo) {
		t.Errorf("error %v, want %v", err, answerNo)
	}
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 20 {
		t.Fatalf("%d lines", len(lines))
	}
	const want = `{"case":"bad, at times","target":"ppc64","mode":"boosted","result":"fail","reason":"states are none"}`
	if lines[12] != want {
		t.Errorf("line 13 is\n%s, want\n%s", lines[12], want)
	}
	if all, _ := writeSome(t, formatJSON, "*"); !json.Valid([]byte(all)) {
		t.Errorf("not JSON: %s", all)
	}
	csv, err := writeSome(t, formatCSV, "good")
	if err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(csv, "case,target,mode,result,reason\ngood,amd64,stepped-breakpoint,pass,\n") {
		t.Errorf("CSV starts with %.80q", csv)
	}
}

// TestMatrix carries some cases out, where there is an engine to do so.
func TestMatrix(t *testing.T) {
	inv := xol("matrix -o jsonl --case 'refused*'", "")
	if _, err := openMatrix(); err != nil {
		if inv.status != 2 || inv.stdout != "" || strings.Count(inv.stderr, "\n") != 1 || !strings.Contains(inv.stderr, "make build") {
			t.Errorf("%s", inv)
		}
		return
	}
	if inv.status != 0 || inv.stderr != "" {
		t.Errorf("%s", inv)
	}
	for line := range strings.Lines(inv.stdout) {
		var r struct{ Case, Target, Mode, Result, Reason string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !strings.HasPrefix(r.Case, "refused") || r.Result == matrix.Fail.String() || (r.Reason == "") != (r.Result == "pass") {
			t.Errorf("%s", line)
		}
	}
	if strings.Count(inv.stdout, "\n")%(len(arch.Names())*len(matrix.Modes())) != 0 || inv.stdout == "" {
		t.Errorf("%d lines", strings.Count(inv.stdout, "\n"))
	}
}

func TestMatrixUsage(t *testing.T) {
	for _, command := range []string{"matrix --case [", "matrix file", "matrix -o xml"} {
		if inv := xol(command, ""); inv.status != 2 || inv.stdout != "" || !strings.HasPrefix(inv.stderr, "xol: matrix: ") {
			t.Errorf("%s", inv)
		}
	}
}
