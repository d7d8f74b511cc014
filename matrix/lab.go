//go:build unicorn

package matrix

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"xol/arch"
	"xol/classify"
	"xol/guest"
	"xol/image"
	"xol/machine"
	"xol/runtime"
)

//go:embed testdata/*.elf
var programs embed.FS

// lab is a machine with the program of its ISA and a runtime. What is wrong is
// kept in err, the first only; nothing is done after it.
type lab struct {
	ctx     context.Context // of the runs
	target  string
	mode    Mode
	isa     arch.Prober
	m       *guest.Machine
	program *guest.Program
	r       *runtime.Runtime
	image   *runtime.Module
	img     *image.Image
	kernel  bool
	names   map[uint64]string // of probed addresses
	log     []string          // states since they were looked at
	err     error
}

// never is a number of instructions between two passes of the optimizer that no
// case reaches: it works when it is told to.
const never = 1 << 40

// Memory of the cases.
const (
	scratch     = 0x6000_0000 // zeroed, one page
	nowhere     = 0x6100_0000 // not there
	stepsAtMost = 1 << 20     // in a run
)

// options returns those of the mode.
func (m Mode) options() runtime.Options {
	return runtime.Options{
		Stepping:   map[Mode]runtime.Stepping{SteppedTrap: runtime.StepTrap}[m],
		NoBoost:    m != Boosted && m != Optimized,
		NoOptimize: m != Optimized,
		Pass:       never,
	}
}

// openLab returns a lab that is closed with close.
func openLab(ctx context.Context, c *lifeCase, target string, mode Mode) (l *lab, err error) {
	l = &lab{ctx: ctx, target: target, mode: mode, names: map[uint64]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	isa, err := arch.ByName(target)
	if err != nil {
		return l, err
	}
	if l.isa, err = arch.Probing(isa); err != nil {
		return l, err
	}
	if l.m, err = guest.Open(guest.Options{ISA: l.isa, CPUs: max(c.cpus, 1), Exact: c.exact, Seed: 1, Turn: 7}); err != nil {
		return l, err
	}
	file, err := programs.ReadFile("testdata/" + target + ".elf")
	if err != nil {
		return l, err
	}
	if l.program, err = l.m.Load(bytes.NewReader(file)); err != nil {
		return l, err
	}
	if err = l.m.Map(scratch, guest.PageSize, machine.PermRead|machine.PermWrite); err != nil {
		return l, err
	}
	opt := mode.options()
	opt.Observe = l.observe
	if c.options != nil {
		c.options(l, &opt)
	}
	l.kernel = opt.Kernel
	if l.r, err = runtime.New(l.m, l.isa, opt); err != nil {
		return l, err
	}
	if l.img, err = image.Open(bytes.NewReader(file), int64(len(file)), image.Options{}); err != nil {
		return l, err
	}
	l.image, err = l.r.Load(target, l.img)
	return l, err
}

func (l *lab) close() error {
	var errs []error
	if l.m != nil {
		errs = append(errs, l.m.Close())
	}
	if l.img != nil {
		errs = append(errs, l.img.Close())
	}
	return errors.Join(errs...)
}

// fail keeps what is wrong.
func (l *lab) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
	}
}

// must keeps an error where there is none to be.
func (l *lab) must(err error) {
	if err != nil {
		l.fail("%w", err)
	}
}

// equal says that something is not what it has to be.
func equal[T comparable](l *lab, what string, got, want T) {
	if got != want {
		l.fail("%s is %v, want %v", what, got, want)
	}
}

// refused checks that an error is a refusal by a rule.
func (l *lab) refused(what string, err error, rule string, errno classify.Errno) {
	var refusal *runtime.RegisterError
	switch {
	case err == nil:
		l.fail("%s is accepted", what)
	case !errors.As(err, &refusal):
		l.fail("%s: %w: want a refusal", what, err)
	case refusal.Rule.ID != rule || !errors.Is(err, errno):
		l.fail("%s: %w, want %v (%s)", what, err, errno, rule)
	}
}

// spot is an instruction of the program.
type spot struct {
	function string
	addr     uint64
}

// at returns the instruction with a label; see testdata.
func (l *lab) at(function, label string) spot {
	base, _, err := l.program.Symbol(function)
	l.must(err)
	offset, _, err := l.program.Symbol(function + "." + label)
	l.must(err)
	return spot{function, base + offset}
}

// subject returns an instruction that the mode applies to; its function
// computes subjectResult.
func (l *lab) subject() spot {
	if l.mode == Emulated {
		return l.at("jumping", "subject")
	}
	return l.at("straight", "subject")
}

// afterSubject returns the instruction that is executed next.
func (l *lab) afterSubject() spot { return l.at(l.subject().function, "after") }

func subjectResult(a, b uint64) uint64 { return (a + b + 5 + a) ^ 3 }

// accumulator is the name of the register that subjects change, and its value
// before them.
func (l *lab) accumulator(a, b uint64) (name string, before uint64) {
	name = map[string]string{"amd64": "rax", "arm64": "x2", "ppc64": "r5", "ppc64le": "r5"}[l.target]
	if l.mode == Emulated {
		return name, a + b + 5
	}
	return name, a + b
}

// function returns a function of the program.
func (l *lab) function(name string) machine.Function {
	f, err := l.program.Function(name)
	l.must(err)
	return f
}

// call calls a function on the first CPU.
func (l *lab) call(function string, args ...uint64) uint64 {
	f := l.function(function)
	if l.err != nil {
		return 0
	}
	l.must(l.r.GiveUp(0)) // what ended in an error
	sp := l.isa.Registers().SP
	stack := l.m.CPU(0).Reg(sp)
	v, err := l.r.Call(l.ctx, 0, f, args...)
	if err != nil {
		l.fail("%s: %w", function, err)
	}
	equal(l, "the stack pointer", l.m.CPU(0).Reg(sp), stack)
	return v
}

