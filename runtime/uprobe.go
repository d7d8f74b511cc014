package runtime

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"xol/analyze"
	"xol/classify"
	"xol/image"
)

// Executable is a program or library that processes map, and that uprobes belong to. Its
// identity is that of the pointer, as that of an inode.
type Executable struct {
	Name     string
	Image    *image.Image
	analysis *analyze.Analysis
	judged   *analyze.Result // the function that was asked about last
}

// NewExecutable prepares a file for probes.
func NewExecutable(name string, img *image.Image) (*Executable, error) {
	a, err := analyze.New(img, analyze.Options{Profile: classify.Uprobe612})
	if err != nil {
		return nil, err
	}
	return &Executable{Name: name, Image: img, analysis: a}, nil
}

// at returns the judged function that holds addr.
func (f *Executable) at(addr uint64) (*analyze.Result, bool) {
	if j := f.judged; j != nil && addr-j.Addr < uint64(len(j.Code)) {
		return j, true
	}
	function, ok := f.analysis.FunctionAt(addr)
	if !ok {
		return nil, false
	}
	f.judged = f.analysis.Judge(function)
	return f.judged, f.judged.Err == nil
}

// Uprobe is a probe in a file: it is in every process that maps it, those that
// start later included. Uprobes.Attach puts it there.
type Uprobe struct {
	Executable *Executable
	// Offset is where in the file, or Symbol what there: one of the two. On
	// ppc64 a function's first instruction is that of its local entry point.
	Offset uint64
	Symbol string

	// Handler runs before the instruction. If it returns true, the probe is
	// taken out of this process, and stays in the others.
	Handler func(c *UprobeContext) (remove bool)
	// ReturnHandler, of a probe at a function's entry, runs when the function has
	// returned; as in Linux, 64 calls may be going on in a task.
	ReturnHandler func(c *UreturnContext)
	// Filter reports whether a process is probed; nil for all.
	Filter func(p *Process) bool
	// Semaphore is the offset in the file of a 16-bit counter of who listens;
	// 0 where there is none. It is incremented in every process that is probed.
	Semaphore uint64
	// Disabled attaches the probe, but puts it into no process until it is enabled.
	Disabled bool
}

// uprobe is a Uprobe that is attached.
type uprobe struct {
	Uprobe
	link    *Link
	group   *Uprobes
	addr    uint64 // in the file
	judge   classify.Verdict
	hits    uint64
	missed  uint64 // in processes that it is no longer in
	closed  bool
	enabled bool
}

func (p *uprobe) verdict() classify.Verdict { return p.judge }
func (p *uprobe) isEnabled() bool           { return p.enabled }
func (p *uprobe) hitCount() uint64          { return p.hits }
func (p *uprobe) atEntry() *probe           { return new(probe) }

func (p *uprobe) missCount() uint64 {
	n := p.missed
	for _, process := range p.group.processes {
		for _, m := range process.mappings {
			if i := m.index(p); i >= 0 {
				n += m.probes[i].hit.missed
			}
		}
	}
	return n
}

// UprobeContext is what the handler of a Uprobe is called with.
type UprobeContext struct {
	*Context // its Link is the probe in this process
	Uprobe   *Link
	Process  *Process
}

// UreturnContext is what a ReturnHandler is called with.
type UreturnContext struct {
	*ReturnContext // its Link is the probe in this process
	Uprobe         *Link
	Process        *Process
}

// Uprobes are the processes of a system and the probes in their files. All is
// used by one goroutine at a time.
type Uprobes struct {
	probes    []*uprobe
	processes []*Process
}

// Process is a program: a Runtime over a machine of its own, with files in its
// memory. The areas that instructions are executed out of line in are its own.
type Process struct {
	*Runtime
	group    *Uprobes
	mappings []*mapping
}

// mapping is a file in a process.
type mapping struct {
	executable *Executable
	image      *Module
	probes     []*uprobeIn // in the order of registration
}

// uprobeIn is a Uprobe in one process.
type uprobeIn struct {
	uprobe *uprobe
	hit    *probe
	ret    *returnProbe // nil where there is none
}

// Start makes a process of a machine whose memory holds a program. Options.Uprobes
// is implied.
func (u *Uprobes) Start(r *Runtime) (*Process, error) {
	if !r.opt.Uprobes {
		return nil, errNotUser
	}
	p := &Process{Runtime: r, group: u}
	u.processes = append(u.processes, p)
	return p, nil
}

var (
	errNotUser = errors.New("runtime: a process needs Options.Uprobes")
	errMapped  = errors.New("runtime: the process has not mapped the file")
	errBusy    = errors.New("runtime: a process cannot fork while one of its CPUs handles a probe")
)

