package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// hostile are strings that a format could trip over.
var hostile = []string{
	"", "plain", `quo"te`, `back\slash`, "tab\tnewline\nreturn\r", "nul\x00bell\a",
	"ünïcödé", "\u2028line separator", "bad\xffutf8", "half\xc3", "<a & b>", "comma,space", " leading", "operator()<int>::x[abi:cxx11]",
}

func FuzzJSONString(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := appendJSONString(nil, s)
		var got string
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatalf("%q became %s: %v", s, encoded, err)
		}
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(std, &want); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%q reads as %q, encoding/json's as %q", s, got, want)
		}
	})
}

func FuzzCSVField(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var std bytes.Buffer
		w := csv.NewWriter(&std)
		w.Write([]string{"x", s})
		w.Flush()
		want, err := csv.NewReader(&std).Read()
		if err != nil {
			t.Fatal(err)
		}
		line := append(appendCSV([]byte("x,"), s), '\n')
		got, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil {
			t.Fatalf("%q became %q: %v", s, line, err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q reads as %q, encoding/csv's as %q", s, got, want)
		}
	})
}

// sample is the record that sampleFields encodes, as encoding/json sees it.
type sample struct {
	Name   string      `json:"name"`
	Size   int         `json:"size"`
	Set    bool        `json:"set"`
	Addr   string      `json:"addr"`
	Bytes  string      `json:"bytes"`
	Absent *string     `json:"absent,omitempty"`
	Group  *sampleSpan `json:"group,omitempty"`
	Last   string      `json:"last"`
}

type sampleSpan struct {
	From string `json:"from"`
	Len  int    `json:"len"`
}

func sampleFields(r *records, name string, grouped bool) {
	r.begin()
	r.str("name", name)
	r.num("size", -7)
	r.flag("set", true)
	r.addr("addr", 1<<63)
	r.bytes("bytes", []byte{0x0f, 0xff})
	r.only(false)
	r.str("absent", "never seen")
	r.only(grouped)
	r.open("group")
	r.addr("from", 0x10)
	r.num("len", 3)
	r.close()
	r.only(true)
	r.str("last", "end")
	r.end()
}

func wantSample(name string, grouped bool) sample {
	s := sample{Name: name, Size: -7, Set: true, Addr: "0x8000000000000000", Bytes: "0fff", Last: "end"}
	if grouped {
		s.Group = &sampleSpan{"0x10", 3}
	}
	return s
}

// encodeSamples writes n samples, every second one with its group.
func encodeSamples(t *testing.T, format string, n int) string {
	t.Helper()
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	s := newStream(w, format, "[", "\n]\n", func(r *records) { sampleFields(r, "", false) })
	for i := range n {
		r := records{format: format}
		sampleFields(&r, hostile[i%len(hostile)], i%2 == 1)
		if err := s.write(r.buf); err != nil {
			t.Fatal(err)
		}
	}
	s.close()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestRecordsAgreeWithEncodingJSON(t *testing.T) {
	const n = 20
	var lines strings.Builder
	var list []sample
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false)
	for i := range n {
		s := wantSample(hostile[i%len(hostile)], i%2 == 1)
		list = append(list, s)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
	}
	if got := encodeSamples(t, formatJSONL, n); got != lines.String() {
		t.Errorf("JSON lines:\n%s\nwant\n%s", got, &lines)
	}
	var got []sample
	if err := json.Unmarshal([]byte(encodeSamples(t, formatJSON, n)), &got); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		want := list[i]
		want.Name = strings.ToValidUTF8(want.Name, "\ufffd")
		if a, b := got[i], want; a.Name != b.Name || a.Addr != b.Addr || (a.Group == nil) != (b.Group == nil) {
			t.Errorf("element %d is %+v, want %+v", i, a, b)
		}
	}
}

func TestEmptyLists(t *testing.T) {
	const columns = "name,size,set,addr,bytes,absent,group_from,group_len,last\n"
	for format, want := range map[string]string{formatJSON: "[\n]\n", formatJSONL: "", formatCSV: columns} {
		if got := encodeSamples(t, format, 0); got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}

func TestCSVColumnsAreFixed(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(encodeSamples(t, formatCSV, 2))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"name", "size", "set", "addr", "bytes", "absent", "group_from", "group_len", "last"},
		{"", "-7", "true", "0x8000000000000000", "0fff", "", "", "", "end"},
		{"plain", "-7", "true", "0x8000000000000000", "0fff", "", "0x10", "3", "end"},
	}
	if !slices.EqualFunc(rows, want, slices.Equal[[]string]) {
		t.Errorf("got %q, want %q", rows, want)
	}
}
