//go:build linux

package verify_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"xol/arch/amd64"
	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/nativecpu"
	"xol/internal/refdata"
	"xol/internal/skip"
	"xol/machine"
	"xol/relocate"
	"xol/verify"
)

// opener opens one engine.
type opener func() (machine.Engine, error)

func openCPU() (machine.Engine, error) { return nativecpu.Open(amd64.Registers()) }

func openUnicorn() (machine.Engine, error) { return openEmulator("amd64", amd64.Registers()) }

// openers are the engines that are there, by name.
var openers = sync.OnceValue(func() map[string]opener {
	found := map[string]opener{}
	for name, open := range map[string]opener{"cpu": openCPU, "unicorn": openUnicorn} {
		if e, err := open(); err == nil && e.Close() == nil {
			found[name] = open
		}
	}
	return found
})

func engines(t *testing.T) map[string]opener {
	t.Helper()
	if len(openers()) == 0 {
		skip.Missing(t, "an engine", "amd64")
	}
	return openers()
}

// only returns what opens a single engine.
func only(open opener) func() ([]machine.Engine, error) {
	return func() ([]machine.Engine, error) {
		e, err := open()
		return []machine.Engine{e}, err
	}
}

// both returns what opens all that are there, first the CPU, which knows best.
func both(t *testing.T) func() ([]machine.Engine, error) {
	found := engines(t)
	return func() (list []machine.Engine, err error) {
		for _, name := range []string{"cpu", "unicorn"} {
			if open, ok := found[name]; ok {
				e, err := open()
				if err != nil {
					return nil, err
				}
				list = append(list, e)
			}
		}
		return list, nil
	}
}

// target is amd64 with other options, or with moved code that is then changed.
type target struct {
	amd64.ISA
	options func(*relocate.Options)
	mutate  func(p *relocate.Plan, code []byte, to uint64) []byte
}

func (a target) Plan(p *relocate.Plan, insts []decode.Inst, opt relocate.Options) error {
	if a.options != nil {
		a.options(&opt)
	}
	return a.ISA.Plan(p, insts, opt)
}

func (a target) Encode(dst []byte, p *relocate.Plan, to uint64) (int, error) {
	n, err := a.ISA.Encode(dst, p, to)
	if err == nil && a.mutate != nil {
		n = copy(dst, a.mutate(p, bytes.Clone(dst[:n]), to))
	}
	return n, err
}

// StackScratch is where code without a red zone may write.
func (a target) StackScratch(sp uint64) (lo, hi uint64) {
	var opt relocate.Options
	if a.options != nil {
		a.options(&opt)
	}
	lo, hi = a.ISA.StackScratch(sp)
	if opt.Kernel || opt.NoRedZone {
		return lo, sp
	}
	return lo, hi
}

func decodeRun(t testing.TB, code string, addr uint64) []decode.Inst {
	t.Helper()
	raw, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return archtest.Sweep(t, amd64.ISA{}, raw, addr)
}

func dead(regs ...int) func(*relocate.Options) {
	return func(o *relocate.Options) {
		for _, r := range regs {
			o.Registers |= 1 << r
		}
	}
}

func kernel(o *relocate.Options) { o.Kernel = true }

func noRedZone(o *relocate.Options) { o.NoRedZone = true }

