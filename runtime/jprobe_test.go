//go:build unicorn

package runtime_test

import (
	"errors"
	"testing"

	"xol/arch"
	"xol/classify"
	"xol/internal/guest"
	"xol/runtime"
)

// TestJprobe has other functions of the program look at the arguments of three.
func TestJprobe(t *testing.T) {
	mirrors := map[string]string{"length": "number", "compare": "find", "crc32": "crc32_bitwise"}
	for _, isa := range arch.Names() {
		for _, level := range []string{"0", "2"} {
			t.Run(isa+" -O"+level, func(t *testing.T) {
				p := open(t, isa, level, guest.Options{}, runtime.Options{Pass: 500})
				var probes []*runtime.Jprobe
				var seen []*runtime.Probe
				for name, mirror := range mirrors {
					f, err := p.p.Function(mirror)
					if err != nil {
						t.Fatal(err)
					}
					j := &runtime.Jprobe{Symbol: name, Mirror: f}
					entry := &runtime.Probe{Symbol: mirror}
					if err := errors.Join(p.RegisterJprobe(j), p.Register(entry)); err != nil {
						t.Fatal(err)
					}
					probes, seen = append(probes, j), append(seen, entry)
					if err := p.RegisterJprobe(&runtime.Jprobe{Symbol: name, Mirror: f}); !errors.Is(err, classify.EEXIST) {
						t.Errorf("a second jprobe: %v", err)
					}
				}
				p.callAll(t, 1)
				for i, j := range probes {
					if j.Hits() == 0 || seen[i].Nmissed() < j.Hits() {
						t.Errorf("%s: %d hits; its mirror was entered %d times", j.Symbol, j.Hits(), seen[i].Nmissed())
					}
					if err := p.UnregisterJprobe(j); err != nil {
						t.Error(err)
					}
				}
				p.callAll(t, 2)
			})
		}
	}
}
