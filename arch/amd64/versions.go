package amd64

import "xol/classify"

// The branches of Linux of which something is known.
var (
	linux5_10 = classify.Linux(5, 10)
	linux6_1  = classify.Linux(6, 1)
	linux6_12 = classify.Linux(6, 12)
	linux6_16 = classify.Linux(6, 16)
	linux6_17 = classify.Linux(6, 17)
	linux6_18 = classify.Linux(6, 18)
	linux6_19 = classify.Linux(6, 19)
	linux7_0  = classify.Linux(7, 0)
	linux7_1  = classify.Linux(7, 1)
	linux7_2  = classify.Linux(7, 2)
	linux7_3  = classify.Linux(7, 3)
)

// known are the versions of which it is known how they answer: the kernels were
// asked. 5.10 was at patch level 218 then; what its later levels do otherwise is
// read in their source.
var known = classify.Known{
	Kprobes: classify.Releases{linux5_10, linux6_1, linux6_12, linux7_3},
	Uprobes: classify.Releases{
		linux5_10, linux5_10.Patch(262), linux6_1, linux6_12, linux6_16, linux6_17, linux6_18,
		linux6_19, linux7_0, linux7_1, linux7_2, linux7_3,
	},
}

// Profiles returns the names of the ISA's profiles. That of a version between
// two of them is answered by the older one.
func (ISA) Profiles() []string { return known.Names() }

func since(v classify.Version) classify.Span { return classify.Span{Since: v} }
func until(v classify.Version) classify.Span { return classify.Span{Until: v} }

// behavior is a set of things that some versions of Linux do and others do not.
type behavior uint32

const (
	// Of the instruction decoder.

	knowsREX2    behavior = 1 << iota // D5 is a prefix
	knowsXOP                          // 8F with a map is a prefix
	vexAfterREX                       // VEX and EVEX are prefixes after REX as well
	wideEVEXMap                       // EVEX has three bits for the map, not two
	stopsAtNot64                      // what 64-bit mode lacks has no operands

	// Of uprobes.

	uprobeNOP90     // 90 with any prefix, in any map, is emulated as a NOP
	uprobeOwnNOPs   // so are the NOPs of up to 8 bytes that the kernel itself uses
	uprobeAllNOPs   // instead, what truly does nothing is
	uprobeCallNOP5  // a NOP of 5 bytes becomes a call
	uprobeCallNOP10 // a NOP of 10 bytes is accepted, and becomes one

	// Of kprobes.

	kprobeRefusesTraps // what traps on purpose is looked for, and refused
	kprobeMovesEntry   // with CONFIG_X86_KERNEL_IBT a probe on an ENDBR is put after it
	kprobeBoostsGroups // the groups 2 to 5 pass the boost test, as their members do
	kprobeNoIndirect   // a function with an indirect jump is never optimized
)

// changes says which versions do what. Where the kernels between two that were
// asked were not, the change is put at the later one. What differs in the
// decoder's maps is in kernelMapChanges, what goes wrong in uprobeHazards.
var changes = [...]struct {
	what     behavior
	versions classify.Span
}{
	{wideEVEXMap, since(linux6_1)},
	{knowsREX2, since(linux6_12)},
	{stopsAtNot64, since(linux6_16)},
	{knowsXOP, since(linux6_18)},
	{vexAfterREX, until(linux6_18)},
	{uprobeOwnNOPs, classify.Span{Since: linux6_18, Until: linux6_19}},
	{uprobeNOP90, until(linux6_19)},
	{uprobeAllNOPs, since(linux6_19)},
	{uprobeCallNOP5, classify.Span{Since: linux6_18, Until: linux7_2}},
	{uprobeCallNOP10, since(linux7_2)},
	{kprobeRefusesTraps, since(linux6_12)},
	{kprobeMovesEntry, since(linux6_1)},
	{kprobeBoostsGroups, since(linux6_12)},
	{kprobeNoIndirect, until(linux6_12)},
}

// behaviorOf returns what version v does.
func behaviorOf(v classify.Version) (b behavior) {
	for i := range changes {
		if changes[i].versions.Holds(v) {
			b |= changes[i].what
		}
	}
	return b
}
