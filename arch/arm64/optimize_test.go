package arm64

import (
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/kernel"
	"xol/optcheck"
	"xol/place"
)

// Linux has no jumps on arm64, for kprobes and uprobes alike. The verdict on an
// address that takes no probe is empty.
func TestLinuxOptimizers(t *testing.T) {
	code := []byte{0x1f, 0x20, 0x03, 0xd5, 0x01, 0x00, 0x00, 0xd4} // nop, svc
	f := &classify.Func{Addr: 0x1000, Code: code, Insts: decode.Sweep(ISA{}, nil, code, 0x1000)}
	f.Marks = place.Marks{{Addr: 0x1004, Len: 4, Kind: place.Blacklist}}
	for profile, want := range map[string]string{
		classify.Linux612: "arm64/linux-no-optprobes", classify.Uprobe612: "linux/uprobe-no-jump",
	} {
		p, _ := ISA{}.Profile(profile, kernel.Debian("arm64", classify.Linux(6, 12)))
		o, ok := ISA{}.Optimizer(profile, kernel.Debian("arm64", classify.Linux(6, 12)))
		if !ok || o.WholeProgram() {
			t.Fatalf("%s: no optimizer, or one that wants the whole program", profile)
		}
		probes := p.Func(nil, f)
		verdicts := o.Func(nil, &optcheck.Function{Func: f, Verdicts: probes}, nil)
		if v := verdicts[0]; v.Rule == nil || v.Rule.ID != want || v.OK() {
			t.Errorf("%s: got %+v", profile, v)
		}
		if v := verdicts[1]; probes[1].OK() || v != (optcheck.Verdict{}) {
			t.Errorf("%s: got %+v on a probe with %+v", profile, v, probes[1])
		}
	}
}
