package runtime

import (
	"slices"
	"sort"

	"xol/machine"
)

// take returns an instance for a call, the first one of it perhaps; nil where as
// many calls are going on as may be. Skipped ones are kept until their room is
// wanted.
func (r *tasks) take(t *task, p *returnProbe, first bool) *instance {
	if r.opt.Uprobes {
		if first && t.depth >= maxDepth {
			return nil
		}
		if len(t.calls) >= maxKept {
			r.reclaim(t, nil)
		}
	}
	if len(p.free) == 0 && p.made >= p.most(len(r.cpus)) {
		r.reclaim(t, p)
	}
	if n := len(p.free); n > 0 {
		in := p.free[n-1]
		p.free = p.free[:n-1]
		return in
	}
	if p.made >= p.most(len(r.cpus)) {
		return nil
	}
	p.made++
	return &instance{data: make([]byte, max(p.DataSize, 0))}
}

// drop takes the calls from the task that end together with call i: those that
// tail calls have chained to one. It returns the index of the first.
func (r *tasks) drop(t *task, i int) (first int) {
	end := i + 1
	for first = i; first > 0 && t.calls[first].to == r.returns.addr && t.calls[first-1].sp == t.calls[i].sp; {
		first--
	}
	for end < len(t.calls) && t.calls[end].to == r.returns.addr && t.calls[end].sp == t.calls[i].sp {
		end++
	}
	dropped := slices.Clone(t.calls[first:end])
	t.remove(first, end)
	for _, in := range dropped {
		in.recycle()
	}
	return first
}

// skip notes the calls that a longjmp has left: they have frames below the stack
// pointer of a call or return. So do calls on another stack, of a coroutine or a
// signal handler, and nothing tells them apart but memory that is not there
// between two stacks. Therefore the calls stay, and return as others where they do.
func (r *tasks) skip(t *task, sp uint64) {
	for _, in := range t.calls[t.below(sp):] {
		if !r.sameStack(in.sp, sp) {
			return
		}
		if !in.skipped {
			in.count(t, -1)
			in.skipped = true
		}
		sp = in.sp
	}
}

// sameStack reports whether all memory from lo to hi may be written: the two may
// be on one stack.
func (r *tasks) sameStack(lo, hi uint64) bool {
	for page := lo &^ (pageSize - 1); page < hi; page += pageSize {
		if r.m.Perm(page)&machine.PermWrite == 0 {
			return false
		}
	}
	return true
}

// dropReplaced recycles the calls that a longjmp has left at the very stack pointer
// of a new call that does not return to the trampoline. Where return addresses are
// on the stack, that of the new call has replaced theirs. Else such a call may be
// going on, of a function without a frame, but not one of the same function.
func (r *tasks) dropReplaced(t *task, sp uint64, entry *probe) {
	onStack := r.convention.Link < 0
	for i := t.below(sp) - 1; i >= 0 && t.calls[i].sp == sp; i-- {
		if t.calls[i].to != r.returns.addr && (onStack || t.calls[i].probe.entry.Addr == entry.Addr) {
			i = r.drop(t, i)
		}
	}
}

// reclaim recycles a call that has been skipped: one of p, where that is not nil;
// one whose return address is no longer on the stack, where that can be seen; else
// that of the lowest frame.
func (r *tasks) reclaim(t *task, p *returnProbe) {
	lowest := -1
	for i := len(t.calls) - 1; i >= 0; i-- {
		in := t.calls[i]
		if !in.skipped || p != nil && in.probe != p {
			continue
		}
		if r.overwritten(in) {
			r.drop(t, i)
			return
		}
		if lowest < 0 {
			lowest = i
		}
	}
	if lowest >= 0 {
		r.drop(t, lowest)
	}
}

// overwritten reports whether a call can be seen not to return to the trampoline
// any more.
func (r *tasks) overwritten(in *instance) bool {
	if r.convention.Link >= 0 {
		return false
	}
	to, err := r.m.ReadWord(in.sp)
	return err != nil || to != r.returns.addr
}

// callerOf returns where the latest call with the stack pointer sp returns to; ok
// is false where there is none.
func (r *tasks) callerOf(t *task, sp uint64) (to uint64, ok bool) {
	for i := t.below(sp) - 1; i >= 0 && t.calls[i].sp == sp; i-- {
		if to := t.calls[i].to; to != r.returns.addr {
			return to, true
		}
	}
	return 0, false
}

