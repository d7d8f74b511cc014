package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"xol/analyze"
	"xol/arch"
	"xol/classify"
	"xol/decode"
	"xol/machine"
	"xol/relocate"
)

// Values of --form.
const (
	formSlot   = "slot"
	formRegion = "region"
)

// relocateOptions are the flags of relocate.
type relocateOptions struct {
	arch, from, to, dead       string
	form, back, reach, scratch choice
	noRedZone, kernel          bool
	symbols                    string
	size                       int
	format, profile            choice
	kconfig                    kconfigFlag
}

func (a *app) relocateCommand() *cobra.Command {
	opt := relocateOptions{
		form: choiceOf(formSlot, formRegion), back: choiceOf("jump", "breakpoint", "none"),
		reach: choiceOf("anywhere", "near", "far"), scratch: choiceOf("stack", "dead", "none"),
		format: formatChoice(), profile: choiceOf(classify.ISA, classify.Linux612),
	}
	cmd := &cobra.Command{
		Use:   "relocate --to ADDR {--arch A --from ADDR HEX… | --arch A - | FILE PLACE}",
		Short: "Give the bytes that do at one address what instructions do at another",
		Long: `Give the bytes that do at --to what the given bytes do at --from.

The instructions are HEX arguments, which together are one run of bytes, or those
at PLACE in an ELF FILE (see explain). A slot holds one instruction and its way
back; a region holds whole instructions, those that cover --size bytes where they
come from a FILE, and then a jump back.

With - every line of standard input is FROM TO HEX, and slot or region after it
if it is not --form. There is one result per line, in order. Bytes after the one
instruction of a slot are an error among arguments; in a line they are left out,
and a note says so.

In the profile linux-6.12 the bytes are those of that kernel: on amd64 a slot is
the copy with its displacement re-based, then INT3; a region is the copies, then a
5-byte jump.

Exit status: 1 where an instruction cannot be moved.`,
		Example: `  xol relocate --arch amd64 --from 0x1000 --to 0x400000 e8fb0f0000
  xol relocate --to 0x7f0000000000 --form region --size 5 /bin/bash main
  echo 0x1000 0x2000 488b05f00f0000 | xol relocate --arch amd64 -o jsonl -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.newMover(&opt, args)
			if err != nil {
				return usageError(cmd, err)
			}
			return a.relocate(m, &opt, args)
		},
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.arch, "arch", "", "architecture: "+strings.Join(arch.Names(), ", ")+", or another name of these (x86_64, aarch64, ppc64el …)")
	flags.StringVar(&opt.from, "from", "", "`ADDR` of the first HEX byte")
	flags.StringVar(&opt.to, "to", "", "`ADDR` of the moved code")
	opt.form.addTo(cmd, flags, "form", "", "one instruction, or a run of them")
	flags.IntVar(&opt.size, "size", 0, "a region from a FILE covers at least `N` bytes (default: what a jump needs)")
	opt.back.addTo(cmd, flags, "back", "", "how the moved code returns")
	opt.reach.addTo(cmd, flags, "reach", "", "forms to use: as needed, only near ones, only far ones")
	opt.scratch.addTo(cmd, flags, "scratch", "", "where far forms take a register from")
	flags.StringVar(&opt.dead, "dead", "", "`REGISTERS` that are known to be dead, separated by commas")
	flags.BoolVar(&opt.noRedZone, "no-red-zone", false, "nothing below the stack pointer has to be kept")
	flags.BoolVar(&opt.kernel, "kernel", false, "the code runs in kernel mode")
	flags.StringVar(&opt.symbols, "symbols", "", "take the symbols from a System.map or kallsyms `FILE`")
	opt.format.addTo(cmd, flags, "output", "o", "output format")
	opt.profile.addTo(cmd, flags, "profile", "", "whose forms to use")
	opt.kconfig.addTo(cmd, flags)
	_ = cmd.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(arch.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// mover moves instructions of one ISA as the flags ask.
type mover struct {
	isa     arch.Relocator
	profile classify.Profile
	opt     relocate.Options
	form    string // where a line of input does not say
	plan    relocate.Plan
	insts   []decode.Inst
	code    [4096]byte
	lookup  decode.SymLookup
}

// moved is one result.
type moved struct {
	from, to uint64
	form     string // as in --form
	code     []byte
	exec     string
	notes    []string
	text     []string
	clobbers []string // names of registers
	err      error
	rule     string // of a refusal
}

// job is code to move.
type job struct {
	from, to uint64
	code     []byte
}

var errNoDestination = errors.New("--to is missing: the address of the moved code")

// newMover reads the flags that do not depend on a file.
func (a *app) newMover(opt *relocateOptions, args []string) (*mover, error) {
	m := &mover{form: opt.form.value}
	switch {
	case len(args) == 0:
		return nil, errors.New("nothing to move (HEX arguments, FILE PLACE, or - for lines of standard input)")
	case opt.arch == "" && (len(args) != 2 || isStdin(args)):
		return nil, fmt.Errorf("--arch is missing (one of %s), or FILE PLACE", strings.Join(arch.Names(), ", "))
	case opt.to == "" && !isStdin(args):
		return nil, errNoDestination
	case opt.to != "" && isStdin(args):
		return nil, errors.New("--to is for HEX arguments and FILE PLACE; lines of input carry their own")
	case opt.arch != "" && opt.from == "" && !isStdin(args):
		return nil, errors.New("--from is missing: the address of the first HEX byte")
	}
	if opt.arch != "" {
		isa, err := arch.ByName(opt.arch)
		if err != nil {
			return nil, err
		}
		if err := m.setISA(isa, opt); err != nil {
			return nil, err
		}
	}
	return m, nil
}

var (
	backs    = map[string]relocate.Back{"jump": relocate.BackJump, "breakpoint": relocate.BackBreakpoint, "none": relocate.BackNone}
	reaches  = map[string]relocate.Reach{"anywhere": relocate.Anywhere, "near": relocate.Near, "far": relocate.Far}
	scratchs = map[string]relocate.ScratchPolicy{"stack": relocate.ScratchStack, "dead": relocate.ScratchGiven, "none": relocate.ScratchNone}
)

// setISA completes m for an ISA: register names are the ISA's own.
func (m *mover) setISA(of arch.ISA, opt *relocateOptions) error {
	isa, err := arch.Relocation(of)
	if err != nil {
		return err
	}
	dead, err := registerSet(isa.Registers(), opt.dead)
	if err != nil {
		return err
	}
	profile, ok := isa.Profile(opt.profile.value, opt.kconfig.options(isa.Name(), opt.profile.value))
	if !ok {
		return &analyze.ProfileError{Name: opt.profile.value, Known: isa.Profiles()}
	}
	m.isa, m.profile = isa, profile
	m.opt = relocate.Options{
		Back: backs[opt.back.value], Reach: reaches[opt.reach.value], Scratch: scratchs[opt.scratch.value],
		Registers: dead, NoRedZone: opt.noRedZone, Kernel: opt.kernel,
		Linux: mechanismOf(opt.profile.value) == classify.Kprobes,
	}
	return nil
}

// registerSet reads names of general registers.
func registerSet(f *machine.File, names string) (set uint32, err error) {
	for name := range strings.SplitSeq(names, ",") {
		if name == "" {
			continue
		}
		i := f.Index(name)
		if i < 0 || i >= 32 || f.Registers[i].Kind != machine.General {
			return 0, fmt.Errorf("--dead: %q is no general register (they are named like %s)", name, f.Registers[0].Name)
		}
		set |= 1 << i
	}
	return set, nil
}

// relocate carries out what the arguments ask for.
func (a *app) relocate(m *mover, opt *relocateOptions, args []string) error {
	if isStdin(args) {
		return a.relocateLines(m, opt)
	}
	j, err := a.relocationJob(m, opt, args)
	if err != nil {
		return err
	}
	format := opt.format.value
	if format == formatJSON {
		format = formatJSONL // one object, no array
	}
	w, flush := a.results()
	out := newMovedWriter(w, format, a.palette())
	res := m.move(j, m.form)
	err = out.write(&res)
	out.close()
	if err == nil && res.err != nil {
		err = answerNo
	}
	return flush(err)
}

// relocationJob reads HEX arguments or FILE PLACE.
func (a *app) relocationJob(m *mover, opt *relocateOptions, args []string) (j job, err error) {
	if j.to, err = parseHexAddr([]byte(opt.to)); err != nil {
		return j, fmt.Errorf("relocate: %w (--to)", err)
	}
	if opt.arch == "" {
		return a.fileJob(m, opt, args[0], args[1], j.to)
	}
	if j.from, err = parseHexAddr([]byte(opt.from)); err != nil {
		return j, fmt.Errorf("relocate: %w (--from)", err)
	}
	if j.code, err = parseHexArgs(args); err != nil {
		return j, fmt.Errorf("relocate: %w", err)
	}
	if rest := m.unused(j, m.form); rest != "" {
		return j, fmt.Errorf("relocate: %s (--form region moves several)", rest)
	}
	return j, nil
}

// unused says which bytes of a job a slot has no use for: those after its first
// instruction. It is empty where there are none.
func (m *mover) unused(j job, form string) string {
	var first decode.Inst
	if form != formSlot || m.isa.Decode(&first, j.code, j.from) != nil || int(first.Len) == len(j.code) {
		return ""
	}
	return fmt.Sprintf("a slot holds one instruction, and of %d bytes the first is %d long", len(j.code), first.Len)
}

// fileJob takes the instructions from a file.
func (a *app) fileJob(m *mover, opt *relocateOptions, path, place string, to uint64) (j job, err error) {
	symbols, err := a.readSymbols(opt.symbols)
	if err != nil {
		return j, err
	}
	img, err := a.openImage(path, symbols)
	if err != nil {
		return j, err
	}
	defer img.Close()
	isa, err := arch.ByMachine(img.Machine(), img.ByteOrder())
	if err == nil {
		err = m.setISA(isa, opt)
	}
	if err != nil {
		return j, fileError(path, err)
	}
	places, err := img.Resolve(place)
	if err != nil {
		return j, fileError(path, err)
	}
	an, err := analyze.New(img, analyze.Options{})
	if err != nil {
		return j, fileError(path, err)
	}
	size := max(opt.size, 1)
	if opt.size == 0 && opt.form.value == formRegion {
		size = isa.JumpLen()
	}
	m.lookup = img.Symbolize
	j = job{from: places[0].Addr, to: to}
	if j.code, err = codeAt(an, j.from, size); err != nil {
		return j, fileError(path, err)
	}
	return j, nil
}

// codeAt returns the whole instructions from addr on that cover size bytes, or
// those up to the end of the function.
func codeAt(an *analyze.Analysis, addr uint64, size int) (code []byte, err error) {
	f, ok := holder(an, addr)
	if !ok {
		return nil, fmt.Errorf("%#x belongs to no function", addr)
	}
	r := an.Judge(f)
	if r.Err != nil {
		return nil, r.Err
	}
	first, start := decode.Find(r.Insts, addr)
	if !start {
		return nil, fmt.Errorf("%#x is inside an instruction", addr)
	}
	for i := first; i < len(r.Insts) && len(code) < size; i++ {
		code = append(code, r.Insts[i].Bytes()...)
	}
	return code, nil
}

// relocateLines moves what every line of standard input asks for.
func (a *app) relocateLines(m *mover, opt *relocateOptions) error {
	w, flush := a.results()
	out := newMovedWriter(w, opt.format.value, a.palette())
	failures := 0
	err := eachLine(a.in, w, func(number int, line []byte, lineErr error) error {
		var res moved
		if lineErr == nil {
			var j job
			var form string
			j, form, lineErr = parseMoveLine(line, m.form)
			res = moved{from: j.from, to: j.to}
			if lineErr == nil {
				res = m.move(j, form)
			}
		}
		if lineErr != nil {
			res.err = fmt.Errorf("%w (line %d)", lineErr, number)
		}
		if res.err != nil {
			failures++
		}
		return out.write(&res)
	})
	out.close()
	if err == nil && failures > 0 {
		err = answerNo
	}
	return flush(err)
}

// parseMoveLine reads FROM TO HEX [slot|region].
func parseMoveLine(line []byte, form string) (j job, _ string, err error) {
	fields := bytes.Fields(line)
	if len(fields) < 3 || len(fields) > 4 {
		return j, form, errors.New("want FROM TO HEX [slot|region]")
	}
	if j.from, err = parseHexAddr(fields[0]); err != nil {
		return j, form, err
	}
	if j.to, err = parseHexAddr(fields[1]); err != nil {
		return j, form, err
	}
	if j.code, err = appendHex(nil, fields[2]); err != nil {
		return j, form, err
	}
	if len(fields) == 4 {
		form = string(fields[3])
		if form != formSlot && form != formRegion {
			return j, form, fmt.Errorf("%.40q is neither slot nor region", form)
		}
	}
	return j, form, nil
}

// move does one job. A slot takes the first instruction of the bytes.
func (m *mover) move(j job, form string) (res moved) {
	res = moved{from: j.from, to: j.to, form: form, exec: classify.ExecSlot.String()}
	opt := m.opt
	if form == formRegion {
		opt.Form = relocate.Region
	}
	if res.err = m.decode(j, form); res.err != nil {
		return res
	}
	if opt.Form == relocate.Slot {
		v := m.profile.Lone(j.code, j.from)
		if !v.OK() {
			res.err, res.rule = errors.New(v.Rule.Reason), v.Rule.ID
			return res
		}
		res.exec = v.Exec.String()
		if opt.Linux && !v.Boosted {
			opt.Back = relocate.BackBreakpoint
		}
	}
	if res.err = m.isa.Plan(&m.plan, m.insts, opt); res.err == nil {
		var n int
		n, res.err = m.isa.Encode(m.code[:], &m.plan, j.to)
		res.code = m.code[:n]
	}
	var refused *relocate.RefusedError
	switch {
	case errors.As(res.err, &refused) && res.exec == classify.ExecEmulate.String():
		res.err = nil // what has no moved form is emulated
		res.notes = []string{refused.Rule.ID + ": " + refused.Rule.Reason}
	case res.err != nil:
		var rule *classify.Rule
		if rule, res.err = m.refusal(res.err, opt); rule != nil {
			res.rule = rule.ID
		}
	default:
		if rest := m.unused(j, form); rest != "" {
			res.notes = append(res.notes, rest)
		}
		res.notes = append(res.notes, m.notes()...)
		res.text = m.disassemble(res.code, j.to)
		res.clobbers = m.clobbered(res.code, j.to)
	}
	return res
}

// decode fills m.insts.
func (m *mover) decode(j job, form string) error {
	m.insts = m.insts[:0]
	code, addr := j.code, j.from
	for len(code) > 0 {
		var inst decode.Inst
		if err := m.isa.Decode(&inst, code, addr); err != nil {
			return fmt.Errorf("%w at %#x", err, addr)
		}
		m.insts = append(m.insts, inst)
		if form == formSlot {
			return nil
		}
		code, addr = code[inst.Len:], inst.Next()
	}
	return nil
}

// notes says what was done to each instruction that was not kept.
func (m *mover) notes() []string {
	var notes []string
	for i := range m.plan.Steps {
		if s := &m.plan.Steps[i]; s.Note != nil {
			notes = append(notes, fmt.Sprintf("%#x %v: %s (%s)", s.Inst.Addr, s.Action, s.Note.Text, s.Note.ID))
		}
	}
	return notes
}

// disassemble returns the text of moved code. An indirect jump to the address
// that is stored right after it has data there.
func (m *mover) disassemble(code []byte, addr uint64) []string {
	var text []string
	for len(code) > 0 {
		var inst decode.Inst
		if m.isa.Decode(&inst, code, addr) != nil {
			return append(text, fmt.Sprintf(".byte %x", code))
		}
		text = append(text, m.isa.Text(&inst, m.lookup))
		code, addr = code[inst.Len:], inst.Next()
		if inst.Flow == decode.FlowJumpIndirect && inst.Has(decode.HasTarget) && inst.Target == addr && len(code) >= 8 {
			text = append(text, fmt.Sprintf(".quad %#x", binary.LittleEndian.Uint64(code)))
			code, addr = code[8:], addr+8
		}
	}
	return text
}
