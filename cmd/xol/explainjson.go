package main

import (
	"encoding/hex"
	"encoding/json"
	"io"

	"xol/classify"
	"xol/decode"
	"xol/live"
	"xol/registration"
)

// The JSON form of an explanation. Names that analyze and decode use too mean
// the same here.
type (
	explanationJSON struct {
		File     string       `json:"file"`
		Arch     string       `json:"arch"`
		Kind     string       `json:"kind"`
		Place    string       `json:"place"`
		Addr     address      `json:"addr"`
		Offset   offset       `json:"file_offset"`
		Also     []address    `json:"also,omitempty"`    // what else the place could mean
		Inlined  bool         `json:"inlined,omitempty"` // the place is a function that is inlined here
		Sym      string       `json:"sym"`
		Off      uint64       `json:"off"`
		Source   string       `json:"source,omitempty"`
		Function functionJSON `json:"function"`
		Notes    []string     `json:"notes,omitempty"`   // on the text
		Missing  string       `json:"missing,omitempty"` // of a kernel: what its file does not tell
		Inst     *instJSON    `json:"inst,omitempty"`    // the one that holds the address
		Inside   uint64       `json:"inside"`            // bytes from its start to the address
		IFunc    *ifunc       `json:"ifunc,omitempty"`   // the function is its resolver
		Around   []instJSON   `json:"around"`
		Profiles []answerJSON `json:"profiles"`
		Region   *regionJSON  `json:"region,omitempty"`
		Live     *liveJSON    `json:"live,omitempty"` // what runs, where that is asked
	}
	// bareJSON is about a probe that has no place in the text.
	bareJSON struct {
		File     string       `json:"file"`
		Arch     string       `json:"arch"`
		Kind     string       `json:"kind"`
		Place    string       `json:"place"`
		Addr     *address     `json:"addr,omitempty"`   // of what is not text
		Awaits   string       `json:"awaits,omitempty"` // the module that the probe waits for
		Profiles []answerJSON `json:"profiles"`
	}
	liveJSON struct {
		Addr   *address   `json:"addr,omitempty"`   // where the place is in memory
		Text   string     `json:"text"`             // where the text is from: "memory" or "file"
		Module string     `json:"module,omitempty"` // of the kernel, that has the function
		Freed  bool       `json:"freed,omitempty"`  // the text is gone: it was init text
		Probes []string   `json:"probes,omitempty"` // registered in the function
		PID    int        `json:"pid,omitempty"`    // of the process
		Gaps   []live.Gap `json:"gaps,omitempty"`   // what the system does not show
	}
	functionJSON struct {
		Name  string  `json:"name"`
		Addr  address `json:"addr"`
		Size  uint64  `json:"size"`
		Insts int     `json:"insts"`
		// LocalEntry is the offset of the local entry on ppc64, 0 where there is
		// one entry.
		LocalEntry uint64 `json:"local_entry,omitempty"`
	}
	instJSON struct {
		Addr   address    `json:"addr"`
		Offset offset     `json:"file_offset"`
		Off    uint64     `json:"off"`
		Len    int        `json:"len"`
		Bytes  string     `json:"bytes"`
		Text   string     `json:"text"`
		Flow   string     `json:"flow"`
		Target *address   `json:"target,omitempty"`
		PCRel  *pcrelJSON `json:"pcrel,omitempty"`
		Notes  []string   `json:"notes,omitempty"`
	}
	pcrelJSON struct {
		Kind   string  `json:"kind"`
		Target address `json:"target"`
		Offset int     `json:"offset"`
		Width  int     `json:"width"`
	}
	answerJSON struct {
		Profile   string    `json:"profile"`
		Asked     string    `json:"profile_asked,omitempty"` // where the profile stands in for it
		Kernel    string    `json:"kernel,omitempty"`        // whose rules these are, where its version is known
		Assumed   []string  `json:"assumed,omitempty"`       // options that neither the file nor the user told
		DependsOn []string  `json:"depends_on,omitempty"`    // those of them with which the answer is another
		Via       string    `json:"via,omitempty"`           // the interface by which a kprobe is asked for
		Probe     string    `json:"probe"`
		Errno     int       `json:"errno"`
		Rule      string    `json:"rule"`
		Reason    string    `json:"reason"`
		Exec      string    `json:"exec"`
		Boost     bool      `json:"boost"`
		Boosted   bool      `json:"boosted"`
		Emulator  string    `json:"emulator,omitempty"`
		MovedTo   *address  `json:"moved_to,omitempty"`
		Culprit   *address  `json:"culprit,omitempty"`
		Remedy    string    `json:"remedy,omitempty"`
		Instead   *address  `json:"instead,omitempty"`
		Hazard    string    `json:"hazard"`
		HazardIn  *happens  `json:"hazard_in,omitempty"`
		Notes     []happens `json:"notes,omitempty"`
		Missed    bool      `json:"missed,omitempty"` // by calls that come by the local entry
		Boot      string    `json:"boot,omitempty"`
		Depends   string    `json:"depends,omitempty"`
		Others    []string  `json:"others,omitempty"` // what it depends on, in words
		Slot      *slotJSON `json:"slot,omitempty"`

		Optimize   string   `json:"optimize"`
		Region     int      `json:"region"`
		OptRule    string   `json:"opt_rule"`
		OptReason  string   `json:"opt_reason"`
		OptCulprit *address `json:"opt_culprit,omitempty"`
		OptRemedy  string   `json:"opt_remedy,omitempty"`

		// Return is the verdict on a return probe, of kprobes.
		Return *refusalJSON `json:"return,omitempty"`
		// RefusedBy are other interfaces, which refuse a kprobe that this one takes.
		RefusedBy []refusalJSON `json:"refused_by,omitempty"`
	}
	refusalJSON struct {
		Via    string `json:"via"`
		Probe  string `json:"probe"`
		Errno  int    `json:"errno"`
		Rule   string `json:"rule"`
		Reason string `json:"reason"`
		Remedy string `json:"remedy,omitempty"`
	}
)

