package image

import (
	"bytes"
	"fmt"
	"strings"
)

// Banner returns what a kernel says first when it starts ("Linux version 6.1.0-50-amd64
// …"); empty for other files and where none is found.
func (im *file) Banner() string {
	banner, _ := im.claims()
	return banner
}

// EmbeddedConfig returns the configuration that a kernel carries, packed by gzip. ok
// is false for other files and where there is none.
func (im *file) EmbeddedConfig() (packed []byte, ok bool) {
	_, packed = im.claims()
	return packed, packed != nil
}

// readClaims returns the banner of a kernel and its configuration. It looks through
// many megabytes, piece by piece.
func (im *file) readClaims() (banner string, config []byte) {
	const size = 256 << 10
	var buf []byte
	for _, s := range im.constants() {
		if buf == nil {
			buf = make([]byte, size)
		}
		looked := false // the rest of the section has been searched for the configuration
		for off := uint64(0); off < s.size && (banner == "" || config == nil); off += size - longestBanner {
			piece := buf[:min(size, s.size-off)]
			if im.readAt(piece, int64(s.off+off), "section "+s.name) != nil {
				return banner, config
			}
			if banner == "" {
				banner = findBanner(piece)
			}
			if i := bytes.Index(piece, configStart); i >= 0 && config == nil && !looked {
				looked = true
				config = im.configFrom(s, off+uint64(i))
			}
		}
	}
	return banner, config
}

// constants returns the sections that hold what a kernel says of itself: its
// constants, or where no section is called so, all that is not text.
func (im *file) constants() (list []*section) {
	if im.kind != KindKernel {
		return nil
	}
	if s := im.sectionNamed(".rodata"); s != nil && s.inMemory() && s.inFile() {
		return []*section{s}
	}
	for _, i := range im.byAddr {
		if s := &im.sections[i]; s.inFile() && (!s.exec() || im.headless) {
			list = append(list, s)
		}
	}
	return list
}

// release returns the version of a kernel, or of that which a module is for; empty
// where none is found.
func (im *file) release() string {
	text := strings.TrimPrefix(im.Banner(), bannerStart)
	if im.kind == KindModule {
		text = im.Vermagic()
	}
	release, _, _ := strings.Cut(text, " ")
	return release
}

// before reports whether the kernel is of an older version, by major and minor number.
func (im *file) before(version [2]int) bool {
	var major, minor int
	n, _ := fmt.Sscanf(im.release(), "%d.%d", &major, &minor)
	return n == len(version) && (major < version[0] || major == version[0] && minor < version[1])
}

// The bytes around the configuration that a kernel with CONFIG_IKCONFIG carries
// [kernel/configs.c].
var (
	configStart = []byte("IKCFG_ST")
	configEnd   = []byte("IKCFG_ED")
	gzipMagic   = []byte{0x1f, 0x8b}
)

// configFrom returns the configuration that a section has at off or after it.
func (im *file) configFrom(s *section, off uint64) []byte {
	data := make([]byte, s.size-off)
	if im.readAt(data, int64(s.off+off), "section "+s.name) != nil {
		return nil
	}
	return findConfig(data)
}

func findConfig(data []byte) []byte {
	for {
		i := bytes.Index(data, configStart)
		if i < 0 {
			return nil
		}
		data = data[i+len(configStart):]
		if end := bytes.Index(data, configEnd); end >= 0 && bytes.HasPrefix(data, gzipMagic) {
			return data[:end]
		}
	}
}

// longestBanner is more than the bytes of a banner.
const longestBanner = 512

// findBanner returns the banner in data. A pattern for printing one stands beside
// it, and a copy whose number is left out.
func findBanner(data []byte) string {
	for {
		i := bytes.Index(data, []byte(bannerStart))
		if i < 0 {
			return ""
		}
		data = data[i:]
		text := data[:min(len(data), longestBanner)]
		data = data[len(bannerStart):]
		end := bytes.IndexAny(text, "\n\x00")
		if end < 0 || text[len(bannerStart)] < '1' || text[len(bannerStart)] > '9' {
			continue
		}
		return printable(string(text[:end]))
	}
}

// Vermagic returns what a module has to have in common with the kernel that loads
// it ("6.1.0-50-amd64 SMP preempt mod_unload modversions"); empty for other files.
func (im *file) Vermagic() string {
	if im.kind != KindModule {
		return ""
	}
	s := im.sectionNamed(".modinfo")
	if s == nil {
		return ""
	}
	data, err := im.rawContents(s)
	if err != nil {
		return ""
	}
	for field := range bytes.SplitSeq(data, []byte{0}) {
		if magic, ok := strings.CutPrefix(string(field), "vermagic="); ok {
			return printable(magic)
		}
	}
	return ""
}
