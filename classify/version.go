package classify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Version is a version of Linux; later ones are greater. A branch, such as
// 6.12, is its version with patch level 0. The zero value is older than all.
type Version uint32

// Linux returns the branch major.minor.
func Linux(major, minor uint8) Version { return Version(major)<<24 | Version(minor)<<16 }

// Patch returns a patch level of v's branch.
func (v Version) Patch(level uint16) Version { return v.Branch() | Version(level) }

// Branch returns v without its patch level.
func (v Version) Branch() Version { return v &^ 0xffff }

// String returns the version as people write it: "6.12", "5.10.262".
func (v Version) String() string {
	s := fmt.Sprintf("%d.%d", v>>24, v>>16&0xff)
	if v != v.Branch() {
		s += "." + strconv.Itoa(int(v&0xffff))
	}
	return s
}

// MarshalText returns what String does.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// versionFields are the parts of a version.
var versionFields = [...]struct{ bits, shift int }{{8, 24}, {8, 16}, {16, 0}}

// ParseVersion reads a version as String writes it.
func ParseVersion(s string) (v Version, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, false
	}
	for i, part := range parts {
		field := versionFields[i]
		n, err := strconv.ParseUint(part, 10, field.bits)
		if err != nil || strconv.FormatUint(n, 10) != part {
			return 0, false
		}
		v |= Version(n) << field.shift
	}
	return v, true
}

// Span is a range of versions: those from Since on, but for Until and those
// after it. A zero bound is none.
type Span struct{ Since, Until Version }

// Holds reports whether v lies in the span.
func (s Span) Holds(v Version) bool { return v >= s.Since && (s.Until == 0 || v < s.Until) }

// String names the versions: "every version", "6.18 and later", "before 6.19".
func (s Span) String() string {
	switch {
	case s.Since == 0 && s.Until == 0:
		return "every version"
	case s.Until == 0:
		return s.Since.String() + " and later"
	case s.Since == 0:
		return "before " + s.Until.String()
	}
	return s.Since.String() + " and later, before " + s.Until.String()
}

// Mechanism is whose rules a profile has.
type Mechanism uint8

// The mechanisms.
const (
	Architecture Mechanism = iota // what careful relocation can do: isa
	Kprobes                       // linux-X.Y
	Uprobes                       // uprobe-linux-X.Y
)

var mechanismPrefixes = [...]string{Kprobes: "linux-", Uprobes: "uprobe-linux-"}

// ProfileName returns the name of the profile that answers as Linux v does.
func ProfileName(m Mechanism, v Version) string {
	if m == Architecture {
		return ISA
	}
	return mechanismPrefixes[m] + v.String()
}

// ParseProfile takes the name of a profile apart. That there is such a profile
// is not said.
func ParseProfile(name string) (m Mechanism, v Version, ok bool) {
	if name == ISA {
		return Architecture, 0, true
	}
	for m, prefix := range mechanismPrefixes {
		if text, found := strings.CutPrefix(name, prefix); found && prefix != "" {
			v, ok := ParseVersion(text)
			return Mechanism(m), v, ok
		}
	}
	return 0, 0, false
}

// Releases are the versions of Linux whose answers are known, in ascending
// order.
type Releases []Version

// nearest returns the version that answers for v: that of v's branch, else the
// newest older one; of several patch levels of a branch the newest that v has.
// ok is false where all are newer than v.
func (r Releases) nearest(v Version) (nearest Version, ok bool) {
	i, found := slices.BinarySearch(r, v)
	switch {
	case found:
		return v, true
	case i > 0:
		return r[i-1], true
	}
	return 0, false
}

// Known are the versions of Linux whose profiles an ISA has.
type Known struct{ Kprobes, Uprobes Releases }

// Find returns whose rules the profile called name has, and the version that
// answers: the nearest older one where that of the name is not known itself. ok
// is false where there is no such profile.
func (k *Known) Find(name string) (m Mechanism, v Version, ok bool) {
	m, v, ok = ParseProfile(name)
	if !ok || m == Architecture {
		return m, v, ok
	}
	v, ok = k.of(m).nearest(v)
	return m, v, ok
}

func (k *Known) of(m Mechanism) Releases {
	if m == Uprobes {
		return k.Uprobes
	}
	return k.Kprobes
}

// Names returns the names of all profiles.
func (k *Known) Names() []string {
	names := []string{ISA}
	for _, m := range [...]Mechanism{Kprobes, Uprobes} {
		for _, v := range k.of(m) {
			names = append(names, ProfileName(m, v))
		}
	}
	return names
}
