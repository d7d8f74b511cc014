package main

import (
	"fmt"
	"strings"

	"xol/arch"
	"xol/decode"
	"xol/detour"
	"xol/image"
	"xol/optcheck"
	"xol/place"
)

// region is what the jump at a probed address replaces, or would if it might.
type region struct {
	answer   *answer
	start    uint64
	end      uint64 // after the last byte that the jump's room takes
	insts    []decode.Inst
	dead     uint64         // bytes at the end that nothing executes
	landings place.Landings // in [start, end)
	block    string         // the basic block, and where it leads
	detour   *detourBuffer  // nil where the breakpoint stays
}

// detourBuffer is the buffer that the jump would lead to.
type detourBuffer struct {
	at, callback uint64
	jump, code   []byte
	parts        detour.Parts
	stack        int
}

// findRegion returns the region of the first profile that allows the jump, else
// of the first that allows the probe; nil where none does.
func (e *explanation) findRegion() (*region, error) {
	var chosen *answer
	for i := range e.answers {
		a := &e.answers[i]
		if a.verdict.OK() && a.hasBreakpoint() && !a.uprobes() && (chosen == nil || a.jump.OK() && !chosen.jump.OK()) {
			chosen = a
		}
	}
	if chosen == nil {
		return nil, nil
	}
	r := &region{answer: chosen, start: chosen.target(e.addr)}
	r.take()
	flow, err := chosen.file.Flow(chosen.result)
	if err != nil {
		return nil, err
	}
	r.landings = flow.Landings.Within(r.start, r.end)
	r.block = r.blockOf(flow.Blocks)
	if chosen.jump.OK() {
		r.detour, err = r.plan()
	}
	return r, err
}

// take chooses the instructions that cover the jump.
func (r *region) take() {
	need := uint64(r.answer.file.ISA.JumpLen())
	insts := r.answer.result.Insts
	i := decode.From(insts, r.start)
	j := i
	for j < len(insts) && insts[j].Addr < r.start+need {
		j++
	}
	r.insts = insts[i:j]
	r.end = max(r.start+uint64(r.answer.jump.Region), r.insts[len(r.insts)-1].Next())
	if moved := r.start + uint64(r.answer.jump.Moved); r.answer.jump.OK() && moved < r.end {
		r.dead = r.end - moved
	}
}

// plan fills the detour buffer for an address after the text.
func (r *region) plan() (*detourBuffer, error) {
	isa, err := arch.Relocation(r.answer.file.ISA)
	if err != nil {
		return nil, err
	}
	moved := r.insts[:decode.From(r.insts, r.end-r.dead)]
	d := &detourBuffer{at: r.answer.file.slotPage()}
	d.callback = d.at + callbackDistance
	var plan detour.Plan
	kind := r.answer.file.Image.Kind()
	opt := detour.Options{Kernel: kind == image.KindKernel || kind == image.KindModule, Callback: d.callback,
		Dead: r.dead}
	if err := isa.PlanDetour(&plan, moved, opt); err != nil {
		return nil, err
	}
	code := make([]byte, plan.Max)
	n, err := isa.EncodeDetour(code, &plan, d.at)
	if err != nil {
		return nil, err
	}
	d.code, d.parts, d.stack = code[:n], plan.Parts, plan.Stack
	d.jump, err = isa.JumpTo(r.start, d.at)
	return d, err
}

// callbackDistance is how far after the buffer the callback is shown.
const callbackDistance = 1 << 12

// write writes the picture of the region, who lands there, and the buffer.
func (r *region) write(t *table) {
	t.end()
	what := "region"
	if !r.answer.jump.OK() {
		what = "region that a jump would replace"
	}
	t.left(0, fmt.Sprintf("%s (%s, %d bytes at %s)", what, r.answer.profile(), r.end-r.start, r.answer.placeOf(r.start)), bold)
	t.end()
	r.picture(t)
	r.lands(t)
	t.left(len(gap), "", plain)
	t.left(0, r.block, plain)
	t.end()
	if r.detour != nil {
		r.detour.write(t, r.answer.file)
	}
}

// cell is the width of one byte in the picture.
const cell = 3

