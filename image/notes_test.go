package image

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// note builds a note; sizes other than those of its parts are damage.
func (o byteOrder) note(owner string, typ uint32, desc []byte) []byte {
	b := make([]byte, 12)
	o.put32(b, uint32(len(owner)))
	o.put32(b[4:], uint32(len(desc)))
	o.put32(b[8:], typ)
	for _, part := range [][]byte{[]byte(owner), desc} {
		b = append(b, part...)
		b = append(b, make([]byte, -len(b)&3)...)
	}
	return b
}

// markerDesc builds the descriptor of a marker.
func (o byteOrder) markerDesc(location, base, semaphore uint64, names string) []byte {
	b := make([]byte, 24)
	o.put64(b, location)
	o.put64(b[8:], base)
	o.put64(b[16:], semaphore)
	return append(b, names...)
}

func TestMarkers(t *testing.T) {
	for _, order := range []byteOrder{littleEndian, bigEndian} {
		good := order.note("stapsdt\x00", 3, order.markerDesc(0x1000, 0x2000, 0x3000, "p\x00name\x004@5\x00"))
		want := Marker{Provider: "p", Name: "name", Location: 0x1000, Base: 0x2000, Semaphore: 0x3000, Args: "4@5"}
		foreign := order.note("GNU\x00", 3, []byte("anything"))
		tail := func(names string) []byte {
			return order.note("stapsdt\x00", 3, order.markerDesc(1, 2, 3, names))
		}
		for _, c := range []struct {
			name    string
			data    []byte
			markers int
			wrong   string // in the error; empty where there is none
		}{
			{"nothing", nil, 0, ""},
			{"one", good, 1, ""},
			{"two", slices.Concat(good, good), 2, ""},
			{"another owner", slices.Concat(foreign, good), 1, ""},
			{"another type", order.note("stapsdt\x00", 4, nil), 0, ""},
			{"no arguments", tail("p\x00n\x00\x00"), 1, ""},
			{"zeros after the arguments", tail("p\x00n\x00\x00\x00\x00"), 1, ""},
			{"no padding at the end", order.note("stapsdt\x00", 3, order.markerDesc(1, 2, 3, "p\x00nn\x00\x00"))[:12+8+24+6], 1, ""},
			{"header cut off", slices.Concat(good, good[:11]), 1, "beyond the end"},
			{"descriptor cut off", good[:len(good)-6], 0, "beyond the end"},
			{"sizes that overflow", bytes.Repeat([]byte{0xff}, 16), 0, "beyond the end"},
			{"addresses cut off", order.note("stapsdt\x00", 3, make([]byte, 23)), 0, "too short"},
			{"no strings", tail(""), 0, "lacks"},
			{"arguments without a zero", tail("p\x00n\x004@5"), 0, "lacks"},
			{"no provider", tail("\x00n\x00\x00"), 0, "without a name"},
			{"more than the arguments", tail("p\x00n\x00\x00more\x00"), 0, "more than"},
		} {
			got, err := order.appendMarkers(nil, c.data)
			var format *FormatError
			switch {
			case c.wrong == "" && err != nil:
				t.Errorf("%s: %v", c.name, err)
			case c.wrong != "" && (!errors.As(err, &format) || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("%s: %v, want %q in it", c.name, err, c.wrong)
			case len(got) != c.markers:
				t.Errorf("%s: %+v, want %d", c.name, got, c.markers)
			case strings.HasPrefix(c.name, "one") && got[0] != want:
				t.Errorf("%s: %+v, want %+v", c.name, got[0], want)
			}
		}
	}
}

func FuzzMarkers(f *testing.F) {
	desc := littleEndian.markerDesc(1, 2, 3, "p\x00n\x00-4@%eax\x00")
	f.Add(littleEndian.note("stapsdt\x00", 3, desc), false)
	f.Add(bigEndian.note("stapsdt\x00", 3, desc), true)
	f.Fuzz(func(t *testing.T, data []byte, big bool) {
		markers, err := byteOrder(big).appendMarkers(nil, data)
		var format *FormatError
		if err != nil && !errors.As(err, &format) {
			t.Errorf("error of type %T: %v", err, err)
		}
		for _, m := range markers {
			if m.Provider == "" || m.Name == "" {
				t.Errorf("no name: %+v", m)
			}
		}
	})
}
