package analyze_test

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/kernel"
	"xol/optcheck"
)

const caseDir = "testdata/optimize"

// caseTables are the tables of cases, and the ISAs that each is for. A table's
// column file names the start of a file's name; the rest is the ISA's.
var caseTables = []struct {
	table string
	isas  []string
}{
	{"amd64", []string{"amd64"}},
	{"arm64", []string{"arm64"}},
	{"ppc64", []string{"ppc64", "ppc64le"}},
}

// sameAs are files without symbols, and those that they were made from.
var sameAs = map[string]string{"stripped": "pie"}

// jumpCase is a row of a table: what a probe at a place becomes. answer is "ok",
// with the bytes of the region and how many of them are moved, or the rule that
// refuses the jump, or "-" where there can be no probe.
type jumpCase struct {
	name, file, profile, place, armed, answer, culprit string
	line                                               int
}

func readCases(t *testing.T, table string) (cases []jumpCase) {
	t.Helper()
	path := filepath.Join(caseDir, table+".tsv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for n := 1; lines.Scan(); n++ {
		if line := lines.Text(); line != "" && line[0] != '#' {
			col := strings.Split(line, "\t")
			if len(col) != 7 {
				t.Fatalf("%s:%d: %d columns", path, n, len(col))
			}
			cases = append(cases, jumpCase{col[0], col[1], col[2], col[3], col[4], col[5], col[6], n})
		}
	}
	return cases
}

// caseFile is a file of the cases, with the addresses of its symbols.
type caseFile struct {
	img     *image.Image
	symbols map[string]uint64
	judging map[string]*analyze.Analysis // by profile
}

type caseFiles map[string]*caseFile

func (fs caseFiles) open(t *testing.T, file, isa string) *caseFile {
	t.Helper()
	path := filepath.Join(caseDir, file+"."+isa)
	if f := fs[path]; f != nil {
		return f
	}
	img, err := image.OpenFile(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	f := &caseFile{img, map[string]uint64{}, map[string]*analyze.Analysis{}}
	if twin, ok := sameAs[file]; ok {
		file = twin
	}
	readSymbols(t, f, filepath.Join(caseDir, file+"."+isa))
	fs[path] = f
	return f
}

// readSymbols gives f the symbols of the file at path. In a relocatable file
// they count from where the image puts their sections.
func readSymbols(t *testing.T, f *caseFile, path string) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	base := map[string]uint64{}
	if file.Type == elf.ET_REL {
		for _, r := range f.img.Text() {
			base[r.Section] = r.Addr
		}
	}
	for _, s := range list {
		if int(s.Section) < len(file.Sections) && s.Section != elf.SHN_UNDEF {
			f.symbols[s.Name] = s.Value + base[file.Sections[s.Section].Name]
		}
	}
}

// address returns what a place like "symbol+5" or "0x401000" means.
func (f *caseFile) address(t *testing.T, place string) uint64 {
	t.Helper()
	if addr, err := strconv.ParseUint(place, 0, 64); err == nil {
		return addr
	}
	name, offset, _ := strings.Cut(place, "+")
	base, known := f.symbols[name]
	off, err := strconv.ParseUint(offset, 0, 64)
	if !known || err != nil {
		t.Fatalf("no place %s in the file", place)
	}
	return base + off
}

// analysis returns the file ready to be judged by a profile, which may be
// followed by an option of the kernel: "noretpoline", or "slots=" and where the
// detour buffers of ppc64 are.
func (f *caseFile) analysis(t *testing.T, profile string) *analyze.Analysis {
	t.Helper()
	if a := f.judging[profile]; a != nil {
		return a
	}
	name, option, _ := strings.Cut(profile, " ")
	facts := kernel.Facts{Given: map[kernel.Option]bool{}}
	var slots uint64
	switch key, value, _ := strings.Cut(option, "="); key {
	case "":
	case "noretpoline":
		facts.Given[kernel.Retpoline], facts.Given[kernel.IBT] = false, false
	case "slots":
		var err error
		if slots, err = strconv.ParseUint(value, 0, 64); err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatalf("no option %s", option)
	}
	a, err := analyze.New(f.img, analyze.Options{Profile: name, Kernel: facts, Optimize: true})
	if err != nil {
		t.Fatal(err)
	}
	if slots != 0 { // the file has no symbol for it
		opt := a.Kernel.Options()
		opt.Symbol = func(name string) (uint64, bool) { return slots, name == "optinsn_slot" }
		a.Optimizer, _ = a.ISA.Optimizer(name, opt)
	}
	f.judging[profile] = a
	return a
}

