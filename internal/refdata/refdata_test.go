package refdata

import (
	"os"
	"path/filepath"
	"testing"
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
