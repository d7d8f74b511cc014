package main

import (
	"fmt"
	"strings"
)

// fault is a small patch: old text that is once in a file, and what takes its
// place. The test is what go test is given.
type fault struct {
	name, file, test string
	old, new         string
}

// parse reads the table. A fault is a block of lines:
//
//	fault: the slot is used again too early
//	file: runtime/slots.go
//	test: ./runtime -run TestSlots
//	- the old lines
//	+ the new lines
//
// A line that starts with # is a comment. A line "-" or "+" is an empty one.
func parse(text string) ([]fault, error) {
	var faults []fault
	for number, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if name, ok := strings.CutPrefix(line, "fault: "); ok {
			faults = append(faults, fault{name: name})
			continue
		}
		if len(faults) == 0 || !faults[len(faults)-1].add(line) {
			return nil, fmt.Errorf("line %d: want fault:, file:, test:, - or +, found %.40q", number+1, line)
		}
	}
	for i := range faults {
		if f := &faults[i]; f.file == "" || f.test == "" || f.old == "" || f.old == f.new {
			return nil, fmt.Errorf("fault %q needs file:, test:, lines of - and others of +", f.name)
		}
	}
	return faults, nil
}

// add reads a line of a block.
func (f *fault) add(line string) bool {
	for _, part := range []struct {
		start string
		to    *string
		end   string
	}{
		{"file: ", &f.file, ""}, {"test: ", &f.test, ""},
		{"- ", &f.old, "\n"}, {"+ ", &f.new, "\n"},
	} {
		rest, ok := strings.CutPrefix(line+" ", part.start)
		if ok {
			*part.to += strings.TrimSuffix(rest, " ") + part.end
			return true
		}
	}
	return false
}
