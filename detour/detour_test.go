package detour_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"xol/arch"
	"xol/decode"
	"xol/detour"
	"xol/internal/refdata"
	"xol/relocate"
)

// far is a callback that no near call reaches.
const far = 0x1234_5678_9abc_def0

func planOf(t testing.TB, isa arch.Prober, code []byte, opt detour.Options) *detour.Plan {
	t.Helper()
	p := new(detour.Plan)
	if err := isa.PlanDetour(p, sweep(t, isa, code, home), opt); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFrames compares the frames with Linux's headers.
func TestFrames(t *testing.T) {
	for _, name := range arch.Names() {
		isa := isaOf(t, name)
		rows, err := refdata.Rows(filepath.Join("testdata", "ptregs-"+name+".tsv"))
		if err != nil {
			t.Fatal(err)
		}
		frame := isa.PtRegs()
		var got [][]string
		end := 0
		for _, f := range frame.Fields {
			got = append(got, []string{f.Name, strconv.Itoa(f.Offset), strconv.Itoa(f.Size)})
			end = max(end, f.Offset+f.Size)
		}
		if !slices.EqualFunc(got, rows, slices.Equal) || end != frame.Size {
			t.Errorf("%s: %v, size %d\nwant %v", name, got, frame.Size, rows)
		}
	}
}

// TestFramesNameRegisters checks that every general register, the program
// counter and the flags are in the frame once, and that only the program counter
// and the stack pointer are not restored.
func TestFramesNameRegisters(t *testing.T) {
	for _, name := range arch.Names() {
		isa := isaOf(t, name)
		file, seen := isa.Registers(), map[int]bool{}
		for _, f := range isa.PtRegs().Fields {
			if f.Register == detour.NoRegister {
				if f.Restored {
					t.Errorf("%s: %s is restored to nothing", name, f.Name)
				}
				continue
			}
			if seen[f.Register] {
				t.Errorf("%s: %s twice", name, f.Name)
			}
			seen[f.Register] = true
			if kept := f.Register == file.PC || f.Register == file.SP; f.Restored == kept {
				t.Errorf("%s: %s restored: %t", name, f.Name, f.Restored)
			}
		}
		for i := range file.PC + 1 {
			if !seen[i] {
				t.Errorf("%s: no %s", name, file.Registers[i].Name)
			}
		}
	}
}

func TestFieldByName(t *testing.T) {
	frame := isaOf(t, "amd64").PtRegs()
	if f, ok := frame.Field("rdi"); !ok || f.Offset != 112 {
		t.Errorf("%+v, %t", f, ok)
	}
	if f, ok := frame.Field("x0"); ok {
		t.Errorf("%+v", f)
	}
}

// TestStack holds the bytes below the stack pointer against the sum of what
// lies there: red zone, frame, and what a call needs.
func TestStack(t *testing.T) {
	noRedZone := relocate.Options{NoRedZone: true}
	for _, c := range []struct {
		isa  string
		opt  detour.Options
		want int
	}{
		{"amd64", detour.Options{}, 128 + 168 + 15 + 8},
		{"amd64", detour.Options{Move: noRedZone}, 168 + 15 + 8},
		{"amd64", detour.Options{Kernel: true}, 168 + 15 + 8},
		{"arm64", detour.Options{}, 272},
		{"arm64", detour.Options{Kernel: true}, 272},
		{"ppc64", detour.Options{}, 512 + 352 + 112},
		{"ppc64le", detour.Options{Move: noRedZone}, 352 + 112},
		{"ppc64le", detour.Options{Kernel: true}, 288 + 352 + 112},
	} {
		isa := isaOf(t, c.isa)
		if p := planOf(t, isa, nops(isa), c.opt); p.Stack != c.want {
			t.Errorf("%s %+v: %d, want %d", c.isa, c.opt, p.Stack, c.want)
		}
	}
}

// TestReach encodes buffers as far away as planned, and one place further, which
// no jump reaches.
func TestReach(t *testing.T) {
	for _, name := range arch.Names() {
		isa := isaOf(t, name)
		p := planOf(t, isa, nops(isa), detour.Options{Callback: far})
		dst := make([]byte, p.Max)
		forward, back := uint64(p.ReachForward), uint64(-p.ReachBack)
		step := uint64(p.Align)
		for _, c := range []struct {
			at   uint64
			want error
		}{
			{home + forward, nil}, {home + forward + step, relocate.ErrRange},
			{home + back, nil}, {home + back - step, relocate.ErrRange},
		} {
			n, err := isa.EncodeDetour(dst, p, c.at)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: buffer at %+d: %v", name, int64(c.at-home), err)
			}
			if err == nil && (n < p.Min || n > p.Max) {
				t.Errorf("%s: %d bytes, planned %d to %d", name, n, p.Min, p.Max)
			}
		}
	}
}

