package runtime

import (
	"iter"
	"slices"

	"xol/machine"
)

// tasks knows what each CPU, and each task that no CPU runs, does with probes, and where
// it is.
type tasks struct {
	installer
	cpus     []control
	numbered map[uint64]*task
	returns  returns
	depth    int  // of runs inside handlers
	armed    bool // the global switch
}

// task is a sequence of instructions, as a thread has one: one CPU at a time
// executes them.
type task struct {
	number uint64
	cpu    int         // that runs it, or noCPU
	calls  []*instance // that will return to the trampoline: by stack pointer, the highest first, then by time
	depth  int         // of the calls that are going on
	activity
	places     []uint64 // where it may be, while no CPU runs it
	unfinished any      // what the machine has left to do in it
}

// noCPU stands for none.
const noCPU = -1

// activity is what a task does with probes. While a CPU runs the task, it is with
// the CPU.
type activity struct {
	current  hit
	outer    hit              // while the status is Reenter
	saved    [2]machine.State // registers before an instruction of several; of a second one while the status is Reenter
	stack    uint64           // pointer, when the task was started
	started  uint64           // the number of the start whose function has not returned; 0: none
	before   machine.State    // registers when the task was started
	panicked bool             // a handler of the current hit has panicked: it is finished when the task goes on
	stepping bool
	waiting  waiting
}

// holds reports whether a hit of the site is going on.
func (a *activity) holds(s *site) bool {
	return a.current.site == s || a.outer.site == s || a.waiting.site == s
}

// noTask returns what a CPU runs that was not told.
func noTask() *task { return &task{cpu: noCPU} }

// inHandler reports whether a handler runs on the CPU, or what one calls.
func (c *control) inHandler() bool {
	return c.current.status == HitActive || c.current.status == HitSSDone || c.asking || len(c.interrupted) > 0
}

// startTasks gives every CPU a task of its own.
func (r *tasks) startTasks() {
	r.numbered = map[uint64]*task{}
	for i := range r.cpus {
		t := r.task(uint64(i))
		t.cpu, r.cpus[i].task = i, t
		r.cpus[i].saved = r.newSaved()
	}
}

func (r *tasks) newSaved() [2]machine.State {
	return [2]machine.State{r.file.NewState(), r.file.NewState()}
}

// task returns the task of a number.
func (r *tasks) task(number uint64) *task {
	t := r.numbered[number]
	if t == nil {
		t = &task{number: number, cpu: noCPU}
		r.numbered[number] = t
	}
	return t
}

// SetTask says which task a CPU runs from now on. A host that has a CPU go on with
// another task, wherever it is, says so before or after it changes the registers,
// and before the CPU runs: what the task is doing with probes waits until a CPU
// runs it again, also another one, with the registers that it had. Its calls
// return in it. A task that another CPU runs is taken from there.
//
// A CPU starts with a task of its own, whose number is its own. A host that never
// switches need not say anything. A coroutine whose stack is copied away and back is
// such a task, too; one that has its own stack need not be.
//
// Called in a handler, as of a probe at the program's own switch, SetTask says in
// which task calls return from now on; the hit goes on.
func (r *tasks) SetTask(cpu int, task uint64) {
	t := r.task(task)
	if t.cpu == cpu {
		return
	}
	if t.cpu != noCPU {
		r.switchTo(t.cpu, noTask())
	}
	r.switchTo(cpu, t)
}

// switchTo has a CPU run another task.
func (r *tasks) switchTo(cpu int, t *task) {
	c := &r.cpus[cpu]
	old := c.task
	old.cpu, t.cpu, c.task = noCPU, cpu, t
	if c.inHandler() {
		return
	}
	old.places = append(old.places, r.m.CPU(cpu).Reg(r.file.PC))
	old.activity, c.activity = c.activity, t.activity
	t.activity, t.places = activity{}, t.places[:0]
	switch {
	case c.saved[0] != nil:
	case old.current.status == Idle:
		c.saved, old.saved = old.saved, c.saved
	default:
		c.saved = r.newSaved()
	}
	if old.stepping || c.stepping {
		c.switched = true
	}
	if m, ok := r.m.(machine.TaskSwitcher); ok {
		old.unfinished, t.unfinished = m.SwitchTask(cpu, t.unfinished), nil
	}
}

