package runtime

import (
	"errors"
	"slices"

	"xol/classify"
)

// Spec says what is attached, and where: a Probe, a ReturnProbe, a Jprobe or a
// WatchProbe; a Uprobe is attached to Uprobes. A spec is a plain value, which may be
// used again, also while it is attached.
type Spec interface{ placed }

var ruleSpec = classify.Rule{ID: "runtime/nil", Errno: classify.EINVAL,
	Reason: "there is nothing to attach: a spec is a value, not a pointer or nil"}

// Attach puts a probe into the program. It is armed unless it is Disabled, or the global
// switch is off. It returns a *RegisterError.
func (r *Runtime) Attach(spec Spec) (*Link, error) {
	switch s := spec.(type) {
	case Probe:
		return r.attachProbe(s)
	case ReturnProbe:
		return r.attachReturn(s, new(Link))
	case Jprobe:
		return r.attachJprobe(s)
	case WatchProbe:
		return r.attachWatch(s)
	}
	return nil, refuse(nowhere, 0, &ruleSpec, nil)
}

func (r *registry) attachProbe(spec Probe) (*Link, error) {
	p := &probe{Probe: spec, link: new(Link)}
	p.link.attached = kprobe{r, p}
	if err := r.register(p); err != nil {
		return nil, err
	}
	return p.link, nil
}

func isSpec(s Spec) bool {
	switch s.(type) {
	case Probe, ReturnProbe, Jprobe, WatchProbe:
		return true
	}
	return false
}

// AttachAll attaches probes in order: all, or none where one cannot be.
func (r *Runtime) AttachAll(specs ...Spec) ([]*Link, error) {
	if slices.ContainsFunc(specs, func(s Spec) bool { return !isSpec(s) }) {
		return nil, refuse(nowhere, 0, &ruleSpec, nil)
	}
	links := make([]*Link, 0, len(specs))
	for _, spec := range specs {
		l, err := r.Attach(spec)
		if err != nil {
			return nil, errors.Join(err, CloseAll(links...))
		}
		links = append(links, l)
	}
	return links, nil
}

// CloseAll closes links, and goes on after an error.
func CloseAll(links ...*Link) error {
	var errs []error
	for _, l := range links {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