// returns checks what a function returns.
func (l *lab) returns(want uint64, function string, args ...uint64) {
	equal(l, function+"()", l.call(function, args...), want)
}

// computes checks what the subject's function does, twice.
func (l *lab) computes() {
	for _, a := range [...]uint64{3, 1 << 40} {
		l.returns(subjectResult(a, 7), l.subject().function, a, 7)
	}
}

// register attaches a probe at a spot.
func (l *lab) register(s spot, p runtime.Probe) *runtime.Link {
	p.Addr = s.addr
	l.names[s.addr] = s.function
	return l.attach(p)
}

// attach attaches a probe. The link holds none where something has failed.
func (l *lab) attach(spec runtime.Spec) *runtime.Link {
	if l.err != nil {
		return nil
	}
	link, err := l.r.Attach(spec)
	l.must(err)
	return link
}

// try says only whether a probe can be attached.
func (l *lab) try(spec runtime.Spec) error {
	_, err := l.r.Attach(spec)
	return err
}

func (l *lab) unregister(p *runtime.Link) {
	if l.err == nil {
		l.must(p.Close())
	}
}

// settle has the optimizer do all there is to do.
func (l *lab) settle() {
	if l.err == nil {
		l.must(l.r.Settle())
	}
}

// ready has the instruction of a probe executed once, so that it may be
// boosted, and the optimizer do its work.
func (l *lab) ready(function string, args ...uint64) {
	l.call(function, args...)
	l.settle()
	l.log = nil
}

// text returns bytes of the program as they are now.
func (l *lab) text(s spot) string {
	code := make([]byte, 8)
	l.must(l.m.ReadText(code, s.addr))
	return fmt.Sprintf("%x", code)
}

// breaks reports whether a breakpoint stands at a spot.
func (l *lab) breaks(s spot) bool {
	return strings.HasPrefix(l.text(s), fmt.Sprintf("%x", l.isa.Breakpoint(l.kernel)))
}

func (l *lab) observe(t runtime.Transition) {
	var b strings.Builder
	if t.CPU > 0 {
		fmt.Fprintf(&b, "%d/", t.CPU)
	}
	name := l.names[t.Addr]
	if name == "" {
		name = fmt.Sprintf("%#x", t.Addr)
	}
	fmt.Fprintf(&b, "%s:%v", name, t.Status)
	if t.Method != runtime.MethodNone {
		fmt.Fprintf(&b, "/%v", t.Method)
	}
	if t.Missed {
		b.WriteString("/missed")
	}
	if t.Jump {
		b.WriteString("/jump")
	}
	l.log = append(l.log, b.String())
}

// states checks the states that CPUs went through since it was called last.
// Each argument is a run of states, or several separated by spaces.
func (l *lab) states(want ...string) {
	got := l.log
	l.log = nil
	if w := strings.Fields(strings.Join(want, " ")); !slices.Equal(got, w) {
		l.fail("states are %s, want %s", orNone(got), orNone(w))
	}
}

func orNone(states []string) string {
	if len(states) == 0 {
		return "none"
	}
	return strings.Join(states, " ")
}

// kind is what a sequence of states depends on, besides the mode.
type kind uint8

const (
	plain    kind = 0
	transfer kind = 1 << iota // the instruction transfers control
	post                      // there is a handler after the instruction
	first                     // it was not hit before, and the optimizer did not come
	boosted                   // it was hit before, and the optimizer did not come
)

// hit returns the states of a CPU that hits a probe in a function.
func (l *lab) hit(function string, k kind) string {
	way := "step"
	if k&transfer != 0 && l.mode != SteppedTrap {
		way = "emulate"
	}
	format := "N:active N:ss N:ss/" + way + " N:idle"
	switch {
	case k&post != 0:
		format = "N:active N:ss N:ss/" + way + " N:ssdone N:idle"
	case k&first != 0:
	case l.mode == Boosted, k&boosted != 0:
		format = "N:active N:active/boost N:idle"
	case l.mode == Optimized:
		format = "N:active/jump N:idle"
	}
	return strings.ReplaceAll(format, "N", function)
}

// one returns the states of one hit of the subject.
func (l *lab) one(k kind) string {
	if l.mode == Emulated {
		k |= transfer
	}
	return l.hit(l.subject().function, k)
}

// word and setWord are memory of the program.
func (l *lab) word(addr uint64) uint64 {
	v, err := l.m.ReadWord(addr)
	l.must(err)
	return v
}

func (l *lab) setWord(addr, v uint64) { l.must(l.m.WriteWord(addr, v)) }

// argument returns the register of an argument on the first CPU.
func (l *lab) argument(n int) uint64 { return l.m.CPU(0).Reg(l.isa.Convention().Args[n]) }

func (l *lab) pc() uint64 { return l.m.CPU(0).Reg(l.isa.Registers().PC) }

// areas returns the memory of the runtime's own.
func (l *lab) areas() (areas []machine.Range) {
	var b strings.Builder
	l.must(l.r.ListBlacklist(&b))
	for line := range strings.Lines(b.String()) {
		var a machine.Range
		var name string
		if _, err := fmt.Sscanf(line, "0x%x-0x%x\t%s\n", &a.Lo, &a.Hi, &name); err != nil {
			l.fail("%q in the blacklist: %w", line, err)
		}
		if strings.HasPrefix(name, "[") {
			areas = append(areas, a)
		}
	}
	return areas
}

// list returns the list of the probes.
func (l *lab) list() string {
	var b strings.Builder
	l.must(l.r.List(&b))
	return b.String()
}
