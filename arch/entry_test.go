package arch

import (
	"bytes"
	"encoding/hex"
	"testing"
)

func TestEntryText(t *testing.T) {
	cases := []struct{ name, isa, text, ready string }{
		{"mfentry", "amd64", "e811223344", "0f1f440000"},
		{"mnop-mcount", "amd64", "0f1f440000", "0f1f440000"},
		{"five NOPs", "amd64", "9090909090", "0f1f440000"},
		{"four NOPs", "amd64", "9090909055", ""},
		{"end of text", "amd64", "90909090", ""},
		{"two NOPs", "arm64", "1f2003d51f2003d5", "e9031eaa1f2003d5"},
		{"prepared", "arm64", "e9031eaa1f2003d5", "e9031eaa1f2003d5"},
		{"one NOP", "arm64", "1f2003d5fd7bbea9", ""},
		{"two NOPs", "ppc64", "6000000060000000", "7c0802a660000000"},
		{"mprofile-kernel", "ppc64", "7c0802a648001235", "7c0802a660000000"},
		{"older mprofile-kernel", "ppc64", "f801001048001235", "f801001060000000"},
		{"a branch", "ppc64", "7c0802a648001234", ""},
		{"a call without the return address", "ppc64", "6000000048001235", ""},
		{"two NOPs", "ppc64le", "0000006000000060", "a602087c00000060"},
		{"mprofile-kernel", "ppc64le", "a602087c35120048", "a602087c00000060"},
	}
	for _, c := range cases {
		t.Run(c.isa+" "+c.name, func(t *testing.T) {
			known, err := ByName(c.isa)
			if err != nil {
				t.Fatal(err)
			}
			isa, err := Probing(known)
			if err != nil {
				t.Fatal(err)
			}
			text, err1 := hex.DecodeString(c.text)
			want, err2 := hex.DecodeString(c.ready)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			ready, ok := isa.EntryText(text)
			if ok != (c.ready != "") || ok && !bytes.Equal(ready, want) {
				t.Errorf("%x, %v", ready, ok)
			}
		})
	}
}
