package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// sample is a measurement of a round.
type sample struct {
	round int
	value float64
}

// samples are the measurements, by benchmark and unit.
type samples struct {
	all map[[2]string][]sample
}

var cpus = regexp.MustCompile(`-\d+$`)

// read adds what benchmarks have printed. Lines "peer: version" go to versions.
func (s *samples) read(r io.Reader, round int, versions map[string]string) error {
	if s.all == nil {
		s.all = map[[2]string][]sample{}
	}
	in := benchfmt.NewReader(r, "")
	for in.Scan() {
		result, ok := in.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		for _, c := range result.Config {
			if c.File {
				versions[c.Key] = string(c.Value)
			}
		}
		name := cpus.ReplaceAllString(string(result.Name), "")
		for _, v := range result.Values {
			value, unit := v.Value, v.Unit
			if v.OrigUnit != "" { // benchfmt turns nanoseconds into seconds
				value, unit = v.OrigValue, v.OrigUnit
			}
			key := [2]string{name, unit}
			s.all[key] = append(s.all[key], sample{round, value})
		}
	}
	return in.Err()
}

// last returns the newest measurement; 0 where there is none.
func (s *samples) last(name, unit string) float64 {
	list := s.all[[2]string{name, unit}]
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].value
}

// spread is what several measurements come to.
type spread struct{ Median, Min, Max float64 }

func spreadOf(values []float64) (s spread, ok bool) {
	if len(values) == 0 {
		return s, false
	}
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	return spread{(values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]}, true
}

// of returns what was measured of a benchmark.
func (s *samples) of(name, unit string) (spread, bool) {
	var values []float64
	for _, x := range s.all[[2]string{name, unit}] {
		values = append(values, x.value)
	}
	return spreadOf(values)
}

// ratio returns by how much one benchmark is more than another in the same rounds.
func (s *samples) ratio(more, less, unit string) (spread, bool) {
	base := map[int]float64{}
	for _, x := range s.all[[2]string{less, unit}] {
		base[x.round] = x.value
	}
	var ratios []float64
	for _, x := range s.all[[2]string{more, unit}] {
		if b := base[x.round]; b > 0 && x.value > 0 {
			ratios = append(ratios, x.value/b)
		}
	}
	return spreadOf(ratios)
}

// number writes three digits of a number.
func number(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		s := fmt.Sprintf("%.0f", v)
		for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func (s spread) String() string { return number(s.Median) }

// Range writes the least and the most.
func (s spread) Range() string {
	return strings.Join([]string{number(s.Min), number(s.Max)}, " … ")
}
