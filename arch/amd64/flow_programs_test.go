package amd64_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/internal/skip"
	"xol/optcheck/flow"
)

// switchFiles are what real compilers and assemblers made; the first of a list
// that is there is looked at.
var switchFiles = [][]string{
	{"/bin/bash"},
	{"/usr/lib/x86_64-linux-gnu/libcrypto.so.3"},
	{"/usr/bin/python3.13", "/usr/bin/python3.12", "/usr/bin/python3.11", "/usr/bin/python3"},
	{"/bin/busybox"},
	{"/usr/lib/x86_64-linux-gnu/libc.so.6"},
	{"/usr/lib/x86_64-linux-gnu/libstdc++.so.6"},
}

// jumpCounts counts the indirect jumps of a file and what is known of them.
type jumpCounts struct {
	kinds      [flow.JumpPointer + 1]int
	bounds     [flow.BoundMask + 1]int
	withTable  int // functions
	unresolved int // functions with a table and a jump that is not resolved
	bad        int // tables with an entry that is no instruction of the function
}

// TestSwitchFiles counts. No more than one in 50 functions with a jump table may
// have an indirect jump that is not resolved, and what a table of known size
// holds has to be addresses of instructions.
func TestSwitchFiles(t *testing.T) {
	looked := 0
	for _, list := range switchFiles {
		for _, path := range list {
			if _, err := os.Stat(path); err != nil {
				continue
			}
			looked++
			t.Run(filepath.Base(path), func(t *testing.T) { countJumps(t, path) })
			break
		}
	}
	if looked == 0 {
		skip.Missing(t, "programs of this machine")
	}
}

func countJumps(t *testing.T, path string) {
	im, err := image.OpenFile(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	var c jumpCounts
	fns := functionsOf(t, im)
	for i := range fns {
		c.add(t, im, &fns[i])
	}
	t.Logf("%d unresolved, %d tables, %d pointers; tables bounded by nothing, comparison, mask: %v; %d bad; %d functions with a table, %d of them not resolved",
		c.kinds[flow.JumpUnresolved], c.kinds[flow.JumpTable], c.kinds[flow.JumpPointer], c.bounds, c.bad, c.withTable, c.unresolved)
	if c.bad > 0 {
		t.Errorf("%d tables", c.bad)
	}
	if c.unresolved*50 > c.withTable {
		t.Errorf("%d of %d functions with a table have jumps that are not resolved", c.unresolved, c.withTable)
	}
}

func (c *jumpCounts) add(t *testing.T, im *image.Image, f *classify.Func) {
	tables, unresolved := 0, 0
	eachJump(f, im, func(inst *decode.Inst, j flow.Jump) {
		c.kinds[j.Kind]++
		switch j.Kind {
		case flow.JumpUnresolved:
			t.Logf("%#x in %s: %s", inst.Addr, f.Name, j.What)
			unresolved++
		case flow.JumpTable:
			tables++
			c.bounds[j.Table.Bound]++
			if n, ok := readTable(im, f, &j.Table); !ok {
				t.Logf("%#x in %s: %d entries of %+v", inst.Addr, f.Name, n, j.Table)
				c.bad++
				unresolved++
			}
		}
	})
	if tables > 0 {
		c.withTable++
		if unresolved > 0 {
			c.unresolved++
		}
	}
}

// readTable returns how many entries of a table are addresses of instructions
// of the function or somewhere else in text. With a comparison all have to be.
func readTable(im *image.Image, f *classify.Func, t *flow.Table) (n int, ok bool) {
	for n = 0; t.Count == 0 || n < t.Count; n++ {
		target, ok := readEntry(im, t, n)
		own, start := decode.Find(f.Insts, target)
		if !ok || own >= 0 && !start || own < 0 && !inText(im, target) {
			return n, t.Bound != flow.BoundCompare && n > 0
		}
	}
	return n, true
}

func inText(im *image.Image, addr uint64) bool {
	for _, r := range im.Text() {
		if addr-r.Addr < r.Size {
			return true
		}
	}
	return false
}

func readEntry(im *image.Image, t *flow.Table, n int) (uint64, bool) {
	at := t.Addr + uint64(n)*uint64(t.Width)
	if t.Width == 8 && t.Base == 0 {
		return im.Pointer(at)
	}
	raw, err := im.Data(nil, at, uint64(t.Width))
	if err != nil {
		return 0, false
	}
	var word [8]byte
	copy(word[:], raw)
	v := binary.LittleEndian.Uint64(word[:])
	if unused := 64 - 8*uint(t.Width); t.Signed {
		v = uint64(int64(v<<unused) >> unused)
	}
	return t.Base + v<<t.Shift, true
}
