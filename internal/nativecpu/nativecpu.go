//go:build linux && amd64

// Package nativecpu runs code on the host's own CPU for package machine: in a
// child process under ptrace, whose memory appears where it is touched.
package nativecpu

import (
	"bytes"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"xol/arch/amd64"
	"xol/decode"
	"xol/machine"
)

const ptraceGetRegset, ptraceSetRegset = unix.PTRACE_GETREGSET, unix.PTRACE_SETREGSET

// CPU is a machine.Engine. Only the goroutine that opened it may use it.
type CPU struct {
	file   *machine.File
	child  *child
	xstate *xstate
	mem    memory
}

// Open starts a child. It fails where the system does not allow ptrace.
func Open(file *machine.File) (*CPU, error) {
	ch, err := startChild(arenaPages)
	if err != nil {
		return nil, fmt.Errorf("running code on the CPU: %w", err)
	}
	c := &CPU{file: file, child: ch, mem: newMemory(ch)}
	if c.xstate, err = newXstate(ch, file); err != nil {
		ch.close()
		return nil, fmt.Errorf("running code on the CPU: %w", err)
	}
	return c, nil
}

// Name returns "cpu".
func (c *CPU) Name() string { return "cpu" }

// Close ends the child.
func (c *CPU) Close() error { return c.child.close() }

// Skip names what a process cannot run, or not twice with the same result.
func (c *CPU) Skip(inst *decode.Inst) string {
	target, direct := inst.BranchTarget()
	switch {
	case inst.Has(decode.Privileged):
		return "privileged"
	case amd64.LoadsSystemFlags(inst):
		return "popf with random flags"
	case amd64.Volatile(inst):
		return "results that vary: clocks, random numbers, CPU identity"
	case direct && target-inst.Addr < uint64(inst.Len):
		return "branches to themselves"
	}
	return ""
}

// Load puts parts into memory.
func (c *CPU) Load(parts []machine.Part) error { return c.mem.load(parts) }

// Bounds of one run: the pages that appear, and the system calls that are
// passed over.
const (
	maxFaults   = 64
	maxSyscalls = 1
)

// Run executes code; see machine.Engine. Code runs at full speed until it
// leaves: what is after it, and the parts outside stay, are breakpoints, and
// what is elsewhere cannot execute. steps is not counted; a watchdog ends what
// goes on for long.
func (c *CPU) Run(out, in machine.State, seed uint64, stay machine.Range, _ int) (machine.Event, []machine.Write, error) {
	if err := c.mem.reset(seed); err != nil {
		return machine.Event{}, nil, err
	}
	c.mem.cover(stay)
	if err := c.enter(in); err != nil {
		return machine.Event{}, nil, err
	}
	event, pc, err := c.run(stay)
	c.mem.uncover(stay)
	if err != nil {
		return event, nil, err
	}
	copy(out, in)
	if err := c.leave(out); err != nil {
		return event, nil, err
	}
	if event.Kind == machine.EventLeft {
		c.file.SetWord(out, c.file.PC, pc)
	}
	return event, c.mem.changes(), nil
}

// run lets the child go on until it leaves, for pc, or is stopped for good.
func (c *CPU) run(stay machine.Range) (event machine.Event, pc uint64, err error) {
	alarms, faults, syscalls := 0, 0, 0
	for {
		sig, err := c.child.resume(ptraceSysemu)
		if err != nil {
			return event, 0, err
		}
		again := false
		switch sig {
		case unix.SIGVTALRM:
			// One may be left over from the run before.
			alarms++
			event, again = machine.Event{Kind: machine.EventBudget}, alarms <= 2
		case unix.SIGSEGV:
			faults++
			event, pc, again, err = c.fault(stay)
			if again && faults > maxFaults {
				event, again = machine.Event{Kind: machine.EventBudget}, false
			}
		case unix.SIGTRAP:
			syscalls++
			event, pc, again, err = c.trap(stay)
			again = again && syscalls <= maxSyscalls
		case unix.SIGILL:
			event = machine.Event{Kind: machine.EventUndefined}
		default:
			event = machine.Event{Kind: machine.EventException, Number: uint64(sig)}
		}
		if err != nil || !again {
			return event, pc, err
		}
	}
}

// stopped returns what is known of a stop.
func (c *CPU) stopped() (info siginfo, regs unix.PtraceRegs, err error) {
	if info, err = c.child.siginfo(); err != nil {
		return info, regs, err
	}
	return info, regs, c.child.regs(&regs)
}

