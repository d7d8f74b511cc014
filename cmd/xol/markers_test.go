package main

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"xol/internal/skip"
)

// listedMarker is a marker as both readelf and xol tell it.
type listedMarker struct {
	Provider, Name, Location, Base, Semaphore, Args string
}

// TestMarkersAgreeWithReadelf compares with binutils, which know every ISA.
// Files of packages that are not installed are left out; what is beside the
// test is always there. XOL_MARKER_ROOT names a directory of packages for another
// ISA, as scripts/debget unpacks them.
func TestMarkersAgreeWithReadelf(t *testing.T) {
	readelf, err := exec.LookPath("readelf")
	if err != nil {
		skip.Missing(t, "readelf")
	}
	files := []string{"testdata/markers-amd64.elf", "testdata/markers-arm64.elf", "testdata/markers-ppc64.elf", "testdata/markers-ppc64le.elf"}
	for _, pattern := range []string{
		"/usr/lib/*-linux-gnu*/libstdc++.so.6", "/usr/lib/*-linux-gnu*/libpython3*.so.1.0", "/usr/bin/python3", "/usr/bin/perl",
		"/lib/*-linux-gnu*/libc.so.6", "/usr/lib/postgresql/*/bin/postgres", "/usr/lib/*-linux-gnu*/libvirt.so.0",
	} {
		found, err := filepath.Glob(filepath.Join(os.Getenv("XOL_MARKER_ROOT"), pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			text, err := exec.Command(readelf, "--notes", "--wide", file).Output()
			if err != nil {
				skip.Missing(t, "programs of this machine", file)
			}
			want, got := parseReadelf(string(text)), listMarkers(t, file)
			if !slices.Equal(got, want) {
				t.Errorf("got %q\nwant %q", got, want)
			}
			t.Logf("%d markers", len(got))
		})
	}
}

func parseReadelf(text string) []listedMarker {
	notes := regexp.MustCompile(`Provider: (.*)\n +Name: (.*)\n +Location: (\w+), Base: (\w+), Semaphore: (\w+)\n +Arguments: (.*)`)
	var all []listedMarker
	for _, m := range notes.FindAllStringSubmatch(text, -1) {
		for i := 3; i < 6; i++ {
			m[i] = withoutZeros(m[i])
		}
		all = append(all, listedMarker{m[1], m[2], m[3], m[4], m[5], m[6]})
	}
	return all
}

// withoutZeros writes an address of readelf as xol does.
func withoutZeros(addr string) string {
	digits := strings.TrimLeft(strings.TrimPrefix(addr, "0x"), "0")
	return "0x" + cmp.Or(digits, "0")
}

func listMarkers(t *testing.T, file string) []listedMarker {
	t.Helper()
	inv := xol("analyze --markers -o jsonl "+file, "")
	if inv.status != 0 {
		t.Fatalf("status %d: %s", inv.status, inv.stderr)
	}
	var all []listedMarker
	for line := range strings.Lines(inv.stdout) {
		var row struct {
			listedMarker
			Error string
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if row.Error != "" && row.Name != "unclear" {
			t.Errorf("%s:%s: %s", row.Provider, row.Name, row.Error)
		}
		all = append(all, row.listedMarker)
	}
	return all
}
