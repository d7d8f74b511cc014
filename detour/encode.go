package detour

import (
	"slices"

	"xol/decode"
	"xol/relocate"
)

// Jump is what an ISA's jump can do.
type Jump struct {
	Len   int // bytes
	Align int // of addresses, in bytes: a power of 2
	// Back and Forward are the least and the greatest distance to the target,
	// in bytes from the jump's first one.
	Back, Forward int64
}

// Check says whether a jump from one address to another can be made; nil if so.
func (j Jump) Check(at, target uint64) error {
	if (at|target)&uint64(j.Align-1) != 0 {
		return relocate.ErrMisaligned
	}
	if distance := int64(target - at); distance < j.Back || distance > j.Forward {
		return &relocate.RangeError{Addr: at, Target: target, At: at}
	}
	return nil
}

// Template writes the parts of one ISA. Start and Encode drive it. What is
// saved and restored depends on the plan alone, not on addresses.
type Template interface {
	relocate.Relocator
	Inserter
	// Jump describes the jump there and back.
	Jump() Jump
	// Stack returns Plan.Stack.
	Stack(opt *Options) int
	// CallSize returns bounds of the bytes of the call at any address.
	CallSize(opt *Options) (least, most int)
	// Save appends what saves the registers and makes the arguments.
	Save(code []byte, p *Plan) []byte
	// Call appends the call, which stands at an address.
	Call(code []byte, p *Plan, at uint64) []byte
	// Restore appends what restores the registers.
	Restore(code []byte, p *Plan) []byte
	// AppendJump appends the jump from one address to another.
	AppendJump(code []byte, at, target uint64) ([]byte, error)
}

// Start plans a buffer; see Builder.PlanDetour.
func Start(t Template, p *Plan, insts []decode.Inst, opt Options) error {
	opt.Move.Form, opt.Move.Back, opt.Move.Reenter = relocate.Region, relocate.BackNone, true
	opt.Move.Kernel = opt.Kernel
	if err := t.Plan(&p.Relocation, insts, opt.Move); err != nil {
		return err
	}
	jump := t.Jump()
	if size := p.Next() - p.From(); size < uint64(jump.Len) && (size+opt.Dead < uint64(jump.Len) || insts[len(insts)-1].FallsThrough()) {
		return ErrShort
	}
	p.Options, p.Parts = opt, Parts{}
	var least, most int
	if opt.Count != 0 {
		p.code = p.code[:0]
		var err error
		if least, most, err = t.InsertSize(opt.insertion()); err != nil {
			return err
		}
	} else {
		p.code = t.Restore(t.Save(p.code[:0], p), p)
		least, most = t.CallSize(&p.Options)
	}
	fixed := len(p.code) + jump.Len
	p.Min, p.Max = fixed+least+p.Relocation.Min, fixed+most+p.Relocation.Max
	p.Align, p.Stack = p.Relocation.Align, t.Stack(&p.Options)
	p.setReach(jump)
	return nil
}

// setReach sets what both jumps have in common. The one back stands so far
// after the buffer's start as the other parts are long.
func (p *Plan) setReach(jump Jump) {
	size := int64(p.Next() - p.From())
	first, last := int64(p.Min-jump.Len), int64(p.Max-jump.Len)
	p.ReachBack = -max(jump.Back, size-first-jump.Forward)
	p.ReachForward = min(jump.Forward, size-last-jump.Back)
	align := int64(p.Align)
	p.ReachBack, p.ReachForward = p.ReachBack&-align, p.ReachForward&-align
}

// insertion returns the code that counts in place of a call.
func (o *Options) insertion() *Insertion {
	return &Insertion{Counter: o.Count, NoRedZone: o.Move.NoRedZone, Kernel: o.Kernel}
}

// handle writes what comes before the moved instructions.
func handle(t Template, p *Plan, at uint64) (code []byte, parts Parts, err error) {
	if p.Options.Count != 0 {
		code, err = t.AppendInsertion(p.code[:0], at, p.Options.insertion())
		return code, Parts{Restore: len(code), Moved: len(code)}, err
	}
	code = t.Save(p.code[:0], p)
	parts.Call = len(code)
	code = t.Call(code, p, at+uint64(len(code)))
	parts.Restore = len(code)
	code = t.Restore(code, p)
	parts.Moved = len(code)
	return code, parts, nil
}

// Encode writes a buffer; see Builder.EncodeDetour.
func Encode(t Template, dst []byte, p *Plan, at uint64) (int, error) {
	if len(p.Relocation.Steps) == 0 {
		return 0, relocate.ErrEmpty
	}
	if err := t.Jump().Check(p.From(), at); err != nil {
		return 0, err
	}
	code, parts, err := handle(t, p, at)
	if err != nil {
		return 0, err
	}
	code = slices.Grow(code, p.Relocation.Max)
	n, err := t.Encode(code[len(code):cap(code)], &p.Relocation, at+uint64(len(code)))
	if err != nil {
		return 0, err
	}
	code = code[:len(code)+n]
	parts.Back = len(code)
	if code, err = t.AppendJump(code, at+uint64(len(code)), p.Next()); err != nil {
		return 0, err
	}
	parts.End = len(code)
	p.code = code
	if len(code) > len(dst) {
		return 0, relocate.ErrTooSmall
	}
	p.Parts = parts
	return copy(dst, code), nil
}
