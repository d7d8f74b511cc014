package refdata

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"xol/classify"
)

const kernelLine = `{"sym":"f","addr":"0xffffffff81000010","size":3,"text":"90c3cc","bug":[2],"jump_label":[0],` +
	`"rows":[{"off":0,"errno":22,"blacklisted":true},{"off":1,"errno":0,"exec":"emulate","handler":"ret","boost":false}]}`

func write(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKernelVerdicts(t *testing.T) {
	funcs, err := KernelVerdicts(write(t, kernelLine+"\n"))
	if err != nil || len(funcs) != 1 {
		t.Fatalf("got %d functions, error %v", len(funcs), err)
	}
	f := funcs[0]
	if f.Addr != 0xffffffff81000010 || len(f.Text) != 3 || len(f.Rows) != 2 {
		t.Errorf("got %+v", f)
	}
	if r := f.Rows[1]; r.Handler != "ret" || r.Boost == nil || *r.Boost || f.Rows[0].Boost != nil {
		t.Errorf("got rows %+v", f.Rows)
	}
}

func TestUprobeVerdicts(t *testing.T) {
	rows, err := UprobeVerdicts(write(t, "# bytes\n90\t-\t0\temulate\tbranch_xol_ops\topc1=90\t90\t1\t-\n00000004\t24\t22\t-\t-\t-\t-\t-\t0:xol\n"))
	if err != nil || len(rows) != 2 {
		t.Fatalf("got %d rows, error %v", len(rows), err)
	}
	if r := rows[0]; r.Line != 2 || r.Len != 1 || r.Handler != "branch_xol_ops" || r.Errno != 0 {
		t.Errorf("got %+v", r)
	}
	if r := rows[1]; r.Page != 24 || r.Errno != 22 || r.Exec != "" || r.ISA30 != "0:xol" {
		t.Errorf("got %+v", r)
	}
}

func TestBadLinesAreNamed(t *testing.T) {
	for name, text := range map[string]string{
		"short row": "90\t-\n", "not hex": "9x\t-\t0\t-\t-\t-\t-\t-\t-\n", "not a number": "90\t-\tx\t-\t-\t-\t-\t-\t-\n",
	} {
		if _, err := UprobeVerdicts(write(t, text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := KernelVerdicts(write(t, "{")); err == nil {
		t.Error("JSON: no error")
	}
}

func TestAgreesOnJump(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name   string
		row    KernelRow
		region int
		want   bool
	}{
		{"optimized", KernelRow{Optimize: &yes, Optimized: &yes, Region: 5}, 5, true},
		{"other bytes", KernelRow{Optimize: &yes, Region: 5}, 6, false},
		{"bytes not given", KernelRow{Optimize: &yes}, 4, true},
		{"not optimized", KernelRow{Optimize: &no}, 0, true},
		{"prepared, but not done", KernelRow{Optimize: &yes, Optimized: &no, Region: 5}, 5, false},
		{"we say yes, the kernel no", KernelRow{Optimize: &no}, 5, false},
		{"we say no, the kernel yes", KernelRow{Optimize: &yes, Region: 5}, 0, false},
		{"no probe", KernelRow{Errno: 22}, 0, true},
		{"no probe, but a jump", KernelRow{Errno: 22}, 5, false},
	} {
		if got := c.row.AgreesOnJump(c.region); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestDiffers(t *testing.T) {
	const base = 0x1000
	yes, no, four := true, false, uint64(4)
	refused := classify.Verdict{Rule: &classify.Rule{Errno: classify.EILSEQ}}
	slot := classify.Verdict{Exec: classify.ExecSlot}
	boosted := classify.Verdict{Exec: classify.ExecSlot, Boost: true}
	emulated := classify.Verdict{Exec: classify.ExecEmulate, Emulator: "ret", Boost: true}
	moved := classify.Verdict{Exec: classify.ExecSlot, MovedTo: base + 4}
	for _, c := range []struct {
		name string
		row  KernelRow
		v    classify.Verdict
		hits bool
		want string
	}{
		{"refused", KernelRow{Errno: classify.EILSEQ}, refused, true, ""},
		{"refused by another rule", KernelRow{Errno: classify.EINVAL}, refused, true, "errno"},
		{"refused, but by us alone", KernelRow{Exec: "slot"}, refused, true, "errno"},
		{"refused, but by the kernel alone", KernelRow{Errno: classify.EILSEQ}, slot, true, "errno"},
		{"slot", KernelRow{Exec: "slot", Boost: &no}, slot, true, ""},
		{"boosted by us alone", KernelRow{Exec: "slot", Boost: &no}, boosted, true, "boost"},
		{"boosted where the list says nothing", KernelRow{Exec: "slot"}, boosted, true, "boost"},
		{"boosted by the kernel alone", KernelRow{Exec: "slot", Boost: &yes}, slot, true, "boost"},
		{"emulated", KernelRow{Exec: "emulate", Handler: "ret", Boost: &yes}, emulated, true, ""},
		{"emulated otherwise", KernelRow{Exec: "emulate", Handler: "jcc", Boost: &yes}, emulated, true, "handler"},
		{"emulated by us alone", KernelRow{Exec: "slot"}, emulated, true, "exec"},
		{"without hits, emulated", KernelRow{Exec: "slot"}, emulated, false, ""},
		{"without hits, an ftrace site", KernelRow{Exec: "ftrace"}, emulated, false, "exec"},
		{"moved", KernelRow{Exec: "slot", MovedTo: &four}, moved, true, ""},
		{"moved by us alone", KernelRow{Exec: "slot"}, moved, true, "moved to"},
		{"moved by the kernel alone", KernelRow{Exec: "slot", MovedTo: &four}, slot, true, "moved to"},
	} {
		if got := c.row.Differs(&c.v, base, c.hits); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestRead(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	plain := write(t, "text")
	for path, file := range map[string]string{plain: "text", plain + ".gz": packed.String()} {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path); string(got) != "text" || err != nil {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
	cut := write(t, packed.String()[:packed.Len()-1])
	if err := os.Rename(cut, cut+".gz"); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(cut + ".gz"); err == nil {
		t.Error("cut off: no error")
	}
}
