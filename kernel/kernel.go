// Package kernel says whose kernel is asked: which version of Linux it is, which
// options it was built with, and from where each of these is known.
package kernel

import (
	"regexp"
	"strings"

	"xol/classify"
	"xol/kconfig"
)

// Identity is what a kernel or module says of itself.
type Identity struct {
	// Release is what uname -r says: "6.1.0-50-amd64". Empty where nothing is known.
	Release string
	// Version is that of the sources: 6.1.176. A distribution that counts its own
	// releases names it elsewhere; where it does not, only the branch is known.
	Version classify.Version
	// Preemption says whether CONFIG_PREEMPTION is on, Known whether that is told.
	Preemption, Known bool
}

var (
	release = regexp.MustCompile(`^(\d+\.\d+)(?:\.(\d+))?`)
	// sources finds the version of the sources in what distributions add to the
	// banner.
	sources = []*regexp.Regexp{
		regexp.MustCompile(`\bDebian (\d+\.\d+\.\d+)[-~]`),
		regexp.MustCompile(`\(Ubuntu \S+ (\d+\.\d+\.\d+)\)`),
	}
	// counted is a release of a distribution that counts on its own: the third
	// number is 0, and another follows.
	counted = regexp.MustCompile(`^\d+\.\d+\.0-\d`)
)

const bannerStart = "Linux version "

// FromBanner reads the text that a kernel says first when it starts, which
// /proc/version has as well [init/version.c, linux_banner].
func FromBanner(banner string) Identity {
	text, ok := strings.CutPrefix(strings.TrimSpace(banner), bannerStart)
	if !ok {
		return Identity{}
	}
	id := FromRelease(text)
	i := strings.LastIndex(text, ") #") // where the compiler's versions end [init/Makefile]
	if i < 0 {
		return id
	}
	text = text[i:]
	for _, s := range sources {
		if m := s.FindStringSubmatch(text); m != nil {
			if v, ok := classify.ParseVersion(m[1]); ok {
				id.Version = v
			}
		}
	}
	id.Preemption, id.Known = preempts(strings.Fields(text)), true
	return id
}

// FromVermagic reads the text that a module is compared with a kernel by
// [include/linux/vermagic.h].
func FromVermagic(magic string) Identity {
	id := FromRelease(magic)
	if id.Release != "" {
		id.Preemption, id.Known = preempts(strings.Fields(magic)), true
	}
	return id
}

func preempts(flags []string) bool {
	for _, f := range flags {
		switch strings.ToLower(f) {
		case "preempt", "preempt_dynamic", "preempt_rt", "preempt_lazy":
			return true
		}
	}
	return false
}

// FromRelease reads what uname -r says.
func FromRelease(text string) Identity {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return Identity{}
	}
	m := release.FindStringSubmatch(fields[0])
	if m == nil {
		return Identity{}
	}
	number := m[1]
	if m[2] != "" && !counted.MatchString(fields[0]) {
		number += "." + m[2]
	}
	v, _ := classify.ParseVersion(number)
	return Identity{Release: fields[0], Version: v}
}

// Source says from where an option is known.
type Source uint8

// The sources, the weakest first.
const (
	Assumed    Source = iota // it is Debian's default for that version
	Told                     // the kernel's banner or symbols, or the vermagic of the module
	Configured               // a configuration, of a file or in the kernel
	Given                    // somebody has said so
)

// Setting is an option of a kernel.
type Setting struct {
	Name   string // without "CONFIG_", as that version calls it
	On     bool
	Source Source
}

// String writes the option as a configuration has it.
func (s Setting) String() string {
	if s.On {
		return kconfig.Prefix + s.Name + "=y"
	}
	return kconfig.Prefix + s.Name + "=n"
}
