package main

import (
	"bufio"
	"cmp"
	"slices"
	"strconv"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/registration"
)

// insnRecords prints a record for each instruction.
type insnRecords struct{ *stream }

func newInsnRecords(w *bufio.Writer, format string) *insnRecords {
	l := new(insnRecords)
	l.stream = newStream(w, format, "[", "\n]\n", func(r *records) {
		l.fields(r, "", new(image.Function), 0, new(decode.Inst), "", new(classify.Verdict), new(jumpAnswer), analyze.BootKept)
	})
	return l
}

func (l *insnRecords) begin(*analyzedFile)        {}
func (l *insnRecords) end(*analyzedFile, *totals) {}

func (l *insnRecords) encode(dst []byte, file *analyzedFile, res *analyze.Result, _ *analyze.Summary) []byte {
	const perRow = 360 // bytes, about
	r := records{format: l.format, buf: slices.Grow(dst, perRow*len(res.Insts))}
	offsets := file.offsets(&res.Function)
	function := res.Function
	function.Name = file.moduleName(function.Name, function.Addr)
	for i := range res.Insts {
		inst := &res.Insts[i]
		jump := jumpAnswerAt(res, i)
		l.fields(&r, file.path, &function, offsets.of(inst.Addr), inst, file.text(inst), &res.Verdicts[i], &jump, res.Boot(i))
	}
	return r.buf
}

func (l *insnRecords) fields(r *records, path string, f *image.Function, offset uint64, inst *decode.Inst, text string,
	v *classify.Verdict, jump *jumpAnswer, boot analyze.Boot) {
	r.begin()
	r.str("file", path)
	r.addr("addr", inst.Addr)
	offsetField(r, offset)
	r.str("sym", f.Name)
	r.num("off", int(inst.Addr-f.Addr))
	r.num("len", int(inst.Len))
	r.str("text", text)
	r.str("flow", inst.Flow.String())
	verdictFields(r, v)
	jump.fields(r)
	r.addrOrEmpty("culprit", cmp.Or(v.Culprit, jump.culprit))
	hazardField(r, v)
	r.only(v.MovedTo != 0)
	r.addr("moved_to", v.MovedTo)
	r.only(f.Resolver)
	r.flag("resolver", f.Resolver)
	bootFields(r, boot, v.Depends, jump.depends)
	r.end()
}

// offsetField encodes where in the file something stands, empty where it is
// nowhere.
func offsetField(r *records, offset uint64) {
	if offset == nowhere {
		r.str("file_offset", "")
	} else {
		r.addr("file_offset", offset)
	}
}

// functionRecords prints a record for each function and, but for CSV, one with
// the totals of each file.
type functionRecords struct {
	w         *bufio.Writer
	format    string
	manyFiles bool    // files: in JSON, an array of their objects
	stream    *stream // of functions; in JSON, of those of the file at hand
}

func newFunctionRecords(w *bufio.Writer, format string, manyFiles bool) *functionRecords {
	l := &functionRecords{w: w, format: format, manyFiles: manyFiles}
	l.array("[\n")
	return l
}

// array writes what holds the array of several files together.
func (l *functionRecords) array(s string) {
	if l.manyFiles && l.format == formatJSON {
		l.w.WriteString(s)
	}
}

func (l *functionRecords) begin(file *analyzedFile) {
	if l.stream == nil {
		l.stream = newStream(l.w, l.format, "", "", func(r *records) {
			l.fields(r, "", "", new(analyze.Result), new(analyze.Summary), nil, nil)
		})
	} else {
		l.array(",\n")
	}
	if l.format == formatJSON {
		head := records{format: formatJSONL}
		head.begin()
		file.fields(&head)
		head.key("functions")
		l.stream = newStream(l.w, l.format, string(head.buf)+"[", "\n]", nil)
	}
}

// fields encodes which file was analyzed, and how.
func (f *analyzedFile) fields(r *records) {
	r.str("file", f.path)
	r.str("arch", f.ISA.Name())
	r.str("profile", f.Profile.Name())
	r.only(f.Asked != "")
	r.str("profile_asked", f.Asked)
	r.only(f.Kernel.Release != "")
	r.str("kernel", f.Kernel.Version.String())
	assumed := settingNames(f.Assumed(registration.Register))
	r.only(len(assumed) > 0)
	r.strs("assumed", assumed)
	r.only(true)
	r.only(f.Missing != 0)
	r.str("missing", f.Missing.String())
	r.only(true)
}

