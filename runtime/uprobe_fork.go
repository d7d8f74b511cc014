package runtime

import (
	"errors"
	"slices"

	"xol/machine"
)

// Fork makes a process of m, a copy of the parent's machine with its memory and
// registers, as a child that has the parent's probes, as far as their Filter
// wants them there. Calls that are going on return through their handlers in
// the child, too. No CPU may be handling a hit.
func (p *Process) Fork(m machine.Machine) (*Process, error) {
	if p.closed {
		return nil, machine.ErrClosed
	}
	if slices.ContainsFunc(p.cpus, func(c control) bool { return c.current.status != Idle }) || p.anyAt(p.own) {
		return nil, errBusy
	}
	r, err := New(m, p.isa, p.opt)
	if err != nil {
		return nil, err
	}
	child, err := p.group.Start(r)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.clean(m), child.inherit(p)); err != nil {
		child.Exit()
		return nil, err
	}
	return child, nil
}

// inherit puts the parent's files and probes into the child. The counters of the
// markers have been copied with the memory.
func (p *Process) inherit(parent *Process) error {
	for cpu := range min(len(p.cpus), len(parent.cpus)) {
		if t := parent.cpus[cpu].task; parent.numbered[t.number] == t {
			p.SetTask(cpu, t.number)
		}
		own, from := &p.cpus[cpu], &parent.cpus[cpu]
		own.started, own.stack, own.before = from.started, from.stack, slices.Clone(from.before)
	}
	p.starts = parent.starts
	heirs := map[*returnProbe]*returnProbe{}
	for _, from := range parent.mappings {
		im, err := p.LoadAt(from.executable.Name, from.executable.Image, from.image.bias)
		if err != nil {
			return err
		}
		m := &mapping{executable: from.executable, image: im}
		p.mappings = append(p.mappings, m)
		if parent.stubs.page != 0 && p.stubs.page == 0 {
			if err := p.putStubs(parent.stubs.page); err != nil {
				return err
			}
		}
		for _, in := range from.probes {
			if err := p.inheritProbe(m, in, heirs); err != nil {
				return err
			}
		}
	}
	return p.inheritCalls(parent, heirs)
}

func (p *Process) inheritProbe(m *mapping, in *uprobeIn, heirs map[*returnProbe]*returnProbe) error {
	if !in.uprobe.wants(p) {
		return p.listen(m, in.uprobe, -1)
	}
	own, err := p.put(m, in.uprobe)
	if err != nil {
		return err
	}
	m.probes = append(m.probes, own)
	heirs[in.ret] = own.ret
	return nil
}

// inheritCalls copies what is known of the calls that return to the trampoline,
// which stands at the same address in the child.
func (p *Process) inheritCalls(parent *Process, heirs map[*returnProbe]*returnProbe) error {
	if parent.returns.addr == 0 || len(p.mappings) == 0 {
		return nil
	}
	if err := p.makeTrampoline(p.mappings[0].image); err != nil {
		return err
	}
	for number, t := range parent.numbered {
		own := p.task(number)
		own.depth = t.depth
		for _, in := range t.calls {
			heir := *in
			heir.data = slices.Clone(in.data)
			if own := heirs[in.probe]; own != nil && in.live() {
				own.made++
				heir.probe = own
			} else {
				heir.probe = &returnProbe{closed: true, entry: &probe{Probe: Probe{Addr: in.probe.entry.Addr}}}
			}
			own.calls = append(own.calls, &heir)
		}
	}
	return nil
}
