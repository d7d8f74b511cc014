package report

import (
	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

// ruleJSON is a rule in the page.
type ruleJSON struct {
	ID     string `json:"id"`
	Errno  string `json:"errno,omitempty"` // "EINVAL (22)"
	Reason string `json:"reason"`
	Remedy string `json:"remedy,omitempty"`
}

// knownJSON is a hazard or a note in the page.
type knownJSON struct {
	ID   string   `json:"id"`
	Text string   `json:"text"`
	Seen []string `json:"seen,omitempty"`
	Span string   `json:"span"`
}

// verdictJSON is what verdicts have in common: all but addresses.
type verdictJSON struct {
	Rule     int    `json:"rule"` // index of a rule, -1 for none
	Unknown  bool   `json:"unknown,omitempty"`
	Hazard   int    `json:"hazard"`
	Notes    []int  `json:"notes,omitempty"`
	Exec     string `json:"exec,omitempty"`
	Emulator string `json:"emulator,omitempty"`
	Boost    bool   `json:"boost,omitempty"`
	Boosted  bool   `json:"boosted,omitempty"`
	Depends  bool   `json:"depends,omitempty"`
	Fixups   int    `json:"fixups,omitempty"`
	Has      int    `json:"has,omitempty"` // which addresses follow
}

// Addresses that follow a verdict.
const (
	hasCulprit = 1 << iota
	hasMovedTo
	hasInstead
)

// jumpJSON is what verdicts on jumps have in common.
type jumpJSON struct {
	Rule    int  `json:"rule"` // -1 where the jump may be, or no probe
	OK      bool `json:"ok,omitempty"`
	Depends bool `json:"depends,omitempty"`
	Has     int  `json:"has,omitempty"`
}

// What follows a verdict on a jump.
const (
	jumpCulprit = 1 << iota // its address
	jumpRegion              // sizes of the region that are not the smallest possible
)

// verdictKey is a verdict without addresses.
type verdictKey struct {
	rule     *classify.Rule
	hazard   *classify.Hazard
	emulator string
	exec     classify.Exec
	notes    classify.Notes
	fixups   classify.Fixups
	boost    bool
	boosted  bool
	depends  bool
	has      int
}

type jumpKey struct {
	rule    *classify.Rule
	ok      bool
	depends bool
	has     int
}

func keyOf(v *classify.Verdict) verdictKey {
	k := verdictKey{rule: v.Rule, hazard: v.Hazard, emulator: v.Emulator, exec: v.Exec, notes: v.Notes, fixups: v.Fixups,
		boost: v.Boost, boosted: v.Boosted, depends: v.Depends}
	if v.Culprit != 0 {
		k.has |= hasCulprit
	}
	if v.MovedTo != 0 {
		k.has |= hasMovedTo
	}
	if v.Instead != 0 {
		k.has |= hasInstead
	}
	return k
}

// rulebook gives numbers to rules, hazards, notes and verdicts, in the order in which
// they are first used.
type rulebook struct {
	rules    map[*classify.Rule]int
	hazards  map[*classify.Hazard]int
	notes    map[*classify.Note]int
	verdicts map[verdictKey]int
	jumps    map[jumpKey]int

	Rules    []ruleJSON    `json:"rules"`
	Hazards  []knownJSON   `json:"hazards"`
	Notes    []knownJSON   `json:"notes"`
	Verdicts []verdictJSON `json:"verdicts"`
	Jumps    []jumpJSON    `json:"jumps"`
}

func newRulebook() *rulebook {
	b := &rulebook{
		rules: map[*classify.Rule]int{}, hazards: map[*classify.Hazard]int{}, notes: map[*classify.Note]int{},
		verdicts: map[verdictKey]int{}, jumps: map[jumpKey]int{},
		Rules: []ruleJSON{}, Hazards: []knownJSON{}, Notes: []knownJSON{}, Verdicts: []verdictJSON{},
	}
	b.jump(&jumpKey{}) // the first is of instructions that take no probe
	return b
}

func (b *rulebook) rule(r *classify.Rule) int {
	if r == nil {
		return -1
	}
	n, ok := b.rules[r]
	if !ok {
		n = len(b.Rules)
		b.rules[r] = n
		b.Rules = append(b.Rules, ruleJSON{r.ID, errnoText(r.Errno), r.Reason, r.Remedy})
	}
	return n
}

func (b *rulebook) hazard(h *classify.Hazard) int {
	if h == nil {
		return -1
	}
	n, ok := b.hazards[h]
	if !ok {
		n = len(b.Hazards)
		b.hazards[h] = n
		b.Hazards = append(b.Hazards, known(h))
	}
	return n
}

func (b *rulebook) note(h *classify.Note) int {
	n, ok := b.notes[h]
	if !ok {
		n = len(b.Notes)
		b.notes[h] = n
		b.Notes = append(b.Notes, known((*classify.Hazard)(h)))
	}
	return n
}

func known(h *classify.Hazard) knownJSON {
	j := knownJSON{ID: h.ID, Text: h.Text, Span: h.Span.String()}
	for _, v := range h.Seen {
		j.Seen = append(j.Seen, v.String())
	}
	return j
}

func (b *rulebook) verdict(k *verdictKey) int {
	n, ok := b.verdicts[*k]
	if ok {
		return n
	}
	n = len(b.Verdicts)
	b.verdicts[*k] = n
	j := verdictJSON{Rule: b.rule(k.rule), Hazard: b.hazard(k.hazard), Exec: k.exec.String(), Emulator: k.emulator,
		Boost: k.boost, Boosted: k.boosted, Depends: k.depends, Fixups: int(k.fixups), Has: k.has}
	j.Unknown = (&classify.Verdict{Rule: k.rule}).Undecided()
	for note := range k.notes.All() {
		j.Notes = append(j.Notes, b.note(note))
	}
	b.Verdicts = append(b.Verdicts, j)
	return n
}

func (b *rulebook) jump(k *jumpKey) int {
	n, ok := b.jumps[*k]
	if !ok {
		n = len(b.Jumps)
		b.jumps[*k] = n
		b.Jumps = append(b.Jumps, jumpJSON{Rule: b.rule(k.rule), OK: k.ok, Depends: k.depends, Has: k.has})
	}
	return n
}

// smallest returns the sizes of the region of instruction i that the page computes by
// itself: of as few whole instructions as the jump needs.
func smallest(insts []decode.Inst, i, need int) (region, moved int) {
	dead := false
	for j := i; region < need && j < len(insts); j++ {
		region += int(insts[j].Len)
		if !dead {
			moved = region
			dead = !insts[j].FallsThrough()
		}
	}
	return region, moved
}

// judged is what one profile says of the instructions of a function, in memory that a
// run of functions shares.
type judged struct {
	codes []verdictKey // one for each instruction
	jumps []jumpKey
	// addresses are those that follow the codes, and sizes of regions.
	addresses     []int64
	jumpAddresses []int64
	summary       analyze.Summary
	returns       *classify.Rule
}

// lengths returns how much is in each list.
func (j *judged) lengths() [4]int {
	return [...]int{len(j.codes), len(j.jumps), len(j.addresses), len(j.jumpAddresses)}
}

// since returns what has been added after the lists had these lengths.
func (j *judged) since(n [4]int) judged {
	return judged{codes: j.codes[n[0]:], jumps: j.jumps[n[1]:], addresses: j.addresses[n[2]:], jumpAddresses: j.jumpAddresses[n[3]:]}
}

// empty keeps the memory only.
func (j *judged) empty() {
	j.codes, j.jumps, j.addresses, j.jumpAddresses = j.codes[:0], j.jumps[:0], j.addresses[:0], j.jumpAddresses[:0]
}

// take adds the verdicts of r on the instructions of a function, of which those at
// the same addresses are in r. Others, which the profile does not count to a function,
// have no verdict.
func (j *judged) take(insts []decode.Inst, r *analyze.Result, jumpLen int) {
	if len(insts) == 0 {
		return
	}
	start := insts[0].Addr
	last := [...]uint64{start, start, start} // addresses of verdicts, of each sort
	culprit := start                         // of a jump
	k := 0
	for i := range insts {
		addr := insts[i].Addr
		for k < len(r.Insts) && r.Insts[k].Addr < addr {
			k++
		}
		if k == len(r.Insts) || r.Insts[k].Addr != addr {
			j.codes = append(j.codes, notCounted)
			j.jumps = append(j.jumps, jumpKey{})
			continue
		}
		v := &r.Verdicts[k]
		j.codes = append(j.codes, keyOf(v))
		for n, to := range [...]uint64{v.Culprit, v.MovedTo, v.Instead} {
			if to != 0 {
				j.addresses = append(j.addresses, int64(to-last[n]))
				last[n] = to
			}
		}
		var jump optcheck.Verdict
		if k < len(r.Optimize) {
			jump = r.Optimize[k]
		}
		key := jumpKey{rule: jump.Rule, ok: jump.OK(), depends: jump.Depends}
		if jump.Culprit != 0 {
			key.has |= jumpCulprit
			j.jumpAddresses = append(j.jumpAddresses, int64(jump.Culprit-culprit))
			culprit = jump.Culprit
		}
		if jump.OK() {
			if region, moved := smallest(insts, i, jumpLen); region != int(jump.Region) || moved != int(jump.Moved) {
				key.has |= jumpRegion
				j.jumpAddresses = append(j.jumpAddresses, int64(jump.Region), int64(jump.Moved))
			}
		}
		j.jumps = append(j.jumps, key)
	}
}

// notCounted is the verdict on bytes that a profile counts to no function.
var notCounted = verdictKey{}
