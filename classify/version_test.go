package classify_test

import (
	"slices"
	"testing"

	"xol/classify"
)

func TestVersions(t *testing.T) {
	for s, want := range map[string]classify.Version{
		"6.12":     classify.Linux(6, 12),
		"5.10.262": classify.Linux(5, 10).Patch(262),
		"7.0":      classify.Linux(7, 0),
	} {
		if got, ok := classify.ParseVersion(s); !ok || got != want || got.String() != s {
			t.Errorf("%s: got %v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "6", "6.", "6.012", "6.12.0.1", "6.-1", "256.0", "6.256", "6.1.65536", "6.1 ", "v6.1"} {
		if got, ok := classify.ParseVersion(s); ok {
			t.Errorf("%q is read as %v", s, got)
		}
	}
	ascending := []classify.Version{0, classify.Linux(5, 10), classify.Linux(5, 10).Patch(262), classify.Linux(6, 1), classify.Linux(6, 12), classify.Linux(7, 0)}
	if !slices.IsSorted(ascending) {
		t.Errorf("%v is not ascending", ascending)
	}
	if got := classify.Linux(6, 12).Patch(117).Branch(); got != classify.Linux(6, 12) {
		t.Errorf("the branch of 6.12.117 is %v", got)
	}
}

func TestSpans(t *testing.T) {
	v := classify.Linux
	for _, c := range []struct {
		span classify.Span
		text string
		in   []classify.Version
		out  []classify.Version
	}{
		{classify.Span{}, "every version", []classify.Version{0, v(6, 1)}, nil},
		{classify.Span{Since: v(6, 18)}, "6.18 and later", []classify.Version{v(6, 18), v(7, 0)}, []classify.Version{v(6, 17), v(6, 17).Patch(9)}},
		{classify.Span{Until: v(6, 19)}, "before 6.19", []classify.Version{v(5, 10), v(6, 18).Patch(44)}, []classify.Version{v(6, 19), v(7, 3)}},
		{classify.Span{Since: v(6, 18), Until: v(7, 2)}, "6.18 and later, before 7.2", []classify.Version{v(6, 18), v(7, 1)}, []classify.Version{v(6, 17), v(7, 2)}},
	} {
		if got := c.span.String(); got != c.text {
			t.Errorf("got %q, want %q", got, c.text)
		}
		for _, in := range c.in {
			if !c.span.Holds(in) {
				t.Errorf("%s does not hold in %v", c.text, in)
			}
		}
		for _, out := range c.out {
			if c.span.Holds(out) {
				t.Errorf("%s holds in %v", c.text, out)
			}
		}
	}
}

func TestKnownProfiles(t *testing.T) {
	v := classify.Linux
	known := classify.Known{
		Kprobes: classify.Releases{v(6, 12)},
		Uprobes: classify.Releases{v(5, 10), v(5, 10).Patch(262), v(6, 1)},
	}
	names := []string{"isa", "linux-6.12", "uprobe-linux-5.10", "uprobe-linux-5.10.262", "uprobe-linux-6.1"}
	if got := known.Names(); !slices.Equal(got, names) {
		t.Errorf("got %v, want %v", got, names)
	}
	for asked, want := range map[string]string{
		"isa": "isa", "linux-6.12": "linux-6.12", "linux-6.12.117": "linux-6.12", "linux-6.13": "linux-6.12", "linux-6.11": "",
		"uprobe-linux-5.10": "uprobe-linux-5.10", "uprobe-linux-5.10.218": "uprobe-linux-5.10", "uprobe-linux-5.10.300": "uprobe-linux-5.10.262",
		"uprobe-linux-5.15": "uprobe-linux-5.10.262", "uprobe-linux-6.0": "uprobe-linux-5.10.262", "uprobe-linux-9.9": "uprobe-linux-6.1",
		"uprobe-linux-5.9": "", "linux": "", "uprobe-": "", "windows-11.0": "", "": "",
	} {
		m, version, ok := known.Find(asked)
		if got := classify.ProfileName(m, version); ok != (want != "") || ok && got != want {
			t.Errorf("%q is answered by %q (%v), want %q", asked, got, ok, want)
		}
	}
}

func TestNotes(t *testing.T) {
	var ids []string
	for note := range (classify.NoteFirstByte | classify.NoteIterations).All() {
		ids = append(ids, note.ID)
		if note.Text == "" {
			t.Errorf("%s says nothing", note.ID)
		}
	}
	if want := []string{"amd64/uprobe-first-byte-left", "amd64/uprobe-iterations"}; !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
	for note := range classify.Notes(0).All() {
		t.Errorf("no notes, but %s", note.ID)
	}
}
