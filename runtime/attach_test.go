//go:build unicorn

package runtime_test

import (
	"errors"
	"testing"

	"xol/runtime"
)

// attacher is a runtime, or what embeds one.
type attacher interface {
	Attach(runtime.Spec) (*runtime.Link, error)
}

// attach attaches a probe, which must be possible.
func attach(t testing.TB, r attacher, spec runtime.Spec) *runtime.Link {
	t.Helper()
	l, err := r.Attach(spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// try attaches a probe, and says only whether that is possible.
func try(r attacher, spec runtime.Spec) error {
	_, err := r.Attach(spec)
	return err
}

// uprobeAttacher is a group of processes, or what embeds one.
type uprobeAttacher interface {
	Attach(runtime.Uprobe) (*runtime.Link, error)
}

// attachUprobe attaches a probe to processes, which must be possible.
func attachUprobe(t testing.TB, u uprobeAttacher, spec runtime.Uprobe) *runtime.Link {
	t.Helper()
	l, err := u.Attach(spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// held is a probe that a test attaches and closes again and again.
type held struct {
	runtime.Probe
	*runtime.Link
	before uint64 // hits of links that were closed
}

func hold(p runtime.Probe) *held { return &held{Probe: p, Link: new(runtime.Link)} }

// attach attaches the probe anew.
func (h *held) attach(r attacher) error {
	l, err := r.Attach(h.Probe)
	if err == nil {
		h.before += h.Link.Hits()
		h.Link = l
	}
	return err
}

// Hits returns those of all links.
func (h *held) Hits() uint64 { return h.before + h.Link.Hits() }

// attachAll attaches probes: all or none.
func attachAll(r *runtime.Runtime, probes []*held) error {
	specs := make([]runtime.Spec, len(probes))
	for i, h := range probes {
		if h != nil {
			specs[i] = h.Probe
		}
	}
	links, err := r.AttachAll(specs...)
	for i, l := range links {
		probes[i].before += probes[i].Link.Hits()
		probes[i].Link = l
	}
	return err
}

// closeAll closes probes.
func closeAll(probes []*held) error {
	var errs []error
	for _, h := range probes {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}

// again is another spec that a test attaches again and again, and its last link.
type again[S runtime.Spec] struct {
	spec S
	*runtime.Link
}

func (a *again[S]) attach(r attacher) error {
	l, err := r.Attach(a.spec)
	if err == nil {
		a.Link = l
	}
	return err
}
