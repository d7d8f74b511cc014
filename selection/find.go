package selection

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"xol/analyze"
	"xol/image"
	"xol/notation"
)

// in returns the places of a probe in a module, at least one.
func (p *probe) in(m *Module) ([]Place, error) {
	var places []Place
	var err error
	switch {
	case p.Kind == notation.Marker:
		places, err = p.atMarkers(m)
	case p.Glob:
		places, err = p.atFunctions(m)
	default:
		places, err = p.atPlaces(m)
	}
	for i := range places {
		places[i].Return = p.Return
	}
	slices.SortStableFunc(places, func(a, b Place) int { return cmp.Compare(a.Addr, b.Addr) })
	same := func(a, b Place) bool { return a.Addr == b.Addr } // IFUNCs may share what they choose from
	return slices.CompactFunc(places, same), err
}

func (p *probe) atMarkers(m *Module) ([]Place, error) {
	found, err := markers(m.Analysis.Image, &p.Probe)
	if err != nil {
		return nil, err
	}
	places := make([]Place, len(found))
	for i := range found {
		at := markerPlace(m.Analysis.Image, &found[i])
		places[i] = Place{Addr: at.Addr, Symbol: at.Symbol, Offset: at.Offset, Marker: &found[i]}
	}
	return places, nil
}

// atFunctions returns the entries of the functions that a pattern matches. Those that
// only lead to other files are not meant.
func (p *probe) atFunctions(m *Module) (places []Place, err error) {
	found, err := m.Analysis.Image.FindMatch(m.Analysis.Extent, p.Place)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if f := &found[i]; f.Source != image.FromPLT {
			places = append(places, entries(m.Analysis, f)...)
		}
	}
	if len(places) == 0 {
		return nil, &image.SymbolNotFoundError{Name: p.Place, Pattern: true}
	}
	return places, nil
}

func (p *probe) atPlaces(m *Module) (places []Place, err error) {
	found, err := find(m.Analysis.Image, &p.Probe, m.Analysis.Image.Find)
	if err != nil {
		return nil, err
	}
	if p.File == "" && !m.Program && found[0].Inlined {
		return nil, &image.SymbolNotFoundError{Name: p.Place} // a library has its own copy of it
	}
	for i := range found {
		at := &found[i]
		f, ok := m.Analysis.FunctionAt(at.Addr)
		starts := ok && f.Addr == at.Addr
		switch {
		case p.Return && !starts:
			return nil, fmt.Errorf("%s+%#x is not where a function starts, and a return probe is on a whole one", at.Symbol, at.Offset)
		case starts && (at.Named || p.Return):
			places = append(places, entries(m.Analysis, &f)...)
		default:
			places = append(places, Place{Addr: at.Addr, Symbol: at.Symbol, Offset: at.Offset})
		}
	}
	return places, nil
}

// entries returns where calls of a function come in: its entry, or those of the
// functions that it stands for.
func entries(an *analyze.Analysis, f *image.Function) []Place {
	if !f.Resolver {
		return []Place{entry(an.Image, f)}
	}
	through, _ := an.Image.Symbolize(f.Addr)
	var places []Place
	for _, addr := range an.Implementations(an.Judge(*f)) {
		if implementation, ok := an.FunctionAt(addr); ok {
			place := entry(an.Image, &implementation)
			place.Through = through
			places = append(places, place)
		}
	}
	if len(places) == 0 { // its own code does not tell: it is all that there is
		return []Place{entry(an.Image, f)}
	}
	return places
}

func entry(img *image.Image, f *image.Function) Place {
	name, _ := img.Symbolize(f.Addr)
	return Place{Addr: f.Addr + f.LocalEntry, Symbol: name, Offset: f.LocalEntry}
}

// everyInstruction returns all places where a probe may stand.
func everyInstruction(ctx context.Context, an *analyze.Analysis) (places []Place, err error) {
	err = analyze.Each(ctx, an, an.Functions(), func(r *analyze.Result) (accepted []Place) {
		name, base := an.Image.Symbolize(r.Function.Addr)
		for i := range r.Verdicts {
			if addr := r.Insts[i].Addr; r.Verdicts[i].OK() {
				accepted = append(accepted, Place{Probe: -1, Addr: addr, Symbol: name, Offset: addr - base})
			}
		}
		return accepted
	}, func(accepted []Place) error {
		places = append(places, accepted...)
		return nil
	})
	return places, err
}

// MissingError says that a probe names nothing in any file that was mapped.
type MissingError struct {
	Probe string   // as it was written
	File  string   // that it names; empty for none
	Files []string // those that were mapped, by their short names
	// Nearest are names that are like the one that is missing, the most similar first.
	Nearest []string
	// Later says that its file was not mapped: it may still come.
	Later bool
	Err   error // what else is wrong, where that is known
}

func (e *MissingError) Unwrap() error { return e.Err }

func (e *MissingError) Error() string {
	switch {
	case e.Later && len(e.Files) == 0:
		return fmt.Sprintf("%s: no file is mapped", e.Probe)
	case e.Later:
		return fmt.Sprintf("%s: no file %s is mapped, but %s", e.Probe, e.File, list(e.Files, mostFiles))
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", e.Probe, e.Err)
	}
	text := fmt.Sprintf("%s: there is no such function in %s", e.Probe, list(e.Files, mostFiles))
	if len(e.Nearest) > 0 {
		text += " (did you mean " + list(e.Nearest, mostNearest) + "?)"
	}
	return text
}

// How many names an error tells.
const (
	mostFiles   = 8
	mostNearest = 3
)

// list writes names with commas between them, the first few of many.
func list(names []string, most int) string {
	text := ""
	for i, name := range names {
		if i == most {
			return fmt.Sprintf("%s and %d more", text, len(names)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += name
	}
	return text
}

// Missing returns an error for each probe that has named nothing so far.
func (s *Selection) Missing() (missing []*MissingError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.probes {
		if p := &s.probes[i]; !p.found {
			missing = append(missing, s.missing(p))
		}
	}
	for i := range s.all {
		if a := &s.all[i]; !a.found {
			e := &MissingError{Probe: a.file, File: a.file, Later: true}
			for k := range s.asked {
				e.Files = append(e.Files, shortName(s.asked[k].Path))
			}
			missing = append(missing, e)
		}
	}
	return missing
}

func (s *Selection) missing(p *probe) *MissingError {
	e := &MissingError{Probe: p.Text, File: p.File, Later: !p.mapped, Err: p.err}
	for i := range s.asked {
		m := &s.asked[i]
		if p.mapped && !p.wants(m) {
			continue
		}
		e.Files = append(e.Files, shortName(m.Path))
		if p.Kind != notation.Marker && p.mapped {
			name, _ := image.SplitOffset(p.Place)
			e.Nearest = appendNew(e.Nearest, m.Analysis.Image.Nearest(name))
		}
	}
	return e
}

// appendNew appends those names that are not among names yet.
func appendNew(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
