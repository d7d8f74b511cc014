package runtime

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"xol/machine"
)

// Links returns the probes of instructions that are attached, and those that have one at a
// function's entry: by address, those at one address in the order in which they came.
func (r *Runtime) Links() []*Link {
	var links []*Link
	for _, p := range r.probes() {
		links = append(links, p.link)
	}
	return links
}

// probes returns the probes of all sites, in the same order.
func (r *Runtime) probes() []*probe {
	sites := append(r.byAddress(), r.gone...)
	slices.SortStableFunc(sites, compareSites)
	var probes []*probe
	for _, s := range sites {
		probes = append(probes, s.probes...)
	}
	return probes
}

// List writes the attached probes as /sys/kernel/debug/kprobes/list does, a
// line each.
func (r *Runtime) List(w io.Writer) error {
	for _, p := range r.probes() {
		s := p.site
		flags := ""
		for _, f := range [...]struct {
			set  bool
			name string
		}{{p.gone, "[GONE]"}, {!p.enabled && !p.gone, "[DISABLED]"}, {p.optimized(), "[OPTIMIZED]"}, {s.entry, "[FTRACE]"}} {
			if f.set {
				flags += f.name
			}
		}
		kind := 'k'
		switch {
		case p.returns:
			kind = 'r'
		case p.mirror:
			kind = 'j'
		}
		if _, err := fmt.Fprintf(w, "%016x  %c  %s    %s\n", s.addr, kind, s.name(), flags); err != nil {
			return err
		}
	}
	return nil
}

// name is the address of the site as symbol and offset.
func (s *site) name() string {
	addr := s.addr - s.image.bias
	if name, base := s.image.analysis.Image.Symbolize(addr); name != "" {
		return fmt.Sprintf("%s+0x%x", name, addr-base)
	}
	return fmt.Sprintf("0x%x", s.addr)
}

// ListBlacklist writes what must not be probed as
// /sys/kernel/debug/kprobes/blacklist does: the ranges that the options name,
// and the runtime's own.
func (r *Runtime) ListBlacklist(w io.Writer) error {
	type named struct {
		machine.Range
		name string
	}
	var list []named
	for _, b := range r.opt.Blacklist {
		name := "-"
		if im := r.imageAt(b.Lo); im != nil {
			name, _ = im.analysis.Image.Symbolize(b.Lo - im.bias)
		}
		list = append(list, named{b, name})
	}
	for _, c := range r.slots.chunks {
		list = append(list, named{machine.Range{Lo: c.addr, Hi: c.addr + chunkSize}, "[slots]"})
	}
	if r.stubs.page != 0 {
		list = append(list, named{machine.Range{Lo: r.stubs.page, Hi: r.stubs.page + pageSize}, "[stubs]"})
	}
	slices.SortFunc(list, func(a, b named) int { return cmp.Compare(a.Lo, b.Lo) })
	for _, b := range list {
		if _, err := fmt.Fprintf(w, "0x%016x-0x%016x\t%s\n", b.Lo, b.Hi, b.name); err != nil {
			return err
		}
	}
	return nil
}

// Stats are what a runtime has at the moment.
type Stats struct {
	Probes    int
	Sites     int // probed instructions
	Optimized int
	Boosted   int
	Guest     int // bytes of the guest's memory in copies and detour buffers
	Pending   int // sites that wait for the optimizer, and blocks for their end
}

// Stats counts.
func (r *Runtime) Stats() Stats {
	st := Stats{Pending: r.pending()}
	for _, s := range r.sites {
		st.Guest += int(s.step.size + s.boosted.size + s.jump.detour.size)
		if s.internal {
			continue
		}
		st.Sites++
		st.Probes += len(s.probes)
		if s.state == siteOptimized {
			st.Optimized++
		}
		if s.boosting == boostReady {
			st.Boosted++
		}
	}
	return st
}
