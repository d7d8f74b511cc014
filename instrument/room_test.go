package instrument

import (
	"errors"
	"os"
	"testing"

	"xol/machine"
)

// TestNoRoom has no free memory but where jumps do not lead.
func TestNoRoom(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := layOut(t, self, firstInst)
	for _, far := range []machine.Range{{Lo: 1 << 20, Hi: 1 << 40}, {Lo: testBias + 1<<32, Hi: testBias + 1<<33}, {}} {
		mem := Memory{Free: []machine.Range{far}, Needed: machine.Range{Lo: testBias, Hi: testBias + 1<<26}}
		if _, err := l.p.Lay(l.plans, &mem); !errors.Is(err, ErrNoRoom) {
			t.Errorf("%#x: %v", far, err)
		}
	}
}
