package optcheck_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"xol/arch"
	"xol/classify"
	"xol/decode"
	"xol/optcheck"
	"xol/place"
)

// landingReasons are the rules for who lands, by the ends of their identifiers.
var landingReasons = map[place.LandingKind]string{
	place.LandBranch: "region-jump-target", place.LandSwitch: "region-switch-target",
	place.LandReturn: "region-return-address", place.LandEntry: "region-entry-point",
	place.LandSymbol: "region-symbol", place.LandLocalEntry: "region-local-entry",
	place.LandPointer: "region-code-pointer", place.LandTaken: "region-address-taken",
	place.LandExFixup: "region-exception-fixup", place.LandUnwind: "region-unwind-landing-pad",
	place.LandJumpLabel: "region-jump-label-target", place.LandIndirect: "region-landing-pad",
}

// reference judges as the rules of the profile isa say, in the plainest way: it
// looks at all of a function for each of its instructions.
type reference struct {
	isa arch.ISA
	f   *optcheck.Function
}

// landings returns who lands at addr: nothing where no instruction can start.
func (r *reference) landings(addr uint64) (ls place.Landings) {
	if addr%uint64(r.isa.Align()) != 0 {
		return nil
	}
	for _, l := range r.f.Landings {
		if l.Addr == addr {
			ls = append(ls, l)
		}
	}
	for i := range r.f.Insts {
		inst := &r.f.Insts[i]
		if target, ok := inst.BranchTarget(); ok && target == addr {
			ls = append(ls, place.Landing{Addr: addr, From: inst.Addr, Kind: place.LandBranch})
		}
		comesBack := inst.Has(decode.Link) || inst.Flow == decode.FlowSyscall ||
			inst.Flow == decode.FlowTrap || inst.Flow == decode.FlowHalt
		if comesBack && inst.Next() == addr {
			ls = append(ls, place.Landing{Addr: addr, From: inst.Addr, Kind: place.LandReturn})
		}
		if inst.Addr == addr && i > 0 && inst.Has(decode.LandingPad) {
			ls = append(ls, place.Landing{Addr: addr, From: addr, Kind: place.LandIndirect})
		}
	}
	return ls
}

// stays reports whether a mark keeps instruction i in place.
func (r *reference) stays(i int) bool {
	kinds := place.Data | place.Ftrace | place.JumpLabel | place.Alternative | place.Bug | place.ExTable
	switch r.isa.Name() {
	case "amd64":
		kinds |= place.StaticCall | place.CFITrap
	case "ppc64", "ppc64le":
		kinds |= place.StaticCall
	}
	inst := &r.f.Insts[i]
	return slices.ContainsFunc(r.f.Marks, func(m place.Mark) bool {
		return m.Kind&kinds != 0 && m.Addr < inst.Next() && inst.Addr < m.End()
	})
}

// verdict judges instruction i: the zero verdict where the jump is refused.
func (r *reference) verdict(i int) (v optcheck.Verdict) {
	need := r.isa.JumpLen()
	insts := r.f.Insts
	size, moved, members, dead := 0, 0, 0, false
	for j := i; size < need; j++ {
		if j == len(insts) {
			if !dead || uint64(need-size) > r.f.Slack {
				return v
			}
			size = need
			break
		}
		if r.stays(j) || !dead && r.isa.Immovable(&insts[j]) != nil {
			return v
		}
		size += int(insts[j].Len)
		members++
		if !dead {
			moved = size
			dead = insts[j].Flow != decode.FlowNone && !insts[j].Has(decode.Conditional)
		}
	}
	start := insts[i].Addr
	for off := 1; off < size; off++ {
		if len(r.landings(start+uint64(off))) > 0 || slices.Contains(r.f.Armed, start+uint64(off)) {
			return v
		}
	}
	if insts[i].Has(decode.LandingPad) || members > 1 && (len(r.f.Unresolved) > 0 || r.f.Unread) || r.isa.Align() == 1 && r.hasGap() {
		return v
	}
	return optcheck.Verdict{Region: uint8(size), Moved: uint8(moved)}
}

// hasGap reports whether f has bytes that are no instruction, and not data.
func (r *reference) hasGap() bool {
	for i := range r.f.Insts {
		if r.f.Insts[i].Has(decode.Invalid) && !r.stays(i) {
			return true
		}
	}
	return false
}

