package image

import "xol/place"

// fromMemory adds what a running kernel itself says of its text.
func (m *marker) fromMemory() {
	memory := m.im.memory
	for _, r := range memory.Blacklist {
		m.add(r.Addr, r.Size, place.Blacklist)
	}
	for _, addr := range memory.FtraceSites {
		m.site(addr, m.im.isa.Kernel.CallSize, place.Ftrace)
	}
	m.ftraceNames()
}

// ftraceNames finds the sites of functions of which the kernel tells the names. Of
// several functions of a name those count in which such an instruction stands.
func (m *marker) ftraceNames() {
	find, names := m.im.isa.Kernel.FtraceSite, m.im.memory.FtraceNames
	if find == nil || len(names) == 0 {
		return
	}
	wanted := make(map[FunctionName]bool, len(names))
	for _, n := range names {
		wanted[n] = true
	}
	fns := m.functions()
	for i := range fns {
		f := &fns[i]
		if !wanted[FunctionName{f.Name, m.im.ModuleOf(f.Addr)}] {
			continue
		}
		var buf [16]byte
		code, err := m.im.Code(buf[:], f.Addr, min(f.Size, uint64(len(buf))))
		if err != nil {
			continue // a probe stands there: it is none that ftrace knows
		}
		if off, ok := find(code, m.im.order == bigEndian); ok {
			m.site(f.Addr+off, m.im.isa.Kernel.CallSize, place.Ftrace)
		}
	}
}