// verdict returns what a probe at addr becomes; probed is false where there can
// be none.
func (c *jumpCase) verdict(t *testing.T, f *caseFile, addr uint64) (v optcheck.Verdict, probed bool) {
	t.Helper()
	a := f.analysis(t, c.profile)
	fn, ok := a.FunctionAt(addr)
	if !ok {
		t.Fatalf("no function at %#x", addr)
	}
	r := a.Judge(fn)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	i, start := decode.Find(r.Insts, addr)
	if !start {
		t.Fatalf("no instruction at %#x", addr)
	}
	verdicts := r.Optimize
	if c.armed != "-" {
		judged := &optcheck.Function{Func: &r.Func, Verdicts: r.Verdicts}
		for place := range strings.SplitSeq(c.armed, " ") {
			judged.Armed = append(judged.Armed, f.address(t, place))
		}
		verdicts = a.Optimizer.Func(nil, judged, new(optcheck.Scratch))
	}
	return verdicts[i], r.Verdicts[i].OK()
}

func answer(v *optcheck.Verdict, probed bool) string {
	switch {
	case v.OK():
		return fmt.Sprintf("ok %d %d", v.Region, v.Moved)
	case v.Rule != nil:
		return v.Rule.ID
	case probed:
		return "no answer"
	}
	return "-"
}

// TestJumpCases compares with tables that were made by hand from the sources
// beside them, the rules, and what the architectures' manuals and the kernel's
// sources say.
func TestJumpCases(t *testing.T) {
	for _, table := range caseTables {
		cases := readCases(t, table.table)
		for _, isa := range table.isas {
			files := caseFiles{}
			for i := range cases {
				c := &cases[i]
				t.Run(isa+"/"+c.name, func(t *testing.T) { c.check(t, files.open(t, c.file, isa), table.table) })
			}
		}
	}
}

func (c *jumpCase) check(t *testing.T, f *caseFile, table string) {
	addr := f.address(t, c.place)
	culprit := uint64(0)
	if c.culprit != "-" {
		culprit = f.address(t, c.culprit)
	}
	v, probed := c.verdict(t, f, addr)
	if got := answer(&v, probed); got != c.answer || v.Culprit != culprit {
		t.Errorf("%s.tsv:%d: %s (%#x): got %s, culprit %#x, want %s, culprit %#x",
			table, c.line, c.place, addr, got, v.Culprit, c.answer, culprit)
	}
}

func TestJumpCasesHaveNamesOfTheirOwn(t *testing.T) {
	for _, table := range caseTables {
		seen := map[string]bool{}
		for _, c := range readCases(t, table.table) {
			if seen[c.name] {
				t.Errorf("%s.tsv:%d: there is another %q", table.table, c.line, c.name)
			}
			seen[c.name] = true
		}
	}
}

// ruleFiles are the sources that hold the rules on jumps, by table; the last
// ones are rules of all ISAs.
var ruleFiles = []string{"region.go", "optimize.go", "optimize_rules.go", "relocate.go"}

// unreached are rules that no probe is refused by, and why.
var unreached = map[string]string{
	"amd64/move-far-jump":      inReach,
	"amd64/move-scratch":       inReach,
	"amd64/move-stack-pointer": inReach,

	"arm64/move-far-jump":      inReach,
	"arm64/move-scratch":       inReach,
	"arm64/move-memory-copy":   notProbed,
	"arm64/move-signature":     notProbed,
	"arm64/move-simulated":     "Linux has no detour buffers on arm64",
	"arm64/region-data":        notProbed,
	"arm64/region-ftrace-site": notProbed,
	"arm64/region-jump-label":  notProbed,
	"arm64/region-undecodable": notProbed,
	"arm64/region-other-probe": oneInstruction,

	"ppc64/move-branch-into-instruction": "no instruction of a region branches to its own suffix",
	"ppc64/move-scratch":                 inReach,
	"ppc64/move-stack-pointer":           inReach,
	"ppc64/move-target-register":         inReach,
	"ppc64/region-undecodable":           notProbed,
}

const (
	inReach        = "only where the buffer is out of reach of what the instruction refers to"
	notProbed      = "no probe may be there, and the jump replaces nothing else"
	oneInstruction = "the jump replaces one instruction only"
)

// TestEveryJumpRuleHasACase reads the sources, so that a new rule without a case
// fails.
func TestEveryJumpRuleHasACase(t *testing.T) {
	given := map[string]bool{}
	for _, table := range caseTables {
		for _, c := range readCases(t, table.table) {
			given[c.answer] = true
		}
	}
	var rules []string
	for _, table := range caseTables {
		for _, name := range ruleFiles {
			rules = append(rules, ruleIDs(t, filepath.Join("..", "arch", table.table, name))...)
		}
	}
	rules = append(rules, ruleIDs(t, filepath.Join("..", "optcheck", "refuse.go"))...)
	if len(rules) < 50 {
		t.Fatalf("only %d rules found", len(rules))
	}
	for _, id := range rules {
		why := unreached[id]
		switch {
		case given[id] && why != "":
			t.Errorf("%s has a case, but is said not to be reached: %s", id, why)
		case !given[id] && why == "":
			t.Errorf("%s has no case", id)
		}
	}
	for id := range unreached {
		if !slices.Contains(rules, id) {
			t.Errorf("%s is said not to be reached, but is no rule", id)
		}
	}
}