// check compares the verdicts on a function with the reference, and their
// culprits with what is there.
func (r *reference) check(t *testing.T, verdicts []optcheck.Verdict) {
	t.Helper()
	if len(verdicts) != len(r.f.Insts) {
		t.Fatalf("%d verdicts on %d instructions", len(verdicts), len(r.f.Insts))
	}
	for i := range verdicts {
		v := &verdicts[i]
		if err := r.compare(i, v); err != nil {
			t.Errorf("%s, %x at %#x, instruction %d at %#x: %v", r.isa.Name(), r.f.Code, r.f.Addr, i, r.f.Insts[i].Addr, err)
		}
	}
}

func (r *reference) compare(i int, v *optcheck.Verdict) error {
	if !r.f.Verdicts[i].OK() {
		if *v != (optcheck.Verdict{}) {
			return fmt.Errorf("%+v where no probe may be", v)
		}
		return nil
	}
	want := r.verdict(i)
	switch {
	case v.Region != want.Region || v.Moved != want.Moved:
		return fmt.Errorf("region of %d, %d moved; want %d, %d (rule %+v)", v.Region, v.Moved, want.Region, want.Moved, v.Rule)
	case v.OK() != (v.Rule == nil) || v.OK() && v.Culprit != 0:
		return fmt.Errorf("verdict %+v", v)
	case v.OK():
		return nil
	case v.Rule.ID == "" || v.Rule.Reason == "":
		return fmt.Errorf("a rule that says nothing, culprit %#x", v.Culprit)
	}
	return r.blames(i, v)
}

// blames checks that a rule about landings names one that is there: at the
// lowest address in the region where any is.
func (r *reference) blames(i int, v *optcheck.Verdict) error {
	start := r.f.Insts[i].Addr
	for kind, reason := range landingReasons {
		if !strings.HasSuffix(v.Rule.ID, "/"+reason) {
			continue
		}
		for addr := start + 1; addr < start+32; addr++ {
			ls := r.landings(addr)
			if len(ls) == 0 {
				continue
			}
			if !slices.ContainsFunc(ls, func(l place.Landing) bool {
				return l.Kind == kind && (v.Culprit == l.From || l.From == 0 && v.Culprit == addr)
			}) {
				return fmt.Errorf("%s by %#x, but at %#x land %+v", v.Rule.ID, v.Culprit, addr, ls)
			}
			return nil
		}
		return fmt.Errorf("%s by %#x, but nothing lands", v.Rule.ID, v.Culprit)
	}
	return nil
}

// samples are instructions of each ISA that make functions with much to say.
var samples = map[string][]string{
	"amd64": {
		"90", "53", "5b", "c3", "31c0", "4889fb", "b807000000", "48c7c007000000", "0f1f440000", // nothing special
		"eb00", "eb02", "ebfc", "7402", "74fb", "e2fe", "e900000000", "0f8405000000", // branches
		"e800000000", "ffd0", "ffe0", "0f05", "cd80", "f4", "488d0503000000", // calls, jumps, addresses
		"f30f1efa", "cc", "0f0b", "ff18", "66e900000000", "06", "ebff",
	},
	"arm64": {
		"1f2003d5", "e0008052", "c0035fd6", "20000014", "ffffff17", "400000b4", "00000094", "00003fd6",
		"00001fd6", "010000d4", "5f2403d5", "3f2303d5", "017c5f88", "017c0288", "20002000", "ffffffff", "20001010",
	},
	"ppc64": {
		"60000000", "38600007", "4e800020", "48000008", "4bfffffc", "41820008", "48000001", "4e800421",
		"4e800420", "44000002", "0600000038600007", "7fe00008", "7c801828", "7c80192d", "00000000", "48000004",
	},
}

// sampleText returns a sample's bytes on an ISA.
func sampleText(t testing.TB, isa, digits string) []byte {
	code := bytesOf(t, digits)
	if isa == "ppc64le" {
		for word := range slices.Chunk(code, 4) {
			slices.Reverse(word)
		}
	}
	return code
}

func samplesOf(t testing.TB, isa string) (texts [][]byte) {
	for _, digits := range samples[strings.TrimSuffix(isa, "le")] {
		texts = append(texts, sampleText(t, isa, digits))
	}
	return texts
}

