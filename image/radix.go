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
	lo, hi, sorted := keyRange(s, key)
	if sorted {
		return
	}
	from, to := s, make([]T, len(s))
	for shift := 0; shift < 64 && (hi-lo)>>shift != 0; shift += digit {
		var next [mask + 1]int
		for i := range from {
			next[(key(&from[i])-lo)>>shift&mask]++
		}
		sum := 0
		for d, n := range next {
			next[d] = sum
			sum += n
		}
		for i := range from {
			d := (key(&from[i]) - lo) >> shift & mask
			to[next[d]] = from[i]
			next[d]++
		}
		from, to = to, from
	}
	if &from[0] != &s[0] {
		copy(s, from)
	}
}

// keyRange returns the smallest and largest key, and whether s is sorted.
func keyRange[T any](s []T, key func(*T) uint64) (lo, hi uint64, sorted bool) {
	lo, hi, sorted = key(&s[0]), key(&s[0]), true
	last := lo
	for i := range s {
		k := key(&s[i])
		sorted = sorted && k >= last
		last = k
		lo, hi = min(lo, k), max(hi, k)
	}
	return lo, hi, sorted
}
