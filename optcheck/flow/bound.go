package flow

import "slices"

const (
	maxMask       = 1 << 12 // more than the mask of any index
	maxOrigins    = 12      // more than compilers need between a comparison and an index
	maxBoundSteps = 1 << 16 // instructions looked at for one bound
	maxMeets      = 4       // times that ways meet between a comparison and a jump
	maxPairs      = 16      // pairs of locations that may hold the same
)

// origin is a number that an index was made from: the index is its bits in mask
// plus add.
type origin struct {
	// Instruction at sets the location, or, where at is negative, the location
	// holds the number before instruction ^at, where ways meet.
	at int32
	location
	mask  uint64
	add   uint64
	check uint64 // address of the instruction that masks it
	// signed is not 0 where the index has the sign of so many bits of the number.
	// Fewer bits of that then tell nothing of the index.
	signed uint8
}

// origins are what an index was made from, the index itself first.
type origins struct {
	list [maxOrigins]origin
	n    int
}

// originsOf goes back from before instruction j over what x was made from:
// copies, extensions, masks and additions of constants.
func (t *Tracer) originsOf(x origin, j int) origins {
	at, found := t.definition(&x.location, j)
	return t.originsFrom(x, at, found)
}

// originsAfter is originsOf from after instruction p.
func (t *Tracer) originsAfter(x origin, p int) origins {
	if t.sets(p, &x.location) {
		return t.originsFrom(x, p, true)
	}
	return t.originsOf(x, p)
}

// originsFrom is originsOf where x is set by instruction at, or, where that is not
// found, ways meet before it.
func (t *Tracer) originsFrom(x origin, at int, found bool) (a origins) {
	for {
		x.at = int32(at)
		if !found {
			x.at = ^x.at
		}
		a.list[a.n] = x
		a.n++
		if !found || a.n == len(a.list) || !t.source(&x, at) {
			return a
		}
		at, found = t.definition(&x.location, at)
	}
}

// originOf returns the origin that register r is, with the bits in mask.
func originOf(r Reg, mask, check uint64) origin {
	return origin{location: location{reg: r}, mask: mask, check: check}
}

// source makes x what instruction p, which sets it, takes it from.
func (t *Tracer) source(x *origin, p int) bool {
	if x.reg == NoReg {
		r, ok := t.stored(p, &x.location)
		x.location = location{reg: r}
		return ok
	}
	e := t.isa.Result(&t.insts[p], x.reg)
	return t.comesFrom(x, &e, t.insts[p].Addr)
}

// comesFrom makes x, which is e, what e is made from.
func (t *Tracer) comesFrom(x *origin, e *Expr, check uint64) bool {
	if e.Part > 0 && x.mask&^(unmasked>>(64-e.Part)) != 0 {
		return false
	}
	switch e.Op {
	case OpAdd:
		if e.B != NoReg || e.A == NoReg || e.K != 0 && x.mask != unmasked {
			return false
		}
		x.add += e.K
		x.location = location{reg: e.A}
		return true
	case OpField:
		if e.From != 0 || e.Shift != 0 {
			return false
		}
		if !e.Signed || e.Bits >= 32 {
			x.narrow(unmasked>>(64-e.Bits), check)
		} else if x.mask != unmasked || x.signed != 0 {
			return false
		} else {
			x.signed = e.Bits
		}
		x.location = location{reg: e.A}
		return true
	case OpMask:
		x.narrow(e.K, check)
		x.location = location{reg: e.A}
		return true
	case OpLoad:
		if e.Signed && e.Width < 4 {
			return false
		}
		x.narrow(unmasked>>(64-8*e.Width), check)
		x.location = location{reg: NoReg, base: e.A, index: e.B, shift: e.Shift, width: e.Width, shared: true, disp: e.K}
		return true
	}
	return false
}

// narrow leaves only the bits in mask. An index is taken to have 32 bits.
func (x *origin) narrow(mask, check uint64) {
	if mask&(1<<32-1) != 1<<32-1 && x.mask&^mask != 0 && x.signed == 0 {
		x.mask, x.check = x.mask&mask, check
	}
}

// boundLoop stands for the limit of a number that a loop leaves as it was: that
// which it has on other ways. As a number it is less than any.
const boundLoop = BoundMask + 1

// limit is what is known of a number: it is at least first and at most last, if
// it is below 2^63 in size.
type limit struct {
	first, last int64
	check       uint64
	bound       Bound
	looped      bool // some way comes back to where the limit is asked for
}

// isKnown reports whether there is a limit on some way, be it not on a loop.
func (l limit) isKnown() bool { return l.bound != BoundNone && l.bound != boundLoop }

