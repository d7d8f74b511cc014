//go:build unicorn

package runtime_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"xol/runtime"
)

// interruption is what happens to a probe in the middle of an operation.
type interruption struct {
	name string
	// do does it; neighbour is the instruction after the probed one.
	do, undo func(d *drill, p *held, neighbour uint64) error
	inside   bool // only where the neighbour is in the region
	ends     bool // the probe is not hit any more
	later    bool // the optimizer does it, at its own pace
}

var interruptions = []interruption{
	{name: "a neighbour", do: second(true, nil), undo: noSecond, inside: true},
	{name: "a post-handler", do: second(false, func(*runtime.Context) {}), undo: noSecond},
	{name: "another probe", do: second(false, nil), undo: noSecond},
	{
		name: "the switch of optimization", later: true,
		do: func(d *drill, _ *held, _ uint64) error {
			d.SetOptimization(false)
			d.SetOptimization(true)
			return nil
		},
	},
	{
		name: "disabled", ends: true,
		do:   func(d *drill, p *held, _ uint64) error { return p.Disable() },
		undo: func(d *drill, p *held, _ uint64) error { return p.Enable() },
	},
	{
		name: "unregistered", ends: true,
		do:   func(d *drill, p *held, _ uint64) error { return p.Close() },
		undo: func(d *drill, p *held, _ uint64) error { return p.attach(d) },
	},
	{
		name: "the switch of all probes", ends: true,
		do:   func(d *drill, _ *held, _ uint64) error { return d.SetArmed(false) },
		undo: func(d *drill, _ *held, _ uint64) error { return d.SetArmed(true) },
	},
}

// second registers another probe, at the neighbour or at the same address.
func second(neighbour bool, post func(*runtime.Context)) func(*drill, *held, uint64) error {
	return func(d *drill, p *held, next uint64) error {
		d.second = hold(runtime.Probe{Addr: p.Addr, PostHandler: post})
		if neighbour {
			d.second.Addr = next
		}
		return d.second.attach(d)
	}
}

func noSecond(d *drill, _ *held, _ uint64) error { return d.second.Close() }

// TestEveryInterruption changes something about a probe in every state of every
// plan, while a second CPU stands at any instruction boundary.
func TestEveryInterruption(t *testing.T) {
	eachDrill(t, func(t *testing.T, d *drill) {
		if d.skip = 1; *stride > 1 {
			d.skip = 4
		}
		insts := map[uint64]judged{}
		for _, in := range instsOf(t, d.m.ISA.Name(), "2") {
			insts[in.addr] = in
		}
		var count states
		d.original = d.text(t, d.lowest(), longestText)
		err := d.each(t, func(p *held) error {
			count.sites++
			in := insts[p.Addr]
			next := p.Addr + uint64(in.size)
			_, inside := insts[next] // and not padding
			inside = inside && next < p.Addr+uint64(in.Region)
			for i := range interruptions {
				if c := &interruptions[i]; inside || !c.inside {
					if err := d.interrupt(t, c, p, next, &count); err != nil {
						return fmt.Errorf("%s: %w", c.name, err)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if text := d.text(t, d.lowest(), longestText); !bytes.Equal(text, d.original) {
			t.Errorf("text\n%x\nis left, not\n%x", text, d.original)
		}
		t.Log(count)
	})
}

// longestText is more than the text of a drill, in bytes.
const longestText = 1024

// lowest is the first instruction of the drill.
func (d *drill) lowest() uint64 { return d.sites()[0] }

// interrupt tries one interruption in all states at all boundaries.
func (d *drill) interrupt(t *testing.T, c *interruption, p *held, next uint64, count *states) error {
	for _, s := range switched {
		last := d.length(t, s.optimize)
		for passes := range last + 1 {
			for i, more := passes%d.skip, true; more; i += d.skip {
				var err error
				if more, err = d.interruptAt(t, c, p, next, s.optimize, passes, &i, count); err != nil {
					return fmt.Errorf("%s, pass %d, boundary %d: %w", s.op, passes, i, err)
				}
			}
		}
	}
	return nil
}

func (d *drill) interruptAt(t *testing.T, c *interruption, p *held, next uint64, optimize bool, passes int, i *int, count *states) (more bool, err error) {
	if err := d.ready(optimize); err != nil {
		return false, err
	}
	before := p.Hits()
	d.start(t)
	if err := d.passes(passes); err != nil {
		return false, err
	}
	if more, err = d.walk(i); err != nil {
		return more, err
	}
	then := p.Hits()
	if err := c.do(d, p, next); err != nil {
		return more, err
	}
	if err := d.textIs(t, c, p); err != nil {
		return more, err
	}
	if err := errors.Join(d.Settle(), d.finish()); err != nil {
		return more, err
	}
	hits, want := p.Hits(), before+d.times(p.Addr)
	if c.ends {
		want = then
	}
	if hits != want || p.Nmissed() != 0 {
		return more, fmt.Errorf("%d hits and %d missed, want %d", hits, p.Nmissed(), want)
	}
	count.count(then, hits)
	if c.undo != nil {
		err = c.undo(d, p, next)
	}
	return more, errors.Join(err, d.settled())
}

// textIs checks that an interruption left a breakpoint, or the original.
func (d *drill) textIs(t *testing.T, c *interruption, p *held) error {
	if c.later {
		return nil
	}
	want := bytes.Clone(d.original)
	if !c.ends {
		copy(want[p.Addr-d.lowest():], d.m.ISA.Breakpoint(false))
	}
	if d.second != nil && d.second.Enabled() {
		copy(want[d.second.Addr-d.lowest():], d.m.ISA.Breakpoint(false))
	}
	if text := d.text(t, d.lowest(), longestText); !bytes.Equal(text, want) {
		return fmt.Errorf("text\n%x, not\n%x", text, want)
	}
	return nil
}

// settled lets the optimizer finish, and checks that it does.
func (d *drill) settled() error {
	if err := d.Settle(); err != nil {
		return err
	}
	if n := d.Stats().Pending; n != 0 {
		return fmt.Errorf("%d things left to the optimizer", n)
	}
	return nil
}
