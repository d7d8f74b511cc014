//go:build unicorn

package guest

import (
	"encoding/binary"
	"testing"

	"xol/machine"
)

// TestLethalWordsMayComeAndGo writes a word on which the engine crashes after
// code that it has translated, and something else in its place.
func TestLethalWordsMayComeAndGo(t *testing.T) {
	const (
		text = 0x40_0000
		add  = 0x91000400 // add x0, x0, #1
		ret  = 0xd65f03c0
		famx = 0x0ec01c00 // famax v0.4h, v0.4h, v0.4h
	)
	m := open(t, Options{}, "arm64")
	if err := m.Map(text, PageSize, machine.PermRead|machine.PermExec); err != nil {
		t.Fatal(err)
	}
	for round, words := range [][3]uint32{{add, add, ret}, {add, famx, ret}, {add, ret, famx}, {add, add, ret}, {famx, add, ret}, {ret, famx, add}} {
		for i, w := range words {
			if err := m.Write(text+uint64(4*i), binary.LittleEndian.AppendUint32(nil, w)); err != nil {
				t.Fatal(err)
			}
		}
		want, bad := uint64(0), uint64(0)
		for i, w := range words {
			if w == famx {
				bad = text + uint64(4*i)
			}
			if w != add {
				break
			}
			want++
		}
		c := m.CPUs[0]
		if err := c.Call(machine.Function{Entry: text}, 0); err != nil {
			t.Fatal(err)
		}
		ev, err := c.Run(100)
		switch {
		case err != nil:
			t.Fatal(err)
		case bad != 0 && (ev.Kind != machine.EventRefused || ev.Addr != bad):
			t.Errorf("round %d: %v at %#x, want %v at %#x", round, ev.Kind, ev.Addr, machine.EventRefused, bad)
		case bad == 0 && (ev.Kind != machine.EventReturned || c.Result() != want):
			t.Errorf("round %d: %v, result %d, want %d", round, ev.Kind, c.Result(), want)
		}
	}
}