// Failures that relocators are known for, each run in place and moved.
func TestKnownFailures(t *testing.T) {
	for _, c := range []struct {
		name    string
		code    string
		region  bool
		options func(*relocate.Options)
	}{
		{name: "branch back into the moved region", code: "83e107 83c901 ffc0 ffc9 75fa 90", region: true},
		{name: "branch back to the first instruction", code: "d1f9 8d4401ff 7ff8", region: true},
		{name: "branch to the end of the region", code: "85c0 7402 31c9", region: true},
		{name: "branch out of the region, in front", code: "85c0 75f0 90", region: true},
		{name: "function shorter than the patch", code: "31c0 c3 90 90", region: true},
		{name: "function of one byte", code: "c3", region: true},
		{name: "short branch over one that expands", code: "85c0 7405 e8fb0f0000 ffc1", region: true},
		{name: "short branch over a far operand", code: "85c0 7407 48890df9ff0f00 ffc1", region: true},
		{name: "short branch back over one that expands", code: "83e103 83c901 eb02 ffc2 7306 ff05f0ff0f00 e2f4", region: true},
		{name: "short jump", code: "eb10"},
		{name: "short jump to itself", code: "ebfe"},
		{name: "jrcxz", code: "e310"},
		{name: "jecxz", code: "67e310"},
		{name: "loop", code: "e210"},
		{name: "loop, 32-bit count", code: "67e210"},
		{name: "loope with a prefix that makes it another on some CPUs", code: "f2e1f0"},
		{name: "loope", code: "e1f0"},
		{name: "loopne", code: "e0f0"},
		{name: "jrcxz inside the region", code: "83e101 e302 ffc0 ffc2", region: true},
		{name: "loop inside the region", code: "83e107 83c901 01c8 e2fc 90", region: true},
		{name: "conditional jump, every condition", code: "7002 7102 7202 7302 7402 7502 7602 7702 7802 7902 7a02 7b02 7c02 7d02 7e02 7f02 90 90", region: true},
		{name: "conditional jump with a hint", code: "3e7510"},
		{name: "near jump with bnd", code: "f2e9fb0f0000"},

		{name: "call", code: "e8fb0f0000"},
		{name: "call next", code: "e800000000"},
		{name: "call next and pop, in the region", code: "e800000000 58 4883c008", region: true},
		{name: "call into the region", code: "e801000000 90 58 ffc0", region: true},
		{name: "call before more", code: "ffc0 e8fb0f0000 90", region: true},
		{name: "call through memory", code: "ff15fa0f0000"},
		{name: "call through memory in a segment", code: "65ff15f90f0000"},
		{name: "call through memory, dead register", code: "ff15fa0f0000", options: dead(amd64.R11)},
		{name: "call through memory, kernel", code: "ff15fa0f0000", options: kernel},
		{name: "call through a register", code: "ffd0"},
		{name: "call through r12", code: "41ffd4"},
		{name: "call through the stack", code: "ff542408"},
		{name: "call through the top of the stack", code: "ff1424"},
		{name: "call through the stack, indexed", code: "ff54c410"},
		{name: "call through the red zone", code: "ff5424f0"},
		{name: "call through what it pushes", code: "ff5424f8"},
		{name: "call through half of what it pushes", code: "ff5424fc"},
		{name: "call through what it pushes, kernel", code: "ff5424f8", options: kernel},
		{name: "call through the stack, 32-bit address", code: "67ff5424f8"},
		{name: "call through the stack, in a segment", code: "64ff5424f8"},
		{name: "call through the stack, largest displacement", code: "ff9424f8ffff7f"},
		{name: "call to the stack", code: "ffd4"},
		{name: "call through memory at any address", code: "ff9100100000"},
		{name: "notrack call", code: "3effd0"},
		{name: "jump through memory", code: "ff25fa0f0000"},
		{name: "jump through memory, no red zone", code: "ff25fa0f0000", options: noRedZone},
		{name: "jump through memory, dead register", code: "ff25fa0f0000", options: dead(amd64.RAX)},
		{name: "jump through a register", code: "ffe2"},
		{name: "return", code: "c3"},
		{name: "return over bytes", code: "c21000"},
		{name: "system call", code: "0f05"},
		{name: "landing pad", code: "f30f1efa"},

		{name: "lea is an address", code: "488d05f90f0000"},
		{name: "lea, 32 bits", code: "8d05fa0f0000"},
		{name: "lea, 16 bits", code: "668d05f90f0000"},
		{name: "lea of rsp", code: "488d25f90f0000"},
		{name: "lea, 32-bit address", code: "67488d05f80f0000"},
		{name: "a literal is read at run time", code: "488b05f90f0000"},
		{name: "literal, sign-extended", code: "4c6325f90f0000"},
		{name: "literal, 16 bits", code: "668b15f90f0000"},
		{name: "literal, 8 bits, high register", code: "8a25fa0f0000"},
		{name: "literal, 32-bit address", code: "678b05f90f0000"},
		{name: "literal in a segment", code: "64488b05f80f0000"},
		{name: "the base bit is set, and means nothing", code: "498b05f90f0000"},
		{name: "an index bit is set, and means nothing", code: "4a8b05f90f0000"},
		{name: "literal of r12 and r13", code: "4c8b25f90f0000 4c8b2df20f0000", region: true},
		{name: "prefetch", code: "0f180df90f0000"},

		{name: "immediate after the displacement, 8 bits", code: "8335f90f00007f"},
		{name: "immediate after the displacement, 16 bits", code: "66c705f70f00003412"},
		{name: "immediate after the displacement, 32 bits", code: "48c705f50f000078563412"},
		{name: "immediate and result", code: "6905f60f000078563412"},
		{name: "compare with an immediate", code: "803df90f000001"},
		{name: "double shift with an immediate", code: "480fa405f70f000007"},

		{name: "store keeps the flags", code: "f8 488905f90f0000 4811c0", region: true},
		{name: "store keeps the red zone", code: "488944 24f8 48890df40f0000 488b5424f8", region: true},
		{name: "store of rsi", code: "488935f90f0000"},
		{name: "store of rdi", code: "48893df90f0000"},
		{name: "store, dead register", code: "488905f90f0000", options: dead(amd64.R11)},
		{name: "store, dead register, short encoding", code: "8905fa0f0000", options: dead(amd64.R9)},
		{name: "store, kernel", code: "488905f90f0000", options: kernel},
		{name: "add with carry", code: "1105fa0f0000"},
		{name: "exchange", code: "480fc105f80f0000"},
		{name: "locked exchange", code: "48871df90f0000"},
		{name: "compare and exchange", code: "f0480fb10df70f0000"},
		{name: "compare and exchange 16 bytes", code: "f0480fc70df70f0000"},
		{name: "bit string at any distance", code: "480fab05f80f0000"},
		{name: "division", code: "48f735f90f0000"},
		{name: "multiplication", code: "48f725f90f0000"},

		{name: "rsp stored", code: "488925f90f0000"},
		{name: "rsp loaded", code: "488b25f90f0000"},
		{name: "rsp added to", code: "480325f90f0000"},
		{name: "rsp compared", code: "483925f90f0000"},
		{name: "rsp exchanged", code: "488725f90f0000"},
		{name: "rsp exchanged and added", code: "480fc125f80f0000"},
		{name: "rsp moved on a condition", code: "480f4525f80f0000"},
		{name: "esp moved on a condition", code: "0f4525f90f0000"},
		{name: "sp loaded", code: "668b25f90f0000"},
		{name: "spl loaded", code: "408a25f90f0000"},
		{name: "rsp loaded from a float", code: "f2480f2c25f70f0000"},
		{name: "rsp loaded, kernel", code: "488b25f90f0000", options: kernel},
		{name: "rsp added to, dead register", code: "480325f90f0000", options: dead(amd64.RDX)},
		{name: "mm4 has rsp's number", code: "0f2c25f90f0000"},
		{name: "push", code: "ff35fa0f0000"},
		{name: "push, kernel", code: "ff35fa0f0000", options: kernel},
		{name: "push, dead register", code: "ff35fa0f0000", options: dead(amd64.RCX)},
		{name: "push of 16 bits", code: "66ff35f90f0000"},
		{name: "pop", code: "8f05fa0f0000"},
		{name: "pop, kernel", code: "8f05fa0f0000", options: kernel},
		{name: "pop of 16 bits", code: "668f05f90f0000"},
		{name: "pop, dead register", code: "8f05fa0f0000", options: dead(amd64.RBX)},

		{name: "SSE", code: "0f1005f90f0000"},
		{name: "SSE store", code: "660f7f05f80f0000"},
		{name: "MMX", code: "0f6f05f90f0000"},
		{name: "x87", code: "d805fa0f0000"},
		{name: "VEX of two bytes", code: "c5fe6f05f80f0000"},
		{name: "VEX of two bytes, upper dead register", code: "c5fe7f05f80f0000", options: dead(amd64.R10)},
		{name: "VEX of three bytes", code: "c4e27d1905f70f0000"},
		{name: "VEX with its base bit set", code: "c4c27d1905f70f0000"},
		{name: "VEX, vvvv and a blend register", code: "c4e3654a1df60f000020"},
		{name: "VEX, vvvv is a general register", code: "c4e2c8f235f70f0000"},
		{name: "VEX, vvvv is rsi and the register rdi", code: "c4e2c8f23df70f0000"},
		{name: "VEX shift by a register", code: "c4e2f9f705f70f0000"},
		{name: "VEX with an immediate", code: "c4e3fd0105f60f00001b"},
		{name: "EVEX", code: "62f17c481005f60f0000"},
		{name: "EVEX, upper dead register", code: "62f17c481105f60f0000", options: dead(amd64.R15)},
		{name: "EVEX with mask and broadcast", code: "62f17d59fe25f60f0000"},
		{name: "EVEX with an immediate", code: "62f37d4825c9aa 62f36d482505f50f000055", region: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			insts := decodeRun(t, c.code, 0x401000)
			for engine, open := range engines(t) {
				for _, reach := range []relocate.Reach{relocate.Near, relocate.Far} {
					r := run(t, insts, c.region, verify.Options{
						Target: target{options: c.options}, Engines: only(open), Reach: reach, States: 100, Seed: 11,
					})
					report(t, amd64.ISA{}, r)
					if r.Executed == 0 {
						checkSkipped(t, engine, r.Skipped[0].Class)
					}
				}
			}
		})
	}
}

