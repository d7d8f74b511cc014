//go:build unicorn

package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"xol/arch"
	"xol/decode"
	"xol/internal/emulator"
	"xol/internal/unicorn"
	"xol/machine"
)

// Options say what a Machine is like.
type Options struct {
	ISA  arch.ISA
	CPUs int // 1 where it is 0
	// Exact has instructions counted one by one: budgets and turns end before
	// any instruction. Else they end where blocks do, and code runs
	// several times as fast.
	Exact bool
	// Turn is the greatest number of instructions that a CPU runs while
	// others wait; 50 where it is 0.
	Turn int
	// Seed decides whose turn it is, and how long.
	Seed uint64
	// Trace, where it is not nil, is called with every executed transfer of
	// control that is not to the next instruction, in order. It needs Exact.
	Trace func(cpu int, from, to uint64)
}

// Machine is a machine.
type Machine struct {
	ISA   arch.Prober
	File  *machine.File
	Order binary.ByteOrder // of data
	CPUs  []*CPU

	opt        Options
	model      emulator.Model
	target     target
	convention *machine.Convention
	memory     memory
	random     *rand.PCG

	onBreakpoint func(cpu int, addr uint64) (handled bool, err error)
	onCall       func(cpu int, addr uint64) error
	onStore      func(changed machine.Range) error
	gates        machine.Range // whose instructions are calls of onCall

	onClose func()
	closed  bool
	runs    int // that are going on, one inside the other
}

const (
	defaultTurn = 50
	stackSize   = 256 << 10
	stackTop    = 0x7e00_0000_0000 // of the first CPU; the others' are below
	stackStep   = 1 << 30
)

var (
	errTrace = errors.New("guest: a trace needs instructions that are counted one by one")
	errTurn  = errors.New("guest: a turn is at least one instruction; 0 stands for 50")
)