// evidence returns random facts about code, which starts at addr.
func evidence(r *rand.Rand, isa arch.ISA, code []byte, addr uint64) *optcheck.Function {
	at := func() uint64 { return addr + uint64(r.IntN(len(code)+24)) - 4 }
	f := &classify.Func{Name: "f", Addr: addr, Code: code, Insts: decode.Sweep(isa, nil, code, addr)}
	for range r.IntN(3) {
		f.Marks = append(f.Marks, place.Mark{Addr: at(), Len: 1 + uint64(r.IntN(8)), Kind: place.Kind(1) << r.IntN(16)})
	}
	f.Marks.Sort()
	of := judged(isa, f)
	of.Slack = uint64(r.IntN(12))
	for range r.IntN(4) {
		l := place.Landing{Addr: at(), Kind: landingKinds(isa)[r.IntN(len(landingKinds(isa)))]}
		if r.IntN(3) > 0 {
			l.From = 0x500000 + uint64(r.IntN(100))
		}
		of.Landings = append(of.Landings, l)
	}
	of.Landings.Sort()
	for range r.IntN(3) {
		of.Armed = append(of.Armed, at())
	}
	slices.Sort(of.Armed)
	of.Unread = r.IntN(6) == 0
	if r.IntN(6) == 0 {
		of.Unresolved = []optcheck.Unresolved{{Addr: addr, What: "why"}}
	}
	return of
}

// landingKinds returns the kinds of landings that a file can tell of.
func landingKinds(isa arch.ISA) (kinds []place.LandingKind) {
	for k := range place.LandingKind(place.LandingKinds) {
		switch {
		case k == place.LandReturn || k == place.LandIndirect: // instructions tell
		case k == place.LandLocalEntry && !strings.HasPrefix(isa.Name(), "ppc64"):
		default:
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func optimizer(isa arch.ISA) optcheck.Optimizer { return optcheck.New(isa) }

func TestVerdictsAgreeWithTheReference(t *testing.T) {
	for _, name := range arch.Names() {
		t.Run(name, func(t *testing.T) {
			isa, texts := isaNamed(t, name), samplesOf(t, name)
			r := rand.New(rand.NewPCG(4, 5))
			var s optcheck.Scratch
			var verdicts []optcheck.Verdict
			counts := map[bool]int{}
			for range 20000 {
				var code []byte
				for range 1 + r.IntN(12) {
					code = append(code, texts[r.IntN(len(texts))]...)
				}
				f := evidence(r, isa, code, 0x401000)
				verdicts = optimizer(isa).Func(verdicts[:0], f, &s)
				(&reference{isa, f}).check(t, verdicts)
				for i := range verdicts {
					counts[verdicts[i].OK()]++
				}
				if t.Failed() {
					return
				}
			}
			if counts[true] < 1000 || counts[false] < 1000 {
				t.Errorf("%d jumps, %d not: too few of one", counts[true], counts[false])
			}
		})
	}
}

// FuzzFunc asks for verdicts on any bytes with any facts.
func FuzzFunc(f *testing.F) {
	for i, name := range arch.Names() {
		for seed, text := range samplesOf(f, name) {
			f.Add(uint8(i), uint64(seed), uint64(0x401000), append(text, text...))
		}
	}
	f.Add(uint8(0), uint64(1), ^uint64(0)-6, []byte{0x90, 0x53, 0x31, 0xc0, 0xc3})
	names := arch.Names()
	f.Fuzz(func(t *testing.T, isaIndex uint8, seed, addr uint64, code []byte) {
		if len(code) > 256 {
			return
		}
		isa := isaNamed(t, names[int(isaIndex)%len(names)])
		addr &^= uint64(isa.Align() - 1)
		of := evidence(rand.New(rand.NewPCG(seed, 0)), isa, code, addr)
		var s optcheck.Scratch
		verdicts := optimizer(isa).Func(nil, of, &s)
		optcheck.Blocks(of, &s)
		optcheck.Landings(nil, of, &s)
		const margin = 64
		if addr >= margin && addr < ^uint64(0)-uint64(len(code))-margin {
			(&reference{isa, of}).check(t, verdicts)
		}
	})
}
