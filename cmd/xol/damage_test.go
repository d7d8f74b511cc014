//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"xol/internal/skip"
)

var (
	damagedFiles = flag.Int("damaged", 240, "how many damaged files TestDamagedFiles reads")
	damageSeed   = flag.Uint64("damage-seed", 1, "what they are drawn from")
	damageFirst  = flag.Int("damage-first", -1, "read a batch from this one on, in this process")
)

// What no file may make the program do, however it is damaged.
const (
	mostTime   = 5 * time.Second // for one command
	mostMemory = 1 << 30         // bytes, of a process that reads a whole batch
	batchSize  = 100
)

// specimens are the files that are damaged: of every ISA and kind, packed ones
// among them.
func specimens(t testing.TB) (all [][]byte) {
	t.Helper()
	for _, pattern := range []string{
		"testdata/*.elf", "testdata/*.o", "../../image/testdata/elf/*.*", "../../image/testdata/formats/*.elf*",
		"../../image/testdata/formats/*.o", "../../testdata/guest/*-O2", "../../testdata/guest/throw-*", "../../analyze/testdata/optimize/*.*64*",
	} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("no specimens %s: %v", pattern, err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > 64 {
				all = append(all, data)
			}
		}
	}
	return all
}

// damage is a way to damage a file.
type damage func(r *rand.Rand, data []byte, others [][]byte) []byte

var damages = []damage{
	flipBits, flipBits, overwriteWord, overwriteWord, overwriteHeader, overwriteTable, overwriteTable,
	cutOff, takeOut, putIn, fillRange, spliceOther,
}

// extremes are values that sizes, offsets and counts are tried with.
var extremes = []uint64{0, 1, 2, 7, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1}

func flipBits(r *rand.Rand, data []byte, _ [][]byte) []byte {
	for range 1 + r.IntN(16) {
		data[r.IntN(len(data))] ^= 1 << r.IntN(8)
	}
	return data
}

// putWord writes an extreme value, or one near the file's size, in either byte
// order and any width.
func putWord(r *rand.Rand, data []byte, at int) {
	value := extremes[r.IntN(len(extremes))]
	if r.IntN(3) == 0 {
		value = uint64(len(data) + r.IntN(64) - 32)
	}
	var word [8]byte
	width := 1 << r.IntN(4)
	if r.IntN(2) == 0 {
		binary.LittleEndian.PutUint64(word[:], value)
		copy(data[at:], word[:width])
		return
	}
	binary.BigEndian.PutUint64(word[:], value)
	copy(data[at:], word[8-width:])
}

func overwriteWord(r *rand.Rand, data []byte, _ [][]byte) []byte {
	for range 1 + r.IntN(4) {
		putWord(r, data, r.IntN(len(data))&^3)
	}
	return data
}

func overwriteHeader(r *rand.Rand, data []byte, _ [][]byte) []byte {
	putWord(r, data, r.IntN(64)&^1)
	return data
}

// overwriteTable changes the section headers, of which the ELF header says where
// they are.
func overwriteTable(r *rand.Rand, data []byte, _ [][]byte) []byte {
	order := binary.ByteOrder(binary.LittleEndian)
	if data[5] == 2 {
		order = binary.BigEndian
	}
	start := order.Uint64(data[0x28:])
	if start >= uint64(len(data)) {
		return overwriteWord(r, data, nil)
	}
	for range 1 + r.IntN(3) {
		putWord(r, data, int(start)+r.IntN(len(data)-int(start))&^3)
	}
	return data
}

func cutOff(r *rand.Rand, data []byte, _ [][]byte) []byte { return data[:1+r.IntN(len(data))] }

// part draws a range of data.
func part(r *rand.Rand, data []byte) (lo, hi int) {
	lo = r.IntN(len(data))
	return lo, lo + r.IntN(min(len(data)-lo, 512)+1)
}

func takeOut(r *rand.Rand, data []byte, _ [][]byte) []byte {
	lo, hi := part(r, data)
	return append(data[:lo], data[hi:]...)
}

func putIn(r *rand.Rand, data []byte, _ [][]byte) []byte {
	lo, hi := part(r, data)
	return append(append(bytes.Clone(data[:hi]), data[lo:hi]...), data[hi:]...)
}