// trap takes a breakpoint, or a system call that is not made.
func (c *CPU) trap(stay machine.Range) (event machine.Event, pc uint64, again bool, err error) {
	info, regs, err := c.stopped()
	const kernelBreakpoint = 0x80 // si_code of int3
	switch {
	case err != nil || info.code != kernelBreakpoint:
		return machine.Event{Kind: machine.EventSyscall}, 0, true, err
	case stay.Holds(regs.Rip - 1):
		return machine.Event{Kind: machine.EventException, Number: uint64(unix.SIGTRAP)}, 0, false, nil
	}
	return machine.Event{Kind: machine.EventLeft}, regs.Rip - 1, false, nil
}

// fault makes the page appear that an access needs, or says how the run ended.
func (c *CPU) fault(stay machine.Range) (event machine.Event, pc uint64, again bool, err error) {
	info, regs, err := c.stopped()
	const mapError = 1 // SEGV_MAPERR
	event = machine.Event{Kind: machine.EventFault, Page: info.addr &^ pageMask}
	switch {
	case err != nil:
		return event, 0, false, err
	case !stay.Holds(regs.Rip):
		return machine.Event{Kind: machine.EventLeft}, regs.Rip, false, nil
	case info.code != mapError || !mappable(info.addr):
		return event, 0, false, nil
	}
	if err := c.mem.appear(info.addr &^ pageMask); err != nil {
		return event, 0, false, err
	}
	// The kernel takes back no null selector with a privilege level.
	regs.Ds, regs.Es, regs.Fs, regs.Gs = c.child.base.Ds, c.child.base.Es, c.child.base.Fs, c.child.base.Gs
	return event, 0, true, unix.PtraceSetRegs(c.child.pid, &regs)
}

// mappable reports whether memory may appear at addr: not where the child's
// own parts are, nor where a process has no addresses.
func mappable(addr uint64) bool { return addr >= controlAddr+pageSize && addr < 1<<47-pageSize }

// enter sets the child's registers.
func (c *CPU) enter(s machine.State) error {
	c.xstate.store(s)
	if _, err := c.child.regset(ptraceSetRegset, c.xstate.area); err != nil {
		return err
	}
	regs := c.child.base
	for i, p := range general(&regs) {
		*p = c.file.Word(s, i)
	}
	return unix.PtraceSetRegs(c.child.pid, &regs)
}

// leave reads the child's registers.
func (c *CPU) leave(s machine.State) error {
	var regs unix.PtraceRegs
	if err := c.child.regs(&regs); err != nil {
		return err
	}
	if _, err := c.child.regset(ptraceGetRegset, c.xstate.area); err != nil {
		return err
	}
	c.xstate.load(s)
	const resumeFlag = 1 << 16 // set by the exception, not by the code
	regs.Eflags &^= resumeFlag
	for i, p := range general(&regs) {
		c.file.SetWord(s, i, *p)
	}
	return nil
}

// general returns the places of the registers up to gs_base, in the order of
// their indices.
func general(r *unix.PtraceRegs) []*uint64 {
	return []*uint64{
		amd64.RAX: &r.Rax, amd64.RCX: &r.Rcx, amd64.RDX: &r.Rdx, amd64.RBX: &r.Rbx,
		amd64.RSP: &r.Rsp, amd64.RBP: &r.Rbp, amd64.RSI: &r.Rsi, amd64.RDI: &r.Rdi,
		amd64.R8: &r.R8, amd64.R9: &r.R9, amd64.R10: &r.R10, amd64.R11: &r.R11,
		amd64.R12: &r.R12, amd64.R13: &r.R13, amd64.R14: &r.R14, amd64.R15: &r.R15,
		amd64.RIP: &r.Rip, amd64.RFLAGS: &r.Eflags, amd64.FSBase: &r.Fs_base, amd64.GSBase: &r.Gs_base,
	}
}

// memory is the child's memory: pages of the arena, mapped where they are
// touched.
type memory struct {
	child    *child
	pristine []byte
	pages    []page
	parts    []machine.Part // loaded
	free     []int
	seed     uint64
	writes   []machine.Write
}

type page struct {
	va    uint64
	frame int
	code  bool
}

const arenaPages = 1 + 256

// breakpoint fills pages of code.
const breakpoint = 0xcc

// lookAhead is how far a CPU may read after an instruction that it does not
// know, in bytes.
const lookAhead = 15

func newMemory(ch *child) memory {
	m := memory{child: ch, pristine: make([]byte, len(ch.arena))}
	for i := 1; i < arenaPages; i++ {
		m.free = append(m.free, i)
	}
	return m
}

