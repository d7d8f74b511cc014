package image

import (
	"debug/dwarf"
	"debug/elf"
	"strings"
)

// dwarf opens the debugging information. That of a relocatable file gets the
// addresses at which its sections were laid.
func (im *Image) dwarf() (*dwarf.Data, error) {
	if im.file == nil || im.sectionNamed(".debug_line") == nil && im.sectionNamed(".zdebug_line") == nil {
		return nil, errNoDWARF
	}
	if im.typ != elf.ET_REL {
		d, err := im.file.DWARF()
		if err != nil {
			return nil, &FormatError{What: "damaged DWARF", Err: err}
		}
		return d, nil
	}
	parts := make(map[string][]byte)
	for i := range im.sections {
		s := &im.sections[i]
		if name, ok := strings.CutPrefix(s.name, ".debug_"); ok {
			data, err := im.contents(s)
			if err != nil {
				return nil, err
			}
			parts[name] = data
		}
	}
	d, err := dwarf.New(parts["abbrev"], nil, nil, parts["info"], parts["line"], nil, parts["ranges"], parts["str"])
	if err != nil {
		return nil, &FormatError{What: "damaged DWARF", Err: err}
	}
	for _, name := range []string{"addr", "line_str", "str_offsets", "rnglists"} {
		if err := d.AddSection(".debug_"+name, parts[name]); err != nil {
			return nil, &FormatError{What: "damaged DWARF", Where: ".debug_" + name, Err: err}
		}
	}
	return d, nil
}
