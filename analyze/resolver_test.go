package analyze_test

import (
	"path/filepath"
	"strings"
	"testing"

	"xol/analyze"
	"xol/image"
)

// TestImplementations asks for what the resolver of copy, in names.c, chooses
// from: one by an address in the code, the other likewise, and nothing else.
func TestImplementations(t *testing.T) {
	for _, machine := range []string{"amd64", "arm64", "ppc64le", "ppc64"} {
		img, err := image.OpenFile(filepath.Join("..", "image", "testdata", "elf", "names."+machine+".so"), image.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		an, err := analyze.New(img, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		resolvers := 0
		for _, f := range an.Functions() {
			var names []string
			for _, addr := range an.Implementations(an.Judge(f)) {
				name, base := img.Symbolize(addr)
				if base != addr {
					t.Errorf("%s: %#x is no function's start", machine, addr)
				}
				names = append(names, name)
			}
			got := strings.Join(names, " ")
			switch {
			case !f.Resolver && got != "":
				t.Errorf("%s: %s is no resolver and chooses %s", machine, f.Name, got)
			case f.Resolver:
				resolvers++
				if f.Name != "copy" || got != "copy_plain copy_wide" {
					t.Errorf("%s: %s chooses %q", machine, f.Name, got)
				}
			}
		}
		if resolvers != 1 {
			t.Errorf("%s: %d resolvers", machine, resolvers)
		}
	}
}
