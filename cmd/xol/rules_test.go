//go:build linux

package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"xol/arch"
	"xol/classify"
	"xol/decode"
	"xol/relocate"
)

// The reference of rules is made from the code: rules and hazards are the composite
// literals of their types, wherever they stand, so that none can be forgotten. For each
// there is a command that makes xol give it, in rules.txt; from what it answers in every
// profile the page knows the versions.

var find = flag.Bool("find", false, "look for commands that give the rules which testdata/rules.txt has none for, and add them")

const ruleExamples = "testdata/rules.txt"

// jumpCases are the cases of the tests of package analyze.
const jumpCases = "../../../analyze/testdata/optimize/"

// ruleEntry is a rule, a hazard or a note as the code has it.
type ruleEntry struct {
	id, kind, text, remedy string
	errno                  classify.Errno
	pkg                    string
}

// entries returns all rules of the code by their identifiers. One may stand there
// several times, with other error numbers.
func entries(t *testing.T) map[string][]ruleEntry {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		Dir:  filepath.Join("..", ".."),
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]ruleEntry{}
	for _, p := range pkgs {
		for _, err := range p.Errors {
			t.Fatal(err)
		}
		if strings.Contains(p.PkgPath, "/internal/") {
			continue
		}
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				if lit, ok := n.(*ast.CompositeLit); ok {
					if e, ok := entryOf(p, lit); ok && !slices.Contains(all[e.id], e) {
						all[e.id] = append(all[e.id], e)
					}
				}
				return true
			})
		}
	}
	for id := range all {
		slices.SortFunc(all[id], func(a, b ruleEntry) int { return cmp.Or(int(a.errno)-int(b.errno), cmp.Compare(a.text, b.text)) })
	}
	return all
}

var ruleKinds = map[string]string{"xol/classify.Rule": "refused", "xol/classify.Hazard": "hazard", "xol/classify.Note": "note"}

// entryOf reads a composite literal.
func entryOf(p *packages.Package, lit *ast.CompositeLit) (e ruleEntry, ok bool) {
	typ := p.TypesInfo.TypeOf(lit)
	if typ == nil {
		return e, false
	}
	e.kind, e.pkg = ruleKinds[types.Unalias(typ).String()], p.PkgPath
	if e.kind == "" {
		return e, false
	}
	fields, ok := typ.Underlying().(*types.Struct)
	if !ok {
		return e, false
	}
	for i, el := range lit.Elts {
		name, value := fields.Field(i).Name(), el
		if kv, ok := el.(*ast.KeyValueExpr); ok {
			name, value = kv.Key.(*ast.Ident).Name, kv.Value
		}
		v := p.TypesInfo.Types[value].Value
		if v == nil {
			continue
		}
		switch name {
		case "ID":
			e.id = constant.StringVal(v)
		case "Reason", "Text":
			e.text = constant.StringVal(v)
		case "Remedy":
			e.remedy = constant.StringVal(v)
		case "Errno":
			n, _ := constant.Int64Val(v)
			e.errno = classify.Errno(n)
		}
	}
	return e, e.id != ""
}

// readExamples returns the command for each rule that there is one for.
func readExamples(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(ruleExamples)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if id, command, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			all[id] = command
		}
	}
	return all
}

// gives reports whether what a command prints has the rule.
func gives(out string, list []ruleEntry) bool {
	out = squeezed(out)
	for _, e := range list {
		if e.kind == "refused" && regexp.MustCompile(regexp.QuoteMeta(e.id)+`($|[^a-z0-9-])`).MatchString(out) {
			return true
		}
		if e.kind != "refused" && (strings.Contains(out, squeezed(e.text)) || strings.Contains(out, "("+e.id+")")) {
			return true
		}
	}
	return false
}

// squeezed makes one line of what was broken into several.
func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }

var profileArgument = regexp.MustCompile(`--profile (\S+)`)

