package events

import (
	"cmp"
	"fmt"
	"strings"
)

// Layout says where the fields stand that lead from a struct dentry or a struct
// file to a name, in bytes. A field that is 0 stands where it does in a 64-bit
// Linux 6.12.
type Layout struct {
	DentryName uint64 // of d_name.name in struct dentry
	FileDentry uint64 // of f_path.dentry in struct file
}

var linux612 = Layout{DentryName: 0x28, FileDentry: 0x48}

// The types that name a dentry, or the dentry of a file.
const (
	dentryType = ":%pd"
	fileType   = ":%pD"
)

// expandDentries replaces arguments with such a type by the string that they
// stand for, before anything else is read, as Linux does
// [kernel/trace/trace_probe.c, traceprobe_expand_dentry_args].
func (p *parser) expandDentries() {
	for i := 2; i < len(p.words); i++ {
		w := &p.words[i]
		start := ""
		switch {
		case strings.HasSuffix(w.text, dentryType):
			start = fmt.Sprintf("+0x0(+%#x(", cmp.Or(p.opt.Layout.DentryName, linux612.DentryName))
		case strings.HasSuffix(w.text, fileType):
			start = fmt.Sprintf("+0x0(+%#x(+%#x(", cmp.Or(p.opt.Layout.DentryName, linux612.DentryName),
				cmp.Or(p.opt.Layout.FileDentry, linux612.FileDentry))
		default:
			continue
		}
		w.expand(start)
	}
}

// expand puts start before the argument, and what closes it in the place of its
// type.
func (w *word) expand(start string) {
	w.length = len(w.text)
	name, body, named := strings.Cut(strings.TrimSuffix(strings.TrimSuffix(w.text, dentryType), fileType), "=")
	if named {
		name += "="
	} else {
		name, body = "", name
	}
	w.at, w.inserted = len(name), len(start)
	w.text = name + start + body + strings.Repeat(")", strings.Count(start, "(")) + ":string"
}
