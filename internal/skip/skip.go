// Package skip skips tests with reasons of few shapes, so that a summary of a run
// can say what was not judged, and why (scripts/tests).
package skip

import (
	"fmt"
	"testing"
)

// What a reason starts with.
const (
	MissingPrefix   = "not here: "
	LongPrefix      = "takes long: "
	PointlessPrefix = "does not apply: "
)

// Missing skips a test that needs what this machine does not have: a tool, a file,
// a right. Details do not make it another reason.
func Missing(t testing.TB, what string, detail ...any) {
	t.Helper()
	if len(detail) > 0 {
		what += " (" + fmt.Sprint(detail...) + ")"
	}
	t.Skip(MissingPrefix + what)
}

// Long skips a test of short runs (go test -short), since it does what takes long.
func Long(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip(LongPrefix + what)
	}
}

// Unasked skips what takes longer than a test run may, unless it was asked for by a flag.
func Unasked(t testing.TB, asked bool, what string) {
	t.Helper()
	if !asked {
		t.Skip(LongPrefix + what)
	}
}

// Pointless skips a case in which there is nothing to test: no proof is missing
// then.
func Pointless(t testing.TB, why string) {
	t.Helper()
	t.Skip(PointlessPrefix + why)
}
