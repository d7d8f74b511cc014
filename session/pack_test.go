//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"bytes"
	"encoding/gob"
	"errors"
	"reflect"
	"testing"

	"xol/instrument"
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
	for _, v := range []any{packedCopy{}, instrument.Patch{}, instrument.Cave{}, instrument.Point{}, instrument.Inserted{}, instrument.Run{}} {
		if typ := reflect.TypeOf(v); holds(typ) {
			t.Errorf("%v holds a pointer", typ)
		}
	}
	if !holds(reflect.TypeFor[instrument.Copy]()) {
		t.Error("a slice is taken for a plain value")
	}
}

// TestPackedLayoutIsTheSame sends a layout of which every field is set, so that one that
// is forgotten is noticed.
func TestPackedLayoutIsTheSame(t *testing.T) {
	var want, got instrument.Layout
	number := uint64(0)
	fill(reflect.ValueOf(&want).Elem(), &number)
	var buf bytes.Buffer
	var received packed
	if err := errors.Join(gob.NewEncoder(&buf).Encode(pack(&want)), gob.NewDecoder(&buf).Decode(&received)); err != nil {
		t.Fatal(err)
	}
	got = *received.unpack()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// fill sets all exported fields to values that differ, and lists to two of them.
func fill(v reflect.Value, number *uint64) {
	*number++
	switch kind := v.Kind(); {
	case kind == reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), number)
			}
		}
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), number)
	case kind == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), number)
		fill(v.Index(1), number)
	case kind == reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), number)
		}
	case kind == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(int64(*number % 100))
	default:
		v.SetUint(*number % 100)
	}
}
