package events_test

import (
	"math"
	"strings"
	"sync"
	"testing"

	"xol/arch/amd64"
	"xol/events"
)

// The numbers and the drawing are those of the example for hist in bpftrace's
// reference guide: what kretprobe:vfs_read returned.
func TestHistogramDrawing(t *testing.T) {
	var h events.Histogram
	for _, row := range []struct {
		value int64
		n     int
	}{
		{-1, 117}, {0, 5}, {1, 325}, {2, 6}, {4, 3}, {8, 495}, {16, 35}, {32, 25}, {64, 21},
		{128, 1}, {256, 3}, {512, 2}, {1024, 1}, {2048, 2},
	} {
		for i := range row.n {
			v := row.value
			if v > 1 && i%2 == 1 {
				v += v - 1 // the last number of the row
			}
			h.AddSigned(v)
		}
	}
	want := strings.TrimPrefix(`
(..., 0)             117 |@@@@@@@@@@@@                                        |
[0]                    5 |                                                    |
[1]                  325 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@                  |
[2, 4)                 6 |                                                    |
[4, 8)                 3 |                                                    |
[8, 16)              495 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
[16, 32)              35 |@@@                                                 |
[32, 64)              25 |@@                                                  |
[64, 128)             21 |@@                                                  |
[128, 256)             1 |                                                    |
[256, 512)             3 |                                                    |
[512, 1K)              2 |                                                    |
[1K, 2K)               1 |                                                    |
[2K, 4K)               2 |                                                    |
`, "\n")
	if got := h.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestQuantile(t *testing.T) {
	var h events.Histogram
	if rows := h.Rows(); len(rows) != 0 || events.Quantile(rows, 0.5) != (events.Row{}) {
		t.Errorf("rows of nothing: %v", rows)
	}
	h.AddSigned(-4) // has no row
	h.AddMany(0, 10)
	h.AddMany(3, 80)
	h.AddMany(9, 9)
	h.Add(math.MaxUint64)
	rows := h.Rows()
	if first, last := rows[0], rows[len(rows)-1]; len(rows) != 65 || first != (events.Row{N: 10}) || last.Low != 1<<63 || last.High != math.MaxUint64 {
		t.Errorf("%d rows, from %v to %v", len(rows), first, last)
	}
	for _, c := range []struct {
		q    float64
		want events.Row
	}{
		{0, events.Row{N: 10}}, {0.1, events.Row{N: 10}}, {0.11, events.Row{Low: 2, High: 3, N: 80}},
		{0.5, events.Row{Low: 2, High: 3, N: 80}}, {0.99, events.Row{Low: 8, High: 15, N: 9}}, {1, events.Row{Low: 1 << 63, High: math.MaxUint64, N: 1}},
	} {
		if got := events.Quantile(rows, c.q); got != c.want {
			t.Errorf("%v: %v, want %v", c.q, got, c.want)
		}
	}
}

func TestHistogramRows(t *testing.T) {
	for _, c := range []struct {
		value uint64
		want  string
	}{
		{3, "[2, 4)"}, {1 << 19, "[512K, 1M)"}, {1 << 20, "[1M, 2M)"}, {1<<30 - 1, "[512M, 1G)"},
		{1 << 40, "[1T, 2T)"}, {1 << 50, "[1P, 2P)"}, {1 << 60, "[1E, 2E)"}, {math.MaxUint64, "[8E, 16E)"},
	} {
		var h events.Histogram
		h.Add(c.value)
		if got := h.String(); !strings.HasPrefix(got, c.want+" ") || strings.Count(got, "\n") != 1 {
			t.Errorf("%d: %s, want %s", c.value, got, c.want)
		}
	}
	var empty events.Histogram
	if got := empty.String(); got != "" {
		t.Errorf("an empty histogram is %q", got)
	}
}

func TestHistogramOfValues(t *testing.T) {
	g := testGuest(t, amd64.ISA{})
	e, err := events.Parse(`p vfs_read \-1:s8 \-1:u8 \"text" $arg3 +0($arg3) +0($arg1):u8[2]`, events.Options{ISA: amd64.ISA{}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := events.Compile(&e, amd64.ISA{}, events.Options{})
	if err != nil {
		t.Fatal(err)
	}
	values, err := p.Record(&events.Hit{Registers: g, Memory: g})
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{"(..., 0)", "[128, 256)", "", "[512K, 1M)", "", ""}
	for i, want := range rows {
		var h events.Histogram
		if ok := h.AddValue(&values[i]); ok != (want != "") || !strings.HasPrefix(h.String(), want) {
			t.Errorf("%s: %v, %s", values[i].String(), ok, h.String())
		}
	}
}

func TestCounts(t *testing.T) {
	var c events.Counts
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				c.Add("vfs_read")
			}
			c.Add("b")
			c.Add("a")
		})
	}
	wg.Wait()
	if got, want := c.String(), "@[a]: 4\n@[b]: 4\n@[vfs_read]: 400\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLatency(t *testing.T) {
	var l events.Latency
	l.Enter(1, "f", 100)
	l.Enter(2, "f", 110)
	l.Enter(1, "f", 120) // f calls itself
	l.Enter(1, "g", 130)
	for _, c := range []struct {
		task     uint64
		function string
		counter  uint64
		want     uint64
		ok       bool
	}{
		{1, "g", 131, 1, true},
		{1, "f", 150, 30, true},
		{1, "f", 200, 100, true},
		{1, "f", 210, 0, false},
		{3, "f", 220, 0, false},
	} {
		if got, ok := l.Leave(c.task, c.function, c.counter); got != c.want || ok != c.ok {
			t.Errorf("%+v: %d, %v", c, got, ok)
		}
	}
	if got := l.Drop(2); got != 1 {
		t.Errorf("dropped %d", got)
	}
	if got := l.Lost(); got != 2 {
		t.Errorf("lost %d", got)
	}
	bar := strings.Repeat("@", 52)
	want := "@[f]:\n" +
		"[16, 32)               1 |" + bar + "|\n" +
		"[32, 64)               0 |" + strings.Repeat(" ", 52) + "|\n" +
		"[64, 128)              1 |" + bar + "|\n" +
		"@[g]:\n" +
		"[1]                    1 |" + bar + "|\n"
	if got := l.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
