package notation

import (
	"errors"
	"regexp"
	"strings"

	"xol/events"
)

// event is how lines of kprobe_events and uprobe_events start: p or r, the number
// of calls that are followed, the names, and a place after a space.
var event = regexp.MustCompile(`^[pr][0-9]*(:\S*)?\s+\S`)

func isEvent(s string) bool { return event.MatchString(s) }

// anyFunction takes every name for that of a function, and every place in it for its
// entry: which it is, the file tells, and the version of the kernel.
type anyFunction struct{ events.Symbols }

func (anyFunction) Count(string, string) int  { return 1 }
func (anyFunction) Entry(string, uint64) bool { return true }

// parseEvent reads a line of kprobe_events or uprobe_events: the place tells which.
// It returns an *Error or an *events.Error.
func parseEvent(s string) (Probe, error) {
	opt := events.Options{Kind: events.Kprobe, Symbols: anyFunction{}}
	if place := strings.Fields(s)[1]; strings.HasPrefix(place, "/") || strings.HasPrefix(place, "./") {
		opt.Kind = events.Uprobe
	}
	e, err := events.Parse(s, opt)
	if err != nil {
		return Probe{}, err
	}
	p := Probe{Text: s, Kind: Kprobe, Tool: Tracefs, Return: e.Return, Event: e.Group + "/" + e.Name}
	for _, a := range e.Args {
		p.Args = append(p.Args, a.Name+"="+a.Text)
	}
	switch {
	case opt.Kind == events.Uprobe:
		p.Kind, p.File, p.Place = Uprobe, e.Path, placeIn("file:", e.Offset)
	case e.Symbol == "":
		p.Place = placeIn("", e.Addr)
	default:
		p.Module, p.Place = e.Module()
		if e.Offset != 0 {
			p.Place = placeIn(p.Place+"+", e.Offset)
		}
		p.Glob = isGlob(p.Place)
	}
	return p, nil
}

// SyntaxError returns the mistake that Linux would find in a line of tracefs, where
// err is that.
func SyntaxError(err error) (e *events.Error, ok bool) {
	ok = errors.As(err, &e)
	return e, ok
}
