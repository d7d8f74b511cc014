//go:build unicorn

package matrix

import (
	"testing"

	"xol/arch"
	"xol/internal/skip"
)

// TestNames: a case is known by its name, which has room in a table.
func TestNames(t *testing.T) {
	const room = 52
	seen := map[string]bool{}
	for _, c := range cases() {
		if seen[c.name] || len(c.name) > room {
			t.Errorf("%q is another case's name, or longer than %d", c.name, room)
		}
		seen[c.name] = true
	}
}

// TestApplicable: every case makes sense somewhere on every target, unless it is
// of one target's own.
func TestApplicable(t *testing.T) {
	own := map[string]string{
		"optimize: not with a probe inside the region":    "amd64",
		"boost: never where a fault could not be precise": "arm64",
	}
	for _, c := range cases() {
		for _, target := range arch.Names() {
			applies := false
			for _, mode := range Modes() {
				applies = applies || c.reason(target, mode) == ""
			}
			if want := own[c.name] == "" || own[c.name] == target; applies != want {
				t.Errorf("%s on %s applies: %v, want %v", c.name, target, applies, want)
			}
		}
	}
}

func TestMatrix(t *testing.T) {
	for _, target := range arch.Names() {
		t.Run(target, func(t *testing.T) {
			for _, mode := range Modes() {
				t.Run(mode.String(), func(t *testing.T) {
					for _, c := range cases() {
						t.Run(c.name, func(t *testing.T) {
							switch r := runCase(t.Context(), &c, target, mode); r.Outcome {
							case Fail:
								t.Error(r.Reason)
							case NotApplicable:
								skip.Pointless(t, r.Reason)
							}
						})
					}
				})
			}
		})
	}
}
