package relocate

import (
	"bytes"
	"errors"
	"testing"

	"xol/classify"
	"xol/decode"
)

// jumpy is an ISA for these tests: an instruction is two bytes, or the branch
// that its Target says, whose moved form has two bytes if the target is at most
// reach away, else four. Both end with the distance.
type jumpy struct{ reach uint64 }

var (
	ruleTrap = classify.Rule{ID: "test/trap"}
	errApart = errors.New("they belong apart")
	errBack  = errors.New("no way back")
)

// mover moves by forms in code that is aligned to 2 bytes.
func mover(forms Forms) *Mover {
	return &Mover{Align: 2, Breakpoint: []byte("BRK"), LeaveLen: 2, Forms: forms}
}

func (jumpy) Check(p *Plan) error {
	if p.Steps[0].Inst.Raw[1] == 'x' {
		return errApart
	}
	return nil
}

func (jumpy) Choose(s *Step, p *Plan) *classify.Rule {
	switch s.Inst.Flow {
	case decode.FlowTrap:
		return &ruleTrap
	case decode.FlowNone:
		return nil
	}
	s.Max = 4
	return nil
}

func (jumpy) Jump(p *Plan) (near, far int, err error) {
	if p.Steps[0].Inst.Raw[1] == 'y' {
		return 0, 0, errBack
	}
	return 1, 3, nil
}

func (e jumpy) Emit(code []byte, s *Step, l *Layout) ([]byte, error) {
	if s.Inst.Flow == decode.FlowNone {
		return append(code, s.Inst.Bytes()...), nil
	}
	distance := l.Moved(s.Inst.Target) - l.At(code)
	if distance+e.reach <= 2*e.reach {
		return append(code, 'j', byte(distance)), nil
	}
	return append(code, 'J', 0, 0, byte(distance)), nil
}

func (jumpy) Leave(code []byte, s *Step, l *Layout) ([]byte, error) {
	return append(code, 'l', byte(s.Inst.Addr-l.At(code))), nil
}

func (jumpy) Back(code []byte, next uint64, l *Layout) ([]byte, error) {
	if l.Moved(next) != next {
		return nil, errors.New("the way back stays inside")
	}
	return append(code, 'b'), nil
}

// restless never comes to stand anywhere.
type restless struct {
	jumpy
	calls *int
}

func (e restless) Emit(code []byte, s *Step, l *Layout) ([]byte, error) {
	*e.calls++
	return append(code, make([]byte, 3+*e.calls%7)...), nil
}

func (restless) Back(code []byte, _ uint64, _ *Layout) ([]byte, error) { return code, nil }

const from = 0x1000

// insts returns instructions of two bytes; a target makes a branch.
func insts(targets ...uint64) []decode.Inst {
	var out []decode.Inst
	for i, target := range targets {
		inst := decode.Inst{Addr: from + 2*uint64(i), Len: 2, Raw: [16]byte{'i', byte(i)}}
		if target != 0 {
			inst.Flow, inst.Props, inst.Target = decode.FlowJump, decode.HasTarget, target
		}
		out = append(out, inst)
	}
	return out
}