// plus returns the limit of a number that is greater by n.
func (l limit) plus(n uint64) limit {
	l.first += int64(n)
	l.last += int64(n)
	return l
}

// either returns the limit of a number that has one of two.
func (l limit) either(o limit) limit {
	looped := l.looped || o.looped || o.bound == boundLoop
	l.looped, o.looped = looped, looped
	switch {
	case l.bound == BoundNone, l.bound == boundLoop:
		return o
	case o.bound == boundLoop:
		return l
	case o.last > l.last:
		l.last, l.check, l.bound = o.last, o.check, o.bound
	}
	l.first = min(l.first, o.first)
	return l
}

// masked returns the limit that the bits tell that are left of the index. None has
// fewer than the last origin: the bits of each are among those of the one before.
func (a *origins) masked() limit {
	x := &a.list[a.n-1]
	if x.mask >= maxMask {
		return limit{}
	}
	return limit{last: int64(x.mask), check: x.check, bound: BoundMask}.plus(x.add)
}

// unsigned reports whether a is below the half of what so many bits hold.
func (a *origins) unsigned(bits uint8) bool {
	for i := range a.list[:a.n] {
		if x := &a.list[i]; x.add == 0 && x.mask < 1<<(bits-1) {
			return true
		}
	}
	return false
}

// sameNumber reports whether x and y are of one number, so that what is known of
// y's bits holds for those of x.
func (t *Tracer) sameNumber(x, y *origin) bool {
	switch {
	case x.at != y.at || x.mask != y.mask && (y.mask != unmasked || x.add != 0 || y.add != 0):
		return false
	case y.signed != 0 && x.signed != y.signed:
		return false
	case x.location == y.location:
		t.equal = true
		return true
	case x.at < 0 && t.equalOnAll(x.location, y.location, int(^x.at)):
		return true
	}
	return t.sameCell(x, y)
}

// sameCell reports whether x and y are in one cell of memory, at two registers that
// hold the same.
func (t *Tracer) sameCell(x, y *origin) bool {
	w := x.location
	if w.base = y.base; x.at < 0 || w != y.location || w.base == NoReg || x.base == NoReg {
		return false
	}
	return t.equalOn(location{reg: x.base}, location{reg: y.base}, int(x.at))
}

// pair is two locations that may hold the same before instruction at.
type pair struct {
	x, y location
	at   int
}

// equalOnAll reports whether x and y hold the same before instruction j, where
// ways meet: whether they do on each of them. A way that comes back to where it
// has been looked at changes neither. Where only indirect jumps lead to j, they
// leave what the others bring there. What has been found of pairs is kept as long as
// it may be part of an answer; t.equal says that there was some way at all.
func (t *Tracer) equalOnAll(x, y location, j int) bool {
	m, here, before, was := t.marks[j], pair{x, y, j}, len(t.pairs), t.equal
	if slices.Contains(t.pairs, here) {
		return true
	}
	if before == maxPairs || m&(markEntry|markLabel) != 0 {
		return false
	}
	t.pairs = append(t.pairs, here)
	equal := m&markFalls == 0 || t.equalOn(x, y, j-1)
	for b := t.into[j]; b != 0 && equal; b = t.chain[b-1] {
		equal = t.equalOn(x, y, int(b-1))
	}
	if !equal {
		t.pairs, t.equal = t.pairs[:before], was
	}
	return equal
}

// equalOn reports whether x and y hold the same on the way over instruction p.
func (t *Tracer) equalOn(x, y location, p int) bool {
	a := t.originsAfter(origin{location: x, mask: unmasked}, p)
	b := t.originsAfter(origin{location: y, mask: unmasked}, p)
	for i := range a.list[:a.n] {
		for k := range b.list[:b.n] {
			ax, by := &a.list[i], &b.list[k]
			if ax.add == by.add && ax.mask == by.mask && ax.signed == by.signed && t.sameNumber(ax, by) {
				return true
			}
		}
	}
	return false
}

// isWithin is sameNumber where y has fewer bits of what x has, but all that there
// are: on each way to where ways meet, there are no more.
func (t *Tracer) isWithin(x, y *origin, meets int) bool {
	if x.at >= 0 || x.at != y.at || x.location != y.location || y.add != 0 || y.signed != 0 {
		return false
	}
	a := origins{n: 1}
	a.list[0] = origin{at: x.at, location: x.location, mask: unmasked}
	l := t.limitedOnAll(&a, int(^x.at), meets)
	if !l.isKnown() {
		l = t.maskedOnAll(&a.list[0], meets)
	}
	return l.isKnown() && l.first >= 0 && uint64(l.last) <= y.mask
}

