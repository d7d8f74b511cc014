package image

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var allMachines = []string{"amd64", "arm64", "ppc64le", "ppc64"}

func namesFixture(t *testing.T, machine string) *Image {
	t.Helper()
	im, err := OpenFile(filepath.Join("testdata", "elf", "names."+machine+".so"), Options{Demangle: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

// matched lists the names that a pattern selects.
func matched(im *Image, pattern string) string {
	fns, err := im.Match(ExtentSymbol, pattern)
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, f := range fns {
		names = append(names, f.Name)
	}
	return strings.Join(names, " ")
}

func TestWrittenNamesMatch(t *testing.T) {
	for _, machine := range allMachines {
		im := namesFixture(t, machine)
		for _, tt := range []struct{ pattern, want string }{
			{"_ZN2ns4over*", "_ZN2ns4overEi _ZN2ns4overEd _ZN2ns4overEi.cold"},
			{"ns::over*", "_ZN2ns4overEi _ZN2ns4overEd _ZN2ns4overEi.cold"},
			{"ns::over", "_ZN2ns4overEi _ZN2ns4overEd"},
			{"ns::over(int)", "_ZN2ns4overEi"},
			{"ns::o?er(d*)", "_ZN2ns4overEd"},
			{"ns::fill", "_ZN2ns4fillIiEET_S1_"},
			{"ns::fill<int>", "_ZN2ns4fillIiEET_S1_"},
			{"*::fill<*>", "_ZN2ns4fillIiEET_S1_"},
			{"over", `no symbol "over"`},
			{"ns::ovre", `no symbol "ns::ovre" (similar: ns::over(double), ns::over(int))`},
			{"do_sysinfo", `no symbol "do_sysinfo" (similar: do_sysinfo.isra.0)`},
			{"do_sysinfo.constprop.0", `no symbol "do_sysinfo.constprop.0" (similar: do_sysinfo.isra.0)`},
		} {
			if got := matched(im, tt.pattern); got != tt.want {
				t.Errorf("%s: %s: got %s, want %s", machine, tt.pattern, got, tt.want)
			}
		}
	}
}

func TestWrittenNamesResolve(t *testing.T) {
	for _, machine := range allMachines {
		im := namesFixture(t, machine)
		for _, tt := range []struct{ place, want string }{
			{"_ZN2ns4overEi+0x4", "ns::over(int)+4"},
			{"ns::over", "ns::over(int)+0 ns::over(double)+0"},
			{"ns::over+0x4", "ns::over(int)+4 ns::over(double)+4"},
			{"ns::over(double)", "ns::over(double)+0"},
			{"ns::over(int) [clone .cold]", "ns::over(int) [clone .cold]+0"},
			{"ns::fill", "int ns::fill<int>(int)+0"},
			{"NF_HOOK", `no symbol "NF_HOOK" (similar: NF_HOOK.constprop.0)`},
		} {
			var got []string
			places, err := im.Resolve(tt.place)
			if err != nil {
				got = []string{err.Error()}
			}
			for _, p := range places {
				got = append(got, fmt.Sprintf("%s+%d", p.Symbol, p.Offset))
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("%s: %s: got %s, want %s", machine, tt.place, got, tt.want)
			}
		}
	}
}

// Stubs of the linkage table have no symbols: their names are made here.
func TestWrittenNamesOfStubs(t *testing.T) {
	for _, machine := range []string{"amd64", "arm64"} {
		im := namesFixture(t, machine)
		for _, place := range []string{"_ZN2ns8importedEi@plt", "ns::imported(int)@plt", "ns::imported@plt"} {
			places, err := im.Resolve(place)
			if err != nil || len(places) != 1 || places[0].Symbol != "ns::imported(int)@plt" {
				t.Errorf("%s: %s: got %v, %v", machine, place, places, err)
			}
			if got := matched(im, place); got != "_ZN2ns8importedEi@plt" {
				t.Errorf("%s: %s: matches %s", machine, place, got)
			}
		}
	}
}

func TestSelectNamesWhatIsMissing(t *testing.T) {
	im := namesFixture(t, "amd64")
	fns, missing, err := im.Select(ExtentSymbol, []string{"copy*", "hook", "copy_wide", "nowhere"})
	if err != nil || len(fns) != 4 || len(missing) != 2 || missing[0].Name != "hook" || missing[1].Name != "nowhere" {
		t.Errorf("got %v, %v, %v", fns, missing, err)
	}
	var notFound *SymbolNotFoundError
	if _, err := im.Match(ExtentSymbol, "nowhere"); !errors.As(err, &notFound) {
		t.Errorf("got %v", err)
	}
}

// TestInlinedFunctions compares with the entry_pc that readelf prints for the
// entries of inlined.cc; in the object, what is in section .text.
func TestInlinedFunctions(t *testing.T) {
	for _, tt := range []struct{ place, want string }{
		{"outer", "0x1080"},
		{"outer(int)", "0x1080"},
		{"_Z5outeri", "0x1080"},
		{"outer+0x3", "0x1083"},
		{"ns::(anonymous namespace)::hidden", "0x1020 0x1080"},
		{"ns::hidden", "0x1020 0x1080"},
		{"ns::shape::area", "0x1050"},
		{"ns::shape::area(int) const", "0x1050"},
		{"ns::over", "0x10a3 0x10ae"},
		{"ns::over(int)", "0x10a3"},
		{"ns::over(long)", "0x10ae"},
		{"ns::twice", "0x1034 0x1068"},
		{"ns::twice<long>", "0x1068"},
		{"hidden", `no symbol "hidden"`},
		{"ns::area", `no symbol "ns::area"`},
		{"taken", `no symbol "taken"`},
	} {
		for file, text := range map[string]uint64{"inlined.5.amd64.so": 0x1020, "inlined.4.amd64.o": 0} {
			im := fixture(t, file)
			start := uint64(0)
			if text == 0 { // the linker has moved it
				_, start = im.Symbolize(im.Text()[0].Addr)
				text = 0x1020
			} else {
				start = text
			}
			var got []string
			places, err := im.Resolve(tt.place)
			if err != nil {
				got = []string{err.Error()}
			}
			for _, p := range places {
				if !p.Inlined {
					t.Errorf("%s: %s is not told to be inlined", file, tt.place)
				}
				got = append(got, fmt.Sprintf("%#x", p.Addr-start+text))
			}
			if got := strings.Join(got, " "); !strings.HasPrefix(got, tt.want) || len(got) > len(tt.want) && err == nil {
				t.Errorf("%s: %s: got %s, want %s", file, tt.place, got, tt.want)
			}
		}
	}
}

// TestInlinedOnEveryMachine asks for mixed, in names.c, which is inlined into
// two functions.
func TestInlinedOnEveryMachine(t *testing.T) {
	for _, machine := range allMachines {
		im := namesFixture(t, machine)
		places, err := im.Resolve("mixed")
		var got []string
		for _, p := range places {
			got = append(got, p.Symbol)
		}
		if got := strings.Join(got, ", "); err != nil || got != "ns::over(double), int ns::fill<int>(int)" {
			t.Errorf("%s: %v, %v", machine, places, err)
		}
		if places, err := im.Resolve("copy_plain"); err != nil || places[0].Inlined {
			t.Errorf("%s: %v, %v", machine, places, err)
		}
	}
}

// TestInlinedInDamagedSections changes and cuts the sections that speak of
// inlined functions. What is found, if anything, is in text.
func TestInlinedInDamagedSections(t *testing.T) {
	for _, file := range []string{"inlined.5.amd64.so", "inlined.4.amd64.o", "names.ppc64.so"} {
		im := fixture(t, file)
		whole := debugSectionsOf(t, im)
		inText := func(addr uint64) bool { return im.textAt(addr) >= 0 }
		random := rand.New(rand.NewPCG(1, uint64(len(file))))
		found := 0
		for range 1000 {
			damaged := maps.Clone(whole)
			for _, name := range debugSectionNames {
				data := slices.Clone(whole[name])
				if len(data) == 0 || random.IntN(3) > 0 {
					continue
				}
				for range 1 + random.IntN(4) {
					data[random.IntN(len(data))] = byte(random.Uint32())
				}
				if random.IntN(4) == 0 {
					data = data[:random.IntN(len(data))]
				}
				damaged[name] = data
			}
			table := newLineTable(damaged.open, im.order, inText)
			for _, name := range []string{"ns::over", "mixed"} {
				for _, addr := range table.inlined(name) {
					found++
					if !inText(addr) {
						t.Fatalf("%s: %s at %#x", file, name, addr)
					}
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: nothing is found in any", file)
		}
	}
}
