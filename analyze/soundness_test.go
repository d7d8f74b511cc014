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

// freeRegion is the bytes that a jump may replace: nobody may land strictly
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

// fileRegions holds the free regions of a file, by address, as the profile isa has
// them, and as they are where nobody looks who lands there.
type fileRegions struct {
	name            string
	free, unchecked []freeRegion
	insts           int
}

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
	type found struct {
		free, unchecked []freeRegion
		insts           int
	}
	j := &fileRegions{name: path}
	careless := heedless(uint64(a.ISA.JumpLen()))
	work := func(r *analyze.Result) found { return found{sound(r), careless(r), len(r.Insts)} }
	err = analyze.Each(context.Background(), a, a.Functions(), work, func(f found) error {
		j.free = append(j.free, f.free...)
		j.unchecked = append(j.unchecked, f.unchecked...)
		j.insts += f.insts
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, regions := range [][]freeRegion{j.free, j.unchecked} {
		slices.SortFunc(regions, func(a, b freeRegion) int { return cmp.Compare(a.addr, b.addr) })
	}
	return j
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

// check reports the regions called free that a run entered. It returns how many
// there would be if nobody looked who lands where: were there none, the run
// would show nothing.
func (j *fileRegions) check(t *testing.T, l landings) (careless int) {
	t.Helper()
	found := l.entered(j.free)
	for i, f := range found {
		if i == 20 {
			t.Errorf("%s: and %d more", j.name, len(found)-i)
			break
		}
		t.Errorf("%s: the region at %s", j.name, f)
	}
	careless = len(l.entered(j.unchecked))
	t.Logf("%s: %d landings; %d of %d instructions have free regions; heedlessly taken, %d would be entered",
		j.name, len(l), len(j.free), j.insts, careless)
	return careless
}
