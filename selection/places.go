package selection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"xol/events"
	"xol/image"
	"xol/notation"
)

// Places returns where a probe that is no pattern may stand in a file, at least one
// place. The error is that of image.Resolve, or says what the file has not.
func Places(img *image.Image, p *notation.Probe) ([]image.Place, error) {
	return find(img, p, img.Resolve)
}

// find finds places by a method of img: Resolve or Find.
func find(img *image.Image, p *notation.Probe, resolve func(place string) ([]image.Place, error)) ([]image.Place, error) {
	switch {
	case p.Kind == notation.Marker:
		return markerPlaces(img, p)
	case img.Running() && !strings.HasPrefix(p.Place, "0x"):
		return inMemory(img, p, resolve)
	case p.Module != "" && img.Kind() == image.KindKernel:
		return nil, &ModuleError{p.Module}
	}
	found, err := resolve(p.Place)
	if err != nil || p.Source == "" {
		return found, err
	}
	inSource := slices.DeleteFunc(found, func(at image.Place) bool {
		file, _, _ := img.Line(at.Addr)
		return file != p.Source && !strings.HasSuffix(file, "/"+p.Source)
	})
	if len(inSource) == 0 {
		return nil, fmt.Errorf("%s is not in %s, or the file has no source lines", p.Place, p.Source)
	}
	return inSource, nil
}

// ModuleError says that a probe in a module is asked for of the kernel's file.
type ModuleError struct{ Module string }

func (e *ModuleError) Error() string {
	return fmt.Sprintf("%s is a module, whose symbols the kernel's file has not: give the file %s.ko", e.Module, e.Module)
}

// inMemory returns where a probe may stand in a running kernel: in the module that it
// names, else in the kernel's own text first.
func inMemory(img *image.Image, p *notation.Probe, resolve func(place string) ([]image.Place, error)) ([]image.Place, error) {
	found, err := resolve(p.Place)
	if err != nil {
		return nil, err
	}
	if p.Module == "" {
		slices.SortStableFunc(found, func(a, b image.Place) int {
			return cmp.Compare(min(len(img.ModuleOf(a.Addr)), 1), min(len(img.ModuleOf(b.Addr)), 1))
		})
		return found, nil
	}
	found = slices.DeleteFunc(found, func(at image.Place) bool { return img.ModuleOf(at.Addr) != p.Module })
	if len(found) == 0 {
		name, _ := image.SplitOffset(p.Place)
		return nil, &image.SymbolNotFoundError{Name: p.Module + ":" + name}
	}
	return found, nil
}

func markerPlaces(img *image.Image, p *notation.Probe) (found []image.Place, err error) {
	markers, err := markers(img, p)
	for i := range markers {
		found = append(found, markerPlace(img, &markers[i]))
	}
	return found, err
}

func markerPlace(img *image.Image, m *image.Marker) image.Place {
	name, base := img.Symbolize(m.Location)
	return image.Place{Addr: m.Location, Symbol: name, Offset: m.Location - base}
}

// markers returns the static markers that a probe names.
func markers(img *image.Image, p *notation.Probe) (found []image.Marker, err error) {
	all, err := img.Markers()
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if events.Match(p.Name, m.Name) && (p.Provider == "" || events.Match(p.Provider, m.Provider)) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the file has no static marker %s (xol analyze --markers lists them)", strings.TrimPrefix(p.Provider+":"+p.Name, ":"))
	}
	return found, nil
}