// ruleIDs returns the identifiers of the rules that a source file lists: those
// of notes, which have no Reason, are not among them.
func ruleIDs(t *testing.T, path string) (ids []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		fields := map[string]ast.Expr{}
		for _, e := range lit.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok {
					fields[key.Name] = kv.Value
				}
			}
		}
		id, ok := fields["ID"].(*ast.BasicLit)
		if ok && fields["Reason"] != nil {
			if s, err := strconv.Unquote(id.Value); err == nil {
				ids = append(ids, s)
			}
		}
		return true
	})
	return ids
}

// checkVerdicts judges all of a file, whatever it holds, and returns how many
// verdicts there are and what is wrong with one. An error of the file itself is
// nothing wrong.
func checkVerdicts(img *image.Image, profile string) (verdicts int, err error) {
	a, err := analyze.New(img, analyze.Options{Profile: profile, Optimize: true})
	if err != nil {
		return 0, nil
	}
	for _, f := range a.Functions() {
		r := a.Judge(f)
		if r.Err != nil {
			continue
		}
		verdicts += len(r.Optimize)
		if len(r.Optimize) != len(r.Insts) {
			return 0, fmt.Errorf("%s: %d verdicts on %d instructions", f.Name, len(r.Optimize), len(r.Insts))
		}
		for i := range r.Optimize {
			if what := wrongVerdict(r, i, uint64(a.ISA.JumpLen())); what != "" {
				return 0, fmt.Errorf("%s+%#x: %s: %+v", f.Name, r.Insts[i].Addr-f.Addr, what, r.Optimize[i])
			}
		}
	}
	return verdicts, nil
}

func wrongVerdict(r *analyze.Result, i int, jump uint64) string {
	v := &r.Optimize[i]
	switch {
	case v.OK() && v.Rule != nil:
		return "both allowed and refused"
	case v.OK() && !r.Verdicts[i].OK():
		return "allowed where no probe may be"
	case v.OK() && (v.Moved == 0 || v.Moved > v.Region || uint64(v.Region) < jump):
		return "a region that is none"
	case v.Rule != nil && (v.Rule.ID == "" || v.Rule.Reason == ""):
		return "a refusal without a reason"
	case !v.OK() && v.Rule == nil && r.Verdicts[i].OK():
		return "no answer"
	}
	return ""
}

var jumpProfiles = []string{classify.ISA, classify.Linux612, classify.Uprobe612}

// caseFileNames returns the names of the files that the tables speak of.
func caseFileNames(t testing.TB) (names []string) {
	t.Helper()
	for _, table := range caseTables {
		for _, isa := range table.isas {
			found, err := filepath.Glob(filepath.Join(caseDir, "*."+isa))
			if err != nil || len(found) == 0 {
				t.Fatalf("no files for %s: %v", isa, err)
			}
			names = append(names, found...)
		}
	}
	return names
}

// TestOverlappingSections lays each section of a file over each other one.
func TestOverlappingSections(t *testing.T) {
	for _, name := range caseFileNames(t) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		table := file.ByteOrder.Uint64(data[0x28:]) // e_shoff
		judged := 0
		for i := range file.Sections {
			for j := range file.Sections {
				if file.Sections[i].Flags&file.Sections[j].Flags&elf.SHF_ALLOC == 0 {
					continue
				}
				const headerSize, addrAt = 64, 16
				changed := slices.Clone(data)
				at := table + uint64(i)*headerSize + addrAt
				file.ByteOrder.PutUint64(changed[at:], file.Sections[j].Addr+1)
				for _, profile := range jumpProfiles {
					n, err := judgeBytes(changed, profile)
					if err != nil {
						t.Errorf("%s, section %d over %d, %s: %v", name, i, j, profile, err)
					}
					judged += n
				}
			}
		}
		if judged == 0 && file.Type != elf.ET_REL { // whose sections have no addresses
			t.Errorf("%s: nothing was judged", name)
		}
	}
}

func judgeBytes(data []byte, profile string) (verdicts int, err error) {
	img, err := image.Open(bytes.NewReader(data), int64(len(data)), image.Options{})
	if err != nil {
		return 0, nil
	}
	defer img.Close()
	return checkVerdicts(img, profile)
}

// FuzzJumps judges any file.
func FuzzJumps(f *testing.F) {
	for _, name := range caseFileNames(f) {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for i := range jumpProfiles {
			f.Add(data, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, profile uint8) {
		if _, err := judgeBytes(data, jumpProfiles[int(profile)%len(jumpProfiles)]); err != nil {
			t.Error(err)
		}
	})
}