// maskedOnAll returns the limit that the bits tell which are left of x by whatever
// sets it, on all ways to where ways meet.
func (t *Tracer) maskedOnAll(x *origin, meets int) (most limit) {
	if x.at >= 0 || meets == maxMeets || t.marks[^x.at]&markLabel != 0 {
		return limit{}
	}
	for k := range t.meets[:meets] {
		if m := &t.meets[k]; m.at == x.at && m.location == x.location {
			if x.add != m.add || x.mask != m.mask {
				return limit{}
			}
			return limit{bound: boundLoop}
		}
	}
	t.meets[meets] = *x
	start, ok := t.definitions(meeting{x.location, ^x.at}, allWays)
	end := len(t.found)
	for n := start; n < end && ok; n++ {
		l := t.maskedBy(*x, t.found[n], meets+1)
		most, ok = most.either(l), l.bound != BoundNone
	}
	if t.found = t.found[:start]; !ok {
		return limit{}
	}
	return most
}

// maskedBy is maskedOnAll where definition d sets x.
func (t *Tracer) maskedBy(x origin, d position, meets int) limit {
	if d.at == none {
		return limit{}
	}
	x.disp = d.disp
	a := t.originsFrom(x, int(d.at), true)
	if l := a.masked(); l.bound != BoundNone {
		return l
	}
	return t.maskedOnAll(&a.list[a.n-1], meets)
}

// maskOf returns the use u, in which the register does not count, with the bits that
// are left of it.
func (t *Tracer) maskOf(u *use) use {
	if u.reg == NoReg {
		return *u
	}
	a := t.originsOf(originOf(u.reg, u.mask, u.check), int(u.at))
	l := a.masked()
	if l.bound == BoundNone || l.first != 0 {
		return noUse
	}
	return use{reg: NoReg, mask: uint64(l.last), check: l.check}
}

// compared returns the limit of an index with the origins a that follows from a
// number with the origins b being 0, if they are related.
func (t *Tracer) compared(a, b *origins, meets int) (l limit, related bool) {
	for i := range a.list[:a.n] {
		x := &a.list[i]
		for k := range b.list[:b.n] {
			t.pairs, t.equal = t.pairs[:0], false
			if y := &b.list[k]; t.sameNumber(x, y) && t.equal || t.isWithin(x, y, meets) {
				return limit{bound: BoundCompare}.plus(x.add - y.add), true
			}
		}
	}
	return l, false
}

// bound enters how many entries the table has by which instruction i jumps to
// v.
func (t *Tracer) bound(table *Table, i int, v *value) {
	t.steps = maxBoundSteps
	l := t.indexLimit(&v.index, i)
	if l.first = max(l.first, 0); v.base == v.number {
		l.first = 0 // an index is not negative, and entries relative to the table start with the first
	}
	if l.isKnown() && l.first <= l.last && l.last < maxCount {
		table.Addr += uint64(l.first) * uint64(table.Width)
		table.Count, table.Check, table.Bound = int(l.last-l.first)+1, l.check, l.bound
	}
}

// indexLimit returns the limit of the index u of the jump of instruction i.
func (t *Tracer) indexLimit(u *use, i int) limit {
	x := originOf(u.reg, u.mask, u.check)
	if u.reg == NoReg {
		a := origins{list: [maxOrigins]origin{x}, n: 1}
		return a.masked()
	}
	a := t.originsOf(x, int(u.at))
	start := i
	if !t.straight(i, int(u.at)) {
		start = int(u.at)
	}
	l := t.limited(&a, start, 0)
	if !l.isKnown() {
		l = t.maskedOnAll(&a.list[a.n-1], 0)
	}
	return l
}

// straight reports whether there is only one way from instruction p to j.
func (t *Tracer) straight(j, p int) bool {
	for range maxMask {
		if j == p {
			return true
		}
		before, _, ok := t.before(j)
		if !ok {
			return false
		}
		j = before
	}
	return false
}

// limited returns the limit of a number with the origins a before instruction j.
func (t *Tracer) limited(a *origins, j, meets int) limit {
	p, taken, ok := t.before(j)
	if !ok {
		return t.limitedOnAll(a, j, meets)
	}
	return t.limitedAfter(a, p, taken, meets)
}

