package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	packages, err := read(strings.NewReader("mode: set\n" +
		"xol/a/x.go:1.2,3.4 3 0\nxol/a/x.go:5.2,6.4 1 1\nxol/a/x.go:1.2,3.4 3 1\nxol/b/y.go:1.2,3.4 4 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if report(&b, packages, 85) {
		t.Error("half of all is enough")
	}
	want := " 100.0 %  xol/a\n   0.0 %  xol/b  less than 85 %\n  50.0 %  all of them\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if _, err := read(strings.NewReader("nonsense\n")); err == nil {
		t.Error("a line that is none is taken")
	}
}
