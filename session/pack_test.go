//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"reflect"
	"testing"

	"xol/instrument"
	"xol/machine"
)

// What is sent as memory has no pointers, by any depth.
func TestPackedValuesHoldNoPointers(t *testing.T) {
	var holds func(typ reflect.Type) bool
	holds = func(typ reflect.Type) bool {
		switch typ.Kind() {
		case reflect.Struct:
			for f := range typ.NumField() {
				if holds(typ.Field(f).Type) {
					return true
				}
			}
			return false
		case reflect.Array:
			return holds(typ.Elem())
		}
		return typ.Kind() >= reflect.Array || typ.Kind() == reflect.Invalid
	}
	for _, v := range []any{packedCopy{}, instrument.Patch{}, instrument.Point{}, instrument.Inserted{}, instrument.Run{}} {
		if typ := reflect.TypeOf(v); holds(typ) {
			t.Errorf("%v holds a pointer", typ)
		}
	}
	if !holds(reflect.TypeFor[instrument.Copy]()) {
		t.Error("a slice is taken for a plain value")
	}
}

func TestPackedLayoutIsTheSame(t *testing.T) {
	want := &instrument.Layout{
		Code: []machine.Range{{Lo: 1, Hi: 2}}, Counters: machine.Range{Lo: 3, Hi: 4}, Table: machine.Range{Lo: 5, Hi: 6}, Histograms: 7, Fixed: true,
		Copies: []*instrument.Copy{
			{Addr: 8, Orig: 9, Size: 10, Points: make([]instrument.Point, 3), Runs: make([]instrument.Run, 1)},
			{Addr: 11, Orig: 12, Counters: 13, Back: 14, Whole: true, Items: make([]instrument.Inserted, 2), Points: make([]instrument.Point, 1)},
		},
		Patches: make([]instrument.Patch, 2),
	}
	want.Patches[1].Addr = 15
	want.Copies[0].Points[2].Orig, want.Copies[1].Items[1].Step = 16, 17
	got := pack(want).unpack()
	for i, c := range got.Copies {
		if !reflect.DeepEqual(emptied(*c), emptied(*want.Copies[i])) {
			t.Errorf("copy %d: %+v, want %+v", i, *c, *want.Copies[i])
		}
	}
	got.Copies, want.Copies = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// emptied has empty lists where there are none.
func emptied(c instrument.Copy) instrument.Copy {
	c.Points = append([]instrument.Point{}, c.Points...)
	c.Items = append([]instrument.Inserted{}, c.Items...)
	c.Runs = append([]instrument.Run{}, c.Runs...)
	return c
}
