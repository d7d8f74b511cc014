package image

import (
	"fmt"
	"slices"
	"testing"

	"xol/place"
)

// wanted reads what the source of a fixture says of its marks.
func wanted(t *testing.T, im *Image) place.Marks {
	t.Helper()
	s := im.sectionNamed(".want")
	if s == nil {
		t.Fatal("the fixture says nothing of its marks")
	}
	data, err := im.contents(s)
	if err != nil {
		t.Fatal(err)
	}
	var marks place.Marks
	for ; len(data) >= 24; data = data[24:] {
		marks = append(marks, place.Mark{
			Kind: place.Kind(im.order.u64(data)), Addr: im.order.u64(data[8:]), Len: im.order.u64(data[16:]),
		})
	}
	return marks
}

// lines writes marks so that they can be compared and read, without those
// that only tell of relocations.
func lines(marks place.Marks) []string {
	var lines []string
	for _, m := range marks {
		if m.Kind&(place.Reloc|place.ExternalReloc) == 0 {
			lines = append(lines, fmt.Sprintf("%#x %d bytes kind %#x", m.Addr, m.Len, m.Kind))
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// TestTables reads every kernel table, from the sections of a module and from
// between the symbols of a kernel.
func TestTables(t *testing.T) {
	for _, target := range targets {
		for _, tc := range []struct {
			name string
			kind Kind
		}{
			{"module." + target + ".ko", KindModule},
			{"kernel." + target, KindKernel},
		} {
			t.Run(tc.name, func(t *testing.T) {
				im := fixture(t, tc.name)
				if im.Kind() != tc.kind {
					t.Errorf("kind: got %v, want %v", im.Kind(), tc.kind)
				}
				marks, err := im.Marks()
				if err != nil {
					t.Fatal(err)
				}
				compareLines(t, lines(marks), lines(wanted(t, im)))
			})
		}
	}
}

// compareLines reports what is in one list only.
func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("found, not expected: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("not found: %s", line)
		}
	}
	if len(want) == 0 {
		t.Error("nothing is expected")
	}
}
