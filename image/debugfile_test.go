package image

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// debugPair is a stripped program and its debug file.
type debugPair struct{ program, debug []byte }

func readPair(t *testing.T, target string) debugPair {
	t.Helper()
	var p debugPair
	for name, b := range map[string]*[]byte{"linked." + target: &p.program, "linked." + target + ".debug": &p.debug} {
		var err error
		if *b, err = os.ReadFile(filepath.Join("testdata", "elf", name)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// id returns the build id of both, in hexadecimal.
func (p *debugPair) id(t *testing.T) string {
	t.Helper()
	im, err := open(bytes.NewReader(p.debug), int64(len(p.debug)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(im.buildID())
}

// withoutID returns a file whose note of the build id is no note.
func withoutID(t *testing.T, file []byte) []byte {
	t.Helper()
	return editSection(t, file, ".note.gnu.build-id", func(f *elf.File, h []byte) { f.ByteOrder.PutUint32(h[4:], uint32(elf.SHT_PROGBITS)) })
}

// editSection returns a file with a section header changed.
func editSection(t *testing.T, file []byte, name string, edit func(f *elf.File, header []byte)) []byte {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	file = bytes.Clone(file)
	for i, s := range f.Sections {
		if s.Name == name {
			edit(f, file[f.ByteOrder.Uint64(file[40:])+uint64(i)*shdrSize:])
			return file
		}
	}
	t.Fatalf("no section %s", name)
	return nil
}

// put writes a file, and the folders that it needs.
func put(t *testing.T, data []byte, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestDebugFiles finds names and lines of stripped programs wherever debug
// files may be.
func TestDebugFiles(t *testing.T) {
	for _, target := range targets {
		p := readPair(t, target)
		id, link := p.id(t), "linked."+target+".debug"
		whole := fixture(t, "functions."+target)
		for _, c := range []struct {
			name    string
			program []byte
			where   func(folder, dirs string) string
		}{
			{"by the build id", p.program, func(_, dirs string) string { return filepath.Join(dirs, ".build-id", id[:2], id[2:]+".debug") }},
			{"beside the program", p.program, func(folder, _ string) string { return filepath.Join(folder, link) }},
			{"in .debug", p.program, func(folder, _ string) string { return filepath.Join(folder, ".debug", link) }},
			{"by the folder", p.program, func(folder, dirs string) string { return filepath.Join(dirs, folder, link) }},
			{"by the checksum", withoutID(t, p.program), func(folder, _ string) string { return filepath.Join(folder, link) }},
		} {
			t.Run(target+", "+c.name, func(t *testing.T) {
				folder, dirs := t.TempDir(), t.TempDir()
				want := put(t, p.debug, c.where(folder, dirs))
				im, err := OpenFile(put(t, c.program, folder, "program"), Options{DebugDirs: []string{dirs}})
				if err != nil {
					t.Fatal(err)
				}
				defer im.Close()
				if path, err := im.DebugFile(); path != want || err != nil {
					t.Errorf("debug file %q, %v; want %q", path, err, want)
				}
				compareNames(t, im, whole)
			})
		}
	}
}

// compareNames compares functions and their first lines.
func compareNames(t *testing.T, got, want *Image) {
	t.Helper()
	describe := func(im *Image) map[string]int {
		fns, err := im.Functions(ExtentSymbol)
		if err != nil {
			t.Fatal(err)
		}
		lines := make(map[string]int)
		for _, f := range fns {
			if f.Source == FromSymbol {
				_, lines[f.Name], _ = im.Line(f.Addr)
			}
		}
		return lines
	}
	g, w := describe(got), describe(want)
	if len(g) != len(w) || len(w) < 3 {
		t.Errorf("%d functions, want %d", len(g), len(w))
	}
	for name, line := range w {
		if g[name] != line {
			t.Errorf("%s: line %d, want %d", name, g[name], line)
		}
	}
}

// TestStaleDebugFiles finds debug files of other builds, which must not be
// used.
func TestStaleDebugFiles(t *testing.T) {
	p := readPair(t, "amd64")
	id, err := hex.DecodeString(p.id(t))
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(p.debug)
	other[bytes.Index(other, id)] ^= 1
	for _, c := range []struct {
		name           string
		program, debug []byte
		want           error // nil: any
	}{
		{"another build id", p.program, other, ErrStaleDebugFile},
		{"another checksum", withoutID(t, p.program), append(slices.Clone(p.debug), 0), ErrStaleDebugFile},
		{"text elsewhere", p.program, editSection(t, p.debug, ".text", func(f *elf.File, h []byte) { f.ByteOrder.PutUint64(h[16:], 0x405000) }), ErrStaleDebugFile},
		{"no debug file", p.program, []byte("nothing"), ErrNotELF},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			put(t, c.debug, folder, "linked.amd64.debug")
			im, err := OpenFile(put(t, c.program, folder, "program"), Options{DebugDirs: []string{}})
			if err != nil {
				t.Fatal(err)
			}
			defer im.Close()
			if path, err := im.DebugFile(); path != "" || !errors.Is(err, c.want) {
				t.Errorf("debug file %q, %v; want %v", path, err, c.want)
			}
			if places, err := im.Resolve("sized"); err == nil {
				t.Errorf("names are used: %+v", places)
			}
		})
	}
	folder := t.TempDir()
	put(t, p.debug, folder, "linked.amd64.debug")
	im, err := OpenFile(put(t, p.program, folder, "program"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	if path, err := im.DebugFile(); path != "" || err != nil {
		t.Errorf("found without being asked for: %q, %v", path, err)
	}
}

// TestOpenDebugFile says what a debug file is.
func TestOpenDebugFile(t *testing.T) {
	for _, target := range targets {
		p := readPair(t, target)
		_, err := Open(bytes.NewReader(p.debug), int64(len(p.debug)), Options{})
		e := new(DebugFileError)
		if !errors.As(err, &e) || e.BuildID != p.id(t) || len(e.BuildID) != 40 {
			t.Errorf("%s: %v", target, err)
		}
	}
}