// living returns the processes whose machine has not been closed.
func (u *Uprobes) living() []*Process {
	return slices.DeleteFunc(slices.Clone(u.processes), func(p *Process) bool { return p.closed })
}

// Exit ends a process: its probes are gone with it.
func (p *Process) Exit() { p.group.processes = deleteFrom(p.group.processes, p) }

// Map tells that a file is in the process's memory now, bias above the addresses
// that it names. Its probes are put in.
func (p *Process) Map(f *Executable, bias uint64) error {
	im, err := p.LoadAt(f.Name, f.Image, bias)
	if err != nil {
		return err
	}
	m := &mapping{executable: f, image: im}
	p.mappings = append(p.mappings, m)
	var errs []error
	for _, u := range p.group.probes {
		if u.Executable == f && u.enabled {
			errs = append(errs, p.insert(m, u))
		}
	}
	return errors.Join(errs...)
}

// Unmap tells that a file goes away from the process's memory.
func (p *Process) Unmap(f *Executable) error {
	i := slices.IndexFunc(p.mappings, func(m *mapping) bool { return m.executable == f })
	if i < 0 {
		return errMapped
	}
	m := p.mappings[i]
	p.mappings = slices.Delete(p.mappings, i, i+1)
	err := p.Unload(m.image)
	for _, in := range m.probes {
		err = errors.Join(err, p.take(in))
	}
	return err
}

// Attach puts a probe into all processes that map its file and that its Filter wants.
// Where it cannot be put into one, it is in none. It returns a *RegisterError.
func (u *Uprobes) Attach(spec Uprobe) (*Link, error) {
	p := &uprobe{Uprobe: spec, link: new(Link), group: u}
	p.link.attached = p
	if err := p.find(); err != nil {
		return nil, err
	}
	u.probes = append(u.probes, p)
	if spec.Disabled {
		return p.link, nil
	}
	if err := p.setEnabled(true); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p.link, nil
}

// close takes the probe out of all processes.
func (p *uprobe) close() error {
	if p.closed {
		return refuse(p, p.addr, &ruleUnregistered, nil)
	}
	err := p.setEnabled(false)
	p.closed = true
	p.group.probes = deleteFrom(p.group.probes, p)
	return err
}

// setEnabled puts the probe into all processes, or takes it out of them.
func (p *uprobe) setEnabled(on bool) error {
	switch {
	case p.closed:
		return refuse(p, p.addr, &ruleUnregistered, nil)
	case on == p.enabled:
		return nil
	}
	p.enabled = on
	if on {
		err := p.enter()
		if err == nil {
			return nil
		}
		p.enabled = false
		return errors.Join(err, p.leave())
	}
	return p.leave()
}