// realReturn returns where a call with the stack pointer sp, or with sp in its
// frame, really returns to, if its return address is the trampoline.
func (r *tasks) realReturn(t *task, sp, addr uint64) uint64 {
	if addr != r.returns.addr || addr == 0 {
		return addr
	}
	for i := t.below(sp) - 1; i >= 0; i-- {
		if to := t.calls[i].to; to != r.returns.addr {
			return to
		}
	}
	return addr
}

// RealReturnAddress returns what a stack walk of a task should report for the
// return address addr: never the trampoline. The word at is in the frame of the
// function that returns there, between the stack pointer that the function was
// called with and the one that it calls others with: on amd64 and arm64 the word
// that holds the return address, on ppc64 the one that the back chain leads to.
// In a function that has saved nothing yet it is the stack pointer.
func (r *tasks) RealReturnAddress(task, at, addr uint64) uint64 {
	if t := r.numbered[task]; t != nil {
		return r.realReturn(t, at, addr)
	}
	return addr
}

// nearTrampoline reports whether an address is one that a return to the trampoline
// may lead to where the function has added to it.
func (r *tasks) nearTrampoline(addr uint64) bool {
	return r.returns.addr != 0 && r.stubs.holds(addr) && addr >= r.stubs.page+trampolineOffset
}

// returns is the trampoline, and the calls that will return to it.
type returns struct {
	addr     uint64          // of the trampoline; 0 where there is none yet
	site     *site           // the instruction that returns to the real caller
	contexts []ReturnContext // of the handlers that run, by CPU
}

// instance is a call of a probed function that is going on.
type instance struct {
	probe   *returnProbe
	to      uint64 // where the call returns to: the trampoline, where another instance knows it
	sp      uint64 // the stack pointer at the entry
	data    []byte
	start   uint64 // the number of the start that it belongs to
	first   bool   // of those of a call, which is counted once
	skipped bool   // by a longjmp, as far as that can be seen
}

const (
	// minActive is the least number of calls that may be going on where the probe
	// does not say.
	minActive = 10
	// maxDepth is how many calls of functions with return probes may be going on in
	// a task of a user program [include/linux/uprobes.h, MAX_URETPROBE_DEPTH].
	maxDepth = 64
	// maxKept is how many instances a task of a user program has, those that have
	// been skipped included.
	maxKept = 1024
)

// live reports whether the probe is still attached.
func (in *instance) live() bool { return !in.probe.closed }

// recycle gives an instance back to its probe.
func (in *instance) recycle() {
	if in.live() {
		clear(in.data)
		in.probe.free = append(in.probe.free, in)
	}
}

// most returns how many calls may be going on.
func (p *returnProbe) most(cpus int) int {
	if p.MaxActive > 0 {
		return p.MaxActive
	}
	return max(minActive, 2*cpus)
}

// below returns the index of the first call with a lower stack pointer.
func (t *task) below(sp uint64) int {
	if n := len(t.calls); n == 0 || t.calls[n-1].sp >= sp {
		return n
	}
	return sort.Search(len(t.calls), func(i int) bool { return t.calls[i].sp < sp })
}

func (t *task) insert(in *instance) {
	if in.first {
		t.depth++
	}
	t.calls = slices.Insert(t.calls, t.below(in.sp), in)
}

// remove takes calls from the task.
func (t *task) remove(from, to int) {
	for _, in := range t.calls[from:to] {
		in.count(t, -1)
	}
	t.calls = slices.Delete(t.calls, from, to)
}

// count adds a call to those that are going on, where it is one of its own.
func (in *instance) count(t *task, by int) {
	if in.first && !in.skipped {
		t.depth += by
	}
}

// pop takes the latest call with a stack pointer from the task; nil where there is
// none.
func (t *task) pop(sp uint64) *instance {
	n := t.below(sp) - 1
	if n < 0 || t.calls[n].sp != sp {
		return nil
	}
	in := t.calls[n]
	t.remove(n, n+1)
	return in
}

// giveUp recycles the calls that belong to a start: they never return.
func (t *task) giveUp(start uint64) {
	var left []*instance
	for i := len(t.calls) - 1; i >= 0; i-- {
		if in := t.calls[i]; in.start == start {
			t.remove(i, i+1)
			left = append(left, in)
		}
	}
	for _, in := range left {
		in.recycle()
	}
}

// revive notes that the calls with a stack pointer have not been skipped: one of them
// ends in a tail call.
func (t *task) revive(sp uint64) {
	for i := t.below(sp) - 1; i >= 0 && t.calls[i].sp == sp; i-- {
		if in := t.calls[i]; in.skipped {
			in.skipped = false
			in.count(t, 1)
		}
	}
}

func (r *tasks) realReturnOn(cpu int, sp, addr uint64) uint64 {
	return r.realReturn(r.cpus[cpu].task, sp, addr)
}
