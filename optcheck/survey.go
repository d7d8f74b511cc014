package optcheck

import (
	"sync"

	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
	"xol/place"
)

// Program is what a survey has to know of the file that a function belongs to.
type Program struct {
	Arch   Architecture
	Memory flow.Memory // nil where there is none: then no table is read
	// Absolute says that the code is not position-independent: it may hold
	// addresses as immediates.
	Absolute bool
	// Starts are the addresses of functions. What lands there lands inside no
	// region, and is left out.
	Starts *Addresses

	tracers sync.Pool // of *flow.Tracer
}

// Unresolved is an indirect jump that may go to any instruction of its
// function.
type Unresolved struct {
	Addr uint64
	What string // one clause: how its target is found
}

// Findings are what the instructions of functions tell about landings, but for
// those that a function's direct branches and calls make in itself.
type Findings struct {
	Landings   place.Landings // in the order they were found
	Data       place.Marks    // jump tables in text
	Unresolved []Unresolved
	// Parts are branches from functions with unresolved jumps to what may be a
	// part of the function that stands elsewhere.
	Parts    place.Landings
	Tables   int // jump tables that were read
	Pointers int // indirect jumps to a whole pointer
}

// Add adds what o has found.
func (f *Findings) Add(o *Findings) {
	f.Landings = append(f.Landings, o.Landings...)
	f.Data = append(f.Data, o.Data...)
	f.Unresolved = append(f.Unresolved, o.Unresolved...)
	f.Parts = append(f.Parts, o.Parts...)
	f.Tables += o.Tables
	f.Pointers += o.Pointers
}

// Survey adds what the instructions of f tell. It needs O(n).
func (p *Program) Survey(f *classify.Func, out *Findings) {
	unresolved := len(out.Unresolved)
	s := surveyor{Program: p, f: f, out: out}
	defer s.release()
	for i := range f.Insts {
		inst := &f.Insts[i]
		switch inst.Flow {
		case decode.FlowJump, decode.FlowJumpIf, decode.FlowCall:
			if inst.Has(decode.HasTarget) {
				p.addOutside(f, out, place.Landing{Addr: inst.Target, From: inst.Addr, Kind: place.LandBranch})
			}
		case decode.FlowJumpIndirect:
			s.jump(i)
		case decode.FlowNone:
			if inst.PCRel.Kind == decode.PCRelAddress {
				p.add(out, place.Landing{Addr: inst.Target, From: inst.Addr, Kind: place.LandTaken})
			}
		}
		if p.Absolute {
			if addr, ok := p.Arch.FormsAddress(inst); ok {
				p.add(out, place.Landing{Addr: addr, From: inst.Addr, Kind: place.LandTaken})
			}
		}
	}
	if len(out.Unresolved) > unresolved {
		p.addParts(f, out)
	}
}

// addParts keeps where f branches to outside of itself. A jump to the start of
// a function is taken for a tail call.
func (p *Program) addParts(f *classify.Func, out *Findings) {
	for i := range f.Insts {
		inst := &f.Insts[i]
		target, ok := inst.BranchTarget()
		switch {
		case !ok || target-f.Addr < uint64(len(f.Code)):
		case inst.Flow == decode.FlowJumpIf, inst.Flow == decode.FlowJump && p.Starts.inside(target):
			out.Parts = append(out.Parts, place.Landing{Addr: target, From: inst.Addr, Kind: place.LandBranch})
		}
	}
}

// add keeps a landing in text that is no function's start.
func (p *Program) add(out *Findings, l place.Landing) {
	if p.Starts.inside(l.Addr) {
		out.Landings = append(out.Landings, l)
	}
}

func (p *Program) addOutside(f *classify.Func, out *Findings, l place.Landing) {
	if l.Addr-f.Addr >= uint64(len(f.Code)) {
		p.add(out, l)
	}
}

// surveyor looks at the indirect jumps of one function.
type surveyor struct {
	*Program
	f      *classify.Func
	out    *Findings
	tracer *flow.Tracer // set at the first one
}

func (s *surveyor) release() {
	if s.tracer != nil {
		s.tracer.End()
		s.tracers.Put(s.tracer)
	}
}

func (s *surveyor) jump(i int) {
	f, out := s.f, s.out
	if s.tracer == nil {
		var ok bool
		if s.tracer, ok = s.tracers.Get().(*flow.Tracer); !ok {
			s.tracer = new(flow.Tracer)
		}
	}
	jump := s.Arch.IndirectJump(s.tracer, f, i, s.Memory)
	at := f.Insts[i].Addr
	switch jump.Kind {
	case flow.JumpPointer:
		out.Pointers++
	case flow.JumpTable:
		base := len(out.Landings)
		var what string
		if out.Landings, what = s.readTable(f, at, &jump.Table, out.Landings); what != "" {
			out.Landings = out.Landings[:base]
			out.Unresolved = append(out.Unresolved, Unresolved{at, what})
			return
		}
		out.Tables++
		if t := &jump.Table; s.Starts.covers(t.Addr) {
			size := uint64(len(out.Landings)-base) * uint64(t.Width)
			out.Data = append(out.Data, place.Mark{Addr: t.Addr, Len: size, Kind: place.Data})
		}
	default:
		out.Unresolved = append(out.Unresolved, Unresolved{at, jump.What})
	}
}

// Merge returns the landings of all lists that lie in text and at no function's
// start, sorted by address.
func (p *Program) Merge(lists ...place.Landings) place.Landings {
	var n int
	for _, l := range lists {
		n += len(l)
	}
	all := make(place.Landings, 0, n)
	for _, list := range lists {
		for _, l := range list {
			if p.Starts.inside(l.Addr) {
				all = append(all, l)
			}
		}
	}
	all.Sort()
	return all
}