func plan(t *testing.T, list []decode.Inst, opt Options) *Plan {
	t.Helper()
	p := new(Plan)
	if err := Make(mover(jumpy{}), p, list, opt); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEncode(t *testing.T) {
	const to = 0x2000
	for _, c := range []struct {
		name  string
		insts []decode.Inst
		opt   Options
		reach uint64
		want  string
	}{
		{"one", insts(0), Options{}, 8, "i\x00b"},
		{"no way back", insts(0), Options{Back: BackNone}, 8, "i\x00"},
		{"a breakpoint", insts(0), Options{Back: BackBreakpoint}, 8, "i\x00BRK"},
		{"two", insts(0, 0), Options{Form: Region}, 8, "i\x00i\x01b"},
		{"branch to itself from a slot", insts(from), Options{}, 8, "J\x00\x00\x00b"},
		{"branch to itself in a region", insts(from), Options{Form: Region}, 8, "j\x00b"},
		{"branch back", insts(0, from), Options{Form: Region}, 8, "i\x00j\xfeb"},
		{"branch over one that grows", insts(from+6, 0x9900, 0, 0), Options{Form: Region}, 8, "j\x08J\x00\x00\xfei\x02i\x03b"},
		{"branch back over one that grows", insts(0, 0x9900, from), Options{Form: Region}, 8, "i\x00J\x00\x00\xfej\xfab"},
		{"a form that grows because another did", insts(from+4, 0x9900, 0), Options{Form: Region}, 5, "J\x00\x00\x08J\x00\x00\xfci\x02b"},
		{"branch to itself in a region that is entered again", insts(from), Options{Form: Region, Reenter: true}, 8, "J\x00\x00\x00b"},
		{"branches in a region that is entered again", insts(0, from, from+2), Options{Form: Region, Reenter: true}, 8, "i\x00J\x00\x00\xfej\xfcb"},
		{"to the end of the region leaves it", insts(from + 2), Options{Form: Region}, 8, "J\x00\x00\x02b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plan(t, c.insts, c.opt)
			dst := make([]byte, 64)
			for range 2 { // a plan may be encoded again
				n, err := Encode(mover(jumpy{c.reach}), dst, p, to)
				if err != nil || string(dst[:n]) != c.want {
					t.Fatalf("%q, %v; want %q", dst[:n], err, c.want)
				}
				if n < p.Min || n > p.Max {
					t.Errorf("%d bytes, planned %d to %d", n, p.Min, p.Max)
				}
			}
		})
	}
}

func TestEncodeErrors(t *testing.T) {
	calls := 0
	for _, c := range []struct {
		name  string
		forms Forms
		plan  *Plan
		to    uint64
		size  int
		want  error
	}{
		{"never planned", jumpy{8}, new(Plan), 0, 8, ErrEmpty},
		{"odd address", jumpy{8}, plan(t, insts(0), Options{}), 0x2001, 8, ErrMisaligned},
		{"small buffer", jumpy{8}, plan(t, insts(0), Options{}), 0x2000, 2, ErrTooSmall},
		{"never settles", restless{calls: &calls}, plan(t, insts(0, 0), Options{Form: Region}), 0x2000, 64, ErrRange},
	} {
		dst := bytes.Repeat([]byte{0xa5}, c.size)
		n, err := Encode(mover(c.forms), dst, c.plan, c.to)
		if n != 0 || !errors.Is(err, c.want) || bytes.Count(dst, []byte{0xa5}) != c.size {
			t.Errorf("%s: %d, %v, % x", c.name, n, err, dst)
		}
	}
	if calls > 1000 {
		t.Errorf("%d forms written", calls)
	}
}

