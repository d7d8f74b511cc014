package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xol/image/isa"
)

// kallsymsLayout is how a version of Linux lays its own table of symbols out.
type kallsymsLayout struct {
	version     string
	addressing  addressing
	marker      int  // bytes
	align       int  // of each part
	orderFirst  bool // the order by name stands before the tokens
	order       bool // there is one
	addrsBehind bool
	bigLength   bool // names of 128 bytes and more have two bytes of length
}

var kallsymsLayouts = []kallsymsLayout{
	{version: "4.4", addressing: addressWhole, marker: 8, align: 8},
	{version: "4.19", addressing: addressBased, marker: 8, align: 8},
	{version: "5.10", addressing: addressBased, marker: 4, align: 8},
	{version: "5.10 of x86", addressing: addressPerCPU, marker: 4, align: 8},
	{version: "6.1", addressing: addressBased, marker: 4, align: 8, order: true, orderFirst: true, bigLength: true},
	{version: "6.2 of x86", addressing: addressPerCPU, marker: 4, align: 8, order: true, orderFirst: true, bigLength: true},
	{version: "6.12", addressing: addressBased, marker: 4, align: 8, order: true, addrsBehind: true, bigLength: true},
	{version: "6.12 of x86", addressing: addressPerCPU, marker: 4, align: 8, order: true, addrsBehind: true, bigLength: true},
	{version: "7.0", addressing: addressPlaced, marker: 4, align: 4, order: true, addrsBehind: true, bigLength: true},
}

// kallsymsPairs are what the codes of characters that no name has stand for.
var kallsymsPairs = []string{"__", "sys", "_do", "tab", "le_", "st", "fun", "arm64_", "x64_"}

// kallsymsWriter lays a table out as scripts/kallsyms.c does.
type kallsymsWriter struct {
	kallsymsLayout
	order binary.AppendByteOrder
	buf   []byte
}

func (w *kallsymsWriter) pad(n int) {
	for len(w.buf)%n != 0 {
		w.buf = append(w.buf, 0)
	}
}

func (w *kallsymsWriter) mark(v int) {
	if w.marker == 8 {
		w.buf = w.order.AppendUint64(w.buf, uint64(v))
	} else {
		w.buf = w.order.AppendUint32(w.buf, uint32(v))
	}
}

// write returns a table that stands at addr, after other data, and where in
// it the relative base is; -1 where there is none. Absolute symbols are those
// of type A.
func (w *kallsymsWriter) write(syms []MapSymbol, addr, base uint64) (table []byte, baseAt int) {
	w.buf, baseAt = []byte("some other data, 32 bytes of it."), -1
	addresses := func() {
		w.pad(w.align)
		for i := range syms {
			switch v := syms[i].Addr; w.addressing {
			case addressWhole:
				w.buf = w.order.AppendUint64(w.buf, v)
			case addressPlaced:
				w.buf = w.order.AppendUint32(w.buf, uint32(v-addr-uint64(len(w.buf))))
			case addressPerCPU:
				if syms[i].Type != 'A' {
					v = ^(v - base)
				}
				w.buf = w.order.AppendUint32(w.buf, uint32(v))
			default:
				w.buf = w.order.AppendUint32(w.buf, uint32(v-base))
			}
		}
		if w.addressing <= addressPerCPU {
			w.pad(8)
			baseAt = len(w.buf)
			w.buf = w.order.AppendUint64(w.buf, base)
		}
	}
	byName := func() {
		w.pad(w.align)
		for i := range syms {
			k := i * 7919 % len(syms)
			w.buf = append(w.buf, byte(k>>16), byte(k>>8), byte(k))
		}
	}
	if !w.addrsBehind {
		addresses()
	}
	w.pad(w.align)
	w.buf = w.order.AppendUint32(w.buf, uint32(len(syms)))
	w.pad(w.align)
	tokens, code := kallsymsTestTokens()
	var markers []int
	start := len(w.buf)
	for i := range syms {
		if i%kallsymsMark == 0 {
			markers = append(markers, len(w.buf)-start)
		}
		name := code(string(syms[i].Type) + syms[i].Name)
		if n := len(name); w.bigLength && n > 127 {
			w.buf = append(w.buf, byte(n)|0x80, byte(n>>7))
		} else {
			w.buf = append(w.buf, byte(n))
		}
		w.buf = append(w.buf, name...)
	}
	w.pad(w.align)
	for _, m := range markers {
		w.mark(m)
	}
	if w.kallsymsLayout.order && w.orderFirst {
		byName()
	}
	w.pad(w.align)
	var index []int
	start = len(w.buf)
	for _, token := range tokens {
		index = append(index, len(w.buf)-start)
		w.buf = append(append(w.buf, token...), 0)
	}
	w.pad(w.align)
	for _, i := range index {
		w.buf = w.order.AppendUint16(w.buf, uint16(i))
	}
	if w.addrsBehind {
		addresses()
	}
	if w.kallsymsLayout.order && !w.orderFirst {
		byName()
	}
	return append(w.buf, "and more data"...), baseAt
}

