package amd64

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/relocate"
)

// Where the tests' instructions stand, and where they go.
const (
	moveFrom = 0x401000
	moveNear = 0x500000
	moveFar  = 0x7f00_0000_0000
)

func sweepHex(t testing.TB, code string, addr uint64) []decode.Inst {
	t.Helper()
	raw, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return decode.Sweep(ISA{}, nil, raw, addr)
}

// isFarJump recognises a jump through the address after it.
func isFarJump(inst *decode.Inst) bool {
	return inst.Flow == decode.FlowJumpIndirect && inst.Has(decode.HasTarget) && inst.Target == inst.Next()
}

// decodeMoved decodes moved code, and takes the addresses after far jumps for
// the targets that they are.
func decodeMoved(code []byte, addr uint64) (insts []decode.Inst, err error) {
	for len(code) > 0 {
		var inst decode.Inst
		if err := (ISA{}).Decode(&inst, code, addr); err != nil {
			return nil, fmt.Errorf("%x at %#x: %w", code, addr, err)
		}
		code, addr = code[inst.Len:], inst.Next()
		if isFarJump(&inst) {
			if len(code) < 8 {
				return nil, fmt.Errorf("no address after the jump at %#x", inst.Addr)
			}
			inst.Target = binary.LittleEndian.Uint64(code)
			code, addr = code[8:], addr+8
		}
		insts = append(insts, inst)
	}
	return insts, nil
}

