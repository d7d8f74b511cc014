package image

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"
)

// aliasRule chooses between the symbols at one address.
type aliasRule struct {
	counts  func(s *symbol, name string) bool
	compare func(a, b *symbol, an, bn string) int // negative: a is preferred; 0: the earlier
}

// choose returns the preferred symbol of a group at one address, or nil if
// none counts, its name, and the largest size that any of them has.
func (r *aliasRule) choose(t *symtab, group []symbol) (best *symbol, name string, size uint64) {
	for i := range group {
		s := &group[i]
		n := t.name(s)
		if !r.counts(s, n) {
			continue
		}
		size = max(size, s.size)
		if best == nil || r.compare(s, best, n, name) < 0 {
			best, name = s, n
		}
	}
	return best, name, size
}

var (
	programRule = aliasRule{countsInProgram, compareInProgram}
	kernelRule  = aliasRule{countsInKernel, compareInKernel}
	ownRule     = aliasRule{countsInKernel, earlier} // kallsyms is in its own order
	moduleRule  = aliasRule{countsInModule, earlier}
)

func earlier(_, _ *symbol, _, _ string) int { return 0 }

// aliasRule returns the rule of the file's kind.
func (im *file) aliasRule(t *symtab, e Extent) *aliasRule {
	switch {
	case t.source == namesOfKernel && t.descriptors == nil:
		return &ownRule
	case im.kind == KindKernel:
		return &kernelRule
	case im.kind == KindModule && e == ExtentNext:
		return &moduleRule
	}
	return &programRule
}

func countsInProgram(s *symbol, name string) bool {
	switch s.typ() {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC, elf.STT_OBJECT:
		return true
	}
	return s.typ() == elf.STT_NOTYPE && !isMapping(name) && !isLocalLabel(name)
}

// compareInProgram prefers functions with a size to labels, then global names
// to local ones, then the plainest name.
func compareInProgram(a, b *symbol, an, bn string) int {
	return cmp.Or(
		cmp.Compare(last(a.typ() == elf.STT_NOTYPE), last(b.typ() == elf.STT_NOTYPE)),
		cmp.Compare(last(a.size == 0), last(b.size == 0)),
		cmp.Compare(last(a.bind() == elf.STB_LOCAL), last(b.bind() == elf.STB_LOCAL)),
		cmp.Compare(last(a.bind() == elf.STB_WEAK), last(b.bind() == elf.STB_WEAK)),
		cmp.Compare(ornaments(an), ornaments(bn)),
		cmp.Compare(len(an), len(bn)),
		cmp.Compare(an, bn),
	)
}

// ornaments counts the underscores and dots that a name starts with.
func ornaments(name string) int { return len(name) - len(strings.TrimLeft(name, "_.")) }

// Names that are not in a kernel's own table of symbols [scripts/mksysmap,
// scripts/kallsyms.c].
var (
	hiddenPrefixes = []string{
		"$", ".L", "L0", "__efistub_", "__pi_$", "__pi_.L", "__kvm_nvhe_$", "__kvm_nvhe_.L",
		"__kcfi_typeid_", "__crc_", "__kstrtab_", "__kstrtabns_",
	}
	hiddenParts = []string{".long_branch.", ".plt_branch."}
)

func countsInKernel(_ *symbol, name string) bool {
	if c := name[0]; c == '$' || c == '.' || c == '_' || c == 'L' {
		if slices.ContainsFunc(hiddenPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			return false
		}
	}
	if strings.HasSuffix(name, "_veneer") || strings.HasSuffix(name, "_from_arm") || strings.HasSuffix(name, "_from_thumb") {
		return false
	}
	if dot := strings.IndexByte(name, '.'); dot >= 0 {
		return !slices.ContainsFunc(hiddenParts, func(p string) bool { return strings.Contains(name[dot:], p) })
	}
	return true
}

// compareInKernel orders aliases as scripts/kallsyms.c does: weak symbols and
// what a linker script may have made come last, then those with more
// underscores, then by name, as nm -n lists them.
func compareInKernel(a, b *symbol, an, bn string) int {
	return cmp.Or(
		cmp.Compare(last(a.bind() == elf.STB_WEAK), last(b.bind() == elf.STB_WEAK)),
		cmp.Compare(last(fromLinkerScript(an)), last(fromLinkerScript(bn))),
		cmp.Compare(underscores(an), underscores(bn)),
		cmp.Compare(an, bn),
	)
}

func underscores(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }

// fromLinkerScript reports whether a name looks like one that a linker script
// provides.
func fromLinkerScript(name string) bool {
	if !strings.HasPrefix(name, "__") {
		return false
	}
	for _, p := range []string{"__start_", "__stop_", "__end_"} {
		if strings.HasPrefix(name, p) && len(name) > len(p) {
			return true
		}
	}
	for _, s := range []string{"_start", "_end"} {
		if strings.HasSuffix(name, s) && len(name) > len(s)+2 {
			return true
		}
	}
	return false
}

// countsInModule follows find_kallsyms_symbol [kernel/module/kallsyms.c].
func countsInModule(_ *symbol, name string) bool {
	return !isMapping(name) && !isLocalLabel(name) && !strings.HasPrefix(name, "L0")
}

// Extent says where a function ends.
type Extent uint8

const (
	// ExtentSymbol: where its symbol's size says, else at the next symbol,
	// else at the end of the section.
	ExtentSymbol Extent = iota
	// ExtentNext: at the next symbol whatever its size, as Linux counts
	// [kernel/kallsyms.c].
	ExtentNext
)
