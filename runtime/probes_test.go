//go:build unicorn

package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"xol/arch"
	"xol/decode"
	"xol/image"
	"xol/internal/guest"
	"xol/internal/guest/workload"
	"xol/runtime"
)

const bufferAddr = 0x6000_0000

// program is a runtime with one of the programs in testdata/guest.
type program struct {
	*runtime.Runtime
	m     *guest.Machine
	p     *guest.Program
	img   *image.Image
	image *runtime.Image
}

func open(t testing.TB, isaName, level string, mopt guest.Options, opt runtime.Options) *program {
	t.Helper()
	isa, err := arch.ByName(isaName)
	if err != nil {
		t.Fatal(err)
	}
	mopt.ISA = isa
	m, err := guest.Open(mopt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	path := fmt.Sprintf("../testdata/guest/%s-O%s", isaName, level)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := m.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Map(bufferAddr, uint64(len(m.CPUs))*workload.Size, runtime.PermRead|runtime.PermWrite); err != nil {
		t.Fatal(err)
	}
	r, err := runtime.New(m, isa, opt)
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.OpenFile(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	im, err := r.Load("guest", img)
	if err != nil {
		t.Fatal(err)
	}
	return &program{r, m, p, img, im}
}

// everywhere registers a probe on every instruction of the program that may have
// one, and returns them by address.
func (p *program) everywhere(t testing.TB, probe func(inst *decode.Inst) *runtime.Probe) map[uint64]*runtime.Probe {
	t.Helper()
	functions, err := p.img.Functions(image.ExtentSymbol)
	if err != nil {
		t.Fatal(err)
	}
	isa := p.m.ISA
	probes := map[uint64]*runtime.Probe{}
	for _, f := range functions {
		code, err := p.img.Code(nil, f.Addr, f.Size)
		if err != nil {
			t.Fatal(err)
		}
		for _, inst := range decode.Sweep(isa, nil, code, f.Addr) {
			pr := probe(&inst)
			if pr == nil {
				continue
			}
			pr.Addr = inst.Addr
			if err := p.Register(pr); err == nil {
				probes[inst.Addr] = pr
			}
		}
	}
	return probes
}

func (p *program) calls(t testing.TB, seed uint64, cpu int, each func(w workload.Workload, c workload.Call)) {
	b := &workload.Buffer{Memory: p.m, Order: p.m.Order, Addr: bufferAddr + uint64(cpu)*workload.Size}
	r := rand.New(rand.NewPCG(seed, 0))
	for _, w := range workload.All() {
		c, err := w.New(b, r)
		if err != nil {
			t.Fatal(err)
		}
		each(w, c)
	}
}

// modes are ways to execute probed instructions.
var modes = []struct {
	name string
	opt  runtime.Options
}{
	{"stepped", runtime.Options{NoBoost: true, NoOptimize: true}},
	{"boosted", runtime.Options{NoOptimize: true}},
	{"optimized", runtime.Options{Pass: 500}},
	{"trapped", runtime.Options{Stepping: runtime.StepTrap, NoBoost: true, NoOptimize: true}},
}

func TestModes(t *testing.T) {
	for _, isa := range arch.Names() {
		for _, level := range []string{"0", "2"} {
			for _, mode := range modes {
				if isa == "arm64" && mode.opt.Stepping == runtime.StepTrap {
					continue
				}
				t.Run(fmt.Sprintf("%s -O%s %s", isa, level, mode.name), func(t *testing.T) {
					p := open(t, isa, level, guest.Options{}, mode.opt)
					probes := p.everywhere(t, func(*decode.Inst) *runtime.Probe { return &runtime.Probe{} })
					for round := range uint64(2) {
						p.calls(t, round, 0, func(w workload.Workload, c workload.Call) {
							f, err := p.p.Function(c.Function)
							if err != nil {
								t.Fatal(err)
							}
							got, err := p.Call(0, f, c.Args...)
							if err != nil {
								t.Fatalf("%s: %v", w.Name, err)
							}
							if err := c.Check(got); err != nil {
								t.Errorf("%s: %v", w.Name, err)
							}
						})
					}
					var hits uint64
					for _, pr := range probes {
						hits += p.Hits(pr)
					}
					t.Logf("%d probes, %d hits, %+v", len(probes), hits, p.Stats())
				})
			}
		}
	}
}