func textOf(t testing.TB, code []byte, addr uint64) string {
	t.Helper()
	insts, err := decodeMoved(code, addr)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range insts {
		text, _, _ := strings.Cut(ISA{}.Text(&insts[i], nil), " #")
		if bytes.Equal(insts[i].Bytes(), []byte{0xff, 0x25, 0, 0, 0, 0}) {
			text = fmt.Sprintf("jmp far %#x", insts[i].Target)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// Options that the tables name.
type option func(*relocate.Options)

func optionsOf(list ...option) relocate.Options {
	opt := relocate.Options{Back: relocate.BackNone}
	for _, set := range list {
		set(&opt)
	}
	return opt
}

func far(o *relocate.Options)      { o.Reach = relocate.Far }
func nearby(o *relocate.Options)   { o.Reach = relocate.Near }
func region(o *relocate.Options)   { o.Form = relocate.Region }
func inKernel(o *relocate.Options) { o.Kernel = true }
func linux(o *relocate.Options)    { o.Linux = true }
func noStack(o *relocate.Options)  { o.Scratch = relocate.ScratchNone }

func dead(regs ...int) option {
	return func(o *relocate.Options) {
		for _, r := range regs {
			o.Registers |= 1 << r
		}
	}
}

func onlyDead(regs ...int) option {
	return func(o *relocate.Options) {
		o.Scratch = relocate.ScratchGiven
		dead(regs...)(o)
	}
}

const (
	// What goes around a form that uses the stack below the red zone.
	below = "lea -0x80(%rsp),%rsp; "
	above = "; lea 0x80(%rsp),%rsp"
	// The standing of rsi in for the address 0x501000, or one before it.
	viaRSI   = "push %rsi; movabs $0x501000,%rsi; "
	viaRSI6  = "push %rsi; movabs $0x500fff,%rsi; "
	standRSP = below + "push %rsi; push %rsi; push %rdi; lea 0x98(%rsp),%rdi; movabs $0x501000,%rsi; "
	setRSP   = "; mov %rdi,0x10(%rsp); pop %rdi; pop %rsi; pop %rsp"
)

func TestForms(t *testing.T) {
	for _, c := range []struct {
		name, code string
		opt        relocate.Options
		to         uint64
		want       string
	}{
		{"kept", "4889e5", optionsOf(far), moveFar, "mov %rsp,%rbp"},
		{"landing pad", "f30f1efa", optionsOf(far), moveFar, "endbr64"},
		{"system call by number", "cd80", optionsOf(far), moveFar, "int $0x80"},

		{"load", "488b05f9ff0f00", optionsOf(), moveNear, "mov 0xff9(%rip),%rax"},
		{"load, far: by way of the destination", "488b05f9ff0f00", optionsOf(far), moveFar,
			"movabs $0x501000,%rax; mov 0x0(%rax),%rax"},
		{"load of r8, far", "4c8b05f9ff0f00", optionsOf(far, noStack), moveFar, "movabs $0x501000,%r8; mov 0x0(%r8),%r8"},
		{"zero extension, far", "0fb605f9ff0f00", optionsOf(far, noStack), moveFar, "movabs $0x501000,%rax; movzbl 0x0(%rax),%eax"},
		{"load of 16 bits keeps the rest of the register", "668b05f9ff0f00", optionsOf(far), moveFar,
			below + viaRSI + "mov 0x0(%rsi),%ax; pop %rsi" + above},
		{"load of r12, which is no plain base", "4c8b25f9ff0f00", optionsOf(far), moveFar,
			below + viaRSI + "mov 0x0(%rsi),%r12; pop %rsi" + above},
		{"store, far", "488905f9ff0f00", optionsOf(far), moveFar, below + viaRSI + "mov %rax,0x0(%rsi); pop %rsi" + above},
		{"store, far, without a red zone", "488905f9ff0f00", optionsOf(far, inKernel), moveFar, viaRSI + "mov %rax,0x0(%rsi); pop %rsi"},
		{"store of rsi", "488935f9ff0f00", optionsOf(far, inKernel), moveFar, "push %rdi; movabs $0x501000,%rdi; mov %rsi,0x0(%rdi); pop %rdi"},
		{"store, far, with a dead register", "488905f9ff0f00", optionsOf(far, dead(R11)), moveFar,
			"movabs $0x501000,%r11; mov %rax,0x0(%r11)"},
		{"store of the register said to be dead", "488905f9ff0f00", optionsOf(far, inKernel, dead(RAX)), moveFar,
			viaRSI + "mov %rax,0x0(%rsi); pop %rsi"},
		{"rsp and r12 are no scratch registers", "488905f9ff0f00", optionsOf(far, inKernel, dead(RSP, R12)), moveFar,
			viaRSI + "mov %rax,0x0(%rsi); pop %rsi"},
		{"a prefix for the dead register", "8905faff0f00", optionsOf(far, onlyDead(R11)), moveFar,
			"movabs $0x501000,%r11; mov %eax,0x0(%r11)"},
		{"a longer VEX prefix for the dead register", "c5fe7f05f8ff0f00", optionsOf(far, onlyDead(R11)), moveFar,
			"movabs $0x501000,%r11; vmovdqu %ymm0,0x0(%r11)"},
		{"VEX", "c4e27d1905f7ff0f00", optionsOf(far, onlyDead(R9)), moveFar, "movabs $0x501000,%r9; vbroadcastsd 0x0(%r9),%ymm0"},
		{"VEX, whose base bit is set", "c4c27d1905f7ff0f00", optionsOf(far, onlyDead(RDX)), moveFar,
			"movabs $0x501000,%rdx; vbroadcastsd 0x0(%rdx),%ymm0"},
		{"VEX, vvvv is rsi's number", "c5cdfe35f8ff0f00", optionsOf(far, inKernel), moveFar,
			"push %rdi; movabs $0x501000,%rdi; vpaddd 0x0(%rdi),%ymm6,%ymm6; pop %rdi"},
		{"EVEX", "62f17c481005f6ff0f00", optionsOf(far, onlyDead(R13)), moveFar, "movabs $0x501000,%r13; vmovups 0x0(%r13),%zmm0"},
		{"EVEX, whose base bits are set", "62d97c481005f6ff0f00", optionsOf(far, inKernel), moveFar,
			viaRSI + "vmovups 0x0(%rsi),%zmm0; pop %rsi"},
		{"EVEX, opmask and broadcast", "62f17d59fe25f6ff0f00", optionsOf(far, inKernel), moveFar,
			viaRSI + "vpaddd 0x0(%rsi){1to16},%zmm0,%zmm4{%k1}; pop %rsi"},
		{"XOP", "8fe978c205f7ff0f00", optionsOf(far, onlyDead(R10)), moveFar, "movabs $0x501000,%r10; vphaddbd 0x0(%r10),%xmm0"},
		{"3DNow!", "0f0f05f8ff0f009e", optionsOf(far, onlyDead(R8)), moveFar, "movabs $0x501000,%r8; pfadd 0x0(%r8),%mm0"},
		{"REX2", "d5518905f8ff0f00", optionsOf(far, inKernel), moveFar, viaRSI + "mov %r16d,0x0(%rsi); pop %rsi"},
		{"REX.B has no effect on a RIP-relative operand", "498905f9ff0f00", optionsOf(far, inKernel), moveFar,
			viaRSI + "mov %rax,0x0(%rsi); pop %rsi"},
		{"an immediate after the displacement", "c705f6ff0f0078563412", optionsOf(), moveNear, "movl $0x12345678,0xff6(%rip)"},
		{"an immediate, far", "c705f6ff0f0078563412", optionsOf(far, inKernel), moveFar, viaRSI + "movl $0x12345678,0x0(%rsi); pop %rsi"},
		{"prefixes stay", "64f0480fb10df6ff0f00", optionsOf(far, inKernel), moveFar,
			viaRSI + "lock cmpxchg %rcx,%fs:0x0(%rsi); pop %rsi"},
		{"ah and its like need an instruction without REX", "8825faff0f00", optionsOf(far, inKernel, dead(R8)), moveFar,
			viaRSI + "mov %ah,0x0(%rsi); pop %rsi"},
		{"addresses of 32 bits reach from everywhere", "67488b05f8ff0f00", optionsOf(far, noStack), moveFar, "mov 0x500ff8(%eip),%rax"},

		{"lea", "488d05f9ff0f00", optionsOf(), moveNear, "lea 0xff9(%rip),%rax"},
		{"lea, far", "488d05f9ff0f00", optionsOf(far, noStack), moveFar, "movabs $0x501000,%rax"},
		{"lea of 32 bits, far", "448d0df9ff0f00", optionsOf(far), moveFar, "mov $0x501000,%r9d"},
		{"lea of 16 bits, far", "668d05f9ff0f00", optionsOf(far), moveFar, "mov $0x1000,%ax"},
		{"lea of rsp, far", "488d25f9ff0f00", optionsOf(far), moveFar, "movabs $0x501000,%rsp"},
		{"lea of r31, far", "d54c8d3df8ff0f00", optionsOf(far), moveFar, "movabs $0x501000,%r31"},
		{"lea with addresses of 32 bits", "67488d05f8ff0f00", optionsOf(far), moveFar, "lea 0x500ff8(%eip),%rax"},
		{"bounds check of an address", "f20f1a0df8ff0f00", optionsOf(far, inKernel), moveFar, viaRSI + "bndcu 0x0(%rsi),%bnd1; pop %rsi"},

		{"rsp as an operand", "480325f9ff0f00", optionsOf(far), moveFar, standRSP + "add 0x0(%rsi),%rdi" + setRSP},
		{"cmov into rsp", "480f4525f8ff0f00", optionsOf(far), moveFar, standRSP + "cmovne 0x0(%rsi),%rdi" + setRSP},
		{"xchg with rsp", "488725f9ff0f00", optionsOf(far), moveFar, standRSP + "xchg %rdi,0x0(%rsi)" + setRSP},
		{"spl", "408825f9ff0f00", optionsOf(far), moveFar, standRSP + "mov %dil,0x0(%rsi)" + setRSP},
		{"conversion to rsp", "f2480f2c25f7ff0f00", optionsOf(far), moveFar, standRSP + "cvttsd2si 0x0(%rsi),%rdi" + setRSP},
		{"conversion to mm4, which has rsp's number", "0f2c25f9ff0f00", optionsOf(far, inKernel), moveFar,
			viaRSI + "cvttps2pi 0x0(%rsi),%mm4; pop %rsi"},
		{"rsp as an operand, with a dead register", "480325f9ff0f00", optionsOf(far, dead(RCX)), moveFar,
			"movabs $0x501000,%rcx; add 0x0(%rcx),%rsp"},

		{"push", "ff35fa0f0000", optionsOf(), moveNear, "push -0xfe006(%rip)"},
		{"push, far", "ff35f9ff0f00", optionsOf(far), moveFar,
			"lea -0x88(%rsp),%rsp; " + viaRSI6 + "mov (%rsi),%rsi; mov %rsi,0x88(%rsp); pop %rsi" + above},
		{"push of 16 bits, far", "66ff35f9ff0f00", optionsOf(far, inKernel), moveFar,
			"lea -0x2(%rsp),%rsp; " + viaRSI + "mov (%rsi),%si; mov %si,0x8(%rsp); pop %rsi"},
		{"push from a segment, far", "64ff35f9ff0f00", optionsOf(far, inKernel), moveFar,
			"lea -0x8(%rsp),%rsp; " + viaRSI + "mov %fs:(%rsi),%rsi; mov %rsi,0x8(%rsp); pop %rsi"},
		{"push, far, with a dead register", "ff35f9ff0f00", optionsOf(far, dead(RAX)), moveFar, "movabs $0x500fff,%rax; push 0x0(%rax)"},
		{"pop, far", "8f05f9ff0f00", optionsOf(far), moveFar,
			below + "push %rsi; push %rdi; movabs $0x500fff,%rsi; mov 0x90(%rsp),%rdi; mov %rdi,(%rsi); pop %rdi; pop %rsi; lea 0x88(%rsp),%rsp"},
		{"pop of 16 bits, far", "668f05f9ff0f00", optionsOf(far, inKernel), moveFar,
			"push %rsi; push %rdi; movabs $0x501000,%rsi; mov 0x10(%rsp),%di; mov %di,(%rsi); pop %rdi; pop %rsi; lea 0x2(%rsp),%rsp"},

		{"indirect jump", "ff25f9ff0f00", optionsOf(), moveNear, "jmp *0xff9(%rip)"},
		{"indirect jump, far", "ff25f9ff0f00", optionsOf(far), moveFar,
			"lea -0x88(%rsp),%rsp; " + viaRSI6 + "mov (%rsi),%rsi; mov %rsi,0x8(%rsp); pop %rsi; ret $0x80"},
		{"indirect jump, far, with a dead register", "ff25f9ff0f00", optionsOf(far, dead(R11)), moveFar,
			"movabs $0x500fff,%r11; jmp *0x0(%r11)"},
		{"indirect jump, bnd and notrack", "f23eff25f7ff0f00", optionsOf(), moveNear, "bnd notrack jmp *0xff7(%rip)"},
		{"indirect jump through a register", "ffe0", optionsOf(far), moveFar, "jmp *%rax"},
		{"indirect call", "ff15f9ff0f00", optionsOf(), moveNear, "push $0x401006; jmp *0xff4(%rip)"},
		{"indirect call, far", "ff15f9ff0f00", optionsOf(far), moveFar,
			"lea -0x88(%rsp),%rsp; " + viaRSI6 + "mov (%rsi),%rsi; mov %rsi,0x88(%rsp); pop %rsi; " +
				"push 0x80(%rsp); movq $0x401006,0x88(%rsp); ret $0x80"},
		{"indirect call, far, with a dead register", "ff15f9ff0f00", optionsOf(far, dead(R11)), moveFar,
			"push $0x401006; movabs $0x500fff,%r11; jmp *0x0(%r11)"},
		{"call through a register", "ffd0", optionsOf(), moveNear, "push $0x401002; jmp *%rax"},
		{"call through the stack", "ff542408", optionsOf(), moveNear, "push $0x401004; jmp *0x10(%rsp)"},
		{"call through the stack, indexed", "42ff14fc", optionsOf(inKernel), moveNear,
			"push (%rsp,%r15,8); push (%rsp); movq $0x401004,0x8(%rsp); ret"},
		{"call through what it pushes", "ff5424f8", optionsOf(), moveNear,
			"push -0x8(%rsp); " + below + "push 0x80(%rsp); movq $0x401004,0x88(%rsp); ret $0x80"},
		{"call through the stack, with the largest displacement", "ff9424ffffff7f", optionsOf(inKernel), moveNear,
			"push 0x7fffffff(%rsp); push (%rsp); movq $0x401007,0x8(%rsp); ret"},
		{"call to the stack", "ffd4", optionsOf(inKernel), moveNear, "push %rsp; push (%rsp); movq $0x401002,0x8(%rsp); ret"},
		{"call through the stack, 32-bit address", "67ff5424f8", optionsOf(inKernel), moveNear,
			"push -0x8(%esp); push (%rsp); movq $0x401005,0x8(%rsp); ret"},
		{"far jump through memory", "48ff2df9ff0f00", optionsOf(), moveNear, "rex.W ljmp *0xff9(%rip)"},

		{"jmp", "e9fb0f0000", optionsOf(), moveNear, "jmp 0x402000"},
		{"jmp, far", "e9fb0f0000", optionsOf(far), moveFar, "jmp far 0x402000"},
		{"short jmp to itself leaves the slot", "ebfe", optionsOf(), moveNear, "jmp 0x401000"},
		{"jcc", "75fe", optionsOf(), moveNear, "jne 0x401000"},
		{"jcc, far", "0f8ffa0f0000", optionsOf(), moveFar, "jle 0x7f0000000010; jmp far 0x402000"},
		{"jcc with a hint", "2e75fd", optionsOf(), moveNear, "jne 0x401000"},
		{"loop", "e2fe", optionsOf(), moveNear, "loop 0x500004; jmp 0x500009; jmp 0x401000"},
		{"loopne, far", "e0fe", optionsOf(far), moveFar, "loopne 0x7f0000000004; jmp 0x7f0000000012; jmp far 0x401000"},
		{"jecxz", "67e3fd", optionsOf(), moveNear, "jecxz 0x500005; jmp 0x50000a; jmp 0x401000"},
		{"a prefix that AMD's CPUs take for another condition", "f2e1fd", optionsOf(), moveNear,
			"repnz loope 0x500005; jmp 0x50000a; jmp 0x401000"},
		{"xbegin", "c7f8fa0f0000", optionsOf(), moveNear, "xbegin 0x402000"},
		{"xbegin, far", "c7f8fa0f0000", optionsOf(far), moveFar, "xbegin 0x7f0000000008; jmp 0x7f0000000016; jmp far 0x402000"},
		{"call", "e8fb0f0000", optionsOf(), moveNear, "push $0x401005; jmp 0x402000"},
		{"call, far", "e8fb0f0000", optionsOf(far), moveFar, "push $0x401005; jmp far 0x402000"},
		{"system call", "0f05", optionsOf(), moveNear, "syscall; movabs $0x401002,%rcx"},
		{"jump to a constant address", "d500a1efbeadde00000000", optionsOf(far), moveFar, "jmpabs $0xdeadbeef"},

		{"region: branches inside stay inside", "ffc8 75fc e2fa ebf8", optionsOf(region, far), moveFar,
			"dec %eax; jne 0x7f0000000000; loop 0x7f000000000c; jmp 0x7f0000000011; jmp 0x7f0000000000; jmp 0x7f0000000000"},
		{"region: call of the next instruction", "e800000000 58", optionsOf(region), moveNear, "push $0x401005; jmp 0x50000a; pop %rax"},
		{"region: jump to a constant address inside", "90 d500a10010400000000000", optionsOf(region), moveNear, "nop; jmp 0x500000"},

		{"Linux: copies branches", "e8fb0f0000", optionsOf(linux), moveFar, "call 0x7f0000001000"},
		{"Linux: re-bases calls", "ff15faff0f00", optionsOf(linux), moveNear, "call *0xffa(%rip)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, code, err := archtest.Move(t, ISA{}, sweepHex(t, c.code, moveFrom), c.opt, c.to)
			if err != nil {
				t.Fatal(err)
			}
			if got := textOf(t, code, c.to); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestReturnAddressesAbove2GiB(t *testing.T) {
	const from = 0x5555_5555_4000
	for _, c := range []struct{ name, code, want string }{
		{"call", "e8fb0f0000", "push $0x55554005; movl $0x5555,0x4(%rsp); jmp 0x555555555000"},
		{"call through what it pushes", "ff5424f8",
			"push -0x8(%rsp); lea -0x80(%rsp),%rsp; push 0x80(%rsp); movl $0x55554004,0x88(%rsp); movl $0x5555,0x8c(%rsp); ret $0x80"},
	} {
		_, code, err := archtest.Move(t, ISA{}, sweepHex(t, c.code, from), optionsOf(), from+0x10000)
		if err != nil {
			t.Fatal(err)
		}
		if got := textOf(t, code, from+0x10000); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name, code string
		opt        relocate.Options
		action     relocate.Action
		note       string
		clobbers   uint64
		min, max   int
	}{
		{"kept", "90", optionsOf(), relocate.Kept, "", 0, 1, 1},
		{"load", "8b0500000000", optionsOf(), relocate.Rebased, "amd64/rip-relative", 0, 6, 16},
		{"load, far", "8b0500000000", optionsOf(far), relocate.Expanded, "amd64/rip-relative", 0, 16, 16},
		{"store", "890500000000", optionsOf(dead(R9)), relocate.Rebased, "amd64/rip-relative", 1 << R9, 6, 17},
		{"lea", "488d0500000000", optionsOf(), relocate.Rebased, "amd64/rip-address", 0, 7, 10},
		{"call", "e800000000", optionsOf(), relocate.Expanded, "amd64/call", 0, 10, 19},
		{"call, near", "e800000000", optionsOf(nearby), relocate.Expanded, "amd64/call", 0, 10, 10},
		{"call in a region", "e800000000 90", optionsOf(region), relocate.Expanded, "amd64/call-returns-inside", 0, 11, 11},
		{"call through memory", "ff1500000000", optionsOf(nearby, noStack), relocate.Expanded, "amd64/call", 0, 11, 11},
		{"call through memory, dead register", "ff1500000000", optionsOf(far, dead(R9)), relocate.Expanded, "amd64/call", 1 << R9, 22, 22},
		{"call to the stack", "ffd4", optionsOf(inKernel), relocate.Expanded, "amd64/indirect-through-return", 0, 15, 15},
		{"jmp", "e900000000", optionsOf(), relocate.Rebased, "amd64/branch", 0, 5, 14},
		{"short jmp", "eb00", optionsOf(), relocate.Expanded, "amd64/branch", 0, 5, 14},
		{"loop", "e200", optionsOf(), relocate.Expanded, "amd64/loop", 0, 9, 18},
		{"syscall", "0f05", optionsOf(), relocate.Expanded, "amd64/syscall", 0, 12, 12},
		{"Linux", "8b0500000000", optionsOf(linux), relocate.Rebased, "amd64/rip-relative", 0, 6, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p relocate.Plan
			if err := (ISA{}).Plan(&p, sweepHex(t, c.code, moveFrom), c.opt); err != nil {
				t.Fatal(err)
			}
			s := &p.Steps[0]
			note := ""
			if s.Note != nil {
				note = s.Note.ID
			}
			if s.Action != c.action || note != c.note || s.Clobbers != c.clobbers || p.Min != c.min || p.Max != c.max {
				t.Errorf("%v %q, clobbers %#x, %d to %d bytes", s.Action, note, s.Clobbers, p.Min, p.Max)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, code string
		opt        relocate.Options
		rule       string
		at         uint64 // after the first instruction
	}{
		{"jump of two meanings", "66e900000000", optionsOf(), "amd64/move-branch-66", 0},
		{"indirect call of two meanings", "66ff1500000000", optionsOf(), "amd64/move-branch-66", 0},
		{"breakpoint", "cc", optionsOf(), "amd64/move-trap", 0},
		{"breakpoint in a region", "90cc", optionsOf(region), "amd64/move-trap", 1},
		{"breakpoint of two bytes", "cd03", optionsOf(), "amd64/move-trap", 0},
		{"undefined on purpose", "0f0b", optionsOf(), "amd64/move-trap", 0},
		{"far call", "ff18", optionsOf(), "amd64/move-far-call", 0},
		{"branch into an instruction", "9090 eb04 b801020304 c3", optionsOf(region), "amd64/move-branch-into-instruction", 2},
		{"branch into itself", "ebff c3", optionsOf(region), "amd64/move-branch-into-instruction", 0},
		{"store, far, no register", "890500000000", optionsOf(far, noStack), "amd64/move-scratch", 0},
		{"dead registers count only where allowed", "890500000000", optionsOf(far, noStack, dead(RAX, RDX)), "amd64/move-scratch", 0},
		{"store of the only dead register", "893500000000", optionsOf(far, onlyDead(RSI)), "amd64/move-scratch", 0},
		{"store of ah, no register below r8", "882500000000", optionsOf(far, onlyDead(R9)), "amd64/move-scratch", 0},
		{"push, far, no register", "ff3500000000", optionsOf(far, noStack), "amd64/move-scratch", 0},
		{"call, far, no register", "ff1500000000", optionsOf(far, noStack), "amd64/move-scratch", 0},
		{"far jump, far", "48ff2d00000000", optionsOf(far), "amd64/move-far-jump", 0},
		{"rsp after VEX, far", "c4e2d9f70500000000", optionsOf(far), "amd64/move-stack-pointer", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p relocate.Plan
			err := ISA{}.Plan(&p, sweepHex(t, c.code, moveFrom), c.opt)
			var refused *relocate.RefusedError
			if !errors.As(err, &refused) || !errors.Is(err, relocate.ErrRefused) {
				t.Fatal(err)
			}
			if refused.Rule.ID != c.rule || refused.Rule.Reason == "" || refused.Addr != moveFrom+c.at {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	var inst decode.Inst
	if err := (ISA{}).Decode(&inst, []byte{0xe8, 0, 0}, moveFrom); !errors.Is(err, decode.ErrTruncated) {
		t.Errorf("truncated: %v", err)
	}
	nop, load := sweepHex(t, "90", moveFrom), sweepHex(t, "890500000000", moveFrom)
	for _, c := range []struct {
		name  string
		insts []decode.Inst
		opt   relocate.Options
		to    uint64
		size  int
		want  error
	}{
		{"nothing", nil, optionsOf(), moveNear, 16, relocate.ErrEmpty},
		{"not an instruction", sweepHex(t, "06", moveFrom), optionsOf(), moveNear, 16, decode.ErrInvalid},
		{"truncated", sweepHex(t, "e800", moveFrom)[:1], optionsOf(), moveNear, 16, decode.ErrInvalid},
		{"two in a slot", sweepHex(t, "9090", moveFrom), optionsOf(), moveNear, 16, relocate.ErrNotContiguous},
		{"a gap", append(sweepHex(t, "90", moveFrom), sweepHex(t, "90", moveFrom+2)...), optionsOf(region), moveNear, 16, relocate.ErrNotContiguous},
		{"no room", nop, optionsOf(), moveNear, 0, relocate.ErrTooSmall},
		{"a byte too few", load, optionsOf(), moveNear, 5, relocate.ErrTooSmall},
		{"out of reach, near", load, optionsOf(nearby), moveFar, 16, relocate.ErrRange},
		{"out of reach, Linux", load, optionsOf(linux), moveFar, 16, relocate.ErrRange},
		{"out of reach, Linux, though 32-bit addresses reach", sweepHex(t, "67890500000000", moveFrom), optionsOf(linux), moveFar, 16, relocate.ErrRange},
		{"out of reach, no register", load, optionsOf(noStack), moveFar, 64, relocate.ErrRange},
		{"branch out of reach", sweepHex(t, "7500", moveFrom), optionsOf(nearby), moveFar, 16, relocate.ErrRange},
		{"call out of reach, no register", sweepHex(t, "ff1500000000", moveFrom), optionsOf(noStack), moveFar, 64, relocate.ErrRange},
		{"way back out of reach", nop, relocate.Options{Reach: relocate.Near}, moveFar, 16, relocate.ErrRange},
		{"way back out of reach, Linux", nop, relocate.Options{Linux: true}, moveFar, 16, relocate.ErrRange},
		{"one byte beyond 2 GiB", load, optionsOf(nearby), moveFrom + 1<<31 + 1, 16, relocate.ErrRange},
		{"2 GiB", load, optionsOf(nearby), moveFrom + 1<<31, 6, nil},
		{"2 GiB below, around the address space", load, optionsOf(nearby), 1<<64 + moveFrom - 1<<31 + 1, 6, nil},
		{"just enough room", load, optionsOf(), moveNear, 6, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := bytes.Repeat([]byte{0xa5}, 64)
			var p relocate.Plan
			err := ISA{}.Plan(&p, c.insts, c.opt)
			if err == nil {
				_, err = ISA{}.Encode(dst[:c.size], &p, c.to)
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if err != nil && !bytes.Equal(dst, bytes.Repeat([]byte{0xa5}, 64)) {
				t.Error("the buffer is not as it was")
			}
			var r *relocate.RangeError
			if c.want == relocate.ErrRange && (!errors.As(err, &r) || r.Addr != moveFrom || r.At != c.to && r.At != c.to+1) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// detourCopy is where the kernel's detour buffer holds the copies, in bytes from
// its start.
const detourCopy = 100

// The kernel's copies: in the slot, followed by a breakpoint, and in the detour
// buffer, followed by a jump back.
func TestLinuxCopies(t *testing.T) {
	for sample, full := range kernelLists {
		t.Run(full, func(t *testing.T) { checkCopies(t, sample) })
		t.Run("all of "+full, func(t *testing.T) { checkCopies(t, refdata.Full(t, "kernel-verdicts", full)) })
	}
}

func checkCopies(t *testing.T, path string) {
	funcs, err := refdata.KernelVerdicts(path)
	if err != nil {
		t.Fatal(err)
	}
	slots, detours := 0, 0
	for i := range funcs {
		kf := &funcs[i]
		insts := decode.Sweep(ISA{}, nil, kf.Text, uint64(kf.Addr))
		for j := range kf.Rows {
			row := &kf.Rows[j]
			off := row.Off
			if row.MovedTo != nil {
				off = *row.MovedTo
			}
			first, start := decode.Find(insts, uint64(kf.Addr)+off)
			if len(row.Slot) > 0 {
				slots++
				opt := relocate.Options{Linux: true, Kernel: true, Back: relocate.BackBreakpoint}
				checkCopy(t, kf.Sym, row, insts[first:first+1], opt, uint64(row.SlotAddr), row.Slot)
			}
			if len(row.DetourCopy) > 0 {
				detours++
				last := first
				for last < len(insts) && insts[last].Addr < insts[first].Addr+uint64(row.Region) {
					last++
				}
				opt := relocate.Options{Linux: true, Kernel: true, Form: relocate.Region}
				checkCopy(t, kf.Sym, row, insts[first:last], opt, uint64(row.DetourAddr)+detourCopy, row.DetourCopy)
			}
			if (len(row.Slot) > 0 || len(row.DetourCopy) > 0) && !start {
				t.Errorf("%s+%#x: no instruction starts there", kf.Sym, row.Off)
			}
		}
	}
	t.Logf("%d slots, %d detours", slots, detours)
}

func checkCopy(t *testing.T, sym string, row *refdata.KernelRow, insts []decode.Inst, opt relocate.Options, to uint64, want []byte) {
	t.Helper()
	_, got, err := archtest.Move(t, ISA{}, insts, opt, to)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s+%#x at %#x: got %x (%v), want %x", sym, row.Off, to, got, err, want)
	}
}

// manyInstructions returns every instruction of the lists of texts, which hold
// all encodings, and of the recorded functions, where they stood.
func manyInstructions(t testing.TB) []decode.Inst {
	t.Helper()
	var insts []decode.Inst
	for _, list := range []string{"testdata/text-legacy.tsv.gz", "testdata/text-vector.tsv.gz", "testdata/relocate-operands.tsv.gz"} {
		rows, err := refdata.Rows(list)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			raw, err := hex.DecodeString(row[0])
			if err != nil {
				t.Fatal(err)
			}
			var inst decode.Inst
			if (ISA{}).Decode(&inst, raw, moveFrom+32*uint64(i)) == nil {
				insts = append(insts, inst)
			}
		}
	}
	funcs, err := refdata.KernelVerdicts("testdata/kernel-verdicts.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	for i := range funcs {
		for _, inst := range decode.Sweep(ISA{}, nil, funcs[i].Text, uint64(funcs[i].Addr)) {
			if !inst.Has(decode.Invalid) {
				insts = append(insts, inst)
			}
		}
	}
	return insts
}

// randomOptions draws options from r.
func randomOptions(r *rand.Rand) relocate.Options {
	return relocate.Options{
		Form: relocate.Form(r.IntN(2)), Back: relocate.Back(r.IntN(3)), Reach: relocate.Reach(r.IntN(3)),
		Scratch: relocate.ScratchPolicy(r.IntN(3)), Registers: r.Uint32() & r.Uint32(),
		NoRedZone: r.IntN(2) == 0, Kernel: r.IntN(4) == 0, Linux: r.IntN(8) == 0,
	}
}

// randomPlace draws an address for code that stands at from: often near, at the
// edges of what a displacement of 32 bits reaches, or anywhere.
func randomPlace(r *rand.Rand, from, target uint64) uint64 {
	switch r.IntN(4) {
	case 0:
		return from + uint64(r.IntN(1<<31)-1<<30)
	case 1:
		return target + 1<<31 - uint64(r.IntN(128)) + 64
	case 2:
		return target - 1<<31 - uint64(r.IntN(128)) + 64
	}
	return r.Uint64()
}

// checkMoved checks what holds for every move: sizes in the bounds, which are
// one where the reach is known, and code that decodes.
func checkMoved(t testing.TB, insts []decode.Inst, opt relocate.Options, to uint64) {
	t.Helper()
	var p relocate.Plan
	if err := (ISA{}).Plan(&p, insts, opt); err != nil {
		var refused *relocate.RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("%x: %v", insts[0].Bytes(), err)
		}
		return
	}
	if opt.Reach != relocate.Anywhere && p.Min != p.Max {
		t.Errorf("%x: %d to %d bytes, though the reach is known", insts[0].Bytes(), p.Min, p.Max)
	}
	dst := make([]byte, p.Max)
	n, err := ISA{}.Encode(dst, &p, to)
	if err != nil {
		if !errors.Is(err, relocate.ErrRange) || !bytes.Equal(dst, make([]byte, p.Max)) {
			t.Errorf("%x: %v", insts[0].Bytes(), err)
		}
		return
	}
	archtest.CheckBounds(t, &p, n)
	if _, err := decodeMoved(dst[:n], to); err != nil {
		t.Errorf("%x to %#x with %+v: %v", insts[0].Bytes(), to, opt, err)
	}
}

func TestBounds(t *testing.T) {
	insts := manyInstructions(t)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range insts {
		for range 16 {
			opt := randomOptions(r)
			checkMoved(t, insts[i:i+1], opt, randomPlace(r, insts[i].Addr, insts[i].Target))
			if run := insts[i:min(i+1+r.IntN(8), len(insts))]; opt.Form == relocate.Region && follow(run) {
				checkMoved(t, run, opt, randomPlace(r, insts[i].Addr, insts[i].Target))
			}
		}
	}
	t.Logf("%d instructions", len(insts))
}

// follow reports whether instructions follow one another in memory.
func follow(insts []decode.Inst) bool {
	for i := range insts[1:] {
		if insts[i].Next() != insts[i+1].Addr {
			return false
		}
	}
	return true
}

// A run of instructions that decode, at any address, to any address.
func FuzzRelocate(f *testing.F) {
	for _, seed := range []string{"e800000000 58", "ff5424f8", "c5fe7f05f8ff0f00", "ffc8 75fc e2fa ebf8", "66ff35f9ff0f00", "c7f8fa0f0000"} {
		raw, err := hex.DecodeString(strings.ReplaceAll(seed, " ", ""))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, uint64(moveFrom), uint64(moveFar), uint64(1))
	}
	f.Fuzz(func(t *testing.T, code []byte, from, to, choice uint64) {
		opt := randomOptions(rand.New(rand.NewPCG(choice, 0)))
		var insts []decode.Inst
		for len(code) > 0 && len(insts) < 64 {
			var inst decode.Inst
			if (ISA{}).Decode(&inst, code, from) != nil {
				break
			}
			insts = append(insts, inst)
			code, from = code[inst.Len:], inst.Next()
			if opt.Form == relocate.Slot {
				break
			}
		}
		if len(insts) > 0 {
			checkMoved(t, insts, opt, to)
		}
	})
}

// One plan and one encoding into a caller's buffer, for the instructions of
// recorded kernel functions in turn.
func BenchmarkRelocate(b *testing.B) {
	funcs, err := refdata.KernelVerdicts("testdata/kernel-verdicts.jsonl.gz")
	if err != nil {
		b.Fatal(err)
	}
	var insts []decode.Inst
	var p relocate.Plan
	for i := range funcs {
		for _, inst := range decode.Sweep(ISA{}, nil, funcs[i].Text, uint64(funcs[i].Addr)) {
			if (ISA{}).Plan(&p, []decode.Inst{inst}, relocate.Options{}) == nil {
				insts = append(insts, inst)
			}
		}
	}
	for _, c := range []struct {
		name string
		opt  relocate.Options
		to   uint64
	}{
		{"near", relocate.Options{Kernel: true}, 0xffffffffc0000000},
		{"far", relocate.Options{Reach: relocate.Far}, moveFar},
		{"linux", relocate.Options{Linux: true, Kernel: true, Back: relocate.BackBreakpoint}, 0xffffffffc0000000},
	} {
		b.Run(c.name, func(b *testing.B) {
			var code [256]byte
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % len(insts) {
				if err := (ISA{}).Plan(&p, insts[i:i+1], c.opt); err != nil {
					b.Fatal(err)
				}
				if _, err := (ISA{}).Encode(code[:], &p, c.to); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "moves/s")
		})
	}
}