// happens says where a hazard or a note holds.
type happens struct {
	ID       string             `json:"id"`
	Text     string             `json:"text,omitempty"`
	Seen     []classify.Version `json:"seen,omitempty"` // versions on which it was seen
	Versions string             `json:"versions"`       // for which it is expected
}

// address is written as every address is.
type address uint64

func (a address) MarshalText() ([]byte, error) { return appendAddr(nil, uint64(a)), nil }

// offset is where in the file something stands; it is written as an address,
// and nowhere as an empty string.
type offset uint64

func (o offset) MarshalText() ([]byte, error) {
	if o == nowhere {
		return nil, nil
	}
	return address(o).MarshalText()
}

func (f *analyzedFile) offset(addr uint64) offset {
	if off, ok := f.Image.OffsetOf(addr); ok {
		return offset(off)
	}
	return nowhere
}

// known returns an address, or nil for 0.
func known(v uint64) *address {
	if v == 0 {
		return nil
	}
	a := address(v)
	return &a
}

// writeJSON writes the explanation as one JSON object.
func (e *explanation) writeJSON(w io.Writer, context int) error {
	a := &e.answers[0]
	f := &a.result.Function
	out := explanationJSON{
		File: a.file.path, Arch: a.file.ISA.Name(), Kind: a.file.Image.Kind().String(),
		Place: e.place, Addr: address(e.addr), Offset: a.file.offset(e.addr), Sym: f.Name, Off: e.addr - f.Addr, Source: e.source(),
		Function: functionJSON{f.Name, address(f.Addr), f.Size, len(a.result.Insts), f.LocalEntry},
		IFunc:    a.file.ifunc(a.result),
		Notes:    e.notes(textNotes[:], e.addr, e.addr+1),
		Missing:  a.file.Missing.String(),
	}
	out.Inlined = e.inlined
	for _, addr := range e.also {
		out.Also = append(out.Also, address(addr))
	}
	insts, asked := e.around(context)
	for i := range insts {
		out.Around = append(out.Around, e.instJSON(&insts[i]))
	}
	if asked >= 0 {
		out.Inst = &out.Around[asked]
		out.Inside = e.addr - insts[asked].Addr
	}
	for i := range e.answers {
		answer := e.answers[i].json()
		e.answers[i].bootJSON(&answer, e.addr)
		if s, ok := e.answers[i].slot(e.addr); ok {
			answer.Slot = newSlotJSON(s)
		}
		out.Profiles = append(out.Profiles, answer)
	}
	if e.region != nil {
		out.Region = e.region.json()
	}
	out.Live = e.live()
	return encodeJSON(w, &out)
}

// encodeJSON writes one object for people to read as well.
func encodeJSON(w io.Writer, object any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(object)
}

