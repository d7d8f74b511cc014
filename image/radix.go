package image

// radixSort sorts s by key, stably. The keys of addresses differ in few bits,
// so that a handful of passes over the list is all it takes.
func radixSort[T any](s []T, key func(*T) uint64) {
	if len(s) < 2 {
		return
	}
	const (
		digit = 11
		mask  = 1<<digit - 1
	)
	r := keyRange(s, key)
	if r.sorted {
		return
	}
	from, to := s, make([]T, len(s))
	for shift := 0; shift < 64 && r.span>>shift != 0; shift += digit {
		var next [mask + 1]int
		for i := range from {
			next[(key(&from[i])-r.lo)>>shift&mask]++
		}
		sum := 0
		for d, n := range next {
			next[d] = sum
			sum += n
		}
		for i := range from {
			d := (key(&from[i]) - r.lo) >> shift & mask
			to[next[d]] = from[i]
			next[d]++
		}
		from, to = to, from
	}
	// from[:r.high] is the upper half of the numbers.
	n := copy(to, from[r.high:])
	copy(to[n:], from[:r.high])
	if &to[0] != &s[0] {
		copy(s, to)
	}
}

// keys is what is known of a list's keys.
type keys struct {
	lo, span uint64 // all are in [lo, lo+span], modulo 1<<64
	high     int    // how many of these come first but are the larger numbers
	sorted   bool
}

// keyRange finds the shortest range of the keys: kernels have addresses near 0,
// of what each CPU has its own copy of, and others near 1<<64.
func keyRange[T any](s []T, key func(*T) uint64) keys {
	lo, hi := key(&s[0]), key(&s[0])
	slo, shi := int64(lo), int64(hi)
	last, sorted, negative := lo, true, 0
	for i := range s {
		k := key(&s[i])
		sorted = sorted && k >= last
		last = k
		lo, hi = min(lo, k), max(hi, k)
		slo, shi = min(slo, int64(k)), max(shi, int64(k))
		if int64(k) < 0 {
			negative++
		}
	}
	if span := uint64(shi - slo); span < hi-lo {
		return keys{lo: uint64(slo), span: span, high: negative, sorted: sorted}
	}
	return keys{lo: lo, span: hi - lo, sorted: sorted}
}
