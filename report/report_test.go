package report

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"xol/analyze"
	"xol/arch"
	"xol/classify"
	"xol/decode"
	"xol/image"
)

// open returns a file with its analyses by some profiles.
func open(t testing.TB, path string, profiles ...string) File {
	t.Helper()
	img, err := image.OpenFile(path, image.Options{Demangle: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	f := File{Name: filepath.Base(path)}
	for _, name := range profiles {
		an, err := analyze.New(img, analyze.Options{Profile: name, Optimize: true})
		if err != nil {
			t.Fatal(err)
		}
		f.Analyses = append(f.Analyses, an)
	}
	return f
}

func pageOf(t testing.TB, files ...File) string {
	t.Helper()
	var out bytes.Buffer
	var title string
	for _, f := range files {
		title += " " + f.Name
	}
	p, err := New(&out, Options{Title: title, Version: "test"})
	for _, f := range files {
		if err == nil {
			err = p.Add(context.Background(), f, func(int64) {})
		}
	}
	if closed := p.Close(); err == nil {
		err = closed
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var fixtures = filepath.Join("..", "image", "testdata", "elf")

// reading is the data of a page as the page itself reads it.
type reading struct {
	meta    pageJSON
	columns map[string]columns
}

func readPage(t testing.TB, page string) *reading {
	t.Helper()
	r := &reading{columns: map[string]columns{}}
	_, text, _ := strings.Cut(page, `<script type="application/json" id="report">`)
	text, _, _ = strings.Cut(text, "</script>")
	if err := json.Unmarshal([]byte(text), &r.meta); err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`<script type="application/octet-stream" id="(\w+)">([^<]*)</script>`).FindAllStringSubmatch(page, -1) {
		packed, err := base64.StdEncoding.DecodeString(m[2])
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
		if err != nil {
			t.Fatal(err)
		}
		n := int(binary.LittleEndian.Uint32(data))
		at := 4 + 4*n
		for i := range n {
			size := int(binary.LittleEndian.Uint32(data[4+4*i:]))
			r.columns[m[1]] = append(r.columns[m[1]], data[at:at+size])
			at += size
		}
		if at != len(data) {
			t.Errorf("%s has %d bytes after its columns", m[1], len(data)-at)
		}
	}
	return r
}

// uint takes a number off a column.
func (c columns) takeUint(i int) int {
	v, n := binary.Uvarint(c[i])
	c[i] = c[i][n:]
	return int(v)
}

func (c columns) takeText(i int) string {
	text, rest, _ := bytes.Cut(c[i], []byte{0})
	c[i] = rest
	return string(text)
}

// TestTable compares the rows of functions with what analyze says.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		file     string
		profiles []string
	}{
		{"functions.amd64", []string{classify.ISA, classify.Uprobe612}},
		{"functions.arm64", []string{classify.ISA, classify.Uprobe612}},
		{"functions.ppc64", []string{classify.ISA, classify.Uprobe612}},
		{"functions.ppc64le", []string{classify.ISA, classify.Uprobe612}},
		{"kernel.amd64", []string{classify.Linux612, classify.ISA}},
		{"kernel.arm64", []string{classify.ISA, classify.Linux612}},
		{"kernel.ppc64le", []string{classify.Linux612, classify.ISA}},
		{"module.amd64.ko", []string{classify.Linux612, classify.ISA}},
	} {
		t.Run(c.file, func(t *testing.T) {
			f := open(t, filepath.Join(fixtures, c.file), c.profiles...)
			r := readPage(t, pageOf(t, f))
			for p, an := range f.Analyses {
				comparePage(t, r, &r.meta.Files[0], p, an)
			}
		})
	}
}

func comparePage(t *testing.T, r *reading, about *fileJSON, p int, an *analyze.Analysis) {
	var total analyze.Summary
	var own []analyze.Summary // by function
	err := analyze.Each(context.Background(), an, an.Functions(), func(res *analyze.Result) analyze.Summary {
		return analyze.Summarize(res)
	}, func(s analyze.Summary) error {
		total.Merge(&s)
		own = append(own, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	profile := about.Profiles[p]
	if profile.Name != an.Profile.Name() {
		t.Errorf("profile %s, want %s", profile.Name, an.Profile.Name())
	}
	for k, n := range counts(&total) {
		if profile.Counts[k] != n {
			t.Errorf("%s: total %d is %d, want %d", profile.Name, k, profile.Counts[k], n)
		}
	}
	total.Rank()
	for k, reason := range total.Reasons {
		got := profile.Reasons[k]
		if about.Book.Rules[got[0]].ID != reason.Rule.ID || got[1] != reason.Count {
			t.Errorf("%s: reason %d is %v %s", profile.Name, k, got, about.Book.Rules[got[0]].ID)
		}
	}
	var origin uint64
	fmt.Sscanf(about.Origin, "0x%x", &origin)
	table := append(columns(nil), r.columns["f0t"]...)
	addr, next := origin, 0
	for row := range about.Functions {
		addr += uint64(table.takeUint(rowGap))
		end := addr + uint64(table.takeUint(rowSize))
		name := table.takeText(rowName)
		var s analyze.Summary // of all functions of this profile that start in the row's
		for ; next < len(own) && (an.Functions()[next].Addr < end || an.Functions()[next].Addr == addr); next++ {
			if fn := an.Functions()[next]; fn.Addr == addr && name != shown(nameOf(an.Image, &fn)) {
				t.Errorf("%#x is called %q, and not %q", addr, name, fn.Name)
			}
			s.Merge(&own[next])
		}
		for k, n := range counts(&s) {
			if got := table.takeUint(tableColumns + profileTableColumns*p + k); got != n {
				t.Errorf("row %d, %s by %s: count %d is %d, want %d", row, name, profile.Name, k, got, n)
			}
		}
	}
	if next != len(own) {
		t.Errorf("%s: %d of %d functions are in the table", profile.Name, next, len(own))
	}
}

// TestFormsGiveTheText takes instructions apart into forms and numbers, and puts them
// together again.
func TestFormsGiveTheText(t *testing.T) {
	for _, file := range []string{"functions.amd64", "functions.arm64", "functions.ppc64", "functions.ppc64le", "kernel.amd64", "kernel.arm64", "kernel.ppc64le",
		"../../../testdata/guest/amd64-O2", "../../../testdata/guest/arm64-O2", "../../../testdata/guest/ppc64-O2", "../../../testdata/guest/ppc64le-O2-power10"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f := open(t, filepath.Join(fixtures, file), classify.ISA)
			an := f.Analyses[0]
			m := former{isa: an.ISA}
			n, literal := 0, 0
			for _, fn := range an.Functions() {
				res := an.Judge(fn)
				for i := range res.Insts {
					inst := &res.Insts[i]
					form, numbers := m.of(inst)
					checkForm(t, an.ISA, inst, &form, &numbers)
					n++
					if inst.Has(decode.HasTarget) && inst.PCRel.Kind != decode.PCRelNone && form.base == baseNone {
						literal++
						t.Logf("%#x: % x %s", inst.Addr, inst.Bytes(), form.text)
					}
				}
			}
			if n == 0 || literal*1000 > n {
				t.Errorf("%d of %d instructions have a target that their form does not give", literal, n)
			}
		})
	}
}

func checkForm(t *testing.T, isa arch.ISA, inst *decode.Inst, f *form, numbers *[maxHoles]uint64) {
	t.Helper()
	raw := f.raw
	for k, h := range f.holes {
		for i, b := range []byte(h) {
			raw[b/8] |= byte(numbers[k]>>i&1) << (b % 8)
		}
	}
	if !bytes.Equal(raw[:f.len], inst.Bytes()) {
		t.Errorf("%#x: bytes % x, want % x", inst.Addr, raw[:f.len], inst.Bytes())
	}
	if f.base != baseNone {
		if to := f.base.of(inst) + uint64(f.holes[0].signed(numbers[0]))<<f.shift; to != inst.Target {
			t.Errorf("%#x: target %#x, want %#x", inst.Addr, to, inst.Target)
		}
	}
	want := "(bad)"
	if !inst.Has(decode.Invalid) {
		want = isa.Text(inst, nil)
	}
	if got := render(f, inst, numbers); got != want {
		t.Errorf("%#x: text %q, want %q (%q)", inst.Addr, got, want, f.text)
	}
}

// render makes the text of a form as the page does.
func render(f *form, inst *decode.Inst, numbers *[maxHoles]uint64) string {
	var out strings.Builder
	for k, piece := range strings.Split(f.text, "\x01") {
		if k == 0 {
			out.WriteString(piece)
			continue
		}
		h := f.holes[piece[1]-'0']
		v := h.signed(numbers[piece[1]-'0'])
		if piece[1] == '0' && f.base != baseNone {
			v <<= f.shift
		}
		switch piece[0] {
		case formatTarget:
			fmt.Fprintf(&out, "%#x", inst.Target)
		case formatSigned:
			if v < 0 {
				out.WriteByte('-')
				v = -v
			}
			fmt.Fprintf(&out, "%#x", uint64(v))
		case format64:
			fmt.Fprintf(&out, "%#x", uint64(v))
		case format32:
			fmt.Fprintf(&out, "%#x", uint32(v))
		case format16:
			fmt.Fprintf(&out, "%#x", uint16(v))
		case format8:
			fmt.Fprintf(&out, "%#x", uint8(v))
		}
		out.WriteString(piece[2:])
	}
	return out.String()
}

// TestSameBytesEachTime writes a page twice: workers must not show in it.
func TestSameBytesEachTime(t *testing.T) {
	path := filepath.Join(fixtures, "kernel.amd64")
	first := pageOf(t, open(t, path, classify.Linux612, classify.ISA))
	if pageOf(t, open(t, path, classify.Linux612, classify.ISA)) != first {
		t.Error("the same file gives two pages")
	}
}

// TestEmbedsAllThatItNeeds looks for addresses of a network in the page.
func TestEmbedsAllThatItNeeds(t *testing.T) {
	page := pageOf(t, open(t, filepath.Join(fixtures, "functions.amd64"), classify.ISA))
	for _, m := range regexp.MustCompile(`(?i)(src|href|url)\s*[=(]\s*["']?(https?:|//)[^"')\s]*`).FindAllString(page, -1) {
		t.Errorf("the page refers to %s", m)
	}
	if !strings.Contains(page, "Content-Security-Policy") || !strings.Contains(page, "default-src 'none'") {
		t.Error("the page does not forbid itself the network")
	}
	for _, left := range []string{"{{title}}", "{{style}}", "{{data}}"} {
		if strings.Contains(page, left) {
			t.Errorf("%s is left in the page", left)
		}
	}
}
