//go:build unicorn

package runtime_test

import (
	"testing"

	"xol/arch"
	"xol/internal/guest"
	"xol/runtime"
)

// openReturns returns a runtime with the program in testdata/guest/returns.
func openReturns(t testing.TB, isa string, mopt guest.Options, opt runtime.Options) *program {
	t.Helper()
	return openFile(t, isa, "../testdata/guest/returns/"+isa, mopt, opt)
}

// eachReturns calls f with that program on every ISA, with every trampoline.
func eachReturns(t *testing.T, f func(t *testing.T, p *program)) {
	for _, isa := range arch.Names() {
		for _, mode := range trampolines {
			if isa == "arm64" && mode.opt.Stepping == runtime.StepTrap {
				continue
			}
			t.Run(isa+" "+mode.name, func(t *testing.T) { f(t, openReturns(t, isa, guest.Options{}, mode.opt)) })
		}
	}
}

// function returns a function of the program.
func (p *program) function(t testing.TB, name string) runtime.Function {
	t.Helper()
	f, err := p.p.Function(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// calls checks what a function returns.
func (p *program) calls(t testing.TB, want uint64, name string, args ...uint64) {
	t.Helper()
	got, err := p.Call(0, p.function(t, name), args...)
	if err != nil {
		t.Fatalf("%s%v: %v", name, args, err)
	}
	if got != want {
		t.Errorf("%s%v is %#x, want %#x", name, args, got, want)
	}
}

// returnProbe registers a return probe.
func (p *program) returnProbe(t testing.TB, rp *runtime.ReturnProbe) *runtime.ReturnProbe {
	t.Helper()
	if err := p.RegisterReturn(rp); err != nil {
		t.Fatal(err)
	}
	return rp
}

// same checks what ought to be equal.
func same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
