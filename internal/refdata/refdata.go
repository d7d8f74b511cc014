// Package refdata reads the reference lists that tests judge by: recorded
// verdicts of running kernels and lists of instructions from other decoders.
package refdata

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/internal/skip"
	"xol/place"
)

// Full returns the path of a file of the complete lists, which are beside the
// project in the directory shared, and skips the test where it is not there.
func Full(t testing.TB, elem ...string) string {
	t.Helper()
	path, err := Beside(elem...)
	if err != nil {
		skip.Missing(t, "../shared", filepath.Join(elem...))
	}
	return path
}

// Beside returns the path of a file in the directory shared beside the project,
// or why it is not there. The test has to run inside the module.
func Beside(elem ...string) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(root) == root {
			return "", errors.New("the test does not run inside the module")
		}
		root = filepath.Dir(root)
	}
	path := filepath.Join(append([]string{root, "..", "shared"}, elem...)...)
	_, err = os.Stat(path)
	return path, err
}

// Read returns the contents of a file, unpacked where its name ends in .gz.
func Read(path string) ([]byte, error) {
	r, err := open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// open opens a file and undoes gzip where its name ends in .gz.
func open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return f, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}

// lines calls visit for every line of a file, with its number.
func lines(path string, visit func(n int, line []byte) error) error {
	r, err := open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<24)
	for n := 1; scan.Scan(); n++ {
		if err := visit(n, scan.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return scan.Err()
}

// Rows returns the tab-separated rows of a file, without lines that start with
// a '#'.
func Rows(path string) ([][]string, error) {
	var rows [][]string
	err := lines(path, func(_ int, line []byte) error {
		if len(line) > 0 && line[0] != '#' {
			rows = append(rows, strings.Split(string(line), "\t"))
		}
		return nil
	})
	return rows, err
}

// Bytes is a byte string, in hexadecimal digits in JSON.
type Bytes []byte

// UnmarshalText reads hexadecimal digits.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

// Address is an address, "0x…" in JSON.
type Address uint64

// UnmarshalText reads a number in Go's notation.
func (a *Address) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 0, 64)
	*a = Address(v)
	return err
}

// KernelFunc is what a running kernel answered about the addresses of one
// function.
type KernelFunc struct {
	Sym        string
	Addr       Address
	Size       uint64
	Text       Bytes
	ExTable    []uint64 // offsets, here and below
	JumpLabel  []uint64 `json:"jump_label"`
	StaticCall []uint64 `json:"static_call"`
	Bug        []uint64
	Ftrace     []uint64
	Rows       []KernelRow
}

// KernelRow is the answer for one offset. MovedTo, Boost, Boosted, Optimize and
// Optimized are nil where the list says nothing.
type KernelRow struct {
	Off         uint64
	Errno       classify.Errno
	Blacklisted bool
	EntryText   bool    `json:"entry_text"`
	MovedTo     *uint64 `json:"moved_to"`
	Exec        string
	Handler     string
	Boost       *bool
	Boosted     *bool // the copy really ended in a jump back
	Optimize    *bool
	Region      int
	Optimized   *bool
	Slot        Bytes
	SlotAddr    Address `json:"slot_addr"`
	DetourCopy  Bytes   `json:"detour_copy"`
	DetourAddr  Address `json:"detour_addr"`
}

// AgreesOnJump reports whether the kernel replaced the breakpoint by a jump over
// region bytes of whole instructions, or did not where region is 0. Not every
// list gives the bytes.
func (r *KernelRow) AgreesOnJump(region int) bool {
	optimized := region != 0
	return (r.Optimize != nil && *r.Optimize) == optimized &&
		(r.Optimized == nil || *r.Optimized == optimized) &&
		(r.Region == 0 || r.Region == region)
}