// picture draws the bytes, the instructions they belong to, and what the words
// for the parts of the region mean.
func (r *region) picture(t *table) {
	n := int(r.end - r.start)
	need := min(r.answer.file.ISA.JumpLen(), n)
	var bytes, bounds strings.Builder
	for i := range r.insts {
		inst := &r.insts[i]
		fmt.Fprintf(&bytes, "% x ", inst.Bytes())
		bounds.WriteString(bracket(int(inst.Len), " "))
	}
	if padding := int(r.end - r.insts[len(r.insts)-1].Next()); padding > 0 {
		bytes.WriteString(strings.Repeat(".. ", padding))
	}
	row := func(picture, text string, st style) {
		t.left(len(gap), "", plain)
		t.left(cell*n, picture, st)
		t.left(0, text, plain)
		t.end()
	}
	row("▼", "insertion address", bold)
	row(bytes.String(), "", plain)
	row(bounds.String(), "instructions", dim)
	if r.detour != nil {
		row(fmt.Sprintf("% x", r.detour.jump), "the jump", green)
	}
	runs := "run"
	if !r.answer.jump.OK() {
		runs = "would run"
	}
	row(bracket(n, "="), "detoured region: these instructions "+runs+" in the detour buffer", cyan)
	if r.dead > 0 {
		dead := int(r.dead)
		row(strings.Repeat(" ", cell*(n-dead))+bracket(dead, "x"), "dead: never executed, so that they are not moved", dim)
	}
	row(strings.Repeat(" ", cell)+bracket(max(need-1, 1), "-"), "jump target prohibition region: nothing may land here", yellow)
}

// bracket draws n bytes as one.
func bracket(n int, fill string) string { return "[" + strings.Repeat(fill, cell*n-3) + "] " }

// lands writes who can land in the region.
func (r *region) lands(t *table) {
	row := func(text string, st style) {
		t.left(len(gap), "", plain)
		t.left(0, text, st)
		t.end()
	}
	if len(r.landings) == 0 {
		row("nothing is known to land here", plain)
	}
	for _, l := range r.landings {
		st := red
		if l.Addr == r.start {
			st = plain
		}
		text := fmt.Sprintf("+%#x  %s", l.Addr-r.answer.result.Function.Addr, landingPhrases[l.Kind])
		if l.From != 0 && l.From != l.Addr {
			text += ": " + r.answer.describe(l.From)
		}
		row(text, st)
	}
}

// exitPhrases say how a block leaves its function.
var exitPhrases = [...]struct {
	exit optcheck.Exits
	text string
}{
	{optcheck.ExitReturn, "returns"},
	{optcheck.ExitTail, "jumps out of the function"},
	{optcheck.ExitPointer, "jumps to a pointer"},
	{optcheck.ExitUnresolved, "jumps to an address that is not known"},
	{optcheck.ExitFall, "runs on past the end of the function"},
	{optcheck.ExitStop, "traps or halts"},
}

// blockOf describes the basic block that the probe is in.
func (r *region) blockOf(blocks []optcheck.Block) string {
	insts, base := r.answer.result.Insts, r.answer.result.Function.Addr
	i, _ := decode.Find(insts, r.start)
	for _, b := range blocks {
		if i < b.From || i >= b.To {
			continue
		}
		var next, ways []string
		for _, n := range b.Next {
			next = append(next, fmt.Sprintf("+%#x", insts[blocks[n].From].Addr-base))
		}
		if len(next) > 0 {
			ways = []string{"goes on at " + strings.Join(next, ", ")}
		}
		for _, e := range exitPhrases {
			if b.Exits&e.exit != 0 {
				ways = append(ways, e.text)
			}
		}
		return fmt.Sprintf("basic block +%#x to +%#x: %s", insts[b.From].Addr-base, insts[b.To-1].Next()-base, strings.Join(ways, "; "))
	}
	return ""
}

// landingPhrases say who lands.
var landingPhrases = [place.LandingKinds]string{
	place.LandBranch:     "a branch goes here",
	place.LandSwitch:     "an entry of a jump table leads here",
	place.LandReturn:     "a call returns here",
	place.LandEntry:      "the program starts here",
	place.LandSymbol:     "a symbol names this",
	place.LandLocalEntry: "the function's local entry point",
	place.LandPointer:    "data holds this address",
	place.LandTaken:      "an instruction forms this address",
	place.LandExFixup:    "a handled fault continues here",
	place.LandUnwind:     "an exception is caught here",
	place.LandJumpLabel:  "a jump label goes here when it is enabled",
	place.LandIndirect:   "marked as a target of indirect branches",
}