func (l *functionRecords) encode(dst []byte, file *analyzedFile, res *analyze.Result, s *analyze.Summary) []byte {
	r := records{format: l.format, buf: dst}
	l.fields(&r, file.path, file.moduleName(res.Function.Name, res.Function.Addr), res, s, file.ifunc(res), file.Return(res))
	return r.buf
}

// returnName says whether a function may have a return probe.
func returnName(forbidden *classify.Rule) string {
	if forbidden == nil {
		return probeOK
	}
	return probeName(&classify.Verdict{Rule: forbidden})
}

// ruleID returns the id of a rule, empty for none.
func ruleID(r *classify.Rule) string {
	if r == nil {
		return ""
	}
	return r.ID
}

func (l *functionRecords) fields(r *records, path, name string, res *analyze.Result, s *analyze.Summary, resolver *ifunc, returns *classify.Rule) {
	r.begin()
	r.str("kind", "function")
	r.str("file", path)
	r.str("name", name)
	r.addr("addr", res.Function.Addr)
	r.num("size", int(res.Function.Size))
	summaryFields(r, s)
	reasonsField(r, "reasons", s.Reasons)
	reasonsField(r, "opt_reasons", s.JumpReasons)
	r.str("return", returnName(returns))
	r.str("return_rule", ruleID(returns))
	r.flag("resolver", resolver != nil)
	r.only(resolver != nil)
	r.strs("implementations", resolver.names())
	r.only(res.Err != nil)
	r.str("error", errorText(res.Err))
	r.end()
}

func (l *functionRecords) write(rows []byte) error { return l.stream.write(rows) }

func (l *functionRecords) end(file *analyzedFile, sum *totals) {
	r := records{format: formatJSONL}
	switch l.format {
	case formatJSON:
		l.stream.close()
		r.open("totals")
		totalsFields(&r, sum)
		r.close()
		r.buf = append(r.buf, '}')
	case formatJSONL:
		r.begin()
		r.str("kind", "totals")
		file.fields(&r)
		totalsFields(&r, sum)
		r.end()
	}
	l.w.Write(r.buf)
}

func (l *functionRecords) close() {
	l.array("\n]")
	if l.format == formatJSON && (l.manyFiles || l.stream != nil) {
		l.w.WriteString("\n")
	}
}

// summaryFields encodes counts of instructions. Those that are probeable are
// boosted, stepped, emulated or on ftrace sites.
func summaryFields(r *records, s *analyze.Summary) {
	r.num("insts", s.Insts)
	r.num("probeable", s.Probeable)
	r.num("boosted", s.Boosted)
	r.num("stepped", s.Slot-s.Boosted)
	r.num("emulated", s.Emulated)
	r.num("ftrace", s.Ftrace)
	r.num("refused", s.Refused)
	r.num("unknown", s.Undecided)
	r.num("hazards", s.Hazards)
	r.num("noted", s.Noted)
	r.num("invalid", s.Invalid)
	if s.Optimized {
		r.num("optimizable", s.Optimizable)
	} else {
		r.str("optimizable", jumpUnknown)
	}
	r.num("depends", s.Depends)
}

func totalsFields(r *records, sum *totals) {
	r.num("functions", sum.functions)
	summaryFields(r, &sum.Summary)
	reasonsField(r, "reasons", sum.Reasons)
	reasonsField(r, "opt_reasons", sum.JumpReasons)
}

// reasonsField encodes how many instructions each rule refuses, the most
// frequent first: in JSON {"rule":count,…}, in CSV "rule:count …".
func reasonsField(r *records, key string, reasons []analyze.Reason) {
	if r.format == formatCSV {
		var b []byte
		for i, reason := range reasons {
			if i > 0 {
				b = append(b, ' ')
			}
			b = append(b, reason.Rule.ID...)
			b = append(b, ':')
			b = strconv.AppendInt(b, int64(reason.Count), 10)
		}
		r.str(key, string(b))
		return
	}
	r.open(key)
	for _, reason := range reasons {
		r.num(reason.Rule.ID, reason.Count)
	}
	r.close()
}