// TestPagesOfRules compares the reference of rules with the code.
func TestPagesOfRules(t *testing.T) {
	all := entries(t)
	if len(all) < 200 {
		t.Fatalf("%d rules found", len(all))
	}
	examples := readExamples(t)
	if *find {
		findExamples(t, all, examples)
		writeExamples(t, examples)
	}
	tested := mentioned(t)
	for id := range examples {
		if all[id] == nil {
			t.Errorf("%s: there is no such rule any more", id)
		}
	}
	families := map[string]*strings.Builder{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		family, _, _ := strings.Cut(id, "/")
		b := families[family]
		if b == nil {
			b = new(strings.Builder)
			families[family] = b
			fmt.Fprintf(b, "# Rules: %s\n\n%s\n", family, familyText(family))
		}
		section(t, b, id, all[id], examples[id], tested[id])
	}
	var pages []page
	index := "# Rules\n\nEvery verdict names its rule. An identifier never changes.\n\n"
	for _, family := range slices.Sorted(maps.Keys(families)) {
		pages = append(pages, page{family, families[family].String()})
		index += fmt.Sprintf("- [%s](rules/%s.md): %s\n", family, family, lowerFirst(familyText(family)))
	}
	index += "\nA *hazard* is a probe that the kernel accepts and then carries out wrongly; a *note* says\nwhat changes no result. [What Linux gets wrong](../explain/hazards.md) tells how we know.\n"
	comparePages(t, "reference/rules", ".md", pages)
	comparePages(t, "reference", "rules.md", []page{{"", index}})
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func familyText(family string) string {
	switch family {
	case "linux":
		return "What Linux asks on every architecture."
	case "tracing":
		return "What tracing (tracefs, perf) refuses before the instruction is looked at."
	case "bpf":
		return "What the interface for BPF programs refuses before the instruction is looked at."
	case "isa":
		return "What follows from how code is laid out, whatever kernel there is."
	case "notation":
		return "What is no probe in the notation that it is written in."
	case "process":
		return "What cannot be done to a running process."
	case "runtime":
		return "What the runtime of package runtime refuses."
	}
	return "What follows from the instruction set " + family + ", and what Linux makes of it."
}

// section writes what there is to say of a rule.
func section(t *testing.T, b *strings.Builder, id string, list []ruleEntry, command, test string) {
	t.Helper()
	fmt.Fprintf(b, "\n## %s\n\n", id)
	e := list[0]
	var errnos []string
	for _, one := range list {
		if one.errno != 0 {
			errnos = append(errnos, fmt.Sprintf("%v (%d)", one.errno, one.errno))
		}
	}
	errnos = slices.Compact(errnos)
	head := strings.ToUpper(e.kind[:1]) + e.kind[1:]
	if len(errnos) > 0 {
		head += " with " + strings.Join(errnos, " or ")
	}
	fmt.Fprintf(b, "%s: %s.\n", head, strings.TrimSuffix(e.text, "."))
	if e.remedy != "" {
		fmt.Fprintf(b, "\nInstead: %s.\n", strings.TrimSuffix(e.remedy, "."))
	}
	switch {
	case command != "":
		profiles := answering(t, command, list)
		if len(profiles) == 0 {
			t.Errorf("%s: xol %s does not give it", id, command)
		}
		if spans := spansOf(profiles); spans != "" {
			noun := "profiles"
			if len(profiles) == 1 {
				noun = "profile"
			}
			fmt.Fprintf(b, "\nIn the %s %s.\n", noun, spans)
		}
		fmt.Fprintf(b, "\n    xol %s\n", command)
	case test != "":
		fmt.Fprintf(b, "\nMade by the tests in `%s`.\n", test)
	default:
		t.Errorf("%s: no command of %s gives it and no test speaks of it", id, ruleExamples)
	}
}

// answering returns the profiles in which a command gives a rule; "" stands for a
// command without a profile.
func answering(t *testing.T, command string, list []ruleEntry) (profiles []string) {
	t.Helper()
	t.Chdir("testdata")
	defer t.Chdir("..")
	if !profileArgument.MatchString(command) {
		if inv := xol(command, ""); gives(inv.stdout+inv.stderr, list) {
			return []string{""}
		}
		return nil
	}
	for _, profile := range allProfiles() {
		inv := xol(profileArgument.ReplaceAllString(command, "--profile "+profile), "")
		if gives(answerOf(inv.stdout+inv.stderr, profile), list) {
			profiles = append(profiles, profile)
		}
	}
	return profiles
}

// answerOf returns what a command says of one profile, where it explains several.
func answerOf(out, profile string) string {
	from := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(profile) + ` `).FindStringIndex(out)
	if from == nil {
		return out
	}
	answer := out[from[0]:]
	if next := regexp.MustCompile(`\n\S`).FindStringIndex(answer); next != nil {
		answer = answer[:next[0]]
	}
	return answer
}

