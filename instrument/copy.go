package instrument

import (
	"hash/crc32"
	"sort"

	"xol/decode"
	"xol/detour"
	"xol/relocate"
)

// Env is what inserted code works on.
type Env struct {
	// Counters is the address of the first counter: 8 bytes for each run, in order.
	Counters uint64
	// Timer returns what a timer works on, by Want.Number.
	Timer func(number int) detour.Timer
}

// Copy is a plan at an address: where each instruction is. It is a plain value, all that
// is needed to follow a thread through the copy.
type Copy struct {
	Addr     uint64
	Orig     uint64 // of the first instruction
	Size     uint32 // bytes
	Back     uint32 // where the jump back is, in the copy; Size where there is none
	Whole    bool
	Counters uint64 // address of the first run's counter
	Sum      uint32 // of the bytes of the originals, CRC-32C
	Runs     []Run
	Points   []Point
	Items    []Inserted
}

// Point is an instruction of a copy.
type Point struct {
	Orig   uint32 // from Copy.Orig to the original
	Offset uint32 // in the copy, of what is inserted before it
	Body   uint32 // in the copy, of the instruction itself
	Len    uint8  // of the original, in bytes
	Left   bool   // it has not moved: a jump leads there
	// After says that a thread inside of the moved form has made a system call, Forward
	// that it has only a jump left to do. Inside of others nothing has been done that
	// the program can see.
	After, Forward bool
	// Returns says that the moved form holds the original address after the instruction.
	Returns bool
}

// Inserted is an Item in a copy.
type Inserted struct {
	Offset uint32 // in the copy
	Step   uint32
	Kind   Kind
	Number uint32
}

// castagnoli is the polynomial that CPUs have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// IsOf reports whether the copy was made from text, which starts at Orig and has Span
// bytes.
func (c *Copy) IsOf(text []byte) bool {
	sum := uint32(0)
	for i := range c.Points {
		p := &c.Points[i]
		sum = crc32.Update(sum, castagnoli, text[p.Orig:][:p.Len])
	}
	return sum == c.Sum
}

// Counter returns the address of the counter of a run.
func (c *Copy) Counter(run int) uint64 { return c.Counters + counterSize*uint64(run) }

// Next returns the original address after the last instruction.
func (c *Copy) Next() uint64 { return c.Orig + uint64(c.Span()) }

// End returns the address after the copy.
func (c *Copy) End() uint64 { return c.Addr + uint64(c.Size) }

// Room returns the most bytes that the plan's code may have.
func (p *Plan) Room() int { return p.code.Max }

// From returns the address of the first instruction.
func (p *Plan) From() uint64 { return p.code.From() }

// To returns the address after the last instruction.
func (p *Plan) To() uint64 { return p.code.Next() }

// Encode writes the code for the address at, and returns it with what is where. The
// slice is valid until the plan is encoded again. It answers relocate.ErrRange.
func (p *Plan) Encode(dst []byte, at uint64, env *Env) (int, *Copy, error) {
	w := &writer{Plan: p, env: env, offsets: make([]uint32, len(p.Items)), start: at}
	p.code.Options.Before = inserter{p, w}
	n, err := p.isa.Encode(dst, &p.code, at)
	if err != nil {
		return 0, nil, err
	}
	c := &Copy{Addr: at, Orig: p.From(), Size: uint32(n), Whole: p.Whole, Counters: env.Counters, Runs: p.Runs}
	if c.Back = c.Size; p.code.Options.Back != relocate.BackNone {
		c.Back -= uint32(p.isa.JumpLen())
	}
	c.Points = make([]Point, len(p.code.Steps))
	for i := range p.code.Steps {
		s := &p.code.Steps[i]
		c.Sum = crc32.Update(c.Sum, castagnoli, s.Inst.Bytes())
		c.Points[i] = Point{
			Orig: uint32(s.Inst.Addr - c.Orig), Offset: s.Offset, Body: s.Body, Len: s.Inst.Len, Left: s.Left,
			After: s.Inst.Flow == decode.FlowSyscall, Forward: s.Inst.Flow == decode.FlowJumpIf,
			Returns: !s.Left && (s.Inst.IsCall() || s.Inst.Flow == decode.FlowSyscall),
		}
	}
	c.Items = make([]Inserted, len(p.Items))
	for i, it := range p.Items {
		c.Items[i] = Inserted{Offset: w.offsets[i], Step: uint32(it.Step), Kind: it.Kind, Number: uint32(it.Number)}
	}
	return n, c, nil
}

// writer writes what is inserted into a copy.
type writer struct {
	*Plan
	env     *Env
	offsets []uint32 // of the items
	start   uint64
}

// inserter inserts a plan's items; w is nil where only their sizes are asked.
type inserter struct {
	p *Plan
	w *writer
}

var _ relocate.Inserter = inserter{}

func (in inserter) items(step int) (from, to int) {
	from = sort.Search(len(in.p.Items), func(i int) bool { return in.p.Items[i].Step >= step })
	to = from
	for to < len(in.p.Items) && in.p.Items[to].Step == step {
		to++
	}
	return from, to
}

// InsertSize returns bounds; see relocate.Inserter.
func (in inserter) InsertSize(step int) (least, most int) {
	from, to := in.items(step)
	for i := from; i < to; i++ {
		it := &in.p.Items[i]
		if it.Kind == Gate {
			n := len(in.p.isa.Breakpoint(false))
			least, most = least+n, most+n
			continue
		}
		insertion := in.p.insertion(it, &Env{Timer: func(int) detour.Timer { return detour.Timer{} }})
		a, b, err := in.p.isa.InsertSize(&insertion)
		if err != nil {
			continue // what it is for is refused when it is written
		}
		least, most = least+a, most+b
	}
	return least, most
}

// Insert writes them.
func (in inserter) Insert(code []byte, step int, at uint64) ([]byte, error) {
	from, to := in.items(step)
	var err error
	for i := from; i < to; i++ {
		it := &in.p.Items[i]
		in.w.offsets[i] = uint32(at - in.w.start)
		before := len(code)
		if it.Kind == Gate {
			code = append(code, in.p.isa.Breakpoint(false)...)
		} else {
			insertion := in.p.insertion(it, in.w.env)
			if code, err = in.p.isa.AppendInsertion(code, at, &insertion); err != nil {
				return nil, err
			}
		}
		at += uint64(len(code) - before)
	}
	return code, nil
}

// stack returns how many bytes of the stack the code of an item uses.
func (p *Plan) stack(it *Item) int {
	if it.Kind == Gate {
		return 0
	}
	in := p.insertion(it, &Env{Timer: func(int) detour.Timer { return detour.Timer{} }})
	least, _ := p.isa.InsertStack(&in)
	return least // counters and tables are near
}

// insertion returns the code of an item, other than a Gate.
func (p *Plan) insertion(it *Item, env *Env) detour.Insertion {
	in := detour.Insertion{DeadFlags: it.dead, NoRedZone: p.isGo}
	switch it.Kind {
	case Count:
		in.Action, in.Counter = detour.Count, env.Counters+counterSize*uint64(it.Number)
	case Start:
		in.Action, in.Timer = detour.StartTimer, env.Timer(it.Number)
	case Stop:
		in.Action, in.Timer = detour.StopTimer, env.Timer(it.Number)
		if it.AtJump {
			in.Action = detour.StopTimerAtJump
		}
	}
	return in
}

// counterSize is that of a counter in bytes.
const counterSize = 8
