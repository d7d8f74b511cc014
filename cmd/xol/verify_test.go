package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"xol/arch"
	"xol/internal/skip"
	"xol/machine"
)

// canRun reports whether there is an engine for an ISA.
func canRun(t *testing.T, name string) bool {
	t.Helper()
	known, err := arch.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	isa, err := arch.Execution(known)
	if err != nil {
		t.Fatal(err)
	}
	for _, open := range engineOpeners {
		if e, err := open(isa); err == nil {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			return true
		}
	}
	return false
}

func TestVerify(t *testing.T) {
	for _, name := range arch.Names() {
		for _, distance := range []string{"near", "far"} {
			t.Run(name+" "+distance, func(t *testing.T) {
				if !canRun(t, name) {
					skip.Missing(t, "an engine", name)
				}
				inv := xol("verify --states 5 -o json --distance "+distance+" "+filepath.Join("testdata", name+".elf"), "")
				var report struct {
					Instructions, Distinct, Executed, States, Differences int
					Verified, Skipped                                     map[string]int
				}
				if err := json.Unmarshal([]byte(inv.stdout), &report); err != nil {
					t.Fatalf("%v in %s", err, inv)
				}
				if inv.status != 0 || report.Differences != 0 {
					t.Errorf("status %d, %d differences", inv.status, report.Differences)
				}
				if report.Executed == 0 || report.States < 5*report.Executed || report.Distinct > report.Instructions {
					t.Errorf("%+v", report)
				}
				skipped := 0
				for _, n := range report.Skipped {
					skipped += n
				}
				if report.Executed+skipped != report.Distinct {
					t.Errorf("%d executed and %d skipped of %d", report.Executed, skipped, report.Distinct)
				}
			})
		}
	}
}

func TestVerifyWithoutAnEngine(t *testing.T) {
	none := func(arch.Executor) (machine.Engine, error) { return nil, errors.New("no engine for tests") }
	defer func(saved []engineOpener) { engineOpeners = saved }(engineOpeners)
	engineOpeners = []engineOpener{none}
	inv := xol("verify testdata/amd64.elf", "")
	if inv.status != 2 || strings.Count(inv.stderr, "\n") != 1 || !strings.Contains(inv.stderr, "no engine for tests") {
		t.Errorf("got %s", inv)
	}
}
