//go:build unicorn

package runtime_test

import (
	"context"
	"errors"
	"testing"

	"xol/runtime"
)

// TestContextEndsRun has a handler end the context: the run ends with it, goes on
// under another one, and sorts all the same.
func TestContextEndsRun(t *testing.T) {
	eachQuick(t, func(t *testing.T, p *program, sort runtime.Function) {
		ctx, cancel := context.WithCancel(t.Context())
		var hits int
		p.start(t, sort, &runtime.Probe{PreHandler: func(*runtime.Context) bool {
			if hits++; hits == 300 {
				cancel()
			}
			return false
		}})
		hits = 0
		if err := p.reverseWords(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Call(ctx, 0, sort, bufferAddr, sortedWords); !errors.Is(err, context.Canceled) {
			t.Fatalf("Call returned %v after %d hits", err, hits)
		}
		if !p.m.CPU(0).Running() {
			t.Fatal("the function has returned")
		}
		if err := p.Run(ctx, 1000); !errors.Is(err, context.Canceled) {
			t.Fatalf("Run returned %v", err)
		}
		if err := p.Run(t.Context(), 1<<30); err != nil {
			t.Fatal(err)
		}
		if err := p.checkWords(); err != nil {
			t.Error(err)
		}
	})
}

// TestContextEndsHandlersCall has a handler end the context and call a function: it
// does not run.
func TestContextEndsHandlersCall(t *testing.T) {
	eachQuick(t, func(t *testing.T, p *program, sort runtime.Function) {
		ctx, cancel := context.WithCancel(t.Context())
		end := false
		p.start(t, sort, &runtime.Probe{PreHandler: func(c *runtime.Context) bool {
			if end {
				cancel()
			}
			if _, err := c.Call(sort, bufferAddr, 0); errors.Is(err, context.Canceled) != end {
				t.Errorf("the context has ended: %t, the call returned %v", end, err)
			}
			return false
		}})
		end = true
		if err := p.sortWords(ctx, sort); !errors.Is(err, context.Canceled) {
			t.Errorf("Call returned %v", err)
		}
	})
}