// kallsymsTestTokens returns tokens, and what encodes a name in them.
func kallsymsTestTokens() (tokens [256]string, code func(name string) []byte) {
	used := func(c int) bool { return c > ' ' && c < 0x7f }
	pairs := kallsymsPairs
	for c := range tokens {
		switch {
		case used(c):
			tokens[c] = string(rune(c))
		case len(pairs) > 0:
			tokens[c], pairs = pairs[0], pairs[1:]
		}
	}
	return tokens, func(name string) (b []byte) {
		for name != "" {
			best := int(name[0])
			for c := range tokens {
				if len(tokens[c]) > len(tokens[best]) && strings.HasPrefix(name, tokens[c]) {
					best = c
				}
			}
			b = append(b, byte(best))
			name = name[len(tokens[best]):]
		}
		return b
	}
}

// symbols returns symbols as a kernel has them, sorted.
func (l *kallsymsLayout) symbols(n int, base uint64) []MapSymbol {
	var syms []MapSymbol
	if l.addressing == addressPerCPU {
		for i := range 20 {
			syms = append(syms, MapSymbol{Name: fmt.Sprintf("per_cpu_%d", i), Addr: uint64(i) * 64, Type: 'A'})
		}
	}
	for i := range n {
		s := MapSymbol{Name: fmt.Sprintf("__do_sys_table_%d", i*i), Addr: base + uint64(i)*48&^127, Type: "tTdDrRW"[i%7]}
		if i == 0 {
			s.Name = "_text"
		}
		if i%500 == 3 && l.bigLength {
			s.Name = strings.Repeat("long.", 30+i/500) + s.Name
		}
		syms = append(syms, s)
	}
	return syms
}

func TestFindKallsyms(t *testing.T) {
	const base, addr = 0xffffffff81000000, 0xffffffff82001000
	for _, l := range kallsymsLayouts {
		for _, order := range []byteOrder{littleEndian, bigEndian} {
			for _, n := range []int{300, 255 * 4, 2600} {
				t.Run(fmt.Sprintf("%s, %d symbols, %v", l.version, n, map[byteOrder]string{littleEndian: "little", bigEndian: "big"}[order]), func(t *testing.T) {
					want := l.symbols(n, base)
					w := &kallsymsWriter{kallsymsLayout: l, order: appendOrder(order)}
					data, _ := w.write(want, addr, base)
					k := findKallsyms(data, order)
					if k == nil {
						t.Fatal("not found")
					}
					got := k.symbols()
					moveSymbols(got, map[addressing]uint64{addressBased: base, addressPerCPU: base, addressPlaced: addr}[l.addressing])
					if k.addressing != l.addressing || !slices.Equal(got, want) {
						t.Errorf("addressing %d of %d; got %d symbols, %+v …, want %d, %+v …", k.addressing, l.addressing, len(got), got[:3], len(want), want[:3])
					}
				})
			}
		}
	}
}

