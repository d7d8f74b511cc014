package selection

import (
	"errors"
	"testing"

	"xol/image"
	"xol/notation"
)

// A function may be asked for in the source file that it is in, as perf has it.
func TestPlacesInSource(t *testing.T) {
	img, err := image.OpenFile("../docs/examples/demo", image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	for _, c := range []struct {
		place string
		addr  uint64
		wrong string
	}{
		{"demo.c:sum", 0x11c0, ""}, {"sum@demo.c+4", 0x11c4, ""}, {"demo.c:sum", 0x11c0, ""},
		{"other.c:sum", 0, "sum is not in other.c, or the file has no source lines"},
		{"sum@mo.c", 0, "sum is not in mo.c, or the file has no source lines"},
	} {
		p, err := notation.Parse(c.place)
		if err != nil {
			t.Fatal(err)
		}
		found, err := Places(img, &p)
		switch {
		case c.wrong != "":
			if err == nil || err.Error() != c.wrong {
				t.Errorf("%s: %v, want %s", c.place, err, c.wrong)
			}
		case err != nil || len(found) != 1 || found[0].Addr != c.addr:
			t.Errorf("%s: %+v, %v; want %#x", c.place, found, err, c.addr)
		}
	}
}

// A probe in a module is none of the kernel's file.
func TestPlacesInModules(t *testing.T) {
	img, err := image.OpenFile("../docs/examples/vmlinux", image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	p, err := notation.Parse("ext4:ext4_file_open")
	if err != nil {
		t.Fatal(err)
	}
	var elsewhere *ModuleError
	if _, err := Places(img, &p); !errors.As(err, &elsewhere) || elsewhere.Module != "ext4" {
		t.Errorf("%v", err)
	}
}
