package live

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"

	"xol/arch"
	"xol/decode"
	"xol/image"
	"xol/place"
)

// OverwrittenError says that text is not known, since a probe stands in it.
type OverwrittenError struct {
	Probe Probe
	Err   error // why nothing tells what was there
}

func (e *OverwrittenError) Error() string {
	return fmt.Sprintf("the probe at %#x (%s) has overwritten text, and what was there is not known: %v", e.Probe.Addr, &e.Probe, e.Err)
}

// Unwrap returns why the text is not known.
func (e *OverwrittenError) Unwrap() error { return e.Err }

// restore puts back what probes have overwritten in code, which stands at addr: the
// bytes that the kernel was started with, as it has patched them since. The image asks
// it while it finds its functions, and so must not be asked for them.
func (k *Kernel) restore(code []byte, addr uint64) error {
	isa, err := arch.ByMachine(k.core.machine, k.core.order)
	if err != nil {
		return err
	}
	probes := k.armed
	if k.unlisted {
		probes = k.suspects(isa, code, addr)
	}
	end := addr + uint64(len(code))
	i := sort.Search(len(probes), func(i int) bool { return probes[i].Addr+decode.MaxLen > addr })
	for ; i < len(probes) && probes[i].Addr < end; i++ {
		p := &probes[i]
		original, err := k.original(isa, p)
		if err != nil {
			return &OverwrittenError{*p, err}
		}
		for i, c := range original {
			if at := p.Addr + uint64(i); at >= addr && at < end {
				code[at-addr] = c
			}
		}
	}
	return nil
}

var (
	errNotInBoot = errors.New("only the kernel's own text is in the file that it was started from")
	errPatched   = errors.New("the kernel has patched the text there")
)

// original returns what a probe has overwritten; nothing where it does not stand in
// the text.
func (k *Kernel) original(isa arch.ISA, p *Probe) ([]byte, error) {
	now := make([]byte, decode.MaxLen)
	if err := k.core.read(now, p.Addr); err != nil {
		return nil, err
	}
	size := overwritten(isa, p, now)
	if size == 0 {
		return nil, nil
	}
	b, err := k.openBoot()
	if err != nil {
		return nil, err
	}
	if k.Image.ModuleOf(p.Addr) != "" || !b.placed {
		return nil, errNotInBoot
	}
	texts, err := b.variants(isa, p.Addr-b.bias)
	if err != nil {
		return nil, err
	}
	var found []byte
	for _, text := range texts {
		text, ok := b.matches(isa, text, now, p.Addr-b.bias, size)
		if !ok {
			continue
		}
		if found != nil && !bytes.Equal(found, text[:size]) {
			return nil, errPatched
		}
		found = text[:size]
	}
	if found == nil {
		return nil, errPatched
	}
	return found, nil
}

// overwritten returns how many bytes of text a probe has overwritten, by what now
// stands there: a breakpoint or, of an optimized one, a jump.
func overwritten(isa arch.ISA, p *Probe, now []byte) int {
	if trap := breakpoint(isa); len(trap) > 0 && bytes.HasPrefix(now, trap) {
		return len(trap)
	}
	var inst decode.Inst
	if p.Optimized && isa.Decode(&inst, now, p.Addr) == nil && inst.Flow == decode.FlowJump {
		return int(inst.Len)
	}
	return 0
}

// breakpoint returns that of kernels for an ISA.
func breakpoint(isa arch.ISA) []byte {
	prober, err := arch.Probing(isa)
	if err != nil {
		return nil
	}
	return prober.Breakpoint(true)
}

// matches reports whether the text that the file has is what stands in memory now, but
// for the size bytes that have been overwritten. It is returned as the kernel has moved
// it: an address in it may have been.
func (b *bootImage) matches(isa arch.ISA, text, now []byte, addr uint64, size int) ([]byte, bool) {
	n, err := wholeInstructions(isa, text, addr, size)
	if err != nil {
		return nil, false
	}
	if bytes.Equal(text[size:n], now[size:n]) {
		return text, true
	}
	const word = 4
	for i := 0; i+word <= n; i++ {
		value := uint64(int64(int32(binary.LittleEndian.Uint32(text[i:]))))
		if _, ok := b.image.DataEnd(value); !ok {
			continue
		}
		moved := bytes.Clone(text)
		binary.LittleEndian.PutUint32(moved[i:], uint32(value+b.bias))
		if bytes.Equal(moved[size:n], now[size:n]) {
			return moved, true
		}
	}
	return nil, false
}

// wholeInstructions returns how many bytes those instructions have at the start of code
// that hold its first size bytes.
func wholeInstructions(isa arch.ISA, code []byte, addr uint64, size int) (n int, err error) {
	for n < size {
		var inst decode.Inst
		if err := isa.Decode(&inst, code[n:], addr+uint64(n)); err != nil {
			return 0, err
		}
		n += int(inst.Len)
	}
	return n, nil
}

// mostVariants is how many texts are tried.
const mostVariants = 32

