//go:build unicorn

package runtime_test

import (
	"errors"
	"strings"
	"testing"

	"xol/analyze"
	"xol/arch"
	"xol/classify"
	"xol/decode"
	"xol/guest"
	"xol/internal/isatest"
	"xol/kernel"
	"xol/runtime"
)

// What Linux 6.12 refuses, and isa takes: [arch/x86/kernel/kprobes/core.c,
// prepare_emulation], [arch/arm64/kernel/probes/decode-insn.c,
// aarch64_insn_is_steppable], [arch/powerpc/kernel/kprobes.c, arch_prepare_kprobe].
var kernelRefusals = map[string][]struct {
	name, code string
	offset     uint64
	errno      classify.Errno
}{
	"amd64": {
		{"call through memory", "ff17c3", 0, classify.EOPNOTSUPP},
		{"jump through memory", "ff27", 0, classify.EOPNOTSUPP},
		{"far call through memory", "48ff1fc3", 0, classify.EOPNOTSUPP},
		{"move to ss", "8ed0c3", 0, classify.EINVAL},
	},
	"arm64": {
		{"msr nzcv", "d51b4200d65f03c0", 0, classify.EINVAL},
		{"load exclusive", "c85f7c00d65f03c0", 0, classify.EINVAL},
		{"between the exclusives", "c85f7c0091000400c8017c00d65f03c0", 4, classify.EINVAL},
		{"a hint", "d503203fd65f03c0", 0, classify.EINVAL}, // yield
	},
	"ppc64": {
		{"trap on a condition", "7c8000084e800020", 0, classify.EINVAL}, // tw 4,r0,r0
		{"sc", "440000024e800020", 0, classify.EINVAL},
	},
}

func refusalsOf(isa string) []snippet {
	if isa == "ppc64le" {
		isa = "ppc64"
	}
	var all []snippet
	for _, c := range kernelRefusals[isa] {
		all = append(all, snippet{c.name, c.code})
	}
	return all
}

func TestProfileRefuses(t *testing.T) {
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			rows := kernelRefusals[isa]
			if isa == "ppc64le" {
				rows = kernelRefusals["ppc64"]
			}
			kernel := openSnippets(t, isa, refusalsOf(isa), guest.Options{}, runtime.Options{Profile: classify.Linux612})
			for _, c := range rows {
				err := try(kernel, runtime.Probe{Addr: kernel.at[c.name] + c.offset})
				var refused *runtime.RegisterError
				if !errors.As(err, &refused) || refused.Errno != c.errno || !errors.Is(err, c.errno) || refused.Rule.ID == "" {
					t.Errorf("%s: %v, want %v", c.name, err, c.errno)
				}
			}
			if n := len(kernel.Links()); n != 0 {
				t.Errorf("%d probes are left", n)
			}
		})
	}
}

// At every instruction of a program, what is refused and what becomes a jump is what
// the profile says, as far as a runtime without it does the same.
func TestProfileEverywhere(t *testing.T) {
	for _, isa := range arch.Names() {
		for name, facts := range map[string]kernel.Facts{
			"Debian": {}, "without preemption": {Given: map[kernel.Option]bool{kernel.Preemption: false}},
		} {
			t.Run(isa+" "+name, func(t *testing.T) {
				p := open(t, isa, "2", guest.Options{}, runtime.Options{Profile: classify.Linux612, KernelFacts: facts})
				free := open(t, isa, "2", guest.Options{}, runtime.Options{})
				answers := answersOf(t, p, analyze.Options{Profile: classify.Linux612, Kernel: facts, Optimize: true})
				refused, optimized := 0, 0
				for addr, want := range answers {
					err, jump := tryProbe(t, p, addr)
					freeErr, freeJump := tryProbe(t, free, addr)
					switch {
					case !want.allowed():
						if !errors.Is(err, want.v.Rule.Errno) {
							t.Errorf("%#x: %v, want %v", addr, err, want.v.Rule.Errno)
						}
						refused++
					case (err == nil) != (freeErr == nil):
						t.Errorf("%#x: %v, without a profile %v", addr, err, freeErr)
					case jump != (want.optimize && freeJump):
						t.Errorf("%#x: optimized %v, without a profile %v, the kernel %v", addr, jump, freeJump, want.optimize)
					case jump:
						optimized++
					}
				}
				if isa == "amd64" && optimized < len(answers)/4 {
					t.Errorf("%d of %d optimized", optimized, len(answers))
				}
				t.Logf("%d of %d refused, %d optimized", refused, len(answers), optimized)
			})
		}
	}
}

// tryProbe registers a probe alone, and says whether it becomes a jump.
func tryProbe(t *testing.T, p *program, addr uint64) (err error, jump bool) {
	t.Helper()
	probe, err := p.Attach(runtime.Probe{Addr: addr})
	if err != nil {
		return err, false
	}
	err = p.Settle()
	jump = probe.Optimized()
	if err := errors.Join(err, probe.Close()); err != nil {
		t.Fatal(err)
	}
	return nil, jump
}

