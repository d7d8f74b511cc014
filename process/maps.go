//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"xol/machine"
)

// Mapping is a range of memory, as /proc/PID/maps has it.
type Mapping struct {
	machine.Range
	Perm   machine.Perm
	Shared bool
	Offset uint64 // in the file
	Device uint64 // of the file, as stat has it
	Inode  uint64
	// Path is the file's name, or [stack], [vdso] …; empty for other memory.
	Path    string
	Deleted bool // the file has no name any more
}

// Maps returns its mappings, in the order of addresses.
func (p *Process) Maps() ([]Mapping, error) {
	if p.replaced || p.ended {
		return nil, p.fail(ErrGone, "")
	}
	return p.maps()
}

func (p *Process) maps() ([]Mapping, error) {
	var err error
	for _, path := range p.procPaths("maps") {
		var text []byte
		if text, err = os.ReadFile(path); err == nil && len(text) > 0 {
			return parseMaps(string(text))
		}
	}
	if err == nil {
		err = ErrGone
	}
	return nil, p.fail(permissionOr(err), "its memory map cannot be read")
}

func parseMaps(text string) ([]Mapping, error) {
	var list []Mapping
	for line := range strings.Lines(text) {
		m, err := parseMapping(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// parseMapping reads a line: 7f0000000000-7f0000001000 r-xp 00000000 08:01 123    /lib/x.so
func parseMapping(line string) (m Mapping, err error) {
	fields := strings.SplitN(line, " ", 6)
	number := func(s string, base int) (v uint64) {
		if err == nil {
			v, err = strconv.ParseUint(s, base, 64)
		}
		return v
	}
	if len(fields) >= 5 {
		lo, hi, _ := strings.Cut(fields[0], "-")
		major, minor, _ := strings.Cut(fields[3], ":")
		m = Mapping{
			Range: machine.Range{Lo: number(lo, 16), Hi: number(hi, 16)}, Offset: number(fields[2], 16),
			Device: unix.Mkdev(uint32(number(major, 16)), uint32(number(minor, 16))), Inode: number(fields[4], 10),
		}
	}
	if len(fields) < 5 || err != nil || len(fields[1]) != 4 {
		return Mapping{}, fmt.Errorf("a line of a memory map is not understood: %q", line)
	}
	for i, c := range "rwx" {
		if rune(fields[1][i]) == c {
			m.Perm |= 1 << i
		}
	}
	m.Shared = fields[1][3] == 's'
	if len(fields) == 6 {
		path := unescape(strings.TrimLeft(fields[5], " "))
		m.Path, m.Deleted = strings.CutSuffix(path, " (deleted)")
	}
	return m, nil
}

// unescape undoes what the kernel writes for a line's end in a name.
func unescape(path string) string { return strings.ReplaceAll(path, `\012`, "\n") }