// variants returns what may stand at an address of the file when the kernel has
// booted: what the file has, and what its tables say is written over it. The texts
// have room for two instructions.
func (b *bootImage) variants(isa arch.ISA, addr uint64) ([][]byte, error) {
	const size = 2 * decode.MaxLen
	end, ok := b.image.DataEnd(addr)
	if !ok {
		return nil, errNotInBoot
	}
	file, err := b.image.Code(nil, addr, min(size, end-addr))
	if err != nil {
		return nil, err
	}
	texts := [][]byte{file}
	patch := func(at uint64, code []byte) {
		for _, text := range slices.Clone(texts) {
			if len(texts) == mostVariants {
				return
			}
			text = bytes.Clone(text)
			for i, c := range code {
				if j := at + uint64(i) - addr; j < uint64(len(text)) {
					text[j] = c
				}
			}
			texts = append(texts, text)
		}
	}
	alternatives, err := b.image.Alternatives()
	if err != nil {
		return nil, err
	}
	for i := range alternatives {
		a := &alternatives[i]
		if a.Addr >= addr+size || a.Addr+a.Size <= addr {
			continue
		}
		if a.Unknown {
			return nil, errPatched
		}
		patch(a.Addr, isa.Alternative(a.Code, a.From, a.Addr, int(a.Size), a.Traps))
	}
	marks, err := b.image.Marks()
	if err != nil {
		return nil, err
	}
	for _, m := range marks.Starting(addr-decode.MaxLen, addr+size) {
		if m.Kind&place.ReturnThunk != 0 && m.End() > addr {
			patch(m.Addr, returned(isa, int(m.Len)))
		}
	}
	return texts, nil
}

// returned is what a kernel writes over a jump to a return thunk: a return, and
// breakpoints [arch/x86/kernel/alternative.c, patch_return].
func returned(isa arch.ISA, size int) []byte {
	prober, err := arch.Probing(isa)
	if err != nil {
		return nil
	}
	code := bytes.Clone(prober.ReturnInst())
	for trap := prober.Breakpoint(true); len(code) < size && len(trap) > 0; {
		code = append(code, trap...)
	}
	return code
}

// suspects returns what may be probes in code, where the kernel does not list them:
// breakpoints that the file does not have, and jumps out of all text.
func (k *Kernel) suspects(isa arch.ISA, code []byte, addr uint64) (probes []Probe) {
	trap := breakpoint(isa)
	if len(trap) == 0 || k.Image.ModuleOf(addr) != "" {
		return nil
	}
	b, err := k.openBoot()
	if err != nil || !b.placed {
		return k.oddBreakpoints(isa, code, addr)
	}
	file, err := b.image.Code(nil, addr-b.bias, uint64(len(code)))
	if err != nil {
		return nil
	}
	if bytes.Equal(file, code) {
		return nil
	}
	for i := 0; i < len(code); i += isa.Align() {
		if bytes.HasPrefix(file[i:], code[i:min(i+decode.MaxLen, len(code))]) {
			continue
		}
		p := Probe{Addr: addr + uint64(i), Kind: "k"}
		var inst decode.Inst
		switch {
		case bytes.HasPrefix(code[i:], trap) && !bytes.HasPrefix(file[i:], trap):
		case isa.Decode(&inst, code[i:], p.Addr) == nil && inst.Flow == decode.FlowJump && leavesText(k.Image, &inst):
			p.Optimized = true
		default:
			continue
		}
		// What cannot be put back is a probe only where execution comes to: elsewhere it
		// is part of an address that the kernel has moved, or follows a return that it
		// has written over a longer jump.
		if original, err := k.original(isa, &p); err == nil && original != nil || err != nil && k.reached(isa, code, addr, i) {
			probes = append(probes, p)
		}
	}
	return probes
}

// reached reports whether an instruction of a function starts i bytes after the start of
// its code, and the one before it goes on to it.
func (k *Kernel) reached(isa arch.ISA, code []byte, addr uint64, i int) bool {
	if _, starts := slices.BinarySearch(k.starts, addr); !starts {
		return false
	}
	insts := decode.Sweep(isa, nil, code, addr)
	n, start := decode.Find(insts, addr+uint64(i))
	return start && (n == 0 || goesOn(&insts[n-1]))
}

// goesOn reports whether execution goes from an instruction to the next one, for all
// that the instruction tells.
func goesOn(inst *decode.Inst) bool {
	return inst.Flow == decode.FlowNone || inst.Flow == decode.FlowJumpIf
}

func leavesText(img *image.Image, inst *decode.Inst) bool {
	target, ok := inst.BranchTarget()
	if !ok {
		return false
	}
	_, ok = img.DataEnd(target)
	return !ok
}

// oddBreakpoints returns the breakpoints of a function that the instruction before them
// runs into, as no compiler makes them.
func (k *Kernel) oddBreakpoints(isa arch.ISA, code []byte, addr uint64) (probes []Probe) {
	if _, starts := slices.BinarySearch(k.starts, addr); !starts {
		return nil
	}
	trap, reached := breakpoint(isa), true
	for _, inst := range decode.Sweep(isa, nil, code, addr) {
		if reached && bytes.Equal(inst.Bytes(), trap) {
			probes = append(probes, Probe{Addr: inst.Addr, Kind: "k"})
		}
		reached = goesOn(&inst)
	}
	return probes
}