func fillRange(r *rand.Rand, data []byte, _ [][]byte) []byte {
	lo, hi := part(r, data)
	with := []byte{0, 0xff, byte(r.Uint32())}[r.IntN(3)]
	for i := lo; i < hi; i++ {
		data[i] = with
	}
	return data
}

func spliceOther(r *rand.Rand, data []byte, others [][]byte) []byte {
	other := others[r.IntN(len(others))]
	lo, hi := part(r, other)
	copy(data[r.IntN(len(data)):], other[lo:hi])
	return data
}

// damagedFile returns the i-th file: the same for the same seed.
func damagedFile(all [][]byte, seed uint64, i int) []byte {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	data := bytes.Clone(all[r.IntN(len(all))])
	for range 1 + r.IntN(2) {
		if len(data) > 64 {
			data = damages[r.IntN(len(damages))](r, data, all)
		}
	}
	switch r.IntN(12) {
	case 0:
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(data)
		w.Close()
		return b.Bytes()
	case 1:
		w, err := zstd.NewWriter(nil)
		if err != nil {
			panic(err)
		}
		return w.EncodeAll(data, nil)
	}
	return data
}

// readers are the commands that read files, with %s for the damaged one.
var readers = []string{
	"analyze %s", "analyze --insns -o jsonl %s", "analyze --markers -o json %s", "analyze --profile isa --func m* -o csv %s",
	"explain %s main", "explain --region %s 0x400078", "explain -o json %s file:0x100",
	"relocate --to 0x7f0000000000 %s main", "relocate --to 0x10000000 --form region %s 0x400080",
	"verify --sample 2 --states 1 --cpus 1 %s", "analyze --symbols %s testdata/kernel.elf",
}

// readDamaged has every command read a file, and fails where one does not end as
// it has to: in time, with status 0, 1 or 2, and one line where that is 2.
func readDamaged(t *testing.T, path string, i int) {
	for _, command := range readers {
		command = fmt.Sprintf(command, path)
		start := time.Now()
		inv, panicked := tryCommand(command)
		where := fmt.Sprintf("file %d of seed %d: xol %s", i, *damageSeed, command)
		switch lines := strings.Count(inv.stderr, "\n"); {
		case panicked != "":
			t.Errorf("%s: %s", where, panicked)
		case time.Since(start) > mostTime:
			t.Errorf("%s: took %v", where, time.Since(start))
		case inv.status < 0 || inv.status > 2:
			t.Errorf("%s: status %d", where, inv.status)
		case inv.status == 2 && (lines != 1 || !strings.HasPrefix(inv.stderr, "xol: ")):
			t.Errorf("%s: status 2 and %d lines: %.300q", where, lines, inv.stderr)
		}
	}
}

func tryCommand(command string) (inv invocation, panicked string) {
	defer func() {
		if v := recover(); v != nil {
			panicked = fmt.Sprintf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return xol(command, ""), ""
}

// TestDamagedFiles shares the files out to processes, whose memory it can tell.
func TestDamagedFiles(t *testing.T) {
	if *damageFirst >= 0 {
		readBatch(t)
		return
	}
	skip.Long(t, "damaged files")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	free := make(chan struct{}, 2)
	var running sync.WaitGroup
	for first := 0; first < *damagedFiles; first += batchSize {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			cmd := exec.Command(exe, "-test.run=^TestDamagedFiles$", "-damage-first="+strconv.Itoa(first),
				"-damaged="+strconv.Itoa(*damagedFiles), "-damage-seed="+strconv.FormatUint(*damageSeed, 10))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("files from %d on: %v\n%s", first, err, out)
			}
			if used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10; used > mostMemory {
				t.Errorf("files from %d on took %d MiB", first, used>>20)
			}
		})
	}
	running.Wait()
}

// readBatch reads a batch in this process.
func readBatch(t *testing.T) {
	all := specimens(t)
	path := filepath.Join(t.TempDir(), "damaged")
	for i := *damageFirst; i < min(*damageFirst+batchSize, *damagedFiles); i++ {
		if err := os.WriteFile(path, damagedFile(all, *damageSeed, i), 0o600); err != nil {
			t.Fatal(err)
		}
		readDamaged(t, path, i)
	}
}