// TaskExit is called when a task ends, wherever it is: the calls that it was in
// never return, and what it was doing with probes ends.
func (r *tasks) TaskExit(task uint64) {
	t := r.numbered[task]
	if t == nil {
		return
	}
	for _, in := range t.calls {
		in.recycle()
	}
	t.calls, t.depth = nil, 0
	if t.cpu == noCPU {
		delete(r.numbered, task)
		return
	}
	if c := &r.cpus[t.cpu]; !c.inHandler() {
		c.switched = c.switched || c.stepping
		c.activity = activity{saved: c.saved, stack: c.stack}
	}
}

// Depth returns how many calls of functions with return probes are going on in a
// task, without those that a longjmp has left, as far as that is known.
func (r *tasks) Depth(task uint64) int {
	if t := r.numbered[task]; t != nil {
		return t.depth
	}
	return 0
}

// takeUp prepares a CPU that was given another task to run: the exception after every
// instruction is the task's.
func (r *tasks) takeUp(cpu int) error {
	c := &r.cpus[cpu]
	c.task.places = c.task.places[:0]
	if !c.switched {
		return nil
	}
	c.switched = false
	return r.m.CPU(cpu).SingleStep(c.stepping)
}

// stopped notes where the CPUs are when the host gets them, which may change their
// registers before it names another task.
func (r *tasks) stopped() {
	for i := range r.cpus {
		r.placed(i, r.m.CPU(i).Reg(r.file.PC))
	}
}

// placed notes where a CPU is.
func (r *tasks) placed(cpu int, pc uint64) {
	t := r.cpus[cpu].task
	t.places = append(t.places[:0], pc)
}

// offCPU are the tasks that no CPU runs.
func (r *tasks) offCPU() iter.Seq[*task] {
	return func(yield func(*task) bool) {
		for _, t := range r.numbered {
			if t.cpu == noCPU && !yield(t) {
				return
			}
		}
	}
}

// anyActivity reports whether f holds for what a CPU or a task that waits is doing.
func (r *tasks) anyActivity(f func(a *activity) bool) bool {
	for i := range r.cpus {
		if f(&r.cpus[i].activity) {
			return true
		}
	}
	for t := range r.offCPU() {
		if f(&t.activity) {
			return true
		}
	}
	return false
}

// anyAt reports whether at holds for the place of a CPU, for one that it comes back
// to from a nested call, or for that of a task that waits.
func (r *tasks) anyAt(at func(pc uint64) bool) bool {
	for i := range r.cpus {
		if at(r.m.CPU(i).Reg(r.file.PC)) || slices.ContainsFunc(r.cpus[i].interrupted, at) {
			return true
		}
	}
	for t := range r.offCPU() {
		if slices.ContainsFunc(t.places, at) {
			return true
		}
	}
	return false
}

func (r *tasks) stopStepping(cpu int) error {
	if !r.cpus[cpu].stepping {
		return nil
	}
	r.cpus[cpu].stepping = false
	return r.m.CPU(cpu).SingleStep(false)
}

// control is the control block of a CPU.
type control struct {
	task        *task
	activity             // of the task
	switched    bool     // the CPU has not run since it was given the task
	running     *probe   // whose handler runs
	rest        []*probe // of the hit, that come after the running one
	asking      bool     // a fault handler runs
	interrupted []uint64 // program counters of what nested calls have interrupted
	context     Context  // of the handlers that run: there are none inside them
}

// hit is a hit that is being handled.
type hit struct {
	status Status
	site   *site
}

// savedRegisters returns where the registers before the instruction of a hit are
// kept, for a copy that changes some before it can fault.
func (c *activity) savedRegisters() *machine.State {
	if c.current.status == Reenter {
		return &c.saved[1]
	}
	return &c.saved[0]
}

// waiting is what is left of a hit whose instruction has had an event that the host
// was told of.
type waiting struct {
	site  *site // nil: nothing
	after bool  // only handlers after the instruction
	stack uint64
}