// live returns what is told of what runs; nil for a file.
func (e *explanation) live() *liveJSON {
	file, f := e.answers[0].file, &e.answers[0].result.Function
	if file.running == nil {
		return nil
	}
	j := &liveJSON{Text: "file", Module: file.Image.ModuleOf(f.Addr), Freed: file.freedText(f), Gaps: file.running.gaps}
	if file.running.memory || e.answers[0].result.Changed {
		j.Text = "memory"
	}
	if p := file.running.process; p != nil {
		j.PID = p.of.PID
	}
	if now, ok := file.addressNow(e.addr); ok {
		j.Addr = known(now)
	}
	for _, p := range file.probesIn(f.Addr, f.End()) {
		j.Probes = append(j.Probes, p.String())
	}
	return j
}

func (e *explanation) instJSON(inst *decode.Inst) instJSON {
	a := &e.answers[0]
	j := instJSON{
		Addr: address(inst.Addr), Offset: a.file.offset(inst.Addr), Off: inst.Addr - a.result.Function.Addr,
		Len: int(inst.Len), Bytes: hex.EncodeToString(inst.Bytes()),
		Text: a.file.text(inst), Flow: inst.Flow.String(), Notes: e.instNotes(inst),
	}
	if target, ok := inst.BranchTarget(); ok {
		j.Target = (*address)(&target)
	}
	if p := inst.PCRel; p.Kind != decode.PCRelNone {
		j.PCRel = &pcrelJSON{p.Kind.String(), address(inst.Target), int(p.Offset), int(p.Width)}
	}
	return j
}

func (a *answer) json() answerJSON {
	v := &a.verdict
	j := answerJSON{
		Profile: a.profile(), Asked: a.file.Asked, Probe: probeName(v), Exec: v.Exec.String(), Boost: v.Boost, Boosted: v.Boosted, Emulator: v.Emulator,
		MovedTo: known(v.MovedTo), Culprit: known(v.Culprit), Instead: known(v.Instead),
	}
	if mechanismOf(a.profile()) == classify.Kprobes {
		a.kernelJSON(&j)
	}
	if v.Rule != nil {
		j.Errno, j.Rule, j.Reason, j.Remedy = int(v.Rule.Errno), v.Rule.ID, v.Rule.Reason, v.Rule.Remedy
	}
	if h := v.Hazard; h != nil {
		j.Hazard = h.Text
		j.HazardIn = &happens{ID: h.ID, Seen: h.Seen, Versions: h.Span.String()}
	}
	for n := range v.Notes.All() {
		j.Notes = append(j.Notes, happens{ID: n.ID, Text: n.Text, Seen: n.Seen, Versions: n.Span.String()})
	}
	j.Optimize, j.Region, j.OptCulprit = jumpName(v, &a.jump), int(a.jump.Region), known(a.jump.Culprit)
	if r := a.jump.Rule; r != nil {
		j.OptRule, j.OptReason, j.OptRemedy = r.ID, jumpReason(a.result, &a.jump), r.Remedy
	}
	return j
}

// kernelJSON fills in whose kernel it is and what its interfaces say.
func (a *answer) kernelJSON(j *answerJSON) {
	if k := &a.file.Kernel; k.Release != "" {
		j.Kernel = k.Version.String()
	}
	j.Via = a.via.String()
	j.Assumed, j.DependsOn = settingNames(a.file.Assumed(a.via)), settingNames(a.assumed)
	if !a.verdict.Undecided() {
		r := newRefusalJSON(a.via, a.returns)
		if a.returns == nil && !a.verdict.OK() { // what forbids the entry forbids its return
			r = newRefusalJSON(a.via, a.verdict.Rule)
		}
		j.Return = &r
	}
	for _, r := range a.elsewhere {
		for _, via := range r.via {
			j.RefusedBy = append(j.RefusedBy, newRefusalJSON(via, r.rule))
		}
	}
}

func newRefusalJSON(via registration.Via, r *classify.Rule) refusalJSON {
	if r == nil {
		return refusalJSON{Via: via.String(), Probe: probeOK}
	}
	return refusalJSON{via.String(), probeRefused, int(r.Errno), r.ID, r.Reason, r.Remedy}
}

// bootJSON fills in what the kernel does while it boots.
func (a *answer) bootJSON(j *answerJSON, addr uint64) {
	if i, start := decode.Find(a.result.Insts, a.target(addr)); start {
		j.Boot = a.result.Boot(i).String()
	}
	j.Missed = a.entry == 0 && a.result.MissesCalls(addr)
	j.Depends = dependsName(a.verdict.Depends, a.jump.Depends)
	for _, d := range a.bootDetails(addr) {
		j.Others = append(j.Others, d.text)
	}
}