// spansOf names profiles: runs of versions by their first and last.
func spansOf(profiles []string) string {
	var parts []string
	for _, mechanism := range []string{"isa", "linux-", "uprobe-linux-"} {
		var known []string
		for _, p := range allProfiles() {
			if p == mechanism || mechanism != "isa" && strings.HasPrefix(p, mechanism) {
				known = append(known, p)
			}
		}
		for i := 0; i < len(known); i++ {
			if !slices.Contains(profiles, known[i]) {
				continue
			}
			first := i
			for i+1 < len(known) && slices.Contains(profiles, known[i+1]) {
				i++
			}
			if part := known[first]; i > first {
				parts = append(parts, part+" to "+strings.TrimPrefix(known[i], mechanism))
			} else {
				parts = append(parts, part)
			}
		}
	}
	return strings.Join(parts, ", ")
}

// mentioned returns for each identifier that a test, or a case of the matrix, speaks of
// the file of the first one. The tests of an instruction set leave its name out.
func mentioned(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := filepath.Join("..", "..")
	id := regexp.MustCompile(`\b([a-z0-9]+/[a-z0-9]+-?[a-z0-9-]*)`)
	tail := regexp.MustCompile(`\b([a-z0-9]+-[a-z0-9-]+)`)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		cases := strings.HasPrefix(filepath.Base(path), "cases_") || filepath.Base(filepath.Dir(path)) == "optimize" && filepath.Ext(path) == ".tsv"
		if err != nil || !strings.HasSuffix(path, "_test.go") && !cases {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		note := func(id string) {
			if found[id] == "" {
				found[id] = filepath.ToSlash(rel)
			}
		}
		for _, m := range id.FindAllSubmatch(data, -1) {
			note(string(m[1]))
		}
		if dir := filepath.Dir(rel); filepath.Dir(dir) == "arch" {
			for _, m := range tail.FindAllSubmatch(data, -1) {
				note(filepath.Base(dir) + "/" + string(m[1]))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func writeExamples(t *testing.T, examples map[string]string) {
	t.Helper()
	var b bytes.Buffer
	for _, id := range slices.Sorted(maps.Keys(examples)) {
		fmt.Fprintf(&b, "%s\t%s\n", id, examples[id])
	}
	if err := os.WriteFile(ruleExamples, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// findExamples looks for commands that give rules which have none yet: among those of
// the golden files, by instructions at random, and at every place of the fixtures.
func findExamples(t *testing.T, all map[string][]ruleEntry, examples map[string]string) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for _, isa := range allISAs() {
		findLone(r, isa, all, examples)
	}
	t.Chdir("testdata")
	defer t.Chdir("..")
	try := func(command string) { // in the folder testdata
		inv := xol(command, "")
		for id, list := range all {
			if examples[id] == "" && gives(inv.stdout+inv.stderr, list) {
				examples[id] = command
			}
		}
	}
	tables, _ := filepath.Glob(jumpCases + "*.tsv")
	for _, table := range tables {
		data, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		isa := strings.TrimSuffix(filepath.Base(table), ".tsv")
		for line := range strings.Lines(string(data)) {
			// Name, file, profile, place, other probe, answer, culprit.
			f := strings.Split(strings.TrimSpace(line), "\t")
			if len(f) < 6 || all[f[5]] == nil || examples[f[5]] != "" {
				continue
			}
			command := "explain --profile " + f[2] + " " + jumpCases + f[1] + "." + isa + " " + f[3]
			if f[4] != "-" {
				command += " --armed " + f[4]
			}
			try(command)
		}
	}
	files, _ := filepath.Glob("*.elf")
	files = append(files, "../../../docs/examples/demo")
	for _, file := range files {
		for _, profile := range allProfiles() {
			inv := xol("analyze --insns -o csv --profile "+profile+" "+file, "")
			for line := range strings.Lines(inv.stdout) {
				f := strings.Split(line, ",")
				for id, list := range all {
					if examples[id] == "" && len(f) > 2 && gives(strings.ReplaceAll(line, ",", " "), list) {
						try("explain --profile " + profile + " " + file + " " + f[1])
					}
				}
			}
		}
		for _, via := range []string{"register", "kprobe_events", "perf", "bpf"} {
			for _, place := range []string{"vfs_read", "vfs_read+4", "vfs_read+0xffffff", "r:p/x vfs_read+9", "nosuch", "kprobe:nosuch", "forbidden", "kretprobe:vfs_read+9", "vfs_read%return"} {
				for _, profile := range []string{"linux-5.10", "linux-6.12", "linux-7.3"} {
					try("explain --via " + via + " --profile " + profile + " " + file + " '" + place + "'")
				}
			}
		}
	}
	golden, _ := filepath.Glob("*.golden")
	for _, file := range golden {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, inv := range goldenCommands(string(data)) {
			if inv.stdin == "" {
				try(inv.command)
			}
		}
	}
}

// findLone tries instructions of an ISA at random.
func findLone(r *rand.Rand, isa arch.ISA, all map[string][]ruleEntry, examples map[string]string) {
	var profiles []classify.Profile
	for _, name := range isa.Profiles() {
		p, _ := isa.Profile(name, classify.KernelOptions{Preemption: true})
		profiles = append(profiles, p)
	}
	mover, _ := arch.Relocation(isa)
	note := func(id, command string) {
		if all[id] != nil && examples[id] == "" {
			examples[id] = command
		}
	}
	for range 300_000 {
		code := randomInst(r, isa)
		var inst decode.Inst
		n := len(code)
		if isa.Decode(&inst, code, 0x1000) == nil {
			n = int(inst.Len)
		}
		hex := fmt.Sprintf("%x", code[:n])
		for _, p := range profiles {
			v := p.Lone(code[:n], 0)
			command := fmt.Sprintf("decode --arch %s --profile %s -o jsonl %s", isa.Name(), p.Name(), hex)
			if v.Rule != nil {
				note(v.Rule.ID, command)
			}
			if v.Hazard != nil {
				note(v.Hazard.ID, command)
			}
			for m := range v.Notes.All() {
				note(m.ID, command)
			}
		}
		if inst.Len == 0 || mover == nil {
			continue
		}
		for _, form := range []relocate.Form{relocate.Slot, relocate.Region} {
			var plan relocate.Plan
			if refused, ok := mover.Plan(&plan, []decode.Inst{inst}, relocate.Options{Form: form}).(*relocate.RefusedError); ok {
				command := fmt.Sprintf("relocate --arch %s --from 0x1000 --to 0x40000000 --form %s %s", isa.Name(), []string{"slot", "region"}[form], hex)
				if id := refused.Rule.ID; examples[id] == "" && gives(xol(command, "").stderr, all[id]) {
					note(id, command)
				}
			}
		}
	}
}

// randomInst returns bytes that are likely to be an instruction.
func randomInst(r *rand.Rand, isa arch.ISA) []byte {
	if isa.Align() > 1 {
		code := make([]byte, 8)
		for i := range code {
			code[i] = byte(r.Uint32())
		}
		return code
	}
	starts := []string{"", "", "", "\x66", "\xf2", "\xf3", "\xf0", "\x2e", "\x3e", "\x67", "\x41", "\x48", "\x4c", "\x66\x48", "\x40\x66", "\x48\x66",
		"\x0f", "\x0f", "\x0f\x01", "\x66\x0f", "\xf3\x0f", "\xf2\x0f", "\x0f\x38", "\x0f\x3a", "\xc5\xf8", "\xc5\xfc", "\xc4\xe2\x79", "\xc4\xe1\xf8",
		"\x62\xf1\x7c\x48", "\x62\xf2\x7d\x48", "\xd5\x08", "\xd5\x11", "\xd5\x80", "\x8f\xe9\x78", "\x8f\xe8\x78", "\x66\x66\x66\x66\x90", "\xff", "\x48\xff", "\x66\xff"}
	code := []byte(starts[r.IntN(len(starts))])
	for len(code) < 15 {
		b := byte(r.Uint32())
		if r.IntN(3) == 0 {
			b = 0
		}
		code = append(code, b)
	}
	return code
}
