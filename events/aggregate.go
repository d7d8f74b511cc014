package events

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Counts counts by key: hits of each function, or of each value of an argument
// if the keys are Value.String. The zero value counts nothing yet. It is safe
// for concurrent use.
type Counts struct {
	mu sync.Mutex
	n  map[string]uint64
}

// Add counts one more of key.
func (c *Counts) Add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]uint64{}
	}
	c.n[key]++
}

// Count is how often a key was counted.
type Count struct {
	Key string
	N   uint64
}

// Sorted returns the counts, smallest first and then by key.
func (c *Counts) Sorted() []Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Count, 0, len(c.n))
	for key, n := range c.n {
		all = append(all, Count{key, n})
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.N, b.N), strings.Compare(a.Key, b.Key))
	})
	return all
}

// String returns a line "@[key]: n" for each key, in the order of Sorted.
func (c *Counts) String() string {
	var b strings.Builder
	for _, count := range c.Sorted() {
		fmt.Fprintf(&b, "@[%s]: %d\n", count.Key, count.N)
	}
	return b.String()
}

// Histogram counts numbers by their magnitude: negative ones, 0, 1, and from
// one power of two to the next. The zero value has counted nothing. It is safe
// for concurrent use.
type Histogram struct {
	mu      sync.Mutex
	buckets [2 + 64]uint64 // negative, 0, and numbers of 1 to 64 bits
}

// Add counts a number.
func (h *Histogram) Add(v uint64) { h.AddMany(v, 1) }

// AddMany counts n numbers of v's magnitude.
func (h *Histogram) AddMany(v, n uint64) { h.add(1+bits.Len64(v), n) }

// AddSigned counts a number that may be negative.
func (h *Histogram) AddSigned(v int64) {
	if v < 0 {
		h.add(0, 1)
		return
	}
	h.Add(uint64(v))
}

// AddValue counts a recorded value, and says whether it is a number.
func (h *Histogram) AddValue(v *Value) bool {
	if !v.isNumber() {
		return false
	}
	if v.format == asSigned {
		h.AddSigned(int64(v.Items[0].Number))
	} else {
		h.Add(v.Items[0].Number)
	}
	return true
}

func (h *Histogram) add(bucket int, n uint64) {
	h.mu.Lock()
	h.buckets[bucket] += n
	h.mu.Unlock()
}

// Row is a row of a histogram.
type Row struct {
	Low, High uint64 // the least and the greatest number that counts there
	N         uint64
}

// Rows returns the rows for numbers that are not negative, from the first that has
// something to the last.
func (h *Histogram) Rows() []Row {
	h.mu.Lock()
	defer h.mu.Unlock()
	var rows []Row
	used := 0
	for i, n := range h.buckets[1:] {
		row := Row{N: n}
		if i > 0 {
			row.Low, row.High = 1<<(i-1), 1<<(i-1)|(1<<(i-1)-1)
		}
		if n > 0 || len(rows) > 0 {
			rows = append(rows, row)
		}
		if n > 0 {
			used = len(rows)
		}
	}
	return rows[:used]
}

// Quantile returns the row that holds the number which a share q of all numbers, from
// 0 to 1, are not greater than. It is the zero value where nothing was counted.
func Quantile(rows []Row, q float64) Row {
	var all, below uint64
	for i := range rows {
		all += rows[i].N
	}
	for i := range rows {
		if below += rows[i].N; rows[i].N > 0 && float64(below) >= q*float64(all) {
			return rows[i]
		}
	}
	return Row{}
}

// barWidth is that of bpftrace's histograms, in characters.
const barWidth = 52

// String draws the histogram as bpftrace does, from the first row that has
// something to the last:
//
//	[2, 4)                 3 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
//	[4, 8)                 6 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
func (h *Histogram) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, last, most := len(h.buckets), -1, uint64(0)
	for i, n := range h.buckets {
		if n > 0 {
			first, last, most = min(first, i), i, max(most, n)
		}
	}
	var b strings.Builder
	for i := first; i <= last; i++ {
		hi, lo := bits.Mul64(h.buckets[i], barWidth)
		width, _ := bits.Div64(hi, lo, most) // at most barWidth
		bar := strings.Repeat("@", int(width))
		fmt.Fprintf(&b, "%-16s%8d |%-*s|\n", bucketLabel(i), h.buckets[i], barWidth, bar)
	}
	return b.String()
}

func bucketLabel(i int) string {
	switch i {
	case 0:
		return "(..., 0)"
	case 1:
		return "[0]"
	case 2:
		return "[1]"
	}
	return "[" + powerOfTwo(i-2) + ", " + powerOfTwo(i-1) + ")"
}

// powerOfTwo returns 2 to the n in multiples of 1024: "512", "1K", "2M".
func powerOfTwo(n int) string {
	const units = " KMGTPE"
	text := strconv.Itoa(1 << (n % 10))
	if n < 10 {
		return text
	}
	return text + units[n/10:n/10+1]
}

// Latency measures how much a counter, of executed instructions or of time,
// advances between the entry and the return of functions. The zero value has
// measured nothing. It is safe for concurrent use.
type Latency struct {
	mu      sync.Mutex
	open    map[call][]uint64
	results map[string]*Histogram
	lost    uint64
}

// call is a function in a task.
type call struct {
	task     uint64
	function string
}

// Enter notes that the task entered the function when the counter had this
// value. Calls may nest.
func (l *Latency) Enter(task uint64, function string, counter uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[call][]uint64{}
	}
	key := call{task, function}
	l.open[key] = append(l.open[key], counter)
}

// Leave counts the return of the innermost of those calls, and returns how much
// the counter advanced. ok says whether its entry was seen.
func (l *Latency) Leave(task uint64, function string, counter uint64) (advance uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := call{task, function}
	calls := l.open[key]
	if len(calls) == 0 {
		l.lost++
		return 0, false
	}
	advance = counter - calls[len(calls)-1]
	if len(calls) == 1 {
		delete(l.open, key)
	} else {
		l.open[key] = calls[:len(calls)-1]
	}
	if l.results == nil {
		l.results = map[string]*Histogram{}
	}
	if l.results[function] == nil {
		l.results[function] = new(Histogram)
	}
	l.results[function].Add(advance)
	return advance, true
}

// Drop forgets the calls of a task that ends without returning from them, and
// returns how many they were.
func (l *Latency) Drop(task uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for key, calls := range l.open {
		if key.task == task {
			n += len(calls)
			delete(l.open, key)
		}
	}
	return n
}

// Lost returns how many returns had no entry.
func (l *Latency) Lost() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// String returns a histogram for each function, in the order of their names.
func (l *Latency) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	functions := make([]string, 0, len(l.results))
	for f := range l.results {
		functions = append(functions, f)
	}
	slices.Sort(functions)
	var b strings.Builder
	for _, f := range functions {
		fmt.Fprintf(&b, "@[%s]:\n%s", f, l.results[f])
	}
	return b.String()
}