// TestParts looks for the parts where the plan says they are.
func TestParts(t *testing.T) {
	for _, name := range arch.Names() {
		isa := isaOf(t, name)
		for _, callback := range []uint64{home + 0x9000, far} {
			p := planOf(t, isa, nops(isa), detour.Options{Callback: callback})
			code := make([]byte, p.Max)
			n, err := isa.EncodeDetour(code, p, home+0x8000)
			if err != nil {
				t.Fatal(err)
			}
			parts := p.Parts
			call := sweep(t, isa, code[parts.Call:parts.Restore], home+0x8000+uint64(parts.Call))
			if last := call[len(call)-1]; !last.Has(decode.Link) {
				t.Errorf("%s: the call ends in % x", name, last.Bytes())
			}
			if !bytes.Equal(code[parts.Moved:parts.Back], nops(isa)) {
				t.Errorf("%s: moved instructions % x", name, code[parts.Moved:parts.Back])
			}
			jump, err := isa.JumpTo(home+0x8000+uint64(parts.Back), p.Next())
			if err != nil || !bytes.Equal(code[parts.Back:n], jump) || parts.End != n {
				t.Errorf("%s: jump back % x, want % x, %v", name, code[parts.Back:n], jump, err)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, isa string
		code      []byte
		dead      uint64
		want      error
	}{
		{"nothing", "amd64", nil, 5, relocate.ErrEmpty},
		{"less than the jump", "amd64", []byte{0x90, 0x90, 0x90, 0x90}, 0, detour.ErrShort},
		{"nothing dead after", "amd64", []byte{0x90, 0x90, 0x90, 0xc3}, 0, detour.ErrShort},
		{"a dead byte after", "amd64", []byte{0x90, 0x90, 0x90, 0xc3}, 1, nil},
		{"too few dead bytes", "amd64", []byte{0x90, 0x90, 0xc3}, 1, detour.ErrShort},
		{"a way to what is said to be dead", "amd64", []byte{0x90, 0x90, 0x90, 0x90}, 1, detour.ErrShort},
		{"an instruction that cannot be moved", "amd64", []byte{0x90, 0x90, 0x0f, 0x0b, 0x90}, 0, relocate.ErrRefused},
		{"an instruction that cannot be moved", "arm64", []byte{0, 0, 0x20, 0xd4}, 0, relocate.ErrRefused},
		{"an instruction that cannot be moved", "ppc64", []byte{0x7f, 0xe0, 0, 8}, 0, relocate.ErrRefused},
	} {
		isa := isaOf(t, c.isa)
		err := isa.PlanDetour(new(detour.Plan), sweep(t, isa, c.code, home), detour.Options{Dead: c.dead})
		if !errors.Is(err, c.want) {
			t.Errorf("%s, %s: %v, want %v", c.isa, c.name, err, c.want)
		}
	}
}

// TestNothingIsHalfWritten makes encoding fail, and looks at the buffer.
func TestNothingIsHalfWritten(t *testing.T) {
	for _, name := range arch.Names() {
		isa := isaOf(t, name)
		p := planOf(t, isa, nops(isa), detour.Options{})
		for _, c := range []struct {
			name string
			plan *detour.Plan
			at   uint64
			size int
			want error
		}{
			{"never planned", new(detour.Plan), home + 0x8000, 2048, relocate.ErrEmpty},
			{"small buffer", p, home + 0x8000, p.Min - 1, relocate.ErrTooSmall},
			{"far away", p, home + 1<<40, 2048, relocate.ErrRange},
		} {
			dst := bytes.Repeat([]byte{0xa5}, c.size)
			n, err := isa.EncodeDetour(dst, c.plan, c.at)
			if n != 0 || !errors.Is(err, c.want) || bytes.Count(dst, []byte{0xa5}) != c.size {
				t.Errorf("%s, %s: %d, %v, % x", name, c.name, n, err, dst)
			}
		}
		if _, err := isa.EncodeDetour(make([]byte, 2048), p, home+0x8002); p.Align > 1 && !errors.Is(err, relocate.ErrMisaligned) {
			t.Errorf("%s: misaligned: %v", name, err)
		}
		if jump, err := isa.JumpTo(home, home+1<<40); jump != nil || !errors.Is(err, relocate.ErrRange) {
			t.Errorf("%s: jump % x, %v", name, jump, err)
		}
	}
}

// TestPrivilege checks that programs can execute the template of user mode, and
// that only that of kernel mode reads what they cannot.
func TestPrivilege(t *testing.T) {
	for _, c := range []struct {
		isa    string
		kernel bool // the template of kernel mode is privileged
	}{{"amd64", false}, {"arm64", true}, {"ppc64", true}, {"ppc64le", true}} {
		isa := isaOf(t, c.isa)
		for _, kernel := range []bool{false, true} {
			code := templateOf(t, isa, detour.Options{Kernel: kernel, Callback: templateAt})
			privileged := slices.ContainsFunc(sweep(t, isa, code, templateAt), func(i decode.Inst) bool { return i.Has(decode.Privileged) })
			if privileged != (kernel && c.kernel) {
				t.Errorf("%s %s: privileged %t", c.isa, modeName(kernel), privileged)
			}
		}
	}
}

// TestAllocations makes a buffer again and again with one plan.
func TestAllocations(t *testing.T) {
	for _, name := range arch.Names() {
		isa := isaOf(t, name)
		insts := sweep(t, isa, nops(isa), home)
		var p detour.Plan
		dst := make([]byte, 1024)
		allocs := testing.AllocsPerRun(50, func() {
			if err := isa.PlanDetour(&p, insts, detour.Options{Callback: far}); err != nil {
				t.Fatal(err)
			}
			if _, err := isa.EncodeDetour(dst, &p, home+0x8000); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 2 { // the ISA's template, twice
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

// loops are regions that branch to their own first instruction.
var loops = map[string]region{
	"amd64":   {hex: "ffc9 75fc 90"},                     // dec %ecx; jne
	"arm64":   {words: []uint32{0xd1000463, 0xb5ffffe3}}, // sub x3, x3, #1; cbnz x3
	"ppc64":   {words: []uint32{0x38630001, 0x4200fffc}}, // addi; bdnz
	"ppc64le": {words: []uint32{0x38630001, 0x4200fffc}},
}

// TestLoopsHitTheProbeAgain looks for the branch to the original address.
func TestLoopsHitTheProbeAgain(t *testing.T) {
	for _, name := range arch.Names() {
		isa := isaOf(t, name)
		p := planOf(t, isa, loops[name].code(t, isa), detour.Options{})
		code := make([]byte, p.Max)
		if _, err := isa.EncodeDetour(code, p, home+0x8000); err != nil {
			t.Fatal(err)
		}
		moved := sweep(t, isa, code[p.Parts.Moved:p.Parts.Back], home+0x8000+uint64(p.Parts.Moved))
		if !slices.ContainsFunc(moved, func(i decode.Inst) bool { target, ok := i.BranchTarget(); return ok && target == home }) {
			t.Errorf("%s: % x", name, code[p.Parts.Moved:p.Parts.Back])
		}
	}
}

// TestPlanIsUsedAgain makes a plan from a larger one.
func TestPlanIsUsedAgain(t *testing.T) {
	isa := isaOf(t, "amd64")
	p := planOf(t, isa, bytes.Repeat([]byte{0x90}, 12), detour.Options{})
	code := make([]byte, 512)
	if _, err := isa.EncodeDetour(code, p, home+0x8000); err != nil {
		t.Fatal(err)
	}
	if err := isa.PlanDetour(p, sweep(t, isa, nops(isa), home), detour.Options{Kernel: true}); err != nil {
		t.Fatal(err)
	}
	n, err := isa.EncodeDetour(code, p, home+0x8000)
	fresh := planOf(t, isa, nops(isa), detour.Options{Kernel: true})
	want := make([]byte, 512)
	m, freshErr := isa.EncodeDetour(want, fresh, home+0x8000)
	if err != nil || freshErr != nil || !bytes.Equal(code[:n], want[:m]) {
		t.Errorf("% x, %v\nwant % x, %v", code[:n], err, want[:m], freshErr)
	}
}

// FuzzDetour plans and encodes buffers for any bytes.
func FuzzDetour(f *testing.F) {
	f.Add([]byte{0x55, 0x48, 0x89, 0xe5, 0x41, 0x54}, uint8(0), false, int64(0x8000), uint64(home))
	f.Add([]byte{0x20, 0x04, 0x00, 0x91}, uint8(1), true, int64(-0x8000), uint64(far))
	f.Add([]byte{0x38, 0x63, 0x00, 0x01}, uint8(2), false, int64(1<<25-4), uint64(1))
	f.Add([]byte{0x06, 0x00, 0x00, 0x00, 0x38, 0x60, 0x00, 0x01}, uint8(2), true, int64(-1<<25), uint64(0))
	f.Fuzz(func(t *testing.T, code []byte, which uint8, kernel bool, distance int64, callback uint64) {
		names := arch.Names()
		isa := isaOf(t, names[int(which)%len(names)])
		var p detour.Plan
		insts := decode.Sweep(isa, nil, code[:min(len(code), 64)], home)
		if isa.PlanDetour(&p, insts, detour.Options{Kernel: kernel, Callback: callback, Probe: callback}) != nil {
			return
		}
		at := home + uint64(distance)
		dst := make([]byte, p.Max)
		n, err := isa.EncodeDetour(dst, &p, at)
		switch inReach := distance >= -p.ReachBack && distance <= p.ReachForward; {
		case err == nil && (n < p.Min || n > p.Max || p.Parts.End != n):
			t.Errorf("%d bytes, planned %d to %d, parts %+v", n, p.Min, p.Max, p.Parts)
		case err != nil && !errors.Is(err, relocate.ErrRange) && !errors.Is(err, relocate.ErrMisaligned):
			t.Error(err)
		case err != nil && inReach && at%uint64(p.Align) == 0 && !refersToCode(&p):
			t.Errorf("at %+d, in reach: %v", distance, err)
		}
	})
}

// refersToCode reports whether a moved instruction has an operand that may be
// out of reach.
func refersToCode(p *detour.Plan) bool {
	return slices.ContainsFunc(p.Relocation.Steps, func(s relocate.Step) bool { return s.Inst.Has(decode.HasTarget) })
}
