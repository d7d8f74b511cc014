package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"xol/classify"
	"xol/image"
	"xol/notation"
	"xol/registration"
	"xol/selection"
)

// bareProbe is a probe without an instruction to be judged: its symbol is unknown, it
// stands outside of text, or it waits for its module.
type bareProbe struct {
	file    *analyzedFile
	probe   *notation.Probe
	via     registration.Via
	verdict classify.Verdict // OK where the probe waits
	reason  string           // why it is refused
	addr    uint64           // 0 where none is known
}

// bare returns what the interface makes of a probe where err tells why it has no place
// in the text; false where the answer is err.
func (f *analyzedFile) bare(via registration.Via, p *notation.Probe, err error) (b bareProbe, ok bool) {
	b = bareProbe{file: f, probe: p, via: via}
	var unknown *image.SymbolNotFoundError
	var elsewhere *selection.ModuleError
	var data *image.NotTextError
	switch {
	case errors.As(err, &unknown), errors.As(err, &elsewhere) && f.Kernel.Modules != nil:
		symbol, _ := image.SplitOffset(p.Place)
		rule, awaited := f.Unknown(via, symbol, p.Module)
		if rule == nil {
			return b, awaited
		}
		b.verdict, b.reason = classify.Refuse(rule), err.Error()
	case errors.As(err, &data):
		q := request(p, new(image.Place))
		rule := f.OutsideText(via, &q)
		if rule == nil {
			return b, false
		}
		b.addr, b.verdict, b.reason = data.Addr, classify.Refuse(rule), rule.Reason
	default:
		return b, false
	}
	return b, true
}

// remedy says what else could be done; empty where the probe is not refused.
func (b *bareProbe) remedy() string {
	if b.verdict.Rule == nil {
		return ""
	}
	return b.verdict.Rule.Remedy
}

// explainBare answers for a probe that has no place in the text, as err says. Where no
// tracer is meant to register it, a name that is not known is taken for a mistake.
func (x *explainer) explainBare(s *subject, p *notation.Probe, err error) (explained, error) {
	via := x.opt.via.of(p)
	if via == registration.Register {
		return nil, err
	}
	file, failure := x.analyzed(s, x.opt.profile.value)
	if failure != nil {
		return nil, failure
	}
	b, ok := file.bare(via, p, err)
	if !ok {
		return nil, err
	}
	return &b, nil
}

func (b *bareProbe) status() error {
	if b.verdict.OK() {
		return nil
	}
	return answerNo
}

func (b *bareProbe) writeText(w *bufio.Writer, p palette, _ int) {
	t := &table{palette: p}
	t.paint(b.probe.Text, bold)
	t.paint("   "+b.where()+"   "+b.file.kind(), plain)
	t.end()
	t.end()
	profile := b.file.Profile.Name()
	outcome, id, st := "accepted; the probe waits for module "+b.probe.Module, "", green
	if rule := b.verdict.Rule; rule != nil {
		outcome, id, st = fmt.Sprintf("refused: %v (%d)", rule.Errno, int(rule.Errno)), rule.ID, red
	}
	t.left(len(profile), profile, bold)
	t.left(outcomeWidth, outcome, st)
	t.left(0, id, dim)
	t.end()
	details := []detail{{b.say(), plain}}
	if remedy := b.remedy(); remedy != "" {
		details = append(details, detail{"instead: " + remedy, plain})
	}
	writeDetails(t, len(profile), details)
	w.Write(t.buf)
}

// where says where the probe is instead of in text.
func (b *bareProbe) where() string {
	switch {
	case b.verdict.OK():
		return "in no module that is loaded"
	case b.addr != 0:
		return fmt.Sprintf("%#x, not in text", b.addr)
	}
	return "not in the text"
}

// say explains the answer.
func (b *bareProbe) say() string {
	if b.verdict.OK() {
		return fmt.Sprintf("%v keeps it until the module is loaded; whether that has the symbol, and what instruction stands there, is not known: "+
			"the probe may still be refused then", b.via)
	}
	return b.reason
}

func (b *bareProbe) writeJSON(w io.Writer, _ int) error {
	out := bareJSON{File: b.file.path, Arch: b.file.ISA.Name(), Kind: b.file.Image.Kind().String(), Place: b.probe.Text, Addr: known(b.addr)}
	a := answerJSON{Profile: b.file.Profile.Name(), Asked: b.file.Asked, Via: b.via.String(), Probe: probeName(&b.verdict), Optimize: jumpNone}
	if k := &b.file.Kernel; k.Release != "" {
		a.Kernel = k.Version.String()
	}
	if rule := b.verdict.Rule; rule != nil {
		a.Errno, a.Rule, a.Reason, a.Remedy = int(rule.Errno), rule.ID, b.reason, rule.Remedy
	} else {
		out.Awaits = b.probe.Module
	}
	out.Profiles = []answerJSON{a}
	return encodeJSON(w, &out)
}