func appendOrder(o byteOrder) binary.AppendByteOrder {
	if o == bigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// TestFindKallsymsRefuses changes a byte at a time of what holds a table
// together.
func TestFindKallsymsRefuses(t *testing.T) {
	for _, l := range kallsymsLayouts {
		syms := l.symbols(300, 0xffffffff81000000)
		w := &kallsymsWriter{kallsymsLayout: l, order: binary.LittleEndian}
		data, _ := w.write(syms, 0xffffffff82001000, 0xffffffff81000000)
		k := findKallsyms(data, littleEndian)
		for _, c := range []struct {
			what string
			at   int
		}{
			{"index of tokens", k.tokenIndex + 2*'0'}, {"number of symbols", k.countAt + 1},
			{"length of a name", k.names}, {"marker", k.markersAt + 4}, {"tokens", k.tokenTable},
		} {
			broken := bytes.Clone(data)
			broken[c.at] ^= 0x55
			if found := findKallsyms(broken, littleEndian); found != nil && slices.Equal(found.symbols(), k.symbols()) {
				t.Errorf("%s: found with another %s", l.version, c.what)
			}
		}
	}
}

// withKallsyms returns a kernel of the fixtures whose symbols are only those
// of a kallsyms table, which takes the place of .symtab and stands at addr.
func withKallsyms(t testing.TB, target string, l kallsymsLayout, syms []MapSymbol, base uint64) []byte {
	t.Helper()
	const addrAbove = 1 << 20
	file, f := stripped(t, target)
	addr := uint64(0)
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 {
			addr = max(addr, s.Addr+s.Size)
		}
	}
	addr = (addr + addrAbove) &^ 7
	for len(file)%8 != 0 {
		file = append(file, 0)
	}
	order := appendOrder(byteOrder(f.ByteOrder == binary.ByteOrder(binary.BigEndian)))
	w := &kallsymsWriter{kallsymsLayout: l, order: order}
	table, _ := w.write(syms, addr, base)
	for i, s := range f.Sections {
		if s.Type == elf.SHT_SYMTAB {
			h := file[f.ByteOrder.Uint64(file[40:])+uint64(i)*shdrSize:]
			f.ByteOrder.PutUint32(h[4:], uint32(elf.SHT_PROGBITS))
			f.ByteOrder.PutUint64(h[8:], uint64(elf.SHF_ALLOC))
			f.ByteOrder.PutUint64(h[16:], addr)
			f.ByteOrder.PutUint64(h[24:], uint64(len(file)))
			f.ByteOrder.PutUint64(h[32:], uint64(len(table)))
		}
	}
	return append(file, table...)
}

// hideSymbols makes the symbol tables of file, which f was opened from, sections
// that no one looks for symbols in.
func hideSymbols(file []byte, f *elf.File) {
	for i, s := range f.Sections {
		if s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_DYNSYM {
			f.ByteOrder.PutUint32(file[f.ByteOrder.Uint64(file[40:])+uint64(i)*shdrSize+4:], uint32(elf.SHT_NOTE))
		}
	}
}

// stripped returns a kernel of the fixtures without its symbols.
func stripped(t testing.TB, target string) ([]byte, *elf.File) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", "elf", "kernel."+target))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	hideSymbols(file, f)
	return file, f
}

// kernelMap returns the symbols of a kernel of the fixtures as kallsyms has
// them, with enough others that a table of them looks like a kernel's.
func kernelMap(t testing.TB, target string) []MapSymbol {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "elf", "kernel."+target+".map"))
	if err != nil {
		t.Fatal(err)
	}
	syms, err := readSymbolMap(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	syms = slices.DeleteFunc(syms, func(s MapSymbol) bool { return s.Addr < 0x10000000 || !countsInKernel(nil, s.Name) })
	end := syms[len(syms)-1].Addr
	for i := range 300 {
		syms = append(syms, MapSymbol{Name: fmt.Sprintf("data_%d", i), Addr: end + 0x100000 + uint64(i)*8, Type: 'd'})
	}
	// kallsyms orders aliases as the rule for kernels prefers them.
	slices.SortStableFunc(syms, func(a, b MapSymbol) int {
		if a.Addr != b.Addr {
			return map[bool]int{true: 1, false: -1}[a.Addr > b.Addr]
		}
		as, bs := symbol{info: userInfo(a.Type)}, symbol{info: userInfo(b.Type)}
		return compareInKernel(&as, &bs, a.Name, b.Name)
	})
	return syms
}