// checkSkipped allows what the engine or this CPU does not have.
func checkSkipped(t *testing.T, engine, reason string) {
	t.Helper()
	if engine == "cpu" && reason != "unknown to cpu" && reason != "branches to themselves" {
		t.Errorf("not executed: %s", reason)
	}
	t.Logf("%s: %s", engine, reason)
}

// A relocator that is wrong in one way is caught.
func TestBrokenRelocatorsAreCaught(t *testing.T) {
	add := func(delta int, find ...byte) func(*relocate.Plan, []byte, uint64) []byte {
		return func(_ *relocate.Plan, code []byte, _ uint64) []byte {
			if at := bytes.Index(code, find); at >= 0 {
				code[at+len(find)] += byte(delta)
			}
			return code
		}
	}
	replace := func(old, new string) func(*relocate.Plan, []byte, uint64) []byte {
		from, _ := hex.DecodeString(old)
		to, _ := hex.DecodeString(new)
		return func(_ *relocate.Plan, code []byte, _ uint64) []byte {
			return bytes.Replace(code, from, to, 1)
		}
	}
	for _, c := range []struct {
		name, code string
		region     bool
		reach      relocate.Reach
		mutate     func(p *relocate.Plan, code []byte, to uint64) []byte
	}{
		{"displacement off by one", "488b05f90f0000", false, relocate.Near, add(1, 0x48, 0x8b, 0x05)},
		{"displacement not re-based", "488b05f90f0000", false, relocate.Near, func(p *relocate.Plan, code []byte, _ uint64) []byte {
			return append(p.Steps[0].Inst.Raw[:7:7], code[7:]...)
		}},
		{"displacement before an immediate off by its length", "48c705f50f000078563412", false, relocate.Near, add(4, 0x48, 0xc7, 0x05)},
		{"address of the far operand off by eight", "488905f90f0000", false, relocate.Far, add(8, 0x48, 0xbe)},
		{"literal frozen", "488b05f90f0000", false, relocate.Far, replace("488b8000000000", "0f1f8000000000")},
		{"call kept as it is", "e8fb0f0000", false, relocate.Near, func(p *relocate.Plan, code []byte, to uint64) []byte {
			disp := uint32(p.Steps[0].Inst.Target - (to + 5))
			return append(binary.LittleEndian.AppendUint32([]byte{0xe8}, disp), code[len(code)-5:]...)
		}},
		{"half of the return address", "e8fb0f0000", false, relocate.Near, replace("c7442404002a0000", "0f1f840000000000")},
		{"return address off by one", "ffd0", false, relocate.Near, add(1, 0x68)},
		{"call through the stack, not adjusted", "ff542408", false, relocate.Near, add(-8, 0xff, 0xa4, 0x24)},
		{"call through what it pushes, pushed too early", "ff5424f8", false, relocate.Near, func(p *relocate.Plan, _ []byte, _ uint64) []byte {
			next := p.Steps[0].Inst.Next()
			code := binary.LittleEndian.AppendUint32([]byte{0x68}, uint32(next))
			code = binary.LittleEndian.AppendUint32(append(code, 0xc7, 0x44, 0x24, 4), uint32(next>>32))
			return append(code, 0xff, 0x24, 0x24)
		}},
		{"flags clobbered", "488905f90f0000", false, relocate.Far, replace("488d642480", "4883c48090")},
		{"flags clobbered on the way back", "488905f90f0000", false, relocate.Far, replace("488da42480000000", "4881c48000000090")},
		{"red zone clobbered", "488905f90f0000", false, relocate.Far, func(_ *relocate.Plan, code []byte, _ uint64) []byte {
			code = bytes.Replace(code, []byte{0x48, 0x8d, 0x64, 0x24, 0x80}, []byte{0x0f, 0x1f, 0x44, 0, 0}, 1)
			return bytes.Replace(code, []byte{0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0}, []byte{0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, 1)
		}},
		{"stack pointer left moved", "488905f90f0000", false, relocate.Far, add(8, 0x48, 0x8d, 0xa4, 0x24)},
		{"scratch register forgotten", "488905f90f0000", false, relocate.Far, replace("5e488da424", "58488da424")},
		{"scratch register used by the instruction", "c4e2c8f235f70f0000", false, relocate.Far, func(_ *relocate.Plan, code []byte, _ uint64) []byte {
			code = bytes.Replace(code, []byte{0x57, 0x48, 0xbf}, []byte{0x56, 0x48, 0xbe}, 1)
			code = bytes.Replace(code, []byte{0xb7, 0, 0, 0, 0, 0x5f}, []byte{0xb6, 0, 0, 0, 0, 0x5e}, 1)
			return code
		}},
		{"dead register clobbered and not said", "488905f90f0000", false, relocate.Far, func(p *relocate.Plan, _ []byte, _ uint64) []byte {
			code := binary.LittleEndian.AppendUint64([]byte{0x49, 0xbb}, p.Steps[0].Inst.Target)
			return append(code, 0x49, 0x89, 0x03)
		}},
		{"upper half of a vector lost", "c5fe6f05f80f0000", false, relocate.Near, replace("c5fe6f05", "c5fa6f05")},
		{"another source of a vector instruction", "c5edfe05f80f0000", false, relocate.Near, replace("c5edfe05", "c5e5fe05")},
		{"another mask", "62f17d49fe05f60f0000", false, relocate.Near, replace("62f17d49", "62f17d4a")},
		{"condition turned around", "7510", false, relocate.Near, replace("0f85", "0f84")},
		{"branch one byte short", "eb10", false, relocate.Near, add(-1, 0xe9)},
		{"count of 32 bits taken for 64", "67e310", false, relocate.Near, replace("67e3", "90e3")},
		{"loop without its condition", "e110", false, relocate.Near, replace("e102", "e202")},
		{"way back one byte short", "4801c8", false, relocate.Near, add(-1, 0xe9)},
		{"rcx of the moved system call", "0f05", false, relocate.Near, replace("0f0548b9", "0f0549b8")},
		{"rsp read after it was lowered", "483925f90f0000", false, relocate.Far, add(-8, 0x48, 0x8d, 0xbc, 0x24)},
		{"16 bits pushed as 64", "66ff35f90f0000", false, relocate.Far, replace("6689b424", "4889b424")},
		{"branch back to the original", "83e107 83c901 ffc0 ffc9 75fa 90", true, relocate.Near, func(p *relocate.Plan, code []byte, to uint64) []byte {
			at := bytes.Index(code, []byte{0x0f, 0x85}) + 2
			binary.LittleEndian.PutUint32(code[at:], uint32(p.Steps[2].Inst.Addr-(to+uint64(at)+4)))
			return code
		}},
		{"old displacement over what expanded", "85c0 7405 e8fb0f0000 ffc1", true, relocate.Near, func(_ *relocate.Plan, code []byte, _ uint64) []byte {
			at := bytes.Index(code, []byte{0x0f, 0x84}) + 2
			binary.LittleEndian.PutUint32(code[at:], 5)
			return code
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			insts := decodeRun(t, c.code, 0x401000)
			opt := verify.Options{Engines: both(t), Reach: c.reach, States: 200, Seed: 5}
			opt.Target = target{}
			right := run(t, insts, c.region, opt)
			report(t, amd64.ISA{}, right)
			if right.Executed == 0 {
				skip.Missing(t, "an engine that runs the instructions", right.Skipped)
			}
			opt.Target = target{mutate: c.mutate}
			if r := run(t, insts, c.region, opt); r.Differences != 1 || len(r.Examples) != 1 || len(r.Examples[0].What) == 0 {
				t.Errorf("%d differences", r.Differences)
			}
		})
	}
}

// bashText is a piece of the text of Debian 12's bash, and its address.
const bashAddr = 0x5df20

func bashText(t testing.TB) []byte { return testText(t, "bash.amd64.gz") }

func TestRegions(t *testing.T) {
	insts := decode.Sweep(amd64.ISA{}, nil, bashText(t), bashAddr)
	for name, reach := range reaches {
		t.Run(name, func(t *testing.T) {
			r, err := verify.Regions(context.Background(), randomRuns(insts, 1500, 1, 3), verify.Options{
				Target: amd64.ISA{}, Engines: both(t), Reach: reach, Workers: 2,
			})
			if err != nil {
				t.Fatal(err)
			}
			report(t, amd64.ISA{}, r)
			if r.Executed < r.Distinct*9/10 {
				t.Errorf("only %d of %d executed", r.Executed, r.Distinct)
			}
			t.Log(summary(r))
		})
	}
}

// referenceInstructions returns the instructions of a list, at addresses that
// align their RIP-relative operands.
func referenceInstructions(t testing.TB, path string) []decode.Inst {
	t.Helper()
	rows, err := refdata.Rows(path)
	if err != nil {
		t.Fatal(err)
	}
	var insts []decode.Inst
	for i, row := range rows {
		raw, err := hex.DecodeString(row[0])
		if err != nil {
			t.Fatal(err)
		}
		var inst decode.Inst
		addr := 0x401000 + 64*uint64(i)
		if (amd64.ISA{}).Decode(&inst, raw, addr) != nil {
			continue
		}
		if inst.PCRel.Kind == decode.PCRelMemory {
			addr -= inst.Target & 63
		}
		if err := (amd64.ISA{}).Decode(&inst, raw, addr); err != nil {
			t.Fatal(err)
		}
		insts = append(insts, inst)
	}
	return insts
}

func TestReferenceInstructions(t *testing.T) {
	for _, list := range []string{"text-legacy.tsv.gz", "text-vector.tsv.gz", "relocate-operands.tsv.gz"} {
		t.Run(list, func(t *testing.T) { verifyList(t, sampleOf("amd64", list), 6) })
	}
	t.Run("all real ones", func(t *testing.T) {
		verifyList(t, refdata.Full(t, "decode", "amd64-real.tsv.gz"), 2)
	})
}

func verifyList(t *testing.T, path string, states int) {
	insts := referenceInstructions(t, path)
	for name, reach := range reaches {
		r, err := verify.Instructions(context.Background(), insts, verify.Options{
			Target: amd64.ISA{}, Engines: both(t), Reach: reach, States: states, Workers: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		report(t, amd64.ISA{}, r)
		t.Logf("%s: %s", name, summary(r))
	}
}

// randomInstruction draws the bytes of an instruction that depends on its
// address, or of none: with a RIP-relative operand after any encoding, or a
// branch of any kind.
func randomInstruction(r *rand.Rand) []byte {
	b := func(n int) byte { return byte(r.IntN(n)) }
	prefixes := []byte{0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x2e, 0x3e, 0x36, 0x26, 0x64, 0x65}
	var code []byte
	for r.IntN(3) == 0 {
		code = append(code, prefixes[r.IntN(len(prefixes))])
	}
	if r.IntN(2) == 0 {
		code = append(code, 0x40|b(16))
	}
	relative := b(8)<<3 | 5
	switch r.IntN(10) {
	case 0, 1:
		code = append(code, b(256), relative)
	case 2, 3:
		code = append(code, 0x0f, b(256), relative)
	case 4:
		code = append(code, 0x0f, 0x38|b(2)<<1, b(256), relative)
	case 5:
		code = append(code, 0xc5, b(256), b(256), relative)
	case 6:
		code = append(code, 0xc4, b(8)<<5|1+b(3), b(256), b(256), relative)
	case 7:
		code = append(code, 0x62, b(32)<<3|[]byte{1, 2, 3, 5, 6}[r.IntN(5)], b(256)|4, b(256), b(256), relative)
	case 8:
		code = append(code, 0xff, b(256), b(256))
	default:
		branches := []byte{0x70 | b(16), 0xe0 | b(4), 0xe8, 0xe9, 0xeb, 0xff}
		code = append(code, branches[r.IntN(len(branches))], 0xd0|b(16)) // call or jmp through a register
	}
	return append(code, b(64), b(64), 1+b(4), 0, b(256), b(256), b(256), b(256))
}

// randomInstructions draws n of those, and aligns their operands.
func randomInstructions(n int, seed uint64) []decode.Inst {
	r := rand.New(rand.NewPCG(seed, 0))
	var insts []decode.Inst
	for len(insts) < n {
		code := randomInstruction(r)
		addr := 0x401000 + 64*uint64(len(insts))
		var inst decode.Inst
		if (amd64.ISA{}).Decode(&inst, code, addr) != nil {
			continue
		}
		if inst.PCRel.Kind == decode.PCRelMemory {
			addr -= inst.Target & 63
		}
		if (amd64.ISA{}).Decode(&inst, code, addr) == nil && (inst.PCRel.Kind != decode.PCRelNone || inst.Flow != decode.FlowNone) {
			insts = append(insts, inst)
		}
	}
	return insts
}

func TestRandomInstructions(t *testing.T) {
	insts := randomInstructions(1500, 1)
	for name, options := range map[string]func(*relocate.Options){
		"stack": nil, "no red zone": noRedZone,
		"low register": dead(amd64.RDI), "high register": dead(amd64.R11), "any register": dead(amd64.R8, amd64.R15, amd64.RSI, amd64.RBP),
	} {
		for _, reach := range []relocate.Reach{relocate.Near, relocate.Far} {
			r, err := verify.Instructions(context.Background(), insts, verify.Options{
				Target: target{options: options}, Engines: both(t), Reach: reach, States: 6, Workers: 2,
			})
			if err != nil {
				t.Fatal(err)
			}
			report(t, amd64.ISA{}, r)
			t.Logf("%s, reach %d: %s", name, reach, summary(r))
		}
	}
}