// limitedAfter is limited after instruction p, a branch that was taken or not.
func (t *Tracer) limitedAfter(a *origins, p int, taken bool, meets int) limit {
	var known [8]Condition
	for i := range known {
		known[i].Holds = AnyRelation
	}
	seen := false
	for {
		inst := &t.insts[p]
		changes := t.changes(p)
		if seen && changes&(Flags-1|MemoryWritten) != 0 {
			return a.masked()
		}
		l, done := t.compare(a, p, &known, meets)
		if l.bound != BoundNone {
			return l
		}
		seen = seen || done
		for field := range known {
			if changes>>(registers+field)&1 != 0 {
				known[field] = Condition{Holds: AnyRelation}
			}
		}
		if inst.FallsThrough() && inst.IsBranch() && inst.Target != inst.Next() {
			t.learn(&known, p, taken)
		}
		before, was, ok := t.before(p)
		switch {
		case ok:
		case seen:
			return a.masked()
		default:
			return t.limitedOnAll(a, p, meets)
		}
		p, taken = before, was
	}
}

// learn takes in what follows from a conditional branch.
func (t *Tracer) learn(known *[8]Condition, p int, taken bool) {
	c, ok := t.isa.Condition(&t.insts[p], taken)
	if !ok {
		return
	}
	switch k := &known[c.Field]; {
	case k.Holds == AnyRelation, c.Signed == k.Signed:
		k.Holds, k.Signed = k.Holds&c.Holds, c.Signed
	}
}

// limitedOnAll is limited where ways meet before instruction j: the number must
// be limited on each of them.
func (t *Tracer) limitedOnAll(a *origins, j, meets int) limit {
	i := 0
	for i < a.n && a.list[i].at != ^int32(j) {
		i++
	}
	if i == a.n || meets == maxMeets || t.marks[j]&(markEntry|markLabel) != 0 {
		return a.masked()
	}
	var most limit
	x := a.list[i]
	for k := range t.meets[:meets] {
		if m := &t.meets[k]; m.at == x.at && m.location == x.location {
			if x.add != 0 || x.mask != m.mask {
				return a.masked() // the loop changes it
			}
			return limit{bound: boundLoop}
		}
	}
	t.meets[meets] = x
	way := func(p int, taken bool) bool {
		l := t.limitedOn(x, p, taken, meets+1)
		most = most.either(l)
		return l.bound != BoundNone
	}
	if t.marks[j]&markFalls != 0 && !way(j-1, false) {
		return a.masked()
	}
	for b := t.into[j]; b != 0; b = t.chain[b-1] {
		if !way(int(b-1), true) {
			return a.masked()
		}
	}
	if most.bound == BoundNone || x.add != 0 && (most.bound == BoundCompare || most.looped) {
		return a.masked() // what is counted down over several ways may have fewer values, in a loop more
	}
	return most.plus(x.add)
}

// limitedOn returns the limit of x on the way over instruction p.
func (t *Tracer) limitedOn(x origin, p int, taken bool, meets int) limit {
	x.add = 0
	b := t.originsAfter(x, p)
	return t.limitedAfter(&b, p, taken, meets)
}

// compare returns the limit of a number with the origins a that follows from
// instruction p being a comparison, with what is known after it. done says that it
// is about the number: only comparisons right before it belong to the same switch.
func (t *Tracer) compare(a *origins, p int, known *[8]Condition, meets int) (l limit, done bool) {
	c, ok := t.isa.Compare(&t.insts[p])
	if !ok {
		return l, false
	}
	k, holds := known[c.Field], c.Passed
	if holds == AnyRelation {
		holds = k.Holds
	}
	if holds == AnyRelation || holds == Less|Greater {
		return l, false
	}
	b := t.comparedOrigins(&c, p)
	l, related := t.compared(a, &b, meets)
	n, ok := t.upper(&c, p)
	if c.B != NoReg && !related {
		o := t.originsOf(originOf(c.B, unmasked, 0), p)
		_, related = t.compared(a, &o, meets)
		ok = false
	}
	if holds == Less {
		n--
	}
	if !related || !ok || holds&Greater != 0 || n >= maxCount || k.Signed && !b.unsigned(c.Width) {
		return limit{}, related && (holds&Greater != 0 || !ok)
	}
	l.last += int64(n)
	l.check = t.insts[p].Addr
	return l, true
}

// upper returns the number that instruction p compares with.
func (t *Tracer) upper(c *Comparison, p int) (n uint64, ok bool) {
	v := t.resolve(t.operand(c.B, p))
	return (v.number + c.K) & (unmasked >> (64 - c.Width)), v.kind == kindConstant
}

// comparedOrigins returns the origins of what c compares before instruction p.
func (t *Tracer) comparedOrigins(c *Comparison, p int) (b origins) {
	x := origin{mask: unmasked}
	x.narrow(unmasked>>(64-c.Width), t.insts[p].Addr)
	if t.comesFrom(&x, &c.X, t.insts[p].Addr) {
		b = t.originsOf(x, p)
	}
	return b
}
