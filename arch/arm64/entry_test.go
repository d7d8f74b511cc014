package arm64

import (
	"encoding/binary"
	"testing"

	"xol/decode"
)

func TestOnlyLandingPad(t *testing.T) {
	for _, test := range []struct {
		text string
		word uint32
		want bool
	}{
		{"bti", 0xd503241f, false},
		{"bti c", 0xd503245f, true},
		{"bti j", 0xd503249f, true},
		{"bti jc", 0xd50324df, true},
		{"paciasp", 0xd503233f, false},
		{"pacibsp", 0xd503237f, false},
		{"nop", 0xd503201f, false},
		{"ret", 0xd65f03c0, false},
	} {
		var inst decode.Inst
		if err := (ISA{}).Decode(&inst, binary.LittleEndian.AppendUint32(nil, test.word), 0x1000); err != nil {
			t.Fatal(err)
		}
		if got := (ISA{}).OnlyLandingPad(&inst); got != test.want {
			t.Errorf("%s: %t, want %t", test.text, got, test.want)
		}
	}
}