// TestKernelNames reads stripped kernels with nothing but the table that they
// carry for themselves: nothing may differ from what their symbols tell.
func TestKernelNames(t *testing.T) {
	for _, target := range targets {
		for _, l := range kallsymsLayouts {
			if l.addressing == addressPerCPU && target != "amd64" {
				continue
			}
			for _, base := range []string{"known", "left to relocations"} {
				if l.addressing != addressBased && base != "known" {
					continue
				}
				t.Run(target+", "+l.version+", base "+base, func(t *testing.T) {
					syms := kernelMap(t, target)
					at := syms[0].Addr
					file := withKallsyms(t, target, l, syms, at)
					if base != "known" {
						clearBase(t, file, target, l, at)
					}
					im, err := Open(bytes.NewReader(file), int64(len(file)), Options{})
					if err != nil {
						t.Fatal(err)
					}
					if missing, err := im.Missing(); err != nil || missing != 0 {
						t.Errorf("missing: %v, %v", missing, err)
					}
					compareImages(t, im, fixture(t, "kernel."+target), func(uint64) bool { return true })
				})
			}
		}
	}
}

// clearBase makes the relative base in a file 0.
func clearBase(t *testing.T, file []byte, target string, l kallsymsLayout, base uint64) {
	t.Helper()
	order := binary.AppendByteOrder(binary.LittleEndian)
	if target == "ppc64" {
		order = binary.BigEndian
	}
	w := order.AppendUint64(nil, base)
	i := bytes.LastIndex(file, w)
	if i < 0 {
		t.Fatal("no relative base in the file")
	}
	clear(file[i : i+8])
}

// TestMissing tells what a kernel without some of its symbols leaves unknown.
func TestMissing(t *testing.T) {
	l := kallsymsLayouts[6]
	for _, target := range targets {
		t.Run(target, func(t *testing.T) {
			functions := slices.DeleteFunc(kernelMap(t, target), func(s MapSymbol) bool { return strings.HasPrefix(s.Name, "__start___") })
			none, _ := stripped(t, target)
			for _, c := range []struct {
				what string
				file []byte
				want Missing
			}{
				{"functions only", withKallsyms(t, target, l, functions, functions[0].Addr), MissingBlacklist | MissingTables},
				{"no names", none, MissingFunctions | MissingBlacklist | MissingTables},
			} {
				im, err := Open(bytes.NewReader(c.file), int64(len(c.file)), Options{})
				if err != nil {
					t.Fatal(err)
				}
				if got, err := im.Missing(); got != c.want || err != nil {
					t.Errorf("%s: missing %v, %v; want %v", c.what, got, err, c.want)
				}
			}
		})
	}
	if got, err := fixture(t, "functions.amd64").Missing(); got != 0 || err != nil {
		t.Errorf("a program lacks %v, %v", got, err)
	}
}

// realKernels have all layouts, with and without symbols of data.
var realKernels = []string{"amd64-5.10.218", "arm64-6.1.176", "amd64", "ppc64el", "amd64-7.3.4", "arm64-7.3.4", "ppc64el-7.3rc7"}

// TestKernelNamesOfRealKernels compares the table in real kernels with their
// symbols.
func TestKernelNamesOfRealKernels(t *testing.T) {
	for _, name := range realKernels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			im := openKernel(t, name)
			own, err := im.readKernelNames()
			if err != nil || len(own) < 10_000 {
				t.Fatalf("%d names, %v", len(own), err)
			}
			syms, err := im.symbols()
			if err != nil {
				t.Fatal(err)
			}
			known := make(map[MapSymbol]bool, len(syms.syms))
			for i := range syms.syms {
				s := &syms.syms[i]
				known[MapSymbol{Name: syms.name(s), Addr: s.addr}] = true
			}
			for _, s := range own {
				if !known[MapSymbol{Name: s.Name, Addr: s.Addr}] {
					t.Fatalf("%s at %#x is not among the symbols", s.Name, s.Addr)
				}
			}
			if im.machine == elf.EM_AARCH64 {
				checkFlatImage(t, im, own)
			}
		})
	}
}

