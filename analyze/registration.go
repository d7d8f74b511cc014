package analyze

import (
	"strings"

	"xol/classify"
	"xol/image"
	"xol/kernel"
	"xol/place"
	"xol/registration"
)

// Request is a probe on a kernel as it is asked for: where, by which name, and
// whether the function's return is wanted.
type Request struct {
	Addr   uint64
	Symbol string // without offset; empty where an address is given
	Offset uint64 // from Symbol, in bytes
	Module string // that the symbol is asked for in; empty for none
	Return bool
}

// Registration returns the rule by which the interface refuses a probe on the judged
// function r before the kernel looks at the instruction; nil where the verdict on that
// decides, and in profiles that are not those of kprobes.
func (a *Analysis) Registration(r *Result, via registration.Via, q *Request) *classify.Rule {
	if m, _, _ := classify.ParseProfile(a.Profile.Name()); m != classify.Kprobes {
		return nil
	}
	p := a.registered(r, q)
	return a.interfaces.Refuse(via, &p)
}

// Return returns the rule that forbids a return probe on the judged function r; nil
// where there may be one. The kernel's own interface for modules is asked.
func (a *Analysis) Return(r *Result) *classify.Rule {
	if len(r.Insts) == 0 {
		return nil
	}
	q := Request{Addr: r.Function.Addr, Return: true}
	if r.Function.Source != image.FromSymbol || a.Image.Running() { // else there is a symbol of its name
		q.Symbol = r.Function.Name
	}
	if rule := a.Registration(r, registration.Register, &q); rule != nil {
		return rule
	}
	v := a.At(r, a.Entry(r))
	return v.Rule
}

// registered completes a request with what the symbols tell.
func (a *Analysis) registered(r *Result, q *Request) registration.Probe {
	f := &r.Function
	p := registration.Probe{
		Symbol: q.Symbol, Module: q.Module, Offset: q.Offset, Return: q.Return,
		Function: f.Name, OnEntry: a.OnEntry(r, q.Addr), Traceable: a.traceable(r), ModuleLoaded: a.moduleLoaded(q.Module),
	}
	p.AtStart = q.Addr == f.Addr || r.Marks.At(q.Addr)&place.Ftrace != 0
	a.countSymbols(&p, q)
	return p
}

// countSymbols fills in how many symbols the name of a request means.
func (a *Analysis) countSymbols(p *registration.Probe, q *Request) {
	if q.Symbol == "" {
		return
	}
	p.Count = a.Image.SymbolCount(q.Symbol)
	if a.Image.Kind() == image.KindKernel {
		p.Count = a.Image.SymbolCountIn("", q.Symbol)
		p.InKernel = p.Count
	}
	if a.Kernel.Modules != nil {
		n, _ := a.Kernel.Modules.Count(q.Module, q.Symbol)
		if q.Module != "" {
			p.Count = 0
		}
		p.Count += n
	}
}

// OutsideText returns the rule by which the interface refuses a probe on what is not
// text; nil in profiles that are not those of kprobes.
func (a *Analysis) OutsideText(via registration.Via, q *Request) *classify.Rule {
	if m, _, _ := classify.ParseProfile(a.Profile.Name()); m != classify.Kprobes {
		return nil
	}
	p := registration.Probe{Symbol: q.Symbol, Module: q.Module, Offset: q.Offset, Return: q.Return, ModuleLoaded: a.moduleLoaded(q.Module)}
	a.countSymbols(&p, q)
	if rule := a.interfaces.Refuse(via, &p); rule != nil {
		return rule
	}
	return classify.OutsideText()
}

// moduleLoaded reports whether there is a module. Where it is not known which are
// loaded, that of a file is taken to be.
func (a *Analysis) moduleLoaded(name string) bool {
	return name != "" && (a.Kernel.Modules == nil || a.Kernel.Modules.Loaded(name))
}

// Unknown returns the rule by which the interface refuses a probe on a symbol that
// the kernel has not; nil in profiles that are not those of kprobes, and where a module
// may have it. awaited says that there is no such module, and that the interface takes
// the probe for when it is loaded.
func (a *Analysis) Unknown(via registration.Via, symbol, module string) (rule *classify.Rule, awaited bool) {
	if m, _, _ := classify.ParseProfile(a.Profile.Name()); m != classify.Kprobes {
		return nil, false
	}
	modules := a.Kernel.Modules
	if modules == nil {
		return a.interfaces.Refuse(via, &registration.Probe{Symbol: symbol, Module: module}), false
	}
	if n, known := modules.Count(module, symbol); n > 0 || !known && (module == "" || modules.Loaded(module)) {
		return nil, false
	}
	loaded := modules.Loaded(module)
	rule = a.interfaces.Refuse(via, &registration.Probe{Symbol: symbol, Module: module, ModuleLoaded: loaded})
	return rule, rule == nil && module != "" && !loaded
}

// OnEntry reports whether the kernel takes addr for the entry of the judged function r,
// where return probes may stand and arguments are known
// [arch_adjust_kprobe_addr, arch_kprobe_on_func_entry].
func (a *Analysis) OnEntry(r *Result, addr uint64) bool {
	f := &r.Function
	if addr == f.Addr {
		return true
	}
	entry := a.Entry(r)
	if to := a.Profile.At(&r.Func, f.Addr).MovedTo; to != 0 {
		entry = to
	}
	if a.Image.ABI() == localEntries && a.Kernel.Version < classify.Linux(7, 3) && a.Kernel.Setting(kernel.KprobesOnFtrace).On {
		return f.Addr <= addr && addr <= f.Addr+entryRange
	}
	if a.Image.ABI() == localEntries {
		return f.Addr <= addr && addr <= max(entry, f.Addr+f.LocalEntry)
	}
	return addr == entry
}

// traceable reports whether r has an ftrace site, or the function whose name goes
// without the suffix of the compiler [within_notrace_func].
func (a *Analysis) traceable(r *Result) bool {
	if hasFtraceSite(r.Marks, r.Function) {
		return true
	}
	name, _, suffixed := strings.Cut(r.Function.Name, ".")
	if !suffixed || name == "" {
		return false
	}
	addr, ok := a.Image.SymbolAddress(name)
	if !ok {
		return false
	}
	f, ok := a.FunctionAt(addr)
	return ok && hasFtraceSite(a.marks.touching(nil, f.Addr, f.End()), f)
}

// hasFtraceSite reports whether a function has an ftrace site. Those in init text are
// forgotten when that is freed [ftrace_free_init_mem].
func hasFtraceSite(marks place.Marks, f image.Function) bool {
	if marks.At(f.Addr)&place.InitText != 0 {
		return false
	}
	for _, m := range marks.Starting(f.Addr, f.End()) {
		if m.Kind&place.Ftrace != 0 {
			return true
		}
	}
	return false
}
