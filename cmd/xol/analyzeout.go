package main

import (
	"bufio"
	"fmt"
	"math"

	"xol/analyze"
	"xol/decode"
	"xol/image"
)

// listing prints the results of analyze. For every file begin comes first,
// then the rows, then end; close comes last of all.
type listing interface {
	begin(*analyzedFile)
	// encode appends the rows of one function. It may be called concurrently.
	encode(dst []byte, file *analyzedFile, r *analyze.Result, s *analyze.Summary) []byte
	write(rows []byte) error
	end(*analyzedFile, *totals)
	close()
}

// analyzedFile is a file under analysis.
type analyzedFile struct {
	path string
	*analyze.Analysis
	running *running // nil for a file
}

// kind says in two words what the file is.
func (f *analyzedFile) kind() string {
	return f.ISA.Name() + " " + f.Image.Kind().String()
}

// undecided is the error that what cannot be judged, since the file tells too
// little.
func (f *analyzedFile) undecided(what string) error {
	if f.running != nil {
		return fileError(f.path, fmt.Errorf("%s cannot be judged: the system does not show %v", what, f.Missing))
	}
	return fileError(f.path, fmt.Errorf("%s cannot be judged: the file does not tell %v; give the kernel's symbols with --symbols", what, f.Missing))
}

// text returns the instruction with names for addresses.
func (f *analyzedFile) text(inst *decode.Inst) string {
	if inst.Has(decode.Invalid) {
		return "(bad)"
	}
	return f.ISA.Text(inst, f.Image.Symbolize)
}

// offsets tells where in the file the bytes of a function stand.
type offsets struct {
	start, first uint64 // address and offset of its first byte
	known        bool
}

func (f *analyzedFile) offsets(fn *image.Function) offsets {
	first, ok := f.Image.OffsetOf(fn.Addr)
	return offsets{fn.Addr, first, ok}
}

// of returns the offset of an address in the function; nowhere where there is
// none.
func (o offsets) of(addr uint64) uint64 {
	if !o.known {
		return nowhere
	}
	return o.first + addr - o.start
}

// nowhere stands for an offset that there is not.
const nowhere = math.MaxUint64

// name returns the function's name, as it was written in C++ and Rust.
func (f *analyzedFile) name(fn *image.Function) string {
	if image.IsMangled(fn.Name) {
		if name, base := f.Image.Symbolize(fn.Addr); base == fn.Addr {
			return f.moduleName(name, fn.Addr)
		}
	}
	return f.moduleName(fn.Name, fn.Addr)
}

// totals are the counts over all functions of a file.
type totals struct {
	analyze.Summary
	functions int
}

// add adds the counts of n functions.
func (t *totals) add(n int, s *analyze.Summary) {
	t.functions += n
	t.Merge(s)
}

func newListing(w *bufio.Writer, opt *analyzeOptions, p palette, manyFiles bool) listing {
	switch {
	case opt.format.value == formatTable:
		return &tableListing{w: w, palette: p, insns: opt.insns}
	case opt.insns:
		return newInsnRecords(w, opt.format.value)
	default:
		return newFunctionRecords(w, opt.format.value, manyFiles)
	}
}