// answer is what a profile says of an instruction.
type answer struct {
	v        classify.Verdict
	optimize bool
}

func (a answer) allowed() bool { return a.v.OK() }

// answersOf returns what a profile says of all instructions of a program.
func answersOf(t *testing.T, p *program, opt analyze.Options) map[uint64]answer {
	t.Helper()
	a, err := analyze.New(p.img, opt)
	if err != nil {
		t.Fatal(err)
	}
	all := map[uint64]answer{}
	for _, f := range a.Functions() {
		r := a.Judge(f)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		for i := range r.Insts {
			if inst := &r.Insts[i]; !inst.Has(decode.Invalid) {
				may := len(r.Optimize) > 0 && r.Optimize[i].OK() && r.Optimize[i].Region > 0
				all[inst.Addr] = answer{r.Verdicts[i], may}
			}
		}
	}
	return all
}

// Linux puts a probe at a landing pad after it, and so does the runtime by its rules.
func TestProfileMovesAfterLandingPad(t *testing.T) {
	functions := []snippet{{"f", "f30f1efa8d4701c3"}}
	for _, c := range []struct {
		name    string
		profile string
		probe   runtime.Probe
		offset  uint64
	}{
		{"by symbol", classify.Linux612, runtime.Probe{Symbol: "f"}, 4},
		{"by address", classify.Linux612, runtime.Probe{Addr: snippetText}, 4},
		{"after it", classify.Linux612, runtime.Probe{Symbol: "f", Offset: 4}, 4},
		{"isa leaves it", classify.ISA, runtime.Probe{Symbol: "f"}, 0},
		{"so does the default", "", runtime.Probe{Symbol: "f"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openSnippets(t, "amd64", functions, guest.Options{}, runtime.Options{Profile: c.profile})
			probe := attach(t, p, c.probe)
			if got := probe.Address() - p.at["f"]; got != c.offset {
				t.Errorf("the probe is at f+%d, want f+%d", got, c.offset)
			}
			if got := p.call(0, "f", 41); got != 42 || probe.Hits() != 1 {
				t.Errorf("f returned %d, with %d hits", got, probe.Hits())
			}
			if err := probe.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A return probe stands where the kernel would put its entry.
func TestProfileMovesReturnProbe(t *testing.T) {
	p := openSnippets(t, "amd64", []snippet{{"f", "f30f1efa8d4701c3"}}, guest.Options{}, runtime.Options{Profile: classify.Linux612})
	var got uint64
	probe := attach(t, p, runtime.ReturnProbe{Symbol: "f", Handler: func(c *runtime.ReturnContext) { got = c.Regs.ReturnValue() & 0xffff_ffff }})
	if at := probe.Address() - p.at["f"]; at != 4 {
		t.Errorf("its entry is at f+%d, want f+4", at)
	}
	if result := p.call(0, "f", 41); result != 42 || got != 42 || probe.Hits() != 1 {
		t.Errorf("f returned %d, the handler saw %d, %d returns", result, got, probe.Hits())
	}
}

func TestAddressWithOffset(t *testing.T) {
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			p := openSnippets(t, isa, []snippet{{"f", rewritingOf(isa).sum}}, guest.Options{}, runtime.Options{})
			second := rewritingOf(isa).numbers[1] - rewritingOf(isa).numbers[0]
			if isa == "amd64" {
				second = 3
			}
			probe := attach(t, p, runtime.Probe{Addr: p.at["f"], Offset: second})
			if probe.Address() != p.at["f"]+second {
				t.Errorf("the probe is at %#x", probe.Address())
			}
			if got := p.call(0, "f", 10); got != 25 || probe.Hits() != 1 {
				t.Errorf("f returned %d, with %d hits", got, probe.Hits())
			}
			outside := runtime.Probe{Addr: p.at["f"], Offset: 1 << 30}
			if err := try(p, outside); !errors.Is(err, classify.EINVAL) {
				t.Errorf("outside of the text: %v", err)
			}
		})
	}
}

func TestProfileOptions(t *testing.T) {
	isa, err := isatest.Named("amd64")
	if err != nil {
		t.Fatal(err)
	}
	m, err := guest.Open(guest.Options{ISA: isa})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, c := range []struct {
		name string
		opt  runtime.Options
		ok   bool
	}{
		{"no such profile", runtime.Options{Profile: "linux-0.1"}, false},
		{"a kprobe's for uprobes", runtime.Options{Profile: classify.Linux612, Uprobes: true}, false},
		{"a uprobe's for kprobes", runtime.Options{Profile: classify.Uprobe612}, false},
		{"a uprobe's for uprobes", runtime.Options{Profile: classify.Uprobe612, Uprobes: true}, true},
		{"isa", runtime.Options{Profile: classify.ISA}, true},
	} {
		_, err := runtime.New(m, isa, c.opt)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	var unknown *analyze.ProfileError
	if _, err := runtime.New(m, isa, runtime.Options{Profile: "linux-0.1"}); !errors.As(err, &unknown) || unknown.Name != "linux-0.1" {
		t.Errorf("the profile is not named: %v", err)
	}
}

// observed is a machine that counts what a runtime does with its memory.
type observed struct {
	*guest.Machine
	at      uint64 // whose reading is counted
	reads   int
	site    uint64 // whose patches are counted
	patches int
}

func (m *observed) Read(dst []byte, addr uint64) error {
	if m.at-addr < uint64(len(dst)) {
		m.reads++
	}
	return m.Machine.Read(dst, addr)
}

func (m *observed) Patch(addr uint64, code []byte) error {
	if addr == m.site {
		m.patches++
	}
	return m.Machine.Patch(addr, code)
}

// openObserved is openSnippets on such a machine.
func openObserved(t *testing.T, isa string, functions []snippet, opt runtime.Options) (*snippets, *observed) {
	t.Helper()
	p := openSnippets(t, isa, functions, guest.Options{}, opt)
	m := &observed{Machine: p.m}
	var err error
	if p.Runtime, err = runtime.New(m, p.isa, opt); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Load("snippets", p.img); err != nil {
		t.Fatal(err)
	}
	return p, m
}

// plainText is a function of many instructions, by ISA.
var plainText = map[string]string{
	"amd64":   "8d4701" + strings.Repeat("83c001", 12) + "c3",
	"arm64":   strings.Repeat("91000400", 12) + "d65f03c0",
	"ppc64":   strings.Repeat("38630001", 12) + "4e800020",
	"ppc64le": strings.Repeat("38630001", 12) + "4e800020",
}

// The text of a function is read once for the rules of isa and once for the kernel's.
func TestProfileAsksOnce(t *testing.T) {
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			for profile, most := range map[string]int{classify.ISA: 1, classify.Linux612: 2} {
				p, m := openObserved(t, isa, []snippet{{"f", plainText[isa]}}, runtime.Options{Profile: profile})
				m.at = p.at["f"] + 32 // further than an instruction, or a jump, is long
				attach(t, p, runtime.Probe{Symbol: "f"})
				if m.reads != most {
					t.Errorf("%s: the text was read %d times, want %d", profile, m.reads, most)
				}
			}
		})
	}
}

