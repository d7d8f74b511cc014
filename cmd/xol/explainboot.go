package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/place"
)

// bootNotes says what the kernel does to an instruction while it boots: what the
// file has there, or what other CPUs may have.
func (a *answer) bootNotes(inst *decode.Inst) []string {
	var kinds place.Kind
	for _, m := range a.result.Marks {
		if m.Addr < inst.Next() && inst.Addr < m.End() {
			kinds |= m.Kind
		}
	}
	var notes []string
	if kinds&place.BootKnown != 0 {
		notes = append(notes, "written at boot")
		if text := a.fileText(inst.Addr); text != "" {
			notes[0] += "; the file has " + text
		}
	}
	if kinds&place.BootOpen != 0 {
		texts := a.formTexts(inst.Addr)
		note := "written at boot for some CPUs"
		if len(texts) > 0 {
			note += ": " + strings.Join(texts, ", or ")
		}
		notes = append(notes, note)
	}
	switch {
	case kinds&place.BootUnknown != 0:
		notes = append(notes, "written at boot, and the file does not tell what")
	case kinds&place.ReturnThunk != 0:
		notes = append(notes, "at boot ret, but for CPUs that need a return thunk")
	case kinds&place.BranchThunk != 0:
		notes = append(notes, "at boot an indirect branch, but for CPUs that need a thunk")
	case kinds&place.Alternative != 0 && len(notes) == 0:
		notes = append(notes, "patched at boot (alternatives)")
	}
	return notes
}

// fileText returns the instruction that the file has at addr, where the kernel
// starts to write at boot; empty elsewhere.
func (a *answer) fileText(addr uint64) string {
	written := func(m place.Mark) bool { return m.Addr == addr && m.Kind&place.BootKnown != 0 }
	if !slices.ContainsFunc(a.result.Marks, written) {
		return ""
	}
	code, err := a.file.Image.Code(nil, addr, min(decode.MaxLen, a.result.End()-addr))
	if err != nil {
		return ""
	}
	var inst decode.Inst
	if a.file.ISA.Decode(&inst, code, addr) != nil {
		return ""
	}
	return a.file.text(&inst)
}

// formTexts returns the instructions that other CPUs may have at addr.
func (a *answer) formTexts(addr uint64) []string {
	var texts []string
	own := ""
	if i, start := decode.Find(a.result.Insts, addr); start {
		own = a.file.text(&a.result.Insts[i])
	}
	for _, form := range a.forms {
		if i, start := decode.Find(form.Insts, addr); start {
			if text := a.file.text(&form.Insts[i]); text != own && !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// bootDetails says what a probe at addr depends on: the answers for the
// instructions that other CPUs have there.
func (a *answer) bootDetails(addr uint64) []detail {
	v := &a.verdict
	addr = cmp.Or(a.entry, addr)
	var d []detail
	add := func(format string, args ...any) { d = append(d, detail{fmt.Sprintf(format, args...), yellow}) }
	if i, start := decode.Find(a.result.Insts, a.target(addr)); start && a.result.Boot(i) == analyze.BootPatched {
		line := "judged as the kernel writes it at boot, on every machine but guests of Xen without hardware virtualization"
		if text := a.fileText(a.target(addr)); text != "" {
			line += "; the file has " + text
		}
		add("%s", line)
	}
	if !v.Depends {
		return d
	}
	said := len(d)
	for _, form := range a.forms {
		other := a.file.Profile.At(&form.Func, addr)
		if other.OK() == v.OK() && other.Exec == v.Exec && ruleErrno(&other) == ruleErrno(v) && other.Hazard == v.Hazard {
			continue
		}
		o := answer{file: a.file, result: form, verdict: other}
		text := "inside an instruction there"
		if i, start := decode.Find(form.Insts, addr); start {
			text = a.file.text(&form.Insts[i])
		}
		line := fmt.Sprintf("for another CPU (%s): %s", text, o.outcome(addr))
		if other.Rule != nil {
			line += ", " + other.Rule.ID
		}
		if other.Hazard != nil {
			line += ", hazard " + other.Hazard.ID
		}
		if !slices.ContainsFunc(d, func(d detail) bool { return d.text == line }) {
			add("%s", line)
		}
	}
	if len(d) == said {
		add("for another CPU the kernel may write another instruction there, with another answer")
	}
	return d
}

func ruleErrno(v *classify.Verdict) classify.Errno {
	if v.Rule == nil {
		return 0
	}
	return v.Rule.Errno
}