func (m *memory) contents(frame int) []byte { return m.child.arena[frame*pageSize:][:pageSize] }
func (m *memory) before(frame int) []byte   { return m.pristine[frame*pageSize:][:pageSize] }

// add maps a frame at va at the next flush.
func (m *memory) add(va uint64, code bool) (*page, error) {
	if len(m.free) == 0 {
		return nil, fmt.Errorf("the code touches more than %d pages", arenaPages)
	}
	frame := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	prot := uint64(unix.PROT_READ | unix.PROT_WRITE)
	if code {
		prot |= unix.PROT_EXEC
	}
	if m.child.full() {
		if err := m.child.flush(); err != nil {
			return nil, err
		}
	}
	m.child.call(unix.SYS_MMAP, va, pageSize, prot, unix.MAP_SHARED|unix.MAP_FIXED, sharedFD, uint64(frame)*pageSize)
	m.pages = append(m.pages, page{va, frame, code})
	return &m.pages[len(m.pages)-1], nil
}

// appear makes a page of data.
func (m *memory) appear(va uint64) error {
	p, err := m.add(va, false)
	if err != nil {
		return err
	}
	machine.Fill(m.contents(p.frame), va, m.seed)
	copy(m.before(p.frame), m.contents(p.frame))
	return m.child.flush()
}

// drop unmaps the pages for which out holds, at the next flush.
func (m *memory) drop(out func(*page) bool) error {
	kept := m.pages[:0]
	for _, p := range m.pages {
		if !out(&p) {
			kept = append(kept, p)
			continue
		}
		if m.child.full() {
			if err := m.child.flush(); err != nil {
				return err
			}
		}
		m.child.call(unix.SYS_MUNMAP, p.va, pageSize)
		m.free = append(m.free, p.frame)
	}
	m.pages = kept
	return nil
}

// reset makes memory what it is before a run of the given seed.
func (m *memory) reset(seed uint64) error {
	if seed != m.seed {
		m.seed = seed
		if err := m.drop(func(p *page) bool { return !p.code }); err != nil {
			return err
		}
	}
	for i := range m.pages {
		copy(m.contents(m.pages[i].frame), m.before(m.pages[i].frame))
	}
	return m.child.flush()
}

// load puts parts into pages of breakpoints, in place of all there was.
func (m *memory) load(parts []machine.Part) error {
	if err := m.drop(func(*page) bool { return true }); err != nil {
		return err
	}
	m.parts = m.parts[:0]
	for _, part := range parts {
		end := part.Addr + uint64(len(part.Code)) + lookAhead
		for va := part.Addr &^ pageMask; va < end; va += pageSize {
			if _, err := m.codePage(va); err != nil {
				return err
			}
		}
		m.parts = append(m.parts, machine.Part{Addr: part.Addr, Code: slices.Clone(part.Code)})
		m.write(part.Addr, part.Code)
	}
	for _, p := range m.pages {
		copy(m.before(p.frame), m.contents(p.frame))
	}
	return m.child.flush()
}

// write changes memory in pages that are there.
func (m *memory) write(va uint64, data []byte) {
	for _, p := range m.pages {
		switch offset := int64(va - p.va); {
		case offset >= 0 && offset < pageSize:
			copy(m.contents(p.frame)[offset:], data)
		case offset < 0 && -offset < int64(len(data)):
			copy(m.contents(p.frame), data[-offset:])
		}
	}
}

// cover puts breakpoints in place of the parts outside stay.
func (m *memory) cover(stay machine.Range) {
	for _, part := range m.parts {
		if !stay.Holds(part.Addr) {
			m.write(part.Addr, bytes.Repeat([]byte{breakpoint}, len(part.Code)))
		}
	}
}

// uncover undoes cover.
func (m *memory) uncover(stay machine.Range) {
	for _, part := range m.parts {
		if !stay.Holds(part.Addr) {
			m.write(part.Addr, part.Code)
		}
	}
}

func (m *memory) codePage(va uint64) (*page, error) {
	for i := range m.pages {
		if m.pages[i].va == va {
			return &m.pages[i], nil
		}
	}
	p, err := m.add(va, true)
	if err != nil {
		return nil, err
	}
	for i := range m.contents(p.frame) {
		m.contents(p.frame)[i] = breakpoint
	}
	return p, nil
}

// changes returns the words that a run changed, sorted by address.
func (m *memory) changes() []machine.Write {
	m.writes = m.writes[:0]
	for i := range m.pages {
		p := &m.pages[i]
		m.writes = machine.AppendChanges(m.writes, p.va, m.before(p.frame), m.contents(p.frame))
	}
	slices.SortFunc(m.writes, machine.Write.Compare)
	return m.writes
}