// enter puts the probe into the processes, up to one that it cannot be in.
func (p *uprobe) enter() error {
	for _, process := range p.group.living() {
		for _, m := range process.mappings {
			if m.executable != p.Executable {
				continue
			}
			if err := process.insert(m, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave takes it out of all processes.
func (p *uprobe) leave() error {
	var errs []error
	for _, process := range p.group.living() {
		errs = append(errs, process.drop(p))
	}
	return errors.Join(errs...)
}

// Apply has the filters of all probes asked again: probes come into processes
// that are wanted now, and go from those that are not.
func (u *Uprobes) Apply() error {
	var errs []error
	for _, process := range u.living() {
		for _, m := range process.mappings {
			for _, p := range u.probes {
				switch {
				case p.Executable != m.executable:
				case p.enabled && p.wants(process):
					errs = append(errs, process.insert(m, p))
				default:
					errs = append(errs, process.remove(m, p))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// find finds where in the file the probe is, and asks the rules.
func (p *uprobe) find() error {
	if p.Executable == nil || (p.Symbol == "") == (p.Offset == 0) {
		return refuse(p, 0, &rulePlace, nil)
	}
	if err := p.locate(); err != nil {
		return err
	}
	res, ok := p.Executable.at(p.addr)
	if !ok {
		return refuse(p, p.addr, &ruleNotText, nil)
	}
	if p.judge = p.Executable.analysis.Profile.At(&res.Func, p.addr); !p.judge.OK() {
		return refuse(p, p.addr, p.judge.Rule, nil)
	}
	return nil
}

func (p *uprobe) locate() error {
	name, rule := p.Symbol, &ruleSymbol
	if name == "" {
		name, rule = fmt.Sprintf("file:%#x", p.Offset), &ruleNotText
	}
	places, err := p.Executable.Image.Resolve(name)
	if err != nil {
		return refuse(p, 0, rule, nil)
	}
	p.addr = places[0].Addr
	if f, ok := p.Executable.analysis.FunctionAt(p.addr); ok && p.Symbol != "" && f.Addr == p.addr {
		p.addr += f.LocalEntry
	}
	return nil
}

func (p Uprobe) wants(process *Process) bool { return p.Filter == nil || p.Filter(process) }

// place names where the probe is, as it was given.
func (p Uprobe) place() string {
	name := "file"
	if p.Executable != nil {
		name = p.Executable.Name
	}
	if p.Symbol != "" {
		return name + ":" + p.Symbol
	}
	return fmt.Sprintf("%s:%#x", name, p.Offset)
}

func (m *mapping) index(u *uprobe) int {
	return slices.IndexFunc(m.probes, func(in *uprobeIn) bool { return in.uprobe == u })
}

// insert puts a probe into the process, where it is wanted and not there yet.
func (p *Process) insert(m *mapping, u *uprobe) error {
	if m.index(u) >= 0 || !u.wants(p) {
		return nil
	}
	in, err := p.put(m, u)
	if err != nil {
		return err
	}
	if err := p.listen(m, u, 1); err != nil {
		return errors.Join(err, p.take(in))
	}
	m.probes = append(m.probes, in)
	return nil
}

// put registers what a Uprobe is in the process's runtime.
func (p *Process) put(m *mapping, u *uprobe) (*uprobeIn, error) {
	addr := u.addr + m.image.bias
	in := &uprobeIn{uprobe: u}
	in.hit = &probe{link: new(Link), Probe: Probe{Addr: addr, PreHandler: func(c *Context) bool {
		u.hits++
		if u.Handler != nil && u.Handler(&UprobeContext{c, u.link, p}) {
			if err := p.drop(u); err != nil {
				p.fail(c.CPU, err)
			}
		}
		return false
	}}}
	in.hit.link.attached = kprobe{&p.registry, in.hit}
	if err := p.register(in.hit); err != nil {
		return nil, err
	}
	if u.ReturnHandler == nil {
		return in, nil
	}
	ret, err := p.attachReturn(ReturnProbe{Addr: addr, MaxActive: math.MaxInt, Handler: func(c *ReturnContext) {
		u.ReturnHandler(&UreturnContext{c, u.link, p})
	}}, new(Link))
	if err != nil {
		return nil, errors.Join(err, p.unregister(in.hit))
	}
	in.ret = ret.attached.(kretprobe).returnProbe
	return in, nil
}

// take takes it out again.
func (p *Process) take(in *uprobeIn) error {
	in.uprobe.missed += in.hit.missed
	err := p.unregister(in.hit)
	if in.ret != nil {
		err = errors.Join(err, kretprobe{&p.registry, in.ret}.close())
	}
	return err
}

// remove takes a probe out of the process, where it is there.
func (p *Process) remove(m *mapping, u *uprobe) error {
	i := m.index(u)
	if i < 0 {
		return nil
	}
	in := m.probes[i]
	m.probes = slices.Delete(m.probes, i, i+1)
	return errors.Join(p.take(in), p.listen(m, u, -1))
}

// drop takes a probe out of all mappings of its file.
func (p *Process) drop(u *uprobe) error {
	var errs []error
	for _, m := range p.mappings {
		errs = append(errs, p.remove(m, u))
	}
	return errors.Join(errs...)
}

var ruleSemaphore = classify.Rule{ID: "runtime/semaphore", Errno: classify.EINVAL,
	Reason: "the file has no 16-bit counter there, or it would leave its range"}

// listen changes the counter of those who listen to a marker.
func (p *Process) listen(m *mapping, u *uprobe, by int) error {
	const most = 1<<15 - 1 // [kernel/events/uprobes.c, __update_ref_ctr]
	if u.Semaphore == 0 {
		return nil
	}
	addr, ok := m.executable.Image.AddrOf(u.Semaphore)
	if !ok {
		return refuse(u, u.addr, &ruleSemaphore, nil)
	}
	var b [2]byte
	if err := p.m.Read(b[:], addr+m.image.bias); err != nil {
		return refuse(u, u.addr, &ruleSemaphore, nil)
	}
	order := p.m.ByteOrder()
	n := int(order.Uint16(b[:])) + by
	if n < 0 || n > most {
		return refuse(u, u.addr, &ruleSemaphore, nil)
	}
	order.PutUint16(b[:], uint16(n))
	return p.m.Write(addr+m.image.bias, b[:])
}