// checkFlatImage opens a kernel as it stands in memory.
func checkFlatImage(t *testing.T, im *Image, own []MapSymbol) {
	t.Helper()
	base := im.text[0].Addr
	flat := make([]byte, im.sections[im.byAddr[len(im.byAddr)-1]].end()-base)
	for _, i := range im.byAddr {
		s := &im.sections[i]
		if !s.inFile() {
			continue
		}
		data, err := im.rawContents(s)
		if err != nil {
			t.Fatal(err)
		}
		copy(flat[s.addr-base:], data)
	}
	raw, err := Open(bytes.NewReader(flat), int64(len(flat)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := raw.kernelNames()
	if err != nil || raw.text[0].Addr != base || !slices.Equal(got, own) {
		t.Errorf("flat image at %#x, want %#x; %d names, want %d; %v", raw.text[0].Addr, base, len(got), len(own), err)
	}
}

// TestRawBase finds where a bare kernel image stands, by each of the ways.
func TestRawBase(t *testing.T) {
	const base = 0xffff800080000000
	for _, c := range []struct {
		name  string
		l     kallsymsLayout
		text  bool // _text is among the names
		base  bool // the relative base is in the image
		other bool // the relocation of another place comes first
	}{
		{"by the relative base", kallsymsLayouts[6], true, true, false},
		{"by the relative base, from _stext on", kallsymsLayouts[2], false, true, false},
		{"by a relocation", kallsymsLayouts[6], true, false, true},
		{"by a relocation, from _stext on", kallsymsLayouts[2], false, false, true},
		{"by pointers", kallsymsLayouts[8], true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			syms := c.l.symbols(2000, base)
			if !c.text {
				syms = slices.DeleteFunc(syms, func(s MapSymbol) bool { return s.Addr < base+0x10000 })
				syms[0].Name = "_stext"
			}
			const at = 0x40000
			file := make([]byte, at)
			copy(file[56:], "ARMd")
			w := &kallsymsWriter{kallsymsLayout: c.l, order: binary.LittleEndian}
			table, baseAt := w.write(syms, base+at, syms[0].Addr)
			file = append(file, table...)
			for len(file)%8 != 0 {
				file = append(file, 0)
			}
			if !c.base && baseAt >= 0 {
				clear(file[at+baseAt:][:8])
				for _, r := range [][2]uint64{{base + 0x1238, base + 0x5670}, {base + at + uint64(baseAt), syms[0].Addr}} {
					file = binary.LittleEndian.AppendUint64(file, r[0])
					file = binary.LittleEndian.AppendUint64(file, uint64(elf.R_AARCH64_RELATIVE))
					file = binary.LittleEndian.AppendUint64(file, r[1])
				}
			}
			if c.l.addressing == addressPlaced {
				for i := range 200 {
					s := &syms[7*i]
					file = binary.LittleEndian.AppendUint64(file, s.Addr)
					file = binary.LittleEndian.AppendUint64(file, 0xffff7fff80001000) // of modules
				}
			}
			im, err := Open(bytes.NewReader(file), int64(len(file)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			own, err := im.kernelNames()
			if err != nil || !slices.Equal(own, syms) || im.byAddr == nil || im.sections[im.byAddr[0]].addr != base {
				t.Errorf("starts at %#x, names %+v …, %v", im.sections[im.byAddr[0]].addr, own[:2], err)
			}
		})
	}
}

func FuzzFindKallsyms(f *testing.F) {
	for _, l := range kallsymsLayouts {
		w := &kallsymsWriter{kallsymsLayout: l, order: binary.LittleEndian}
		data, _ := w.write(l.symbols(300, 1<<63), 1<<63+0x1000, 1<<63)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, order := range []byteOrder{littleEndian, bigEndian} {
			if k := findKallsyms(data, order); k != nil {
				im := newImage(file{order: order, isa: isa.Known().Find(elf.EM_AARCH64)})
				im.rawBase(k, k.symbols(), append(make([]byte, 64), data...))
			}
		}
	})
}

// TestFindKallsymsEnds looks through data that is made to look like many
// tables.
func TestFindKallsymsEnds(t *testing.T) {
	w := &kallsymsWriter{kallsymsLayout: kallsymsLayouts[4], order: binary.LittleEndian}
	syms := w.symbols(300, 1<<63)
	table, _ := w.write(syms, 1<<63+0x1000, 1<<63)
	k := findKallsyms(table, littleEndian)
	table[k.markersAt+4] ^= 0x55
	for name, data := range map[string][]byte{
		"digits": bytes.Repeat(digitTokens, 1<<20), "tables": bytes.Repeat(append(table, 0), 2000),
	} {
		start := time.Now()
		if findKallsyms(data, littleEndian) != nil {
			t.Errorf("%s: found", name)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}