// write writes the buffer, part by part.
func (d *detourBuffer) write(t *table, file *analyzedFile) {
	t.end()
	t.left(0, fmt.Sprintf("detour buffer (if it stood at %#x: %d bytes; stack: %d bytes)", d.at, len(d.code), d.stack), bold)
	t.end()
	for _, part := range d.sections() {
		t.left(len(gap), "", plain)
		t.left(0, part.title, cyan)
		t.end()
		for _, inst := range decode.Sweep(file.ISA, nil, d.code[part.from:part.to], d.at+uint64(part.from)) {
			t.left(len(gap)*2, "", plain)
			t.right(len("buffer+0x00"), fmt.Sprintf("buffer+%#x", inst.Addr-d.at), dim)
			t.left(textWidth/2, fmt.Sprintf("% x", inst.Bytes()), dim)
			t.left(0, d.text(file, &inst), plain)
			t.end()
		}
	}
}

// text returns an instruction of the buffer, whose only address without a name
// in the file is the callback.
func (d *detourBuffer) text(file *analyzedFile, inst *decode.Inst) string {
	if inst.Has(decode.Invalid) {
		return "(data)"
	}
	return file.ISA.Text(inst, func(addr uint64) (string, uint64) {
		if addr == d.callback {
			return "callback", addr
		}
		return file.Image.Symbolize(addr)
	})
}

// detourSection is a part of a detour buffer, in bytes from its start.
type detourSection struct {
	title    string
	from, to int
}

func (d *detourBuffer) sections() []detourSection {
	p := &d.parts
	list := []detourSection{
		{"save the registers, pass probe and registers", 0, p.Call},
		{"call the handlers' entry", p.Call, p.Restore},
		{"restore the registers", p.Restore, p.Moved},
		{"the moved instructions", p.Moved, p.Back},
		{"jump back", p.Back, p.End},
	}
	return list
}

// The JSON form of a region.
type (
	regionJSON struct {
		Profile  string        `json:"profile"`
		Addr     address       `json:"addr"`
		Len      int           `json:"len"`
		Insts    []int         `json:"insts"` // their lengths
		Block    string        `json:"block"`
		Landings []landingJSON `json:"landings"`
		Detour   *detourJSON   `json:"detour,omitempty"`
	}
	landingJSON struct {
		Addr address  `json:"addr"`
		Kind string   `json:"kind"`
		From *address `json:"from,omitempty"`
	}
	detourJSON struct {
		Addr     address  `json:"addr"`
		Callback address  `json:"callback"`
		Jump     string   `json:"jump"`
		Bytes    string   `json:"bytes"`
		Moved    int      `json:"moved"` // offset of the moved instructions
		Back     int      `json:"back"`  // offset of the jump back
		Stack    int      `json:"stack"` // bytes
		Text     []string `json:"text"`
	}
)

func (r *region) json() *regionJSON {
	j := &regionJSON{Profile: r.answer.profile(), Addr: address(r.start), Len: int(r.end - r.start), Block: r.block, Landings: []landingJSON{}}
	for i := range r.insts {
		j.Insts = append(j.Insts, int(r.insts[i].Len))
	}
	for _, l := range r.landings {
		j.Landings = append(j.Landings, landingJSON{address(l.Addr), l.Kind.String(), known(l.From)})
	}
	if d := r.detour; d != nil {
		j.Detour = &detourJSON{Addr: address(d.at), Callback: address(d.callback), Jump: fmt.Sprintf("%x", d.jump),
			Bytes: fmt.Sprintf("%x", d.code), Moved: d.parts.Moved, Back: d.parts.Back, Stack: d.stack}
		for _, inst := range decode.Sweep(r.answer.file.ISA, nil, d.code, d.at) {
			j.Detour.Text = append(j.Detour.Text, d.text(r.answer.file, &inst))
		}
	}
	return j
}