func TestMakeErrors(t *testing.T) {
	gap := insts(0, 0, 0)
	invalid := insts(0, 0)
	invalid[1].Props |= decode.Invalid
	named := func(c byte) []decode.Inst {
		list := insts(0, 0)
		list[0].Raw[1] = c
		return list
	}
	trap := insts(0, 0)
	trap[1].Flow = decode.FlowTrap
	region := Options{Form: Region}
	for _, c := range []struct {
		name  string
		insts []decode.Inst
		opt   Options
		want  error
	}{
		{"nothing", nil, Options{}, ErrEmpty},
		{"one", insts(0), Options{}, nil},
		{"two in a slot", insts(0, 0), Options{}, ErrNotContiguous},
		{"two in a region", insts(0, 0), region, nil},
		{"a gap", []decode.Inst{gap[0], gap[2]}, region, ErrNotContiguous},
		{"out of order", []decode.Inst{gap[1], gap[0]}, region, ErrNotContiguous},
		{"not an instruction", invalid, region, decode.ErrInvalid},
		{"never decoded", make([]decode.Inst, 1), Options{}, decode.ErrInvalid},
		{"not to be moved together", named('x'), region, errApart},
		{"not to be moved at all", trap, region, ErrRefused},
		{"no way back", named('y'), region, errBack},
		{"no way back is needed", named('y'), Options{Form: Region, Back: BackNone}, nil},
		{"nor with a breakpoint", named('y')[:1], Options{Back: BackBreakpoint}, nil},
	} {
		if err := Make(mover(jumpy{}), new(Plan), c.insts, c.opt); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	var refused *RefusedError
	if err := Make(mover(jumpy{}), new(Plan), trap, region); !errors.As(err, &refused) || refused.Rule != &ruleTrap || refused.Addr != from+2 {
		t.Errorf("%v", err)
	}
}

func TestTorn(t *testing.T) {
	const plain, load, store, clears = 0, decode.LoadExclusive, decode.StoreExclusive, decode.Privileged
	for _, c := range []struct {
		name  string
		props []decode.Props
		want  int // index of the step, -1 for none
	}{
		{"none", []decode.Props{plain, plain}, -1},
		{"whole", []decode.Props{load, plain, store}, -1},
		{"the store stays", []decode.Props{plain, load, plain}, 1},
		{"the load stays", []decode.Props{plain, store, load, store}, 1},
		{"a second load", []decode.Props{load, load, store, store}, 3},
		{"given up", []decode.Props{load, clears}, -1},
		{"nothing to give up", []decode.Props{clears, load}, 1},
	} {
		list := insts(make([]uint64, len(c.props))...)
		for i := range list {
			list[i].Props = c.props[i]
			if c.props[i] == clears {
				list[i].Op = 7
			}
		}
		p := plan(t, list, Options{Form: Region})
		got := p.Torn(7)
		if c.want < 0 && got != nil || c.want >= 0 && got != &p.Steps[c.want] {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestForms(t *testing.T) {
	for _, c := range []struct {
		name      string
		reach     Reach
		near, far int
		want      Step
	}{
		{"as needed", Anywhere, 2, 9, Step{Action: Rebased, Min: 2, Max: 9}},
		{"a far form that is shorter", Anywhere, 9, 5, Step{Action: Expanded, Min: 5, Max: 9}},
		{"only near", Near, 2, 9, Step{Action: Rebased, Min: 2, Max: 2}},
		{"only far", Far, 2, 9, Step{Action: Expanded, Min: 9, Max: 9}},
		{"another instruction near by", Near, 5, 9, Step{Action: Expanded, Min: 5, Max: 5}},
	} {
		s := Step{Inst: insts(0)[0]}
		s.SetForms(c.reach, c.near, c.far)
		if c.want.Inst = s.Inst; s != c.want {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	for reach, want := range map[Reach]*classify.Rule{Anywhere: nil, Near: nil, Far: &ruleTrap} {
		if opt := (Options{Reach: reach}); opt.RefuseFar(&ruleTrap) != want {
			t.Errorf("reach %d: the far form is refused", reach)
		}
	}
}

func TestScratch(t *testing.T) {
	for r, want := range map[Scratch]uint64{{Reg: 3}: 8, {Reg: 3, Saved: true}: 0, {Reg: NoRegister}: 0} {
		if r.Changed() != want || r.None() != (r.Reg == NoRegister) {
			t.Errorf("%+v: changes %#x", r, r.Changed())
		}
	}
}

func TestBranchInto(t *testing.T) {
	for _, c := range []struct {
		name   string
		target uint64
		found  bool
	}{
		{"start of another", from + 4, false},
		{"middle of another", from + 5, true},
		{"middle of itself", from + 3, true},
		{"after the region", from + 6, false},
		{"before it", from - 1, false},
	} {
		p := plan(t, insts(0, c.target, 0), Options{Form: Region})
		if addr, found := p.BranchInto(); found != c.found || found && addr != from+2 {
			t.Errorf("%s: %#x, %t", c.name, addr, found)
		}
	}
	if _, found := plan(t, insts(from+1), Options{}).BranchInto(); found {
		t.Error("a slot holds no region to branch into")
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		name     string
		opt      Options
		min, max int
	}{
		{"anywhere", Options{}, 5, 9}, {"near", Options{Reach: Near}, 5, 7}, {"far", Options{Reach: Far}, 7, 9},
		{"no way back", Options{Back: BackNone}, 4, 6}, {"a breakpoint", Options{Back: BackBreakpoint}, 7, 9},
	} {
		c.opt.Form = Region
		p := plan(t, insts(0, 0x9900), c.opt)
		if p.Min != c.min || p.Max != c.max || p.Align != 2 {
			t.Errorf("%s: %d to %d", c.name, p.Min, p.Max)
		}
	}
}

func TestPlanIsUsedAgain(t *testing.T) {
	p := plan(t, insts(0, 0x9900, 0), Options{Form: Region})
	p.Detail = 1
	if err := Make(mover(jumpy{}), p, insts(0), Options{}); err != nil {
		t.Fatal(err)
	}
	if len(p.Steps) != 1 || p.Min != 3 || p.Max != 5 || p.Detail != 0 || p.From() != from || p.Next() != from+2 {
		t.Errorf("%+v", p)
	}
}

func TestDead(t *testing.T) {
	opt := Options{Registers: 6}
	for policy, want := range map[ScratchPolicy]uint32{ScratchStack: 6, ScratchGiven: 6, ScratchNone: 0} {
		if opt.Scratch = policy; opt.Dead() != want {
			t.Errorf("policy %d: %#x", policy, opt.Dead())
		}
	}
}

func TestErrorValues(t *testing.T) {
	rule := &classify.Rule{ID: "test/rule", Reason: "it must not"}
	err := Refuse(rule, 0x40)
	var refused *RefusedError
	if !errors.Is(err, ErrRefused) || errors.Is(err, ErrRange) || !errors.As(err, &refused) || refused.Rule != rule {
		t.Errorf("%v", err)
	}
	if got := err.Error(); got != "instruction at 0x40 cannot be moved: it must not (test/rule)" {
		t.Error(got)
	}
	err = &RangeError{Addr: 1, Target: 2, At: 3}
	if !errors.Is(err, ErrRange) || errors.Is(err, ErrRefused) || err.Error() != "instruction at 0x1, moved to 0x3, does not reach 0x2" {
		t.Error(err)
	}
}

func TestActionNames(t *testing.T) {
	for action, want := range map[Action]string{Kept: "kept", Rebased: "re-based", Expanded: "expanded", Expanded + 1: "invalid"} {
		if action.String() != want {
			t.Errorf("%d: %q", action, action.String())
		}
	}
}

// marker inserts a letter for each step that it names.
type marker map[int]string

func (m marker) InsertSize(i int) (least, most int) { return len(m[i]), len(m[i]) }

func (m marker) Insert(code []byte, i int, at uint64) ([]byte, error) {
	if m[i] == "far" {
		return nil, ErrRange
	}
	return append(code, m[i]...), nil
}

func TestFunction(t *testing.T) {
	trap := insts(0)[0]
	trap.Flow = decode.FlowTrap
	at := func(i decode.Inst, addr uint64) decode.Inst { i.Addr = addr; return i }
	plainInst, toFirst, toGap := insts(0)[0], insts(from)[0], insts(from + 4)[0]
	plainInst.Flow, plainInst.Props = decode.FlowNone, 0
	list := []decode.Inst{at(plainInst, from), at(trap, from+2), at(toFirst, from+8), at(toGap, from+10)}
	opt := Options{Form: Function, Back: BackNone, Before: marker{0: "one", 2: "two"}}
	var p Plan
	if err := Make(mover(jumpy{reach: 100}), &p, list, opt); err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 64)
	n, err := Encode(mover(jumpy{reach: 100}), dst, &p, from+50)
	if err != nil || n < p.Min || n > p.Max {
		t.Fatal(n, err, p.Min, p.Max)
	}
	// The branch to the first instruction runs what is inserted before it; the one into
	// the gap goes to the original.
	code := append([]byte("one"), plainInst.Bytes()...)
	code = append(code, 'l', byte(2+256-(50+5)))
	code = append(code, "two"...)
	code = append(code, 'j', byte(256-10))
	code = append(code, 'j', byte(4+256-(50+12)))
	if !bytes.Equal(dst[:n], code) {
		t.Errorf("got  %q\nwant %q", dst[:n], code)
	}
	for i, want := range [][2]uint32{{0, 3}, {5, 5}, {7, 10}, {12, 12}} {
		if s := &p.Steps[i]; s.Offset != want[0] || s.Body != want[1] || s.Left != (i == 1) {
			t.Errorf("step %d: offset %d, body %d, left %v", i, s.Offset, s.Body, s.Left)
		}
	}
	opt.Before = marker{1: "far"}
	if err := Make(mover(jumpy{}), &p, list, opt); err != nil {
		t.Fatal(err)
	}
	if _, err := Encode(mover(jumpy{}), dst, &p, from); !errors.Is(err, ErrRange) {
		t.Errorf("what is inserted does not reach: %v", err)
	}
	list[2], list[1] = list[1], list[2]
	if err := Make(mover(jumpy{}), &p, list, opt); !errors.Is(err, ErrNotContiguous) {
		t.Errorf("not in the order of addresses: %v", err)
	}
}
