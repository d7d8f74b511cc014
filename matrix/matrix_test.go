//go:build unicorn

package matrix

import (
	"testing"

	"xol/arch"
)

func TestMatrix(t *testing.T) {
	for _, target := range arch.Names() {
		t.Run(target, func(t *testing.T) {
			for _, mode := range Modes() {
				t.Run(mode.String(), func(t *testing.T) {
					for _, c := range cases() {
						t.Run(c.name, func(t *testing.T) {
							switch r := runCase(&c, target, mode); r.Outcome {
							case Fail:
								t.Error(r.Reason)
							case NotApplicable:
								t.Skip(r.Reason)
							}
						})
					}
				})
			}
		})
	}
}