// Differs names the first thing in which v is not what the kernel answered
// about an address of the function at base; empty where there is none. hits says
// whether the list was recorded with the probes hit: otherwise it says slot for
// all that is executed, and nothing of emulators and boosting.
func (r *KernelRow) Differs(v *classify.Verdict, base uint64, hits bool) string {
	var errno classify.Errno
	if v.Rule != nil {
		errno = v.Rule.Errno
	}
	exec, moved := v.Exec, uint64(0)
	if exec == classify.ExecEmulate && !hits {
		exec = classify.ExecSlot
	}
	if r.MovedTo != nil {
		moved = base + *r.MovedTo
	}
	wantExec, handler := r.Exec, r.Handler
	if r.Boosted != nil && *r.Boosted { // then the handler that there may be is not asked
		wantExec, handler = classify.ExecSlot.String(), ""
	}
	switch {
	case errno != r.Errno:
		return "errno"
	case exec.String() != wantExec:
		return "exec"
	case r.Boosted != nil && v.Boosted != *r.Boosted:
		return "boosted"
	case hits && v.Emulator != handler:
		return "handler"
	case hits && v.Boost != (r.Boost != nil && *r.Boost):
		return "boost"
	case v.OK() && v.MovedTo != moved:
		return "moved to"
	}
	return ""
}

// KnowsJump reports whether the list tells if the probe could become a jump.
func (r *KernelRow) KnowsJump() bool {
	return r.Errno != 0 || r.Optimize != nil || r.Exec == classify.ExecFtrace.String()
}

// KernelVerdicts reads a list of kernel verdicts, one function a line.
func KernelVerdicts(path string) ([]KernelFunc, error) {
	var funcs []KernelFunc
	err := lines(path, func(_ int, line []byte) error {
		var f KernelFunc
		if err := json.Unmarshal(line, &f); err != nil {
			return err
		}
		funcs = append(funcs, f)
		return nil
	})
	return funcs, err
}

// Func returns the function as profiles see it, with the marks that the list
// gives. siteLen is the length in bytes of a jump-label or static-call site at
// an offset.
func (k *KernelFunc) Func(d decode.Decoder, siteLen func(code []byte) uint64) *classify.Func {
	f := &classify.Func{
		Name:  k.Sym,
		Addr:  uint64(k.Addr),
		Code:  k.Text,
		Insts: decode.Sweep(d, nil, k.Text, uint64(k.Addr)),
	}
	mark := func(off, n uint64, kind place.Kind) {
		f.Marks = append(f.Marks, place.Mark{Addr: f.Addr + off, Len: n, Kind: kind})
	}
	for _, list := range []struct {
		offs []uint64
		kind place.Kind
	}{{k.ExTable, place.ExTable}, {k.Bug, place.Bug}, {k.Ftrace, place.Ftrace}} {
		for _, off := range list.offs {
			mark(off, 1, list.kind)
		}
	}
	for _, off := range k.JumpLabel {
		mark(off, siteLen(k.Text[off:]), place.JumpLabel)
	}
	for _, off := range k.StaticCall {
		mark(off, siteLen(k.Text[off:]), place.StaticCall)
	}
	for i, row := range k.Rows {
		// What was not asked about is taken to be like what stands before it.
		until := max(k.Size, row.Off+1)
		if i+1 < len(k.Rows) {
			until = max(k.Rows[i+1].Off, row.Off+1)
		}
		if row.Blacklisted {
			mark(row.Off, until-row.Off, place.Blacklist)
		}
		if row.EntryText {
			mark(row.Off, until-row.Off, place.EntryText)
		}
	}
	if strings.HasPrefix(k.Sym, "__cfi_") || strings.HasPrefix(k.Sym, "__pfx_") {
		mark(0, max(k.Size, 1), place.CFIPreamble)
	}
	f.Marks.Sort()
	return f
}

// UprobeRow is what a kernel's uprobe analysis answered about one instruction.
type UprobeRow struct {
	Line    int    // in the file
	Bytes   Bytes  // as given
	Page    uint64 // address modulo 64; ppc64 only
	Errno   classify.Errno
	Exec    string // xol, emulate, simulate, either; empty where refused
	Handler string
	Fixups  string
	XOL     Bytes  // amd64: what runs out of line
	Len     int    // the length that the kernel decoded; 0 where refused
	ISA30   string // ppc64: the answer on a POWER9 where it differs, "errno:exec"
	Source  string // where the row comes from; lists of versions only
}