// A probe that the kernel limits is made anew when its own text changes, and not when
// other text of the function does, which is no longer the file's already.
func TestProfileKeepsSites(t *testing.T) {
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			p, m := openObserved(t, isa, []snippet{{"f", plainText[isa]}}, runtime.Options{Profile: classify.Linux612, NoOptimize: true})
			m.site = p.at["f"]
			number := map[string]uint64{"amd64": 2, "arm64": 1, "ppc64": 3, "ppc64le": 0}[isa] // the byte of an instruction that has it
			add := func(at, n uint64) {
				t.Helper()
				b := []byte{0}
				if err := p.Memory().Read(b, p.at["f"]+at+number); err != nil {
					t.Fatal(err)
				}
				b[0] ^= byte(n)
				if err := p.Memory().Write(p.at["f"]+at+number, b); err != nil {
					t.Fatal(err)
				}
			}
			add(36, 8)
			attach(t, p, runtime.Probe{Symbol: "f"})
			for _, c := range []struct {
				name string
				at   uint64
				made bool
			}{{"far from it", 36, false}, {"its own", 0, true}} {
				before := m.patches
				add(c.at, 4)
				p.call(0, "f", 1)
				if made := m.patches != before; made != c.made {
					t.Errorf("%s: made anew %v, want %v", c.name, made, c.made)
				}
			}
		})
	}
}

// What the kernel refuses in new text is lost, as it would be refused, and comes back with
// the old text.
func TestProfileJudgesNewText(t *testing.T) {
	for _, isa := range arch.Names() {
		rows := kernelRefusals[isa]
		if isa == "ppc64le" {
			rows = kernelRefusals["ppc64"]
		}
		for _, c := range rows {
			t.Run(isa+" "+c.name, func(t *testing.T) {
				p := openSnippets(t, isa, []snippet{{"f", plainText[isa]}}, guest.Options{}, runtime.Options{Profile: classify.Linux612})
				probe := attach(t, p, runtime.Probe{Symbol: "f", Offset: c.offset})
				for _, step := range []struct {
					text string
					want error
				}{{c.code, c.errno}, {plainText[isa], nil}} {
					if err := p.Memory().Write(p.at["f"], p.textOf(step.text)); err != nil {
						t.Fatal(err)
					}
					if err := probe.Lost(); (err == nil) != (step.want == nil) || !errors.Is(err, step.want) {
						t.Errorf("lost: %v, want %v", err, step.want)
					}
				}
				if p.call(0, "f", 1); probe.Hits() != 1 {
					t.Errorf("%d hits", probe.Hits())
				}
			})
		}
	}
}
