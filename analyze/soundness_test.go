package analyze_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"xol/analyze"
	"xol/classify"
	"xol/image"
)

// freeRegion is the bytes that a jump may replace: nothing may land strictly
// inside.
type freeRegion struct{ addr, size uint64 }

// regionFinder says which regions of a judged function are free.
type regionFinder func(r *analyze.Result) []freeRegion

// sound takes what the profile says.
func sound(r *analyze.Result) (regions []freeRegion) {
	for i := range r.Optimize {
		if v := &r.Optimize[i]; v.OK() {
			regions = append(regions, freeRegion{r.Insts[i].Addr, uint64(v.Region)})
		}
	}
	return regions
}

// heedless takes every run of whole instructions for free that is as long as the
// jump: it ignores who can land there.
func heedless(jump uint64) regionFinder {
	return func(r *analyze.Result) (regions []freeRegion) {
		for i := range r.Insts {
			end := i
			for end < len(r.Insts) && r.Insts[end].Next()-r.Insts[i].Addr < jump {
				end++
			}
			if end < len(r.Insts) {
				regions = append(regions, freeRegion{r.Insts[i].Addr, r.Insts[end].Next() - r.Insts[i].Addr})
			}
		}
		return regions
	}
}

// fileRegions holds what a file's analysis by the profile isa says of where
// execution lands, all of it by address.
type fileRegions struct {
	name            string
	inside          bool // a jump is longer than some instruction, so that there is an inside to land in
	insts           int
	free, unchecked []freeRegion // of the profile, and where it is not checked who lands there
	functions       []freeRegion // those of which every landing is known
	known           []uint64     // the landings in them, their starts included
}

func (f *fileRegions) add(o *fileRegions) {
	f.insts += o.insts
	f.free, f.unchecked = append(f.free, o.free...), append(f.unchecked, o.unchecked...)
	f.functions, f.known = append(f.functions, o.functions...), append(f.known, o.known...)
}

func byAddr(a, b freeRegion) int { return cmp.Compare(a.addr, b.addr) }

func judge(t *testing.T, path string) *fileRegions {
	t.Helper()
	img, err := image.OpenFile(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	a, err := analyze.New(img, analyze.Options{Profile: classify.ISA, Optimize: true})
	if err != nil {
		t.Fatal(err)
	}
	all := &fileRegions{name: path, inside: a.ISA.JumpLen() > a.ISA.Align()}
	careless := heedless(uint64(a.ISA.JumpLen()))
	work := func(r *analyze.Result) *fileRegions {
		f := &fileRegions{insts: len(r.Insts), free: sound(r), unchecked: careless(r)}
		f.addLandings(t, a, r)
		return f
	}
	err = analyze.Each(context.Background(), a, a.Functions(), work, func(f *fileRegions) error {
		all.add(f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, regions := range [][]freeRegion{all.free, all.unchecked, all.functions} {
		slices.SortFunc(regions, byAddr)
	}
	slices.Sort(all.known)
	return all
}

// addLandings adds what is known of where execution lands in a function, unless
// it has a jump of which it is not known where it goes.
func (f *fileRegions) addLandings(t *testing.T, a *analyze.Analysis, r *analyze.Result) {
	if len(r.Unresolved) > 0 || len(r.Insts) == 0 {
		return
	}
	flow, err := a.Flow(r)
	if err != nil {
		t.Error(err)
		return
	}
	start := r.Insts[0].Addr
	f.functions = append(f.functions, freeRegion{start, r.Insts[len(r.Insts)-1].Next() - start})
	f.known = append(f.known, start)
	for _, l := range flow.Landings {
		f.known = append(f.known, l.Addr)
	}
}

// landings are the addresses that were entered, by something else than the end
// of the instruction in front, and from where first.
type landings map[uint64]uint64

func (l landings) add(from, to uint64) {
	if _, ok := l[to]; !ok {
		l[to] = from
	}
}

// entered returns the free regions that were landed in, in words.
func (l landings) entered(regions []freeRegion) (found []string) {
	const longest = 32 // more than any region
	for to, from := range l {
		first, _ := slices.BinarySearchFunc(regions, to-longest, func(r freeRegion, addr uint64) int { return cmp.Compare(r.addr, addr) })
		for _, r := range regions[first:] {
			if r.addr >= to {
				break
			}
			if to < r.addr+r.size {
				found = append(found, fmt.Sprintf("%#x, %d bytes, is entered at %#x from %#x", r.addr, r.size, to, from))
			}
		}
	}
	slices.Sort(found)
	return found
}

// unforeseen returns the landings, in functions of which every landing is known,
// that are not among them, in words.
func (l landings) unforeseen(f *fileRegions) (found []string) {
	for to, from := range l {
		if _, ok := slices.BinarySearch(f.known, to); ok {
			continue
		}
		i, _ := slices.BinarySearchFunc(f.functions, to+1, func(r freeRegion, addr uint64) int { return cmp.Compare(r.addr, addr) })
		if i > 0 && to < f.functions[i-1].addr+f.functions[i-1].size {
			found = append(found, fmt.Sprintf("%#x is entered from %#x", to, from))
		}
	}
	slices.Sort(found)
	return found
}

// check reports the regions called free that a run entered and, where a region
// has an inside, landings that were not foreseen: elsewhere addresses that
// several instructions form together are not looked for. It returns how many
// regions would be entered if it were not checked who lands where: were there none, the
// run would show nothing.
func (f *fileRegions) check(t *testing.T, l landings) (careless int) {
	t.Helper()
	findings := map[string][]string{"the region at": l.entered(f.free)}
	if f.inside {
		findings["unforeseen:"] = l.unforeseen(f)
	}
	for what, found := range findings {
		for i, text := range found {
			if i == 10 {
				t.Errorf("%s: %s … and %d more", f.name, what, len(found)-i)
				break
			}
			t.Errorf("%s: %s %s", f.name, what, text)
		}
	}
	careless = len(l.entered(f.unchecked))
	t.Logf("%s: %d landings; %d of %d instructions have free regions; heedlessly taken, %d would be entered",
		f.name, len(l), len(f.free), f.insts, careless)
	return careless
}