// PageEnd returns how many bytes from the row's instruction on lie in its page,
// where the list says it.
func (r *UprobeRow) PageEnd() (n uint64, ok bool) {
	text, ok := strings.CutPrefix(r.Source, "pageend-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 12)
	return n, err == nil
}

// UprobeVerdicts reads a list of uprobe verdicts.
func UprobeVerdicts(path string) ([]UprobeRow, error) {
	var rows []UprobeRow
	err := lines(path, func(n int, line []byte) error {
		if len(line) == 0 || line[0] == '#' {
			return nil
		}
		row, err := uprobeRow(strings.Split(string(line), "\t"))
		row.Line = n
		rows = append(rows, row)
		return err
	})
	return rows, err
}

func uprobeRow(cols []string) (row UprobeRow, err error) {
	const columns, withSource = 9, 10
	if len(cols) != columns && len(cols) != withSource {
		return row, fmt.Errorf("%d columns, want %d or %d", len(cols), columns, withSource)
	}
	for i, c := range cols {
		if c == "-" {
			cols[i] = ""
		}
	}
	if err = row.Bytes.UnmarshalText([]byte(cols[0])); err != nil {
		return row, err
	}
	if err = row.XOL.UnmarshalText([]byte(cols[6])); err != nil {
		return row, err
	}
	number := func(s string) (v uint64) {
		if s != "" && err == nil {
			v, err = strconv.ParseUint(s, 0, 64)
		}
		return v
	}
	row.Page = number(cols[1])
	row.Errno = classify.Errno(number(cols[2]))
	row.Exec, row.Handler, row.Fixups = cols[3], cols[4], cols[5]
	row.Len = int(number(cols[7]))
	if len(cols) == withSource {
		row.Source = cols[9]
		if real := cols[8]; real != "" && err == nil && number(real) != uint64(row.Errno) {
			err = fmt.Errorf("analyzed with error %v, registered with %s", row.Errno, real)
		}
	} else if cols[8] != "same" {
		row.ISA30 = cols[8]
	}
	return row, err
}

// UprobeErrnos reads a list of what user space was answered about
// instructions: only the error numbers are known.
func UprobeErrnos(path string) ([]UprobeRow, error) {
	cells, err := Rows(path)
	if err != nil {
		return nil, err
	}
	rows := make([]UprobeRow, 0, len(cells))
	for i, c := range cells {
		if len(c) != 4 {
			return nil, fmt.Errorf("%s: row %d has %d columns, want 4", path, i+1, len(c))
		}
		row, err := uprobeRow([]string{c[0], "-", c[1], "-", "-", "-", "-", "-", "-", c[3]})
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, i+1, err)
		}
		row.Line = i + 1
		rows = append(rows, row)
	}
	return rows, nil
}

// UprobeRun is how an instruction ran under a real uprobe on a CPU.
type UprobeRun struct {
	Bytes   Bytes // of the slot: others may follow the instruction
	Errno   classify.Errno
	Outcome string // same or diff from the run without; skip and - where there was none
	What    string // what differed first, or why there was no run
	Exec    string // xol or emulate, as observed
}

// Weak says that a row tells little: all its runs ended in the same fault, or the
// CPU lacks the instruction.
func (r *UprobeRun) Weak() bool {
	return strings.Contains(r.What, "faults-only") || strings.Contains(r.What, "illegal-on-this-cpu")
}

// Refused says that the uprobe was refused after all, before other bytes.
func (r *UprobeRun) Refused() bool { return strings.HasPrefix(r.What, "refused") }

// UprobeRuns reads a list of such runs.
func UprobeRuns(path string) ([]UprobeRun, error) {
	cells, err := Rows(path)
	if err != nil {
		return nil, err
	}
	rows := make([]UprobeRun, len(cells))
	for i, c := range cells {
		if len(c) != 6 {
			return nil, fmt.Errorf("%s: row %d has %d columns, want 6", path, i+1, len(c))
		}
		errno, err := strconv.ParseUint(c[1], 10, 16)
		rows[i] = UprobeRun{Errno: classify.Errno(errno), Outcome: c[2], What: c[3], Exec: c[4]}
		if err = errors.Join(err, rows[i].Bytes.UnmarshalText([]byte(c[0]))); err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, i+1, err)
		}
	}
	return rows, nil
}
