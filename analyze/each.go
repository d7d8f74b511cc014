package analyze

import (
	"context"
	"runtime"
	"sort"
	"sync"

	"xol/image"
)

// batchBytes is the amount of text that a worker takes at a time: enough to
// make taking it cheap, little enough to share the work evenly.
const batchBytes = 32 << 10

// Each judges functions, which must be sorted by address, in parallel, but for
// padding of pages at the end of one. It
// calls work for each of them, on several goroutines, with a Result that is
// valid only during the call, and emit with what work returned, on the
// caller's goroutine, in the order of functions. The first error of emit, or
// ctx, ends it; that error is returned.
func Each[T any](ctx context.Context, a *Analysis, functions []image.Function, work func(*Result) T, emit func(T) error) error {
	return Gather(ctx, a, functions, func(list *[]T, r *Result) { *list = append(*list, work(r)) }, func(list *[]T) error {
		for _, t := range *list {
			if err := emit(t); err != nil {
				return err
			}
		}
		clear(*list)
		*list = (*list)[:0]
		return nil
	})
}

// Gather judges functions as Each does, and gathers what they add up to: add adds
// a function to a T, and emit takes a T to which a run of functions has been added
// in their order. A T is used again after emit, which has to leave it ready for that;
// a new one is the zero value.
func Gather[T any](ctx context.Context, a *Analysis, functions []image.Function, add func(*T, *Result), emit func(*T) error) error {
	var whole *survey
	if a.wantsSurvey() {
		var err error
		if whole, err = a.surveyed(ctx); err != nil {
			return err
		}
	}
	return parallel(ctx, a.workers, functions, func() func(*T, image.Function) {
		var r Result
		return func(t *T, f image.Function) {
			a.judgeAsEach(&r, f, whole)
			add(t, &r)
		}
	}, emit)
}

// parallel calls what worker makes, one for each goroutine, for each of
// functions, and emit with the results of a batch of them, on the caller's goroutine,
// in order. What emit leaves of a T is given to a worker again.
func parallel[T any](ctx context.Context, workers int, functions []image.Function,
	worker func() func(*T, image.Function), emit func(*T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	type batch struct {
		functions []image.Function
		result    chan *T
	}
	todo := make(chan batch)
	order := make(chan batch, 4*workers)
	used := make(chan *T, cap(order)+workers+2) // as many as there can be
	running.Go(func() {
		defer close(todo)
		defer close(order)
		for _, part := range batches(functions) {
			b := batch{part, make(chan *T, 1)}
			select {
			case order <- b:
			case <-ctx.Done():
				return
			}
			select {
			case todo <- b:
			case <-ctx.Done():
				return
			}
		}
	})
	for range workers {
		running.Go(func() {
			work := worker()
			for b := range todo {
				var t *T
				select {
				case t = <-used:
				default:
					t = new(T)
				}
				for _, f := range b.functions {
					work(t, f)
				}
				b.result <- t
			}
		})
	}
	for b := range order {
		select {
		case t := <-b.result:
			if err := emit(t); err != nil {
				return err
			}
			used <- t
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// batches cuts functions into runs of about batchBytes of text.
func batches(functions []image.Function) [][]image.Function {
	var out [][]image.Function
	start, size := 0, uint64(0)
	for i := range functions {
		size += functions[i].Size
		if size >= batchBytes {
			out = append(out, functions[start:i+1])
			start, size = i+1, 0
		}
	}
	if start < len(functions) {
		out = append(out, functions[start:])
	}
	return out
}

// lastAtOrBelow returns the index of the last function that starts at or below
// addr, -1 where none does.
func lastAtOrBelow(functions []image.Function, addr uint64) int {
	return sort.Search(len(functions), func(i int) bool { return functions[i].Addr > addr }) - 1
}

// JudgeInto judges a function as Each does, but for padding at its end, in the memory
// of r.
func (a *Analysis) JudgeInto(ctx context.Context, r *Result, f image.Function) error {
	var whole *survey
	if a.wantsSurvey() {
		var err error
		if whole, err = a.surveyed(ctx); err != nil {
			return err
		}
	}
	a.judgeAsEach(r, f, whole)
	return nil
}

func (a *Analysis) judgeAsEach(r *Result, f image.Function, whole *survey) {
	if a.read(r, f) {
		r.cutPadding()
		a.judgeText(r, whole)
	}
}