// Open returns a machine whose CPUs have stacks and nothing to run.
func Open(opt Options) (*Machine, error) {
	opt.CPUs = max(opt.CPUs, 1)
	if opt.Turn == 0 {
		opt.Turn = defaultTurn
	}
	switch {
	case opt.Turn < 0:
		return nil, errTurn
	case opt.Trace != nil && !opt.Exact:
		return nil, errTrace
	}
	isa, err := arch.Probing(opt.ISA)
	if err != nil {
		return nil, err
	}
	m := &Machine{
		ISA: isa, File: isa.Registers(), Order: isa.ByteOrder(), opt: opt,
		memory: memory{pages: map[uint64]*page{}},
		random: rand.NewPCG(opt.Seed, 0),
	}
	if m.model, err = emulator.ModelOf(isa.Name(), m.File); err != nil {
		return nil, err
	}
	m.target, m.convention = targets[isa.Name()], isa.Convention()
	if err := m.start(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// start opens the CPUs, and shows that they work.
func (m *Machine) start() error {
	for i := range m.opt.CPUs {
		c, err := m.openCPU(i)
		if err != nil {
			return err
		}
		m.CPUs = append(m.CPUs, c)
	}
	if err := m.mapHidden(); err != nil {
		return err
	}
	for _, c := range m.CPUs {
		top := stackTop - uint64(c.Index)*stackStep
		if err := m.Map(top-stackSize, stackSize, machine.PermRead|machine.PermWrite); err != nil {
			return err
		}
		c.SetReg(m.File.SP, top)
		if err := c.test(); err != nil {
			return fmt.Errorf("guest: CPU %d of %s does not work: %w", c.Index, m.ISA.Name(), err)
		}
	}
	return nil
}

// mapHidden maps what reaches the registers that the engine hides.
func (m *Machine) mapHidden() error {
	hidden := m.CPUs[0].hidden
	if hidden == nil {
		return nil
	}
	if err := m.Map(emulator.HiddenCode, PageSize, machine.PermRead|machine.PermExec); err != nil {
		return err
	}
	if err := m.Map(emulator.HiddenData, PageSize, machine.PermRead|machine.PermWrite); err != nil {
		return err
	}
	return m.Write(emulator.HiddenCode, hidden.Code)
}

// Close frees the machine. After that, whatever returns an error returns
// machine.ErrClosed, there is no memory, no CPU is running, and registers have the
// values that were last seen. A handler may close the machine that runs it: the
// run ends with machine.ErrClosed when the handler has returned, and only then is the
// machine freed. Closing it once more does nothing.
func (m *Machine) Close() error {
	if m.closed {
		return nil
	}
	if m.onClose != nil {
		m.onClose()
	}
	m.closed = true
	for _, c := range m.CPUs {
		c.running = false
	}
	if m.runs > 0 {
		return nil
	}
	return m.free()
}

// OnClose has f called when the machine is closed, before it is (see
// machine.Machine).
func (m *Machine) OnClose(f func()) error {
	m.onClose = f
	return m.usable()
}

// usable returns an error where the machine has been closed.
func (m *Machine) usable() error {
	if m.closed {
		return machine.ErrClosed
	}
	return nil
}

// free releases what the host gave to the machine.
func (m *Machine) free() error {
	var errs []error
	for _, c := range m.CPUs {
		errs = append(errs, c.close())
	}
	return errors.Join(append(errs, m.memory.close())...)
}

// ended ends one of the runs that are going on. The last one frees a machine that was
// closed meanwhile.
func (m *Machine) ended() error {
	m.runs--
	switch {
	case !m.closed:
		return nil
	case m.runs > 0:
		return machine.ErrClosed
	}
	return errors.Join(machine.ErrClosed, m.free())
}

// Run has the CPUs that are Running take turns, until one of them, whose number
// is returned, has an event, or budget instructions ran. The number is -1 where
// the budget is used up, or no CPU is running.
func (m *Machine) Run(budget int) (cpu int, ev machine.Event, err error) {
	if err := m.usable(); err != nil {
		return -1, machine.Event{}, err
	}
	for budget > 0 {
		c, others := m.next()
		if c == nil {
			break
		}
		turn := budget
		if others {
			turn = min(budget, 1+int(m.random.Uint64()%uint64(m.opt.Turn)))
		}
		ran, event, err := c.run(turn)
		if err != nil || event.Kind != machine.EventBudget {
			return c.Index, event, err
		}
		budget -= max(ran, 1)
	}
	return -1, machine.Event{}, nil
}

// NumCPU returns the number of CPUs.
func (m *Machine) NumCPU() int { return len(m.CPUs) }

// CPU returns one of them, from 0.
func (m *Machine) CPU(i int) machine.CPU { return m.CPUs[i] }

// ByteOrder returns the order of bytes in data.
func (m *Machine) ByteOrder() binary.ByteOrder { return m.Order }

// next picks a running CPU, and says whether there are others.
func (m *Machine) next() (c *CPU, others bool) {
	n := 0
	for _, c := range m.CPUs {
		if c.running {
			n++
		}
	}
	if n == 0 {
		return nil, false
	}
	pick := int(m.random.Uint64() % uint64(n))
	for _, c := range m.CPUs {
		if c.running {
			if pick == 0 {
				return c, n > 1
			}
			pick--
		}
	}
	return nil, false
}

// check looks at a block of code that is about to run for the first time. The
// lengths are those of its instructions, as the engine wants them; what must not
// run is at index bad, if it is not negative. The engine ends a block at what own
// executes, which it does not know.
func (m *Machine) check(addr, size uint64, lengths []uint8, own emulator.Executor) ([]uint8, int, refusal) {
	var code [maxBlock]byte
	have := m.readSome(code[:min(size+decode.MaxLen, maxBlock)], addr)
	size = min(size, uint64(have))
	lengths = lengths[:0]
	for at := uint64(0); at < size; {
		var r refusal
		err := m.ISA.Decode(&r.inst, code[at:have], addr+at)
		switch {
		case errors.Is(err, decode.ErrTruncated):
			return append(lengths, uint8(size-at)), -1, refusal{} // the fetch will fault
		case err != nil:
			r.kind, r.inst.Addr = machine.EventUndefined, addr+at
		case own != nil && own.Knows(&r.inst):
		case at+uint64(r.inst.Len) > size:
			r.kind, r.reason = machine.EventRefused, "the engine takes it for a shorter one"
		default:
			r.reason = m.model.Defect(&r.inst)
			r.kind = machine.EventRefused
		}
		if r.reason != "" || err != nil {
			return lengths, len(lengths), r
		}
		length := r.inst.Len
		if r.inst.Flow != decode.FlowNone {
			length |= unicorn.Branches
		}
		lengths = append(lengths, length)
		at += uint64(r.inst.Len)
	}
	return lengths, -1, refusal{}
}

// refusal is an instruction that must not run.
type refusal struct {
	inst   decode.Inst
	kind   machine.EventKind
	reason string
}

// maxBlock is at least the bytes of any block.
const maxBlock = PageSize + decode.MaxLen

// readSome reads code up to the first page that is not there.
func (m *Machine) readSome(dst []byte, addr uint64) int {
	n := 0
	_ = each(addr, uint64(len(dst)), func(at, size uint64) error {
		if err := m.ReadText(dst[n:n+int(size)], at); err != nil {
			return err
		}
		n += int(size)
		return nil
	})
	return n
}

// Unexpected returns the error that says what happened.
func (m *Machine) Unexpected(ev machine.Event) error {
	e := &UnexpectedError{Event: ev}
	if ev.Kind == machine.EventRefused {
		e.Text = m.ISA.Text(&ev.Inst, nil)
	}
	return e
}

// ExitAddress is where called functions return to.
const ExitAddress = unicorn.ExitAddress
